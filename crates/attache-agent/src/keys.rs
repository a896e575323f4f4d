//! Keys of providers: from the environment, or from a file that only its owner can read. Never shown.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use attache::model::Secret;
use attache::private;
use attache_host::own_files;

use crate::model::catalog::Provider;

/// Where keys are kept.
///
/// ```
/// use attache_agent::Keys;
/// use attache_agent::model::catalog;
///
/// let directory = tempfile::tempdir()?;
/// let keys = Keys::new(directory.path());
/// let provider = catalog::provider("llamacpp").ok_or("no such provider")?;
/// keys.keep(provider, "sk-1234")?;
/// let key = keys.find(provider)?.ok_or("no key")?;
/// assert_eq!(key.expose(), "sk-1234");
/// // It is shown to nobody who does not ask for it by that word.
/// assert!(!format!("{key:?}").contains("1234"));
/// assert!(keys.forget(provider)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keys {
    file: PathBuf,
}

/// Why a key could not be kept or found. Says nothing of the key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file could not be read or written.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// The file is not what it should be.
    #[error("`{}` is not a valid key file\nhint: delete it and log in again", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else could read the file.
    #[error("`{}` can be read by others\nhint: {}", path.display(), own_files::hint_to_protect(path))]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// Nothing that could be a key.
    #[error("invalid API key: it is empty, or contains spaces or control characters")]
    NoKey,
}

impl Keys {
    /// The keys that are kept beside the user's settings.
    pub fn new(config_dir: &Path) -> Self {
        Keys { file: config_dir.join("keys.json") }
    }

    /// The key of a provider: from its environment variable, else the one that was kept.
    pub fn find(&self, provider: &Provider) -> Result<Option<Secret>, KeyError> {
        self.find_for(provider.name, provider.key_variables)
    }

    /// The same for any name and its variables: providers of one's own have keys, too.
    pub fn find_for(&self, name: &str, variables: &[&str]) -> Result<Option<Secret>, KeyError> {
        match set_variable(variables).and_then(|name| std::env::var(name).ok()) {
            Some(key) => Ok(Some(Secret::from(key.trim()))),
            None => Ok(self.read()?.remove(name).map(Secret::from)),
        }
    }

    /// The environment variable that has the key of a provider. It comes before a key that was kept.
    pub fn variable(provider: &Provider) -> Option<&'static str> {
        set_variable(provider.key_variables)
    }

    /// The names of the providers whose keys are kept.
    pub fn kept(&self) -> Result<Vec<String>, KeyError> {
        Ok(self.read()?.into_keys().collect())
    }

    /// Where the key of a provider comes from, in words.
    pub(crate) fn origin(&self, provider: &Provider) -> String {
        match Keys::variable(provider) {
            Some(variable) => format!("{variable} is set"),
            None => "its key is kept".into(),
        }
    }

    /// Keeps a key.
    pub fn keep(&self, provider: &Provider, key: &str) -> Result<(), KeyError> {
        self.keep_for(provider.name, key)
    }

    /// The same for any name.
    pub fn keep_for(&self, name: &str, key: &str) -> Result<(), KeyError> {
        let key = key.trim();
        if !Keys::is_key(key) {
            return Err(KeyError::NoKey);
        }
        let _lock = self.lock()?;
        let mut keys = self.read()?;
        keys.insert(name.into(), key.into());
        self.write(&keys)
    }

    /// Whether a text can be a key.
    pub fn is_key(text: &str) -> bool {
        !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control())
    }

    /// Forgets a key. Tells whether there was one.
    pub fn forget(&self, provider: &Provider) -> Result<bool, KeyError> {
        self.forget_for(provider.name)
    }

    /// The same for any name.
    pub fn forget_for(&self, name: &str) -> Result<bool, KeyError> {
        // Nothing is written, not even a lock, where there is nothing to forget.
        if !self.read()?.contains_key(name) {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let mut keys = self.read()?;
        let had = keys.remove(name).is_some();
        self.write(&keys)?;
        Ok(had)
    }

    fn read(&self) -> Result<BTreeMap<String, String>, KeyError> {
        let path = || self.file.clone();
        let text = match fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(KeyError::Io { path: path(), error }),
        };
        if !private::is_private(&self.file).map_err(|error| KeyError::Io { path: path(), error })? {
            return Err(KeyError::Open { path: path() });
        }
        serde_json::from_slice(&text).map_err(|_| KeyError::Broken { path: path() })
    }

    /// Waits until no other process changes the file. None does until it is dropped.
    fn lock(&self) -> Result<fs::File, KeyError> {
        let lock = crate::open_lock(&self.file.with_extension("lock"));
        let locked = lock.and_then(|lock| lock.lock().map(|()| lock));
        locked.map_err(|error| KeyError::Io { path: self.file.clone(), error })
    }

    /// Replaces the file, all at once.
    fn write(&self, keys: &BTreeMap<String, String>) -> Result<(), KeyError> {
        let failed = |error| KeyError::Io { path: self.file.clone(), error };
        let temporary = self.file.with_extension(format!("{}.tmp", std::process::id()));
        // What a process left that was killed here before.
        let _ = fs::remove_file(&temporary);
        let text = serde_json::to_vec_pretty(keys).map_err(|error| failed(error.into()))?;
        let write = || {
            let mut file = private::create_new(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.file)
        };
        write().inspect_err(|_| drop(fs::remove_file(&temporary))).map_err(failed)
    }
}

/// The first of these variables that is set to something.
fn set_variable<'a>(variables: &[&'a str]) -> Option<&'a str> {
    let is_set = |name: &&&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
    variables.iter().find(is_set).copied()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::model::catalog::provider;

    #[test]
    fn a_key_is_kept_for_its_owner_alone_and_forgotten_on_demand() {
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::new(&directory.path().join("attache"));
        let vllm = provider("vllm").unwrap();
        assert!(keys.find(vllm).unwrap().is_none());
        keys.keep(vllm, " secret-1\n").unwrap();
        assert_eq!(keys.find(vllm).unwrap().unwrap().expose(), "secret-1");
        assert!(private::is_private(&keys.file).unwrap());
        assert!(keys.forget(vllm).unwrap());
        assert!(!keys.forget(vllm).unwrap());
        assert!(keys.find(vllm).unwrap().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_or_that_is_broken_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::new(directory.path());
        let vllm = provider("vllm").unwrap();
        keys.keep(vllm, "secret-1").unwrap();
        fs::set_permissions(&keys.file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = keys.find(vllm).unwrap_err();
        assert!(matches!(error, KeyError::Open { .. }));
        assert!(!error.to_string().contains("secret-1"));
        fs::set_permissions(&keys.file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&keys.file, "[\"secret-1\"").unwrap();
        let error = keys.keep(vllm, "other").unwrap_err();
        assert!(matches!(error, KeyError::Broken { .. }));
        assert!(!format!("{error} {error:?}").contains("secret-1"));
    }

    #[test]
    fn keys_that_are_kept_at_the_same_time_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::new(&directory.path().join("attache"));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let keys = &keys;
                scope.spawn(move || keys.keep_for(&format!("own{number}"), "secret").unwrap());
            }
        });
        assert_eq!(keys.kept().unwrap().len(), 8);
        std::thread::scope(|scope| {
            for number in 0..7 {
                let keys = &keys;
                scope.spawn(move || assert!(keys.forget_for(&format!("own{number}")).unwrap()));
            }
        });
        assert_eq!(keys.kept().unwrap(), ["own7"]);
    }

    #[test]
    fn what_cannot_be_a_key_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let keys = Keys::new(directory.path());
        for nonsense in ["", "  ", "two words", "a\u{7}b"] {
            assert!(matches!(keys.keep(provider("vllm").unwrap(), nonsense), Err(KeyError::NoKey)));
        }
    }
}
