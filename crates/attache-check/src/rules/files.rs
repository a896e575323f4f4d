//! Files that the client reads and writes.

use std::collections::{HashMap, HashSet};

use super::walk;
use crate::exchange::{Body, Call};
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "files/offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent reads and writes files through the client only if the client offers it.",
        source: "v1/66; S0 S1 DOC",
        instead: "Look at `clientCapabilities.fs` first; version 2 has no such methods.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "files/absolute",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "The paths of files to read and to write are absolute.",
        source: "v1/64; S0 S1 DOC",
        instead: "Resolve paths against the session's working directory before they are sent.",
        implies: &[],
        judge: absolute,
    },
    Rule {
        id: "files/line-positive",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "Lines to read from are counted from 1.",
        source: "v1/64; S0 S1 SCH",
        instead: "Count lines from 1.",
        implies: &[],
        judge: line_positive,
    },
    Rule {
        id: "files/limit",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A client returns no more lines of a file than `limit`.",
        source: "v1/67; S0 S1 SCH",
        instead: "Return the lines from `line` on, at most `limit` of them.",
        implies: &[],
        judge: limit,
    },
    Rule {
        id: "files/line",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A client returns a file from `line` on.",
        source: "v1/67; S0 S1 SCH",
        instead: "Leave out the lines before `line`, which is counted from 1.",
        implies: &[],
        judge: line,
    },
    Rule {
        id: "files/write-creates",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "Writing a file that does not exist creates it.",
        source: "v1/67; S1 DOC",
        instead: "Create the file.",
        implies: &[],
        judge: write_creates,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] =
    &[("v1/67", "A client returns what its editor holds unsaved.", "what the editor holds is not on the wire")];

/// The error for what does not exist.
const NOT_FOUND: i32 = -32002;

fn calls<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    trial.calls_of(Side::Agent).filter(|call| is_read(call) || is_write(call))
}

fn is_read(call: &Call) -> bool {
    call.method == "fs/read_text_file"
}

fn is_write(call: &Call) -> bool {
    call.method == "fs/write_text_file"
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        let path = if is_read(call) { "fs.readTextFile" } else { "fs.writeTextFile" };
        let is_offered = trial.offers(Side::Client, path);
        verdict.check(is_offered, call.at, || format!("`{}`, but the client does not offer `{path}`", call.method));
    }
}

fn absolute(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        let Some(path) = call.params["path"].as_str() else { continue };
        verdict.check(walk::is_absolute(path), call.at, || format!("the path {} is not absolute", shown(path)));
    }
}

fn line_positive(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial).filter(|call| is_read(call)) {
        let Some(line) = call.params["line"].as_i64() else { continue };
        verdict.check(line >= 1, call.at, || format!("`fs/read_text_file` from line {line}"));
    }
}

fn limit(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial).filter(|call| is_read(call)) {
        let (Some(limit), Some(content), Some(at)) = (
            call.params["limit"].as_u64(),
            call.result().and_then(|result| result["content"].as_str()),
            call.answered_at(),
        ) else {
            continue;
        };
        let lines = content.lines().count();
        verdict.check(u64::try_from(lines).is_ok_and(|lines| lines <= limit), at, || {
            format!("{lines} lines, though `limit` is {limit}")
        });
    }
}

/// Judges reads of files whose lines are known from a read or a write before, as long as nothing came that may have changed them.
fn line(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut known: HashMap<&str, Vec<&str>> = HashMap::new();
    for (at, message) in trial.messages.iter().enumerate() {
        if may_change_files(&message.body) {
            known.clear();
        }
        let call = trial.call_of(at).map(|call| &trial.calls[call]).filter(|call| is_read(call) || is_write(call));
        let Some((call, path)) = call.and_then(|call| Some((call, call.params["path"].as_str()?))) else { continue };
        if call.answered_at() != Some(at) {
            if is_write(call) {
                known.remove(path);
            }
            continue;
        }
        let Some(result) = call.result() else { continue };
        let content = if is_write(call) { &call.params["content"] } else { &result["content"] };
        let Some(lines) = content.as_str().map(|text| text.lines().collect::<Vec<_>>()) else { continue };
        match (call.params["line"].as_u64(), call.params["limit"].as_u64(), known.get(path)) {
            (None, None, _) => {
                known.insert(path, lines);
            }
            (Some(line @ 2..), _, Some(all)) => {
                let first = usize::try_from(line - 1).unwrap_or(usize::MAX);
                let begins_at = |place: usize| all.get(place..).is_some_and(|rest| rest.starts_with(&lines));
                let is_blank = lines.iter().all(|line| line.is_empty());
                // What is found nowhere in the file is another file by now.
                match (0..all.len()).find(|place| begins_at(*place)) {
                    _ if is_blank || begins_at(first) => verdict.kept(),
                    Some(place) => {
                        let seen = format!("asked for a file from line {line} on, returned it from line {}", place + 1);
                        verdict.broken_by(vec![call.at, at], seen);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// Whether a message may tell of something that changes files: a new turn, or a tool that does more than read.
fn may_change_files(body: &Body) -> bool {
    let update = &body.params()["update"];
    match (body.method(), update["sessionUpdate"].as_str()) {
        (Some("session/prompt" | "terminal/create"), _) => true,
        (_, Some("tool_call")) => !matches!(update["kind"].as_str(), Some("read" | "search" | "think" | "fetch")),
        _ => false,
    }
}

/// What was last seen of a file.
enum LastSeen {
    /// It was not there.
    Missing,
    /// It was written, and this was the answer.
    Written(usize),
}

fn write_creates(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut last: HashMap<&str, LastSeen> = HashMap::new();
    let mut folders: HashSet<&str> = HashSet::new();
    for session in trial.sessions.values() {
        let opened = session.openings.iter().filter_map(|call| trial.calls.get(*call));
        folders.extend(opened.filter_map(|call| call.params["cwd"].as_str()).map(|cwd| cwd.trim_end_matches('/')));
    }
    for call in calls(trial) {
        let (Some(path), Some(at)) = (call.params["path"].as_str(), call.answered_at()) else { continue };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_missing = call.error().is_some_and(|error| error.code == NOT_FOUND);
        let before = last.remove(path);
        match before {
            Some(LastSeen::Missing) if is_write(call) && is_missing && folders.contains(folder) => {
                verdict.broken_by(vec![call.at, at], format!("{} was not created, but answered `-32002`", shown(path)));
            }
            Some(LastSeen::Missing) if is_write(call) && call.result().is_some() => verdict.kept(),
            // The agent may delete the file by other means, of which it would tell.
            Some(LastSeen::Written(written)) if is_read(call) && is_missing && is_quiet(trial, written, call.at) => {
                verdict.broken_by(vec![written, at], format!("{} was written, and then did not exist", shown(path)));
            }
            _ => {}
        }
        if call.result().is_some() {
            folders.insert(folder);
        }
        if is_read(call) && is_missing {
            last.insert(path, LastSeen::Missing);
        } else if is_write(call) && call.result().is_some() {
            last.insert(path, LastSeen::Written(at));
        }
    }
}

/// Whether the agent sent nothing between two messages.
fn is_quiet(trial: &Trial<'_>, first: usize, second: usize) -> bool {
    let between = trial.messages.get(first + 1..second).unwrap_or(&[]);
    first < second && !between.iter().any(|message| message.from == Side::Agent)
}
