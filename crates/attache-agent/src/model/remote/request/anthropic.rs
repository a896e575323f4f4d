//! Anthropic's messages.

use serde_json::{Value, json};

use super::{EMPTY, Effort, Said, Seen, arguments, call_id, extend, grouped, left_out, seen, system, tools};
use crate::model::remote::Inner;
use crate::model::{Call, Message, Part, Request};

/// How long an answer may be where nobody says it: what every model since Claude 3.7 can write.
const MOST_TOKENS: u32 = 32_000;

pub(super) fn body(model: &Inner, request: &Request) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for group in grouped(&request.messages) {
        match &group[0] {
            Message::User { parts } => messages.push(json!({ "role": "user", "content": content(model, parts) })),
            Message::Assistant { text, calls, opaque } => {
                messages.extend(Said::new(model, text, calls, opaque.as_ref()).map(|said| assistant(model, &said)));
            }
            Message::Tool { .. } => {
                let results: Vec<Value> = group.iter().filter_map(|result| tool_result(model, result)).collect();
                messages.push(json!({ "role": "user", "content": results }));
            }
        }
    }
    mark_cached(&mut messages);
    let max_tokens = request.max_tokens.unwrap_or_else(|| most_tokens(&model.info.name));
    let effort = Effort::of(model, request).filter(|effort| *effort != Effort::Off);
    let thinking = effort.map(|effort| thinking(&model.info.name, effort, max_tokens));
    let is_thinking = thinking.is_some();
    let mut body = json!({
        "model": model.info.name,
        "system": system(request).map(|text| json!([{ "type": "text", "text": text, "cache_control": mark() }])),
        "messages": messages,
        "stream": true,
        "max_tokens": max_tokens,
        "tools": tools(request, |tool| json!({
            "name": tool.name, "description": tool.description, "input_schema": tool.schema,
        })),
        // Whoever thinks here does so at one temperature.
        "temperature": model.temperature.filter(|_| !is_thinking),
    });
    extend(&mut body, thinking.into_iter().flatten());
    body
}

/// How long the model should think, in tokens, or in words for newer ones.
fn thinking(name: &str, effort: Effort, max_tokens: u32) -> Vec<(&'static str, Value)> {
    if is_adaptive(name) {
        let effort = effort.word(name);
        return vec![("thinking", json!({ "type": "adaptive" })), ("output_config", json!({ "effort": effort }))];
    }
    // Thoughts count as part of the answer, and are refused if they may be longer than that.
    let fitting = match (effort, max_tokens) {
        (_, ..=9_000) => Effort::Low,
        (Effort::High, ..=25_000) => Effort::Medium,
        _ => effort,
    };
    match fitting.tokens() {
        budget if budget < max_tokens => vec![("thinking", json!({ "type": "enabled", "budget_tokens": budget }))],
        _ => Vec::new(),
    }
}

/// Whether a model decides by itself how long it thinks: Claude 4.6 and later. They refuse to be told a number.
fn is_adaptive(name: &str) -> bool {
    let Some((_, rest)) = name.split_once("claude-") else { return false };
    // The version is the first number, and the one that follows it; a long one is a date.
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let words = rest.split(['-', '.', '@', ':']);
    let mut numbers = words.skip_while(|word| number(word).is_none()).map_while(number);
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (4, 6)
}

/// Older models write less.
fn most_tokens(name: &str) -> u32 {
    let is = |part: &str| name.contains(part);
    match () {
        () if is("claude-3-5") => 8_192,
        () if is("claude-3-7") => MOST_TOKENS,
        () if is("claude-3-") => 4_096,
        () => MOST_TOKENS,
    }
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

/// Marks what to cache: the end of the last two messages, so that the next request finds what this one wrote. The
/// system prompt, which tools come before, is marked as well.
fn mark_cached(messages: &mut [Value]) {
    let old = messages.len().saturating_sub(2);
    for message in &mut messages[old..] {
        let parts = message.get_mut("content").and_then(Value::as_array_mut);
        if let Some(part) = parts.and_then(|parts| parts.last_mut()) {
            extend(part, [("cache_control", mark())]);
        }
    }
}

fn content(model: &Inner, parts: &[Part]) -> Vec<Value> {
    let mut content: Vec<Value> = seen(model, parts).iter().map(part).collect();
    if content.is_empty() {
        content.push(json!({ "type": "text", "text": EMPTY }));
    }
    content
}

fn part(part: &Seen<'_>) -> Value {
    match part {
        Seen::Text(text) => json!({ "type": "text", "text": text }),
        Seen::LeftOut(text) => json!({ "type": "text", "text": text }),
        Seen::Image { mime, data } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": mime, "data": data } })
        }
        // There is no word for it here.
        Seen::Audio { mime, .. } => json!({ "type": "text", "text": left_out(mime) }),
    }
}

/// What the model said, in the order in which it said it as far as that is known: thoughts are refused elsewhere.
fn assistant(model: &Inner, said: &Said<'_>) -> Value {
    let mut content: Vec<Value> = Vec::new();
    let mut text = said.text.unwrap_or_default();
    let mut calls: Vec<&Call> = said.calls.iter().collect();
    let length =
        |block: &Value| block.get("text").and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    // A text that is not the one that came cannot be told apart.
    let is_whole = said.list("blocks").filter_map(length).sum::<usize>() == text.len();
    for block in said.list("blocks") {
        if let Some(thought) = block.get("thought") {
            content.push(thought.clone());
        } else if let Some(length) = length(block) {
            let (now, later) = text.split_at_checked(length).filter(|_| is_whole).unwrap_or((text, ""));
            text = later;
            content.extend(text_block(now));
        } else if let Some(id) = block.get("call").and_then(Value::as_str) {
            let place = calls.iter().position(|call| call.id == id);
            content.extend(place.map(|place| tool_use(model, calls.remove(place))));
        }
    }
    content.extend(text_block(text));
    content.extend(calls.into_iter().map(|call| tool_use(model, call)));
    // A thought at the end is refused.
    while content.last().is_some_and(is_thought) {
        content.pop();
    }
    json!({ "role": "assistant", "content": content })
}

fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// A text; none if it is blank, which is refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn tool_use(model: &Inner, call: &Call) -> Value {
    let id = call_id(model, &call.id);
    json!({ "type": "tool_use", "id": id, "name": call.name, "input": arguments(&call.arguments) })
}

/// A result, with images in it and a mark if it failed.
fn tool_result(model: &Inner, message: &Message) -> Option<Value> {
    let Message::Tool { id, parts, is_error, .. } = message else { return None };
    // Blank text is refused.
    let is_blank = |part: &&Seen<'_>| matches!(part, Seen::Text(text) if text.trim().is_empty());
    let content: Vec<Value> = seen(model, parts).iter().filter(|part| !is_blank(part)).map(part).collect();
    let mut result = json!({ "type": "tool_result", "tool_use_id": call_id(model, id), "content": content });
    if *is_error {
        extend(&mut result, [("is_error", json!(true))]);
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_decide_how_long_they_think_are_known_by_their_version() {
        for (name, expected) in [
            ("claude-sonnet-4-6", true),
            ("claude-opus-4-7-20260401", true),
            ("claude-opus-5", true),
            ("anthropic/claude-opus-4.6", true),
            ("us.anthropic.claude-opus-4-6-v1", true),
            ("claude-sonnet-4-5-20250929", false),
            ("claude-sonnet-4-20250514", false),
            ("claude-3-7-sonnet-20250219", false),
            ("claude-3-haiku", false),
            ("gpt-5.1", false),
        ] {
            assert_eq!(is_adaptive(name), expected, "{name}");
        }
    }

    #[test]
    fn thoughts_fit_into_the_answer() {
        let budget = |effort, most| {
            thinking("claude-sonnet-4-5", effort, most).first().map(|(_, value)| value["budget_tokens"].clone())
        };
        assert_eq!(budget(Effort::High, 32_000), Some(json!(24_000)));
        assert_eq!(budget(Effort::High, 25_000), Some(json!(8_000)));
        assert_eq!(budget(Effort::Medium, 9_000), Some(json!(1_024)));
        assert_eq!(budget(Effort::Low, 1_000), None);
    }
}
