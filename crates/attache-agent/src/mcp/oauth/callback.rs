//! The port of 127.0.0.1 that the person's browser comes back to after a login.

use std::time::Duration;

use attache::model::Secret;
use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{LoginError, error_code};

/// The longest head of a request that is read.
const MAX_HEAD: usize = 16 << 10;

/// How long one request may take. Others of this machine can connect as well, and be silent.
const LIMIT: Duration = Duration::from_secs(5);

/// Where a browser comes back to.
pub(super) struct Callback {
    listener: TcpListener,
    address: String,
    state: String,
    issuer: String,
}

impl Callback {
    pub(super) async fn bind() -> Result<Self, LoginError> {
        let failed = |error: std::io::Error| LoginError::Failed(format!("no port to come back to: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let address = format!("http://127.0.0.1:{port}/callback");
        Ok(Callback { listener, address, state: String::new(), issuer: String::new() })
    }

    /// Where the browser is to come.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Who comes back has to say this, and to come from there.
    pub(super) fn expecting(self, state: String, issuer: String) -> Self {
        Callback { state, issuer, ..self }
    }

    /// Waits for the browser, and gives the code that it brings. Whoever does not know the state is sent away.
    pub(super) async fn code(self) -> Result<Secret, LoginError> {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(Some(path)) = timeout(LIMIT, path(&mut stream)).await else { continue };
            let came = self.read(&path);
            let (status, text) = match &came {
                Some(Ok(_)) => ("200 OK", "Logged in. You can close this window and go back."),
                Some(Err(_)) => ("200 OK", "The login failed. You can close this window and go back."),
                None => ("404 Not Found", "There is nothing here."),
            };
            let _ = timeout(LIMIT, reply(&mut stream, status, text)).await;
            if let Some(came) = came {
                return came;
            }
        }
    }

    /// What a request brings. `None` if it is not the one that is waited for.
    fn read(&self, path: &str) -> Option<Result<Secret, LoginError>> {
        let url = Url::parse("http://127.0.0.1").ok()?.join(path).ok()?;
        if url.path() != "/callback" || url.host_str() != Some("127.0.0.1") {
            return None;
        }
        let value = |key: &str| {
            let mut values = url.query_pairs().filter(|(name, _)| name == key).map(|(_, value)| value.into_owned());
            values.next().filter(|_| values.next().is_none())
        };
        if self.state.is_empty() || !is_same(&value("state")?, &self.state) {
            return None;
        }
        // Another authorization server has no code for us to bring to this one.
        if value("iss").is_some_and(|issuer| issuer.trim_end_matches('/') != self.issuer.trim_end_matches('/')) {
            return Some(Err(LoginError::Mismatch("authorization server")));
        }
        if let Some(error) = value("error") {
            return Some(Err(LoginError::Refused(error_code(&error))));
        }
        let code = value("code").filter(|code| !code.is_empty());
        Some(code.map(Secret::from).ok_or(LoginError::Nonsense("answer")))
    }
}

/// Compares without telling by its time how much was right.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// The path of a `GET`.
async fn path(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&chunk[..count]);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = std::str::from_utf8(&head).ok()?.lines().next()?.to_owned();
    let mut words = line.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

async fn reply(stream: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n",
        text.len()
    );
    stream.write_all(format!("{head}{text}").as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn only_who_knows_the_state_is_heard() {
        let callback = Callback::bind().await.unwrap().expecting("st".into(), "https://a/".into());
        let check = |path: &str, wanted: Option<Result<&str, LoginError>>| {
            let came = callback.read(path).map(|came| came.map(|code| code.expose().to_owned()));
            assert_eq!(came, wanted.map(|wanted| wanted.map(str::to_owned)), "{path}");
        };
        check("/callback?code=c&state=st", Some(Ok("c")));
        check("/callback?code=c&state=st&iss=https%3A%2F%2Fa", Some(Ok("c")));
        check("/callback?code=c&state=st&iss=https://b", Some(Err(LoginError::Mismatch("authorization server"))));
        check("/callback?error=access_denied&state=st", Some(Err(LoginError::Refused("access_denied".into()))));
        check("/callback?state=st", Some(Err(LoginError::Nonsense("answer"))));
        for nothing in [
            "/",
            "/favicon.ico",
            "/callback",
            "/callback?code=c",
            "/callback?code=c&state=s",
            "/callback?code=c&state=sx",
            "/callback?code=c&state=st&state=st",
            "//evil/callback?code=c&state=st",
            "/other?code=c&state=st",
            "\u{0}",
        ] {
            check(nothing, None);
        }
    }
}
