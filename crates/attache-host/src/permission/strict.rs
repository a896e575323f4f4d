//! A second, strict reading of a shell line: only words that mean themselves, in a list or a pipeline.
//!
//! A line is allowed by rules only if this reading and the grammar of the shell find the same commands. This one knows
//! no expansion at all. What could mean something else in bash, dash or zsh is refused with the reason.

use super::visible::is_plain;

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

/// The commands of a line, each as its words.
pub(super) fn read(line: &str) -> Result<Vec<Vec<String>>, &'static str> {
    if !line.chars().all(is_plain) {
        return Err("it has a line end, a control character or an invisible character");
    }
    let mut reader = Reader { commands: vec![Vec::new()], word: None, quoted: false };
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' => reader.end_word()?,
            ';' => reader.end_command()?,
            '|' => {
                chars.next_if_eq(&'|');
                reader.end_command()?;
            }
            '&' if chars.next_if_eq(&'&').is_some() => reader.end_command()?,
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
            '<' | '>' => return Err("it redirects input or output"),
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
    if reader.commands.len() > 1 && reader.commands.last().is_some_and(Vec::is_empty) {
        reader.commands.pop();
    }
    if reader.commands.iter().any(Vec::is_empty) {
        return Err("a command is missing");
    }
    Ok(reader.commands)
}

struct Reader {
    commands: Vec<Vec<String>>,
    word: Option<String>,
    /// Whether the current word is quoted somewhere: then it is no reserved word and no assignment.
    quoted: bool,
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

    fn end_word(&mut self) -> Result<(), &'static str> {
        let quoted = std::mem::take(&mut self.quoted);
        let Some(word) = self.word.take() else { return Ok(()) };
        let Some(command) = self.commands.last_mut() else { return Ok(()) };
        if command.is_empty() {
            if word.is_empty() {
                return Err("the name of a command is empty");
            }
            if word.contains('=') {
                return Err("it sets a variable");
            }
            if !quoted && RESERVED.contains(&word.as_str()) {
                return Err("it has a reserved word of the shell");
            }
        }
        command.push(word);
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), &'static str> {
        self.end_word()?;
        self.commands.push(Vec::new());
        Ok(())
    }
}
