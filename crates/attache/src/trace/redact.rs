//! Copies JSON and leaves out what must not be seen.

use std::borrow::Cow;

use attache_proto::Dialect;
use attache_proto::json::{DecodeError, Kind, Reader, Writer};

use super::names::{Named, named};
use super::text::{LEFT_OUT, is_secret_option, masked};

/// How deep JSON in strings of JSON is looked into.
const MOST_NESTED: usize = 3;

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
    /// About a login: what there is may be seen, what is said of it may not.
    Login,
    /// Secrets, or how many there are.
    SecretOrCount,
    /// A secret: not even its shape is kept.
    Secret,
    /// The schema of a form: what it asks for may be seen.
    Schema,
    /// The fields of a form, by name.
    Fields,
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

/// Whether text is looked through for what looks like a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// It is.
    Masked,
    /// It stays as it is.
    Kept,
}

/// Appends `json` to `out` on one line; `false` when it is no JSON, and then `out` holds a part of it.
pub(super) fn redact(json: &str, out: &mut Vec<u8>, texts: Texts) -> bool {
    let mut copy = Copy {
        reader: Reader::new(json, Dialect::V1),
        writer: Writer::new(out, Dialect::V1),
        texts,
        nested: 0,
        has_left_out: false,
    };
    copy.all().is_ok()
}

/// A text without what looks like a secret. One that is JSON is looked into.
pub(super) fn redact_text(text: &str, nested: usize) -> Cow<'_, str> {
    let inner = text.trim();
    let is_json = matches!(
        (inner.as_bytes().first(), inner.as_bytes().last()),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
    );
    if is_json && nested < MOST_NESTED {
        let mut out = Vec::new();
        let mut copy = Copy {
            reader: Reader::new(inner, Dialect::V1),
            writer: Writer::new(&mut out, Dialect::V1),
            texts: Texts::Masked,
            nested: nested + 1,
            has_left_out: false,
        };
        let (done, has_left_out) = (copy.all(), copy.has_left_out);
        if done.is_ok() {
            // Where there is nothing to leave out, it stays as it was written.
            let shown = String::from_utf8(out).ok().filter(|_| has_left_out);
            return shown.map_or(Cow::Borrowed(text), Cow::Owned);
        }
    }
    masked(text)
}

struct Copy<'a, 'b> {
    reader: Reader<'a>,
    writer: Writer<'b>,
    texts: Texts,
    nested: usize,
    has_left_out: bool,
}

impl<'a> Copy<'a, '_> {
    fn all(&mut self) -> Result<(), DecodeError> {
        self.value(Place::Open)?;
        self.reader.end()
    }

    fn value(&mut self, place: Place) -> Result<(), DecodeError> {
        let kind = self.reader.peek()?;
        let may_be_seen = match (place, kind) {
            // They say nothing.
            (_, Kind::Null) => true,
            (Place::Secret | Place::SecretOrCount | Place::Login, Kind::Bool) => true,
            (Place::Open | Place::Address | Place::Schema | Place::Fields, _) => true,
            (Place::Servers | Place::Server | Place::Pairs | Place::Pair | Place::Login, kind) => {
                matches!(kind, Kind::Array | Kind::Object)
            }
            (Place::ServerAddress | Place::PairName, kind) => kind == Kind::String,
            (Place::Arguments, kind) => kind == Kind::Array,
            (Place::SecretOrCount, kind) => kind == Kind::Number,
            (Place::Secret, _) => false,
        };
        if !may_be_seen {
            self.reader.skip()?;
            self.leave_out();
            return Ok(());
        }
        match kind {
            Kind::Array => self.array(place),
            Kind::Object => self.object(place),
            Kind::String => self.string(place).map(drop),
            _ => {
                let raw = self.reader.raw()?;
                self.writer.raw(raw);
                Ok(())
            }
        }
    }

    fn leave_out(&mut self) {
        self.has_left_out = true;
        self.writer.string(LEFT_OUT);
    }

    fn array(&mut self, place: Place) -> Result<(), DecodeError> {
        self.writer.begin_array();
        self.reader.begin_array()?;
        let mut first = true;
        let place = match place {
            Place::Pairs => Place::Pair,
            Place::Servers => Place::Server,
            Place::Server | Place::Arguments => Place::Secret,
            place => place,
        };
        let mut is_secret = false;
        while self.reader.next_item(&mut first)? {
            self.writer.item();
            if self.reader.peek()? != Kind::String || place != Place::Open {
                self.value(place)?;
                continue;
            }
            // `["--token", "…"]`
            if std::mem::take(&mut is_secret) {
                self.value(Place::Secret)?;
            } else {
                is_secret = is_secret_option(&self.string(Place::Open)?);
            }
        }
        self.writer.end_array();
        Ok(())
    }

    fn object(&mut self, place: Place) -> Result<(), DecodeError> {
        self.writer.begin_object();
        self.reader.begin_object()?;
        let (mut first, mut names_secret) = (true, false);
        while let Some(key) = self.reader.next_key(&mut first)? {
            self.key(&key);
            let next = match place_of(&key, place) {
                // `{"properties": {"password": {"type": "string"}}}`
                _ if place == Place::Fields && self.reader.peek()? == Kind::Object => Place::Schema,
                // `{"name": "API_KEY", "value": "…"}`
                Place::Open if names_secret && key == "value" => Place::Secret,
                next => next,
            };
            if next == Place::Open && key == "name" && self.reader.peek()? == Kind::String {
                let name = self.string(next)?;
                names_secret = named(&name) == Named::Secret;
            } else {
                self.value(next)?;
            }
        }
        self.writer.end_object();
        Ok(())
    }

    fn key(&mut self, key: &str) {
        match self.texts {
            Texts::Masked => {
                let shown = masked(key);
                self.has_left_out |= matches!(shown, Cow::Owned(_));
                self.writer.free_key(&shown);
            }
            Texts::Kept => self.writer.free_key(key),
        }
    }

    /// Copies a string, and gives what it says.
    fn string(&mut self, place: Place) -> Result<Cow<'a, str>, DecodeError> {
        let raw = self.reader.raw()?;
        let text = Reader::new(raw, Dialect::V1).string()?;
        let shown = match place {
            Place::ServerAddress => Cow::Owned(shown_address(&text)),
            Place::Address => Cow::Owned(without_query(&masked(&text))),
            _ if self.texts == Texts::Kept => Cow::Borrowed(&*text),
            _ => redact_text(&text, self.nested),
        };
        if shown == text {
            self.writer.raw(raw);
        } else {
            self.has_left_out = true;
            self.writer.string(&shown);
        }
        Ok(text)
    }
}

/// An address that may have no scheme, up to its question mark.
fn without_query(address: &str) -> String {
    match address.split_once('?') {
        Some((place, query)) if !query.is_empty() => format!("{place}?{LEFT_OUT}"),
        _ => address.to_owned(),
    }
}

/// The host of an address.
fn shown_address(address: &str) -> String {
    // What has no scheme is no address, and may be anything.
    let Some(at) = address.find("://") else { return LEFT_OUT.to_owned() };
    let (scheme, rest) = address.split_at(at + 3);
    let (place, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    if path.contains('@') || query.contains('@') {
        // A password with a slash in it, perhaps: what looks like the host may be a part of it.
        return format!("{scheme}{LEFT_OUT}");
    }
    let host = host.rsplit('@').next().unwrap_or_default();
    match path {
        "" | "/" if query.is_empty() => format!("{scheme}{host}{path}"),
        _ => format!("{scheme}{host}/{LEFT_OUT}"),
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
        (Place::Open, "requestedSchema") => Place::Schema,
        (Place::Schema, "properties") => Place::Fields,
        _ => match named(key) {
            Named::Servers => Place::Servers,
            Named::Pairs => Place::Pairs,
            Named::Secret => Place::Secret,
            Named::SecretOrCount => Place::SecretOrCount,
            Named::Login => Place::Login,
            _ if around == Place::Login => Place::Login,
            Named::Address => Place::Address,
            Named::Open => Place::Open,
        },
    }
}
