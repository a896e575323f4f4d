//! What the model has seen of each file, so that it changes nothing that it does not know.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{Target, Workspace};
use crate::tools::Refusal;

/// The content of a file, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(content: &str) -> Self {
        Digest(Sha256::digest(content).into())
    }
}

/// What the model has seen of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    digest: Digest,
    /// The lines that it was shown, counted from 0; sorted, and apart from each other.
    lines: Vec<Range<usize>>,
    /// How many lines there are.
    count: usize,
}

impl Known {
    fn is_whole(&self) -> bool {
        self.count == 0 || self.lines.first().is_some_and(|lines| lines.start == 0 && lines.end >= self.count)
    }

    fn add(&mut self, lines: Vec<Range<usize>>) {
        self.lines.extend(lines);
        self.lines.sort_by_key(|lines| lines.start);
        self.lines.dedup_by(|next, before| {
            let joins = next.start <= before.end;
            if joins {
                before.end = before.end.max(next.end);
            }
            joins
        });
    }
}

/// By the file's path without links.
pub(super) type Seen = HashMap<PathBuf, Known>;

impl Workspace {
    /// Notes that the model was shown these lines of the content, counted from 0.
    pub(crate) fn note_seen(&self, target: &Target, content: &str, lines: Vec<Range<usize>>) {
        let digest = Digest::of(content);
        let fresh = Known { digest, lines: Vec::new(), count: content.lines().count() };
        let mut seen = self.seen();
        let known = seen.entry(target.real.clone()).or_insert_with(|| fresh.clone());
        if known.digest != digest {
            *known = fresh;
        }
        known.add(lines);
    }

    /// Notes that the model has written this, and whether it knows all of it.
    pub(crate) fn note_written(&self, target: &Target, content: &str, knows_all: bool) {
        let count = content.lines().count();
        let lines = if knows_all { std::iter::once(0..count).collect() } else { Vec::new() };
        self.seen().insert(target.real.clone(), Known { digest: Digest::of(content), lines, count });
    }

    /// Whether the model has seen all of the file.
    pub(crate) fn check_whole(&self, target: &Target) -> Result<(), Refusal> {
        if self.seen().get(&target.real).is_some_and(Known::is_whole) {
            return Ok(());
        }
        Err(Refusal(format!(
            "only a part of `{}` has been read: read all of it before writing it anew, or use edit_file",
            target.name
        )))
    }

    /// Whether the model has ever seen the file.
    pub(crate) fn check_read(&self, target: &Target) -> Result<(), Refusal> {
        if self.seen().contains_key(&target.real) {
            return Ok(());
        }
        Err(Refusal(format!(
            "`{}` exists and has not been read in this session: read it before changing it",
            target.name
        )))
    }

    /// Whether the content is what the model has seen last.
    pub(crate) fn check_seen(&self, target: &Target, content: &str) -> Result<(), Refusal> {
        if self.seen().get(&target.real).is_some_and(|known| known.digest == Digest::of(content)) {
            return Ok(());
        }
        Err(changed(target))
    }

    pub(crate) fn forget(&self, target: &Target) {
        self.seen().retain(|path, _| !path.starts_with(&target.real));
    }

    /// Forgets a file by its path without links: it is not what the model knows any more.
    pub(crate) fn forget_path(&self, real: &Path) {
        self.seen().remove(real);
    }

    /// What was seen of something that has been moved.
    pub(crate) fn follow_move(&self, from: &Path, to: &Path) {
        let mut seen = self.seen();
        let moved: Vec<(PathBuf, Known)> = seen
            .extract_if(|path, _| path.starts_with(from))
            .map(|(path, known)| (renamed(&path, from, to), known))
            .collect();
        seen.extend(moved);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        crate::lock(&self.seen)
    }
}

/// What the model is told when a file is not what it was.
pub(crate) fn changed(target: &Target) -> Refusal {
    Refusal(format!("`{}` has changed since it was read: read it again, then make the change", target.name))
}

fn renamed(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        Ok(rest) if !rest.as_os_str().is_empty() => to.join(rest),
        _ => to.to_owned(),
    }
}
