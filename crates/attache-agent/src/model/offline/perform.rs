//! What each command does and says.

use serde_json::{Map, Value, json};

use super::answer::{Answer, Segment};
use super::commands::{Action, Command, INTRODUCTION, MAX_COMMANDS, command, commands, help};
use super::script::{Exit, Script, ScriptResult, ToolResult};
use super::show::{brief, code, fenced};
use super::tour::tour;
use crate::model::{EndReason, Message, Part, Request};

/// How often `loop` makes its call where nobody stops it.
const ROUNDS: usize = 100;

/// The most prompts that a summary has.
const MAX_SUMMARY: usize = 10;

/// What is answered to a request with tools: the next step of what the prompt wants.
pub(super) fn answer(request: &Request) -> Answer {
    let mut script = Script::new(request);
    let result = follow(&mut script);
    script.answer(result)
}

/// What is answered to a request without tools: how the last prompts begin.
pub(super) fn summary(request: &Request) -> Answer {
    let prompts = request.messages.iter().rev().filter_map(|message| match message {
        Message::User { parts } => parts.iter().filter_map(Part::as_text).find(|text| !text.trim().is_empty()),
        _ => None,
    });
    let mut lines: Vec<String> = prompts.take(MAX_SUMMARY).map(|text| format!("\n- {}", brief(text, 100))).collect();
    lines.reverse();
    let text = format!("What was asked for last:{}", lines.concat());
    Answer { segments: vec![Segment::Text(text)], call: None, reason: EndReason::Done }
}

fn follow(script: &mut Script<'_>) -> ScriptResult<()> {
    let commands = match commands(&script.prompt()) {
        Ok(commands) => commands,
        Err(why) => {
            script.say(why);
            return Err(Exit::End(EndReason::NotUnderstood));
        }
    };
    if script.is_first() && commands.first().is_some_and(|command| command.row.action != Action::Help) {
        script.say(INTRODUCTION);
    }
    for (number, command) in commands.iter().enumerate() {
        match perform(script, command) {
            Err(Exit::Refused) if number + 1 < commands.len() => {
                script.say("The commands after it are not done either.");
                return Ok(());
            }
            result => result?,
        };
    }
    Ok(())
}

/// Does a command. Gives whether it worked.
fn perform(script: &mut Script<'_>, command: &Command) -> ScriptResult<bool> {
    let text = |name: &str| command.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let arguments = || Value::Object(command.arguments.clone());
    match command.row.action {
        Action::Tool(tool, report) => call(script, tool, arguments(), &filled(report, &command.arguments)),
        Action::Replace => {
            // A file has to be read before it can be changed.
            let read = script.call("read_file", json!({ "path": text("path") }))?;
            if check(script, "read_file", read)?.is_none() {
                return Ok(false);
            }
            call(script, "edit_file", arguments(), &filled("Changed {path}.", &command.arguments))
        }
        Action::Ask => {
            let question = text("question");
            let arguments = match question.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
                Some((question, choices)) => json!({
                    "question": question.trim(),
                    "choices": choices.split('/').map(str::trim).collect::<Vec<_>>(),
                }),
                None => json!({ "question": question }),
            };
            call(script, "ask_user", arguments, "")
        }
        Action::Plan => plan(script, text("steps")),
        Action::Call => {
            // Passed on as it is, JSON or not: agents have to cope with what models write.
            let arguments = if text("json").is_empty() { "{}" } else { text("json") };
            call(script, text("tool"), arguments, &filled("{tool} answered:", &command.arguments))
        }
        Action::Say => {
            script.say(text("text"));
            Ok(true)
        }
        Action::Slowly => {
            script.say_slowly(text("text"));
            Ok(true)
        }
        Action::Stop(reason) => {
            script.say(format!("This answer ends as `{}` wants it.", command.row.form));
            Err(Exit::End(reason))
        }
        Action::Loop => repeat(script),
        Action::Tour => tour(script),
        Action::Help => {
            script.say(help());
            Ok(true)
        }
    }
}

/// A report with arguments for the names in it.
fn filled(report: &str, arguments: &Map<String, Value>) -> String {
    let fill = |report: String, (name, value): (&String, &Value)| {
        report.replace(&format!("{{{name}}}"), &code(value.as_str().unwrap_or_default()))
    };
    arguments.iter().fold(report.into(), fill)
}

/// Calls a tool, and says what came of it; see [`Action::Tool`].
fn call(script: &mut Script<'_>, tool: &str, arguments: impl ToString, report: &str) -> ScriptResult<bool> {
    let result = script.call(tool, arguments)?;
    let Some(result) = check(script, tool, result)? else { return Ok(false) };
    let given = result.text();
    let (heading, body) = match report {
        "" => given.trim().split_once('\n').unwrap_or((given.trim(), "")),
        report if report.ends_with(':') => (report, given.trim_end()),
        sentence => (sentence, ""),
    };
    script.say(match body {
        "" if heading.is_empty() => "Done.".into(),
        "" if heading.ends_with(':') => format!("{heading} nothing."),
        "" => heading.to_string(),
        body => format!("{heading}\n{}", fenced(body)),
    });
    Ok(true)
}

/// The result of a call that worked. Says why there is none otherwise.
fn check<'a>(
    script: &mut Script<'_>,
    tool: &str,
    result: Option<ToolResult<'a>>,
) -> ScriptResult<Option<ToolResult<'a>>> {
    let tool = code(tool);
    match result {
        None => script.say(format!("I leave this out: this mode has no tool {tool}.")),
        Some(result) if result.is_refused() => {
            script.say("As you wish: that is not done.");
            return Err(Exit::Refused);
        }
        Some(result) if result.is_error => script.say(match result.text().trim() {
            "" => format!("{tool} failed."),
            why if why.len() > 200 || why.contains('\n') => format!("{tool} failed:\n{}", fenced(why)),
            why => format!("{tool} failed: {why}"),
        }),
        worked => return Ok(worked),
    }
    Ok(None)
}

/// The arguments of `update_plan`.
pub(super) fn plan_arguments<'t>(entries: impl Iterator<Item = (&'t str, &'t str)>) -> Value {
    let entries = entries.map(|(content, status)| json!({ "content": content, "status": status }));
    json!({ "entries": entries.collect::<Vec<_>>() })
}

fn plan(script: &mut Script<'_>, steps: &str) -> ScriptResult<bool> {
    let steps: Vec<&str> = steps.split(',').map(str::trim).filter(|step| !step.is_empty()).collect();
    if steps.len() > MAX_COMMANDS {
        script.say(format!("That plan has more than {MAX_COMMANDS} steps, and is not followed."));
        return Ok(false);
    }
    let mut status = vec!["pending"; steps.len()];
    let update = |script: &mut Script<'_>, status: &[&str]| {
        let entries = steps.iter().copied().zip(status.iter().copied());
        let result = script.call("update_plan", plan_arguments(entries))?;
        check(script, "update_plan", result).map(|result| result.is_some())
    };
    for (at, step) in steps.iter().enumerate() {
        // Other steps, and those that have no end or plans of their own, are only written down.
        let is_alone = |action| matches!(action, Action::Plan | Action::Tour | Action::Loop | Action::Stop(_));
        let Some(command) = command(step).ok().filter(|command| !is_alone(command.row.action)) else { continue };
        status[at] = "in_progress";
        if !update(script, &status)? {
            return Ok(false);
        }
        let result = perform(script, &command);
        status[at] = if matches!(result, Ok(true)) { "completed" } else { "pending" };
        if matches!(result, Err(Exit::Refused)) {
            update(script, &status)?;
            script.say("The rest of the plan is left to you.");
        }
        result?;
    }
    if !update(script, &status)? {
        return Ok(false);
    }
    let (done, all) = (status.iter().filter(|status| **status == "completed").count(), steps.len());
    script.say(if done == all {
        "The plan is done.".into()
    } else {
        format!("{done} of {all} steps of the plan are done.")
    });
    Ok(done == all)
}

fn repeat(script: &mut Script<'_>) -> ScriptResult<bool> {
    for _ in 0..ROUNDS {
        let result = script.call("list_directory", json!({ "path": "." }))?;
        // It goes on when it is told that it goes round in circles: it is there to be stopped.
        if result.is_none_or(|result| result.is_refused()) {
            return check(script, "list_directory", result).map(|result| result.is_some());
        }
    }
    script.say(format!("I made the same call {ROUNDS} times, and nobody stopped me."));
    Ok(true)
}
