//! The lines around the transcript: sessions above, state below, and news for a moment.

mod amounts;
mod tabs;
mod toasts;

#[cfg(test)]
mod tests;

use std::time::Duration;

use attache_proto::model::config::{ConfigCategory, ConfigKind, ConfigOption};
use attache_proto::view::SessionView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text::{columns, cut, cut_line, cut_start, draw, shown};
use crate::theme::Theme;

use amounts::number;
pub use amounts::{cost, duration, thousands};
pub use tabs::{Tab, TabState, render_tabs, tabs_line};
pub use toasts::{Level, Toasts};

/// How wide the bar of the context is.
const BAR: usize = 8;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// The agent starts.
    Starting,
    /// A session is opened or loaded.
    OpeningSession,
    /// The model thinks.
    Thinking,
    /// The agent writes its answer.
    Answering,
    /// A tool call runs, of this title.
    Tool(String),
    /// A command runs.
    Running(String),
    /// The person is asked something.
    Asking,
    /// The conversation is compacted.
    Compacting,
    /// The turn is being cancelled.
    Cancelling,
    /// The next attempt is made after this time.
    Retrying(Duration),
    /// The agent has ended.
    Dead,
    /// Something else, in words.
    Other(String),
}

/// A file and line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkPlace {
    /// The path, relative where it can be.
    pub path: String,
    /// The line, counted from one.
    pub line: Option<u32>,
}

/// What stands below the transcript.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// The agent's name.
    pub agent: String,
    /// The model, by name.
    pub model: Option<String>,
    /// The mode, by name.
    pub mode: Option<String>,
    /// The tokens in the context, and how many fit.
    pub context: Option<(u64, u64)>,
    /// The tokens of the turn, or of the session.
    pub tokens: Option<u64>,
    /// What the session has cost, and in which currency.
    pub cost: Option<(f64, String)>,
    /// How long the turn has taken.
    pub elapsed: Option<Duration>,
    /// What is waited for, and for how long already.
    pub activity: Option<(Activity, Duration)>,
    /// Where the agent works.
    pub location: Option<WorkPlace>,
    /// How many messages wait.
    pub queued: usize,
    /// How many rows are below what is seen of the transcript.
    pub below: usize,
    /// Keys and what they do, the most useful first.
    pub hints: Vec<(String, String)>,
}

impl Status {
    /// What a session tells about itself.
    pub fn from_view(agent: impl Into<String>, view: &SessionView) -> Self {
        let mode = view.current_mode.as_ref().map(|id| {
            view.modes.iter().find(|mode| mode.id == *id).map_or_else(|| id.to_string(), |mode| mode.name.clone())
        });
        Status {
            agent: agent.into(),
            model: option_value(&view.options, &ConfigCategory::Model),
            mode: option_value(&view.options, &ConfigCategory::Mode).or(mode),
            context: view.usage.as_ref().map(|usage| (usage.used, usage.size)),
            tokens: view.turn_usage.as_ref().map(|usage| usage.total_tokens),
            cost: view
                .usage
                .as_ref()
                .and_then(|usage| usage.cost.as_ref())
                .map(|cost| (cost.amount, cost.currency.clone())),
            ..Status::default()
        }
    }

    /// The first line: what is waited for and where the agent works; and keys.
    pub fn activity_line(&self, width: u16, tick: u64, theme: &Theme) -> Line<'static> {
        let width = usize::from(width);
        let mut parts: Vec<Part> = Vec::new();
        if let Some((activity, time)) = &self.activity {
            let (words, style) = in_words(activity, theme);
            let time = match activity {
                Activity::Retrying(_) | Activity::Dead => String::new(),
                _ => format!(" {}", duration(*time)),
            };
            let sign = match activity {
                Activity::Asking => "?",
                Activity::Dead => theme.sign("✗", "x"),
                _ => spinner(tick, theme),
            };
            let room = width.saturating_sub(columns(&time) + 2);
            let text = format!("{sign} {}{time}", cut(&words, room, theme));
            parts.push(Part { rank: 0, spans: vec![Span::styled(text, style)] });
        }
        let mut hints = self.hints.iter().enumerate().map(|(index, (key, what))| {
            let spans =
                vec![Span::styled(shown(key), theme.accent), Span::styled(format!(" {}", shown(what)), theme.dim)];
            // The most useful key stays as long as anything does.
            Part { rank: if index == 0 { 1 } else { 4 + index }, spans }
        });
        parts.extend(hints.next());
        if self.queued > 0 {
            parts.push(Part::new(2, format!("{} waiting", self.queued), theme.text));
        }
        if self.below > 0 {
            let text = format!("{}{} rows below", theme.sign("↓ ", ""), number(self.below));
            parts.push(Part::new(3, text, theme.warning));
        }
        if let Some(place) = &self.location {
            let line = place.line.map(|line| format!(":{line}")).unwrap_or_default();
            let path = cut_start(&shown(&place.path), (width / 3).max(8), theme);
            parts.push(Part::new(4, format!("at {path}{line}"), theme.dim));
        }
        parts.extend(hints);
        fit(parts, width, theme)
    }

    /// The second line: agent, model, mode, context, tokens, cost, time.
    pub fn session_line(&self, width: u16, theme: &Theme) -> Line<'static> {
        let width = usize::from(width);
        let mut parts = Vec::new();
        let name = |text: &str| cut(&shown(text), 32, theme);
        if !self.agent.is_empty() {
            parts.push(Part::new(1, name(&self.agent), theme.user));
        }
        if let Some(model) = &self.model {
            parts.push(Part::new(2, name(model), theme.text));
        }
        if let Some(mode) = &self.mode {
            parts.push(Part::new(0, name(mode), theme.accent));
        }
        if let Some((used, size)) = self.context {
            parts.push(context_part(used, size, theme));
        }
        if let Some((amount, currency)) = &self.cost {
            parts.push(Part::new(4, cost(*amount, currency), theme.text));
        }
        if let Some(tokens) = self.tokens {
            parts.push(Part::new(6, format!("{} tokens", thousands(tokens)), theme.dim));
        }
        if let Some(elapsed) = self.elapsed {
            parts.push(Part::new(5, duration(elapsed), theme.dim));
        }
        fit(parts, width, theme)
    }

    /// Draws both lines, or the more important one.
    pub fn render(&self, area: Rect, buffer: &mut Buffer, tick: u64, theme: &Theme) {
        let lines = [self.activity_line(area.width, tick, theme), self.session_line(area.width, theme)];
        let only = usize::from(self.activity.is_none());
        draw(if area.height == 1 { &lines[only..=only] } else { &lines }, 0, area, buffer);
    }
}

/// The name of the value of the option that is about this.
fn option_value(options: &[ConfigOption], category: &ConfigCategory) -> Option<String> {
    let option = options.iter().find(|option| option.category.as_ref() == Some(category))?;
    match &option.kind {
        ConfigKind::Select(select) => {
            let value = select.options.iter().find(|value| value.value == select.current);
            Some(value.map_or_else(|| select.current.to_string(), |value| value.name.clone()))
        }
        _ => None,
    }
}

fn in_words(activity: &Activity, theme: &Theme) -> (String, Style) {
    let words = match activity {
        Activity::Starting => "starting agent".into(),
        Activity::OpeningSession => "opening session".into(),
        Activity::Thinking => "thinking".into(),
        Activity::Answering => "answering".into(),
        Activity::Tool(title) => shown(title),
        Activity::Running(command) => format!("running `{}`", shown(command)),
        Activity::Asking => return ("waiting for your answer".into(), theme.warning),
        Activity::Compacting => "compacting the conversation".into(),
        Activity::Cancelling => "cancelling".into(),
        Activity::Retrying(time) => return (format!("retry in {}", duration(*time)), theme.warning),
        Activity::Dead => return ("the agent has ended".into(), theme.error),
        Activity::Other(words) => shown(words),
    };
    (words, theme.accent)
}

/// Something that is shown where there is room; the lower its rank, the longer it stays.
struct Part {
    rank: usize,
    spans: Vec<Span<'static>>,
}

impl Part {
    fn new(rank: usize, text: String, style: Style) -> Self {
        Part { rank, spans: vec![Span::styled(text, style)] }
    }

    fn width(&self) -> usize {
        self.spans.iter().map(|span| columns(&span.content)).sum()
    }
}

/// As many parts as fit, in their order; the most important are taken first.
fn fit(parts: Vec<Part>, width: usize, theme: &Theme) -> Line<'static> {
    let gap = theme.sign(" · ", " | ");
    let mut by_rank: Vec<usize> = (0..parts.len()).collect();
    by_rank.sort_by_key(|index| parts[*index].rank);
    let mut used = 0;
    let mut is_taken = vec![false; parts.len()];
    for index in by_rank {
        let before = if used == 0 { 0 } else { columns(gap) };
        let wide = before + parts[index].width();
        // Something is better than nothing: the first one is cut.
        if used == 0 || used + wide <= width {
            is_taken[index] = true;
            used += wide;
        }
    }
    let mut line = Line::default();
    for (part, _) in parts.into_iter().zip(is_taken).filter(|(_, is_taken)| *is_taken) {
        if !line.spans.is_empty() {
            line.push_span(Span::styled(gap, theme.dim));
        }
        part.spans.into_iter().for_each(|span| line.push_span(span));
    }
    cut_line(&line, width, theme)
}

fn context_part(used: u64, size: u64, theme: &Theme) -> Part {
    let percent = used.saturating_mul(100).checked_div(size).unwrap_or(0);
    let style = match percent {
        0..70 => theme.success,
        70..90 => theme.warning,
        _ => theme.error,
    };
    // Something is not nothing, however little it is.
    let filled = (usize::try_from(percent.min(100)).unwrap_or(100) * BAR).div_ceil(100);
    let bar = theme.sign("█", "#").repeat(filled) + &theme.sign("░", ".").repeat(BAR - filled);
    let text = format!(" {percent}% of {}", thousands(size));
    Part { rank: 3, spans: vec![Span::styled(bar, style), Span::styled(text, theme.dim)] }
}

/// A spinner's sign for a tick of the clock.
fn spinner(tick: u64, theme: &Theme) -> &'static str {
    let signs: &[&str] = if theme.is_unicode {
        &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
    } else {
        &["|", "/", "-", "\\"]
    };
    let length = u64::try_from(signs.len()).unwrap_or(1);
    usize::try_from(tick % length).ok().and_then(|index| signs.get(index)).copied().unwrap_or(" ")
}
