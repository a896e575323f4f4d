//! Records as rows without types, so that one loop reads all of them and one loop writes them.
//!
//! Code for each record would be most of this crate. Instead a row says where its field is in memory and which functions
//! read, make, write and drop a field of that type and mode; those are shared by all records that have such a field.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::{Key, Mode};
use crate::Dialect;
use crate::json::{DecodeError, Place, Reader, Reason, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// A type that is read and written by its rows. Those for reading are apart from those for writing, so that a program
/// which only does one of both is not linked with the other.
///
/// # Safety
///
/// In each list there is exactly one row for each field, with the offset, type and mode of that field.
pub(crate) unsafe trait Record: Sized {
    const READ: &'static [ReadRow];
    const WRITE: &'static [WriteRow];
}

/// What a field is called.
pub(crate) struct Name {
    /// `,"name":` when all dialects call it so; empty when it has several names, or none because it is flat.
    quoted: &'static str,
    /// Its names when they differ.
    key: Option<&'static Key>,
}

/// A field of a record that is read.
pub(crate) struct ReadRow {
    pub(crate) name: Name,
    /// How many bytes into the record it is.
    pub(crate) offset: usize,
    pub(crate) field: &'static Field,
}

/// A field of a record that is written.
pub(crate) struct WriteRow {
    pub(crate) name: Name,
    /// How many bytes into the record it is.
    pub(crate) offset: usize,
    /// Wants a field of the row's type.
    pub(crate) write: unsafe fn(*const (), &Name, &mut Writer<'_>),
}

/// How a field of some type and mode comes and goes. Each function wants a place for such a field: `read` and `absent` an
/// empty one, which is full if they succeed; `drop` a full one, which it leaves empty.
pub(crate) struct Field {
    read: unsafe fn(*mut (), &mut Reader<'_>) -> Result<()>,
    absent: unsafe fn(*mut (), &Name, &mut Reader<'_>) -> Result<()>,
    drop: unsafe fn(*mut ()),
}

/// The functions of fields of type `T` in mode `M`.
pub(crate) struct FieldOf<T, M>(PhantomData<(T, M)>);

impl<T, M: Mode<T>> FieldOf<T, M> {
    pub(crate) const FIELD: Field = Field { read: Self::read, absent: Self::absent, drop: drop_at::<T> };

    unsafe fn read(place: *mut (), reader: &mut Reader<'_>) -> Result<()> {
        let value = M::read(reader)?;
        // SAFETY: the caller has a place for a `T`.
        unsafe { place.cast::<T>().write(value) };
        Ok(())
    }

    unsafe fn absent(place: *mut (), name: &Name, reader: &mut Reader<'_>) -> Result<()> {
        let value = M::absent(name, reader)?;
        // SAFETY: the caller has a place for a `T`.
        unsafe { place.cast::<T>().write(value) };
        Ok(())
    }

    pub(crate) unsafe fn write(place: *const (), name: &Name, writer: &mut Writer<'_>) {
        // SAFETY: the caller has a `T` there.
        let value = unsafe { &*place.cast::<T>() };
        let dialect = writer.dialect();
        if !M::skips(value, dialect) && name.write(M::is_known_to(value, dialect), writer) {
            M::write(value, writer);
        }
    }
}

unsafe fn drop_at<T>(place: *mut ()) {
    // SAFETY: the caller has a `T` there, and does not use it again.
    unsafe { place.cast::<T>().drop_in_place() };
}

/// A field without a key, whose own fields stand in the same object.
pub(crate) trait Flat: super::Decode {
    fn write_flat(&self, writer: &mut Writer<'_>);
}

/// The functions of flat fields of type `T`.
pub(crate) struct FlatOf<T>(PhantomData<T>);

impl<T: Flat> FlatOf<T> {
    pub(crate) const FIELD: Field = Field { read: Self::read, absent: Self::absent, drop: drop_at::<T> };

    unsafe fn read(place: *mut (), reader: &mut Reader<'_>) -> Result<()> {
        let value = reader.look_ahead(T::decode)?;
        // SAFETY: the caller has a place for a `T`.
        unsafe { place.cast::<T>().write(value) };
        Ok(())
    }

    /// Never called, because flat fields are read first.
    unsafe fn absent(_: *mut (), _: &Name, _: &mut Reader<'_>) -> Result<()> {
        Err(DecodeError::new(Reason::Missing))
    }

    pub(crate) unsafe fn write(place: *const (), _: &Name, writer: &mut Writer<'_>) {
        // SAFETY: the caller has a `T` there.
        unsafe { &*place.cast::<T>() }.write_flat(writer);
    }
}

impl Name {
    /// No name at all.
    pub(crate) const FLAT: Name = Name { quoted: "", key: None };

    /// The same name in all dialects, given as `,"name":`.
    pub(crate) const fn quoted(quoted: &'static str) -> Self {
        Name { quoted, key: None }
    }

    /// A name that differs by dialect.
    pub(crate) const fn keyed(key: &'static Key) -> Self {
        Name { quoted: "", key: Some(key) }
    }

    /// The name in this dialect, or where it has none, another.
    pub(crate) fn text(&self, dialect: Dialect) -> &'static str {
        match self.key {
            Some(key) => key.name_or_any(dialect),
            None => self.only_text(),
        }
    }

    fn only_text(&self) -> &'static str {
        self.quoted.get(2..self.quoted.len().wrapping_sub(2)).unwrap_or_default()
    }

    fn is_flat(&self) -> bool {
        self.quoted.is_empty() && self.key.is_none()
    }

    /// Whether a name in an object is this one.
    fn is(&self, name: &str) -> bool {
        match self.key {
            Some(key) => key.matches(name),
            None => name.len() + 4 == self.quoted.len() && self.quoted.as_bytes()[2..].starts_with(name.as_bytes()),
        }
    }

    /// Writes the key and says whether the value has to follow. Notes what the dialect has no word for.
    #[inline(never)]
    fn write(&self, is_known: bool, writer: &mut Writer<'_>) -> bool {
        match self.key {
            None if is_known => {
                writer.quoted_key(self.quoted);
                true
            }
            None => {
                writer.lose(self.only_text());
                false
            }
            Some(key) => match key.name(writer.dialect()) {
                name if name.is_empty() || !is_known => {
                    writer.lose(key.any());
                    false
                }
                "-" => false,
                name => {
                    writer.key(name);
                    true
                }
            },
        }
    }
}

/// Reads a record from the object that comes next.
pub(crate) fn read_record<T: Record>(reader: &mut Reader<'_>) -> Result<T> {
    const { assert!(T::READ.len() <= u64::BITS as usize, "a record has too many rows to be counted in bits") };
    let mut record = MaybeUninit::<T>::uninit();
    // SAFETY: the rows are those of `T`; when all of them have been read, all fields are there.
    unsafe {
        read_rows(T::READ, record.as_mut_ptr().cast(), reader)?;
        Ok(record.assume_init())
    }
}

/// Writes the fields of a record into an object that is open already.
pub(crate) fn write_record<T: Record>(record: &T, writer: &mut Writer<'_>) {
    // SAFETY: the rows are those of `T`.
    unsafe { write_rows(T::WRITE, (&raw const *record).cast(), writer) };
}

/// # Safety
///
/// `record` is a record with these rows.
unsafe fn write_rows(rows: &'static [WriteRow], record: *const (), writer: &mut Writer<'_>) {
    for row in rows {
        // SAFETY: the row says where its field is.
        unsafe { (row.write)(record.byte_add(row.offset), &row.name, writer) };
    }
}

/// Fills all fields of a record, or none.
///
/// # Safety
///
/// `record` is a place for a record with these rows.
unsafe fn read_rows(rows: &'static [ReadRow], record: *mut (), reader: &mut Reader<'_>) -> Result<()> {
    let mut filling = Filling { rows, record, full: 0, own: 0 };
    filling.read(reader)?;
    std::mem::forget(filling);
    Ok(())
}

/// A record that is being read. Drops what it has so far when it is not finished.
struct Filling {
    rows: &'static [ReadRow],
    record: *mut (),
    /// A bit for each row whose field is there.
    full: u64,
    /// A bit for each row whose field came under the name that this dialect uses.
    own: u64,
}

impl Filling {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        for (index, row) in self.rows.iter().enumerate() {
            if row.name.is_flat() {
                self.fill(index, reader)?;
            }
        }
        reader.begin_object()?;
        let mut first = true;
        let mut expected = 0;
        while let Some(name) = reader.next_key(&mut first)? {
            match self.find(&name, expected) {
                Some(index) => {
                    self.take(index, &name, reader)?;
                    expected = index + 1;
                }
                None => reader.skip()?,
            }
        }
        for (index, row) in self.rows.iter().enumerate() {
            if self.full & 1 << index == 0 {
                // SAFETY: the place of the row is empty.
                unsafe { (row.field.absent)(self.place(row), &row.name, reader)? };
                self.full |= 1 << index;
            }
        }
        Ok(())
    }

    /// The row of this name. Peers mostly write fields in the order of the rows, so the search begins where it ended.
    fn find(&self, name: &str, expected: usize) -> Option<usize> {
        debug_assert!(self.rows.iter().filter(|row| row.name.is(name)).count() <= 1, "`{name}` names two rows");
        let (before, after) = self.rows.split_at(expected);
        match after.iter().position(|row| row.name.is(name)) {
            Some(index) => Some(expected + index),
            None => before.iter().position(|row| row.name.is(name)),
        }
    }

    /// Reads a field. The same name twice is an error; of two names the dialect's own wins.
    fn take(&mut self, index: usize, name: &str, reader: &mut Reader<'_>) -> Result<()> {
        let row = &self.rows[index];
        let bit = 1 << index;
        let field = row.name.text(reader.dialect());
        let is_own = row.name.key.is_none() || name == field;
        if self.full & bit != 0 {
            if !is_own {
                return reader.skip();
            }
            if self.own & bit != 0 {
                return Err(DecodeError::new(Reason::Duplicate).in_field(field));
            }
            self.full &= !bit;
            // SAFETY: the place of the row is full, and counts as empty from here on.
            unsafe { (row.field.drop)(self.place(row)) };
        }
        if is_own {
            self.own |= bit;
        }
        let noted = reader.noted();
        let result = self.fill(index, reader);
        let place = Place::Field(field);
        reader.place_since(noted, place);
        result.map_err(|mut error| {
            error.put_in(place);
            error
        })
    }

    fn fill(&mut self, index: usize, reader: &mut Reader<'_>) -> Result<()> {
        let row = &self.rows[index];
        // SAFETY: the place of the row is empty.
        unsafe { (row.field.read)(self.place(row), reader)? };
        self.full |= 1 << index;
        Ok(())
    }

    fn place(&self, row: &ReadRow) -> *mut () {
        // SAFETY: the row says where in the record its field is.
        unsafe { self.record.byte_add(row.offset) }
    }
}

impl Drop for Filling {
    #[cold]
    fn drop(&mut self) {
        for (index, row) in self.rows.iter().enumerate() {
            if self.full & 1 << index != 0 {
                // SAFETY: the place of the row is full, and nobody uses it any more.
                unsafe { (row.field.drop)(self.place(row)) };
            }
        }
    }
}
