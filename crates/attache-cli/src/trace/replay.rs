//! `attache trace replay`: one side of a recording, played to a live agent or client.

use std::time::Duration;

use attache_check::probe::Peer;
use attache_check::record::{Event, Record};
use attache_check::trace::{self, Replayed};

use super::options::{Part, Replay, Speed};
use super::{agent, tell};
use crate::check::read;
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};

/// How long an agent may take to leave when the recording has ended.
const GRACE: Duration = Duration::from_secs(2);

/// Plays a recording.
pub(super) async fn run(options: Replay) -> Result<u8, Failure> {
    let recording = read(&options.file)?;
    if options.part == Part::Agent && (options.agent.is_some() || !options.agent_command.is_empty()) {
        return Err(Failure::usage(
            "`--as agent` starts no agent: the client that is tested starts this command as its agent",
        ));
    }
    if recording.entries.first().is_some_and(|entry| entry.event == Event::Continued) {
        return Err(Failure::usage("the recording begins in the middle of a conversation, because it was rotated"));
    }
    let how = trace::Replay {
        part: options.part.side(),
        at_recorded_speed: options.speed == Speed::Recorded,
        patience: Duration::from_secs(options.patience),
    };
    let (replayed, exited) = match options.part {
        Part::Client => {
            let command = agent(options.agent.as_deref(), &options.agent_command, "attache trace replay FILE")?;
            let (process, stdin, stdout) =
                command.spawn().map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
            let peer = Peer { reader: Box::new(stdout), writer: Box::new(stdin) };
            let replayed = until_interrupted(async { Ok(trace::replay(&recording, peer, how).await) }).await;
            let ended = process.shutdown(GRACE).await;
            let replayed = replayed?;
            let is_given_up = replayed.given_up.is_some_and(|given_up| given_up.is_closed);
            let exited = ended.code.map(|code| format!("the agent exited with status {code}"));
            if let (false, Some(exited), true) = (is_given_up, &exited, ended.code != Some(0)) {
                eprintln!("{exited}");
            }
            (replayed, exited)
        }
        Part::Agent => {
            let taken = attache::stdio::take();
            let (reader, writer) =
                taken.map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
            let playing = async { Ok(trace::replay(&recording, Peer { reader, writer }, how).await) };
            (until_interrupted(playing).await?, None)
        }
    };
    if let Some(path) = &options.output {
        let written = crate::paths::write_private(path, replayed.record.to_trace().as_bytes());
        written.map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
    }
    report(&replayed, exited, &recording, options.part)
}

fn report(replayed: &Replayed, exited: Option<String>, recording: &Record, part: Part) -> Result<u8, Failure> {
    if replayed.unasked > 0 {
        eprintln!("{} recorded answers were not sent: nobody asked for them this time", replayed.unasked);
    }
    if recording.connections().count() > 1 {
        eprintln!("the recording has several connections; the first was played");
    }
    let peer = if part == Part::Client { "agent" } else { "client" };
    let given_up = replayed.given_up.map(|given_up| {
        let why = match given_up.is_closed {
            true => exited.unwrap_or_else(|| format!("the {peer} closed its end")),
            false => format!("the {peer} did not say what was waited for, three times in a row"),
        };
        let noun = if given_up.missing == 1 { "message" } else { "messages" };
        format!("{why}: {} recorded {noun} did not come", given_up.missing)
    });
    tell(&replayed.differences, given_up, |text| match part {
        Part::Client => crate::print(&text),
        // Stdout is the wire.
        Part::Agent => {
            eprint!("{text}");
            Ok(())
        }
    })
}
