//! What a list shows of a session, kept beside its log so that lists need not read logs.
//!
//! The log is the truth. An outline says how far into the log it goes; what was added since is read from the log. It is
//! written by whoever has the log open for writing, and made anew from the log where it is missing or wrong.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use attache::private;
use attache::proto::json::RawJson;
use serde::{Deserialize, Serialize};

use super::super::{Entry, Listed, Opened, StoreError, Summary};
use super::record::{self, Record};
use super::scan::{Position, scan};

/// Larger outlines are not read: nobody writes such titles and paths.
const MAX_SIZE: u64 = 1 << 20;

/// A summary that grows with its log.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Outline {
    /// How far into the log it goes.
    pub(super) end: Position,
    /// The time of the last record.
    pub(super) updated: u64,
    opened: Option<Opened>,
    title: Option<String>,
    first_prompt: Option<String>,
    prompts: u64,
}

impl Outline {
    /// The outline of a log: from the file beside it as far as that goes, from the log for the rest.
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::io(path, error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        if let Some(mut outline) = Outline::load(path).filter(|outline| outline.end.offset <= length)
            && (outline.end.offset == length || outline.go_on(path, &file).is_ok_and(|has_damage| !has_damage))
        {
            return Ok(outline);
        }
        let mut outline = Outline::default();
        outline.go_on(path, &file)?;
        Ok(outline)
    }

    /// Reads on in the log, up to its end or to damage. Says whether there is damage.
    fn go_on(&mut self, path: &Path, file: &File) -> Result<bool, StoreError> {
        let extent = scan(path, file, self.end, |record| {
            self.add(record);
            Ok(())
        })?;
        self.end = extent.end;
        Ok(extent.damage.is_some())
    }

    /// Takes a record into account.
    pub(super) fn add(&mut self, record: Record<'_>) {
        self.updated = record.time;
        // Most records are pieces of text: that they say nothing to a list is seen by how they begin.
        let says_something = ["opened", "prompt", "title"]
            .iter()
            .any(|tag| record.entry.strip_prefix("{\"type\":\"").is_some_and(|rest| rest.starts_with(tag)));
        if !says_something {
            return;
        }
        let Ok(json) = RawJson::new(record.entry) else { return };
        let entry = Entry::from_json(json);
        let Listed { title, is_prompt, beginning } = entry.listed();
        self.title = title.or(self.title.take());
        self.prompts += u64::from(is_prompt);
        self.first_prompt = self.first_prompt.take().or(beginning);
        if let (Entry::Opened(opened), None) = (entry, &self.opened) {
            self.opened = Some(opened);
        }
    }

    /// Whose session it is.
    pub(super) fn owner(&self) -> Option<&String> {
        Some(&self.opened.as_ref()?.owner)
    }

    /// What a list shows. `None` for a log that does not even begin.
    pub(super) fn summary(self, id: &str) -> Option<Summary> {
        let Opened { cwd, directories, created, .. } = self.opened?;
        Some(Summary {
            id: id.to_owned(),
            cwd,
            directories,
            title: self.title.or(self.first_prompt),
            created,
            updated: record::rfc3339(self.updated),
            prompts: self.prompts,
        })
    }

    fn load(log: &Path) -> Option<Self> {
        let mut text = Vec::new();
        File::open(path_of(log)).ok()?.take(MAX_SIZE).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Writes the file beside the log, whole or not at all.
    pub(super) fn save(&self, log: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        let path = path_of(log);
        let draft = log.with_extension("json.new");
        let mut file = private::create(&draft)?;
        file.write_all(&text).and_then(|()| fs::rename(&draft, &path)).inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
    }

    /// Removes the file beside the log, if there is one.
    pub(super) fn remove(log: &Path) -> io::Result<()> {
        match fs::remove_file(path_of(log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn path_of(log: &Path) -> PathBuf {
    log.with_extension("json")
}
