//! For every rule that is a must, a peer that breaks it is found, and is found to break nothing else.
//!
//! The peers are those of [`reference`], which do nothing wrong; [`defects`] has what is made wrong with them, a row for each rule.
//! A row is tested twice: with all that the two peers can do with each other and with odd lines, where nothing else may be found, and
//! with the probes that are known to find it.
//!
//! For work on some rows: `DEFECTS=prompt/` tests those of one area, and `SHOW_RECORD=1` prints what was recorded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "records are shown when they are asked for")]

mod defects;
mod reference;

use std::collections::BTreeMap;

use attache::Protocol;
use attache_check::{Choice, Level, Record, Rule, Side, judge, probe, rules};
use attache_testkit::defect::Defect;

use defects::{Row, found_by};
use reference::play::{play, play_raw};
use reference::probed::{probe, probe_agent, probe_client};

const PROTOCOLS: [Protocol; 3] = [Protocol::V1, Protocol::V2Draft, Protocol::V2];

type Found = BTreeMap<&'static str, String>;

/// The rules that a side breaks in records, with what was seen.
fn broken(records: &[&Record], side: Side) -> Found {
    let judged = records.iter().flat_map(|record| judge(record, side, &Choice::default()));
    let broken = judged.filter(|judged| !judged.findings.is_empty());
    broken.map(|judged| (judged.rule.id, judged.findings[0].seen.clone())).collect()
}

fn show(what: &str, record: &Record) {
    if std::env::var_os("SHOW_RECORD").is_some() {
        println!("{what}\n{}", record.to_transcript());
    }
}

/// Everything that is done with a peer that may have a defect, and what is found: of the peer, and of the one that it talks to.
async fn found(row: &Row) -> (Found, Found) {
    let record = play(row.protocol, row.side, &row.defect).await;
    let raw = play_raw(row.protocol, row.side, &row.defect).await;
    show(row.rule, &record);
    show(row.rule, &raw);
    let other = if row.side == Side::Agent { Side::Client } else { Side::Agent };
    (broken(&[&record, &raw], row.side), broken(&[&record], other))
}

/// What is wrong with a row: its rule is not found, or something else is.
async fn faults(row: &Row) -> Vec<String> {
    let name = format!("{} ({:?}, {:?})", row.rule, row.side, row.protocol);
    let Some(rule) = rules::find(row.rule) else { return vec![format!("{name}: there is no such rule")] };
    let (mut found, innocent) = found(row).await;
    let mut wrong = Vec::new();
    if found.remove(row.rule).is_none() {
        wrong.push(format!("{name}: not found"));
    }
    let others = found.into_iter().filter(|(id, _)| !rule.implies.contains(id));
    wrong.extend(others.map(|(id, seen)| format!("{name}: also found {id}: {seen}")));
    let is_must = |id: &str| rules::find(id).is_some_and(|rule| rule.level == Level::Must);
    let accused = innocent.into_iter().filter(|(id, _)| is_must(id));
    wrong.extend(accused.map(|(id, seen)| format!("{name}: accuses the other side of {id}: {seen}")));
    wrong
}

fn assert_nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// For work on some rows: `DEFECTS=prompt/` tests those of one area.
fn is_wanted(row: &Row) -> bool {
    std::env::var("DEFECTS").map_or(true, |wanted| row.rule.starts_with(&wanted))
}

/// Tests the rows of each area on their own, so that they are tested side by side.
macro_rules! areas {
    ($($area:ident)*) => {
        mod a_defect_is_found_and_nothing_else {
            $(#[tokio::test(start_paused = true)]
            async fn $area() {
                let mut wrong = Vec::new();
                for row in super::defects::$area::rows().into_iter().filter(super::is_wanted) {
                    wrong.extend(super::faults(&row).await);
                }
                super::assert_nothing(&wrong);
            })*
        }

        mod the_probes_find_the_defects {
            $(#[tokio::test(start_paused = true)]
            async fn $area() {
                let mut wrong = Vec::new();
                for row in super::defects::$area::rows().into_iter().filter(super::is_wanted) {
                    // Rows of other areas' rules are tested there.
                    if row.rule.starts_with(concat!(stringify!($area), "/")) {
                        wrong.extend(super::missed(&row).await);
                    }
                }
                super::assert_nothing(&wrong);
            })*
        }

        /// All rows.
        fn rows() -> Vec<Row> {
            [$(defects::$area::rows()),*].into_iter().flatten().collect()
        }
    };
}

areas! {
    envelope errors batches extensions transport initialize auth sessions mcp prompt state cancel messages tools permission
    files terminals plans options notices elicitation
}

#[test]
fn every_rule_that_is_a_must_has_a_defect() {
    let rows = rows();
    let has_row = |rule: &&'static Rule| rows.iter().any(|row| row.rule == rule.id && rule.binds.includes(row.side));
    let missing = rules::all().filter(|rule| rule.level == Level::Must && !has_row(rule));
    assert_nothing(&missing.map(|rule| format!("{} has no defect", rule.id)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn the_reference_peers_break_no_rule() {
    let mut wrong = Vec::new();
    for protocol in PROTOCOLS {
        for side in [Side::Agent, Side::Client] {
            let row = Row { rule: "none", side, protocol, defect: Defect::none() };
            let (found, _) = found(&row).await;
            wrong.extend(found.into_iter().map(|(rule, seen)| format!("{protocol:?} {side:?} {rule}: {seen}")));
        }
    }
    assert_nothing(&wrong);
}

#[tokio::test(start_paused = true)]
async fn the_probes_find_nothing_in_the_reference_peers() {
    let mut wrong = Vec::new();
    for protocol in PROTOCOLS {
        for side in [Side::Agent, Side::Client] {
            let record = probe(protocol, side, &Defect::none()).await;
            show("probes", &record);
            let found = broken(&[&record], side);
            wrong.extend(found.into_iter().map(|(rule, seen)| format!("{protocol:?} {side:?} {rule}: {seen}")));
        }
    }
    assert_nothing(&wrong);
}

/// Whether a group of probes finds the rule of a row broken, or a scenario does.
async fn is_found_by(row: &Row, name: &str) -> bool {
    let record = match row.side {
        Side::Agent => probe_agent(row.protocol, &row.defect, vec![name.to_owned()]).await,
        Side::Client => match probe::client::find(name) {
            Some(scenario) => probe_client(row.protocol, &row.defect, scenario).await,
            None => return false,
        },
    };
    let choice = Choice { only: vec![row.rule.to_owned()], ..Choice::default() };
    judge(&record, row.side, &choice).iter().any(|judged| !judged.findings.is_empty())
}

/// What is wrong with how a row is found by probes.
async fn missed(row: &Row) -> Option<String> {
    if std::env::var_os("DISCOVER").is_some() {
        println!("{} {:?}: {}", row.rule, row.side, discover(row).await.unwrap_or("not found"));
        return None;
    }
    let name = found_by(row.rule, row.side)?;
    (!is_found_by(row, name).await).then(|| format!("{} ({:?}): not found by `{name}`", row.rule, row.side))
}

/// The first group of probes, or the first scenario, that finds a row.
async fn discover(row: &Row) -> Option<&'static str> {
    let mut names: Vec<&str> = match row.side {
        Side::Agent => probe::agent::probes().filter_map(|probe| probe.name.split('/').next()).collect(),
        Side::Client => probe::client::scenarios().iter().map(|scenario| scenario.name).collect(),
    };
    names.sort_unstable();
    names.dedup();
    names.sort_by_key(|name| !row.rule.starts_with(name));
    for name in names {
        if is_found_by(row, name).await {
            return Some(name);
        }
    }
    None
}
