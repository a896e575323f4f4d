//! The tools that concern the conversation itself: thinking, planning, asking the person, changing the mode.

use std::borrow::Cow;

use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::tool::{ToolCallContent, ToolKind};
use serde_json::{Value, json};

use super::{Arguments, Prepared, Refusal};
use crate::model::ToolSpec;
use crate::settings::{Mode, Words};

/// What one of these tools is to do. The turn does it: it needs the person, the plan and the settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnWork {
    Think,
    Plan(Vec<PlanEntry>),
    Ask { question: String, choices: Vec<String> },
    Switch { mode: Mode, plan: Option<String> },
    Task(Subtask),
}

/// Work for a sub-agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subtask {
    /// What it is, in a few words, for people.
    pub(crate) description: String,
    /// What the sub-agent is told.
    pub(crate) prompt: String,
    /// Whether it may change files and run commands, as far as the person lets it.
    pub(crate) allow_changes: bool,
}

/// A longer task is none that another agent could be given.
const LONGEST_TASK: usize = 64 << 10;

/// More than this is no plan, and no choice for a person.
const MOST_ENTRIES: usize = 100;

pub(crate) fn specs() -> Vec<ToolSpec> {
    let spec = |name: &str, description: &str, schema: Value| ToolSpec {
        name: name.into(),
        description: description.into(),
        schema,
    };
    vec![
        spec(
            "think",
            "Write down a thought while working something out. Changes nothing.",
            json!({"type": "object", "properties": {"thought": {"type": "string"}}, "required": ["thought"]}),
        ),
        spec(
            "update_plan",
            "Show the person the plan for a task of several steps, and keep it up to date. Give all entries each time.",
            json!({"type": "object", "properties": {"entries": {"type": "array", "items": {"type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "priority": {"type": "string", "enum": ["high", "medium", "low"]},
                },
                "required": ["content", "status"]}}}, "required": ["entries"]}),
        ),
        spec(
            "ask_user",
            "Ask the person a question that you cannot answer from the project. Only when it matters.",
            json!({"type": "object", "properties": {
                "question": {"type": "string"},
                "choices": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from"},
            }, "required": ["question"]}),
        ),
        spec(
            "switch_mode",
            "Change the mode: `ask` asks before every change, `architect` reads and plans only, `code` changes files \
             freely. Leaving `architect` needs the plan, which the person is shown and asked about.",
            json!({"type": "object", "properties": {
                "mode": {"type": "string", "enum": ["ask", "architect", "code"]},
                "plan": {"type": "string", "description": "The plan as Markdown; needed to leave `architect`"},
            }, "required": ["mode"]}),
        ),
        spec(
            "task",
            "Give a sub-agent a task and get its result as text, for searches that read much and for side work. It knows \
             nothing of this conversation: say all that it needs, and what it is to report.",
            json!({"type": "object", "properties": {
                "description": {"type": "string", "description": "The task in a few words, for the person"},
                "prompt": {"type": "string", "description": "The whole task"},
                "allow_changes": {"type": "boolean", "description": "Let it change files and run commands. Default false."},
            }, "required": ["description", "prompt"]}),
        ),
    ]
}

/// Looks at a call. `None`: it is not one of these tools.
pub(crate) fn prepare(name: &str, arguments: &Value) -> Option<Result<Prepared<OwnWork>, Refusal>> {
    let arguments = Arguments::new(arguments);
    Some(match name {
        "think" => think(arguments),
        "update_plan" => plan(arguments),
        "ask_user" => question(arguments),
        "switch_mode" => switch(arguments),
        "task" => task(arguments),
        _ => return None,
    })
}

fn think(arguments: Arguments<'_>) -> Result<Prepared<OwnWork>, Refusal> {
    let thought = arguments.text("thought")?.into_owned();
    Ok(prepared("Think", ToolKind::Think, thought, OwnWork::Think))
}

fn plan(arguments: Arguments<'_>) -> Result<Prepared<OwnWork>, Refusal> {
    if !arguments.has("entries")? {
        return Err(Refusal("the argument `entries` is missing".into()));
    }
    let entries = arguments.list("entries")?;
    if entries.len() > MOST_ENTRIES {
        return Err(Refusal(format!("a plan has at most {MOST_ENTRIES} entries")));
    }
    let entries: Vec<PlanEntry> = entries.iter().map(entry).collect::<Result<_, _>>()?;
    let title = format!("Plan with {} entries", entries.len());
    Ok(prepared(&title, ToolKind::Think, String::new(), OwnWork::Plan(entries)))
}

/// An entry of a plan. A text is one that is still to be done.
fn entry(entry: &Value) -> Result<PlanEntry, Refusal> {
    if let Value::String(content) = entry {
        return Ok(PlanEntry::new(content.as_str(), PlanPriority::Medium, PlanStatus::Pending));
    }
    let entry = Arguments::new(entry);
    let status = match entry.optional_text("status")?.as_deref() {
        None | Some("pending") => PlanStatus::Pending,
        Some("in_progress") => PlanStatus::InProgress,
        Some("completed") => PlanStatus::Completed,
        _ => return Err(Refusal("`status` is `pending`, `in_progress` or `completed`".into())),
    };
    let priority = match entry.optional_text("priority")?.as_deref() {
        None | Some("medium") => PlanPriority::Medium,
        Some("high") => PlanPriority::High,
        Some("low") => PlanPriority::Low,
        Some(_) => return Err(Refusal("`priority` is `high`, `medium` or `low`".into())),
    };
    Ok(PlanEntry::new(entry.text("content")?, priority, status))
}

fn question(arguments: Arguments<'_>) -> Result<Prepared<OwnWork>, Refusal> {
    let question = arguments.text("question")?.into_owned();
    if question.trim().is_empty() {
        return Err(Refusal("`question` is empty".into()));
    }
    let choices = arguments.list("choices")?;
    if choices.len() > MOST_ENTRIES {
        return Err(Refusal(format!("there can be at most {MOST_ENTRIES} choices")));
    }
    let choice = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(Refusal("`choices` has to be a list of texts".into())),
    };
    let choices = choices.iter().map(choice).collect::<Result<_, _>>()?;
    let title = format!("Ask: {}", super::first_line(&question, 80));
    Ok(prepared(&title, ToolKind::Generic, question.clone(), OwnWork::Ask { question, choices }))
}

fn switch(arguments: Arguments<'_>) -> Result<Prepared<OwnWork>, Refusal> {
    let mode = Mode::from_word(arguments.text("mode")?.trim());
    let mode = mode.ok_or_else(|| Refusal("`mode` is `ask`, `architect` or `code`".into()))?;
    let plan = arguments.optional_text("plan")?.filter(|plan| !plan.trim().is_empty()).map(Cow::into_owned);
    let title = format!("Switch to mode `{}`", mode.word());
    let text = plan.clone().unwrap_or_default();
    Ok(prepared(&title, ToolKind::SwitchMode, text, OwnWork::Switch { mode, plan }))
}

fn task(arguments: Arguments<'_>) -> Result<Prepared<OwnWork>, Refusal> {
    let prompt = arguments.text("prompt")?.into_owned();
    if prompt.trim().is_empty() {
        return Err(Refusal("`prompt` is empty".into()));
    }
    if prompt.len() > LONGEST_TASK {
        return Err(Refusal(format!("`prompt` has more than {} KiB", LONGEST_TASK >> 10)));
    }
    let description = arguments.optional_text("description")?.filter(|description| !description.trim().is_empty());
    let description = description.map_or_else(|| super::first_line(&prompt, 80), Cow::into_owned);
    let allow_changes = arguments.flag("allow_changes")?;
    let title = format!("Task: {}", super::first_line(&description, 80));
    let task = Subtask { description, prompt: prompt.clone(), allow_changes };
    Ok(prepared(&title, ToolKind::Generic, prompt, OwnWork::Task(task)))
}

fn prepared(title: &str, kind: ToolKind, text: String, work: OwnWork) -> Prepared<OwnWork> {
    let content = if text.is_empty() { Vec::new() } else { vec![ToolCallContent::text(text)] };
    Prepared { title: title.into(), kind, locations: Vec::new(), content, actions: Vec::new(), work }
}
