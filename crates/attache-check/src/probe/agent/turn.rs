//! Prompts, and how their turns end.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::driver::{Driver, Flow, Over};
use super::task::{Task, text};
use super::words;
use crate::record::Event;

/// A turn that runs.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: i64,
    pub(super) session: String,
    /// How often the session had been idle before.
    idles: usize,
}

impl Driver {
    /// Prompts the agent and waits for the end of the turn.
    pub(super) async fn prompt(&mut self, session: &str, tasks: &[Task]) -> Flow {
        let turn = self.send_prompt(session, tasks).await?;
        self.end(turn).await
    }

    /// Prompts the agent.
    pub(super) async fn send_prompt(&mut self, session: &str, tasks: &[Task]) -> Flow<Turn> {
        let text = text(tasks, self.options.style).ok_or(Over)?;
        self.send_blocks(session, json!([words::text_block(&text)])).await
    }

    /// Prompts the agent with content of any kind.
    pub(super) async fn send_blocks(&mut self, session: &str, blocks: Value) -> Flow<Turn> {
        let idles = self.idles.get(session).copied().unwrap_or_default();
        let id = self.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await?;
        self.running += 1;
        Ok(Turn { id, session: session.to_owned(), idles })
    }

    /// Waits for something within a turn. Whether it came before the turn's end; if there was neither, that is the end of the probe.
    pub(super) async fn during(&mut self, turn: &Turn, until: impl FnMut(&Driver, &Value) -> bool) -> Flow<bool> {
        let seen = self.watch(turn, until).await?;
        if seen.is_none() {
            self.running = self.running.saturating_sub(1);
            self.wire.note(Event::Waited { time: self.options.turn });
        }
        seen.ok_or(Over)
    }

    /// Waits for something within a turn. Whether it came before the turn's end; nothing if there was neither as long as a turn may take.
    pub(super) async fn watch(
        &mut self,
        turn: &Turn,
        mut until: impl FnMut(&Driver, &Value) -> bool,
    ) -> Flow<Option<bool>> {
        let deadline = Instant::now() + self.options.turn;
        let mut seen = false;
        let is_over = |driver: &Driver, message: &Value| {
            seen = until(driver, message);
            seen || driver.has_ended(turn)
        };
        let is_over = self.has_ended(turn) || self.pump(deadline, is_over).await?;
        Ok(is_over.then_some(seen))
    }

    /// Waits for an update of one of these kinds within a turn. Whether it came.
    pub(super) async fn sees(&mut self, turn: &Turn, kinds: &[&str]) -> Flow<bool> {
        self.during(turn, |_, message| {
            words::update_kind(message).is_some_and(|(session, kind)| session == turn.session && kinds.contains(&kind))
        })
        .await
    }

    /// Waits for the end of a turn. That it does not come is written down, and the turn is cancelled.
    pub(super) async fn end(&mut self, turn: Turn) -> Flow {
        let deadline = Instant::now() + self.options.turn;
        let is_over = self.has_ended(&turn) || self.pump(deadline, |driver, _| driver.has_ended(&turn)).await?;
        self.running = self.running.saturating_sub(1);
        if !is_over {
            self.wire.note(Event::Waited { time: self.options.turn });
            return Err(Over);
        }
        Ok(())
    }

    /// Cancels a turn and waits for its end.
    pub(super) async fn cancel_turn(&mut self, turn: Turn) -> Flow {
        self.cancel(&turn.session).await?;
        self.end(turn).await
    }

    /// Why a turn ended, as far as it was said.
    pub(super) fn stop_reason(&self, turn: i64, session: &str) -> Option<&str> {
        if !self.dialect.answers_at_end() {
            return self.stops.get(session).map(String::as_str);
        }
        let answer = self.answers.get(&turn.to_string()).and_then(VecDeque::front)?;
        answer["result"]["stopReason"].as_str()
    }

    /// Whether a turn has ended: by its answer, or where that comes at once, by its session being idle.
    fn has_ended(&self, turn: &Turn) -> bool {
        if !self.is_answered(turn.id) {
            return false;
        }
        self.dialect.answers_at_end()
            || self.is_refused(turn.id)
            || self.idles.get(&turn.session).is_some_and(|idles| *idles > turn.idles)
    }
}
