//! The question on the person's terminal: the agent's own words first and cut short, what would be done last and whole.

use std::fmt::Write as _;
use std::io;

use attache_host::permission::{Change, Question, Scope};
use similar::{ChangeTag, TextDiff};

use crate::tty::Tty;

/// How many lines an agent's own words get: some for what it says, some for what it shows.
const SAID: usize = 3;
const SHOWN: usize = 4;

/// How many files that an agent merely names are shown.
const NAMED: usize = 3;

/// As many blanks in a row are told by their number: nobody writes so many, unless to push something out of sight.
const BLANKS: usize = 16;

/// More lines than this are not all on a usual screen.
const LONG: usize = 20;

/// What the person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Allow(Scope),
    Deny,
}

/// Asks until there is an answer. The end of input is no.
///
/// The line where the answer is typed names what would be done. Only what is typed after it has appeared is an answer.
pub(crate) async fn ask(tty: &Tty, question: &Question) -> io::Result<Reply> {
    tty.show(&show(question, tty.columns())).await?;
    tty.show(&choices(question)).await?;
    loop {
        let Some(line) = tty.ask(&format!("{} ({})? ", question.gist, question.digest)).await? else {
            return Ok(Reply::Deny);
        };
        if let Some(reply) = reply(&line, question) {
            return Ok(reply);
        }
        tty.show("  type one of these letters, and Enter:\n").await?;
        tty.show(&choices(question)).await?;
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
    let more = "   yes, always: [s] in this session  [p] in this project  [a] anywhere";
    format!("  [y] yes  [N] no{}\n", if question.suggestion.is_empty() { "" } else { more })
}

/// The question. Its texts are harmless already.
pub(crate) fn show(question: &Question, columns: usize) -> String {
    let kinds: Vec<&str> = question.kinds.iter().map(|kind| in_words(kind)).collect();
    let wants = format!(" wants to {}", kinds.join(", "));
    let mut text = format!("\n{}{wants}\n", cut(&question.agent, columns.saturating_sub(wants.len() + 1)));
    let own: Vec<&String> = question.title.iter().chain(&question.description).collect();
    quote(&mut text, "it says", &own, SAID, columns);
    quote(&mut text, "it shows", &question.texts.iter().collect::<Vec<_>>(), SHOWN, columns);
    if !question.named.is_empty() {
        let mut named: Vec<String> = question.named.iter().take(NAMED).cloned().collect();
        if question.named.len() > NAMED {
            named.push(format!("and {} more", question.named.len() - NAMED));
        }
        let _ = writeln!(text, "  it names: {}", cut(&named.join(", "), columns.saturating_sub(14)));
    }
    let _ = writeln!(text, "  asked because {}", question.reason);
    for rule in &question.suggestion {
        let _ = writeln!(text, "  the rule for s, p and a: {}", rule.replace('\n', "\n    "));
    }
    let is_shown_below = |path: &String| {
        question.changes.iter().any(|change| matches!(change, Change::Texts { path: other, .. } if other == path))
    };
    for path in question.paths.iter().filter(|path| !is_shown_below(path)) {
        let _ = writeln!(text, "  {path}");
    }
    if let Some(input) = &question.input {
        let _ = writeln!(text, "  input: {}", without_gaps(input).replace('\n', "\n    "));
    }
    for change in &question.changes {
        show_change(&mut text, change);
    }
    for (name, value) in &question.env {
        let _ = writeln!(text, "  with {name}={}", without_gaps(value.expose()));
    }
    if !question.commands.is_empty() {
        let _ = writeln!(text, "  in {}", question.cwd);
    }
    for command in &question.commands {
        let _ = writeln!(text, "  $ {}", without_gaps(command).replace('\n', "\n    "));
    }
    let rows = rows(&text, columns);
    if rows > LONG {
        let _ = writeln!(text, "  (this is {rows} lines long: scroll up to see all of it)");
    }
    text
}

/// A kind of action in words.
fn in_words(kind: &str) -> &str {
    match kind {
        "read" => "read files",
        "search" => "search files",
        "edit" => "change files",
        "move" => "move files",
        "delete" => "delete files",
        "execute" => "run a command",
        "fetch" => "fetch something",
        "switch_mode" => "change its mode",
        "think" => "think",
        "other" => "use a tool",
        kind => kind,
    }
}

/// How many lines of a screen a text takes.
fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(columns.max(1)).max(1)).sum()
}

/// The agent's own words, marked as such: a few lines that fit the screen, whatever their length.
fn quote(text: &mut String, who: &str, words: &[&String], most: usize, columns: usize) {
    let lines: Vec<&str> =
        words.iter().flat_map(|words| words.lines()).filter(|line| !line.trim().is_empty()).collect();
    for (index, line) in lines.iter().take(most).enumerate() {
        let mark = if index == 0 { format!("  {who}: ") } else { "  | ".to_owned() };
        let _ = writeln!(text, "{mark}{}", cut(line, columns.saturating_sub(mark.len() + 1)));
    }
    if lines.len() > most {
        let _ = writeln!(text, "  | ({} more lines of its words)", lines.len() - most);
    }
}

/// As much of a line as has room. Characters that are not ASCII may take two columns.
fn cut(line: &str, columns: usize) -> String {
    let mut used = 0;
    let mut end = line.len();
    for (index, c) in line.char_indices() {
        used += if c.is_ascii() { 1 } else { 2 };
        if used > columns.max(10) {
            end = index;
            break;
        }
    }
    format!("{}{}", &line[..end], if end < line.len() { "…" } else { "" })
}

/// A text in which long runs of blanks and empty lines are told by their number.
fn without_gaps(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(4096));
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.trim_start_matches(c);
        let count = (rest.len() - after.len()) / c.len_utf8();
        match c {
            '\n' if count > 3 => {
                let _ = write!(shown, "\n[{} empty lines]\n", count - 1);
            }
            c if c != '\n' && c.is_whitespace() && count > BLANKS => {
                let _ = write!(shown, "[{count} blanks]");
            }
            _ => shown.push_str(&rest[..rest.len() - after.len()]),
        }
        rest = after;
    }
    shown
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_and_words_are_cut() {
        assert_eq!(without_gaps("ls  -l"), "ls  -l");
        assert_eq!(without_gaps(&format!("ls{}; rm x", " ".repeat(5000))), "ls[5000 blanks]; rm x");
        assert_eq!(without_gaps(&format!("ls{}rm x", "\n".repeat(50))), "ls\n[49 empty lines]\nrm x");
        assert_eq!(without_gaps(&format!("ls{}", "\t".repeat(50))), "ls[50 blanks]");
        assert_eq!(cut("0123456789abc", 12), "0123456789ab…");
        assert_eq!(cut("short", 12), "short");
        assert_eq!(cut("漢字漢字漢字漢字", 10), "漢字漢字漢…");
        let mut text = String::new();
        quote(&mut text, "it says", &[&"a\nb\n\nc\nd\ne".to_owned()], 3, 80);
        assert_eq!(text, "  it says: a\n  | b\n  | c\n  | (2 more lines of its words)\n");
    }
}
