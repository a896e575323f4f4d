//! The person's pager.

use std::io;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Shows a text that is harmless already in the person's pager, on their terminal, and returns when they have left it.
pub(crate) async fn show(text: &str) -> io::Result<()> {
    let chosen = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let words: Vec<String> = chosen.as_deref().unwrap_or("less").split_whitespace().map(String::from).collect();
    let [program, arguments @ ..] = words.as_slice() else { return Ok(()) };
    // Secure: it shows a text and does nothing else, whatever keys are pressed.
    let mut command = Command::new(program);
    command.args(arguments).env("LESSSECURE", "1").stdin(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who leaves before the end has seen enough.
        let _ = stdin.write_all(text.as_bytes()).await;
    }
    child.wait().await.map(drop)
}
