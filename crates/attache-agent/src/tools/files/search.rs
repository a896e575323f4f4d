//! `search_files`: the lines that a regular expression fits.

use std::borrow::Cow;
use std::io;

use attache::model::tool::{Location, ToolCallContent, ToolKind};
use attache_host::files::{EntryKind, FileError, Files};
use attache_host::permission::{is_secret, visible};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde_json::json;

use super::find::{below, root_for, walk_notes};
use super::pattern::Pattern;
use crate::tools::arguments::Arguments;
use crate::tools::{Outcome, Prepared, Refusal, excerpt};
use crate::workspace::{Stop, Target, Walk, Workspace, bounded, refusal, shortened};

/// How many lines are shown.
const MOST_LINES: usize = 500;

/// How many bytes are shown.
const MOST_BYTES: usize = 64 << 10;

/// How many characters of a line are shown.
const LINE_LENGTH: usize = 300;

/// How many lines around a line are shown at most.
const MOST_CONTEXT: usize = 20;

/// How many names of files are told where no content fits.
const MOST_NAMES: usize = 30;

/// How long a line may be to be looked at, in bytes.
const LONGEST_LINE: usize = 8 << 20;

/// How large a compiled expression may be. Larger ones are slow, and written by nobody.
const REGEX_LIMIT: usize = 4 << 20;

/// How many files are shown in the editor.
const LOCATIONS: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Search {
    target: Target,
    pattern: String,
    glob: Option<String>,
    ignore_case: bool,
    /// How many lines are shown around each.
    context: usize,
}

pub(super) async fn prepare(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Search>, Refusal> {
    let pattern = arguments.text("pattern")?.into_owned();
    let glob = arguments.optional_text("glob")?.map(Cow::into_owned);
    let ignore_case = arguments.flag("ignore_case")?;
    let context = arguments.number("context")?.map_or(0, |lines| (lines as usize).min(MOST_CONTEXT));
    matcher(&pattern, ignore_case)?;
    glob.as_deref().map(Pattern::new).transpose()?;
    let target = workspace.target(&arguments.optional_text("path")?.unwrap_or(".".into())).await?;
    match target.kind() {
        Some(EntryKind::Directory | EntryKind::File) => {}
        None => return Err(Refusal(format!("there is no `{}`", target.name))),
        Some(_) => return Err(Refusal(format!("`{}` is neither a file nor a directory", target.name))),
    }
    Ok(Prepared {
        title: title(&target, &pattern),
        kind: ToolKind::Search,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: target.actions(ToolKind::Search),
        work: Search { target, pattern, glob, ignore_case, context },
    })
}

pub(super) fn title(target: &Target, pattern: &str) -> String {
    format!("Search for `{}` in `{}`", visible(&shortened(pattern, 100)), target.name)
}

fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, Refusal> {
    RegexMatcherBuilder::new()
        .case_insensitive(ignore_case)
        .multi_line(true)
        // `$` is before `\r\n`, too. This has to come before the end of lines, which it would set.
        .crlf(true)
        .line_terminator(Some(b'\n'))
        .size_limit(REGEX_LIMIT)
        .dfa_size_limit(REGEX_LIMIT)
        .build(pattern)
        .map_err(|error| {
            Refusal(format!("the regular expression is not understood: {}", shortened(&error.to_string(), 500)))
        })
}

/// What was found so far.
#[derive(Default)]
struct Results {
    lines: Vec<String>,
    bytes: usize,
    /// How many of them fit the pattern, and do not only stand beside one that does.
    fitting: usize,
    /// The first line of each file, from the directory of the search.
    files: Vec<(std::path::PathBuf, u64)>,
    /// Files whose names fit, and how many there are.
    names: Vec<String>,
    named: usize,
    is_full: bool,
    is_cut: bool,
    unreadable: usize,
    secret: usize,
    linked: usize,
    failed: usize,
}

pub(super) async fn perform(workspace: &Workspace, work: Search) -> Result<Outcome, Refusal> {
    let Search { target, pattern, glob, ignore_case, context } = work;
    let matcher = matcher(&pattern, ignore_case)?;
    let glob = glob.as_deref().map(Pattern::new).transpose()?;
    let files = root_for(workspace, &target)?;
    let directory = target.clone();
    let results = bounded(move |stop: &Stop| search(&files, &directory, &matcher, glob.as_ref(), context, stop));
    let results = results.await?.map_err(|error| refusal(&error))?;
    Ok(told(&target, &pattern, results))
}

fn search(
    files: &Files,
    target: &Target,
    matcher: &RegexMatcher,
    glob: Option<&Pattern>,
    context: usize,
    stop: &Stop,
) -> Result<Results, FileError> {
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .build();
    let mut results = Results::default();
    if target.kind() == Some(EntryKind::File) {
        let (file, _) = files.open_for_read(&target.real)?;
        results.search(&mut searcher, matcher, file, &target.name, std::path::Path::new(""), stop);
        return Ok(results);
    }
    let mut walk = Walk::new(files, &target.real, stop)?;
    while !results.is_full
        && let Some(found) = walk.next()
    {
        if glob.is_some_and(|glob| !glob.is_for(&found.relative)) {
            continue;
        }
        // From the root: what leads to it was chosen by the user.
        let from_root = target.relative.as_ref().map_or(found.path.clone(), |relative| relative.join(&found.relative));
        if is_secret(&from_root) {
            results.secret += 1;
            continue;
        }
        let name = below(&target.name, &found.relative);
        if matcher.is_match(name.as_bytes()).unwrap_or(false) {
            results.named += 1;
            if results.names.len() < MOST_NAMES {
                results.names.push(name.clone());
            }
        }
        match files.open_for_read(&found.path) {
            Ok((file, _)) => {
                results.search(&mut searcher, matcher, file, &name, &found.relative, stop);
            }
            Err(FileError::HardLink { .. }) => results.linked += 1,
            Err(_) => results.failed += 1,
        }
    }
    results.is_cut |= walk.is_cut;
    results.unreadable = walk.unreadable;
    Ok(results)
}

impl Results {
    fn search(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        file: std::fs::File,
        name: &str,
        relative: &std::path::Path,
        stop: &Stop,
    ) {
        let mut lines = Lines { results: self, name, relative, is_first: true, stop };
        if searcher.search_reader(matcher, Stoppable { file, stop }, &mut lines).is_err() {
            if stop.is_over() { self.is_cut = true } else { self.failed += 1 }
        }
    }
}

/// Takes the lines of one file.
struct Lines<'a> {
    results: &'a mut Results,
    name: &'a str,
    relative: &'a std::path::Path,
    is_first: bool,
    stop: &'a Stop,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let number = found.line_number().unwrap_or_default();
        if self.is_first {
            self.results.files.push((self.relative.to_owned(), number));
            self.is_first = false;
        }
        self.results.fitting += 1;
        Ok(self.add(':', number, found.bytes()))
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.add('-', around.line_number().unwrap_or_default(), around.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.results.lines.push("--".into());
        Ok(true)
    }
}

impl Lines<'_> {
    /// Adds a line, if there is room. Tells whether to go on.
    fn add(&mut self, mark: char, number: u64, bytes: &[u8]) -> bool {
        // No more of a long line is looked at than could be shown.
        let bytes = &bytes[..bytes.len().min(LINE_LENGTH * 4 + 4)];
        let text = String::from_utf8_lossy(bytes);
        let text = shortened(text.trim_end_matches(['\r', '\n']), LINE_LENGTH);
        let line = format!("{}{mark}{number}{mark} {text}", self.name);
        let results = &mut *self.results;
        if results.lines.len() >= MOST_LINES || results.bytes + line.len() > MOST_BYTES {
            results.is_full = true;
            return false;
        }
        results.bytes += line.len() + 1;
        results.lines.push(line);
        !self.stop.is_over()
    }
}

/// A file that ends with an error when the search is over, however large it is.
struct Stoppable<'a> {
    file: std::fs::File,
    stop: &'a Stop,
}

impl io::Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".into() } else { format!("{files} files") }
}

fn told(target: &Target, pattern: &str, results: Results) -> Outcome {
    let Results {
        mut lines, fitting, files, names, named, is_full, is_cut, unreadable, secret, linked, failed, ..
    } = results;
    let summary = match (fitting, files.len()) {
        (0, _) => format!("nothing found in `{}`", target.name),
        (1, _) => "1 line".into(),
        (count, 1) => format!("{count} lines in 1 file"),
        (count, files) => format!("{count} lines in {files} files"),
    };
    let is_empty = lines.is_empty();
    if is_empty {
        lines.push(summary.clone());
        if named > 0 {
            let more = if named > names.len() { ", …" } else { "" };
            lines.push(format!("names that fit ({named}): {}{more}", names.join(", ")));
        }
    }
    let mut notes = walk_notes(is_cut, unreadable);
    if is_full {
        notes.push("there is more: use a narrower pattern, path or glob".into());
    }
    if secret > 0 {
        let files = count(secret);
        notes.push(format!("left out because it may hold secrets: {files}; name one as `path` to search it"));
    }
    if linked > 0 {
        let files = count(linked);
        notes.push(format!("left out because of several hard links: {files}; name one as `path` to search it"));
    }
    if failed > 0 {
        notes.push(format!("could not be read: {}", count(failed)));
    }
    lines.extend(notes.into_iter().map(|note| format!("[{note}]")));
    let location = |(relative, line): &(std::path::PathBuf, u64)| {
        let path = match relative.to_str()? {
            "" => target.path.clone(),
            relative => format!("{}/{relative}", target.path.trim_end_matches('/')),
        };
        Some(Location::new(path).line(u32::try_from(*line).unwrap_or(u32::MAX)))
    };
    let locations: Vec<Location> = files.iter().filter_map(location).take(LOCATIONS).collect();
    let text = lines.join("\n");
    let mut content = vec![ToolCallContent::text(summary)];
    if !is_empty || lines.len() > 1 {
        content.push(excerpt("", &lines[usize::from(is_empty)..].join("\n"), 0));
    }
    let first = |location: &Location| json!({ "path": location.path, "line": location.line });
    let raw = json!({
        "path": target.path,
        "pattern": shortened(pattern, 200),
        "matches": fitting,
        "files": files.len(),
        "first": locations.iter().map(first).collect::<Vec<_>>(),
        "truncated": is_full || is_cut,
    });
    let mut outcome = Outcome { content: Some(content), raw: Some(raw), ..Outcome::done(text) };
    outcome.locations = (!locations.is_empty()).then_some(locations);
    outcome
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_search_that_takes_too_long_tells_what_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let line = "needle\n";
        std::fs::write(dir.path().join("file"), line.repeat(1_000)).unwrap();
        let workspace = Workspace::open(dir.path(), &[], None).unwrap();
        for path in [".", "file"] {
            let target = workspace.target(path).await.unwrap();
            let files = workspace.files_for(&[&target]);
            let matcher = matcher("needle", false).unwrap();
            let results = search(&files, &target, &matcher, None, 0, &Stop::after(Duration::ZERO)).unwrap();
            assert!(results.is_cut && results.lines.is_empty());
            let outcome = told(&target, "needle", results);
            assert!(format!("{outcome:?}").contains("[not everything was looked at"), "{outcome:?}");
        }
    }
}
