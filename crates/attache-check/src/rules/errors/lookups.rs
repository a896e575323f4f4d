//! Errors for what is not there: sessions, files, terminals, a login.

use std::collections::HashSet;

use serde_json::Value;

use super::super::envelope::read_params;
use super::is_offered;
use crate::exchange::{Call, other};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// The error for what is not there.
const NOT_FOUND: i32 = -32002;

pub(super) fn unknown_session(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(agreed) = trial.agreed_at() else { return };
    let known: HashSet<&str> = walk::known_sessions(trial.exchange).collect();
    for call in trial.calls_of(Side::Client).filter(|call| call.at > agreed) {
        let (Some(id), Some(at)) = (call.session(), call.answered_at()) else { continue };
        // What an agent keeps on its disk is not known: that it opens a session says that there is one.
        let is_opening = matches!(call.method.as_str(), "session/load" | "session/resume");
        let is_use = matches!(
            call.method.as_str(),
            "session/prompt" | "session/set_config_option" | "session/set_mode" | "session/set_model"
        );
        let is_closed = || {
            // What is deleted leaves the list, and may still be open.
            let is_close = |at: &usize| {
                let closing = trial.call_of(*at).map(|closing| trial.calls[closing].method.as_str());
                closing == Some("session/close")
            };
            let closed = trial.sessions.get(id).and_then(|session| session.closed_at);
            closed.filter(is_close).is_some_and(|closed| closed < call.at)
        };
        let is_missing = !known.contains(id) && !trial.before.known.contains(id);
        let matters = is_use && (is_missing || is_closed()) || is_opening && is_missing && call.error().is_some();
        let message = trial.messages.get(call.at);
        let is_readable = message
            .is_some_and(|message| matches!(read_params(Side::Client, &message.body, trial.dialect), Some(Ok(_))));
        if !matters || !is_readable || is_offered(trial, Side::Agent, &call.method) == Some(false) {
            continue;
        }
        match call.error() {
            Some(error) if error.code == NOT_FOUND && error.data["sessionId"] == id => verdict.kept(),
            // Nobody is logged in, or the method is not known at all, which prompts are.
            Some(error) if error.code == -32000 || error.code == -32601 && call.method != "session/prompt" => {}
            Some(error) if error.code == NOT_FOUND => {
                verdict.broken_by(vec![call.at, at], "the error -32002 does not name the session in `data.sessionId`");
            }
            Some(error) => {
                let seen = format!("{} for a session that is not open: the error {}", shown(&call.method), error.code);
                verdict.broken_by(vec![call.at, at], seen);
            }
            None => {
                let seen = format!("{} for a session that is not open was served", shown(&call.method));
                verdict.broken_by(vec![call.at, at], seen);
            }
        }
    }
}

/// What an error says in small letters, without what it repeats of the request: paths and names say nothing about the reason.
fn own_words(call: &Call, message: &str) -> String {
    fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::String(text) if !text.is_empty() => found.push(text),
            Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
            Value::Object(members) => members.values().for_each(|member| texts(member, found)),
            _ => {}
        }
    }
    let mut repeated = Vec::new();
    texts(&call.params, &mut repeated);
    repeated.sort_by_key(|text| std::cmp::Reverse(text.len()));
    repeated.into_iter().fold(message.to_owned(), |words, text| words.replace(text, "…")).to_lowercase()
}

pub(super) fn missing_file(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_to("fs/read_text_file").filter(|call| call.from != trial.side) {
        let (Some(error), Some(at)) = (call.error(), call.answered_at()) else { continue };
        let text = own_words(call, &error.message);
        let says_so = ["no such file", "file not found", "file does not exist", "file doesn't exist", "enoent"];
        if error.code == NOT_FOUND {
            verdict.kept();
        } else if error.code != -32601 && says_so.iter().any(|words| text.contains(words)) {
            let seen = format!("a file that does not exist: the error {} instead of {NOT_FOUND}", error.code);
            verdict.broken_by(vec![call.at, at], seen);
        }
    }
}

pub(super) fn unknown_terminal(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut open: HashSet<&str> = HashSet::new();
    // What was answered before a request was sent counts for it.
    let mut changes: Vec<(usize, &str, bool)> = Vec::new();
    let asked = |call: &&Call| call.from != trial.side && call.method.starts_with("terminal/");
    for call in trial.calls.iter().filter(asked) {
        let (Some(result), Some(at)) = (call.result(), call.answered_at()) else { continue };
        match call.method.as_str() {
            "terminal/create" => changes.extend(result["terminalId"].as_str().map(|id| (at, id, true))),
            "terminal/release" => changes.extend(call.params["terminalId"].as_str().map(|id| (at, id, false))),
            _ => {}
        }
    }
    changes.sort_unstable_by_key(|(at, ..)| *at);
    let mut changes = changes.into_iter().peekable();
    let uses = ["terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"];
    for call in trial.calls_of(other(trial.side)).filter(|call| uses.contains(&call.method.as_str())) {
        while let Some((_, id, is_new)) = changes.next_if(|(at, ..)| *at < call.at) {
            if is_new {
                open.insert(id)
            } else {
                open.remove(id)
            };
        }
        let (Some(id), Some(at)) = (call.params["terminalId"].as_str(), call.answered_at()) else { continue };
        if open.contains(id) || call.session().is_none() || is_offered(trial, trial.side, &call.method) == Some(false) {
            continue;
        }
        let code = call.error().map(|error| error.code);
        verdict.check(code == Some(NOT_FOUND), at, || {
            let how = code.map_or("was served".to_owned(), |code| format!("was refused with {code}"));
            format!("{} for a terminal that is not there {how}", shown(&call.method))
        });
    }
}

pub(super) fn login_required(trial: &Trial<'_>, verdict: &mut Verdict) {
    let has_methods = trial.agent_hello()["authMethods"].as_array().is_some_and(|methods| !methods.is_empty());
    for call in trial.calls_of(Side::Client).filter(|_| has_methods) {
        if !matches!(call.method.as_str(), "session/new" | "session/load" | "session/resume" | "session/prompt") {
            continue;
        }
        let (Some(error), Some(at)) = (call.error(), call.answered_at()) else { continue };
        let text = own_words(call, &error.message);
        let says_so = [
            "authentication required",
            "authentication is required",
            "requires authentication",
            "not authenticated",
            "unauthenticated",
            "must authenticate",
            "please authenticate",
            "unauthorized",
            "login required",
            "login is required",
            "requires login",
            "requires a login",
            "not logged in",
            "please log in",
            "please login",
            "must log in",
            "have to log in",
            "not signed in",
            "please sign in",
        ];
        if error.code == -32000 {
            verdict.kept();
        } else if error.code != -32602 && says_so.iter().any(|words| text.contains(words)) {
            let seen = format!("{} was refused with {} for want of a login", shown(&call.method), error.code);
            verdict.broken_by(vec![call.at, at], seen);
        }
    }
}
