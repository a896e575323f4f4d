//! What the rules say of themselves.

use super::command::Unclear;
use super::show::code;
use super::split::MOST;
use super::verb::{TABLE, Verb};

/// Said once, at the beginning of a conversation.
pub(super) const INTRODUCTION: &str =
    "_This is the built-in `offline` model: a few fixed rules, not a language model. Say `help` for what it knows._";

/// What can be said.
pub(super) fn help() -> String {
    let table = |for_tests: bool| -> String {
        let rows = TABLE.iter().filter(|row| row.for_tests == for_tests);
        let lines = rows.map(|row| format!("| `{}` | {} |\n", row.form.replace('|', "\\|"), row.does));
        format!("| say | and it |\n|---|---|\n{}", lines.collect::<String>())
    };
    format!(
        "I am the built-in `offline` model: a few fixed rules, **not a language model**. I understand these commands, \
         and do them with the agent's real tools:\n\n\
         {}\n\
         - Several steps go on lines of their own, or with `;` between them. They are done in order, and none of them if \
         I do not understand one; a `no` from you ends them.\n\
         - Paths and texts with spaces go in quotes. A text in quotes is taken as it is, with `\\n` for a new line; \
         without quotes it is a line.\n\n\
         For tests of clients and agents:\n\n\
         {}\n\
         For a language model, give the agent one with `--model provider:name`.",
        table(false),
        table(true)
    )
}

/// What is said when there is no command in a prompt.
pub(super) fn unclear(why: &Unclear) -> String {
    let nothing_done = "Nothing was done.";
    let example = |verb: &Verb| verb.row().map_or("help", |row| row.example);
    let form = |verb: &Verb| verb.row().map_or("help", |row| row.form);
    match why {
        Unclear::Nothing => {
            format!("There is no command in that. {NATURE} Say `help` for what I know, or try `list` or `tour`.")
        }
        Unclear::Unknown(line) => {
            let what = if line.trim().is_empty() { "A block without a command".into() } else { code(line) };
            format!(
                "I do not understand this: {what}. {NATURE} Say `help` for what I know, try `list`, \
                 `read README.md` or `tour`, or give the agent a language model with `--model provider:name`. {nothing_done}"
            )
        }
        Unclear::Form(verb, line) => format!(
            "I know the word, but do not understand this: {}. {NATURE} It is said like this: `{}`, for example `{}`. \
             Paths and texts with spaces go in quotes. {nothing_done}",
            code(line),
            form(verb),
            example(verb)
        ),
        Unclear::Quote(verb, line) => format!(
            "A quotation begins and does not end here: {}. {NATURE} It is said like this, on one line: `{}`. {nothing_done}",
            code(line),
            example(verb)
        ),
        Unclear::Fence => format!(
            "A block begins with ` ``` ` and does not end. {NATURE} It is said like this:\n\n\
             ````\ncreate notes.txt with\n```\nhello\n```\n````\n\n{nothing_done}"
        ),
        Unclear::TooMany => format!(
            "That is more than {MOST} steps, which is as many as I do at once. {NATURE} A file with many lines is made \
             with `create PATH:` and its lines below. {nothing_done}"
        ),
    }
}

const NATURE: &str = "I am not a language model, only a few fixed rules.";
