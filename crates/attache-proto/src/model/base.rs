//! What all other types are made of: ids, `_meta`, three-state fields, secrets and the unknown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use crate::Dialect;
use crate::codec::{Blank, Decode, Encode, model_type};
use crate::json::{DecodeError, RawJson, Reader, Reason, Writer};

/// The `_meta` object: data of the implementations, kept as text because only they know what it means.
///
/// ```
/// use attache_proto::model::Meta;
///
/// let meta = Meta::new(r#"{"example.com/trace":"abc"}"#).unwrap();
/// assert_eq!(meta.get("example.com/trace").unwrap().as_str(), r#""abc""#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta(RawJson);

impl Meta {
    /// Checks that `text` is a JSON object.
    pub fn new(text: &str) -> Result<Self, DecodeError> {
        Meta::from_raw(RawJson::new(text)?)
    }

    /// Takes a raw value if it is an object.
    pub fn from_raw(raw: RawJson) -> Result<Self, DecodeError> {
        if raw.is_object() { Ok(Meta(raw)) } else { Err(DecodeError::new(Reason::Expected("an object"))) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<RawJson> {
        self.0.get(key)
    }

    /// The whole object.
    pub fn as_raw(&self) -> &RawJson {
        &self.0
    }

    /// What an upsert's `_meta` makes of this one: its keys are set, those that are null go, all others stay as they
    /// are. `None` when no key is left.
    ///
    /// ```
    /// use attache_proto::model::Meta;
    ///
    /// let stored = Meta::new(r#"{"a":1,"b":2}"#).unwrap();
    /// let merged = stored.merge(&Meta::new(r#"{"b":null,"c":3}"#).unwrap()).unwrap();
    /// assert_eq!(merged.as_raw().as_str(), r#"{"a":1,"c":3}"#);
    /// ```
    pub fn merge(&self, patch: &Meta) -> Option<Meta> {
        let (stored, patch) = (self.entries(), patch.entries());
        // If a key is there twice, the first counts, as in `get`. A value is taken when it is written.
        let mut values: HashMap<&str, Option<&str>> = HashMap::new();
        for (key, value) in patch.iter().rev() {
            values.insert(key, Some(value));
        }
        for (key, value) in &stored {
            values.entry(key).or_insert(Some(value));
        }
        let mut buffer = Vec::new();
        let mut writer = Writer::new(&mut buffer, Dialect::V2);
        writer.begin_object();
        for (key, _) in stored.iter().chain(&patch) {
            let value = values.get_mut(&**key).and_then(Option::take).filter(|value| *value != "null");
            if let Some(value) = value {
                writer.free_key(key);
                writer.raw(value);
            }
        }
        writer.end_object();
        let text = String::from_utf8(buffer).expect("the writer takes strings and adds ASCII");
        (text != "{}").then(|| Meta(RawJson::trusted(text)))
    }

    /// Its keys and values, in order. Raw JSON that was never checked may be broken; then these are those before the break.
    fn entries(&self) -> Vec<(Cow<'_, str>, &str)> {
        let mut entries = Vec::new();
        let mut reader = Reader::new(self.0.as_str(), Dialect::V2);
        let mut first = true;
        if reader.begin_object().is_ok() {
            while let Ok(Some(key)) = reader.next_key(&mut first)
                && let Ok(value) = reader.raw()
            {
                entries.push((key, value));
            }
        }
        entries
    }
}

impl Decode for Meta {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Meta::from_raw(RawJson::decode(reader)?)
    }
}

impl Encode for Meta {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.0.encode(writer);
    }
}

model_type!(Meta);

/// What an upsert says of one field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// Nothing: the value stays as it is.
    #[default]
    Keep,
    /// The value goes.
    Clear,
    /// This is the value now.
    Set(T),
}

impl<T> Patch<T> {
    /// The new value, if there is one.
    pub fn set(&self) -> Option<&T> {
        match self {
            Patch::Set(value) => Some(value),
            Patch::Keep | Patch::Clear => None,
        }
    }

    /// The same patch of something that depends on the value.
    pub fn map<U>(&self, change: impl FnOnce(&T) -> U) -> Patch<U> {
        match self {
            Patch::Keep => Patch::Keep,
            Patch::Clear => Patch::Clear,
            Patch::Set(value) => Patch::Set(change(value)),
        }
    }

    /// Brings a stored value up to date.
    pub fn apply(self, stored: &mut Option<T>) {
        match self {
            Patch::Keep => {}
            Patch::Clear => *stored = None,
            Patch::Set(value) => *stored = Some(value),
        }
    }

    /// Whether the value stays as it is.
    pub fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }
}

impl<T> From<T> for Patch<T> {
    fn from(value: T) -> Self {
        Patch::Set(value)
    }
}

/// A value that must not be seen: it is written to the wire and to nothing else.
///
/// ```
/// use attache_proto::model::Secret;
///
/// assert_eq!(format!("{:?}", Secret::from("token")), "Secret(…)");
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// The value itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Secret(text.into())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Blank for Secret {
    fn blank() -> Self {
        Secret::default()
    }
}

impl Decode for Secret {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        String::decode(reader).map(Secret)
    }
}

impl Encode for Secret {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(&self.0);
    }
}

/// A variant of a union that we do not know, kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    tag: Box<str>,
    raw: RawJson,
}

impl Unknown {
    /// A variant of your own: `raw` is its object, the tag included.
    pub fn new(tag: &str, raw: RawJson) -> Self {
        Unknown { tag: tag.into(), raw }
    }

    /// The tag that names the variant.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Its object, the tag included. Where the union is part of a larger object, only the union's own fields.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The text of a field, when it is there and is text.
    pub fn text(&self, field: &str) -> Option<String> {
        Reader::new(self.raw.get(field)?.as_str(), Dialect::V2).decode().ok()
    }

    /// Keeps all but the fields that belong to the object around the union.
    pub(crate) fn decode_rest(tag: &str, reader: &mut Reader<'_>, outer: &[&str]) -> Result<Self, DecodeError> {
        if outer.is_empty() {
            return Ok(Unknown { tag: tag.into(), raw: RawJson::decode(reader)? });
        }
        let mut buffer = Vec::new();
        let mut writer = Writer::new(&mut buffer, reader.dialect());
        writer.begin_object();
        reader.begin_object()?;
        let mut first = true;
        while let Some(key) = reader.next_key(&mut first)? {
            if outer.contains(&&*key) {
                reader.skip()?;
                continue;
            }
            writer.free_key(&key);
            RawJson::decode(reader)?.encode(&mut writer);
        }
        writer.end_object();
        let text = String::from_utf8(buffer).expect("the writer takes strings and adds ASCII");
        Ok(Unknown { tag: tag.into(), raw: RawJson::trusted(text) })
    }

    /// Writes the fields into an object that is open already.
    pub(crate) fn encode_fields(&self, writer: &mut Writer<'_>) {
        let mut reader = Reader::new(self.raw.as_str(), writer.dialect());
        let mut first = true;
        let mut next = || -> Result<Option<_>, DecodeError> {
            if first {
                reader.begin_object()?;
            }
            let Some(key) = reader.next_key(&mut first)? else { return Ok(None) };
            Ok(Some((key, reader.raw()?)))
        };
        // What is no object has no fields.
        while let Ok(Some((key, value))) = next() {
            writer.free_key(&key);
            writer.raw(value);
        }
    }
}

impl Blank for Unknown {
    fn blank() -> Self {
        Unknown { tag: Box::default(), raw: RawJson::blank() }
    }
}

impl Encode for Unknown {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.raw.encode(writer);
    }
}
