//! What a tool gave back, for people (as it is) and for the model.

use attache::model::RawJson;
use attache::model::content::{ContentBlock, ResourceContents};
use attache::model::tool::ToolCallContent;
use serde_json::Value;

use crate::model::Part;
use crate::tools::Outcome;

/// The outcome of a call, from the result as it came. `None` if it is no result of a tool.
pub(super) fn outcome(mut result: Value) -> Option<Outcome> {
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
    let mut parts: Vec<Part> = blocks.iter().map(part).collect();
    if parts.is_empty() {
        parts.push(Part::text("The tool gave nothing back."));
    }
    let content = blocks.into_iter().map(ToolCallContent::from).collect();
    Some(Outcome { is_error, content: Some(content), parts, ..Outcome::done("") })
}

/// A piece of content, which MCP and ACP spell alike. What is not spelled so is shown as it is.
fn block(content: &Value) -> ContentBlock {
    let spelled_out = || ContentBlock::text(content.to_string());
    let Some(block) = RawJson::from_value(content).ok().and_then(|raw| raw.to_model::<ContentBlock>().ok()) else {
        return spelled_out();
    };
    if matches!(block, ContentBlock::Other(_)) { spelled_out() } else { block }
}

fn part(block: &ContentBlock) -> Part {
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
        let outcome = outcome(json!({ "content": content })).unwrap();
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
            let outcome = outcome(result).unwrap();
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
            assert_eq!(outcome(wrong), None);
        }
    }
}
