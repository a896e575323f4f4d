//! What a shell line would run, read by the grammar of the shell.

use brush_parser::ast::{
    AndOrList, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, CompoundListItem,
    IoFileRedirectKind, IoFileRedirectTarget, IoRedirect, Program, SeparatorOperator, SimpleCommand, Word,
};
use brush_parser::word::{Parameter, ParameterExpr, WordPiece, WordPieceWithSource};
use brush_parser::{ParserOptions, parse_tokens, uncached_tokenize_str};

use super::programs;
use super::strict::{self, Redirection, Simple};
use super::visible::is_plain;

/// Longer lines are not read. Nothing that a rule is written for is as long.
const MAX_LENGTH: usize = 16 * 1024;

/// How many words are looked at of a command that is too long.
const MAX_WORDS: usize = 100;

/// More words and characters that may open something are not read: the parser takes twice as long for each level, some
/// milliseconds for this many.
const MAX_OPENERS: usize = 10;

/// How deep substitutions inside of substitutions are read.
const MAX_DEPTH: usize = 4;

/// How many arguments of programs that run others are read as lines of their own.
const MAX_INNER: usize = 16;

/// One word of a command; `None` when only the shell can tell what it will be.
pub(super) type Text = Option<String>;

/// What is known about a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Every command that was found, at any depth.
    pub(super) commands: Vec<Vec<Text>>,
    /// Commands that arguments of those would be, were they read by a shell: `sh -c 'rm x'`.
    pub(super) inner: Vec<Vec<Text>>,
    /// Values of variables that are set for commands: some of them are commands for others.
    pub(super) assigned: Vec<String>,
    /// Whether there may be commands that were not found.
    pub(super) opaque: bool,
    /// The commands that have nothing around them but what the strict reading knows, too.
    simple: Vec<Simple>,
    /// The commands, if they are all there is and mean only themselves; otherwise what is in the way.
    pub(super) plain: Option<Result<Vec<Vec<String>>, &'static str>>,
}

/// Reads a line.
pub(super) fn read(text: &str) -> Line {
    let mut line = Line::default();
    if text.len() > MAX_LENGTH {
        return Line { opaque: true, plain: Some(Err("it is too long")), ..line };
    }
    let strict = strict::read(text);
    // What the strict reading takes has nothing that nests outside of quotes.
    let nests = strict.is_err() && openers(text) > MAX_OPENERS;
    let flat = line.read_text(text, if nests { MAX_DEPTH + 1 } else { 0 });
    let plain = match strict {
        Err(reason) => Err(reason),
        Ok(_) if !flat => Err("it is not a plain list of commands"),
        Ok(commands) => {
            let words = line.commands.iter().map(|words| words.iter().cloned().collect::<Option<Vec<String>>>());
            let same = commands == line.simple && words.eq(commands.iter().map(|command| Some(command.words.clone())));
            let commands = commands.into_iter().map(|command| command.words).collect();
            if same { Ok(commands) } else { Err("it can be read in two ways") }
        }
    };
    line.plain = Some(plain);
    line.read_inner();
    line
}

/// Words that no shell reads mean themselves. What cannot be shown as it is, is asked about all the same.
pub(super) fn from_words(words: &[String]) -> Line {
    if words.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_LENGTH {
        let commands = vec![words.iter().take(MAX_WORDS).cloned().map(Some).collect()];
        return Line { commands, opaque: true, plain: Some(Err("it is too long")), ..Line::default() };
    }
    let plain = if words.first().is_none_or(String::is_empty) {
        Err("the name of the program is missing")
    } else if words.iter().flat_map(|word| word.chars()).all(is_plain) {
        Ok(vec![words.to_vec()])
    } else {
        Err("it has a line end, a control character or an invisible character")
    };
    let commands = vec![words.iter().cloned().map(Some).collect()];
    let mut line = Line { commands, plain: Some(plain), ..Line::default() };
    line.read_inner();
    line
}

impl Line {
    /// What is in the way of allowing it by rules, or its commands.
    pub(super) fn plain(&self) -> Result<&[Vec<String>], &'static str> {
        match &self.plain {
            Some(Ok(commands)) => Ok(commands),
            Some(Err(reason)) => Err(reason),
            None => Err("it was not read"),
        }
    }

    /// Takes it for a guess: it was read by the grammar of one shell, and is for another.
    pub(super) fn distrust(&mut self) {
        self.opaque = true;
        self.plain = Some(Err("it is for a shell whose grammar rules do not know"));
    }

    /// Every command that may be run.
    pub(super) fn all(&self) -> impl Iterator<Item = &Vec<Text>> {
        self.commands.iter().chain(&self.inner)
    }

    /// Reads the arguments of programs that run others as lines.
    fn read_inner(&mut self) {
        let mut left = MAX_INNER;
        let mut next = 0;
        while let Some(words) = self.commands.get(next).or_else(|| self.inner.get(next - self.commands.len())) {
            next += 1;
            if let Some(Some(program)) = words.first()
                && let Some(name) = programs::usual_name(program)
            {
                let words = std::iter::once(Some(name)).chain(words[1..].iter().cloned()).collect();
                // Its arguments are read when its turn comes.
                self.inner.push(words);
                continue;
            }
            let Some(start) = programs::inner_start(words) else { continue };
            let is_text = |text: &&String| text.contains(|c: char| !c.is_ascii_alphanumeric());
            // The text may be the value of an option, as in `--filter='rm x'`.
            let value = |text: &String| text.split_once('=').map(|(_, value)| value.to_owned());
            let texts = words[start..].iter().flatten().filter(is_text);
            let texts: Vec<String> = texts.flat_map(|text| [Some(text.clone()), value(text)]).flatten().collect();
            for text in texts {
                if left == 0 {
                    self.opaque = true;
                    return;
                }
                left -= 1;
                let mut line = Line::default();
                let nests = text.len() > MAX_LENGTH || openers(&text) > MAX_OPENERS;
                line.read_text(&text, if nests { MAX_DEPTH + 1 } else { 0 });
                self.opaque |= line.opaque;
                self.inner.append(&mut line.commands);
            }
        }
    }

    /// Reads a text that the shell would run. Returns whether it is a flat list of simple commands.
    fn read_text(&mut self, text: &str, depth: usize) -> bool {
        if depth > MAX_DEPTH || text.len() > MAX_LENGTH || has_odd_heredoc(text) {
            self.opaque = true;
            return false;
        }
        // The parser is not ours: if it panics, the line is one that nobody understood.
        let parsed = std::panic::catch_unwind(|| {
            let options = options();
            let tokens = uncached_tokenize_str(text, &options.tokenizer_options()).ok()?;
            parse_tokens(&tokens, &options).ok()
        });
        let Ok(Some(Program { complete_commands })) = parsed else {
            self.opaque = true;
            return false;
        };
        let mut flat = true;
        for list in &complete_commands {
            flat &= self.read_list(list, depth);
        }
        flat
    }

    fn read_list(&mut self, list: &CompoundList, depth: usize) -> bool {
        let mut flat = true;
        for CompoundListItem(list, separator) in &list.0 {
            flat &= self.read_and_or(list, depth) && matches!(separator, SeparatorOperator::Sequence);
        }
        flat
    }

    fn read_and_or(&mut self, list: &AndOrList, depth: usize) -> bool {
        let mut flat = true;
        for (_, pipeline) in list {
            flat &= !pipeline.bang;
            let first = self.simple.len();
            for command in &pipeline.seq {
                flat &= self.read_command(command, depth);
            }
            if let Some(first) = self.simple.get_mut(first) {
                first.timed = pipeline.timed.is_some();
            }
        }
        flat
    }

    fn read_command(&mut self, command: &Command, depth: usize) -> bool {
        match command {
            Command::Simple(simple) => return self.read_simple(simple, depth),
            Command::Compound(compound, redirects) => {
                self.read_compound(compound, depth);
                self.read_redirects(redirects.as_ref().map(|list| list.0.as_slice()), depth);
            }
            Command::Function(function) => {
                self.read_compound(&function.body.0, depth);
                self.read_redirects(function.body.1.as_ref().map(|list| list.0.as_slice()), depth);
            }
            // A test may evaluate arithmetic, and that may run anything.
            Command::ExtendedTest(..) => self.opaque = true,
        }
        false
    }

    fn read_compound(&mut self, compound: &CompoundCommand, depth: usize) {
        match compound {
            CompoundCommand::Arithmetic(_) => self.opaque = true,
            CompoundCommand::ArithmeticForClause(clause) => {
                self.opaque = true;
                self.read_list(&clause.body.list, depth);
            }
            CompoundCommand::BraceGroup(group) => _ = self.read_list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => _ = self.read_list(&subshell.list, depth),
            CompoundCommand::ForClause(clause) => {
                for value in clause.values.iter().flatten() {
                    self.read_word(value, depth);
                }
                self.read_list(&clause.body.list, depth);
            }
            CompoundCommand::CaseClause(clause) => {
                self.read_word(&clause.value, depth);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.read_word(pattern, depth);
                    }
                    if let Some(list) = &case.cmd {
                        self.read_list(list, depth);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.read_list(&clause.condition, depth);
                self.read_list(&clause.then, depth);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.read_list(condition, depth);
                    }
                    self.read_list(&other.body, depth);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.read_list(&clause.0, depth);
                self.read_list(&clause.1.list, depth);
            }
            CompoundCommand::Coprocess(coprocess) => _ = self.read_command(&coprocess.body, depth),
        }
    }

    fn read_simple(&mut self, simple: &SimpleCommand, depth: usize) -> bool {
        let mut flat = true;
        let mut words = Vec::new();
        let mut plain = Simple::default();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.read_item(item, depth);
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _)
                    if let AssignmentValue::Scalar(word) = &assignment.value =>
                {
                    let value = self.read_word(word, depth);
                    let name = assignment.name.to_string();
                    // What is set for no command stays in the shell, but for names that are in the environment already.
                    let is_exported = simple.word_or_name.is_some() || !name.contains(|c: char| c.is_ascii_lowercase());
                    flat &= !assignment.append;
                    plain.assignments.extend(value.clone().map(|value| (name, value)));
                    self.assign(value, is_exported);
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect)
                    if let Some(redirection) = self.read_harmless(redirect, depth) =>
                {
                    plain.redirections.push(redirection);
                }
                _ => flat = false,
            }
        }
        if let Some(name) = &simple.word_or_name {
            words.push(self.read_word(name, depth));
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                // What looks like an assignment after the name of a command is an argument.
                CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    words.push(self.read_word(word, depth));
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect)
                    if let Some(redirection) = self.read_harmless(redirect, depth) =>
                {
                    plain.redirections.push(redirection);
                }
                other => {
                    flat = false;
                    words.push(None);
                    self.read_item(other, depth);
                }
            }
        }
        if flat && let Some(words) = words.iter().cloned().collect() {
            self.simple.push(Simple { words, ..plain });
        }
        if !words.is_empty() {
            self.commands.push(words);
        }
        flat
    }

    /// A redirection that writes to no file and reads none, if this is one.
    fn read_harmless(&mut self, redirect: &IoRedirect, depth: usize) -> Option<Redirection> {
        let IoRedirect::File(descriptor, kind, target) = redirect else { return None };
        match (kind, target) {
            (IoFileRedirectKind::Write, IoFileRedirectTarget::Filename(word)) => {
                Redirection::null(descriptor.unwrap_or(1), true, &self.read_word(word, depth)?)
            }
            (IoFileRedirectKind::Read, IoFileRedirectTarget::Filename(word)) => {
                Redirection::null(descriptor.unwrap_or(0), false, &self.read_word(word, depth)?)
            }
            (IoFileRedirectKind::DuplicateOutput, IoFileRedirectTarget::Duplicate(word)) => {
                let to = match self.read_word(word, depth)?.as_str() {
                    "1" => 1,
                    "2" => 2,
                    _ => return None,
                };
                Redirection::duplicate(descriptor.unwrap_or(1), to)
            }
            (IoFileRedirectKind::DuplicateOutput, IoFileRedirectTarget::Fd(to)) => {
                Redirection::duplicate(descriptor.unwrap_or(1), *to)
            }
            _ => None,
        }
    }

    /// Notes the value of a variable. One that is more than a word may be a command for a program that looks at it.
    pub(super) fn assign(&mut self, value: Text, is_exported: bool) {
        let is_simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ',' | ':' | '+' | '-');
        match value {
            Some(value) if value.chars().all(is_simple) => self.assigned.push(value),
            _ => self.opaque |= is_exported,
        }
    }

    fn read_item(&mut self, item: &CommandPrefixOrSuffixItem, depth: usize) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.read_redirect(redirect, depth),
            CommandPrefixOrSuffixItem::Word(word) => _ = self.read_word(word, depth),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => match &assignment.value {
                AssignmentValue::Scalar(word) => _ = self.read_word(word, depth),
                AssignmentValue::Array(_) => self.opaque = true,
            },
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => _ = self.read_list(&subshell.list, depth),
        }
    }

    fn read_redirects(&mut self, redirects: Option<&[IoRedirect]>, depth: usize) {
        for redirect in redirects.unwrap_or_default() {
            self.read_redirect(redirect, depth);
        }
    }

    fn read_redirect(&mut self, redirect: &IoRedirect, depth: usize) {
        match redirect {
            IoRedirect::File(_, _, IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word))
            | IoRedirect::HereString(_, word)
            | IoRedirect::OutputAndError(word, _) => _ = self.read_word(word, depth),
            IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => {}
            IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, subshell)) => {
                self.read_list(&subshell.list, depth);
            }
            IoRedirect::HereDocument(_, document) => self.opaque |= document.requires_expansion,
        }
    }

    /// The text of a word, if it means itself. Commands inside of it are noted.
    fn read_word(&mut self, word: &Word, depth: usize) -> Text {
        let value = word.value.as_str();
        let parsed = std::panic::catch_unwind(|| brush_parser::word::parse(value, &options()).ok());
        let Ok(Some(pieces)) = parsed else {
            self.opaque = true;
            return None;
        };
        let mut text = Some(String::new());
        self.read_pieces(&pieces, false, depth, &mut text);
        text
    }

    fn read_pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool, depth: usize, text: &mut Text) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(literal) if quoted || !literal.contains(['*', '?', '[', '{', '~']) => {
                    push(text, literal);
                }
                // As in `HEAD~1`: a tilde in the middle is one.
                WordPiece::Text(literal) if !literal.contains(['*', '?', '[', '{']) && !literal.starts_with('~') => {
                    push(text, literal);
                }
                WordPiece::SingleQuotedText(literal) => push(text, literal),
                WordPiece::EscapeSequence(escape) => match escape.strip_prefix('\\') {
                    Some(escaped) => push(text, escaped),
                    None => *text = None,
                },
                WordPiece::DoubleQuotedSequence(inner) => self.read_pieces(inner, true, depth, text),
                WordPiece::CommandSubstitution(command) | WordPiece::BackquotedCommandSubstitution(command) => {
                    *text = None;
                    self.read_text(command, depth + 1);
                }
                WordPiece::ParameterExpansion(expansion) => {
                    *text = None;
                    // `${name:-$(command)}` and `${array[$(command)]}` keep their commands as text.
                    self.opaque |= !is_variable(expansion);
                }
                WordPiece::ArithmeticExpression(_) => {
                    *text = None;
                    self.opaque = true;
                }
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.read_pieces(inner, true, depth, text);
                    *text = None;
                }
                WordPiece::Text(_) | WordPiece::AnsiCQuotedText(_) | WordPiece::TildeExpansion(_) => *text = None,
            }
        }
    }
}

fn push(text: &mut Text, literal: &str) {
    if let Some(text) = text {
        text.push_str(literal);
    }
}

/// Whether an expansion is the value of a variable and nothing else.
fn is_variable(expansion: &ParameterExpr) -> bool {
    matches!(
        expansion,
        ParameterExpr::Parameter {
            parameter: Parameter::Named(_) | Parameter::Positional(_) | Parameter::Special(_),
            indirect: false
        }
    )
}

/// Whether there is an expansion behind a here-document's beginning. The parser takes memory without end for some of those,
/// such as one in the word that ends the document.
fn has_odd_heredoc(text: &str) -> bool {
    text.find("<<").is_some_and(|at| text[at..].contains(['$', '`', '(', '{']))
}

/// How many things may nest in a text.
fn openers(text: &str) -> usize {
    let characters = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'[' | b'`' | b'!')).count();
    let words = text.split(|c: char| !c.is_ascii_alphabetic());
    let keywords = ["if", "elif", "else", "while", "until", "for", "case", "select", "function", "coproc", "time"];
    characters + words.filter(|word| keywords.contains(word)).count()
}

fn options() -> ParserOptions {
    // Extended patterns are left out: with them parentheses could hide in words.
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

#[cfg(all(test, unix))]
mod tests;
