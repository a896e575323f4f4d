//! The grammar of commands. A form such as `create PATH with CONTENT…` is matched with a line, word by word.

use serde_json::{Map, Value};

/// The arguments that a line has for the capitals of a form, by their names in small letters. `None` when the line does
/// not have this form.
///
/// A name in capitals is one word of the line, or a text in `"…"`; one with `…` is the rest of the line. What is in
/// brackets, at the end, can be left out.
pub(super) fn arguments(form: &str, line: &str) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    let mut rest = line.trim();
    for part in form.split(' ') {
        if part.starts_with('[') && rest.is_empty() {
            break;
        }
        let part = part.trim_matches(['[', ']']);
        let (value, after) = match part.strip_suffix('…') {
            Some(name) => (text(name, rest)?, ""),
            None => first_word(rest)?,
        };
        if part.starts_with(char::is_uppercase) {
            let name = part.trim_end_matches('…').to_lowercase();
            // `@` marks files in prompts for clients, which attach them.
            let bare = value.strip_prefix('@').filter(|_| name == "path");
            found.insert(name, bare.unwrap_or(&value).into());
        } else if !value.eq_ignore_ascii_case(part) {
            return None;
        }
        rest = after;
    }
    rest.is_empty().then_some(found)
}

/// The rest of a line, for this name of a form.
fn text(name: &str, rest: &str) -> Option<String> {
    let value = match name {
        _ if rest.is_empty() => return None,
        // Quotes are for whoever reads it next.
        "COMMAND" | "JSON" => rest.to_string(),
        _ if rest.starts_with('"') => first_word(rest).filter(|(_, after)| after.is_empty())?.0,
        // What has no quotes is a line of the file.
        "CONTENT" => format!("{rest}\n"),
        _ => rest.to_string(),
    };
    // Only a file can be empty.
    (name == "CONTENT" || !value.trim().is_empty()).then_some(value)
}

/// The first word, or the text in quotes, and what comes after it. `None` when there is none, or no closing quote.
fn first_word(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, after) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        return (!word.is_empty()).then(|| (word.into(), after.trim_start()));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()?.1 {
            '"' => break,
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    let after = characters.as_str();
    (after.is_empty() || after.starts_with(char::is_whitespace)).then(|| (value, after.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_that_has_a_form_gives_its_arguments() {
        for (form, line, given) in [
            ("read PATH", "READ a.txt", json!({"path": "a.txt"})),
            ("read PATH", "read \"my file.txt\"", json!({"path": "my file.txt"})),
            ("read PATH", "read @a.txt", json!({"path": "a.txt"})),
            ("list [PATH]", "list", json!({})),
            ("list [PATH]", "list  src ", json!({"path": "src"})),
            ("find PATTERN [in PATH]", "find *.rs", json!({"pattern": "*.rs"})),
            ("find PATTERN [in PATH]", "find *.rs in src", json!({"pattern": "*.rs", "path": "src"})),
            ("create PATH with CONTENT…", "create a with b  c", json!({"path": "a", "content": "b  c\n"})),
            (
                "create PATH with CONTENT…",
                r#"create a with "\"b\"\n\\\d""#,
                json!({"path": "a", "content": "\"b\"\n\\\\d"}),
            ),
            ("create PATH with CONTENT…", "create a with \"\"", json!({"path": "a", "content": ""})),
            (
                "replace OLD_TEXT with NEW_TEXT in PATH",
                "replace \"a b\" with \"\" in c",
                json!({"old_text": "a b", "new_text": "", "path": "c"}),
            ),
            ("run COMMAND…", "run \"a b\"", json!({"command": "\"a b\""})),
            ("run COMMAND…", "run echo 'x; y\"", json!({"command": "echo 'x; y\""})),
            ("say TEXT…", "say \"one\\ttwo\"", json!({"text": "one\ttwo"})),
            ("say TEXT…", "say don't \"stop\"", json!({"text": "don't \"stop\""})),
            ("call TOOL [JSON…]", "call t", json!({"tool": "t"})),
            ("call TOOL [JSON…]", "call t \"x\" {", json!({"tool": "t", "json": "\"x\" {"})),
        ] {
            assert_eq!(arguments(form, line).map(Value::Object), Some(given), "{line}");
        }
    }

    #[test]
    fn any_other_line_gives_none() {
        for (form, line) in [
            ("read PATH", ""),
            ("read PATH", "read"),
            ("read PATH", "read a b"),
            ("read PATH", "read \"a"),
            ("read PATH", "read \"a\\"),
            ("read PATH", "read \"a\"b"),
            ("help", "help me"),
            ("list [PATH]", "list a b"),
            ("find PATTERN [in PATH]", "find a in"),
            ("find PATTERN [in PATH]", "find a at b"),
            ("create PATH with CONTENT…", "create a with"),
            ("create PATH with CONTENT…", "create a with \"b"),
            ("create PATH with CONTENT…", "create a with \"b\" c"),
            ("say TEXT…", "say \" \""),
            ("run COMMAND…", "run"),
        ] {
            assert_eq!(arguments(form, line), None, "{line}");
        }
    }
}
