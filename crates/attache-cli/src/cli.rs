//! Every command and option, with its help.

use std::path::PathBuf;
use std::time::Duration;

use attache_host::permission::Policy;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::ArgValueCandidates;

use crate::{complete, exit};

/// Run any agent of the Agent Client Protocol from a terminal, a script or a pipe.
#[derive(Debug, Parser)]
#[command(name = "attache", version, about, max_term_width = 100, after_help = exit::HELP)]
#[command(infer_long_args = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Choose a model, keep its key, make the agent known to an editor, and try it: three questions, or options
    Setup(crate::setup::options::Setup),
    /// Give an agent a prompt, and print what comes of it
    Run(Box<Run>),
    /// Sit down with an agent: a screen with the conversation, several sessions, and all that an agent offers.
    /// Without any command this is what starts on a terminal
    Chat(Box<crate::chat::options::Chat>),
    /// Be an agent: the coding agent that is built in, on stdin and stdout, for any editor that speaks ACP
    Agent(Box<AgentOptions>),
    /// Serve an agent to clients on other machines, over HTTP and WebSocket
    Serve(Box<crate::serve::options::Serve>),
    /// Be an agent on stdin and stdout, with the agent of another machine behind it: for editors
    Connect(crate::serve::options::Connect),
    /// Tell whether an agent, a client, or what was recorded of them keeps to the protocol
    #[command(subcommand)]
    Check(crate::check::options::Check),
    /// Record what goes between a client and an agent, without changing a byte
    Trace(crate::trace::options::Trace),
    /// Find, add and try agents
    #[command(subcommand)]
    Agents(Agents),
    /// Log in to an agent, or keep the key of a provider of models
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(Login),
    /// Log out of an agent, or forget the key of a provider of models
    Logout(Login),
    /// List the providers of models, whether there is a key for them, and what the built-in agent would use now
    Models(ModelListOptions),
    /// List, print, delete and prune earlier runs and the sessions of the built-in agent
    Sessions {
        #[command(subcommand)]
        command: Option<Sessions>,
    },
    /// List the rules of what agents may do here, with where they stand, or remove one
    Permissions {
        #[command(subcommand)]
        command: Option<PermissionsCommand>,
    },
    /// Log in to MCP servers of `mcp.json`, or log out of them
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Trust what a directory brings along in `.attache`, or take that back
    Trust(Trust),
    /// Explain what commands are confined by, or run any command that way
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Tell what works on this machine, and what to do about the rest
    Doctor(Doctor),
    /// Ask whether there is a newer version. Nothing else asks
    Update(crate::update::Update),
    /// Print a JSON Schema
    Schema {
        /// Which
        what: SchemaOf,
    },
    /// Print a completion script for a shell. It asks this program for the names of agents, providers, models and
    /// sessions, which starts and fetches nothing
    #[command(after_help = COMPLETION_EXAMPLES)]
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

    /// The same as PROMPT, for those who are used to it
    #[arg(short = 'p', long = "prompt", value_name = "TEXT", conflicts_with = "prompt")]
    pub(crate) prompt_option: Option<String>,

    /// Read the prompt from a file; with a PROMPT as well, that comes first
    #[arg(short, long, value_name = "FILE")]
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

    /// Read many prompts from stdin, one JSON object a line, `{"prompt": "…"}`: each is a turn of the same session, and has
    /// a result of its own. A turn that fails does not end the run, and the exit code is that of the last one that failed; a
    /// line that is no prompt ends it, and so does an agent that is gone
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Prompt",
          conflicts_with_all = ["prompt", "prompt_option", "file", "attach", "image"])]
    pub(crate) input: Option<InputFormat>,

    /// Write the agent's last message to a file, which only you can read
    #[arg(long, value_name = "FILE", help_heading = "Answer")]
    pub(crate) last_message: Option<PathBuf>,

    /// Have the answer be JSON that a JSON Schema validates. If it is not, the agent is told why and asked once more; then
    /// the run ends with exit code 1
    #[arg(long, value_name = "FILE", help_heading = "Answer")]
    pub(crate) output_schema: Option<PathBuf>,

    /// Go on with a session in its own directory, by its id or that of a run in it; the beginning is enough
    #[arg(long, value_name = "ID", help_heading = "Session", conflicts_with = "continue_last",
          add = ArgValueCandidates::new(complete::sessions))]
    pub(crate) resume: Option<String>,

    /// Go on with the last session of this agent in this directory
    #[arg(short = 'c', long = "continue", help_heading = "Session")]
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
    #[arg(short, long, help_heading = "Session", add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Where the model's provider is, for the built-in agent; goes with a model
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "Session")]
    pub(crate) base_url: Option<String>,

    /// Add a text, or that of a file, to the system prompt of the built-in agent
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Session")]
    pub(crate) system: Option<String>,

    /// Choose a mode that the agent offers
    #[arg(long, help_heading = "Session", add = ArgValueCandidates::new(complete::modes))]
    pub(crate) mode: Option<String>,

    /// Set an option that the agent offers
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, help_heading = "Session")]
    pub(crate) set: Vec<(String, String)>,

    /// What the agent may do where no rule of permissions.toml says so, in place of what its mode says
    #[arg(long, value_enum, help_heading = "Permission")]
    pub(crate) permissions: Option<Permissions>,

    /// Allow this in this run, as a rule of permissions.toml on one line: 'command = ["cargo", "test"]'
    #[arg(long, value_name = "RULE", help_heading = "Permission")]
    pub(crate) allow: Vec<String>,

    /// Deny this in this run, whatever else allows it: 'kind = ["edit"], path = ["docs/**"]'
    #[arg(long, value_name = "RULE", help_heading = "Permission")]
    pub(crate) deny: Vec<String>,

    /// End with exit code 5 when anything was denied
    #[arg(long, help_heading = "Permission")]
    pub(crate) fail_on_denied: bool,

    /// How often the built-in agent may ask its model in one turn
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub(crate) max_turns: Option<u32>,

    /// End the run with exit code 6 when it has cost this much; other agents than the built-in one: when the session has
    /// cost more, in the currency that they report
    #[arg(long, value_name = "AMOUNT", value_parser = amount, allow_negative_numbers = true, help_heading = "Limits")]
    pub(crate) max_cost: Option<f64>,

    /// End the run with exit code 6 when its requests have used so many tokens; other agents than the built-in one: when they
    /// report more in their context, or of a turn
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub(crate) max_tokens: Option<u64>,

    /// Give up when the run takes longer, as in 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,

    /// Give up when the agent says nothing for this long
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Limits")]
    pub(crate) idle_timeout: Option<Duration>,
}

impl Run {
    /// The same, with what can be said in two ways said in one.
    pub(crate) fn in_one_way(mut self) -> Self {
        self.prompt = self.prompt.or(self.prompt_option.take());
        self
    }
}

/// How an agent is chosen and started.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Which agent, by name; `attache agents list` has them. Without one, the default of agents.toml, else the
    /// built-in one; `chat` without a prompt lets you choose [env: ATTACHE_AGENT=]
    #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
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
    /// agent reaches its model. `--set sandbox=offline` takes that of the built-in agent's commands only. `=off` confines
    /// nothing, not even the commands of the built-in agent
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
    /// Ask for everything, in every mode; without a terminal that means no
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
    /// Nothing
    Off,
}

/// How many prompts come on stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// An object a line, `{"prompt": "…"}`
    JsonLines,
}

/// The options of `agent`.
#[derive(Debug, Args)]
#[command(after_help = AGENT_EXAMPLES, disable_help_subcommand = true)]
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
    #[arg(long, value_name = "NUMBER", alias = "max-turns", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turn_requests: Option<u32>,

    /// What a session may cost in US dollars, from when it is opened here
    #[arg(long, value_name = "AMOUNT", value_parser = amount, allow_negative_numbers = true)]
    pub(crate) max_cost: Option<f64>,

    /// How many tokens a session may use, from when it is opened here
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,

    /// Add a text, or that of a file, to the system prompt [env: ATTACHE_SYSTEM=]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) system: Option<String>,

    /// Allow this in every session, as a rule of permissions.toml on one line
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Deny this in every session, whatever else allows it
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,
}

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelChoice {
    /// Which model, as provider:name; `attache models` has the providers [env: ATTACHE_MODEL=]
    #[arg(short, long, value_name = "PROVIDER:NAME", add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Where the model's provider is, if not where it usually is [env: ATTACHE_BASE_URL=]
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
    /// Changes files in the project and runs commands in the sandbox; asks for the rest
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

/// The commands of `agent` of the first version: `login`, `logout`, `models` and `sessions` have them now.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Keep the key of a provider: `attache login`
    #[command(hide = true)]
    Login {
        /// Which provider
        provider: String,
    },
    /// Forget the key of a provider: `attache logout`
    #[command(hide = true)]
    Logout {
        /// Which provider
        provider: String,
    },
    /// List the providers of models: `attache models`
    #[command(hide = true)]
    Models(ModelListOptions),
    /// List, print or delete the sessions that the agent keeps: `attache sessions`
    #[command(subcommand, hide = true)]
    Sessions(AgentSessions),
}

/// The options of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelListOptions {
    #[command(flatten)]
    pub(crate) choice: ModelChoice,
    /// Ask the providers which models they have now
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `login` and `logout`.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// An agent, or a provider of models; without it, the agent that `attache run` would use
    #[arg(conflicts_with = "command", add = ArgValueCandidates::new(complete::logins))]
    pub(crate) name: Option<String>,
    /// NAME is an agent, where a provider has that name too
    #[arg(long, requires = "name")]
    pub(crate) agent: bool,
    /// NAME is a provider, where an agent has that name too
    #[arg(long, requires = "name", conflicts_with_all = ["agent", "auth", "env"])]
    pub(crate) provider: bool,
    /// A command to run as the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// Which way to authenticate, where the agent has several
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,
    /// Pass a variable of your environment on to the agent, by name
    #[arg(long, value_name = "NAME", value_parser = variable_name)]
    pub(crate) env: Vec<String>,
    /// Which version of the protocol to speak
    #[arg(long, value_enum, default_value_t = Version::Auto)]
    pub(crate) protocol: Version,
}

/// The commands of `permissions`.
#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the rules: yours, those of this project, and those that it brings along
    List {
        #[command(flatten)]
        place: RulesPlace,
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Remove a rule, and say whether another one decides the same
    Remove {
        /// Its number in the list
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        number: u32,
        #[command(flatten)]
        place: RulesPlace,
    },
}

/// Where rules are looked at from.
#[derive(Debug, Default, Args)]
pub(crate) struct RulesPlace {
    /// In this directory instead of the current one
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// The commands of `agent sessions` of the first version.
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
        /// List the agents of a registry instead: a file or a URL; without one, the copy that `agents refresh` keeps
        #[arg(long, value_name = "FILE|URL", num_args = 0..=1, default_missing_value = "")]
        registry: Option<String>,
    },
    /// Fetch a registry and keep a copy of it, for `--registry` without a place. Nothing else fetches it
    Refresh {
        /// A file or a URL; without one, where the copy came from
        #[arg(value_name = "FILE|URL")]
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
        /// Take it from a registry: a file or a URL; without one, the copy that `agents refresh` keeps
        #[arg(long, value_name = "FILE|URL", num_args = 0..=1, default_missing_value = "", conflicts_with = "command")]
        registry: Option<String>,
        /// It is on another machine, at this address
        #[arg(long, value_hint = ValueHint::Url, conflicts_with_all = ["command", "registry"])]
        url: Option<String>,
        /// The certificate of that machine
        #[arg(long, value_name = "sha256:…", requires = "url")]
        fingerprint: Option<String>,
        /// The directory to work in on that machine
        #[arg(long, value_name = "DIR", requires = "url")]
        dir: Option<String>,
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
        #[arg(add = ArgValueCandidates::new(complete::agents))]
        name: String,
    },
    /// Show how an agent is started
    Show {
        /// Its name
        #[arg(add = ArgValueCandidates::new(complete::agents))]
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Log in to an agent: `attache login`
    #[command(hide = true)]
    Login {
        #[command(flatten)]
        agent: NamedAgent,
    },
    /// Log out of an agent: `attache logout`
    #[command(hide = true)]
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
    #[arg(required_unless_present = "command", add = ArgValueCandidates::new(complete::agents))]
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

/// How many runs and sessions are listed when nothing is said.
pub(crate) const LISTED_SESSIONS: usize = 20;

/// The commands of `sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List earlier runs, and the sessions of the built-in agent that an editor opened; with an agent, the sessions that
    /// it keeps
    List {
        /// Ask this agent for its sessions instead
        #[arg(short, long, value_name = "NAME", add = ArgValueCandidates::new(complete::agents))]
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
        #[arg(short = 'n', long, default_value_t = LISTED_SESSIONS)]
        limit: usize,
        /// Print a JSON object a line
        #[arg(long)]
        json: bool,
        /// A command to run as the agent, after `--`
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Show an earlier run, or a whole session
    Show {
        /// The id of a run or of a session; the beginning is enough
        #[arg(add = ArgValueCandidates::new(complete::sessions))]
        id: String,
    },
    /// Print an earlier run, or a whole session, as a document
    Export {
        /// The id of a run or of a session; the beginning is enough
        #[arg(add = ArgValueCandidates::new(complete::sessions))]
        id: String,
        /// How
        #[arg(short, long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Delete runs and sessions: of a run its record, of a session the records of its runs and what the built-in agent
    /// keeps of it. What other agents keep is their own
    #[command(group(clap::ArgGroup::new("which").required(true)), after_help = DELETE_EXAMPLES)]
    Delete {
        /// The ids of runs or sessions; the beginning is enough
        #[arg(group = "which", value_name = "ID", add = ArgValueCandidates::new(complete::sessions))]
        ids: Vec<String>,
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
    /// Delete old runs, and old sessions of the built-in agent
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune {
        /// Those that are older than this, as in 12h, 30d. Without it and without `--keep`: 30d
        #[arg(long, value_name = "TIME", value_parser = duration)]
        older_than: Option<Duration>,
        /// Keep the newest of them in any case: so many runs, and so many sessions
        #[arg(long, value_name = "NUMBER")]
        keep: Option<usize>,
        /// Only say what would be deleted
        #[arg(long)]
        dry_run: bool,
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
    /// The events, as `run -o stream-json` printed them; of a session of the built-in agent, the entries of its log
    Json,
}

/// The commands of `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Log in to an HTTP server that wants it (OAuth), with a browser of this machine. The login is kept beside your
    /// settings for you alone, and the built-in agent uses it
    Login {
        /// The server's name in your `mcp.json`, or in that of a project which you trust
        name: String,
        /// A client that you have registered with the server, for one that registers none by itself
        #[arg(long, value_name = "ID")]
        client_id: Option<String>,
        /// Only print the address, and open no browser
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login to a server
    Logout {
        /// The server's name
        name: String,
    },
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
    /// Run a command in the sandbox, at this terminal; processes that it leaves behind end with it
    #[command(after_help = SANDBOX_RUN_EXAMPLES)]
    Run {
        #[command(flatten)]
        options: SandboxOptions,
        /// The command, after `--`
        #[arg(last = true, value_name = "COMMAND", required = true)]
        command: Vec<String>,
    },
    /// Remove what commands have written in private layers: to the caches of package managers, and temporary files
    #[command(after_help = SANDBOX_CLEAR_EXAMPLES)]
    Clear {
        /// Those of this directory instead of the current one
        #[arg(short = 'C', long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// Those of all projects
        #[arg(long, conflicts_with = "cwd")]
        all: bool,
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
    /// Make the strictest one, in which commands run that nobody is asked about
    #[arg(long)]
    pub(crate) unasked: bool,
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
  attache run \"hello\" -- ./my-agent --acp
  echo \"hello\" | attache run -- ./my-agent --acp
  attache run --output-schema answer.json -o quiet \"which licence has this?\"

Exit codes:
  0 done                     5 denied, with --fail-on-denied
  1 agent or protocol error  6 refusal, a limit, or nothing was done
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
  attache login anthropic
  attache sessions list

Settings are in $XDG_CONFIG_HOME/attache: agent.toml (model, base_url, mode, thought, sandbox,
max_turn_requests, max_tokens, max_tokens_total, max_cost, compact_at_percent, lists_models,
commands, models, providers, hooks), permissions.toml, mcp.json, commands/*.md,
skills/*/SKILL.md and AGENTS.md. `[commands] writable = [\"~/.npm\"]` lets commands change that in the
sandbox, and `pass_env = [\"MY_TOKEN\"]` passes them a variable. Keys come from the environment,
such as ANTHROPIC_API_KEY, or from `attache login`.";

const LOGIN_EXAMPLES: &str = "\
The key of a provider is asked for without showing it; from a pipe, it is the first line.

Examples:
  attache login anthropic
  attache login claude
  attache login https://build.example.com
  attache login --provider gemini < key.txt
  attache login -- ./my-agent --acp";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  attache completions bash > ~/.local/share/bash-completion/completions/attache
  attache completions zsh > ~/.zfunc/_attache
  attache completions fish > ~/.config/fish/completions/attache.fish";

const PRUNE_EXAMPLES: &str = "\
With both options, what is old goes unless it is among the newest.

Examples:
  attache sessions prune --dry-run
  attache sessions prune --older-than 7d --keep 20 --yes";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  attache sandbox explain
  attache sandbox explain --offline -- cargo test
  attache sandbox explain --unasked
  attache sandbox explain --json | jq .gaps";

const SANDBOX_RUN_EXAMPLES: &str = "\
The command gets this terminal, and of this environment PATH, HOME and the like, and what `--env`
and `[commands] pass_env` in agent.toml name. `[commands] writable = [\"~/notes\"]` there lets more be
changed. What it writes to caches such as `~/.npm` stays in a private layer of the project, which
`attache sandbox clear` removes. The exit code is the command's; 126 and 127 mean that it could not
be started, 2 that the sandbox could not be made, and then nothing ran.

Examples:
  attache sandbox run -- make test
  attache sandbox run --offline -- sh install.sh
  attache sandbox run --unasked -- cargo build
  attache sandbox run --add-dir ../library -- bash";

const SANDBOX_CLEAR_EXAMPLES: &str = "\
What is shared, such as `~/.cargo`, stays as it is. Layers that are in use are left alone.

Examples:
  attache sandbox clear
  attache sandbox clear --all";

const DELETE_EXAMPLES: &str = "\
Of runs at most 2000 and 1 GiB are kept in any case; the oldest go first.

Examples:
  attache sessions delete 20261116t1803 sess_4f2a
  attache sessions delete --older-than 30d --yes";

const ADD_EXAMPLES: &str = "\
Examples:
  attache agents add mine -- ./my-agent --acp
  attache agents add build --url wss://build.example.com --dir /srv/project
  attache agents add goose --registry registry.json --default";

/// Reads the name of a variable. A value is refused: whoever can list processes would see it.
fn variable_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['=', '\0']) {
        true => Err("it takes the name of a variable of your environment, without a value".into()),
        false => Ok(text.into()),
    }
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("write it as KEY=VALUE".into()),
    }
}

/// Reads an amount of money.
fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("write it as 0.50 or 2".into()),
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
