//! A program that has the person's console, which all programs in it share.

use std::io;
use std::process::{Command, ExitStatus, Stdio};

use tokio::io::AsyncWriteExt;
use windows_sys::Win32::System::Console::SetConsoleCtrlHandler;

/// Runs a program in the person's console. Ctrl-C there is for it alone meanwhile. It ends when this is dropped.
pub(crate) async fn run(mut command: Command, input: Option<String>) -> io::Result<ExitStatus> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    // Only now: what is started while we are deaf to Ctrl-C would be so, too.
    let _deaf = Deaf::begin();
    if let Some((mut stdin, input)) = child.stdin.take().zip(input) {
        // Who leaves before the end has seen enough.
        tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    }
    child.wait().await
}

/// Ctrl-C is not heard until this is dropped.
struct Deaf;

impl Deaf {
    fn begin() -> Self {
        // SAFETY: without a handler the call only sets whether Ctrl-C is heard.
        unsafe { SetConsoleCtrlHandler(None, 1) };
        Deaf
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { SetConsoleCtrlHandler(None, 0) };
    }
}
