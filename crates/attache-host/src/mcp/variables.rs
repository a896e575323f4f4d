//! `${NAME}` and `${NAME:-default}` in what an MCP server is given.

use attache::model::Secret;
use attache::model::mcp::McpServer;

/// Puts the values of variables into a server, and adds them to `values`. An error is the name of one that is not set.
pub(super) fn put_into(
    server: &mut McpServer,
    variable: &impl Fn(&str) -> Option<String>,
    values: &mut Vec<Secret>,
) -> Result<(), String> {
    change(server, &mut |text| {
        filled(text, &mut |name, default| {
            let value = variable(name);
            match default {
                Some(default) if value.as_ref().is_none_or(String::is_empty) => Ok(default.to_owned()),
                _ => {
                    let value = value.ok_or_else(|| name.to_owned())?;
                    values.push(Secret::from(value.as_str()));
                    Ok(value)
                }
            }
        })
    })
}

/// The names of the variables in a server, each once.
pub(super) fn names(server: &McpServer) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = |name: &str, _: Option<&str>| -> Result<String, String> {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(String::new())
    };
    // It has no way to fail.
    let _ = change(&mut server.clone(), &mut |text| filled(text, &mut seen));
    names
}

/// Changes every text that a server is given: its command, its arguments, its address, the values of its variables and
/// headers. Names stay as they are.
fn change(server: &mut McpServer, change: &mut impl FnMut(&str) -> Result<String, String>) -> Result<(), String> {
    let (plain, secret): (Vec<&mut String>, Vec<&mut Secret>) = match server {
        McpServer::Stdio(server) => (
            std::iter::once(&mut server.command).chain(&mut server.args).collect(),
            server.env.iter_mut().map(|variable| &mut variable.value).collect(),
        ),
        McpServer::Http(server) => {
            (vec![&mut server.url], server.headers.iter_mut().map(|header| &mut header.value).collect())
        }
        McpServer::Sse(server) => {
            (vec![&mut server.url], server.headers.iter_mut().map(|header| &mut header.value).collect())
        }
        _ => return Ok(()),
    };
    for text in plain {
        *text = change(text)?;
    }
    for text in secret {
        *text = Secret::from(change(text.expose())?);
    }
    Ok(())
}

/// The text with something in the place of each variable. What only looks like one is left as it is: it may be meant for
/// the server. What is put in is not looked at again.
fn filled(text: &str, value: &mut impl FnMut(&str, Option<&str>) -> Result<String, String>) -> Result<String, String> {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, inside) = rest.split_at(start);
        result.push_str(before);
        let inside = &inside[2..];
        let found = inside.find('}').and_then(|end| {
            let (name, default) = match inside[..end].split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (&inside[..end], None),
            };
            is_name(name).then_some((name, default, &inside[end + 1..]))
        });
        match found {
            Some((name, default, after)) => {
                result.push_str(&value(name, default)?);
                rest = after;
            }
            None => {
                result.push_str("${");
                rest = inside;
            }
        }
    }
    result.push_str(rest);
    Ok(result)
}

fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit()) && name.len() <= 256
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::super::{Loaded, parse, variables_of};
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("sk-confidential".into()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${TOKEN}".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_and_defaults_are_put_in() {
        let check = |text: &str, wanted: Result<&str, &str>| {
            let mut value = |name: &str, default: Option<&str>| match (variable(name), default) {
                (Some(value), None) => Ok(value),
                (Some(value), Some(_)) if !value.is_empty() => Ok(value),
                (_, Some(default)) => Ok(default.to_owned()),
                (None, None) => Err(name.to_owned()),
            };
            assert_eq!(filled(text, &mut value).as_deref().map_err(String::as_str), wanted, "{text}");
        };
        check("Bearer ${TOKEN}", Ok("Bearer sk-confidential"));
        check("${TOKEN}${TOKEN}x", Ok("sk-confidentialsk-confidentialx"));
        check("${EMPTY}", Ok(""));
        check("${EMPTY:-default}", Ok("default"));
        check("${NONE:-}", Ok(""));
        check("${NONE:-a:-b}", Ok("a:-b"));
        check("${NONE}", Err("NONE"));
        // Not looked at again, and left alone.
        check("${TRICK}", Ok("${TOKEN}"));
        for text in ["$TOKEN", "${", "${}", "${a.b}", "${env:TOKEN}", "${TOKEN", "${1}", "$", "}{", "${${"] {
            check(text, Ok(text));
        }
        check("${x ${TOKEN}", Ok("${x sk-confidential"));
    }

    #[test]
    fn every_text_of_a_server_may_have_variables_and_one_that_is_missing_concerns_its_server_alone() {
        let file = br#"{"mcpServers": {
            "a": {"command": "${TOKEN}", "args": ["x", "${TOKEN}"], "env": {"${TOKEN}": "${TOKEN}"}},
            "b": {"url": "https://h/${TOKEN}", "headers": {"A": "Bearer ${TOKEN}"}},
            "c": {"type": "sse", "url": "https://h", "headers": {"A": "${MISSING}", "B": "${TOKEN}"}}
        }}"#;
        let written = parse(file).unwrap();
        assert_eq!(variables_of(&written.servers[2]), ["MISSING", "TOKEN"]);
        assert_eq!(variables_of(&written.servers[0]), ["TOKEN"]);
        let loaded = Loaded::new(written, variable);
        let [McpServer::Stdio(a), McpServer::Http(b)] = &loaded.servers[..] else { panic!("{loaded:?}") };
        assert_eq!((a.command.as_str(), a.args[1].as_str()), ("sk-confidential", "sk-confidential"));
        assert_eq!((a.env[0].name.as_str(), a.env[0].value.expose()), ("${TOKEN}", "sk-confidential"));
        assert_eq!(
            (b.url.as_str(), b.headers[0].value.expose()),
            ("https://h/sk-confidential", "Bearer sk-confidential")
        );
        assert_eq!(
            loaded.problems,
            [
                "server `c`: environment variable `MISSING` is not set\nhint: set it, or write a default: `${MISSING:-default}`"
            ]
        );
        assert_eq!(loaded.values.len(), 5);
        assert!(!format!("{loaded:?} {:?}", loaded.values).contains("sk-"), "{loaded:?}");
    }
}
