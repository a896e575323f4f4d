//! Programs that a person starts by a key and that get the terminal: the editor; and the clipboard.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::time::Duration;

use attache::private;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::oneshot;

use crate::client::foreground;

/// The largest image that is taken from the clipboard.
const LARGEST_IMAGE: u64 = 10 << 20;

/// The longest message that is read back from an editor.
const LONGEST_MESSAGE: u64 = 8 << 20;

/// How long the clipboard may take.
const CLIPBOARD_PATIENCE: Duration = Duration::from_secs(5);

/// The person's editor and its arguments.
fn editor() -> Vec<String> {
    let set =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()));
    set.as_deref()
        .unwrap_or(if cfg!(windows) { "notepad" } else { "vi" })
        .split_whitespace()
        .map(String::from)
        .collect()
}

async fn run_editor(arguments: &[String]) -> io::Result<()> {
    let words = editor();
    let [program, own @ ..] = words.as_slice() else { return Err(io::ErrorKind::NotFound.into()) };
    let mut command = StdCommand::new(crate::agents::catalog::startable(program));
    command.args(own).args(arguments);
    let status = foreground::run(command, None).await;
    let status = status.map_err(|error| io::Error::other(format!("`{program}`: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("`{program}` ended with {status}"))),
    }
}

/// Has a text edited, and returns it.
pub(super) async fn edit(text: &str) -> io::Result<String> {
    let directory = crate::paths::state().map_err(io::Error::other)?.join("chat");
    crate::paths::private_directory(&directory)?;
    let path = directory.join(format!("message-{}.md", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut file = private::create_new(&path)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    let edited = run_editor(&[path.display().to_string()]).await;
    let mut text = String::new();
    let read = std::fs::File::open(&path).and_then(|file| file.take(LONGEST_MESSAGE).read_to_string(&mut text));
    let _ = std::fs::remove_file(&path);
    edited?;
    read?;
    Ok(text.trim_end().to_owned())
}

/// Opens a file at a line. The path is absolute, so no editor takes it for an option.
pub(super) async fn open(path: &Path, line: Option<u32>) -> io::Result<()> {
    // The editor of Windows would take the number for a file.
    let takes_line = editor().first().is_some_and(|program| program != "notepad");
    let line = line.filter(|line| *line > 0 && takes_line).map(|line| format!("+{line}"));
    let arguments: Vec<String> = line.into_iter().chain([path.display().to_string()]).collect();
    run_editor(&arguments).await
}

/// Stops us, as Ctrl-Z does; returns when the shell lets us go on.
#[cfg(unix)]
pub(super) fn stop() {
    // The one that cannot be caught: the other one is how we are asked to do this.
    // SAFETY: raising a signal has no preconditions.
    unsafe { libc::raise(libc::SIGSTOP) };
}

#[cfg(not(unix))]
pub(super) fn stop() {}

/// What puts a text into the clipboard of the terminal, also over ssh.
pub(super) fn clipboard(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", attache::proto::base64::encode(text.as_bytes()))
}

/// Asks the programs that know the clipboard for an image.
pub(super) fn clipboard_image() -> oneshot::Receiver<super::Image> {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let programs: [(&str, &[&str]); 3] = [
            ("wl-paste", &["--no-newline", "--type", "image/png"]),
            ("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
            ("pngpaste", &["-"]),
        ];
        let read = async {
            for (program, arguments) in programs {
                if let Some(bytes) = read_image(program, arguments).await {
                    return Some(bytes);
                }
            }
            None
        };
        let image = match tokio::time::timeout(CLIPBOARD_PATIENCE, read).await {
            Ok(Some(bytes)) => Ok(("image/png".to_owned(), bytes)),
            _ => Err("there is no image in the clipboard, or no wl-paste, xclip or pngpaste to ask".to_owned()),
        };
        let _ = sender.send(image);
    });
    receiver
}

/// What a program prints, if it is an image. It ends when nobody waits for it any more.
async fn read_image(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    #[cfg(target_os = "linux")]
    // SAFETY: a plain system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn().ok()?;
    let mut bytes = Vec::new();
    child.stdout.take()?.take(LARGEST_IMAGE).read_to_end(&mut bytes).await.ok()?;
    bytes.starts_with(b"\x89PNG").then_some(bytes)
}
