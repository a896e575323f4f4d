//! The tools that concern the conversation itself: thinking, planning, asking the person, changing the mode.

use attache::model::plan::{PlanEntry, PlanPriority, PlanStatus};
use attache::model::tool::{ToolCallContent, ToolKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Prepared, Refusal};
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Subtask {
    /// What it is, in a few words, for people.
    pub(crate) description: String,
    /// What the sub-agent is told.
    pub(crate) prompt: String,
    /// Whether it may change files and run commands, as far as the person lets it.
    #[serde(default)]
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
    Some(match name {
        "think" => {
            read::<Think>(arguments).map(|think| prepared("Think", ToolKind::Think, think.thought, OwnWork::Think))
        }
        "update_plan" => read::<Plan>(arguments).and_then(plan),
        "ask_user" => read::<Question>(arguments).and_then(question),
        "switch_mode" => read::<Switch>(arguments).and_then(switch),
        "task" => read::<Subtask>(arguments).and_then(task),
        _ => return None,
    })
}

#[derive(Deserialize)]
struct Think {
    thought: String,
}

#[derive(Deserialize)]
struct Plan {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    content: String,
    status: String,
    #[serde(default)]
    priority: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
}

#[derive(Deserialize)]
struct Switch {
    mode: String,
    #[serde(default)]
    plan: Option<String>,
}

fn plan(plan: Plan) -> Result<Prepared<OwnWork>, Refusal> {
    if plan.entries.len() > MOST_ENTRIES {
        return Err(Refusal(format!("a plan has at most {MOST_ENTRIES} entries")));
    }
    let entries: Result<Vec<PlanEntry>, Refusal> = plan
        .entries
        .into_iter()
        .map(|entry| {
            let status = match entry.status.as_str() {
                "pending" => PlanStatus::Pending,
                "in_progress" => PlanStatus::InProgress,
                "completed" => PlanStatus::Completed,
                _ => return Err(Refusal("`status` is `pending`, `in_progress` or `completed`".into())),
            };
            let priority = match entry.priority.as_deref() {
                None | Some("medium") => PlanPriority::Medium,
                Some("high") => PlanPriority::High,
                Some("low") => PlanPriority::Low,
                Some(_) => return Err(Refusal("`priority` is `high`, `medium` or `low`".into())),
            };
            Ok(PlanEntry::new(entry.content, priority, status))
        })
        .collect();
    let entries = entries?;
    let title = format!("Plan with {} entries", entries.len());
    Ok(prepared(&title, ToolKind::Think, String::new(), OwnWork::Plan(entries)))
}

fn question(question: Question) -> Result<Prepared<OwnWork>, Refusal> {
    if question.question.trim().is_empty() {
        return Err(Refusal("`question` is empty".into()));
    }
    if question.choices.len() > MOST_ENTRIES {
        return Err(Refusal(format!("there can be at most {MOST_ENTRIES} choices")));
    }
    let title = format!("Ask: {}", super::first_line(&question.question, 80));
    let text = question.question.clone();
    let work = OwnWork::Ask { question: question.question, choices: question.choices };
    Ok(prepared(&title, ToolKind::Generic, text, work))
}

fn switch(switch: Switch) -> Result<Prepared<OwnWork>, Refusal> {
    let mode = Mode::from_word(&switch.mode).ok_or_else(|| Refusal("`mode` is `ask`, `architect` or `code`".into()))?;
    let plan = switch.plan.filter(|plan| !plan.trim().is_empty());
    let title = format!("Switch to mode `{}`", mode.word());
    let text = plan.clone().unwrap_or_default();
    Ok(prepared(&title, ToolKind::SwitchMode, text, OwnWork::Switch { mode, plan }))
}

fn task(task: Subtask) -> Result<Prepared<OwnWork>, Refusal> {
    if task.prompt.trim().is_empty() {
        return Err(Refusal("`prompt` is empty".into()));
    }
    if task.prompt.len() > LONGEST_TASK {
        return Err(Refusal(format!("`prompt` has more than {} KiB", LONGEST_TASK >> 10)));
    }
    let title = format!("Task: {}", super::first_line(&task.description, 80));
    Ok(prepared(&title, ToolKind::Generic, task.prompt.clone(), OwnWork::Task(task)))
}

fn prepared(title: &str, kind: ToolKind, text: String, work: OwnWork) -> Prepared<OwnWork> {
    let content = if text.is_empty() { Vec::new() } else { vec![ToolCallContent::text(text)] };
    Prepared { title: title.into(), kind, locations: Vec::new(), content, actions: Vec::new(), work }
}

fn read<T: for<'a> Deserialize<'a>>(arguments: &Value) -> Result<T, Refusal> {
    T::deserialize(arguments).map_err(|error| Refusal(format!("the arguments are not as they should be: {error}")))
}
