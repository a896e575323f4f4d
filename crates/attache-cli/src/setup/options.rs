//! The options of `attache setup`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueHint};
use clap_complete::ArgValueCandidates;

use super::editors::{EDITORS, NONE};
use crate::complete;

/// The options of `setup`. What is not said is asked, where there is a terminal.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Setup {
    /// The model: a provider, or provider:name; `offline` is no language model. Without it, the one of agent.toml
    #[arg(short, long, value_name = "PROVIDER[:NAME]", add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Where the model's provider is, if not where it usually is
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "model")]
    pub(crate) base_url: Option<String>,

    /// Keep the provider's key: that of this environment variable, or with `-` the first line of stdin
    #[arg(long, value_name = "VARIABLE|-")]
    pub(crate) key_from: Option<String>,

    /// Make the agent known to this editor; more than one can be named
    #[arg(short, long, value_name = "EDITOR", value_parser = PossibleValuesParser::new(editor_names()))]
    pub(crate) editor: Vec<String>,

    /// Do not ask whether the changes that are shown may be made
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Leave out the test prompt at the end
    #[arg(long)]
    pub(crate) no_test: bool,

    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print a JSON object a line: the model, its key, each file, the test
    #[arg(long)]
    pub(crate) json: bool,
}

fn editor_names() -> Vec<PossibleValue> {
    let known = EDITORS.iter().map(|editor| PossibleValue::new(editor.name).help(editor.title));
    known.chain([PossibleValue::new(NONE).help("No editor")]).collect()
}

const EXAMPLES: &str = "\
Nothing is changed before you have seen it and said yes. What was there stays, comments included,
and a copy of each file that is changed is kept in $XDG_STATE_HOME/attache/backups. Keys go where
`attache login` keeps them, and never into the settings of an editor.

Exit codes: 0 done, 1 a file has to be changed by hand or the test prompt failed, 2 wrong usage.

Examples:
  attache setup
  attache setup --model anthropic --key-from ANTHROPIC_API_KEY --editor zed --yes
  attache setup --model ollama --editor jetbrains --dry-run
  attache setup --editor emacs --no-test";
