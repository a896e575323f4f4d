//! Notices and compaction.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::walk;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "notices/title",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The title of a notice is not empty.",
        source: "v1/79; SCH",
        instead: "Say in one line what it is about.",
        implies: &[],
        judge: title,
    },
    Rule {
        id: "notices/offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "An agent of version 1 sends notices only if the client offers `session.notices`.",
        source: "v1/79; SCH",
        instead: "Look at `clientCapabilities.session.notices` first.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "notices/not-replayed",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "Notices are not part of a session's history.",
        source: "v1/79; SCH",
        instead: "Leave notices out when a session is loaded.",
        implies: &[],
        judge: not_replayed,
    },
    Rule {
        id: "notices/compaction-offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "An agent of version 1 reports compaction only if the client offers `session.compaction`.",
        source: "v1/79; SCH",
        instead: "Look at `clientCapabilities.session.compaction` first.",
        implies: &[],
        judge: compaction_offered,
    },
    Rule {
        id: "notices/compaction-order",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A compaction is announced before chunks of its summary come.",
        source: "v1/80; DOC",
        instead: "Send `compaction_update` first.",
        implies: &[],
        judge: compaction_order,
    },
    Rule {
        id: "notices/compaction-ends-once",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A compaction ends once: after a final status no other status follows.",
        source: "v1/80; DOC",
        instead: "Report another compaction with another id.",
        implies: &[],
        judge: compaction_ends_once,
    },
    Rule {
        id: "notices/compaction-fields",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A compaction has a `summary` only when it is completed, and an `error` only when it failed.",
        source: "v1/80; DOC",
        instead: "Send `summary` with `completed` and `error` with `failed`.",
        implies: &[],
        judge: compaction_fields,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/79", "An agent does not depend on its notices being seen.", "what it depends on is not on the wire"),
    ("v2/52", "A client may ignore notices.", "it is allowed, not required"),
];

/// Judges whether updates of a kind come only to clients that offer something.
fn judge_offer(trial: &Trial<'_>, verdict: &mut Verdict, kind: &str, path: &str) {
    for (at, _, _) in trial.updates_of(kind) {
        let is_offered = trial.offers(Side::Client, path);
        verdict.check(is_offered, at, || format!("`{kind}`, but the client does not offer `{path}`"));
    }
}

fn title(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in trial.updates_of("notice") {
        let Some(title) = update["title"].as_str() else { continue };
        verdict.check(!title.trim().is_empty(), at, || "a notice with an empty title".into());
    }
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    judge_offer(trial, verdict, "notice", "session.notices");
}

fn compaction_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    judge_offer(trial, verdict, "compaction_update", "session.compaction");
    judge_offer(trial, verdict, "compaction_summary_chunk", "session.compaction");
}

/// While a session is loaded, there may be news as well: only a notice that was sent before is history.
fn not_replayed(trial: &Trial<'_>, verdict: &mut Verdict) {
    let said = |update: &Value| [&update["severity"], &update["title"], &update["description"]].map(Value::to_string);
    let is_told_again = |(at, session, _): (usize, &str, &Value)| walk::is_replay(trial.exchange, session, at);
    if !trial.updates_of("notice").any(is_told_again) {
        return;
    }
    let mut sent = HashSet::new();
    for id in trial.sessions.keys() {
        for (_, session, update) in
            trial.before.of_session(id).iter().flat_map(|exchange| exchange.updates_of("notice"))
        {
            if session == id {
                sent.insert((session.to_owned(), said(update)));
            }
        }
    }
    // What is told before or after the history may be news that is true again; what stands in its middle is history.
    let history: Vec<(usize, &str)> = trial
        .updates()
        .filter(|(at, session, update)| {
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            let is_said = kind.contains("message") || kind.contains("thought") || kind.starts_with("tool_call");
            is_said && walk::is_replay(trial.exchange, session, *at)
        })
        .map(|(at, session, _)| (at, session))
        .collect();
    let is_amid = |notice: usize, session: &str| {
        let open = walk::opening(trial.exchange, session, notice);
        let is_of = |(at, of): &&(usize, &str)| *of == session && walk::opening(trial.exchange, session, *at) == open;
        let next = history.partition_point(|(at, _)| *at < notice);
        history[..next].iter().rev().take(64).any(|row| is_of(&row))
            && history[next..].iter().take(64).any(|row| is_of(&row))
    };
    for (at, session, update) in trial.updates_of("notice") {
        let is_new = sent.insert((session.to_owned(), said(update)));
        if walk::is_replay(trial.exchange, session, at) {
            verdict.check(is_new || !is_amid(at, session), at, || {
                "a notice that was sent before, in the middle of the history of a session".into()
            });
        } else {
            verdict.kept();
        }
    }
}

fn compaction_order(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut known = HashSet::new();
    for (at, session, update) in trial.updates() {
        let Some(id) = update["compactionId"].as_str() else { continue };
        let key = (session, walk::opening(trial.exchange, session, at), id);
        match update["sessionUpdate"].as_str() {
            Some("compaction_update") => {
                known.insert(key);
            }
            Some("compaction_summary_chunk") if walk::is_whole(trial.exchange, session, at) => {
                verdict.check(known.contains(&key), at, || {
                    format!("a summary of the compaction {}, which was not announced", shown(id))
                });
            }
            _ => {}
        }
    }
}

fn compaction_ends_once(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut ended: HashMap<_, (usize, &str)> = HashMap::new();
    for (at, session, update) in trial.updates_of("compaction_update") {
        let (Some(id), Some(status)) = (update["compactionId"].as_str(), update["status"].as_str()) else { continue };
        let key = (session, walk::opening(trial.exchange, session, at), id);
        match ended.get(&key) {
            Some((first, before)) if *before != status => verdict.broken_by(
                vec![*first, at],
                format!("the compaction {} was `{before}`, and then {}", shown(id), shown(status)),
            ),
            Some(_) => {}
            None if matches!(status, "completed" | "failed" | "cancelled") => {
                ended.insert(key, (at, status));
                verdict.kept();
            }
            None => {}
        }
    }
}

fn compaction_fields(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in trial.updates_of("compaction_update") {
        let Some(status) = update["status"].as_str() else { continue };
        // `[]` and null clear a summary.
        let has_summary = !walk::items(&update["summary"]).is_empty();
        let has_error = update["error"].is_string();
        let seen = match status {
            "completed" if has_error => "an `error` of a compaction that is completed",
            "failed" if has_summary => "a `summary` of a compaction that failed",
            "in_progress" | "cancelled" if has_summary => "a `summary` of a compaction that is not completed",
            "in_progress" | "cancelled" if has_error => "an `error` of a compaction that did not fail",
            _ => {
                verdict.kept();
                continue;
            }
        };
        verdict.broken(at, seen);
    }
}
