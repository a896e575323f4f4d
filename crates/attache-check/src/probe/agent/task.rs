//! What a prompt asks for: in English, and in the words of whatever plays the model.

use serde_json::{Value, json};

/// How a prompt says what is to be done, beside plain English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Lines for the scripted model of `attache-testkit`, such as `use read {"path":"a.txt"}`.
    #[default]
    Lines,
    /// Directives in brackets, such as `[[read a.txt]]`.
    Brackets,
    /// The commands of `attache agent --model offline`, such as `read a.txt`, and nothing else.
    Offline,
    /// English alone, for a language model.
    English,
}

/// Something that a prompt asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Task {
    Say(&'static str),
    Think(&'static str),
    Read(String),
    Write(String, &'static str),
    Run(&'static str),
    /// Runs a command and gives it up after a second.
    RunShortly(&'static str),
    Plan,
    /// Asks the person.
    Ask,
    /// Says so much that there is time to do something else meanwhile.
    Slowly,
    Refuse,
    /// Stops as if there were no more tokens.
    Length,
}

use Task::*;

/// The text of a prompt; none if this style cannot say it.
pub(super) fn text(tasks: &[Task], style: Style) -> Option<String> {
    let english = || tasks.iter().map(english).collect::<Vec<_>>().join(" ");
    let script = |line: fn(&Task) -> Option<String>, between: &str| {
        Some(tasks.iter().map(line).collect::<Option<Vec<_>>>()?.join(between))
    };
    match style {
        Style::English => tasks.iter().all(|task| !matches!(task, Refuse | Length)).then(english),
        Style::Lines => Some(format!("{}\n{}", english(), script(line, "\n")?)),
        Style::Brackets => Some(format!("{} {}", english(), script(bracket, " ")?)),
        Style::Offline => script(offline, "\n"),
    }
}

fn english(task: &Task) -> String {
    match task {
        Say(text) => format!("Please answer with this text: {text}."),
        Think(text) => format!("Please think about this first: {text}."),
        Read(path) => format!("Please read the file {path}."),
        Write(path, content) => format!("Please write the text {content:?} into the file {path}."),
        Run(command) => format!("Please execute this command: {command}"),
        RunShortly(command) => format!("Please execute this command, and give it up after one second: {command}"),
        Plan => "Please make a plan with two steps, and show it.".to_owned(),
        Ask => "Please ask me, with the tool for that, which colour I like.".to_owned(),
        Slowly => "Please count from one to two hundred, in words.".to_owned(),
        Refuse => "Please refuse.".to_owned(),
        Length => "Please answer as long as you can.".to_owned(),
    }
}

fn line(task: &Task) -> Option<String> {
    let call = |purpose: &str, arguments: Value| format!("use {purpose} {arguments}");
    Some(match task {
        Say(text) => format!("say {text}"),
        Think(text) => format!("think {text}"),
        Read(path) => call("read", json!({ "path": path })),
        Write(path, content) => call("write", json!({ "path": path, "content": content })),
        Run(command) => call("run", json!({ "command": command })),
        RunShortly(command) => call("run", json!({ "command": command, "seconds": 1 })),
        Plan => call(
            "plan",
            json!({ "entries": [
                { "content": "Look around", "status": "in_progress" },
                { "content": "Tidy up", "status": "pending" },
            ] }),
        ),
        Ask => call("ask", json!({ "question": "Which colour?" })),
        Slowly => "slowly".to_owned(),
        Refuse => "stop refusal".to_owned(),
        Length => "stop length".to_owned(),
    })
}

fn bracket(task: &Task) -> Option<String> {
    Some(match task {
        Say(text) => format!("[[say {text}]]"),
        Think(text) => format!("[[think {text}]]"),
        Read(path) => format!("[[read {path}]]"),
        Write(path, content) => format!("[[write {path} {content}]]"),
        Run(command) => format!("[[shell {command}]]"),
        Plan => "[[plan]]".to_owned(),
        Slowly => "[[slow 100 0.1]]".to_owned(),
        Refuse => "[[refuse]]".to_owned(),
        Length => "[[maxtokens]]".to_owned(),
        RunShortly(_) | Ask => return None,
    })
}

fn offline(task: &Task) -> Option<String> {
    Some(match task {
        Say(text) => format!("say {text}"),
        Read(path) => format!("read {path}"),
        Write(path, content) => format!("create {path} with {content:?}"),
        Run(command) => format!("run {command}"),
        RunShortly(command) => {
            format!("call run_command {}", json!({ "command": command, "timeout_seconds": 1 }))
        }
        Plan => "plan say one, say two".to_owned(),
        Ask => "ask Which colour? [red/blue]".to_owned(),
        Slowly => format!("slowly {}", "one two three four ".repeat(50).trim()),
        Refuse => "stop refusal".to_owned(),
        Length => "stop length".to_owned(),
        Think(text) => format!("call think {}", json!({ "thought": text })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_said_in_every_style() {
        let tasks = [Read("/p/a.txt".to_owned()), Say("hello")];
        let said = |style| text(&tasks, style).unwrap();
        let english = "Please read the file /p/a.txt. Please answer with this text: hello.";
        assert_eq!(said(Style::English), english);
        assert_eq!(said(Style::Lines), format!("{english}\nuse read {{\"path\":\"/p/a.txt\"}}\nsay hello"));
        assert_eq!(said(Style::Brackets), format!("{english} [[read /p/a.txt]] [[say hello]]"));
        assert_eq!(said(Style::Offline), "read /p/a.txt\nsay hello");
        assert_eq!(text(&[Refuse], Style::English), None);
    }
}
