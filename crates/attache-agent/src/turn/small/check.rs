//! Checks what a small model wrote, and looks before it finishes whether something is missing.

use std::path::Path;

use attache::Error;
use attache::agent::Turn;
use attache_host::permission::is_secret;
use serde_json::{Value, json};

use super::super::{Desk, calls};
use super::{Help, make, named, question};
use crate::conversation::Conversation;
use crate::model::{Call, ModelInfo};
use crate::off_thread;

/// Commands that say whether a file is written rightly, and change nothing: by its ending, the program, and what is said to
/// it before the path. What a program prints beside errors is of no use.
const CHECKS: &[(&str, &str, &str)] = &[
    ("py", "python3", "-I -m ast"),
    ("js", "node", "--check"),
    ("mjs", "node", "--check"),
    ("cjs", "node", "--check"),
    ("sh", "bash", "-n"),
    ("rb", "ruby", "-c"),
    ("php", "php", "-l"),
    ("go", "gofmt", "-e"),
];

/// Checks the files that calls have written, where nobody has to be asked for that.
pub(super) async fn written(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
    calls: &[Call],
) -> Result<(), Error> {
    if conversation.has_just_failed() {
        return Ok(());
    }
    for call in calls.iter().filter(|call| is_write(call)) {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        let Some(path) = arguments.get("path").and_then(Value::as_str) else { continue };
        let path = path.to_owned();
        let Some(command) = off_thread(move || command(&path, is_installed)).await else { continue };
        let arguments = json!({ "command": command });
        if calls::is_unasked(desk, model, "run_command", &arguments).await {
            make(desk, conversation, turn, model, "run_command", arguments).await?;
        }
    }
    Ok(())
}

/// The command that checks a file. One whose name a shell would read as something else is not checked.
fn command(path: &str, is_installed: impl Fn(&str) -> bool) -> Option<String> {
    let is_plain = path.chars().all(|c| c.is_alphanumeric() || "_-./ ".contains(c)) && !path.starts_with('-');
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).filter(|_| is_plain)?;
    if cfg!(windows) {
        // The lines are for `sh`, and the shell there is another.
        return None;
    }
    let (_, program, options) = CHECKS.iter().find(|(known, ..)| *known == ending)?;
    is_installed(program).then(|| format!("{program} {options} '{path}' > /dev/null"))
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.is_absolute() && place.join(program).is_file())
}

fn is_write(call: &Call) -> bool {
    matches!(call.name.as_str(), "write_file" | "edit_file")
}

/// Endings of names that are files and nothing else.
const ENDINGS: [&str; 28] = [
    "c", "cfg", "conf", "cpp", "cs", "css", "csv", "go", "h", "html", "ini", "java", "js", "json", "kt", "md", "php",
    "py", "rb", "rs", "sh", "sql", "toml", "ts", "tsx", "txt", "xml", "yaml",
];

/// Words of a task after which a file that is not there is no surprise.
const REMOVAL: [&str; 4] = ["delete", "remove", "rename", "move"];

/// What is missing of a task.
pub(super) struct Missing {
    /// In words for the model.
    pub(super) words: String,
    /// Whether it is something else than the last time.
    pub(super) is_progress: bool,
}

impl Missing {
    fn new(words: String) -> Self {
        Missing { words, is_progress: false }
    }
}

/// What is missing of a task that a model says it has done. Commands that the person named and that failed are run again.
pub(super) async fn missing(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
    help: &mut Help,
) -> Result<Option<Missing>, Error> {
    let (did_something, task) = (help.has_acted, help.task.as_str());
    for (command, said) in help.commands.iter_mut().filter(|_| did_something) {
        let arguments = json!({ "command": command });
        if !calls::is_unasked(desk, model, "run_command", &arguments).await {
            continue;
        }
        make(desk, conversation, turn, model, "run_command", arguments).await?;
        if conversation.has_just_failed() {
            let words = format!("`{command}` still fails. The task is: {task}");
            let before = std::mem::replace(said, conversation.last_result());
            return Ok(Some(Missing { words, is_progress: before != *said }));
        }
    }
    let words: Vec<String> = task.split_whitespace().map(str::to_lowercase).collect();
    if !words.iter().any(|word| REMOVAL.contains(&word.as_str())) {
        for name in named::files(task) {
            let path = Path::new(&name);
            let is_file = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
            // What stands in quotes may be anything.
            let is_name = name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
            if !is_file || !is_name || is_secret(path) {
                continue;
            }
            let Ok(target) = desk.tools.workspace.target(&name).await else { continue };
            if target.is_inside() && target.info.is_none() {
                return Ok(Some(Missing::new(format!("there is no {name} yet. The task is: {task}"))));
            }
        }
    }
    if did_something
        && words.iter().any(|word| word == "rename")
        && let Some(symbol) = named::symbols(task).first()
    {
        make(desk, conversation, turn, model, "search_files", json!({ "pattern": format!(r"\b{symbol}\b") })).await?;
        if !conversation.last_result().starts_with("nothing found") {
            let words = format!(
                "`{symbol}` is still in these places. Go on with those that have to change. The task is: {task}"
            );
            return Ok(Some(Missing::new(words)));
        }
    }
    if !did_something && question::is_task(task) {
        let words = "nothing has been changed yet. If the task wants no change, finish. The task is:";
        return Ok(Some(Missing::new(format!("{words} {task}"))));
    }
    Ok(None)
}

/// Whether a call may have changed something.
pub(super) fn may_change(call: &Call) -> bool {
    is_write(call) || call.name == "run_command"
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_are_checked_by_the_program_for_their_ending() {
        for (path, expected) in [
            ("a/b c.py", Some("python3 -I -m ast 'a/b c.py' > /dev/null")),
            ("x.sh", Some("bash -n 'x.sh' > /dev/null")),
            ("x.js", None),
            ("x.txt", None),
            ("-x.py", None),
            ("a'b.py", None),
            ("$(x).py", None),
            ("a\nb.py", None),
            ("Makefile", None),
        ] {
            assert_eq!(command(path, |program| program != "node").as_deref(), expected, "{path}");
        }
    }
}
