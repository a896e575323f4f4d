//! Reads a command with the rows of the table: whether all its arguments are known to be harmless.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use attache::model::tool::ToolKind;

use super::search::Search;
use super::table::{ALIASES, LEADING, Operands, ROWS, Row};

/// Where a command would run.
pub(super) trait Surroundings {
    /// Whether a path may be used in this way: beneath the directories of the session, and no secret.
    fn may_touch(&self, path: &str, kind: &ToolKind) -> bool;
    /// Whether there is something at a path.
    fn exists(&self, path: &str) -> bool;
    /// Whether a path leads to a directory.
    fn is_directory(&self, path: &str) -> bool;
    /// Whether a search of a path would show a secret in it.
    fn holds_secrets(&self, path: &str, search: &Search) -> bool;
}

/// No place in particular: every path will do, and nothing is there.
pub(super) struct Anywhere;

impl Surroundings for Anywhere {
    fn may_touch(&self, _: &str, _: &ToolKind) -> bool {
        true
    }

    fn exists(&self, _: &str) -> bool {
        false
    }

    fn is_directory(&self, _: &str) -> bool {
        false
    }

    fn holds_secrets(&self, _: &str, _: &Search) -> bool {
        false
    }
}

/// Directories in which a program of a name is the one that the name stands for.
const PROGRAM_DIRECTORIES: &[&str] = &["/bin/", "/usr/bin/", "/usr/local/bin/"];

/// Options that have the pattern, so that all operands are paths.
const PATTERN_OPTIONS: &[&str] = &["-e", "-f", "--expression", "--file", "--files", "--regexp", "--type-list"];

/// Programs that take a word with an `@` at its beginning as it is. Many others read further arguments from a file of that
/// name, also where the value of an option is expected.
const PLAIN_AT: &[&str] = &["bun", "date", "fd", "find", "gh", "git", "grep", "npm", "pnpm", "rg", "sort", "yarn"];

/// The row for a command, with the number of the words that it names. The longest one counts.
pub(super) fn row_for(command: &[String]) -> Option<(&'static Row, usize)> {
    let names = |row: &Row| {
        let mut words = row.command.split(' ').skip(1);
        let mut given = command.iter().skip(1);
        words.all(|word| given.next().is_some_and(|given| word == given || (word == "*" && is_name(given))))
    };
    let length = |row: &Row| row.command.split(' ').count();
    let rows = rows_of(command.first()?).iter().copied().filter(|row| names(row));
    let row = rows.max_by_key(|row| (length(row), !row.command.contains('*')))?;
    Some((row, length(row)))
}

/// The rows of a program.
fn rows_of(name: &str) -> &'static [&'static Row] {
    static ROWS_BY_PROGRAM: OnceLock<HashMap<&str, Vec<&Row>>> = OnceLock::new();
    let all = ROWS_BY_PROGRAM.get_or_init(|| {
        let mut all: HashMap<&str, Vec<&Row>> = HashMap::new();
        for row in ROWS {
            all.entry(row.command.split(' ').next().unwrap_or_default()).or_default().push(row);
        }
        all
    });
    program(name).and_then(|program| all.get(program)).map_or(&[], Vec::as_slice)
}

/// Whether there are rows for a program.
pub(super) fn is_known_program(name: &str) -> bool {
    !rows_of(name).is_empty()
}

/// Whether a word is a subcommand that begins a row of a program.
pub(super) fn is_known_subcommand(name: &str, subcommand: &str) -> bool {
    rows_of(name).iter().any(|row| row.command.split(' ').nth(1) == Some(subcommand))
}

/// A command without options before its subcommand that change only how output is shown.
pub(super) fn without_leading_options(command: &[String]) -> Cow<'_, [String]> {
    let Some((first, rest)) = command.split_first() else { return command.into() };
    let leading = LEADING.iter().find(|(program, _)| program == first).map_or(&[][..], |(_, options)| options);
    let count = rest.iter().take_while(|word| leading.contains(&word.as_str())).count();
    if count == 0 {
        return command.into();
    }
    std::iter::once(first).chain(&rest[count..]).cloned().collect()
}

/// A command without what only limits how long it runs: `timeout 60` before it. What is left is what is judged.
pub(super) fn without_timeout(command: &[String]) -> &[String] {
    let is_time = |text: &str| {
        let number = text.strip_suffix(['s', 'm', 'h']).unwrap_or(text);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    match command {
        [timeout, time, inner @ ..] if timeout == "timeout" && is_time(time) && !inner.is_empty() => inner,
        _ => command,
    }
}

/// Whether the words after those that a row names are all in the row.
pub(super) fn are_harmless(row: &Row, arguments: &[String], surroundings: &dyn Surroundings) -> bool {
    if row.operands == Operands::Anything {
        return true;
    }
    // The last option of the row takes the next word, whatever it looks like.
    if row.operands == Operands::Archive && arguments.first().is_none_or(|archive| archive.starts_with('-')) {
        return false;
    }
    let mut reading = Reading { row, operands: Vec::new(), given: Vec::new(), surroundings };
    reading.read(arguments).is_some() && reading.operands_are_harmless() && reading.shows_no_secrets()
}

/// The name that rows have for a program; `None` if it is called by a path that could be anything.
fn program(name: &str) -> Option<&str> {
    let name = PROGRAM_DIRECTORIES.iter().find_map(|directory| name.strip_prefix(directory)).unwrap_or(name);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, program)| *program);
    alias.or((!name.contains('/')).then_some(name))
}

/// An option of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowOption {
    pub(super) name: &'static str,
    pub(super) value: Value,
}

/// How an option has its value; the text is the kind of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    No,
    Needed(&'static str),
    Glued(&'static str),
    AfterEquals(&'static str),
}

/// The options of a row before a `--`, and those behind it if it has such.
pub(super) fn options(row: &Row) -> (Vec<RowOption>, Option<Vec<RowOption>>) {
    let mut tokens = row.options.iter().flat_map(|text| text.split_whitespace()).filter(|token| *token != "words");
    let before = tokens.by_ref().take_while(|token| *token != "--").map(read_option).collect();
    let has_more = row.options.iter().flat_map(|text| text.split_whitespace()).any(|token| token == "--");
    (before, has_more.then(|| tokens.map(read_option).collect()))
}

/// Whether options of several letters after one dash are words, so that short options do not stand together.
pub(super) fn has_word_options(row: &Row) -> bool {
    let (before, _) = options(row);
    row.options.iter().any(|text| text.split_whitespace().any(|token| token == "words"))
        || before.iter().any(|option| option.name.len() > 2 && !option.name.starts_with("--"))
}

fn read_option(token: &'static str) -> RowOption {
    let (name, value) = if let Some((name, kind)) = token.split_once("::") {
        (name, Value::Glued(kind))
    } else if let Some((name, kind)) = token.split_once(':') {
        (name, Value::Needed(kind))
    } else if let Some((name, kind)) = token.split_once('=') {
        (name, Value::AfterEquals(kind))
    } else {
        (token, Value::No)
    };
    RowOption { name, value }
}

/// A command that is being read with a row.
struct Reading<'a> {
    row: &'a Row,
    operands: Vec<&'a String>,
    /// The options with their values.
    given: Vec<(&'static str, String)>,
    surroundings: &'a dyn Surroundings,
}

impl<'a> Reading<'a> {
    /// Reads all arguments. `None` as soon as one is not in the row.
    fn read(&mut self, arguments: &'a [String]) -> Option<()> {
        let (before, behind) = options(self.row);
        let words = has_word_options(self.row);
        let mut rest = arguments;
        while let Some((word, others)) = rest.split_first() {
            rest = others;
            if word == "--" {
                return match behind {
                    Some(options) => self.read_behind(others, &options),
                    None if words => None,
                    None => self.read_operands(others),
                };
            }
            if word.len() > 1 && word.starts_with('-') {
                rest = self.read_option(word, others, &before, words)?;
            } else {
                self.operands.push(word);
            }
        }
        Some(())
    }

    /// Reads the operands behind a `--`. A word that looks like an option is not taken for an operand: not every program
    /// ends its options there, and what was taken for the `--` may have been the value of an option.
    fn read_operands(&mut self, operands: &'a [String]) -> Option<()> {
        self.operands.extend(operands);
        operands.iter().all(|operand| !operand.starts_with('-')).then_some(())
    }

    /// Reads what stands behind a `--` for another program: its options, and names if the command takes any. A
    /// name may have blanks there, as those of documentation tests have.
    fn read_behind(&mut self, mut rest: &'a [String], options: &[RowOption]) -> Option<()> {
        while let Some((word, others)) = rest.split_first() {
            rest = others;
            if word.starts_with('-') {
                rest = self.read_option(word, others, options, false)?;
            } else if self.row.operands != Operands::Names || !is_inert(word) {
                return None;
            }
        }
        Some(())
    }

    /// Reads one word of options. Returns the words that are left.
    fn read_option(
        &mut self,
        word: &str,
        others: &'a [String],
        options: &[RowOption],
        words: bool,
    ) -> Option<&'a [String]> {
        let find = |name: &str| options.iter().find(|option| option.name == name).copied();
        let is_number = word[1..].bytes().all(|byte| byte.is_ascii_digit());
        if is_number && find("-#").is_some() {
            return Some(others);
        }
        let (name, glued) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if word.starts_with("--") || words || (find(name).is_some() && name.len() > 2) {
            let option = find(name)?;
            self.given.push((option.name, String::new()));
            return match (option.value, glued) {
                (Value::No | Value::Glued(_), None) => Some(others),
                (Value::Needed(kind) | Value::Glued(kind) | Value::AfterEquals(kind), Some(value)) => {
                    self.take_value(kind, value).then_some(others)
                }
                (Value::Needed(kind), None) => self.next_word(kind, others),
                (Value::No, Some(_)) | (Value::AfterEquals(_), None) => None,
            };
        }
        // Short options that stand together; the last may have its value glued to it.
        for (index, letter) in word.char_indices().skip(1) {
            let option =
                options.iter().find(|option| option.name.strip_prefix('-').is_some_and(|o| is_letter(o, letter)))?;
            self.given.push((option.name, String::new()));
            let value = &word[index + letter.len_utf8()..];
            match option.value {
                Value::No => {}
                Value::AfterEquals(_) => return None,
                Value::Needed(kind) if value.is_empty() => return self.next_word(kind, others),
                Value::Glued(_) if value.is_empty() => {}
                Value::Needed(kind) | Value::Glued(kind) => return self.take_value(kind, value).then_some(others),
            }
        }
        Some(others)
    }

    /// Whether an option had the pattern, so that all operands are paths.
    fn has_pattern(&self) -> bool {
        self.given.iter().any(|(name, _)| PATTERN_OPTIONS.contains(name))
    }

    /// Whether a search of whole directories comes across no secrets. Without paths it is about the one that it runs in.
    fn shows_no_secrets(&self) -> bool {
        let Some(search) = Search::of(self.row.command, &self.given) else { return true };
        let paths = &self.operands[usize::from(!self.has_pattern()).min(self.operands.len())..];
        let holds = |path: &str| self.surroundings.holds_secrets(path, &search);
        if paths.is_empty() { !holds(".") } else { !paths.iter().any(|path| holds(path)) }
    }

    /// The value of an option as the next word. One that looks like an option is not taken for a value: whoever has read
    /// the documentation of the program wrongly must not hide an option here.
    fn next_word(&mut self, kind: &str, others: &'a [String]) -> Option<&'a [String]> {
        let (value, rest) = others.split_first()?;
        let is_option = value.starts_with('-') && !value[1..].starts_with(|c: char| c.is_ascii_digit());
        let is_list = value.starts_with('@') && !self.takes_at_as_it_is();
        (!is_option && !is_list && self.take_value(kind, value)).then_some(rest)
    }

    /// Keeps the value of the option that was read last. Whether it is one of this kind.
    fn take_value(&mut self, kind: &str, value: &str) -> bool {
        if let Some((_, kept)) = self.given.last_mut() {
            value.clone_into(kept);
        }
        self.is_value(kind, value)
    }

    fn is_value(&self, kind: &str, value: &str) -> bool {
        match kind {
            "" => true,
            "path" => self.is_path(value, &ToolKind::Read),
            "out" => self.is_path(value, &ToolKind::Edit),
            "word" => is_word(value),
            "name" => is_name(value),
            "number" => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
            "sed" => is_printing_script(value),
            _ => false,
        }
    }

    fn is_path(&self, path: &str, kind: &ToolKind) -> bool {
        // git has revisions there.
        let is_list = path.starts_with('@') && !self.row.command.starts_with("git ");
        !is_list && self.surroundings.may_touch(path, kind)
    }

    fn takes_at_as_it_is(&self) -> bool {
        self.row.command.split(' ').next().is_some_and(|program| PLAIN_AT.contains(&program))
    }

    /// What is copied to a directory may go through a link that is there already.
    fn may_fill_directory(&self) -> bool {
        let Some((last, others)) = self.operands.split_last() else { return true };
        let target =
            |path: &str| format!("{last}/{}", path.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        !self.surroundings.is_directory(last) || others.iter().all(|path| self.is_path(&target(path), &ToolKind::Edit))
    }

    /// A name that is no path: git would take a directory for a repository, and run its hooks.
    fn is_remote(&self, name: &str) -> bool {
        is_word(name) && !self.surroundings.exists(name) && !self.surroundings.exists(&format!("{name}.git"))
    }

    fn operands_are_harmless(&self) -> bool {
        let all = |operands: &[&String], kind: &ToolKind| operands.iter().all(|operand| self.is_path(operand, kind));
        let operands = self.operands.as_slice();
        let (first, others) = match operands.split_first() {
            Some((first, others)) => (Some(first.as_str()), others),
            None => (None, operands),
        };
        let script_then_paths = |is_script: fn(&str) -> bool| match first {
            Some(script) => is_script(script) && all(others, &ToolKind::Read),
            None => true,
        };
        match self.row.operands {
            Operands::Nothing => operands.is_empty(),
            Operands::Anything => true,
            Operands::Text => operands.iter().all(|operand| is_inert(operand)),
            Operands::Printf => {
                operands.iter().all(|operand| is_inert(operand))
                    && first.is_none_or(|format| is_plain_format(format, others))
            }
            Operands::Paths => all(operands, &ToolKind::Read),
            Operands::Files => {
                all(operands, &ToolKind::Read)
                    && !operands.iter().any(|operand| self.surroundings.is_directory(operand))
            }
            Operands::Changed => all(operands, &ToolKind::Edit) && self.may_fill_directory(),
            Operands::OnePath => operands.len() <= 1 && all(operands, &ToolKind::Read),
            Operands::Archive => {
                all(operands, &ToolKind::Read) && operands.iter().all(|operand| !operand.contains(':'))
            }
            Operands::PatternThenPaths | Operands::Sed if self.has_pattern() => all(operands, &ToolKind::Read),
            Operands::PatternThenPaths => script_then_paths(|_| true),
            Operands::Names => operands.iter().all(|operand| is_name(operand)),
            Operands::Packages => operands.iter().all(|operand| is_package(operand)),
            Operands::Remote => {
                first.is_none_or(|first| self.is_remote(first))
                    && others.iter().all(|operand| is_name(operand) && !operand.contains(':'))
            }
            Operands::Format => operands.len() <= 1 && first.is_none_or(|format| format.starts_with('+')),
            Operands::Mode => {
                let is_mode = |c: char| "ugoarwxXst+-=,01234567".contains(c);
                first.is_some_and(|mode| mode.chars().all(is_mode)) && all(others, &ToolKind::Edit)
            }
            Operands::Sed => script_then_paths(is_printing_script),
            Operands::Awk => script_then_paths(is_plain_awk),
            Operands::Jq => script_then_paths(is_plain_filter),
        }
    }
}

fn is_letter(option: &str, letter: char) -> bool {
    let mut letters = option.chars();
    letters.next() == Some(letter) && letters.next().is_none() && letter != '-'
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// A name of a package, a target, a branch: nothing that is an address, a path from the top or upwards, or an assignment.
pub(super) fn is_name(text: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@');
    let continues = |c: char| c.is_ascii_alphanumeric() || "_@.-/:^~#,".contains(c);
    text.starts_with(begins)
        && text.chars().all(continues)
        && !text.contains("//")
        && text.split('/').all(|part| part != "..")
}

/// A name of a package in a registry: `name`, `@scope/name`, with a version. `name/other` would be a repository.
fn is_package(text: &str) -> bool {
    let name = text.strip_prefix('@').and_then(|scoped| scoped.split_once('/')).map_or(text, |(_, name)| name);
    is_name(text) && !text.contains(':') && !name.contains('/')
}

/// Whether a script for `sed` only prints, deletes and replaces: lists of addresses with `p`, `d`, `q`, `=` or `s`.
///
/// Files are written by `w` and programs run by `e`, also as flags of `s`; all other commands are not looked at.
fn is_printing_script(script: &str) -> bool {
    // A `;` in a pattern makes it be asked about, not misread: each part has to be a command of its own. In a class of
    // characters some programs read on where others stop.
    let is_unclear = script.is_empty() || (script.contains(';') && script.contains('['));
    !is_unclear && script.split(';').all(|part| is_printing_command(part.trim()))
}

fn is_printing_command(command: &str) -> bool {
    let Some(rest) = after_address(command) else { return false };
    let rest = match rest.strip_prefix(',') {
        Some(_) if rest.len() == command.len() => return false,
        Some(second) => match after_address(second) {
            Some(rest) if rest.len() < second.len() => rest,
            _ => return false,
        },
        None => rest,
    };
    let rest = rest.strip_prefix('!').unwrap_or(rest).trim_start();
    match rest.strip_prefix('s') {
        None => matches!(rest, "p" | "d" | "q" | "="),
        Some(substitution) => {
            let Some(sign) = substitution.chars().next().filter(|sign| "/|#,:".contains(*sign)) else { return false };
            // A sign in a class of characters ends the pattern for some programs and not for others, so it has to be the
            // third one and the last.
            let parts: Vec<&str> = split_unescaped(substitution, sign);
            matches!(parts.as_slice(), ["", _, _, flags] if flags.chars().all(|c| "gpiI0123456789".contains(c)))
        }
    }
}

/// What follows an address; all of it if there is none.
fn after_address(text: &str) -> Option<&str> {
    if let Some(pattern) = text.strip_prefix('/') {
        let end = pattern.find('/')?;
        let is_clear = !pattern[..end].contains(['\\', '[']);
        return is_clear.then_some(&pattern[end + 1..]);
    }
    Some(text.strip_prefix('$').unwrap_or_else(|| text.trim_start_matches(|c: char| c.is_ascii_digit())))
}

fn split_unescaped(text: &str, sign: char) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (index, c) in text.char_indices() {
        if c == sign && !is_escaped {
            parts.push(&text[start..index]);
            start = index + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Whether no shell finds a command to run in a text, even one that evaluates what it is given.
fn is_inert(text: &str) -> bool {
    !text.contains("$(") && !text.contains('`')
}

/// Whether a format for `printf` only prints. `%n` stores a number in a variable such as `PATH`; where a number is wanted,
/// some shells calculate, and an assignment is a calculation too. Every other sign that is not known here is not harmless.
fn is_plain_format(format: &str, arguments: &[&String]) -> bool {
    let is_number = |text: &&String| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.matches('.').count() <= 1
    };
    let mut rest = format;
    while let Some(start) = rest.find(['%', '\\']) {
        let behind = &rest[start + 1..];
        if rest[start..].starts_with('\\') {
            if may_be_percent(behind) {
                return false;
            }
            let escaped = behind.chars().next().map_or(0, char::len_utf8);
            rest = &behind[escaped..];
            continue;
        }
        let conversion = behind.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.".contains(c));
        rest = match conversion.chars().next() {
            Some('%' | 's' | 'b' | 'c' | 'q') => &conversion[1..],
            Some('d' | 'i' | 'u' | 'o' | 'x' | 'X' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G')
                if arguments.iter().all(is_number) =>
            {
                &conversion[1..]
            }
            _ => return false,
        };
    }
    true
}

/// Whether what follows a backslash is the number of a `%`, which some shells read as one: `\045`, `\x25`, `\u0025`.
fn may_be_percent(escape: &str) -> bool {
    let (digits, radix) = match escape.strip_prefix(['x', 'u', 'U']) {
        Some(digits) => (digits, 16),
        None => (escape, 8),
    };
    let digits = digits.trim_start_matches('{').chars().take(8).map_while(|digit| digit.to_digit(radix));
    digits
        .scan(0, |number, digit| {
            *number = *number * radix + digit;
            Some(*number)
        })
        .any(|number| number == 0x25)
}

/// Whether a program for `awk` can neither write, nor run another, nor read what it is not given.
fn is_plain_awk(program: &str) -> bool {
    const FORBIDDEN: &[&str] =
        &["|", ">", "<", "@", "system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB"];
    FORBIDDEN.iter().all(|word| !program.contains(word))
}

/// Whether a filter for `jq` reads only what it is given.
fn is_plain_filter(filter: &str) -> bool {
    ["import", "include", "env", "ENV", "modulemeta"].iter().all(|word| !filter.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn is_harmless(command: &[String]) -> bool {
        let Some((row, length)) = row_for(command) else { return false };
        are_harmless(row, &command[length..], &Anywhere)
    }

    /// The words of a row, with a name for `*` and the operands that it cannot do without.
    fn base(row: &Row) -> (Vec<String>, Vec<String>) {
        let operands: &[&str] = match row.operands {
            Operands::Mode => &["644", "file"],
            Operands::Sed => &["p"],
            _ => &[],
        };
        let mut command = words(&row.command.replace('*', "name"));
        if row.operands == Operands::Archive {
            command.push("a.tar".to_owned());
        }
        (command, operands.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_option_of_a_row_is_allowed_and_an_unknown_one_beside_it_is_not() {
        assert!(ROWS.len() >= 100);
        let mut options_tried = 0;
        for row in ROWS.iter().filter(|row| row.operands != Operands::Anything) {
            let (command, operands) = base(row);
            let whole = |words: &[&str]| -> Vec<String> {
                command.iter().cloned().chain(words.iter().map(ToString::to_string)).chain(operands.clone()).collect()
            };
            let found = row_for(&whole(&[])).unwrap().0;
            assert_eq!(found.command, row.command);
            assert!(is_harmless(&whole(&[])), "{row:?}");
            for unknown in ["--unknown", "--unknown=x", "-\u{e4}", "-~", "--", "---"] {
                let extra = if unknown == "--" { vec!["--", "--unknown\u{1}"] } else { vec![unknown] };
                assert!(!is_harmless(&whole(&extra)), "`{}` with `{unknown}`", row.command);
            }
            let (before, behind) = options(row);
            let lists = [(Vec::new(), before), (vec!["--"], behind.unwrap_or_default())];
            for (lead, option) in lists.iter().flat_map(|(lead, list)| list.iter().map(move |option| (lead, option))) {
                options_tried += 1;
                for given in forms(option) {
                    let given: Vec<&str> = lead.iter().copied().chain(given.iter().map(String::as_str)).collect();
                    // A longer row may begin with this option; then that one counts.
                    let command = whole(&given);
                    if row_for(&command).unwrap().0.command == row.command {
                        assert!(is_harmless(&command), "{command:?}");
                    }
                    let mut more = given.clone();
                    more.push("--unknown");
                    assert!(!is_harmless(&whole(&more)), "{command:?} --unknown");
                }
                if option.value != Value::No {
                    continue;
                }
                let with_value = format!("{}=x", option.name);
                let given: Vec<&str> = lead.iter().copied().chain([with_value.as_str()]).collect();
                assert!(option.name == "-#" || !is_harmless(&whole(&given)), "{}: {with_value}", row.command);
            }
        }
        assert!(options_tried > 2000, "{options_tried}");
    }

    /// An option in the ways in which it may be given.
    fn forms(option: &RowOption) -> Vec<Vec<String>> {
        let RowOption { name, value } = *option;
        if name == "-#" {
            return vec![vec!["-20".into()]];
        }
        let sample = |kind: &str| match kind {
            "number" => "4",
            "sed" => "1,5p",
            _ => "word",
        };
        let equals = |kind: &str| vec![format!("{name}={}", sample(kind))];
        match value {
            Value::No => vec![vec![name.into()]],
            Value::AfterEquals(kind) => vec![equals(kind)],
            Value::Needed(kind) => vec![vec![name.into(), sample(kind).into()]],
            Value::Glued(_) if !name.starts_with("--") => vec![vec![name.into()]],
            Value::Glued(kind) => vec![vec![name.into()], equals(kind)],
        }
    }

    #[test]
    fn rows_are_written_well() {
        let mut seen = std::collections::HashSet::new();
        for row in ROWS {
            assert!(seen.insert(row.command), "`{}` stands there twice", row.command);
            assert!(row.reason.ends_with('.') && !row.reason.contains('\n'), "{}", row.command);
            assert!(program(row.command.split(' ').next().unwrap()).is_some(), "{}", row.command);
            let (before, behind) = options(row);
            let mut names = std::collections::HashSet::new();
            for option in before {
                assert!(option.name.starts_with('-') && option.name.len() > 1, "{}: {}", row.command, option.name);
                let (Value::No | Value::Needed(_) | Value::Glued(_) | Value::AfterEquals(_)) = option.value;
                if let Value::Needed(kind) | Value::Glued(kind) | Value::AfterEquals(kind) = option.value {
                    let kinds = ["", "path", "out", "word", "name", "number", "sed"];
                    assert!(kinds.contains(&kind), "{}: {}", row.command, option.name);
                }
                names.insert(option.name);
            }
            assert!(behind.is_none_or(|behind| behind.iter().all(|option| option.name.starts_with('-'))));
        }
    }

    #[test]
    fn short_options_stand_together_and_have_their_values_glued() {
        for good in
            ["ls -la", "git log -5 -p", "git commit -am x", "git log -n5", "grep -rnA3 x", "sort -t, -k2", "head -20"]
        {
            assert!(is_harmless(&words(good)), "{good}");
        }
        for bad in ["ls -lZ", "sort -uo", "find -namex", "go test -pkgdir=x", "ls -", "git diff -"] {
            let bad = words(bad);
            assert!(!is_harmless(&bad) || bad.last().is_some_and(|word| word == "-"), "{bad:?}");
        }
        // The value of an option is no option, and a missing one is no value.
        for bad in
            ["git log -n --output=x", "git log --since --output=x", "git log -n", "cargo test -p", "git log --output x"]
        {
            assert!(!is_harmless(&words(bad)), "{bad}");
        }
        // Shorter forms of long options are not known.
        for bad in ["git diff --ou=x", "git diff --outp", "git diff --sta", "git status --shor", "sort --rev"] {
            assert!(!is_harmless(&words(bad)), "{bad}");
        }
    }

    #[test]
    fn scripts_that_only_print_are_told_from_those_that_write_or_run() {
        for good in [
            "p",
            "1p",
            "1,20p",
            "$p",
            "5,$p",
            "/foo/p",
            "/a/,/b/p",
            "10q",
            "5d",
            "/x/!d",
            "s/a/b/",
            "s/a/b/g",
            "s|a|b|gp",
            "1,5s/a/b/2",
            "s/\\//x/g",
            "=",
            "1p;3p",
            "s/e/w/",
        ] {
            assert!(is_printing_script(good), "{good}");
        }
        for bad in [
            "",
            "e",
            "1e rm x",
            "w file",
            "1w file",
            "s/a/b/e",
            "s/a/b/w file",
            "s/a/b/gw file",
            "s/a/rm x/e",
            "r /etc/passwd",
            "1r x",
            "s/[/]/x/w y/",
            "s/a/b",
            "a text",
            "{p}",
            "1{p;e}",
            "s/a/b/;e",
            "y/a/b/",
            "p\u{1}",
            "/a\\/b/p",
            "/[/]/e/p",
            "R x",
            "W x",
            "F",
            "n",
            "1,p",
            ",5p",
            "s\\a\\b\\e",
            "sea be",
            "s/a\\/b/e",
            "p;w x",
            "b",
            "T",
            "v",
            "z",
            "1,+3p",
            "0~2p",
        ] {
            assert!(!is_printing_script(bad), "{bad}");
        }
        for good in ["{print $1}", "NR==1", "/x/{print $2, $3}", "{s+=$1} END{print s}", "BEGIN{FS=\",\"}"] {
            assert!(is_plain_awk(good), "{good}");
        }
        for bad in [
            "BEGIN{system(\"x\")}",
            "{print > \"f\"}",
            "{print | \"sh\"}",
            "BEGIN{getline x}",
            "@load \"x\"",
            "BEGIN{ARGV[1]=\"/etc/passwd\"}",
            "BEGIN{print ENVIRON[\"K\"]}",
        ] {
            assert!(!is_plain_awk(bad), "{bad}");
        }
        assert!(
            is_plain_filter(".a.b | map(.c)")
                && !is_plain_filter("env.KEY")
                && !is_plain_filter("import \"a\" as b; .")
        );
    }

    #[test]
    fn a_format_that_stores_or_calculates_is_told_from_one_that_prints() {
        let is_plain = |format: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            is_plain_format(format, &arguments.iter().collect::<Vec<_>>())
        };
        for good in
            ["", "a", "%s\\n", "100%%", "%-10s|%5.2s", "\\033[1m%b\\e[0m", "%%n", "\\\\x25n", "\\n%s", "%05d %x", "\\"]
        {
            assert!(is_plain(good, &["12", "3.5"]), "{good}");
        }
        for bad in [
            "%n",
            "a%n",
            "%%%n",
            "%5n",
            "%-n",
            "%ln",
            "%hhn",
            "%1$n",
            "%*d",
            "%(x)T",
            "%",
            "%5",
            "%Z",
            "%P",
            "%\u{e4}",
            "\\x25n",
            "\\045n",
            "\\45n",
            "\\0045n",
            "\\u0025n",
            "\\U00000025n",
            "\\x{25}n",
            "\\\\\\x25n",
            "\\x253",
        ] {
            assert!(!is_plain(bad, &["12"]), "{bad}");
        }
        for argument in ["PATH=5", "x", "a[1]", "", "1+1", "1.2.3", "0x", "\u{661}"] {
            assert!(is_plain("%s", &[argument]) && !is_plain("%s %d", &[argument]), "{argument}");
        }
    }

    #[test]
    fn names_are_names() {
        for good in ["main", "feature/x", "a::b", "HEAD~3", "@scope/name", "lint:fix", "x.y.z", "test_a"] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "-x",
            "+main",
            ":main",
            "/etc",
            "../x",
            "a/../b",
            "https://x",
            "a=b",
            "a b",
            "$x",
            ".",
            "./x",
            "a;b",
            "X:=y",
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
