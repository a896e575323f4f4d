//! How model types come from and go to the wire: two traits, the field modes, and the tables that use them.
//!
//! A record is a table of rows `field: Type = Mode "key"`. The mode says what absence means, which mistakes are let pass
//! and when the field is left out; the key may differ by dialect. See `model/content.rs` for an easy example.

mod basic;
mod modes;
mod rows;
mod tables;

pub(crate) use modes::*;
pub(crate) use rows::{FieldOf, Flat, FlatOf, Name, ReadRow, Record, WriteRow, read_record, write_record};
pub(crate) use tables::*;

use crate::Dialect;
use crate::json::{DecodeError, Place, Reader, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// A value that can be read from the wire.
pub trait Decode: Sized {
    /// Reads the value that comes next.
    fn decode(reader: &mut Reader<'_>) -> Result<Self>;
}

/// A value that can be written to the wire.
pub trait Encode {
    /// Writes the value.
    fn encode(&self, writer: &mut Writer<'_>);
}

/// The name of a field in each dialect. Empty where the dialect has no such field, so that writing one is a loss; `-`
/// where it needs none, because what the field says always holds there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) v1: &'static str,
    pub(crate) v2_draft: &'static str,
    pub(crate) v2: &'static str,
    /// One more name that is understood, never written.
    pub(crate) alias: &'static str,
}

impl Key {
    pub(crate) fn name(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::V1 => self.v1,
            Dialect::V2Draft => self.v2_draft,
            Dialect::V2 => self.v2,
        }
    }

    /// A name to call the field by, whatever the dialect.
    pub(crate) fn any(&self) -> &'static str {
        [self.v2, self.v1, self.v2_draft].into_iter().find(|name| Key::is_name(name)).unwrap_or_default()
    }

    /// The name in this dialect, or where it has none, another.
    pub(crate) fn name_or_any(&self, dialect: Dialect) -> &'static str {
        let name = self.name(dialect);
        if Key::is_name(name) { name } else { self.any() }
    }

    /// Reading knows the names of all dialects: none of them means two things.
    pub(crate) fn matches(&self, name: &str) -> bool {
        (name == self.v2 || name == self.v1 || name == self.v2_draft || name == self.alias) && Key::is_name(name)
    }

    fn is_name(name: &str) -> bool {
        !matches!(name, "" | "-")
    }
}

/// Reads a value that has a place in another, and names the place in its error and in all that was let pass in it.
pub(crate) fn read_at<T>(place: Place, reader: &mut Reader<'_>, read: fn(&mut Reader<'_>) -> Result<T>) -> Result<T> {
    let noted = reader.noted();
    match read(reader) {
        Ok(value) => {
            reader.place_since(noted, place);
            Ok(value)
        }
        Err(mut error) => {
            error.put_in(place);
            reader.place_since(noted, place);
            Err(error)
        }
    }
}

/// The value of one field of the object that comes next, which stays to be read. `None` when it is not there.
pub(crate) fn peek_field<T: Decode>(reader: &mut Reader<'_>, field: &'static str) -> Result<Option<T>> {
    reader.look_ahead(|reader| {
        reader.begin_object()?;
        let mut first = true;
        while let Some(key) = reader.next_key(&mut first)? {
            if key == field {
                return T::decode(reader).map(Some).map_err(|error| error.in_field(field));
            }
            reader.skip()?;
        }
        Ok(None)
    })
}
