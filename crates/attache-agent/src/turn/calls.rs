//! The calls of one answer: those that only look run side by side, the others one after the other.

use std::sync::atomic::Ordering::Relaxed;

use attache::Error;
use attache::agent::Turn;
use attache::model::notice::NoticeSeverity;
use attache::model::tool::{ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate};
use attache::model::update::SessionUpdate;
use attache::model::{Patch, RawJson};
use attache_host::permission::carried;
use futures_util::future::join_all;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Duration, Instant, timeout_at};

use super::guard::{Guard, LAST};
use super::{Desk, elicit, subagent};
use crate::conversation::{Conversation, OpenCall};
use crate::cut::{Limits, cut_off_thread};
use crate::gate::{self, Pass};
use crate::hooks;
use crate::lock;
use crate::model::{Call, Message, ModelInfo, Part};
use crate::settings::{Mode, Words};
use crate::store::Entry;
use crate::toolbox::{Task, Work, arguments, only_looks};
use crate::tools::{Live, Outcome, OwnWork, Prepared, Refusal, Shown};

pub(super) use super::guard::Seen;

/// What the model gets of a result at most. More than what tools that cut by themselves leave, with all that they say
/// around it: the place where they cut must not be cut out.
const MOST: Limits = Limits { head: 20 << 10, tail: 20 << 10 };

/// The same for small models.
const FEW: Limits = Limits { head: 2 << 10, tail: 2 << 10 };

/// The same for models with little room: a third of the smallest that there are.
const SOME: Limits = Limits { head: 4 << 10, tail: 4 << 10 };

/// What a model gets of a result at most.
fn most(model: &ModelInfo) -> Limits {
    match model.is_small {
        true => FEW,
        false if model.is_brief() => SOME,
        false => MOST,
    }
}

/// Runs all calls of an answer. Each has a result among the messages when this returns.
pub(super) async fn run(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    calls: &[Call],
    model: &ModelInfo,
    guard: &mut Guard,
) -> Result<Seen, Error> {
    let mut loops = false;
    let mut rest = calls;
    while !rest.is_empty() {
        let side_by_side = rest.iter().take_while(|call| runs_beside(call)).count().max(1);
        let (now, later) = rest.split_at(side_by_side);
        rest = later;
        let open = &conversation.open;
        let work = now.iter().filter_map(|call| {
            let open = open.iter().find(|open| open.call_id == call.id)?;
            Some(async move { (call, one(desk, turn, call, open, model).await) })
        });
        for (call, outcome) in join_all(work).await {
            let mut outcome = outcome?;
            match guard.see(call, &outcome) {
                Seen::Fine => {}
                Seen::Repeats(advice) => outcome.parts.push(Part::text(format!("\n{advice}"))),
                Seen::Loops => {
                    outcome.parts.push(Part::text(format!("\n[{LAST}]")));
                    loops = true;
                }
            }
            let result = told(desk, call, outcome, most(model)).await;
            conversation.say(desk, result).await?;
        }
    }
    Ok(if loops { Seen::Loops } else { Seen::Fine })
}

/// What the model is told of a call. The content of a file stays as it is; all else is made harmless, and short.
pub(super) async fn told(desk: &Desk, call: &Call, outcome: Outcome, limits: Limits) -> Message {
    let mut parts = outcome.parts;
    for part in &mut parts {
        if let Part::Text { text } = part
            && !outcome.is_exact
        {
            *text = cut_off_thread(text, limits, &desk.spill).await;
        }
    }
    Message::Tool { id: call.id.clone(), name: call.name.clone(), parts, is_error: outcome.is_error }
}

/// Whether a call can run beside others like it.
fn runs_beside(call: &Call) -> bool {
    only_looks(&call.name) || subagent::is_reading_task(call)
}

/// Runs one call, from its arguments to its end, as the client sees it.
pub(super) async fn one(
    desk: &Desk,
    turn: &Turn,
    call: &Call,
    open: &OpenCall,
    model: &ModelInfo,
) -> Result<Outcome, Error> {
    let blank = || ToolCallUpdate::new(open.tool_id.as_str());
    let arguments = arguments(call);
    // What is shown is what is done. Only what cannot be understood is shown as it came.
    let raw_input = match &arguments {
        Ok(arguments) => RawJson::from_value(arguments).ok(),
        Err(_) => RawJson::new(call.arguments.as_str()).ok(),
    };
    let raw_input = raw_input.map_or(Patch::Keep, Patch::Set);
    let prepared = match arguments {
        Ok(arguments) => {
            let prepared = desk.tools.prepare(&call.name, &arguments, model).await;
            prepared.map(|prepared| (prepared, arguments))
        }
        Err(why) => Err(why),
    };
    let (mut prepared, arguments) = match prepared {
        Ok(prepared) => prepared,
        Err(Refusal(why)) => {
            desk.log.tool(blank().with(|update| update.raw_input = raw_input)).await?;
            return fail(desk, open, why, None).await;
        }
    };
    let described = blank().title(prepared.title.clone()).kind(prepared.kind.clone()).with(|update| {
        update.content = set_unless_empty(&prepared.content);
        update.locations = set_unless_empty(&prepared.locations);
        update.raw_input = raw_input;
    });
    desk.log.tool(described.clone()).await?;
    if let Some(why) = hooks::before_tool(desk, &call.name, &arguments).await? {
        return fail(desk, open, why, None).await;
    }
    let pass = match &prepared.work {
        Work::Own(OwnWork::Switch { mode, plan }) => {
            may_switch(desk, turn, *mode, plan.is_some(), described.clone()).await?
        }
        _ => {
            let mode = desk.settings.mode();
            let terms = terms(desk, mode, &mut prepared.work).await?;
            desk.gate.pass(turn, mode, &prepared.actions, &terms, &prepared.title, described.clone()).await?
        }
    };
    match pass {
        Pass::Yes => {}
        Pass::Confined => {
            let Some(command) = prepared.work.command() else {
                return fail(desk, open, NOT_CONFINED.into(), None).await;
            };
            command.confine();
        }
        Pass::No(why) => return fail(desk, open, why, None).await,
        // Nobody was asked, so a client of ours is told: it counts what was denied.
        Pass::Refused(why) => return fail(desk, open, why, Some(&prepared.title)).await,
    }
    let status = Patch::Set(ToolCallStatus::InProgress);
    desk.log.tool(blank().with(|update| update.status = status)).await?;
    // Only the mode `code` lets a command run unasked, and a person may have left it just now.
    let is_unasked = prepared.work.command().is_some_and(|command| command.is_unasked());
    if is_unasked && !desk.gate.confines(desk.settings.mode()) {
        return fail(desk, open, "the mode was changed before the command began, so it did not run".into(), None).await;
    }
    let shown = prepared.content.clone();
    let (mut outcome, content) = perform(desk, turn, prepared, described).await?;
    hooks::after_tool(desk, &call.name, &arguments, &mut outcome).await?;
    if outcome.is_error && content.is_none() {
        // The person sees why, beside what was to be done.
        let why = outcome.content.take().unwrap_or_else(|| vec![ToolCallContent::text(text_of(&outcome))]);
        outcome.content = Some([shown, why].concat());
    }
    let status = if outcome.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let ended = blank().status(status).with(|update| {
        update.content = outcome.content.clone().map_or(Patch::Keep, Patch::Set);
        update.raw_output =
            outcome.raw.as_ref().and_then(|raw| RawJson::from_value(raw).ok()).map_or(Patch::Keep, Patch::Set);
        update.locations = outcome.locations.clone().map_or(Patch::Keep, Patch::Set);
    });
    open.is_ended.store(true, Relaxed);
    desk.log.show_end(SessionUpdate::ToolCallUpdate(ended.into())).await?;
    let shown = outcome.content.as_ref().or(content.as_ref());
    if shown.is_some_and(|content| content.iter().any(|part| matches!(part, ToolCallContent::Terminal(_)))) {
        // A terminal is gone when the session is loaded again; its text is not.
        let content = Patch::Set(vec![ToolCallContent::text(text_of(&outcome))]);
        let update = Box::new(blank().with(|update| update.content = content));
        desk.log.keep(Entry::Plain { update }).await?;
    }
    Ok(outcome)
}

/// Whether a call would run without a question.
pub(super) async fn is_unasked(desk: &Desk, model: &ModelInfo, name: &str, arguments: &serde_json::Value) -> bool {
    let Ok(mut prepared) = desk.tools.prepare(name, arguments, model).await else { return false };
    let mode = desk.settings.mode();
    match terms(desk, mode, &mut prepared.work).await {
        Ok(terms) => desk.gate.is_unasked(mode, &prepared.actions, &terms).await,
        Err(_) => false,
    }
}

/// Said of a call that was to be confined and is no command, which does not happen.
const NOT_CONFINED: &str = "refused: nobody was asked about this call";

/// On what terms a call is judged. Tells the person, once, why commands are asked about.
async fn terms(desk: &Desk, mode: Mode, work: &mut Work) -> Result<gate::Terms, Error> {
    let Some(command) = work.command() else { return Ok(gate::Terms::Usual) };
    let judged = desk.tools.commands.terms(command, desk.gate.confines(mode)).await;
    if let Some(notice) = judged.notice {
        desk.log.notice(NoticeSeverity::Info, notice).await?;
    }
    Ok(judged.terms)
}

/// Does the work of a call and shows what it shows meanwhile. Tells also what it showed last.
async fn perform(
    desk: &Desk,
    turn: &Turn,
    prepared: Prepared<Work>,
    described: ToolCallUpdate,
) -> Result<(Outcome, Option<Vec<ToolCallContent>>), Error> {
    let tool_id = described.tool_call_id.clone();
    let task = match prepared.work {
        Work::Own(work) => return own(desk, turn, work, described).await.map(|outcome| (outcome, None)),
        Work::Task(task) => task,
    };
    let (live, shown) = Live::channel();
    let mut watched = Watched { desk, shown: Some((tool_id.clone(), shown)) };
    let mut last = None;
    let mut work = std::pin::pin!(recorded(desk, task, &prepared.content, &live));
    let outcome = loop {
        let next = tokio::select! {
            biased;
            Some(next) = watched.next() => next,
            outcome = &mut work => break outcome,
        };
        show(desk, &tool_id, next, &mut last).await?;
    };
    if let Some((_, mut shown)) = watched.shown.take() {
        while let Ok(next) = shown.try_recv() {
            show(desk, &tool_id, next, &mut last).await?;
        }
    }
    Ok((outcome, last))
}

/// Does a task, and keeps what it changes, so that it can be taken back.
pub(super) async fn recorded(desk: &Desk, task: Task, shown: &[ToolCallContent], live: &Live) -> Outcome {
    let workspace = &desk.tools.workspace;
    let kept = desk.checkpoints.before(workspace, &task, shown).await;
    let outcome = desk.tools.perform(task, live).await;
    desk.checkpoints.after(workspace, kept).await;
    outcome
}

/// What a tool shows, by its call.
pub(super) type Showing = (ToolCallId, Receiver<Shown>);

/// A tool that is looked at. When it is dropped at work, what it shows goes to the desk: it may have last words.
struct Watched<'a> {
    desk: &'a Desk,
    shown: Option<Showing>,
}

impl Watched<'_> {
    async fn next(&mut self) -> Option<Shown> {
        self.shown.as_mut()?.1.recv().await
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        lock(&self.desk.left).extend(self.shown.take());
    }
}

/// How long tools that were dropped get to say how their commands ended. Most end in milliseconds; one that does not
/// listen to the first signal takes some tenths of a second, and a busy machine longer.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Shows what tools that were dropped still have to show.
pub(crate) async fn last_words(desk: &Desk) -> Result<(), Error> {
    let until = Instant::now() + LAST_WORDS;
    let left = std::mem::take(&mut *lock(&desk.left));
    let mut result = Ok(());
    for (tool_id, mut shown) in left {
        while let Ok(Some(next)) = timeout_at(until, shown.recv()).await {
            result = result.and(desk.log.show_end(update_of(&tool_id, next)).await);
        }
    }
    result
}

async fn show(
    desk: &Desk,
    tool_id: &ToolCallId,
    shown: Shown,
    last: &mut Option<Vec<ToolCallContent>>,
) -> Result<(), Error> {
    if let Shown::Content(content) = &shown {
        *last = Some(content.clone());
    }
    desk.log.show(update_of(tool_id, shown)).await
}

fn update_of(tool_id: &ToolCallId, shown: Shown) -> SessionUpdate {
    match shown {
        Shown::Content(content) => {
            let content = Patch::Set(content);
            SessionUpdate::ToolCallUpdate(
                ToolCallUpdate::new(tool_id.clone()).with(|update| update.content = content).into(),
            )
        }
        Shown::Update(update) => update,
    }
}

/// Does what concerns the conversation itself.
async fn own(desk: &Desk, turn: &Turn, work: OwnWork, described: ToolCallUpdate) -> Result<Outcome, Error> {
    match work {
        OwnWork::Think => Ok(Outcome::done("noted")),
        OwnWork::Plan(entries) => {
            use attache::model::plan::{PlanContent, PlanItems, PlanUpdate};
            let plan = PlanUpdate::new(PlanContent::Items(PlanItems::new("plan", entries)));
            desk.log.show(SessionUpdate::PlanUpdate(plan)).await?;
            Ok(Outcome::done("the plan is shown"))
        }
        OwnWork::Ask { question, choices } => elicit::ask(desk, turn, &described.tool_call_id, question, choices).await,
        OwnWork::Switch { mode, .. } => switch(desk, mode).await,
        OwnWork::Task(task) => subagent::run(desk, turn, described, task).await,
    }
}

/// Whether the mode may be changed. To be freer than before takes a yes; to leave `architect`, a plan as well.
async fn may_switch(
    desk: &Desk,
    turn: &Turn,
    mode: Mode,
    has_plan: bool,
    described: ToolCallUpdate,
) -> Result<Pass, Error> {
    let now = desk.settings.mode();
    if now == Mode::Architect && mode != now && !has_plan {
        let why = "leaving `architect` needs the `plan`: the person is asked whether to carry it out";
        return Ok(Pass::No(why.into()));
    }
    let is_freer = mode != now && mode != Mode::Architect && (now == Mode::Architect || mode == Mode::Code);
    let title = format!("Switch from mode `{}` to `{}`", now.word(), mode.word());
    if is_freer && !desk.gate.confirm(turn, &title, described).await? {
        return Ok(Pass::No(format!("the person refused this: they want to stay in mode `{}`", now.word())));
    }
    Ok(Pass::Yes)
}

/// Changes the mode.
async fn switch(desk: &Desk, mode: Mode) -> Result<Outcome, Error> {
    if desk.settings.mode() == mode {
        return Ok(Outcome::done(format!("the mode is `{}` already", mode.word())));
    }
    desk.settings.set_mode(mode);
    desk.log.keep(Entry::Set { option: "mode".into(), value: mode.word().into() }).await?;
    desk.log.handle().options(desk.settings.options()).await?;
    Ok(Outcome::done(format!("the mode is `{}` now", mode.word())))
}

async fn fail(desk: &Desk, open: &OpenCall, why: String, refused: Option<&str>) -> Result<Outcome, Error> {
    let update = ToolCallUpdate::new(open.tool_id.as_str())
        .status(ToolCallStatus::Failed)
        .content(vec![ToolCallContent::text(why.as_str())])
        .with(|update| {
            if let Some(meta) = refused.and_then(|what| carried::refusal_to_meta(what, &why)) {
                update.meta = Patch::Set(meta);
            }
        });
    open.is_ended.store(true, Relaxed);
    desk.log.show_end(SessionUpdate::ToolCallUpdate(update.into())).await?;
    Ok(Outcome::failed(why))
}

pub(super) fn set_unless_empty<T: Clone>(items: &[T]) -> Patch<Vec<T>> {
    if items.is_empty() { Patch::Keep } else { Patch::Set(items.to_vec()) }
}

fn text_of(outcome: &Outcome) -> String {
    let texts = outcome.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        Part::Media { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
