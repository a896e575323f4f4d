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
    /// An address: who is asked for what may be seen, a user, a password and a query may not.
    Address,
    /// MCP servers, in an array or by name.
    Servers,
    /// An MCP server: what it is called and which program it is may be seen.
    Server,
    /// Its address: people put keys into every part of it but the host.
    ServerAddress,
    /// The arguments of its program, of which there are so many.
    Arguments,
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
        Place::Open | Place::Address => true,
        Place::Servers | Place::Server => matches!(kind, Kind::Array | Kind::Object),
        Place::ServerAddress => kind == Kind::String,
        Place::Arguments => kind == Kind::Array,
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
            let place = match place {
                Place::Pairs => Place::Pair,
                Place::Servers => Place::Server,
                Place::Server | Place::Arguments => Place::Secret,
                place => place,
            };
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
        Kind::String if place == Place::Address => writer.string(&shown_address(&reader.string()?, true)),
        Kind::String if place == Place::ServerAddress => writer.string(&shown_address(&reader.string()?, false)),
        _ => writer.raw(reader.raw()?),
    }
    Ok(())
}

/// An address without the user, the password, the query and the fragment, and if so wanted without its path.
fn shown_address(address: &str, has_path: bool) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(at) => address.split_at(at + 3),
        // It is no address, and may be anything.
        None if !has_path => return LEFT_OUT.to_owned(),
        None => ("", address),
    };
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if !has_path && (path.contains('@') || query.contains('@')) {
        // A password with a slash in it, perhaps: what looks like the host may be a part of it.
        return format!("{scheme}{LEFT_OUT}");
    }
    let host = host.rsplit('@').next().unwrap_or_default();
    match (has_path, query.is_empty()) {
        (true, true) => format!("{scheme}{host}{path}"),
        (true, false) => format!("{scheme}{host}{path}?{LEFT_OUT}"),
        (false, true) if path.is_empty() || path == "/" => format!("{scheme}{host}{path}"),
        (false, _) => format!("{scheme}{host}/{LEFT_OUT}"),
    }
}

fn place_of(key: &str, around: Place) -> Place {
    match (around, key) {
        (Place::Pair, "name") => Place::PairName,
        (Place::Pair | Place::Pairs, _) => Place::Secret,
        (Place::Servers, _) => Place::Server,
        (Place::Server, "name" | "type" | "command" | "serverId" | "id") => Place::Open,
        (Place::Server, "url") => Place::ServerAddress,
        (Place::Server, "args") => Place::Arguments,
        (Place::Server, "env" | "headers") => Place::Pairs,
        (Place::Server, _) => Place::Arguments,
        (_, "mcpServers") => Place::Servers,
        (_, "env" | "headers") => Place::Pairs,
        _ if is_address(key) => Place::Address,
        _ if !is_secret(key) => Place::Open,
        // Tokens of a model are counted.
        _ if key.to_ascii_lowercase().ends_with("tokens") => Place::SecretOrCount,
        _ => Place::Secret,
    }
}

fn is_address(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    lower.ends_with("url") || lower.ends_with("uri")
}

fn is_secret(key: &str) -> bool {
    let is_plain = |byte: &u8| !matches!(byte, b'-' | b'_');
    SECRETS.iter().any(|secret| {
        let mut end = key.bytes().rev().filter(is_plain).map(|byte| byte.to_ascii_lowercase());
        secret.bytes().rev().all(|byte| end.next() == Some(byte))
    })
}
