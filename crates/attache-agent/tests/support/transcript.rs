//! What a person saw of a turn, as plain lines that a test can spell out.
//!
//! ```text
//! thought Let me see.
//! text I look.
//! tool read_file "Read `a.txt`" read: pending → in_progress → completed
//!   at ~/a.txt:1
//! permission "Run `make`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
//! plan pending "first", completed "second"
//! options mode=code
//! usage
//! stop end_turn
//! ```
//!
//! The project is `~`, the folder around it `$WORLD`.

use std::path::Path;

use attache::model::Patch;
use attache::model::config::ConfigKind;
use attache::model::content::ContentBlock;
use attache::model::diff::Diff;
use attache::model::plan::{PlanContent, PlanEntry};
use attache::model::tool::{Location, ToolCallContent, ToolCallUpdate};
use attache::model::update::{MessageChunk, SessionUpdate};

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    Plain(String),
    /// A message, by its voice and its id.
    Said(&'static str, String, String),
    Tool(Box<Tool>),
    /// A terminal that is shown, with its output.
    Terminal {
        id: String,
        command: String,
        output: String,
        exit: String,
    },
}

#[derive(Debug, Default)]
struct Tool {
    id: String,
    name: String,
    title: String,
    kind: String,
    statuses: Vec<String>,
    content: Vec<ToolCallContent>,
    locations: Vec<Location>,
}

impl Transcript {
    pub(crate) fn plain(&mut self, line: String) {
        self.lines.push(Line::Plain(line));
    }

    pub(crate) fn update(&mut self, update: &SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.said("text", chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.said("thought", chunk),
            SessionUpdate::ToolCall(call) | SessionUpdate::ToolCallUpdate(call) => self.tool(call),
            SessionUpdate::Plan(plan) => self.plan(&plan.entries),
            SessionUpdate::PlanUpdate(update) => match &update.plan {
                PlanContent::Items(items) => self.plan(&items.entries),
                other => self.plain(format!("plan {other:?}")),
            },
            SessionUpdate::CurrentMode(mode) => self.plain(format!("mode {}", mode.current_mode_id)),
            SessionUpdate::ConfigOptions(update) => {
                let values = update.config_options.iter().filter_map(|option| match &option.kind {
                    ConfigKind::Select(select) => Some(format!("{}={}", option.id, select.current)),
                    _ => None,
                });
                let mode = values.filter(|value| value.starts_with("mode=") || value.starts_with("model="));
                let line = format!("options {}", mode.collect::<Vec<_>>().join(" "));
                self.plain(line);
            }
            SessionUpdate::Usage(_) => self.plain("usage".into()),
            SessionUpdate::Notice(notice) => self.plain(format!("notice {} {}", notice.severity, notice.title)),
            SessionUpdate::Compaction(update) => self.plain(format!("compaction {}", update.status)),
            SessionUpdate::TerminalUpdate(update) => {
                let id = update.terminal_id.as_str();
                if let Patch::Set(command) = &update.command {
                    self.lines.push(Line::Terminal {
                        id: id.into(),
                        command: command.clone(),
                        output: String::new(),
                        exit: String::new(),
                    });
                }
                if let Some(Line::Terminal { exit, .. }) = self.terminal(id)
                    && let Patch::Set(status) = &update.exit_status
                {
                    let code = status.exit_code.map(|code| code.to_string());
                    *exit = code.or_else(|| status.signal.clone()).unwrap_or_default();
                }
            }
            SessionUpdate::TerminalOutputChunk(chunk) => {
                let data = String::from_utf8_lossy(&attache::proto::base64::decode(&chunk.data).unwrap()).into_owned();
                if let Some(Line::Terminal { output, .. }) = self.terminal(chunk.terminal_id.as_str()) {
                    output.push_str(&data);
                }
            }
            // These have tests of their own, and come with every turn.
            SessionUpdate::SessionInfo(_) | SessionUpdate::AvailableCommands(_) | SessionUpdate::State(_) => {}
            SessionUpdate::UserMessage(_) | SessionUpdate::UserMessageChunk(_) => {}
            SessionUpdate::AgentMessage(_) | SessionUpdate::AgentThought(_) => {}
            other => self.plain(format!("{other:?}")),
        }
    }

    fn said(&mut self, voice: &'static str, chunk: &MessageChunk) {
        let id = chunk.message_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let text = shown(&chunk.content);
        match self.lines.last_mut() {
            Some(Line::Said(last_voice, last_id, said)) if *last_voice == voice && *last_id == id => {
                said.push_str(&text);
            }
            _ => self.lines.push(Line::Said(voice, id, text)),
        }
    }

    fn tool(&mut self, update: &ToolCallUpdate) {
        let id = update.tool_call_id.as_str();
        let place = self.lines.iter().position(|line| matches!(line, Line::Tool(tool) if tool.id == id));
        let place = place.unwrap_or_else(|| {
            self.lines.push(Line::Tool(Box::new(Tool { id: id.into(), ..Tool::default() })));
            self.lines.len() - 1
        });
        let Some(Line::Tool(tool)) = self.lines.get_mut(place) else { return };
        let set = |field: &mut String, patch: &Patch<String>| {
            if let Patch::Set(value) = patch {
                field.clone_from(value);
            }
        };
        set(&mut tool.title, &update.title);
        set(&mut tool.name, &update.name);
        if let Patch::Set(kind) = &update.kind {
            tool.kind = kind.to_string();
        }
        if let Patch::Set(status) = &update.status
            && tool.statuses.last().map(String::as_str) != Some(status.as_str())
        {
            tool.statuses.push(status.to_string());
        }
        match &update.content {
            Patch::Set(content) => tool.content.clone_from(content),
            Patch::Clear => tool.content.clear(),
            Patch::Keep => {}
        }
        if let Patch::Set(locations) = &update.locations {
            tool.locations.clone_from(locations);
        }
    }

    fn plan(&mut self, entries: &[PlanEntry]) {
        let entries: Vec<String> =
            entries.iter().map(|entry| format!("{} {} {:?}", entry.priority, entry.status, entry.content)).collect();
        self.plain(format!("plan {}", entries.join(", ")));
    }

    fn terminal(&mut self, wanted: &str) -> Option<&mut Line> {
        self.lines.iter_mut().rev().find(|line| matches!(line, Line::Terminal { id, .. } if id == wanted))
    }

    /// The lines, with the project as `~`.
    pub(crate) fn render(&self, root: &Path) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::render).collect();
        tidy(&lines.join("\n"), root)
    }
}

impl Line {
    fn render(&self) -> String {
        match self {
            Line::Plain(line) => line.clone(),
            Line::Said(voice, _, text) => format!("{voice} {}", beneath(text).trim_start_matches("\n  | ")),
            Line::Terminal { command, output, exit, .. } => {
                format!("terminal {command:?} exit {exit}{}", beneath(output))
            }
            Line::Tool(tool) => {
                let mut text =
                    format!("tool {} {:?} {}: {}", tool.name, tool.title, tool.kind, tool.statuses.join(" → "));
                for location in &tool.locations {
                    let line = location.line.map(|line| format!(":{line}")).unwrap_or_default();
                    text.push_str(&format!("\n  at {}{line}", location.path));
                }
                for content in &tool.content {
                    text.push_str(&match content {
                        ToolCallContent::Content(block) => beneath(&shown(&block.content)),
                        ToolCallContent::Diff(diff) => beneath_diff(diff),
                        ToolCallContent::Terminal(_) => "\n  in a terminal".into(),
                        other => format!("\n  {other:?}"),
                    });
                }
                text
            }
        }
    }
}

fn beneath(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("\n  | {line}").trim_end().to_owned()).collect()
}

fn beneath_diff(diff: &Diff) -> String {
    match diff.to_text() {
        Some(diff) => {
            let old = diff.old_text.map_or_else(|| "nothing".into(), |text| format!("{text:?}"));
            format!("\n  diff {}: {old} → {:?}", diff.path, diff.new_text)
        }
        None => format!("\n  {diff:?}"),
    }
}

fn shown(block: &ContentBlock) -> String {
    block.as_text().map_or_else(|| format!("{block:?}"), str::to_owned)
}

/// A text without what is different each time: where the world is.
pub(crate) fn tidy(text: &str, root: &Path) -> String {
    let root = root.to_str().unwrap();
    text.replace(&format!("{root}/project"), "~").replace(root, "$WORLD")
}

/// Compares what was seen with what was to be seen, word for word. The lines of `wanted` may be indented together.
#[track_caller]
pub(crate) fn check(seen: &str, wanted: &str) {
    let lines: Vec<&str> = wanted.lines().skip_while(|line| line.trim().is_empty()).collect();
    let indent = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indent.min().unwrap_or_default();
    let lines: Vec<&str> = lines.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
    let wanted = lines.join("\n");
    let (seen, wanted) = (seen.trim_end(), wanted.trim_end());
    assert!(seen == wanted, "\n--- seen ---\n{seen}\n--- wanted ---\n{wanted}\n---");
}
