//! Fields of a record: values, values that may be absent, patches of values.

use super::row::{Dialects, Row};
use super::{Decode, Encode};
use crate::Dialect;
use crate::json::{DecodeError, Kind, Reader, Writer};
use crate::model::capability::Capability;
use crate::model::mcp::EnvVariable;
use crate::model::{Patch, Secret};

type Result<T> = std::result::Result<T, DecodeError>;

/// A field of a record. `Form` is how it stands on the wire, where that is not simply its value.
pub(crate) trait Field<Form = Plain> {
    /// Where null is a value of the field.
    const NULL: Dialects = Dialects::NONE;

    /// Reads the value that comes next. On an error the field stays as it is.
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()>;

    /// Writes the name and the value, unless it can be left out.
    fn write(&self, row: &Row, writer: &mut Writer<'_>);

    /// Whether the field says no more than its absence.
    fn is_blank(&self) -> bool;
}

/// The value as it is.
pub(crate) struct Plain;

/// A capability that is `true` in v1 and an object since. Either is read; everything else is not offered.
pub(crate) struct OrBool;

/// A text, or null where there is none: it is always written.
pub(crate) struct OrNull;

/// Environment variables: an object in v1, a list of pairs since.
pub(crate) struct OrObject;

impl<T: Decode + Encode> Field for T {
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        *self = decode(row, reader)?;
        Ok(())
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        if row.begin(self.is_blank(), writer) {
            self.encode(writer);
        }
    }

    #[inline]
    fn is_blank(&self) -> bool {
        Encode::is_blank(self)
    }
}

impl<T: Decode + Encode> Field for Option<T> {
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        *self = Some(decode(row, reader)?);
        Ok(())
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        if let Some(value) = self
            && row.begin(false, writer)
        {
            value.encode(writer);
        }
    }

    #[inline]
    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

/// Absent keeps, null clears, a value sets. In v1 null keeps as well, unless the row says otherwise.
impl<T: Decode + Encode> Field for Patch<T> {
    const NULL: Dialects = Dialects::of(&[Dialect::V2Draft, Dialect::V2]);

    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        *self = if reader.null()? { Patch::Clear } else { Patch::Set(decode(row, reader)?) };
        Ok(())
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        match self {
            Patch::Keep => {}
            Patch::Clear => row.clear(writer),
            Patch::Set(value) => {
                if row.begin(false, writer) {
                    value.encode(writer);
                }
            }
        }
    }

    #[inline]
    fn is_blank(&self) -> bool {
        self.is_keep()
    }
}

impl Field<OrBool> for Option<Capability> {
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        if reader.peek()? != Kind::Bool {
            return Field::<Plain>::read(self, row, reader);
        }
        *self = reader.bool()?.then(Capability::new);
        Ok(())
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        let Some(capability) = self else {
            if writer.dialect() == Dialect::V1 && row.begin(true, writer) {
                writer.raw("false");
            }
            return;
        };
        if writer.dialect() != Dialect::V1 {
            return Field::<Plain>::write(self, row, writer);
        }
        if row.begin(false, writer) {
            if capability.meta.is_some() {
                writer.lose("_meta");
            }
            writer.raw("true");
        }
    }

    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl Field<OrNull> for Option<String> {
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        Field::<Plain>::read(self, row, reader)
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        if self.is_none() && row.begin(false, writer) {
            return writer.raw("null");
        }
        Field::<Plain>::write(self, row, writer);
    }

    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl Field<OrObject> for Vec<EnvVariable> {
    fn read(&mut self, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
        if reader.peek()? != Kind::Object {
            return Field::<Plain>::read(self, row, reader);
        }
        let entries = Vec::<(String, Secret)>::decode(reader)?;
        *self = entries.into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect();
        Ok(())
    }

    fn write(&self, row: &Row, writer: &mut Writer<'_>) {
        if writer.dialect() != Dialect::V1 {
            return Field::<Plain>::write(self, row, writer);
        }
        if row.begin(self.is_empty(), writer) {
            if self.iter().any(|variable| variable.meta.is_some()) {
                writer.lose("_meta");
            }
            writer.begin_object();
            for variable in self {
                writer.free_key(&variable.name);
                variable.value.encode(writer);
            }
            writer.end_object();
        }
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

#[inline]
fn decode<T: Decode>(row: &Row, reader: &mut Reader<'_>) -> Result<T> {
    if row.rules.list { T::decode_loosely(reader) } else { T::decode(reader) }
}
