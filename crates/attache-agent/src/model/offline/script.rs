//! What each command does, written down as if tools answered at once. See [`Stage`].

use serde_json::{Value, json};

use super::command::{Command, Lines, commands};
use super::help::{INTRODUCTION, help, unclear};
use super::show::{brief, code, fenced};
use super::speak::Answer;
use super::split::Step;
use super::stage::{Came, Halt, Played, Stage, media, texts};
use super::tour::tour;
use crate::model::{EndReason, Part, Request};

/// How often `loop` calls its tool, where nobody stops it.
const ROUNDS: usize = 100;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    Failed,
}

/// What is answered to a request.
pub(super) fn answer(request: &Request) -> Answer {
    let mut stage = Stage::new(request);
    let played = play(&mut stage);
    stage.answer(played)
}

fn play(stage: &mut Stage<'_>) -> Played<()> {
    let first = stage.is_first();
    let prompt = stage.prompt();
    let commands = match commands(&words_of(prompt)) {
        Ok(commands) => commands,
        Err(why) => {
            stage.say(unclear(&why));
            mention_media(stage, prompt);
            return Err(Halt::Stop(EndReason::NotUnderstood));
        }
    };
    if first && commands.first() != Some(&Command::Help) {
        stage.say(INTRODUCTION);
    }
    mention_media(stage, prompt);
    for (number, command) in commands.iter().enumerate() {
        match perform(stage, command) {
            Ok(_) => {}
            Err(Halt::Refused) => {
                match commands.len() - number - 1 {
                    0 => {}
                    1 => stage.say("The step after it is not done either."),
                    left => stage.say(format!("The {left} steps after it are not done either.")),
                }
                return Ok(());
            }
            Err(halt) => return Err(halt),
        }
    }
    Ok(())
}

/// The words of a prompt. What the agent wraps in a tag is context, and no command.
fn words_of(prompt: &[Part]) -> String {
    let mut words = String::new();
    for text in texts(prompt).filter(|text| !text.trim_start().starts_with('<')) {
        // Editors cut a line in parts where something is mentioned in it.
        let inline = words.ends_with([' ', '\t']) || text.starts_with([' ', '\t', '.', ',', ';']);
        if !words.is_empty() && !inline {
            words.push('\n');
        }
        words.push_str(text);
    }
    words
}

fn mention_media(stage: &mut Stage<'_>, prompt: &[Part]) {
    let mut types: Vec<_> = media(prompt).map(code).collect();
    types.dedup();
    types.truncate(5);
    if !types.is_empty() {
        stage.say(format!("I see no images and hear no sound, so I leave aside what you sent: {}.", types.join(", ")));
    }
}

/// Does one command.
pub(super) fn perform(stage: &mut Stage<'_>, command: &Command) -> Played<Verdict> {
    match command {
        Command::Read(files) => read(stage, files),
        Command::List(path) => show(stage, "list_directory", json!({ "path": path }), &format!("In {}:", code(path))),
        Command::Find { pattern, within } => {
            let arguments = with_path(json!({ "pattern": pattern }), within);
            show(stage, "find_files", arguments, &format!("Files like {}:", code(pattern)))
        }
        Command::Search { pattern, shown, within } => {
            let arguments = with_path(json!({ "pattern": pattern }), within);
            show(stage, "search_files", arguments, &format!("Where {} stands:", code(shown)))
        }
        Command::Run { command, background } => {
            let mut arguments = json!({ "command": command });
            if !*background {
                return show(stage, "run_command", arguments, &format!("{} ran:", code(command)));
            }
            arguments["background"] = true.into();
            let verdict = show(stage, "run_command", arguments, &format!("{} runs:", code(command)))?;
            if verdict == Verdict::Done {
                stage.say("`call job_output {\"job\": \"NAME\"}` shows what it prints, and `stop_job` ends it in the same way.");
            }
            Ok(verdict)
        }
        Command::Write { path, text } => {
            let arguments = json!({ "path": path, "content": text });
            tell(stage, "write_file", arguments, &format!("Wrote {}.", code(path)))
        }
        Command::Replace { old, new, path, all } => replace(stage, old, new, path, *all),
        Command::Append { text, path } => append(stage, text, path),
        Command::Delete(paths) => {
            let mut verdict = Verdict::Done;
            for path in paths {
                let said = format!("Deleted {}.", code(path));
                if tell(stage, "delete_file", json!({ "path": path }), &said)? == Verdict::Failed {
                    verdict = Verdict::Failed;
                }
            }
            Ok(verdict)
        }
        Command::Move { from, to } => {
            let said = format!("Moved {} to {}.", code(from), code(to));
            tell(stage, "move_file", json!({ "from": from, "to": to }), &said)
        }
        Command::Fetch(url) => show(stage, "fetch_url", json!({ "url": url }), &format!("From {}:", code(url))),
        Command::Think(thought) => {
            stage.think(thought);
            match stage.call("think", &json!({ "thought": thought }))? {
                // Without the tool the thought has still been thought.
                None => stage.say("That is what I thought."),
                Some(came) if came.is_ok() => stage.say("That is what I thought."),
                Some(came) => return failed(stage, "think", came),
            }
            Ok(Verdict::Done)
        }
        Command::Plan(entries) => plan(stage, entries),
        Command::Ask { question, choices } => {
            let mut arguments = json!({ "question": question });
            if !choices.is_empty() {
                arguments["choices"] = json!(choices);
            }
            let came = stage.call("ask_user", &arguments)?;
            match came.filter(|came| came.is_ok() && !came.text().trim().is_empty() && came.text().lines().count() == 1)
            {
                Some(came) => stage.say(format!("You answered: {}", brief(&came.text(), 200))),
                None => return shown(stage, "ask_user", came, "You answered:"),
            }
            Ok(Verdict::Done)
        }
        Command::Mode { mode, plan } => switch(stage, mode, plan.as_deref()),
        Command::Say(text) => {
            stage.say(text);
            Ok(Verdict::Done)
        }
        Command::Slowly(text) => {
            stage.say_slowly(text);
            Ok(Verdict::Done)
        }
        Command::Call { tool, arguments } => {
            let came = stage.call_all(tool, vec![arguments.clone()])?.and_then(|came| came.first().copied());
            shown(stage, tool, came, &format!("{} answered:", code(tool)))
        }
        Command::Stop(reason) => {
            stage.say(if *reason == EndReason::Refusal {
                "I will not answer this."
            } else {
                "And so the answer ends, in the mid"
            });
            Err(Halt::Stop(*reason))
        }
        Command::Loop => again(stage),
        Command::Tour => tour(stage),
        Command::Help => {
            stage.say(help());
            Ok(Verdict::Done)
        }
    }
}

fn with_path(mut arguments: Value, within: &Option<String>) -> Value {
    if let Some(path) = within {
        arguments["path"] = path.as_str().into();
    }
    arguments
}

/// Calls a tool and shows what it brought.
fn show(stage: &mut Stage<'_>, tool: &str, arguments: Value, heading: &str) -> Played<Verdict> {
    let came = stage.call(tool, &arguments)?;
    shown(stage, tool, came, heading)
}

fn shown(stage: &mut Stage<'_>, tool: &str, came: Option<Came<'_>>, heading: &str) -> Played<Verdict> {
    let Some(came) = worked(stage, tool, came)? else { return Ok(Verdict::Failed) };
    let text = came.text();
    let (heading, text) = match Came::headed(&text) {
        (Some(head), rest) if ["read_file", "list_directory"].contains(&tool) => (head, rest),
        _ => (heading, &*text),
    };
    stage.say(if text.trim().is_empty() {
        format!("{heading} nothing.")
    } else {
        format!("{heading}\n{}", fenced(text))
    });
    Ok(Verdict::Done)
}

/// Calls a tool and says that it worked.
fn tell(stage: &mut Stage<'_>, tool: &str, arguments: Value, said: &str) -> Played<Verdict> {
    let came = stage.call(tool, &arguments)?;
    let Some(_) = worked(stage, tool, came)? else { return Ok(Verdict::Failed) };
    stage.say(said);
    Ok(Verdict::Done)
}

/// What a tool brought, if it worked; says it if not.
fn worked<'a>(stage: &mut Stage<'_>, tool: &str, came: Option<Came<'a>>) -> Played<Option<Came<'a>>> {
    match came {
        None => {
            stage.say(format!("I leave this out: this mode has no tool {}.", code(tool)));
            Ok(None)
        }
        Some(came) if came.is_error => failed(stage, tool, came).map(|_| None),
        Some(came) => {
            if let Some(mime) = came.media().next() {
                stage.say(format!("It brought something that I cannot see or hear: {}.", code(mime)));
            }
            Ok(Some(came))
        }
    }
}

fn failed(stage: &mut Stage<'_>, tool: &str, came: Came<'_>) -> Played<Verdict> {
    if came.is_refused() {
        stage.say("As you wish: that is not done.");
        return Err(Halt::Refused);
    }
    let text = came.text();
    let text = text.trim();
    stage.say(match text {
        "" => format!("{} failed, and did not say why.", code(tool)),
        text if text.len() > 200 || text.contains('\n') => format!("{} failed:\n{}", code(tool), fenced(text)),
        text => format!("{} failed: {text}", code(tool)),
    });
    Ok(Verdict::Failed)
}

fn read(stage: &mut Stage<'_>, files: &[Lines]) -> Played<Verdict> {
    let arguments = files.iter().map(|file| match file.span {
        Some((line, limit)) => json!({ "path": file.path, "line": line, "limit": limit }).to_string(),
        None => json!({ "path": file.path }).to_string(),
    });
    let Some(results) = stage.call_all("read_file", arguments.collect())? else {
        return shown(stage, "read_file", None, "");
    };
    let mut verdict = Ok(Verdict::Done);
    for (file, came) in files.iter().zip(results) {
        match shown(stage, "read_file", Some(came), &format!("{}:", code(&file.path))) {
            Ok(Verdict::Done) => {}
            other => verdict = other,
        }
    }
    verdict
}

/// Reads a file that has to be read before it can be changed. `None` when that did not work, which has been said.
fn look<'a>(stage: &mut Stage<'a>, path: &str) -> Played<Option<Came<'a>>> {
    let came = stage.call("read_file", &json!({ "path": path }))?;
    worked(stage, "read_file", came)
}

fn replace(stage: &mut Stage<'_>, old: &str, new: &str, path: &str, all: bool) -> Played<Verdict> {
    let mut arguments = json!({ "path": path, "old_text": old, "new_text": new });
    if all {
        arguments["replace_all"] = true.into();
    }
    let known = stage.knows(path);
    if !known && look(stage, path)?.is_none() {
        return Ok(Verdict::Failed);
    }
    let mut came = stage.call("edit_file", &arguments)?;
    // It may have changed since it was read.
    if known && came.is_some_and(|came| came.is_error && !came.is_refused()) {
        if look(stage, path)?.is_none() {
            return Ok(Verdict::Failed);
        }
        came = stage.call("edit_file", &arguments)?;
    }
    let Some(came) = worked(stage, "edit_file", came)? else { return Ok(Verdict::Failed) };
    stage.say(format!("Changed {}. {}", code(path), brief(&came.text(), 200)));
    Ok(Verdict::Done)
}

fn append(stage: &mut Stage<'_>, text: &str, path: &str) -> Played<Verdict> {
    let Some(came) = look(stage, path)? else { return Ok(Verdict::Failed) };
    let Some(mut content) = came.whole_file() else {
        stage.say(format!("I did not see all of {}, so I leave it as it is.", code(path)));
        return Ok(Verdict::Failed);
    };
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(text);
    if !content.ends_with('\n') {
        content.push('\n');
    }
    let arguments = json!({ "path": path, "content": content });
    tell(stage, "write_file", arguments, &format!("Added it at the end of {}.", code(path)))
}

/// The arguments of `update_plan`.
pub(super) fn plan_of<'t>(entries: impl IntoIterator<Item = (&'t str, &'t str)>) -> Value {
    let entries = entries.into_iter().map(|(content, status)| json!({ "content": content, "status": status }));
    json!({ "entries": entries.collect::<Vec<_>>() })
}

fn plan(stage: &mut Stage<'_>, entries: &[String]) -> Played<Verdict> {
    let parse = |entry: &String| super::command::command(&Step { line: entry, block: None }).ok();
    // A plan in a plan, or what never ends, is only written down.
    let alone =
        |command: &Command| matches!(command, Command::Plan(_) | Command::Tour | Command::Loop | Command::Stop(_));
    let steps: Vec<_> = entries.iter().map(|entry| parse(entry).filter(|command| !alone(command))).collect();
    let mut status = vec!["pending"; entries.len()];
    let mut update = |stage: &mut Stage<'_>, changes: &[(usize, &'static str)]| {
        changes.iter().for_each(|(at, now)| status[*at] = now);
        let arguments = plan_of(entries.iter().map(String::as_str).zip(status.iter().copied()));
        let came = stage.call("update_plan", &arguments)?;
        worked(stage, "update_plan", came).map(|came| came.is_some())
    };
    let mut verdict = Verdict::Done;
    let todo: Vec<_> = steps.iter().enumerate().filter_map(|(at, step)| Some((at, step.as_ref()?))).collect();
    let first: Vec<_> = todo.first().map(|(at, _)| (*at, "in_progress")).into_iter().collect();
    if !update(stage, &first)? {
        return Ok(Verdict::Failed);
    }
    for (number, (at, command)) in todo.iter().enumerate() {
        let came = match perform(stage, command) {
            Err(Halt::Refused) => {
                update(stage, &[(*at, "pending")])?;
                stage.say("The rest of the plan is left to you.");
                return Err(Halt::Refused);
            }
            came => came?,
        };
        if came == Verdict::Failed {
            verdict = Verdict::Failed;
        }
        // What failed is still to be done.
        let mut changes = vec![(*at, if came == Verdict::Done { "completed" } else { "pending" })];
        changes.extend(todo.get(number + 1).map(|(next, _)| (*next, "in_progress")));
        update(stage, &changes)?;
    }
    let done = status.iter().filter(|status| **status == "completed").count();
    let left = entries.len() - done;
    stage.say(match left {
        0 => "The plan is done.".into(),
        _ => format!("Done of the plan: {done} of {}. The rest is left to you.", entries.len()),
    });
    Ok(verdict)
}

fn switch(stage: &mut Stage<'_>, mode: &str, plan: Option<&str>) -> Played<Verdict> {
    let mut arguments = json!({ "mode": mode });
    if mode != "architect" {
        arguments["plan"] = plan.unwrap_or("Do what is asked for next, step by step.").into();
    }
    tell(stage, "switch_mode", arguments, &format!("The mode is {} now.", code(mode)))
}

fn again(stage: &mut Stage<'_>) -> Played<Verdict> {
    for _ in 0..ROUNDS {
        match stage.call("list_directory", &json!({ "path": "." }))? {
            None => return shown(stage, "list_directory", None, ""),
            Some(came) if came.is_refused() => return failed(stage, "list_directory", came),
            // Also where it is told that it goes round in circles: what does not listen has to be stopped.
            Some(_) => {}
        }
    }
    stage.say(format!("I called the same tool {ROUNDS} times, and nobody stopped me."));
    Ok(Verdict::Done)
}
