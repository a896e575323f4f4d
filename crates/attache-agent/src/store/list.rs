//! Lists of sessions, page by page.

use std::fs;
use std::io;
use std::path::Path;

use super::outline::{Outline, Summary};
use super::{StoreError, is_id};

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

/// A place in the list: the session before it. Later ones sort first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    updated: u64,
    id: String,
}

impl Place {
    fn to_cursor(&self) -> String {
        format!("{:x}-{}", self.updated, self.id)
    }

    fn from_cursor(cursor: &str) -> Option<Self> {
        let (updated, id) = cursor.split_once('-')?;
        let updated = u64::from_str_radix(updated, 16).ok()?;
        is_id(id).then(|| Place { updated, id: id.to_owned() })
    }
}

/// Lists the sessions of a directory. A log that cannot be read at all is left out.
pub(super) fn list(directory: &Path, query: &Query) -> Result<Page, StoreError> {
    let after = match &query.cursor {
        Some(cursor) => Some(Place::from_cursor(cursor).ok_or(StoreError::WrongCursor)?),
        None => None,
    };
    let mut found = Vec::new();
    for id in ids(directory).map_err(|error| StoreError::io(directory, error))? {
        let Ok(outline) = Outline::read(&directory.join(format!("{id}.log"))) else { continue };
        let place = Place { updated: outline.updated, id };
        let Some(summary) = outline.summary(&place.id) else { continue };
        let is_wanted = query.cwd.as_ref().is_none_or(|cwd| *cwd == summary.cwd);
        if is_wanted && after.as_ref().is_none_or(|after| place < *after) {
            found.push((place, summary));
        }
    }
    found.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    let limit = query.limit.max(1);
    let next = (found.len() > limit).then(|| found[limit - 1].0.to_cursor());
    found.truncate(limit);
    Ok(Page { sessions: found.into_iter().map(|(_, summary)| summary).collect(), next })
}

fn ids(directory: &Path) -> io::Result<Vec<String>> {
    let mut ids = Vec::new();
    for file in fs::read_dir(directory)? {
        let name = file?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".log")).filter(|id| is_id(id));
        ids.extend(id.map(str::to_owned));
    }
    Ok(ids)
}
