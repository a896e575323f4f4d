//! The commands that `offline` knows: one table. Prompts are read by it, and help is made of it.

use serde_json::{Map, Value};

use super::form;
use super::show::code;
use crate::model::EndReason;

/// The most commands of a prompt, or steps of a plan. Every request goes through all of them again.
pub(super) const MAX_COMMANDS: usize = 100;

/// Said once, at the beginning of a conversation.
pub(super) const INTRODUCTION: &str = "_This is the built-in `offline` model: a few fixed rules, not a language model; `attache setup` gives the agent \
     one. Say `help` for what it knows._";

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Calls this tool with the arguments of the form, and reports: a sentence, or a heading that ends with `:` and what
    /// the tool gave. `{path}` stands for the argument of that name. Without a report, what the tool gave has a heading
    /// of its own.
    Tool(&'static str, &'static str),
    Replace,
    Ask,
    Plan,
    Say,
    Slowly,
    Call,
    Stop(EndReason),
    Loop,
    Tour,
    Help,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// How it is written; see [`form::arguments`]. The first word tells commands apart.
    pub(super) form: &'static str,
    pub(super) does: &'static str,
    pub(super) example: &'static str,
    pub(super) action: Action,
}

/// A command of a prompt.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) row: &'static Row,
    pub(super) arguments: Map<String, Value>,
}

const fn row(form: &'static str, does: &'static str, example: &'static str, action: Action) -> Row {
    Row { form, does, example, action }
}

pub(super) const TABLE: &[Row] = &[
    row("read PATH", "shows a file", "read README.md", Action::Tool("read_file", "")),
    row("list [PATH]", "lists a directory", "list src", Action::Tool("list_directory", "")),
    row(
        "find PATTERN [in PATH]",
        "finds files by their names, with a glob",
        "find *.rs in src",
        Action::Tool("find_files", "Files like {pattern}:"),
    ),
    row(
        "search PATTERN [in PATH]",
        "searches in files, with a regular expression",
        "search \"fn main\" in src",
        Action::Tool("search_files", "Lines that match {pattern}:"),
    ),
    row("run COMMAND…", "runs a command", "run cargo test", Action::Tool("run_command", "{command} ran:")),
    row("$ COMMAND…", "runs a command", "$ cargo test", Action::Tool("run_command", "{command} ran:")),
    row(
        "create PATH with CONTENT…",
        "writes a file",
        "create notes.txt with \"hello\\nworld\\n\"",
        Action::Tool("write_file", "Wrote {path}."),
    ),
    row(
        "replace OLD_TEXT with NEW_TEXT in PATH",
        "reads a file, and changes it",
        "replace hello with \"good morning\" in notes.txt",
        Action::Replace,
    ),
    row("delete PATH", "deletes a file", "delete notes.txt", Action::Tool("delete_file", "Deleted {path}.")),
    row(
        "move FROM to TO",
        "moves or renames a file",
        "move notes.txt to old.txt",
        Action::Tool("move_file", "Moved {from} to {to}."),
    ),
    row("fetch URL", "fetches a page", "fetch https://example.com/", Action::Tool("fetch_url", "From {url}:")),
    row(
        "mode MODE [with PLAN…]",
        "changes the mode; leaving `architect` takes a plan",
        "mode architect",
        Action::Tool("switch_mode", "The mode is {mode} now."),
    ),
    row(
        "ask QUESTION…",
        "asks you; `[red/blue]` at its end are the choices",
        "ask Which colour? [red/green/blue]",
        Action::Ask,
    ),
    row(
        "plan STEPS…",
        "makes a plan of steps with `,` between them, and does those that are commands",
        "plan list, create a.txt with hi, delete a.txt",
        Action::Plan,
    ),
    row("say TEXT…", "says it", "say hello", Action::Say),
    row("tour", "walks your client through all that an agent can show", "tour", Action::Tour),
    row("help", "says this", "help", Action::Help),
    row(
        "call TOOL [JSON…]",
        "calls any tool by its name, also those of MCP servers",
        "call think {\"thought\": \"hm\"}",
        Action::Call,
    ),
    row("slowly TEXT…", "says a word every 50 ms", "slowly one two three", Action::Slowly),
    row("stop length", "ends as if cut off", "stop length", Action::Stop(EndReason::MaxTokens)),
    row("stop refusal", "ends with a refusal", "stop refusal", Action::Stop(EndReason::Refusal)),
    row("loop", "makes the same call until somebody stops it", "loop", Action::Loop),
];

/// The commands of a prompt, or what is said where they are not understood. All of them are, or none is done.
pub(super) fn commands(prompt: &str) -> Result<Vec<Command>, String> {
    let lines = prompt.lines().map(str::trim).filter(|line| !line.is_empty());
    let commands: Vec<Command> = lines.take(MAX_COMMANDS + 1).map(command).collect::<Result<_, _>>()?;
    match commands.len() {
        0 => Err(not_done("There is no command in that. Say `help` for what I know, or try `list` or `tour`.")),
        1..=MAX_COMMANDS => Ok(commands),
        _ => Err(not_done(&format!("These are more than {MAX_COMMANDS} commands, which is too many for one prompt."))),
    }
}

/// The command on one line, or what is said where it is not understood.
pub(super) fn command(line: &str) -> Result<Command, String> {
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_named = |row: &&Row| row.form.split(' ').next().is_some_and(|name| name.eq_ignore_ascii_case(word));
    let rows = || TABLE.iter().filter(is_named);
    let found = rows().find_map(|row| Some(Command { row, arguments: form::arguments(row.form, line)? }));
    found.ok_or_else(|| {
        let hint = match rows().next() {
            Some(row) => format!(
                "It is written `{}`, for example `{}`; what has spaces goes in double quotes.",
                row.form, row.example
            ),
            None => "Say `help` for what I know, try `list`, `read README.md` or `tour`, or give the agent a language \
                     model with `attache setup` or `--model provider:name`."
                .into(),
        };
        not_done(&format!("I do not understand this: {}. {hint}", code(line)))
    })
}

fn not_done(why: &str) -> String {
    format!("{why} I am not a language model, only a few fixed rules. Nothing was done.")
}

/// What can be said.
pub(super) fn help() -> String {
    let rows: String = TABLE.iter().map(|row| format!("| `{}` | {} |\n", row.form, row.does)).collect();
    format!(
        "I am the built-in `offline` model: a few fixed rules, **not a language model**. I follow these commands, with \
         the agent's real tools:\n\n\
         | command | what it does |\n|---|---|\n{rows}\n\
         - One command a line. None is done if I do not understand one, and a no from you ends them.\n\
         - A name in capitals is one word, or a text in double quotes with `\\n`, `\\t`, `\\\"` and `\\\\`. One with `…` \
         is the rest of the line; `CONTENT…` without quotes is a line of its own. What is in brackets can be left out.\n\n\
         For a language model, run `attache setup`, or start the agent with `--model provider:name`."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_command_of_its_row_and_help_has_all_forms() {
        for row in TABLE {
            assert_eq!(command(row.example).map(|command| command.row), Ok(row));
            assert!(help().contains(row.form), "{}", row.form);
        }
    }

    #[test]
    fn a_prompt_is_understood_as_a_whole_or_not_at_all() {
        assert_eq!(commands("list\n\n  say x\r\n").map(|commands| commands.len()), Ok(2));
        assert_eq!(commands(&"list\n".repeat(MAX_COMMANDS)).map(|commands| commands.len()), Ok(MAX_COMMANDS));
        let why = |prompt: &str| commands(prompt).expect_err(prompt);
        for prompt in ["", " \n\t\n"] {
            assert!(why(prompt).starts_with("There is no command in that."));
        }
        for prompt in ["fix the bug", "```", "ünïcödé", "list\nHello!", "reader", "\"read\" a"] {
            assert!(why(prompt).contains("Say `help`"), "{prompt}");
        }
        for prompt in ["read", "read the file", "create tests", "list\nmove on", "stop", "stop now", "help me"] {
            assert!(why(prompt).contains("It is written `"), "{prompt}");
        }
        assert!(why(&"list\n".repeat(MAX_COMMANDS + 1)).contains("more than 100"));
    }
}
