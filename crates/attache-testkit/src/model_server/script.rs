//! A model that does what the lines of the prompt say.

use std::time::Duration;

use super::answer::{Answer, Stop};
use super::request::{ModelRequest, Turn};
use super::tool::{Tool, any, call_for};

/// How often a slow model says a word: 150 of them take half a minute.
const SLOW_PACE: Duration = Duration::from_millis(200);
const SLOW_WORDS: usize = 150;

/// What one answer does.
#[derive(Debug, Default)]
struct Step {
    thoughts: Vec<String>,
    sayings: Vec<String>,
    /// Names and arguments.
    calls: Vec<(String, String)>,
    stop: Stop,
    is_slow: bool,
    recalls: bool,
}

/// What the script of the last prompt wants now. See [`ModelServer::scripted`](super::ModelServer::scripted).
pub(super) fn answer(request: &ModelRequest) -> Answer {
    let turns = request.turns();
    let tools = request.tools();
    let mut steps = vec![Step::default()];
    let mut results = 0;
    for turn in &turns {
        match turn {
            Turn::User(prompt) => {
                // Several prompts may have come in one message, with empty lines between them.
                if let Some(script) = prompt.rsplit("\n\n").find_map(|part| parse(part, &tools)) {
                    (steps, results) = (script, 0);
                }
            }
            Turn::Result { .. } => results += 1,
            Turn::Assistant(_) | Turn::Call { .. } => {}
        }
    }
    // A request without tools is an agent's own, for a title, say, and is not what the script is about.
    if tools.is_empty() {
        return Answer::text(request.answer_schema().map_or("done".to_owned(), |schema| any(schema).to_string()));
    }
    let last = steps.len();
    for (number, step) in (1..).zip(steps) {
        if results < step.calls.len() || number == last {
            return perform(step, number, &turns);
        }
        results -= step.calls.len();
    }
    Answer::text("done")
}

/// The steps of a prompt; `None` if there are no lines of a script in it. All but the last have calls, the last has none.
fn parse(prompt: &str, tools: &[Tool]) -> Option<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut step = Step::default();
    let mut is_script = false;
    for line in prompt.lines() {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let call = rest.split_once(' ').filter(|(_, arguments)| arguments.trim_start().starts_with('{'));
        let call = call.map(|(name, arguments)| (name.to_owned(), arguments.trim().to_owned()));
        match (word, call, rest) {
            ("call", Some(call), _) => {
                step.calls.push(call);
                steps.push(std::mem::take(&mut step));
            }
            ("use", Some((purpose, wanted)), _) => {
                let wanted = serde_json::from_str(&wanted).unwrap_or_default();
                if let Some(call) = call_for(&purpose, &wanted, tools) {
                    step.calls.push(call);
                    steps.push(std::mem::take(&mut step));
                }
            }
            ("and", Some(call), _) => match steps.last_mut() {
                Some(step) => step.calls.push(call),
                None => continue,
            },
            ("say", _, text) if !text.is_empty() => step.sayings.push(text.to_owned()),
            ("think", _, text) if !text.is_empty() => step.thoughts.push(text.to_owned()),
            ("stop", _, "length") => step.stop = Stop::Length,
            ("stop", _, "refusal") => step.stop = Stop::Refusal,
            ("slowly", _, "") => step.is_slow = true,
            ("recall", _, "") => step.recalls = true,
            _ => continue,
        }
        is_script = true;
    }
    steps.push(step);
    is_script.then_some(steps)
}

fn perform(step: Step, number: usize, turns: &[Turn]) -> Answer {
    let mut sayings = step.sayings;
    if step.recalls {
        sayings.push(format!("remembered {}", remembered(turns).join(" ")));
    }
    if !step.calls.is_empty() {
        if sayings.is_empty() {
            sayings.push(format!("step {number}"));
        }
    } else if step.is_slow {
        sayings.extend((0..SLOW_WORDS).map(|word| format!("word {word}")));
    } else if step.stop == Stop::Done {
        sayings.push("done".to_owned());
    }
    let mut answer = Answer::text(sayings.join("\n")).thought(step.thoughts.join("\n")).stop(step.stop);
    if step.is_slow {
        answer = answer.delay(SLOW_PACE);
    }
    for (name, arguments) in step.calls {
        answer = answer.raw_call(name, arguments);
    }
    answer
}

/// The words after `remember` in the conversation.
fn remembered(turns: &[Turn]) -> Vec<&str> {
    let prompts = turns.iter().filter_map(|turn| match turn {
        Turn::User(text) => Some(text.lines()),
        _ => None,
    });
    let words = prompts.flatten().filter_map(|line| line.trim().strip_prefix("remember "));
    words.filter_map(|rest| rest.split_whitespace().next()).collect()
}
