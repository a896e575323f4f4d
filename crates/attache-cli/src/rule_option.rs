//! `--allow` and `--deny`: rules of permissions.toml on one line, for one run.

use attache_host::permission::{Rule, RulesError, Verdict, parse_rules};
use toml_edit::{DocumentMut, Value};

use crate::exit::Failure;
use crate::visible::one_line;

/// Reads what both options say, in their order.
pub(crate) fn read(allow: &[String], deny: &[String]) -> Result<Vec<Rule>, Failure> {
    let rule = |option: &'static str, verdict| {
        move |text: &String| {
            let rule = parse(text, verdict).map_err(|what| {
                Failure::usage(format!("{option} `{}`: {}\n{}", one_line(text), one_line(&what), hint(text)))
            });
            rule.map(|rule| Rule { origin: option.into(), ..rule })
        }
    };
    let allowed = allow.iter().map(rule("--allow", Verdict::Allow));
    allowed.chain(deny.iter().map(rule("--deny", Verdict::Deny))).collect()
}

/// What a rule looks like. Whoever wrote a command is shown the rule for that.
fn hint(text: &str) -> String {
    let is_plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let words: Vec<String> = text.split_whitespace().map(|word| format!("\"{word}\"")).collect();
    match !words.is_empty() && text.split_whitespace().all(is_plain) {
        true => format!("hint: write the rule for a command as 'command = [{}]'", words.join(", ")),
        false => {
            "hint: it is written as in permissions.toml: 'command = [\"cargo\", \"test\"]', 'kind = [\"edit\"]'".into()
        }
    }
}

fn parse(text: &str, verdict: Verdict) -> Result<Rule, String> {
    let document: Result<DocumentMut, _> = format!("rule = {{ {text} }}").parse();
    let mut document = document.map_err(|error| match text.contains('=') {
        true => error.message().trim().to_owned(),
        // What the parser misses in it says little to whoever did not know that it is TOML.
        false => "it is no rule, which looks like `key = value`".to_owned(),
    })?;
    let Some(Value::InlineTable(table)) = document.remove("rule").and_then(|item| item.into_value().ok()) else {
        return Err("it is no rule".into());
    };
    if !document.is_empty() || table.is_empty() {
        return Err("it is no rule".into());
    }
    if table.contains_key("verdict") {
        return Err("the option says the verdict".into());
    }
    let mut lines = format!("[[rule]]\nverdict = \"{}\"\n", verdict.as_str());
    for (key, value) in &table {
        lines += &format!("{key} = {}\n", value.to_string().trim());
    }
    match parse_rules("", &lines) {
        Ok(rules) => rules.into_iter().next().ok_or_else(|| "it is no rule".into()),
        Err(RulesError::Wrong { problem, .. }) => Err(problem),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_fits_on_a_line() {
        let rules = |allow: &str, deny: &str| {
            let list =
                |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect::<Vec<_>>();
            let rules = read(&list(allow), &list(deny)).map_err(|failure| failure.message);
            rules.map(|rules| rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        };
        assert_eq!(rules("command = ['make', 'all'], args = 'none'", ""), Ok("allow the command `make all`".into()));
        assert_eq!(rules("kind = 'edit', path = ['docs/**']", ""), Ok("allow edit of `docs/**`".into()));
        assert_eq!(rules("kind = 'read'", "tool = 'fetch:*'"), Ok("allow read; deny the tool `fetch:*`".into()));
        for wrong in
            ["make all", "", " ", "command = 'make'", "verdict = 'allow'", "kind = 'x'", "} , y = { a = 1", "a = 1"]
        {
            let message = rules("", wrong).err();
            assert!(wrong.is_empty() || message.is_some_and(|message| message.starts_with("--deny ")), "{wrong}");
        }
    }
}
