//! Reads the files that a prompt names before a small model is asked: it would begin with that, or guess.

use attache::Error;
use attache::agent::Turn;
use attache_host::files::EntryKind;
use attache_host::permission::is_secret;

use super::guard::Guard;
use super::{Desk, calls, reply};
use crate::conversation::Conversation;
use crate::model::{Call, Message, ModelInfo, Part};
use crate::workspace::Target;

/// How many files are read.
const MOST_FILES: usize = 3;

/// How long each of them may be.
const LONGEST: u64 = 6_000;

/// How many words of a prompt are looked at.
const MOST_WORDS: usize = 40;

/// Reads the files that the last prompt names, by calls that anybody can see.
pub(super) async fn read_named_files(
    desk: &Desk,
    conversation: &mut Conversation,
    turn: &Turn,
    model: &ModelInfo,
) -> Result<(), Error> {
    let Some(Message::User { parts }) = conversation.messages.last() else { return Ok(()) };
    // The first part is ours.
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.starts_with("<environment>") => Some(text.as_str()),
        _ => None,
    });
    let words: Vec<String> = texts.flat_map(words).take(MOST_WORDS).collect();
    let mut read: Vec<String> = Vec::new();
    for word in words {
        let Ok(target) = desk.tools.workspace.target(&word).await else { continue };
        if read.len() == MOST_FILES {
            break;
        }
        if !is_worth_reading(desk, &target) || read.contains(&target.name) {
            continue;
        }
        read.push(target.name.clone());
        let arguments = serde_json::json!({ "path": target.name }).to_string();
        let call = Call { id: desk.log.fresh_id("read"), name: "read_file".into(), arguments };
        reply::start_whole(desk, conversation, &call).await?;
        let message = Message::Assistant { text: String::new(), calls: vec![call.clone()], opaque: None };
        conversation.say(desk, message)?;
        calls::run(desk, conversation, turn, &[call], model, &mut Guard::new(false)).await?;
    }
    Ok(())
}

/// A short file of the project that the model does not know yet.
fn is_worth_reading(desk: &Desk, target: &Target) -> bool {
    let is_short = target.info.is_some_and(|info| info.kind == EntryKind::File && info.size <= LONGEST);
    let is_open = target.relative.as_ref().is_some_and(|relative| !is_secret(relative));
    is_short && is_open && desk.tools.workspace.check_read(target).is_err()
}

/// What in a text may be the name of a file: what stands in quotes, and words with a dot or a slash in them.
fn words(text: &str) -> Vec<String> {
    let quoted = ['`', '"', '\''].into_iter().flat_map(|mark| text.split(mark).skip(1).step_by(2));
    let plain = text.split(|c: char| c.is_whitespace() || "`\"'()[]{}<>,;:".contains(c));
    let plain = plain.map(|word| word.trim_end_matches(['.', '?', '!'])).filter(|word| word.contains(['.', '/']));
    let all = quoted.chain(plain).map(str::trim);
    all.filter(|word| !word.is_empty() && word.len() < 200 && !word.contains(['\n', '\0'])).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_a_sentence() {
        let found = words("Mend `über uns.txt`, src/lib.rs: and (days.py). It's in \"a b\"?");
        for name in ["über uns.txt", "src/lib.rs", "days.py", "a b"] {
            assert!(found.iter().any(|word| word == name), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|word| word == "Mend" || word.is_empty()), "{found:?}");
    }
}
