//! The lists of options that agents send.

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::MessageIndex;
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::shape::{Field, Shape, flaw, may, must};
use crate::rules::walk;

const VALUE: Shape =
    Shape::Record(&[must("value", Shape::Text), must("name", Shape::Text), may("description", Shape::Text)]);
const VALUES: Shape = Shape::Either(&[
    Shape::List(&VALUE),
    Shape::List(&Shape::Record(&[must("name", Shape::Text), must("options", Shape::List(&VALUE))])),
]);
const COMMON: [&str; 2] = ["id", "configId"];
const SELECT: &[Field] = &[
    must("name", Shape::Text),
    may("category", Shape::Text),
    must("currentValue", Shape::Text),
    must("options", VALUES),
];
const BOOLEAN: &[Field] = &[must("name", Shape::Text), may("category", Shape::Text), must("currentValue", Shape::Flag)];
const OPTION: Shape = Shape::Tagged("type", &[("select", SELECT), ("boolean", BOOLEAN)]);

/// The answers with which sessions were opened: where, which session, and the result.
pub(super) fn openings<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str, &'a Value)> {
    trial.calls_of(Side::Client).filter_map(|call| {
        let result = call.result()?;
        let session = match call.method.as_str() {
            "session/new" | "session/fork" => result["sessionId"].as_str()?,
            "session/load" | "session/resume" => call.session()?,
            _ => return None,
        };
        Some((call.answered_at()?, session, result))
    })
}

/// A list of the options of a session.
pub(super) struct OptionList<'a> {
    /// Where it was sent.
    pub at: MessageIndex,
    /// The session.
    pub session: &'a str,
    /// The options.
    pub options: &'a Value,
}

/// All lists of options, in order.
pub(super) fn lists<'a>(trial: &'a Trial<'_>) -> Vec<OptionList<'a>> {
    let list = |at, session, options| OptionList { at, session, options };
    let opened = openings(trial).map(|(at, session, result)| list(at, session, &result["configOptions"]));
    let updated = trial
        .updates_of("config_option_update")
        .map(|(at, session, update)| list(at, session, &update["configOptions"]));
    let answered = trial
        .calls_to("session/set_config_option")
        .filter_map(|call| Some(list(call.answered_at()?, call.session()?, &call.result()?["configOptions"])));
    let sent = opened.chain(answered).filter(|list| !list.options.is_null());
    let mut lists: Vec<_> = sent.chain(updated).collect();
    lists.sort_by_key(|list| list.at);
    lists
}

/// The id of an option, in either version's key.
pub(super) fn id_of(option: &Value) -> Option<&str> {
    COMMON.iter().find_map(|key| option[*key].as_str())
}

/// The values to select from, across groups.
pub(super) fn values(option: &Value) -> impl Iterator<Item = &str> {
    walk::items(&option["options"]).iter().flat_map(|value| {
        let of_group = walk::items(&value["options"]).iter().filter_map(|value| value["value"].as_str());
        value["value"].as_str().into_iter().chain(of_group)
    })
}

pub(super) fn shape(trial: &Trial<'_>, verdict: &mut Verdict) {
    const LIST: Shape = Shape::List(&OPTION);
    let key = if trial.dialect == Dialect::V2 { "configId" } else { "id" };
    for list in lists(trial) {
        let unnamed = walk::items(list.options).iter().any(|option| !option[key].is_string());
        match flaw(list.options, &LIST) {
            Some(flaw) => verdict.broken(list.at, format!("in `configOptions`, {flaw}")),
            None if unnamed => verdict.broken(list.at, format!("an option without `{key}`")),
            None => verdict.kept(),
        }
    }
}

/// The options to select from a list of values.
fn selects<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a Value)> {
    lists(trial).into_iter().flat_map(|list| {
        let selects = walk::items(list.options).iter().filter(|option| option["type"] == "select");
        selects.map(move |option| (list.at, option))
    })
}

pub(super) fn value_listed(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, option) in selects(trial) {
        let Some(current) = option["currentValue"].as_str() else { continue };
        verdict.check(values(option).any(|value| value == current), at, || {
            format!("the current value {} is not listed", shown(current))
        });
    }
}

pub(super) fn values_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, option) in selects(trial) {
        match walk::repeated(values(option)) {
            Some(value) => verdict.broken(at, format!("the value {} is listed twice", shown(value))),
            None => verdict.kept(),
        }
    }
}

pub(super) fn boolean_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for list in lists(trial) {
        if walk::items(list.options).iter().any(|option| option["type"] == "boolean") {
            let is_offered = trial.offers(Side::Client, "session.configOptions.boolean");
            verdict.check(is_offered, list.at, || "a `boolean` option, which the client does not offer".into());
        }
    }
}
