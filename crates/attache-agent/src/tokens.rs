//! About how many tokens something is. Providers count better, but only afterwards; what they counted corrects this.

use serde_json::Value;

use crate::model::{Call, Message, ModelInfo, Part, Request, Usage};

/// How many bytes are taken for one token. English text has a few more, code a few less.
const BYTES: usize = 4;
/// What providers count for a picture of middling size.
const MEDIA: usize = 1500;
/// What every message costs beside its text: its role, and what the provider puts around it.
const AROUND: usize = 4;

/// How many tokens a provider counts for a thousand of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ratio(u64);

impl Default for Ratio {
    /// A quarter more than we count, until a provider has counted: code has more tokens than prose, and a conversation
    /// that is summed up too early does less harm than a request that is refused.
    fn default() -> Self {
        Ratio(1250)
    }
}

impl Ratio {
    /// What a provider counted, for what we counted. Bounded, because a server that counts nonsense must not make us
    /// sum up all the time, or never.
    pub(crate) fn of(counted: u64, estimate: u64) -> Self {
        match estimate {
            0 => Ratio::default(),
            estimate => Ratio((counted.saturating_mul(1000) / estimate).clamp(500, 4000)),
        }
    }

    /// Our estimate, as the provider would count it.
    pub(crate) fn real(self, estimate: u64) -> u64 {
        estimate.saturating_mul(self.0).div_ceil(1000)
    }

    /// How much of ours is so much of the provider's.
    pub(crate) fn estimate(self, real: u64) -> u64 {
        real.saturating_mul(1000) / self.0
    }
}

/// How full a model's context is: what its provider counted last, and what was added since, by our estimate.
#[derive(Debug, Default)]
pub(crate) struct ContextUse {
    /// The model that this is about.
    model: String,
    ratio: Ratio,
    /// What a request costs beside its messages, by our estimate.
    instructions: u64,
    /// What the provider counted, and how many messages that were.
    counted: Option<(u64, usize)>,
    /// The least that a provider refused as too long: its model takes less than we thought.
    refused: Option<u64>,
}

impl ContextUse {
    /// As a provider counted it before the session was taken up again: so many tokens, in so many messages. It holds until
    /// the next request.
    pub(crate) fn counted(counted: Option<(u64, usize)>) -> Self {
        ContextUse { counted, ..ContextUse::default() }
    }

    /// A request is about to be made. What was known of another model is not known of this one.
    pub(crate) fn prepare(&mut self, model: &ModelInfo, request: &Request) {
        let id = model.id();
        if self.model != id {
            *self = ContextUse { model: id, ..ContextUse::default() };
        }
        self.instructions = of_instructions(request);
    }

    /// The provider counted the last request. `asked` are the messages that it was about; the answer is the one after
    /// them.
    pub(crate) fn count(&mut self, usage: &Usage, asked: &[Message]) {
        if usage.input == 0 {
            self.counted = None;
            return;
        }
        self.ratio = Ratio::of(usage.input, self.instructions + of_messages(asked));
        self.counted = Some((usage.input.saturating_add(usage.output), asked.len() + 1));
    }

    /// The messages are others now.
    pub(crate) fn forget_count(&mut self) {
        self.counted = None;
    }

    /// The provider refused these messages as too long.
    pub(crate) fn refuse(&mut self, messages: &[Message]) {
        let tokens = self.real(self.instructions + of_messages(messages));
        self.refused = Some(self.refused.map_or(tokens, |least| least.min(tokens)));
        self.counted = None;
    }

    /// How many tokens these messages take, with all that is sent with them.
    pub(crate) fn used(&self, messages: &[Message]) -> u64 {
        match self.counted {
            Some((tokens, count)) => tokens + self.real(of_messages(messages.get(count..).unwrap_or_default())),
            None => self.real(self.instructions + of_messages(messages)),
        }
    }

    /// How many tokens a request may have. What was refused once gets a good deal shorter.
    pub(crate) fn limit(&self, model: &ModelInfo) -> u64 {
        let limit = self.refused.map_or(model.context, |refused| model.context.min(refused / 4 * 3));
        // Where not even the instructions fit there is nothing to count with; the provider may know better.
        limit.max(self.real(self.instructions).saturating_add(LEAST))
    }

    /// How many tokens a request has when it is time to make the conversation shorter: so much of the limit, and at
    /// least half of what the instructions leave.
    pub(crate) fn threshold(&self, model: &ModelInfo, percent: u8) -> u64 {
        let limit = self.limit(model);
        let instructions = self.real(self.instructions);
        (limit.saturating_mul(percent.into()) / 100).max(instructions + (limit - instructions) / 2)
    }

    /// How many tokens of ours the messages may be then.
    pub(crate) fn room(&self, model: &ModelInfo, percent: u8) -> u64 {
        self.ratio.estimate(self.threshold(model, percent)).saturating_sub(self.instructions)
    }

    /// How many tokens a prompt may have: what the instructions leave, and at least half of all.
    pub(crate) fn prompt_limit(&self, model: &ModelInfo) -> u64 {
        let limit = self.limit(model);
        limit.saturating_sub(self.real(self.instructions)).max(limit / 2)
    }

    pub(crate) fn real(&self, estimate: u64) -> u64 {
        self.ratio.real(estimate)
    }

    /// How much of ours is so much of the provider's.
    pub(crate) fn estimate(&self, real: u64) -> u64 {
        self.ratio.estimate(real)
    }
}

/// A conversation has at least so many tokens, whatever is said of the model.
const LEAST: u64 = 1000;

/// So many bytes of text are at most so many tokens, by our estimate.
pub(crate) fn bytes(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES)
}

pub(crate) fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// About how many tokens so many bytes of text are.
pub(crate) fn of_bytes(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES) as u64
}

pub(crate) fn of_part(part: &Part) -> u64 {
    match part {
        Part::Text { text } => of_text(text),
        Part::Media { .. } => MEDIA as u64,
    }
}

pub(crate) fn of_message(message: &Message) -> u64 {
    let parts = |parts: &[Part]| parts.iter().map(of_part).sum::<u64>();
    let inside = match message {
        Message::User { parts: given } | Message::Tool { parts: given, .. } => parts(given),
        Message::Assistant { text, calls, opaque } => {
            let calls: u64 = calls.iter().map(of_call).sum();
            of_text(text) + calls + opaque.as_ref().map_or(0, of_value)
        }
    };
    inside + AROUND as u64
}

pub(crate) fn of_messages(messages: &[Message]) -> u64 {
    messages.iter().map(of_message).sum()
}

/// What a request costs beside its messages.
pub(crate) fn of_instructions(request: &Request) -> u64 {
    let tools = request.tools.iter();
    let tools = tools.map(|tool| of_text(&tool.name) + of_text(&tool.description) + of_value(&tool.schema));
    of_text(&request.system) + tools.sum::<u64>()
}

fn of_call(call: &Call) -> u64 {
    of_text(&call.name) + of_text(&call.arguments) + AROUND as u64
}

/// JSON, without writing it.
fn of_value(value: &Value) -> u64 {
    fn size(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(_) => 8,
            Value::String(text) => text.len() + 3,
            Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
            Value::Object(members) => 2 + members.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>(),
        }
    }
    size(value).div_ceil(BYTES) as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_provider_counts_corrects_the_estimate_within_bounds() {
        for (counted, estimate, of_1000, back) in [
            (1500, 1000, 1500, 1000),
            (900, 1000, 900, 1000),
            (1, 1000, 500, 1000),
            (1_000_000, 10, 4000, 1000),
            (10, 0, 1250, 1000),
            (u64::MAX, 1, 4000, 1000),
        ] {
            let ratio = Ratio::of(counted, estimate);
            assert_eq!(ratio.real(1000), of_1000, "{counted} for {estimate}");
            assert_eq!(ratio.estimate(of_1000), back, "{counted} for {estimate}");
        }
        assert_eq!(Ratio::default().real(u64::MAX), u64::MAX.div_ceil(1000));
    }

    /// A message is counted with all that is sent of it.
    #[test]
    fn every_part_of_a_message_counts() {
        let text = "x".repeat(400);
        let call = Call { id: "1".into(), name: "read".into(), arguments: text.clone() };
        let opaque = Some(json!({ "signature": text }));
        let rows = [
            (Message::user(text.as_str()), 104),
            (Message::User { parts: vec![Part::Media { mime: "image/png".into(), data: text.clone() }] }, 1504),
            (
                Message::Tool { id: "1".into(), name: "read".into(), parts: vec![Part::text(&text)], is_error: false },
                104,
            ),
            (Message::Assistant { text: text.clone(), calls: vec![call], opaque: None }, 209),
            (Message::Assistant { text: String::new(), calls: Vec::new(), opaque }, 109),
        ];
        for (message, expected) in &rows {
            assert_eq!(of_message(message), *expected, "{message:?}");
        }
        let all: Vec<Message> = rows.iter().map(|(message, _)| message.clone()).collect();
        assert_eq!(of_messages(&all), rows.iter().map(|(_, tokens)| tokens).sum::<u64>());
        assert!(of_text(&"x".repeat(bytes(7))) == 7);
    }
}
