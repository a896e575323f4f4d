//! The person's pager.

use std::io;
use std::process::Command;

use super::foreground;

/// Shows a text that is harmless already in the person's pager, on their terminal, and returns when they have left it.
pub(crate) async fn show(text: String) -> io::Result<()> {
    let chosen = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let words: Vec<String> = chosen
        .as_deref()
        .unwrap_or(if cfg!(windows) { "more" } else { "less" })
        .split_whitespace()
        .map(String::from)
        .collect();
    let [program, arguments @ ..] = words.as_slice() else { return Err(io::ErrorKind::NotFound.into()) };
    let mut command = Command::new(crate::agents::catalog::startable(program));
    // Secure: it shows a text and does nothing else, whatever keys are pressed.
    command.args(arguments).env("LESSSECURE", "1");
    foreground::run(command, Some(text)).await.map(drop)
}
