//! How model types come from and go to the wire: two traits, the field modes, and the tables that use them.
//!
//! A record is a table of rows `field: Type, mode "key"`. The mode says what absence means, which mistakes are let pass
//! and when the field is left out; the key may differ by dialect. See `model/content.rs` for an easy example.

use crate::Dialect;
use crate::json::{DecodeError, Reader, Reason, Writer};
use crate::model::Patch;

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

/// The name of a field in each dialect; empty where the dialect has no such field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) v1: &'static str,
    pub(crate) v2_draft: &'static str,
    pub(crate) v2: &'static str,
    /// One more name that is understood, never written.
    pub(crate) alias: &'static str,
}

impl Key {
    pub(crate) const fn same(name: &'static str) -> Self {
        Key { v1: name, v2_draft: name, v2: name, alias: name }
    }

    pub(crate) fn name(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::V1 => self.v1,
            Dialect::V2Draft => self.v2_draft,
            Dialect::V2 => self.v2,
        }
    }

    /// A name to call the field by, whatever the dialect.
    pub(crate) fn any(&self) -> &'static str {
        if !self.v2.is_empty() {
            self.v2
        } else if !self.v1.is_empty() {
            self.v1
        } else {
            self.v2_draft
        }
    }

    /// The name in this dialect, or where it has none, another.
    pub(crate) fn name_or_any(&self, dialect: Dialect) -> &'static str {
        let name = self.name(dialect);
        if name.is_empty() { self.any() } else { name }
    }

    /// Reading knows the names of all dialects: none of them means two things.
    pub(crate) fn matches(&self, name: &str) -> bool {
        (name == self.v2 || name == self.v1 || name == self.v2_draft || name == self.alias) && !name.is_empty()
    }
}

/// What a field does when it is absent, wrong or empty.
pub(crate) trait Mode<T> {
    fn absent(key: &Key, dialect: Dialect) -> Result<T>;
    fn read(reader: &mut Reader<'_>) -> Result<T>;
    /// Whether the field is left out.
    fn skips(value: &T, dialect: Dialect) -> bool;
    fn write(value: &T, writer: &mut Writer<'_>);
}

/// Writes one field of an object, or notes that the dialect has no word for it.
pub(crate) fn write_field<T, M: Mode<T>>(key: &Key, value: &T, writer: &mut Writer<'_>) {
    let dialect = writer.dialect();
    if M::skips(value, dialect) {
        return;
    }
    let name = key.name(dialect);
    if name.is_empty() {
        writer.lose(key.any());
        return;
    }
    writer.key(name);
    M::write(value, writer);
}

/// Must be there and right, in every dialect that has the field.
pub(crate) struct Required;

impl<T: Decode + Encode> Mode<T> for Required {
    fn absent(key: &Key, dialect: Dialect) -> Result<T> {
        Err(DecodeError::new(Reason::Missing).in_field(key.name_or_any(dialect)))
    }

    fn read(reader: &mut Reader<'_>) -> Result<T> {
        T::decode(reader)
    }

    fn skips(_: &T, _: Dialect) -> bool {
        false
    }

    fn write(value: &T, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// May be absent or null; when it is there it must be right.
pub(crate) struct Optional;

impl<T: Decode + Encode> Mode<Option<T>> for Optional {
    fn absent(_: &Key, _: Dialect) -> Result<Option<T>> {
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<T>> {
        if reader.null()? { Ok(None) } else { T::decode(reader).map(Some) }
    }

    fn skips(value: &Option<T>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<T>, writer: &mut Writer<'_>) {
        if let Some(value) = value {
            value.encode(writer);
        }
    }
}

/// May be absent, null or wrong: something wrong counts as absent and is noted.
pub(crate) struct Lenient;

impl<T: Decode + Encode> Mode<Option<T>> for Lenient {
    fn absent(_: &Key, _: Dialect) -> Result<Option<T>> {
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<T>> {
        lenient(reader, <Optional as Mode<Option<T>>>::read)
    }

    fn skips(value: &Option<T>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<T>, writer: &mut Writer<'_>) {
        <Optional as Mode<Option<T>>>::write(value, writer);
    }
}

/// Absent, null or wrong counts as the default; the default is left out.
pub(crate) struct Defaulted;

impl<T: Decode + Encode + Default + PartialEq> Mode<T> for Defaulted {
    fn absent(_: &Key, _: Dialect) -> Result<T> {
        Ok(T::default())
    }

    fn read(reader: &mut Reader<'_>) -> Result<T> {
        if reader.null()? {
            return Ok(T::default());
        }
        lenient(reader, T::decode)
    }

    fn skips(value: &T, _: Dialect) -> bool {
        *value == T::default()
    }

    fn write(value: &T, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// A list that may be absent or null, which is not the same as empty; wrong items are dropped and noted.
pub(crate) struct LenientList;

impl<T: Decode + Encode> Mode<Option<Vec<T>>> for LenientList {
    fn absent(_: &Key, _: Dialect) -> Result<Option<Vec<T>>> {
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Vec<T>>> {
        if reader.null()? {
            return Ok(None);
        }
        lenient(reader, |reader| good_items(reader).map(Some))
    }

    fn skips(value: &Option<Vec<T>>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<Vec<T>>, writer: &mut Writer<'_>) {
        <Optional as Mode<Option<Vec<T>>>>::write(value, writer);
    }
}

/// A list: absent or null means empty, a wrong item is dropped and noted, an empty list is left out.
pub(crate) struct List;

impl<T: Decode + Encode> Mode<Vec<T>> for List {
    fn absent(_: &Key, _: Dialect) -> Result<Vec<T>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        if reader.null()? {
            return Ok(Vec::new());
        }
        lenient(reader, good_items)
    }

    fn skips(value: &Vec<T>, _: Dialect) -> bool {
        value.is_empty()
    }

    fn write(value: &Vec<T>, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// A list that must be there and is written even when empty; wrong items are dropped and noted.
pub(crate) struct RequiredList;

impl<T: Decode + Encode> Mode<Vec<T>> for RequiredList {
    fn absent(key: &Key, dialect: Dialect) -> Result<Vec<T>> {
        <Required as Mode<Vec<T>>>::absent(key, dialect)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        good_items(reader)
    }

    fn skips(_: &Vec<T>, _: Dialect) -> bool {
        false
    }

    fn write(value: &Vec<T>, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// A list that may be absent or null, which means empty; every item must be right. Left out when empty.
pub(crate) struct StrictList;

impl<T: Decode + Encode> Mode<Vec<T>> for StrictList {
    fn absent(_: &Key, _: Dialect) -> Result<Vec<T>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        if reader.null()? { Ok(Vec::new()) } else { Vec::decode(reader) }
    }

    fn skips(value: &Vec<T>, _: Dialect) -> bool {
        value.is_empty()
    }

    fn write(value: &Vec<T>, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// As [`StrictList`], but v1 requires it, so there it is written even when empty. Reading forgives its absence.
pub(crate) struct V1List;

impl<T: Decode + Encode> Mode<Vec<T>> for V1List {
    fn absent(_: &Key, _: Dialect) -> Result<Vec<T>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        <StrictList as Mode<Vec<T>>>::read(reader)
    }

    fn skips(value: &Vec<T>, dialect: Dialect) -> bool {
        value.is_empty() && dialect == Dialect::V2
    }

    fn write(value: &Vec<T>, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// A field of an upsert: absent keeps, null clears, a value sets. In v1 null keeps as well. Something wrong keeps.
pub(crate) struct Upsert;

impl<T: Decode + Encode> Mode<Patch<T>> for Upsert {
    fn absent(_: &Key, _: Dialect) -> Result<Patch<T>> {
        Ok(Patch::Keep)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Patch<T>> {
        if reader.null()? {
            return Ok(if reader.dialect() == Dialect::V1 { Patch::Keep } else { Patch::Clear });
        }
        lenient(reader, |reader| T::decode(reader).map(Patch::Set))
    }

    fn skips(value: &Patch<T>, _: Dialect) -> bool {
        matches!(value, Patch::Keep)
    }

    fn write(value: &Patch<T>, writer: &mut Writer<'_>) {
        match value {
            Patch::Keep | Patch::Clear => writer.null(),
            Patch::Set(value) => value.encode(writer),
        }
    }
}

/// As [`Upsert`], but null clears in v1 too.
pub(crate) struct ClearableUpsert;

impl<T: Decode + Encode> Mode<Patch<T>> for ClearableUpsert {
    fn absent(_: &Key, _: Dialect) -> Result<Patch<T>> {
        Ok(Patch::Keep)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Patch<T>> {
        if reader.null()? {
            return Ok(Patch::Clear);
        }
        lenient(reader, |reader| T::decode(reader).map(Patch::Set))
    }

    fn skips(value: &Patch<T>, _: Dialect) -> bool {
        matches!(value, Patch::Keep)
    }

    fn write(value: &Patch<T>, writer: &mut Writer<'_>) {
        <Upsert as Mode<Patch<T>>>::write(value, writer);
    }
}

/// As [`Upsert`] for a list: wrong items are dropped, and clearing is written as `[]`, which every dialect reads.
pub(crate) struct UpsertList;

impl<T: Decode + Encode> Mode<Patch<Vec<T>>> for UpsertList {
    fn absent(_: &Key, _: Dialect) -> Result<Patch<Vec<T>>> {
        Ok(Patch::Keep)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Patch<Vec<T>>> {
        if reader.null()? {
            return Ok(if reader.dialect() == Dialect::V1 { Patch::Keep } else { Patch::Clear });
        }
        lenient(reader, |reader| good_items(reader).map(Patch::Set))
    }

    fn skips(value: &Patch<Vec<T>>, _: Dialect) -> bool {
        matches!(value, Patch::Keep)
    }

    fn write(value: &Patch<Vec<T>>, writer: &mut Writer<'_>) {
        match value {
            Patch::Clear if writer.dialect() != Dialect::V1 => writer.null(),
            Patch::Keep | Patch::Clear => writer.raw("[]"),
            Patch::Set(items) => items.encode(writer),
        }
    }
}

fn lenient<T: Default>(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Result<T>) -> Result<T> {
    Ok(match reader.attempt(read)? {
        Ok(value) => value,
        Err(error) => {
            reader.tolerate(error);
            T::default()
        }
    })
}

fn good_items<T: Decode>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    reader.begin_array()?;
    let mut items = Vec::new();
    let mut first = true;
    let mut index = 0;
    while reader.next_item(&mut first)? {
        match reader.attempt(T::decode)? {
            Ok(item) => items.push(item),
            Err(error) => reader.tolerate(error.in_item(index)),
        }
        index += 1;
    }
    Ok(items)
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        reader.begin_array()?;
        let mut items = Vec::new();
        let mut first = true;
        while reader.next_item(&mut first)? {
            items.push(T::decode(reader).map_err(|error| error.in_item(items.len()))?);
        }
        Ok(items)
    }
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

/// Makes the JSON form of the newest dialect the serde form of a type.
macro_rules! serde_through_json {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&crate::json::RawJson::from_model(self), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let raw = <crate::json::RawJson as serde::Deserialize>::deserialize(deserializer)?;
                raw.to_model().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A key: one name for all dialects, or one for each that has the field, and a further one that is understood.
macro_rules! key {
    ($name:literal) => {
        crate::codec::Key::same($name)
    };
    ([$v1:literal, $v2_draft:literal, $v2:literal]) => {
        crate::codec::Key { v1: $v1, v2_draft: $v2_draft, v2: $v2, alias: "" }
    };
    ([$v1:literal, $v2_draft:literal, $v2:literal or $alias:literal]) => {
        crate::codec::Key { v1: $v1, v2_draft: $v2_draft, v2: $v2, alias: $alias }
    };
}

/// The `_meta` field: replaced as a whole, or in an upsert merged key by key.
macro_rules! meta {
    (type) => { Option<crate::model::Meta> };
    (type upsert) => { crate::model::Patch<crate::model::Meta> };
    (mode) => { crate::codec::Lenient };
    (mode upsert) => { crate::codec::ClearableUpsert };
}

/// Types that are JSON objects: rows `field: Type = "key"` that must be there, and rows `field: Type = Mode "key"`.
/// The key is one name, or `["v1", "draft", "v2"]`.
///
/// Every record also has `meta`, the `_meta` object; a record marked `upsert` patches it. `new` takes the required rows.
macro_rules! record {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident $($upsert:ident)? {
            $(required { $( $(#[$required_doc:meta])* $required:ident: $required_type:ty = $required_key:tt, )* })?
            $(optional { $( $(#[$field_doc:meta])* $field:ident: $field_type:ty = $mode:ident $key:tt, )* })?
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($( $(#[$required_doc])* pub $required: $required_type, )*)?
            $($( $(#[$field_doc])* pub $field: $field_type, )*)?
            /// Free data of the implementations, kept as it came.
            pub meta: crate::codec::meta!(type $($upsert)?),
        }

        impl $name {
            /// The required parts; everything else is absent.
            #[allow(clippy::new_without_default, clippy::too_many_arguments)]
            pub fn new($($($required: impl Into<$required_type>),*)?) -> Self {
                $name {
                    $($( $required: $required.into(), )*)?
                    $($( $field: Default::default(), )*)?
                    meta: Default::default(),
                }
            }

            /// Writes the fields into an object that is open already.
            pub(crate) fn encode_fields(&self, writer: &mut crate::json::Writer<'_>) {
                $($( crate::codec::write_field::<$required_type, crate::codec::Required>(
                    &const { crate::codec::key!($required_key) }, &self.$required, writer); )*)?
                $($( crate::codec::write_field::<$field_type, crate::codec::$mode>(
                    &const { crate::codec::key!($key) }, &self.$field, writer); )*)?
                crate::codec::write_field::<_, crate::codec::meta!(mode $($upsert)?)>(
                    &const { crate::codec::Key::same("_meta") }, &self.meta, writer);
            }
        }

        impl crate::codec::Decode for $name {
            #[allow(unused_mut, unused_variables)]
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                use crate::codec::{Mode, fill};
                let dialect = reader.dialect();
                $($( let mut $required: Option<$required_type> = None; )*)?
                $($( let mut $field: Option<$field_type> = None; )*)?
                let mut meta: Option<crate::codec::meta!(type $($upsert)?)> = None;
                reader.begin_object()?;
                let mut first = true;
                while let Some(name) = reader.next_key(&mut first)? {
                    $($( if const { crate::codec::key!($required_key) }.matches(&name) {
                        let name = const { crate::codec::key!($required_key) }.name_or_any(dialect);
                        fill(&mut $required, name, reader, <crate::codec::Required as Mode<$required_type>>::read)?;
                        continue;
                    } )*)?
                    $($( if const { crate::codec::key!($key) }.matches(&name) {
                        let name = const { crate::codec::key!($key) }.name_or_any(dialect);
                        fill(&mut $field, name, reader, <crate::codec::$mode as Mode<$field_type>>::read)?;
                        continue;
                    } )*)?
                    if name == "_meta" {
                        fill(&mut meta, "_meta", reader, <crate::codec::meta!(mode $($upsert)?) as Mode<_>>::read)?;
                        continue;
                    }
                    reader.skip()?;
                }
                Ok($name {
                    $($( $required: match $required {
                        Some(value) => value,
                        None => <crate::codec::Required as Mode<$required_type>>::absent(
                            &const { crate::codec::key!($required_key) }, dialect)?,
                    }, )*)?
                    $($( $field: match $field {
                        Some(value) => value,
                        None => <crate::codec::$mode as Mode<$field_type>>::absent(
                            &const { crate::codec::key!($key) }, dialect)?,
                    }, )*)?
                    meta: meta.unwrap_or_default(),
                })
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                writer.begin_object();
                self.encode_fields(writer);
                writer.end_object();
            }
        }

        crate::codec::serde_through_json!($name);
    )*};
}

/// Reads a field into its place; a place that is taken already is an error.
pub(crate) fn fill<T>(
    place: &mut Option<T>,
    name: &'static str,
    reader: &mut Reader<'_>,
    read: fn(&mut Reader<'_>) -> Result<T>,
) -> Result<()> {
    if place.is_some() {
        return Err(DecodeError::new(Reason::Duplicate).in_field(name));
    }
    *place = Some(read(reader).map_err(|error| error.in_field(name))?);
    Ok(())
}

/// Tagged unions: rows `Variant(Record) = "tag"`. What carries another tag is kept whole as `Other`.
///
/// `tag "type"` names the key of the tag. `else Variant in [dialects]` names the variant of an object without a tag, and
/// the dialects that write it without.
macro_rules! union {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident tag $tag:literal $(else $untagged:ident in [$($bare:ident),+])? {
            $( $(#[$doc:meta])* $variant:ident($type:ty) = $value:literal, )*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant($type), )*
            /// A variant that we do not know, kept as it came. Custom ones begin with `_`.
            Other(crate::model::Unknown),
        }

        impl $name {
            /// The tag that names the variant on the wire.
            pub fn tag(&self) -> &str {
                match self {
                    $( $name::$variant(_) => $value, )*
                    $name::Other(unknown) => unknown.tag(),
                }
            }
        }

        impl crate::codec::Decode for $name {
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                let tag = reader.peek_tag($tag)?;
                match tag.as_deref() {
                    $( Some($value) => <$type as crate::codec::Decode>::decode(reader).map($name::$variant), )*
                    Some(tag) => crate::model::Unknown::decode_with(tag, reader).map($name::Other),
                    $( None => crate::codec::Decode::decode(reader).map($name::$untagged), )?
                    #[allow(unreachable_patterns)]
                    None => Err(crate::json::DecodeError::new(crate::json::Reason::Missing).in_field($tag)),
                }
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                match self {
                    $( $name::$untagged(value) if matches!(writer.dialect(), $(crate::Dialect::$bare)|+) => {
                        crate::codec::Encode::encode(value, writer);
                    } )?
                    $( $name::$variant(value) => {
                        writer.begin_object();
                        writer.key($tag);
                        writer.string($value);
                        value.encode_fields(writer);
                        writer.end_object();
                    } )*
                    $name::Other(unknown) => crate::codec::Encode::encode(unknown, writer),
                }
            }
        }

        $( impl From<$type> for $name {
            fn from(value: $type) -> Self {
                $name::$variant(value)
            }
        } )*

        crate::codec::serde_through_json!($name);
    )*};
}

/// Open sets of names: rows `Variant = "name"`. A name that we do not know is kept as `Other`.
macro_rules! string_enum {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident { $( $(#[$doc:meta])* $variant:ident = $value:literal, )* }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant, )*
            /// A name that we do not know, kept as it came. Custom ones begin with `_`.
            Other(Box<str>),
        }

        impl $name {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( $name::$variant => $value, )*
                    $name::Other(name) => name,
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                match name {
                    $( $value => $name::$variant, )*
                    _ => $name::Other(name.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl crate::codec::Decode for $name {
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                reader.string().map(|name| $name::from(&*name))
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                writer.string(self.as_str());
            }
        }

        crate::codec::serde_through_json!($name);
    )*};
}

/// Ids: text that means something to its owner only. Cheap to clone.
macro_rules! ids {
    ($( $(#[$attribute:meta])* pub struct $name:ident; )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The id of this text.
            pub fn new(text: impl Into<std::sync::Arc<str>>) -> Self {
                $name(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $name(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                $name(text.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl crate::codec::Decode for $name {
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                reader.string().map(|text| $name(text.into()))
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                writer.string(&self.0);
            }
        }

        crate::codec::serde_through_json!($name);
    )*};
}

pub(crate) use {ids, key, meta, record, serde_through_json, string_enum, union};
