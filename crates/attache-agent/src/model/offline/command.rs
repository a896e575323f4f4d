//! From the words of a step to a command.

use super::split::{MOST, Step, Uncut, bare_step, steps};
use super::verb::Verb;
use super::words::{
    Written, after_word, after_words, before_word, cut_first, cut_last, path, split_bare, words, written,
};
use crate::model::EndReason;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Read(Vec<Lines>),
    List(String),
    Find { pattern: String, within: Option<String> },
    Search { pattern: String, shown: String, within: Option<String> },
    Run { command: String, background: bool },
    Write { path: String, text: String },
    Replace { old: String, new: String, path: String, all: bool },
    Append { text: String, path: String },
    Delete(Vec<String>),
    Move { from: String, to: String },
    Fetch(String),
    Think(String),
    Plan(Vec<String>),
    Ask { question: String, choices: Vec<String> },
    Mode { mode: &'static str, plan: Option<String> },
    Say(String),
    Slowly(String),
    Call { tool: String, arguments: String },
    Stop(EndReason),
    Loop,
    Tour,
    Help,
}

/// A file, or some of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) path: String,
    /// The first line, and how many.
    pub(super) span: Option<(u64, u64)>,
}

/// Why there is no command in something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unclear {
    /// Nothing was said.
    Nothing,
    /// This is no command.
    Unknown(String),
    /// It is this command, but not said as it has to be.
    Form(Verb, String),
    /// A quotation begins and does not end.
    Quote(Verb, String),
    /// A fenced block begins and does not end.
    Fence,
    /// There are too many steps.
    TooMany,
}

/// What a prompt wants. Either all of it is understood, or nothing is done.
pub(super) fn commands(prompt: &str) -> Result<Vec<Command>, Unclear> {
    let steps = steps(prompt).map_err(|uncut| match uncut {
        Uncut::Unclosed => Unclear::Fence,
        Uncut::TooMany => Unclear::TooMany,
    })?;
    if steps.is_empty() {
        return Err(Unclear::Nothing);
    }
    steps.iter().map(command).collect()
}

/// What one step wants.
pub(super) fn command(step: &Step<'_>) -> Result<Command, Unclear> {
    let Some((verb, rest)) = Verb::cut(step.line) else { return Err(Unclear::Unknown(step.line.into())) };
    let block = step.block;
    let found = match verb {
        Verb::Read => read(rest),
        Verb::List => list(rest),
        Verb::Find => find(rest),
        Verb::Search => search(after_words(rest, &["for", "the word", "the text"]), true),
        Verb::Grep => search(rest, false),
        Verb::Run => run(rest, block),
        Verb::Create | Verb::Write => write(verb, rest, block),
        Verb::Replace => replace(rest),
        Verb::Append => cut_last(rest, "to").and_then(|(text, to)| {
            // `add a file` is no such command, and `append to a.txt` wants its text in a block.
            let text = if text.is_empty() { block.map(String::from)? } else { line_of(text)? };
            Some(Command::Append { text, path: path(to)? })
        }),
        Verb::Delete => several(rest).and_then(|paths| paths.into_iter().map(path).collect()).map(Command::Delete),
        Verb::Move => cut_first(rest, "to")
            .or_else(|| cut_first(rest, "as"))
            .and_then(|(from, to)| Some(Command::Move { from: path(from)?, to: path(to)? })),
        Verb::Fetch => fetch(rest),
        Verb::Think => text(rest, block).map(Command::Think),
        Verb::Plan => plan(rest, block),
        Verb::Ask => ask(after_words(rest, &["me", "me:"])),
        Verb::Mode => mode(rest),
        Verb::Say => text(rest, block).map(Command::Say),
        Verb::Slowly => text(rest, block).map(Command::Slowly),
        Verb::Call => call(rest, block),
        Verb::Stop => match rest.trim_end_matches('.').to_ascii_lowercase().as_str() {
            "length" => Some(Command::Stop(EndReason::MaxTokens)),
            "refusal" => Some(Command::Stop(EndReason::Refusal)),
            _ => None,
        },
        Verb::Loop => Some(Command::Loop),
        Verb::Tour => Some(Command::Tour),
        Verb::Help => Some(Command::Help),
    };
    found.ok_or_else(|| match words(rest).any(|(_, word)| written(word) == Written::Unclosed) {
        true => Unclear::Quote(verb, step.line.into()),
        false => Unclear::Form(verb, step.line.into()),
    })
}

/// The things of a list: `a`, `a, b and c`.
fn several(rest: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    for (_, piece) in split_bare(rest, |character| character == ',') {
        let mut from = 0;
        for (at, _) in words(piece).filter(|(_, word)| *word == "&" || word.eq_ignore_ascii_case("and")) {
            found.push(&piece[from..at]);
            from = at + piece[at..].find(char::is_whitespace).unwrap_or(piece.len() - at);
            if found.len() > MOST {
                return None;
            }
        }
        found.push(&piece[from..]);
        if found.len() > MOST {
            return None;
        }
    }
    // `a, and b` has nothing between the comma and the word.
    found.retain(|piece| !piece.trim().is_empty());
    (!found.is_empty()).then_some(found)
}

fn read(rest: &str) -> Option<Command> {
    let rest = after_words(rest, &["me"]);
    several(rest)?.into_iter().map(lines).collect::<Option<_>>().map(Command::Read)
}

/// `a.txt`, `a.txt lines 3-7`, `lines 3-7 of a.txt`, `line 3 of a.txt`.
fn lines(text: &str) -> Option<Lines> {
    let text = before_word(text, "please").unwrap_or(text).trim();
    for word in ["lines", "line"] {
        if let Some((name, numbers)) = cut_last(text, word).filter(|(name, _)| !name.is_empty())
            && let Some(span) = span(numbers)
        {
            return Some(Lines { path: path(name.trim_end_matches(','))?, span: Some(span) });
        }
        if let Some((numbers, name)) = after_word(text, word).and_then(|rest| cut_first(rest, "of")) {
            return Some(Lines { path: path(name)?, span: Some(span(numbers)?) });
        }
    }
    Some(Lines { path: path(text)?, span: None })
}

/// `3`, `3-7`, `3 to 7`: the first line and how many.
fn span(text: &str) -> Option<(u64, u64)> {
    let text = text.trim_end_matches('.');
    let (first, last) = match text.split_once(['-', '–']).or_else(|| cut_first(text, "to")) {
        Some((first, last)) => (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?),
        None => text.trim().parse::<u64>().ok().map(|line| (line, line))?,
    };
    (first >= 1 && last >= first).then(|| (first, last.saturating_sub(first).saturating_add(1)))
}

fn list(rest: &str) -> Option<Command> {
    let mut rest = before_word(rest, "please").unwrap_or(rest);
    let fillers = ["me", "all", "the", "files", "contents", "in", "of"];
    rest = after_words(rest, &fillers);
    let here = fillers.contains(&rest) || rest.eq_ignore_ascii_case("please") || rest.is_empty();
    Some(Command::List(if here { ".".into() } else { path(rest)? }))
}

/// The directory at the end of `… in DIR`, and what is before it.
fn within(rest: &str) -> (&str, Option<String>) {
    let rest = before_word(rest, "please").unwrap_or(rest);
    match cut_last(rest, "in").map(|(before, dir)| (before, path(dir))) {
        Some((before, Some(dir))) if !before.is_empty() => (before, Some(dir)),
        _ => (rest, None),
    }
}

fn find(rest: &str) -> Option<Command> {
    let (what, within) = within(rest);
    let what = after_words(what, &["all", "the", "files", "file", "named", "called", "matching", "with"]);
    let name = path(what)?;
    // A bare word may be any part of a name.
    let pattern = if name.contains(['*', '?', '[', '{', '.', '/']) { name } else { format!("*{name}*") };
    Some(Command::Find { pattern, within })
}

fn search(rest: &str, literal: bool) -> Option<Command> {
    let (what, within) = within(rest);
    let shown = match written(what) {
        Written::Quoted(inside) => inside.into_owned(),
        Written::Unclosed => return None,
        Written::Plain(plain) => plain.to_string(),
    };
    let expression = what.len() > 2 && what.starts_with('/') && what.ends_with('/');
    let pattern = match literal {
        true if expression => what[1..what.len() - 1].to_string(),
        true => escape(&shown),
        false => shown.clone(),
    };
    (!pattern.is_empty()).then_some(Command::Search { pattern, shown, within })
}

/// A regular expression that means exactly this text.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn run(rest: &str, block: Option<&str>) -> Option<Command> {
    let rest = after_words(rest, &["the command", "command"]);
    let (rest, background) = match before_word(rest, "in the background").or_else(|| before_word(rest, "in background"))
    {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let command = match (written(rest), block) {
        (Written::Plain(""), Some(block)) => block.trim_end().to_string(),
        (Written::Quoted(inside), _) => inside.into_owned(),
        // Quotes that do not end are for the shell to complain about.
        (_, _) => rest.to_string(),
    };
    (!command.trim().is_empty()).then_some(Command::Run { command, background })
}

fn write(verb: Verb, rest: &str, block: Option<&str>) -> Option<Command> {
    let rest = after_words(rest, &["a new", "new"]);
    let with = || ["with", "containing"].iter().find_map(|word| cut_first(rest, word));
    let (name, told) = match (verb, block) {
        // `write a.txt with …` and `write … to a.txt`.
        (Verb::Write, None) => match with().filter(|(name, _)| name.contains(['.', '/']) && path(name).is_some()) {
            Some(found) => found,
            None => cut_last(rest, "to").map(|(told, name)| (name, told))?,
        },
        (_, None) => with()?,
        (_, Some(_)) => with().unwrap_or((after_words(rest, &["to"]), "")),
    };
    const SAID: [&str; 4] = ["the text", "the content", "content", "text"];
    let text = match block {
        Some(block) if told.is_empty() || SAID.contains(&told.trim_end_matches(':')) || told == ":" => ended(block),
        Some(_) => return None,
        None => line_of(after_words(told, &SAID))?,
    };
    Some(Command::Write { path: path(name.trim_end_matches(':'))?, text })
}

/// Text as it goes into a file: quoted exactly as it is, else as a line.
fn line_of(text: &str) -> Option<String> {
    match written(text) {
        Written::Quoted(inside) => Some(inside.into_owned()),
        Written::Unclosed => None,
        Written::Plain("") => None,
        Written::Plain(plain) => Some(format!("{plain}\n")),
    }
}

fn ended(block: &str) -> String {
    if block.is_empty() || block.ends_with('\n') { block.into() } else { format!("{block}\n") }
}

fn replace(rest: &str) -> Option<Command> {
    let (rest, all) = match after_word(rest, "all") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (old, rest) = cut_first(rest, "with").or_else(|| cut_first(rest, "by"))?;
    let (new, name) = cut_last(rest, "in")?;
    let plain = |text| match written(text) {
        Written::Quoted(inside) => Some(inside.into_owned()),
        Written::Plain(plain) if !plain.is_empty() => Some(plain.to_string()),
        _ => None,
    };
    let old = plain(old).filter(|old| !old.is_empty())?;
    Some(Command::Replace { old, new: plain(new)?, path: path(name)?, all })
}

fn fetch(rest: &str) -> Option<Command> {
    let url = path(after_words(rest, &["the page", "page"]))?;
    let url = url.strip_prefix('<').and_then(|url| url.strip_suffix('>')).unwrap_or(&url);
    url.contains("://").then(|| Command::Fetch(url.into()))
}

/// Text that is said or thought, where a lone quote does no harm.
fn text(rest: &str, block: Option<&str>) -> Option<String> {
    let text = match (written(rest), block) {
        (Written::Plain(""), Some(block)) => block.trim_end().to_string(),
        (Written::Quoted(inside), _) => inside.into_owned(),
        (_, _) => rest.to_string(),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn plan(rest: &str, block: Option<&str>) -> Option<Command> {
    let entries: Vec<&str> = match block {
        Some(block) if rest.trim_end_matches(':').is_empty() => block.lines().take(MOST + 1).collect(),
        Some(_) => return None,
        None => split_bare(rest, |character| character == ',').map(|(_, entry)| entry).take(MOST + 1).collect(),
    };
    let entries: Vec<String> = entries.iter().map(|entry| bare_step(entry).to_string()).collect();
    let entries: Vec<String> = entries.into_iter().filter(|entry| !entry.is_empty()).collect();
    (!entries.is_empty() && entries.len() <= MOST).then_some(Command::Plan(entries))
}

fn ask(rest: &str) -> Option<Command> {
    let (question, choices) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        Some((question, choices)) => (question, choices.split(['/', '|']).collect()),
        None => (rest, Vec::new()),
    };
    let choices: Vec<String> = choices.iter().map(|choice| choice.trim().to_string()).collect();
    let question = text(question, None)?;
    let fine = choices.iter().all(|choice| !choice.is_empty()) && choices.len() <= MOST;
    fine.then(|| Command::Ask { question: question.trim().to_string(), choices })
}

fn mode(rest: &str) -> Option<Command> {
    let rest = after_words(rest, &["to"]);
    let (name, plan) = match cut_first(rest, "with") {
        Some((name, plan)) => (name, Some(text(plan, None)?)),
        None => (rest, None),
    };
    let name = name.trim_end_matches('.');
    let mode = ["ask", "architect", "code"].into_iter().find(|mode| mode.eq_ignore_ascii_case(name))?;
    Some(Command::Mode { mode, plan })
}

fn call(rest: &str, block: Option<&str>) -> Option<Command> {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (tool, told) = rest.split_at(end);
    let arguments = match (told.trim(), block) {
        ("", Some(block)) => block.trim(),
        ("", None) => "{}",
        (told, _) => told,
    };
    let tool = tool.trim_matches('`');
    // What follows is passed on as it is, JSON or not: that is what it is for.
    (!tool.is_empty()).then(|| Command::Call { tool: tool.into(), arguments: arguments.into() })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
