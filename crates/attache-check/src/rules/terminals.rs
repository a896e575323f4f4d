//! Commands that the client runs, and those that the agent shows.

mod display;
mod life;

use super::walk;
use crate::exchange::Call;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "terminals/offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent runs commands through the client only if the client offers it.",
        source: "v1/66; S0 S1 DOC",
        instead: "Look at `clientCapabilities.terminal` first; version 2 has no such methods.",
        implies: &[],
        judge: offered,
    },
    Rule {
        id: "terminals/cwd-absolute",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "The working directory of a command is absolute.",
        source: "v1/64 v2/43; S0 S1 SCH",
        instead: "Send an absolute `cwd`, or none.",
        implies: &[],
        judge: cwd_absolute,
    },
    Rule {
        id: "terminals/id-new",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A new terminal has an id that no other terminal of the session has until it is released.",
        source: "v1/68; S0 SCH",
        instead: "Give every terminal an id of its own.",
        implies: &[],
        judge: life::id_new,
    },
    Rule {
        id: "terminals/unknown-refused",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A terminal that was never created or is released is answered with an error.",
        source: "v1/70; S0 S1",
        instead: "Forget a terminal when it is released, and answer `-32002` for ids that are not known.",
        implies: &["errors/unknown-terminal"],
        judge: life::unknown_refused,
    },
    Rule {
        id: "terminals/kill-keeps",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A terminal whose command was killed can be asked for its output and its exit until it is released.",
        source: "v1/70; S0 S1 DOC",
        instead: "Keep the terminal until `terminal/release`.",
        implies: &[],
        judge: life::kill_keeps,
    },
    Rule {
        id: "terminals/kill-ends",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "After a kill, waiting for the command's exit is answered.",
        source: "v1/70; S0 S1 DOC",
        instead: "End the command with all its processes, and answer `terminal/wait_for_exit`.",
        implies: &[],
        judge: life::kill_ends,
    },
    Rule {
        id: "terminals/limit",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "The output of a terminal is not longer than `outputByteLimit`.",
        source: "v1/69; S0 S1 SCH",
        instead: "Drop output from its beginning.",
        implies: &[],
        judge: life::limit,
    },
    Rule {
        id: "terminals/character-boundary",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "Truncated output begins with a whole character.",
        source: "v1/69; S0 SCH",
        instead: "Cut the output between characters.",
        implies: &[],
        judge: life::character_boundary,
    },
    Rule {
        id: "terminals/released",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "An agent releases every terminal that it created, also those whose command ended or was killed.",
        source: "v1/68; S0 S1 DOC",
        instead: "Call `terminal/release` when the terminal is no longer needed.",
        implies: &[],
        judge: life::released,
    },
    Rule {
        id: "terminals/shown-alive",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1,
        statement: "A tool call shows terminals that were created and, when they are first shown, not yet released.",
        source: "v1/71; S0 S1 SCH",
        instead: "Put the terminal into the tool call right after it was created.",
        implies: &[],
        judge: life::shown_alive,
    },
    Rule {
        id: "terminals/base64",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The output of a terminal is base64, each snapshot and each chunk by itself.",
        source: "v2/43; SCH",
        instead: "Encode each piece of output by itself, with its padding.",
        implies: &[],
        judge: display::is_base64,
    },
    Rule {
        id: "terminals/id-not-reused",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The id of a terminal whose command has exited is not used for another command.",
        source: "v2/43; SCH DOC",
        instead: "Give every command a new `terminalId`.",
        implies: &[],
        judge: display::id_not_reused,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    ("v1/68", "A client returns the terminal's id at once.", "how long the command takes to start is not on the wire"),
    ("v1/71", "A client goes on showing a terminal after its release.", "it is seen on the client's screen only"),
    ("v2/43", "A client decodes output and shows it safely.", "it is seen on the client's screen only"),
];

fn calls<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = &'a Call> {
    let is_ours = |call: &&Call| call.method.starts_with("terminal/") && call.method != "terminal/cancel";
    trial.calls_of(Side::Agent).filter(is_ours)
}

fn offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in calls(trial) {
        let is_offered = trial.offers(Side::Client, "terminal");
        verdict.check(is_offered, call.at, || "a terminal, but the client does not offer `terminal`".into());
    }
}

fn cwd_absolute(trial: &Trial<'_>, verdict: &mut Verdict) {
    let created = calls(trial).map(|call| (call.at, &call.params["cwd"]));
    let shown_by_agent = trial.updates_of("terminal_update").map(|(at, _, update)| (at, &update["cwd"]));
    for (at, cwd) in created.chain(shown_by_agent) {
        let Some(cwd) = cwd.as_str() else { continue };
        verdict.check(walk::is_absolute(cwd), at, || format!("the directory {} is not absolute", shown(cwd)));
    }
}
