//! The token of a server in use: sent to that server alone, and renewed when it ends.

use reqwest::header::HeaderValue;
use reqwest::{Client, Url};
use tokio::sync::Mutex;

use super::tokens::{Kept, Tokens};
use super::{LoginError, ask_token, client};
use crate::mcp::http::is_loopback;
use crate::mcp::words::Secrets;

/// The login to one server.
pub(in crate::mcp) struct Session {
    url: Url,
    tokens: Tokens,
    client: Client,
    kept: Mutex<Option<Kept>>,
}

impl Session {
    pub(super) async fn open(url: &Url, tokens: Tokens) -> Result<Self, LoginError> {
        let kept = tokens.find(url.as_str()).await?;
        let client = client(is_loopback(url)).await?;
        Ok(Session { url: url.clone(), tokens, client, kept: Mutex::new(kept) })
    }

    /// Whether somebody has logged in.
    pub(in crate::mcp) async fn is_logged_in(&self) -> bool {
        self.kept.lock().await.is_some()
    }

    /// What a request to the server carries, if somebody has logged in. What the server may repeat of it is hidden.
    pub(in crate::mcp) async fn bearer(&self, secrets: &Secrets) -> Option<HeaderValue> {
        let mut kept = self.kept.lock().await;
        if kept.as_ref()?.is_stale() {
            // Its last moments are better than nothing.
            let _ = self.renew_locked(&mut kept).await;
        }
        let kept = kept.as_ref()?;
        // Encryption is wanted of the server as of all others.
        if self.url.scheme() != "https" && !is_loopback(&self.url) {
            return None;
        }
        secrets.add(&kept.access_token);
        let mut value = HeaderValue::from_str(&format!("Bearer {}", kept.access_token)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Renews the token that the server did not take. Tells whether there is another one now.
    pub(in crate::mcp) async fn renew(&self, refused: &HeaderValue) -> bool {
        let mut kept = self.kept.lock().await;
        let is_other =
            |kept: &Option<Kept>| kept.as_ref().is_some_and(|kept| *refused != format!("Bearer {}", kept.access_token));
        // Somebody else may have been faster: in this process, or in another.
        if is_other(&kept) {
            return true;
        }
        if let Ok(found) = self.tokens.find(self.url.as_str()).await
            && is_other(&found)
        {
            *kept = found;
            return true;
        }
        self.renew_locked(&mut kept).await.is_ok()
    }

    async fn renew_locked(&self, kept: &mut Option<Kept>) -> Result<(), LoginError> {
        let mut new = kept.clone().ok_or(LoginError::NotOffered)?;
        let refresh = new.refresh_token.clone().ok_or(LoginError::NotOffered)?;
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        let answer = ask_token(&self.client, &new, &form).await?;
        new.take(&answer)?;
        *kept = Some(new.clone());
        // One that cannot be kept is still good for this session.
        let _ = self.tokens.keep(self.url.as_str(), Some(new)).await;
        Ok(())
    }
}
