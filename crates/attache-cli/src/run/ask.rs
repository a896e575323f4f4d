//! The question on the person's terminal: everything that would be done, and what can be answered.

use std::fmt::Write as _;
use std::io;

use attache_host::permission::{Change, Question, Scope};
use similar::{ChangeTag, TextDiff};

use crate::tty::Tty;

/// What the person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Allow(Scope),
    Deny,
}

/// Asks until there is an answer. The end of input is no.
pub(crate) async fn ask(tty: &Tty, question: &Question) -> io::Result<Reply> {
    let mut text = show(question);
    text.push_str(&choices(question));
    loop {
        let Some(line) = tty.ask(&text).await? else { return Ok(Reply::Deny) };
        match reply(&line, question) {
            Some(reply) => return Ok(reply),
            None => text = choices(question),
        }
    }
}

fn reply(line: &str, question: &Question) -> Option<Reply> {
    let can_remember = !question.suggestion.is_empty();
    match line.to_lowercase().as_str() {
        "y" | "yes" => Some(Reply::Allow(Scope::Once)),
        "n" | "no" | "" => Some(Reply::Deny),
        "s" if can_remember => Some(Reply::Allow(Scope::Session)),
        "p" if can_remember => Some(Reply::Allow(Scope::Project)),
        "a" if can_remember => Some(Reply::Allow(Scope::Always)),
        _ => None,
    }
}

fn choices(question: &Question) -> String {
    if question.suggestion.is_empty() {
        return "  [y] yes   [N] no: ".into();
    }
    "  [y] yes   [N] no   or yes, and no more questions: [s] in this session   [p] in this project   [a] anywhere: "
        .into()
}

/// The question in full. Its texts are harmless already.
pub(crate) fn show(question: &Question) -> String {
    let mut text = format!("\n{} wants to {}\n", question.agent, question.kinds.join(", "));
    for command in &question.commands {
        let _ = writeln!(text, "  $ {}", command.replace('\n', "\n    "));
    }
    for (name, value) in &question.env {
        let _ = writeln!(text, "  with {name}={}", value.expose());
    }
    if !question.commands.is_empty() {
        let _ = writeln!(text, "  in {}", question.cwd);
    }
    for path in &question.paths {
        let _ = writeln!(text, "  {path}");
    }
    for change in &question.changes {
        show_change(&mut text, change);
    }
    if let Some(input) = &question.input {
        let _ = writeln!(text, "  input: {}", input.replace('\n', "\n    "));
    }
    for shown in &question.texts {
        let _ = writeln!(text, "  it shows: {}", shown.replace('\n', "\n    "));
    }
    if let Some(title) = &question.title {
        let _ = writeln!(text, "  it says: {title}");
    }
    if let Some(description) = &question.description {
        let _ = writeln!(text, "  {}", description.replace('\n', "\n  "));
    }
    let _ = writeln!(text, "  asked because {}", question.reason);
    for rule in &question.suggestion {
        let _ = writeln!(text, "  the rule for s, p and a: {}", rule.replace('\n', "\n    "));
    }
    text
}

fn show_change(text: &mut String, change: &Change) {
    match change {
        Change::Texts { path, old, new } => {
            let _ = writeln!(text, "  {path}{}", if old.is_none() { " (new, or replaced as a whole)" } else { "" });
            let old = old.as_deref().unwrap_or_default();
            let diff = TextDiff::from_lines(old, new);
            for (index, group) in diff.grouped_ops(3).iter().enumerate() {
                if index > 0 {
                    text.push_str("    ...\n");
                }
                for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                    let sign = match change.tag() {
                        ChangeTag::Delete => '-',
                        ChangeTag::Insert => '+',
                        ChangeTag::Equal => ' ',
                    };
                    let _ = writeln!(text, "    {sign}{}", change.value().trim_end_matches('\n'));
                }
            }
        }
        Change::Patch { files, patch } => {
            for file in files {
                let _ = writeln!(text, "  {file}");
            }
            for line in patch.iter().flat_map(|patch| patch.lines()) {
                let _ = writeln!(text, "    {line}");
            }
        }
    }
}
