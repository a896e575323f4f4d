//! The options of `serve` and `connect`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::ArgValueCandidates;

use crate::cli::{SandboxKind, Version};
use crate::complete;

/// The options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,

    /// Where to listen: an address and a port, or `unix:` and a path
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7316")]
    pub(crate) listen: String,

    /// Let sessions work in this directory and those beneath it; this directory if none is named
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Vec<PathBuf>,

    /// Serve the agent with this name instead of the built-in one
    #[arg(short, long, value_name = "NAME", conflicts_with = "agent_command", add = ArgValueCandidates::new(complete::agents))]
    pub(crate) agent: Option<String>,

    /// A command to run as the agent, after `--`: a process for each connection
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) agent_command: Vec<String>,

    /// The model of the built-in agent
    #[arg(short, long, add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Keep the sessions of the built-in agent in PostgreSQL, so that several servers share them: a URL, as `psql` takes it. It may
    /// be in ATTACHE_STORE instead, where others do not see its password
    #[arg(long, value_name = "URL", env = "ATTACHE_STORE", hide_env_values = true, help_heading = "Sessions",
          conflicts_with_all = ["agent", "agent_command"])]
    pub(crate) store: Option<String>,

    /// Where clients reach this server; other servers tell it to clients that want a session which this one has
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "store", help_heading = "Sessions")]
    pub(crate) address: Option<String>,

    /// Delete sessions to which nothing was added for so many days
    #[arg(long, value_name = "DAYS", requires = "store", help_heading = "Sessions")]
    pub(crate) keep_days: Option<u32>,

    /// What the agent speaks. Clients that speak another version are understood, too
    #[arg(long, value_enum, default_value_t = Version::Auto)]
    pub(crate) protocol: Version,

    /// What confines the agent. The built-in one confines its commands, uses nothing outside of a session's directories, and asks nobody about
    /// more; with `off`, a token is worth this whole account
    #[arg(long, value_enum, default_value_t = SandboxKind::On)]
    pub(crate) sandbox: SandboxKind,

    /// Let an agent that is confined write in this directory, too: where it keeps its state, if `attache` does not know
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,

    /// Start MCP servers that clients name by a command: any program, with all that this account may do
    #[arg(long)]
    pub(crate) allow_mcp_commands: bool,

    /// Use MCP servers of this origin that clients name, such as `https://mcp.example.com`: requests to them come from this machine, with
    /// all that it reaches. None are used otherwise, unless `--allow-mcp-commands` allows anything
    #[arg(long, value_name = "ORIGIN", value_parser = super::mcp::read_origin)]
    pub(crate) allow_mcp_url: Vec<url::Origin>,

    /// A name that clients reach this machine by, besides localhost: without a scheme and a port
    #[arg(long, value_name = "NAME", value_parser = super::listen::read_host, help_heading = "Network")]
    pub(crate) host: Vec<String>,

    /// Let web pages of this origin connect
    #[arg(long, value_name = "URL", help_heading = "Network")]
    pub(crate) origin: Vec<String>,

    /// The certificate for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Network")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Network")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Make a certificate of our own, once, and print its fingerprint, which clients are given
    #[arg(long, conflicts_with = "tls_cert", help_heading = "Network")]
    pub(crate) tls_self_signed: bool,

    /// Listen without TLS although others can reach this address: a proxy in front of it has TLS, passes `Host` on, keeps
    /// streams open for an hour and does not collect what comes before it passes it on
    #[arg(long, help_heading = "Network")]
    pub(crate) behind_proxy: bool,
}

/// The commands of `serve`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Make, list and remove tokens of clients. What one has opened, another cannot see, unless both are of one group
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

/// The commands of `serve token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token for a client and print it, once
    Add {
        /// Whom it stands for
        name: String,
        /// Share the sessions that are opened with it, and no others, with all tokens of this group: each of them lists, resumes, changes
        /// and deletes them
        #[arg(long, value_name = "TEAM")]
        group: Option<String>,
    },
    /// List the ids of tokens, whom they stand for, and their groups
    List,
    /// Remove the tokens of a client, or one of them
    Remove {
        /// Whom they stand for, or the id of one
        #[arg(value_name = "NAME|ID")]
        name: String,
    },
}

/// The options of `connect`.
#[derive(Debug, Args)]
#[command(after_help = CONNECT_EXAMPLES)]
pub(crate) struct Connect {
    /// Where the agent is: http:// or https:// for Streamable HTTP, ws:// or wss:// for a WebSocket
    #[arg(value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Read the token from a file; else it is what ATTACHE_TOKEN has, or what `attache login URL` kept
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Trust the server with this certificate, and no other
    #[arg(long, value_name = "sha256:…")]
    pub(crate) fingerprint: Option<String>,

    /// Have sessions work in this directory of the other machine, whatever the editor says; the editor's own files and
    /// terminals are not offered to the agent then
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<String>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  attache serve token add anna            a token for a client, shown once
  attache serve token add anna --group team   another one, for sessions that she shares
  attache serve --dir ~/projects          the built-in agent, for this machine and for ssh tunnels
  attache serve -- gemini --acp           another agent: a process for each connection
  attache serve --listen 0.0.0.0:7316 --tls-self-signed --host build.example.com
  attache serve --store postgres://attache@db.example/attache --address https://one.example:7316";

const CONNECT_EXAMPLES: &str = "\
Examples:
  attache login http://localhost:7316     keeps the token
  attache connect http://localhost:7316   what an editor starts
  attache run --agent http://localhost:7316 \"what is this?\"
  attache agents add build --url wss://build.example.com --dir /srv/project";
