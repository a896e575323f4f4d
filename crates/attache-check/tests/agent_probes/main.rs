//! The probes for agents, on an agent that keeps to the protocol, and on some that do not even try.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod hostile;

use std::collections::BTreeSet;
use std::time::Duration;

use attache::process::Command;
use attache_check::exchange::Exchange;
use attache_check::probe::agent::{Options, ProbeRun, Start, Style, probes, run};
use attache_check::record::Event;
use attache_check::{Choice, Dialects, Side, judge};
use attache_proto::Dialect;

/// Every probe runs in every dialect.
#[tokio::test(start_paused = true)]
async fn a_correct_agent_is_made_to_do_all_there_is_and_breaks_no_rule() {
    let runs = run(&agent::start(), Dialects::ALL, &Options::default()).await.unwrap();
    for dialect in Dialects::ALL.iter() {
        let run = runs.iter().filter(|run| run.dialect == dialect).count();
        // The first probe is not in the table.
        assert_eq!(run, probes().filter(|probe| probe.dialects.includes(dialect)).count() + 1);
    }
    breaks_no_rule(&runs);
    reaches_what_there_is(&runs);
}

fn breaks_no_rule(runs: &[ProbeRun]) {
    let mut wrong = Vec::new();
    for ProbeRun { name, dialect, record } in runs {
        for judged in judge(record, Side::Agent, &Choice::default()) {
            for finding in judged.findings {
                wrong.push(format!("{name} in {dialect}: {}: {}", judged.rule.id, finding.seen));
            }
        }
        // Whoever does what it should has nothing to be waited for.
        let is_missed = |event: &Event| matches!(event, Event::Waited { .. } | Event::Exited { .. });
        let is_given_up = |event: &Event| matches!(event, Event::Note { text } if text.contains("given up."));
        let missed = record.entries.iter().filter(|entry| is_missed(&entry.event) || is_given_up(&entry.event));
        if missed.count() > 0 {
            wrong.push(format!("{name} in {dialect}: something did not come:\n{}", record.to_transcript()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the probes make a correct agent do: everything that the protocol has.
fn reaches_what_there_is(runs: &[ProbeRun]) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for run in runs {
        for (_, entries) in run.record.connections() {
            let exchange = Exchange::new(entries);
            for call in &exchange.calls {
                let code = call.error().map_or("answered".to_owned(), |error| error.code.to_string());
                seen.insert(format!("{} {} {code}", exchange.dialect, call.method));
            }
            for session in exchange.sessions.values() {
                for stop in session.turns.iter().filter_map(|turn| turn.stop.as_deref()) {
                    seen.insert(format!("{} stop {stop}", exchange.dialect));
                }
            }
        }
    }
    for method in [
        "session/request_permission",
        "session/close",
        "session/delete",
        "session/list",
        "session/resume",
        "session/new",
        "session/prompt",
        "session/set_config_option",
    ] {
        for dialect in Dialects::ALL.iter() {
            assert!(seen.contains(&format!("{dialect} {method} answered")), "{dialect}: {method}\n{seen:#?}");
        }
    }
    for wanted in [
        "1 fs/read_text_file answered",
        "1 fs/read_text_file -32002",
        "1 fs/write_text_file answered",
        "1 terminal/create answered",
        "1 terminal/output answered",
        "1 terminal/wait_for_exit answered",
        "1 terminal/kill answered",
        "1 terminal/release answered",
        "1 elicitation/create answered",
        "2 elicitation/create answered",
        "1 session/load answered",
        "2-draft session/load answered",
        "1 session/set_mode answered",
        "1 session/set_mode -32602",
        "1 session/set_config_option -32602",
        "1 initialize -32602",
        "1 session/new -32602",
        "1 session/new -32600",
        "1 stop cancelled",
        "2 stop cancelled",
        "2-draft stop cancelled",
        "1 stop refusal",
        "1 stop max_tokens",
        "2 stop end_turn",
    ] {
        assert!(seen.contains(wanted), "{wanted}\n{seen:#?}");
    }
    let has_restarted = |run: &ProbeRun| run.record.entries.iter().any(|entry| entry.event == Event::Restarted);
    assert!(runs.iter().any(has_restarted));
}

/// A program: how it ends and what it says beside the wire is written down.
#[tokio::test]
async fn a_program_is_watched() {
    let script = "echo hello >&2; read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'; read line; exit 3";
    let start = Start::process(Command::from(["sh", "-c", script]));
    let options = Options::new(Style::English).with(|options| options.only = vec!["initialize/version-1".into()]);
    let runs = run(&start, Dialects::V1, &options).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.name).collect::<Vec<_>>(), ["initialize/greeting", "initialize/version-1"]);
    for run in &runs {
        let events: Vec<&Event> = run.record.entries.iter().map(|entry| &entry.event).collect();
        assert!(events.contains(&&Event::Exited { code: Some(3) }), "{events:?}");
        assert!(events.contains(&&Event::Stderr { text: "hello".into() }), "{events:?}");
        assert_eq!(run.dialect, Dialect::V1);
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let start = Start::process(Command::new("/no/such/program"));
    let error = run(&start, Dialects::V1, &Options::default()).await.unwrap_err();
    assert!(error.to_string().contains("not found"), "{error}");
}

/// An agent that ends when its input does, and one that does not: in time.
#[tokio::test]
async fn the_end_of_a_program_is_waited_for() {
    let answer = "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'; read line";
    for (rest, ends) in [("cat >/dev/null; exit 0", true), ("exec sleep 60", false)] {
        let start = Start::process(Command::from(["sh", "-c", &format!("{answer}; {rest}")]));
        let options = Options::default().with(|options| {
            options.only = vec!["transport/goodbye-first".into()];
            options.patience = Duration::from_millis(300);
        });
        let runs = run(&start, Dialects::V1, &options).await.unwrap();
        let record = &runs[1].record;
        let is_exit = |event: &Event| matches!(event, Event::Exited { .. });
        assert_eq!(record.entries.iter().any(|entry| is_exit(&entry.event)), ends, "{}", record.to_transcript());
    }
}
