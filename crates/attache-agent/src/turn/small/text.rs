//! The text of a file, in a request of its own: the file, the task, and nothing else. In a conversation, and in JSON above
//! all, small models write half of what they can write here.

use std::ops::Range;

use attache::agent::Turn;
use serde_json::{Value, json};

use super::super::reply::Answer;
use super::super::{Desk, Trouble, whole_answer};
use super::{prime, window};
use crate::conversation::Conversation;
use crate::model::{Call, EndReason, Message, Model, Part, Request};
use crate::system_prompt::text_prompt;
use crate::workspace::{Target, blocking, shortened};

/// How many tokens a text may have.
const MOST_TOKENS: u32 = 4096;

/// How many bytes of other files and of what a command said are shown beside the file.
const MOST_BESIDE: usize = 6_000;
const MOST_OUTPUT: usize = 1_500;

/// How many bytes of what was found are shown with a question.
const MOST_FOUND: usize = 12_000;

/// Gives a call that writes a file the text that it is to have. False if the model was asked for one and had none to give.
pub(super) async fn complete(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &dyn Model,
    task: &str,
    answer: &mut Answer,
) -> Result<bool, Trouble> {
    let [call] = answer.calls.as_mut_slice() else { return Ok(true) };
    let Some(path) = path_without_text(call) else { return Ok(true) };
    // What is wrong with the path is told by the tool.
    let Ok(target) = desk.tools.workspace.target(&path).await else { return Ok(true) };
    if target.info.is_some() && desk.tools.workspace.check_read(&target).is_err() {
        prime::read(desk, conversation, turn, model.info(), &target, task).await?;
        if desk.tools.workspace.check_read(&target).is_err() {
            return Ok(true);
        }
    }
    let old = match target.info {
        Some(_) => match desk.tools.workspace.read_text(&target).await {
            Ok(text) => Some(text.content),
            Err(_) => return Ok(true),
        },
        None => None,
    };
    let place = desk.place.clone();
    let system = blocking(move || text_prompt(&place)).await.unwrap_or_default();
    let (beside, failure) = beside(desk, conversation, &target).await;
    let task = &format!("{task}{failure}");
    let long = old.as_deref().filter(|old| old.len() as u64 > prime::LONGEST);
    let part = long.and_then(|old| Some((old, window::part(old, task)?)));
    let wanted = Wanted { path: &target.name, task, beside: &beside };
    let Some((old, lines)) = part else {
        let Some(mut new) = ask(model, &system, wanted.whole(old.as_deref()), &target.name).await? else {
            return Ok(false);
        };
        if let Some(old) = &old {
            new = like(old, &new);
            if is_same(old, &new)
                && let Some(again) = ask(model, &system, wanted.whole_again(old), &target.name).await?
            {
                new = like(old, &again);
            }
        }
        call.arguments = json!({ "path": path, "content": new }).to_string();
        return Ok(true);
    };
    let now = lines_of(old, &lines);
    let Some(new) = ask(model, &system, wanted.part(&now, &lines), &target.name).await? else { return Ok(false) };
    call.name = "edit_file".into();
    let new = ended_like(&now, &indented_like(&now, &new));
    call.arguments = json!({ "path": path, "old_text": now, "new_text": new }).to_string();
    Ok(true)
}

/// The whole of a file, in the form that it has.
fn like(old: &str, new: &str) -> String {
    ended_like(old, &indented_like(old, &completed(old, new)))
}

/// A text that is indented by tabs if another one is: models write blanks for them.
fn indented_like(old: &str, new: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let has_tabs = old.lines().any(|line| line.starts_with('\t')) && !old.lines().any(|line| indent(line) > 1);
    let width = new.lines().map(indent).filter(|indent| *indent > 1).min();
    let (true, Some(width)) = (has_tabs && !new.contains('\t'), width) else { return new.to_owned() };
    let line = |line: &str| {
        let blanks = indent(line);
        format!("{}{}{}", "\t".repeat(blanks / width), " ".repeat(blanks % width), &line[blanks..])
    };
    new.split_inclusive('\n').map(line).collect()
}

/// What is to be written, and what there is to know for it.
struct Wanted<'a> {
    path: &'a str,
    task: &'a str,
    /// Other files, and what a command said.
    beside: &'a str,
}

impl Wanted<'_> {
    fn whole(&self, old: Option<&str>) -> String {
        let Wanted { path, task, beside } = self;
        match old {
            Some(old) => format!(
                "{beside}This is {path}:\n\n{}\n\n{task}\n\nFirst say in one or two sentences what has to change. Then write the \
                 whole new text of {path} in one code block.",
                fenced(path, old)
            ),
            None => format!("{beside}{task}\n\nWrite the whole text of the new file {path} in one code block."),
        }
    }

    /// The same for a model that has written the file as it is. Put the other way round, it often sees what it overlooked.
    fn whole_again(&self, old: &str) -> String {
        let Wanted { path, task, beside } = self;
        format!(
            "{beside}{task}\n\nThis is {path} now:\n\n{}\n\nIt does not do that yet: at least one line has to become another. \
             First say in one or two sentences what has to change for this: {task}\n\nThen write the whole new text of {path} in \
             one code block, from its first line to its last.",
            fenced(path, old)
        )
    }

    fn part(&self, now: &str, lines: &Range<usize>) -> String {
        let Wanted { path, task, beside } = self;
        let (first, last) = (lines.start + 1, lines.end);
        format!(
            "{beside}{task}\n\nThese are the lines {first} to {last} of {path}:\n\n{}\n\nFirst say in one sentence what has to change. \
             Then write these lines anew, all of them, in one code block.",
            fenced(path, now)
        )
    }
}

/// What models call the language of a file, by its ending.
const LANGUAGES: &[(&str, &str)] = &[
    ("c", "c"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("css", "css"),
    ("go", "go"),
    ("h", "c"),
    ("html", "html"),
    ("java", "java"),
    ("js", "javascript"),
    ("json", "json"),
    ("kt", "kotlin"),
    ("md", "markdown"),
    ("php", "php"),
    ("py", "python"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("sh", "sh"),
    ("sql", "sql"),
    ("swift", "swift"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("xml", "xml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
];

/// A text in a code block.
fn fenced(path: &str, text: &str) -> String {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending).unwrap_or_default();
    let language = LANGUAGES.iter().find(|(known, _)| *known == ending).map(|(_, name)| *name).unwrap_or_default();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("```{language}\n{text}{end}```")
}

/// Asks for a text. `None` if there is none in the answer, or not all of it.
async fn ask(model: &dyn Model, system: &str, prompt: String, path: &str) -> Result<Option<String>, Trouble> {
    let request = Request {
        system: system.to_owned(),
        messages: vec![Message::user(prompt)],
        max_tokens: Some(MOST_TOKENS),
        ..Request::default()
    };
    let (text, _, end) = whole_answer(model, request).await?;
    Ok((end.reason == EndReason::Done).then(|| in_block(&text, path)).flatten())
}

/// The other files that were read in this turn, as they are now, and what the last command said if it failed.
async fn beside(desk: &Desk, conversation: &Conversation, target: &Target) -> (String, String) {
    let messages = super::of_turn(conversation);
    let calls: Vec<Call> = messages.iter().flat_map(calls_of).cloned().collect();
    let mut text = String::new();
    let mut names = vec![target.name.clone()];
    let (mut last_command, mut left) = (None, MOST_BESIDE);
    for call in calls {
        if call.name == "run_command" {
            last_command = argument(&call, "command").map(|command| (command, call.id.clone()));
        }
        let Some(path) = argument(&call, "path").filter(|_| call.name == "read_file") else { continue };
        let Ok(other) = desk.tools.workspace.target(&path).await else { continue };
        if names.contains(&other.name) || desk.tools.workspace.check_read(&other).is_err() {
            continue;
        }
        let Ok(content) = desk.tools.workspace.read_text(&other).await else { continue };
        if content.content.len() <= left {
            left -= content.content.len();
            text.push_str(&format!("This is {}:\n\n{}\n\n", other.name, fenced(&other.name, &content.content)));
            names.push(other.name);
        }
    }
    let failure = last_command.and_then(|(command, id)| {
        let said = messages.iter().find_map(|message| error_of(message, &id))?;
        let said = shortened(&said, MOST_OUTPUT);
        Some(format!("\n\n`{command}` fails, and what it says has to be mended:\n\n{said}"))
    });
    (text, failure.unwrap_or_default())
}

fn calls_of(message: &Message) -> &[Call] {
    match message {
        Message::Assistant { calls, .. } => calls,
        _ => &[],
    }
}

/// What was told of the project and what the calls of this turn brought, the last things last.
pub(super) fn found(conversation: &Conversation) -> String {
    let messages = super::of_turn(conversation);
    let mut texts = Vec::new();
    let mut left = MOST_FOUND;
    for (at, message) in messages.iter().enumerate().rev() {
        let parts = match message {
            Message::User { parts } => parts.iter().filter_map(Part::as_text).filter(|text| is_ours(text)).collect(),
            Message::Tool { parts, .. } => parts.iter().filter_map(Part::as_text).collect::<Vec<_>>(),
            Message::Assistant { .. } => continue,
        };
        let calls = at.checked_sub(1).map(|before| calls_of(&messages[before])).unwrap_or_default();
        let command = calls.iter().find_map(|call| argument(call, "command"));
        let heading = command.map(|command| format!("`{command}` says:\n")).unwrap_or_default();
        let text = format!("{heading}{}", parts.join("\n"));
        if !parts.is_empty() && text.len() <= left {
            left -= text.len();
            texts.push(text);
        }
    }
    texts.iter().rev().map(|text| format!("{}\n\n", text.trim_end())).collect()
}

/// Whether a part of a prompt is what we told of the surroundings.
fn is_ours(text: &str) -> bool {
    text.starts_with("<environment>")
}

fn argument(call: &Call, name: &str) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    Some(arguments.get(name)?.as_str()?.to_owned())
}

/// What a call said that failed.
fn error_of(message: &Message, call: &str) -> Option<String> {
    let Message::Tool { id, parts, is_error: true, .. } = message else { return None };
    (id == call).then(|| parts.iter().filter_map(Part::as_text).collect::<Vec<_>>().join("\n"))
}

/// The path of a call that writes a file and has no text yet.
fn path_without_text(call: &Call) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok().filter(|_| call.name == "write_file")?;
    let has_text = arguments.get("content").is_some();
    arguments.get("path").filter(|_| !has_text)?.as_str().map(str::to_owned)
}

fn lines_of(text: &str, lines: &Range<usize>) -> String {
    text.split_inclusive('\n').skip(lines.start).take(lines.len()).collect()
}

fn is_same(old: &str, new: &str) -> bool {
    old.lines().eq(new.lines())
}

/// What is in a code block of an answer: the longest one, or, for a text that may have blocks in itself, from the first fence
/// to the last. `None` if there is no block, or if it has no end.
fn in_block(answer: &str, path: &str) -> Option<String> {
    let is_fence = |line: &str| line.starts_with("```");
    let lines: Vec<&str> = answer.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|at| is_fence(lines[*at])).collect();
    let text = |from: usize, to: usize| lines[from + 1..to].iter().map(|line| format!("{line}\n")).collect::<String>();
    if path.ends_with(".md") {
        let (first, last) = (*fences.first()?, *fences.last()?);
        return (first < last).then(|| text(first, last));
    }
    let blocks = fences.chunks_exact(2).map(|pair| text(pair[0], pair[1]));
    blocks.max_by_key(String::len).filter(|_| fences.len() % 2 == 0)
}

/// The whole of a file of which a small model has written a part, as it does where it was told to write all of it: only the
/// function that it changed, say. Each block of the part takes the place of the one that begins with the same line, and what
/// is around them is as it was. A text that begins as the file does, or is about as long, is taken for the whole.
fn completed(old: &str, new: &str) -> String {
    let (before, part): (Vec<&str>, Vec<&str>) =
        (old.lines().collect(), new.trim_matches(['\r', '\n']).lines().collect());
    if part.is_empty() || part.first() == before.first() || part.len() * 10 >= before.len() * 8 {
        return new.to_owned();
    }
    let mut whole: Vec<&str> = Vec::new();
    let mut at = 0;
    for block in blocks(&part) {
        let mut places = (at..before.len()).filter(|place| before[*place] == block[0]);
        match (places.next(), places.next()) {
            (Some(place), None) => {
                whole.extend(&before[at..place]);
                whole.extend(block);
                at = place + blocks(&before[place..])[0].len();
            }
            // One that is new stands behind the one before it.
            (None, _) if at > 0 => {
                whole.push("");
                whole.extend(block);
            }
            // It cannot be told what is meant.
            _ => return new.to_owned(),
        }
    }
    whole.extend(&before[at..]);
    whole.join("\n")
}

/// The blocks of some lines: each begins with a line that is not indented and closes nothing, and ends with its last line
/// that is not blank. Blank lines between them are left out, but for the last one's.
fn blocks<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let begins = |line: &str| !line.is_empty() && !line.starts_with([' ', '\t', '}', ')', ']']);
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some(block) if !begins(line) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    for block in &mut blocks {
        let end = block.iter().rposition(|line| !line.trim().is_empty()).map_or(1, |last| last + 1);
        block.truncate(end);
    }
    blocks
}

/// A text that ends with a line end if another one does.
fn ended_like(old: &str, new: &str) -> String {
    let new = new.trim_end_matches(['\r', '\n']);
    if new.is_empty() || !old.ends_with('\n') { new.to_owned() } else { format!("{new}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_is_put_in_its_place() {
        let old = "import re\n\n\ndef one():\n    return 1\n\n\ndef two() {\n    return 2\n}\n\n\nEND = 1\n";
        for (new, expected) in [
            ("def one():\n    x = 1\n    return 3", Some(old.replace("    return 1", "    x = 1\n    return 3"))),
            ("def two() {\n    return 4\n}", Some(old.replace("return 2", "return 4"))),
            (
                "def one():\n    return 1\n\n\ndef new():\n    return 0",
                Some(old.replace("return 1", "return 1\n\ndef new():\n    return 0")),
            ),
            // From its beginning, of about its length, or with nothing that is there: what was written is meant.
            ("import re\n\nEND = 1", None),
            ("def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n\n\nEND = 1", None),
            ("def three():\n    return 3", None),
            ("", None),
        ] {
            let expected = expected.unwrap_or_else(|| new.to_owned());
            assert_eq!(completed(old, new).trim_end(), expected.trim_end(), "{new:?}");
        }
    }

    #[test]
    fn a_text_is_in_the_longest_block() {
        for (answer, path, expected) in [
            ("It is `x`.\n\n```python\na\nb\n```\n", "a.py", Some("a\nb\n")),
            ("```\nx\n```\nso:\n```\nlonger\nthan\n```", "a.py", Some("longer\nthan\n")),
            ("```md\n# A\n```sh\nls\n```\nend\n```", "a.md", Some("# A\n```sh\nls\n```\nend\n")),
            ("```\nwithout an end", "a.py", None),
            ("No block at all.", "a.py", None),
            ("```\n```", "a.py", Some("")),
        ] {
            assert_eq!(in_block(answer, path).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn a_file_with_tabs_keeps_them() {
        let old = "all:\n\tls\n";
        assert_eq!(indented_like(old, "all:\n    ls\n        pwd\n\n"), "all:\n\tls\n\t\tpwd\n\n");
        for (old, new) in [(old, "all:\n\tls\n"), ("a:\n  b\n\tc\n", "a:\n  b\n"), ("a\n", "a:\n  b\n"), (old, " x\n")]
        {
            assert_eq!(indented_like(old, new), new);
        }
    }

    #[test]
    fn a_path_without_text_is_asked_about() {
        let call =
            |name: &str, arguments: &str| Call { id: String::new(), name: name.into(), arguments: arguments.into() };
        assert_eq!(path_without_text(&call("write_file", r#"{"path":"a"}"#)).as_deref(), Some("a"));
        for (name, arguments) in
            [("write_file", r#"{"path":"a","content":""}"#), ("read_file", r#"{"path":"a"}"#), ("write_file", "{")]
        {
            assert_eq!(path_without_text(&call(name, arguments)), None, "{arguments}");
        }
    }
}
