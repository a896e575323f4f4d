//! Reading records: one loop for all of them.

use super::row::{Name, Row};
use super::{Blank, Decode, read_at};
use crate::json::{DecodeError, Mark, PathSegment, Reader, Reason};

type Result<T> = std::result::Result<T, DecodeError>;

/// A value that is read where it is, over a blank one.
pub(crate) trait ReadInPlace {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<()>;

    /// Reads an object of which the bracket and the first member, its tag, were read already. `start` is its bracket.
    fn read_behind_tag(&mut self, start: Mark, reader: &mut Reader<'_>) -> Result<()> {
        reader.go_back(start);
        self.read(reader)
    }
}

impl<T: ReadInPlace + ?Sized> ReadInPlace for Box<T> {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        (**self).read(reader)
    }

    fn read_behind_tag(&mut self, start: Mark, reader: &mut Reader<'_>) -> Result<()> {
        (**self).read_behind_tag(start, reader)
    }
}

/// Reads in place what can only be read as a whole.
#[inline]
pub(crate) fn read_over<T: Decode>(place: &mut T, reader: &mut Reader<'_>) -> Result<()> {
    *place = T::decode(reader)?;
    Ok(())
}

/// An object whose fields are known by their numbers.
pub(crate) trait Record {
    fn rows(&self) -> &'static [Row];

    /// Reads the value of the field that has this row. On an error the field stays as it is.
    fn read_field(&mut self, index: usize, row: &Row, reader: &mut Reader<'_>) -> Result<()>;
}

/// Reads a value over a blank one.
#[inline]
pub(crate) fn decode_in_place<T: Blank + ReadInPlace>(reader: &mut Reader<'_>) -> Result<T> {
    let mut value = T::blank();
    value.read(reader)?;
    Ok(value)
}

/// Reads the object that comes next into a blank record.
pub(crate) fn read_record(record: &mut dyn Record, reader: &mut Reader<'_>) -> Result<()> {
    let rows = record.rows();
    // Many peers answer with null where there is nothing to say.
    if !rows.iter().any(|row| row.rules.required) && reader.null()? {
        return Ok(());
    }
    for (index, row) in rows.iter().enumerate() {
        if row.is_flat() {
            reader.look_ahead(|reader| record.read_field(index, row, reader))?;
        }
    }
    reader.begin_object()?;
    read_members(record, true, reader)
}

/// Reads what is left of an object whose tag was read already into a blank record.
pub(crate) fn read_record_behind_tag(record: &mut dyn Record, start: Mark, reader: &mut Reader<'_>) -> Result<()> {
    if record.rows().iter().any(Row::is_flat) {
        reader.go_back(start);
        return read_record(record, reader);
    }
    read_members(record, false, reader)
}

fn read_members(record: &mut dyn Record, mut first: bool, reader: &mut Reader<'_>) -> Result<()> {
    let rows = record.rows();
    // A bit for each row whose field is there.
    let mut found: u64 = 0;
    // A bit for each row whose field comes later under its own name. Searched for once, however often another name comes.
    let mut later: u64 = 0;
    let mut expected = 0;
    loop {
        // Peers mostly write fields in the order of the rows.
        let index = match rows.get(expected) {
            Some(Row { name: Name::Quoted(quoted), .. }) if reader.next_key_is(quoted, &mut first) => expected,
            _ => {
                let Some(name) = reader.next_key(&mut first)? else { break };
                let Some(index) = find(rows, &name, expected) else {
                    reader.skip()?;
                    continue;
                };
                let field = rows[index].name(reader.dialect());
                if name != field && ((found | later) & 1 << index != 0 || comes_later(field, reader)?) {
                    later |= 1 << index;
                    // Of two names the dialect's own wins.
                    expected = index + 1;
                    reader.skip()?;
                    continue;
                }
                index
            }
        };
        expected = index + 1;
        let row = &rows[index];
        let field = row.name(reader.dialect());
        if found & 1 << index != 0 {
            return Err(DecodeError::new(Reason::Duplicate).in_field(field));
        }
        found |= 1 << index;
        read_at(PathSegment::Field(field), reader, &mut |reader| read_value(record, index, row, reader))?;
    }
    for (index, row) in rows.iter().enumerate() {
        if found & 1 << index == 0 && !row.is_flat() && row.rules.mean_something_by_absence() {
            let field = PathSegment::Field(row.name(reader.dialect()));
            read_at(field, reader, &mut |reader| read_absent(record, index, row, reader))?;
        }
    }
    Ok(())
}

/// The row of this name. The search begins where the last one ended.
fn find(rows: &[Row], name: &str, expected: usize) -> Option<usize> {
    debug_assert!(rows.iter().filter(|row| row.is_called(name)).count() <= 1, "`{name}` names two rows");
    let (before, after) = rows.split_at(expected);
    match after.iter().position(|row| row.is_called(name)) {
        Some(index) => Some(expected + index),
        None => before.iter().position(|row| row.is_called(name)),
    }
}

/// Whether the object has a field of this name behind the value that comes next.
#[cold]
fn comes_later(field: &str, reader: &mut Reader<'_>) -> Result<bool> {
    reader.look_ahead(|reader| {
        reader.skip()?;
        while let Some(name) = reader.next_key(&mut false)? {
            if name == field {
                return Ok(true);
            }
            reader.skip()?;
        }
        Ok(false)
    })
}

fn read_value(record: &mut dyn Record, index: usize, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
    let dialect = reader.dialect();
    if !row.rules.null.has(dialect) && reader.null()? {
        return read_absent(record, index, row, reader);
    }
    let before = reader.mark();
    match record.read_field(index, row, reader) {
        Err(error) if !row.rules.strict.has(dialect) => {
            reader.forgive(before, error)?;
            read_nothing(record, index, row, reader)
        }
        result => result,
    }
}

fn read_absent(record: &mut dyn Record, index: usize, row: &Row, reader: &mut Reader<'_>) -> Result<()> {
    if row.rules.required {
        return Err(DecodeError::new(Reason::Missing));
    }
    if row.rules.expected.has(reader.dialect()) {
        reader.tolerate(DecodeError::new(Reason::Missing));
    }
    read_nothing(record, index, row, reader)
}

/// Leaves a field blank, unless that says something.
fn read_nothing(record: &mut dyn Record, index: usize, row: &Row, reader: &Reader<'_>) -> Result<()> {
    match row.rules.empty_object {
        true => record.read_field(index, row, &mut Reader::new("{}", reader.dialect())),
        false => Ok(()),
    }
}
