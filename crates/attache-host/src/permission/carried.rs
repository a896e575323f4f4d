//! What one of our agents tells one of our clients with a question: what it would do, typed, and what was decided about it.
//!
//! Such a call is judged once, by the agent, and asked about once, by the client. Nobody guesses the action back out of the
//! input of a tool. A client believes it of the agent that is built in and of no other.

use attache::model::Meta;
use attache::model::tool::ToolKind;
use serde_json::{Value, json};

use super::engine::Decision;
use super::rules::Verdict;
use super::subject::Action;
use super::{file, parse_rules};
use crate::commands::Command;

/// The key of `_meta`.
const KEY: &str = "attache/permission";

/// The `_meta` of a question.
pub fn to_meta(actions: &[Action], decision: &Decision) -> Option<Meta> {
    let rules = file::write_rules(&decision.suggestion);
    let actions: Vec<Value> = actions.iter().map(write).collect();
    Meta::new(&json!({KEY: {"actions": actions, "reason": decision.reason, "rules": rules}}).to_string()).ok()
}

/// What a question of our own agent is about: all that would be done, why it is asked, and the rules that would allow it.
/// `None` if it does not say, or anything about it is not understood.
pub fn from_meta(meta: &Meta) -> Option<(Vec<Action>, Decision)> {
    let value: Value = meta.get(KEY)?.parse().ok()?;
    let actions = value["actions"].as_array()?.iter().map(read).collect::<Option<Vec<_>>>()?;
    let suggestion = parse_rules("the agent", value["rules"].as_str()?).ok()?;
    let reason = super::visible_lines(value["reason"].as_str()?);
    (!actions.is_empty()).then_some((actions, Decision { verdict: Verdict::Ask, reason, suggestion }))
}

/// The key of `_meta` of a call that was refused without a question.
const REFUSED: &str = "attache/refused";

/// The `_meta` of a call that a rule or the mode refused: what it is called, and why.
pub fn refusal_to_meta(what: &str, reason: &str) -> Option<Meta> {
    Meta::new(&json!({REFUSED: [what, reason]}).to_string()).ok()
}

/// What was refused without a question, and why.
pub fn refusal_from_meta(meta: &Meta) -> Option<(String, String)> {
    let value: Value = meta.get(REFUSED)?.parse().ok()?;
    Some((super::visible(value[0].as_str()?), super::visible_lines(value[1].as_str()?)))
}

fn write(action: &Action) -> Value {
    match action {
        Action::Files { kind, paths } => json!({"do": "files", "kind": kind.as_str(), "paths": paths}),
        Action::Execute { command, cwd, env, paths } => {
            let env: Vec<Value> = env.iter().map(|(name, value)| json!([name, value.expose()])).collect();
            let mut value = json!({"do": "execute", "cwd": cwd, "env": env, "paths": paths});
            match command {
                Command::Line(line) => value["line"] = json!(line),
                other => value["words"] = json!(other.words()),
            }
            value
        }
        Action::Other { kind, name, paths } => {
            json!({"do": "other", "kind": kind.as_str(), "name": name, "paths": paths})
        }
        Action::Unclear { kind, paths, .. } => json!({"do": "unclear", "kind": kind.as_str(), "paths": paths}),
    }
}

fn read(value: &Value) -> Option<Action> {
    let paths = strings(&value["paths"])?;
    let kind = || value["kind"].as_str().map(ToolKind::from);
    let optional = |value: &Value| match value {
        Value::Null => Some(None),
        value => value.as_str().map(|text| Some(text.to_owned())),
    };
    match value["do"].as_str()? {
        "files" => Some(Action::Files { kind: kind()?, paths }),
        "execute" => {
            let command = match value["line"].as_str() {
                Some(line) => Command::Line(line.to_owned()),
                None => Command::from_words(strings(&value["words"])?),
            };
            let variable = |pair: &Value| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.into()));
            let env = value["env"].as_array()?.iter().map(variable).collect::<Option<Vec<_>>>()?;
            Some(Action::Execute { command, cwd: optional(&value["cwd"])?, env, paths })
        }
        "other" => Some(Action::Other { kind: kind()?, name: optional(&value["name"])?, paths }),
        "unclear" => Some(Action::Unclear { kind: kind()?, paths, reason: "the agent cannot tell what it would do" }),
        _ => None,
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::permission::Rule;

    #[test]
    fn what_is_carried_arrives_as_it_was() {
        let actions = vec![
            Action::Files { kind: ToolKind::Edit, paths: vec!["/p/a".into(), "/p/ü".into()] },
            Action::Execute {
                command: Command::Line("make | tail\n".into()),
                cwd: Some("/p".into()),
                env: vec![("A".into(), "b".into())],
                paths: Vec::new(),
            },
            Action::Execute {
                command: Command::from_words(vec!["bash".into(), "-lc".into(), "x".into()]),
                cwd: None,
                env: Vec::new(),
                paths: Vec::new(),
            },
            Action::Other { kind: ToolKind::Fetch, name: Some("fetch:docs.rs".into()), paths: Vec::new() },
        ];
        let rule = Rule { command: vec!["make".into()], agent: Some("attache".into()), ..Rule::new(Verdict::Allow) };
        let decision = Decision { suggestion: vec![rule], ..Decision::ask("no rule decides this") };
        let (read, carried) = from_meta(&to_meta(&actions, &decision).unwrap()).unwrap();
        assert_eq!(read, actions);
        assert_eq!(carried.reason, decision.reason);
        assert_eq!(carried.suggestion.len(), 1);
        assert!(carried.suggestion[0].says_the_same(&decision.suggestion[0]));
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        let texts = [
            r#"{}"#,
            r#"{"attache/permission": 1}"#,
            r#"{"attache/permission": {"actions": [], "reason": "x", "rules": ""}}"#,
            r#"{"attache/permission": {"actions": [{"do": "dance", "paths": []}], "reason": "x", "rules": ""}}"#,
            r#"{"attache/permission": {"actions": [{"do": "files", "kind": "edit"}], "reason": "x", "rules": ""}}"#,
            r#"{"attache/permission": {"actions": [{"do": "execute", "paths": [], "env": []}], "reason": "", "rules": ""}}"#,
            r#"{"attache/permission": {"actions": [{"do": "files", "kind": "edit", "paths": ["a"]}], "reason": "", "rules": "?"}}"#,
        ];
        for text in texts {
            assert!(from_meta(&Meta::new(text).unwrap()).is_none(), "{text}");
        }
    }
}
