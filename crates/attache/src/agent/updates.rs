//! What a session's client is told, in order, as it goes onto the wire.

use attache_proto::Dialect;
use attache_proto::conversation::{AgentSession, Emitted, MessageKind};
use attache_proto::json::Writer;
use attache_proto::model::Meta;
use attache_proto::model::capability::ClientCapabilities;
use attache_proto::model::content::{ContentBlock, TextContent};
use attache_proto::model::session::SessionId;
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc::Call;

use super::router::AgentRouter;
use crate::link::Port;

/// What a session's client was told, and how it is told more.
pub(crate) struct Updates {
    pub(crate) session: AgentSession,
    /// What every update begins with.
    start: Vec<u8>,
    /// What the pieces of text of the message that is being said have in common, from its second one on.
    template: Option<Template>,
}

impl Updates {
    pub(super) fn new(session: &SessionId, dialect: Dialect, client: &ClientCapabilities) -> Self {
        // Ids must not repeat when the session is loaded again by a later process.
        let prefix = crate::random::hex();
        let session_state = AgentSession::new(dialect, client, prefix);
        Updates { session: session_state, start: start_of_updates(session), template: None }
    }

    /// Writes an update that is not needed any more.
    pub(super) fn write(&mut self, port: &mut Port<'_, AgentRouter>, update: SessionUpdate, meta: Option<&Meta>) {
        self.write_with(port, None, meta, |session, emit| session.say_owned(update, emit));
    }

    pub(super) fn write_ref(&mut self, port: &mut Port<'_, AgentRouter>, update: &SessionUpdate) {
        self.write_with(port, None, None, |session, emit| session.say(update, emit));
    }

    /// Writes a piece of the message that is being said, or of a new one.
    pub(super) fn write_piece(&mut self, port: &mut Port<'_, AgentRouter>, kind: MessageKind, content: ContentBlock) {
        let is_plain = is_plain_text(&content);
        if is_plain
            && self.session.goes_on(kind)
            && let (Some(template), Some(text)) = (&self.template, content.as_text())
        {
            return template.write(port, text);
        }
        let (id, goes_on) = self.session.message(kind);
        self.write(port, kind.chunk(id.clone(), content), None);
        if goes_on && is_plain {
            let empty = kind.chunk(id, ContentBlock::text(""));
            self.template = Template::of(&self.start, &empty, port.dialect());
        }
    }

    /// Writes what follows from a change of the session. Answers go to the call of the prompt that it is about.
    pub(super) fn write_with(
        &mut self,
        port: &mut Port<'_, AgentRouter>,
        call: Option<Call>,
        meta: Option<&Meta>,
        change: impl FnOnce(&mut AgentSession, &mut dyn FnMut(Emitted<'_>)),
    ) {
        self.template = None;
        let start = &self.start;
        let mut meta = meta;
        change(&mut self.session, &mut |emitted| emit(port, start, call, &mut meta, emitted));
        for what in self.session.take_lost() {
            port.lost(what);
        }
    }

    /// Between turns nothing is kept that is only there for speed.
    pub(super) fn rest(&mut self) {
        self.template = None;
    }
}

/// Sends what a session emits; `meta` goes with the first update.
fn emit(
    port: &mut Port<'_, AgentRouter>,
    start: &[u8],
    call: Option<Call>,
    meta: &mut Option<&Meta>,
    emitted: Emitted<'_>,
) {
    match (emitted, call) {
        (Emitted::Update(update), _) => {
            let meta = meta.take();
            let rest = |writer: &mut Writer<'_>| {
                writer.value(update);
                if let Some(meta) = meta {
                    writer.raw(r#","_meta":"#);
                    writer.value(meta);
                }
            };
            port.peer.notify_prepared(start, rest, UPDATE_END, port.out);
        }
        (Emitted::Answer(answer), Some(call)) => port.answer(call, &answer),
        (Emitted::Refusal(error), Some(call)) => port.refuse(call, &error),
        (Emitted::Answer(_) | Emitted::Refusal(_), None) => {}
    }
}

/// Every update of a session begins with the same bytes; they are made once.
fn start_of_updates(session: &SessionId) -> Vec<u8> {
    let mut start = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#.to_vec();
    Writer::new(&mut start, Dialect::V1).value(session);
    start.extend_from_slice(br#","update":"#);
    start
}

/// What closes the brackets of [`start_of_updates`].
const UPDATE_END: &str = "}}";

/// Pieces of text of one message differ in their text alone: the rest is written once and kept.
struct Template {
    around: String,
    /// Where the text goes.
    gap: usize,
}

impl Template {
    /// What is around the text of an update whose text is empty.
    fn of(start: &[u8], empty: &SessionUpdate, dialect: Dialect) -> Option<Self> {
        let mut bytes = Vec::with_capacity(start.len() + 160);
        bytes.extend_from_slice(start);
        let mut writer = Writer::new(&mut bytes, dialect);
        writer.value(empty);
        writer.raw(UPDATE_END);
        let empty_text = br#""text":"""#;
        let gap = bytes.windows(empty_text.len()).rposition(|part| part == empty_text)? + empty_text.len() - 2;
        bytes.drain(gap..gap + 2);
        let around = String::from_utf8(bytes).ok()?;
        Some(Template { around, gap })
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
