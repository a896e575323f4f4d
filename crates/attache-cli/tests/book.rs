//! The book in `docs/`: its commands are run and do what it shows, its links lead somewhere, the messages that it explains are
//! those of the program.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::Home;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages of the book, by their file names.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    pages.sort();
    assert!(pages.len() > 15, "{}", pages.len());
    pages
}

/// What stands between fences: the line that opens it, and the text. What stands around them comes with an empty line.
fn parts(page: &str) -> Vec<(&str, String)> {
    let mut parts = vec![("", String::new())];
    let mut is_inside = false;
    for line in page.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(info) => {
                is_inside = !is_inside;
                parts.push((if is_inside { info } else { "" }, String::new()));
            }
            None => {
                let text = &mut parts.last_mut().unwrap().1;
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    parts
}

/// Whether a line is what the book shows, in which `…` stands for anything.
fn is_line(shown: &str, seen: &str) -> bool {
    let mut pieces = shown.split('…');
    let Some(mut rest) = seen.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut has_gap = false;
    for piece in pieces {
        has_gap = true;
        match rest.find(piece) {
            Some(_) if piece.is_empty() => {}
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    (has_gap && shown.ends_with('…')) || rest.is_empty()
}

/// Whether the lines are what the book shows. `…` alone on a line stands for any number of lines.
fn is_output(shown: &[&str], seen: &[&str]) -> bool {
    match (shown, seen) {
        ([], seen) => seen.is_empty(),
        (["…", rest @ ..], seen) => (0..=seen.len()).any(|skipped| is_output(rest, &seen[skipped..])),
        ([line, rest @ ..], [first, more @ ..]) => is_line(line, first) && is_output(rest, more),
        (_, []) => false,
    }
}

#[test]
fn what_is_shown_is_compared() {
    let check =
        |shown: &str, seen: &str| is_output(&shown.lines().collect::<Vec<_>>(), &seen.lines().collect::<Vec<_>>());
    for (shown, seen) in [("a", "a"), ("a…", "abc"), ("a…d", "abcd"), ("…", ""), ("…\nb", "a\na\nb"), ("…c…", "abcde")]
    {
        assert!(check(shown, seen), "{shown} {seen}");
    }
    for (shown, seen) in [("a", "ab"), ("a", ""), ("", "a"), ("a…d", "abc"), ("…\nb", "b\na"), ("a…", "b")] {
        assert!(!check(shown, seen), "{shown} {seen}");
    }
}

/// Runs the commands of a page one block after the other in one directory, with a home of its own and the model `offline`.
/// What they print on stdout is what the book shows; what they say besides depends on the machine.
fn run_page(name: &str, page: &str) -> usize {
    let home = Home::new();
    let project = home.path("project");
    fs::create_dir(&project).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap().to_str().unwrap();
    let parts = parts(page);
    let mut ran = 0;
    for (at, (info, script)) in parts.iter().enumerate().filter(|(_, (info, _))| *info == "sh") {
        let words = home.command(&[]);
        let mut command = Command::new("sh");
        command.env_clear().envs(words.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", format!("{program}:/usr/local/bin:/usr/bin:/bin")).current_dir(&project);
        command.args(["-ec", script]).stdin(Stdio::null());
        let done = support::run(command);
        let shown = match parts.get(at + 1..at + 3) {
            Some([(_, between), ("text", shown)]) if between.trim().is_empty() => shown.as_str(),
            _ => {
                panic!("{name}: what does this show? A block `text` has to follow, or it is `{info},manual`\n{script}")
            }
        };
        let (shown_lines, seen) = (shown.lines().collect::<Vec<_>>(), done.out.lines().collect::<Vec<_>>());
        assert!(
            done.code == 0 && is_output(&shown_lines, &seen),
            "{name}:\n{script}\n--- the book shows\n{shown}\n--- it does, with exit code {}\n{}--- and says\n{}",
            done.code,
            done.out,
            done.err
        );
        ran += 1;
    }
    ran
}

#[test]
fn the_commands_do_what_the_book_shows() {
    let pages = pages();
    // Each page waits for its programs most of the time.
    let ran: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = pages.iter().map(|(name, page)| scope.spawn(|| run_page(name, page))).collect();
        runs.into_iter().map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    });
    assert!(ran >= 10, "{ran}");
}

#[test]
fn every_page_is_in_the_summary() {
    let pages = pages();
    let (_, summary) = pages.iter().find(|(name, _)| name == "SUMMARY.md").unwrap();
    for (name, _) in pages.iter().filter(|(name, _)| name != "SUMMARY.md") {
        assert!(summary.contains(&format!("]({name})")), "docs/SUMMARY.md has no line for {name}");
    }
}

/// What a heading is called in an address: small letters, without what is no word.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let text = parts(page).into_iter().filter(|(info, _)| info.is_empty()).map(|(_, text)| text).collect::<String>();
    text.lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')))
        .map(anchor)
        .collect()
}

/// Where the links of a page lead.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for (_, text) in parts(page).into_iter().filter(|(info, _)| info.is_empty()) {
        // Code is not looked at.
        let bare: String = text.split('`').step_by(2).collect::<Vec<_>>().join("``");
        links.extend(bare.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
    }
    links
}

/// Where the repository will be. What is not in the book is linked there, so that the built book has no dead ends.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/");

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let mut files: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "deploy/README.md",
        "packaging/registry/README.md",
    ]
    .map(|name| root.join(name))
    .into();
    files.extend(pages().into_iter().map(|(name, _)| root.join("docs").join(name)));
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    files.extend(crates.map(|path| path.join("README.md")));
    let (mut seen, mut dead) = (0, Vec::new());
    for file in files {
        let page = fs::read_to_string(&file).unwrap();
        for link in links(&page) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path.strip_prefix(REPOSITORY) {
                Some(inside) => {
                    let inside = inside.split_once("main/").map(|(_, inside)| inside);
                    inside.map_or(root.clone(), |inside| root.join(inside))
                }
                None if path.contains("://") => continue,
                None if path.is_empty() => file.clone(),
                None => file.parent().unwrap().join(path),
            };
            seen += 1;
            let leaves_book = file.parent().unwrap().ends_with("docs") && path.starts_with("..");
            let has_anchor = || anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor);
            if leaves_book || !target.exists() || !has_anchor() {
                dead.push(format!("{}: {link}", file.strip_prefix(&root).unwrap().display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(seen > 50, "{seen}");
}

/// The text of all sources, with strings as the program has them.
fn sources() -> Vec<String> {
    fn collect(folder: &Path, texts: &mut Vec<String>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                collect(&path, texts);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // A backslash at the end of a line goes with what the next line begins with.
                let mut lines = text.split("\\\n");
                let mut whole = lines.next().unwrap_or_default().to_owned();
                lines.for_each(|line| whole.push_str(line.trim_start()));
                texts.push(whole.replace("\\\"", "\""));
            }
        }
    }
    let mut texts = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut texts);
    }
    texts
}

/// Whether a message is in the source: its pieces between `…` stand close to each other.
fn is_message(message: &str, sources: &[String]) -> bool {
    /// A sentence of a program, with the names of what is put into it, is shorter.
    const NEAR: usize = 600;
    let pieces: Vec<&str> = message.split('…').filter(|piece| piece.len() >= 4).collect();
    let Some(longest) = pieces.iter().max_by_key(|piece| piece.len()) else { return false };
    sources.iter().any(|source| {
        source.match_indices(longest).any(|(at, _)| {
            let start = source.floor_char_boundary(at.saturating_sub(NEAR));
            let end = source.ceil_char_boundary((at + NEAR).min(source.len()));
            pieces.iter().all(|piece| source[start..end].contains(piece))
        })
    })
}

#[test]
fn the_messages_that_are_explained_are_those_of_the_program() {
    let sources = sources();
    assert!(!is_message("no API key for the moon", &sources) && !is_message("…", &sources));
    let page = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let (mut seen, mut unknown) = (0, Vec::new());
    for (_, block) in parts(&page).into_iter().filter(|(info, _)| *info == "text") {
        for line in block.lines() {
            let message = line.trim_start_matches("error: ").trim_start_matches("hint: ");
            seen += 1;
            if !is_message(message, &sources) {
                unknown.push(line.to_owned());
            }
        }
    }
    assert!(unknown.is_empty(), "no source has {unknown:#?}");
    assert!(seen > 40, "{seen}");
}
