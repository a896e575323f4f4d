//! Where logins are kept: a file that only its owner can read, one entry a server. Never shown.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache::private;
use attache_host::own_files;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{LIMIT, LoginError};
use crate::open_lock;

/// A token that ends sooner than this is renewed before it is used.
const EARLY: Duration = Duration::from_secs(30);

/// The longest token that is kept.
const MAX_TOKEN: usize = 16 << 10;

/// A login to one server. Not to be shown, so it has no `Debug`.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    #[serde(default)]
    pub(super) is_basic: bool,
    pub(super) resource: String,
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// When the token ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
}

impl Kept {
    /// Takes the tokens of an answer. Without a new one to renew it by, the old one stays.
    pub(super) fn take(&mut self, answer: &Value) -> Result<(), LoginError> {
        let is_token = |token: &&str| {
            !token.is_empty() && token.len() <= MAX_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let token = answer["access_token"].as_str().filter(is_token).ok_or(LoginError::Nonsense("token"))?;
        let is_bearer = answer["token_type"].as_str().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            return Err(LoginError::Nonsense("token"));
        }
        self.access_token = token.to_owned();
        if let Some(refresh) = answer["refresh_token"].as_str().filter(is_token) {
            self.refresh_token = Some(refresh.to_owned());
        }
        self.expires_at = answer["expires_in"].as_u64().map(|seconds| now().saturating_add(seconds));
        Ok(())
    }

    /// Whether the token is about to end.
    pub(super) fn is_stale(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= now().saturating_add(EARLY.as_secs()))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The file of logins.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    file: PathBuf,
}

impl Tokens {
    pub(super) fn new(config_dir: &Path) -> Self {
        Tokens { file: config_dir.join("mcp-logins.json") }
    }

    /// The login to the server at this address.
    pub(super) async fn find(&self, url: &str) -> Result<Option<Kept>, LoginError> {
        let (tokens, url) = (self.clone(), url.to_owned());
        blocking(move || Ok(tokens.read()?.remove(&url))).await
    }

    /// Keeps the login to a server, or forgets it.
    pub(super) async fn keep(&self, url: &str, kept: Option<Kept>) -> Result<(), LoginError> {
        let (tokens, url) = (self.clone(), url.to_owned());
        blocking(move || tokens.change(url, kept)).await
    }

    /// Waits until nobody else renews the login to this server, in this process or another. Nobody does until it is dropped.
    pub(super) async fn lock_renewal(&self, url: &str) -> Result<Option<fs::File>, LoginError> {
        let file = self.renewal_file(url);
        let locking = blocking(move || match open_lock(&file) {
            Ok(lock) => lock.lock().map(|()| Some(lock)),
            // Where nothing can be written, nobody else keeps a token either.
            Err(_) => Ok(None),
        });
        // Whoever has it asks for a token, and does not wait longer for that.
        let late = |_| LoginError::Kept("`mcp-logins.json`: another process keeps it locked".into());
        tokio::time::timeout(LIMIT * 2, locking).await.map_err(late)?
    }

    fn renewal_file(&self, url: &str) -> PathBuf {
        let name: String = Sha256::digest(url).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.file.with_extension(format!("{name}.lock"))
    }

    fn read(&self) -> io::Result<BTreeMap<String, Kept>> {
        let text = match fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        if !private::is_private(&self.file)? {
            let what = format!("it can be read by others\nhint: {}", own_files::hint_to_protect(&self.file));
            return Err(io::Error::other(what));
        }
        let broken = "it is no list of logins\nhint: delete it and log in again";
        serde_json::from_slice(&text).map_err(|_| io::Error::other(broken))
    }

    /// Replaces the file, all at once, while no other process does.
    fn change(&self, url: String, kept: Option<Kept>) -> io::Result<()> {
        let lock = open_lock(&self.file.with_extension("lock"))?;
        lock.lock()?;
        let mut all = self.read()?;
        match kept {
            Some(kept) => _ = all.insert(url, kept),
            None => _ = all.remove(&url),
        }
        let temporary = self.file.with_extension(format!("{}.tmp", std::process::id()));
        // What a process left that was killed here before.
        let _ = fs::remove_file(&temporary);
        let write = || {
            let mut file = private::create_new(&temporary)?;
            file.write_all(&serde_json::to_vec_pretty(&all)?)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.file)
        };
        write().inspect_err(|_| drop(fs::remove_file(&temporary)))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, LoginError> {
    match crate::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| LoginError::Kept(format!("`mcp-logins.json`: {error}"))),
        Err(_) => Err(LoginError::Kept("the work was cut off".into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn kept(token: &str) -> Kept {
        Kept { access_token: token.into(), ..Kept::default() }
    }

    #[tokio::test]
    async fn logins_are_kept_for_their_owner_alone_one_a_server() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(&directory.path().join("attache"));
        assert!(tokens.find("https://a/").await.unwrap().is_none());
        tokens.keep("https://a/", Some(kept("one"))).await.unwrap();
        tokens.keep("https://b/", Some(kept("two"))).await.unwrap();
        assert!(private::is_private(&tokens.file).unwrap());
        assert_eq!(tokens.find("https://a/").await.unwrap().unwrap().access_token, "one");
        tokens.keep("https://a/", None).await.unwrap();
        assert!(tokens.find("https://a/").await.unwrap().is_none());
        assert_eq!(tokens.find("https://b/").await.unwrap().unwrap().access_token, "two");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_others_can_read_or_that_is_broken_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path());
        tokens.keep("https://a/", Some(kept("hidden-token"))).await.unwrap();
        fs::set_permissions(&tokens.file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = tokens.find("https://a/").await.err().unwrap().to_string();
        assert!(error.contains("can be read by others"), "{error}");
        fs::set_permissions(&tokens.file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&tokens.file, "{\"https://a/\": \"hidden-token\"}").unwrap();
        let error = format!("{:?}", tokens.find("https://a/").await.err().unwrap());
        assert!(error.contains("no list of logins") && !error.contains("hidden-token"), "{error}");
    }

    #[tokio::test]
    async fn a_login_is_renewed_by_one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(&directory.path().join("attache"));
        let lock = tokens.lock_renewal("https://a/").await.unwrap();
        let is_free = |url: &str| open_lock(&tokens.renewal_file(url)).unwrap().try_lock().is_ok();
        assert_eq!((is_free("https://a/"), is_free("https://b/")), (false, true));
        // What is kept can be changed meanwhile.
        tokens.keep("https://a/", Some(kept("one"))).await.unwrap();
        drop(lock);
        assert!(is_free("https://a/"));
    }

    #[test]
    fn what_is_no_token_is_not_taken() {
        for answer in [
            json!({}),
            json!({ "access_token": "" }),
            json!({ "access_token": "a\r\nx: y" }),
            json!({ "access_token": "a b" }),
            json!({ "access_token": "x".repeat(MAX_TOKEN + 1) }),
            json!({ "access_token": "a", "token_type": "mac" }),
        ] {
            assert_eq!(Kept::default().take(&answer), Err(LoginError::Nonsense("token")));
        }
        let mut kept = Kept { refresh_token: Some("old".into()), ..Kept::default() };
        kept.take(&json!({ "access_token": "a", "token_type": "Bearer", "expires_in": 10 })).unwrap();
        assert!(kept.is_stale() && kept.refresh_token.as_deref() == Some("old"));
        kept.take(&json!({ "access_token": "a", "expires_in": u64::MAX, "refresh_token": "new" })).unwrap();
        assert!(!kept.is_stale() && kept.refresh_token.as_deref() == Some("new"));
    }
}
