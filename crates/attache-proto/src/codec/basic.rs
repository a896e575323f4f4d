//! Text, numbers and lists on the wire.

use super::{Blank, Decode, Encode, read_at};
use crate::json::{DecodeError, PathSegment, Reader, Reason, Writer};

type Result<T> = std::result::Result<T, DecodeError>;

impl<T: Decode> Decode for Vec<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        read_items(reader, false)
    }

    fn decode_loosely(reader: &mut Reader<'_>) -> Result<Self> {
        read_items(reader, true)
    }
}

fn read_items<T: Decode>(reader: &mut Reader<'_>, drops_wrong: bool) -> Result<Vec<T>> {
    let mut items = Vec::new();
    read_each(reader, drops_wrong, &mut |reader| {
        items.push(T::decode(reader)?);
        Ok(())
    })?;
    reader.count_list(&items);
    Ok(items)
}

fn read_each(
    reader: &mut Reader<'_>,
    drops_wrong: bool,
    read: &mut dyn FnMut(&mut Reader<'_>) -> Result<()>,
) -> Result<()> {
    reader.begin_array()?;
    let mut first = true;
    let mut index = 0;
    while reader.next_item(&mut first)? {
        let before = reader.mark();
        match read_at(PathSegment::Item(index), reader, &mut *read) {
            Err(error) if drops_wrong => reader.forgive(before, error)?,
            result => result?,
        }
        index += 1;
    }
    Ok(())
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_array();
        for item in self {
            writer.item();
            item.encode(writer);
        }
        writer.end_array();
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<T> Blank for Vec<T> {
    fn blank() -> Self {
        Vec::new()
    }
}

/// An object with free keys, in the order of the wire.
impl<T: Decode> Decode for Vec<(String, T)> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.begin_object()?;
        let mut entries: Vec<(String, T)> = Vec::new();
        let mut first = true;
        while let Some(key) = reader.next_key(&mut first)? {
            entries.push((key.into_owned(), T::decode(reader).map_err(|error| error.in_item(entries.len()))?));
        }
        reader.count_list(&entries);
        Ok(entries)
    }
}

impl<T: Encode> Encode for Vec<(String, T)> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.begin_object();
        for (key, value) in self {
            writer.free_key(key);
            value.encode(writer);
        }
        writer.end_object();
    }

    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        T::decode(reader).map(Box::new)
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn encode(&self, writer: &mut Writer<'_>) {
        T::encode(self, writer);
    }
}

impl<T: Blank> Blank for Box<T> {
    fn blank() -> Self {
        Box::new(T::blank())
    }
}

macro_rules! blank_by_default {
    ($($type:ty),*) => {$(
        impl Blank for $type {
            #[inline]
            fn blank() -> Self {
                Self::default()
            }
        }
    )*};
}

blank_by_default!(String, bool, u16, u32, u64, i32, i64, f64);

impl Decode for String {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.string().map(std::borrow::Cow::into_owned)
    }
}

impl Encode for String {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(self);
    }
}

impl Encode for str {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.string(self);
    }
}

impl Decode for bool {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.bool()
    }
}

impl Encode for bool {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.raw(if *self { "true" } else { "false" });
    }

    fn is_blank(&self) -> bool {
        !self
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>) -> Result<Self> {
                let wrong = Reason::Expected(concat!("an integer that fits ", stringify!($type)));
                reader.number()?.parse().map_err(|_| DecodeError::new(wrong))
            }
        }

        impl Encode for $type {
            fn encode(&self, writer: &mut Writer<'_>) {
                let mut digits = [0; 20];
                writer.raw(decimal(i128::from(*self), &mut digits));
            }

            #[inline]
            fn is_blank(&self) -> bool {
                *self == 0
            }
        }
    )*};
}

integers!(u16, u32, u64, i32, i64);

/// The decimal form of a number of at most 64 bits, without an allocation.
fn decimal(number: i128, digits: &mut [u8; 20]) -> &str {
    let mut rest = number.unsigned_abs() as u64;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    std::str::from_utf8(&digits[at..]).expect("digits are ASCII")
}

impl Decode for f64 {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let number: f64 = reader.number()?.parse().map_err(|_| DecodeError::new(Reason::Expected("a number")))?;
        if number.is_finite() { Ok(number) } else { Err(DecodeError::new(Reason::Invalid("number is too large"))) }
    }
}

impl Encode for f64 {
    fn encode(&self, writer: &mut Writer<'_>) {
        if self.is_finite() {
            // Rust's debug form is the shortest that reads back equal, and keeps the `.0` that marks a float.
            writer.raw(&format!("{self:?}"));
        } else {
            writer.null();
        }
    }
}
