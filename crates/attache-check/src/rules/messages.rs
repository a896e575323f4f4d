//! Messages of the agent and the user, piece by piece.

use std::collections::HashSet;

use attache_proto::base64;

use super::walk;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "messages/base64",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The `data` of an image or a sound and the `blob` of a resource are base64.",
        source: "v1/51; S0 S1 SCH",
        instead: "Encode the bytes in standard base64, without a `data:` prefix.",
        implies: &[],
        judge: is_base64,
    },
    Rule {
        id: "messages/id-present",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ANY_V2,
        statement: "Every message update and chunk carries a `messageId`.",
        source: "v2/37; S2 SCH",
        instead: "Give each message an id and send it with all that belongs to the message.",
        implies: &["envelope/params", "envelope/optional-parts"],
        judge: id_present,
    },
    Rule {
        id: "messages/id-new",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "Each prompt becomes a message with an id of its own: no id of an earlier prompt of the session.",
        source: "v2/37; SCH",
        instead: "Answer every prompt with a new `messageId`.",
        implies: &[],
        judge: id_new,
    },
    Rule {
        id: "messages/icon-source",
        binds: Binds::Both,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The `src` of an icon is an `https:` or a `data:` URI.",
        source: "v2/39; SCH",
        instead: "Serve icons over HTTPS or put them into a `data:` URI.",
        implies: &[],
        judge: icon_source,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/51",
        "Chunks with one id are one message, a new id begins another.",
        "where a message ends is the agent's choice",
    ),
    (
        "v1/53",
        "A client drops a refused prompt and what followed from its view.",
        "it is seen on the client's screen only",
    ),
    ("v1/57", "A client accepts updates of tool calls after it cancelled.", "it is seen on the client's screen only"),
    ("v2/38", "A client applies message updates and chunks in order.", "it is seen on the client's screen only"),
    ("v2/39", "A client renders text as CommonMark.", "it is seen on the client's screen only"),
];

fn is_base64(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, block) in walk::blocks(trial.exchange, trial.side) {
        let bytes = match block["type"].as_str() {
            Some("image" | "audio") => block["data"].as_str(),
            Some("resource") => block["resource"]["blob"].as_str(),
            _ => None,
        };
        let Some(bytes) = bytes else { continue };
        verdict.check(base64::decode(bytes).is_some(), at, || format!("{} is not base64", shown(bytes)));
    }
}

fn id_present(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in trial.updates() {
        let kind = update["sessionUpdate"].as_str().unwrap_or("");
        if walk::is_message_chunk(kind) || walk::is_whole_message(kind) {
            let has_id = update["messageId"].as_str().is_some_and(|id| !id.is_empty());
            verdict.check(has_id, at, || format!("`{kind}` without `messageId`"));
        }
    }
}

fn id_new(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut seen = HashSet::new();
    for call in trial.calls_to("session/prompt").filter(|call| call.from == Side::Client) {
        let (Some(session), Some(id), Some(at)) =
            (call.session(), call.result().and_then(|result| result["messageId"].as_str()), call.answered_at())
        else {
            continue;
        };
        let is_new = seen.insert((session, id));
        verdict.check(is_new, at, || format!("two prompts became the message {}", shown(id)));
    }
}

fn icon_source(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, block) in walk::blocks(trial.exchange, trial.side) {
        for source in walk::items(&block["icons"]).iter().filter_map(|icon| icon["src"].as_str()) {
            let scheme = source.split(':').next().unwrap_or("");
            let is_right = source.contains(':') && ["https", "data"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
            verdict.check(is_right, at, || format!("an icon from {}", shown(source)));
        }
    }
}
