//! Errors in JSON: what is wrong and where, without a word of the JSON itself.

use std::fmt;

use super::MAX_DEPTH;

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not JSON.
    Syntax,
    /// Arrays and objects nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH).
    TooDeep,
    /// A required field is missing.
    Missing,
    /// A field occurs twice.
    Duplicate,
    /// The value has the wrong type; says which one was expected.
    Expected(&'static str),
    /// The value has the right type but breaks this rule.
    Invalid(&'static str),
}

/// One step of the path to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathSegment {
    Field(&'static str),
    Item(usize),
}

/// Why a value could not be decoded: a reason, and the path of the value that is to blame.
///
/// ```
/// use attache_proto::{Dialect, json::Reader, model::content::ContentBlock};
///
/// let error = Reader::new(r#"{"type":"text","text":7}"#, Dialect::V1).decode::<ContentBlock>().unwrap_err();
/// assert_eq!(error.to_string(), "`text`: expected a string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    reason: Reason,
    /// The innermost segment first: the path grows while the error travels outwards, so a valid message pays nothing for it.
    path: Vec<PathSegment>,
}

impl DecodeError {
    /// An error at the value that is being read.
    #[cold]
    pub fn new(reason: Reason) -> Self {
        DecodeError(Box::new(Inner { reason, path: Vec::new() }))
    }

    /// What is wrong.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// Where it is wrong, such as `prompt[2].text`. Empty when the whole value is meant.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.0.path.iter().rev() {
            match segment {
                PathSegment::Field(name) if path.is_empty() => path.push_str(name),
                PathSegment::Field(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                PathSegment::Item(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }

    /// Adds the segment that leads to what the path begins with.
    #[cold]
    pub(crate) fn prepend(&mut self, segment: PathSegment) {
        self.0.path.push(segment);
    }

    /// The same error, seen from the object that holds the value in `name`.
    #[cold]
    pub fn in_field(mut self, name: &'static str) -> Self {
        self.0.path.push(PathSegment::Field(name));
        self
    }

    /// The same error, seen from the array that holds the value at `index`.
    #[cold]
    pub fn in_item(mut self, index: usize) -> Self {
        self.0.path.push(PathSegment::Item(index));
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        match self.0.reason {
            Reason::Missing if path.is_empty() => return f.write_str("missing field"),
            Reason::Missing => return write!(f, "missing field `{path}`"),
            Reason::Duplicate if path.is_empty() => return f.write_str("duplicate field"),
            Reason::Duplicate => return write!(f, "duplicate field `{path}`"),
            _ if path.is_empty() => {}
            _ => write!(f, "`{path}`: ")?,
        }
        match self.0.reason {
            Reason::Syntax => f.write_str("invalid JSON"),
            Reason::TooDeep => write!(f, "nested more than {MAX_DEPTH} levels deep"),
            Reason::Missing | Reason::Duplicate => Ok(()),
            Reason::Expected(what) => write!(f, "expected {what}"),
            Reason::Invalid(rule) => f.write_str(rule),
        }
    }
}

impl std::error::Error for DecodeError {}
