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
    state: Mutex<State>,
}

/// What is known of the login.
#[derive(Clone, Default)]
struct State {
    kept: Option<Kept>,
    /// The token that was in the file when we last looked: another one there is somebody else's work.
    filed: Option<String>,
}

impl Session {
    pub(super) async fn open(url: &Url, tokens: Tokens) -> Result<Self, LoginError> {
        let kept = tokens.find(url.as_str()).await?;
        let client = client(is_loopback(url)).await?;
        let filed = kept.as_ref().map(|kept| kept.access_token.clone());
        Ok(Session { url: url.clone(), tokens, client, state: Mutex::new(State { kept, filed }) })
    }

    /// Whether somebody has logged in.
    pub(in crate::mcp) async fn is_logged_in(&self) -> bool {
        self.state.lock().await.kept.is_some()
    }

    /// What a request to the server carries, if somebody has logged in. What the server may repeat of it is hidden.
    pub(in crate::mcp) async fn bearer(&self, secrets: &Secrets) -> Option<HeaderValue> {
        let mut state = self.state.lock().await;
        if state.kept.as_ref()?.is_stale() {
            // Its last moments are better than nothing.
            let _ = self.renew_locked(&mut state).await;
        }
        let kept = state.kept.as_ref()?;
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
        let mut state = self.state.lock().await;
        let is_other =
            |state: &State| state.kept.as_ref().is_some_and(|kept| *refused != format!("Bearer {}", kept.access_token));
        // Somebody else may have been faster.
        if !is_other(&state) {
            let _ = self.renew_locked(&mut state).await;
        }
        is_other(&state)
    }

    /// Renews the token. What was begun is brought to its end also if nobody waits for it any more: the answer to a request
    /// that was made is the only one with the next token in it.
    async fn renew_locked(&self, state: &mut State) -> Result<(), LoginError> {
        let renewal = renewed(self.url.clone(), self.tokens.clone(), self.client.clone(), state.clone());
        *state = tokio::spawn(renewal).await.map_err(|_| LoginError::Failed("the work was cut off".into()))??;
        Ok(())
    }
}

/// The login with another token: one that somebody else has got meanwhile, here or in another process, or a new one. Each
/// is asked for once: a server that sees one used twice ends the login.
async fn renewed(url: Url, tokens: Tokens, client: Client, mut state: State) -> Result<State, LoginError> {
    let _lock = tokens.lock_renewal(url.as_str()).await?;
    if let Ok(found) = tokens.find(url.as_str()).await {
        let filed = found.as_ref().map(|found| found.access_token.clone());
        if filed != state.filed {
            state = State { kept: found, filed };
            if state.kept.as_ref().is_none_or(|kept| !kept.is_stale()) {
                return Ok(state);
            }
        }
    }
    let mut new = state.kept.ok_or(LoginError::NotOffered)?;
    let refresh = new.refresh_token.clone().ok_or(LoginError::NotOffered)?;
    let form = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
    new.take(&ask_token(&client, &new, &form).await?)?;
    // One that cannot be kept is still good for this session.
    let is_filed = tokens.keep(url.as_str(), Some(new.clone())).await.is_ok();
    let filed = if is_filed { Some(new.access_token.clone()) } else { state.filed };
    Ok(State { kept: Some(new), filed })
}
