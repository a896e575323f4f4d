//! A turn as its log has it: some twenty entries.

use attache::model::content::ContentBlock;
use attache::proto::json::RawJson;
use attache_agent::model::{Call, Message, Part};
use attache_agent::store::{Entry, Log, Opened};

use crate::Error;

pub fn opened() -> Opened {
    Opened { cwd: "/project".into(), created: "2026-11-15T09:30:00.125Z".into(), ..Opened::default() }
}

fn update(json: String) -> Option<Entry> {
    Some(Entry::Update { update: Box::new(RawJson::new(&json).ok()?.to_model().ok()?) })
}

fn chunk(turn: usize, text: &str) -> Option<Entry> {
    update(format!(
        r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m{turn}","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

/// A question, a word about what is done, a file that is read, an answer in pieces.
pub fn entries(turn: usize) -> Vec<Entry> {
    let file = "    let greeting = hello_world();\\n".repeat(40);
    let call = Call { id: format!("c{turn}"), name: "read_file".into(), arguments: r#"{"path":"src/main.rs"}"#.into() };
    let said = |text: &str, calls| Message::Assistant { text: text.into(), calls, opaque: None };
    let result = Message::Tool {
        id: format!("c{turn}"),
        name: "read_file".into(),
        parts: vec![Part::text(file.as_str())],
        is_error: false,
    };
    let text = "What does main.rs do, and where does it begin?";
    let mut entries = vec![
        Some(Entry::Prompt { id: format!("p{turn}"), content: vec![ContentBlock::text(text)] }),
        Some(Entry::Said { message: Message::user(text) }),
        chunk(turn, "Let me look at the file."),
        Some(Entry::Said { message: said("Let me look at the file.", vec![call]) }),
        update(format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{turn}","title":"Read src/main.rs","kind":"read","status":"in_progress","locations":[{{"path":"/project/src/main.rs"}}]}}"#
        )),
        update(format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{turn}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"{file}"}}}}]}}"#
        )),
        Some(Entry::Said { message: result }),
    ];
    entries.extend((0..11).map(|piece| chunk(turn, &format!("Piece {piece} of an answer of some words. "))));
    entries.push(Some(Entry::Said { message: said(&"Piece of an answer of some words. ".repeat(11), Vec::new()) }));
    entries.push(Some(Entry::TurnEnded { stop: "end_turn".into() }));
    entries.into_iter().flatten().collect()
}

/// Writes a turn, and waits until it survives a loss of power, as the agent does at the end of each.
pub fn write(log: &mut dyn Log, entries: &[Entry], in_batches: bool) -> Result<(), Error> {
    if in_batches {
        // What is said, what the tool does and the answer: three that the model or the tool is waited for between.
        for batch in entries.chunks(7) {
            log.append_all(&batch.iter().collect::<Vec<_>>()).map_err(|(_, error)| error)?;
        }
    } else {
        for entry in entries {
            log.append(entry)?;
        }
    }
    Ok(log.sync()?)
}
