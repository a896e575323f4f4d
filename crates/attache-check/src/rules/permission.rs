//! Questions for permission.

mod denied;

use attache_proto::Dialect;

use super::walk;
use crate::exchange::{Call, Exchange};
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "permission/has-options",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "A question for permission has at least one option.",
        source: "v2/45; SCH",
        instead: "Offer at least one option.",
        implies: &[],
        judge: has_options,
    },
    Rule {
        id: "permission/option-ids-unique",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The options of a question for permission have different ids.",
        source: "v1/62 v2/45; S1 S3 SCH",
        instead: "Give each option an id of its own.",
        implies: &[],
        judge: option_ids_unique,
    },
    Rule {
        id: "permission/command-cwd",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The working directory of a command that permission is asked for is absolute.",
        source: "v2/45; SCH",
        instead: "Send the directory in `subject.cwd`, absolute.",
        implies: &[],
        judge: command_cwd,
    },
    Rule {
        id: "permission/supported",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client has `session/request_permission`.",
        source: "v1/27; S0 S1",
        instead: "Answer the method, if only with a rejecting option.",
        implies: &[],
        judge: supported,
    },
    Rule {
        id: "permission/answers-offered",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client answers with an option that was offered, or `cancelled`.",
        source: "v1/62 v2/45; S0 S1 S3 SCH",
        instead: "Answer `{\"outcome\":{\"outcome\":\"selected\",\"optionId\":…}}` with one of the ids that were offered, or `cancelled`.",
        implies: &["envelope/results"],
        judge: answers_offered,
    },
    Rule {
        id: "permission/denied-means-no",
        binds: Binds::Agent,
        level: Level::Should,
        dialects: Dialects::ALL,
        statement: "An agent does not go on with a tool call that was not permitted.",
        source: "v1/63 v2/45; SCH",
        instead: "Do it only for an offered option that allows it; report the tool call as `failed` otherwise.",
        implies: &[],
        judge: denied::means_no,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/62", "Agents may ask for permission, clients may decide by settings.", "it is allowed, not required"),
    (
        "v2/45",
        "A client applies the tool call of a question like an update first.",
        "it is seen on the client's screen only",
    ),
];

fn questions<'a>(exchange: &'a Exchange<'_>) -> impl Iterator<Item = &'a Call> {
    exchange.calls_to("session/request_permission").filter(|call| call.from == Side::Agent)
}

fn option_ids(call: &Call) -> impl Iterator<Item = &str> {
    walk::items(&call.params["options"]).iter().filter_map(|option| option["optionId"].as_str())
}

fn has_options(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in questions(trial.exchange) {
        if let Some(options) = call.params["options"].as_array() {
            verdict.check(!options.is_empty(), call.at, || "a question for permission without options".into());
        }
    }
}

fn option_ids_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in questions(trial.exchange) {
        match walk::repeated(option_ids(call)) {
            Some(id) => verdict.broken(call.at, format!("two options with the id {}", shown(id))),
            None => verdict.kept(),
        }
    }
}

fn command_cwd(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in questions(trial.exchange).filter(|call| call.params["subject"]["type"] == "command") {
        let Some(cwd) = call.params["subject"]["cwd"].as_str() else { continue };
        verdict.check(walk::is_absolute(cwd), call.at, || format!("the directory {} is not absolute", shown(cwd)));
    }
}

fn supported(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in questions(trial.exchange) {
        let Some(answered) = call.answered_at() else { continue };
        let is_there = call.error().is_none_or(|error| error.code != -32601);
        verdict.check(is_there, answered, || "a question for permission was answered `-32601`".into());
    }
}

fn answers_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in questions(trial.exchange) {
        let (Some(answered), Some(result)) = (call.answered_at(), call.result()) else { continue };
        let outcome = &result["outcome"];
        let seen = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("cancelled"), _) => None,
            (Some("selected"), Some(id)) if option_ids(call).any(|offered| offered == id) => None,
            (Some("selected"), Some(id)) => Some(format!("the option {} was not offered", shown(id))),
            (Some("selected"), None) => Some("`selected` without an `optionId`".to_owned()),
            (Some(other), _) if trial.dialect == Dialect::V2 && other.starts_with('_') => None,
            (Some(other), _) => Some(format!("the outcome {}", shown(other))),
            (None, _) => Some("an answer without an `outcome`".to_owned()),
        };
        match seen {
            Some(seen) => verdict.broken_by(vec![call.at, answered], seen),
            None => verdict.kept(),
        }
    }
}
