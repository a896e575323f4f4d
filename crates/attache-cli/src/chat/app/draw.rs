//! What is drawn where.

use std::time::Duration;

use attache_tui::composer::Composer;
use attache_tui::dialog::GRACE;
use attache_tui::keymap::Action;
use attache_tui::status::{Activity, Status, Tab as TabTitle, render_tabs};
use attache_tui::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph, Widget};

use super::{App, Overlay, Surface, TIRED};
use crate::chat::tab::{self, Phase, QuestionDialog};
use crate::event::Level;

/// A dialog of fewer rows has no frame, and a frame is how a person tells it from what an agent writes.
const FRAMED: u16 = 5;

/// What the state says while somebody types and a question waits.
const HELD: &str = "a question waits until you stop typing";

impl App {
    /// Draws everything.
    pub(in crate::chat) fn render(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let buffer = frame.buffer_mut();
        let current = self.current;
        let has_tabs = self.tabs.len() > 1;
        let titles: Vec<TabTitle> =
            self.tabs.iter().map(|tab| TabTitle { title: tab.title(), state: tab.state() }).collect();
        let (tick, theme) = (self.tick, self.theme.clone());
        let mut rest = area;
        if has_tabs && rest.height > 6 {
            let (line, below) = split_top(rest, 1);
            render_tabs(&titles, current, line, buffer, tick, &theme);
            rest = below;
        }
        let hints = self.hints();
        let is_in_transcript = self.is_in_transcript;
        let is_question_held = self.is_question_held();
        // A question stands in the place of the composer, and the conversation goes on above it.
        let question_height = self.question_to_draw().map(|place| self.question_height(place, area));
        if let Some(tab) = self.tabs.get_mut(current) {
            let (above, status_area) = split_bottom(rest, 2.min(rest.height / 3));
            tab.composer.queue.set_held(tab.is_held());
            let mut status = tab.status();
            status.hints = hints;
            if is_question_held {
                status.activity = Some((Activity::Other(HELD.into()), Duration::ZERO));
            }
            status.render(status_area, buffer, tick, &theme);
            let height = tab.composer.height(above.width, area.height).min(above.height);
            let (transcript_area, composer_area) = match question_height {
                Some(height) => split_bottom(rest, height),
                None => split_bottom(above, height),
            };
            tab.transcript.render(&tab.view, transcript_area, buffer, &theme, tick);
            if question_height.is_none() {
                tab.composer.set_focused(!is_in_transcript);
                tab.composer.render(composer_area, buffer, &theme);
                tab.composer.render_popup(transcript_area, buffer, &theme);
            }
            if let Some((level, text, _)) = self.toast.as_ref().filter(|_| !tab.composer.has_popup()) {
                let place = if transcript_area.is_empty() { area } else { transcript_area };
                draw_toast(*level, text, place, buffer, &theme);
            }
        }
        self.render_dialog(area, frame);
        // What was chosen in a list can fail, and the list is over all else then.
        if let Some((level, text, _)) = self.toast.as_ref().filter(|_| self.next_surface == Surface::Overlay) {
            draw_toast(*level, text, area, frame.buffer_mut(), &theme);
        }
    }

    /// How many rows the question of a tab takes.
    fn question_height(&mut self, place: usize, area: Rect) -> u16 {
        let asked = self.tabs[place].questions.front_mut();
        let height = asked.map_or(0, |asked| asked.dialog.height(area.width, &self.theme));
        at_bottom(area, height).height
    }

    /// Draws what stands over the conversation: a question first, because it waits for an answer.
    pub(super) fn render_dialog(&mut self, area: Rect, frame: &mut Frame<'_>) {
        if self.has_last_words && !self.is_typing() {
            self.show_last_words();
        }
        self.is_overlay_first &= self.overlay.is_some();
        let place = self.question_to_draw();
        // Whatever is not seen now is to be read anew when it comes back.
        for (index, tab) in self.tabs.iter_mut().enumerate() {
            let is_drawn = |at: usize| place == Some(index) && at == 0;
            tab.questions
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| !is_drawn(*at))
                .for_each(|(_, asked)| asked.shown = None);
        }
        let tab = self.tabs.get(self.current);
        let login = tab.and_then(|tab| Some(Surface::Login(tab.id, tab.login.as_ref()?.0.is_confirming())));
        let is_there = matches!(self.surface, Surface::Login(..));
        let login = login.filter(|_| is_there || !self.is_typing());
        self.next_surface = match (place, &self.overlay, login) {
            (Some(place), ..) => Surface::Question(place),
            (None, Some(Overlay::LastWords(_)), _) => Surface::LastWords,
            (None, Some(_), _) => Surface::Overlay,
            (None, None, Some(login)) => login,
            (None, None, None) => Surface::Conversation,
        };
        let theme = self.theme.clone();
        let is_swallowed = self.swallowed.is_some_and(|swallowed| swallowed.elapsed() < GRACE);
        let buffer = frame.buffer_mut();
        if let Some(place) = place {
            let title = (place != self.current).then(|| self.tabs[place].title());
            let count: usize = self.tabs.iter().map(|tab| tab.questions.len() + tab.waiting_questions).sum();
            let is_tiring = self.tabs[place].refusals >= TIRED;
            let Some(asked) = self.tabs[place].questions.front_mut() else { return };
            asked.dialog.set_session(title);
            if let QuestionDialog::Permission(dialog, _) = &mut asked.dialog {
                dialog.set_position(1, count);
            }
            let place = at_bottom(area, asked.dialog.height(area.width, &theme));
            Clear.render(place, buffer);
            asked.dialog.render(place, buffer, &theme);
            match (is_swallowed, is_tiring) {
                (true, _) => draw_note(" wait: what was typed before is no answer ", area, buffer, &theme),
                (false, true) => draw_note(" ctrl-n refuses all of this turn ", area, buffer, &theme),
                (false, false) => {}
            }
            return;
        }
        match &mut self.overlay {
            Some(Overlay::Help(dialog)) => {
                let area = centered(area, area.height);
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Options(dialog)) => {
                let area = centered(area, dialog.height());
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Choices(picker)) => {
                let area = centered(area, picker.height().max(area.height / 2));
                Clear.render(area, buffer);
                picker.render(area, buffer, &theme);
            }
            Some(Overlay::Text(dialog) | Overlay::LastWords(dialog)) => {
                let height = dialog.height(area.width, &theme);
                let area = centered(area, height);
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Confirm(dialog, _, _)) => {
                let area = centered(area, dialog.height(area.width, &theme));
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            None => {
                if matches!(self.next_surface, Surface::Login(..))
                    && let Some((dialog, _)) = self.tabs.get_mut(self.current).and_then(|tab| tab.login.as_mut())
                {
                    let area = centered(area, dialog.height(area.width, &theme));
                    Clear.render(area, buffer);
                    dialog.render(area, buffer, &theme);
                }
            }
        }
    }

    /// Keys that are worth knowing now.
    pub(super) fn hints(&self) -> Vec<(String, String)> {
        let Some(tab) = self.tabs.get(self.current) else { return Vec::new() };
        if self.is_in_transcript {
            let actions = [
                (Action::FocusComposer, "write"),
                (Action::NextEntry, "next"),
                (Action::ToggleFold, "fold"),
                (Action::CopyEntry, "copy"),
            ];
            let hint = |(action, word): (Action, &str)| Some((self.keys.transcript_hint(action)?, word.to_owned()));
            return actions.into_iter().filter_map(hint).collect();
        }
        let actions: &[(Action, &str)] = match (tab.phase == Phase::Dead, tab.is_working()) {
            (false, true) if tab.phase == Phase::Cancelling => {
                &[(Action::RestartAgent, "restart"), (Action::Send, "queue"), (Action::Help, "keys")]
            }
            (false, false) if tab.session.is_none() => {
                &[(Action::Send, "queue"), (Action::Sessions, "sessions"), (Action::Help, "keys")]
            }
            (true, _) => &[(Action::RestartAgent, "restart"), (Action::ShowLog, "why"), (Action::Quit, "leave")],
            (false, true) => &[(Action::Cancel, "cancel"), (Action::Send, "queue"), (Action::Help, "keys")],
            (false, false) => &[
                (Action::Send, "send"),
                (Action::CycleMode, "mode"),
                (Action::Sessions, "sessions"),
                (Action::Help, "keys"),
            ],
        };
        let hint = |(action, word): &(Action, &str)| Some((self.keys.hint(*action)?, (*word).to_owned()));
        actions.iter().filter_map(hint).collect()
    }

    /// Lines for the terminal's own text: entries that are finished, each once.
    pub(in crate::chat) fn finished_lines(&mut self, width: u16) -> Vec<Line<'static>> {
        let theme = self.theme.clone();
        let Some(tab) = self.tabs.get_mut(self.current) else { return Vec::new() };
        let root = tab.plan.cwd.display().to_string();
        let view = &tab.view;
        let mut place = tab.printed.max(view.first_place());
        let end = view.first_place() + view.timeline().len();
        let mut lines = Vec::new();
        let block = |place| attache_tui::transcript::block_in(view, place, width.into(), &theme, &root);
        // What was printed last may have grown since: an agent may go on after its turn.
        if let Some((last, rows)) = tab.printed_rows.filter(|(last, _)| *last + 1 == place)
            && tab.printed_text != text_length(view, last)
        {
            lines.extend(block(last).into_iter().skip(rows.saturating_sub(1)));
            lines.push(Line::default());
        }
        while place < end {
            let is_last = place + 1 == end;
            let is_open = match view.entry(place) {
                Some(attache::proto::view::Entry::ToolCall(call)) => !call.status.is_final(),
                Some(attache::proto::view::Entry::Message(message)) => {
                    is_last && message.role != attache::proto::view::MessageRole::User
                }
                _ => false,
            };
            if is_open && tab.is_working() {
                break;
            }
            lines.extend(block(place));
            lines.push(Line::default());
            place += 1;
        }
        tab.printed_rows = place.checked_sub(1).map(|last| (last, block(last).len()));
        tab.printed_text = place.checked_sub(1).map_or(0, |last| text_length(view, last));
        tab.printed = place;
        lines
    }

    /// Draws an inline screen: what is not finished, the composer and the state.
    pub(in crate::chat) fn render_inline(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let (tick, theme) = (self.tick, self.theme.clone());
        let hints = self.hints();
        let buffer = frame.buffer_mut();
        if let Some(tab) = self.tabs.get_mut(self.current) {
            let status_rows = 2.min(area.height / 3);
            let composer_rows = tab.composer.height(area.width, area.height.saturating_mul(2));
            let open_rows = area.height.saturating_sub(status_rows + composer_rows);
            let root = tab.plan.cwd.display().to_string();
            let end = tab.view.first_place() + tab.view.timeline().len();
            let places = tab.printed.max(tab.view.first_place())..end;
            let mut lines = Vec::new();
            for place in places.rev().take(usize::from(open_rows)) {
                let mut block = attache_tui::transcript::block_in(&tab.view, place, area.width.into(), &theme, &root);
                block.extend(lines);
                lines = block;
            }
            let skipped = lines.len().saturating_sub(open_rows.into());
            let lines = lines.split_off(skipped);
            // Right below what was said; what is not needed is left free at the end.
            let toast_row = u16::from(self.toast.is_some());
            let used = u16::try_from(lines.len()).unwrap_or(open_rows).saturating_add(toast_row).min(open_rows);
            let (open_area, rest) = split_top(area, used);
            let (composer_area, rest) = split_top(rest, composer_rows);
            let (status_area, _) = split_top(rest, status_rows);
            Paragraph::new(lines).render(open_area, buffer);
            tab.composer.queue.set_held(tab.is_held());
            let mut status = tab.status();
            status.hints = hints;
            status.below = 0;
            status.render(status_area, buffer, tick, &theme);
            tab.composer.render(composer_area, buffer, &theme);
            // A list takes the room that there is above the composer, or else below it.
            let list_area = if open_area.height >= tab.composer.popup_height() {
                open_area
            } else {
                let below = split_top(area, composer_area.bottom() - area.y).1;
                split_top(below, tab.composer.popup_height()).0
            };
            tab.composer.render_popup(list_area, buffer, &theme);
            if let Some((level, text, _)) = self.toast.as_ref().filter(|_| !tab.composer.has_popup()) {
                draw_toast(*level, text, open_area, buffer, &theme);
            }
        }
        self.render_dialog(area, frame);
    }
}

/// How much an agent has said in an entry.
fn text_length(view: &attache::SessionView, place: usize) -> usize {
    match view.entry(place) {
        Some(attache::proto::view::Entry::Message(message)) => message.text().len(),
        _ => 0,
    }
}

/// Draws the screen of a program that has just been started, and knows nothing yet.
pub(in crate::chat) fn render_first(frame: &mut Frame<'_>, theme: &Theme) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let (above, status_area) = split_bottom(area, 2.min(area.height / 3));
    let mut composer = Composer::new();
    composer.set_placeholder(tab::PLACEHOLDER);
    let (_, composer_area) = split_bottom(above, composer.height(above.width, area.height).min(above.height));
    composer.render(composer_area, buffer, theme);
    let activity = Some((Activity::Starting, Duration::ZERO));
    Status { activity, ..Status::default() }.render(status_area, buffer, 0, theme);
}

fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let above = area.height - height;
    (Rect { height: above, ..area }, Rect { y: area.y + above, height, ..area })
}

fn at_bottom(area: Rect, height: u16) -> Rect {
    split_bottom(area, height.max(FRAMED).min(area.height)).1
}

fn centered(area: Rect, height: u16) -> Rect {
    let height = height.max(FRAMED).min(area.height);
    let margin = if area.width > 100 { (area.width - 100) / 2 } else { 0 };
    Rect { x: area.x + margin, y: area.y + (area.height - height) / 2, width: area.width - 2 * margin, height }
}

/// Draws a word at the end of the lower edge of a dialog.
fn draw_note(text: &str, area: Rect, buffer: &mut ratatui::buffer::Buffer, theme: &Theme) {
    let wide = u16::try_from(text.len()).unwrap_or(u16::MAX);
    if area.width > wide + 2 && area.height > 0 {
        buffer.set_string(area.right() - wide - 1, area.bottom() - 1, text, theme.warning);
    }
}

fn draw_toast(level: Level, text: &str, area: Rect, buffer: &mut ratatui::buffer::Buffer, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let (style, sign) = match level {
        Level::Info => (theme.accent, theme.sign("·", "-")),
        Level::Warning => (theme.warning, "!"),
        Level::Error => (theme.error, theme.sign("✗", "x")),
    };
    let text = crate::visible::one_line(&text.replace('\n', "; "));
    let area = split_bottom(area, 1).1;
    Clear.render(area, buffer);
    Paragraph::new(Line::styled(format!("{sign} {text}"), style)).render(area, buffer);
}
