//! Terminals that the agent runs and shows, in version 2.

use std::collections::HashMap;

use attache_proto::base64;

use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

pub(super) fn is_base64(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, _, update) in trial.updates() {
        let data = match update["sessionUpdate"].as_str() {
            Some("terminal_update") => &update["output"]["data"],
            Some("terminal_output_chunk") => &update["data"],
            _ => continue,
        };
        let Some(data) = data.as_str() else { continue };
        verdict.check(base64::decode(data).is_some(), at, || format!("{} is not base64", shown(data)));
    }
}

pub(super) fn id_not_reused(trial: &Trial<'_>, verdict: &mut Verdict) {
    let mut commands: HashMap<_, &str> = HashMap::new();
    let mut exited = HashMap::new();
    for (at, session, update) in trial.updates_of("terminal_update") {
        let Some(id) = update["terminalId"].as_str() else { continue };
        let key = (session, walk::opening(trial.exchange, session, at), id);
        let command = update["command"].as_str();
        if let Some(first) = exited.get(&key) {
            let is_other = command.is_some_and(|command| commands.get(&key).is_some_and(|before| *before != command));
            let runs_again = update.get("exitStatus").is_some_and(|status| status.is_null());
            if is_other || runs_again {
                verdict.broken_by(vec![*first, at], format!("the terminal {} had exited, and runs again", shown(id)));
                continue;
            }
        }
        if let Some(command) = command {
            commands.insert(key, command);
        }
        if update["exitStatus"].is_object() {
            exited.entry(key).or_insert(at);
            verdict.kept();
        }
    }
}
