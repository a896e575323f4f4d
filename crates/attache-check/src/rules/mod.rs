//! The rules, one module an area. A rule is a row of its module's table; its judge stands below the table.

mod auth;
mod batches;
mod cancel;
mod elicitation;
mod envelope;
mod errors;
mod extensions;
mod files;
mod initialize;
mod mcp;
mod messages;
mod notices;
mod options;
mod past;
mod permission;
mod plans;
mod prompt;
mod sessions;
mod shape;
mod state;
mod terminals;
mod tools;
mod transport;
mod walk;

pub use past::Past;

use crate::rule::Rule;

/// Items of the specification that cannot be observed from outside: the item (`v1/13`), what it says, and why.
type Unobservable = &'static [(&'static str, &'static str, &'static str)];

/// The tables, in the order in which reports show them.
const TABLES: &[(&[Rule], Unobservable)] = &[
    (envelope::RULES, envelope::UNOBSERVABLE),
    (errors::RULES, errors::UNOBSERVABLE),
    (batches::RULES, batches::UNOBSERVABLE),
    (extensions::RULES, extensions::UNOBSERVABLE),
    (transport::RULES, transport::UNOBSERVABLE),
    (initialize::RULES, initialize::UNOBSERVABLE),
    (auth::RULES, auth::UNOBSERVABLE),
    (sessions::RULES, sessions::UNOBSERVABLE),
    (mcp::RULES, mcp::UNOBSERVABLE),
    (prompt::RULES, prompt::UNOBSERVABLE),
    (state::RULES, state::UNOBSERVABLE),
    (cancel::RULES, cancel::UNOBSERVABLE),
    (messages::RULES, messages::UNOBSERVABLE),
    (tools::RULES, tools::UNOBSERVABLE),
    (permission::RULES, permission::UNOBSERVABLE),
    (files::RULES, files::UNOBSERVABLE),
    (terminals::RULES, terminals::UNOBSERVABLE),
    (plans::RULES, plans::UNOBSERVABLE),
    (options::RULES, options::UNOBSERVABLE),
    (notices::RULES, notices::UNOBSERVABLE),
    (elicitation::RULES, elicitation::UNOBSERVABLE),
];

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TABLES.iter().flat_map(|(rules, _)| rules.iter())
}

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Items of the specification that cannot be observed from outside: the item (`v1/13`), what it says, and why.
pub fn unobservable() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    TABLES.iter().flat_map(|(_, items)| items.iter())
}
