//! What the agent wants from a language model: one small trait, and the words that go both ways.

pub mod catalog;
mod constrained;
pub mod discover;
pub(crate) mod listing;
pub(crate) mod metered;
pub mod offline;
pub mod price;
pub mod remote;
pub mod retry;
mod tidy;
mod written;

use std::time::Duration;

use attache::model::RawJson;
use attache::model::error::ErrorObject;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use metered::Spent;
pub(crate) use tidy::tidy;

/// A model that can be asked. Cheap to keep, and asked by several sessions at once.
///
/// ```
/// use attache_agent::model::{End, Message, Model, ModelInfo, Piece, Reply, Request, offline::Offline};
/// use futures_util::StreamExt;
///
/// /// Says what it was told last.
/// struct Echo(ModelInfo);
///
/// impl Model for Echo {
///     fn info(&self) -> &ModelInfo {
///         &self.0
///     }
///
///     fn ask(&self, request: Request) -> Reply {
///         let pieces = [Piece::Text(format!("{:?}", request.messages.last())), Piece::End(End::default())];
///         futures_util::stream::iter(pieces.map(Ok)).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// // Whoever asks takes the pieces as they come, until the end.
/// let models: [Box<dyn Model>; 2] = [Box::new(Echo(Offline::new().info().clone())), Box::new(Offline::new())];
/// for model in models {
///     let request = Request { messages: vec![Message::user("say hello")], ..Request::default() };
///     let mut said = String::new();
///     let mut reply = model.ask(request);
///     while let Some(piece) = reply.next().await {
///         match piece? {
///             Piece::Text(text) => said.push_str(&text),
///             Piece::End(_) => break,
///             _ => {}
///         }
///     }
///     assert!(said.contains("hello"));
/// }
/// # Ok::<(), attache_agent::model::ModelError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Model: Send + Sync + 'static {
    /// What is known of it.
    fn info(&self) -> &ModelInfo;

    /// Asks it. What it answers comes piece by piece; the last piece is [`Piece::End`] or an error. Whoever drops the
    /// stream drops the request.
    fn ask(&self, request: Request) -> Reply;
}

/// What a model answers, as it comes.
pub type Reply = BoxStream<'static, Result<Piece, ModelError>>;

/// What is known of a model before it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Who serves it: `openai`, `anthropic`, `gemini`, `ollama`, …, `offline`.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// How many tokens it can take in at once.
    pub context: u64,
    /// Whether it sees images.
    pub images: bool,
    /// Whether it hears audio.
    pub audio: bool,
    /// Whether it can be told how long to think.
    pub thinks: bool,
    /// Whether it is small: it gets a short prompt and few tools, and is held to a form.
    pub is_small: bool,
    /// What it takes, where that is known.
    pub price: Option<price::Price>,
}

impl ModelInfo {
    /// `provider:name`, as users write it.
    pub fn id(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }

    /// Whether it is told things in few words: it loses the thread in many, or has no room for them.
    pub(crate) fn is_brief(&self) -> bool {
        self.is_small || (self.context < SHORT_CONTEXT && !self.is_offline())
    }

    /// Whether it is no language model.
    pub(crate) fn is_offline(&self) -> bool {
        self.provider == "offline"
    }
}

/// A model that takes fewer tokens gets a short prompt and short descriptions of few tools: with all of them, half of its
/// context would be gone before anything is said, and the conversation would be summed up in nearly every turn.
const SHORT_CONTEXT: u64 = 16_000;

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// What it has to know before all else.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// How many tokens it may answer with.
    pub max_tokens: Option<u32>,
    /// How long it should think.
    pub thought: Thought,
    /// Whether it may come to its end now. Only models that are held to a form are held to this.
    pub finish: Finish,
}

/// Whether a model may come to its end, or has to do something first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// It may.
    #[default]
    May,
    /// It has to use a tool first.
    MayNot,
    /// It has to, and can use no tool.
    Must,
}

/// How long a model should think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thought {
    /// As long as its maker thinks right.
    #[default]
    Default,
    /// Not at all, or as little as it can.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Long.
    High,
}

/// A tool, as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub schema: Value,
}

/// One message of the conversation with a model. Kept in the session's log as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the person, or the agent on their behalf, says.
    User {
        /// Its parts.
        parts: Vec<Part>,
    },
    /// What the model said.
    Assistant {
        /// Its text; may be empty.
        text: String,
        /// The tools that it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        /// What its provider wants back with this message, such as signatures of thoughts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<Value>,
    },
    /// What came of a tool call. Follows the message with the call; every call has one.
    Tool {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What it brought.
        parts: Vec<Part>,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl Message {
    /// A message of the person that is only text.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { parts: vec![Part::Text { text: text.into() }] }
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image or a piece of audio, by its type.
    Media {
        /// Its type, such as `image/png`.
        mime: String,
        /// Its bytes, in base64.
        data: String,
    },
}

impl Part {
    /// Its text, if it is one.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Part::Text { text } => Some(text),
            Part::Media { .. } => None,
        }
    }

    /// A part that is text.
    pub fn text(text: impl Into<String>) -> Self {
        Part::Text { text: text.into() }
    }
}

/// A call of a tool by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The model's id for it, unique in the session.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as they came. Not always JSON: models make mistakes, and are told.
    pub arguments: String,
}

/// A piece of what a model answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text for the person.
    Text(String),
    /// A thought.
    Thought(String),
    /// The model has named a tool; its arguments are still to come.
    CallStarted {
        /// The id that [`Piece::Call`] will have.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// The arguments of a started call, as far as they have come: all of them, not only what is new.
    CallGrew {
        /// The call's id.
        id: String,
        /// The arguments so far.
        arguments: String,
    },
    /// A call is complete. Comes after its [`Piece::CallStarted`], before the end.
    Call(Call),
    /// What the answer has taken so far, as its provider counts it: for an answer that never comes to its end. Later counts
    /// stand in for earlier ones.
    Usage(Usage),
    /// More of the answer has come, and cannot be told before it is known what it is: the model is not silent.
    Held,
    /// The request failed and is made again. All pieces that came before are void: the answer begins anew.
    Retrying {
        /// How long is waited.
        after: Duration,
        /// What went wrong, in a sentence for people.
        reason: String,
        /// The number of the attempt that comes, from 2.
        attempt: u32,
        /// How many attempts there are at most.
        of: u32,
        /// How much longer is waited at most, all attempts together.
        left: Duration,
    },
    /// The answer is complete.
    End(End),
}

/// How an answer ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// Why.
    pub reason: EndReason,
    /// What it took.
    pub usage: Usage,
    /// What the provider wants back with the message; see [`Message::Assistant`].
    pub opaque: Option<Value>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndReason {
    /// It has said what it wanted, or calls tools.
    #[default]
    Done,
    /// It was cut off at its limit of tokens.
    MaxTokens,
    /// It will not answer this.
    Refusal,
    /// It did not understand what is asked, and did nothing. Only the rules of `offline` know that of themselves.
    NotUnderstood,
}

/// What an answer took, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What went in, from a cache or not.
    pub input: u64,
    /// How much of that came from a cache.
    pub cached: u64,
    /// What came out, thoughts included.
    pub output: u64,
    /// How much of what went in was written to a cache, where that has a price of its own.
    #[serde(default, skip_serializing_if = "is_none")]
    pub written: u64,
}

impl Usage {
    /// The sum of two.
    pub(crate) fn plus(self, other: Usage) -> Self {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            written: self.written.saturating_add(other.written),
        }
    }
}

/// The way out where the server has to get over something first.
const ASK_LATER: &str = "hint: ask again later, or choose another model";

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Why a model gave no answer. Says no more than a person may see: no key, no header, no body of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub struct ModelError {
    /// What sort of failure it is.
    pub kind: Failure,
    /// A sentence for people, with a `hint:` line where there is a way out.
    pub message: String,
    /// What the server itself said about it: one line, without control characters and keys.
    pub details: Option<String>,
    /// How long the server wants us to wait.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// An error with nothing to wait for.
    pub fn new(kind: Failure, message: impl Into<String>) -> Self {
        ModelError { kind, message: message.into(), details: None, retry_after: None }
    }
}

impl ModelError {
    /// The error as a client gets it: our words in the message, those of the server in the data.
    pub(crate) fn to_peer(&self) -> ErrorObject {
        let mut object = match self.kind {
            Failure::RateLimit => {
                let seconds = self.retry_after.map(|after| after.as_secs() + u64::from(after.subsec_nanos() > 0));
                seconds.map_or_else(|| ErrorObject::new(ErrorObject::RATE_LIMITED, ""), ErrorObject::rate_limited)
            }
            Failure::Key => ErrorObject::auth_required(&[]),
            Failure::Server | Failure::NotRunning | Failure::TooLong | Failure::Request => ErrorObject::internal(""),
        };
        object.message.clone_from(&self.message);
        if self.kind == Failure::RateLimit && object.data.is_none() {
            object.data = RawJson::from_value(&serde_json::json!({ "reason": "rate_limited" })).ok();
        }
        self.add_details(object)
    }

    /// All of it for people: what the server said stands behind the first line, before any hint.
    fn told(&self) -> String {
        let (what, hint) = self.message.split_at(self.message.find('\n').unwrap_or(self.message.len()));
        match &self.details {
            Some(details) => format!("{what}: {details}{hint}"),
            None => self.message.clone(),
        }
    }

    /// Adds what the server said to the data of an error.
    pub(crate) fn add_details(&self, mut object: ErrorObject) -> ErrorObject {
        let Some(details) = &self.details else { return object };
        let data = object.data.as_ref().and_then(|data| data.parse().ok());
        let mut data: serde_json::Map<String, Value> = data.unwrap_or_default();
        data.insert("details".into(), details.as_str().into());
        object.data = RawJson::from_value(&data).ok();
        object
    }
}

/// What sort of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The key is missing or wrong.
    Key,
    /// Too many requests, or the quota is used up.
    RateLimit,
    /// The server has a problem, or cannot be reached, or the stream was cut.
    Server,
    /// Nothing listens at an address of this machine. Waiting starts no server.
    NotRunning,
    /// The conversation is longer than the model takes.
    TooLong,
    /// The server does not want this request, and would not want it a second time.
    Request,
}

impl Failure {
    /// Whether it may help to ask again.
    pub fn is_passing(self) -> bool {
        matches!(self, Failure::RateLimit | Failure::Server)
    }
}
