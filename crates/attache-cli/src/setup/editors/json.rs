//! Adds an agent to settings that are JSON with comments, and keeps all that a person wrote.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

use super::AGENT;
use crate::agents::catalog;

/// The entry that has to be there.
pub(super) struct Wanted<'a> {
    /// The object with all agents.
    pub(super) table: &'static str,
    /// The value of `type`, where entries have one.
    pub(super) kind: Option<&'static str>,
    pub(super) command: &'a str,
}

impl Wanted<'_> {
    fn entry(&self) -> Vec<(String, CstInputValue)> {
        let kind = self.kind.map(|kind| ("type".to_owned(), kind.into()));
        let rest = [("command".to_owned(), self.command.into()), ("args".to_owned(), arguments())];
        kind.into_iter().chain(rest).collect()
    }

    /// The whole of a file that has only this in it.
    pub(super) fn snippet(&self) -> String {
        with_entry("", self).unwrap_or_default()
    }

    /// Whether a command that is there starts this program, in the way that is wanted.
    fn is_met_by(&self, command: &str) -> bool {
        let is_whole = |command: &str| std::path::Path::new(command).is_absolute();
        command == self.command || catalog::is_ourselves(command) && (is_whole(command) || !is_whole(self.command))
    }
}

fn arguments() -> CstInputValue {
    CstInputValue::Array(vec!["agent".into()])
}

/// What people write: comments and commas at the end, and no more than that.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The text with the entry in it. An error is a reason why it cannot be put there.
pub(super) fn with_entry(text: &str, wanted: &Wanted<'_>) -> Result<String, String> {
    let root = CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| format!("line {} is not JSON with comments", error.line_display()))?;
    let settings = root.object_value_or_create().ok_or("it is not a JSON object")?;
    let agents = object_in(&settings, wanted.table)?;
    if is_repeated(&agents, AGENT) {
        return Err(format!("`{AGENT}` is in it twice"));
    }
    match agents.get(AGENT) {
        None => drop(agents.append(AGENT, CstInputValue::Object(wanted.entry()))),
        Some(entry) => {
            let entry = entry.object_value().ok_or_else(|| format!("`{AGENT}` in it is not an object"))?;
            correct(&entry, wanted)?;
        }
    }
    let made = root.to_string();
    Ok(if text.trim().is_empty() && !made.ends_with('\n') { made + "\n" } else { made })
}

/// The object of this name, made if it is not there.
fn object_in(settings: &CstObject, name: &str) -> Result<CstObject, String> {
    if is_repeated(settings, name) {
        return Err(format!("`{name}` is in it twice"));
    }
    settings.object_value_or_create(name).ok_or_else(|| format!("`{name}` in it is not an object"))
}

/// Programs take the last of several, people see the first.
fn is_repeated(object: &CstObject, name: &str) -> bool {
    object.properties().iter().filter(|property| property.decoded_name().as_deref() == Some(name)).count() > 1
}

/// Has an entry start this program. What else is in it stays: variables, options after `agent`.
fn correct(entry: &CstObject, wanted: &Wanted<'_>) -> Result<(), String> {
    let text = |name: &str| entry.get(name)?.value()?.as_string_lit()?.decoded_value().ok();
    match (wanted.kind, text("type")) {
        (Some(kind), Some(found)) if kind != found => {
            return Err(format!("`{AGENT}` in it has another `type` than `{kind}`"));
        }
        (Some(kind), None) if entry.get("type").is_none() => drop(entry.insert(0, "type", kind.into())),
        _ => {}
    }
    if !text("command").is_some_and(|command| wanted.is_met_by(&command)) {
        put(entry, "command", wanted.command.into());
    }
    let first = || {
        let first = entry.array_value("args")?.elements().into_iter().next()?;
        first.as_string_lit()?.decoded_value().ok()
    };
    if first().as_deref() != Some("agent") {
        put(entry, "args", arguments());
    }
    Ok(())
}

fn put(object: &CstObject, name: &str, value: CstInputValue) {
    match object.get(name) {
        Some(property) => property.set_value(value),
        None => drop(object.append(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted<'_> = Wanted { table: "agent_servers", kind: Some("custom"), command: "/opt/attache" };

    #[track_caller]
    fn check(before: &str, after: &str) {
        let made = with_entry(before, &WANTED).unwrap();
        assert_eq!(made, after);
        assert_eq!(with_entry(&made, &WANTED).unwrap(), after, "a second time");
    }

    #[test]
    fn an_entry_is_added_and_all_else_stays() {
        let entry = |end: &str| {
            let entry = ["{", "  \"type\": \"custom\",", "  \"command\": \"/opt/attache\",", "  \"args\": [\"agent\"]"];
            format!("{}{end}\n    }}", entry.join("\n    "))
        };
        check("", &format!("{{\n  \"agent_servers\": {{\n    \"Attaché\": {}\n  }}\n}}\n", entry("")));
        // Commas at the end stay in fashion.
        let before = "// mine\n{\n  \"theme\": \"One\", // dark\n  /* others */\n  \"agent_servers\": {\n    \"X\": { \"command\": \"x\" },\n";
        check(&format!("{before}  }},\n}}\n"), &format!("{before}    \"Attaché\": {},\n  }},\n}}\n", entry(",")));
        // Tabs and the line ends of Windows stay what they are.
        let made = with_entry("{\r\n\t\"a\": 1\r\n}\r\n", &WANTED).unwrap();
        assert!(made.contains("\r\n\t\"agent_servers\": {\r\n\t\t\"Attaché\": {\r\n\t\t\t\"type\""), "{made:?}");
        assert_eq!(made.matches('\n').count(), made.matches("\r\n").count());
        // A path of Windows is a string like any other.
        let command = r#"C:\Program Files\"x"\attache.exe"#;
        let made = with_entry("", &Wanted { command, ..WANTED }).unwrap();
        let value: serde_json::Value = serde_json::from_str(&made).unwrap();
        assert_eq!(value["agent_servers"][AGENT]["command"], command);
    }

    #[test]
    fn an_entry_that_is_there_is_corrected_and_keeps_what_is_more() {
        let servers = |entry: &str| format!("{{ \"agent_servers\": {{ \"Attaché\": {entry} }} }}");
        check(
            &servers(
                r#"{ "type": "custom", "command": "/old/attache", "args": ["agent", "--mode", "code"], "env": {} }"#,
            ),
            &servers(
                r#"{ "type": "custom", "command": "/opt/attache", "args": ["agent", "--mode", "code"], "env": {} }"#,
            ),
        );
        check(
            &servers("{\n      \"command\": \"/opt/attache\", // mine\n      \"args\": []\n    }"),
            &servers(
                "{\n      \"type\": \"custom\",\n      \"command\": \"/opt/attache\", // mine\n      \"args\": [\"agent\"]\n    }",
            ),
        );
        let right = servers(r#"{"type":"custom","command":"/opt/attache","args":["agent"]}"#);
        check(&right, &right);
    }

    #[test]
    fn what_is_not_understood_is_not_touched() {
        let rows = [
            ("{\"a\": 1", "line 1"),
            ("{\n'a': 1}", "line 2"),
            ("[]", "not a JSON object"),
            ("{\"agent_servers\": []}", "`agent_servers` in it is not an object"),
            ("{\"agent_servers\": {}, \"agent_servers\": {}}", "`agent_servers` is in it twice"),
            ("{\"agent_servers\": {\"Attaché\": 7}}", "is not an object"),
            ("{\"agent_servers\": {\"Attaché\": {\"type\": \"registry\"}}}", "another `type`"),
        ];
        for (text, expected) in rows {
            let why = with_entry(text, &WANTED).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        assert!(with_entry(&"[".repeat(100_000), &WANTED).is_err());
    }
}
