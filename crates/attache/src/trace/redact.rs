//! Copies JSON and leaves out what must not be seen.

use attache_proto::Dialect;
use attache_proto::json::{DecodeError, Kind, Reader, Writer};

/// What stands in the place of a secret.
const LEFT_OUT: &str = "…";

/// The ends of the names of secrets, without case, dashes and underscores.
const SECRETS: &[&str] = &[
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "key",
    "keys",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "secret",
    "secrets",
    "token",
    "tokens",
];

/// What the value that comes next is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Anything.
    Open,
    /// Variables or headers: an object with the names as its keys, or an array of pairs. Values may not be seen.
    Pairs,
    /// One of an array of pairs: an object with a name, which may be seen, and a value.
    Pair,
    /// The name in a pair.
    PairName,
    /// Secrets, or how many there are.
    SecretOrCount,
    /// A secret: not even its shape is kept.
    Secret,
}

/// Appends `json` to `out` on one line; `false` when it is no JSON, and then `out` holds a part of it.
pub(super) fn redact(json: &str, out: &mut Vec<u8>) -> bool {
    let mut reader = Reader::new(json, Dialect::V1);
    let mut writer = Writer::new(out, Dialect::V1);
    copy(&mut reader, &mut writer, Place::Open).and_then(|()| reader.end()).is_ok()
}

fn copy(reader: &mut Reader<'_>, writer: &mut Writer<'_>, place: Place) -> Result<(), DecodeError> {
    let kind = reader.peek()?;
    if kind == Kind::Null {
        reader.skip()?;
        writer.null();
        return Ok(());
    }
    let may_be_seen = match place {
        Place::Open => true,
        Place::Pairs | Place::Pair => matches!(kind, Kind::Array | Kind::Object),
        Place::PairName => kind == Kind::String,
        Place::SecretOrCount => kind == Kind::Number,
        Place::Secret => false,
    };
    if !may_be_seen {
        reader.skip()?;
        writer.string(LEFT_OUT);
        return Ok(());
    }
    match kind {
        Kind::Array => {
            writer.begin_array();
            reader.begin_array()?;
            let mut first = true;
            let place = if place == Place::Pairs { Place::Pair } else { place };
            while reader.next_item(&mut first)? {
                writer.item();
                copy(reader, writer, place)?;
            }
            writer.end_array();
        }
        Kind::Object => {
            writer.begin_object();
            reader.begin_object()?;
            let mut first = true;
            while let Some(key) = reader.next_key(&mut first)? {
                writer.free_key(&key);
                copy(reader, writer, place_of(&key, place))?;
            }
            writer.end_object();
        }
        _ => writer.raw(reader.raw()?),
    }
    Ok(())
}

fn place_of(key: &str, around: Place) -> Place {
    match (around, key) {
        (Place::Pair, "name") => Place::PairName,
        (Place::Pair | Place::Pairs, _) => Place::Secret,
        (_, "env" | "headers") => Place::Pairs,
        _ if !is_secret(key) => Place::Open,
        // Tokens of a model are counted.
        _ if key.to_ascii_lowercase().ends_with("tokens") => Place::SecretOrCount,
        _ => Place::Secret,
    }
}

fn is_secret(key: &str) -> bool {
    let is_plain = |byte: &u8| !matches!(byte, b'-' | b'_');
    SECRETS.iter().any(|secret| {
        let mut end = key.bytes().rev().filter(is_plain).map(|byte| byte.to_ascii_lowercase());
        secret.bytes().rev().all(|byte| end.next() == Some(byte))
    })
}
