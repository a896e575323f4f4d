//! What the model is told: who it is and how to work, where it is, and what the project and the person want of it.
//!
//! Providers keep what many requests begin with. So the system prompt has only what does not change in a session, and
//! what does change (the date, the mode, the state of the project) comes with the prompts: see [`surroundings`].

mod instructions;
mod surroundings;

use std::path::PathBuf;
use std::sync::Arc;

use attache_host::commands::shell;

use crate::model::ModelInfo;
use crate::skills::Skill;

pub(crate) use instructions::{Cache as InstructionCache, refused_instructions};
pub(crate) use surroundings::{Surroundings, look_around};

/// Where a session works.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    /// The user's settings, where an AGENTS.md of theirs may be.
    pub(crate) config_dir: PathBuf,
    /// What the person adds to the system prompt.
    pub(crate) system: Option<String>,
    /// The skills that can be opened.
    pub(crate) skills: Arc<[Skill]>,
    /// What was read of instructions.
    pub(crate) read: InstructionCache,
}

/// How much a model is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Detail {
    /// Whether it is told in few words.
    pub(crate) is_brief: bool,
    /// Whether it is told only what the work itself takes.
    pub(crate) is_small: bool,
    /// How many bytes of instructions it gets: about a quarter of its context.
    pub(crate) instructions: usize,
}

impl Detail {
    /// How much this model is told.
    pub(crate) fn of(model: &ModelInfo) -> Self {
        // A token is about four bytes.
        let instructions = usize::try_from(model.context).unwrap_or(usize::MAX);
        Detail { is_brief: model.is_brief(), is_small: model.is_small, instructions }
    }
}

/// For models that can follow much.
const STRONG: &str = include_str!("strong.md");

/// For models that lose the thread in much, or have no room for it.
const SHORT: &str = include_str!("short.md");

/// For small models that are asked for the text of a file and nothing else.
const TEXT: &str = include_str!("text.md");

/// What a model has to know that is asked for the text of a file. Reads files.
pub(crate) fn text_prompt(place: &Place, detail: Detail) -> String {
    [TEXT, &instructions::all(place, detail.instructions)].concat()
}

/// The same for the answer to a question.
const ANSWER: &str = include_str!("answer.md");

/// What a model has to know that is asked for the answer to a question. Reads files.
pub(crate) fn answer_prompt(place: &Place, detail: Detail) -> String {
    [ANSWER, &instructions::all(place, detail.instructions)].concat()
}

/// What the model has to know before all else. Reads files.
pub(crate) fn system_prompt(place: &Place, detail: Detail) -> String {
    let mut text = if detail.is_brief { SHORT.to_owned() } else { STRONG.to_owned() };
    if !detail.is_brief {
        text.push_str(&format!("\n# Place\n\n- Working directory: {}\n", place.cwd.display()));
        for directory in &place.directories {
            text.push_str(&format!("- Also part of the project: {}\n", directory.display()));
        }
        let shell = shell().kind.name();
        text.push_str(&format!("- Operating system: {}\n- Shell of `run_command`: {shell}\n", std::env::consts::OS));
    }
    if !detail.is_small {
        text.push_str(&crate::skills::summary(&place.skills));
    }
    text.push_str(&instructions::all(place, detail.instructions));
    text
}

#[cfg(test)]
mod tests;
