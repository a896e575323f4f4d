//! Lists of the sessions of a directory.

use std::fs;
use std::io;
use std::path::Path;

use super::super::{Cursor, Page, Query};
use super::{FileStore, Outline, StoreError, is_id};

/// Lists sessions. A log that cannot be read at all is left out.
pub(super) fn list(store: &FileStore, query: &Query) -> Result<Page, StoreError> {
    let directory = &store.directory;
    let after: Option<Cursor> = query.cursor.as_deref().map(str::parse).transpose()?;
    let mut found = Vec::new();
    for id in ids(directory).map_err(|error| StoreError::io(directory, error))? {
        let Ok(outline) = Outline::read(&store.log_path(&id)) else { continue };
        if !store.is_everyones && outline.owner() != Some(&store.owner) {
            continue;
        }
        let place = Cursor { updated: outline.updated, id };
        let Some(summary) = outline.summary(&place.id) else { continue };
        let is_wanted = query.cwd.as_ref().is_none_or(|cwd| *cwd == summary.cwd);
        if is_wanted && after.as_ref().is_none_or(|after| place < *after) {
            found.push((place, summary));
        }
    }
    found.sort_unstable_by(|one, other| other.0.cmp(&one.0));
    let limit = query.limit.max(1);
    let next = (found.len() > limit).then(|| found[limit - 1].0.to_string());
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
