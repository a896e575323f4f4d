//! What has to be remembered from one update of a session to the next.

use attache_proto::Dialect;
use attache_proto::dialect::Speaker;
use attache_proto::json::Writer;
use attache_proto::model::{
    ClientCapabilities, ContentBlock, MessageChunk, MessageId, SessionId, SessionUpdate, TextContent,
};

use super::router::AgentRouter;
use crate::link::Port;

/// What has to be remembered from one update to the next.
pub(super) struct Voice {
    speaker: Speaker,
    /// What every update begins with.
    update_start: Vec<u8>,
    /// The message that is being spoken.
    message: Option<(Stream, MessageId)>,
    /// What the pieces of text of that message have in common, from its second one on.
    phrase: Option<Phrase>,
    prefix: String,
    messages: u64,
    tools: u64,
}

/// Which message a piece of text belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Text,
    Thought,
}

impl Stream {
    fn update(self, chunk: MessageChunk) -> SessionUpdate {
        match self {
            Stream::Text => SessionUpdate::AgentMessageChunk(chunk),
            Stream::Thought => SessionUpdate::AgentThoughtChunk(chunk),
        }
    }
}

impl Voice {
    pub(super) fn new(session: &SessionId, dialect: Dialect, client: &ClientCapabilities) -> Self {
        Voice {
            speaker: Speaker::new(dialect, client),
            update_start: update_start(session),
            message: None,
            phrase: None,
            // Message ids must not repeat when the session is loaded again by a later process.
            prefix: crate::random::hex(),
            messages: 0,
            tools: 0,
        }
    }

    /// Writes an update that is not needed any more.
    pub(super) fn write(&mut self, port: &mut Port<'_, AgentRouter>, update: SessionUpdate) {
        self.write_with(port, |speaker, emit| speaker.say_owned(update, emit));
    }

    pub(super) fn write_ref(&mut self, port: &mut Port<'_, AgentRouter>, update: &SessionUpdate) {
        self.write_with(port, |speaker, emit| speaker.say(update, emit));
    }

    /// Writes a piece of the message that is being spoken, or of a new one.
    pub(super) fn write_piece(&mut self, port: &mut Port<'_, AgentRouter>, stream: Stream, content: ContentBlock) {
        let goes_on = self.message.as_ref().is_some_and(|(current, _)| *current == stream);
        let is_plain = is_plain_text(&content);
        if goes_on
            && is_plain
            && let (Some(phrase), Some(text)) = (&self.phrase, content.as_text())
        {
            return phrase.write(port, text);
        }
        let id = match &self.message {
            Some((_, id)) if goes_on => id.clone(),
            _ => {
                let id = self.next_message_id();
                self.message = Some((stream, id.clone()));
                id
            }
        };
        let chunk = |content| MessageChunk { message_id: Some(id.clone()), ..MessageChunk::new(content) };
        self.write(port, stream.update(chunk(content)));
        if goes_on && is_plain {
            let empty = stream.update(chunk(ContentBlock::text("")));
            self.phrase = Phrase::of(&self.update_start, &empty, port.dialect());
        }
    }

    fn write_with(
        &mut self,
        port: &mut Port<'_, AgentRouter>,
        say: impl FnOnce(&mut Speaker, &mut dyn FnMut(&SessionUpdate)) -> Vec<&'static str>,
    ) {
        let Voice { speaker, message, phrase, update_start, .. } = self;
        *phrase = None;
        let lost = say(speaker, &mut |update| {
            if !matches!(update, SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentThoughtChunk(_)) {
                *message = None;
            }
            port.peer.notify_prepared(update_start, |writer| writer.value(update), UPDATE_END, port.out);
        });
        for what in lost {
            port.lost(what);
        }
    }

    /// Writes what is held back, before a turn ends or a question is asked.
    pub(super) fn settle(&mut self, port: &mut Port<'_, AgentRouter>) {
        self.write_with(port, Speaker::flush);
    }

    /// Between turns nothing is kept that is only there for speed.
    pub(super) fn rest(&mut self) {
        self.phrase = None;
    }

    /// The id of a message that stands by itself.
    pub(super) fn separate_message_id(&mut self) -> MessageId {
        self.message = None;
        self.phrase = None;
        self.next_message_id()
    }

    pub(super) fn next_tool_id(&mut self) -> String {
        self.tools += 1;
        format!("call_{}_{}", self.prefix, self.tools)
    }

    fn next_message_id(&mut self) -> MessageId {
        self.messages += 1;
        MessageId::from(format!("msg_{}_{}", self.prefix, self.messages))
    }
}

/// Every update of a session begins with the same bytes; they are made once.
fn update_start(session: &SessionId) -> Vec<u8> {
    let mut start = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#.to_vec();
    Writer::new(&mut start, Dialect::V1).value(session);
    start.extend_from_slice(br#","update":"#);
    start
}

/// What closes the brackets of [`update_start`].
const UPDATE_END: &str = "}}";

/// Pieces of text of one message differ in their text alone: the rest is written once and kept.
struct Phrase {
    around: String,
    /// Where the text goes.
    gap: usize,
}

impl Phrase {
    /// What is around the text of an update whose text is empty.
    fn of(update_start: &[u8], empty: &SessionUpdate, dialect: Dialect) -> Option<Self> {
        let mut bytes = Vec::with_capacity(update_start.len() + 160);
        bytes.extend_from_slice(update_start);
        let mut writer = Writer::new(&mut bytes, dialect);
        writer.value(empty);
        writer.raw(UPDATE_END);
        let empty_text = br#""text":"""#;
        let gap = bytes.windows(empty_text.len()).rposition(|part| part == empty_text)? + empty_text.len() - 2;
        bytes.drain(gap..gap + 2);
        let around = String::from_utf8(bytes).ok()?;
        Some(Phrase { around, gap })
    }

    fn write(&self, port: &mut Port<'_, AgentRouter>, text: &str) {
        let (start, end) = self.around.split_at(self.gap);
        port.peer.notify_prepared(start.as_bytes(), |writer| writer.string(text), end, port.out);
    }
}

/// Whether this is text and nothing else.
fn is_plain_text(content: &ContentBlock) -> bool {
    matches!(content, ContentBlock::Text(TextContent { annotations: None, meta: None, .. }))
}
