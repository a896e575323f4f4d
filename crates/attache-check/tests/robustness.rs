//! Judges take whatever comes: they never panic, and their time grows with the record and not faster.

use std::path::Path;
use std::time::{Duration, Instant};

use attache_check::record::Event;
use attache_check::{Choice, Record, Side, judge};

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// All lines of all transcripts.
fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> = std::fs::read_dir(&folder)
            .expect("transcripts can be read")
            .map(|entry| entry.expect("transcripts can be read").path())
            .collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("transcripts can be read");
            let is_event = |line: &&str| !line.starts_with("==") || line.starts_with("==> ");
            lines.extend(text.lines().filter(is_event).filter(|line| !line.starts_with("include")).map(str::to_owned));
        }
    }
    lines
}

/// Puts something into a message where something else was.
fn damage(text: &mut String, numbers: &mut Numbers) {
    const VALUES: [&str; 10] =
        ["null", "7", "-1", "\"x\"", "[]", "{}", "[[{}]]", "1.5", "true", "18446744073709551615"];
    let places: Vec<usize> = text.match_indices(':').map(|(place, _)| place + 1).collect();
    if let Some(&start) = places.get(numbers.below(places.len())) {
        let end = text[start..].find([',', '}']).map_or(text.len(), |end| start + end);
        text.replace_range(start..end, VALUES[numbers.below(VALUES.len())]);
    }
}

#[test]
fn whatever_comes_is_judged() {
    let lines = lines();
    let mut numbers = Numbers(1);
    for _ in 0..400 {
        let text: String = (0..60).map(|_| lines[numbers.below(lines.len())].clone() + "\n").collect();
        let greeting = ["include/v1.txt", "include/v2.txt", "include/draft.txt"][numbers.below(3)];
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts").join(greeting);
        let text = std::fs::read_to_string(path).unwrap() + &text;
        let mut record = Record::from_transcript(&text).unwrap();
        for entry in &mut record.entries {
            if let Event::Frame { text, .. } = &mut entry.event
                && numbers.below(4) == 0
            {
                damage(text, &mut numbers);
            }
        }
        for side in [Side::Agent, Side::Client] {
            for judged in judge(&record, side, &Choice::default()) {
                assert!(judged.tested >= judged.findings.len());
                let is_there = |entry: &usize| *entry < record.entries.len();
                assert!(judged.findings.iter().all(|finding| finding.entries.iter().all(is_there)));
            }
        }
    }
}

/// The text of a transcript that others begin with.
fn included(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("transcripts/include/{name}.txt"));
    std::fs::read_to_string(path).expect("transcripts can be read")
}

/// Lines that come so many times, each with its number.
fn repeated(lines: &str, count: usize) -> String {
    (0..count).map(|number| lines.replace("NUMBER", &number.to_string()) + "\n").collect()
}

/// How long it takes to judge a transcript.
fn time(text: &str) -> Duration {
    let record = Record::from_transcript(text).expect("transcripts can be read");
    let started = Instant::now();
    for side in [Side::Agent, Side::Client] {
        judge(&record, side, &Choice::default());
    }
    started.elapsed()
}

#[test]
fn time_grows_with_the_record() {
    let lines = [
        "==> nonsense",
        "==> 7",
        "--> {'id':9,'method':'session/list'}",
        "<-- {'id':null,'error':{'code':-32600,'message':'Invalid request'}}",
        "--> {'id':null,'method':'session/list'}",
        "--> {'method':'$/cancel_request','params':{'requestId':NUMBER}}",
        "--> {'id':NUMBER,'method':'session/close','params':{'sessionId':'NUMBER'}}",
        "--> [{'id':NUMBER,'method':'session/list'},7]",
        "--> []",
    ];
    for line in lines {
        let judged = |count| time(&format!("{}{}(waited 2000 ms)", included("v2-session"), repeated(line, count)));
        check_growth(line, judged);
    }
}

/// Eight times as much; with room for a busy machine, and far from sixty-four times.
#[track_caller]
fn check_growth(what: &str, judged: impl Fn(usize) -> Duration) {
    let few = judged(150).max(Duration::from_millis(20));
    let many = judged(1_200);
    assert!(many < few * 30, "`{what}`: {few:?} for 150, {many:?} for 1200");
}

#[test]
fn time_grows_with_connections_turns_and_reopenings() {
    let session = included("v1-session");
    let prompt = "--> {'id':'pNUMBER','method':'session/prompt','params':{'sessionId':'s','prompt':[]}}";
    let end = "<-- {'id':'pNUMBER','result':{'stopReason':'end_turn'}}";
    let said = "<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'a'}}}}";
    let cancel = "--> {'method':'session/cancel','params':{'sessionId':'s'}}";
    let load = "--> {'id':'lNUMBER','method':'session/load','params':{'sessionId':'s','cwd':'/p','mcpServers':[]}}";
    let loaded = "<-- {'id':'lNUMBER','result':{}}";
    check_growth("connections", |count| time(&repeated(&format!("{session}(restarted)"), count)));
    check_growth("turns", |count| time(&format!("{session}{}", repeated(&[prompt, said, end].join("\n"), count))));
    check_growth("prompts at once", |count| {
        time(&format!("{session}{}{}{}", repeated(prompt, count), repeated(said, count), repeated(end, count)))
    });
    check_growth("prompts without an end", |count| {
        time(&format!("{session}{}(waited 9000 ms)", repeated(prompt, count)))
    });
    check_growth("cancelled turns", |count| {
        time(&format!("{session}{}", repeated(&[prompt, said, cancel, said, end].join("\n"), count)))
    });
    check_growth("reopenings", |count| {
        time(&format!("{session}{}", repeated(&[load, said, loaded].join("\n"), count)))
    });
}

#[test]
fn waits_of_ages_are_added_up() {
    let cancel = "--> {'method':'session/cancel','params':{'sessionId':'s'}}\n";
    let mut record = Record::from_transcript(&format!("{}{cancel}", included("v1-prompt"))).unwrap();
    for _ in 0..3 {
        record.push(Duration::MAX, Event::Waited { time: Duration::MAX });
    }
    for side in [Side::Agent, Side::Client] {
        judge(&record, side, &Choice::default());
    }
}
