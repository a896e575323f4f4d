//! `attache permissions`: the rules of what agents may do, with where they stand.

use attache_host::permission::{Engine, Places, Policy, Rule};
use attache_host::trust::project_of;
use serde::Serialize;

use crate::agents::print_lines;
use crate::cli::{PermissionsCommand, RulesPlace};
use crate::connect;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::project;
use crate::visible::{self, one_line};

pub(crate) fn run(command: Option<PermissionsCommand>) -> Result<(), Failure> {
    match command {
        None => list(&RulesPlace::default(), false),
        Some(PermissionsCommand::List { place, json }) => list(&place, json),
        Some(PermissionsCommand::Remove { number, place }) => remove(&place, number),
    }
}

/// A rule as a line of JSON.
#[derive(Serialize)]
struct Row<'a> {
    number: usize,
    verdict: &'static str,
    rule: String,
    agent: Option<&'a str>,
    origin: &'a str,
}

fn open(place: &RulesPlace) -> Result<Engine, Failure> {
    let root = project_of(&connect::directory(place.cwd.as_deref())?);
    let places = Places { config_dir: paths::config()?, state_dir: paths::state()?, project: Some(root.clone()) };
    let mut engine = Engine::open(places, Policy::Ask);
    engine.follow_repository(project::trusted()?, root);
    for problem in engine.problems() {
        eprintln!("warning: {}", visible::visible(&problem.to_string()));
    }
    Ok(engine)
}

fn list(place: &RulesPlace, json: bool) -> Result<(), Failure> {
    let engine = open(place)?;
    let rules: Vec<&Rule> = engine.rules().collect();
    if json {
        return print_lines(rules.iter().enumerate().map(|(index, rule)| {
            visible::json(&Row {
                number: index + 1,
                verdict: rule.verdict.as_str(),
                rule: rule.to_string(),
                agent: rule.agent.as_deref(),
                origin: &rule.origin,
            })
        }));
    }
    if rules.is_empty() {
        eprintln!("no rules here\nhint: answer \"always\" when you are asked, and one is kept");
    }
    let line = |(index, rule): (usize, &&Rule)| {
        format!("{:>3}  {}  ({})", index + 1, one_line(&rule.to_string()), one_line(&rule.origin))
    };
    print_lines(rules.iter().enumerate().map(line))
}

/// Removes exactly the rule of that number.
fn remove(place: &RulesPlace, number: u32) -> Result<(), Failure> {
    let mut engine = open(place)?;
    let index = number as usize - 1;
    let rule = engine.rules().nth(index).cloned().ok_or_else(|| {
        let hint = "hint: `attache permissions list` has the numbers";
        Failure::new(Code::NotFound, format!("there is no rule {number} here\n{hint}"))
    })?;
    let removed = engine.remove_rule(index).map_err(|error| Failure::usage(error.to_string()))?;
    if !removed {
        let hint = "hint: the project brings it along; change that file, or `attache trust --revoke`";
        return Err(Failure::usage(format!("rule {number} stands in {}\n{hint}", one_line(&rule.origin))));
    }
    eprintln!("removed: {}", one_line(&rule.to_string()));
    for other in engine.rules().filter(|other| other.covers(&rule)) {
        eprintln!("note: it still applies: {} ({})", one_line(&other.to_string()), one_line(&other.origin));
    }
    Ok(())
}
