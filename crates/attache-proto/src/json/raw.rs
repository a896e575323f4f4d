//! Raw values: JSON that is kept as text, because what it means is not known or does not matter.

use std::fmt;

use super::{DecodeError, Reader, Writer};
use crate::Dialect;
use crate::codec::{Blank, Decode, Encode};

/// One JSON value as text: valid, on one line, and otherwise as its sender wrote it.
///
/// ```
/// use attache_proto::json::RawJson;
///
/// let input = RawJson::new(r#"{"path":"/tmp/a","deep":[1,2]}"#)?;
/// assert_eq!(input.get("path").unwrap().as_str(), r#""/tmp/a""#);
/// # Ok::<(), attache_proto::json::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Box<str>);

impl RawJson {
    /// Checks `text` and keeps it, without the white space around it.
    pub fn new(text: &str) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(text, Dialect::V1);
        let value = RawJson::decode(&mut reader)?;
        reader.end()?;
        Ok(value)
    }

    /// The JSON form of anything that serde can serialise. Needs the feature `serde`.
    ///
    /// ```
    /// use attache_proto::json::RawJson;
    ///
    /// let input = RawJson::from_value(&serde_json::json!({ "path": "/tmp/a" }))?;
    /// assert_eq!(input.as_str(), r#"{"path":"/tmp/a"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[cfg(feature = "serde")]
    pub fn from_value<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        // Serde's JSON may hold line ends, and may be nested more deeply than ours.
        RawJson::new(&serde_json::to_string(value)?).map_err(serde::ser::Error::custom)
    }

    /// The JSON form of a model type, in the newest dialect.
    pub fn from_model<T: Encode + ?Sized>(value: &T) -> Self {
        RawJson::encode_in(value, Dialect::V2)
    }

    /// The JSON form of a model type in a dialect. What the dialect does not have is left out.
    pub fn encode_in<T: Encode + ?Sized>(value: &T, dialect: Dialect) -> Self {
        let mut buffer = Vec::new();
        value.encode(&mut Writer::new(&mut buffer, dialect));
        RawJson::trusted(String::from_utf8(buffer).expect("the writer takes strings and adds ASCII"))
    }

    /// Reads the value into a model type, as the newest dialect has it.
    pub fn to_model<T: Decode>(&self) -> Result<T, DecodeError> {
        Reader::new(&self.0, Dialect::V2).decode()
    }

    fn on_one_line(text: &str) -> Self {
        // Line ends occur between tokens only; a blank means the same and keeps the value on one line.
        if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
            return RawJson(text.replace(['\n', '\r'], " ").into());
        }
        RawJson(text.into())
    }

    /// Text that is known to be JSON on one line, because we wrote it.
    pub(crate) fn trusted(text: String) -> Self {
        RawJson(text.into_boxed_str())
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        RawJson("{}".into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the value into a type of your own. Needs the feature `serde`.
    ///
    /// ```
    /// use attache_proto::json::RawJson;
    ///
    /// let input = RawJson::new(r#"{"path":"/tmp/a","deep":[1,2]}"#).unwrap();
    /// let value: serde_json::Value = input.parse().unwrap();
    /// assert_eq!(value["deep"][1], 2);
    /// ```
    #[cfg(feature = "serde")]
    pub fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The value of `key`, when this is an object that has it.
    pub fn get(&self, key: &str) -> Option<RawJson> {
        let mut reader = Reader::new(&self.0, Dialect::V1);
        reader.begin_object().ok()?;
        let mut first = true;
        while let Some(name) = reader.next_key(&mut first).ok()? {
            let value = reader.raw().ok()?;
            if name == key {
                return Some(RawJson(value.into()));
            }
        }
        None
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl Blank for RawJson {
    fn blank() -> Self {
        RawJson(Box::default())
    }
}

impl Decode for RawJson {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.raw().map(RawJson::on_one_line)
    }
}

impl Encode for RawJson {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.raw(&self.0);
    }
}

/// Raw JSON may hold anything, secrets included, so only its size is shown.
impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.0.len())
    }
}
