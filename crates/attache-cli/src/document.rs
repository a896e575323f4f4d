//! A run or a session as a Markdown document for people.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::event::{Answer, Event, FileOperation, Plan, PlanEntry, Tool};

/// A document that grows with the events that it tells.
#[derive(Default)]
pub(crate) struct Document {
    text: String,
    part: Part,
    /// Under which heading it is written.
    heading: Part,
    plan: Option<Plan>,
    /// What was said of tool calls that have not ended.
    tools: HashMap<String, Tool>,
}

/// What is being written: consecutive pieces of one kind belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    None,
    User,
    Text,
    Thought,
    Other,
}

impl Document {
    /// Begins with a heading and a list.
    pub(crate) fn head(&mut self, title: &str, rows: &[(&str, String)]) {
        let _ = writeln!(self.text, "# {title}\n");
        for (name, value) in rows {
            let _ = writeln!(self.text, "- {name}: {value}");
        }
    }

    /// A paragraph of its own.
    pub(crate) fn paragraph(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        // What an agent does stands under its heading, like what it says.
        if self.heading == Part::Thought {
            self.say(Part::Text, "## Agent", "");
        }
        self.begin(Part::Other);
        self.text.push_str(text);
    }

    pub(crate) fn add(&mut self, event: Event) {
        match event {
            Event::Session(session) => {
                let _ = writeln!(self.text, "- session: `{}`", session.id);
            }
            Event::User(piece) => self.say(Part::User, "## Prompt", &piece.text),
            Event::Text(piece) => self.say(Part::Text, "## Agent", &piece.text),
            Event::Thought(piece) => self.say(Part::Thought, "## Thought", &piece.text),
            Event::Tool(tool) => {
                if let Some(shown) = self.tool(tool) {
                    self.paragraph(&shown);
                }
            }
            Event::Permission(permission) => {
                let word = match permission.answer {
                    Answer::Allowed => "Allowed",
                    Answer::Denied => "Denied",
                    Answer::Cancelled => "Cancelled",
                };
                self.paragraph(&format!("{word}: {} ({})", permission.what, permission.reason));
            }
            Event::File(file) => {
                let verb = match file.operation {
                    FileOperation::Read => "Read",
                    FileOperation::Write => "Wrote",
                };
                let error = file.error.map(|error| format!(", not done: {error}")).unwrap_or_default();
                self.paragraph(&format!("{verb} `{}`{error}", file.path));
            }
            Event::Command(command) => {
                let mut shown = command.command.map(|line| fenced("$ ", &line, "sh")).unwrap_or_default();
                if let Some(tail) = &command.tail {
                    shown += &fenced("", tail, "text");
                }
                match (command.exit_code, command.signal) {
                    (Some(code), _) => shown += &format!("Exit code {code}"),
                    (None, Some(signal)) => shown += &format!("Ended by {signal}"),
                    (None, None) => {}
                }
                self.paragraph(&shown);
            }
            Event::Plan(plan) => {
                let mark = |entry: &PlanEntry| match entry.status.as_deref() {
                    Some("completed") => format!("- [x] {}\n", entry.text),
                    _ => format!("- [ ] {}\n", entry.text),
                };
                let shown: String = plan.changed_since(self.plan.as_ref()).map(mark).collect();
                self.paragraph(&shown);
                self.plan = Some(plan);
            }
            Event::Notice(notice) => self.paragraph(&format!("> {}", notice.text.trim_end().replace('\n', "\n> "))),
            Event::Result(result) => {
                let error = result.error.map(|error| format!(": {}", error.message)).unwrap_or_default();
                let time = result.duration_ms as f64 / 1000.0;
                self.paragraph(&format!("---\n\n{} after {time:.1} s{error}", result.status.words()));
            }
            Event::TextReplaced(piece) => {
                self.paragraph("_The agent replaced its message by this:_");
                self.say(Part::Text, "## Agent", &piece.text);
            }
            Event::Unknown(unknown) => self.paragraph(&format!("_An update of an unknown kind: `{}`_", unknown.kind)),
            Event::Start(_)
            | Event::Agent(_)
            | Event::Model(_)
            | Event::ToolOutput(_)
            | Event::CommandOutput(_)
            | Event::Usage(_)
            | Event::ThoughtReplaced(_)
            | Event::Commands(_)
            | Event::State(_)
            | Event::CompactionSummary(_)
            | Event::Subagent(_)
            | Event::SessionMessage(_)
            | Event::Mode(_)
            | Event::Options(_)
            | Event::Title(_) => {}
        }
    }

    /// The document, if there is anything in it.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        (self.text.len() > 1).then_some(self.text)
    }

    /// Adds a piece of somebody's words, under a heading where another one stands or a prompt begins.
    fn say(&mut self, part: Part, heading: &str, text: &str) {
        let is_fresh = part != self.part;
        if is_fresh && (part != self.heading || part == Part::User) {
            self.begin(part);
            self.text.push_str(heading);
            self.heading = part;
        }
        if is_fresh {
            self.begin(part);
        }
        self.text.push_str(if is_fresh { text.trim_start_matches('\n') } else { text });
    }

    /// Begins a paragraph.
    fn begin(&mut self, next: Part) {
        if !self.text.is_empty() {
            self.text.truncate(self.text.trim_end().len());
            self.text.push_str("\n\n");
        }
        self.part = next;
    }

    /// A tool call is shown once, when it has ended, with all that was said about it.
    fn tool(&mut self, tool: Tool) -> Option<String> {
        let entry = self.tools.entry(tool.id.clone()).or_default();
        if tool.replaces {
            (entry.changes, entry.output) = (None, None);
        }
        entry.title = tool.title.or(entry.title.take());
        entry.kind = tool.kind.or(entry.kind.take());
        entry.output = tool.output.or(entry.output.take());
        let changes = entry.changes.get_or_insert_default();
        for change in tool.changes.into_iter().flatten() {
            if !changes.contains(&change) {
                changes.push(change);
            }
        }
        let status = tool.status.filter(|status| matches!(status.as_str(), "completed" | "failed" | "cancelled"))?;
        let whole = self.tools.remove(&tool.id)?;
        // What comes of thinking is told on its own, as a plan is.
        if status == "completed" && whole.kind.as_deref() == Some("think") && whole.output.is_none() {
            return None;
        }
        let mut shown = format!("**{}** ({status})\n\n", whole.title.unwrap_or_default().replace('\n', " "));
        for change in whole.changes.iter().flatten() {
            match &change.patch {
                Some(patch) => shown += &fenced("", patch, "diff"),
                None => shown += &format!("Changed `{}`\n\n", change.paths.join("`, `")),
            }
        }
        if let Some(output) = &whole.output {
            shown += &fenced("", output, "text");
        }
        Some(shown)
    }
}

/// A block of code whose fence is longer than any in it, so that its content cannot end it.
fn fenced(prefix: &str, text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{prefix}{}\n{fence}\n\n", text.trim_end())
}
