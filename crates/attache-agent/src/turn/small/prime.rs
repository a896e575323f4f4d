//! Looks at what a prompt names before a small model is asked: it would begin with that, or guess.

use attache::Error;
use attache::agent::Turn;
use attache_host::files::EntryKind;
use attache_host::permission::is_secret;
use serde_json::json;

use super::super::{Desk, calls};
use super::{make, named, relevant, window};
use crate::conversation::Conversation;
use crate::model::ModelInfo;
use crate::settings::Mode;
use crate::workspace::Target;

/// How many files are read.
const MOST_FILES: usize = 4;

/// How long a file may be that is read as a whole.
pub(super) const LONGEST: u64 = 6_000;

/// How many bytes of files are read that the prompt does not name.
const MOST_BYTES: u64 = 6_000;

/// How many commands are run.
const MOST_COMMANDS: usize = 2;

/// How many names of the code are looked for.
const MOST_SYMBOLS: usize = 2;

/// Reads the files that a prompt names, runs the commands that it says to run, and looks for what it may be about. Gives the
/// commands that failed, with what they said.
pub(super) async fn look(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
    task: &str,
    is_question: bool,
) -> Result<Vec<(String, String)>, Error> {
    let mut read = 0;
    for name in named::files(task) {
        let Ok(target) = desk.tools.workspace.target(&name).await else { continue };
        if read < MOST_FILES && is_worth_reading(desk, &target) {
            read += 1;
            self::read(desk, conversation, turn, model, &target, task).await?;
        }
    }
    let mut commands = named::commands(task);
    if desk.settings.mode() == Mode::Architect {
        commands.clear();
    }
    let names_commands = !commands.is_empty();
    let mut failed = Vec::new();
    for command in commands.into_iter().take(MOST_COMMANDS) {
        let arguments = json!({ "command": command });
        // Nobody is asked for something that the model has not asked for.
        if !calls::is_unasked(desk, model, "run_command", &arguments).await {
            continue;
        }
        make(desk, conversation, turn, model, "run_command", arguments).await?;
        if conversation.has_just_failed() {
            failed.push((command, conversation.last_result()));
        }
    }
    // What a question names may be an example, so more is looked for.
    if names_commands || (read > 0 && !is_question) {
        return Ok(failed);
    }
    for symbol in named::symbols(task).into_iter().take(MOST_SYMBOLS) {
        let arguments = json!({ "pattern": format!(r"\b{symbol}\b") });
        if calls::is_unasked(desk, model, "search_files", &arguments).await {
            make(desk, conversation, turn, model, "search_files", arguments).await?;
        }
    }
    // What is to be counted is counted by a command, and what is to be done is not found by words.
    if !is_question || named::is_count(task) {
        return Ok(failed);
    }
    for path in relevant::files(&desk.tools.workspace, task, MOST_FILES, MOST_BYTES).await {
        if let Ok(target) = desk.tools.workspace.target(&path).await
            && is_worth_reading(desk, &target)
        {
            self::read(desk, conversation, turn, model, &target, task).await?;
        }
    }
    Ok(failed)
}

/// Reads a file, or the part of a long one that the task is about, by a call that anybody can see. One that the person has to
/// be asked for is left to the model.
pub(super) async fn read(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
    target: &Target,
    task: &str,
) -> Result<(), Error> {
    let mut arguments = json!({ "path": target.name });
    if !calls::is_unasked(desk, model, "read_file", &arguments).await {
        return Ok(());
    }
    if target.info.is_some_and(|info| info.size > LONGEST)
        && let Ok(text) = desk.tools.workspace.read_text(target).await
        && let Some(part) = window::part_off_thread(&text.content, task).await
    {
        arguments["line"] = (part.start + 1).into();
        arguments["limit"] = part.len().into();
    }
    make(desk, conversation, turn, model, "read_file", arguments).await
}

/// A file of the project that the model does not know yet.
fn is_worth_reading(desk: &Desk, target: &Target) -> bool {
    let is_file = target.info.is_some_and(|info| info.kind == EntryKind::File);
    let is_open = target.relative.as_ref().is_some_and(|relative| !is_secret(relative));
    is_file && is_open && desk.tools.workspace.check_read(target).is_err()
}
