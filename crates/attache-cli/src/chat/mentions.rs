//! Files that can be named with `@`.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use ignore::WalkBuilder;

/// How many files are offered at most. Who has more types the path.
const MOST_FILES: usize = 50_000;

/// The longest file of rules about what is left out that is read.
const LONGEST_RULES: u64 = 128 << 10;

/// The files beneath a directory, found in the background.
pub(crate) struct Files {
    coming: mpsc::Receiver<Vec<String>>,
    found: Vec<String>,
}

impl Files {
    /// Looks for them: what git ignores and what is hidden is left out, links are not followed.
    pub(crate) fn look(root: &Path) -> Self {
        let (sender, coming) = mpsc::channel();
        let root: PathBuf = root.to_owned();
        // It ends when nobody wants the files any more, or when they have all been seen.
        let _ = thread::Builder::new().name("files".into()).spawn(move || {
            let mut batch = Vec::new();
            // Rules take hundreds of times their length in memory; nobody writes so many by hand.
            let has_rules = |name: &str| root.join(name).metadata().is_ok_and(|file| file.len() > LONGEST_RULES);
            let is_plain = [".gitignore", ".ignore"].iter().any(|name| has_rules(name));
            let walk = WalkBuilder::new(&root)
                .follow_links(false)
                .require_git(false)
                .git_ignore(!is_plain)
                .ignore(!is_plain)
                .max_depth(Some(32))
                .build();
            let files =
                walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
            for entry in files.take(MOST_FILES) {
                let Some(path) = entry.path().strip_prefix(&root).ok().and_then(Path::to_str) else { continue };
                batch.push(path.to_owned());
                if batch.len() >= 1000 && sender.send(std::mem::take(&mut batch)).is_err() {
                    return;
                }
            }
            let _ = sender.send(batch);
        });
        Files { coming, found: Vec::new() }
    }

    /// Those that are known by now.
    pub(crate) fn found(&mut self) -> &[String] {
        while let Ok(more) = self.coming.try_recv() {
            self.found.extend(more);
        }
        &self.found
    }
}
