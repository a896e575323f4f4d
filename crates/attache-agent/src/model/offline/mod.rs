//! The built-in model `offline`: a few fixed rules that drive the real tools. Not a language model, and it says so.
//!
//! It is the demonstration on a machine without a key, the bug report without secrets, and a model for tests. A prompt
//! is commands, one a line, in the forms of one table. All that it does follows from the request: the last prompt says
//! what to do, and the messages after it how much of that is done.

mod answer;
mod commands;
mod form;
mod perform;
mod script;
mod show;
#[cfg(test)]
mod tests;
mod tour;

use super::{Model, ModelInfo, Reply, Request};

/// The model.
#[derive(Debug, Clone)]
pub struct Offline {
    info: ModelInfo,
}

impl Offline {
    /// The model. It needs nothing.
    pub fn new() -> Self {
        let info = ModelInfo {
            provider: "offline".into(),
            name: "rules".into(),
            context: 128_000,
            images: false,
            audio: false,
            thinks: false,
            is_small: false,
            price: None,
        };
        Offline { info }
    }
}

impl Default for Offline {
    fn default() -> Self {
        Offline::new()
    }
}

impl Model for Offline {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn ask(&self, request: Request) -> Reply {
        // Agents ask without tools when they want a summary of the conversation.
        let answer = if request.tools.is_empty() { perform::summary(&request) } else { perform::answer(&request) };
        answer::stream(answer, &request)
    }
}
