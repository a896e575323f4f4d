//! A rule: what it is about, and whether it is about something.

use attache::model::tool::ToolKind;
use glob::{MatchOptions, Pattern};

use super::arguments::{self, Anywhere, Surroundings};
use super::place::{Execution, Place};
use super::programs;
use super::shell::{Line, Text};
use super::{secrets, shell};

/// What is to become of a request. The stronger one is the greater: a refusal beats a question, and that a yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// A person has to say.
    Ask,
    /// It may not be done.
    Deny,
}

impl Verdict {
    /// The word for it in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

/// One rule of `permissions.toml`. What it leaves out, it does not care about.
///
/// ```
/// use attache_host::permission::{Rule, Verdict};
///
/// let rule = Rule { command: vec!["cargo".into(), "test".into()], ..Rule::new(Verdict::Allow) };
/// assert_eq!(rule.to_string(), r#"allow the command `cargo test …`"#);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What it decides.
    pub verdict: Verdict,
    /// The agent that it is for: its name in the settings, or [`agent_identity`](super::agent_identity) of its command.
    pub agent: Option<String>,
    /// The kinds of tool calls that it is for.
    pub kinds: Vec<ToolKind>,
    /// The files that it is for, as patterns with `*`, `?` and `**`. A relative one is meant beneath every root.
    pub paths: Vec<String>,
    /// The words that the command begins with.
    pub command: Vec<String>,
    /// Which further words the command may have, for a rule that allows.
    pub args: Arguments,
    /// Patterns for arguments; a command with one of them is not allowed by this rule.
    pub not_args: Vec<String>,
    /// The tools that it is for, as patterns for their names. Such a rule is about no file and no command.
    pub tools: Vec<String>,
    /// Where it stands, for people: `permissions.toml:12`.
    pub origin: String,
}

/// Which words a command may have after those that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arguments {
    /// The rule does not say: the same as [`Arguments::Known`]. Rules of the first version are like that, and meant any.
    #[default]
    Unsaid,
    /// None: the rule names the whole command.
    None,
    /// Those that are known to be harmless for this command; none for a program that is not known.
    Known,
    /// Any, on the word of a person who knows the program. Programs that run others are named with all their words still.
    Any,
}

impl Arguments {
    /// The word for it in a file, if there is one.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Arguments::Unsaid => None,
            Arguments::None => Some("none"),
            Arguments::Known => Some("known"),
            Arguments::Any => Some("any"),
        }
    }
}

/// How surely a rule is about something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It cannot be told: a word is known to the shell only.
    Maybe,
    Yes,
}

impl Rule {
    /// A rule about everything.
    pub fn new(verdict: Verdict) -> Self {
        Rule {
            verdict,
            agent: None,
            kinds: Vec::new(),
            paths: Vec::new(),
            command: Vec::new(),
            args: Arguments::Unsaid,
            not_args: Vec::new(),
            tools: Vec::new(),
            origin: String::new(),
        }
    }

    /// What is wrong with it, if anything: a rule that would not do what it says is no rule.
    pub(super) fn check(&self) -> Result<(), String> {
        for pattern in self.paths.iter().chain(&self.not_args).chain(&self.tools) {
            Pattern::new(pattern).map_err(|error| format!("`{pattern}` is not a pattern: {error}"))?;
        }
        if self.command.first().is_some_and(String::is_empty) {
            return Err("the first word of `command` is empty".into());
        }
        if !self.command.is_empty() && !self.paths.is_empty() {
            return Err("a rule is for commands or for paths, not for both".into());
        }
        if !self.command.is_empty() && !self.tools.is_empty() {
            return Err("a rule is for commands or for tools, not for both".into());
        }
        if !self.command.is_empty() && self.kinds.iter().any(|kind| *kind != ToolKind::Execute) {
            return Err("a rule with a `command` is for the kind `execute`".into());
        }
        if !self.not_args.is_empty() && (self.command.is_empty() || self.verdict != Verdict::Allow) {
            return Err("`not_args` belongs to a rule that allows a `command`".into());
        }
        if self.args != Arguments::Unsaid && self.command.is_empty() {
            return Err("`args` belongs to a rule with a `command`".into());
        }
        if self.args == Arguments::Any && self.verdict != Verdict::Allow {
            return Err("`args` belongs to a rule that allows a `command`".into());
        }
        if self.verdict == Verdict::Allow && self.command.is_empty() && self.tools.is_empty() {
            if self.kinds.is_empty() {
                return Err("a rule that allows names a `command` or a `kind` or a `tool`".into());
            }
            if self.kinds.contains(&ToolKind::Execute) {
                return Err("a rule that allows `execute` names a `command`".into());
            }
        }
        Ok(())
    }

    /// Whether it is the same rule, wherever it stands.
    pub fn says_the_same(&self, other: &Rule) -> bool {
        // A rule that denies is about every command that begins with its words.
        let plain = |rule: &Rule| Rule {
            origin: String::new(),
            args: if rule.verdict == Verdict::Allow { rule.args } else { Arguments::Unsaid },
            ..rule.clone()
        };
        plain(self) == plain(other)
    }

    /// Whether it decides all that another one does, in the same way, as far as their words tell.
    pub fn covers(&self, other: &Rule) -> bool {
        fn holds<T: PartialEq>(own: &[T], others: &[T]) -> bool {
            own.is_empty() || (!others.is_empty() && others.iter().all(|other| own.contains(other)))
        }
        let execute = [ToolKind::Execute];
        let is_command = other.kinds.is_empty() && !other.command.is_empty();
        let kinds = if is_command { &execute[..] } else { &other.kinds };
        let is_wider = match self.args {
            Arguments::None => self.command == other.command,
            _ => other.command.starts_with(&self.command),
        };
        self.verdict == other.verdict
            && (self.agent.is_none() || self.agent == other.agent)
            && (self.command.is_empty() || is_wider)
            && (self.not_args.is_empty() || self.not_args == other.not_args)
            && holds(&self.kinds, kinds)
            && holds(&self.paths, &other.paths)
            && holds(&self.tools, &other.tools)
    }

    /// What it allows less than it did in the first version, as a sentence for people; `None` if it says what it means
    /// about arguments, or if it was never about more.
    ///
    /// ```
    /// use attache_host::permission::{Arguments, Rule, Verdict};
    ///
    /// let rule = Rule { command: vec!["frobnicate".into()], ..Rule::new(Verdict::Allow) };
    /// assert!(rule.narrowed().is_some_and(|sentence| sentence.contains("without further arguments")));
    /// assert_eq!(Rule { args: Arguments::Any, ..rule }.narrowed(), None);
    /// ```
    pub fn narrowed(&self) -> Option<String> {
        let is_of_first_version = self.verdict == Verdict::Allow && self.args == Arguments::Unsaid;
        if !is_of_first_version || self.command.is_empty() || self.mistake().is_some() {
            return None;
        }
        let words = super::question::shell_text(&self.command);
        let plain = arguments::without_leading_options(&self.command);
        let program = self.command.first()?;
        let now = match arguments::row_for(&plain) {
            _ if programs::needs_all_words(&self.command) && arguments::row_for(&plain).is_none() => {
                format!("the rule for `{words}` allows exactly that, because what it runs is in its words")
            }
            Some((row, length)) if arguments::are_harmless(row, &plain[length..], &Anywhere) => {
                format!("the rule for `{words}` allows it with arguments that are known to be harmless only")
            }
            None if plain.len() == 1 && arguments::is_known_program(program) => {
                format!("the rule for `{words}` allows only those of its subcommands that change nothing")
            }
            _ => format!("the rule for `{words}` allows it without further arguments only"),
        };
        Some(match programs::needs_all_words(&self.command) {
            true => format!("{now}; `args = \"known\"` keeps that, and a rule for more names all words of it"),
            false => format!("{now}; `args = \"known\"` keeps that, `args = \"any\"` allows any arguments"),
        })
    }

    /// What is likely to be a mistake in it, as a sentence for people and a hint: a whole line as one word names a program
    /// that nobody has, so the rule neither allows nor denies anything.
    ///
    /// ```
    /// use attache_host::permission::{Rule, Verdict};
    ///
    /// let rule = Rule { command: vec!["cargo test".into()], ..Rule::new(Verdict::Deny) };
    /// assert!(rule.mistake().is_some_and(|sentence| sentence.contains(r#"`command = ["cargo", "test"]`"#)));
    /// ```
    pub fn mistake(&self) -> Option<String> {
        let first = self.command.first()?;
        let (program, _) = first.split_once(char::is_whitespace)?;
        // The name of a directory may have a blank in it.
        if program.contains('/') {
            return None;
        }
        let words: Vec<String> =
            self.command.iter().flat_map(|word| word.split_whitespace()).map(super::visible).collect();
        let shown = super::question::shell_text(&self.command);
        Some(format!(
            "the rule for `{shown}` is about a program with a blank in its name\nhint: `command = {words:?}` names each word"
        ))
    }

    pub(super) fn is_for_agent(&self, agent: &str) -> bool {
        match &self.agent {
            None => true,
            Some(name) if name == agent => true,
            // The first version named an agent by its program alone, so such a rule may be for any script that the
            // program runs. It goes on to deny and to ask, but allows nothing.
            Some(_) => self.verdict != Verdict::Allow && self.is_for_launcher(agent),
        }
    }

    /// Whether it names only the program of an agent that was given as a command, such as `python3` or `npx`. Such a rule
    /// that allows has no effect: it is not known for what.
    pub fn is_for_launcher(&self, agent: &str) -> bool {
        self.agent.is_some() && self.agent.as_deref() == super::identity::launcher(agent)
    }

    pub(super) fn is_for_kind(&self, kind: &ToolKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(kind)
    }

    /// Whether it is about neither commands nor tools.
    pub(super) fn is_general(&self) -> bool {
        self.command.is_empty() && self.tools.is_empty()
    }

    /// Whether it denies or asks about a file, or about something that the file stands for.
    pub(super) fn guards_path(&self, kind: &ToolKind, place: &Place<'_>) -> bool {
        self.is_general() && self.is_for_kind(kind) && (self.paths.is_empty() || self.names_path(place, false))
    }

    /// Whether it allows a file.
    pub(super) fn allows_path(&self, kind: &ToolKind, place: &Place<'_>) -> bool {
        self.is_general() && self.is_for_kind(kind) && self.permits_path(kind, place)
    }

    /// Whether it denies or asks about a tool. Whether it is about a tool without a name cannot be told.
    pub(super) fn guards_tool(&self, kind: &ToolKind, name: Option<&str>, places: &[Place<'_>]) -> Match {
        let is_there = self.paths.is_empty() || places.iter().any(|place| self.names_path(place, false));
        if !self.command.is_empty() || !self.is_for_kind(kind) || !is_there {
            return Match::No;
        }
        match name {
            _ if self.tools.is_empty() => Match::Yes,
            None => Match::Maybe,
            Some(name) if self.tools.iter().any(|pattern| matches_tool(pattern, name, false)) => Match::Yes,
            Some(_) => Match::No,
        }
    }

    /// Whether it allows a tool, with all the files that it works on.
    pub(super) fn allows_tool(&self, kind: &ToolKind, name: Option<&str>, places: &[Place<'_>]) -> bool {
        let is_meant = match name {
            _ if !self.command.is_empty() => false,
            // To leave out the kind is to mean any, but only if the tool is named.
            _ if self.tools.is_empty() => self.kinds.contains(kind),
            None => false,
            Some(name) => self.is_for_kind(kind) && self.tools.iter().any(|pattern| matches_tool(pattern, name, true)),
        };
        is_meant
            && (!places.is_empty() || self.paths.is_empty())
            && places.iter().all(|place| self.permits_path(kind, place))
    }

    /// All that is known of the place has to fit: a link that leads out of a pattern does not.
    fn permits_path(&self, kind: &ToolKind, place: &Place<'_>) -> bool {
        if place.is_guarded(kind) {
            return self.paths.iter().any(|pattern| !has_wildcard(pattern) && place.is_literally(pattern));
        }
        if self.paths.is_empty() { place.is_beneath_roots() } else { self.names_path(place, true) }
    }

    fn names_path(&self, place: &Place<'_>, all: bool) -> bool {
        self.paths.iter().any(|pattern| {
            let expanded = place.pattern(pattern);
            let matches = |name: &String| matches_path(&expanded, name, all);
            let names = place.names_for(pattern);
            if all {
                names.iter().all(|form| form.iter().any(matches)) && !names.is_empty()
            } else {
                names.iter().flatten().any(matches)
            }
        })
    }

    /// Whether it allows a command that means only itself.
    pub(super) fn allows_command(&self, command: &[String], surroundings: &dyn Surroundings) -> bool {
        if self.command.is_empty() {
            return false;
        }
        if command == self.command {
            return programs::says_what_runs(command);
        }
        let is_meant = |rest: &[String]| {
            let forbidden = |word: &String| self.not_args.iter().any(|pattern| matches_word(pattern, word));
            !rest.iter().any(|word| forbidden(word) || secrets::is_in_word(word))
        };
        match self.args {
            Arguments::None => false,
            Arguments::Any => {
                command.starts_with(&self.command)
                    && !programs::needs_all_words(command)
                    && is_meant(&command[self.command.len()..])
            }
            Arguments::Known | Arguments::Unsaid => {
                let plain = |words| arguments::without_leading_options(arguments::without_timeout(words));
                let (words, command) = (plain(&self.command), plain(command));
                if words.first() != command.first() {
                    return false;
                }
                let Some((row, length)) = arguments::row_for(&command) else { return false };
                command.starts_with(words.as_ref())
                    && (length <= words.len() || row.only_reads())
                    && arguments::are_harmless(row, &command[length..], surroundings)
                    && is_meant(&command[words.len()..])
            }
        }
    }

    /// Whether it would allow a command but for its arguments.
    pub(super) fn names_beginning_of(&self, command: &[String]) -> bool {
        !self.command.is_empty() && command.starts_with(&self.command)
    }

    /// Whether a command that it denies or asks about is in this line. A rule without a command is about every line.
    pub(super) fn guards_line(&self, line: &Line) -> Match {
        if !self.is_for_kind(&ToolKind::Execute) || !self.paths.is_empty() || !self.tools.is_empty() {
            return Match::No;
        }
        if self.command.is_empty() {
            return Match::Yes;
        }
        let found = line.all().map(|command| self.guards_words(command)).max().unwrap_or(Match::No);
        let is_uncertain = line.opaque
            || line.all().any(|command| programs::is_opaque(command))
            || line.assigned.iter().any(|value| self.is_named_in(value));
        if is_uncertain { found.max(Match::Maybe) } else { found }
    }

    fn guards_words(&self, words: &[Text]) -> Match {
        // Whatever follows a program that runs others may be the command that it runs.
        let start = programs::inner_start(words).unwrap_or(words.len());
        // More words may come from its input.
        let fed: Vec<Text> = if programs::is_fed(words) { [words, &[None]].concat() } else { words.to_vec() };
        let inner = (start..words.len()).map(|index| self.begins(&fed[index..]));
        let found = inner.chain([self.begins(words)]).max().unwrap_or(Match::No);
        // A text among the arguments of a program that is not known well may be meant to be run.
        let is_text = |word: &Text| word.as_ref().is_some_and(|word| self.is_named_in(word) && !self.is_program(word));
        if found == Match::No && !programs::is_known_harmless(words) && words.iter().skip(1).any(is_text) {
            return Match::Maybe;
        }
        found
    }

    fn is_program(&self, word: &str) -> bool {
        self.command.first().is_some_and(|program| programs::name(program) == word)
    }

    /// Whether the name of its program stands somewhere in a text.
    fn is_named_in(&self, text: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-');
        text.split(|c: char| !is_part(c)).any(|word| self.is_program(word))
    }

    /// Whether words begin with those of the rule, seen generously: in any directory, with options in between.
    fn begins(&self, words: &[Text]) -> Match {
        let Some((program, rest)) = self.command.split_first() else { return Match::Yes };
        let first = match words.first() {
            None => return Match::No,
            Some(None) => Match::Maybe,
            Some(Some(word)) if word == program || programs::name(word) == programs::name(program) => Match::Yes,
            Some(Some(_)) => return Match::No,
        };
        let followed = follows(rest, &words[1..]);
        // An alias of the program may be what the rule denies.
        let is_alias = |word: &Text| word.as_ref().is_some_and(|word| programs::may_be_alias(program, word));
        let arguments = match &words[1..] {
            // The directory is no subcommand.
            [Some(option), Some(_), rest @ ..] if option == "-C" && programs::name(program) == "git" => rest,
            arguments => arguments,
        };
        let subcommand = arguments.iter().find(|word| word.as_ref().is_none_or(|word| !word.starts_with('-')));
        if followed == Match::No && !rest.is_empty() && subcommand.is_some_and(is_alias) {
            return Match::Maybe;
        }
        first.min(followed)
    }

    /// Whether it denies or asks about a command.
    pub(super) fn guards_execution(&self, execution: &Execution<'_>, line: &Line) -> Match {
        if self.paths.is_empty() || !self.tools.is_empty() {
            return self.guards_line(line);
        }
        // A rule about paths is also about the commands that work on them, as far as that can be seen.
        if execution.places.iter().any(|place| self.names_path(place, false)) {
            return if self.is_for_kind(&ToolKind::Execute) { Match::Yes } else { Match::Maybe };
        }
        let Some(directories) = &execution.directories else { return Match::Maybe };
        let touches = |word: &String| {
            let path = word.rsplit_once('=').map_or(word.as_str(), |(_, value)| value);
            directories.iter().any(|directory| self.names_path(&directory.join_lexically(path), false))
        };
        if line.all().flatten().flatten().any(touches) { Match::Maybe } else { Match::No }
    }

    /// Whether an example of what it allows is one. The examples of a first-version rule may have arguments that it allows no
    /// more; the file is still read, and [`Rule::narrowed`] says so.
    pub(super) fn fits_match(&self, example: &str) -> bool {
        let is_of_first_version = self.verdict == Verdict::Allow && self.args == Arguments::Unsaid;
        let begins = |commands: &[Vec<String>]| commands.iter().all(|command| self.names_beginning_of(command));
        self.fits_example(example) || (is_of_first_version && shell::read(example).plain().is_ok_and(begins))
    }

    /// Whether an example of the file is one: a shell line, a tool, a path or a kind, whatever the rule is about.
    pub(super) fn fits_example(&self, example: &str) -> bool {
        if !self.command.is_empty() {
            let line = shell::read(example);
            return match self.verdict {
                Verdict::Allow => line
                    .plain()
                    .is_ok_and(|commands| commands.iter().all(|command| self.allows_command(command, &Anywhere))),
                Verdict::Ask | Verdict::Deny => self.guards_line(&line) == Match::Yes,
            };
        }
        if !self.tools.is_empty() {
            let exactly = self.verdict == Verdict::Allow;
            return self.tools.iter().any(|pattern| matches_tool(pattern, example, exactly));
        }
        if !self.paths.is_empty() {
            return self.paths.iter().any(|pattern| matches_path(pattern, example, true));
        }
        self.is_for_kind(&ToolKind::from(example))
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.verdict.as_str())?;
        if !self.command.is_empty() {
            let is_unknown = || !self.command.first().is_some_and(|program| arguments::is_known_program(program));
            let is_exact = match self.args {
                _ if self.verdict != Verdict::Allow => false,
                Arguments::None => true,
                Arguments::Any => false,
                Arguments::Known | Arguments::Unsaid => is_unknown(),
            };
            let more = if is_exact { "" } else { " …" };
            write!(f, " the command `{}{more}`", super::question::shell_text(&self.command))?;
            if self.args == Arguments::Any {
                write!(f, " with any arguments")?;
            }
        } else if !self.tools.is_empty() {
            let tools: Vec<_> = self.tools.iter().map(|tool| format!("`{}`", super::visible(tool))).collect();
            write!(f, " the tool {}", tools.join(", "))?;
        } else if self.kinds.is_empty() {
            write!(f, " everything")?;
        }
        if self.command.is_empty() && !self.kinds.is_empty() {
            let kinds: Vec<_> = self.kinds.iter().map(|kind| super::visible(kind.as_str())).collect();
            write!(f, "{}{}", if self.tools.is_empty() { " " } else { " to " }, kinds.join(", "))?;
        }
        for (index, path) in self.paths.iter().enumerate() {
            write!(f, "{} `{}`", if index == 0 { " of" } else { "," }, super::visible(path))?;
        }
        match &self.agent {
            Some(agent) => write!(f, " for the agent `{}`", super::visible(agent)),
            None => Ok(()),
        }
    }
}

/// Whether the words of a rule follow, with options in between. An option may have the next word for its value.
fn follows(rule: &[String], words: &[Text]) -> Match {
    let Some((wanted, rest)) = rule.split_first() else { return Match::Yes };
    let Some((word, others)) = words.split_first() else { return Match::No };
    let here = match word {
        None => Match::Maybe,
        Some(word) if word == wanted => Match::Yes,
        Some(_) => Match::No,
    };
    let found = here.min(follows(rest, others));
    if found == Match::Yes || word.as_ref().is_some_and(|word| !word.starts_with('-')) {
        return found;
    }
    // Each option can be read in two ways; so many of them are nobody's honest command.
    if words.len() > 24 {
        return Match::Maybe;
    }
    let after_value = others.split_first().map_or(Match::No, |(_, others)| follows(rule, others));
    found.max(follows(rule, others)).max(after_value)
}

pub(super) fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?', '['])
}

/// Windows does not tell capitals from small letters, and macOS may not: what denies is read generously there.
pub(super) fn matches_path(pattern: &str, path: &str, exactly: bool) -> bool {
    let case_sensitive = if cfg!(target_vendor = "apple") { exactly } else { !cfg!(windows) };
    let options = MatchOptions { case_sensitive, require_literal_separator: true, require_literal_leading_dot: false };
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches_with(path, options))
}

/// Names that differ only in case may be one tool, and hosts are: what denies is read generously, what allows is not.
fn matches_tool(pattern: &str, name: &str, exactly: bool) -> bool {
    let options = MatchOptions { case_sensitive: exactly, ..MatchOptions::new() };
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches_with(name, options))
}

fn matches_word(pattern: &str, word: &str) -> bool {
    Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(word))
}
