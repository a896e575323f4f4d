//! The tables that types are written as: records, unions, sets of names, ids.

/// What every type of the model has: fields can be given as what becomes it, and its JSON in the newest dialect is its
/// form for serde.
macro_rules! model_type {
    ($type:ty) => {
        crate::codec::into_field!($type);

        #[cfg(feature = "serde")]
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&crate::json::RawJson::from_model(self), serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let raw = <crate::json::RawJson as serde::Deserialize>::deserialize(deserializer)?;
                raw.to_model().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Types that are JSON objects: rows `field: Type = "key" words`, where the words are methods of
/// [`Rules`](crate::codec::Rules). The key is one name, `["v1", "draft", "v2"]`, or `["v1", "draft", "v2" or "alias"]`.
/// Rows are `required` or `optional`; a `flat` row has no key, its fields stand in the same object. `Type as Form` is a
/// field with a wire form of its own.
///
/// Every record also has `meta`, the `_meta` object; a record marked `upsert` patches it (`v2_upsert`: only since v2 does
/// null clear it), one marked `bare`, which is part of another object, has none. `new` takes the required and flat rows,
/// and there is a setter for each optional one. A record that requires nothing has a default and may be written as null.
macro_rules! record {
    (@new) => { "All fields absent." };
    (@new $($field:ident)+) => { "The required fields; all others are absent." };

    (@meta [] $($rest:tt)*) => {
        crate::codec::record! { @body {
            /// Custom metadata (`_meta`), kept as it came.
            meta: Option<crate::model::Meta> = "_meta",
        } $($rest)* }
    };
    (@meta [upsert] $($rest:tt)*) => {
        crate::codec::record! { @body {
            /// Custom metadata (`_meta`), merged key by key.
            meta: Patch<crate::model::Meta> = "_meta" null,
        } $($rest)* }
    };
    (@meta [v2_upsert] $($rest:tt)*) => {
        crate::codec::record! { @body {
            /// Custom metadata (`_meta`), merged key by key.
            meta: Patch<crate::model::Meta> = "_meta",
        } $($rest)* }
    };
    (@meta [bare] $($rest:tt)*) => {
        crate::codec::record! { @body {} $($rest)* }
    };

    (@body { $($meta:tt)* } $attributes:tt $visibility:tt $name:ident
        $(required { $($required:tt)* })?
        $(optional { $($optional:tt)* })?
        $(flat { $($flat:tt)* })?
    ) => {
        crate::codec::record! { @type $attributes $visibility $name
            required { $($($required)*)? }
            optional { $($($optional)*)? $($meta)* }
            flat { $($($flat)*)? }
        }
    };

    (@type [$(#[$attribute:meta])*] [$visibility:vis] $name:ident
        required { $( $(#[$required_doc:meta])* $required:ident: $required_type:ty = $required_key:tt $($required_rule:ident)*, )* }
        optional { $( $(#[$doc:meta])* $field:ident: $outer:ident $(<$inner:ty>)? $(as $form:ident)? = $key:tt $($rule:ident)*, )* }
        flat { $( $(#[$flat_doc:meta])* $flat:ident: $flat_type:ty, )* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        $visibility struct $name {
            $( $(#[$required_doc])* pub $required: $required_type, )*
            $( $(#[$flat_doc])* pub $flat: $flat_type, )*
            $( $(#[$doc])* pub $field: $outer $(<$inner>)?, )*
        }

        #[allow(dead_code, unused)]
        impl $name {
            const ROWS: &'static [crate::codec::Row] = &[
                $( crate::codec::Row {
                    name: crate::codec::record!(@name $required_key),
                    rules: crate::codec::Rules::REQUIRED $(.$required_rule())*,
                }, )*
                $( crate::codec::Row {
                    name: crate::codec::record!(@flat $flat),
                    rules: crate::codec::Rules::REQUIRED,
                }, )*
                $( crate::codec::Row {
                    name: crate::codec::record!(@name $key),
                    rules: crate::codec::Rules::optional(
                        <$outer $(<$inner>)? as crate::codec::Field $(<crate::codec::$form>)?>::NULL
                    ) $(.$rule())*,
                }, )*
            ];

            #[doc = crate::codec::record!(@new $($required)* $($flat)*)]
            #[allow(clippy::new_without_default, clippy::too_many_arguments)]
            $visibility fn new(
                $($required: impl crate::codec::IntoField<$required_type>,)*
                $($flat: impl crate::codec::IntoField<$flat_type>,)*
            ) -> Self {
                $name {
                    $( $required: crate::codec::IntoField::into_field($required), )*
                    $( $flat: crate::codec::IntoField::into_field($flat), )*
                    $( $field: Default::default(), )*
                }
            }

            $( crate::codec::record! { @setter [$visibility] [$(#[$doc])*] $field $outer $(<$inner>)? } )*

            crate::codec::record! { @with [$visibility] }

            /// Writes the fields into an object that is open already.
            pub(crate) fn encode_fields(&self, writer: &mut crate::json::Writer<'_>) {
                let [$($required,)* $($flat,)* $($field,)*] = Self::ROWS else { return };
                $( crate::codec::Field::write(&self.$required, $required, writer); )*
                $( self.$flat.encode_fields(writer); )*
                $( <$outer $(<$inner>)? as crate::codec::Field $(<crate::codec::$form>)?>::write(&self.$field, $field, writer); )*
            }
        }

        // Of a reference, so that the table of methods has no need to say how the record is dropped.
        impl crate::codec::Record for &mut $name {
            fn rows(&self) -> &'static [crate::codec::Row] {
                const { assert!($name::ROWS.len() <= 64, "the rows of a record are counted in the bits of a `u64`") };
                $name::ROWS
            }

            #[allow(unused)]
            fn read_field(
                &mut self,
                mut index: usize,
                row: &crate::codec::Row,
                reader: &mut crate::json::Reader<'_>,
            ) -> std::result::Result<(), crate::json::DecodeError> {
                $( if index == 0 {
                    return crate::codec::Field::read(&mut self.$required, row, reader);
                }
                index -= 1; )*
                $( if index == 0 {
                    self.$flat = crate::codec::Decode::decode(reader)?;
                    return Ok(());
                }
                index -= 1; )*
                $( if index == 0 {
                    return <$outer $(<$inner>)? as crate::codec::Field $(<crate::codec::$form>)?>::read(&mut self.$field, row, reader);
                }
                index -= 1; )*
                reader.skip()
            }
        }

        impl crate::codec::ReadInPlace for $name {
            fn read(&mut self, reader: &mut crate::json::Reader<'_>) -> std::result::Result<(), crate::json::DecodeError> {
                let mut record = self;
                crate::codec::read_record(&mut record, reader)
            }

            fn read_behind_tag(
                &mut self,
                start: crate::json::Mark,
                reader: &mut crate::json::Reader<'_>,
            ) -> std::result::Result<(), crate::json::DecodeError> {
                let mut record = self;
                crate::codec::read_record_behind_tag(&mut record, start, reader)
            }
        }

        impl crate::codec::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name {
                    $( $required: crate::codec::Blank::blank(), )*
                    $( $flat: crate::codec::Blank::blank(), )*
                    $( $field: Default::default(), )*
                }
            }
        }

        impl crate::codec::Decode for $name {
            #[inline]
            fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                crate::codec::decode_in_place(reader)
            }
        }

        impl crate::codec::Encode for $name {
            fn encode(&self, writer: &mut crate::json::Writer<'_>) {
                writer.begin_object();
                self.encode_fields(writer);
                writer.end_object();
            }

            #[inline]
            fn is_blank(&self) -> bool {
                let required: &[&str] = &[$( stringify!($required), )* $( stringify!($flat), )*];
                required.is_empty()
                    $( && <$outer $(<$inner>)? as crate::codec::Field $(<crate::codec::$form>)?>::is_blank(&self.$field) )*
            }
        }

        crate::codec::record! { @default $name [$($required)* $($flat)*] }
        crate::codec::model_type!($name);
    };

    (@setter $visibility:tt $docs:tt $field:ident Option<$value:ty>) => {
        crate::codec::record! { @set $visibility $docs $field [$value] Some }
    };
    (@setter $visibility:tt $docs:tt $field:ident Patch<$value:ty>) => {
        crate::codec::record! { @set $visibility $docs $field [$value] crate::model::Patch::Set }
    };
    (@setter [$visibility:vis] [$(#[$doc:meta])*] $field:ident Vec<$item:ty>) => {
        #[doc = concat!("Sets `", stringify!($field), "`:")]
        $(#[$doc])*
        #[inline]
        $visibility fn $field(mut self, $field: impl IntoIterator<Item = impl Into<$item>>) -> Self {
            self.$field = $field.into_iter().map(Into::into).collect();
            self
        }
    };
    (@setter $visibility:tt $docs:tt $field:ident $outer:ident $(<$inner:ty>)?) => {
        crate::codec::record! { @set $visibility $docs $field [$outer $(<$inner>)?] std::convert::identity }
    };
    (@set [$visibility:vis] [$(#[$doc:meta])*] $field:ident [$value:ty] $make:path) => {
        #[doc = concat!("Sets `", stringify!($field), "`:")]
        $(#[$doc])*
        #[inline]
        $visibility fn $field(mut self, $field: impl crate::codec::IntoField<$value>) -> Self {
            self.$field = $make($field.into_field());
            self
        }
    };

    (@with [$visibility:vis]) => {
        /// Changes fields that have no setter, or whose value is already an option: `.with(|it| it.meta = meta)`.
        #[inline]
        $visibility fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
            change(&mut self);
            self
        }
    };

    (@default $name:ident []) => {
        impl Default for $name {
            fn default() -> Self {
                $name::new()
            }
        }
    };
    (@default $name:ident [$($required:ident)+]) => {};

    (@flat $flat:ident) => { crate::codec::Name::Flat };
    (@name $name:literal) => { crate::codec::Name::Quoted(concat!(",\"", $name, "\":")) };
    (@name [$v1:literal, $v2_draft:literal, $v2:literal]) => {
        crate::codec::record!(@name [$v1, $v2_draft, $v2 or ""])
    };
    (@name [$v1:literal, $v2_draft:literal, $v2:literal or $alias:literal]) => {
        crate::codec::Name::Keyed(&crate::codec::Key { v1: $v1, v2_draft: $v2_draft, v2: $v2, alias: $alias })
    };

    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident $($marker:ident)? { $($sections:tt)* }
    )*) => {$(
        crate::codec::record! { @meta [$($marker)?] [$(#[$attribute])*] [$visibility] $name $($sections)* }
    )*};
}

/// Tagged unions: rows `Variant(Record) = "tag"`. What carries another tag is kept whole as `Other`.
///
/// `tag "type"` names the key of the tag. `else Variant in [dialects]` names the variant of an object without a tag, and
/// the dialects that write it without. `within ["keys"]` names the other keys of the object that the union is flat in.
/// `without [From]` leaves that out, to be written by hand or because two variants hold the same type.
/// A row may be `boxed`, and `in [dialects]` when the others have no such variant.
macro_rules! union {
    (@payload $type:ty) => { $type };
    (@payload $type:ty, boxed) => { Box<$type> };

    (@unless From [From $($rest:ident)*] $items:tt) => {};
    (@unless Decode [Decode $($rest:ident)*] $items:tt) => {};
    (@unless Encode [Encode $($rest:ident)*] $items:tt) => {};
    (@unless $what:ident [] { $($items:tt)* }) => { $($items)* };
    (@unless $what:ident [$other:ident $($rest:ident)*] $items:tt) => {
        crate::codec::union! { @unless $what [$($rest)*] $items }
    };

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
            $( $(#[$doc])* $variant(crate::codec::union!(@payload $type $(, $boxed)?)), )*
            /// A variant that we do not know, kept as it came. Custom ones begin with `_`.
            Other(crate::model::Unknown),
        }

        impl $name {
            fn variant(&self) -> &'static crate::codec::Variant {
                match self {
                    $( $name::$variant(_) => const {
                        &crate::codec::Variant {
                            tag: $value,
                            quoted: concat!(",\"", $tag, "\":\"", $value, "\""),
                            known: crate::codec::Dialects::ALL $(.only(&[$(crate::Dialect::$known),+]))?,
                        }
                    }, )*
                    $name::Other(_) => &crate::codec::Variant::OTHER,
                }
            }

            /// The tag that names the variant on the wire.
            pub fn tag(&self) -> &str {
                match self {
                    $name::Other(unknown) => unknown.tag(),
                    _ => self.variant().tag,
                }
            }

            /// Whether the dialect has this variant. Unknown ones pass: they came from a peer that has them.
            pub fn is_known_to(&self, dialect: crate::Dialect) -> bool {
                self.variant().known.has(dialect)
            }

            #[allow(dead_code)]
            pub(crate) fn decode_variant(
                reader: &mut crate::json::Reader<'_>,
            ) -> std::result::Result<Self, crate::json::DecodeError> {
                let start = reader.mark();
                let (tag, is_first) = reader.read_tag($tag, concat!(",\"", $tag, "\":"))?;
                let mut value = match tag.as_deref() {
                    $( Some($value) => $name::$variant(crate::codec::Blank::blank()), )*
                    Some(tag) => {
                        reader.go_back(start);
                        return crate::model::Unknown::decode_rest(tag, reader, &[$($($outer),+)?]).map($name::Other);
                    }
                    $( None => $name::$untagged(crate::codec::Blank::blank()), )?
                    #[allow(unreachable_patterns)]
                    None => return Err(crate::json::DecodeError::new(crate::json::Reason::Missing).in_field($tag)),
                };
                match &mut value {
                    $( $name::$variant(payload) if is_first => {
                        crate::codec::ReadInPlace::read_behind_tag(payload, start, reader)?
                    } )*
                    $( $name::$variant(payload) => crate::codec::ReadInPlace::read(payload, reader)?, )*
                    $name::Other(_) => {}
                }
                Ok(value)
            }

            /// Writes the tag and the fields into an object that is open already.
            #[allow(dead_code)]
            pub(crate) fn encode_fields(&self, writer: &mut crate::json::Writer<'_>) {
                match self {
                    $( $name::$untagged(_) if crate::codec::Dialects::of(&[$(crate::Dialect::$bare),+]).has(writer.dialect()) => {} )?
                    _ => self.variant().write_tag(writer),
                }
                match self {
                    $( $name::$variant(payload) => payload.encode_fields(writer), )*
                    $name::Other(unknown) => unknown.encode_fields(writer),
                }
            }
        }

        impl crate::codec::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name::Other(crate::codec::Blank::blank())
            }
        }

        impl crate::codec::ReadInPlace for $name {
            #[inline]
            fn read(&mut self, reader: &mut crate::json::Reader<'_>) -> std::result::Result<(), crate::json::DecodeError> {
                crate::codec::read_over(self, reader)
            }
        }

        crate::codec::union! { @unless Decode [$($($without)+)?] {
            impl crate::codec::Decode for $name {
                fn decode(reader: &mut crate::json::Reader<'_>) -> std::result::Result<Self, crate::json::DecodeError> {
                    Self::decode_variant(reader)
                }
            }
        } }

        crate::codec::union! { @unless Encode [$($($without)+)?] {
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

        crate::codec::union! { @unless From [$($($without)+)?] {
            $( impl From<$type> for $name {
                fn from(value: $type) -> Self {
                    $name::$variant(value.into())
                }
            } )*
        } }

        crate::codec::model_type!($name);
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

        impl crate::codec::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name::Other(Default::default())
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

        crate::codec::model_type!($name);
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

        impl crate::codec::Blank for $name {
            #[inline]
            fn blank() -> Self {
                $name(Default::default())
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

        crate::codec::model_type!($name);
    )*};
}

pub(crate) use {ids, model_type, record, string_enum, union};
