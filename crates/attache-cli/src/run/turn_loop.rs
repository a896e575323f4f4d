//! One turn of a run, from the first event to the end: what comes from the agent, from our services, from the person and
//! from the clock.

use std::collections::HashMap;
use std::time::Instant;

use attache::Event;
use attache::client::Turn;
use attache::model::error::ErrorObject;
use tokio::time::{MissedTickBehavior, interval};

use super::limits::Limits;
use super::patience::Patience;
use super::record::{End, Record};
use crate::cli::{Permissions, Run};
use crate::client::services::Services;
use crate::event::{self, Level, Status};
use crate::exit::{Code, Failure};
use crate::output::Waiting;
use crate::signals::{Signal, Signals};

use super::{
    CANCEL_GRACE, CANCEL_SENT, CANCEL_TIME, RESULT_TIME, TICK, Trouble, code_of, idle_out, limit_passed, timed_out,
    until,
};

pub(super) struct TurnLoop<'a> {
    pub(super) args: &'a Run,
    pub(super) record: &'a mut Record,
    pub(super) signals: &'a mut Signals,
    pub(super) services: &'a mut Services,
    pub(super) deadline: Option<Instant>,
    pub(super) patience: Patience,
    /// The commands that run for the agent, by their ids.
    pub(super) running: HashMap<String, String>,
    /// The turn was cancelled: why, and when.
    pub(super) cancelled: Option<(Cancelled, Instant)>,
    pub(super) limits: Limits,
    /// Which of the limits was passed, as a sentence.
    pub(super) passed_limit: Option<String>,
}

/// Why a turn was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancelled {
    By(Signal),
    Timeout,
    Idle,
    /// More was used up than the person allows.
    Limit,
}

impl TurnLoop<'_> {
    /// Takes all of a turn. A refusal is one for want of a login.
    pub(super) async fn read(mut self, mut turn: Turn) -> Result<Result<End, ErrorObject>, Trouble> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let limit = self.cancelled.map(|(_, at)| at + CANCEL_GRACE);
            // A question has the screen to itself: first all that came before it is written, then it is asked, and what
            // comes meanwhile is held.
            let (asks, is_asking) = (self.services.wants_to_ask(), self.services.is_asking());
            let is_free = !asks && !self.record.is_pending();
            let is_held = is_asking && !self.record.is_full();
            tokio::select! {
                biased;
                signal = self.signals.next() => {
                    if self.cancelled.is_some() {
                        return Err(Trouble::Signal(signal));
                    }
                    self.cancel(&turn, Cancelled::By(signal)).await;
                }
                () = until(limit), if limit.is_some() => break,
                () = until(self.deadline), if self.cancelled.is_none() => {
                    self.cancel(&turn, Cancelled::Timeout).await;
                }
                // What is here is printed before more is taken: a slow reader slows the agent, and keeps nobody from a signal.
                printed = self.record.flush_and_hold(asks), if asks || !(is_free || is_asking) => {
                    printed?;
                    if asks {
                        self.services.ask_next();
                    }
                }
                events = self.services.next(), if is_free || is_asking => {
                    self.patience.heard();
                    for event in events {
                        self.add(event);
                    }
                    if !self.services.is_asking() {
                        self.record.release();
                    }
                }
                event = turn.next(), if is_free || is_held => {
                    self.patience.heard();
                    match event {
                        Ok(Some(event)) => {
                            self.take(event);
                            if self.passed_limit.is_some() && self.cancelled.is_none() {
                                self.cancel(&turn, Cancelled::Limit).await;
                            }
                        }
                        Ok(None) => break,
                        // A turn that fails after it was cancelled is one that was cancelled.
                        Err(_) if self.cancelled.is_some() => break,
                        Err(attache::Error::Refused(refusal)) if refusal.code == ErrorObject::AUTH_REQUIRED => {
                            return Ok(Err(refusal));
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                () = self.patience.tick(), if self.cancelled.is_none() => {
                    if !is_free || self.is_busy() {
                        // It waits for us.
                        self.patience.excuse();
                    } else if self.patience.is_over() {
                        self.cancel(&turn, Cancelled::Idle).await;
                    }
                }
                _ = tick.tick(), if is_free && !is_asking => {
                    let waiting = self.waiting();
                    self.record.idle(&waiting, self.patience.silent());
                }
            }
        }
        self.withdraw_question();
        let hurry = self.hurry();
        let rest = tokio::select! {
            events = self.services.finish() => events,
            () = until(hurry.map(|hurry| hurry - 2 * RESULT_TIME)) => Vec::new(),
        };
        for event in rest {
            self.add(event);
        }
        let end = self.end(&turn);
        if let Some((text, hint)) = self.services.unasked() {
            // Once is enough.
            let is_told = end.failure.as_ref().is_some_and(|failure| failure.message.ends_with(&hint));
            let text = if is_told { text } else { format!("{text}\n{hint}") };
            self.record.add(event::Event::notice(Level::Warning, text));
        }
        if let Some(text) = self.limits.unchecked(end.usage.as_ref()) {
            self.record.add(event::Event::notice(Level::Warning, text));
        }
        Ok(Ok(end))
    }

    /// When everything is to have ended, once the turn is cancelled.
    fn hurry(&self) -> Option<Instant> {
        self.cancelled.map(|(_, at)| at + CANCEL_TIME)
    }

    /// Whether the agent waits for us, and not we for it.
    fn is_busy(&self) -> bool {
        self.services.is_asking() || self.services.wants_to_ask() || !self.running.is_empty()
    }

    /// What is waited for.
    fn waiting(&self) -> Waiting {
        match self.running.values().next() {
            Some(command) => Waiting::Command(command.clone()),
            None => self.record.running_call().unwrap_or(Waiting::Model),
        }
    }

    /// Takes something that was done for the agent.
    fn add(&mut self, event: event::Event) {
        if let event::Event::Command(command) = &event {
            match &command.command {
                Some(line) => self.running.insert(command.id.clone(), line.clone()),
                None => self.running.remove(&command.id),
            };
        }
        self.record.add(event);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Update(update) => {
                self.services.note(&update);
                if let Some(event) = self.services.refusal(&update) {
                    self.record.add(event);
                }
                if let Some(event::Event::Usage(usage)) = event::from_update(&update) {
                    self.passed_limit = self.passed_limit.take().or_else(|| self.limits.passed(&usage));
                }
                self.record.update(&update);
            }
            other => {
                if let Event::Permission(ask) = &other
                    && let Some(call) = ask.tool_call()
                {
                    self.record.permission_asked(call);
                }
                for event in self.services.serve(other) {
                    self.add(event);
                }
            }
        }
    }

    async fn cancel(&mut self, turn: &Turn, why: Cancelled) {
        self.cancelled = Some((why, Instant::now()));
        self.withdraw_question();
        self.record.cancel();
        let text = match why {
            Cancelled::By(Signal::Interrupt) => "cancelling; once more ends everything",
            Cancelled::By(Signal::Terminate) => "cancelling",
            Cancelled::Timeout => "out of time, cancelling",
            Cancelled::Idle => "the agent has been silent for too long, cancelling",
            Cancelled::Limit => "a limit is passed, cancelling",
        };
        self.record.clear();
        self.record.add(event::Event::notice(Level::Info, text));
        // An agent that reads nothing any more must not keep us from ending it.
        let _ = tokio::time::timeout(CANCEL_SENT, turn.cancel()).await;
    }

    /// Nothing more is asked, and others may write to the screen again.
    fn withdraw_question(&mut self) {
        if self.services.is_asking() {
            self.record.leave_question();
        }
        self.services.cancel();
        self.record.release();
    }

    /// How a turn went that the agent ended, and what to say about it.
    fn verdict(&self, turn: &Turn, stop: Option<&str>) -> (Status, Option<Failure>) {
        let denied = self.record.permissions.denied;
        let failed = |status, code, text: &str| (status, Some(Failure::new(code, text)));
        let refused = |status, text: &str| failed(status, Code::Refused, text);
        if let Some(limit) = self.limits.named_by_agent(turn.meta()) {
            return refused(Status::Limit, &limit);
        }
        match stop {
            // Some agents take a denial for the end of the turn.
            Some("end_turn" | "cancelled") if self.args.fail_on_denied && denied > 0 => {
                failed(Status::Denied, Code::Denied, &format!("denied to the agent: {denied}"))
            }
            Some("end_turn") if turn.meta().is_some_and(|meta| meta.get(attache_agent::NOT_DONE).is_some()) => {
                // Why is what the agent has said.
                let why = turn.meta().and_then(|meta| meta.get(attache_agent::NOT_DONE)?.parse::<String>().ok());
                if why.is_some() {
                    let hint = "hint: `attache run /help` lists the commands";
                    return refused(
                        Status::NotDone,
                        &format!("the command was not carried out, and nothing was done\n{hint}"),
                    );
                }
                let hint = "hint: `attache setup` gives it a language model; `attache run help` lists what it follows without one";
                refused(Status::NotDone, &format!("the prompt was not understood, and nothing was done\n{hint}"))
            }
            Some("end_turn") if self.record.is_all_denied() => {
                // What a rule or a person denied has its reason next to it.
                let hint = match (self.services.unasked(), self.args.permissions) {
                    (Some((_, hint)), _) => format!("\n{hint}"),
                    (None, Some(Permissions::None)) => "\nhint: --permissions none denies what no rule allows".into(),
                    (None, _) => String::new(),
                };
                refused(
                    Status::NotDone,
                    &format!("all that the agent asked for was denied, and nothing was done{hint}"),
                )
            }
            Some("end_turn") => (Status::Done, None),
            Some("refusal") => refused(Status::Refused, "the model refused to go on"),
            Some("max_tokens") => refused(Status::Limit, "the model met its limit of tokens"),
            Some("max_turn_requests") => refused(Status::Limit, "the agent met its limit of requests for a turn"),
            Some("cancelled") if denied > 0 => {
                failed(Status::Cancelled, Code::Agent, "the agent cancelled the turn after a request of it was denied")
            }
            Some("cancelled") => failed(Status::Cancelled, Code::Agent, "the agent cancelled the turn by itself"),
            // What is unknown is not taken for success.
            _ => failed(Status::Error, Code::Agent, "the agent ended the turn with an unknown reason"),
        }
    }

    fn end(&self, turn: &Turn) -> End {
        let stop = turn.stop().map(ToString::to_string).filter(|stop| stop != "error");
        let usage = turn.usage().map(|usage| event::Usage {
            total_tokens: usage.total_tokens,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            thought_tokens: usage.thought_tokens,
            cached_read_tokens: usage.cached_read_tokens,
            cached_write_tokens: usage.cached_write_tokens,
        });
        let (code, status, failure) = match self.cancelled {
            Some((Cancelled::By(signal), _)) => (code_of(signal), Status::Cancelled, None),
            Some((Cancelled::Timeout, _)) => (Code::Timeout, Status::Timeout, Some(timed_out(self.args))),
            Some((Cancelled::Idle, _)) => (Code::Timeout, Status::Timeout, Some(idle_out(self.args))),
            Some((Cancelled::Limit, _)) => {
                (Code::Refused, Status::Limit, self.passed_limit.as_deref().map(limit_passed))
            }
            None => {
                let by_turn = usage.as_ref().and_then(|usage| self.limits.passed_by_turn(usage));
                match (self.verdict(turn, stop.as_deref()), by_turn) {
                    ((Status::Done, _), Some(passed)) => (Code::Refused, Status::Limit, Some(limit_passed(&passed))),
                    ((status, failure), _) => (Code::Done, status, failure),
                }
            }
        };
        End { code, failure, status: Some(status), stop_reason: stop, usage, hurry: self.hurry() }
    }
}
