//! The words that begin a command: what the rules know, in one table. Help is made of it.

use super::split::bare_step;

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    List,
    Find,
    Search,
    Grep,
    Run,
    Create,
    Write,
    Replace,
    Append,
    Delete,
    Move,
    Fetch,
    Think,
    Plan,
    Ask,
    Mode,
    Say,
    Help,
    Tour,
    Call,
    Slowly,
    Stop,
    Loop,
}

/// A row of the table.
pub(super) struct Row {
    pub(super) verb: Verb,
    /// The words for it, in small letters.
    pub(super) words: &'static [&'static str],
    /// How it is said.
    pub(super) form: &'static str,
    /// What comes of it.
    pub(super) does: &'static str,
    /// Something that can be said as it is.
    pub(super) example: &'static str,
    /// Whether it is there for tests of clients and agents.
    pub(super) for_tests: bool,
}

const fn row(
    verb: Verb,
    words: &'static [&'static str],
    form: &'static str,
    does: &'static str,
    example: &'static str,
) -> Row {
    Row { verb, words, form, does, example, for_tests: false }
}

const fn for_tests(row: Row) -> Row {
    Row { for_tests: true, ..row }
}

pub(super) const TABLE: &[Row] = &[
    row(
        Verb::Read,
        &["read", "show", "cat", "open"],
        "read PATH [lines A-B]",
        "shows a file; `read A and B` reads side by side",
        "read README.md lines 1-10",
    ),
    row(Verb::List, &["list", "ls"], "list [DIR]", "lists a directory", "list src"),
    row(Verb::Find, &["find", "glob"], "find PATTERN [in DIR]", "finds files by their names", "find *.rs in src"),
    row(
        Verb::Search,
        &["search"],
        "search TEXT [in DIR]",
        "searches what files say; `/…/` is a regular expression",
        "search \"fn main\" in src",
    ),
    row(
        Verb::Grep,
        &["grep", "rg"],
        "grep PATTERN [in DIR]",
        "the same with a regular expression",
        "grep 'fn \\w+' in src",
    ),
    row(
        Verb::Run,
        &["run", "execute", "$"],
        "run COMMAND [in the background]",
        "runs a command; `$ COMMAND` takes the whole line",
        "run cargo test",
    ),
    row(
        Verb::Create,
        &["create"],
        "create PATH with TEXT",
        "creates a file; or `create PATH:` and lines or a fenced block below",
        "create notes.txt with \"hello\"",
    ),
    row(
        Verb::Write,
        &["write", "save"],
        "write TEXT to PATH",
        "the same the other way round",
        "write \"hello\" to notes.txt",
    ),
    row(
        Verb::Replace,
        &["replace"],
        "replace [all] OLD with NEW in PATH",
        "changes a file, which it reads first",
        "replace \"hello\" with \"good morning\" in notes.txt",
    ),
    row(
        Verb::Append,
        &["append", "add"],
        "append TEXT to PATH",
        "adds a line at the end of a file",
        "append \"one more line\" to notes.txt",
    ),
    row(Verb::Delete, &["delete", "remove", "rm"], "delete PATH", "deletes a file", "delete notes.txt"),
    row(Verb::Move, &["move", "rename", "mv"], "move A to B", "moves or renames a file", "move notes.txt to old.txt"),
    row(Verb::Fetch, &["fetch", "get"], "fetch URL", "fetches a page", "fetch https://example.com/"),
    row(Verb::Think, &["think"], "think TEXT", "thinks it", "think what a nice day"),
    row(
        Verb::Plan,
        &["plan"],
        "plan A, B, C",
        "makes a plan, and does what in it is a command",
        "plan list, create a.txt with hi, delete a.txt",
    ),
    row(
        Verb::Ask,
        &["ask"],
        "ask QUESTION [A/B/C]",
        "asks you; `[A/B/C]` are the choices, in brackets",
        "ask Which colour? [red/green/blue]",
    ),
    row(Verb::Mode, &["mode"], "mode ask|architect|code", "changes the mode", "mode architect"),
    row(Verb::Say, &["say"], "say TEXT", "says it", "say hello"),
    row(Verb::Tour, &["tour"], "tour", "walks your editor through all that an agent can show", "tour"),
    row(Verb::Help, &["help", "?"], "help", "tells this", "help"),
    for_tests(row(
        Verb::Call,
        &["call"],
        "call TOOL JSON",
        "calls any tool by its name, also those of MCP servers",
        "call list_directory {\"path\": \".\"}",
    )),
    for_tests(row(Verb::Slowly, &["slowly"], "slowly TEXT", "says a word every 50 ms", "slowly one two three")),
    for_tests(row(Verb::Stop, &["stop"], "stop length|refusal", "ends the answer for that reason", "stop length")),
    for_tests(row(
        Verb::Loop,
        &["loop"],
        "loop",
        "calls the same tool again and again, until somebody stops it",
        "loop",
    )),
];

impl Verb {
    /// The verb that a step begins with.
    pub(super) fn of(step: &str) -> Option<Verb> {
        Some(Verb::cut(step)?.0)
    }

    /// The verb that a step begins with, and what follows it.
    pub(super) fn cut(step: &str) -> Option<(Verb, &str)> {
        let step = bare_step(step);
        if let Some(command) = step.strip_prefix('$') {
            return Some((Verb::Run, command.trim()));
        }
        let end = step.find(char::is_whitespace).unwrap_or(step.len());
        let (word, rest) = step.split_at(end);
        let plain = word.trim_end_matches([':', ',', '.', '!']);
        let row = TABLE.iter().find(|row| row.words.iter().any(|known| known.eq_ignore_ascii_case(plain)))?;
        Some((row.verb, rest.trim()))
    }

    /// Its row of the table.
    pub(super) fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.verb == self)
    }

    /// Whether it takes any text, so that a `;` may be part of it.
    pub(super) fn takes_text(self) -> bool {
        matches!(
            self,
            Verb::Run
                | Verb::Create
                | Verb::Write
                | Verb::Replace
                | Verb::Append
                | Verb::Search
                | Verb::Grep
                | Verb::Think
                | Verb::Plan
                | Verb::Ask
                | Verb::Say
                | Verb::Slowly
                | Verb::Call
        )
    }

    /// Whether a step that begins so may as well be the next command of a line for the shell.
    pub(super) fn is_for_the_shell(step: &str) -> bool {
        let word = bare_step(step).split_whitespace().next().unwrap_or_default();
        ["ls", "cat", "find", "grep", "rg", "rm", "mv"].contains(&word)
    }

    /// Whether `VERB …:` takes the lines below it.
    pub(super) fn takes_lines(self) -> bool {
        matches!(self, Verb::Create | Verb::Write | Verb::Plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_begins_with_its_verb_and_every_word_has_one_meaning() {
        let mut words: Vec<_> = TABLE.iter().flat_map(|row| row.words).collect();
        for row in TABLE {
            assert_eq!(Verb::of(row.example), Some(row.verb));
            assert_eq!(row.verb.row().map(|found| found.form), Some(row.form));
        }
        words.sort();
        let before = words.len();
        words.dedup();
        assert_eq!(words.len(), before);
    }

    #[test]
    fn verbs_are_found_however_they_are_written() {
        for step in ["READ a", "read: a", "Please Read a", "- cat a", "1. show a"] {
            assert_eq!(Verb::cut(step), Some((Verb::Read, "a")), "{step}");
        }
        assert_eq!(Verb::cut("$ls -l"), Some((Verb::Run, "ls -l")));
        assert_eq!(Verb::cut("Help!"), Some((Verb::Help, "")));
        for step in ["", "reader", "the file", "ümlaut", "!?"] {
            assert_eq!(Verb::cut(step), None, "{step}");
        }
    }
}
