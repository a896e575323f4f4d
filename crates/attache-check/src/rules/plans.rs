//! Plans and slash commands.

use attache_proto::Dialect;
use serde_json::Value;

use super::shape::{Shape, flaw, may, must};
use super::walk;
use crate::exchange::MessageIndex;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "plans/id",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ANY_V2,
        statement: "A plan has an id: `planId`, in the draft `id`.",
        source: "v2/48; S2 SCH",
        instead: "Give every plan an id and send it with all its updates.",
        implies: &["envelope/params"],
        judge: id,
    },
    Rule {
        id: "plans/offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "An agent of version 1 sends `plan_update` and `plan_removed` only if the client offers `plan`.",
        source: "v1/23; SCH",
        instead: "Send `plan` to clients that do not offer more.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "plans/command-shape",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A slash command has a name and a description, and its input a hint; version 2 has a `type` for both.",
        source: "v1/78 v2/47; S0 S1 SCH",
        instead: "Send the fields as the schema has them.",
        implies: &["envelope/optional-parts"],
        judge: command_shape,
    },
    Rule {
        id: "plans/command-name",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The name of a slash command has no whitespace in it and no slash before it.",
        source: "v2/47; SCH",
        instead: "Send the name as users type it after the slash.",
        implies: &[],
        judge: command_name,
    },
    Rule {
        id: "plans/command-unique",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The slash commands of a list have different names.",
        source: "v2/47; SCH",
        instead: "List each command once.",
        implies: &[],
        judge: command_unique,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/72",
        "A plan is sent whole each time.",
        "entries may be removed, so that a short list cannot be told from a part",
    ),
    ("v1/72", "A client replaces the plan.", "it is seen on the client's screen only"),
    ("v1/78", "Commands run as text of a prompt.", "what users type is not known"),
    ("v2/48", "A client replaces the plan with the same id.", "it is seen on the client's screen only"),
];

const OLD_COMMAND: Shape = Shape::Record(&[
    must("name", Shape::Text),
    must("description", Shape::Text),
    may("input", Shape::Record(&[must("hint", Shape::Text)])),
]);
const COMMAND: Shape = Shape::Tagged(
    "type",
    &[(
        "command",
        &[
            must("name", Shape::Text),
            must("description", Shape::Text),
            may("input", Shape::Tagged("type", &[("text", &[must("hint", Shape::Text)])])),
        ],
    )],
);

fn id(trial: &Trial<'_>, verdict: &mut Verdict) {
    let key = if trial.dialect == Dialect::V2 { "planId" } else { "id" };
    for (at, _, update) in trial.updates_of("plan_update") {
        let is_there = update["plan"][key].is_string();
        verdict.check(is_there, at, || format!("a plan without `{key}`"));
    }
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for kind in ["plan_update", "plan_removed"] {
        for (at, _, _) in trial.updates_of(kind) {
            let is_offered = trial.offers(Side::Client, "plan");
            verdict.check(is_offered, at, || format!("`{kind}`, but the client does not offer `plan`"));
        }
    }
}

/// The lists of slash commands that an agent sent, with where.
fn command_lists<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a Value)> {
    let updates =
        trial.updates_of("available_commands_update").map(|(at, _, update)| (at, &update["availableCommands"]));
    let answers = trial.calls_of(Side::Client).filter_map(|call| {
        let commands = &call.result().filter(|_| trial.dialect == Dialect::V2)?["availableCommands"];
        Some((call.answered_at()?, commands)).filter(|(_, commands)| !commands.is_null())
    });
    updates.chain(answers)
}

fn command_shape(trial: &Trial<'_>, verdict: &mut Verdict) {
    const OLD: Shape = Shape::List(&OLD_COMMAND);
    const NEW: Shape = Shape::List(&COMMAND);
    for (at, commands) in command_lists(trial) {
        match flaw(commands, if trial.dialect == Dialect::V2 { &NEW } else { &OLD }) {
            Some(flaw) => verdict.broken(at, format!("in the list of slash commands, {flaw}")),
            None => verdict.kept(),
        }
    }
}

fn names(commands: &Value) -> impl Iterator<Item = &str> {
    walk::items(commands).iter().filter_map(|command| command["name"].as_str())
}

fn command_name(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, commands) in command_lists(trial) {
        for name in names(commands) {
            let is_plain = !name.contains(char::is_whitespace) && !name.starts_with('/');
            verdict.check(is_plain, at, || format!("a slash command with the name {}", shown(name)));
        }
    }
}

fn command_unique(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, commands) in command_lists(trial) {
        match walk::repeated(names(commands)) {
            Some(name) => verdict.broken(at, format!("two slash commands with the name {}", shown(name))),
            None => verdict.kept(),
        }
    }
}
