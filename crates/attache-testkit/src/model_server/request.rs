//! What a scripted model was asked, as it came and in words that fit every API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::tool::Tool;
use super::{anthropic, gemini, ollama, openai, responses};

/// A request that the model was asked.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Its number, from 1.
    pub number: usize,
    /// Whose API it came through.
    pub api: Api,
    /// Its path, with its query.
    pub path: String,
    /// Its headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Value,
}

/// Whose API a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's Responses.
    Responses,
    /// Ollama's own.
    Ollama,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
}

/// A piece of the conversation, in words that fit every API. Thoughts and media are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// What the user said.
    User(String),
    /// What the model said.
    Assistant(String),
    /// A tool that the model called.
    Call {
        /// The call's id; the tool's name where the API has none.
        id: String,
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: String,
    },
    /// What came of a call.
    Result {
        /// The call's id; the tool's name where the API has none.
        id: String,
        /// What the model was told.
        text: String,
    },
}

impl Api {
    /// The API of a path.
    pub(super) fn of(path: &str) -> Option<Api> {
        if path.ends_with("/chat/completions") {
            Some(Api::OpenAi)
        } else if path.ends_with("/responses") {
            Some(Api::Responses)
        } else if path.ends_with("/api/chat") {
            Some(Api::Ollama)
        } else if path.ends_with("/messages") {
            Some(Api::Anthropic)
        } else if path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent") {
            Some(Api::Gemini)
        } else {
            None
        }
    }
}

impl ModelRequest {
    /// A header, by lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The name of the model; empty if there is none.
    pub fn model(&self) -> &str {
        match self.api {
            Api::OpenAi | Api::Responses | Api::Ollama | Api::Anthropic => {
                self.body["model"].as_str().unwrap_or_default()
            }
            Api::Gemini => {
                let path = self.path.split('?').next().unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default();
                name.split(':').next().unwrap_or_default()
            }
        }
    }

    /// Whether the answer is to come as a stream.
    pub fn is_stream(&self) -> bool {
        match self.api {
            Api::OpenAi | Api::Responses | Api::Anthropic => self.body["stream"] == true,
            // Who says nothing wants one here.
            Api::Ollama => self.body["stream"] != false,
            Api::Gemini => self.path.contains(":streamGenerateContent"),
        }
    }

    /// The system prompt; empty if there is none.
    pub fn system(&self) -> String {
        match self.api {
            Api::OpenAi | Api::Ollama => openai::system(&self.body),
            Api::Responses => responses::system(&self.body),
            Api::Anthropic => anthropic::system(&self.body),
            Api::Gemini => gemini::system(&self.body),
        }
    }

    /// The conversation, without the system prompt.
    pub fn turns(&self) -> Vec<Turn> {
        match self.api {
            Api::OpenAi => openai::turns(&self.body),
            Api::Responses => responses::turns(&self.body),
            Api::Ollama => ollama::turns(&self.body),
            Api::Anthropic => anthropic::turns(&self.body),
            Api::Gemini => gemini::turns(&self.body),
        }
    }

    /// The texts of the messages, the user's and the model's.
    pub fn texts(&self) -> Vec<String> {
        let text = |turn| match turn {
            Turn::User(text) => Some(without_environment(text)),
            Turn::Assistant(text) => Some(text),
            Turn::Call { .. } | Turn::Result { .. } => None,
        };
        self.turns().into_iter().filter_map(text).collect()
    }

    /// The tools that may be called.
    pub fn tools(&self) -> Vec<Tool> {
        match self.api {
            Api::OpenAi | Api::Ollama => openai::tools(&self.body),
            Api::Responses => responses::tools(&self.body),
            Api::Anthropic => anthropic::tools(&self.body),
            Api::Gemini => gemini::tools(&self.body),
        }
    }

    /// The names of the tools that may be called.
    pub fn tool_names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name).collect()
    }

    /// The JSON schema that the answer has to keep to, if it has to be JSON.
    pub fn answer_schema(&self) -> Option<&Value> {
        let paths: &[&str] = match self.api {
            Api::OpenAi => &["/response_format/json_schema/schema"],
            Api::Responses => &["/text/format/schema"],
            Api::Ollama => &["/format"],
            Api::Anthropic => &["/output_config/format/schema", "/output_format/schema"],
            Api::Gemini => &["/generationConfig/responseJsonSchema", "/generationConfig/responseSchema"],
        };
        paths.iter().find_map(|path| self.body.pointer(path)).filter(|schema| schema.is_object())
    }

    /// What came of the calls so far, in order.
    pub fn tool_results(&self) -> Vec<String> {
        let text = |turn| match turn {
            Turn::Result { text, .. } => Some(text),
            _ => None,
        };
        self.turns().into_iter().filter_map(text).collect()
    }

    /// Why a provider would not take this request.
    pub(super) fn fault(&self) -> Option<String> {
        let messages = match self.api {
            Api::Gemini => "contents",
            Api::Responses => "input",
            Api::OpenAi | Api::Ollama | Api::Anthropic => "messages",
        };
        if self.body[messages].as_array().is_none_or(Vec::is_empty) {
            return Some(format!("`{messages}` has to be a list with something in it"));
        }
        if self.model().is_empty() {
            return Some("`model` is missing".to_owned());
        }
        if self.api == Api::Anthropic && !self.body["max_tokens"].is_u64() {
            return Some("`max_tokens` is missing".to_owned());
        }
        if self.api == Api::Gemini && self.is_stream() && !self.path.contains("alt=sse") {
            return Some("this server streams only with `alt=sse`".to_owned());
        }
        self.unanswered_call()
    }

    /// Every provider wants a result for each call before anybody says something else, and no result without a call.
    fn unanswered_call(&self) -> Option<String> {
        let mut open = Vec::new();
        let mut seen = BTreeSet::new();
        for turn in self.turns() {
            match turn {
                Turn::Call { id, .. } => {
                    if self.api == Api::Anthropic && !seen.insert(id.clone()) {
                        return Some(format!("two calls have the id `{id}`"));
                    }
                    open.push(id);
                }
                Turn::Result { id, .. } => match open.iter().position(|call| *call == id) {
                    Some(place) => {
                        open.remove(place);
                    }
                    None => return Some(format!("there is no call `{id}` for this result")),
                },
                // In the other APIs, the model may go on after a call in the same message.
                Turn::Assistant(_) if !matches!(self.api, Api::OpenAi | Api::Ollama) => {}
                Turn::User(_) | Turn::Assistant(_) => {
                    if let Some(id) = open.first() {
                        return Some(format!("the call `{id}` has no result"));
                    }
                }
            }
        }
        open.first().map(|id| format!("the call `{id}` has no result"))
    }
}

/// The text of a message, which is text or a list of parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Adds what was said so far, if anything was.
pub(super) fn push_text(turns: &mut Vec<Turn>, is_user: bool, text: &mut String) {
    if !text.is_empty() {
        let text = std::mem::take(text);
        turns.push(if is_user { Turn::User(text) } else { Turn::Assistant(text) });
    }
}

/// A prompt without what an agent tells of where it works, which differs from day to day. Several prompts may have come in
/// one message, each with its own.
fn without_environment(text: String) -> String {
    let mut rest = text.as_str();
    let mut prompt = String::new();
    while let Some((before, environment)) = rest.split_once("<environment>") {
        let Some((_, after)) = environment.split_once("</environment>") else { break };
        prompt.push_str(before);
        rest = after.trim_start();
    }
    prompt + rest
}
