//! A second, strict reading of a shell line: only words that mean themselves, in a list or a pipeline.
//!
//! A line is allowed by rules only if this reading and the grammar of the shell find the same commands. This one knows
//! no expansion at all. What could mean something else in bash, dash or zsh is refused with the reason.
//!
//! Around the words of a command there may be what changes nothing about what it does: redirections that write nothing,
//! variables that say how output looks, and `time`.

use std::iter::Peekable;
use std::str::Chars;

use super::judge::is_harmless_variable;
use super::visible::is_plain;

/// Where a redirection may lead without reading or writing a file.
const NULL: &str = "/dev/null";

const REDIRECTS: &str = "it redirects input or output";

/// A command with what stands around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Whether `time` stands before it.
    pub(super) timed: bool,
    /// Variables that are set for it: all of them harmless.
    pub(super) assignments: Vec<(String, String)>,
    pub(super) redirections: Vec<Redirection>,
    pub(super) words: Vec<String>,
}

/// A redirection that writes to no file and reads none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Redirection {
    pub(super) descriptor: i32,
    pub(super) to: To,
}

/// Where a redirection leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// `/dev/null`.
    Null,
    /// Standard output or standard error, wherever they lead.
    Descriptor(i32),
}

impl Redirection {
    /// A redirection to or from `/dev/null`, if it is one of the three that everybody writes.
    pub(super) fn null(descriptor: i32, writes: bool, path: &str) -> Option<Self> {
        let is_usual = if writes { matches!(descriptor, 1 | 2) } else { descriptor == 0 };
        (is_usual && path == NULL).then_some(Redirection { descriptor, to: To::Null })
    }

    /// `2>&1` and `>&2`.
    pub(super) fn duplicate(descriptor: i32, to: i32) -> Option<Self> {
        let is_output = |descriptor| matches!(descriptor, 1 | 2);
        (is_output(descriptor) && is_output(to)).then_some(Redirection { descriptor, to: To::Descriptor(to) })
    }
}

/// Words that begin or end something other than a simple command.
const RESERVED: &[&str] = &[
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// The commands of a line.
pub(super) fn read(line: &str) -> Result<Vec<Simple>, &'static str> {
    if !line.chars().all(is_plain) {
        return Err("it has a line end, a control character or an invisible character");
    }
    let mut reader = Reader { commands: vec![Simple::default()], word: None, quoted: false, is_piped: false };
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' => reader.end_word()?,
            ';' => reader.end_command(false)?,
            '|' => {
                let is_piped = chars.next_if_eq(&'|').is_none();
                reader.end_command(is_piped)?;
            }
            '&' if chars.next_if_eq(&'&').is_some() => reader.end_command(false)?,
            '&' => return Err("it runs something in the background"),
            '\'' => loop {
                match chars.next().ok_or("a quote has no end")? {
                    '\'' => break reader.quoted(),
                    inner => reader.push(inner),
                }
            },
            '"' => loop {
                match chars.next().ok_or("a quote has no end")? {
                    '"' => break reader.quoted(),
                    '\\' => match chars.next_if(|next| matches!(next, '"' | '\\' | '$' | '`')) {
                        Some(escaped) => reader.push(escaped),
                        None => reader.push('\\'),
                    },
                    '$' | '`' => return Err("it has an expansion"),
                    '!' => return Err("`!` may stand for an earlier command"),
                    inner => reader.push(inner),
                }
            },
            '\\' => match chars.next() {
                Some(escaped) if escaped == ' ' || escaped.is_ascii_punctuation() => {
                    reader.push(escaped);
                    reader.quoted();
                }
                _ => return Err("a backslash stands before something that it does not protect"),
            },
            '$' | '`' => return Err("it has an expansion"),
            '<' | '>' => reader.redirect(c == '>', &mut chars)?,
            '(' | ')' => return Err("it has a subshell, a function or a pattern"),
            '{' | '}' => return Err("it has braces, which group or expand"),
            '*' | '?' | '[' | ']' => return Err("it has a pattern that expands to file names"),
            '!' => return Err("`!` may stand for an earlier command"),
            '~' | '^' if !reader.inside_word() => return Err("`~` or `^` may expand"),
            '#' | '=' | '%' if reader.word.is_none() => return Err("a word begins with `#`, `=` or `%`"),
            plain if plain.is_alphanumeric() || plain.is_ascii_punctuation() => reader.push(plain),
            _ => return Err("it has an unusual character outside of quotes"),
        }
    }
    reader.end_word()?;
    // A last `;` ends the line. Any other place without a command is the grammar's to refuse.
    if reader.commands.len() > 1 && reader.commands.last() == Some(&Simple::default()) {
        reader.commands.pop();
    }
    if reader.commands.iter().any(|command| command.words.is_empty()) {
        return Err("a command is missing");
    }
    Ok(reader.commands)
}

struct Reader {
    commands: Vec<Simple>,
    word: Option<String>,
    /// Whether the current word is quoted somewhere: then it is no reserved word and no assignment.
    quoted: bool,
    /// Whether the current command has the output of another one for its input.
    is_piped: bool,
}

impl Reader {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self) {
        self.word.get_or_insert_default();
        self.quoted = true;
    }

    /// Whether the last character belongs to a name, as in `HEAD~1`.
    fn inside_word(&self) -> bool {
        let last = self.word.as_ref().and_then(|word| word.chars().next_back());
        last.is_some_and(|last| last.is_ascii_alphanumeric() || matches!(last, '~' | '^'))
    }

    /// Reads the rest of a redirection. Only what everybody writes in the same way is taken: `>/dev/null`, `2>&1`.
    fn redirect(&mut self, writes: bool, chars: &mut Peekable<Chars<'_>>) -> Result<(), &'static str> {
        let descriptor = match (self.word.take().as_deref(), self.quoted) {
            (None, _) => i32::from(writes),
            (Some("0"), false) => 0,
            (Some("1"), false) => 1,
            (Some("2"), false) => 2,
            _ => return Err(REDIRECTS),
        };
        let redirection = if writes && chars.next_if_eq(&'&').is_some() {
            // `>&x` and `>& x` write to a file in some shells.
            let to = chars.next().and_then(|digit| digit.to_digit(10)).and_then(|digit| i32::try_from(digit).ok());
            to.and_then(|to| Redirection::duplicate(descriptor, to))
        } else {
            while chars.next_if_eq(&' ').is_some() {}
            let is_null = NULL.chars().all(|expected| chars.next_if_eq(&expected).is_some());
            is_null.then(|| Redirection::null(descriptor, writes, NULL)).flatten()
        };
        // What is glued to it would be another target.
        let ends = chars.peek().is_none_or(|next| matches!(next, ' ' | ';' | '|' | '&'));
        let Some(command) = self.commands.last_mut() else { return Err(REDIRECTS) };
        // `time` may be a program or a word of the shell: what it is given first has to be a command for both.
        let is_after_time = command.timed && command.words.is_empty();
        match redirection {
            Some(redirection) if ends && !is_after_time => command.redirections.push(redirection),
            _ => return Err(REDIRECTS),
        }
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), &'static str> {
        let quoted = std::mem::take(&mut self.quoted);
        let Some(word) = self.word.take() else { return Ok(()) };
        let Some(command) = self.commands.last_mut() else { return Ok(()) };
        if command.words.is_empty() {
            if word.is_empty() {
                return Err("the name of a command is empty");
            }
            if let Some((name, value)) = word.split_once('=') {
                if quoted || command.timed || !is_harmless_variable(name, value) {
                    return Err("it sets a variable");
                }
                command.assignments.push((name.to_owned(), value.to_owned()));
                return Ok(());
            }
            // In a pipeline, or after anything else, it is the program of that name.
            if !quoted && word == "time" && *command == Simple::default() && !self.is_piped {
                command.timed = true;
                return Ok(());
            }
            if command.timed && word.starts_with('-') {
                return Err("`time` has an option");
            }
            if !quoted && RESERVED.contains(&word.as_str()) {
                return Err("it has a reserved word of the shell");
            }
        }
        command.words.push(word);
        Ok(())
    }

    fn end_command(&mut self, is_piped: bool) -> Result<(), &'static str> {
        self.end_word()?;
        self.is_piped = is_piped;
        self.commands.push(Simple::default());
        Ok(())
    }
}
