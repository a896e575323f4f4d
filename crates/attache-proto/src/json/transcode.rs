//! Between serde's world and JSON text: how raw values, and through them all model types, take part in serde.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::{Kind, RawJson, Reader, Writer};
use crate::Dialect;

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part(self.as_str()).serialize(serializer)
    }
}

/// A piece of JSON text on its way into a serialiser.
struct Part<'a>(&'a str);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reader = Reader::new(self.0, Dialect::V2);
        match reader.peek().map_err(S::Error::custom)? {
            Kind::Null => serializer.serialize_unit(),
            Kind::Bool => serializer.serialize_bool(reader.bool().map_err(S::Error::custom)?),
            Kind::String => serializer.serialize_str(&reader.string().map_err(S::Error::custom)?),
            Kind::Number => {
                let number = reader.number().map_err(S::Error::custom)?;
                if let Ok(number) = number.parse::<i64>() {
                    serializer.serialize_i64(number)
                } else if let Ok(number) = number.parse::<u64>() {
                    serializer.serialize_u64(number)
                } else {
                    serializer.serialize_f64(number.parse().map_err(S::Error::custom)?)
                }
            }
            Kind::Array => {
                let mut items = serializer.serialize_seq(None)?;
                reader.begin_array().map_err(S::Error::custom)?;
                let mut first = true;
                while reader.next_item(&mut first).map_err(S::Error::custom)? {
                    items.serialize_element(&Part(reader.raw().map_err(S::Error::custom)?))?;
                }
                items.end()
            }
            Kind::Object => {
                let mut members = serializer.serialize_map(None)?;
                reader.begin_object().map_err(S::Error::custom)?;
                let mut first = true;
                while let Some(key) = reader.next_key(&mut first).map_err(S::Error::custom)? {
                    members.serialize_entry(&key, &Part(reader.raw().map_err(S::Error::custom)?))?;
                }
                members.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut buffer = Vec::new();
        deserializer.deserialize_any(ToText(&mut Writer::new(&mut buffer, Dialect::V2)))?;
        let text = String::from_utf8(buffer).map_err(de::Error::custom)?;
        RawJson::new(&text).map_err(de::Error::custom)
    }
}

/// Writes whatever a deserialiser offers as JSON text.
struct ToText<'w, 'b>(&'w mut Writer<'b>);

impl<'de> de::DeserializeSeed<'de> for ToText<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ToText<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.null();
        Ok(())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.0.value(&value);
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.0.value(&value);
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.0.value(&value);
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.0.value(&value);
        Ok(())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.0.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.begin_array();
        while items.next_element_seed(Item(self.0))?.is_some() {}
        self.0.end_array();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.begin_object();
        while let Some(key) = members.next_key::<String>()? {
            self.0.free_key(&key);
            members.next_value_seed(ToText(self.0))?;
        }
        self.0.end_object();
        Ok(())
    }
}

/// One array item: called only when there is one.
struct Item<'w, 'b>(&'w mut Writer<'b>);

impl<'de> de::DeserializeSeed<'de> for Item<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.item();
        deserializer.deserialize_any(ToText(self.0))
    }
}
