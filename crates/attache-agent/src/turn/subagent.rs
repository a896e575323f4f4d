//! A sub-agent: a conversation of its own on the same model, for searches and side work. Its last text is its result.
//!
//! It has the tools that only look; with `allow_changes` also those that change something, which pass the same gate and are
//! shown as calls of the session. It cannot ask the person, change the mode or start sub-agents itself. Nothing of its
//! conversation is kept but what it was shown to do and its result.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use attache::agent::Turn;
use attache::model::Patch;
use attache::model::content::ContentBlock;
use attache::model::prompt::StopReason;
use attache::model::state::StateUpdate;
use attache::model::tool::{ToolCallContent, ToolCallStatus, ToolCallUpdate};
use attache::model::unstable::SubagentUpdate;
use attache::model::update::SessionUpdate;
use attache::{Dialect, Error};
use futures_util::future::{BoxFuture, join_all};
use serde_json::Value;

use super::reply::{introduced, known_arguments};
use super::{Desk, calls, usage, whole_answer};
use crate::conversation::{Conversation, OpenCall};
use crate::cut::{Limits, cut_off_thread};
use crate::gate::{Pass, Terms};
use crate::model::{Call, EndReason, Message, Model, ModelInfo, Request};
use crate::system_prompt::{Detail, system_prompt};
use crate::toolbox::{Work, arguments, only_looks};
use crate::tools::{Arguments, Live, Outcome, Refusal, Subtask, first_line};
use crate::workspace::blocking;
use crate::{hooks, lock};

/// How often the model is asked for one task.
const MOST_REQUESTS: u32 = 30;
/// What the model that gave the task gets of the result.
const RESULT: Limits = Limits { head: 8 << 10, tail: 8 << 10 };
/// What the sub-agent gets of a tool's result. It has a context of its own, and is to sum it up.
const TOOL_RESULT: Limits = Limits { head: 12 << 10, tail: 12 << 10 };
/// How full its context may be, in percent.
const FULLEST: u64 = 80;
/// How many of its calls are shown.
const SHOWN_CALLS: usize = 20;

/// The tools that only look.
const READS: &[&str] =
    &["read_file", "list_directory", "find_files", "search_files", "fetch_url", "open_skill", "think"];
/// The tools that are the conversation's own.
const NEVER: &[&str] = &["task", "ask_user", "switch_mode", "update_plan"];

/// Something that the client sees as running when its turn was dropped.
pub(crate) enum Unended {
    Call(String),
    Subagent(String),
}

impl Unended {
    /// How it ended.
    pub(crate) fn end(self, status: ToolCallStatus) -> SessionUpdate {
        match self {
            Unended::Call(id) => SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id).status(status).into()),
            Unended::Subagent(id) => state_of(&id, StateUpdate::idle(StopReason::Cancelled)),
        }
    }
}

/// Whether a call gives a task that only looks, so that it can run beside others that only look.
pub(super) fn is_reading_task(call: &Call) -> bool {
    let only_looks = |arguments: Value| Arguments::new(&arguments).flag("allow_changes").is_ok_and(|allowed| !allowed);
    call.name == "task" && arguments(call).is_ok_and(only_looks)
}

fn may_use(tool: &str, allow_changes: bool) -> bool {
    if allow_changes { !NEVER.contains(&tool) } else { READS.contains(&tool) }
}

/// Does a task. `described` is its call, as the client was shown it.
pub(super) fn run<'a>(
    desk: &'a Desk,
    turn: &'a Turn,
    described: ToolCallUpdate,
    task: Subtask,
) -> BoxFuture<'a, Result<Outcome, Error>> {
    Box::pin(async move {
        let mut progress = Progress::begin(desk, described, &task).await?;
        let result = work(desk, turn, &task, &mut progress).await?;
        progress.end(&result).await?;
        let mut content: Vec<ToolCallContent> = progress.content();
        Ok(match result {
            Ok(text) => {
                let text = cut_off_thread(&text, RESULT, &desk.spill).await;
                content.push(ToolCallContent::text(text.as_str()));
                Outcome { content: Some(content), ..Outcome::done(text) }
            }
            Err(why) => {
                content.push(ToolCallContent::text(why.as_str()));
                Outcome { content: Some(content), ..Outcome::failed(why) }
            }
        })
    })
}

/// Asks the model and runs its tools until it has its result, or the reason why there is none.
async fn work(
    desk: &Desk,
    turn: &Turn,
    task: &Subtask,
    progress: &mut Progress<'_>,
) -> Result<Result<String, String>, Error> {
    let model = match desk.models.open_for_subagent(&desk.settings.now().model).await {
        Ok(model) => model,
        Err(error) => return Ok(Err(error.message)),
    };
    let mut conversation = Conversation::new(vec![Message::user(task.prompt.clone())], None, None);
    let mut last_text = String::new();
    for _ in 0..MOST_REQUESTS {
        let answer = whole_answer(&*model, request(desk, &*model, task, &conversation).await).await;
        usage::tell_beside(desk).await?;
        let (text, calls, end) = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(format!("the sub-agent's model failed: {}", error.message))),
        };
        if !text.trim().is_empty() {
            last_text.clone_from(&text);
        }
        conversation.messages.push(Message::Assistant { text, calls: calls.clone(), opaque: end.opaque });
        match end.reason {
            EndReason::Done if calls.is_empty() && last_text.is_empty() => {
                return Ok(Err("the sub-agent ended without a result".into()));
            }
            EndReason::Done if calls.is_empty() => return Ok(Ok(last_text)),
            EndReason::Done => {}
            EndReason::MaxTokens => return Ok(Err(with_last("the sub-agent's answer was cut off", &last_text))),
            EndReason::Refusal => return Ok(Err(with_last("the sub-agent's model refused", &last_text))),
            EndReason::NotUnderstood => {
                return Ok(Err(with_last("the sub-agent did not understand the task", &last_text)));
            }
        }
        run_calls(desk, turn, task, &calls, model.info(), &mut conversation, progress).await?;
        if crate::tokens::of_messages(&conversation.messages).saturating_mul(100)
            > model.info().context.saturating_mul(FULLEST)
        {
            return Ok(Err(with_last("the sub-agent's context is full: give it a smaller task", &last_text)));
        }
    }
    Ok(Err(with_last(&format!("the sub-agent was stopped after {MOST_REQUESTS} requests"), &last_text)))
}

fn with_last(why: &str, last_text: &str) -> String {
    match last_text.trim() {
        "" => why.to_owned(),
        last => format!("{why}. It said last:\n{last}"),
    }
}

async fn request(desk: &Desk, model: &dyn Model, task: &Subtask, conversation: &Conversation) -> Request {
    let values = desk.settings.now();
    let rights = match task.allow_changes {
        true => "You may change files and run commands as far as the task needs it.",
        false => "You only look: you have no tools that change anything.",
    };
    let (place, detail) = (desk.place.clone(), Detail::of(model.info()));
    let prompt = blocking(move || system_prompt(&place, detail)).await.unwrap_or_default();
    let system = format!(
        "{}\nYou are a sub-agent: another agent gave you one task, and nobody answers questions. {rights} Work until it is \
         done. Your last message is your result, and all that the other agent gets: say what you found with paths and line \
         numbers, briefly, and what you could not find.\n",
        prompt
    );
    let mut tools = desk.tools.specs(values.mode, model.info(), !task.allow_changes);
    tools.retain(|spec| may_use(&spec.name, task.allow_changes));
    Request {
        system,
        messages: conversation.messages.clone(),
        tools,
        max_tokens: desk.limits.max_tokens,
        thought: if model.info().thinks { values.thought } else { Default::default() },
        ..Request::default()
    }
}

/// Runs the calls of an answer: those that only look side by side, the others one after the other.
async fn run_calls(
    desk: &Desk,
    turn: &Turn,
    task: &Subtask,
    calls: &[Call],
    model: &ModelInfo,
    conversation: &mut Conversation,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut rest = calls;
    while !rest.is_empty() {
        let side_by_side = rest.iter().take_while(|call| only_looks(&call.name)).count().max(1);
        let (now, later) = rest.split_at(side_by_side);
        rest = later;
        let parent = &progress.parent;
        let work = now.iter().map(|call| async move { (call, run_call(desk, turn, task, parent, call, model).await) });
        for (call, done) in join_all(work).await {
            let (title, outcome) = done?;
            progress.add(title, outcome.is_error).await?;
            conversation.messages.push(calls::told(desk, call, outcome, TOOL_RESULT).await);
        }
    }
    Ok(())
}

/// Runs one call, and says what it is called for people.
async fn run_call(
    desk: &Desk,
    turn: &Turn,
    task: &Subtask,
    parent: &ToolCallUpdate,
    call: &Call,
    model: &ModelInfo,
) -> Result<(String, Outcome), Error> {
    let shown = desk.tools.introduce(&call.name, &known_arguments(call)).await;
    let title = shown.title.clone();
    if !may_use(&call.name, task.allow_changes) {
        return Ok((title, Outcome::failed("a sub-agent does not have this tool")));
    }
    if READS.contains(&call.name.as_str()) {
        return look(desk, turn, parent, call, title, model).await;
    }
    // What may change something is shown as what it is, with its diff or its terminal.
    let tool_id = desk.log.fresh_id("call");
    let update = introduced(&tool_id, &call.name, shown);
    let open = OpenCall {
        call_id: call.id.clone(),
        tool_id,
        name: call.name.clone(),
        is_ended: AtomicBool::new(false),
        is_said: true,
    };
    let nested = Nested { desk, open };
    desk.log.tool(update).await?;
    let outcome = calls::one(desk, turn, call, &nested.open, model).await?;
    Ok((title, outcome))
}

/// Runs a call that only looks, of which the person sees no more than that it is made, unless they have to be asked.
async fn look(
    desk: &Desk,
    turn: &Turn,
    parent: &ToolCallUpdate,
    call: &Call,
    title: String,
    model: &ModelInfo,
) -> Result<(String, Outcome), Error> {
    let arguments = match arguments(call) {
        Ok(arguments) => arguments,
        Err(Refusal(why)) => return Ok((title, Outcome::failed(why))),
    };
    let prepared = match desk.tools.prepare(&call.name, &arguments, model).await {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok((title, Outcome::failed(refusal.0))),
    };
    let title = prepared.title.clone();
    if let Some(why) = hooks::before_tool(desk, &call.name, &arguments).await? {
        return Ok((title, Outcome::failed(why)));
    }
    let described = ToolCallUpdate::new(parent.tool_call_id.clone()).title(title.clone()).kind(prepared.kind.clone());
    let described = described.with(|update| update.locations = Patch::Set(prepared.locations.clone()));
    match desk.gate.pass(turn, desk.settings.mode(), &prepared.actions, &Terms::Usual, &title, described).await? {
        Pass::Yes | Pass::Confined => {}
        Pass::No(why) | Pass::Refused(why) => return Ok((title, Outcome::failed(why))),
    }
    let mut outcome = match prepared.work {
        Work::Task(work) => {
            // Nobody looks at it meanwhile.
            let (live, shown) = Live::channel();
            drop(shown);
            calls::recorded(desk, work, &prepared.content, &live).await
        }
        Work::Own(_) => Outcome::done("noted"),
    };
    hooks::after_tool(desk, &call.name, &arguments, &mut outcome).await?;
    Ok((title, outcome))
}

/// A call of a sub-agent that the client sees. Dropped at work, its end is left to the end of the turn.
struct Nested<'a> {
    desk: &'a Desk,
    open: OpenCall,
}

impl Drop for Nested<'_> {
    fn drop(&mut self) {
        if !self.open.is_ended.load(Relaxed) {
            lock(&self.desk.unended).push(Unended::Call(self.open.tool_id.clone()));
        }
    }
}

/// What the person sees of a sub-agent.
struct Progress<'a> {
    desk: &'a Desk,
    /// The call that gave the task.
    parent: ToolCallUpdate,
    lines: Vec<String>,
    /// The sub-agent as the protocol has it, where the client knows such.
    child: Option<String>,
}

impl<'a> Progress<'a> {
    async fn begin(desk: &'a Desk, parent: ToolCallUpdate, task: &Subtask) -> Result<Self, Error> {
        let client = desk.log.handle().client();
        let is_known = client.dialect == Dialect::V2 || client.capabilities.subagents.is_some();
        let child = is_known.then(|| desk.log.fresh_id("subagent"));
        let progress = Progress { desk, parent, lines: Vec::new(), child };
        if let Some(child) = &progress.child {
            let update = SubagentUpdate::new(child.as_str()).with(|update| {
                update.title = Patch::Set(first_line(&task.description, 80));
                update.description = Patch::Set(first_line(&task.prompt, 500));
                update.cwd = Patch::Set(desk.place.cwd.to_string_lossy().into_owned());
                update.state = Patch::Set(StateUpdate::running());
            });
            desk.log.show(SessionUpdate::Subagent(update.into())).await?;
        }
        Ok(progress)
    }

    /// Shows that a call was made.
    async fn add(&mut self, title: String, is_error: bool) -> Result<(), Error> {
        self.lines.push(format!("- {title}{}\n", if is_error { " (failed)" } else { "" }));
        // With its title: who was asked about one of its calls saw that of the call.
        let update = ToolCallUpdate::new(self.parent.tool_call_id.clone()).with(|update| {
            update.title = self.parent.title.clone();
            update.kind = self.parent.kind.clone();
            update.locations = Patch::Set(Vec::new());
            update.content = Patch::Set(self.content());
        });
        self.desk.log.tool(update).await
    }

    fn content(&self) -> Vec<ToolCallContent> {
        if self.lines.is_empty() {
            return Vec::new();
        }
        let earlier = self.lines.len().saturating_sub(SHOWN_CALLS);
        let mut text = if earlier > 0 { format!("({earlier} earlier calls)\n") } else { String::new() };
        text.extend(self.lines[earlier..].iter().map(String::as_str));
        vec![ToolCallContent::from(ContentBlock::text(text))]
    }

    async fn end(&mut self, result: &Result<String, String>) -> Result<(), Error> {
        let Some(child) = self.child.take() else { return Ok(()) };
        let reason = if result.is_ok() { StopReason::EndTurn } else { StopReason::Error };
        self.desk.log.show_end(state_of(&child, StateUpdate::idle(reason))).await
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        let child = self.child.take().map(Unended::Subagent);
        lock(&self.desk.unended).extend(child);
    }
}

fn state_of(child: &str, state: StateUpdate) -> SessionUpdate {
    SessionUpdate::Subagent(SubagentUpdate::new(child).with(|update| update.state = Patch::Set(state)).into())
}
