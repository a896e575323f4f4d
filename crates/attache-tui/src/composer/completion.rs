//! The list of what could be meant: files for `@`, commands for `/`, and the messages of the past.

use std::collections::BTreeMap;

use attache_proto::model::command::{AvailableCommand, CommandInput};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget as _};

use super::render::one_row;
use crate::input::LineInput;
use crate::picker::{Matches, marked};
use crate::text::{cut, cut_line, draw, shown};
use crate::theme::Theme;

/// How many rows the list has at most.
const ROWS: usize = 8;

/// What can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A file, after `@`.
    Mention,
    /// A command of the agent, after `/` at the very beginning.
    Command,
}

/// What could be completed at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRequest {
    /// What kind of thing it is.
    pub kind: CompletionKind,
    /// What is typed of it so far.
    pub query: String,
    /// How many characters are before the cursor, the sign included.
    pub(super) typed: usize,
}

/// Something to complete to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What is put into the text: a path, or the name of a command.
    pub text: String,
    /// What it is, shown beside it.
    pub detail: String,
    /// The input that it takes, shown until there is some.
    pub hint: String,
}

impl Completion {
    /// A file or a directory; the path of a directory ends with a slash.
    pub fn file(path: impl Into<String>) -> Self {
        Completion { text: path.into(), detail: String::new(), hint: String::new() }
    }

    /// The commands of an agent.
    pub fn commands(commands: &[AvailableCommand]) -> Vec<Self> {
        let command = |command: &AvailableCommand| match command {
            AvailableCommand::Command(command) => {
                let hint = match &command.input {
                    Some(CommandInput::Text(input)) => input.hint.clone(),
                    _ => String::new(),
                };
                Some(Completion { text: command.name.clone(), detail: command.description.clone(), hint })
            }
            _ => None,
        };
        commands.iter().filter_map(command).collect()
    }

    pub(super) fn insertion(&self, kind: CompletionKind) -> String {
        match kind {
            CompletionKind::Mention if self.text.ends_with('/') && !needs_quotes(&self.text) => mention(&self.text),
            CompletionKind::Mention => mention(&self.text) + " ",
            CompletionKind::Command if self.hint.is_empty() => format!("/{}", shown(&self.text)),
            CompletionKind::Command => format!("/{} ", shown(&self.text)),
        }
    }
}

/// A file as it is mentioned in a text.
pub(super) fn mention(path: &str) -> String {
    let shown = attache_host::visible::visible(path);
    if needs_quotes(path) { format!("@\"{shown}\"") } else { format!("@{shown}") }
}

fn needs_quotes(path: &str) -> bool {
    path.contains(char::is_whitespace)
}

/// What could be completed at the end of this beginning of a line.
pub(super) fn request(before: &str, is_first_line: bool) -> Option<CompletionRequest> {
    let request = |kind, word: &str| {
        let mut letters = word.chars();
        letters.next();
        CompletionRequest { kind, query: letters.as_str().to_owned(), typed: word.chars().count() }
    };
    if is_first_line && before.starts_with('/') {
        return (!before.contains(char::is_whitespace)).then(|| request(CompletionKind::Command, before));
    }
    let word = before.rsplit(char::is_whitespace).next()?;
    // An address for mail has an `@` too.
    word.starts_with('@').then(|| request(CompletionKind::Mention, word))
}

/// The list.
#[derive(Debug, Clone, Default)]
pub(super) struct Popup {
    kind: Option<CompletionKind>,
    items: Vec<Completion>,
    pub(super) matches: Matches,
    /// What is typed to find a message of the past.
    pub(super) query: LineInput,
    is_searching: bool,
    /// What the person does not want completed.
    dismissed: Option<CompletionRequest>,
    current: Option<CompletionRequest>,
    /// The input that commands take, by name.
    pub(super) hints: BTreeMap<String, String>,
}

impl Popup {
    pub(super) fn start_search(&mut self) {
        self.close();
        self.query = LineInput::default();
        self.is_searching = true;
    }

    pub(super) fn is_searching(&self) -> bool {
        self.is_searching
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_searching
            || self.current.as_ref().is_some_and(|current| {
                self.dismissed.as_ref() != Some(current)
                    && self.kind == Some(current.kind)
                    && !self.matches.rows.is_empty()
            })
    }

    pub(super) fn close(&mut self) {
        self.is_searching = false;
        self.items.clear();
        self.matches = Matches::default();
        self.current = None;
    }

    pub(super) fn dismiss(&mut self) {
        self.dismissed = self.current.clone();
        self.is_searching = false;
    }

    pub(super) fn dismiss_for(&mut self, request: Option<CompletionRequest>) {
        self.dismissed = request;
    }

    pub(super) fn offer(&mut self, kind: CompletionKind, items: Vec<Completion>) {
        if kind == CompletionKind::Command {
            self.hints = items.iter().map(|item| (item.text.clone(), item.hint.clone())).collect();
        }
        self.kind = Some(kind);
        self.items = items;
        // Found anew by whoever offers.
        self.current = None;
    }

    /// The text changed.
    pub(super) fn follow(&mut self, request: Option<CompletionRequest>) {
        if request == self.current {
            return;
        }
        if let Some(request) = &request
            && self.kind == Some(request.kind)
        {
            self.matches = match request.kind {
                CompletionKind::Mention => {
                    Matches::find(&request.query, true, self.items.iter().map(|item| (item.text.as_str(), "")))
                }
                // A command does something: nothing is offered that was not named.
                CompletionKind::Command => {
                    Matches::named(&request.query, self.items.iter().map(|item| item.text.as_str()))
                }
            };
        }
        self.current = request;
    }

    pub(super) fn chosen(&self) -> Option<&Completion> {
        let (index, _) = self.matches.rows.get(self.matches.selected)?;
        self.items.get(*index)
    }

    pub(super) fn height(&self) -> u16 {
        let rows = if self.is_open() { self.matches.rows.len().min(ROWS) + usize::from(self.is_searching) } else { 0 };
        u16::try_from(rows).unwrap_or(u16::MAX)
    }

    pub(super) fn render(&mut self, history: &[&str], area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let area = area.intersection(buffer.area);
        let height = self.height().min(area.height);
        if height == 0 || area.width == 0 {
            return;
        }
        let place = Rect { y: area.bottom() - height, height, ..area };
        Clear.render(place, buffer);
        let list = Rect { height: height - u16::from(self.is_searching), ..place };
        let rows = usize::from(list.height);
        let from = (self.matches.selected + 1).saturating_sub(rows);
        let room = usize::from(area.width);
        let mut lines = Vec::new();
        for (row, (index, places)) in self.matches.rows.iter().enumerate().skip(from).take(rows) {
            let is_selected = row == self.matches.selected;
            let mark = if is_selected { theme.sign("▸ ", "> ") } else { "  " };
            let spans = if self.is_searching {
                one_row(mark, history.get(*index).copied().unwrap_or_default(), room, theme)
            } else {
                self.row(mark, *index, places, theme)
            };
            let line = cut_line(&Line::from(spans), room, theme);
            lines.push(if is_selected { line.patch_style(theme.selected) } else { line });
        }
        draw(&lines, 0, list, buffer);
        if self.is_searching && height > 0 {
            let bottom = Rect { y: place.bottom() - 1, height: 1, ..place };
            let label = cut("search: ", room, theme);
            let used = u16::try_from(label.len()).unwrap_or(0).min(bottom.width);
            draw(&[Line::styled(label, theme.accent)], 0, bottom, buffer);
            let rest = Rect { x: bottom.x + used, width: bottom.width - used, ..bottom };
            self.query.render(rest, buffer, theme);
        }
    }

    fn row(&self, mark: &str, index: usize, places: &[u32], theme: &Theme) -> Vec<Span<'static>> {
        let Some(item) = self.items.get(index) else { return Vec::new() };
        let sign = if self.kind == Some(CompletionKind::Command) { "/" } else { "" };
        let mut spans = vec![Span::styled(format!("{mark}{sign}"), theme.accent)];
        spans.extend(marked(&item.text, places, theme));
        for (text, before) in [(&item.hint, " "), (&item.detail, "  ")] {
            if !text.is_empty() {
                spans.push(Span::styled(format!("{before}{}", shown(text)), theme.dim));
            }
        }
        spans
    }
}
