//! Prompts that say line by line what the reference agent is to do. The words are those of the testkit's scripted model, and more.

use serde_json::Value;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    Say(String),
    Think(String),
    /// A tool with its arguments.
    Call(String, Value),
    /// Says what was to be remembered.
    Recall,
    Remember(String),
    /// Text that takes its time.
    Slowly,
    Stop(String),
    /// A word of this agent's own, with the rest of the line.
    Do(&'static str, String),
}

/// What the agent can do besides.
const WORDS: [&str; 16] = [
    "plan",
    "usage",
    "notice",
    "compact",
    "form",
    "url",
    "mode",
    "commands",
    "title",
    "fail",
    "background",
    "image",
    "wait",
    "options",
    "meta",
    "extension",
];

/// The tools of this agent by what they are for, as the probes name them.
const TOOLS: [(&str, &str); 5] = [
    ("read", "read_file"),
    ("write", "write_file"),
    ("run", "run_command"),
    ("plan", "update_plan"),
    ("ask", "ask_user"),
];

/// The lines of a prompt that are a script; none if it is an ordinary prompt.
pub(crate) fn lines(prompt: &str) -> Vec<Line> {
    prompt.lines().filter_map(|line| read(line.trim())).collect()
}

fn read(line: &str) -> Option<Line> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match (word, rest) {
        ("say", text) if !text.is_empty() => Line::Say(text.to_owned()),
        ("think", text) if !text.is_empty() => Line::Think(text.to_owned()),
        ("call" | "and", call) => {
            let (name, arguments) = call.split_once(' ')?;
            Line::Call(name.to_owned(), serde_json::from_str(arguments).ok()?)
        }
        ("use", call) => {
            let (purpose, arguments) = call.split_once(' ')?;
            let (_, name) = TOOLS.into_iter().find(|(known, _)| *known == purpose)?;
            Line::Call(name.to_owned(), serde_json::from_str(arguments).ok()?)
        }
        ("recall", "") => Line::Recall,
        ("remember", text) => Line::Remember(text.split_whitespace().next()?.to_owned()),
        ("slowly", "") => Line::Slowly,
        ("stop", why) => Line::Stop(why.to_owned()),
        (word, rest) => Line::Do(WORDS.into_iter().find(|known| *known == word)?, rest.to_owned()),
    })
}
