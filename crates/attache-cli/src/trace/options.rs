//! The options of `trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;

use crate::complete;

/// The options of `trace`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: Option<TraceCommand>,

    /// Where to write; a new file for each conversation in $XDG_STATE_HOME/attache/traces unless it is named
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Keep secrets: values of variables and headers, what is named or looks like a token, key or password, lines that are no messages.
    /// Other text of prompts, answers and files is written down in any case
    #[arg(long)]
    pub(crate) raw: bool,

    /// Put the file aside as FILE.1 when it has this size, 4K or more; the one before is deleted. With K, M or G for 1024 bytes and its
    /// powers. Of a message that is longer by itself, the length is written down
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) rotate: Option<u64>,

    /// How long the agent may go on when the client has left: until it has said nothing for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=86400))]
    pub(crate) grace: u64,

    /// Stand before the agent with this name
    #[arg(short, long, value_name = "NAME", conflicts_with = "agent_command", add = ArgValueCandidates::new(complete::agents))]
    pub(crate) agent: Option<String>,

    /// The command of the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) agent_command: Vec<String>,
}

/// The commands of `trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show a trace as a page in the browser: who said what, when, and what came of it
    View(View),
    /// Play one side of a recording to a live agent or client, and tell where it differs from the recorded one
    Replay(Replay),
    /// Tell where two recordings differ in what was said; ids, times and the pieces of a text do not count
    Diff(Diff),
    /// Print a recording as a transcript that tests can play
    Export(Export),
}

/// The options of `trace view`.
#[derive(Debug, Args)]
pub(crate) struct View {
    /// A trace or a transcript; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Print it instead
    #[arg(long, conflicts_with_all = ["output", "no_open"])]
    pub(crate) text: bool,

    /// Write the page to this file, which is self-contained, and open nothing
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Say where the page is and open nothing
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// The options of `trace replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 no difference, 1 differences, 2 it could not be played.

Examples:
  attache trace replay bug.jsonl -- ./my-agent --acp              the recorded client, a live agent
  attache trace replay bug.jsonl --as agent                       the recorded agent: configure this in an editor")]
pub(crate) struct Replay {
    /// A trace or a transcript
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Whose part to play. As the agent it is served on stdin and stdout, and the report goes to stderr
    #[arg(long = "as", value_enum, value_name = "SIDE", default_value_t = Part::Client)]
    pub(crate) part: Part,

    /// When to send: as late as it was recorded, or as soon as what came before it is there
    #[arg(long, value_enum, default_value_t = Speed::AtOnce)]
    pub(crate) speed: Speed,

    /// How long the live side may take for each message, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) patience: u64,

    /// Write down what was said this time, as a trace
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The agent with this name
    #[arg(short, long, value_name = "NAME", conflicts_with = "agent_command", add = ArgValueCandidates::new(complete::agents))]
    pub(crate) agent: Option<String>,

    /// The command of the agent, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) agent_command: Vec<String>,
}

/// Whose part is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The client's
    Client,
    /// The agent's
    Agent,
}

/// When what was recorded is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speed {
    /// As late as it was recorded
    Recorded,
    /// As soon as what came before it is there
    AtOnce,
}

/// The options of `trace diff`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 no difference, 1 differences, 2 it could not be compared.")]
pub(crate) struct Diff {
    /// A trace or a transcript
    #[arg(value_name = "FIRST")]
    pub(crate) first: PathBuf,

    /// Another one
    #[arg(value_name = "SECOND")]
    pub(crate) second: PathBuf,
}

/// The options of `trace export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// A trace or a transcript
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Who plays the transcript: what it sends begins with `-->`
    #[arg(long = "as", value_enum, value_name = "SIDE", default_value_t = Part::Client)]
    pub(crate) part: Part,

    /// Write down everything, to the letter, with what is no message and what happened beside it; `-->` is what the client sent
    #[arg(long, conflicts_with = "part")]
    pub(crate) exact: bool,
}

/// A number of bytes: `64M`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return Err("expected a number, with K, M or G".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number, with K, M or G".to_owned())?;
    let bytes = number.checked_mul(1 << unit).ok_or("too large")?;
    if bytes < 4096 { Err("less than 4K".to_owned()) } else { Ok(bytes) }
}

const EXAMPLES: &str = "\
What goes between a client and an agent is passed on to the byte and written down, a JSON object a line. Configure it in an editor in the
place of the agent's own command.

Examples:
  attache trace -o gemini.jsonl -- gemini --acp
  attache trace --rotate 64M -o ~/acp.jsonl -- npx some-agent   at most 128 MB, however long it runs
  attache trace view gemini.jsonl
  attache check transcript gemini.jsonl                         does it keep to the protocol?";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("8192"), Ok(8192));
        assert_eq!(size("1g"), Ok(1 << 30));
        for wrong in ["", "M", "1T", "-1", "100", "99999999999999999999", "18446744073709551615G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
