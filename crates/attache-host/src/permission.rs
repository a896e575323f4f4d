//! Whether an agent may do what it asks for.
//!
//! One engine for every front end. It is given a [`Subject`], made from what the agent sends, and returns a
//! [`Decision`]: allow, ask or deny, with the reason. To ask is the front end's part; a [`Question`] has all that a person
//! must see. The answer becomes one of the agent's own choices by [`allow`] or [`reject`].
//!
//! # Rules
//!
//! Rules stand in `permissions.toml` in the user's configuration. A rule that denies beats one that asks, and that beats
//! one that allows, wherever they stand. What no rule decides, the [`Policy`] does.
//!
//! ```toml
//! [[rule]]
//! verdict = "allow"                 # or "ask" or "deny"
//! command = ["git", "diff"]         # the words that a command begins with
//! not_args = ["--no-index"]         # it is not allowed by this rule with such an argument
//! match = ["git diff --stat"]       # examples, checked when the file is read
//! not_match = ["git diff > file"]
//!
//! [[rule]]
//! verdict = "deny"
//! kind = ["edit", "delete"]         # read, edit, delete, move, search, execute, think, fetch, switch_mode, other
//! path = "migrations/**"            # beneath any root; from the top with `/` or `~/`
//! agent = "claude"                  # for this agent only: a name, or the command as questions show it
//!
//! [[rule]]
//! verdict = "allow"
//! tool = ["github__get_*", "fetch:docs.rs"]
//! ```
//!
//! A rule with a `tool` is about the tools of agents that name them, as Attaché's own does: `server__tool` for a tool of an
//! MCP server, `fetch:host` for fetching from a host. `*`, `?` and `[…]` stand for parts of a name. Where an agent does not
//! name its tool, a rule that denies or asks about tools cannot be told to apply, and the call is asked about.
//!
//! A file with anything wrong in it, an unknown key or an example that fails, is refused whole, and then nothing is
//! allowed without asking.
//!
//! # Commands
//!
//! A rule that allows `["git", "diff"]` allows it with arguments that are known to be harmless: a table of commands and
//! options says which, with the reasons, and `docs/commands.md` is made from it. Anything else is asked about: an option that
//! is not in the table, a shorter form of one that is, an option before the subcommand, a path outside the directories of the
//! session or to a secret. A rule that names a command to its last word allows exactly that. For a program that is not in the
//! table, that is all; `args` says more:
//!
//! ```toml
//! [[rule]]
//! verdict = "allow"
//! command = ["frobnicate"]
//! args = "any"                      # or "known", or "none" for exactly these words
//! ```
//!
//! `args = "any"` is for a person who knows what a program can do; it is never suggested. Programs that run what their words
//! name (`sudo`, `env`, `xargs`, `sh`, `python`, `docker run`, `npm exec`, `uv run`…) are allowed with all their words only,
//! whatever the rule says, except for the commands that have a row of their own, such as `uv run pytest`. `timeout 60` before a
//! command changes nothing. A rule for a program alone, such as `["git"]`, allows those of its subcommands that change nothing.
//!
//! Each command of a list or a pipeline needs a rule, except `cd` to a directory of the session. What is more than its words is
//! asked about: expansions, redirections, variables, compound commands, functions, background jobs, more than one line,
//! invisible characters, and whatever cannot be parsed. A program is meant by the name that the rule has: `./git` is not
//! `git`.
//!
//! In the first version, rules allowed any plain arguments. They still load; [`Rule::narrowed`] says what they allow less.
//!
//! Rules that deny are read generously: in any directory, inside of any construct, behind any program that runs others.
//! Where it cannot be told whether one applies, the command is asked about, in every mode: a shell that reads its input, code
//! for an interpreter or an editor, an alias, variables that are more than a word. A rule for a path is also seen
//! in the words of a command, where they name the path; what a program opens by itself, only a sandbox can deny.
//!
//! # Secrets
//!
//! Files such as `.env`, keys, `.ssh`, hooks of git or the files that shells start with are asked about even where a
//! pattern or a mode allows; only a rule that names the very path allows them, or the mode [`Policy::All`].

mod answer;
mod arguments;
pub mod carried;
#[cfg(test)]
mod documentation;
mod engine;
mod file;
mod grant;
mod identity;
mod input;
mod judge;
mod place;
mod programs;
mod question;
mod rules;
mod search;
mod secrets;
mod shell;
mod strict;
mod subject;
mod table;
mod visible;

pub use answer::{NoSuchChoice, allow, answerable, reject};
pub use engine::{Decision, Engine, Places, Policy, Scope, UnknownPolicy};
pub use file::{RulesError, parse_rules};
pub use grant::{Grants, ShownChange};
pub use identity::agent_identity;
pub use question::{Change, Question};
pub use rules::{Arguments, Rule, Verdict};
pub use secrets::is_secret;
pub(crate) use secrets::{RUN, is_named};
pub use subject::{Action, Session, Subject};
pub use visible::{visible, visible_lines};

/// The commands of a shell line, if they are all there is and mean only themselves; otherwise what is in the way.
///
/// For fuzzing: front ends have no use for it.
#[doc(hidden)]
pub fn plain_commands(line: &str) -> Result<Vec<Vec<String>>, &'static str> {
    shell::read(line).plain().map(<[Vec<String>]>::to_vec)
}
