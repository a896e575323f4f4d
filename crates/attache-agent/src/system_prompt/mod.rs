//! What the model is told: who it is and how to work, where it is, and what the project and the person want of it.
//!
//! Providers keep what many requests begin with. So the system prompt has only what does not change in a session, and
//! what does change (the date, the mode, the state of the project) comes with the prompts: see [`surroundings`].

mod instructions;
mod surroundings;

use std::path::PathBuf;
use std::sync::Arc;

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

/// For models that can follow much.
const STRONG: &str = include_str!("strong.md");

/// For models that lose the thread in much, or have no room for it.
const SHORT: &str = include_str!("short.md");

/// For small models that are asked for the text of a file and nothing else.
const TEXT: &str = include_str!("text.md");

/// What a model has to know that is asked for the text of a file. Reads files.
pub(crate) fn text_prompt(place: &Place) -> String {
    [TEXT, &instructions::of_project(place), &instructions::of_person(place)].concat()
}

/// The same for the answer to a question.
const ANSWER: &str = include_str!("answer.md");

/// What a model has to know that is asked for the answer to a question. Reads files.
pub(crate) fn answer_prompt(place: &Place) -> String {
    [ANSWER, &instructions::of_project(place), &instructions::of_person(place)].concat()
}

/// What the model has to know before all else. Reads files.
pub(crate) fn system_prompt(place: &Place, is_brief: bool) -> String {
    let mut text = if is_brief { SHORT.to_owned() } else { STRONG.to_owned() };
    if !is_brief {
        text.push_str(&format!("\n# Place\n\n- Working directory: {}\n", place.cwd.display()));
        for directory in &place.directories {
            text.push_str(&format!("- Also part of the project: {}\n", directory.display()));
        }
        text.push_str(&format!("- Operating system: {}\n- Shell of `run_command`: sh\n", std::env::consts::OS));
    }
    if !is_brief {
        text.push_str(&crate::skills::summary(&place.skills));
    }
    text.push_str(&instructions::of_project(place));
    text.push_str(&instructions::of_person(place));
    text
}

#[cfg(test)]
mod tests;
