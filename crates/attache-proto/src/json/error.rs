//! What was wrong with a piece of JSON, and where. Never the JSON itself.

use std::fmt;

/// What was wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not JSON.
    Syntax,
    /// Arrays and objects nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// A required field is not there.
    Missing,
    /// The same field stands there twice.
    Duplicate,
    /// The value is of another type; says which one was expected.
    Expected(&'static str),
    /// The value is of the right type but breaks a rule; says which.
    Invalid(&'static str),
}

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Field(&'static str),
    Item(usize),
}

/// Why a value could not be decoded: a reason and the path of the culprit.
///
/// ```
/// use attache_proto::{Dialect, json::Reader, model::ContentBlock};
///
/// let error = Reader::new(r#"{"type":"text","text":7}"#, Dialect::V1).decode::<ContentBlock>().unwrap_err();
/// assert_eq!(error.to_string(), "`text`: expected a string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    reason: Reason,
    /// Innermost step first: the path grows while the error travels outwards, so a good message pays nothing for it.
    path: Vec<Place>,
}

impl DecodeError {
    /// An error at the value that is being read.
    #[cold]
    pub fn new(reason: Reason) -> Self {
        DecodeError(Box::new(Inner { reason, path: Vec::new() }))
    }

    /// What was wrong.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// Where it was wrong, as `prompt[2].text`. Empty when the whole value is meant.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Place::Field(name) if path.is_empty() => path.push_str(name),
                Place::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                Place::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// Names the place of the value in what holds it.
    #[cold]
    pub(crate) fn put_in(&mut self, place: Place) {
        self.0.path.push(place);
    }

    /// The same error, seen from the object that holds the value in `name`.
    #[cold]
    pub fn in_field(mut self, name: &'static str) -> Self {
        self.0.path.push(Place::Field(name));
        self
    }

    /// The same error, seen from the array that holds the value at `index`.
    #[cold]
    pub fn in_item(mut self, index: usize) -> Self {
        self.0.path.push(Place::Item(index));
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        if !path.is_empty() {
            write!(f, "`{path}`: ")?;
        }
        match self.0.reason {
            Reason::Syntax => f.write_str("not JSON"),
            Reason::TooDeep => f.write_str("nested too deeply"),
            Reason::Missing => f.write_str("required field is missing"),
            Reason::Duplicate => f.write_str("field stands there twice"),
            Reason::Expected(what) => write!(f, "expected {what}"),
            Reason::Invalid(rule) => f.write_str(rule),
        }
    }
}

impl std::error::Error for DecodeError {}
