//! What the model has seen of each file, so that it changes nothing that it does not know.

use std::collections::HashMap;
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

/// By the file's path without links.
pub(super) type Seen = HashMap<PathBuf, Digest>;

impl Workspace {
    /// Notes that the model knows this to be the content.
    pub(crate) fn note_seen(&self, target: &Target, content: &str) {
        let digest = Digest::of(content);
        self.seen().insert(target.real.clone(), digest);
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
        if self.seen().get(&target.real) == Some(&Digest::of(content)) {
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
        let moved: Vec<(PathBuf, Digest)> = seen
            .extract_if(|path, _| path.starts_with(from))
            .map(|(path, digest)| (renamed(&path, from, to), digest))
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
