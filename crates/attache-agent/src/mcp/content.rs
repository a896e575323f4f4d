//! What a server gave back, for people and for the model: as it is, or cut where it is too long.

use attache::model::RawJson;
use attache::model::content::{ContentBlock, ResourceContents};
use attache::model::tool::ToolCallContent;
use serde_json::Value;

use crate::cut::{Limits, Spill, cut};
use crate::model::Part;
use crate::tools::Outcome;

/// How much text of a result is passed on as it is, with all that is written around it. More is cut, and kept in a file.
const MAX_TEXT: usize = 32 << 10;

/// How much of pictures, sounds and other data of a result is passed on, in the letters that they come in. Providers
/// refuse larger pictures.
const MAX_DATA: usize = 4 << 20;

/// How many pieces of a result are passed on one by one.
const MAX_PIECES: usize = 100;

/// How much may be written around a piece of data: its type, its address.
const MAX_AROUND: usize = 4 << 10;

/// The outcome of a call, from the result as it came. `None` if it is no result of a tool.
pub(super) fn outcome(mut result: Value, spill: Option<&Spill>) -> Option<Outcome> {
    // A server of a newer version may ask something back instead. We offered nothing of that sort.
    if result.get("resultType").is_some_and(|kind| kind != "complete") {
        return None;
    }
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let content = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(content)) => content,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return None,
    };
    let mut blocks: Vec<ContentBlock> = content.iter().map(block).collect();
    let structured = result.get("structuredContent").filter(|structured| !structured.is_null());
    if let (true, Some(structured)) = (blocks.is_empty(), structured) {
        blocks.push(ContentBlock::text(format!("{structured:#}")));
    }
    let blocks = fitted(blocks, spill);
    let mut parts: Vec<Part> = blocks.iter().map(part).collect();
    if parts.is_empty() {
        parts.push(Part::text("The tool gave nothing back."));
    }
    let content = blocks.into_iter().map(ToolCallContent::from).collect();
    Some(Outcome { is_error, content: Some(content), parts, ..Outcome::done("") })
}

/// The pieces, if people and the model can bear them. Else the texts become one that is cut, and data that is too large
/// is named in its place.
pub(super) fn fitted(blocks: Vec<ContentBlock>, spill: Option<&Spill>) -> Vec<ContentBlock> {
    let (mut text, mut data) = (0, 0);
    let count = blocks.len();
    let mut pieces: Vec<ContentBlock> = Vec::new();
    for block in blocks {
        let whole = serde_json::to_string(&block).map_or(usize::MAX, |json| json.len());
        let piece = match data_of(&block) {
            Some(letters) if data + letters > MAX_DATA || whole.saturating_sub(letters) > MAX_AROUND => {
                ContentBlock::text(format!("[{} bytes of data are left out here: too large]", letters / 4 * 3))
            }
            Some(letters) => {
                data += letters;
                pieces.push(block);
                continue;
            }
            None => block,
        };
        text += whole.min(serde_json::to_string(&piece).map_or(usize::MAX, |json| json.len()));
        pieces.push(piece);
    }
    if text <= MAX_TEXT && count <= MAX_PIECES {
        return pieces;
    }
    let (data, texts): (Vec<_>, Vec<_>) = pieces.into_iter().partition(|piece| data_of(piece).is_some());
    let texts: Vec<String> = texts.iter().map(|piece| text_of(&part(piece))).collect();
    let mut text = texts.join("\n");
    let left_out = data.len().saturating_sub(MAX_PIECES);
    if left_out > 0 {
        text.push_str(&format!("\n[{left_out} more pieces of data are left out]"));
    }
    let text = match spill {
        Some(spill) => cut(&text, Limits { head: MAX_TEXT / 2, tail: MAX_TEXT / 2 }, spill),
        None => format!("{}\n[… the rest is left out]", &text[..text.floor_char_boundary(MAX_TEXT)]),
    };
    std::iter::once(ContentBlock::text(text)).chain(data.into_iter().take(MAX_PIECES)).collect()
}

/// How many letters of data a piece has. `None` for text.
fn data_of(block: &ContentBlock) -> Option<usize> {
    match block {
        ContentBlock::Image(image) => Some(image.data.len()),
        ContentBlock::Audio(audio) => Some(audio.data.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(_) => None,
            ResourceContents::Blob(resource) => Some(resource.blob.len()),
        },
        _ => None,
    }
}

fn text_of(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        Part::Media { .. } => String::new(),
    }
}

/// A piece of content, which MCP and ACP spell alike. What is not spelled so is shown as it is.
pub(super) fn block(content: &Value) -> ContentBlock {
    let spelled_out = || ContentBlock::text(content.to_string());
    let Some(block) = RawJson::from_value(content).ok().and_then(|raw| raw.to_model::<ContentBlock>().ok()) else {
        return spelled_out();
    };
    if matches!(block, ContentBlock::Other(_)) { spelled_out() } else { block }
}

pub(super) fn part(block: &ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(&text.text),
        ContentBlock::Image(image) => media(&image.mime_type, &image.data, "image"),
        ContentBlock::Audio(audio) => media(&audio.mime_type, &audio.data, "audio"),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
            Part::text(format!("Resource `{}` at {}{about}", link.name, link.uri))
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(resource) => Part::text(format!("Resource {}:\n{}", resource.uri, resource.text)),
            ResourceContents::Blob(resource) => match resource.mime_type.as_deref() {
                Some(mime) if mime.starts_with("image/") => media(mime, &resource.blob, "image"),
                Some(mime) if mime.starts_with("audio/") => media(mime, &resource.blob, "audio"),
                mime => Part::text(format!(
                    "Resource {} ({}, {} bytes) is not text and is not shown.",
                    resource.uri,
                    mime.unwrap_or("of an unknown type"),
                    resource.blob.len() / 4 * 3,
                )),
            },
        },
        _ => Part::text(""),
    }
}

/// A provider refuses the whole conversation over one broken picture, from then on: none may get in.
fn media(mime: &str, data: &str, sort: &str) -> Part {
    let is_base64 = !data.is_empty()
        && data.len().is_multiple_of(4)
        && data.trim_end_matches('=').bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    if is_base64 && mime.strip_prefix(sort).is_some_and(|rest| rest.starts_with('/')) {
        Part::Media { mime: mime.to_owned(), data: data.to_owned() }
    } else {
        Part::text(format!("The tool gave back a broken piece of {sort}."))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn content_reaches_people_as_it_is() {
        let content = json!([
            { "type": "text", "text": "one", "annotations": { "audience": ["user"], "priority": 0.5 } },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGk=", "mimeType": "audio/wav" },
            { "type": "resource_link", "name": "r", "uri": "file:///r", "description": "about" },
            { "type": "resource", "resource": { "uri": "x:/t", "text": "words", "mimeType": "text/plain" } },
            { "type": "resource", "resource": { "uri": "x:/b", "blob": "aGk=" } },
        ]);
        let outcome = outcome(json!({ "content": content }), None).unwrap();
        let shown: Vec<Value> = outcome
            .content
            .unwrap()
            .iter()
            .map(|shown| serde_json::to_value(shown).unwrap()["content"].clone())
            .collect();
        assert_eq!(Value::Array(shown), content);
        assert_eq!(
            outcome.parts,
            [
                Part::text("one"),
                Part::Media { mime: "image/png".into(), data: "aGk=".into() },
                Part::Media { mime: "audio/wav".into(), data: "aGk=".into() },
                Part::text("Resource `r` at file:///r: about"),
                Part::text("Resource x:/t:\nwords"),
                Part::text("Resource x:/b (of an unknown type, 3 bytes) is not text and is not shown."),
            ]
        );
        assert!(!outcome.is_error);
    }

    #[test]
    fn odd_results_are_told_as_they_are() {
        let check = |result: Value, is_error: bool, text: &str| {
            let outcome = outcome(result, None).unwrap();
            assert_eq!((outcome.is_error, &outcome.parts[..]), (is_error, &[Part::text(text)][..]));
        };
        check(json!({ "structuredContent": { "a": 1 } }), false, "{\n  \"a\": 1\n}");
        check(json!({ "content": [{ "type": "text", "text": "t" }], "structuredContent": 1 }), false, "t");
        check(json!({ "content": [], "isError": true }), true, "The tool gave nothing back.");
        check(json!({}), false, "The tool gave nothing back.");
        check(json!({ "content": [{ "type": "new", "x": 1 }] }), false, r#"{"type":"new","x":1}"#);
        check(json!({ "content": [{ "type": "image", "x": 1 }] }), false, r#"{"type":"image","x":1}"#);
        check(
            json!({ "content": [{ "type": "image", "data": "a b", "mimeType": "image/png" }] }),
            false,
            "The tool gave back a broken piece of image.",
        );
        for wrong in [json!({ "content": "text" }), json!({ "resultType": "input_required" })] {
            assert_eq!(outcome(wrong, None), None);
        }
    }
    /// What people and the model get of a result, in bytes.
    fn sizes(outcome: &Outcome) -> (usize, usize) {
        (
            serde_json::to_string(outcome.content.as_ref().unwrap()).unwrap().len(),
            serde_json::to_string(&outcome.parts).unwrap().len(),
        )
    }

    #[test]
    fn long_texts_are_cut_for_people_and_the_model_and_kept_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let spill = Spill::new(directory.path().join("outputs"));
        let long = format!("first\n{}last\n", "word \u{1b}[1m\n".repeat(1 << 16));
        let uri = "x:/".to_owned() + &"y".repeat(1 << 18);
        for content in [
            json!([{ "type": "text", "text": long }]),
            Value::Array(vec![json!({ "type": "text", "text": "first\nlast\n" }); 5_000]),
            json!([{ "type": "text", "text": "first\nlast\n", "_meta": { "x": long } }, { "type": "text", "text": long }]),
            json!([{ "type": "resource_link", "name": "first", "uri": uri }, { "type": "text", "text": "last\n" }]),
            json!([{ "type": "resource", "resource": { "uri": "first", "text": long } }]),
        ] {
            let outcome = outcome(json!({ "content": content }), Some(&spill)).unwrap();
            let [Part::Text { text }] = &outcome.parts[..] else { panic!("not one text") };
            let (people, model) = sizes(&outcome);
            assert!(people < 64 << 10 && model < 64 << 10, "{people} {model}");
            assert!(text.contains("first") && text.ends_with("last\n"), "{}", &text[..100]);
            assert!(text.contains("bytes are left out here; the whole text is in `"), "{}", &text[..100]);
        }
        let outcome = outcome(json!({ "structuredContent": { "first": long } }), Some(&spill)).unwrap();
        assert!(sizes(&outcome).0 < 64 << 10);
        assert!(std::fs::read_dir(spill.directory()).unwrap().count() >= 6);
    }

    #[test]
    fn data_that_is_too_large_is_named_in_its_place() {
        let picture =
            |size: usize| json!({ "type": "image", "data": "aaaa".repeat(size / 4), "mimeType": "image/png" });
        let blob = json!({ "type": "resource", "resource": { "uri": "x:/b", "blob": "aaaa".repeat(3 << 20) } });
        let odd = json!({ "type": "image", "data": "aaaa", "mimeType": "x".repeat(1 << 20) });
        let content = json!([picture(1 << 20), picture(5 << 20), blob, odd, picture(1 << 20)]);
        let outcome = outcome(json!({ "content": content }), None).unwrap();
        assert!(sizes(&outcome).0 < (2 << 20) + 4096);
        let texts: Vec<String> = outcome.parts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
        assert_eq!(
            texts,
            [
                "[3932160 bytes of data are left out here: too large]",
                "[9437184 bytes of data are left out here: too large]",
                "[3 bytes of data are left out here: too large]",
            ]
        );
        let many = Value::Array(vec![picture(8); 500]);
        let outcome = super::outcome(json!({ "content": many }), None).unwrap();
        assert_eq!(outcome.parts.len(), 101);
        assert!(text_of(&outcome.parts[0]).contains("400 more pieces of data are left out"));
    }
}
