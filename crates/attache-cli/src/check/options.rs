//! The options of `check`.

use std::path::PathBuf;

use attache::Dialect;
use attache_check::{Choice, Level};
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::{ArgValueCandidates, CompletionCandidate};

use crate::complete;
use crate::exit::Failure;

/// The commands of `check`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Check {
    /// Start an agent many times, make it do all that it can, and judge what it did
    Agent(CheckAgent),
    /// Be an agent for a client that starts it, and judge what the client did
    Client(CheckClient),
    /// Judge recorded traffic: a trace of `attache trace` or `--trace`, or a transcript
    Transcript(Transcript),
    /// List the rules, or tell what one of them says
    Rules(Rules),
    /// List what agents are made to do, and what clients are: the names for `--probe` and `--scenario`
    Probes,
}

/// The options of `check agent`.
#[derive(Debug, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub(crate) struct CheckAgent {
    /// Which agent: a name, or an address of one on another machine
    #[arg(value_name = "AGENT", conflicts_with = "agent_command", add = ArgValueCandidates::new(complete::agents))]
    pub(crate) agent: Option<String>,

    /// The command of the agent, after `--`. It is started in this environment
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) agent_command: Vec<String>,

    /// Check this version of the protocol; it may be given again. All of them unless it is given
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) protocol: Vec<DialectName>,

    /// Give the agent a scripted model that does what the prompts of the check say, with the APIs of OpenAI, Anthropic and Google: its
    /// address is in the variables of these providers (OPENAI_BASE_URL and so on), and stands for `{model-url}` in the command
    #[arg(long, help_heading = "Model")]
    pub(crate) model_server: bool,

    /// How prompts say what is to be done, beside English
    #[arg(long, value_enum, value_name = "STYLE", help_heading = "Model")]
    pub(crate) script: Option<ScriptStyle>,

    /// Authenticate with this method before sessions are opened
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,

    /// Run these probes only, by name or by group: `cancel`, `cancel/in-mid-text`. It may be given again
    #[arg(long, value_name = "PROBE", add = ArgValueCandidates::new(probe_names))]
    pub(crate) probe: Vec<String>,

    /// How long an answer may take that needs no model, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(600..=600_000))]
    pub(crate) patience: u64,

    /// How long the agent may take to start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) startup: u64,

    /// How long a turn may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) turn: u64,

    /// Keep what was recorded in this directory, a trace for each probe
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) records: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) judging: Judging,
}

/// The options of `check client`.
#[derive(Debug, Args)]
#[command(after_help = CLIENT_EXAMPLES)]
#[group(id = "how", required = true, multiple = false)]
pub(crate) struct CheckClient {
    /// Be the agent, on stdin and stdout: this is what an editor is told to start. Each prompt plays the next scenario; the report goes
    /// to stderr and beside the record when the client leaves
    #[arg(long, group = "how")]
    pub(crate) serve: bool,

    /// Start a client that needs no person, once for each scenario. Last, because all that follows is its command: `{agent}` stands
    /// for the command line of the agent, `{agent-words}` for its words one by one, `{prompt}` for a prompt. The command line is in
    /// the variable ATTACHE_CHECK_AGENT, too. It is started in a temporary directory, so its files are named by whole paths
    #[arg(long, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true, group = "how")]
    pub(crate) run: Vec<String>,

    /// The version of the protocol to speak; the one that the client asks for unless it is given
    #[arg(long, value_enum, value_name = "VERSION")]
    pub(crate) protocol: Option<DialectName>,

    /// Play this scenario only; with `--run` it may be given again
    #[arg(long, value_name = "SCENARIO", add = ArgValueCandidates::new(scenario_names))]
    pub(crate) scenario: Vec<String>,

    /// How long a client may run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,

    /// Keep what was recorded in this directory
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) records: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) judging: Judging,
}

/// The options of `check rules`.
#[derive(Debug, Args)]
pub(crate) struct Rules {
    /// A rule or an area; all unless it is given
    #[arg(value_name = "RULE")]
    pub(crate) rule: Option<String>,
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectName {
    /// Version 1
    #[value(name = "1")]
    V1,
    /// Version 2 as it was drafted in June 2026
    #[value(name = "2-draft")]
    V2Draft,
    /// Version 2
    #[value(name = "2")]
    V2,
}

impl DialectName {
    /// The dialect.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            DialectName::V1 => Dialect::V1,
            DialectName::V2Draft => Dialect::V2Draft,
            DialectName::V2 => Dialect::V2,
        }
    }
}

/// How prompts say what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptStyle {
    /// Lines for the model of `--model-server`: `use read {"path":"a.txt"}`
    Lines,
    /// Directives in brackets: `[[read a.txt]]`
    Brackets,
    /// The commands of `attache agent --model offline`
    Offline,
    /// English alone, for a language model
    English,
}

fn probe_names() -> Vec<CompletionCandidate> {
    attache_check::probe::agent::probes().map(|probe| CompletionCandidate::new(probe.name)).collect()
}

fn scenario_names() -> Vec<CompletionCandidate> {
    attache_check::probe::client::scenarios().iter().map(|scenario| CompletionCandidate::new(scenario.name)).collect()
}

/// The options of `check transcript`.
#[derive(Debug, Args)]
pub(crate) struct Transcript {
    /// The file; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Whom to judge
    #[arg(long, value_enum, default_value_t = SideName::Both)]
    pub(crate) side: SideName,

    #[command(flatten)]
    pub(crate) judging: Judging,
}

/// Whom to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideName {
    /// The agent
    Agent,
    /// The client
    Client,
    /// Both of them, one after the other
    Both,
}

/// By which rules to judge, and how to say it.
#[derive(Debug, Args)]
pub(crate) struct Judging {
    /// Judge by this rule alone, or by those of an area: `cancel`, `cancel/says-cancelled`. It may be given again
    #[arg(long, value_name = "RULE")]
    pub(crate) only: Vec<String>,

    /// The weakest rules to judge by
    #[arg(long, value_enum, default_value_t = LevelName::Should)]
    pub(crate) level: LevelName,

    /// A file of rules that are known to be broken: a line `RULE: REASON` each. One that is no longer needed is a finding
    #[arg(long, value_name = "FILE")]
    pub(crate) waivers: Option<PathBuf>,

    /// List the rules that were kept and those that were not tested, too
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) form: Form,

    /// Write the verdict as a badge, an SVG file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) badge: Option<PathBuf>,
}

/// The form of the report on stdout.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Form {
    /// Print the report as a JSON object on one line; as two for `--side both`
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print the report as JUnit XML
    #[arg(long, help_heading = "Output")]
    pub(crate) junit: bool,

    /// Print the report as Markdown
    #[arg(long, help_heading = "Output")]
    pub(crate) markdown: bool,

    /// Print the report as SARIF
    #[arg(long, help_heading = "Output")]
    pub(crate) sarif: bool,
}

/// The weakest rules to judge by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelName {
    /// What has to be
    Must,
    /// What should be, too
    Should,
}

impl Judging {
    /// The rules that are chosen.
    pub(crate) fn choice(&self) -> Result<Choice, Failure> {
        for name in &self.only {
            let only = Choice { only: vec![name.clone()], ..Choice::default() };
            if !attache_check::rules::all().any(|rule| only.includes(rule)) {
                let shown = crate::visible::one_line(name);
                return Err(Failure::usage(format!(
                    "there is no rule or area `{shown}`\nhint: `attache check rules` lists them"
                )));
            }
        }
        let level = match self.level {
            LevelName::Must => Level::Must,
            LevelName::Should => Level::Should,
        };
        Ok(Choice { only: self.only.clone(), level: Some(level), dialects: None })
    }
}

const AGENT_EXAMPLES: &str = "\
Each probe starts the agent anew, in a temporary directory. What an agent never does is not tested, and never counts as kept.

Examples:
  attache check agent -- ./my-agent --acp
  attache check agent --protocol 1 --level must -- ./my-agent --acp
  attache check agent --model-server -- ./my-agent --base-url {model-url}
  attache check agent --script offline -- attache agent --model offline
  attache check agent wss://build.example.com --json > report.json
  attache check agent --probe cancel --records records -- ./my-agent    then: attache trace view records/1-cancel-twice.jsonl

Exit codes: 0 nothing was found, 1 there are findings, 2 it could not be checked.";

const CLIENT_EXAMPLES: &str = "\
Examples:
  attache check client --run ./my-client --agent {agent} {prompt}
  attache check client --protocol 1 --scenario permission --run ./my-client --agent {agent}
  attache check client --serve                                   the command of an agent, in an editor's settings

Exit codes: 0 nothing was found, 1 there are findings, 2 it could not be checked.";

const EXAMPLES: &str = "\
Examples:
  attache check agent -- ./my-agent --acp
  attache check client --run ./my-client --agent {agent} {prompt}
  attache check transcript bug.jsonl
  attache check rules prompt

Exit codes: 0 nothing was found, 1 there are findings, 2 it could not be checked.";
