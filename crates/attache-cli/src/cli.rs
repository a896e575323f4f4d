//! Every command and option, with its help.

use std::path::PathBuf;
use std::time::Duration;

use attache_host::permission::Policy;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit;

/// Run any agent of the Agent Client Protocol from a terminal, a script or a pipe.
#[derive(Debug, Parser)]
#[command(name = "attache", version, about, max_term_width = 100, after_help = exit::HELP)]
#[command(disable_help_subcommand = true, infer_long_args = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give an agent a prompt, and print what comes of it
    Run(Box<Run>),
    /// Be an agent: the coding agent that is built in, on stdin and stdout, for any editor that speaks ACP
    Agent(Box<AgentOptions>),
    /// Find, add and try agents
    #[command(subcommand)]
    Agents(Agents),
    /// Look at earlier runs, and at the sessions that an agent keeps
    #[command(subcommand)]
    Sessions(Sessions),
    /// Trust what a directory brings along in `.attache`, or take that back
    Trust(Trust),
    /// Explain what commands are confined by, or run any command that way
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Tell what works on this machine, and what to do about the rest
    Doctor(Doctor),
    /// Print a JSON Schema
    Schema {
        /// Which
        what: SchemaOf,
    },
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  attache completions bash > ~/.local/share/bash-completion/completions/attache")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of all or of one command
    #[command(
        after_help = "Examples:\n  attache man > ~/.local/share/man/man1/attache.1\n  attache man run | man -l -"
    )]
    Man {
        /// Which command
        command: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaOf {
    /// The events of `run -o stream-json` and the result of `-o json`
    Events,
}

/// The options of `run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// What to ask; `-` reads it from stdin. Stdin that is no terminal is added to it as context.
    /// `@path` in it attaches a file
    #[arg(value_name = "PROMPT", allow_hyphen_values = false)]
    pub(crate) prompt: Option<String>,

    /// Read the prompt from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// A command to run as the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) start: Start,

    /// What to print
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub(crate) output: Format,

    /// Attach a file: its content where the agent takes that, else a link to it
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    pub(crate) attach: Vec<PathBuf>,

    /// Attach an image
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    pub(crate) image: Vec<PathBuf>,

    /// Go on with a session, by the id that an earlier run printed
    #[arg(long, value_name = "ID", help_heading = "Session", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,

    /// Go on with the last session of this agent in this directory
    #[arg(long = "continue", help_heading = "Session")]
    pub(crate) continue_last: bool,

    /// Keep no record of this run, and have the agent delete its session at the end if it can
    #[arg(long, help_heading = "Session", conflicts_with_all = ["resume", "continue_last"])]
    pub(crate) ephemeral: bool,

    /// Let the agent work in this directory as well
    #[arg(long, value_name = "DIR", help_heading = "Session")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Give the agent the MCP servers of a file, `{"mcpServers": {…}}`
    #[arg(long, value_name = "FILE", help_heading = "Session")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// Choose a model that the agent offers; for the built-in agent any, as provider:name
    #[arg(long, help_heading = "Session")]
    pub(crate) model: Option<String>,

    /// Choose a mode that the agent offers
    #[arg(long, help_heading = "Session")]
    pub(crate) mode: Option<String>,

    /// Set an option that the agent offers
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Session")]
    pub(crate) set: Vec<(String, String)>,

    /// What the agent may do where no rule of permissions.toml says so
    #[arg(long, value_enum, help_heading = "Permission")]
    pub(crate) permissions: Option<Permissions>,

    /// End with exit code 5 when anything was denied
    #[arg(long, help_heading = "Permission")]
    pub(crate) fail_on_denied: bool,

    /// Give up when the run takes longer, as in 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Time")]
    pub(crate) timeout: Option<Duration>,

    /// Give up when the agent says nothing for this long
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Time")]
    pub(crate) idle_timeout: Option<Duration>,
}

/// How an agent is chosen and started.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Which agent, by name; `attache agents list` has them. Without one, the default of agents.toml, else the
    /// built-in one [env: ATTACHE_AGENT=]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Work in this directory instead of the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Which version of the protocol to speak
    #[arg(long, value_enum, default_value_t = Version::Auto, help_heading = "Agent")]
    pub(crate) protocol: Version,

    /// Pass a variable of your environment on to the agent, by name; `*` at the end stands for any end. Without it an
    /// agent gets PATH, HOME and the like, and what is known that it needs
    #[arg(long, value_name = "NAME", value_parser = variable_name, help_heading = "Agent")]
    pub(crate) env: Vec<String>,

    /// Authenticate this way first; without it the agent is asked how
    #[arg(long, value_name = "METHOD", help_heading = "Agent")]
    pub(crate) auth: Option<String>,

    /// Confine the agent and its commands: they write beneath the directories of the session, in temporary
    /// directories and where the agent keeps its state; `=offline` takes the network away too, also that by which the
    /// agent reaches its model. `--set sandbox=offline` takes that of the built-in agent's commands only
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "on", help_heading = "Agent")]
    pub(crate) sandbox: Option<SandboxKind>,

    /// Append every message to a file, without secrets
    #[arg(long, value_name = "FILE", help_heading = "Agent")]
    pub(crate) trace: Option<PathBuf>,
}

/// What `run` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text as it comes, with tool calls and changes in short
    Text,
    /// One JSON object at the end
    Json,
    /// A JSON object for each event, the result last; `attache schema events` describes them
    StreamJson,
    /// The messages of the protocol, both ways, without secrets
    Acp,
    /// The agent's text at the end, and nothing else
    Quiet,
}

/// What the agent may do where no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Permissions {
    /// Ask for everything; without a terminal that means no
    Ask,
    /// Reading and searching in the session's directories
    Reads,
    /// Reading and changing files in the session's directories
    Edits,
    /// Everything
    All,
    /// Nothing
    None,
}

impl Permissions {
    /// What becomes of that which no rule decides.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Permissions::Ask => Policy::Ask,
            Permissions::Reads => Policy::Reads,
            Permissions::Edits => Policy::Edits,
            Permissions::All => Policy::All,
            Permissions::None => Policy::None,
        }
    }
}

/// Which version of the protocol to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// The newest that the agent speaks
    Auto,
    /// Version 1
    #[value(name = "1")]
    V1,
    /// Version 2
    #[value(name = "2")]
    V2,
}

/// How much a sandbox takes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxKind {
    /// Files and dangerous system calls
    On,
    /// The network too
    Offline,
}

/// The options of `agent`.
#[derive(Debug, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub(crate) struct AgentOptions {
    #[command(subcommand)]
    pub(crate) command: Option<AgentCommand>,

    #[command(flatten)]
    pub(crate) choice: ModelChoice,

    /// The mode that sessions begin in
    #[arg(long, value_enum)]
    pub(crate) mode: Option<AgentMode>,

    /// How commands are confined
    #[arg(long, value_enum)]
    pub(crate) sandbox: Option<CommandSandbox>,

    /// What it may do where no rule decides, in place of what the mode says
    #[arg(long, value_enum)]
    pub(crate) permissions: Option<Permissions>,

    /// How often a model may be asked in one turn
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turn_requests: Option<u32>,
}

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelChoice {
    /// Which model, as provider:name; `attache agent models` has the providers [env: ATTACHE_MODEL=]
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub(crate) model: Option<String>,

    /// Where its provider is, if not where it usually is [env: ATTACHE_BASE_URL=]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
}

/// How freely the built-in agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AgentMode {
    /// Reads freely, asks before it changes or runs anything
    Ask,
    /// Reads and plans; changes nothing
    Architect,
    /// Changes files in the project; asks before it runs what no rule allows
    Code,
}

/// How the commands of the built-in agent are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommandSandbox {
    /// They write in the project and in temporary directories only
    On,
    /// They have no network either
    Offline,
    /// Not at all
    Off,
}

/// The commands of `agent`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Keep the key of a provider, asked for without showing it; from a pipe, its first line
    Login {
        /// Which provider
        provider: String,
    },
    /// Forget the key of a provider
    Logout {
        /// Which provider
        provider: String,
    },
    /// List the providers of models, whether there is a key for them, and what would be used now
    Models {
        #[command(flatten)]
        choice: ModelChoice,
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// List, print or delete the sessions that the agent keeps
    #[command(subcommand)]
    Sessions(AgentSessions),
}

/// The commands of `agent sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentSessions {
    /// List them, the last used first
    List {
        /// Only those of this directory
        #[arg(short = 'C', long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// At most this many
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
        limit: u16,
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print one as a document
    Export {
        /// Its id; the beginning is enough
        id: String,
        /// How
        #[arg(short, long, value_enum, default_value_t = LogFormat::Markdown)]
        format: LogFormat,
    },
    /// Delete one, or many of them
    #[command(group(clap::ArgGroup::new("which").required(true)))]
    Delete {
        /// Its id; the beginning is enough
        #[arg(group = "which")]
        id: Option<String>,
        /// All to which nothing was added for longer than this, as in 12h, 30d
        #[arg(long, value_name = "TIME", value_parser = duration, group = "which")]
        older_than: Option<Duration>,
        /// All of them
        #[arg(long, group = "which")]
        all: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// How a session of the built-in agent is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Markdown,
    /// The entries of its log, one a line
    Json,
}

/// The commands of `agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents that can be named, and whether they are installed
    List {
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
        /// List the agents of a registry instead: a file or a URL
        #[arg(long, value_name = "FILE|URL")]
        registry: Option<String>,
    },
    /// Add an agent of your own, or one of a registry, to agents.toml
    #[command(after_help = ADD_EXAMPLES)]
    Add {
        /// What to call it
        name: String,
        /// Its command, after `--`
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
        /// An environment variable for it; kept in agents.toml, which only you can read
        #[arg(long, value_name = "NAME=VALUE", value_parser = key_value)]
        env: Vec<(String, String)>,
        /// Take it from a registry: a file or a URL
        #[arg(long, value_name = "FILE|URL", conflicts_with = "command")]
        registry: Option<String>,
        /// Use it when no agent is named
        #[arg(long)]
        default: bool,
        /// Do not ask about what a registry says: you have looked at it
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove an agent from agents.toml
    Remove {
        /// Its name
        name: String,
    },
    /// Show how an agent is started
    Show {
        /// Its name
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Log in to an agent
    Login {
        #[command(flatten)]
        agent: NamedAgent,
    },
    /// Log out of an agent
    Logout {
        #[command(flatten)]
        agent: NamedAgent,
    },
    /// Start an agent and print what it can do
    Probe {
        #[command(flatten)]
        agent: NamedAgent,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// An agent to start, by name or by command.
#[derive(Debug, Args)]
pub(crate) struct NamedAgent {
    /// Its name
    #[arg(required_unless_present = "command")]
    pub(crate) name: Option<String>,
    /// A command to run as the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Which way to authenticate, where there are several
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,
    /// Pass a variable of your environment on to the agent, by name
    #[arg(long, value_name = "NAME", value_parser = variable_name)]
    pub(crate) env: Vec<String>,
    /// Which version of the protocol to speak
    #[arg(long, value_enum, default_value_t = Version::Auto)]
    pub(crate) protocol: Version,
}

/// The commands of `sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List earlier runs; with an agent, the sessions that it keeps
    List {
        /// Ask this agent for its sessions instead
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// Which way to authenticate with it
        #[arg(long, value_name = "METHOD")]
        auth: Option<String>,
        /// Pass a variable of your environment on to it, by name
        #[arg(long, value_name = "NAME", value_parser = variable_name)]
        env: Vec<String>,
        /// Which version of the protocol to speak with it
        #[arg(long, value_enum, default_value_t = Version::Auto)]
        protocol: Version,
        /// Only those of this directory
        #[arg(short = 'C', long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// At most this many
        #[arg(short = 'n', long, default_value_t = 20)]
        limit: usize,
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
        /// A command to run as the agent, after `--`
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Show an earlier run
    Show {
        /// The id of a run or of its session; the beginning is enough
        id: String,
    },
    /// Print an earlier run as a document
    Export {
        /// The id of a run or of its session; the beginning is enough
        id: String,
        /// How
        #[arg(short, long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Delete the records of earlier runs; all or old ones together with the sessions of the built-in agent. What other
    /// agents keep is their own
    #[command(group(clap::ArgGroup::new("which").required(true)), after_help = DELETE_EXAMPLES)]
    Delete {
        /// The id of a run or of its session; the beginning is enough
        #[arg(group = "which")]
        id: Option<String>,
        /// All runs that began longer ago than this, as in 12h, 30d, and sessions to which nothing was added since
        #[arg(long, value_name = "TIME", value_parser = duration, group = "which")]
        older_than: Option<Duration>,
        /// All runs, and all sessions of the built-in agent
        #[arg(long, group = "which")]
        all: bool,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// How a run is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// For people
    Markdown,
    /// The events, as `run -o stream-json` printed them
    Json,
}

/// The options of `trust`.
#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Which directory; the current one unless named
    pub(crate) directory: Option<PathBuf>,
    /// Take it back
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Only say how it stands
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) status: bool,
    /// Do not ask: you have looked at it
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The commands of `sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Print what can be read, changed and reached in the sandbox, what is hidden, and what cannot be enforced
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        #[command(flatten)]
        options: SandboxOptions,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        /// A command that would run in it, after `--`
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Run a command in the sandbox, at this terminal; what it leaves behind ends with it
    #[command(after_help = SANDBOX_RUN_EXAMPLES)]
    Run {
        #[command(flatten)]
        options: SandboxOptions,
        /// The command, after `--`
        #[arg(last = true, value_name = "COMMAND", required = true)]
        command: Vec<String>,
    },
}

/// What a sandbox is made for.
#[derive(Debug, Args)]
pub(crate) struct SandboxOptions {
    /// Make it for this directory instead of the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Let this directory be changed as well
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Take the network away too, and all sockets; so does `sandbox = "offline"` in agent.toml
    #[arg(long)]
    pub(crate) offline: bool,
    /// Let this socket be reached, or those of this directory
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Vec<PathBuf>,
    /// Pass a variable of your environment on, by name; `*` at the end stands for any end
    #[arg(long, value_name = "NAME", value_parser = variable_name)]
    pub(crate) env: Vec<String>,
}

/// The options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print a JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  attache run \"read README.md\"
  attache run --model anthropic \"fix the failing test\"
  attache run --agent claude \"fix the failing test\"
  git diff | attache run --agent codex \"review this change\"
  attache run --permissions edits -o json -f task.md > result.json
  attache run --continue \"and now the documentation\"
  attache run -- ./my-agent --acp

Exit codes:
  0 done                     5 denied, with --fail-on-denied
  1 agent or protocol error  6 refusal, or a token or turn limit
  2 wrong usage              8 no such agent or session
  3 timeout                  9 the agent did not start, or died
  4 log in first             130, 143 interrupted, terminated

The first Ctrl-C cancels the turn and waits for the agent, the second ends everything.";

const AGENT_EXAMPLES: &str = "\
Without a key, and without a model server on this machine, it uses `offline:rules`. That is no
language model: it follows plain commands such as `read README.md`. `attache run help` lists them,
and `attache run tour` walks a client through all that an agent can show.

Examples:
  attache agent                                      what an editor starts
  attache agent --model anthropic:claude-sonnet-4-6
  attache agent --model ollama:qwen3
  attache agent --model openai:my-model --base-url http://localhost:8000/v1
  attache agent login anthropic
  attache agent sessions list

Settings are in $XDG_CONFIG_HOME/attache: agent.toml (model, base_url, mode, thought, sandbox,
max_turn_requests, max_tokens, compact_at_percent, commands, models), permissions.toml, mcp.json,
commands/*.md and AGENTS.md. `[commands] writable = [\"~/.npm\"]` lets commands change that in the
sandbox, and `pass_env = [\"MY_TOKEN\"]` passes them a variable. Keys come from the environment,
such as ANTHROPIC_API_KEY, or from `attache agent login`.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  attache sandbox explain
  attache sandbox explain --offline -- cargo test
  attache sandbox explain --json | jq .gaps";

const SANDBOX_RUN_EXAMPLES: &str = "\
The command gets this terminal, and of this environment PATH, HOME and the like, and what `--env`
and `[commands] pass_env` in agent.toml name. `[commands] writable = [\"~/.npm\"]` there lets more be
changed. The exit code is the command's; 126 and 127 mean that it could not be started, 2 that the
sandbox could not be made, and then nothing ran.

Examples:
  attache sandbox run -- make test
  attache sandbox run --offline -- sh install.sh
  attache sandbox run --add-dir ../library -- bash";

const DELETE_EXAMPLES: &str = "\
Of runs at most 2000 and 1 GiB are kept in any case; the oldest go first.

Examples:
  attache sessions delete 20261116t1803
  attache sessions delete --older-than 30d --yes";

const ADD_EXAMPLES: &str = "\
Examples:
  attache agents add mine -- ./my-agent --acp
  attache agents add goose --registry registry.json --default";

/// Reads the name of a variable. A value is refused: whoever can list processes would see it.
fn variable_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['=', '\0']) {
        true => Err("it takes the name of a variable of your environment, without a value".into()),
        false => Ok(text.into()),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// Reads `90`, `90s`, `1.5m`, `2h`, `30d` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("write it as 30s, 5m, 1h or 30d".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "write it as 30s, 5m, 1h or 30d")?;
    let seconds = Duration::try_from_secs_f64(number * unit).map_err(|_| "that is no length of time")?;
    if seconds.is_zero() { Err("it must be longer than nothing".into()) } else { Ok(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        let seconds = |text| duration(text).ok().map(|time| time.as_secs_f64());
        let rows = [("90", Some(90.0)), ("90s", Some(90.0)), ("1.5m", Some(90.0)), ("1d", Some(86_400.0))];
        let more = [("500ms", Some(0.5)), ("", None), ("0", None), ("5 minutes", None), ("-1s", None), ("nan", None)];
        for (text, expected) in rows.into_iter().chain(more) {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
