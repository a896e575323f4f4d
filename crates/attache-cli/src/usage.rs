//! A mistake on the command line, told to a script that asked for JSON.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::Format;
use crate::event::{Agent, Error, Event, Line, Permissions, Result as RunResult, Status};
use crate::exit::Code;
use crate::visible;

/// The mistakes that deserve better words than those of the parser.
pub(crate) fn explained(words: &[OsString], mut error: clap::Error) -> clap::Error {
    match error.kind() {
        ErrorKind::UnknownArgument => match (sandbox_value(words), better_words(words, &error)) {
            (Some(word), _) => clap::Error::raw(ErrorKind::UnknownArgument, sandbox_without_equals(word) + "\n"),
            (None, Some(text)) => clap::Error::raw(ErrorKind::UnknownArgument, text + "\n"),
            (None, None) => {
                // What stands behind `--` is the agent's command here, and no value of ours.
                error.remove(ContextKind::Suggested);
                error
            }
        },
        ErrorKind::InvalidSubcommand => match words.first().and_then(|word| word.to_str()) {
            // Nobody means a command by several words.
            Some(word) if word.contains(char::is_whitespace) => {
                let prompt = attache::process::Command::from(vec![word.to_owned()]).to_string();
                let hint = format!("hint: `attache run {prompt}` answers, `attache chat {prompt}` stays");
                let text = format!("there is no command `{}`\n{hint}\n", visible::one_line(word));
                clap::Error::raw(ErrorKind::InvalidSubcommand, text)
            }
            _ => error,
        },
        // It names all that was given, and so shows as usage what it has just forbidden.
        ErrorKind::ArgumentConflict => {
            error.remove(ContextKind::Usage);
            error
        }
        _ => error,
    }
}

/// Better words for an argument that is not known: a prompt without quotes, and options of `chat` without it.
fn better_words(words: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let first = words.first()?.to_str()?;
    if matches!(argument.as_str(), "--plain" | "--inline" | "--mouse") && first.starts_with('-') {
        return Some(format!("unexpected argument `{argument}`\nhint: `attache chat {argument}`"));
    }
    if argument.starts_with('-') || !matches!(first, "run" | "chat") {
        return None;
    }
    let argument = visible::one_line(argument);
    Some(format!(
        "unexpected argument `{argument}`\nhint: a prompt of several words needs quotes: `attache {first} '… {argument}'`"
    ))
}

/// What was meant for `--sandbox`, and stands behind it as a word of its own.
fn sandbox_value(words: &[OsString]) -> Option<&str> {
    let words = words.split(|word| word == "--").next()?;
    let value = words.windows(2).find(|pair| pair[0] == "--sandbox").and_then(|pair| pair[1].to_str());
    value.filter(|word| matches!(*word, "on" | "offline" | "off"))
}

/// What to say to `--sandbox offline`.
pub(crate) fn sandbox_without_equals(word: &str) -> String {
    format!("`{word}` would be the prompt here\nhint: write it with an equals sign: `--sandbox={word}`")
}

/// The result of a run that did not begin because its command line is wrong, if its words ask for one.
pub(crate) fn result(words: &[OsString], message: &str) -> Option<String> {
    let format = format(words)?;
    let result = RunResult {
        status: Status::Usage,
        exit_code: Code::Usage as u8,
        stop_reason: None,
        text: String::new(),
        text_truncated: false,
        session_id: None,
        run: String::new(),
        agent: Agent::default(),
        model: None,
        plan: None,
        unknown_updates: 0,
        usage: None,
        context: None,
        cost: None,
        permissions: Permissions::default(),
        tool_calls: Vec::new(),
        files_changed: Vec::new(),
        sandbox: None,
        duration_ms: 0,
        error: Some(error(message)),
    };
    Some(match format {
        Format::StreamJson => visible::json(&Line::new(0, Event::Result(Box::new(result)))),
        _ => visible::json(&result),
    })
}

/// What is wrong, and the tip if there is one. The rest of the message is the usage, for people.
fn error(message: &str) -> Error {
    let message = message.trim_start_matches("error: ");
    let is_what = |line: &&str| !line.is_empty() && !line.starts_with("hint: ");
    let what: Vec<&str> = message.lines().map(str::trim).take_while(is_what).collect();
    let tip = message.lines().map(str::trim).find_map(|line| {
        let tip = line.strip_prefix("tip: ");
        tip.or_else(|| line.strip_prefix("hint: "))
    });
    let hint = tip.unwrap_or("`attache help run` has all options");
    Error::new(&format!("{}\nhint: {hint}", what.join(" ")))
}

/// The format that the words of a `run` ask for, if it is one of JSON. The last one counts, and what comes after `--` is
/// the agent's.
fn format(words: &[OsString]) -> Option<Format> {
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).take_while(|word| *word != "--").collect();
    if words.first().is_none_or(|word| *word != "run") {
        return None;
    }
    let mut chosen = None;
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(word) = word.to_str() else { continue };
        let value = match word {
            "-o" | "--output" => words.get(index + 1).and_then(|word| word.to_str()),
            word => match (word.strip_prefix("--output="), word.strip_prefix("-o")) {
                (Some(value), _) => Some(value),
                (None, Some(value)) => Some(value.strip_prefix('=').unwrap_or(value)),
                (None, None) => continue,
            },
        };
        chosen = match value {
            Some("json") => Some(Format::Json),
            Some("stream-json") => Some(Format::StreamJson),
            _ => None,
        };
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_read_as_the_command_line_would_be() {
        let rows: [(&[&str], Option<Format>); 9] = [
            (&["run", "-o", "json", "--nonsense"], Some(Format::Json)),
            (&["run", "--output=stream-json"], Some(Format::StreamJson)),
            (&["run", "-ojson"], Some(Format::Json)),
            (&["run", "-o=json"], Some(Format::Json)),
            (&["run", "-o", "json", "-o", "text"], None),
            (&["run", "--", "agent", "-o", "json"], None),
            (&["run", "-o"], None),
            (&["sessions", "-o", "json"], None),
            (&[], None),
        ];
        for (words, expected) in rows {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(format(&words), expected, "{words:?}");
        }
    }
}
