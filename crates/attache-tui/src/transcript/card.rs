//! What the pieces of an entry look like.

use attache_host::visible::harmless;
use attache_proto::model::content::ContentBlock;
use attache_proto::model::diff::{Diff, DiffChange};
use attache_proto::model::error::ErrorObject;
use attache_proto::model::notice::{CompactionStatus, NoticeSeverity};
use attache_proto::model::prompt::StopReason;
use attache_proto::model::tool::{Location, ToolCallContent, ToolCallStatus, ToolKind};
use attache_proto::view::{Compaction, Entry, Message, MessageRole, PeerMessage, SessionView, Terminal, ToolCall};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::TurnEnd;
use crate::ansi;
use crate::diff;
use crate::highlight::Highlight;
use crate::image::{counted, placeholder};
use crate::markdown::{self, Part, PartKind};
use crate::theme::Theme;
use crate::wrap::{Break, Prefix, clean, clean_line, cut, cut_start, spans_width, start_of, width_of, wrap};

/// How much content of a tool call is shown while it is folded.
pub(super) const MAX_FOLDED_CONTENTS: usize = 4;

/// How much content of a tool call is shown at most.
pub(super) const MAX_CONTENTS: usize = 500;

/// How many rows of a text or an output are shown while it is folded.
const FOLDED_ROWS: usize = 10;

/// The same for what a call that only looks has found.
const FOLDED_LOOK: usize = 2;

/// How many rows of a diff are shown while it is folded.
const FOLDED_DIFF: usize = 16;

/// How many lines of a tool's text are shown at most.
const MAX_LINES: usize = 2_000;

/// How many bytes of arguments and results are shown.
const MAX_RAW: usize = 16 << 10;

/// What is needed to lay out a piece.
pub(super) struct Context<'a> {
    pub(super) view: &'a SessionView,
    pub(super) width: usize,
    pub(super) theme: &'a Theme,
    /// Paths in here are shown relative to it.
    pub(super) root: &'a str,
    pub(super) is_unfolded: bool,
}

impl Context<'_> {
    /// A path as it is shown.
    fn path(&self, path: &str) -> String {
        let inside = path.strip_prefix(self.root).and_then(|rest| rest.strip_prefix('/'));
        let inside = inside.filter(|rest| !self.root.is_empty() && !rest.is_empty());
        clean_line(inside.unwrap_or(path))
    }

    fn line(&self, text: &str, style: Style) -> Line<'static> {
        Line::styled(cut(text, self.width, self.theme.is_unicode), style)
    }

    /// Lines behind what is drawn beside a card.
    fn beside(&self, bar: Span<'static>, lines: impl FnOnce(usize) -> Vec<Line<'static>>) -> Vec<Line<'static>> {
        let width = width_of(&bar.content);
        // No room for a bar.
        if self.width < 2 * width + 2 {
            return lines(self.width);
        }
        let with_bar = |mut line: Line<'static>| {
            let style = line.style;
            for span in &mut line.spans {
                span.style = style.patch(span.style);
            }
            line.spans.insert(0, bar.clone());
            Line::from(line.spans)
        };
        lines(self.width - width).into_iter().map(with_bar).collect()
    }

    fn card(&self, lines: impl FnOnce(usize) -> Vec<Line<'static>>) -> Vec<Line<'static>> {
        self.beside(Span::styled(self.theme.sign("  │ ", "  | "), self.theme.border), lines)
    }

    fn hidden(&self, count: usize, thing: &str) -> Line<'static> {
        Line::styled(format!("{} {}", self.theme.sign("…", "..."), counted(count, thing)), self.theme.dim)
    }

    /// The first rows, and how many there are more.
    fn folded(&self, mut lines: Vec<Line<'static>>, rows: usize) -> Vec<Line<'static>> {
        // The word takes a row of its own.
        if !self.is_unfolded && lines.len() > rows + 1 {
            let hidden = lines.len() - rows;
            lines.truncate(rows);
            lines.push(self.hidden(hidden, "more line"));
        }
        lines
    }
}

/// The empty line before a piece that is not the first.
pub(super) fn gap(context: &Context<'_>, entry: &Entry) -> Line<'static> {
    let lines = match entry {
        Entry::ToolCall(_) => Vec::new(),
        _ => behind_mark(context, entry, false, |_, _| vec![Line::default()]),
    };
    lines.into_iter().next().unwrap_or_default()
}

/// Whether there is more to see of an entry.
pub(super) fn is_foldable(entry: &Entry) -> bool {
    match entry {
        Entry::Message(message) => message.role == MessageRole::Thought,
        Entry::ToolCall(_) => true,
        Entry::Compaction(compaction) => !compaction.summary.is_empty(),
        _ => false,
    }
}

/// Whether the head of an entry begins with a spinner.
pub(super) fn has_spinner(entry: &Entry) -> bool {
    match entry {
        Entry::ToolCall(call) => call.status == ToolCallStatus::InProgress,
        Entry::Compaction(compaction) => compaction.status == CompactionStatus::InProgress,
        _ => false,
    }
}

/// A part of a text among the content of an entry.
pub(super) fn text(
    context: &Context<'_>,
    entry: &Entry,
    part: &Part,
    text: &str,
    is_first: bool,
    highlight: &mut Option<Highlight>,
) -> Vec<Line<'static>> {
    behind_mark(context, entry, is_first, |width, theme| {
        let lines = markdown::lay_out(part, text, width, theme, highlight);
        match &part.kind {
            // An empty line at the end of what a person wrote says nothing.
            PartKind::Plain => trimmed(lines),
            _ => lines,
        }
    })
}

fn trimmed(mut lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    while lines.len() > 1 && lines.last().is_some_and(|line| line.width() == 0) {
        lines.pop();
    }
    lines
}

/// Content of an entry that is not text.
pub(super) fn attachment(
    context: &Context<'_>,
    entry: &Entry,
    block: &ContentBlock,
    is_first: bool,
) -> Vec<Line<'static>> {
    behind_mark(context, entry, is_first, |width, theme| {
        let shown = placeholder(block).unwrap_or_default();
        wrap(&[Span::styled(shown, theme.accent)], width, Break::Words, &Prefix::default())
    })
}

/// Lines with what tells whose they are.
fn behind_mark(
    context: &Context<'_>,
    entry: &Entry,
    is_first: bool,
    lines: impl FnOnce(usize, &Theme) -> Vec<Line<'static>>,
) -> Vec<Line<'static>> {
    let theme = context.theme;
    let role = match entry {
        Entry::Message(message) => message.role,
        _ => MessageRole::Thought,
    };
    match role {
        MessageRole::Agent => lines(context.width, theme),
        MessageRole::User => {
            let mut is_first = is_first;
            let mut behind =
                context.beside(Span::raw("  "), |width| lines(width, &Theme { text: theme.user, ..theme.clone() }));
            for line in &mut behind {
                if std::mem::take(&mut is_first) && line.spans.first().is_some_and(|span| span.content == "  ") {
                    line.spans[0] = Span::styled(theme.sign("❯ ", "> "), theme.accent);
                }
            }
            behind
        }
        MessageRole::Thought => {
            let style = if matches!(entry, Entry::PeerMessage(_)) { theme.text } else { theme.thought };
            let theme = Theme { text: style, ..theme.clone() };
            context.beside(Span::styled(theme.sign("  ┊ ", "  : "), theme.border), |width| lines(width, &theme))
        }
    }
}

/// What an entry is.
pub(super) fn head(context: &Context<'_>, entry: &Entry) -> Vec<Line<'static>> {
    let theme = context.theme;
    match entry {
        Entry::Message(message) if message.role == MessageRole::Thought => vec![thought_head(context, message)],
        Entry::Message(_) => vec![context.line("(empty message)", theme.dim)],
        Entry::ToolCall(call) => call_head(context, call),
        Entry::Notice(notice) => {
            let (sign, word, style) = match notice.severity {
                NoticeSeverity::Info => (theme.sign("ℹ", "i"), "", theme.accent),
                NoticeSeverity::Warning => ("!", "warning: ", theme.warning),
                NoticeSeverity::Error => (theme.sign("✗", "x"), "error: ", theme.error),
                _ => (theme.sign("•", "*"), "notice: ", theme.accent),
            };
            let title = Span::styled(format!("{word}{}", clean_line(&notice.title)), style);
            let prefix = Prefix::hanging(vec![Span::styled(format!("{sign} "), style)]);
            let mut lines = wrap(&[title], context.width, Break::Words, &prefix);
            if let Some(description) = &notice.description {
                lines.extend(context.beside(Span::raw("  "), |width| {
                    let lines = markdown::lines(start_of(description, MAX_RAW), width, theme);
                    context.folded(lines, 3 * FOLDED_ROWS)
                }));
            }
            lines
        }
        Entry::Compaction(compaction) => compaction_head(context, compaction),
        Entry::PeerMessage(message) => {
            let name = |session: &Option<attache_proto::model::session::SessionId>| {
                session.as_ref().map_or_else(|| "this session".to_owned(), |id| clean_line(id.as_str()))
            };
            let (sender, recipient) = (name(&message.sender_session_id), name(&message.recipient_session_id));
            let arrow = theme.sign("→", "->");
            vec![context.line(&format!("{} {sender} {arrow} {recipient}", theme.sign("✉", "@")), theme.accent)]
        }
        _ => vec![context.line("[entry of an unknown kind]", theme.dim)],
    }
}

fn fold_sign(context: &Context<'_>) -> &'static str {
    match context.is_unfolded {
        true => context.theme.sign("▾", "v"),
        false => context.theme.sign("▸", ">"),
    }
}

fn thought_head(context: &Context<'_>, message: &Message) -> Line<'static> {
    let theme = context.theme;
    let texts = || message.content.iter().filter_map(ContentBlock::as_text);
    let lines: usize = texts().map(|text| text.trim_end().lines().count()).sum();
    let mut spans = vec![
        Span::styled(format!("{} ", fold_sign(context)), theme.dim),
        Span::styled(format!("Thought ({})", counted(lines, "line")), theme.thought),
    ];
    if !context.is_unfolded {
        let first =
            texts().flat_map(str::lines).find(|line| !line.trim().is_empty()).map(clean_line).unwrap_or_default();
        let first = first.trim_start_matches(['#', '*', ' ']).trim_end_matches('*');
        let room = context.width.saturating_sub(spans_width(&spans) + 1);
        if room > 8 && !first.is_empty() {
            spans.push(Span::styled(format!(" {}", cut(first, room, theme.is_unicode)), theme.dim));
        }
    }
    Line::from(crate::wrap::cut_spans(&spans, context.width))
}

fn compaction_head(context: &Context<'_>, compaction: &Compaction) -> Vec<Line<'static>> {
    let theme = context.theme;
    let (sign, words, style) = match &compaction.status {
        CompactionStatus::InProgress => (theme.sign("⠿", "*"), "Compacting the conversation".to_owned(), theme.accent),
        CompactionStatus::Completed => {
            (theme.sign("✓", "+"), "Conversation compacted up to here".to_owned(), theme.success)
        }
        CompactionStatus::Failed => (theme.sign("✗", "x"), "Compaction failed".to_owned(), theme.error),
        CompactionStatus::Cancelled => (theme.sign("⊘", "-"), "Compaction cancelled".to_owned(), theme.warning),
        other => ("?", format!("Compaction: {}", clean_line(other.as_str())), theme.dim),
    };
    let error = compaction.error.as_ref().map(|error| format!(": {}", clean_line(error))).unwrap_or_default();
    let fold = if compaction.summary.is_empty() { String::new() } else { format!(" {} summary", fold_sign(context)) };
    let spans = [Span::styled(format!("{words}{error}"), style), Span::styled(fold, theme.dim)];
    wrap(&spans, context.width, Break::Words, &Prefix::hanging(vec![Span::styled(format!("{sign} "), style)]))
}

fn kind_sign(kind: &ToolKind, theme: &Theme) -> &'static str {
    match kind {
        ToolKind::Read => theme.sign("→", "<"),
        ToolKind::Edit => theme.sign("✎", "~"),
        ToolKind::Delete => theme.sign("⌫", "X"),
        ToolKind::Move => theme.sign("⇄", ">"),
        ToolKind::Search => theme.sign("⌕", "?"),
        ToolKind::Execute => "$",
        ToolKind::Think => theme.sign("∴", ":"),
        ToolKind::Fetch => theme.sign("↓", "v"),
        ToolKind::SwitchMode => theme.sign("⇅", "="),
        _ => theme.sign("•", "*"),
    }
}

/// The sign of a status, its word where the sign does not say it all, and its style.
fn status_of(call: &ToolCall, theme: &Theme) -> (&'static str, String, Style) {
    let (sign, word, style) = match &call.status {
        ToolCallStatus::Failed | ToolCallStatus::Pending | ToolCallStatus::Cancelled if call.denied => {
            (theme.sign("⊘", "-"), "denied", theme.warning)
        }
        ToolCallStatus::Pending => (theme.sign("○", "."), "waiting", theme.dim),
        ToolCallStatus::InProgress => (theme.sign("⠿", "|"), "", theme.accent),
        ToolCallStatus::Paused => (theme.sign("‖", "="), "paused", theme.warning),
        ToolCallStatus::Completed => (theme.sign("✓", "+"), "", theme.success),
        ToolCallStatus::Failed => (theme.sign("✗", "x"), "failed", theme.error),
        ToolCallStatus::Cancelled if call.presumed_cancelled => (theme.sign("⊘", "-"), "cancelling", theme.warning),
        ToolCallStatus::Cancelled => (theme.sign("⊘", "-"), "cancelled", theme.warning),
        other => return ("?", clean_line(other.as_str()), theme.dim),
    };
    // Signs of ASCII do not speak for themselves.
    let word = match (&call.status, theme.is_unicode) {
        (ToolCallStatus::InProgress, false) => "running",
        (ToolCallStatus::Completed, false) => "done",
        _ => word,
    };
    (sign, word.to_owned(), style)
}

fn call_head(context: &Context<'_>, call: &ToolCall) -> Vec<Line<'static>> {
    let theme = context.theme;
    let (sign, word, style) = status_of(call, theme);
    let name = call.name.as_deref().filter(|_| call.title.trim().is_empty());
    let mut title = clean_line(name.unwrap_or(&call.title));
    if title.is_empty() {
        title = clean_line(call.kind.as_str());
    }
    let first = vec![
        Span::styled(format!("{sign} "), style),
        Span::styled(format!("{} ", kind_sign(&call.kind, theme)), theme.accent),
    ];
    let ending = if word.is_empty() { String::new() } else { format!(" {} {word}", theme.sign("·", "-")) };
    let mut lines = if context.is_unfolded {
        let spans = [Span::styled(title.clone(), theme.text), Span::styled(ending, style)];
        wrap(&spans, context.width, Break::Words, &Prefix::hanging(first))
    } else {
        let room = context.width.saturating_sub(spans_width(&first) + width_of(&ending));
        let mut spans = first;
        spans.push(Span::styled(cut(&title, room.max(1), theme.is_unicode), theme.text));
        spans.push(Span::styled(ending, style));
        vec![Line::from(crate::wrap::cut_spans(&spans, context.width))]
    };
    lines.extend(locations(context, call, &title));
    lines
}

/// The files that a tool call works on, unless its title or its diff says so.
fn locations(context: &Context<'_>, call: &ToolCall, title: &str) -> Vec<Line<'static>> {
    let theme = context.theme;
    let shown = |location: &Location| {
        let line = location.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}", context.path(&location.path))
    };
    let is_told = |location: &Location| {
        let is_changed = |content: &ToolCallContent| matches!(content, ToolCallContent::Diff(diff) if path_of(diff).as_deref() == Some(&location.path));
        title.contains(&shown(location)) || call.content.iter().take(MAX_FOLDED_CONTENTS).any(is_changed)
    };
    let limit = if context.is_unfolded { 50 } else { 3 };
    let untold: Vec<&Location> = call.locations.iter().take(1_000).filter(|location| !is_told(location)).collect();
    let room = context.width.saturating_sub(4).max(1);
    let mut lines: Vec<Line<'static>> = untold
        .iter()
        .take(limit)
        .map(|location| {
            let path = cut_start(&shown(location), room, theme.is_unicode);
            Line::from(vec![Span::raw("    "), Span::styled(path, theme.dim)])
        })
        .collect();
    if untold.len() > limit {
        let more = format!("    {} {}", theme.sign("…", "..."), counted(untold.len() - limit, "more place"));
        lines.push(context.line(&more, theme.dim));
    }
    lines
}

/// The first file of a diff.
pub(super) fn path_of(diff: &Diff) -> Option<String> {
    match diff {
        Diff::Text(diff) => Some(diff.path.clone()),
        Diff::Patch(diff) => diff.changes.iter().find_map(|change| match change {
            DiffChange::Add(change) | DiffChange::Delete(change) | DiffChange::Modify(change) => {
                Some(change.path.clone())
            }
            DiffChange::Move(change) | DiffChange::Copy(change) => Some(change.path.clone()),
            _ => None,
        }),
    }
}

/// Content of a tool call.
pub(super) fn content(context: &Context<'_>, content: &ToolCallContent, call: &ToolCall) -> Vec<Line<'static>> {
    let theme = context.theme;
    // What was only looked at is the agent's business; it can be unfolded.
    let is_look = matches!(call.kind, ToolKind::Read | ToolKind::Search | ToolKind::Fetch);
    let is_good = call.status == ToolCallStatus::Completed;
    let rows = if is_look && is_good { FOLDED_LOOK } else { FOLDED_ROWS };
    context.card(|width| match content {
        ToolCallContent::Content(block) => match &block.content {
            ContentBlock::Text(text) => tool_text(context, &text.text, width, rows),
            other => {
                let shown = placeholder(other).unwrap_or_default();
                wrap(&[Span::styled(shown, theme.accent)], width, Break::Words, &Prefix::default())
            }
        },
        ToolCallContent::Diff(changes) => {
            let lines = diff::lines(&diff::files(changes), width, theme, &|path| context.path(path));
            context.folded(lines, FOLDED_DIFF)
        }
        ToolCallContent::Terminal(shown) => match context.view.terminals.get(&shown.terminal_id) {
            Some(found) => terminal(context, found, &call.title, width),
            None => vec![Line::styled("[terminal that is not there any more]", theme.dim)],
        },
        _ => vec![Line::styled("[content of an unknown kind]", theme.dim)],
    })
}

/// Text that a tool gave back, so many rows of it while it is folded. Of a long one only the lines that are shown are
/// looked at.
fn tool_text(context: &Context<'_>, text: &str, width: usize, folded_rows: usize) -> Vec<Line<'static>> {
    let theme = context.theme;
    let text = text.trim_matches('\n');
    // Most agents put the output of a tool between fences. The card is frame enough.
    let fenced = fenced(text);
    let text = fenced.map_or(text, |(_, inner)| inner);
    let limit = if context.is_unfolded { MAX_LINES } else { folded_rows };
    let bytes = if context.is_unfolded { crate::highlight::MAX_BYTES } else { folded_rows * width.max(20) * 4 };
    let by_lines = text.match_indices('\n').nth(limit).map_or(text.len(), |(at, _)| at);
    let shown = start_of(text, by_lines.min(bytes));
    // Markdown would join lines, which is not what the output of a command means.
    let mut lines = match fenced {
        Some((language, _)) => {
            let mut highlight = Highlight::start(language, theme);
            markdown::code(shown, width, theme, Vec::new(), &mut highlight)
        }
        None if shown.contains("```") => markdown::lines(shown, width, theme),
        None => markdown::plain(shown, width, theme),
    };
    let rows = if context.is_unfolded { usize::MAX } else { folded_rows };
    let is_cut = shown.len() < text.len() || lines.len() > rows.saturating_add(1);
    if is_cut {
        let rows = lines.len().min(rows);
        let hidden_rows = lines.len() - rows;
        let hidden_lines = text[shown.len()..].matches('\n').count();
        lines.truncate(rows);
        lines.push(context.hidden((hidden_rows + hidden_lines).max(1), "more line"));
    }
    lines
}

/// The language and the code of a text that is nothing but code between fences.
fn fenced(text: &str) -> Option<(&str, &str)> {
    let (opening, rest) = text.split_once('\n')?;
    let marks = opening.len() - opening.trim_start_matches('`').len();
    let inner = rest.trim_end().strip_suffix(&opening[..marks])?;
    let is_one = marks >= 3 && inner.ends_with('\n') && !inner.contains(&opening[..marks]);
    is_one.then(|| (opening[marks..].trim(), inner.trim_end_matches('\n')))
}

fn terminal(context: &Context<'_>, terminal: &Terminal, title: &str, width: usize) -> Vec<Line<'static>> {
    let theme = context.theme;
    let mut lines = Vec::new();
    // Many agents call what they run by its command, which then stands in the line above.
    let is_told = |command: &&String| title.trim_matches('`') == command.as_str() && command.len() + 16 < width;
    if let Some(command) = terminal.command.as_ref().filter(|command| !is_told(command)) {
        let prefix = Prefix::hanging(vec![Span::styled("$ ", theme.accent)]);
        let command = clean(start_of(command, MAX_RAW));
        let spans: Vec<Span<'static>> = vec![Span::styled(command.replace('\n', " "), theme.code)];
        let command = wrap(&spans, width, Break::Words, &prefix);
        lines.extend(context.folded(command, 3));
    }
    let rows = if context.is_unfolded { ansi::MAX_ROWS } else { FOLDED_ROWS };
    let output = ansi::output(terminal.output.bytes(), terminal.size.as_ref(), width, rows, theme);
    if output.hidden > 0 || terminal.output.omitted() > 0 {
        let hidden = output.hidden.max(1);
        let least = if terminal.output.omitted() > 0 { "at least " } else { "" };
        let text = format!("{} {least}{} above", theme.sign("…", "..."), counted(hidden, "line"));
        lines.push(Line::styled(text, theme.dim));
    }
    for line in output.lines {
        lines.extend(wrap(&line.spans, width, Break::Anywhere, &Prefix::default()));
    }
    if terminal.undecodable > 0 {
        let missing = counted(usize::try_from(terminal.undecodable).unwrap_or(usize::MAX), "piece");
        lines.push(Line::styled(format!("[{missing} of output could not be decoded]"), theme.warning));
    }
    if let Some(status) = &terminal.exit_status {
        let (text, style) = match (status.exit_code, &status.signal) {
            (_, Some(signal)) => (format!("ended by signal {}", clean_line(signal)), theme.error),
            (Some(0), None) => ("exit code 0".to_owned(), theme.dim),
            (Some(code), None) => (format!("exit code {code}"), theme.error),
            (None, None) => ("ended".to_owned(), theme.dim),
        };
        lines.push(Line::styled(cut(&text, width, theme.is_unicode), style));
    }
    lines
}

/// So much content is left out.
pub(super) fn more(context: &Context<'_>, count: usize) -> Vec<Line<'static>> {
    context.card(|_| vec![context.hidden(count, "more item")])
}

/// The arguments and the result of a tool, as the agent gave them.
pub(super) fn raw(context: &Context<'_>, entry: &Entry) -> Vec<Line<'static>> {
    let Entry::ToolCall(call) = entry else { return Vec::new() };
    let theme = context.theme;
    context.card(|width| {
        let mut lines = Vec::new();
        for (name, json) in [("input", &call.raw_input), ("output", &call.raw_output)] {
            let Some(json) = json else { continue };
            let text = start_of(json.as_str(), MAX_RAW);
            let cut = if text.len() < json.as_str().len() { theme.sign("…", "...") } else { "" };
            let prefix = Prefix::hanging(vec![Span::styled(format!("{name}: "), theme.dim)]);
            let text = format!("{}{cut}", clean(text).replace('\n', " "));
            lines.extend(wrap(&[Span::styled(text, theme.dim)], width, Break::Anywhere, &prefix));
        }
        lines
    })
}

/// How a turn ended.
pub(super) fn end_lines(end: &TurnEnd, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (sign, words, style) = match (&end.error, &end.reason) {
        (Some(error), _) => (theme.sign("✗", "x"), error_words(error), theme.error),
        (None, Some(StopReason::Error)) => (theme.sign("✗", "x"), "the turn failed".to_owned(), theme.error),
        (None, Some(StopReason::Cancelled)) => (theme.sign("⊘", "-"), "cancelled".to_owned(), theme.warning),
        (None, Some(StopReason::MaxTokens)) => ("!", "stopped: the token limit was reached".to_owned(), theme.warning),
        (None, Some(StopReason::MaxTurnRequests)) => {
            ("!", "stopped: the limit of model requests per turn was reached".to_owned(), theme.warning)
        }
        (None, Some(StopReason::Refusal)) => ("!", "the agent refused".to_owned(), theme.warning),
        (None, Some(other)) => ("!", format!("stopped: {}", clean_line(other.as_str())), theme.warning),
        (None, None) => return Vec::new(),
    };
    let prefix = Prefix::hanging(vec![Span::styled(format!("{sign} "), style)]);
    wrap(&[Span::styled(words, style)], width, Break::Words, &prefix)
}

fn error_words(error: &ErrorObject) -> String {
    // Agents say more of it in the data, such as the words of a model's server.
    let details = error.data.as_ref().and_then(|data| data.get("details")?.to_model::<String>().ok());
    let details =
        details.map(|details| format!(": {}", clean_line(&details).chars().take(MOST_DETAILS).collect::<String>()));
    format!("{} (error {}){}", clean_line(&error.message), error.code, details.unwrap_or_default())
}

/// How much of an error's details is shown.
const MOST_DETAILS: usize = 500;

/// The text of an entry, for copying.
pub fn text_of(view: &SessionView, place: usize) -> String {
    let text = match view.entry(place) {
        Some(Entry::Message(Message { content, .. })) => blocks_text(content),
        Some(Entry::PeerMessage(message)) => {
            let PeerMessage { content, .. } = &**message;
            blocks_text(content)
        }
        Some(Entry::Compaction(compaction)) => blocks_text(&compaction.summary),
        Some(Entry::Notice(notice)) => {
            let description = notice.description.as_ref().map(|text| format!("\n{text}")).unwrap_or_default();
            format!("{}{description}", notice.title)
        }
        Some(Entry::ToolCall(call)) => call_text(view, call),
        _ => String::new(),
    };
    harmless(&text).into_owned()
}

fn blocks_text(content: &[ContentBlock]) -> String {
    let mut text = String::new();
    for block in content {
        match block.as_text() {
            Some(words) => text.push_str(words),
            None => text.push_str(&format!("\n{}\n", placeholder(block).unwrap_or_default())),
        }
    }
    text
}

fn call_text(view: &SessionView, call: &ToolCall) -> String {
    let mut texts = vec![call.title.clone()];
    for location in &call.locations {
        let line = location.line.map(|line| format!(":{line}")).unwrap_or_default();
        texts.push(format!("{}{line}", location.path));
    }
    for content in &call.content {
        texts.push(match content {
            ToolCallContent::Content(block) => blocks_text(std::slice::from_ref(&block.content)),
            ToolCallContent::Diff(diff) => diff.to_patch().patch.map(|patch| patch.text).unwrap_or_default(),
            ToolCallContent::Terminal(shown) => match view.terminals.get(&shown.terminal_id) {
                Some(terminal) => {
                    let command = terminal.command.iter().map(|command| format!("$ {command}\n"));
                    let output = ansi::output_text(terminal.output.bytes(), terminal.size.as_ref());
                    format!("{}{output}", command.collect::<String>())
                }
                None => String::new(),
            },
            _ => String::new(),
        });
    }
    texts.retain(|text| !text.is_empty());
    texts.join("\n")
}
