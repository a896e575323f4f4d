//! The tour: every feature of the protocol that an agent can show, one after the other, with the real tools.

use std::fmt::Write;

use super::perform::plan_arguments;
use super::script::{Script, ScriptResult, ToolResult};

/// All that the tour makes is in here.
const FOLDER: &str = "attache-tour";

/// The file of the tour. Calls have `FILE` in its place.
const FILE: &str = "attache-tour/hello.txt";

/// Where the file is once it has been moved.
const MOVED: &str = "attache-tour/goodbye.txt";

/// A stop: one call, and what there is to see.
struct Stop {
    name: &'static str,
    /// The stop that has to have gone well for this one. Empty where there is none.
    needs: &'static str,
    /// What there is to see.
    look: &'static str,
    /// The tool and its arguments.
    call: &'static str,
}

/// The stops, by the parts of the tour, which are its plan.
macro_rules! parts {
    ($($part:literal { $($name:literal $(needs $needs:literal)?: $look:literal, $call:literal;)* })*) => {
        const PARTS: &[(&str, &[Stop])] = &[
            $(($part, &[$(Stop { name: $name, needs: concat!($($needs)?), look: $look, call: $call }),*])),*
        ];
    };
}

parts! {
    "Look around" {
        "list": "a call of the kind `read`: the folder that you are in.",
            r#"list_directory {"path": "."}"#;
    }
    "Make a file and change it" {
        "create": "a call of the kind `edit` with its diff; where a rule does not allow it, you are asked first.",
            r#"write_file {"path": "FILE", "content": "Dear traveller,\nthis file is part of a tour.\nIt says hello.\n"}"#;
        "read a line" needs "create": "a location with a line: an editor that follows along opens `hello.txt` at line 3.",
            r#"read_file {"path": "FILE", "line": 3, "limit": 1}"#;
        "edit" needs "create": "a diff that changes one line of three.",
            r#"edit_file {"path": "FILE", "old_text": "It says hello.", "new_text": "It says good morning."}"#;
        "search" needs "create": "a call of the kind `search`, with the places that it finds.",
            r#"search_files {"pattern": "It says", "path": "attache-tour"}"#;
        "move" needs "create": "a call of the kind `move`.",
            r#"move_file {"from": "FILE", "to": "attache-tour/goodbye.txt"}"#;
    }
    "Run commands" {
        "command": "a call of the kind `execute`: the output comes while it runs, in a terminal where there are any.",
            r#"run_command {"command": "for i in 1 2 3; do echo \"line $i of 3\"; sleep 0.3; done"}"#;
        "failed command": "this one fails on purpose: its call has to end as `failed`, with the exit code.",
            r#"run_command {"command": "echo 'this is meant to fail' >&2; exit 3"}"#;
    }
    "Think, look outside and ask" {
        "think": "a call of the kind `think`, which touches nothing.",
            r#"think {"thought": "Half of the tour is done, and nothing broke."}"#;
        "fetch": "a call of the kind `fetch`. Without a network it fails, which is fine.",
            r#"fetch_url {"url": "https://example.com/"}"#;
        "question": "a question to you; a form where your client offers one.",
            r#"ask_user {"question": "Which colour do you like best?", "choices": ["red", "green", "blue"]}"#;
    }
    "Clean up" {
        "delete" needs "create": "a call of the kind `delete`.",
            r#"delete_file {"path": "FILE"}"#;
        // A folder that is not empty is not deleted, so nothing of anybody else's is.
        "delete folder" needs "delete": "the same for the folder of the file.",
            r#"delete_file {"path": "attache-tour"}"#;
    }
    "Change the mode and back" {
        // Whoever made no file may be in a mode that only reads, and stays there.
        "mode" needs "create": "a call of the kind `switch_mode`, to `architect`: look at the mode that your client shows.",
            r#"switch_mode {"mode": "architect"}"#;
        "mode and back" needs "mode": "leaving `architect` shows a plan, and asks you. A no leaves you there.",
            r#"switch_mode {"mode": "ask", "plan": "After the tour, go back to the mode that asks before changes."}"#;
    }
}

/// What came of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Seen,
    Failed,
    LeftOut,
}

/// The stops so far: their names, what came of them, and a note.
type Rows = Vec<(&'static str, Mark, &'static str)>;

/// Plays the tour. Gives whether it came to its end.
pub(super) fn tour(script: &mut Script<'_>) -> ScriptResult<bool> {
    script.say(format!(
        "Welcome to the tour. It shows what an agent can show in your client, in a folder `{FOLDER}` that it makes here \
         and takes away in the end. Say no to whatever you do not want: that stop is left out."
    ));
    script.say("**Thought**: what an agent thinks is not what it says; look for it apart from this text.");
    script.think("First a look around, then a file to play with. Everything has to be tidy in the end.");
    script.say("**Plan**: a list of what is to be done; watch its marks change from here to the end.");
    let plan = update_plan(script, 0)?;
    let mut rows: Rows = vec![("thought", Mark::Seen, ""), ("plan", plan.0, plan.1)];
    let has_gone_well = |rows: &Rows, name: &str| rows.iter().any(|row| row.0 == name && row.1 == Mark::Seen);
    for (part, (_, stops)) in PARTS.iter().enumerate() {
        for stop in *stops {
            if !stop.needs.is_empty() && !has_gone_well(&rows, stop.needs) {
                rows.push((stop.name, Mark::LeftOut, "a stop before it was left out"));
                continue;
            }
            let file = if has_gone_well(&rows, "move") { MOVED } else { FILE };
            script.say(format!("**{}**: {}", capital(stop.name), stop.look));
            let (tool, arguments) = stop.call.split_once(' ').unwrap_or((stop.call, "{}"));
            let result = script.call(tool, arguments.replace("FILE", file))?;
            let (mark, note) = judge(stop.name, result);
            rows.push((stop.name, mark, note));
            if !note.is_empty() {
                script.say(format!("{}: {note}.", capital(stop.name)));
            }
            let has_folder = |result: ToolResult<'_>| result.text().lines().any(|line| line.starts_with(FOLDER));
            if stop.name == "list" && result.is_some_and(has_folder) {
                script.say(format!(
                    "There is a `{FOLDER}` here already, maybe from a tour that was cut short. I touch nothing that I \
                     did not make: take it away, and say `tour` again."
                ));
                return Ok(false);
            }
        }
        update_plan(script, part + 1)?;
    }
    if has_gone_well(&rows, "create") && !has_gone_well(&rows, "delete folder") {
        script.say(format!("`{FOLDER}` is still there, for you to delete."));
    }
    if has_gone_well(&rows, "mode and back") {
        script.say("The mode is `ask` now. Say `mode code` if that is where you came from.");
    } else if has_gone_well(&rows, "mode") {
        script.say("The mode is still `architect`; `mode ask with a plan` leaves it.");
    }
    script.say(table(&rows));
    Ok(true)
}

/// What came of a stop, and a note.
fn judge(name: &str, result: Option<ToolResult<'_>>) -> (Mark, &'static str) {
    match (name, result) {
        (_, None) => (Mark::LeftOut, "this mode has no such tool"),
        (_, Some(result)) if result.is_refused() => (Mark::LeftOut, "you said no"),
        ("failed command", Some(result)) if result.is_error => (Mark::Seen, "it failed on purpose"),
        ("failed command", Some(_)) => (Mark::Failed, "it should have failed, and did not"),
        ("fetch", Some(result)) if result.is_error => (Mark::Seen, "it failed, which is fine without a network"),
        (_, Some(result)) if result.is_error => (Mark::Failed, "it failed; see the call"),
        (_, Some(_)) => (Mark::Seen, ""),
    }
}

/// Shows the plan: the parts before `now` are done.
fn update_plan(script: &mut Script<'_>, now: usize) -> ScriptResult<(Mark, &'static str)> {
    let status = |at: usize| match at.cmp(&now) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let arguments = plan_arguments(PARTS.iter().enumerate().map(|(at, (part, _))| (*part, status(at))));
    Ok(judge("plan", script.call("update_plan", arguments)?))
}

fn capital(name: &str) -> String {
    let mut rest = name.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// The table at the end, padded so that it reads as one also where Markdown is shown as it is.
fn table(rows: &Rows) -> String {
    let seen = rows.iter().filter(|row| row.1 == Mark::Seen).count();
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let mut table = format!("That was the tour: {seen} of {} stops.\n\n", rows.len());
    _ = writeln!(table, "| {:<width$} |   | note |\n|{}|---|------|", "stop", "-".repeat(width + 2));
    for (name, mark, note) in rows {
        let mark = match mark {
            Mark::Seen => "✓",
            Mark::Failed => "✗",
            Mark::LeftOut => "–",
        };
        _ = writeln!(table, "| {name:<width$} | {mark} | {note} |");
    }
    table
}
