//! Questions with a form or an address.

mod answers;
mod form;
mod url;

use std::collections::HashMap;

use serde_json::Value;

use super::walk;
use crate::exchange::Call;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "elicitation/offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent asks only in a mode that the client offers.",
        source: "v1/81; DOC SCH",
        instead: "Look at `elicitation.form` and `elicitation.url` of the client first.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "elicitation/form",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The schema of a form is an object with fields of known types, with values to choose from, and requires only fields that it has.",
        source: "v1/81 v2/51; DOC SCH",
        instead: "Ask for `string`, `number`, `integer`, `boolean` and `array` fields, and list in `required` what is in `properties`.",
        implies: &[],
        judge: form::schema,
    },
    Rule {
        id: "elicitation/no-secrets",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A form does not ask for passwords, keys or the like.",
        source: "v1/82; DOC",
        instead: "Ask for secrets in `url` mode.",
        implies: &[],
        judge: form::no_secrets,
    },
    Rule {
        id: "elicitation/id-unique",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Each question with an address has an `elicitationId` of its own.",
        source: "v1/84; DOC SCH",
        instead: "Make a new id for every question.",
        implies: &[],
        judge: id_unique,
    },
    Rule {
        id: "elicitation/completes-asked",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "`elicitation/complete` names a question with an address that was asked on this connection.",
        source: "v1/84; DOC",
        instead: "Send it with the id of the question, on the connection where it was asked.",
        implies: &[],
        judge: completes_asked,
    },
    Rule {
        id: "elicitation/no-credentials",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An address to visit holds no credentials.",
        source: "v1/85; DOC",
        instead: "Keep credentials at the server that the address leads to.",
        implies: &[],
        judge: url::no_credentials,
    },
    Rule {
        id: "elicitation/https",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "An address to visit is an HTTPS one.",
        source: "v1/85; DOC",
        instead: "Serve the page over HTTPS.",
        implies: &[],
        judge: url::https,
    },
    Rule {
        id: "elicitation/unoffered-refused",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A question in a mode that the client does not offer is refused with `-32602`, or with `-32601` if it offers none.",
        source: "v1/81; DOC",
        instead: "Answer with the error `-32602`.",
        implies: &["errors/unadvertised-method-v1"],
        judge: answers::unoffered_refused,
    },
    Rule {
        id: "elicitation/answer",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A question is answered with `accept`, `decline` or `cancel`, and only what was accepted has content.",
        source: "v1/83 v2/51; DOC SCH",
        instead: "Answer `{\"action\":…}`, with `content` for an accepted form.",
        implies: &["envelope/results"],
        judge: answers::answer,
    },
    Rule {
        id: "elicitation/answer-fits",
        binds: Binds::Client,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "The content of an accepted form fits its schema.",
        source: "v1/83; DOC",
        instead: "Check what the user filled in before it is sent.",
        implies: &[],
        judge: answers::fits,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/81", "An agent has a fallback for clients without a mode.", "what it would have asked is not on the wire"),
    (
        "v1/83",
        "A client names the agent, shows the whole address, and asks before it opens it.",
        "it is seen on the client's screen only",
    ),
    (
        "v1/84",
        "An agent copes with refusals and checks that the same user completes.",
        "who the user is is not on the wire",
    ),
    ("v1/84", "A client ignores unknown or finished ids.", "a notification has no answer"),
    (
        "v2/51",
        "A client does not render unknown modes and types as known ones.",
        "it is seen on the client's screen only",
    ),
    ("v2/51", "An agent takes unknown actions as `cancel`.", "what it takes them for is not on the wire"),
];

fn questions<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    trial.calls_of(Side::Agent).filter(|call| call.method == "elicitation/create")
}

/// The mode of a question, and whether the client offers it. What we do not know may be offered in ways we do not know.
fn mode<'a>(trial: &Trial<'_>, question: &'a Call) -> Option<(&'a str, bool)> {
    let mode = question.params["mode"].as_str()?;
    let path = match mode {
        "form" => "elicitation.form",
        "url" => "elicitation.url",
        _ => return None,
    };
    Some((mode, trial.offers(Side::Client, path)))
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for question in questions(trial) {
        let Some((mode, is_offered)) = mode(trial, question) else { continue };
        verdict.check(is_offered, question.at, || format!("a question in `{mode}` mode, which is not offered"));
    }
}

fn id_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut asked = HashMap::new();
    for question in questions(trial) {
        let Some(id) = question.params["elicitationId"].as_str() else { continue };
        match asked.insert(id, question.at) {
            Some(first) => {
                verdict.broken_by(vec![first, question.at], format!("two questions with the id {}", shown(id)));
            }
            None => verdict.kept(),
        }
    }
}

fn completes_asked(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut asked = HashMap::new();
    for question in questions(trial) {
        if let Some(id) = question.params["elicitationId"].as_str() {
            asked.entry(id).or_insert(question.at);
        }
    }
    for (at, params) in trial.notifications(Side::Agent, "elicitation/complete") {
        let id = params["elicitationId"].as_str();
        let was_asked = id.and_then(|id| asked.get(id)).is_some_and(|asked| *asked < at);
        let named = id.map_or_else(|| "no question".to_owned(), shown);
        verdict.check(was_asked, at, || format!("`elicitation/complete` for {named}, which was not asked"));
    }
}

/// The fields of a form.
fn properties(question: &Call) -> impl Iterator<Item = (&str, &Value)> {
    let properties = question.params["requestedSchema"]["properties"].as_object();
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}

/// The names that a form requires.
fn required(question: &Call) -> impl Iterator<Item = &str> {
    walk::items(&question.params["requestedSchema"]["required"]).iter().filter_map(Value::as_str)
}
