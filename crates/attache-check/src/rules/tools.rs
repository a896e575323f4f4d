//! Tool calls and diffs.

mod cancel;
mod diffs;

use std::collections::{HashMap, HashSet};

use super::walk;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "tools/call-first",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A tool call is announced with `tool_call` before `tool_call_update` changes it.",
        source: "v1/50 v1/59; S0 S1",
        instead: "Send `tool_call` for a new id.",
        implies: &[],
        judge: call_first,
    },
    Rule {
        id: "tools/id-unique",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "Each tool call has an id of its own in its session.",
        source: "v1/59; S0 S1",
        instead: "Give every tool call a new id, and change it with `tool_call_update`.",
        implies: &[],
        judge: id_unique,
    },
    Rule {
        id: "tools/title-first",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ANY_V2,
        statement: "The first report of a tool call has its title.",
        source: "v2/40; S3 SCH",
        instead: "Send `title` with the first update of a `toolCallId`.",
        implies: &[],
        judge: title_first,
    },
    Rule {
        id: "tools/name-first",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::V1,
        statement: "The first report of a tool call has the name of its tool.",
        source: "v1/61; DOC",
        instead: "Send `name` with `tool_call`.",
        implies: &[],
        judge: name_first,
    },
    Rule {
        id: "tools/name-stays",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "The name of a tool call's tool does not change.",
        source: "v1/61; DOC",
        instead: "Change the `title` if there is news for people.",
        implies: &[],
        judge: name_stays,
    },
    Rule {
        id: "tools/final-stays",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "A tool call that was completed or failed does not become pending or run again.",
        source: "v1/65; S0",
        instead: "Report another attempt as another tool call.",
        implies: &[],
        judge: final_stays,
    },
    Rule {
        id: "tools/absolute-paths",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The paths of locations and diffs are absolute.",
        source: "v1/64 v2/44; S0 S1 S3 SCH",
        instead: "Resolve paths against the session's working directory before they are sent.",
        implies: &[],
        judge: absolute_paths,
    },
    Rule {
        id: "tools/line-positive",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Lines of locations are counted from 1.",
        source: "v1/64; S0 S1 SCH",
        instead: "Count lines from 1, and leave `line` out if there is none.",
        implies: &[],
        judge: line_positive,
    },
    Rule {
        id: "tools/diff-form",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A diff has the form of its version: `path` and `newText`, or in version 2 as published `changes`.",
        source: "v2/44; S0 S1 S3 SCH",
        instead: "Write diffs in the form of the agreed version.",
        implies: &["envelope/optional-parts"],
        judge: diffs::form,
    },
    Rule {
        id: "tools/patch-agrees",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The patch of a diff changes only files that `changes` lists, in the way it says.",
        source: "v2/44; SCH",
        instead: "Make `changes` and `patch` from the same list of changes.",
        implies: &[],
        judge: diffs::agrees,
    },
    Rule {
        id: "tools/patch-plain",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "A `git_patch` has absolute paths without `a/` and `b/`, and nothing of a commit or a mail around it.",
        source: "v2/44; SCH",
        instead: "Write what `git diff --no-prefix` writes, with absolute paths.",
        implies: &[],
        judge: diffs::plain,
    },
    Rule {
        id: "tools/cancel-offered",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "A client cancels only tool calls and terminals that were said to be cancellable.",
        source: "v2/42; SCH",
        instead: "Send `tool_call/cancel` and `terminal/cancel` only while `capabilities.cancel` is there.",
        implies: &[],
        judge: cancel::offered,
    },
    Rule {
        id: "tools/cancel-refused",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "An agent answers `-32602` when a tool call or terminal to cancel is unknown, finished or not cancellable.",
        source: "v2/42; SCH RS",
        instead: "Answer with the error `-32602`.",
        implies: &[],
        judge: cancel::refused,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/59",
        "An agent reports the tool calls that its model asks for.",
        "what the model asked for is not on the wire",
    ),
    ("v1/60", "Absent and null leave a field of a tool call unchanged.", "it is seen on the client's screen only"),
    ("v2/41", "A client applies updates of tool calls field by field.", "it is seen on the client's screen only"),
    (
        "v2/44",
        "An agent gives a patch where it can; a client shows diffs without one.",
        "whether it could is not on the wire",
    ),
];

fn call_first(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut known = HashSet::new();
    for report in walk::reports(trial.exchange) {
        let key = (report.session, walk::opening(trial.exchange, report.session, report.at), report.id);
        if report.by != "tool_call_update" {
            known.insert(key);
        } else if walk::is_whole(trial.exchange, report.session, report.at) {
            let is_new = known.insert(key);
            verdict.check(!is_new, report.at, || {
                format!("`tool_call_update` for {}, which no `tool_call` announced", shown(report.id))
            });
        }
    }
}

fn id_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut announced = HashMap::new();
    for report in walk::reports(trial.exchange).filter(|report| report.by == "tool_call") {
        let key = (report.session, walk::opening(trial.exchange, report.session, report.at), report.id);
        match announced.insert(key, report.at) {
            Some(first) => {
                verdict.broken_by(vec![first, report.at], format!("two tool calls with the id {}", shown(report.id)));
            }
            None => verdict.kept(),
        }
    }
}

fn title_first(trial: &Trial<'_>, verdict: &mut Verdict) {
    first_has(trial, verdict, "title");
}

fn name_first(trial: &Trial<'_>, verdict: &mut Verdict) {
    first_has(trial, verdict, "name");
}

/// Judges whether the first report of each tool call has a field.
fn first_has(trial: &Trial<'_>, verdict: &mut Verdict, field: &str) {
    let mut known = HashSet::new();
    for report in walk::reports(trial.exchange) {
        let key = (report.session, walk::opening(trial.exchange, report.session, report.at), report.id);
        if known.insert(key) && walk::is_whole(trial.exchange, report.session, report.at) {
            verdict.check(report.call[field].is_string(), report.at, || {
                format!("the tool call {} began without `{field}`", shown(report.id))
            });
        }
    }
}

fn name_stays(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut names: HashMap<_, &str> = HashMap::new();
    for report in walk::reports(trial.exchange) {
        let Some(name) = report.call["name"].as_str() else { continue };
        let key = (report.session, walk::opening(trial.exchange, report.session, report.at), report.id);
        let first = *names.entry(key).or_insert(name);
        verdict.check(first == name, report.at, || format!("the tool {} is now called {}", shown(first), shown(name)));
    }
}

/// Whether a tool call with this status is over.
fn is_final(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

fn final_stays(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut over = HashMap::new();
    for report in walk::reports(trial.exchange) {
        let Some(status) = report.call["status"].as_str() else { continue };
        let key = (report.session, walk::opening(trial.exchange, report.session, report.at), report.id);
        if is_final(status) {
            over.entry(key).or_insert((report.at, status));
            verdict.kept();
        } else if let Some((first, before)) = over.get(&key).filter(|_| matches!(status, "pending" | "in_progress")) {
            let seen = format!("the tool call {} went from `{before}` to `{status}`", shown(report.id));
            verdict.broken_by(vec![*first, report.at], seen);
        }
    }
}

fn absolute_paths(trial: &Trial<'_>, verdict: &mut Verdict) {
    for report in walk::reports(trial.exchange) {
        let locations = walk::items(&report.call["locations"]).iter().filter_map(|location| location["path"].as_str());
        let diffs = report.content().filter(|item| item["type"] == "diff");
        for path in locations.chain(diffs.flat_map(diffs::paths)) {
            verdict.check(walk::is_absolute(path), report.at, || format!("the path {} is not absolute", shown(path)));
        }
    }
}

fn line_positive(trial: &Trial<'_>, verdict: &mut Verdict) {
    for report in walk::reports(trial.exchange) {
        for line in walk::items(&report.call["locations"]).iter().filter_map(|location| location["line"].as_i64()) {
            verdict.check(line >= 1, report.at, || format!("line {line} of a location"));
        }
    }
}

/// The files that a tool call names, in its locations and diffs.
pub(super) fn named_paths(call: &serde_json::Value) -> impl Iterator<Item = &str> {
    let locations = walk::items(&call["locations"]).iter().filter_map(|location| location["path"].as_str());
    let diffs = walk::items(&call["content"]).iter().filter(|item| item["type"] == "diff");
    locations.chain(diffs.flat_map(diffs::paths))
}
