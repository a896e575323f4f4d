//! A question for permission as lines of text, for a dialog and for a plain terminal: the agent's own words first, one
//! line of them and marked; why it is asked; then what would be done, whole, directly above the choices.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache_host::permission::{self, Change, Question, Scope};
use attache_proto::model::permission::{PermissionOption, PermissionOptionId};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use similar::{ChangeTag, TextDiff};

use crate::text::{columns, cut, cut_line, cut_start, flow, shown, tamed, without_tabs, wrap_spans, wrap_words};
use crate::theme::Theme;

/// A question for a small change is not to take more lines than this, so there is less context around the change.
const SHORT: usize = 8;

/// A question of more lines than this offers the pager.
pub(super) const LONG: usize = 20;

/// How many lines an agent gets to show what nothing else tells.
const SHOWN: usize = 4;

/// How many files that an agent merely names are shown.
const NAMED: usize = 3;

/// As many blanks in a row are told by their number: nobody writes so many, unless to push something out of sight.
pub(super) const BLANKS: usize = 16;

/// The same within a change, where code is indented.
const INDENTATION: usize = 64;

/// Beyond this many lines or bytes the words that differ within a line are not looked for.
const WORDS_LIMIT: usize = 2_000;
const WORDS_BYTES: usize = 256 * 1024;

/// Nobody decides anything on fewer columns than this, and a long text would have a row for each letter.
pub(super) const LEAST_WIDTH: usize = 16;

/// Whoever waits for a question would rather have a longer diff than wait longer for a shorter one. This is for all
/// changes of a question together.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// No more bytes, lines and rows than this are laid out: each row takes some hundred bytes of memory. What is longer is
/// read in the pager, as plain text.
const MOST_BYTES: usize = 256 << 10;
const MOST_LINES: usize = 10_000;
const MOST_ROWS: usize = 20_000;

/// The keys of the agent's own answers: none that is ours.
const AGENTS_KEYS: &str = "123456789bcdfghijklmoqtuvwxz";

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionReply {
    /// Yes, for this long. What is for longer than once is remembered as the rules that the question suggests.
    Allow(Scope),
    /// One of the agent's own answers.
    Option(PermissionOptionId),
    /// No, and why.
    Deny {
        /// What the agent is told.
        reason: Option<String>,
    },
    /// Not answered yet: the question is to be shown in the pager.
    OpenPager,
}

/// What a key does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// Answers.
    Reply(PermissionReply),
    /// Asks for a reason, which goes to the agent with the refusal.
    AskReason,
    /// Explains the choices.
    Explain,
}

/// One way to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The key, in lower case.
    pub key: char,
    /// A word or two.
    pub label: String,
    /// A sentence for `?`.
    pub help: String,
    /// What the key does.
    pub meaning: Meaning,
    /// Whether it allows, where it is the agent's: what an agent calls it may say the opposite.
    pub allows: Option<bool>,
}

impl Choice {
    fn is_agents(&self) -> bool {
        matches!(self.meaning, Meaning::Reply(PermissionReply::Option(_)))
    }
}

/// A question, laid out for a width.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionText {
    /// The agent's words, the reason, and what would be done. May be longer than a screen.
    pub content: Vec<Line<'static>>,
    /// What is asked, on one line, and the choices. They belong where the answer is typed.
    pub ask: Vec<Line<'static>>,
    /// Where in `ask` the choices begin.
    pub choices_at: usize,
}

/// The whole question with its choices, as lines that fit the width: at most eight for a change of one line.
pub fn question_lines(question: &Question, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let (QuestionText { mut content, ask, .. }, _) = question_text(question, &[], width, theme);
    content.extend(ask);
    content
}

/// The question with the choices of our own and those of the agent. What is very long is told by its size, and is read in
/// the pager ([`pager_text`]) before a yes counts. Whether it is.
pub fn question_text(
    question: &Question,
    options: &[PermissionOption],
    width: u16,
    theme: &Theme,
) -> (QuestionText, bool) {
    lay_out(question, options, width, theme)
}

/// The whole question as plain text, however long it is. Nothing in it acts upon a terminal.
pub fn pager_text(question: &Question) -> String {
    let mut text = format!("{} asks: {}\n\n", question.agent, question.gist);
    let mut add = |what: &str, content: &str| {
        text.push_str(what);
        text.push_str(content);
        text.push('\n');
    };
    for path in &question.paths {
        add("file: ", path);
    }
    if let Some(input) = &question.input {
        add("input: ", input);
    }
    for change in &question.changes {
        match change {
            Change::Texts { path, old: Some(old), new } if old.len() + new.len() <= MOST_BYTES => {
                let diff = diff(old, new, Instant::now() + DIFF_TIME);
                add(&format!("change of {path}:\n"), &diff.unified_diff().context_radius(3).to_string());
            }
            Change::Texts { path, old, new } => {
                if let Some(old) = old {
                    add(&format!("{path}, before:\n"), old);
                }
                add(&format!("{path}, after:\n"), new);
            }
            Change::Patch { files, patch } => {
                for file in files {
                    add("", file);
                }
                patch.iter().for_each(|patch| add("", patch));
            }
        }
    }
    for (name, value) in &question.env {
        add("with ", &format!("{name}={}", value.expose()));
    }
    if !question.commands.is_empty() {
        add("in ", &question.place());
    } else if let Some(host) = &question.host {
        add("on ", host);
    }
    for command in &question.commands {
        add("$ ", command);
    }
    attache_host::visible::harmless(&text).into_owned()
}

fn lay_out(question: &Question, options: &[PermissionOption], width: u16, theme: &Theme) -> (QuestionText, bool) {
    let width = usize::from(width).max(LEAST_WIDTH);
    let until = Instant::now() + DIFF_TIME;
    let (bytes, all_lines) = size(question);
    let mut is_too_long = bytes > MOST_BYTES || all_lines > MOST_LINES;
    let mut files = Files::of(question);
    let counts = if is_too_long { None } else { counts(question, until) };
    let ask_line = files.ask_line(question, counts, width, theme);
    let mut head: Vec<Line<'static>> =
        said(question, width, theme).iter().map(|line| cut_line(line, width, theme)).collect();
    head.extend(wrap_words(&format!("asked because {}", shown(&question.reason)), width).into_iter().map(Line::from));
    let mut agent = None;
    for rule in &question.suggestion {
        // Where each of them is shown, each may be long: nobody says yes to a rule that was cut. Whom they are for is said
        // once.
        let (what, whom) = rule.split_at(rule.rfind(" for the agent `").unwrap_or(rule.len()));
        let whom = if agent.replace(whom) == Some(whom) && !whom.is_empty() { " for the same agent" } else { whom };
        let rule = format!("{what}{whom}");
        let rule = format!("rule for s, p, a: {}", tamed(rule.replace('\n', " ")));
        head.extend(wrap_words(&rule, width).into_iter().map(|row| Line::styled(row, theme.dim)));
    }
    let choose = |lines: usize| {
        let choices = choices(question, options, lines > LONG);
        choice_lines(&choices, width, theme)
    };
    let fixed = head.len() + ask_line.len() + choose(0).len();
    // As much context as a short question has room for, and the usual amount in a long one.
    let body = |context| done(question, &files, context, width, theme, until);
    let bare = if is_too_long { Vec::new() } else { body(0) };
    let is_short = |body: &Vec<Line<'static>>| fixed + body.len() <= SHORT;
    is_too_long |= bare.len() > MOST_ROWS;
    let body = if is_too_long {
        let told = format!(
            "{bytes} bytes in {all_lines} lines, too long to be shown here: read it in the pager (e), then decide"
        );
        wrap_words(&told, width).into_iter().map(|row| Line::styled(row, theme.warning)).collect()
    } else if is_short(&bare) {
        let mut contexts = [body(2), body(1)];
        let [_, smallest] = &mut contexts;
        // The line before says more about a place than the line after.
        if fixed + smallest.len() == SHORT + 1 && smallest.last() != bare.last() {
            smallest.pop();
        }
        contexts.into_iter().find(is_short).unwrap_or(bare)
    } else {
        body(3)
    };
    let choices = choose(if is_too_long { LONG + 1 } else { fixed + body.len() });
    head.extend(body);
    let mut ask = ask_line;
    let choices_at = ask.len();
    ask.extend(choices);
    (QuestionText { content: head, ask, choices_at }, is_too_long)
}

/// How many bytes and lines would be shown of what would be done.
fn size(question: &Question) -> (usize, usize) {
    let changes = question.changes.iter().flat_map(|change| match change {
        Change::Texts { path, old, new } => vec![path, old.as_ref().unwrap_or(path), new],
        Change::Patch { files, patch } => files.iter().chain(patch).collect(),
    });
    let texts = question.commands.iter().chain(&question.paths).chain(&question.input).chain(changes);
    let count = |(bytes, lines), text: &String| (bytes + text.len(), lines + text.lines().count());
    let (bytes, lines) = texts.fold((0, 0), count);
    let env = question.env.iter().map(|(name, value)| name.len() + value.expose().len());
    (bytes + env.sum::<usize>(), lines + question.env.len())
}

/// All ways to answer, in the order to show them. Those of the agent come last, in its order, and have digits.
pub fn choices(question: &Question, options: &[PermissionOption], is_long: bool) -> Vec<Choice> {
    let choice = |key, label: &str, help: &str, meaning| Choice {
        key,
        label: label.into(),
        help: help.into(),
        meaning,
        allows: None,
    };
    // An agent may offer no answer that says as much as ours.
    let can_allow = |scope| options.is_empty() || permission::allow(options, scope).is_ok();
    let mut choices = Vec::new();
    let scopes = [
        ('y', Scope::Once, "yes", "do this once, exactly as shown"),
        ('s', Scope::Session, "session", "do this, and what the rule says, until the session ends"),
        ('p', Scope::Project, "project", "do this, and what the rule says, in all sessions of this project"),
        ('a', Scope::Always, "always", "do this, and what the rule says, in all sessions everywhere"),
    ];
    for (key, scope, label, help) in scopes {
        let can_remember = scope == Scope::Once || !question.suggestion.is_empty();
        if can_remember && can_allow(scope) {
            choices.push(choice(key, label, help, Meaning::Reply(PermissionReply::Allow(scope))));
        }
        if scope == Scope::Once {
            let deny = Meaning::Reply(PermissionReply::Deny { reason: None });
            choices.push(choice('n', "no", "do not do it; Enter or Esc alone is the same", deny));
        }
    }
    choices.push(choice('r', "reason", "do not do it, and tell the agent why", Meaning::AskReason));
    if is_long {
        let pager = Meaning::Reply(PermissionReply::OpenPager);
        choices.push(choice('e', "pager", "read all of this in the pager, then decide", pager));
    }
    choices.push(choice('?', "help", "explain these keys", Meaning::Explain));
    for (option, key) in permission::answerable(options).zip(AGENTS_KEYS.chars()) {
        let name = shown(&option.name);
        let means = if option.kind.is_allow() { "allows" } else { "does not allow" };
        let help = format!("answer the agent \"{name}\", which {means} this; what else it means the agent decides");
        let reply = Meaning::Reply(PermissionReply::Option(option.option_id.clone()));
        let allows = Some(option.kind.is_allow());
        choices.push(Choice { key, label: name, help, meaning: reply, allows });
    }
    choices
}

/// What a typed line answers. An empty one is no; `None` is none of the choices.
pub fn meaning(typed: &str, question: &Question, options: &[PermissionOption]) -> Option<Meaning> {
    let typed = typed.trim().to_lowercase();
    let key = match typed.as_str() {
        "" | "no" => 'n',
        "yes" => 'y',
        other => {
            let mut letters = other.chars();
            let key = letters.next()?;
            letters.next().is_none().then_some(key)?
        }
    };
    choices(question, options, true).into_iter().find(|choice| choice.key == key).map(|choice| choice.meaning)
}

/// What each key does, for `?`.
pub fn explanation_lines(choices: &[Choice], width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let room = usize::from(width).saturating_sub(4);
    let mut lines = Vec::new();
    for choice in choices {
        for (index, row) in wrap_words(&choice.help, room).into_iter().enumerate() {
            let key = if index == 0 { format!(" {}  ", choice.key) } else { " ".repeat(4) };
            lines.push(Line::from(vec![Span::styled(key, theme.accent), Span::raw(row)]));
        }
    }
    lines
}

fn choice_lines(choices: &[Choice], width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (ours, agents): (Vec<&Choice>, Vec<&Choice>) = choices.iter().partition(|choice| !choice.is_agents());
    let piece = |choice: &&Choice| {
        // A capital letter is what Enter means.
        let key = if choice.key == 'n' { 'N' } else { choice.key };
        let key = Span::styled(format!("[{key}]"), theme.accent);
        // What an agent calls a choice may be the opposite of what it does.
        match choice.allows {
            Some(true) => vec![key, Span::raw(" allows: "), Span::styled(choice.label.clone(), theme.thought)],
            Some(false) => vec![key, Span::raw(" refuses: "), Span::styled(choice.label.clone(), theme.thought)],
            None => vec![key, Span::raw(format!(" {}", choice.label))],
        }
    };
    let mut rows = flow(ours.iter().map(piece).collect(), 2, width, theme);
    if !agents.is_empty() {
        let mut pieces = vec![vec![Span::styled("the agent's own:", theme.dim)]];
        pieces.extend(agents.iter().map(piece));
        rows.extend(flow(pieces, 2, width, theme));
    }
    rows
}

/// The agent's own words: one line, marked and cut. More only where nothing else tells what would be done.
fn said(question: &Question, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    // Our own agent says why it asks, and that is told below.
    let description = question.description.iter().filter(|words| **words != question.reason);
    let words: Vec<String> = question.title.iter().chain(description).map(|words| shown(words)).collect();
    let words = words.iter().filter(|words| !words.is_empty()).cloned().collect::<Vec<_>>().join(": ");
    // An agent may go by the path of its program, whose end tells it from others.
    let agent = cut_start(&shown(&question.agent), width / 3, theme);
    let (open, close) = (theme.sign("“", "\""), theme.sign("”", "\""));
    let quoted = |words: &str, before: usize| {
        let room = width.saturating_sub(before + columns(open) + columns(close));
        format!("{open}{}{close}", cut(words, room, theme))
    };
    let mut lines = Vec::new();
    if words.is_empty() {
        let kinds: Vec<&str> = question.kinds.iter().map(|kind| in_words(kind)).collect();
        lines.push(Line::from(cut(&format!("{agent} wants to {}", shown(&kinds.join(", "))), width, theme)));
    } else {
        let mark = format!("{agent} says: ");
        let quote = quoted(&words, columns(&mark));
        lines.push(Line::from(vec![Span::raw(mark), Span::styled(quote, theme.thought)]));
    }
    let texts: Vec<String> =
        question.texts.iter().flat_map(|text| text.lines()).map(shown).filter(|line| !line.is_empty()).collect();
    for text in texts.iter().take(SHOWN) {
        lines.push(Line::from(vec![Span::raw("it shows: "), Span::styled(quoted(text, 10), theme.thought)]));
    }
    if texts.len() > SHOWN {
        lines.push(Line::raw(cut(&format!("it shows: {} more lines", texts.len() - SHOWN), width, theme)));
    }
    if !question.named.is_empty() {
        let mut named: Vec<String> = question.named.iter().take(NAMED).map(|path| shown(path)).collect();
        if question.named.len() > NAMED {
            named.push(format!("{} more", question.named.len() - NAMED));
        }
        lines.push(Line::from(vec![
            Span::raw("it names: "),
            Span::styled(quoted(&named.join(", "), 10), theme.thought),
        ]));
    }
    lines
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
        "other" => "use a tool",
        kind => kind,
    }
}

/// Which file a question is about, if it is about one and no command.
struct Files {
    only: Option<String>,
    /// Whether the line with the choices tells its path in full.
    is_in_ask: bool,
}

impl Files {
    fn of(question: &Question) -> Self {
        let cwd = Path::new(&question.cwd);
        let changed = question.changes.iter().filter_map(changed_file);
        let mut files = question.paths.iter().map(String::as_str).chain(changed);
        let first = files.next();
        let only = first.filter(|first| {
            let first = cwd.join(first);
            files.all(|other| cwd.join(other) == first)
        });
        let is_patch = question.changes.iter().any(|change| changed_file(change).is_none());
        // The line with the choices would say less than the agent's input does.
        let only = only.filter(|_| question.commands.is_empty() && question.input.is_none() && !is_patch);
        Files { only: only.map(|file| relative(file, &question.cwd)), is_in_ask: false }
    }

    /// What is asked, on one line if it fits, with the digest of what would be done.
    fn ask_line(
        &mut self,
        question: &Question,
        counts: Option<String>,
        width: usize,
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let digest = format!("({})", shown(&question.digest));
        let gist = match &self.only {
            Some(path) => {
                let kinds = shown(&question.kinds.join(", "));
                let room = width.saturating_sub(columns(&kinds) + 3);
                self.is_in_ask = columns(path) <= room;
                // A path that is told in full above may be cut here, so that all is on one line.
                let after = columns(&digest) + 2 + counts.as_ref().map_or(0, |counts| columns(counts) + 1);
                let room = if self.is_in_ask { room } else { room.saturating_sub(after).max(8).min(room) };
                format!("{kinds} `{}`", cut_start(path, room, theme))
            }
            None => shown(&question.gist),
        };
        let mut pieces = vec![vec![Span::styled(gist, theme.user)]];
        pieces.extend(counts.map(|counts| vec![Span::raw(counts)]));
        pieces.push(vec![Span::styled(digest, theme.dim), Span::raw("?")]);
        flow(pieces, 1, width, theme)
    }
}

/// The file that a change is of, if it is of one and adds or modifies it.
fn changed_file(change: &Change) -> Option<&str> {
    match change {
        Change::Texts { path, .. } => Some(path),
        Change::Patch { files, .. } => match files.as_slice() {
            [file] => file.strip_prefix("add ").or_else(|| file.strip_prefix("modify ")),
            _ => None,
        },
    }
}

/// The lines of a patch without what only repeats the name of its one file.
fn patch_lines<'a>(patch: &'a str, file: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let mut is_before = true;
    let is_repetition = move |line: &str| {
        let Some(file) = file.filter(|file| !file.is_empty()) else { return false };
        let names_file = |path: &str| {
            let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
            path == file || bare == file || bare == file.trim_start_matches('/')
        };
        let (old, new) = (line.strip_prefix("--- "), line.strip_prefix("+++ "));
        let index = line.strip_prefix("index ").map(|rest| rest.split(' ').nth(1));
        // Another mode, such as that of a program or a link, is no repetition, and neither is that a file goes.
        line == "new file mode 100644"
            || matches!(index, Some(None | Some("100644")))
            || old.is_some_and(|path| path == "/dev/null" || names_file(path))
            || new.is_some_and(names_file)
            || line.strip_prefix("diff --git ").is_some_and(|both| both.split(' ').all(names_file))
    };
    patch.lines().filter(move |line| {
        is_before &= !line.starts_with("@@");
        !(is_before && file.is_some() && is_repetition(line))
    })
}

/// How many lines are added and removed, where both texts are known.
fn counts(question: &Question, until: Instant) -> Option<String> {
    let (mut added, mut removed, mut is_whole) = (0, 0, false);
    for change in &question.changes {
        let (old, new) = match change {
            Change::Texts { old, new, .. } => (old, new),
            Change::Patch { patch: Some(patch), .. } => {
                let lines = || patch.lines().skip_while(|line| !line.starts_with("@@"));
                added += lines().filter(|line| line.starts_with('+')).count();
                removed += lines().filter(|line| line.starts_with('-')).count();
                continue;
            }
            Change::Patch { patch: None, .. } => return None,
        };
        is_whole |= old.is_none();
        let diff = diff(old.as_deref().unwrap_or_default(), new, until);
        for op in diff.ops().iter().filter(|op| op.tag() != similar::DiffTag::Equal) {
            added += op.new_range().len();
            removed += op.old_range().len();
        }
    }
    match (question.changes.len(), is_whole) {
        (0, _) => None,
        // Nobody said what was there before.
        (_, true) => Some(format!("+{added}, new or replaced as a whole")),
        (_, false) => Some(format!("+{added} -{removed}")),
    }
}

/// A path beneath the directory, as seen from there. Any other stays as it is.
fn relative(path: &str, directory: &str) -> String {
    let rest = path.strip_prefix(directory.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    let is_plain =
        |rest: &&str| !rest.is_empty() && !rest.starts_with('/') && !rest.split('/').any(|part| part == "..");
    tamed(rest.filter(is_plain).unwrap_or(path).to_owned())
}

/// What would be done, whole.
fn done(
    question: &Question,
    files: &Files,
    context: usize,
    width: usize,
    theme: &Theme,
    until: Instant,
) -> Vec<Line<'static>> {
    let base = if question.commands.is_empty() { question.cwd.as_str() } else { "" };
    let mut lines = Vec::new();
    let plain = |lines: &mut Vec<Line<'static>>, mark: &'static str, text: &str, style: Style| {
        for (index, row) in without_gaps(text, BLANKS).lines().enumerate() {
            let mark = if index == 0 { mark.to_owned() } else { " ".repeat(columns(mark)) };
            let indent = columns(&mark);
            let text = Span::styled(tamed(without_tabs(row)), style);
            lines.extend(wrap_spans(vec![Span::styled(mark, theme.dim), text], width, indent));
        }
    };
    let cwd = Path::new(&question.cwd);
    let changed: BTreeSet<PathBuf> =
        question.changes.iter().filter_map(changed_file).map(|path| cwd.join(path)).collect();
    let is_shown_below = |path: &String| changed.contains(&cwd.join(path));
    for path in question.paths.iter().filter(|path| !files.is_in_ask && !is_shown_below(path)) {
        plain(&mut lines, "", &relative(path, base), theme.user);
    }
    if let Some(input) = &question.input {
        plain(&mut lines, "input: ", input, theme.text);
    }
    for change in &question.changes {
        match change {
            Change::Texts { path, old, new } => {
                if !files.is_in_ask {
                    plain(&mut lines, "", &relative(path, base), theme.user);
                }
                show_diff(&mut lines, (old.as_deref().unwrap_or_default(), new), context, width, theme, until);
            }
            Change::Patch { files: changed, patch } => {
                let only = changed_file(change);
                for file in changed.iter().filter(|_| only.is_none() || !files.is_in_ask) {
                    let file = file
                        .split_once(' ')
                        .map_or_else(|| file.clone(), |(what, path)| format!("{what} {}", relative(path, base)));
                    plain(&mut lines, "", &file, theme.user);
                }
                for line in patch.iter().flat_map(|patch| patch_lines(patch, only)) {
                    let style = match line.as_bytes().first() {
                        Some(b'+') => theme.added,
                        Some(b'-') => theme.removed,
                        Some(b'@') => theme.dim,
                        _ => theme.text,
                    };
                    lines.extend(wrap_spans(
                        vec![Span::styled(tamed(without_tabs(&without_gaps(line, INDENTATION))), style)],
                        width,
                        1,
                    ));
                }
            }
        }
    }
    for (name, value) in &question.env {
        plain(&mut lines, "with ", &format!("{name}={}", value.expose()), theme.text);
    }
    if !question.commands.is_empty() {
        plain(&mut lines, "in ", &question.place(), theme.text);
    } else if let Some(host) = &question.host {
        plain(&mut lines, "on ", host, theme.text);
    }
    for command in &question.commands {
        plain(&mut lines, "$ ", command, theme.user);
    }
    lines
}

fn diff<'a>(old: &'a str, new: &'a str, until: Instant) -> TextDiff<'a, 'a, str> {
    TextDiff::configure().deadline(until).diff_lines(old, new)
}

/// A change with the numbers of its lines; words that differ are marked.
fn show_diff(
    lines: &mut Vec<Line<'static>>,
    (old, new): (&str, &str),
    context: usize,
    width: usize,
    theme: &Theme,
    until: Instant,
) {
    let diff = diff(old, new, until);
    let digits = diff.old_len().max(diff.new_len()).to_string().len();
    // Numbers are for those who have room for them.
    let digits = if width >= 40 { digits } else { 0 };
    let indent = if digits > 0 { digits + 3 } else { 2 };
    let with_words = diff.old_len() + diff.new_len() <= WORDS_LIMIT && old.len() + new.len() <= WORDS_BYTES;
    for (index, group) in diff.grouped_ops(context).iter().enumerate() {
        if index > 0 {
            let gap = format!("{}{}", " ".repeat(indent), theme.sign("⋯", "..."));
            lines.push(Line::styled(cut(&gap, width, theme), theme.dim));
        }
        let mut row = |tag: ChangeTag, number: Option<usize>, parts: Vec<(bool, String)>, missing_newline: bool| {
            let (sign, style, word) = match tag {
                ChangeTag::Delete => ('-', theme.removed, theme.removed_word),
                ChangeTag::Insert => ('+', theme.added, theme.added_word),
                ChangeTag::Equal => (' ', theme.text, theme.text),
            };
            let number = match number {
                Some(number) if digits > 0 => format!("{:>digits$} ", number + 1),
                _ => String::new(),
            };
            let mut spans = vec![Span::styled(number, theme.dim), Span::styled(format!("{sign} "), style)];
            for (is_word, part) in parts {
                let part = part.strip_suffix('\n').map_or(part.as_str(), |part| part);
                let part = tamed(without_tabs(&without_gaps(part, INDENTATION)));
                spans.push(Span::styled(part, if is_word { word } else { style }));
            }
            if missing_newline && tag != ChangeTag::Equal {
                spans.push(Span::styled(" (no newline at the end)", theme.dim));
            }
            lines.extend(wrap_spans(spans, width, indent));
        };
        for op in group {
            if with_words {
                for change in diff.iter_inline_changes_deadline(op, Some(until)) {
                    let parts =
                        change.iter_strings_lossy().map(|(is_word, part)| (is_word, part.into_owned())).collect();
                    let number = change.old_index().filter(|_| change.tag() == ChangeTag::Delete);
                    row(change.tag(), number.or(change.new_index()), parts, change.missing_newline());
                }
            } else {
                for change in diff.iter_changes(op) {
                    let number = change.old_index().filter(|_| change.tag() == ChangeTag::Delete);
                    let parts = vec![(false, change.value().to_owned())];
                    row(change.tag(), number.or(change.new_index()), parts, change.missing_newline());
                }
            }
        }
    }
}

/// A text in which long runs of blanks and empty lines are told by their number.
pub(super) fn without_gaps(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(4096));
    let mut rest = text;
    while let Some(begin) = rest.find(is_blank) {
        shown.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let after = rest.trim_start_matches(is_blank);
        let run = &rest[..rest.len() - after.len()];
        let lines = run.matches('\n').count();
        let blanks = run.chars().count() - lines;
        if lines > 3 {
            let _ = write!(shown, "\n[{} empty lines]\n", lines - 1);
        } else if blanks > most {
            let _ = write!(shown, "[{blanks} blanks]{}", "\n".repeat(lines));
        } else {
            shown.push_str(run);
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// What is seen as nothing, whatever it is called.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests;
