//! Making sessions: ids, directories, and the methods that capabilities gate.

use std::collections::{HashMap, HashSet};

use attache_proto::Dialect;
use attache_proto::model::request::RequestId;
use serde_json::Value;

use crate::exchange::Call;
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

pub(super) const METHOD_NOT_FOUND: i32 = -32601;

fn is_setup(call: &Call) -> bool {
    matches!(call.method.as_str(), "session/new" | "session/load" | "session/resume" | "session/fork")
}

pub(super) fn unique_id(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut known: HashSet<&str> = HashSet::new();
    for (call, id, _) in walk::made_sessions(trial.exchange) {
        let is_new = !trial.before.made.contains_key(id) && known.insert(id);
        verdict
            .check(is_new, call.answered_at().unwrap_or(call.at), || format!("two sessions with the id {}", shown(id)));
    }
}

/// Where an agent offers a method, `None` if it needs no offer.
pub(super) fn gate(dialect: Dialect, method: &str) -> Option<&'static str> {
    let name = method.strip_prefix("session/")?;
    Some(match (dialect, name) {
        (Dialect::V1, "load") => "loadSession",
        (Dialect::V1, "list") => "sessionCapabilities.list",
        (Dialect::V1, "resume") => "sessionCapabilities.resume",
        (Dialect::V1, "close") => "sessionCapabilities.close",
        (Dialect::V1, "delete") => "sessionCapabilities.delete",
        (Dialect::V1, "fork") => "sessionCapabilities.fork",
        (Dialect::V1, "archive" | "unarchive") => "sessionCapabilities.archive",
        (Dialect::V1, "status") => "sessionCapabilities.status",
        (Dialect::V1, "set_title") => "sessionCapabilities.title",
        (Dialect::V2Draft, "load") => "session.load",
        (Dialect::V2Draft, "list") => "session.list",
        (Dialect::V2Draft, "resume") => "session.resume",
        (Dialect::V2Draft, "close") => "session.close",
        (Dialect::V2, "new" | "prompt" | "list" | "resume" | "close") => "session",
        (Dialect::V2Draft | Dialect::V2, "delete") => "session.delete",
        (Dialect::V2Draft | Dialect::V2, "fork") => "session.fork",
        (Dialect::V2, "archive" | "unarchive") => "session.archive",
        (Dialect::V2, "status") => "session.status",
        (Dialect::V2, "set_title") => "session.title",
        _ => return None,
    })
}

/// Whether every agent has to have a method, if it has sessions at all.
fn is_baseline(dialect: Dialect, method: &str) -> bool {
    match dialect {
        Dialect::V2 => gate(dialect, method) == Some("session"),
        _ => matches!(method, "session/new" | "session/prompt"),
    }
}

pub(super) fn baseline(trial: &Trial<'_>, verdict: &mut Verdict) {
    let has_sessions = trial.dialect != Dialect::V2 || trial.offers(Side::Agent, "session");
    not_missing(trial, verdict, |method| has_sessions && is_baseline(trial.dialect, method));
}

pub(super) fn offers_kept(trial: &Trial<'_>, verdict: &mut Verdict) {
    not_missing(trial, verdict, |method| {
        let gate = gate(trial.dialect, method).filter(|_| !is_baseline(trial.dialect, method));
        gate.is_some_and(|path| trial.offers(Side::Agent, path))
    });
}

/// Judges that no request of some methods was answered with "method not found".
fn not_missing(trial: &Trial<'_>, verdict: &mut Verdict, is_meant: impl Fn(&str) -> bool) {
    let Some(agreed) = trial.agreed_at() else { return };
    let here: HashSet<&str> = walk::known_sessions(trial.exchange).collect();
    let is_known = |id: &str| here.contains(id) || trial.before.known.contains(id);
    let mut asked: HashMap<&RequestId, usize> = HashMap::new();
    trial.calls_of(Side::Client).for_each(|call| *asked.entry(&call.id).or_default() += 1);
    for call in trial.calls_of(Side::Client).filter(|call| call.at > agreed && is_meant(&call.method)) {
        // Where two requests have one id, nobody knows which of them an answer is for.
        // Whoever has no such session has nothing to do for it, and may not say that well.
        let is_there = call.session().is_none_or(|id| is_known(id) && is_open(trial, call, id));
        if let Some(at) = call.answered_at().filter(|_| is_there && asked.get(&call.id) == Some(&1)) {
            let is_missing = call.error().is_some_and(|error| error.code == METHOD_NOT_FOUND) && !trial.was_begun(call);
            verdict.check(!is_missing, at, || format!("`{}` is not implemented", call.method));
        }
    }
}

/// Whether a session is open for a request, as far as the request needs that.
fn is_open(trial: &Trial<'_>, call: &Call, id: &str) -> bool {
    let is_of_closed =
        matches!(call.method.as_str(), "session/load" | "session/resume" | "session/delete" | "session/fork");
    let closed = trial.sessions.get(id).and_then(|session| session.closed_at);
    is_of_closed || closed.is_none_or(|closed| closed > call.at)
}

pub(super) fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(agreed) = trial.agreed_at() else { return };
    for call in trial.calls_of(Side::Client).filter(|call| call.at > agreed) {
        if let Some(path) = gate(trial.dialect, &call.method) {
            verdict.check(trial.offers(Side::Agent, path), call.at, || {
                format!("`{}`, which the agent does not offer (`{path}`)", call.method)
            });
        }
    }
}

/// Whether a path is absolute, on whatever machine.
pub(super) fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let has_drive =
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/');
    path.starts_with('/') || path.starts_with("\\\\") || has_drive
}

/// What a side says about directories: the requests that open sessions, and the entries of `session/list`.
fn places<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (usize, &'a Value)> {
    let asked = trial.calls_of(Side::Client).filter(|call| is_setup(call)).map(|call| (call.at, &call.params));
    let asked = asked.filter(|_| trial.side == Side::Client);
    let lists = trial.calls_of(Side::Client).filter(|call| call.method == "session/list");
    let lists = lists.filter_map(|call| Some((call.answered_at()?, call.result()?["sessions"].as_array()?)));
    let listed = lists.flat_map(|(at, entries)| entries.iter().map(move |entry| (at, entry)));
    asked.chain(listed.filter(|_| trial.side == Side::Agent))
}

pub(super) fn absolute_cwd(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, place) in places(trial) {
        match &place["cwd"] {
            // That an entry of a list has one is for another rule to say.
            Value::Null if trial.side == Side::Agent => {}
            cwd => verdict.check(cwd.as_str().is_some_and(is_absolute), at, || {
                format!("`cwd` is {}", cwd.as_str().map_or_else(|| shown(&cwd.to_string()), shown))
            }),
        }
    }
}

pub(super) fn absolute_directories(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, place) in places(trial) {
        let directories = &place["additionalDirectories"];
        if directories.is_null() {
            continue;
        }
        let relative =
            directories.as_array().map(|list| list.iter().find(|path| !path.as_str().is_some_and(is_absolute)));
        match relative {
            None => verdict.broken(at, "`additionalDirectories` is not an array"),
            Some(Some(path)) => verdict.broken(at, format!("`additionalDirectories` has {}", shown(&path.to_string()))),
            Some(None) => verdict.kept(),
        }
    }
}

pub(super) fn directories_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let path = if trial.dialect == Dialect::V1 {
        "sessionCapabilities.additionalDirectories"
    } else {
        "session.additionalDirectories"
    };
    for call in trial.calls_of(Side::Client).filter(|call| is_setup(call)) {
        if call.params["additionalDirectories"].as_array().is_some_and(|list| !list.is_empty()) {
            verdict.check(trial.offers(Side::Agent, path), call.at, || {
                "`additionalDirectories`, which the agent does not offer".to_owned()
            });
        }
    }
}

/// A path without separators at its end.
pub(super) fn trimmed(path: &str) -> &str {
    let short = path.trim_end_matches(['/', '\\']);
    if short.is_empty() { path } else { short }
}

pub(super) fn resume_cwd(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut own: HashMap<&str, &str> = HashMap::new();
    for call in trial.calls_of(Side::Client) {
        match (call.method.as_str(), call.result()) {
            ("session/new" | "session/fork", Some(result)) => {
                if let (Some(id), Some(cwd)) = (result["sessionId"].as_str(), call.params["cwd"].as_str()) {
                    own.insert(id, cwd);
                }
            }
            ("session/resume", _) => {
                let before = |id: &str| trial.before.made.get(id).copied().flatten();
                let known = call.session().and_then(|id| own.get(id).copied().or_else(|| before(id)));
                if let (Some(cwd), Some(sent)) = (known, call.params["cwd"].as_str()) {
                    verdict.check(trimmed(cwd) == trimmed(sent), call.at, || {
                        format!("resumed in {}, made in {}", shown(sent), shown(cwd))
                    });
                }
            }
            _ => {}
        }
    }
}

pub(super) fn lists_are_arrays(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_of(Side::Client).filter(|call| is_setup(call)) {
        let (Some(result), Some(at)) = (call.result(), call.answered_at()) else { continue };
        for key in ["configOptions", "availableCommands"] {
            if let Some(list) = result.get(key) {
                verdict.check(list.is_array(), at, || format!("`{key}` is {}", shown(&list.to_string())));
            }
        }
    }
}
