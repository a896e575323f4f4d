//! The modes of a record's fields: what absence means, which mistakes are let pass, when a field is left out.

use super::{Decode, Encode, Name, read_at};
use crate::Dialect;
use crate::json::{DecodeError, Kind, Place, Reader, Reason, Writer};
use crate::model::{Capability, EnvVariable, Patch, Secret};

type Result<T> = std::result::Result<T, DecodeError>;

/// What a field does when it is absent, wrong or empty.
pub(crate) trait Mode<T> {
    fn absent(name: &Name, reader: &mut Reader<'_>) -> Result<T>;
    fn read(reader: &mut Reader<'_>) -> Result<T>;
    /// Whether the field is left out.
    fn skips(value: &T, dialect: Dialect) -> bool;
    /// Whether the dialect has words for what the value says.
    fn is_known_to(_: &T, _: Dialect) -> bool {
        true
    }
    fn write(value: &T, writer: &mut Writer<'_>);
}

/// Must be there and right, in every dialect that has the field.
pub(crate) struct Required;

impl<T: Decode + Encode> Mode<T> for Required {
    fn absent(name: &Name, reader: &mut Reader<'_>) -> Result<T> {
        Err(missing(name, reader))
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Option<T>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Option<T>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<T> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Option<Vec<T>>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<T>> {
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

/// A list that must be there and is written even when empty; wrong items are dropped and noted. In v1, where peers are
/// sloppier, something else than a list counts as an empty one.
pub(crate) struct RequiredList;

impl<T: Decode + Encode> Mode<Vec<T>> for RequiredList {
    fn absent(name: &Name, reader: &mut Reader<'_>) -> Result<Vec<T>> {
        Err(missing(name, reader))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<T>> {
        if reader.dialect() == Dialect::V1 { lenient(reader, good_items) } else { good_items(reader) }
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<T>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<T>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Patch<T>> {
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

    fn is_known_to(value: &Patch<T>, dialect: Dialect) -> bool {
        dialect != Dialect::V1 || !matches!(value, Patch::Clear)
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Patch<T>> {
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
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Patch<Vec<T>>> {
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

/// As [`ClearableUpsert`] for a list: wrong items are dropped.
pub(crate) struct ClearableList;

impl<T: Decode + Encode> Mode<Patch<Vec<T>>> for ClearableList {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Patch<Vec<T>>> {
        Ok(Patch::Keep)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Patch<Vec<T>>> {
        if reader.null()? {
            return Ok(Patch::Clear);
        }
        lenient(reader, |reader| good_items(reader).map(Patch::Set))
    }

    fn skips(value: &Patch<Vec<T>>, _: Dialect) -> bool {
        matches!(value, Patch::Keep)
    }

    fn write(value: &Patch<Vec<T>>, writer: &mut Writer<'_>) {
        <Upsert as Mode<Patch<Vec<T>>>>::write(value, writer);
    }
}

/// As [`ClearableUpsert`], but something wrong is an error.
pub(crate) struct StrictUpsert;

impl<T: Decode + Encode> Mode<Patch<T>> for StrictUpsert {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Patch<T>> {
        Ok(Patch::Keep)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Patch<T>> {
        if reader.null()? { Ok(Patch::Clear) } else { T::decode(reader).map(Patch::Set) }
    }

    fn skips(value: &Patch<T>, _: Dialect) -> bool {
        matches!(value, Patch::Keep)
    }

    fn write(value: &Patch<T>, writer: &mut Writer<'_>) {
        <Upsert as Mode<Patch<T>>>::write(value, writer);
    }
}

/// Optional in v1, where something wrong counts as absent. Both forms of v2 require it: its absence is let pass and noted,
/// so that what has it missing is not lost, but something wrong is an error.
pub(crate) struct RequiredSinceV2;

impl<T: Decode + Encode> Mode<Option<T>> for RequiredSinceV2 {
    fn absent(name: &Name, reader: &mut Reader<'_>) -> Result<Option<T>> {
        if reader.dialect() != Dialect::V1 {
            let error = missing(name, reader);
            reader.tolerate(error);
        }
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<T>> {
        if reader.dialect() == Dialect::V1 {
            return <Lenient as Mode<Option<T>>>::read(reader);
        }
        let value = <Optional as Mode<Option<T>>>::read(reader)?;
        if value.is_none() {
            reader.tolerate(DecodeError::new(Reason::Missing));
        }
        Ok(value)
    }

    fn skips(value: &Option<T>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<T>, writer: &mut Writer<'_>) {
        <Optional as Mode<Option<T>>>::write(value, writer);
    }
}

/// As [`Lenient`], but v2 wants it to be there: its absence is noted.
pub(crate) struct Expected;

impl<T: Decode + Encode> Mode<Option<T>> for Expected {
    fn absent(name: &Name, reader: &mut Reader<'_>) -> Result<Option<T>> {
        if reader.dialect() == Dialect::V2 {
            let error = missing(name, reader);
            reader.tolerate(error);
        }
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<T>> {
        <Lenient as Mode<Option<T>>>::read(reader)
    }

    fn skips(value: &Option<T>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<T>, writer: &mut Writer<'_>) {
        <Optional as Mode<Option<T>>>::write(value, writer);
    }
}

/// Absent, null or wrong counts as the default, which is written like any other value.
pub(crate) struct Shown;

impl<T: Decode + Encode + Default + PartialEq> Mode<T> for Shown {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<T> {
        Ok(T::default())
    }

    fn read(reader: &mut Reader<'_>) -> Result<T> {
        <Defaulted as Mode<T>>::read(reader)
    }

    fn skips(_: &T, _: Dialect) -> bool {
        false
    }

    fn write(value: &T, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// An object whose absence means as much as an empty one, which may say something in some dialect.
pub(crate) struct Baseline;

impl<T: Decode + Encode + Default + PartialEq> Mode<T> for Baseline {
    fn absent(_: &Name, reader: &mut Reader<'_>) -> Result<T> {
        T::decode(&mut Reader::new("{}", reader.dialect()))
    }

    fn read(reader: &mut Reader<'_>) -> Result<T> {
        let empty = T::decode(&mut Reader::new("{}", reader.dialect()))?;
        if reader.null()? {
            return Ok(empty);
        }
        Ok(lenient(reader, |reader| T::decode(reader).map(Some))?.unwrap_or(empty))
    }

    fn skips(value: &T, _: Dialect) -> bool {
        *value == T::default()
    }

    fn write(value: &T, writer: &mut Writer<'_>) {
        value.encode(writer);
    }
}

/// An object with free keys, in the order of the wire: absent means empty, every value must be right, always written.
pub(crate) struct Map;

impl<T: Decode + Encode> Mode<Vec<(String, T)>> for Map {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<(String, T)>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<(String, T)>> {
        reader.begin_object()?;
        let mut entries: Vec<(String, T)> = Vec::new();
        let mut first = true;
        while let Some(key) = reader.next_key(&mut first)? {
            entries.push((key.into_owned(), T::decode(reader).map_err(|error| error.in_item(entries.len()))?));
        }
        Ok(entries)
    }

    fn skips(_: &Vec<(String, T)>, _: Dialect) -> bool {
        false
    }

    fn write(value: &Vec<(String, T)>, writer: &mut Writer<'_>) {
        writer.begin_object();
        for (key, value) in value {
            writer.free_key(key);
            value.encode(writer);
        }
        writer.end_object();
    }
}

/// As [`Map`], but left out when empty.
pub(crate) struct StrictMap;

impl<T: Decode + Encode> Mode<Vec<(String, T)>> for StrictMap {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<(String, T)>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<(String, T)>> {
        if reader.null()? { Ok(Vec::new()) } else { Map::read(reader) }
    }

    fn skips(value: &Vec<(String, T)>, _: Dialect) -> bool {
        value.is_empty()
    }

    fn write(value: &Vec<(String, T)>, writer: &mut Writer<'_>) {
        Map::write(value, writer);
    }
}

/// As [`Map`], but may be absent or null, which is not the same as empty.
pub(crate) struct OptionalMap;

impl<T: Decode + Encode> Mode<Option<Vec<(String, T)>>> for OptionalMap {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Option<Vec<(String, T)>>> {
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Vec<(String, T)>>> {
        if reader.null()? { Ok(None) } else { Map::read(reader).map(Some) }
    }

    fn skips(value: &Option<Vec<(String, T)>>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<Vec<(String, T)>>, writer: &mut Writer<'_>) {
        if let Some(entries) = value {
            Map::write(entries, writer);
        }
    }
}

/// A capability that is `true` in v1 and an object since: either means offered, everything else not.
pub(crate) struct Offered;

impl Mode<Option<Capability>> for Offered {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Option<Capability>> {
        Ok(None)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Option<Capability>> {
        if reader.peek()? == Kind::Bool {
            return Ok(reader.bool()?.then(Capability::default));
        }
        <Lenient as Mode<Option<Capability>>>::read(reader)
    }

    fn skips(value: &Option<Capability>, _: Dialect) -> bool {
        value.is_none()
    }

    fn write(value: &Option<Capability>, writer: &mut Writer<'_>) {
        match value {
            Some(capability) if writer.dialect() == Dialect::V1 => {
                if capability.meta.is_some() {
                    writer.lose("_meta");
                }
                true.encode(writer);
            }
            value => <Optional as Mode<Option<Capability>>>::write(value, writer),
        }
    }
}

/// Environment variables: an object in v1, a list of pairs since. Left out when empty.
pub(crate) struct Environment;

impl Mode<Vec<EnvVariable>> for Environment {
    fn absent(_: &Name, _: &mut Reader<'_>) -> Result<Vec<EnvVariable>> {
        Ok(Vec::new())
    }

    fn read(reader: &mut Reader<'_>) -> Result<Vec<EnvVariable>> {
        if reader.peek()? != Kind::Object {
            return <StrictList as Mode<Vec<EnvVariable>>>::read(reader);
        }
        let entries = <Map as Mode<Vec<(String, Secret)>>>::read(reader)?;
        Ok(entries.into_iter().map(|(name, value)| EnvVariable::new(name, value)).collect())
    }

    fn skips(value: &Vec<EnvVariable>, _: Dialect) -> bool {
        value.is_empty()
    }

    fn write(value: &Vec<EnvVariable>, writer: &mut Writer<'_>) {
        if writer.dialect() != Dialect::V1 {
            return value.encode(writer);
        }
        writer.begin_object();
        for variable in value {
            if variable.meta.is_some() {
                writer.lose("_meta");
            }
            writer.free_key(&variable.name);
            variable.value.encode(writer);
        }
        writer.end_object();
    }
}

#[cold]
fn missing(name: &Name, reader: &Reader<'_>) -> DecodeError {
    DecodeError::new(Reason::Missing).in_field(name.text(reader.dialect()))
}

fn lenient<T: Default>(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Result<T>) -> Result<T> {
    let before = reader.mark();
    match read(reader) {
        Ok(value) => Ok(value),
        Err(error) => {
            reader.forgive(before, error)?;
            Ok(T::default())
        }
    }
}

fn good_items<T: Decode>(reader: &mut Reader<'_>) -> Result<Vec<T>> {
    reader.begin_array()?;
    let mut items = Vec::new();
    let mut first = true;
    let mut index = 0;
    while reader.next_item(&mut first)? {
        let before = reader.mark();
        match read_at(Place::Item(index), reader, T::decode) {
            Ok(item) => items.push(item),
            Err(error) => reader.forgive(before, error)?,
        }
        index += 1;
    }
    Ok(items)
}
