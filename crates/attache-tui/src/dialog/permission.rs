//! The dialog that asks for permission.

use std::time::Duration;

use attache_host::permission::Question;
use attache_proto::model::permission::PermissionOption;
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::question::{
    LEAST_WIDTH, LONG, Meaning, PermissionReply, QuestionText, choices, explanation_lines, pager_text, question_text,
};
use super::scroll::Scroll;
use super::{is_meant, last_part, letter};
use crate::input::LineInput;
use crate::text::{columns, cut, draw, frame, shown};
use crate::theme::Theme;

/// Asks for permission. Nothing that allows is chosen beforehand: Enter alone is no.
#[derive(Debug, Clone)]
pub struct PermissionDialog {
    question: Question,
    options: Vec<PermissionOption>,
    session: Option<String>,
    position: (usize, usize),
    scroll: Scroll,
    reason: Option<LineInput>,
    is_explaining: bool,
    /// Whether the last row of what would be done has been on the screen, or all of it in the pager.
    is_read: bool,
    /// Whether a yes came before that.
    is_hurried: bool,
    /// Whether it is so long that only the pager has it.
    is_too_long: bool,
    /// Whether the window is so narrow that the end of each row is not seen.
    is_too_narrow: bool,
    /// The question for the width and theme that it was last drawn with: a diff is not made for every key.
    laid_out: Option<(u16, Theme, QuestionText)>,
}

impl PermissionDialog {
    /// Asks this, with the agent's own answers in its order.
    pub fn new(question: Question, options: Vec<PermissionOption>) -> Self {
        PermissionDialog {
            question,
            options,
            session: None,
            position: (1, 1),
            scroll: Scroll::default(),
            reason: None,
            is_explaining: false,
            is_read: false,
            is_hurried: false,
            is_too_long: false,
            is_too_narrow: false,
            laid_out: None,
        }
    }

    /// Of a session that is not the one on the screen: it is named.
    pub fn of_session(mut self, title: impl Into<String>) -> Self {
        self.set_session(Some(title.into()));
        self
    }

    /// Names the session, or not if it is the one on the screen.
    pub fn set_session(&mut self, title: Option<String>) {
        self.session = title;
    }

    /// It is the first of so many that wait.
    pub fn set_position(&mut self, position: usize, count: usize) {
        self.position = (position, count);
    }

    /// What is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// The agent's own answers.
    pub fn options(&self) -> &[PermissionOption] {
        &self.options
    }

    /// The whole question, for the pager.
    pub fn pager_text(&self) -> String {
        pager_text(&self.question)
    }

    /// All of it was shown in the pager.
    pub fn set_read(&mut self) {
        self.is_read = true;
    }

    /// Scrolls, as by a mouse wheel.
    pub fn scroll(&mut self, rows: isize) {
        self.scroll.by(rows);
    }

    /// Takes a key in that was pressed this long after the dialog appeared.
    pub fn handle_key(&mut self, key: KeyEvent, elapsed: Duration) -> Option<PermissionReply> {
        if !is_meant(key, elapsed) {
            return None;
        }
        if let Some(reason) = &mut self.reason {
            match key.code {
                KeyCode::Esc => self.reason = None,
                KeyCode::Enter => {
                    let text = reason.text().trim().to_owned();
                    return Some(PermissionReply::Deny { reason: (!text.is_empty()).then_some(text) });
                }
                _ => {
                    reason.handle_key(key);
                }
            }
            return None;
        }
        if self.is_explaining {
            if !self.scroll.handle_key(key) {
                self.is_explaining = false;
                self.scroll = Scroll::default();
            }
            return None;
        }
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => return Some(PermissionReply::Deny { reason: None }),
            KeyCode::Esc => return Some(PermissionReply::Deny { reason: None }),
            _ if self.scroll.handle_key(key) => return None,
            _ => {}
        }
        let letter = letter(key)?;
        let choice = choices(&self.question, &self.options, true).into_iter().find(|choice| choice.key == letter)?;
        match choice.meaning {
            Meaning::Reply(reply) => {
                let allows = matches!(reply, PermissionReply::Allow(_)) || choice.allows == Some(true);
                if !allows || self.is_read && !self.is_too_narrow {
                    return Some(reply);
                }
                // Nobody says yes to what they cannot have seen: a page of it is shown with each.
                self.is_hurried = true;
                self.scroll.page_down();
            }
            Meaning::AskReason => self.reason = Some(LineInput::default()),
            Meaning::Explain => {
                self.is_explaining = true;
                self.scroll = Scroll::default();
            }
        }
        None
    }

    /// Takes in text that was pasted: into the reason, if one is being typed.
    pub fn handle_paste(&mut self, text: &str) {
        if let Some(reason) = &mut self.reason {
            reason.handle_paste(text);
        }
    }

    fn lay_out(&mut self, width: u16, theme: &Theme) {
        if self.laid_out.as_ref().is_none_or(|(known, with, _)| *known != width || with != theme) {
            let (text, is_too_long) = question_text(&self.question, &self.options, width, theme);
            self.is_too_long = is_too_long;
            self.laid_out = Some((width, theme.clone(), text));
        }
    }

    fn explanation(&self, text: &QuestionText, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let is_long = self.is_too_long || text.content.len() + text.ask.len() > LONG;
        explanation_lines(&choices(&self.question, &self.options, is_long), width, theme)
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&mut self, width: u16, theme: &Theme) -> u16 {
        let width = width.saturating_sub(4);
        self.lay_out(width, theme);
        let Some((_, _, text)) = &self.laid_out else { return 0 };
        let explained = if self.is_explaining { self.explanation(text, width, theme).len() } else { 0 };
        u16::try_from(text.content.len().max(explained) + text.ask.len() + 2).unwrap_or(u16::MAX)
    }

    /// Draws the dialog. The choices are always seen; what would be done is scrolled above them.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let mut title = format!("{} asks", shown(last_part(&self.question.agent)));
        // What is special about it comes first: the name of an agent may be long, and the end is cut off.
        if self.position.1 > 1 {
            title = format!("{} of {}: {title}", self.position.0, self.position.1);
        }
        if let Some(session) = &self.session {
            title = format!("in the session `{}`, {title}", shown(session));
        }
        let inside = frame("", "", area, buffer, theme);
        self.lay_out(inside.width, theme);
        let Some((_, _, text)) = &self.laid_out else { return };
        let explained;
        let content = if self.is_explaining {
            explained = self.explanation(text, inside.width, theme);
            &explained
        } else {
            &text.content
        };
        // Where there is no room for all choices there is still some for what would be done; `?` explains the keys.
        let most = (inside.height * 2 / 3).max(1).min(inside.height);
        let ask_rows = u16::try_from(text.ask.len()).unwrap_or(u16::MAX).min(most);
        let page = inside.height - ask_rows;
        self.scroll.fit(content.len(), page);
        let below = self.scroll.below();
        self.is_too_narrow = usize::from(inside.width) < LEAST_WIDTH;
        self.is_read |= below == 0 && page > 0 && !self.is_explaining && !self.is_too_long;
        let hint = match (below, self.is_explaining) {
            (_, false) if self.is_hurried && self.is_too_narrow => "too narrow for a yes".to_owned(),
            (0, false) if self.is_hurried && self.is_too_long => "read it in the pager (e) before a yes".to_owned(),
            (0, false) if self.is_hurried => "this is the end; now a yes counts".to_owned(),
            (0, true) => "any key goes back".to_owned(),
            (0, _) if self.scroll.top == 0 => String::new(),
            (0, _) => "end".to_owned(),
            (below, false) if self.is_hurried && !self.is_too_long => format!("{below} more lines before a yes counts"),
            (below, _) => format!("{below} more lines below: pagedown"),
        };
        let inner = frame(&title, &hint, area, buffer, theme);
        draw(content, self.scroll.top, Rect { height: page, ..inner }, buffer);
        let ask = Rect { y: inner.y + page, height: ask_rows, ..inner };
        let Some(reason) = &mut self.reason else {
            // The keys are seen, however little room there is.
            let rows = usize::from(ask_rows);
            let asked = text.choices_at.min(rows.saturating_sub(1));
            let lines: Vec<Line<'static>> = match text.ask.len() > rows {
                true => text.ask[..asked].iter().chain(&text.ask[text.choices_at..]).cloned().collect(),
                false => text.ask.clone(),
            };
            draw(&lines, 0, ask, buffer);
            return;
        };
        let first = if ask.height > 1 { 1 } else { 0 };
        draw(&text.ask[..text.ask.len().min(first)], 0, ask, buffer);
        let first = u16::try_from(first).unwrap_or(0).min(ask.height);
        let row = Rect { y: ask.y + first, height: ask.height.saturating_sub(first).min(1), ..ask };
        let label = cut("no, because: ", usize::from(row.width) / 2, theme);
        let used = u16::try_from(columns(&label)).unwrap_or(0).min(row.width);
        draw(&[Line::styled(label, theme.accent)], 0, row, buffer);
        reason.render(Rect { x: row.x + used, width: row.width - used, ..row }, buffer, theme);
    }
}
