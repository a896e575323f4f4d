//! The tables that types are written as: records, unions, sets of names, ids.

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

/// The name of a row: one for all dialects, or one for each that has the field, and a further one that is understood.
macro_rules! name {
    ($name:literal) => {
        crate::codec::Name::quoted(concat!(",\"", $name, "\":"))
    };
    ([$v1:literal, $v2_draft:literal, $v2:literal]) => {
        crate::codec::name!([$v1, $v2_draft, $v2 or ""])
    };
    ([$v1:literal, $v2_draft:literal, $v2:literal or $alias:literal]) => {
        crate::codec::Name::keyed(&crate::codec::Key { v1: $v1, v2_draft: $v2_draft, v2: $v2, alias: $alias })
    };
}

/// Types that are JSON objects: rows `field: Type = "key"` that must be there, lists among them whose wrong items are
/// dropped, and rows `field: Type = Mode "key"`.
/// The key is one name, or `["v1", "draft", "v2"]`. A `flat` row has no key: its fields stand in the same object.
///
/// Every record also has `meta`, the `_meta` object; a record marked `upsert` patches it (`v2_upsert`: only since v2 does
/// null clear it), one marked `bare`, which is part of another object, has none. `new` takes the required and flat rows. A record that requires nothing has a
/// default and may be written as null.
macro_rules! record {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident $($marker:ident)? { $($rows:tt)* }
    )*) => {$(
        crate::codec::record_meta! { [$($marker)?] [$(#[$attribute])*] [$visibility] $name $($rows)* }
    )*};
}

/// Chooses the row for `_meta` that the marker of a record asks for.
macro_rules! record_meta {
    ([] $($rest:tt)*) => {
        crate::codec::record_of! {
            {
                /// Free data of the implementations, kept as it came.
                meta: Option<crate::model::Meta> = Lenient "_meta",
            }
            $($rest)*
        }
    };
    ([upsert] $($rest:tt)*) => {
        crate::codec::record_of! {
            {
                /// Free data of the implementations, merged key by key.
                meta: crate::model::Patch<crate::model::Meta> = ClearableUpsert "_meta",
            }
            $($rest)*
        }
    };
    ([v2_upsert] $($rest:tt)*) => {
        crate::codec::record_of! {
            {
                /// Free data of the implementations, merged key by key.
                meta: crate::model::Patch<crate::model::Meta> = Upsert "_meta",
            }
            $($rest)*
        }
    };
    ([bare] $($rest:tt)*) => {
        crate::codec::record_of! { {} $($rest)* }
    };
}

/// Gives every row its mode.
macro_rules! record_of {
    ({ $($meta:tt)* } $attributes:tt $visibility:tt $name:ident
        $(required { $( $(#[$required_doc:meta])* $required:ident: $required_type:ty = $required_key:tt, )* })?
        $(lists { $( $(#[$list_doc:meta])* $list:ident: $list_type:ty = $list_key:tt, )* })?
        $(optional { $($optional:tt)* })?
        $(flat { $($flat:tt)* })?
    ) => {
        crate::codec::record_body! { $attributes $visibility $name
            required {
                $($( $(#[$required_doc])* $required: $required_type = Required $required_key, )*)?
                $($( $(#[$list_doc])* $list: $list_type = RequiredList $list_key, )*)?
            }
            optional { $($($optional)*)? $($meta)* }
            flat { $($($flat)*)? }
        }
    };
}

macro_rules! record_body {
    ([$(#[$attribute:meta])*] [$visibility:vis] $name:ident
        required { $( $(#[$required_doc:meta])* $required:ident: $required_type:ty = $required_mode:ident $required_key:tt, )* }
        optional { $( $(#[$field_doc:meta])* $field:ident: $field_type:ty = $mode:ident $key:tt, )* }
        flat { $( $(#[$flat_doc:meta])* $flat:ident: $flat_type:ty, )* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        $visibility struct $name {
            $( $(#[$required_doc])* pub $required: $required_type, )*
            $( $(#[$flat_doc])* pub $flat: $flat_type, )*
            $( $(#[$field_doc])* pub $field: $field_type, )*
        }

        impl $name {
            /// The required parts; everything else is absent.
            #[allow(clippy::new_without_default, clippy::too_many_arguments, dead_code)]
            $visibility fn new($($required: impl Into<$required_type>,)* $($flat: impl Into<$flat_type>,)*) -> Self {
                $name {
                    $( $required: $required.into(), )*
                    $( $flat: $flat.into(), )*
                    $( $field: Default::default(), )*
                }
            }

            /// Writes the fields into an object that is open already.
            pub(crate) fn encode_fields(&self, writer: &mut crate::json::Writer<'_>) {
                crate::codec::write_record(self, writer);
            }
        }

        // SAFETY: the fields of the record and its rows come from the same lists.
        unsafe impl crate::codec::Record for $name {
            const READ: &'static [crate::codec::ReadRow] = &[
                $( crate::codec::ReadRow {
                    name: crate::codec::name!($required_key),
                    offset: std::mem::offset_of!($name, $required),
                    field: &crate::codec::FieldOf::<$required_type, crate::codec::$required_mode>::FIELD,
                }, )*
                $( crate::codec::ReadRow {
                    name: crate::codec::Name::FLAT,
                    offset: std::mem::offset_of!($name, $flat),
                    field: &crate::codec::FlatOf::<$flat_type>::FIELD,
                }, )*
                $( crate::codec::ReadRow {
                    name: crate::codec::name!($key),
                    offset: std::mem::offset_of!($name, $field),
                    field: &crate::codec::FieldOf::<$field_type, crate::codec::$mode>::FIELD,
                }, )*
            ];
            const WRITE: &'static [crate::codec::WriteRow] = &[
                $( crate::codec::WriteRow {
                    name: crate::codec::name!($required_key),
                    offset: std::mem::offset_of!($name, $required),
                    write: crate::codec::FieldOf::<$required_type, crate::codec::$required_mode>::write,
                }, )*
                $( crate::codec::WriteRow {
                    name: crate::codec::Name::FLAT,
                    offset: std::mem::offset_of!($name, $flat),
                    write: crate::codec::FlatOf::<$flat_type>::write,
                }, )*
                $( crate::codec::WriteRow {
                    name: crate::codec::name!($key),
                    offset: std::mem::offset_of!($name, $field),
                    write: crate::codec::FieldOf::<$field_type, crate::codec::$mode>::write,
                }, )*
            ];
        }

        impl crate::codec::Decode for $name {
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                crate::codec::null_is_default!(reader [$($required)* $($flat)*]);
                crate::codec::read_record(reader)
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                writer.begin_object();
                self.encode_fields(writer);
                writer.end_object();
            }
        }

        crate::codec::default_of! { $name [$($required)* $($flat)*] }
        crate::codec::serde_through_json!($name);
    };
}

/// A default for records that require nothing.
macro_rules! default_of {
    ($name:ident []) => {
        impl Default for $name {
            fn default() -> Self {
                $name::new()
            }
        }
    };
    ($name:ident [$($required:ident)+]) => {};
}

/// Reads null as a record that requires nothing: many peers answer with null where there is nothing to say.
macro_rules! null_is_default {
    ($reader:ident []) => {
        if $reader.null()? {
            return Ok(Self::default());
        }
    };
    ($reader:ident [$($required:ident)+]) => {};
}

/// Tagged unions: rows `Variant(Record) = "tag"`. What carries another tag is kept whole as `Other`.
///
/// `tag "type"` names the key of the tag. `else Variant in [dialects]` names the variant of an object without a tag, and
/// the dialects that write it without. `within ["keys"]` names the other keys of the object that the union is flat in.
/// `without [From]` leaves that out, to be written by hand or because two variants hold the same type.
/// A row may be `boxed`, and `in [dialects]` when the others have no such variant.
macro_rules! union {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident tag $tag:literal
            $(else $untagged:ident in [$($bare:ident),+])?
            $(within [$($outer:literal),+])?
            $(without [$($without:ident),+])?
        {
            $( $(#[$doc:meta])* $variant:ident($type:ty) $($boxed:ident)? = $value:literal $(in [$($known:ident),+])?, )*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant(crate::codec::payload!($type $(, $boxed)?)), )*
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

            /// Whether the dialect has this variant. Unknown ones pass: they came from a peer that has them.
            #[allow(unused_variables)]
            pub fn is_known_to(&self, dialect: crate::Dialect) -> bool {
                match self {
                    $( $name::$variant(_) => crate::codec::known!(dialect $([$($known)+])?), )*
                    $name::Other(_) => true,
                }
            }

            #[allow(dead_code)]
            pub(crate) fn decode_variant(
                reader: &mut crate::json::Reader<'_>,
            ) -> std::result::Result<Self, crate::json::DecodeError> {
                let tag = reader.peek_tag($tag)?;
                match tag.as_deref() {
                    $( Some($value) => <$type as crate::codec::Decode>::decode(reader)
                        .map(|value| $name::$variant(value.into())), )*
                    Some(tag) => crate::codec::unknown!(tag, reader $(, [$($outer),+])?).map($name::Other),
                    $( None => crate::codec::Decode::decode(reader).map($name::$untagged), )?
                    #[allow(unreachable_patterns)]
                    None => Err(crate::json::DecodeError::new(crate::json::Reason::Missing).in_field($tag)),
                }
            }

            /// Writes the tag and the fields into an object that is open already.
            #[allow(dead_code, unused_variables)]
            pub(crate) fn encode_fields(&self, writer: &mut crate::json::Writer<'_>) {
                let dialect = writer.dialect();
                match self {
                    $( $name::$untagged(value) if matches!(dialect, $(crate::Dialect::$bare)|+) => {
                        value.encode_fields(writer);
                    } )?
                    $( $name::$variant(value) => {
                        if !crate::codec::known!(dialect $([$($known)+])?) {
                            writer.lose($value);
                        }
                        writer.quoted_key(concat!(",\"", $tag, "\":\"", $value, "\""));
                        value.encode_fields(writer);
                    } )*
                    $name::Other(unknown) => unknown.encode_fields(writer),
                }
            }
        }

        crate::codec::flat!($name);

        crate::codec::unless! { Decode [$($($without)+)?] {
            impl crate::codec::Decode for $name {
                fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                    Self::decode_variant(reader)
                }
            }
        } }

        crate::codec::unless! { Encode [$($($without)+)?] {
            impl crate::codec::Encode for $name {
                fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                    if let $name::Other(unknown) = self {
                        return crate::codec::Encode::encode(unknown, writer);
                    }
                    writer.begin_object();
                    self.encode_fields(writer);
                    writer.end_object();
                }
            }
        } }

        crate::codec::unless! { From [$($($without)+)?] {
            $( impl From<$type> for $name {
                fn from(value: $type) -> Self {
                    $name::$variant(value.into())
                }
            } )*
        } }

        crate::codec::serde_through_json!($name);
    )*};
}

/// Lets a type with `encode_fields` be a flat row of a record.
macro_rules! flat {
    ($name:ident) => {
        impl crate::codec::Flat for $name {
            #[inline]
            fn write_flat(&self, writer: &mut crate::json::Writer<'_>) {
                self.encode_fields(writer);
            }
        }
    };
}

/// What a variant holds.
macro_rules! payload {
    ($type:ty) => { $type };
    ($type:ty, boxed) => { Box<$type> };
}

/// Whether a dialect is one of those named, or none is named.
macro_rules! known {
    ($dialect:ident) => { true };
    ($dialect:ident [$($known:ident)+]) => { matches!($dialect, $(crate::Dialect::$known)|+) };
}

/// Keeps a variant that we do not know, without the keys of the object around it.
macro_rules! unknown {
    ($tag:ident, $reader:ident) => {
        crate::model::Unknown::decode_with($tag, $reader)
    };
    ($tag:ident, $reader:ident, $outer:tt) => {
        crate::model::Unknown::decode_rest($tag, $reader, &$outer)
    };
}

/// Items that are generated unless their name is in the list.
macro_rules! unless {
    (From [From $($rest:ident)*] $items:tt) => {};
    (Decode [Decode $($rest:ident)*] $items:tt) => {};
    (Encode [Encode $($rest:ident)*] $items:tt) => {};
    ($what:ident [] { $($items:tt)* }) => { $($items)* };
    ($what:ident [$other:ident $($rest:ident)*] $items:tt) => {
        crate::codec::unless! { $what [$($rest)*] $items }
    };
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

pub(crate) use {
    default_of, flat, ids, known, name, null_is_default, payload, record, record_body, record_meta, record_of,
    serde_through_json, string_enum, union, unknown, unless,
};
