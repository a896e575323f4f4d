//! `read_file`: a text, some of its lines, or an image.

use std::borrow::Cow;
use std::ops::Range;

use attache::model::tool::{ToolCallContent, ToolKind};
use attache_host::files::EntryKind;
use base64::Engine as _;
use serde_json::json;

use super::near::Near;
use super::{FOR_SMALL, WITHOUT_NUMBERS};
use crate::model::Part;
use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal, excerpt};
use crate::workspace::{
    Encoding, TEXT_LIMIT, Target, Text, TextError, Workspace, blocking, check_file, is_binary, media_type, not_text,
    refusal, shortened,
};

/// How many lines are read unless told otherwise.
const LINES: u32 = 2_000;

/// How many characters of a line are shown.
const LINE_LENGTH: usize = 2_000;

/// How many bytes of a file are shown in all, without the numbers of lines: what a model gets of anything at once. More is read
/// on with, not cut in the middle.
const MOST_BYTES: usize = 32 << 10;

/// The same for small models.
const FEW_BYTES: usize = 6 << 10;

/// How large an image may be; what providers take at most.
const IMAGE_LIMIT: usize = 5 << 20;

/// How many names are looked at for a hint.
const HINT_NAMES: usize = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Read {
    target: Target,
    line: u32,
    limit: u32,
    /// Whether lines are shown with their numbers.
    has_numbers: bool,
    /// How many bytes are shown in all.
    most: usize,
}

pub(super) async fn prepare(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Read>, Refusal> {
    let target = workspace.target(&arguments.text("path")?).await?;
    let line = arguments.count("line")?;
    let limit = arguments.count("limit")?;
    let has_numbers = !arguments.flag(WITHOUT_NUMBERS)?;
    let most = if arguments.flag(FOR_SMALL)? { FEW_BYTES } else { MOST_BYTES };
    // What is outside is not looked at any closer before it is allowed.
    if target.is_inside() {
        check_exists(workspace, &target).await?;
    }
    Ok(Prepared {
        title: title(&target, line, limit),
        kind: ToolKind::Read,
        locations: vec![target.location(line.map(|line| line as usize))],
        content: Vec::new(),
        actions: target.actions(ToolKind::Read),
        work: Read { target, line: line.unwrap_or(1), limit: limit.unwrap_or(LINES), has_numbers, most },
    })
}

pub(super) fn title(target: &Target, line: Option<u32>, limit: Option<u32>) -> String {
    let first = line.unwrap_or(1);
    match (line, limit) {
        (None, None) => format!("Read `{}`", target.name),
        (_, None) => format!("Read `{}` from line {first}", target.name),
        (_, Some(limit)) => format!("Read `{}`, lines {first}-{}", target.name, first.saturating_add(limit - 1)),
    }
}

pub(super) async fn perform(workspace: &Workspace, work: &Read) -> Result<Outcome, Refusal> {
    let Read { target, line, limit, .. } = work;
    check_exists(workspace, target).await?;
    let head = {
        let (files, real) = (workspace.files_for(&[target]), target.real.clone());
        blocking(move || {
            use std::io::Read as _;
            let (file, path) = files.open_for_read(&real)?;
            let size = file.metadata().map_or(0, |metadata| metadata.len());
            let mut head = Vec::new();
            let read = file.take(8 << 10).read_to_end(&mut head);
            read.map(|_| (head, size)).map_err(|source| attache_host::files::FileError::Io { path, source })
        })
        .await?
    };
    let (head, size) = head.map_err(|error| refusal(&error))?;
    if let Some(mime) = media_type(&head) {
        return image(workspace, target, mime).await;
    }
    if size > TEXT_LIMIT as u64 {
        if is_binary(&head) {
            return Err(not_text(target, TextError::Binary));
        }
        let lines = workspace.read_lines(target, *line, *limit).await?;
        let shown = show(work, &Text::new(lines), *line, 1, false)?;
        return Ok(shown.0);
    }
    let text = workspace.read_text(target).await?;
    let (outcome, lines) = show(work, &text, 1, *line, true)?;
    workspace.note_seen(target, &text.content, lines);
    Ok(outcome)
}

/// Lines of a text, counted from 0.
type Lines = Vec<Range<usize>>;

/// The lines from `line` on of a text that begins with the line `first`, and which of its lines are shown as they are: one
/// that is cut is not known by that.
fn show(read: &Read, text: &Text, first: u32, line: u32, is_whole: bool) -> Result<(Outcome, Lines), Refusal> {
    let Read { target, limit, has_numbers, most, .. } = read;
    let name = &target.name;
    let content = &text.content;
    if content.is_empty() {
        let nothing = if is_whole { "is empty" } else { "has fewer lines" };
        let text = format!("`{name}` {nothing}");
        let content = Some(vec![ToolCallContent::text(text.as_str())]);
        let raw = Some(json!({ "path": target.path, "lines": 0, "truncated": false }));
        return Ok((Outcome { content, raw, ..Outcome::done(text) }, Lines::new()));
    }
    let count = content.lines().count();
    if line as usize > count {
        return Err(Refusal(format!("`{name}` has only {count} lines")));
    }
    let (mut shown, mut plain) = (String::new(), String::new());
    let start = line as usize - 1;
    let mut end = start;
    let mut seen = Lines::new();
    for line in content.lines().skip(start).take(*limit as usize) {
        let line = cut(line);
        if plain.len() + line.len() > *most {
            break;
        }
        match seen.last_mut() {
            _ if matches!(line, Cow::Owned(_)) => {}
            Some(last) if last.end == end => last.end += 1,
            _ => seen.push(end..end + 1),
        }
        if *has_numbers {
            shown.push_str(&format!("{}\t", first as usize + end));
        }
        for text in [&mut shown, &mut plain] {
            text.push_str(&line);
            text.push('\n');
        }
        end += 1;
    }
    let (from, to) = (first - 1 + line, first as usize - 1 + end);
    let mut notes = Vec::new();
    if is_whole {
        notes.push(format!("of {count}"));
    }
    if end < count || !is_whole {
        notes.push(format!("read on with line {}", to + 1));
    }
    if text.encoding == Encoding::Latin1 {
        notes.push("read as Latin-1".into());
    }
    if content.contains("\r\n") {
        notes.push("lines end with CRLF".into());
    }
    if end == count && is_whole && !content.ends_with('\n') {
        notes.push("no newline at the end".into());
    }
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    let outcome = Outcome::done(format!("`{name}`, lines {from}-{to}{notes}:\n{shown}"));
    let content = Some(vec![excerpt(language(name), &plain, if is_whole { count - end } else { 0 })]);
    let raw = Some(json!({
        "path": target.path,
        "line": from,
        "lines": end - start,
        "totalLines": is_whole.then_some(count),
        "truncated": end < count || !is_whole,
    }));
    Ok((Outcome { is_exact: true, content, raw, ..outcome }, seen))
}

/// The language of a file as blocks of code name it: the end of its name.
fn language(name: &str) -> &str {
    std::path::Path::new(name).extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default()
}

/// A line as it is shown: owned if it was cut.
fn cut(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((end, _)) => format!("{} […{} more bytes in this line]", &line[..end], line.len() - end).into(),
        None => line.into(),
    }
}

async fn image(workspace: &Workspace, target: &Target, mime: &str) -> Result<Outcome, Refusal> {
    let (files, real) = (workspace.files_for(&[target]), target.real.clone());
    let bytes = blocking(move || files.read_bytes(&real, IMAGE_LIMIT)).await?.map_err(|error| match error {
        attache_host::files::FileError::TooLarge { .. } => {
            Refusal(format!("the image `{}` has more than {} MiB", target.name, IMAGE_LIMIT >> 20))
        }
        error => refusal(&error),
    })?;
    let length = bytes.len();
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut outcome = Outcome::done(format!("`{}`, an image ({mime}):", target.name));
    outcome.content = Some(vec![ToolCallContent::text(format!("an image ({mime}, {length} bytes)"))]);
    outcome.raw = Some(json!({ "path": target.path, "mimeType": mime, "bytes": length }));
    outcome.parts.push(Part::Media { mime: mime.into(), data });
    Ok(outcome)
}

/// Whether there is a file; if not, what the names are that are like it.
async fn check_exists(workspace: &Workspace, target: &Target) -> Result<(), Refusal> {
    let Err(Refusal(reason)) = check_file(target) else { return Ok(()) };
    let (None, Some(name), Some(parent)) = (target.kind(), target.real.file_name(), target.real.parent()) else {
        return Err(Refusal(reason));
    };
    let near = Near::new(&name.to_string_lossy());
    let (files, parent) = (workspace.files_for(&[target]), parent.to_owned());
    let Ok(listing) = blocking(move || files.list(&parent, HINT_NAMES)).await? else { return Err(Refusal(reason)) };
    let mut names: Vec<(f64, String)> = listing
        .entries
        .iter()
        .filter_map(|entry| {
            let slash = if entry.info.kind == EntryKind::Directory { "/" } else { "" };
            let name = entry.name.to_str()?;
            Some((
                near.likeness(name),
                format!("`{}{slash}`", attache_host::permission::visible(&shortened(name, 100))),
            ))
        })
        .filter(|(likeness, _)| *likeness > 0.4)
        .collect();
    names.sort_by(|one, two| two.0.total_cmp(&one.0));
    names.truncate(3);
    if names.is_empty() {
        return Err(Refusal(reason));
    }
    let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
    Err(Refusal(format!("{reason}\nhint: there is {} in that directory", names.join(", "))))
}
