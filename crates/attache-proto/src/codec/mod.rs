//! How model types come from and go to the wire: two traits, and the tables that types are written as.
//!
//! A record is a table of rows `field: Type = "key" words`. The words say which mistakes are ignored and when the field
//! is left out ([`Rules`]); the key may differ by dialect. See `model/content.rs` for an easy example.

mod basic;
mod field;
mod into_field;
mod record;
mod row;
mod tables;

pub(crate) use field::{Field, OrBool, OrNull, OrObject};
pub use into_field::IntoField;
pub(crate) use into_field::into_field;
pub(crate) use record::{ReadInPlace, Record, decode_in_place, read_over, read_record, read_record_behind_tag};
pub(crate) use row::{Dialects, Key, Name, Row, Rules, Variant};
pub(crate) use tables::*;

use crate::json::{DecodeError, PathSegment, Reader, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// A value that can be read from the wire.
pub trait Decode: Sized {
    /// Reads the value that comes next.
    fn decode(reader: &mut Reader<'_>) -> Result<Self>;

    /// The same, but wrong items of a list are dropped and noted.
    #[doc(hidden)]
    #[inline]
    fn decode_loosely(reader: &mut Reader<'_>) -> Result<Self> {
        Self::decode(reader)
    }
}

/// A value that can be written to the wire.
pub trait Encode {
    /// Writes the value.
    fn encode(&self, writer: &mut Writer<'_>);

    /// Whether the value says no more than its absence.
    #[doc(hidden)]
    #[inline]
    fn is_blank(&self) -> bool {
        false
    }
}

/// A value to begin with: it means nothing, owns nothing, and is overwritten by what is read.
pub(crate) trait Blank {
    fn blank() -> Self;
}

/// Reads a value inside another, and adds `segment` to the paths of its error and of all errors in it that were ignored.
fn read_at(
    segment: PathSegment,
    reader: &mut Reader<'_>,
    read: &mut dyn FnMut(&mut Reader<'_>) -> Result<()>,
) -> Result<()> {
    let count = reader.tolerated_count();
    let result = read(reader);
    reader.prepend_to_tolerated(count, segment);
    result.map_err(|mut error| {
        error.prepend(segment);
        error
    })
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
