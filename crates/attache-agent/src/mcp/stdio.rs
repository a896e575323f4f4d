//! Servers that are programs: starting them, and reading lines of bounded length from them.

use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use attache::model::mcp::McpServerStdio;
use attache::process::{Command, Process, SpawnError};
use attache_host::environment;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{ChildStdin, ChildStdout};

use super::words::{MAX_MESSAGE, Reason, Trouble};

pub(super) type Pipes = AsyncRwTransport<RoleClient, Bounded<ChildStdout>, ChildStdin>;

/// Starts the program. Off the runtime's threads, because starting takes milliseconds.
pub(super) async fn start(server: &McpServerStdio, cwd: &Path, reason: Reason) -> Result<(Process, Pipes), Trouble> {
    let command = command(server, cwd);
    let started = crate::spawn_blocking(move || command.spawn()).await;
    let (process, stdin, stdout) = started
        .map_err(|_| Trouble::Closed)?
        .map_err(|error| Trouble::Launch(super::words::plain(&why(&error, &server.command))))?;
    let stdout = Bounded { inner: stdout, line: 0, max: MAX_MESSAGE, reason };
    Ok((process, AsyncRwTransport::new_client(stdout, stdin)))
}

/// Why the program was not started, without its arguments: there are keys in them.
fn why(error: &SpawnError, program: &str) -> String {
    match error {
        SpawnError::Io { source, .. } => format!("cannot start `{program}`: {source}"),
        error => error.to_string(),
    }
}

fn command(server: &McpServerStdio, cwd: &Path) -> Command {
    // Keys are ours and the person's to use, and no business of a server's.
    let mut command = environment::start_from(Command::new(&server.command).args(&server.args).cwd(cwd), &[]);
    // What is configured for the server is meant for it, whatever its name.
    for variable in &server.env {
        command = command.env(&variable.name, variable.value.expose());
    }
    command
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

    // On Unix, because `sh` is always there.
    #[cfg(unix)]
    #[tokio::test]
    async fn arguments_are_not_told_when_a_program_cannot_be_started() {
        let server = McpServerStdio::new("s", "sh").args(["--token", "hidden-value\0"]);
        let trouble = start(&server, Path::new("/"), Reason::default()).await.err().unwrap().to_string();
        assert!(trouble.starts_with("cannot start `sh`: ") && !trouble.contains("hidden"), "{trouble}");
    }

    #[test]
    fn what_is_shown_of_a_command_has_no_values() {
        let server = McpServerStdio::new("s", "c")
            .env([attache::model::mcp::EnvVariable::new("TOKEN", attache::model::Secret::from("hidden-value"))]);
        let shown = format!("{:?} {server:?}", command(&server, Path::new("/")));
        assert!(shown.contains("TOKEN") && !shown.contains("hidden-value"));
    }
}
