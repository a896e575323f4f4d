//! The text of a file, in a request of its own: the file, the task, and nothing else. Behind a conversation, and in JSON
//! above all, small models get far less of it right.

use std::ops::Range;

use attache::agent::Turn;
use serde_json::{Value, json};

use super::super::reply::Answer;
use super::super::{Desk, Trouble, whole_answer};
use super::{merge, prime, window};
use crate::conversation::Conversation;
use crate::model::{Call, EndReason, Message, Model, Part, Request};
use crate::system_prompt::{Detail, text_prompt};
use crate::workspace::{Target, blocking, shortened};

/// How many tokens a text may have.
const MOST_TOKENS: u32 = 4096;

/// How many bytes of other files and of what a command said are shown beside the file.
const MOST_BESIDE: usize = 6_000;
const MOST_OUTPUT: usize = 1_500;

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
    let detail = Detail::of(model.info());
    let system = blocking(move || text_prompt(&place, detail)).await.unwrap_or_default();
    let room = super::room(model.info()).saturating_sub(old.as_ref().map_or(0, String::len));
    let (beside, failure) = beside(desk, conversation, &target, room).await;
    let task = &format!("{task}{failure}");
    // What was not seen as a whole cannot be written as a whole.
    let is_seen = desk.tools.workspace.check_whole(&target).is_ok();
    let long = old.as_deref().filter(|old| old.len() as u64 > prime::LONGEST || !is_seen);
    let wanted = Wanted { path: &target.name, task, beside: &beside };
    // A text that has code blocks has them in the answer, too.
    let has_blocks = MARKDOWN.iter().any(|ending| target.name.ends_with(ending))
        || old.as_deref().is_some_and(|old| old.lines().any(is_fence));
    let asks = Asks { model, system, has_blocks, max_tokens: desk.limits.max_tokens };
    let Some(old) = long else {
        let Some(new) = whole(&asks, &wanted, old.as_deref()).await? else { return Ok(false) };
        call.arguments = json!({ "path": path, "content": new }).to_string();
        return Ok(true);
    };
    let Some(lines) = window::part_off_thread(old, task).await else { return Ok(false) };
    let now = lines_of(old, &lines);
    let Some(new) = asks.text(wanted.part(&now, &lines)).await? else { return Ok(false) };
    let mut new = merge::merged(&now, &new);
    if new.is_none()
        && let Some(again) = asks.text(wanted.part_again(&now, &lines)).await?
    {
        new = merge::merged(&now, &again);
    }
    let Some(new) = new else { return Ok(false) };
    call.name = "edit_file".into();
    call.arguments = json!({ "path": path, "old_text": now, "new_text": new }).to_string();
    Ok(true)
}

/// The text of a file that is short, or new. One that is there already is asked for a second time if nothing of it was
/// changed, or not all of it came.
async fn whole(asks: &Asks<'_>, wanted: &Wanted<'_>, old: Option<&str>) -> Result<Option<String>, Trouble> {
    let Some(new) = asks.text(wanted.whole(old)).await? else { return Ok(None) };
    let Some(old) = old else { return Ok(Some(new)) };
    let first = merge::merged(old, &new);
    if first.as_ref().is_some_and(|first| !old.lines().eq(first.lines())) {
        return Ok(first);
    }
    let Some(again) = asks.text(wanted.whole_again(old)).await? else { return Ok(first) };
    Ok(merge::merged(old, &again).or(first))
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

    /// The same for a model that has left lines out.
    fn part_again(&self, now: &str, lines: &Range<usize>) -> String {
        let count = lines.len();
        format!("{} All {count} lines have to be there, also those that stay as they are.", self.part(now, lines))
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

/// How a model is asked for a text.
struct Asks<'a> {
    model: &'a dyn Model,
    system: String,
    /// Whether the text may have code blocks in itself.
    has_blocks: bool,
    max_tokens: Option<u32>,
}

impl Asks<'_> {
    /// Asks for a text. `None` if there is none in the answer, or not all of it.
    async fn text(&self, prompt: String) -> Result<Option<String>, Trouble> {
        let request = Request {
            system: self.system.clone(),
            messages: vec![Message::user(prompt)],
            max_tokens: Some(self.max_tokens.map_or(MOST_TOKENS, |most| most.min(MOST_TOKENS))),
            ..Request::default()
        };
        let (text, _, end) = whole_answer(self.model, request).await?;
        Ok((end.reason == EndReason::Done).then(|| in_block(&text, self.has_blocks)).flatten())
    }
}

/// The other files that were read in this turn, as they are now, and what the last command said if it failed.
async fn beside(desk: &Desk, conversation: &Conversation, target: &Target, room: usize) -> (String, String) {
    let messages = super::of_turn(conversation);
    let calls: Vec<Call> = messages.iter().flat_map(calls_of).cloned().collect();
    let mut text = String::new();
    let mut names = vec![target.name.clone()];
    let (mut last_command, mut left) = (None, MOST_BESIDE.min(room));
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

pub(super) fn calls_of(message: &Message) -> &[Call] {
    match message {
        Message::Assistant { calls, .. } => calls,
        _ => &[],
    }
}

/// An argument of a call, if it is a text.
pub(super) fn argument(call: &Call, name: &str) -> Option<String> {
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

/// Files that have code blocks more often than not.
const MARKDOWN: [&str; 3] = [".md", ".mdx", ".markdown"];

/// Whether a code block begins or ends with this line.
fn is_fence(line: &str) -> bool {
    line.starts_with("```")
}

/// What is in a code block of an answer: the longest one, or, for a text that may have blocks in itself, from the first fence
/// to the last. `None` if there is no block, or if it has no end.
fn in_block(answer: &str, has_blocks: bool) -> Option<String> {
    let lines: Vec<&str> = answer.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|at| is_fence(lines[*at])).collect();
    let text = |from: usize, to: usize| lines[from + 1..to].iter().map(|line| format!("{line}\n")).collect::<String>();
    if has_blocks {
        let (first, last) = (*fences.first()?, *fences.last()?);
        return (first < last).then(|| text(first, last));
    }
    let blocks = fences.chunks_exact(2).map(|pair| text(pair[0], pair[1]));
    blocks.max_by_key(String::len).filter(|_| fences.len().is_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_the_longest_block() {
        for (answer, has_blocks, expected) in [
            ("It is `x`.\n\n```python\na\nb\n```\n", false, Some("a\nb\n")),
            ("```\nx\n```\nso:\n```\nlonger\nthan\n```", false, Some("longer\nthan\n")),
            ("```md\n# A\n```sh\nls\n```\nend\n```", true, Some("# A\n```sh\nls\n```\nend\n")),
            ("```\nwithout an end", false, None),
            ("No block at all.", false, None),
            ("```\n```", false, Some("")),
        ] {
            assert_eq!(in_block(answer, has_blocks).as_deref(), expected, "{answer}");
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
