//! Lists of sessions, page by page.

use std::fmt;
use std::str::FromStr;

use super::{Entry, StoreError, is_id};

/// How much of the first prompt stands for a title, in characters.
const LONGEST_TITLE: usize = 80;

/// Which sessions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Only those of this directory.
    pub cwd: Option<String>,
    /// Those that come after the page that gave this cursor.
    pub cursor: Option<String>,
    /// How many at most; one at least.
    pub limit: usize,
}

impl Default for Query {
    /// The first fifty of all.
    fn default() -> Self {
        Query { cwd: None, cursor: None, limit: 50 }
    }
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The sessions, those first to which something was added last.
    pub sessions: Vec<Summary>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// What there is to know of a session at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Its directory.
    pub cwd: String,
    /// The directories that belong to it beside that.
    pub directories: Vec<String>,
    /// Its title, or how its first prompt begins.
    pub title: Option<String>,
    /// When it was made, as RFC 3339 has it.
    pub created: String,
    /// When something was last added to it, as RFC 3339 has it.
    pub updated: String,
    /// How many prompts it had.
    pub prompts: u64,
}

/// A place in a list: the session before it. Later ones sort first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// When something was last added to the session, in milliseconds since 1970.
    pub updated: u64,
    /// The id of the session.
    pub id: String,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.updated, self.id)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(cursor: &str) -> Result<Self, StoreError> {
        let (updated, id) = cursor.split_once('-').ok_or(StoreError::WrongCursor)?;
        let updated = u64::from_str_radix(updated, 16).map_err(|_| StoreError::WrongCursor)?;
        if is_id(id) { Ok(Cursor { updated, id: id.to_owned() }) } else { Err(StoreError::WrongCursor) }
    }
}

/// What an entry changes in a list of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The title that the session has from now on.
    pub title: Option<String>,
    /// Whether it is one more prompt.
    pub is_prompt: bool,
    /// How the prompt begins, on one line. That of the first prompt that has any stands for a title.
    pub beginning: Option<String>,
}

impl Entry {
    /// What the entry changes in a list of sessions.
    pub fn listed(&self) -> Listed {
        match self {
            Entry::Title { title } => Listed { title: Some(title.clone()), ..Listed::default() },
            Entry::Prompt { content, .. } => {
                let beginning = content.iter().find_map(|block| beginning(block.as_text()?));
                Listed { title: None, is_prompt: true, beginning }
            }
            _ => Listed::default(),
        }
    }
}

/// How a text begins, on one line.
fn beginning(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut title = words.next()?.to_owned();
    for word in words {
        title.extend([" ", word]);
        if title.len() > 4 * LONGEST_TITLE {
            break;
        }
    }
    if let Some((end, _)) = title.char_indices().nth(LONGEST_TITLE) {
        title.truncate(end);
        title.push('…');
    }
    Some(title)
}
