//! The built-in model `offline`: a few fixed rules that drive the real tools. Not a language model, and it says so.
//!
//! It is the demonstration on a machine without a key, the bug report without secrets, and the model of the tests. All
//! that it does follows from the request: the last message of the person is the command, and what came after that
//! message tells how far it has come.

mod command;
mod help;
mod script;
mod show;
mod speak;
mod split;
mod stage;
mod summary;
#[cfg(test)]
mod tests;
mod tour;
mod verb;
mod words;

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
        // Without tools there is nothing to do but to sum up, which is what agents ask for without tools.
        let answer = if request.tools.is_empty() { summary::answer(&request) } else { script::answer(&request) };
        speak::reply(answer, &request)
    }
}
