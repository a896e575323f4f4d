//! Lists of models, kept for a day so that nobody waits for them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache::private;
use serde::{Deserialize, Serialize};

use super::{Listed, MOST_MODELS, is_plain};

/// How long a list is taken for new.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// A longer file is none of ours.
const MOST_BYTES: usize = 2 << 20;

/// Where lists are kept: a file for each provider.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    directory: PathBuf,
}

/// A list that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// When it was fetched, in seconds since 1970.
    fetched: u64,
    /// Where from: another address has other models.
    base_url: String,
    pub(crate) models: Vec<Listed>,
}

impl Kept {
    /// Whether it is too old to go by.
    pub(crate) fn is_stale(&self) -> bool {
        let now = seconds();
        // A clock that was set back makes everything old.
        self.fetched > now || now - self.fetched > FRESH.as_secs()
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Cache {
    /// The lists that are kept in a directory.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Cache { directory: state_dir.join("agent").join("models") }
    }

    /// The list of a provider at an address.
    pub(crate) fn read(&self, provider: &str, base_url: &str) -> Option<Kept> {
        let bytes = attache_host::files::read_named(&self.file(provider)?, None, MOST_BYTES).ok()?;
        let mut kept: Kept = serde_json::from_slice(&bytes).ok()?;
        kept.models.retain(|model| is_plain(&model.name));
        kept.models.truncate(MOST_MODELS);
        (kept.base_url == base_url && !kept.models.is_empty()).then_some(kept)
    }

    /// Keeps a list, all at once. A disk that takes nothing is no reason to fail.
    pub(crate) fn write(&self, provider: &str, base_url: &str, models: &[Listed]) -> Kept {
        let kept = Kept { fetched: seconds(), base_url: base_url.to_owned(), models: models.to_vec() };
        let write = || {
            let file = self.file(provider)?;
            private::create_directory(&self.directory).ok()?;
            let temporary = file.with_extension(format!("{}.tmp", crate::random_word()));
            let text = serde_json::to_vec(&kept).ok()?;
            let replace = || {
                let mut open = private::create_new(&temporary)?;
                open.write_all(&text)?;
                fs::rename(&temporary, &file)
            };
            replace().inspect_err(|_| drop(fs::remove_file(&temporary))).ok()
        };
        let _ = write();
        kept
    }

    fn file(&self, provider: &str) -> Option<PathBuf> {
        let is_name = provider.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
        (is_name && !provider.is_empty()).then(|| self.directory.join(format!("{provider}.json")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_list_is_kept_for_its_address_and_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let models = [Listed { name: "m".into(), context: Some(8_000), ..Listed::default() }];
        cache.write("acme", "http://a/", &models);
        let kept = cache.read("acme", "http://a/").unwrap();
        assert_eq!((kept.models.as_slice(), kept.is_stale()), (models.as_slice(), false));
        assert_eq!(cache.read("acme", "http://b/"), None);
        assert_eq!(cache.read("../acme", "http://a/"), None);
        let old = Kept { fetched: seconds() - FRESH.as_secs() - 1, ..kept.clone() };
        let ahead = Kept { fetched: seconds() + 1_000, ..kept };
        assert!(old.is_stale() && ahead.is_stale());
    }

    #[test]
    fn what_is_no_list_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        cache.write("acme", "u", &[Listed { name: "bad\u{1b}name".into(), ..Listed::default() }]);
        assert_eq!(cache.read("acme", "u"), None);
        fs::write(cache.file("acme").unwrap(), "{").unwrap();
        assert_eq!(cache.read("acme", "u"), None);
    }
}
