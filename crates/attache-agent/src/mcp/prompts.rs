//! Prompts of servers as slash commands, resources as mentions, and the list of it all for people.

use std::fmt::Write as _;
use std::sync::Arc;

use attache::model::command::{AvailableCommand, Command, CommandInput, TextInput};
use attache::model::content::ContentBlock;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use super::Servers;
use super::content::{block, fitted, part};
use super::offers::Prompt;
use super::server::{Shared, Slot};
use super::words::Trouble;
use crate::cut::Spill;
use crate::model::{ModelInfo, Part};

/// How many resources a prompt may mention.
const MAX_MENTIONS: usize = 8;

/// How many tools, prompts and resources of a server are listed for people.
const MAX_LISTED: usize = 40;

/// How many prompts of all servers are offered as commands.
const MAX_COMMANDS: usize = 200;

/// What servers offer as slash commands, for whoever tells the client of it.
#[derive(Clone)]
pub(crate) struct Offered(Arc<Shared>);

impl Offered {
    /// A command for every prompt.
    pub(crate) fn commands(&self) -> Vec<AvailableCommand> {
        let mut commands = Vec::new();
        for slot in &self.0.slots {
            let Ok(offers) = slot.offers() else { continue };
            commands.extend(offers.prompts.iter().map(|prompt| {
                let about = if prompt.about.is_empty() { "Prompt of an MCP server" } else { &prompt.about };
                let hint = prompt.hint().map(|hint| CommandInput::Text(TextInput::new(hint)));
                let command = Command::new(prompt.command.as_str(), about).with(|command| command.input = hint);
                AvailableCommand::Command(command)
            }));
        }
        commands.truncate(MAX_COMMANDS);
        commands
    }

    /// A number that grows whenever there may be other commands.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

/// What a prompt of the person brings in from servers.
#[derive(Debug, Default)]
pub(crate) struct Mentioned {
    /// What the model is told besides.
    pub(crate) parts: Vec<Part>,
    /// What could not be had, in sentences for people.
    pub(crate) problems: Vec<String>,
}

impl Servers {
    pub(crate) fn offered(&self) -> Offered {
        Offered(self.shared.clone())
    }

    /// The prompt that is called by `/server:prompt …`, in the words of its server: `None` if none is. An error is a
    /// sentence for people.
    pub(crate) async fn prompt(&self, text: &str) -> Option<Result<Vec<Part>, String>> {
        let (slot, name, rest) = self.called(text)?;
        let offers = match slot.offers() {
            Ok(offers) => offers,
            Err(why) => return Some(Err(why)),
        };
        let prompt = offers.prompts.iter().find(|prompt| prompt.command == name)?;
        Some(self.fetch_prompt(slot, prompt, rest).await)
    }

    /// The server that a slash command belongs to, the command's name, and what is said after it.
    fn called<'a>(&self, text: &'a str) -> Option<(&Slot, &'a str, &'a str)> {
        let text = text.trim().strip_prefix('/')?;
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (label, _) = name.split_once(':')?;
        let slot = self.shared.slots.iter().find(|slot| slot.label == label)?;
        Some((slot, name, rest))
    }

    async fn fetch_prompt(&self, slot: &Slot, prompt: &Prompt, said: &str) -> Result<Vec<Part>, String> {
        let arguments = prompt.fill(said).map_err(|missing| {
            let hint = prompt.hint().unwrap_or_default();
            format!("missing `{missing}` for `/{}`\nhint: `/{} {hint}`", prompt.command, prompt.command)
        })?;
        let mut params = GetPromptRequestParams::new(prompt.name.clone());
        if !arguments.is_empty() {
            let arguments = arguments.into_iter().map(|(name, value)| (name, Value::String(value)));
            params = params.with_arguments(arguments.collect::<Map<_, _>>());
        }
        let result = self.ask(slot, ClientRequest::GetPromptRequest(GetPromptRequest::new(params))).await?;
        let spill = self.shared.setup.spill.clone();
        let read = move || messages(&result, spill.as_deref());
        let parts = crate::spawn_blocking(read).await.unwrap_or_default();
        if parts.is_empty() {
            return Err(format!("the prompt `/{}` of the MCP server `{}` is empty", prompt.command, slot.name));
        }
        Ok(parts)
    }

    /// Reads the resources that a prompt of the person mentions as `@server:uri`.
    pub(crate) async fn mentioned(&self, text: &str) -> Mentioned {
        let mut mentioned = Mentioned::default();
        for (slot, uri) in self.mentions(text) {
            match self.read(slot, uri).await {
                Ok(parts) => mentioned.parts.extend(parts),
                Err(why) => {
                    // No word of the server's own: what it says may be meant to be believed.
                    let failed = format!("The resource `{uri}` that the person mentions could not be read.");
                    mentioned.parts.push(Part::text(failed));
                    mentioned.problems.push(why);
                }
            }
        }
        mentioned
    }

    /// The resources that a text mentions, each once.
    fn mentions<'a>(&self, text: &'a str) -> Vec<(&Slot, &'a str)> {
        let mut found: Vec<(&Slot, &'a str)> = Vec::new();
        for (at, _) in text.match_indices('@') {
            let is_start = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "(\"'`".contains(c));
            let word = text[at + 1..].split(char::is_whitespace).next().unwrap_or_default();
            let Some((name, uri)) = word.split_once(':').filter(|_| is_start) else { continue };
            let slots = &self.shared.slots;
            let slot = slots.iter().find(|slot| slot.label == name).or(slots.iter().find(|slot| slot.name == name));
            let Some(slot) = slot else { continue };
            let uri = addressed(slot, uri);
            let is_new = !found.iter().any(|(other, known)| std::ptr::eq(*other, slot) && *known == uri);
            if !uri.is_empty() && is_new && found.len() < MAX_MENTIONS {
                found.push((slot, uri));
            }
        }
        found
    }

    async fn read(&self, slot: &Slot, uri: &str) -> Result<Vec<Part>, String> {
        let params = ReadResourceRequestParams::new(uri);
        let result = self.ask(slot, ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))).await?;
        let spill = self.shared.setup.spill.clone();
        let read = move || contents(&result, spill.as_deref());
        let parts = crate::spawn_blocking(read).await.unwrap_or_default();
        let head = format!("From the MCP server `{}`, as the person mentions `{uri}`:", slot.name);
        Ok(std::iter::once(Part::text(head)).chain(parts).collect())
    }

    /// Asks a server something that it answers soon.
    async fn ask(&self, slot: &Slot, request: ClientRequest) -> Result<Value, String> {
        let up = slot.back(&self.shared).await?;
        let limit = self.shared.setup.connect_limit;
        match timeout(limit, up.peer.send_request(request)).await {
            Ok(Ok(result)) => Ok(serde_json::to_value(result).unwrap_or_default()),
            Ok(Err(error)) => Err(self.explain(slot, &up, &error).await),
            Err(_) => {
                let late = Trouble::Late(limit.as_secs());
                Err(format!("the MCP server `{}` does not answer: {late}", slot.name))
            }
        }
    }

    /// The servers with their state, tools, prompts and resources, as a list for people.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        for slot in &self.shared.slots {
            let _ = writeln!(text, "- `{}`: {}", slot.name, slot.condition().replace('\n', "\n  "));
            let Ok(offers) = slot.offers() else { continue };
            listed(&mut text, "Tools", offers.tools.iter().map(|tool| format!("`{}`", tool.spec.name)));
            listed(
                &mut text,
                "Prompts",
                offers.prompts.iter().map(|prompt| {
                    let hint = prompt.hint().map(|hint| format!(" {hint}")).unwrap_or_default();
                    format!("`/{}{hint}`", prompt.command)
                }),
            );
            let mention = |uri: &String| format!("`@{}:{uri}`", slot.label);
            listed(&mut text, "Resources", offers.resources.iter().map(|resource| mention(&resource.uri)));
        }
        if text.is_empty() {
            text.push_str("There are no MCP servers. `mcp.json` beside your settings lists them.\n");
        }
        text
    }
}

/// A line of a list, if there is something to list.
fn listed(text: &mut String, what: &str, items: impl ExactSizeIterator<Item = String>) {
    let count = items.len();
    if count == 0 {
        return;
    }
    let shown: Vec<String> = items.take(MAX_LISTED).collect();
    let rest = if count > MAX_LISTED { format!(" and {} more", count - MAX_LISTED) } else { String::new() };
    let _ = writeln!(text, "  - {what}: {}{rest}", shown.join(", "));
}

/// The address at the beginning of a word: one that is listed, or the word without what ends a sentence.
fn addressed<'a>(slot: &Slot, word: &'a str) -> &'a str {
    let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'', '`']);
    let listed = slot.offers().unwrap_or_default();
    let is_listed = |uri: &str| listed.resources.iter().any(|resource| resource.uri == uri);
    // Of `note:/1).` the longest beginning that is listed is meant.
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).filter(|end| *end >= bare.len());
    let known = ends.map(|end| &word[..end]).rfind(|uri| is_listed(uri));
    known.unwrap_or(bare)
}

/// What the messages of a prompt are to the model.
fn messages(result: &Value, spill: Option<&Spill>) -> Vec<Part> {
    let messages = result["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| {
        // Words that a server puts into the model's mouth are marked as not the person's.
        let voice = (message["role"] == "assistant").then(|| ContentBlock::text("An example answer:"));
        voice.into_iter().chain([block(&message["content"])])
    });
    fitted(blocks.collect(), spill).iter().map(part).collect()
}

/// What the contents of a resource are to the model.
fn contents(result: &Value, spill: Option<&Spill>) -> Vec<Part> {
    let contents = result["contents"].as_array().into_iter().flatten();
    let blocks = contents.map(|content| block(&json!({ "type": "resource", "resource": content })));
    fitted(blocks.collect(), spill).iter().map(part).collect()
}

/// The parts that a model can take: what it cannot see or hear is named.
pub(crate) fn for_model(parts: Vec<Part>, model: &ModelInfo) -> Vec<Part> {
    let fit = |part: Part| match &part {
        Part::Media { mime, .. } if mime.starts_with("image/") && !model.images => {
            Part::text("(an image that you cannot see)")
        }
        Part::Media { mime, .. } if mime.starts_with("audio/") && !model.audio => {
            Part::text("(a sound that you cannot hear)")
        }
        _ => part,
    };
    parts.into_iter().map(fit).collect()
}
