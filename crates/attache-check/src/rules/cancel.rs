//! Cancelling turns, and requests by `$/cancel_request` where they are prompts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use attache_proto::Dialect;

use super::prompt::straggler;
use crate::exchange::{Call, MessageIndex, Session, Turn};
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cancel/ends-the-turn",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A turn that is cancelled comes to an end, without waiting for answers of the user.",
        source: "v1/56 v2/34; S0 S1 S2 DOC SCH",
        instead: "Stop the work, then answer the prompt (version 2: report `idle`) with `cancelled`.",
        implies: &["sessions/close-cancels"],
        judge: ends_the_turn,
    },
    Rule {
        id: "cancel/says-cancelled",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A turn that ends because it was cancelled has the stop reason `cancelled`.",
        source: "v1/56 v2/34 v2/36; S0 S1 S2 DOC SCH",
        instead: "Answer with `{\"stopReason\":\"cancelled\"}`; in version 2, report it with `idle`.",
        implies: &[],
        judge: says_cancelled,
    },
    Rule {
        id: "cancel/no-error",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A cancelled turn does not end with an error.",
        source: "v1/16 v1/56 v2/34; S0 S1 S2 DOC SCH",
        instead: "Catch what the aborted work throws, and say `cancelled`.",
        implies: &[],
        judge: no_error,
    },
    Rule {
        id: "cancel/updates-first",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The updates of a cancelled turn come before its end.",
        source: "v1/56 v2/34 v2/36; S0 S1 S2 DOC SCH",
        instead: "Send what is still to be told, then the end.",
        implies: &[],
        judge: updates_first,
    },
    Rule {
        id: "cancel/stops-the-work",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "An agent that is told to cancel begins nothing new: no tool call, no permission request.",
        source: "v1/56 v2/34; S0 S1 S2 DOC SCH",
        instead: "Abort requests to the model and tools as soon as the cancellation comes.",
        implies: &[],
        judge: stops_the_work,
    },
    Rule {
        id: "cancel/permissions-cancelled",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1_AND_DRAFT,
        statement: "A client that cancels a turn answers its open permission requests with `cancelled`.",
        source: "v1/55 v2/36; S0 S2 DOC",
        instead: "Answer each with `{\"outcome\":{\"outcome\":\"cancelled\"}}`.",
        implies: &[],
        judge: permissions_cancelled,
    },
    Rule {
        id: "cancel/withdraws-permissions",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::V2,
        statement: "An agent withdraws the open permission requests of work that was cancelled, with `$/cancel_request`.",
        source: "v2/34; SCH",
        instead: "Send `$/cancel_request` for each of them.",
        implies: &[],
        judge: withdraws_permissions,
    },
    Rule {
        id: "cancel/late-approval",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "A permission that is granted after the work was cancelled is not acted on.",
        source: "v2/34; SCH",
        instead: "Ignore answers to permission requests of cancelled work.",
        implies: &["cancel/updates-first"],
        judge: late_approval,
    },
    Rule {
        id: "cancel/withdrawn-permission",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "A client answers a permission request that the agent withdraws with `cancelled`.",
        source: "v2/35 v2/6; SCH DOC",
        instead: "Answer it with `{\"outcome\":{\"outcome\":\"cancelled\"}}`, or with error -32800.",
        implies: &[],
        judge: withdrawn_permission,
    },
    Rule {
        id: "cancel/prompt-request",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A prompt that `$/cancel_request` names is answered with a result or with error -32800.",
        source: "v1/58 v2/6; DOC SCH",
        instead: "Answer as for `session/cancel`, or with code -32800.",
        implies: &[],
        judge: prompt_request,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/54", "A client marks unfinished tool calls as cancelled at once.", "What a client shows is not on the wire."),
    (
        "v1/57",
        "A client accepts tool updates after it has cancelled.",
        "What a client does with updates is not on the wire.",
    ),
    ("v1/58", "Both use -32800 for what they cancel themselves.", "Why somebody gave up is not on the wire."),
    (
        "v2/33",
        "`session/cancel` covers foreground work and prompts not yet taken in, not background work.",
        "Whether background work goes on is not on the connection.",
    ),
];

const CANCELLED: i32 = -32800;

/// A turn that has not ended when the agent has been waited for that long after it was cancelled does not end.
const LONG_ENOUGH: Duration = Duration::from_secs(2);

/// Who tells of a turn for that long after it was cancelled, on a connection that is not slow, has had the cancel and ignores it.
const TOO_LONG: Duration = Duration::from_millis(250);

/// Who does so again and again has ignored it, too, where it is for this long: no coincidence happens so often.
const WHILE: Duration = Duration::from_millis(50);
const OFTEN: usize = 3;

/// New things after a cancellation that are looked at. One is enough, and most of what may have crossed comes at once.
const MOST_LOOKED_AT: usize = 100;

/// The turns that were cancelled by `session/cancel`, each with its session and where.
fn cancelled<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a str, &'a Session, &'a Turn, MessageIndex)> {
    trial.exchange.sessions.iter().flat_map(|(id, session)| {
        let turns = session.turns.iter().filter_map(move |turn| Some((turn, turn.cancelled?)));
        turns.map(move |(turn, at)| (id.as_str(), session, turn, at))
    })
}

/// The requests for permission of a session that were made between two messages.
fn permissions<'a>(
    trial: &'a Trial<'_>,
    session: &'a str,
    from: MessageIndex,
    until: MessageIndex,
) -> impl Iterator<Item = &'a Call> {
    let calls = &trial.exchange.calls;
    let calls = calls[calls.partition_point(|call| call.at <= from)..].iter().take_while(move |call| call.at < until);
    let is_question = |call: &&Call| call.from == Side::Agent && call.method == "session/request_permission";
    calls.filter(is_question).filter(move |call| call.session() == Some(session))
}

/// Whether the end of a turn may have been under way when it was cancelled. It was not if the agent waited for the client.
fn may_have_ended_before(trial: &Trial<'_>, session: &str, cancel: MessageIndex, ends: MessageIndex) -> bool {
    let is_waiting = trial.calls_of(Side::Agent).any(|call| call.session() == Some(session) && call.is_open_at(cancel));
    !is_waiting && trial.may_have_crossed(cancel, ends)
}

fn ends_the_turn(trial: &Trial<'_>, verdict: &mut Verdict) {
    let quiet = trial.quiet_at_the_end(Side::Agent);
    for (_, session, turn, cancel) in cancelled(trial) {
        // A prompt of version 2 that is answered with `cancelled` has ended, though not as it should have.
        let answered = trial.calls[turn.call].result().is_some_and(|result| result["stopReason"].is_string());
        if turn.ends.is_some() || answered {
            verdict.kept();
        } else if session.closed_at.is_none() && quiet >= LONG_ENOUGH {
            verdict.broken_by(vec![turn.begins, cancel], "the turn was cancelled and did not end");
        }
    }
}

/// The error that a turn ended with: its code, `None` inside if it is only named by the stop reason.
fn error_of(trial: &Trial<'_>, turn: &Turn) -> Option<Option<i32>> {
    match trial.calls[turn.call].error() {
        // A prompt that was not taken in is answered like that in version 2.
        Some(error) if error.code == CANCELLED && trial.dialect == Dialect::V2 => None,
        Some(error) => Some(Some(error.code)),
        None => (turn.stop.as_deref() == Some("error")).then_some(None),
    }
}

/// The turn before and the turn after another.
fn neighbours<'a>(session: &'a Session, turn: &Turn) -> (Option<&'a Turn>, Option<&'a Turn>) {
    let place = session.turns.partition_point(|other| other.begins < turn.begins);
    (place.checked_sub(1).and_then(|before| session.turns.get(before)), session.turns.get(place + 1))
}

/// Whether a turn was running when another began.
fn runs_into(turn: &Turn, next: &Turn) -> bool {
    turn.ends.is_none_or(|ends| ends > next.begins)
}

/// Whether an error that may have crossed with a cancel has to do with the prompt: it would have come without the cancel as well. That a turn
/// fails in the moment in which it is cancelled is otherwise no coincidence to believe in. `usual` are the errors of turns that nobody
/// cancelled: this agent has no model, or nobody is logged in.
fn is_of_the_prompt(
    trial: &Trial<'_>,
    session: &Session,
    turn: &Turn,
    code: Option<i32>,
    usual: &HashSet<Option<i32>>,
) -> bool {
    let is_refused = matches!(code, Some(-32700 | -32602 | -32601 | -32600 | -32002));
    let is_busy = neighbours(session, turn).0.is_some_and(|before| runs_into(before, turn));
    let is_by_name = code == Some(CANCELLED) && trial.calls[turn.call].cancelled_at.is_some();
    is_refused || is_busy || is_by_name || code != Some(CANCELLED) && usual.contains(&code)
}

fn no_error(trial: &Trial<'_>, verdict: &mut Verdict) {
    let turns = trial.sessions.values().flat_map(|session| &session.turns);
    let others = turns.filter(|turn| turn.cancelled.is_none() && turn.ends.is_some());
    let usual: HashSet<Option<i32>> = others.filter_map(|turn| error_of(trial, turn)).collect();
    for (id, session, turn, cancel) in cancelled(trial) {
        let Some(ends) = turn.ends else { continue };
        match error_of(trial, turn) {
            None => verdict.kept(),
            Some(code)
                if may_have_ended_before(trial, id, cancel, ends)
                    && is_of_the_prompt(trial, session, turn, code, &usual) => {}
            Some(code) => {
                let named = code.map_or("the stop reason `error`".to_owned(), |code| format!("error {code}"));
                verdict.broken_by(vec![cancel, ends], format!("the cancelled turn ended with {named}"));
            }
        }
    }
}

/// For how long an agent went on with a turn after it was cancelled: until the last that it told of it. Zero where another turn may be told of.
fn went_on(trial: &Trial<'_>, session: &Session, turn: &Turn, cancel: MessageIndex) -> Duration {
    let ends = turn.ends.unwrap_or(cancel);
    let (before, after) = neighbours(session, turn);
    let is_alone =
        !before.is_some_and(|before| runs_into(before, turn)) && after.is_none_or(|after| after.begins > ends);
    let start = session.updates.partition_point(|at| *at < cancel);
    let until = session.updates.partition_point(|at| *at < ends);
    let is_work = |at: &&MessageIndex| {
        let kind = trial.messages[**at].body.params()["update"]["sessionUpdate"].as_str().unwrap_or("");
        kind.starts_with("agent_") || kind.starts_with("tool_call")
    };
    let last = session.updates[start..until].iter().rev().find(is_work).filter(|_| is_alone);
    last.map_or(Duration::ZERO, |last| trial.time_of(*last).saturating_sub(trial.time_of(cancel)))
}

/// What it takes to tell who ignores cancels from whose turns end in that moment.
struct Habit {
    /// How long the quickest answer took: no message is much longer under way.
    there_and_back: Duration,
    /// In how many turns the agent went on for a while.
    went_on: usize,
}

impl Habit {
    fn of(trial: &Trial<'_>) -> Self {
        let took = |call: &Call| Some(trial.time_of(call.answered_at()?).saturating_sub(trial.time_of(call.at)));
        let there_and_back = trial.calls_of(Side::Client).filter_map(took).min().unwrap_or_default();
        let mut habit = Habit { there_and_back, went_on: 0 };
        let ignored = cancelled(trial).filter(|(_, session, turn, cancel)| {
            turn.stop.as_deref() != Some("cancelled") && habit.is_long(went_on(trial, session, turn, *cancel), WHILE)
        });
        habit.went_on = ignored.count();
        habit
    }

    fn is_long(&self, time: Duration, least: Duration) -> bool {
        time >= least.max(self.there_and_back.saturating_mul(2))
    }

    /// Whether an agent has seen a cancel although the end of the turn came soon: it went on for longer than messages take to it and back, or
    /// it did so for a while in every turn.
    fn is_to_ignore(&self, time: Duration) -> bool {
        self.is_long(time, TOO_LONG) || self.is_long(time, WHILE) && self.went_on >= OFTEN
    }
}

fn says_cancelled(trial: &Trial<'_>, verdict: &mut Verdict) {
    let habit = Habit::of(trial);
    for (id, session, turn, cancel) in cancelled(trial) {
        let Some(ends) = turn.ends else { continue };
        let may_be_a_race = || {
            may_have_ended_before(trial, id, cancel, ends) && !habit.is_to_ignore(went_on(trial, session, turn, cancel))
        };
        let is_refused = trial.calls[turn.call].error().is_some();
        match turn.stop.as_deref() {
            Some("cancelled") => verdict.kept(),
            None if is_refused && error_of(trial, turn).is_none() => verdict.kept(),
            // Errors have a rule of their own.
            _ if error_of(trial, turn).is_some() || may_be_a_race() => {}
            stop => {
                let stop = stop.map_or("no stop reason".to_owned(), shown);
                verdict.broken_by(vec![cancel, ends], format!("the cancelled turn ended with {stop}"));
            }
        }
    }
}

fn updates_first(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (_, session, turn, _) in cancelled(trial).filter(|(_, _, turn, _)| turn.ends.is_some()) {
        match straggler(trial, session, turn) {
            Some((at, seen)) => verdict.broken_by(turn.ends.into_iter().chain([at]).collect(), seen),
            None => verdict.kept(),
        }
    }
}

fn stops_the_work(trial: &Trial<'_>, verdict: &mut Verdict) {
    let update = |at: MessageIndex| &trial.messages[at].body.params()["update"];
    // Where each session's tool calls were named first. It is found once, however many turns are cancelled.
    let mut named: HashMap<&str, HashMap<&str, MessageIndex>> = HashMap::new();
    for (id, session, turn, cancel) in cancelled(trial) {
        let Some(ends) = turn.ends else { continue };
        let start = session.updates.partition_point(|at| *at < cancel);
        let named = named.entry(id).or_insert_with(|| {
            let calls = session.updates.iter().rev().filter_map(|at| Some((update(*at)["toolCallId"].as_str()?, *at)));
            calls.collect()
        });
        let started = session.updates[start..].iter().copied().take_while(|at| *at < ends);
        let started = started.filter(|at| {
            let is_call = matches!(update(*at)["sessionUpdate"].as_str(), Some("tool_call" | "tool_call_update"));
            is_call
                && update(*at)["toolCallId"]
                    .as_str()
                    .is_some_and(|id| named.get(id).is_none_or(|first| *first >= cancel))
        });
        let asked = permissions(trial, id, cancel, ends).map(|call| call.at);
        let new = started
            .take(MOST_LOOKED_AT)
            .chain(asked.take(MOST_LOOKED_AT))
            .find(|at| !trial.may_have_crossed(cancel, *at));
        match new {
            Some(at) => {
                verdict.broken_by(vec![cancel, at], "the agent began something new after the turn was cancelled")
            }
            None => verdict.kept(),
        }
    }
}

fn permissions_cancelled(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (id, _, turn, cancel) in cancelled(trial) {
        for call in permissions(trial, id, turn.begins, cancel).filter(|call| call.is_open_at(cancel)) {
            let is_cancelled = call.result().is_some_and(|result| result["outcome"]["outcome"] == "cancelled");
            // A client that cancels before it sees the question asks the person, or finds the turn over.
            let is_late = |answered: MessageIndex| {
                turn.ends.is_some_and(|ends| ends < answered) || !trial.is_soon(cancel, answered)
            };
            if !is_cancelled && call.answered_at().is_some_and(is_late) && trial.may_have_crossed(call.at, cancel) {
                continue;
            }
            match (call.answered_at(), call.result()) {
                (None, _) if trial.had_time(Side::Client, cancel.max(call.at)) => {
                    verdict.broken_by(vec![call.at, cancel], "a permission request that was not answered");
                }
                (None, _) => {}
                (Some(_), Some(_)) if is_cancelled => verdict.kept(),
                (Some(at), Some(result)) => {
                    let outcome = result["outcome"]["outcome"].as_str().unwrap_or("no outcome");
                    verdict.broken_by(
                        vec![cancel, at],
                        format!("a permission request was answered with {}", shown(outcome)),
                    );
                }
                (Some(at), None) => {
                    verdict.broken_by(vec![cancel, at], "a permission request was answered with an error")
                }
            }
        }
    }
}

fn withdraws_permissions(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (id, _, turn, cancel) in cancelled(trial) {
        let Some(ends) = turn.ends else { continue };
        for call in permissions(trial, id, turn.begins, cancel).filter(|call| call.is_open_at(cancel)) {
            if call.cancelled_at.is_some() {
                verdict.kept();
            } else if call.answered_at().is_none_or(|answered| answered > ends) {
                verdict.broken_by(vec![call.at, ends], "the turn ended, and a permission request of it stayed open");
            }
        }
    }
}

fn late_approval(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (id, session, turn, cancel) in cancelled(trial) {
        for call in permissions(trial, id, turn.begins, cancel).filter(|call| call.is_open_at(cancel)) {
            let is_selected = call.result().is_some_and(|result| result["outcome"]["outcome"] == "selected");
            let tool_call = call.params["subject"]["toolCall"]["toolCallId"].as_str();
            let (Some(answered), Some(tool_call)) = (call.answered_at().filter(|_| is_selected), tool_call) else {
                continue;
            };
            // The client cancelled before it answered, so whoever acts on the answer has seen both.
            let start = session.updates.partition_point(|at| *at < answered);
            let acted = session.updates[start..].iter().find(|at| {
                let update = &trial.messages[**at].body.params()["update"];
                let status = update["status"].as_str();
                update["toolCallId"] == tool_call && matches!(status, Some("in_progress" | "completed"))
            });
            match acted {
                Some(at) => verdict.broken_by(
                    vec![cancel, answered, *at],
                    format!("the tool call {} ran by a permission that came too late", shown(tool_call)),
                ),
                None if trial.had_time(Side::Agent, answered) || turn.ends.is_some() => verdict.kept(),
                None => {}
            }
        }
    }
}

fn withdrawn_permission(trial: &Trial<'_>, verdict: &mut Verdict) {
    let calls = trial.calls_to("session/request_permission").filter(|call| call.from == Side::Agent);
    for (call, withdrawn) in calls.filter_map(|call| Some((call, call.cancelled_at?))) {
        let Some(answered) = call.answered_at() else {
            if trial.had_time(Side::Client, withdrawn) {
                verdict.broken_by(vec![call.at, withdrawn], "the permission request was not answered");
            }
            continue;
        };
        let is_cancelled = call.result().is_some_and(|result| result["outcome"]["outcome"] == "cancelled");
        let is_given_up = call.error().is_some_and(|error| error.code == CANCELLED);
        if is_cancelled || is_given_up {
            verdict.kept();
        } else if answered > withdrawn && !trial.may_have_crossed(withdrawn, answered) {
            verdict
                .broken_by(vec![withdrawn, answered], "the permission request was answered as if nothing had happened");
        }
    }
}

fn prompt_request(trial: &Trial<'_>, verdict: &mut Verdict) {
    let prompts = trial.calls_to("session/prompt").filter(|call| call.from == Side::Client);
    for (call, cancel) in prompts.filter_map(|call| Some((call, call.cancelled_at?))) {
        let Some(answered) = call.answered_at().filter(|answered| *answered > cancel) else { continue };
        let session = call.session().unwrap_or("");
        match call.error() {
            None => verdict.kept(),
            Some(error) if error.code == CANCELLED => verdict.kept(),
            Some(_) if may_have_ended_before(trial, session, cancel, answered) => {}
            Some(error) => {
                verdict.broken_by(vec![cancel, answered], format!("error {} for a cancelled prompt", error.code))
            }
        }
    }
}
