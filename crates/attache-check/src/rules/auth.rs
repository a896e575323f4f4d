//! Authentication.

use attache_proto::Dialect;
use serde_json::Value;

use crate::exchange::Call;
use crate::record::Side;
use crate::rule::{Binds, Dialects, Level, Rule, Trial, Verdict, shown};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "auth/method-fields",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "Every entry of `authMethods` has an id (`methodId` and a `type` in version 2) and a `name`.",
        source: "v1/28 v2/15; S1 SCH",
        instead: "Send `id` and `name`; in version 2 `methodId`, `type` and `name`.",
        implies: &["envelope/optional-parts", "envelope/params", "envelope/results"],
        judge: method_fields,
    },
    Rule {
        id: "auth/terminal-offered",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V1_AND_V2,
        statement: "An agent lists authentication methods of type `terminal` only for a client that offers `auth.terminal`.",
        source: "v1/31 v2/15; SCH",
        instead: "Leave them out for clients that do not offer it.",
        implies: &[],
        judge: terminal_offered,
    },
    Rule {
        id: "auth/terminal-env",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::V2,
        statement: "The `env` of a terminal method names each variable once.",
        source: "v2/15; SCH",
        instead: "Send a list of `name` and `value` without duplicates.",
        implies: &[],
        judge: terminal_env,
    },
    Rule {
        id: "auth/served",
        binds: Binds::Agent,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "An agent implements the authentication that it advertises: logging in, and out where it is offered.",
        source: "v1/29 v1/30 v2/14; S1 SCH",
        instead: "Answer `authenticate` (`auth/login`) for the methods you list, and `logout` (`auth/logout`).",
        implies: &[],
        judge: served,
    },
    Rule {
        id: "auth/advertised",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client authenticates only with a method that the agent advertises.",
        source: "v1/29 v2/14; S1 SCH",
        instead: "Send the id of an entry of `authMethods`.",
        implies: &[],
        judge: advertised,
    },
    Rule {
        id: "auth/terminal-not-called",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client does not pass a method of type `terminal` to `authenticate` or `auth/login`.",
        source: "v1/29 v1/32 v2/15; DOC SCH",
        instead: "Run the agent's program with the method's `args` and `env`, then connect again.",
        implies: &[],
        judge: terminal_not_called,
    },
    Rule {
        id: "auth/logout-offered",
        binds: Binds::Client,
        level: Level::Must,
        dialects: Dialects::ALL,
        statement: "A client logs out only from an agent that offers it: `auth.logout`, or in version 2 any `authMethods`.",
        source: "v1/30 v2/14; DOC SCH",
        instead: "Check the capability before you send `logout` or `auth/logout`.",
        implies: &[],
        judge: logout_offered,
    },
    Rule {
        id: "auth/after-required",
        binds: Binds::Client,
        level: Level::Should,
        dialects: Dialects::V1,
        statement: "A client that is told to authenticate (-32000) does so before it asks for a session again.",
        source: "v1/33; S1",
        instead: "Call `authenticate` with one of the advertised methods, then retry.",
        implies: &[],
        judge: after_required,
    },
];

/// What cannot be observed: the item of the specification, the statement, and why.
pub(super) const UNOBSERVABLE: &[(&str, &str, &str)] = &[
    (
        "v1/32",
        "A client runs the agent's program for a terminal method and reads its exit code.",
        "The program is not on the connection.",
    ),
    (
        "v1/34",
        "A client expects authentication errors on live sessions after logging out.",
        "How a client takes an error is not on the wire.",
    ),
];

const AUTH_REQUIRED: i32 = -32000;

/// The authentication methods that the agent advertises.
fn methods<'a>(trial: &'a Trial<'_>) -> &'a [Value] {
    trial.agent_hello()["authMethods"].as_array().map_or(&[], Vec::as_slice)
}

fn id(method: &Value) -> Option<&str> {
    method["methodId"].as_str().or_else(|| method["id"].as_str())
}

fn is_of_agent(method: &Value) -> bool {
    matches!(method["type"].as_str(), None | Some("agent"))
}

fn is_terminal(method: &Value) -> bool {
    method["type"] == "terminal"
}

fn hello_at(trial: &Trial<'_>) -> Option<usize> {
    trial.calls.get(trial.initialize?)?.answered_at()
}

/// The calls that log in, each with the advertised method that it names.
fn logins<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (&'a Call, Option<&'a Value>)> {
    let calls =
        trial.calls_of(Side::Client).filter(|call| matches!(call.method.as_str(), "authenticate" | "auth/login"));
    calls.map(|call| {
        let named = call.params["methodId"].as_str();
        (call, methods(trial).iter().find(|method| named.is_some() && id(method) == named))
    })
}

fn offers_logout(trial: &Trial<'_>) -> bool {
    match trial.dialect {
        Dialect::V2 => !methods(trial).is_empty(),
        _ => trial.offers(Side::Agent, "auth.logout"),
    }
}

fn method_fields(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(at) = hello_at(trial) else { return };
    let listed = &trial.agent_hello()["authMethods"];
    if !listed.is_null() && !listed.is_array() {
        return verdict.broken(at, "`authMethods` is not an array");
    }
    let needed: &[&str] = if trial.dialect == Dialect::V2 { &["methodId", "type", "name"] } else { &["id", "name"] };
    for method in methods(trial) {
        let missing = needed.iter().find(|key| !method[**key].is_string());
        verdict
            .check(missing.is_none(), at, || format!("an authentication method without `{}`", missing.unwrap_or(&"")));
    }
}

fn terminal_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(at) = hello_at(trial).filter(|_| !methods(trial).is_empty()) else { return };
    let named = methods(trial).iter().find(|method| is_terminal(method));
    let is_kept = named.is_none() || trial.offers(Side::Client, "auth.terminal");
    verdict.check(is_kept, at, || {
        let name = named.and_then(id).unwrap_or("");
        format!("the method {} is of type `terminal`, which the client does not offer", shown(name))
    });
}

fn terminal_env(trial: &Trial<'_>, verdict: &mut Verdict) {
    let Some(at) = hello_at(trial) else { return };
    for env in methods(trial).iter().filter(|method| is_terminal(method)).map(|method| &method["env"]) {
        let Some(list) = env.as_array() else {
            if !env.is_null() {
                verdict.broken(at, "`env` is not an array");
            }
            continue;
        };
        let names: std::collections::BTreeSet<_> = list.iter().filter_map(|entry| entry["name"].as_str()).collect();
        verdict
            .check(names.len() == list.len(), at, || "a variable of `env` without a name, or named twice".to_owned());
    }
}

fn served(trial: &Trial<'_>, verdict: &mut Verdict) {
    let logouts = trial.calls_of(Side::Client).filter(|call| matches!(call.method.as_str(), "logout" | "auth/logout"));
    let logouts = logouts.filter(|_| offers_logout(trial));
    let logins = logins(trial).filter(|(_, method)| method.is_some_and(is_of_agent)).map(|(call, _)| call);
    let own: &[&str] =
        if trial.dialect == Dialect::V2 { &["auth/login", "auth/logout"] } else { &["authenticate", "logout"] };
    for call in logins.chain(logouts).filter(|call| own.contains(&call.method.as_str())) {
        if let Some(at) = call.answered_at() {
            let is_unknown = call.error().is_some_and(|error| error.code == -32601);
            verdict.check(!is_unknown, at, || format!("`{}` is advertised, and not implemented", call.method));
        }
    }
}

fn advertised(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, method) in logins(trial) {
        verdict.check(method.is_some(), call.at, || {
            format!("{} is not advertised", shown(call.params["methodId"].as_str().unwrap_or("")))
        });
    }
}

fn terminal_not_called(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (call, method) in logins(trial) {
        if let Some(method) = method {
            verdict.check(!is_terminal(method), call.at, || {
                format!("{} is of type `terminal`", shown(id(method).unwrap_or("")))
            });
        }
    }
}

fn logout_offered(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls_of(Side::Client).filter(|call| matches!(call.method.as_str(), "logout" | "auth/logout")) {
        verdict.check(offers_logout(trial), call.at, || format!("`{}`, which the agent does not offer", call.method));
    }
}

fn after_required(trial: &Trial<'_>, verdict: &mut Verdict) {
    if !methods(trial).iter().any(is_of_agent) {
        return;
    }
    let mut refused: Option<&Call> = None;
    for call in trial.calls_of(Side::Client) {
        let is_setup = matches!(call.method.as_str(), "session/new" | "session/load");
        if let Some(before) = refused
            && before.answered_at().is_some_and(|answered| answered < call.at)
        {
            if call.method == "authenticate" {
                verdict.kept();
                refused = None;
            } else if is_setup {
                verdict.broken_by(vec![before.at, call.at], format!("`{}` again, without `authenticate`", call.method));
            }
        }
        if is_setup && call.error().is_some_and(|error| error.code == AUTH_REQUIRED) {
            refused = Some(call);
        }
    }
}
