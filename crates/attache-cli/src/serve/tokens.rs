//! The tokens of clients: a file with a name, a digest and perhaps a group on each line.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::private;
use attache_host::own_files;
use attache_http::{Principal, TokenDigest, Tokens, new_token};
use serde_json::json;

use super::log::log;
use super::options::TokenCommand;
use crate::exit::{Code, Failure};
use crate::paths;

/// How often the file is looked at while a server runs.
const LOOK: Duration = Duration::from_secs(1);

/// Whom a token stands for, and its digest.
type Entry = (Principal, TokenDigest);

/// `attache serve token`.
pub(super) fn run(command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::Add { name, group } => {
            let (token, had) = add(&name, group.as_deref())?;
            if had {
                eprintln!(
                    "note: there is a token of `{name}` already, which stays valid; `attache serve token list` has their ids"
                );
            }
            let of = group.map(|group| format!(" in the group `{group}`")).unwrap_or_default();
            eprintln!("the token of `{name}`{of}; it is shown once, and kept here as a digest only:");
            crate::print(&format!("{token}\n"))
        }
        TokenCommand::List => {
            let line = |(principal, digest): Entry| match principal.group() {
                Some(group) => format!("{}  {principal} (group {group})", id(&digest)),
                None => format!("{}  {principal}", id(&digest)),
            };
            crate::agents::print_lines(read()?.into_iter().map(line))
        }
        TokenCommand::Remove { name } => {
            let _lock = lock()?;
            let mut entries = read()?;
            let before = entries.len();
            entries.retain(|(principal, _)| principal.as_str() != name);
            // A name comes before an id that looks the same.
            if entries.len() == before {
                entries.retain(|(_, digest)| id(digest) != name);
            }
            let removed = before - entries.len();
            if removed == 0 {
                let hint = "hint: `attache serve token list` has names and ids";
                return Err(Failure::new(Code::NotFound, format!("no token of `{name}`\n{hint}")));
            }
            write(&entries)?;
            let tokens = if removed == 1 { "token" } else { "tokens" };
            eprintln!("removed {removed} {tokens}: `{name}`; connections that are open stay open until they end");
            Ok(())
        }
    }
}

/// What tells a file from what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    #[cfg(unix)]
    file: (u64, u64),
    length: u64,
    #[cfg(unix)]
    modified: (i64, i64),
    #[cfg(unix)]
    changed: (i64, i64),
    #[cfg(not(unix))]
    modified: std::time::SystemTime,
    #[cfg(not(unix))]
    created: Option<std::time::SystemTime>,
}

/// The tokens of a server that starts, and the file that they are from. If there are none, the first is made and shown to
/// whoever sits there.
pub(super) fn read_or_create() -> Result<(Tokens, Option<Stamp>), Failure> {
    // Looked at before it is read: what changes meanwhile is read again.
    let (mut looked_at, mut entries) = (stamp(), read()?);
    if entries.is_empty() {
        if !io::stderr().is_terminal() {
            let hint = "hint: `attache serve token add NAME` makes one for each client";
            return Err(Failure::usage(format!("there is no token, so nobody could connect\n{hint}")));
        }
        let name = std::env::var(if cfg!(windows) { "USERNAME" } else { "USER" })
            .ok()
            .filter(|name| is_name(name))
            .unwrap_or_else(|| "me".into());
        let (token, _) = add(&name, None)?;
        eprintln!("made a token for `{name}`; it is shown once:\n\n  {token}\n");
        (looked_at, entries) = (stamp(), read()?);
    }
    Ok((Tokens::new(entries), looked_at))
}

/// Reads the tokens again. What cannot be read is nobody's token; `watch` says so.
pub(super) fn refresh(tokens: &Tokens) {
    tokens.replace(confirmed().0);
}

/// Keeps the tokens of a server as the file has them. What the file does not say in so many words is nobody's token: one that was
/// removed must not stay because the file cannot be read.
pub(super) async fn watch(tokens: Tokens, mut last: Option<Stamp>) {
    let mut told: Option<String> = None;
    loop {
        tokio::time::sleep(LOOK).await;
        // What went wrong may be over although the file is the same.
        let is_wrong = told.is_some();
        let look = move || {
            let now = stamp();
            (now, (now != last || is_wrong || now.is_none()).then(confirmed))
        };
        let Ok((now, Some((entries, trouble)))) = tokio::task::spawn_blocking(look).await else { continue };
        last = now;
        tokens.replace(entries);
        if trouble != told {
            match &trouble {
                Some(why) => log("tokens not read", &json!({ "why": why })),
                None => log("tokens read", &json!({})),
            }
            told = trouble;
        }
    }
}

/// What the file is now, if it can be looked at.
#[cfg(unix)]
fn stamp() -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let found = path().ok()?.metadata().ok()?;
    Some(Stamp {
        file: (found.dev(), found.ino()),
        length: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
    })
}

/// What the file is now, if it can be looked at. It is replaced as a whole, so the time says it.
#[cfg(not(unix))]
fn stamp() -> Option<Stamp> {
    let found = path().ok()?.metadata().ok()?;
    Some(Stamp { length: found.len(), modified: found.modified().ok()?, created: found.created().ok() })
}

/// The tokens that the file has for certain, and what is wrong with the rest of it.
fn confirmed() -> (Vec<Entry>, Option<String>) {
    let lines = match lines() {
        Ok(lines) => lines,
        Err(failure) => return (Vec::new(), Some(failure.message)),
    };
    let mut trouble = None;
    let entries = lines.into_iter().filter_map(|line| line.map_err(|failure| trouble = Some(failure.message)).ok());
    (entries.collect(), trouble)
}

fn path() -> Result<PathBuf, Failure> {
    Ok(paths::config()?.join("serve").join("tokens"))
}

/// The id of a token: the beginning of its digest, which nobody gets anything by.
fn id(digest: &TokenDigest) -> String {
    digest.to_string().chars().take(8).collect()
}

/// Makes a token. Says whether there was one of the same name and group.
fn add(name: &str, group: Option<&str>) -> Result<(String, bool), Failure> {
    if !is_name(name) || !group.is_none_or(is_name) {
        return Err(Failure::usage("a name has letters, digits, `-`, `_`, `.` and `@`, 64 at most"));
    }
    let token = new_token().map_err(|error| Failure::usage(format!("cannot make a token: {error}")))?;
    let _lock = lock()?;
    let mut entries = read()?;
    let added = principal(name, group);
    let had = entries.iter().any(|(principal, _)| *principal == added);
    entries.push((added, TokenDigest::of(&token)));
    write(&entries)?;
    Ok((token, had))
}

/// Keeps others from changing the file until it is dropped.
fn lock() -> Result<File, Failure> {
    let path = path()?.with_extension("lock");
    let lock = || {
        paths::private_directory(path.parent().unwrap_or(Path::new("/")))?;
        let file = private::open_or_create(&path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|error: io::Error| Failure::usage(format!("cannot lock `{}`: {error}", path.display())))
}

fn principal(name: &str, group: Option<&str>) -> Principal {
    let principal = Principal::new(name);
    match group {
        Some(group) => principal.in_group(group),
        None => principal,
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain)
}

fn read() -> Result<Vec<Entry>, Failure> {
    lines()?.into_iter().collect()
}

/// The lines of the file, each as it can be read.
fn lines() -> Result<Vec<Result<Entry, Failure>>, Failure> {
    let path = path()?;
    let wrong = |what: &str| Failure::usage(format!("`{}`: {what}", path.display()));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(&error.to_string())),
    };
    if !private::is_private(&path).map_err(|error| wrong(&error.to_string()))? {
        return Err(wrong(&format!("others can read it\nhint: {}", own_files::hint_to_protect(&path))));
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let entries = lines.map(|(index, line)| {
        entry(line).ok_or_else(|| wrong(&format!("line {}: expected a name, a digest and perhaps a group", index + 1)))
    });
    Ok(entries.collect())
}

/// Reads a line. What is not plain is nobody's.
fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let (name, digest, group) = (words.next()?, words.next()?, words.next());
    let is_plain = is_name(name) && group.is_none_or(is_name) && words.next().is_none();
    is_plain.then(|| Some((principal(name, group), digest.parse().ok()?))).flatten()
}

fn write(entries: &[Entry]) -> Result<(), Failure> {
    let path = path()?;
    let line = |(principal, digest): &Entry| match principal.group() {
        Some(group) => format!("{principal} {digest} {group}\n"),
        None => format!("{principal} {digest}\n"),
    };
    let text: String = entries.iter().map(line).collect();
    let cannot = |error: io::Error| Failure::usage(format!("cannot write `{}`: {error}", path.display()));
    paths::write_private(&path, text.as_bytes()).map_err(cannot)
}
