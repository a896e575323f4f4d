//! The sessions that are open, on one line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::spinner;
use crate::text::{columns, cut, cut_line, draw, shown};
use crate::theme::Theme;

/// A tab has no more columns than this: the name of a session is to be told from others, not read.
const TAB_WIDTH: usize = 28;

/// What a session is doing, as its tab shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TabState {
    /// It waits for the person.
    #[default]
    Idle,
    /// The agent works.
    Working,
    /// The agent asks something.
    Asking,
    /// There is something that was not seen yet.
    Unread,
    /// The agent has ended.
    Dead,
}

/// A session in the header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tab {
    /// Its title, or what its agent is called.
    pub title: String,
    /// What it is doing.
    pub state: TabState,
}

/// The sessions that are open, on one line. Each state has a sign of its own.
pub fn tabs_line(tabs: &[Tab], current: usize, width: u16, tick: u64, theme: &Theme) -> Line<'static> {
    let width = usize::from(width);
    let spans = |index: usize, tab: &Tab| {
        let (sign, style) = match tab.state {
            TabState::Idle => ("", theme.dim),
            TabState::Working => (spinner(tick, theme), theme.accent),
            TabState::Asking => ("?", theme.warning.add_modifier(Modifier::BOLD)),
            TabState::Unread => (theme.sign("●", "*"), theme.success),
            TabState::Dead => (theme.sign("✗", "x"), theme.error),
        };
        let sign = if sign.is_empty() { String::new() } else { format!("{sign} ") };
        let name = cut(&shown(&tab.title), TAB_WIDTH.saturating_sub(columns(&sign) + 4), theme);
        let is_current = index == current;
        // The current one is told by brackets where there are no colours.
        let (open, close) = if is_current { ("[", "]") } else { (" ", " ") };
        let title =
            Span::styled(format!("{} {name}{close}", index + 1), if is_current { theme.user } else { theme.dim });
        vec![Span::raw(open), Span::styled(sign, style), title]
    };
    let wide = |spans: &[Span<'static>]| spans.iter().map(|span| columns(&span.content)).sum::<usize>();
    let all: Vec<Vec<Span<'static>>> = tabs.iter().enumerate().map(|(index, tab)| spans(index, tab)).collect();
    // As many as fit around the current one; signs of those that do not fit are told by their number.
    let (mut first, mut end) = (current.min(all.len()), (current + 1).min(all.len()));
    let mut used = all.get(first..end).map_or(0, |tabs| tabs.iter().map(|tab| wide(tab)).sum());
    loop {
        let room = width.saturating_sub(used + 10);
        let right = all.get(end).map(|tab| wide(tab)).filter(|wide| *wide <= room);
        let left = first.checked_sub(1).map(|index| wide(&all[index])).filter(|wide| *wide <= room);
        match (right, left) {
            (Some(wide), _) => {
                end += 1;
                used += wide;
            }
            (None, Some(wide)) => {
                first -= 1;
                used += wide;
            }
            (None, None) => break,
        }
    }
    let more = |tabs: &[Tab], count: usize| {
        let wants = tabs.iter().any(|tab| tab.state == TabState::Asking);
        let style = if wants { theme.warning } else { theme.dim };
        Span::styled(format!(" {}{count} ", if wants { "?" } else { "+" }), style)
    };
    let mut line = Line::default();
    if first > 0 {
        line.push_span(more(&tabs[..first], first));
    }
    all.into_iter().take(end).skip(first).flatten().for_each(|span| line.push_span(span));
    if end < tabs.len() {
        line.push_span(more(&tabs[end..], tabs.len() - end));
    }
    cut_line(&line, width, theme)
}

/// Draws the sessions that are open.
pub fn render_tabs(tabs: &[Tab], current: usize, area: Rect, buffer: &mut Buffer, tick: u64, theme: &Theme) {
    draw(&[tabs_line(tabs, current, area.width, tick, theme)], 0, Rect { height: area.height.min(1), ..area }, buffer);
}
