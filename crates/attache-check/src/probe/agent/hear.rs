//! What a client hears: answers, and what it waits for.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::driver::{Answer, Driver, Flow, Over};
use super::serve::Permission;
use super::words;
use crate::probe::Received;
use crate::record::Event;

/// What happens next.
pub(super) enum Step {
    Message(Value),
    Junk,
    Late,
    Gone,
}

/// How many ids may have answers that nobody took yet. No probe asks so much at once.
const MOST_ANSWERS: usize = 4096;

impl Driver {
    /// Waits for the answer to a request. That it did not come is written down, unless a turn runs that may be the reason.
    pub(super) async fn answer(&mut self, id: i64, limit: Duration) -> Flow<Answer> {
        let limit = self.limit(limit);
        let answer = self.answer_to(&id.into(), limit).await?;
        if answer == Answer::Nothing && self.running == 0 {
            self.has_started = true;
            self.wire.note(Event::Waited { time: limit });
        }
        Ok(answer)
    }

    /// How long to wait: an agent that has said nothing yet may still be starting.
    pub(super) fn limit(&self, limit: Duration) -> Duration {
        if self.has_started { limit } else { limit.max(self.options.startup) }
    }

    /// Waits for an answer with this id.
    pub(super) async fn answer_to(&mut self, id: &Value, limit: Duration) -> Flow<Answer> {
        let key = id.to_string();
        let deadline = Instant::now() + limit;
        if !self.has_answer(&key) {
            self.pump(deadline, |driver, _| driver.has_answer(&key)).await?;
        }
        let Some(mut answer) = self.answers.get_mut(&key).and_then(VecDeque::pop_front) else {
            return Ok(Answer::Nothing);
        };
        Ok(match answer.get_mut("result") {
            Some(result) => Answer::Result(result.take()),
            None => Answer::Error(answer["error"].take()),
        })
    }

    /// Waits for answers with these ids, and then for no longer than that. What did not come is written down.
    pub(super) async fn answers_to(&mut self, ids: &[Value]) -> Flow {
        let patience = self.limit(self.options.patience);
        let deadline = Instant::now() + patience;
        for id in ids {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.answer_to(id, left).await? == Answer::Nothing {
                self.has_started = true;
                self.wire.note(Event::Waited { time: patience });
                return Ok(());
            }
        }
        Ok(())
    }

    fn has_answer(&self, key: &str) -> bool {
        self.answers.get(key).is_some_and(|answers| !answers.is_empty())
    }

    /// Whether a request has an answer that nobody took.
    pub(super) fn is_answered(&self, id: i64) -> bool {
        self.has_answer(&id.to_string())
    }

    /// Whether a request was answered with an error that nobody took.
    pub(super) fn is_refused(&self, id: i64) -> bool {
        let answer = self.answers.get(&id.to_string()).and_then(VecDeque::front);
        answer.is_some_and(|answer| answer.get("result").is_none())
    }

    /// Waits until the agent has dealt with what it was sent: it answers a request that it cannot know.
    pub(super) async fn settle(&mut self) -> Flow {
        self.request("_attache.check/ping", json!({})).await?;
        Ok(())
    }

    /// Hears what the agent has to say until something was heard. Whether it was, in time.
    pub(super) async fn pump(
        &mut self,
        deadline: Instant,
        mut until: impl FnMut(&Driver, &Value) -> bool,
    ) -> Flow<bool> {
        if self.is_gone {
            return Err(Over);
        }
        loop {
            match self.step(deadline).await {
                Step::Message(message) => {
                    self.has_started = true;
                    self.hear(&message).await?;
                    if until(self, &message) {
                        return Ok(true);
                    }
                }
                Step::Junk => {}
                Step::Late => return Ok(false),
                Step::Gone => return Err(Over),
            }
        }
    }

    /// Hears what there is for a while.
    pub(super) async fn listen(&mut self, time: Duration) -> Flow {
        self.pump(Instant::now() + time, |_, _| false).await.map(|_| ())
    }

    /// The next that happens.
    pub(super) async fn step(&mut self, deadline: Instant) -> Step {
        loop {
            for (request, result) in self.terminals.take_ended() {
                if self.wire.send(json!({ "id": request, "result": result }), self.options.patience).await.is_err() {
                    return Step::Late;
                }
            }
            let until = self.terminals.next_end().map_or(deadline, |end| end.min(deadline));
            match self.wire.receive_until(until).await {
                Received::Json(message) => return Step::Message(message),
                Received::Junk => return Step::Junk,
                Received::Nothing if Instant::now() >= deadline => return Step::Late,
                Received::Nothing => {}
                Received::Closed => {
                    self.gone().await;
                    return Step::Gone;
                }
            }
        }
    }

    /// Takes in what the agent sent; batches entry by entry.
    async fn hear(&mut self, message: &Value) -> Flow {
        let entries = message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
        for entry in entries {
            if entry["method"].is_string() {
                if entry.get("id").is_some() {
                    self.serve(entry).await?;
                } else {
                    self.hear_notification(entry).await?;
                }
            } else if let Some(id) = entry.get("id") {
                if let Some(id) = id.as_i64() {
                    self.unanswered.remove(&id);
                }
                // Nobody asked for so many: a peer that floods is not kept.
                if self.answers.len() < MOST_ANSWERS {
                    self.answers.entry(id.to_string()).or_default().push_back(entry.clone());
                }
            }
        }
        Ok(())
    }

    async fn hear_notification(&mut self, message: &Value) -> Flow {
        if let Some((session, "state_update")) = words::update_kind(message) {
            let update = &message["params"]["update"];
            if update["state"] == "idle" {
                *self.idles.entry(session.to_owned()).or_default() += 1;
                let stop = update["stopReason"].as_str().unwrap_or_default();
                self.stops.insert(session.to_owned(), stop.to_owned());
            }
        } else if message["method"] == "$/cancel_request" {
            let id = &message["params"]["requestId"];
            if let Some(place) = self.held.iter().position(|ask| ask["id"] == *id) {
                let ask = self.held.remove(place);
                self.answer_permission(&ask, Permission::Cancel).await?;
            }
        }
        Ok(())
    }
}
