//! A list to choose from by typing a part of what is meant.

use std::cmp::Reverse;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::input::LineInput;
use crate::text::{columns, cut, cut_line, draw, frame, paragraph, shown, shown_lines};
use crate::theme::Theme;

/// A list with fewer columns than this has no room for a preview beside it.
const PREVIEW_WIDTH: u16 = 76;

/// In how many rows the letters that fit are marked: a list may be as long as a repository has files.
const MARKED: usize = 100;

/// A row to choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<T> {
    /// What is chosen.
    pub value: T,
    /// Its name: what is typed is looked for here first.
    pub label: String,
    /// A word about it, shown dim after the name.
    pub detail: String,
    /// More about it, shown beside the list.
    pub preview: String,
    /// The heading it belongs to. Rows of one group stand together.
    pub group: Option<String>,
}

impl<T> Item<T> {
    /// A row with a name.
    pub fn new(value: T, label: impl Into<String>) -> Self {
        Item { value, label: label.into(), detail: String::new(), preview: String::new(), group: None }
    }

    /// With a word about it.
    pub fn detail(self, detail: impl Into<String>) -> Self {
        Item { detail: detail.into(), ..self }
    }

    /// With more about it, for beside the list.
    pub fn preview(self, preview: impl Into<String>) -> Self {
        Item { preview: preview.into(), ..self }
    }

    /// Beneath a heading.
    pub fn group(self, group: impl Into<String>) -> Self {
        Item { group: Some(group.into()), ..self }
    }
}

/// What became of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum PickerReply<T> {
    /// This one was chosen.
    Chosen(T),
    /// The row for something new was chosen; what was typed may name it.
    New(String),
    /// The row is to be deleted. The list still shows it: whoever deletes it sets the items anew.
    Delete(T),
    /// Nothing was chosen.
    Closed,
}

/// The rows of a list that fit what was typed, best first, and the one that is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matches {
    /// Indices of the items, and the places in their labels that fit.
    pub(crate) rows: Vec<(usize, Vec<u32>)>,
    pub(crate) selected: usize,
}

impl Matches {
    /// Looks for what was typed in these texts. Without a query all fit: in their order, paths with those first that are
    /// not deep. What fits as well as another comes first if its name begins with what was typed, or if it is shorter.
    pub(crate) fn find<'a>(query: &str, is_path: bool, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        if query.trim().is_empty() {
            let mut texts: Vec<(usize, &str)> = texts.map(|(label, _)| label).enumerate().collect();
            if is_path {
                texts.sort_by_cached_key(|(_, path)| (path.matches('/').count(), path.to_lowercase()));
            }
            return Matches { rows: texts.into_iter().map(|(index, _)| (index, Vec::new())).collect(), selected: 0 };
        }
        let config = if is_path { Config::DEFAULT.match_paths() } else { Config::DEFAULT };
        let mut matcher = Matcher::new(config);
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let mut buffer = Vec::new();
        let texts: Vec<(&str, &str)> = texts.collect();
        let mut scored: Vec<(u32, usize)> = Vec::new();
        for (index, (label, detail)) in texts.iter().enumerate() {
            // A word about it counts less than its name.
            let score = pattern.score(Utf32Str::new(label, &mut buffer), &mut matcher);
            let score = score.map(|score| score.saturating_mul(2));
            let score = score.or_else(|| pattern.score(Utf32Str::new(detail, &mut buffer), &mut matcher));
            scored.extend(score.map(|score| (score, index)));
        }
        let typed = query.trim().to_lowercase();
        scored.sort_by_cached_key(|(score, index)| {
            let label = texts[*index].0;
            let name = label.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
            let length = if is_path { label.len() } else { 0 };
            (Reverse(*score), is_path && !name.starts_with(&typed), length, *index)
        });
        let mut rows: Vec<(usize, Vec<u32>)> = scored.into_iter().map(|(_, index)| (index, Vec::new())).collect();
        // What fits is marked where somebody looks.
        for (index, places) in rows.iter_mut().take(MARKED) {
            pattern.indices(Utf32Str::new(texts[*index].0, &mut buffer), &mut matcher, places);
            places.sort_unstable();
            places.dedup();
        }
        Matches { rows, selected: 0 }
    }

    /// The texts that have what was typed in them, those first that begin with it.
    pub(crate) fn named<'a>(query: &str, texts: impl Iterator<Item = &'a str>) -> Self {
        let query = query.trim().to_lowercase();
        let found = texts.enumerate().filter_map(|(index, text)| {
            let at = text.to_lowercase().find(&query)?;
            Some((at > 0, index, at))
        });
        let mut found: Vec<(bool, usize, usize)> = found.collect();
        found.sort_unstable();
        let marks = |at: usize| (at..at + query.len()).filter_map(|place| u32::try_from(place).ok()).collect();
        Matches { rows: found.into_iter().map(|(_, index, at)| (index, marks(at))).collect(), selected: 0 }
    }

    pub(crate) fn step(&mut self, by: isize, count: usize) {
        if count == 0 {
            self.selected = 0;
            return;
        }
        // Past the end by one row begins anew; a page stops there.
        let last = count - 1;
        self.selected = match (self.selected.min(last), by) {
            (0, -1) => last,
            (at, 1) if at == last => 0,
            (at, by) => at.saturating_add_signed(by).min(last),
        };
    }
}

/// A text with the places marked that fit what was typed.
pub(crate) fn marked(text: &str, places: &[u32], theme: &Theme) -> Vec<Span<'static>> {
    let text = shown(text);
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (index, grapheme) in text.graphemes(true).enumerate() {
        let is_marked = u32::try_from(index).is_ok_and(|index| places.binary_search(&index).is_ok());
        let style = if is_marked { theme.accent.add_modifier(Modifier::UNDERLINED) } else { theme.text };
        match spans.last_mut().filter(|span| span.style == style) {
            Some(span) => span.content.to_mut().push_str(grapheme),
            None => spans.push(Span::styled(grapheme.to_owned(), style)),
        }
    }
    spans
}

/// A list to choose from by typing.
#[derive(Debug, Clone)]
pub struct Picker<T> {
    title: String,
    items: Vec<Item<T>>,
    matches: Matches,
    input: LineInput,
    new_row: Option<String>,
    hint: String,
    empty: String,
    can_delete: bool,
    is_path: bool,
    first: usize,
    page: usize,
}

impl<T: Clone + PartialEq> Picker<T> {
    /// A list of these.
    pub fn new(title: impl Into<String>, items: Vec<Item<T>>) -> Self {
        let mut picker = Picker {
            title: title.into(),
            items: Vec::new(),
            matches: Matches::default(),
            input: LineInput::default(),
            new_row: None,
            hint: String::new(),
            empty: "nothing to choose from".into(),
            can_delete: false,
            is_path: false,
            first: 0,
            page: 10,
        };
        picker.set_items(items);
        picker
    }

    /// With a first row for something new, such as `new session`.
    pub fn with_new(mut self, label: impl Into<String>) -> Self {
        self.new_row = Some(label.into());
        self
    }

    /// With a line at the bottom, such as what a key does.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// With what to say when there is nothing, such as `still looking`.
    pub fn with_empty(mut self, empty: impl Into<String>) -> Self {
        self.empty = empty.into();
        self
    }

    /// With a key, Ctrl-D, that asks to delete a row.
    pub fn with_delete(mut self) -> Self {
        self.can_delete = true;
        self
    }

    /// For paths: what is typed is looked for at the beginning of names first.
    pub fn for_paths(mut self) -> Self {
        self.is_path = true;
        self
    }

    /// Chooses the first row that this is true of, before anything is typed.
    pub fn select(mut self, is_it: impl Fn(&T) -> bool) -> Self {
        self.matches.selected = self.row_of(is_it).unwrap_or(self.matches.selected);
        self
    }

    /// Other rows, such as more of them. What was typed stays, and the chosen place.
    pub fn set_items(&mut self, items: Vec<Item<T>>) {
        // Groups stand together, in the order in which they first appear.
        let mut groups: Vec<Option<String>> = Vec::new();
        for item in &items {
            if !groups.contains(&item.group) {
                groups.push(item.group.clone());
            }
        }
        let place = |item: &Item<T>| groups.iter().position(|group| *group == item.group);
        let chosen = self.selected().cloned();
        self.items = items;
        self.items.sort_by_key(place);
        let selected = self.matches.selected;
        self.find();
        // Whoever is about to choose something gets that, wherever it stands now.
        let row = chosen.and_then(|chosen| self.row_of(|value| *value == chosen));
        self.matches.selected = row.unwrap_or(selected);
        self.matches.step(0, self.count());
    }

    /// Where a row is, counted with the one for something new.
    fn row_of(&self, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        let row = self.matches.rows.iter().position(|(index, _)| is_it(&self.items[*index].value))?;
        Some(row + self.extra())
    }

    /// What was typed.
    pub fn query(&self) -> String {
        self.input.text()
    }

    /// The row that Enter would choose.
    pub fn selected(&self) -> Option<&T> {
        let row = self.matches.selected.checked_sub(self.extra())?;
        self.matches.rows.get(row).map(|(index, _)| &self.items[*index].value)
    }

    fn extra(&self) -> usize {
        usize::from(self.new_row.is_some())
    }

    fn count(&self) -> usize {
        self.matches.rows.len() + self.extra()
    }

    fn find(&mut self) {
        let texts = self.items.iter().map(|item| (item.label.as_str(), item.detail.as_str()));
        self.matches = Matches::find(&self.input.text(), self.is_path, texts);
        // Whoever typed something means something that is there.
        if !self.input.is_empty() && !self.matches.rows.is_empty() {
            self.matches.selected = self.extra();
        }
    }

    /// Takes a key in. `None`: the list is still open.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<PickerReply<T>> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let count = self.count();
        let page = isize::try_from(self.page.max(1)).unwrap_or(1);
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Some(PickerReply::Closed),
            KeyCode::Char('c' | 'g') if is_ctrl => return Some(PickerReply::Closed),
            KeyCode::Up => self.matches.step(-1, count),
            KeyCode::Char('p') if is_ctrl => self.matches.step(-1, count),
            KeyCode::Down | KeyCode::Tab => self.matches.step(1, count),
            KeyCode::Char('n') if is_ctrl => self.matches.step(1, count),
            KeyCode::BackTab => self.matches.step(-1, count),
            KeyCode::PageUp => self.matches.step(-page.max(2), count),
            KeyCode::PageDown => self.matches.step(page.max(2), count),
            KeyCode::Char('d') if is_ctrl && self.can_delete => {
                return self.selected().cloned().map(PickerReply::Delete);
            }
            KeyCode::Enter => {
                return match self.selected() {
                    Some(value) => Some(PickerReply::Chosen(value.clone())),
                    None if self.new_row.is_some() => Some(PickerReply::New(self.query())),
                    None => None,
                };
            }
            _ => {
                if self.input.handle_key(key) {
                    self.find();
                }
            }
        }
        None
    }

    /// Takes in text that was pasted.
    pub fn handle_paste(&mut self, text: &str) {
        self.input.handle_paste(text);
        self.find();
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self) -> u16 {
        let groups = self.items.iter().filter_map(|item| item.group.as_ref());
        let groups: std::collections::BTreeSet<&String> = groups.collect();
        u16::try_from(self.items.len() + groups.len() + self.extra() + 4).unwrap_or(u16::MAX)
    }

    /// Draws the list, and the preview where there is room.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let delete = if self.can_delete { "  ctrl-d delete" } else { "" };
        let hint = if self.hint.is_empty() { "enter choose  esc close" } else { &self.hint };
        let inner =
            frame(&shown(&self.title), &format!("{}{delete}", shown_lines(hint).join(" ")), area, buffer, theme);
        if inner.is_empty() {
            return;
        }
        let input_row = Rect { height: 1, ..inner };
        let mark = theme.sign("› ", "> ");
        draw(&[Line::styled(mark, theme.accent)], 0, input_row, buffer);
        let used = u16::try_from(columns(mark)).unwrap_or(2).min(inner.width);
        self.input.render(Rect { x: inner.x + used, width: inner.width - used, ..input_row }, buffer, theme);
        let mut list = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let has_preview = self.items.iter().any(|item| !item.preview.is_empty());
        if has_preview && list.width >= PREVIEW_WIDTH {
            let wide = list.width * 2 / 5;
            let beside = Rect { x: list.right() - wide, width: wide, ..list };
            list.width -= wide + 2;
            self.render_preview(beside, buffer, theme);
        }
        self.render_list(list, buffer, theme);
    }

    fn render_preview(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let row = self.matches.selected.checked_sub(self.extra());
        let Some((index, _)) = row.and_then(|row| self.matches.rows.get(row)) else { return };
        let lines = paragraph(&self.items[*index].preview, usize::from(area.width), theme.dim);
        draw(&lines, 0, area, buffer);
    }

    fn render_list(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let room = usize::from(area.width);
        let mut lines: Vec<Line<'static>> = Vec::new();
        let mut chosen = 0;
        let selected_mark = |is_selected: bool| if is_selected { theme.sign("▸ ", "> ") } else { "  " };
        let mut add = |lines: &mut Vec<Line<'static>>, row: usize, mut spans: Vec<Span<'static>>| {
            let is_selected = row == self.matches.selected;
            if is_selected {
                chosen = lines.len();
            }
            spans.insert(0, Span::raw(selected_mark(is_selected)));
            let mut line = cut_line(&Line::from(spans), room, theme);
            if is_selected {
                line = line.patch_style(theme.selected);
            }
            lines.push(line);
        };
        if let Some(label) = &self.new_row {
            let label = format!("+ {}", shown(label));
            add(&mut lines, 0, vec![Span::styled(label, theme.accent)]);
        }
        let mut heading: Option<&String> = None;
        // Rows that fit best come first once something is typed, so their headings stand behind them.
        let is_grouped = self.input.is_empty();
        // Only what can be seen is laid out, however many there are.
        let extra = self.extra();
        let around = usize::from(area.height) * 2 + 2;
        let from = self.matches.selected.saturating_sub(around);
        for (row, (index, places)) in self.matches.rows.iter().enumerate().skip(from).take(2 * around + 1) {
            let item = &self.items[*index];
            if is_grouped && item.group.as_ref() != heading {
                heading = item.group.as_ref();
                let name = heading.map(|group| cut(&shown(group), room, theme)).unwrap_or_default();
                lines.push(Line::styled(name, theme.dim.add_modifier(Modifier::BOLD)));
            }
            let mut spans = marked(&item.label, places, theme);
            let mut detail = shown(&item.detail);
            if !is_grouped && let Some(group) = &item.group {
                detail = format!("{detail}  {}", shown(group));
            }
            if !detail.trim().is_empty() {
                spans.push(Span::styled(format!("  {}", detail.trim()), theme.dim));
            }
            add(&mut lines, row + extra, spans);
        }
        if self.matches.rows.is_empty() {
            let empty = if self.items.is_empty() { shown(&self.empty) } else { "nothing fits".to_owned() };
            lines.push(Line::styled(cut(&format!("  {empty}"), room, theme), theme.dim));
        }
        let height = usize::from(area.height);
        self.page = height;
        if chosen < self.first || lines.len() <= height {
            self.first = chosen.saturating_sub(1);
        }
        if chosen + 1 > self.first + height {
            self.first = chosen + 1 - height;
        }
        self.first = self.first.min(lines.len().saturating_sub(height));
        draw(&lines, self.first, area, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> KeyEvent {
        KeyEvent::new(code, KeyModifiers::NONE)
    }

    fn items() -> Vec<Item<u8>> {
        vec![
            Item::new(1, "claude").detail("Claude Code").group("agents"),
            Item::new(2, "Fix the parser").detail("yesterday").group("sessions"),
            Item::new(3, "codex").detail("Codex CLI").group("agents"),
        ]
    }

    #[test]
    fn what_is_typed_is_found_by_its_parts() {
        let mut picker = Picker::new("agents", items());
        for letter in "cdx".chars() {
            assert_eq!(picker.handle_key(key(KeyCode::Char(letter))), None);
        }
        assert_eq!(picker.handle_key(key(KeyCode::Enter)), Some(PickerReply::Chosen(3)));
        let mut picker = Picker::new("agents", items());
        picker.handle_paste("yester\n");
        assert_eq!(picker.selected(), Some(&2));
        picker.handle_paste("zzz");
        assert_eq!(picker.handle_key(key(KeyCode::Enter)), None, "nothing fits");
        assert_eq!(picker.handle_key(key(KeyCode::Esc)), Some(PickerReply::Closed));
    }

    #[test]
    fn groups_stand_together_and_the_ends_meet() {
        let mut picker = Picker::new("agents", items());
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(*picker.selected().unwrap());
            picker.handle_key(key(KeyCode::Down));
        }
        assert_eq!(seen, [1, 3, 2, 1]);
        let picker = Picker::new("agents", items()).select(|value| *value == 2);
        assert_eq!(picker.selected(), Some(&2));
    }

    #[test]
    fn the_first_row_is_for_something_new() {
        let mut picker = Picker::new("sessions", items()).with_new("new session").with_delete();
        let delete = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
        assert_eq!(picker.handle_key(delete), None, "what is new cannot be deleted");
        assert_eq!(picker.handle_key(key(KeyCode::Enter)), Some(PickerReply::New(String::new())));
        picker.handle_key(key(KeyCode::Down));
        assert_eq!(picker.handle_key(delete), Some(PickerReply::Delete(1)));
        picker.handle_paste("qqq");
        assert_eq!(picker.handle_key(key(KeyCode::Enter)), Some(PickerReply::New("qqq".into())));
    }

    #[test]
    fn rows_that_come_later_do_not_change_what_is_chosen() {
        for picker in [Picker::new("sessions", items()), Picker::new("sessions", items()).with_new("new session")] {
            let mut picker = picker.select(|value| *value == 2);
            let mut more = vec![Item::new(10, "zero"), Item::new(11, "naught")];
            more.extend(items());
            picker.set_items(more);
            assert_eq!(picker.selected(), Some(&2));
            picker.set_items(vec![Item::new(10, "zero")]);
            assert_eq!(picker.selected(), Some(&10), "what is gone is not chosen");
        }
        let mut picker = Picker::new("sessions", items()).with_new("new session");
        picker.set_items(vec![Item::new(10, "zero")]);
        assert_eq!(picker.selected(), None, "the row for something new stays chosen");
    }

    #[test]
    fn a_long_list_lays_out_what_is_seen() {
        let many = (0..100_000).map(|number| Item::new(number, format!("file {number}"))).collect();
        let mut picker = Picker::new("files", many);
        picker.handle_key(key(KeyCode::Up));
        let area = Rect::new(0, 0, 40, 10);
        let mut buffer = Buffer::empty(area);
        let theme = Theme::new(crate::theme::ColorDepth::None, crate::theme::Background::Dark, true);
        picker.render(area, &mut buffer, &theme);
        let last: String = (0..40).map(|x| buffer[(x, 8)].symbol().to_owned()).collect();
        assert!(last.contains("▸ file 99999"), "{last}");
    }
}
