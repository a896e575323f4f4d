//! The tour: every feature of the protocol that an agent can show, one after the other, with the real tools.

use std::fmt::Write;

use serde_json::{Value, json};

use super::script::{Verdict, plan_of};
use super::stage::{Came, Played, Stage};

/// All that the tour makes is in here.
const FOLDER: &str = "attache-tour";

/// The parts of the tour, which are its plan.
const PARTS: [&str; 6] = [
    "Look around",
    "Make a file and change it",
    "Run commands",
    "Think, look outside and ask",
    "Clean up",
    "Change the mode and back",
];

/// What came of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Seen,
    Failed,
    Refused,
    Missing,
    Skipped,
}

struct Tour<'s, 'a> {
    stage: &'s mut Stage<'a>,
    rows: Vec<(&'static str, Mark, &'static str)>,
}

/// Plays the tour.
pub(super) fn tour(stage: &mut Stage<'_>) -> Played<Verdict> {
    let mut tour = Tour { stage, rows: Vec::new() };
    tour.stage.say(format!(
        "Welcome to the tour. It shows what an agent can show in your editor, in a folder `{FOLDER}` that it makes here \
         and takes away in the end. Say no to whatever you do not want: that stop is left out."
    ));
    tour.stage.say("**Thought**: what an agent thinks is not what it says; look for it apart from this text.");
    tour.stage.think("First a look around, then a file to play with. Everything has to be tidy in the end.");
    tour.rows.push(("thought", Mark::Seen, ""));
    tour.plan(0)?;
    if !tour.look_around()? {
        return Ok(Verdict::Failed);
    }
    tour.plan(1)?;
    let file = tour.change_a_file()?;
    tour.plan(2)?;
    tour.run_commands()?;
    tour.plan(3)?;
    tour.look_outside()?;
    tour.plan(4)?;
    tour.clean_up(file)?;
    tour.plan(5)?;
    tour.change_the_mode()?;
    tour.plan(PARTS.len())?;
    let summary = summary(&tour.rows);
    tour.stage.say(summary);
    Ok(Verdict::Done)
}

impl<'a> Tour<'_, 'a> {
    /// One stop: says what there is to see, and shows it.
    fn stop(&mut self, feature: &'static str, look: &str, tool: &str, arguments: Value) -> Played<Option<Came<'a>>> {
        self.say_where(feature, look);
        let came = self.stage.call(tool, &arguments)?;
        if !self.left_out(feature, tool, came) {
            let is_error = came.is_some_and(|came| came.is_error);
            let (mark, note) = if is_error { (Mark::Failed, "it failed; see the call") } else { (Mark::Seen, "") };
            if is_error {
                self.stage.say(format!("{} failed; see the call.", capital(feature)));
            }
            self.rows.push((feature, mark, note));
        }
        Ok(came)
    }

    /// A stop that is fine when the call fails, for this reason. Says whether it did.
    fn stop_that_fails(
        &mut self,
        feature: &'static str,
        look: &str,
        call: (&str, Value),
        why: &'static str,
    ) -> Played<bool> {
        self.say_where(feature, look);
        let came = self.stage.call(call.0, &call.1)?;
        if self.left_out(feature, call.0, came) {
            return Ok(true);
        }
        let is_error = came.is_some_and(|came| came.is_error);
        self.rows.push((feature, Mark::Seen, if is_error { why } else { "" }));
        if is_error {
            self.stage.say(format!("{} ended as it should: {why}.", capital(feature)));
        }
        Ok(is_error)
    }

    fn say_where(&mut self, feature: &str, look: &str) {
        self.stage.say(format!("**{}**: {look}", capital(feature)));
    }

    /// Whether there is nothing to see at this stop, which is said.
    fn left_out(&mut self, feature: &'static str, tool: &str, came: Option<Came<'_>>) -> bool {
        match came {
            None => {
                self.stage.say(format!("This mode has no tool `{tool}`, so there is nothing to see here."));
                self.rows.push((feature, Mark::Missing, "this mode has no such tool"));
            }
            Some(came) if came.is_refused() => {
                self.stage.say("As you wish: that stop is left out.");
                self.rows.push((feature, Mark::Refused, "you said no"));
            }
            Some(_) => return false,
        }
        true
    }

    /// A stop that cannot be shown.
    fn skip(&mut self, feature: &'static str, why: &'static str) {
        self.rows.push((feature, Mark::Skipped, why));
    }

    /// Says something else of the last stop than that it worked or failed.
    fn judge(&mut self, mark: Mark, note: &'static str) {
        if let Some(row) = self.rows.last_mut() {
            (row.1, row.2) = (mark, note);
        }
    }

    /// Shows the plan: what is before `now` is done.
    fn plan(&mut self, now: usize) -> Played<()> {
        let status = |at: usize| match at.cmp(&now) {
            std::cmp::Ordering::Less => "completed",
            std::cmp::Ordering::Equal => "in_progress",
            std::cmp::Ordering::Greater => "pending",
        };
        if now == 0 {
            self.stage.say("**Plan**: a list of what is to be done; watch its marks change from here to the end.");
        }
        let arguments = plan_of(PARTS.iter().enumerate().map(|(at, part)| (*part, status(at))));
        let came = self.stage.call("update_plan", &arguments)?;
        let fine = came.is_some_and(|came| came.is_ok());
        match self.rows.iter_mut().find(|row| row.0 == "plan") {
            None => {
                let (mark, note) = if fine { (Mark::Seen, "") } else { (Mark::Missing, "there is no plan to show") };
                self.rows.push(("plan", mark, note));
            }
            Some(row) if !fine && row.1 == Mark::Seen => (row.1, row.2) = (Mark::Failed, "an update of it failed"),
            Some(_) => {}
        }
        Ok(())
    }

    /// `false` when the tour cannot go on.
    fn look_around(&mut self) -> Played<bool> {
        let look = "a call of the kind `read`: the folder that you are in.";
        let came = self.stop("list", look, "list_directory", json!({ "path": "." }))?;
        let taken = came.is_some_and(|came| came.is_ok() && came.text().lines().any(|line| line.starts_with(FOLDER)));
        if taken {
            self.stage.say(format!(
                "There is a `{FOLDER}` here already, maybe from a tour that was cut short. I touch nothing that I did not \
                 make: take it away, and say `tour` again."
            ));
        }
        Ok(!taken)
    }

    /// The file that is there in the end, if any.
    fn change_a_file(&mut self) -> Played<Option<String>> {
        const WITHOUT: &str = "there was no file to show it with";
        let file = format!("{FOLDER}/hello.txt");
        let text = "Dear traveller,\nthis file is part of a tour.\nIt says hello.\nIt will be gone soon.\n";
        let look = "a call of the kind `edit` with its diff; where a rule does not allow it, you are asked first.";
        let came = self.stop("create", look, "write_file", json!({ "path": file, "content": text }))?;
        if !came.is_some_and(|came| came.is_ok()) {
            ["read a line", "edit", "search", "move"].into_iter().for_each(|feature| self.skip(feature, WITHOUT));
            return Ok(None);
        }
        let look = "a location with a line: an editor that follows along opens `hello.txt` at line 3.";
        self.stop("read a line", look, "read_file", json!({ "path": file, "line": 3, "limit": 1 }))?;
        let look = "a diff that changes one line of four.";
        let change = json!({ "path": file, "old_text": "It says hello.", "new_text": "It says good morning." });
        self.stop("edit", look, "edit_file", change)?;
        let look = "a call of the kind `search`, with the places that it finds.";
        self.stop("search", look, "search_files", json!({ "pattern": "It says", "path": FOLDER }))?;
        let look = "a call of the kind `move`.";
        let moved = format!("{FOLDER}/goodbye.txt");
        let came = self.stop("move", look, "move_file", json!({ "from": file, "to": moved }))?;
        Ok(Some(if came.is_some_and(|came| came.is_ok()) { moved } else { file }))
    }

    fn run_commands(&mut self) -> Played<()> {
        let look = "a call of the kind `execute`: the output comes while it runs, in a terminal where there are any.";
        let command = "for i in 1 2 3; do echo \"line $i of 3\"; sleep 0.3; done";
        self.stop("command", look, "run_command", json!({ "command": command }))?;
        let look = "this one fails on purpose: its call has to end as `failed`, with the exit code.";
        let command = "echo 'this is meant to fail' >&2; exit 3";
        let call = ("run_command", json!({ "command": command }));
        if !self.stop_that_fails("failed command", look, call, "it failed on purpose")? {
            self.judge(Mark::Failed, "it should have failed, and did not");
        }
        Ok(())
    }

    fn look_outside(&mut self) -> Played<()> {
        let look = "a call of the kind `think`, which touches nothing.";
        self.stop("think", look, "think", json!({ "thought": "Half of the tour is done, and nothing broke." }))?;
        let look = "a call of the kind `fetch`. Without a network it fails, which is fine.";
        let call = ("fetch_url", json!({ "url": "https://example.com/" }));
        self.stop_that_fails("fetch", look, call, "it failed, which is fine without a network")?;
        let look = "a question to you; a form where your editor offers one.";
        let question = json!({ "question": "Which colour do you like best?", "choices": ["red", "green", "blue"] });
        self.stop("question", look, "ask_user", question)?;
        Ok(())
    }

    fn clean_up(&mut self, file: Option<String>) -> Played<()> {
        let Some(file) = file else {
            self.skip("delete", "there was no file to delete");
            return Ok(());
        };
        let look = "a call of the kind `delete`: the file goes, and then its folder.";
        let came = self.stop("delete", look, "delete_file", json!({ "path": file }))?;
        if !came.is_some_and(|came| came.is_ok()) {
            self.stage.say(format!("`{file}` is still there, for you to delete."));
            return Ok(());
        }
        // A folder that is not empty is not deleted, so nothing of anybody else's is.
        let came = self.stage.call("delete_file", &json!({ "path": FOLDER }))?;
        if !came.is_some_and(|came| came.is_ok()) {
            self.judge(Mark::Seen, "the empty folder is still there");
            self.stage.say(format!("The folder `{FOLDER}` is still there, for you to delete."));
        }
        Ok(())
    }

    fn change_the_mode(&mut self) -> Played<()> {
        // Whoever could not write is in a mode that only reads, and stays there. The tools of this request do not tell:
        // they change with the mode.
        if self.rows.iter().any(|row| row.0 == "create" && row.1 == Mark::Missing) {
            self.skip("mode", "you are in a mode that only reads, and stay there");
            return Ok(());
        }
        let look = "a call of the kind `switch_mode`, to `architect`: look at the mode that your editor shows.";
        let came = self.stop("mode", look, "switch_mode", json!({ "mode": "architect" }))?;
        if !came.is_some_and(|came| came.is_ok()) {
            return Ok(());
        }
        let look = "leaving `architect` shows a plan, and asks you. A no leaves you there.";
        let back =
            json!({ "mode": "ask", "plan": "# After the tour\n\nGo back to the mode that asks before changes." });
        let came = self.stop("mode and back", look, "switch_mode", back)?;
        self.stage.say(match came {
            Some(came) if came.is_ok() => "The mode is `ask` now. Say `mode code` if that is where you came from.",
            _ => "The mode is still `architect`; `mode ask` leaves it.",
        });
        Ok(())
    }
}

fn capital(feature: &str) -> String {
    let mut rest = feature.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// The table at the end.
fn summary(rows: &[(&str, Mark, &str)]) -> String {
    let seen = rows.iter().filter(|row| row.1 == Mark::Seen).count();
    // Padded, so that it reads as a table also where Markdown is shown as it is.
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0).max(4);
    let mut table = format!("That was the tour: {seen} of {} stops.\n\n", rows.len());
    _ = writeln!(table, "| {:<width$} |   | note |\n|{}|---|------|", "stop", "-".repeat(width + 2));
    for (feature, mark, note) in rows {
        let mark = match mark {
            Mark::Seen => "✓",
            Mark::Failed => "✗",
            Mark::Refused | Mark::Missing | Mark::Skipped => "–",
        };
        _ = writeln!(table, "| {feature:<width$} | {mark} | {note} |");
    }
    table
}
