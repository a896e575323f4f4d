//! An address that the agent wants to have visited.

use std::fmt;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use url::{Position, Url};

use super::scroll::Scroll;
use super::{is_meant, letter};
use crate::text::{cut, draw, flow, frame, shown, wrap_spans, wrap_words};
use crate::theme::Theme;

/// The longest address that anybody looks through.
const LIMIT: usize = 8_192;

/// Why an address is not shown to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It cannot be read.
    Invalid,
    /// It is neither for `http` nor for `https`.
    Scheme,
    /// It names a user, which looks like a host.
    User,
    /// It is too long to be looked through.
    TooLong,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UrlError::Invalid => "the agent named an invalid address",
            UrlError::Scheme => "the agent named an address that is neither http nor https",
            UrlError::User => "the agent named an address with a user name, which can pass for its host",
            UrlError::TooLong => "the agent named an address of more than 8 KiB",
        })
    }
}

impl std::error::Error for UrlError {}

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UrlReply {
    /// Open exactly this address, as one argument.
    Open(String),
    /// Copy it. The dialog stays open.
    Copy(String),
    /// No.
    Decline,
    /// The person went away.
    Cancel,
}

/// Asks whether to visit an address. It is shown whole, in ASCII, with its host stressed.
#[derive(Debug, Clone)]
pub struct UrlDialog {
    agent: String,
    message: String,
    url: Url,
    session: Option<String>,
    scroll: Scroll,
}

impl UrlDialog {
    /// Asks about this address.
    pub fn new(agent: impl Into<String>, message: impl Into<String>, url: &str) -> Result<Self, UrlError> {
        if url.len() > LIMIT {
            return Err(UrlError::TooLong);
        }
        let url = Url::parse(url).map_err(|_| UrlError::Invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::User);
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(UrlError::Invalid);
        }
        Ok(UrlDialog { agent: agent.into(), message: message.into(), url, session: None, scroll: Scroll::default() })
    }

    /// Names the session, or not if it is the one on the screen.
    pub fn set_session(&mut self, title: Option<String>) {
        self.session = title;
    }

    /// The address as it is shown and opened.
    pub fn address(&self) -> &str {
        self.url.as_str()
    }

    /// Takes a key in that was pressed this long after the dialog appeared.
    pub fn handle_key(&mut self, key: KeyEvent, elapsed: Duration) -> Option<UrlReply> {
        if !is_meant(key, elapsed) || self.scroll.handle_key(key) {
            return None;
        }
        match (key.code, letter(key)) {
            (KeyCode::Esc, _) => Some(UrlReply::Cancel),
            (KeyCode::Enter, _) | (_, Some('n' | 'd')) => Some(UrlReply::Decline),
            (_, Some('o')) => Some(UrlReply::Open(self.address().to_owned())),
            (_, Some('c')) => Some(UrlReply::Copy(self.address().to_owned())),
            _ => None,
        }
    }

    fn lines(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let room = usize::from(width).max(1);
        let words = cut(&shown(&self.message), room.saturating_mul(3), theme);
        let said = format!("{} says: {}{words}{}", shown(&self.agent), theme.sign("“", "\""), theme.sign("”", "\""));
        let mut lines: Vec<Line<'static>> =
            wrap_words(&said, room).into_iter().map(|row| Line::styled(row, theme.thought)).collect();
        let before = &self.url[..Position::BeforeHost];
        let host = &self.url[Position::BeforeHost..Position::AfterHost];
        let rest = &self.url[Position::AfterHost..];
        let stressed = theme.accent.add_modifier(Modifier::UNDERLINED);
        let spans =
            vec![Span::raw(before.to_owned()), Span::styled(host.to_owned(), stressed), Span::raw(rest.to_owned())];
        lines.extend(wrap_spans(spans, room, 0));
        lines.extend(wrap_spans(vec![Span::raw("host: "), Span::styled(host.to_owned(), stressed)], room, 6));
        if host.split('.').any(|label| label.starts_with("xn--")) {
            let warning = "the host has letters beyond ASCII and is shown encoded: it may imitate another";
            lines.extend(wrap_words(warning, room).into_iter().map(|row| Line::styled(row, theme.warning)));
        }
        if self.url.scheme() == "http" {
            let warning = "http: others on the way can read and change what is sent";
            lines.extend(wrap_words(warning, room).into_iter().map(|row| Line::styled(row, theme.warning)));
        }
        lines
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self, width: u16, theme: &Theme) -> u16 {
        u16::try_from(self.lines(width.saturating_sub(4), theme).len() + 3).unwrap_or(u16::MAX)
    }

    /// Draws the dialog.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let mut title = format!("the agent {} wants you to visit an address", shown(&self.agent));
        if let Some(session) = &self.session {
            title = format!("in the session `{}`, {title}", shown(session));
        }
        let inner = frame(&title, "", area, buffer, theme);
        let keys = [("o", "open in the browser"), ("c", "copy"), ("N", "no")];
        let piece = |(key, label): &(&str, &str)| {
            vec![Span::styled(format!("[{key}]"), theme.accent), Span::raw(format!(" {label}"))]
        };
        let keys = flow(keys.iter().map(piece).collect(), 2, usize::from(inner.width), theme);
        let rows = u16::try_from(keys.len()).unwrap_or(1).min(inner.height);
        let page = inner.height - rows;
        let lines = self.lines(inner.width, theme);
        self.scroll.fit(lines.len(), page);
        draw(&lines, self.scroll.top, Rect { height: page, ..inner }, buffer);
        draw(&keys, 0, Rect { y: inner.y + page, height: rows, ..inner }, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_web_is_visited_and_what_is_shown_is_opened() {
        let open = |url: &str| UrlDialog::new("a", "b", url).map(|dialog| dialog.address().to_owned());
        for (url, shown) in [
            ("https://example.com/a?b=c#d", Ok("https://example.com/a?b=c#d")),
            ("HTTP://EXAMPLE.com:80", Ok("http://example.com/")),
            ("https://ex\u{430}mple.com/", Ok("https://xn--exmple-4nf.com/")),
            ("https://example.com/\u{202e}a b\n", Ok("https://example.com/%E2%80%AEa%20b")),
            ("https://github.com@evil.com/", Err(UrlError::User)),
            ("file:///etc/passwd", Err(UrlError::Scheme)),
            ("javascript:alert(1)", Err(UrlError::Scheme)),
            ("--help", Err(UrlError::Invalid)),
            ("", Err(UrlError::Invalid)),
        ] {
            assert_eq!(open(url).as_deref(), shown.as_ref().copied(), "{url}");
        }
        assert_eq!(open(&format!("https://a/{}", "x".repeat(9_000))), Err(UrlError::TooLong));
    }

    #[test]
    fn a_key_that_comes_too_soon_opens_nothing() {
        let mut dialog = UrlDialog::new("a", "b", "https://example.com").unwrap();
        let key = |code| KeyEvent::new(code, crossterm::event::KeyModifiers::NONE);
        assert_eq!(dialog.handle_key(key(KeyCode::Char('o')), Duration::from_millis(100)), None);
        let late = Duration::from_secs(1);
        assert_eq!(dialog.handle_key(key(KeyCode::Enter), late), Some(UrlReply::Decline));
        assert_eq!(dialog.handle_key(key(KeyCode::Esc), late), Some(UrlReply::Cancel));
        let address = "https://example.com/".to_owned();
        assert_eq!(dialog.handle_key(key(KeyCode::Char('o')), late), Some(UrlReply::Open(address)));
    }
}
