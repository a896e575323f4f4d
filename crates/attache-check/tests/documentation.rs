//! `docs/rules.md` is made from the tables of rules: `BLESS=1 cargo test -p attache-check --test documentation` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use attache_check::report::area;
use attache_check::rules;
use attache_check::{Binds, Rule};

/// How many items the two lists of the specification's summary have.
const ITEMS: [(&str, usize); 2] = [("v1", 95), ("v2", 53)];

fn row(rule: &Rule) -> String {
    let binds = match rule.binds {
        Binds::Agent => "agent",
        Binds::Client => "client",
        Binds::Both => "both",
    };
    let dialects: Vec<String> = rule.dialects.iter().map(|dialect| dialect.to_string()).collect();
    let escape = |text: &str| text.replace('|', "\\|");
    format!(
        "| `{}` | {binds} | {} | {} | {} | {} |",
        rule.id,
        rule.level.as_str(),
        dialects.join(", "),
        escape(rule.statement),
        escape(rule.source)
    )
}

fn page() -> String {
    let mut areas: Vec<(&str, Vec<&Rule>)> = Vec::new();
    for rule in rules::all() {
        match areas.iter_mut().find(|(name, _)| *name == area(rule)) {
            Some((_, rules)) => rules.push(rule),
            None => areas.push((area(rule), vec![rule])),
        }
    }
    let mut page = String::from(
        "<!-- Made from crates/attache-check/src/rules; `BLESS=1 cargo test -p attache-check --test documentation` writes it. -->\n\n\
         # The rules of `attache check`\n\n",
    );
    let _ = writeln!(
        page,
        "{} rules. `v1/N` and `v2/N` are items of the project's summary of the specification; S0 to S4 are the documents that the project\n\
         was asked to implement, DOC and SCH the official pages and schema, ERR the official page about errors, `rpc` the corner cases of\n\
         JSON-RPC. Protocols: 1, 2-draft (version 2 as drafted in June 2026) and 2.\n",
        rules::all().count()
    );
    for (name, rules) in areas {
        let _ = writeln!(
            page,
            "## {name}\n\n| rule | binds | level | protocol | says | source |\n|---|---|---|---|---|---|"
        );
        rules.into_iter().for_each(|rule| {
            let _ = writeln!(page, "{}", row(rule));
        });
        page.push('\n');
    }
    page.push_str("## What cannot be observed\n\n| item | says | why not |\n|---|---|---|\n");
    for (item, says, why) in rules::unobservable() {
        let _ = writeln!(page, "| {item} | {} | {} |", says.replace('|', "\\|"), why.replace('|', "\\|"));
    }
    page
}

#[test]
fn docs_rules_md_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page() == kept, "docs/rules.md is not what the tables say; BLESS=1 writes it");
}

#[test]
fn every_item_of_the_specification_has_a_rule_or_a_reason_why_not() {
    let mut covered: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let sources = rules::all().map(|rule| rule.source).chain(rules::unobservable().map(|(item, ..)| *item));
    for token in sources.flat_map(|source| source.split([' ', ';', ','])) {
        for (list, items) in ITEMS {
            let Some(number) = token.strip_prefix(list).and_then(|rest| rest.strip_prefix('/')) else { continue };
            let number: usize = number.parse().unwrap_or_else(|_| panic!("`{token}` names no item"));
            assert!((1..=items).contains(&number), "`{token}`: {list} has {items} items");
            covered.entry(list).or_default().insert(number);
        }
    }
    let missing: Vec<String> = ITEMS
        .iter()
        .flat_map(|(list, items)| (1..=*items).map(move |item| (*list, item)))
        .filter(|(list, item)| !covered.get(list).is_some_and(|items| items.contains(item)))
        .map(|(list, item)| format!("{list}/{item}"))
        .collect();
    assert!(missing.is_empty(), "no rule and no reason for {missing:?}");
}
