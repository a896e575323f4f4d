//! Runs of clients as processes: what they record is collected, and those that hang or do not start are no reason to wait.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use attache_check::probe::client::{Ending, ProbeRun, RunLimits, agent_line, find, run_client};
use attache_check::record::Event;

/// An "agent" that writes a record and leaves. Its last argument is the directory for it, and its own name has to be quoted.
const AGENT: &str =
    r#"echo '{"dir":"out","message":{"jsonrpc":"2.0","id":0,"method":"initialize"}}' > "$4/1.jsonl"; echo "$2""#;

async fn run(client: &[&str], limit: Duration) -> (ProbeRun, Duration) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let agent = words(&["sh", "-c", AGENT, "an agent's name"]);
    let limits = RunLimits { run: limit, leave: Duration::from_millis(300) };
    let begin = Instant::now();
    let mut heard = Vec::new();
    let scenario = find("text").unwrap();
    let mut runs =
        run_client(&words(client), &agent, &[scenario], &limits, |run| heard.push(run.scenario.name)).await.unwrap();
    assert_eq!(heard, ["text"]);
    (runs.remove(0), begin.elapsed())
}

/// What is in the record beside times.
fn transcript(run: &ProbeRun) -> String {
    run.record.to_transcript()
}

const LONG: Duration = Duration::from_secs(20);
const HELLO: &str = "--> {'jsonrpc':'2.0','id':0,'method':'initialize'}\n";

#[tokio::test]
async fn a_client_starts_the_agent_and_its_record_is_collected() {
    // By a shell line, by words, and by the environment.
    for client in [
        &["sh", "-c", "{agent}; echo to: {prompt}; exit 3"][..],
        &["sh", "-c", "\"$@\"; echo 'to: Play scenario text.'; exit 3", "client", "{agent-words}"],
        &["sh", "-c", "eval \"$ATTACHE_CHECK_AGENT\"; read line; echo to: \"$line\"; exit 3"],
    ] {
        let (run, _) = run(client, LONG).await;
        assert_eq!(run.ending, Ending::Exited(Some(3)), "{run:?}");
        assert_eq!(transcript(&run), format!("{HELLO}(exited 3)\n"));
        assert_eq!(run.output, "text\nto: Play scenario text.\n", "{client:?}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_start_is_recorded() {
    let (run, _) = run(&["/no/such/client", "{agent}"], LONG).await;
    assert!(matches!(&run.ending, Ending::NotStarted(why) if why.contains("/no/such/client")), "{run:?}");
    assert!(transcript(&run).contains("the client could not be started"), "{run:?}");
}

#[tokio::test]
async fn a_client_that_hangs_is_ended_with_what_it_started() {
    let begin = Instant::now();
    // A fifo has a writer as long as anything that the client started is alive.
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reading = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo).unwrap()
    });
    let script = format!("trap '' TERM; exec 3>{}; (sleep 60) & sleep 60", fifo.display());
    let (run, took) = run(&["sh", "-c", &script], Duration::from_millis(300)).await;
    assert_eq!(run.ending, Ending::TimedOut);
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(run.record.entries.iter().any(|entry| entry.event == Event::Waited { time: Duration::from_millis(300) }));
    assert_eq!(reading.join().unwrap(), b"");
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_client_that_is_killed_is_recorded() {
    let (run, _) = run(&["sh", "-c", "kill -9 $$"], LONG).await;
    assert_eq!(run.ending, Ending::Exited(None));
    assert_eq!(transcript(&run), "(exited)\n");
}

#[test]
fn command_lines_are_quoted_for_shells() {
    let words = ["a b", "it's", "$x"].map(str::to_owned);
    assert_eq!(agent_line(&words), r"'a b' 'it'\''s' '$x'");
}
