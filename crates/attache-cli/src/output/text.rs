//! A run as a person reads it: the agent's text on stdout, everything else in short on stderr.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use attache_tui::markdown::Stream;
use attache_tui::status::{cost, thousands};
use attache_tui::theme::ColorDepth;
use ratatui::text::Line;

use super::Waiting;
use super::lines::{last_lines, one_line, show_change};
use super::style::{Paint, Screen};
use crate::event::{Answer, Command, Cost, Event, FileOperation, KEPT_TAIL, Level, Plan, Result, Tool, tail_of};
use crate::pen::Ink;
use crate::visible::visible;

/// How many changes of one tool call are shown.
const SHOWN_CHANGES: usize = 50;

/// How long nothing must come before a person is told that somebody works.
const FIRST_SIGN: Duration = Duration::from_secs(1);

/// How often a log, which cannot take a line back, is told the same.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Longer lines are hard to read.
const MOST_COLUMNS: usize = 120;

/// How many tool calls are remembered, so that their end can be told by name.
const REMEMBERED: usize = 1000;

pub(crate) struct TextPrinter {
    screen: Screen,
    /// What was printed on stdout does not end with a line end.
    is_data_open: bool,
    /// The cursor stands behind it.
    is_line_open: bool,
    /// Nothing was told since the last text.
    is_after_text: bool,
    /// A thought on stderr does.
    is_thought_open: bool,
    /// A sign of work stands on the screen.
    is_sign_shown: bool,
    /// When the log was last told that somebody works.
    last_logged: Duration,
    tools: HashMap<String, Shown>,
    /// The call whose beginning was told last: what follows is about it.
    last_tool: Option<String>,
    /// The end of what commands have written so far, for when they end.
    tails: HashMap<String, String>,
    /// The plan as it was shown last.
    plan: Option<Plan>,
    /// The agent's text, where a screen can show more than its letters.
    markdown: Option<Markdown>,
    /// Who answers was said before.
    pub(super) is_agent_told: bool,
}

/// Markdown as a screen shows it, a block at a time.
struct Markdown {
    stream: Stream,
    depth: ColorDepth,
}

impl Markdown {
    fn new() -> Self {
        let theme = crate::chat::theme(None);
        let width = crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns));
        let depth = theme.depth;
        Markdown { stream: Stream::new(width.clamp(20, MOST_COLUMNS), theme), depth }
    }

    fn paint(&self, lines: Vec<Line<'static>>) -> String {
        lines.iter().map(|line| attache_tui::to_ansi(line, self.depth) + "\n").collect()
    }

    fn push(&mut self, text: &str) -> String {
        let lines = self.stream.push(text);
        self.paint(lines)
    }

    fn pause(&mut self) -> String {
        let lines = self.stream.pause();
        self.paint(lines)
    }

    fn finish(&mut self) -> String {
        let lines = self.stream.finish();
        self.paint(lines)
    }
}

/// What was shown of a tool call.
#[derive(Default)]
struct Shown {
    title: String,
    is_begun: bool,
    is_ended: bool,
    /// It is not worth a line.
    is_silent: bool,
    /// Its changes as they will be shown.
    changes: Vec<String>,
}

impl TextPrinter {
    pub(crate) fn new(screen: Screen) -> Self {
        TextPrinter {
            screen,
            is_data_open: false,
            is_line_open: false,
            is_after_text: false,
            is_thought_open: false,
            is_sign_shown: false,
            last_logged: Duration::ZERO,
            tools: HashMap::new(),
            last_tool: None,
            tails: HashMap::new(),
            plan: None,
            markdown: (screen.out && screen.moves && screen.colour).then(Markdown::new),
            is_agent_told: false,
        }
    }

    pub(crate) fn event(&mut self, event: &Event, gap: &str) -> Vec<Ink> {
        let mut ink = self.clear();
        if !matches!(event, Event::Text(_)) || !gap.is_empty() {
            ink.extend(self.finish_text());
        }
        match event {
            Event::Text(text) if text.text.is_empty() => {}
            Event::TextReplaced(text) => {
                // What is printed is printed. What holds now comes once more, below a line that says so.
                let is_gone = text.text.is_empty();
                let mark = if is_gone {
                    "the agent has taken back this message"
                } else {
                    "the agent has replaced this message by:"
                };
                ink.extend(self.end_line());
                ink.push(Ink::err(format!("{}\n", self.screen.paint(Paint::Yellow, mark))));
                let mut gap = gap;
                if !self.screen.out {
                    // Who reads a file or a pipe sees nothing else.
                    let end = if std::mem::take(&mut self.is_data_open) { "\n" } else { "" };
                    ink.push(Ink::out(format!("{end}[{mark}]\n")));
                    gap = "";
                }
                self.is_after_text = false;
                ink.extend(self.event(&Event::Text(text.clone()), gap));
            }
            Event::Text(text) => {
                if self.is_thought_open {
                    ink.push(Ink::err("\n"));
                    self.is_thought_open = false;
                }
                let text = if self.screen.out { visible(&text.text) } else { Cow::Borrowed(&*text.text) };
                // On a screen, where text and talk are seen together, one empty line is enough between them.
                let is_after_talk = self.is_together() && !self.is_line_open && !self.is_after_text;
                let gap = if is_after_talk { gap.get(..1).unwrap_or_default() } else { gap };
                let text = if is_after_talk { text.trim_start_matches('\n') } else { &*text };
                if is_after_talk && text.is_empty() {
                    return ink;
                }
                self.is_after_text = true;
                if let Some(markdown) = &mut self.markdown {
                    let lines = markdown.push(text);
                    // A block that is not finished yet may still become another one.
                    let gap = if gap.is_empty() { "" } else { "\n" };
                    ink.extend(Some(format!("{gap}{lines}")).filter(|text| !text.is_empty()).map(Ink::out));
                    return ink;
                }
                self.is_data_open = !text.ends_with('\n');
                self.is_line_open = self.is_data_open;
                ink.push(Ink::out(format!("{gap}{text}")));
            }
            Event::ThoughtReplaced(thought) if self.screen.err => {
                ink.extend(self.end_line());
                ink.push(Ink::err(format!(
                    "{}\n",
                    self.screen.paint(Paint::Dim, "the agent has replaced this thought by:")
                )));
                ink.extend(self.event(&Event::Thought(thought.clone()), gap));
            }
            // Thoughts are many and go by; a log is better off without them.
            Event::Thought(thought) if self.screen.err => {
                if self.is_line_open {
                    ink.extend(self.end_line());
                }
                self.is_after_text = false;
                let text = self.screen.paint(Paint::Dim, &visible(&thought.text));
                self.is_thought_open = !thought.text.ends_with('\n');
                ink.push(Ink::err(text));
            }
            event => {
                let talk = self.describe(event);
                if !talk.is_empty() {
                    ink.extend(self.end_line());
                    if std::mem::take(&mut self.is_after_text) && self.is_together() {
                        ink.push(Ink::err("\n"));
                    }
                    ink.push(Ink::err(talk));
                }
            }
        }
        ink
    }

    fn describe(&mut self, event: &Event) -> String {
        let paint = |paint, text: &str| self.screen.paint(paint, text);
        match event {
            Event::Agent(_) | Event::Model(_) if self.is_agent_told => String::new(),
            Event::Agent(agent) => {
                let name = agent.name.as_deref().unwrap_or(&agent.agent);
                let version = agent.version.as_deref().filter(|version| !version.is_empty());
                let version = version.map(|version| format!(" {version}")).unwrap_or_default();
                let protocol = agent.protocol.as_deref().unwrap_or_default();
                let line = one_line(&format!("{name}{version}, protocol {protocol}"));
                format!("{}\n", paint(Paint::Dim, &line))
            }
            Event::Model(model) => {
                let by = model.chosen_by.as_deref().map(|by| format!(", chosen by {by}")).unwrap_or_default();
                format!("{}\n", paint(Paint::Dim, &one_line(&format!("model {}{by}", model.id))))
            }
            Event::Tool(tool) => self.tool(tool),
            Event::Command(command) => self.command(command),
            Event::CommandOutput(output) => {
                self.keep_tail(&output.id, &output.text);
                String::new()
            }
            // What is read is said by the tool call, and what is not there is no news.
            Event::File(file) if file.operation == FileOperation::Read => String::new(),
            Event::File(file) => match &file.error {
                Some(error) => format!("  {}\n", paint(Paint::Yellow, &one_line(&format!("not written: {error}")))),
                None => format!("  {}\n", paint(Paint::Dim, &one_line(&format!("wrote {}", file.path)))),
            },
            Event::Plan(plan) => self.plan(plan),
            Event::Permission(permission) => {
                let line = format!("{} ({})", one_line(&permission.what), one_line(&permission.reason));
                match permission.answer {
                    // The call itself follows.
                    Answer::Allowed => format!("{}\n", paint(Paint::Dim, &format!("allowed {line}"))),
                    Answer::Denied => format!("{} {line}\n", paint(Paint::Red, "denied")),
                    Answer::Cancelled => format!("{} {line}\n", paint(Paint::Yellow, "cancelled")),
                }
            }
            Event::Notice(notice) => {
                let colour = match notice.level {
                    Level::Info => Paint::Dim,
                    Level::Warning => Paint::Yellow,
                    Level::Error => Paint::Red,
                };
                format!("{}\n", paint(colour, visible(&notice.text).trim_end()))
            }
            Event::Subagent(subagent) => {
                let title = subagent.title.as_deref().filter(|title| !title.is_empty());
                let line = |title| format!("{}\n", paint(Paint::Dim, &one_line(&format!("subagent: {title}"))));
                title.map(line).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    /// A plan is told whole when it is new, and then by what has changed.
    fn plan(&mut self, plan: &Plan) -> String {
        let entries: Vec<_> = plan.changed_since(self.plan.as_ref()).collect();
        let mut text = String::new();
        if !entries.is_empty() {
            text += &format!("{}\n", self.screen.paint(Paint::Bold, "plan"));
        }
        for entry in entries {
            let mark = match entry.status.as_deref() {
                Some("completed") => "[x]",
                Some("in_progress") => "[>]",
                _ => "[ ]",
            };
            text += &format!("  {mark} {}\n", visible(&entry.text).trim_end().replace('\n', "\n      "));
        }
        self.plan = Some(plan.clone());
        text
    }

    /// A call is told when it begins, and again when it fails or has something to show.
    fn tool(&mut self, tool: &Tool) -> String {
        if self.tools.len() >= REMEMBERED && !self.tools.contains_key(&tool.id) {
            self.tools.retain(|_, shown| !shown.is_ended);
            if self.tools.len() >= REMEMBERED {
                // An agent that never ends its calls.
                self.tools.clear();
            }
        }
        let screen = self.screen;
        let shown = self.tools.entry(tool.id.clone()).or_default();
        if let Some(title) = &tool.title {
            shown.title = one_line(title);
        }
        if tool.replaces {
            shown.changes.clear();
        }
        if let Some(changes) = &tool.changes {
            for change in changes.iter().map(|change| show_change(change, screen)) {
                if shown.changes.len() < SHOWN_CHANGES && !shown.changes.contains(&change) {
                    shown.changes.push(change);
                }
            }
        }
        if let Some(kind) = &tool.kind {
            shown.is_silent = kind == "think";
        }
        let status = tool.status.as_deref().unwrap_or_default();
        // To think is not to do anything; what comes of it is told on its own, as a plan is.
        shown.is_silent &= tool.output.is_none() && matches!(status, "" | "pending" | "in_progress" | "completed");
        let mut text = String::new();
        let has_ended = matches!(status, "completed" | "failed" | "cancelled");
        // An agent names a call before it knows what it will do; that is shown once it is at work.
        if !shown.is_begun && !shown.is_silent && (has_ended || status == "in_progress") {
            shown.is_begun = true;
            self.last_tool = Some(tool.id.clone());
            text += &format!("{} {}\n", screen.paint(Paint::Bold, "*"), shown.title);
        }
        if has_ended && !shown.is_ended {
            shown.is_ended = true;
            if status != "completed" {
                let is_last = self.last_tool.as_ref() == Some(&tool.id);
                let title = if is_last { String::new() } else { format!(": {}", shown.title) };
                text += &format!("  {}\n", screen.paint(Paint::Red, &format!("{status}{title}")));
                if let Some(output) = &tool.output {
                    text += &last_lines(output, screen);
                }
            } else {
                text += &shown.changes.concat();
            }
            shown.changes = Vec::new();
        }
        text
    }

    fn keep_tail(&mut self, id: &str, text: &str) {
        if self.tails.len() >= REMEMBERED && !self.tails.contains_key(id) {
            self.tails.clear();
        }
        let tail = self.tails.entry(id.to_owned()).or_default();
        tail.push_str(text);
        if tail.len() > 2 * KEPT_TAIL {
            *tail = tail_of(tail);
        }
    }

    fn command(&mut self, command: &Command) -> String {
        let mut text = String::new();
        if let Some(command) = &command.command {
            let title = self.last_tool.as_ref().and_then(|id| self.tools.get(id)).map(|shown| shown.title.as_str());
            // Many agents call the call by its command.
            if title != Some(&one_line(command)) {
                text += &format!("  $ {}\n", visible(command).replace('\n', "\n    "));
            }
        }
        let has_ended = command.exit_code.is_some() || command.signal.is_some();
        if let Some(tail) = &command.tail {
            self.tails.insert(command.id.clone(), tail.clone());
        }
        if has_ended && let Some(tail) = self.tails.remove(&command.id) {
            text += &last_lines(&tail, self.screen);
        }
        match (command.exit_code, &command.signal) {
            (Some(0), _) => {}
            (Some(code), _) => {
                text += &format!("  {}\n", self.screen.paint(Paint::Yellow, &format!("exit code {code}")))
            }
            (None, Some(signal)) => {
                text += &format!("  {}\n", self.screen.paint(Paint::Yellow, &format!("ended by {}", one_line(signal))));
            }
            (None, None) => {}
        }
        text
    }

    pub(crate) fn result(&mut self, result: &Result) -> Vec<Ink> {
        let mut ink = self.clear();
        ink.extend(self.finish_text());
        if self.is_data_open {
            // A text ends with a line end.
            ink.push(Ink::out("\n"));
            self.is_line_open = false;
        }
        ink.extend(self.end_line());
        if let Some(error) = &result.error {
            let text = super::error_text(error);
            ink.push(Ink::err(match text.strip_prefix("error") {
                Some(rest) => self.screen.paint(Paint::Red, "error") + rest,
                None => text,
            }));
        }
        // Without a session nothing was done that could be summed up.
        let Some(session) = &result.session_id else { return ink };
        let mut parts = vec![format!("{:.1} s", result.duration_ms as f64 / 1000.0)];
        if let Some(reason) = result.stop_reason.as_deref().filter(|reason| *reason != "end_turn") {
            parts.insert(0, format!("stopped: {}", one_line(reason)));
        }
        match result.tool_calls.len() {
            0 => {}
            1 => parts.push("1 tool call".into()),
            count => parts.push(format!("{count} tool calls")),
        }
        match result.files_changed.len() {
            0 => {}
            1 => parts.push("1 file changed".into()),
            count => parts.push(format!("{count} files changed")),
        }
        if result.permissions.denied > 0 {
            parts.push(format!("{} denied", result.permissions.denied));
        }
        parts.extend(spent(result));
        parts.push(format!("session {}", one_line(session)));
        ink.push(Ink::err(self.screen.paint(Paint::Dim, &parts.join(" · ")) + "\n"));
        ink
    }

    /// A sign that somebody works. On a screen it stands behind the text until the next thing comes.
    pub(crate) fn idle(&mut self, waiting: &Waiting, idle: Duration) -> Vec<Ink> {
        if !self.screen.moves {
            if idle < self.last_logged {
                self.last_logged = Duration::ZERO;
            }
            if idle < self.last_logged + LOG_EVERY {
                return Vec::new();
            }
            self.last_logged = idle;
            return vec![Ink::err(format!("nothing for {} s: {waiting}\n", idle.as_secs()))];
        }
        if idle < FIRST_SIGN {
            return Vec::new();
        }
        // Half a paragraph is better than none, when the rest takes its time.
        let mut ink = Vec::new();
        let paused = self.markdown.as_mut().map(Markdown::pause).filter(|text| !text.is_empty());
        if let Some(text) = paused {
            ink.extend(self.clear());
            ink.push(Ink::out(text));
        }
        self.is_sign_shown = true;
        // Behind text there may be no room for more than a number, and a line that breaks cannot be taken back.
        let is_open = self.is_line_open || self.is_thought_open;
        let what = if is_open { " …".to_owned() } else { waiting.to_string() };
        let sign = self.screen.paint(Paint::Dim, &format!("{what} {} s", idle.as_secs()));
        // Save the place of the cursor, show the sign, and go back.
        ink.push(Ink::err(format!("\x1b7\x1b[K{sign}\x1b8")));
        ink
    }

    pub(crate) fn clear(&mut self) -> Vec<Ink> {
        if std::mem::take(&mut self.is_sign_shown) { vec![Ink::err("\x1b[K")] } else { Vec::new() }
    }

    /// What is left of a text, when something else comes.
    fn finish_text(&mut self) -> Option<Ink> {
        let rest = self.markdown.as_mut()?.finish();
        (!rest.is_empty()).then(|| Ink::out(rest))
    }

    /// Whether text and talk are seen on one screen.
    fn is_together(&self) -> bool {
        self.screen.out && self.screen.err
    }

    /// Makes talk begin in a line of its own, without adding to the data on stdout.
    fn end_line(&mut self) -> Option<Ink> {
        let is_open = std::mem::take(&mut self.is_line_open) && (self.screen.out || !self.screen.err);
        let is_thought = std::mem::take(&mut self.is_thought_open);
        (is_open || is_thought).then(|| Ink::err("\n"))
    }
}

/// What a run took, as far as the agent tells: `1.2k in (900 cached)`, `300 out`, `$0.0123 ($0.05 in this session)`.
fn spent(result: &Result) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(usage) = &result.usage {
        let cached = usage.cached_read_tokens.filter(|cached| *cached > 0);
        let cached = cached.map(|cached| format!(" ({} cached)", thousands(cached))).unwrap_or_default();
        parts.push(format!("{} in{cached}", thousands(usage.input_tokens)));
        parts.push(format!("{} out", thousands(usage.output_tokens)));
    }
    let money = |spent: &Cost| cost(spent.amount, &spent.currency);
    let run = result.cost.as_ref().map(money);
    let session = result.context.as_ref().and_then(|context| context.cost.as_ref()).map(money);
    match (run, session) {
        (Some(run), Some(session)) if run != session => parts.push(format!("{run} ({session} in this session)")),
        (Some(run), _) => parts.push(run),
        (None, Some(session)) => parts.push(format!("{session} in this session")),
        (None, None) => {}
    }
    parts
}

#[cfg(test)]
mod tests;
