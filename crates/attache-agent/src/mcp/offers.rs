//! What a server offers besides tools: prompts and resources, listed and made fit to be shown.

use std::sync::Arc;

use rmcp::model::{ClientRequest, ListPromptsRequest, ListResourcesRequest, PaginatedRequestParams};
use rmcp::service::Peer;
use rmcp::{RoleClient, model};
use serde_json::Value;

use super::names::prompt_names;
use super::tools::{self, Tool, one_line};
use super::words::Trouble;

/// How many prompts or resources of a server are taken.
const MAX_ITEMS: usize = 200;

/// How many pages are asked for at most.
const MAX_PAGES: usize = 16;

/// How long the address of a resource may be, and the name of a prompt or an argument.
const MAX_NAME: usize = 1000;

/// How many arguments a prompt may have.
const MAX_ARGUMENTS: usize = 16;

/// What a server offers.
#[derive(Debug, Clone, Default)]
pub(super) struct Offers {
    pub(super) tools: Arc<[Tool]>,
    pub(super) prompts: Arc<[Prompt]>,
    pub(super) resources: Arc<[Resource]>,
}

/// What a server offers, and whether it has more tools than we take.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) offers: Offers,
    pub(super) is_cut: bool,
}

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    /// The name of its slash command: `server:prompt`.
    pub(super) command: String,
    /// What the server calls it.
    pub(super) name: String,
    /// What it does, for people.
    pub(super) about: String,
    pub(super) arguments: Vec<Argument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) is_required: bool,
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// What it is, for people.
    pub(super) about: String,
}

/// Asks a server for all that it offers.
pub(super) async fn list(peer: &Peer<RoleClient>, label: &str) -> Result<Listed, Trouble> {
    let tools = tools::fetch(peer, label).await?;
    let capabilities = peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
    // A server that fails here is still good for its tools.
    let (mut prompts, mut resources) = (Vec::new(), Vec::new());
    if capabilities.prompts.is_some() {
        let request = |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        prompts = pages(peer, "prompts", request).await;
    }
    if capabilities.resources.is_some() {
        let request = |params| ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params));
        resources = pages(peer, "resources", request).await;
    }
    let offers = Offers {
        tools: tools.tools.into(),
        prompts: prompts_of(&prompts, label).into(),
        resources: resources.iter().filter_map(resource_of).collect(),
    };
    Ok(Listed { offers, is_cut: tools.is_cut })
}

/// The items of a list, page by page.
async fn pages(
    peer: &Peer<RoleClient>,
    key: &str,
    request: impl Fn(PaginatedRequestParams) -> ClientRequest,
) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let Ok(page) = peer.send_request(request(params)).await else { break };
        let next = take(page, key, &mut items);
        if next.is_none() || next == cursor || items.len() >= MAX_ITEMS {
            break;
        }
        cursor = next;
    }
    items
}

/// Takes the items of a page and gives the cursor of the next.
fn take(page: model::ServerResult, key: &str, items: &mut Vec<Value>) -> Option<String> {
    let mut page = serde_json::to_value(page).ok()?;
    if let Some(Value::Array(more)) = page.get_mut(key).map(Value::take) {
        let room = MAX_ITEMS - items.len();
        items.extend(more.into_iter().take(room));
    }
    page["nextCursor"].as_str().filter(|cursor| !cursor.is_empty()).map(str::to_owned)
}

fn name_in(item: &Value, key: &str) -> Option<String> {
    item[key].as_str().filter(|name| !name.is_empty() && name.len() <= MAX_NAME).map(str::to_owned)
}

fn prompts_of(items: &[Value], label: &str) -> Vec<Prompt> {
    let named: Vec<(String, &Value)> = items.iter().filter_map(|item| Some((name_in(item, "name")?, item))).collect();
    let commands = prompt_names(label, &named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
    let prompt = |((name, item), command): ((String, &Value), Option<String>)| {
        let arguments = item["arguments"].as_array().into_iter().flatten();
        let argument = |item: &Value| {
            Some(Argument { name: name_in(item, "name")?, is_required: item["required"] == Value::Bool(true) })
        };
        let about = [&item["description"], &item["title"]].into_iter().find_map(Value::as_str).map(one_line);
        let arguments = arguments.filter_map(argument).take(MAX_ARGUMENTS).collect();
        Some(Prompt { command: command?, about: about.unwrap_or_default(), name, arguments })
    };
    named.into_iter().zip(commands).filter_map(prompt).collect()
}

fn resource_of(item: &Value) -> Option<Resource> {
    let uri = name_in(item, "uri")?;
    // One that cannot be written in a prompt, or shown to people, cannot be mentioned.
    if uri.chars().any(|c| c.is_whitespace() || c.is_control() || c == '`') || super::words::plain(&uri) != uri {
        return None;
    }
    let about = ["title", "name", "description"].into_iter().find_map(|key| item[key].as_str()).map(one_line);
    Some(Resource { uri, about: about.unwrap_or_default() })
}

impl Prompt {
    /// What the command wants to be told: `<city> [unit]`.
    pub(super) fn hint(&self) -> Option<String> {
        let word = |argument: &Argument| {
            let name = one_line(&argument.name);
            if argument.is_required { format!("<{name}>") } else { format!("[{name}]") }
        };
        let words: Vec<String> = self.arguments.iter().map(word).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// The arguments from what is said after the command's name: a word each, or several in quotes; the last one gets
    /// the rest. An error names those that are missing.
    pub(super) fn fill(&self, said: &str) -> Result<Vec<(String, String)>, String> {
        let mut rest = said.trim();
        let mut filled = Vec::new();
        for (index, argument) in self.arguments.iter().enumerate() {
            let is_last = index + 1 == self.arguments.len();
            let (word, more) = if is_last { (unquoted(rest), "") } else { first_word(rest) };
            if !word.is_empty() {
                filled.push((argument.name.clone(), word.to_owned()));
            } else if argument.is_required {
                return Err(one_line(&argument.name));
            }
            rest = more;
        }
        Ok(filled)
    }
}

/// The first word, or what is in quotes, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    if let Some((inside, rest)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return (inside, rest.trim_start());
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The text without the quotes around all of it.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|text| !text.contains('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn prompts_have_harmless_names_that_are_distinct() {
        let items = [
            json!({ "name": "greet", "description": "Says\u{1b} hello.\nNicely.", "arguments": [
                { "name": "who", "required": true }, { "name": "how" }, { "name": "" }, 7,
            ] }),
            json!({ "name": "two words" }),
            json!({ "name": "two_words" }),
            json!({ "name": "greet" }),
            json!({ "name": "" }),
            json!({ "name": "x".repeat(5000) }),
            json!(7),
        ];
        let prompts = prompts_of(&items, "tiny");
        let commands: Vec<&str> = prompts.iter().map(|prompt| prompt.command.as_str()).collect();
        assert_eq!(commands.len(), 3);
        assert_eq!((commands[0], commands[2]), ("tiny:greet", "tiny:two_words"));
        assert!(commands[1].starts_with("tiny:two_words_"), "{}", commands[1]);
        assert_eq!(prompts[0].about, "Says hello. Nicely.");
        assert_eq!(prompts[0].hint().unwrap(), "<who> [how]");
        assert_eq!(prompts[1].hint(), None);
    }

    #[test]
    fn arguments_are_words_and_the_last_gets_the_rest() {
        let argument = |name: &str, is_required| Argument { name: name.into(), is_required };
        let prompt = Prompt {
            command: "s:p".into(),
            name: "p".into(),
            about: String::new(),
            arguments: vec![argument("a", true), argument("b", false)],
        };
        let check = |said: &str, wanted: &[(&str, &str)]| {
            let wanted: Vec<(String, String)> =
                wanted.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            assert_eq!(prompt.fill(said), Ok(wanted), "{said}");
        };
        check("one", &[("a", "one")]);
        check(" one  two three ", &[("a", "one"), ("b", "two three")]);
        check("\"one two\" \"three four\"", &[("a", "one two"), ("b", "three four")]);
        check("\"one two", &[("a", "\"one"), ("b", "two")]);
        assert_eq!(prompt.fill("  "), Err("a".into()));
    }

    #[test]
    fn resources_that_cannot_be_mentioned_are_left_out() {
        assert_eq!(
            resource_of(&json!({ "uri": "note:/1", "name": "One\u{7}" })),
            Some(Resource { uri: "note:/1".into(), about: "One".into() })
        );
        for uri in ["", "a`b", "a b", "a\nb", "a\u{202e}b"] {
            assert_eq!(resource_of(&json!({ "uri": uri })), None, "{uri:?}");
        }
        assert_eq!(resource_of(&json!({ "uri": "x".repeat(5000) })), None);
    }
}
