//! The scenarios, one module a topic. Which there are stands in the table of `scenario.rs`.

pub(super) mod content;
pub(super) mod elicitation;
pub(super) mod ending;
pub(super) mod envelope;
pub(super) mod files;
pub(super) mod permission;
pub(super) mod session;
pub(super) mod terminals;
pub(super) mod tools;

/// How a turn ends that came to its end.
const DONE: super::scenario::Stop = "end_turn";
