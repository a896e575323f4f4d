//! Patterns of file names, as `find_files` and `search_files` take them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::tools::Refusal;

/// Longer patterns are not written by anybody, and cost time for every file.
const LONGEST: usize = 1_000;

/// A pattern of file names. One without `/` is for names in any directory.
#[derive(Debug)]
pub(super) struct Pattern {
    glob: GlobMatcher,
    is_name: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self, Refusal> {
        let shown = attache_host::permission::visible(&crate::workspace::shortened(pattern, 100));
        if pattern.is_empty() || pattern.len() > LONGEST {
            return Err(Refusal("the pattern is empty or too long".into()));
        }
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        if pattern.starts_with('/') || pattern.split('/').any(|name| name == "..") {
            return Err(Refusal(format!(
                "the pattern `{shown}` leads out of the directory\nhint: give the directory as `path`"
            )));
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| Refusal(format!("the pattern `{shown}` is not understood: {}", error.kind())))?;
        Ok(Pattern { glob: glob.compile_matcher(), is_name: !pattern.contains('/') })
    }

    /// Whether it is for this file, given from the directory of the search.
    pub(super) fn is_for(&self, relative: &Path) -> bool {
        match relative.file_name() {
            Some(name) if self.is_name => self.glob.is_match(name),
            _ => self.glob.is_match(relative),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn patterns_are_for_names_or_for_paths() {
        for (pattern, path, expected) in [
            ("*.rs", "main.rs", true),
            ("*.rs", "src/deep/main.rs", true),
            ("./*.rs", "src/main.rs", true),
            ("src/*.rs", "src/main.rs", true),
            ("src/*.rs", "src/deep/main.rs", false),
            ("src/**/*.rs", "src/deep/main.rs", true),
            ("src/**/*.rs", "src/main.rs", true),
            ("**/*.{rs,toml}", "a/Cargo.toml", true),
            ("[ab].txt", "a.txt", true),
            ("*", ".hidden", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().is_for(Path::new(path)), expected, "{pattern} {path}");
        }
        for pattern in ["", "/etc/*", "../*", "a/../b", "[", "{a", &"a".repeat(2000)] {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
    }
}
