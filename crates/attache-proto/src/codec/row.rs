//! What a record says about each of its fields: its name in every dialect, what is forgiven, when it is left out.

use crate::Dialect;
use crate::json::Writer;

/// A set of dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialects(u8);

impl Dialects {
    pub(crate) const NONE: Dialects = Dialects(0);
    pub(crate) const ALL: Dialects = Dialects::of(&[Dialect::V1, Dialect::V2Draft, Dialect::V2]);
    const SINCE_V2: Dialects = Dialects::of(&[Dialect::V2Draft, Dialect::V2]);

    pub(crate) const fn of(dialects: &[Dialect]) -> Self {
        let mut bits = 0;
        let mut rest = dialects;
        while let [dialect, more @ ..] = rest {
            bits |= 1 << *dialect as u8;
            rest = more;
        }
        Dialects(bits)
    }

    /// The given dialects in place of these.
    pub(crate) const fn only(self, dialects: &[Dialect]) -> Self {
        Dialects::of(dialects)
    }

    pub(crate) const fn has(self, dialect: Dialect) -> bool {
        self.0 & 1 << dialect as u8 != 0
    }
}

/// What is forgiven in a field, and when it is left out. Each rule is the set of dialects in which it holds.
///
/// A row of a record begins with [`REQUIRED`](Self::REQUIRED) or [`optional`](Self::optional), and the words behind its
/// key are methods of this type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Absence is an error.
    pub(crate) required: bool,
    /// Absence is noted.
    pub(crate) expected: Dialects,
    /// A wrong value is an error. Elsewhere it counts as absent and is noted.
    pub(crate) strict: Dialects,
    /// Null is a value of its own, or a wrong one. Elsewhere it counts as absent.
    pub(crate) null: Dialects,
    /// The field is written even when it says no more than its absence.
    pub(crate) shown: Dialects,
    /// Wrong items of a list are dropped one by one and noted.
    pub(crate) list: bool,
    /// Absence counts as `{}`, which may say something in some dialect.
    pub(crate) empty_object: bool,
}

impl Rules {
    /// A field that has to be there and right.
    pub(crate) const REQUIRED: Rules = Rules {
        required: true,
        expected: Dialects::NONE,
        strict: Dialects::ALL,
        null: Dialects::ALL,
        shown: Dialects::ALL,
        list: false,
        empty_object: false,
    };

    /// A field that may be absent, null or wrong, and is left out when it says nothing. `null` is where null says
    /// something.
    pub(crate) const fn optional(null: Dialects) -> Self {
        let none = Dialects::NONE;
        Rules { required: false, expected: none, strict: none, null, shown: none, list: false, empty_object: false }
    }

    /// Whether absence is an error, is noted, or says something.
    pub(crate) fn mean_something_by_absence(&self) -> bool {
        self.required || self.expected != Dialects::NONE || self.empty_object
    }

    /// Something wrong is an error.
    pub(crate) const fn strict(self) -> Self {
        Rules { strict: Dialects::ALL, ..self }
    }

    /// Wrong items are dropped. In v1, where peers are sloppier, so is a required list that is none.
    pub(crate) const fn list(self) -> Self {
        Rules { list: true, strict: Dialects(self.strict.0 & Dialects::SINCE_V2.0), ..self }
    }

    /// Null is more than absence, in v1 too: it clears what can be cleared.
    pub(crate) const fn null(self) -> Self {
        Rules { null: Dialects::ALL, ..self }
    }

    /// Should be there in v2.
    pub(crate) const fn expected(self) -> Self {
        Rules { expected: Dialects::of(&[Dialect::V2]), ..self }
    }

    /// Should be there, and has to be right, in v2 and its draft.
    pub(crate) const fn expected_since_v2(self) -> Self {
        Rules { expected: Dialects::SINCE_V2, strict: Dialects::SINCE_V2, ..self }
    }

    /// Always written.
    pub(crate) const fn shown(self) -> Self {
        Rules { shown: Dialects::ALL, ..self }
    }

    /// Always written before v2.
    pub(crate) const fn shown_before_v2(self) -> Self {
        Rules { shown: Dialects::of(&[Dialect::V1, Dialect::V2Draft]), ..self }
    }

    /// Always written in v1, whose clients read flags.
    pub(crate) const fn shown_in_v1(self) -> Self {
        Rules { shown: Dialects::of(&[Dialect::V1]), ..self }
    }

    /// Read from `{}` where it is absent.
    pub(crate) const fn empty_object(self) -> Self {
        Rules { empty_object: true, ..self }
    }
}

/// The name of a field in each dialect. Empty where the dialect has no such field, so that writing one is a loss; `-`
/// where it needs none, because what the field says always holds there.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) v1: &'static str,
    pub(crate) v2_draft: &'static str,
    pub(crate) v2: &'static str,
    /// One more name that is understood, never written.
    pub(crate) alias: &'static str,
}

impl Key {
    fn name(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::V1 => self.v1,
            Dialect::V2Draft => self.v2_draft,
            Dialect::V2 => self.v2,
        }
    }

    /// A name to call the field by, whatever the dialect.
    fn any(&self) -> &'static str {
        [self.v2, self.v1, self.v2_draft].into_iter().find(|name| Key::is_name(name)).unwrap_or_default()
    }

    fn is_name(name: &str) -> bool {
        !matches!(name, "" | "-")
    }
}

/// What a field is called.
#[derive(Debug)]
pub(crate) enum Name {
    /// The same in all dialects, given as `,"name":`.
    Quoted(&'static str),
    /// Differs by dialect.
    Keyed(&'static Key),
    /// None: the fields of the field stand in the same object.
    Flat,
}

/// What a record says about one of its fields.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: Name,
    pub(crate) rules: Rules,
}

impl Row {
    pub(crate) fn is_flat(&self) -> bool {
        matches!(self.name, Name::Flat)
    }

    /// The name in this dialect, or where it has none, another.
    pub(crate) fn name(&self, dialect: Dialect) -> &'static str {
        match self.name {
            Name::Keyed(key) if Key::is_name(key.name(dialect)) => key.name(dialect),
            _ => self.any_name(),
        }
    }

    fn any_name(&self) -> &'static str {
        match self.name {
            Name::Quoted(quoted) => &quoted[2..quoted.len() - 2],
            Name::Keyed(key) => key.any(),
            Name::Flat => "",
        }
    }

    /// Whether the field goes by this name. Reading knows the names of all dialects: none of them means two things.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        match self.name {
            Name::Quoted(quoted) => {
                name.len() + 4 == quoted.len() && quoted.as_bytes()[2..].starts_with(name.as_bytes())
            }
            Name::Keyed(key) => [key.v2, key.v1, key.v2_draft, key.alias].contains(&name) && Key::is_name(name),
            Name::Flat => false,
        }
    }

    /// Writes the key and says whether the value has to follow. Notes what the dialect has no word for.
    #[inline(never)]
    pub(crate) fn begin(&self, is_blank: bool, writer: &mut Writer<'_>) -> bool {
        let dialect = writer.dialect();
        if is_blank && !self.rules.shown.has(dialect) {
            return false;
        }
        match self.name {
            Name::Quoted(quoted) => {
                writer.quoted_key(quoted);
                true
            }
            Name::Keyed(key) => match key.name(dialect) {
                "" => {
                    writer.lose(key.any());
                    false
                }
                "-" => false,
                name => {
                    writer.key(name);
                    true
                }
            },
            Name::Flat => false,
        }
    }

    /// Writes that the value is cleared: as null, or where null says nothing, as an empty list if it is one.
    pub(crate) fn clear(&self, writer: &mut Writer<'_>) {
        let cleared = match self.rules.null.has(writer.dialect()) {
            true => "null",
            false if self.rules.list => "[]",
            false => return writer.lose(self.any_name()),
        };
        if self.begin(false, writer) {
            writer.raw(cleared);
        }
    }
}

/// What a union says about one of its variants.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) tag: &'static str,
    /// Its tag and the key of the tag, given as `,"type":"text"`.
    pub(crate) quoted: &'static str,
    /// The dialects that have it.
    pub(crate) known: Dialects,
}

impl Variant {
    /// One that we do not know.
    pub(crate) const OTHER: Variant = Variant { tag: "", quoted: "", known: Dialects::ALL };

    /// Writes the tag, and notes when the dialect has no such variant.
    #[inline(never)]
    pub(crate) fn write_tag(&self, writer: &mut Writer<'_>) {
        if !self.known.has(writer.dialect()) {
            writer.lose(self.tag);
        }
        if !self.quoted.is_empty() {
            writer.quoted_key(self.quoted);
        }
    }
}
