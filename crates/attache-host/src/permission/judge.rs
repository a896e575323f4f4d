//! What the rules and the mode say about one action.

use std::path::{Component, Path, PathBuf};

use attache::model::Secret;
use attache::model::tool::ToolKind;
use glob::Pattern;

use super::arguments::{self, Surroundings};
use super::engine::Policy;
use super::place::{Execution, Ground, MAX_DIRECTORIES, Place};
use super::programs;
use super::rules::{Match, Rule, Verdict};
use super::search::Search;
use super::secrets;
use super::shell;
use super::subject::{Action, Session};
use super::visible::is_plain;
use crate::commands::Command;
use crate::paths;

/// Variables that change how much output there is and how it looks, and nothing else, as long as their values are as simple
/// as their purpose. Those that make programs log more, such as `RUST_LOG`, are not here: logs may have keys in them.
const HARMLESS_VARIABLES: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLAUDECODE",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GIT_TERMINAL_PROMPT",
    "LINES",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PY_COLORS",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_TEST_THREADS",
    "TERM",
];

const NAMES_SECRET: &str = "the command names a file that may hold secrets";

/// Everything that a decision rests on.
pub(super) struct Judge<'a> {
    pub(super) policy: Policy,
    pub(super) session: &'a Session,
    pub(super) rules: Vec<&'a Rule>,
    pub(super) ground: &'a Ground,
}

/// What was found about one action.
pub(super) struct Opinion {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    pub(super) suggestion: Vec<Rule>,
}

impl Opinion {
    pub(super) fn ask(reason: impl Into<String>) -> Self {
        Opinion { verdict: Verdict::Ask, reason: reason.into(), suggestion: Vec::new() }
    }

    fn allow(reason: impl Into<String>) -> Self {
        Opinion { verdict: Verdict::Allow, reason: reason.into(), suggestion: Vec::new() }
    }

    fn by_rule(rule: &Rule) -> Self {
        let origin = if rule.origin.is_empty() { "a new rule" } else { &rule.origin };
        let reason = format!("`{}` says: {rule}", super::visible(origin));
        Opinion { verdict: rule.verdict, reason, suggestion: Vec::new() }
    }

    fn by_policy() -> Self {
        Opinion::allow("the mode of permissions allows it")
    }
}

impl Judge<'_> {
    pub(super) fn judge(&self, action: &Action) -> Opinion {
        match action {
            Action::Files { kind, paths } => self.judge_files(kind, paths),
            Action::Execute { command, cwd, env, paths } => self.judge_command(command, cwd.as_deref(), env, paths),
            Action::Other { kind, name, paths } => self.judge_other(kind, name.as_deref(), paths),
            Action::Unclear { kind, paths, reason } => self.judge_unclear(kind, paths, reason),
        }
    }

    /// The strongest rule that denies or asks. One of which it cannot be told whether it applies asks.
    fn guard(&self, applies: impl Fn(&Rule) -> Match) -> Option<Opinion> {
        let rules = self.rules.iter().filter(|rule| rule.verdict > Verdict::Allow);
        let found = rules.map(|rule| (applies(rule), rule)).filter(|(applies, _)| *applies > Match::No);
        let (_, _, opinion) = found
            .map(|(applies, rule)| {
                let mut opinion = Opinion::by_rule(rule);
                if applies == Match::Maybe {
                    opinion.verdict = Verdict::Ask;
                    opinion.reason = format!("it cannot be told whether this applies: {}", opinion.reason);
                }
                (opinion.verdict, applies, opinion)
            })
            .reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best })?;
        Some(opinion)
    }

    fn allowing(&self, allows: impl Fn(&Rule) -> bool) -> Option<&Rule> {
        self.rules.iter().copied().find(|rule| rule.verdict == Verdict::Allow && allows(rule))
    }

    fn places(&self, paths: &[String]) -> Vec<Place<'_>> {
        paths.iter().map(|path| self.ground.place(path, &self.session.cwd)).collect()
    }

    fn judge_files(&self, kind: &ToolKind, paths: &[String]) -> Opinion {
        let mut weakest = None;
        let mut suggestion = Vec::new();
        for place in self.places(paths) {
            let mut opinion = self.judge_file(kind, &place);
            suggestion.append(&mut opinion.suggestion);
            if weakest.as_ref().is_none_or(|weakest: &Opinion| opinion.verdict > weakest.verdict) {
                weakest = Some(opinion);
            }
        }
        let opinion = weakest.unwrap_or_else(|| Opinion::ask("there is no file to look at"));
        Opinion { suggestion, ..opinion }
    }

    fn judge_file(&self, kind: &ToolKind, place: &Place<'_>) -> Opinion {
        let applies = |rule: &Rule| if rule.guards_path(kind, place) { Match::Yes } else { Match::No };
        if let Some(opinion) = self.guard(applies) {
            return opinion;
        }
        if let Some(rule) = self.allowing(|rule| rule.allows_path(kind, place)) {
            return Opinion::by_rule(rule);
        }
        let by_mode = match self.policy {
            Policy::All => return Opinion::by_policy(),
            Policy::Ask | Policy::None => false,
            Policy::Reads => matches!(kind, ToolKind::Read | ToolKind::Search),
            Policy::Edits | Policy::Confined => {
                matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Edit | ToolKind::Move)
            }
        };
        if place.is_guarded(kind) {
            return Opinion::ask("the file may hold secrets or decide what other programs run");
        }
        if !place.is_beneath_roots() {
            return Opinion::ask("the file is not beneath the directories of the session");
        }
        if by_mode {
            return Opinion::by_policy();
        }
        Opinion { suggestion: self.suggest_path(kind, place), ..Opinion::ask("no rule decides this") }
    }

    fn suggest_path(&self, kind: &ToolKind, place: &Place<'_>) -> Vec<Rule> {
        // What is deleted is gone: a rule for it names the one file.
        let pattern = |path: &Path| {
            let exact = *kind == ToolKind::Delete;
            let path = if exact { path } else { path.parent()? };
            let escaped = Pattern::escape(path.to_str()?);
            Some(if exact { escaped } else { format!("{}/**", escaped.trim_end_matches('/')) })
        };
        let Some(pattern) = place.written().and_then(pattern) else { return Vec::new() };
        vec![Rule { kinds: vec![kind.clone()], paths: vec![pattern], ..self.new_rule() }]
    }

    fn new_rule(&self) -> Rule {
        Rule { agent: Some(self.session.agent.clone()), ..Rule::new(Verdict::Allow) }
    }

    fn judge_command(
        &self,
        command: &Command,
        cwd: Option<&str>,
        env: &[(String, Secret)],
        paths: &[String],
    ) -> Opinion {
        let mut line = match command {
            Command::Line(line) | Command::Shell { line, .. } => shell::read(line),
            Command::Words(words) => shell::from_words(words),
        };
        if command.is_for_other_shell() {
            line.distrust();
        }
        for (name, value) in env.iter().filter(|(name, value)| !is_harmless_variable(name, value.expose())) {
            line.assign(Some(value.expose().to_owned()), !name.is_empty());
        }
        let cwd = self.ground.place(cwd.unwrap_or("."), &self.session.cwd);
        let visited = line.all().filter_map(|words| match words.as_slice() {
            [Some(cd), Some(path), ..] if cd == "cd" => Some(path),
            [_, Some(option), Some(path), ..] if option == "-C" => Some(path),
            _ => None,
        });
        let execution = Execution::new(cwd, self.places(paths), visited);
        if let Some(opinion) = self.guard(|rule| rule.guards_execution(&execution, &line)) {
            return opinion;
        }
        if self.policy == Policy::All {
            return Opinion::by_policy();
        }
        let names_secret = |words: &[String]| words.iter().skip(1).any(|word| secrets::is_in_word(word));
        if self.policy == Policy::Confined {
            let known = |words: &Vec<Option<String>>| words.iter().flatten().cloned().collect::<Vec<_>>();
            return match line.all().any(|words| names_secret(&known(words))) {
                true => Opinion::ask(NAMES_SECRET),
                false => Opinion::allow("it is confined"),
            };
        }
        let commands = match line.plain() {
            Ok(commands) => commands,
            Err(_) if line.all().any(|words| names_secret(&words.iter().flatten().cloned().collect::<Vec<_>>())) => {
                return Opinion::ask(NAMES_SECRET);
            }
            Err(reason) => return Opinion::ask(format!("the command is more than its words: {reason}")),
        };
        if !execution.cwd.is_beneath_roots() || execution.places.iter().any(|place| !place.is_beneath_roots()) {
            return Opinion::ask("the command works outside the directories of the session");
        }
        if !env.iter().all(|(name, value)| is_harmless_variable(name, value.expose())) {
            return Opinion::ask("the command is given variables that may change what it does");
        }
        // Where a command runs depends on whether a `cd` before it succeeds, so its paths have to be right everywhere.
        let is_searched = has_startup_files(command);
        let mut directories: Vec<PathBuf> = execution.cwd.written().map(Path::to_path_buf).into_iter().collect();
        let mut rest = Vec::new();
        for words in commands {
            let (there, inner) = without_directory(words);
            let targets = there.and_then(|there| self.targets(&there, &directories, false));
            match self.targets(words, &directories, is_searched) {
                Some(targets) => directories.extend(targets),
                None if let Some(targets) = targets => {
                    directories.extend(targets);
                    rest.push((words, inner));
                }
                None => rest.push((words, words.clone())),
            }
            directories.sort_unstable();
            directories.dedup();
            if directories.len() > MAX_DIRECTORIES {
                return Opinion::ask("it changes the directory too often");
            }
        }
        let workplace = Workplace { ground: self.ground, directories };
        let mut found = None;
        let mut partly_named = None;
        let mut suggestion: Vec<Rule> = Vec::new();
        for (whole, words) in &rest {
            if workplace.misleads(words) {
                return Opinion::ask(
                    "the directory is a repository without a work tree, whose settings may run programs",
                );
            }
            let allows = |words: &[String], rule: &Rule| rule.allows_command(words, &workplace);
            match self.allowing(|rule| allows(words, rule) || allows(whole, rule)) {
                Some(rule) => found = found.or(Some(rule)),
                // As with the file itself, a yes is for this once.
                None if names_secret(words) || workplace.shows_secret(words) => return Opinion::ask(NAMES_SECRET),
                None => {
                    let named = self.allowing(|rule| rule.names_beginning_of(words));
                    partly_named = partly_named.or(named.map(|_| programs::limits(words)));
                    let Some((command, args)) = programs::suggestion(words, &workplace) else {
                        return Opinion::ask("no rule can say what this command runs");
                    };
                    suggestion.push(Rule { command, args, ..self.new_rule() });
                }
            }
        }
        match found {
            Some(rule) if suggestion.is_empty() => Opinion::by_rule(rule),
            None if suggestion.is_empty() => Opinion::ask("no rule decides this"),
            _ if let Some(limits) = partly_named => {
                let reason =
                    format!("a rule allows this command, but these arguments are not known to be harmless{limits}");
                Opinion { suggestion, ..Opinion::ask(reason) }
            }
            _ => Opinion { suggestion, ..Opinion::ask("no rule decides this command, or not all of it") },
        }
    }

    /// Where a `cd` may lead from one of these directories. One to a directory of the session needs no rule: agents write it
    /// before commands that do. `None` for every other command.
    fn targets(&self, words: &[String], from: &[PathBuf], is_searched: bool) -> Option<Vec<PathBuf>> {
        let [cd, path] = words else { return None };
        // Shells drop the name before `..`, the file system follows it. And `:` is for addresses.
        let is_plain = !Path::new(path).components().any(|part| part == Component::ParentDir) && !path.contains(':');
        if cd != "cd" || !is_plain {
            return None;
        }
        if !path.starts_with('/') {
            // `-` and `+` stand for earlier directories, and CDPATH for others altogether.
            let is_name = !path.is_empty() && !path.starts_with(['-', '+', '~']);
            // What is not there yet may be a link to anywhere by then.
            let is_there = |directory: &PathBuf| paths::to_look_at(directory, path).is_some_and(|path| path.is_dir());
            let exists = from.iter().any(is_there);
            if !is_name || !exists || (is_searched && !path.starts_with("./")) {
                return None;
            }
        }
        let places = from.iter().map(|directory| self.ground.place(path, directory));
        places.map(|place| place.written().filter(|_| place.is_beneath_roots()).map(Path::to_path_buf)).collect()
    }

    fn judge_other(&self, kind: &ToolKind, name: Option<&str>, paths: &[String]) -> Opinion {
        let places = self.places(paths);
        if let Some(opinion) = self.guard(|rule| rule.guards_tool(kind, name, &places)) {
            return opinion;
        }
        if let Some(rule) = self.allowing(|rule| rule.allows_tool(kind, name, &places)) {
            return Opinion::by_rule(rule);
        }
        match self.policy {
            Policy::All => Opinion::by_policy(),
            Policy::Reads | Policy::Edits | Policy::Confined if *kind == ToolKind::Think && places.is_empty() => {
                Opinion::by_policy()
            }
            _ if let Some(name) = name => {
                Opinion { suggestion: self.suggest_tool(name), ..Opinion::ask("no rule decides this") }
            }
            _ if matches!(kind, ToolKind::Other(_)) => Opinion::ask("what it does is of an unknown kind"),
            _ => {
                let rule = Rule { kinds: vec![kind.clone()], ..self.new_rule() };
                Opinion { suggestion: vec![rule], ..Opinion::ask("no rule decides this") }
            }
        }
    }

    /// The rule for exactly this tool. A name that does not look like what it is cannot be agreed to.
    fn suggest_tool(&self, name: &str) -> Vec<Rule> {
        if name.is_empty() || !name.chars().all(is_plain) {
            return Vec::new();
        }
        vec![Rule { tools: vec![Pattern::escape(name)], ..self.new_rule() }]
    }

    fn judge_unclear(&self, kind: &ToolKind, paths: &[String], reason: &str) -> Opinion {
        let places = self.places(paths);
        // What is not told may be anything that a rule denies.
        let applies = |rule: &Rule| match rule.command.is_empty() {
            true if !rule.is_for_kind(kind) => Match::No,
            true if !rule.tools.is_empty() => Match::Maybe,
            true if rule.paths.is_empty() || places.iter().any(|place| rule.guards_path(kind, place)) => Match::Yes,
            _ => Match::Maybe,
        };
        match self.guard(applies) {
            Some(opinion) => opinion,
            None if self.policy == Policy::All => Opinion::by_policy(),
            None => Opinion::ask(reason),
        }
    }
}

/// The directories that a command may run in.
struct Workplace<'a> {
    ground: &'a Ground,
    directories: Vec<PathBuf>,
}

impl Workplace<'_> {
    /// Whether an argument leads to a secret by another name, as a link does.
    fn shows_secret(&self, command: &[String]) -> bool {
        let is_secret =
            |directory: &PathBuf, word: &str| self.ground.place(word, directory).is_guarded(&ToolKind::Read);
        let words = command.iter().skip(1).filter(|word| self.exists(word));
        words.into_iter().any(|word| self.directories.iter().any(|directory| is_secret(directory, word)))
    }

    /// Whether a command finds settings there that nobody has looked at.
    fn misleads(&self, command: &[String]) -> bool {
        let is_git =
            arguments::without_timeout(command).first().is_some_and(|program| programs::name(program) == "git");
        let is_bare = |directory: &PathBuf| {
            // A link may lead into one.
            let real = directory.canonicalize();
            is_in_bare_repository(directory) || real.is_ok_and(|real| is_in_bare_repository(&real))
        };
        is_git && self.directories.iter().any(is_bare)
    }
}

impl Surroundings for Workplace<'_> {
    fn may_touch(&self, path: &str, kind: &ToolKind) -> bool {
        // Addresses and `~` mean something to agents, and are names like any others to programs.
        if path.starts_with("file:") || path.starts_with('~') {
            return false;
        }
        let places = self.directories.iter().map(|directory| self.ground.place(path, directory));
        !self.directories.is_empty()
            && places.into_iter().all(|place| place.is_beneath_roots() && !place.is_guarded(kind))
    }

    fn exists(&self, path: &str) -> bool {
        // What cannot be looked at counts, so that it is asked about.
        self.directories
            .iter()
            .any(|directory| paths::to_look_at(directory, path).is_none_or(|path| path.symlink_metadata().is_ok()))
    }

    fn is_directory(&self, path: &str) -> bool {
        self.directories.iter().any(|directory| paths::to_look_at(directory, path).is_none_or(|path| path.is_dir()))
    }

    fn holds_secrets(&self, path: &str, search: &Search) -> bool {
        let is_secret = |directory: &Path, path: &Path| {
            path.to_str().is_none_or(|path| self.ground.place(path, directory).is_guarded(&ToolKind::Read))
        };
        self.directories.iter().any(|directory| {
            paths::to_look_at(directory, path)
                .is_none_or(|found| search.finds_secret(&found, &|path| is_secret(directory, path)))
        })
    }
}

/// Whether git would take a directory for a repository without a work tree. One may come with a project, as files like any
/// others, and its settings name programs.
fn is_in_bare_repository(directory: &Path) -> bool {
    let candidates = directory.ancestors().take_while(|ancestor| !ancestor.join(".git").exists());
    candidates.into_iter().any(|ancestor| ancestor.join("HEAD").exists() && ancestor.join("objects").exists())
}

/// What `git -C DIRECTORY` is: a `cd` for this command, and the command without it.
fn without_directory(words: &[String]) -> (Option<Vec<String>>, Vec<String>) {
    match words {
        [git, option, directory, inner @ ..] if git == "git" && option == "-C" && !inner.is_empty() => {
            let command = std::iter::once(git).chain(inner).cloned().collect();
            (Some(vec!["cd".into(), directory.clone()]), command)
        }
        _ => (None, words.to_vec()),
    }
}

/// Whether a shell reads files of the user before its line, which may set CDPATH. Children are given none.
fn has_startup_files(command: &Command) -> bool {
    match command {
        Command::Shell { shell, flag, .. } => flag != "-c" || programs::name(shell) == "zsh",
        Command::Line(_) | Command::Words(_) => false,
    }
}

/// Whether a variable with this value changes nothing about what a command does.
pub(super) fn is_harmless_variable(name: &str, value: &str) -> bool {
    const SHELLS: &[&str] = &["/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh"];
    let simple = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let pager = matches!(name, "PAGER" | "GIT_PAGER") && value == "cat";
    let shell = name == "SHELL" && SHELLS.contains(&value);
    pager || shell || (HARMLESS_VARIABLES.contains(&name) && value.chars().all(simple))
}
