//! Making a history shorter without changing what it shows.

use attache::model::content::ContentBlock;
use attache::model::update::{MessageChunk, SessionUpdate};

use super::Entry;

/// No piece becomes longer than this, in bytes: what is shown again comes in pieces that every client takes.
const LONGEST: usize = 64 << 10;

/// Joins pieces of one message that follow each other, so that a message that came word by word is shown again at once.
/// Only plain text is joined: a piece with annotations or `_meta` stays as it was.
pub fn merged(entries: Vec<Entry>) -> Vec<Entry> {
    let mut merged: Vec<Entry> = Vec::new();
    for entry in entries {
        if merged.last_mut().is_none_or(|last| !join(last, &entry)) {
            merged.push(entry);
        }
    }
    merged
}

/// Adds an entry to the one before, if both are pieces of one text.
fn join(last: &mut Entry, next: &Entry) -> bool {
    let (Entry::Update { update: last }, Entry::Update { update: next }) = (last, next) else { return false };
    let (last, next) = match (&mut **last, &**next) {
        (SessionUpdate::AgentMessageChunk(last), SessionUpdate::AgentMessageChunk(next))
        | (SessionUpdate::AgentThoughtChunk(last), SessionUpdate::AgentThoughtChunk(next)) => (last, next),
        _ => return false,
    };
    if last.message_id != next.message_id || !is_plain(last) || !is_plain(next) {
        return false;
    }
    let (ContentBlock::Text(last), Some(next)) = (&mut last.content, next.content.as_text()) else { return false };
    let fits = last.text.len() + next.len() <= LONGEST;
    if fits {
        last.text.push_str(next);
    }
    fits
}

fn is_plain(chunk: &MessageChunk) -> bool {
    let is_plain_text = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.meta.is_none() && text.annotations.is_none(),
        _ => false,
    };
    chunk.meta.is_none() && chunk.message_id.is_some() && is_plain_text(&chunk.content)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use attache::proto::json::RawJson;

    /// Rows `tag id text`; a `!` stands for something else that was shown.
    fn check(rows: &[(&str, &str, &str)], expected: &[(&str, &str, &str)]) {
        let entries = |rows: &[(&str, &str, &str)]| -> Vec<Entry> {
            let entry = |(tag, id, text): &(&str, &str, &str)| match *tag {
                "!" => Entry::Title { title: (*text).to_owned() },
                _ => {
                    let json = format!(
                        r#"{{"sessionUpdate":"{tag}","messageId":"{id}","content":{{"type":"text","text":"{text}"}}}}"#
                    );
                    Entry::Update { update: Box::new(RawJson::new(&json).unwrap().to_model().unwrap()) }
                }
            };
            rows.iter().map(entry).collect()
        };
        assert_eq!(merged(entries(rows)), entries(expected));
    }

    #[test]
    fn neighbours_of_one_message_are_joined() {
        const SAID: &str = "agent_message_chunk";
        const THOUGHT: &str = "agent_thought_chunk";
        check(&[], &[]);
        check(&[(SAID, "1", "a"), (SAID, "1", "b"), (SAID, "1", "")], &[(SAID, "1", "ab")]);
        let apart = [
            (SAID, "1", "a"),
            (SAID, "2", "b"),
            (THOUGHT, "2", "c"),
            ("!", "", ""),
            (THOUGHT, "2", "d"),
            ("user_message_chunk", "3", "e"),
            ("user_message_chunk", "3", "f"),
        ];
        check(&apart, &apart);
        let long = "x".repeat(LONGEST);
        check(&[(SAID, "1", &long), (SAID, "1", "y"), (SAID, "1", "z")], &[(SAID, "1", &long), (SAID, "1", "yz")]);
    }

    #[test]
    fn pieces_that_carry_more_than_text_stay_as_they_were() {
        for piece in [
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"a"},"_meta":{}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"a","_meta":{}}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"a","annotations":{}}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"image","data":"","mimeType":"x"}}"#,
        ] {
            let entry = Entry::Update { update: Box::new(RawJson::new(piece).unwrap().to_model().unwrap()) };
            let entries = vec![entry.clone(), entry];
            assert_eq!(merged(entries.clone()), entries);
        }
    }
}
