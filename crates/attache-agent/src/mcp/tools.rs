//! The list of a server's tools, fetched page by page and made fit for models.

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::{Peer, ServiceError};
use rmcp::{RoleClient, model};
use serde_json::{Map, Value, json};

use super::names::tool_names;
use super::words::{Trouble, plain};
use crate::model::ToolSpec;

/// How many tools a server may have. Models are lost long before.
const MAX_TOOLS: usize = 512;

/// How many pages are asked for at most.
const MAX_PAGES: usize = 64;

/// How much the tools of a server may take, descriptions and schemas together.
const MAX_SIZE: usize = 4 << 20;

/// How long a description may be for the model.
const MAX_DESCRIPTION: usize = 8 << 10;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// What the model is told.
    pub(super) spec: ToolSpec,
    /// What the server calls it.
    pub(super) name: String,
    /// What people see.
    pub(super) title: String,
}

/// A list of tools, and whether the server has more than we take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolList {
    pub(super) tools: Vec<Tool>,
    pub(super) is_cut: bool,
}

/// Asks a server for its tools.
pub(super) async fn fetch(peer: &Peer<RoleClient>, label: &str) -> Result<ToolList, Trouble> {
    let has_tools = peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    let mut raw = Raw::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = match peer.send_request(request).await {
            Ok(page) => page,
            // A server that promised no tools need not know the question.
            Err(ServiceError::McpError(error)) if !has_tools && error.code == ErrorCode::METHOD_NOT_FOUND => break,
            Err(error) => return Err(Trouble::of_request(&error)),
        };
        let next = raw.take(page)?;
        // A cursor that leads to itself would lead nowhere else.
        if next.is_none() || next == cursor || raw.is_cut {
            return Ok(raw.listed(label));
        }
        cursor = next;
    }
    raw.is_cut |= cursor.is_some();
    Ok(raw.listed(label))
}

/// Tools as they came.
#[derive(Default)]
struct Raw {
    tools: Vec<Value>,
    size: usize,
    is_cut: bool,
}

impl Raw {
    /// Takes the tools of a page and gives the cursor of the next. A tool that makes no sense does not spoil the others,
    /// so they are looked at one by one.
    fn take(&mut self, page: model::ServerResult) -> Result<Option<String>, Trouble> {
        let mut page = serde_json::to_value(page).map_err(|_| Trouble::Nonsense)?;
        let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) else { return Err(Trouble::Nonsense) };
        for tool in tools {
            let size = tool["description"].as_str().map_or(0, str::len) + tool["inputSchema"].to_string().len();
            if self.tools.len() == MAX_TOOLS || self.size + size > MAX_SIZE {
                self.is_cut = true;
                break;
            }
            self.size += size;
            if tool["name"].as_str().is_some_and(|name| !name.is_empty()) {
                self.tools.push(tool);
            }
        }
        Ok(page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()).map(str::to_owned))
    }

    fn listed(mut self, label: &str) -> ToolList {
        let wire_names: Vec<String> =
            self.tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect();
        let names = tool_names(label, &wire_names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut tools: Vec<Tool> = Vec::with_capacity(names.len());
        for ((tool, wire_name), name) in self.tools.iter_mut().zip(wire_names).zip(names) {
            let Some(name) = name else { continue };
            let title = [&tool["title"], &tool["annotations"]["title"]]
                .into_iter()
                .find_map(|title| title.as_str())
                .map(one_line);
            let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| one_line(&wire_name));
            let description = shortened(tool["description"].as_str().unwrap_or_default());
            let schema = fit_schema(tool["inputSchema"].take());
            tools.push(Tool { spec: ToolSpec { name, description, schema }, name: wire_name, title });
        }
        // Servers list their tools in any order; models and their caches want the same one every time.
        tools.sort_by(|one, other| one.spec.name.cmp(&other.spec.name));
        ToolList { tools, is_cut: self.is_cut }
    }
}

/// The schema as it is, if it describes an object, which arguments are.
fn fit_schema(schema: Value) -> Value {
    match schema {
        Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => Value::Object(schema),
        // Some providers refuse a whole request over a schema that leaves this out.
        Value::Object(schema) if !schema.contains_key("type") => {
            let mut typed = Map::from_iter([("type".to_owned(), json!("object"))]);
            typed.extend(schema);
            Value::Object(typed)
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

pub(super) fn shortened(text: &str) -> String {
    if text.len() <= MAX_DESCRIPTION {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_DESCRIPTION)])
}

pub(super) fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn listed(pages: &[Value]) -> ToolList {
        let mut raw = Raw::default();
        for page in pages {
            raw.take(serde_json::from_value(page.clone()).unwrap()).unwrap();
        }
        raw.listed("s")
    }

    #[test]
    fn tools_are_kept_as_they_are_and_sorted() {
        let schema = json!({ "type": "object", "properties": { "b": {}, "a": { "$ref": "#/x" } }, "x-own": 1 });
        let found = listed(&[
            json!({ "tools": [{ "name": "b", "description": "B", "inputSchema": schema }] }),
            json!({ "tools": [{ "name": "a", "title": "A\u{1b} tool\n", "inputSchema": { "type": "object" } }] }),
        ]);
        assert!(!found.is_cut);
        assert_eq!(found.tools.iter().map(|tool| tool.spec.name.as_str()).collect::<Vec<_>>(), ["s__a", "s__b"]);
        assert_eq!((found.tools[0].title.as_str(), found.tools[1].title.as_str()), ("A tool", "b"));
        assert_eq!(found.tools[1].spec.schema, schema);
    }

    #[test]
    fn a_tool_that_makes_no_sense_does_not_spoil_the_others() {
        let found = listed(&[json!({ "tools": [
            { "name": "text schema", "inputSchema": "none" },
            { "name": "list", "inputSchema": { "type": "array" } },
            { "name": "untyped", "inputSchema": { "properties": {} } },
            { "name": "no schema" }, { "name": "" }, { "name": 5 }, {}, 7, null,
        ] })]);
        let empty = json!({ "type": "object", "properties": {} });
        assert_eq!(found.tools.len(), 4);
        assert!(found.tools.iter().all(|tool| tool.spec.schema == empty));
        assert!(Raw::default().take(serde_json::from_value(json!({ "tools": 1 })).unwrap()).is_err());
    }

    #[test]
    fn lists_have_an_end() {
        let many: Vec<Value> = (0..600).map(|n| json!({ "name": format!("t{n}"), "inputSchema": {} })).collect();
        let found = listed(&[json!({ "tools": many })]);
        assert_eq!((found.tools.len(), found.is_cut), (MAX_TOOLS, true));
        let long = "ä".repeat(1 << 20);
        let big: Vec<Value> =
            (0..3).map(|n| json!({ "name": format!("t{n}"), "description": long, "inputSchema": {} })).collect();
        let found = listed(&[json!({ "tools": big })]);
        assert_eq!((found.tools.len(), found.is_cut), (1, true));
        assert!(found.tools[0].spec.description.len() <= MAX_DESCRIPTION + 3);
    }
}
