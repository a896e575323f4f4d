//! The tokens of clients: a file with a name and a digest on each line.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_http::{Principal, Tokens, digest, new_token};

use crate::cli::TokenCommand;
use crate::exit::{Code, Failure};
use crate::paths;

/// How often the file is looked at while a server runs.
const LOOK: Duration = Duration::from_secs(1);

/// The digest of a token, and whom it stands for.
type Entry = (Principal, [u8; 32]);

/// `attache serve token`.
pub(super) fn run(command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Add { name } => {
            let token = add(&name)?;
            eprintln!("the token of `{name}`; it is shown once, and kept here as a digest only:");
            crate::print(&format!("{token}\n"))
        }
        TokenCommand::List => {
            let names = read()?.into_iter().map(|(principal, _)| principal.as_str().to_owned());
            crate::agents::print_lines(names)
        }
        TokenCommand::Remove { name } => {
            let _lock = lock()?;
            let mut entries = read()?;
            let before = entries.len();
            entries.retain(|(principal, _)| principal.as_str() != name);
            if entries.len() == before {
                return Err(Failure::new(Code::NotFound, format!("no token of `{name}`")));
            }
            write(&entries)?;
            eprintln!("removed the tokens of `{name}`; connections that are open stay open until they end");
            Ok(())
        }
    }
}

/// The tokens of a server that starts. If there are none, the first is made and shown to whoever sits there.
pub(super) fn read_or_create() -> Result<Tokens, Failure> {
    let mut entries = read()?;
    if entries.is_empty() {
        if !io::stderr().is_terminal() {
            let hint = "hint: `attache serve token add NAME` makes one for each client";
            return Err(Failure::usage(format!("there is no token, so nobody could connect\n{hint}")));
        }
        let name = std::env::var("USER").ok().filter(|name| is_name(name)).unwrap_or_else(|| "me".into());
        let token = add(&name)?;
        eprintln!("made a token for `{name}`; it is shown once:\n\n  {token}\n");
        entries = read()?;
    }
    Ok(Tokens::new(entries))
}

/// Keeps the tokens of a server as the file has them.
pub(super) async fn watch(tokens: Tokens) {
    let changed = || path().ok().and_then(|path| path.metadata().ok()).and_then(|file| file.modified().ok());
    let mut last = changed();
    loop {
        tokio::time::sleep(LOOK).await;
        let now = tokio::task::spawn_blocking(changed).await.unwrap_or(last);
        if now == last {
            continue;
        }
        // A file that cannot be read leaves what was known; one that is gone leaves nobody.
        if let Ok(Ok(entries)) = tokio::task::spawn_blocking(read).await {
            last = now;
            tokens.replace(entries);
        }
    }
}

fn path() -> Result<PathBuf, Failure> {
    Ok(paths::config()?.join("serve").join("tokens"))
}

fn add(name: &str) -> Result<String, Failure> {
    if !is_name(name) {
        return Err(Failure::usage("a name has letters, digits, `-`, `_`, `.` and `@`, 64 at most"));
    }
    let token = new_token().map_err(|error| Failure::usage(format!("cannot make a token: {error}")))?;
    let _lock = lock()?;
    let mut entries = read()?;
    entries.push((Principal::new(name), digest(&token)));
    write(&entries)?;
    Ok(token)
}

/// Keeps others from changing the file until it is dropped.
fn lock() -> Result<File, Failure> {
    let path = path()?.with_extension("lock");
    let lock = || {
        paths::private_directory(path.parent().unwrap_or(Path::new("/")))?;
        let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|error: io::Error| Failure::usage(format!("cannot lock `{}`: {error}", path.display())))
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain)
}

fn read() -> Result<Vec<Entry>, Failure> {
    use std::os::unix::fs::PermissionsExt;
    let path = path()?;
    let wrong = |what: &str| Failure::usage(format!("`{}`: {what}", path.display()));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let mode = path.metadata().map_err(|error| wrong(&error.to_string()))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(wrong("others can read it\nhint: chmod 600"));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let entries = lines.map(|(index, line)| {
        let entry = line.split_once(' ').and_then(|(name, digest)| Some((Principal::new(name), from_hex(digest)?)));
        entry.ok_or_else(|| wrong(&format!("line {}: expected a name and a digest", index + 1)))
    });
    entries.collect()
}

fn write(entries: &[Entry]) -> Result<(), Failure> {
    let path = path()?;
    let line = |(principal, digest): &Entry| {
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{principal} {digits}\n")
    };
    let text: String = entries.iter().map(line).collect();
    let cannot = |error: io::Error| Failure::usage(format!("cannot write `{}`: {error}", path.display()));
    paths::write_private(&path, text.as_bytes()).map_err(cannot)
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}
