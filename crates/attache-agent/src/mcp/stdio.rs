//! Servers that are programs: starting them, and reading lines of bounded length from them.

use std::ffi::OsStr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use attache::model::McpServerStdio;
use attache::process::{Command, Process};
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};

use super::words::{MAX_MESSAGE, Reason, Trouble};

/// The keys of model providers. They are ours to use, and no business of a server's.
const KEYS: &[&str] = &[
    "AIHUBMIX_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "BEDROCK_API_KEY",
    "BIGMODEL_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "KIMI_API_KEY",
    "MINIMAX_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NEBIUS_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "OPEN_ROUTER_API_KEY",
    "PERPLEXITY_API_KEY",
    "TOGETHER_API_KEY",
    "VERTEX_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
];

pub(super) type Pipes = AsyncRwTransport<RoleClient, Bounded<ChildStdout>, ChildStdin>;

/// Starts the program. Off the runtime's threads, because starting takes milliseconds.
pub(super) async fn start(server: &McpServerStdio, cwd: &Path, reason: Reason) -> Result<(Process, Pipes), Trouble> {
    let command = command(server, cwd);
    let started = tokio::task::spawn_blocking(move || command.spawn()).await;
    let (process, stdin, stdout) = started
        .map_err(|_| Trouble::Closed)?
        .map_err(|error| Trouble::Launch(super::words::plain(&error.to_string())))?;
    let stdout = Bounded { inner: stdout, line: 0, max: MAX_MESSAGE, reason };
    Ok((process, AsyncRwTransport::new_client(stdout, stdin)))
}

fn command(server: &McpServerStdio, cwd: &Path) -> Command {
    let mut command = Command::new(&server.command).args(&server.args).cwd(cwd).clear_env();
    for (name, value) in std::env::vars_os().filter(|(name, _)| !is_key(name)) {
        command = command.env(name, value);
    }
    // What is configured for the server is meant for it, whatever its name.
    for variable in &server.env {
        command = command.env(&variable.name, variable.value.expose());
    }
    command
}

fn is_key(name: &OsStr) -> bool {
    KEYS.iter().any(|key| name.eq_ignore_ascii_case(key))
}

/// Ends at a line that is too long.
pub(super) struct Bounded<R> {
    inner: R,
    /// How much of the line at hand has been read.
    line: usize,
    max: usize,
    reason: Reason,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if self.line > self.max {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let new = &buf.filled()[before..];
        let first = new.iter().position(|byte| *byte == b'\n').unwrap_or(new.len());
        if self.line + first > self.max {
            self.line += first;
            let _ = self.reason.set(Trouble::TooLong);
            buf.set_filled(before);
            return Poll::Ready(Ok(()));
        }
        self.line = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => new.len() - last - 1,
            None => self.line + new.len(),
        };
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_the_end() {
        let check = async |input: &str, kept: &str, is_ended: bool| {
            let reason = Reason::default();
            // Byte by byte, so that lines come in pieces.
            let inner = tokio_stream(input);
            let mut bounded = Bounded { inner, line: 0, max: 4, reason: reason.clone() };
            let mut text = String::new();
            bounded.read_to_string(&mut text).await.unwrap();
            assert_eq!((text.as_str(), reason.get().is_some()), (kept, is_ended), "{input:?}");
        };
        check("1234\n12\n1234\n", "1234\n12\n1234\n", false).await;
        check("12\n12345\n1\n", "12\n1234", true).await;
        check("", "", false).await;
    }

    fn tokio_stream(input: &str) -> impl AsyncRead + Unpin + use<> {
        let mut parts: Box<dyn AsyncRead + Unpin + Send> = Box::new(tokio::io::empty());
        for byte in input.bytes().rev() {
            parts = Box::new(std::io::Cursor::new([byte]).chain(parts));
        }
        parts
    }

    #[test]
    fn keys_of_model_providers_stay_here() {
        assert!(is_key(OsStr::new("OPENAI_API_KEY")) && is_key(OsStr::new("anthropic_api_key")));
        assert!(!is_key(OsStr::new("PATH")) && !is_key(OsStr::new("BRAVE_API_KEY")));
    }

    #[test]
    fn what_is_shown_of_a_command_has_no_values() {
        let server = McpServerStdio {
            env: vec![attache::model::EnvVariable::new("TOKEN", attache::model::Secret::from("hidden-value"))],
            ..McpServerStdio::new("s", "c")
        };
        let shown = format!("{:?} {server:?}", command(&server, Path::new("/")));
        assert!(shown.contains("TOKEN") && !shown.contains("hidden-value"));
    }
}
