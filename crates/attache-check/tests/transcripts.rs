//! Every rule has a transcript that keeps it and one that breaks it: `transcripts/AREA/RULE.txt`.
//!
//! ```text
//! == pass: what it shows
//! include v1
//! --> …
//! == fail: what it shows
//! …
//! ```
//!
//! `== pass agent: …` judges the agent alone: where it is shown how one side takes what the other does wrong.
//! `include NAME` stands for the lines of `transcripts/include/NAME.txt`. A section that passes breaks no other rule that is a must,
//! and one that fails breaks only its rule and those that its row implies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use attache_check::{Choice, Level, Record, Rule, Side, judge, rules};

struct Section {
    is_pass: bool,
    sides: Vec<Side>,
    title: String,
    record: Record,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")
}

fn sections(rule: &Rule) -> Vec<Section> {
    let path = folder().join(format!("{}.txt", rule.id));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|_| panic!("rule `{}` has no transcripts/{}.txt", rule.id, rule.id));
    let mut sections: Vec<(bool, String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(title) =
            line.strip_prefix("== ").filter(|title| title.starts_with("pass") || title.starts_with("fail"))
        {
            sections.push((title.starts_with("pass"), title.to_owned(), String::new()));
        } else if let Some(name) = line.strip_prefix("include ") {
            let included = std::fs::read_to_string(folder().join(format!("include/{}.txt", name.trim())))
                .unwrap_or_else(|_| panic!("{}: there is no include/{name}.txt", rule.id));
            sections.last_mut().expect("a section").2.push_str(&included);
        } else if let Some(section) = sections.last_mut() {
            section.2.push_str(line);
            section.2.push('\n');
        }
    }
    let read =
        |text: &str| Record::from_transcript(text).unwrap_or_else(|error| panic!("{}: {error} of\n{text}", rule.id));
    let section = |(is_pass, title, text): (bool, String, String)| {
        let words: Vec<&str> = title.split([' ', ':']).collect();
        let sides = match words.get(1) {
            Some(&"agent") => vec![Side::Agent],
            Some(&"client") => vec![Side::Client],
            _ => vec![Side::Agent, Side::Client],
        };
        Section { is_pass, sides, record: read(&text), title }
    };
    sections.into_iter().map(section).collect()
}

/// The rules of one level that a record breaks, with what was seen.
fn broken(record: &Record, sides: &[Side], level: Level) -> Vec<(Side, &'static str, String)> {
    let choice = Choice { level: Some(level), ..Choice::default() };
    let of = |side| {
        let judged = judge(record, side, &choice).into_iter().filter(|judged| !judged.findings.is_empty());
        judged.map(move |judged| (side, judged.rule.id, judged.findings[0].seen.clone())).collect::<Vec<_>>()
    };
    sides.iter().copied().flat_map(of).collect()
}

#[test]
fn every_rule_has_a_transcript_that_keeps_it_and_one_that_breaks_it() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        let sections = sections(rule);
        for expected in [true, false] {
            if !sections.iter().any(|section| section.is_pass == expected) {
                wrong.push(format!("{}: no section `{}`", rule.id, if expected { "pass" } else { "fail" }));
            }
        }
        for Section { is_pass, sides, title, record } in &sections {
            let choice = Choice { only: vec![rule.id.to_owned()], ..Choice::default() };
            let judged: Vec<_> = sides
                .iter()
                .flat_map(|side| judge(record, *side, &choice))
                .filter(|judged| judged.rule.id == rule.id)
                .collect();
            let tested: usize = judged.iter().map(|judged| judged.tested).sum();
            let findings: Vec<_> =
                judged.iter().flat_map(|judged| &judged.findings).map(|finding| &finding.seen).collect();
            let others: Vec<_> =
                broken(record, sides, Level::Must).into_iter().filter(|(_, id, _)| *id != rule.id).collect();
            match is_pass {
                true if tested == 0 => wrong.push(format!("{}, {title}: the rule did not matter in it", rule.id)),
                true if !findings.is_empty() => wrong.push(format!("{}, {title}: {findings:?}", rule.id)),
                true if !others.is_empty() => wrong.push(format!("{}, {title}: breaks {others:?}", rule.id)),
                false if findings.is_empty() => wrong.push(format!("{}, {title}: nothing was found", rule.id)),
                false if others.iter().any(|(_, id, _)| !rule.implies.contains(id)) => {
                    wrong.push(format!("{}, {title}: breaks {others:?}, which the rule does not imply", rule.id));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rules_are_well_formed() {
    let mut ids = BTreeSet::new();
    for rule in rules::all() {
        assert!(ids.insert(rule.id), "two rules `{}`", rule.id);
        assert!(
            rule.statement.ends_with('.') && rule.instead.ends_with('.'),
            "{}: a sentence ends with a full stop",
            rule.id
        );
        for implied in rule.implies {
            assert!(rules::find(implied).is_some(), "{} implies `{implied}`, which is no rule", rule.id);
        }
    }
}
