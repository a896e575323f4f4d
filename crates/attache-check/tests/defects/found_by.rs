//! Which probes find which defects: the group of probes for agents, the scenario for clients.
//!
//! A rule that is not here is found broken in what the reference peers do with each other, or by odd lines, and is still to be
//! looked for with the probes. `DISCOVER=1` prints which of them find a row.

use attache_check::Side::{self, Agent, Client};

/// The rule, who breaks it, and who finds that.
const FOUND_BY: &[(&str, Side, &str)] = &[
    ("envelope/ids", Agent, "cancel"),
    ("envelope/ids", Client, "older-version"),
    ("envelope/ids-not-null", Agent, "cancel"),
    ("envelope/ids-not-null", Client, "early-updates"),
    ("envelope/method-kind", Agent, "cancel"),
    ("envelope/method-kind", Client, "older-version"),
    ("envelope/params", Agent, "options"),
    ("envelope/results", Agent, "history"),
    ("envelope/shape", Agent, "cancel"),
    ("envelope/shape", Client, "early-updates"),
    ("envelope/version", Agent, "auth"),
    ("envelope/version", Client, "form"),
    ("errors/bad-id", Agent, "ids"),
    ("errors/bad-notification", Agent, "malformed"),
    ("errors/bad-request", Agent, "malformed"),
    ("errors/not-an-object", Agent, "malformed"),
    ("batches/empty", Agent, "batches"),
    ("batches/empty", Client, "malformed-lines"),
    ("batches/not-empty", Agent, "cancel"),
    ("batches/not-empty", Client, "early-updates"),
    ("extensions/camel-case", Agent, "history"),
    ("extensions/method-names", Agent, "cancel"),
    ("extensions/method-names", Client, "older-version"),
    ("extensions/root-fields", Agent, "history"),
    ("extensions/values", Client, "early-updates"),
    ("initialize/capability-types", Agent, "initialize"),
    ("initialize/capability-types", Client, "login"),
    ("initialize/first", Client, "older-version"),
    ("initialize/info", Agent, "initialize"),
    ("initialize/info", Client, "login"),
    ("initialize/methods-of-the-version", Client, "early-updates"),
    ("initialize/newest-version", Agent, "initialize"),
    ("initialize/not-above-the-request", Agent, "initialize"),
    ("initialize/unsupported-version", Agent, "initialize"),
    ("initialize/version-is-an-integer", Agent, "initialize"),
    ("initialize/version-is-an-integer", Client, "older-version"),
    ("initialize/words-of-its-version", Agent, "initialize"),
    ("auth/logout-offered", Client, "older-version"),
    ("auth/method-fields", Agent, "auth"),
    ("auth/terminal-env", Agent, "auth"),
    ("auth/terminal-offered", Agent, "elicitation"),
    ("cancel/permissions-cancelled", Client, "permission-kinds"),
    ("cancel/updates-first", Agent, "history"),
    ("files/absolute", Agent, "files"),
    ("files/line-positive", Agent, "files"),
    ("files/offered", Agent, "files"),
    ("sessions/own-sessions", Agent, "prompt"),
    ("elicitation/answer", Client, "form"),
    ("elicitation/form", Agent, "elicitation"),
    ("elicitation/no-secrets", Agent, "elicitation"),
    ("elicitation/offered", Agent, "elicitation"),
];

/// Who finds that a side breaks a rule.
pub(crate) fn found_by(rule: &str, side: Side) -> Option<&'static str> {
    FOUND_BY.iter().find(|(known, who, _)| *known == rule && *who == side).map(|(_, _, name)| *name)
}
