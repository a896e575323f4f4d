//! Ways to log in.

use std::time::Duration;

use attache_proto::model::auth::{AuthMethod, AuthMethodId, TerminalAuthMethod};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::confirm::ConfirmDialog;
use super::is_meant;
use crate::picker::{Item, Picker, PickerReply};
use crate::text::{cut, draw, shown};
use crate::theme::Theme;

/// What the person chose.
#[derive(Debug, Clone, PartialEq)]
pub enum LoginReply {
    /// The agent does it by itself.
    Authenticate(AuthMethodId),
    /// The person does it in a terminal; the command was shown and agreed to.
    Terminal(TerminalAuthMethod),
    /// Not now.
    Closed,
}

/// Asks how to log in to an agent.
#[derive(Debug, Clone)]
pub struct LoginDialog {
    agent: String,
    /// How the agent is started, for a login in a terminal.
    command: Vec<String>,
    /// What the agent said.
    message: Option<String>,
    picker: Picker<AuthMethod>,
    /// The command that a yes would run.
    terminal: Option<(TerminalAuthMethod, ConfirmDialog)>,
}

impl LoginDialog {
    /// Offers the agent's methods. `command` is how the agent is started, `message` what it said when it refused.
    pub fn new(
        agent: impl Into<String>,
        command: Vec<String>,
        methods: Vec<AuthMethod>,
        message: Option<String>,
    ) -> Self {
        let agent = agent.into();
        let item = |method: AuthMethod| {
            let (description, how) = match &method {
                AuthMethod::Agent(method) => (method.description.clone(), "by the agent"),
                AuthMethod::Terminal(method) => (method.description.clone(), "in a terminal"),
                _ => (None, "of an unknown kind"),
            };
            let name = method.name().unwrap_or_else(|| "unnamed".into());
            let detail = match description {
                Some(description) if !description.is_empty() => format!("{how}: {description}"),
                _ => how.to_owned(),
            };
            Item::new(method, name).detail(detail)
        };
        let picker = Picker::new(format!("log in to {}", shown(&agent)), methods.into_iter().map(item).collect())
            .with_empty("this agent offers no way to log in from here");
        LoginDialog { agent, command, message, picker, terminal: None }
    }

    /// Whether it asks for a yes to a command: that is another question than the list, and takes no key that was meant for
    /// it.
    pub fn is_confirming(&self) -> bool {
        self.terminal.is_some()
    }

    /// Takes a key in that was pressed this long after the dialog, or the command in it, appeared.
    pub fn handle_key(&mut self, key: KeyEvent, elapsed: Duration) -> Option<LoginReply> {
        if !is_meant(key, elapsed) {
            return None;
        }
        if let Some((method, confirm)) = &mut self.terminal {
            return match confirm.handle_key(key, elapsed)? {
                true => Some(LoginReply::Terminal(method.clone())),
                false => {
                    self.terminal = None;
                    None
                }
            };
        }
        match self.picker.handle_key(key)? {
            PickerReply::Chosen(AuthMethod::Agent(method)) => Some(LoginReply::Authenticate(method.id)),
            PickerReply::Chosen(AuthMethod::Terminal(method)) => {
                let text = self.terminal_text(&method);
                let confirm = ConfirmDialog::new(format!("log in to {}", shown(&self.agent)), text, "run it");
                self.terminal = Some((method, confirm));
                None
            }
            PickerReply::Closed => Some(LoginReply::Closed),
            // A way that we do not know is none.
            _ => None,
        }
    }

    /// What would be run, without the values of its variables, which may be secret.
    fn terminal_text(&self, method: &TerminalAuthMethod) -> String {
        let words = self.command.iter().chain(&method.args);
        let quoted = |word: &String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
            let word = attache_host::visible::visible(word);
            if !word.is_empty() && word.chars().all(is_plain) {
                word
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        };
        let command = words.map(quoted).collect::<Vec<_>>().join(" ");
        let command = super::question::without_gaps(&command, super::question::BLANKS);
        let names: Vec<String> = method.env.iter().map(|variable| shown(&variable.name)).collect();
        let variables = match names.as_slice() {
            [] => String::new(),
            names => format!("\nwith the variables {}", names.join(", ")),
        };
        format!("This runs in your terminal:\n$ {command}{variables}")
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self, width: u16, theme: &Theme) -> u16 {
        match &self.terminal {
            Some((_, confirm)) => confirm.height(width, theme),
            None => self.picker.height() + u16::from(self.message.is_some()),
        }
    }

    /// Draws the dialog.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        if let Some((_, confirm)) = &mut self.terminal {
            return confirm.render(area, buffer, theme);
        }
        let area = area.intersection(buffer.area);
        let said = self.message.as_ref().map(|message| {
            let (open, close) = (theme.sign("“", "\""), theme.sign("”", "\""));
            let mark = format!("{} says: {open}", shown(&self.agent));
            let room = usize::from(area.width).saturating_sub(crate::text::columns(&mark) + 1);
            let words = cut(&shown(message), room, theme);
            Line::from(vec![Span::raw(mark), Span::styled(words, theme.thought), Span::raw(close)])
        });
        let rows = u16::from(said.is_some() && area.height > 3);
        ratatui::widgets::Widget::render(ratatui::widgets::Clear, Rect { height: rows, ..area }, buffer);
        draw(said.as_slice(), 0, Rect { height: rows, ..area }, buffer);
        self.picker.render(Rect { y: area.y + rows, height: area.height - rows, ..area }, buffer, theme);
    }
}
