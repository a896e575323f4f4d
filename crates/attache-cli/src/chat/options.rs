//! The options of `chat`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCandidates;

use crate::cli::{Permissions, Start, key_value};
use crate::complete;

/// The options of `chat`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Chat {
    /// What to ask first
    #[arg(value_name = "PROMPT", allow_hyphen_values = false)]
    pub(crate) prompt: Option<String>,

    /// A command to run as the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) start: Start,

    /// Go on with a session in its own directory, by its id or that of a run in it; the beginning is enough
    #[arg(long, value_name = "ID", help_heading = "Session", conflicts_with = "continue_last",
          add = ArgValueCandidates::new(complete::sessions))]
    pub(crate) resume: Option<String>,

    /// Go on with the last session in this directory: of the agent that is named, else of any
    #[arg(short, long = "continue", help_heading = "Session")]
    pub(crate) continue_last: bool,

    /// Let the agent work in this directory as well
    #[arg(long, value_name = "DIR", help_heading = "Session")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Choose a model that the agent offers; for the built-in agent any, as provider:name
    #[arg(short, long, help_heading = "Session", add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Choose a mode that the agent offers
    #[arg(long, help_heading = "Session", add = ArgValueCandidates::new(complete::modes))]
    pub(crate) mode: Option<String>,

    /// Set an option that the agent offers
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Session")]
    pub(crate) set: Vec<(String, String)>,

    /// What the agent may do where no rule of permissions.toml says so, in place of what its mode says
    #[arg(long, value_enum, help_heading = "Permission")]
    pub(crate) permissions: Option<Permissions>,

    /// Keep the terminal's own scrollback: finished parts are printed into it
    #[arg(long, help_heading = "Screen", conflicts_with = "plain")]
    pub(crate) inline: bool,

    /// Line by line, without a screen: for screen readers and very simple terminals
    #[arg(long, help_heading = "Screen")]
    pub(crate) plain: bool,

    /// Take the mouse: the wheel scrolls, and the terminal selects text only with Shift
    #[arg(long, help_heading = "Screen", conflicts_with = "plain")]
    pub(crate) mouse: bool,
}

const EXAMPLES: &str = "\
Examples:
  attache                              choose an agent or a session, and sit down with it
  attache chat -a claude               with an agent by name
  attache chat -c                      go on with the last session of this directory
  attache chat -- ./my-agent --acp     with any program that speaks ACP
  attache chat --inline 'what is here?'

Keys: `?` in an empty composer, or F1, shows all of them. They can be changed in chat.toml.";
