//! `search_files`: the lines that a regular expression fits.

use std::io;

use attache::model::tool::{Location, ToolCallContent, ToolKind};
use attache_host::files::{EntryKind, FileError, Files};
use attache_host::permission::{is_secret, visible};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::arguments::Arguments;
use super::find::{below, root_for, walk_notes};
use super::pattern::Pattern;
use crate::tools::{Outcome, Prepared, Refusal};
use crate::workspace::{Stop, Target, Walk, Workspace, bounded, refusal, shortened};

/// How many lines are shown.
const MOST_LINES: usize = 500;

/// How many bytes are shown.
const MOST_BYTES: usize = 64 << 10;

/// How many characters of a line are shown.
const LINE_LENGTH: usize = 300;

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
}

pub(super) async fn prepare(workspace: &Workspace, arguments: Arguments<'_>) -> Result<Prepared<Search>, Refusal> {
    let pattern = arguments.text("pattern")?.to_owned();
    let glob = arguments.optional_text("glob")?.map(str::to_owned);
    let ignore_case = arguments.flag("ignore_case")?;
    matcher(&pattern, ignore_case)?;
    glob.as_deref().map(Pattern::new).transpose()?;
    let target = workspace.target(arguments.optional_text("path")?.unwrap_or(".")).await?;
    match target.kind() {
        Some(EntryKind::Directory | EntryKind::File) => {}
        None => return Err(Refusal(format!("there is no `{}`", target.name))),
        Some(_) => return Err(Refusal(format!("`{}` is neither a file nor a directory", target.name))),
    }
    Ok(Prepared {
        title: format!("Search for `{}` in `{}`", visible(&shortened(&pattern, 100)), target.name),
        kind: ToolKind::Search,
        locations: vec![target.location(None)],
        content: Vec::new(),
        actions: target.actions(ToolKind::Search),
        work: Search { target, pattern, glob, ignore_case },
    })
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
    /// The first line of each file, from the directory of the search.
    files: Vec<(std::path::PathBuf, u64)>,
    is_full: bool,
    is_cut: bool,
    unreadable: usize,
    secret: usize,
    linked: usize,
    failed: usize,
}

pub(super) async fn perform(workspace: &Workspace, work: Search) -> Result<Outcome, Refusal> {
    let Search { target, pattern, glob, ignore_case } = work;
    let matcher = matcher(&pattern, ignore_case)?;
    let glob = glob.as_deref().map(Pattern::new).transpose()?;
    let files = root_for(workspace, &target)?;
    let directory = target.clone();
    let results = bounded(move |stop: &Stop| search(&files, &directory, &matcher, glob.as_ref(), stop));
    let results = results.await?.map_err(|error| refusal(&error))?;
    Ok(told(&target, results))
}

fn search(
    files: &Files,
    target: &Target,
    matcher: &RegexMatcher,
    glob: Option<&Pattern>,
    stop: &Stop,
) -> Result<Results, FileError> {
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .line_number(true)
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
        match files.open_for_read(&found.path) {
            Ok((file, _)) => {
                let name = below(&target.name, &found.relative);
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
        // No more of a long line is looked at than could be shown.
        let bytes = &found.bytes()[..found.bytes().len().min(LINE_LENGTH * 4 + 4)];
        let text = String::from_utf8_lossy(bytes);
        let line = format!("{}:{number}: {}", self.name, shortened(text.trim_end_matches(['\r', '\n']), LINE_LENGTH));
        let results = &mut *self.results;
        if results.lines.len() == MOST_LINES || results.bytes + line.len() > MOST_BYTES {
            results.is_full = true;
            return Ok(false);
        }
        if self.is_first {
            results.files.push((self.relative.to_owned(), number));
            self.is_first = false;
        }
        results.bytes += line.len() + 1;
        results.lines.push(line);
        Ok(!self.stop.is_over())
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

fn told(target: &Target, results: Results) -> Outcome {
    let Results { mut lines, files, is_full, is_cut, unreadable, secret, linked, failed, .. } = results;
    let summary = match (lines.len(), files.len()) {
        (0, _) => format!("nothing found in `{}`", target.name),
        (1, _) => "1 line".into(),
        (count, 1) => format!("{count} lines in 1 file"),
        (count, files) => format!("{count} lines in {files} files"),
    };
    if lines.is_empty() {
        lines.push(summary.clone());
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
    let mut outcome = Outcome::done(lines.join("\n"));
    outcome.content = Some(vec![ToolCallContent::text(summary)]);
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
            let results = search(&files, &target, &matcher, None, &Stop::after(Duration::ZERO)).unwrap();
            assert!(results.is_cut && results.lines.is_empty());
            let outcome = told(&target, results);
            assert!(format!("{outcome:?}").contains("[not everything was looked at"), "{outcome:?}");
        }
    }
}
