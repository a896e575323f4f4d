//! Plays with the reference peers, one of which may have a defect, and what they record.

use std::time::Duration;

use attache::Protocol;
use attache_check::record::Event;
use attache_check::{Record, Side};
use attache_testkit::defect::Defect;
use tokio::io::DuplexStream;

use super::client::{self, Step};
use super::store::Store;
use super::tap::Tape;
use super::{agent, raw};

/// How long a play may take, on a clock that only runs while everybody waits.
pub(super) const LIMIT: Duration = Duration::from_secs(2000);

/// Everything that the two can do with each other, connection by connection.
fn scenes() -> Vec<(bool, Vec<Step>)> {
    use Step::*;
    let work = vec![
        List,
        Login,
        New,
        Prompt("hello"),
        Prompt(
            "think about it\nsay some words\nplan\nusage\nnotice Old version\ncompact\ntitle A title\ncommands\nimage",
        ),
        Prompt(
            "call write_file {\"path\":\"a.txt\",\"content\":\"one\\ntwo\\n\"}\ncall read_file {\"path\":\"a.txt\",\"line\":2,\"limit\":1}",
        ),
        Prompt(
            "call edit_file {\"path\":\"a.txt\",\"old_text\":\"two\",\"new_text\":\"zwei\"}\ncall read_file {\"path\":\"none.txt\"}\ncall none {}",
        ),
        Prompt(
            "call read_file {\"path\":\"new.txt\"}\ncall write_file {\"path\":\"new.txt\",\"content\":\"x\"}\ncall read_file {\"path\":\"new.txt\"}",
        ),
        Prompt(
            "call run_command {\"command\":\"true\"}\ncall run_command {\"command\":\"sleep 60\"}\ncall run_both {}",
        ),
        Prompt("form What is your name?\nurl Please allow it\nurl And this\nbackground"),
        PromptAndReject("call write_file {\"path\":\"b.txt\",\"content\":\"\"}"),
        PromptWithAll("say thanks"),
        PromptWithLink("say linked"),
        Prompt("stop refusal"),
        Prompt("stop length"),
        Prompt("fail"),
        PromptAndCancel("say soon\nslowly"),
        PromptAndCancel("call write_file {\"path\":\"c.txt\",\"content\":\"\"}"),
        PromptAndCancelCall("call run_command {\"command\":\"sleep 60\"}"),
        TwoPrompts("wait 1", "say second"),
        SetOption("mode", "code".into()),
        SetOption("model", "small".into()),
        SetOption("brief", true.into()),
        Prompt("mode ask"),
        Unknown,
        Extension,
        NewWithAll,
        NewWithServer,
        New,
        List,
        Prompt("say something\ncall read_file {\"path\":\"a.txt\"}"),
        Close,
        Load,
        Prompt("recall"),
        Close,
        Resume,
        Prompt("say again"),
        Fork,
        Prompt("say forked"),
        Close,
        Delete,
        List,
    ];
    vec![(false, work), (true, vec![New, Login, New, Prompt("say hello"), Logout, New])]
}

/// Plays all scenes; one of the two may have a defect.
pub(crate) async fn play(protocol: Protocol, side: Side, defect: &Defect) -> Record {
    let tape = Tape::new();
    let of = |other: Side| if side == other { defect.clone() } else { Defect::none() };
    for (needs_login, steps) in scenes() {
        let agent = tape.before(of(Side::Agent).before(agent::spawn(Store::default(), needs_login)));
        let (client, far) = tokio::io::duplex(1 << 20);
        let waits = tape.clone();
        let rested = move |time| waits.note(Event::Waited { time });
        let playing = tokio::spawn(client::run(client, protocol, steps, rested));
        let client = of(Side::Client).before(far);
        tokio::spawn(connect(client, agent));
        let _ = tokio::time::timeout(LIMIT, playing).await;
        tape.note(Event::Restarted);
    }
    tape.record()
}

/// Passes on what one end sends to the other.
async fn connect(mut one: DuplexStream, mut other: DuplexStream) {
    let _ = tokio::io::copy_bidirectional(&mut one, &mut other).await;
}

/// Sends odd things to a peer that may have a defect.
pub(crate) async fn play_raw(protocol: Protocol, side: Side, defect: &Defect) -> Record {
    if side == Side::Agent {
        let agent = || defect.before(agent::spawn(Store::default(), false));
        let mut record = raw::too_early(agent(), protocol).await;
        record.push(Duration::ZERO, Event::Restarted);
        record.entries.extend(raw::to_agent(agent(), protocol).await.entries);
        return record;
    }
    let (client, far) = tokio::io::duplex(1 << 20);
    let playing = tokio::spawn(client::run(client, protocol, vec![Step::New, Step::Prompt("hello")], drop));
    let record = raw::to_client(defect.before(far), protocol).await;
    let _ = tokio::time::timeout(LIMIT, playing).await;
    record
}
