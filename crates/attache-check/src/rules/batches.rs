//! Arrays of messages. Only the draft of version 2 has them. Elsewhere nobody sends them, and who gets one serves it, as the draft
//! has it, or refuses it with one error, as today's peers do.

use std::collections::HashMap;

use crate::exchange::{Batch, Body, Call, MessageIndex, Mistake};
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "batches/not-sent",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::V1_AND_V2,
        statement: "Requests and notifications are sent one by one, not in arrays.",
        source: "v2/7 rpc; SCH RS TS",
        instead: "Send each message on a line of its own.",
        implies: &[],
        judge: not_sent,
    },
    Rule {
        id: "batches/not-empty",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Nobody sends an empty array, also not as the answer to an array of notifications.",
        source: "v2/7 rpc; S4",
        instead: "Send nothing where there is nothing to say.",
        implies: &[],
        judge: not_empty,
    },
    Rule {
        id: "batches/empty",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An empty array is answered with a single error -32600 and the id null, not with an array.",
        source: "v2/7 rpc; S4 RS TS JSON-RPC 2.0",
        instead: "Answer -32600 with the id null, by itself.",
        implies: &[],
        judge: empty,
    },
    Rule {
        id: "batches/answered",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An array of messages is served, or refused with a single error -32600 and the id null.",
        source: "v2/7 rpc; S4 RS TS",
        instead: "Answer each request in it, or all of it with one error -32600.",
        implies: &["envelope/answered"],
        judge: answered,
    },
    Rule {
        id: "batches/served",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::DRAFT,
        statement: "An array of messages is served.",
        source: "v2/7 rpc; S4",
        instead: "Handle each message in it, and answer the requests in one array.",
        implies: &["batches/invalid-entries"],
        judge: served,
    },
    Rule {
        id: "batches/one-array",
        binds: Binds::Both,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "The requests of an array are answered in one array.",
        source: "v2/7 rpc; S4 JSON-RPC 2.0",
        instead: "Collect the answers, and send them when the last one is there.",
        implies: &[],
        judge: one_array,
    },
    Rule {
        id: "batches/asked-for",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Responses come in an array only if their requests did.",
        source: "v2/7 rpc; S4 JSON-RPC 2.0",
        instead: "Answer a request that came by itself by itself.",
        implies: &[],
        judge: asked_for,
    },
    Rule {
        id: "batches/invalid-entries",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::DRAFT,
        statement: "Each entry of an array that is no message is answered with an error -32600 of its own and the id null.",
        source: "v2/7 rpc; S4 JSON-RPC 2.0",
        instead: "Put an error -32600 with the id null among the answers for each such entry.",
        implies: &[],
        judge: invalid_entries,
    },
    Rule {
        id: "batches/no-sessions",
        binds: Binds::Client,
        level: Level::Should,
        dialects: Dialects::DRAFT,
        statement: "`initialize`, `authenticate`, `session/new`, `session/load` and `session/prompt` are not sent in an array.",
        source: "v2/7 rpc; S4",
        instead: "Send them by themselves: what comes after depends on their answers.",
        implies: &[],
        judge: no_sessions,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] =
    &[("v2/7", "The requests of an array may be handled at once and in any order.", "every order is right")];

fn not_sent(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (_, message) in trial.messages_of(trial.side).filter(|(_, message)| message.in_batch.is_none()) {
        if matches!(message.body, Body::Request { .. } | Body::Notification { .. }) {
            verdict.kept();
        }
    }
    for batch in sent_by(trial, true) {
        let asks = |index: &MessageIndex| trial.messages[*index].body.method().is_some();
        if let Some(index) = batch.messages.clone().find(asks) {
            let method = trial.messages[index].body.method().unwrap_or_default();
            verdict.broken(index, format!("{} in an array", shown(method)));
        }
    }
}

/// The arrays of the judged side, or those of the other.
fn sent_by<'a>(trial: &'a Trial<'_>, is_judged: bool) -> impl Iterator<Item = &'a Batch> {
    let side = trial.side;
    trial.batches.iter().filter(move |batch| (batch.from == side) == is_judged)
}

fn not_empty(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in trial.mishaps.iter().filter(|mishap| mishap.from == trial.side && mishap.what == Mistake::EmptyBatch)
    {
        verdict.broken(mishap.at, "an empty array");
    }
    for batch in &trial.batches {
        if batch.from == trial.side || trial.had_time(trial.side, batch.messages.start) {
            verdict.kept();
        }
    }
}

fn empty(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in trial.mishaps.iter().filter(|mishap| mishap.from != trial.side && mishap.what == Mistake::EmptyBatch)
    {
        match &mishap.answer {
            None if trial.had_time(trial.side, mishap.at) => {
                verdict.broken(mishap.at, "an empty array was not answered")
            }
            None => {}
            Some(answer) => {
                let code = answer.outcome.as_ref().err().map_or(0, |error| error.code);
                let is_array = trial.messages[answer.at].in_batch.is_some();
                let how = if is_array { "an array".to_owned() } else { format!("the error {code}") };
                verdict.check(code == -32600 && !is_array, answer.at, || {
                    format!("an empty array was answered with {how}")
                });
            }
        }
    }
}

/// The requests of an array.
fn calls_in<'a>(trial: &'a Trial<'_>, batch: &Batch) -> &'a [Call] {
    let calls = &trial.exchange.calls;
    let from = calls.partition_point(|call| call.at < batch.messages.start);
    let to = calls.partition_point(|call| call.at < batch.messages.end);
    &calls[from..to]
}

fn answered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for batch in sent_by(trial, false) {
        let calls = calls_in(trial, batch);
        if let Some(refusal) = &batch.refusal {
            let code = refusal.outcome.as_ref().err().map_or(0, |error| error.code);
            verdict.check(code == -32600, refusal.at, || format!("an array was refused with the error {code}"));
        } else if let Some(call) = calls.iter().find(|call| trial.is_ignored(call)) {
            verdict.broken(call.at, format!("{} in an array was not answered", shown(&call.method)));
        } else if calls.iter().any(|call| !call.answers.is_empty()) {
            verdict.kept();
        }
    }
}

fn served(trial: &Trial<'_>, verdict: &mut Verdict) {
    for batch in sent_by(trial, false) {
        match &batch.refusal {
            Some(refusal) => verdict.broken_by(vec![batch.messages.start, refusal.at], "an array was refused"),
            None if calls_in(trial, batch).iter().any(|call| !call.answers.is_empty()) => verdict.kept(),
            None => {}
        }
    }
}

fn one_array(trial: &Trial<'_>, verdict: &mut Verdict) {
    for batch in sent_by(trial, false) {
        let answers: Vec<MessageIndex> = calls_in(trial, batch).iter().filter_map(Call::answered_at).collect();
        let Some(first) = answers.first() else { continue };
        let entry = trial.messages[*first].entry;
        let is_one =
            answers.iter().all(|at| trial.messages[*at].in_batch.is_some() && trial.messages[*at].entry == entry);
        verdict.check(is_one, *first, || "the requests of an array were not answered in one array".to_owned());
    }
}

fn asked_for(trial: &Trial<'_>, verdict: &mut Verdict) {
    let calls = trial.calls.iter().filter(|call| call.to() == trial.side);
    let asked: HashMap<MessageIndex, MessageIndex> =
        calls.flat_map(|call| call.answers.iter().map(|answer| (answer.at, call.at))).collect();
    for batch in sent_by(trial, true) {
        for at in batch.messages.clone() {
            let Some(call) = asked.get(&at) else { continue };
            verdict.check(trial.messages[*call].in_batch.is_some(), at, || {
                "an array with the answer to a request that came by itself".to_owned()
            });
        }
    }
}

fn invalid_entries(trial: &Trial<'_>, verdict: &mut Verdict) {
    for mishap in trial.mishaps.iter().filter(|mishap| mishap.from != trial.side) {
        let is_entry = trial.messages[mishap.at].in_batch.is_some();
        let is_refused = || trial.batch_of(mishap.at).is_some_and(|batch| batch.refusal.is_some());
        if !is_entry || !matches!(mishap.what, Mistake::Invalid(_)) {
            continue;
        }
        match &mishap.answer {
            Some(answer) => {
                let code = answer.outcome.as_ref().err().map_or(0, |error| error.code);
                verdict.check(code == -32600, answer.at, || {
                    "an entry of an array that is no message was served".to_owned()
                });
            }
            None if is_refused() || trial.had_time(trial.side, mishap.at) => {
                verdict.broken(mishap.at, "an entry of an array that is no message has no answer of its own");
            }
            None => {}
        }
    }
}

fn no_sessions(trial: &Trial<'_>, verdict: &mut Verdict) {
    const ALONE: [&str; 5] = ["initialize", "authenticate", "session/new", "session/load", "session/prompt"];
    for batch in sent_by(trial, true) {
        for at in batch.messages.clone() {
            let Body::Request { method, .. } = &trial.messages[at].body else { continue };
            verdict.check(!ALONE.contains(&method.as_str()), at, || format!("{} in an array", shown(method)));
        }
    }
}
