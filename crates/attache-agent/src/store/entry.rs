//! What a session's log is made of.

use attache::model::content::ContentBlock;
use attache::model::tool::ToolCallUpdate;
use attache::model::update::SessionUpdate;
use attache::proto::Decode;
use attache::proto::json::RawJson;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model::Message;
use crate::model::metered::Spent;

use super::StoreError;

/// The longest entry. Longer than any message of the protocol that we take.
pub(super) const MAX_ENTRY: usize = 64 << 20;

/// One entry of a session's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// The session was opened: the first entry of every log.
    Opened(Opened),
    /// What the person said.
    Prompt {
        /// The id of the message.
        id: String,
        /// Its content.
        content: Vec<ContentBlock>,
    },
    /// What the client was shown.
    Update {
        /// The update, as version 2 of the protocol has it. Pieces of messages have the id of their message.
        update: Box<SessionUpdate>,
    },
    /// What the model is told from now on.
    Said {
        /// The message.
        message: Message,
    },
    /// From here on the model is told these messages in place of all that came before.
    Compacted {
        /// The messages.
        messages: Vec<Message>,
        /// Which of them is the summary of those that are gone.
        summary: Option<usize>,
    },
    /// What stands for a terminal where the session is loaded by a client that has none.
    Plain {
        /// What is new about the tool call.
        update: Box<ToolCallUpdate>,
    },
    /// A configuration option was set.
    Set {
        /// The option.
        option: String,
        /// Its value.
        value: String,
    },
    /// The session has a title.
    Title {
        /// The title.
        title: String,
    },
    /// A turn ended.
    TurnEnded {
        /// Why: the name of the stop reason.
        stop: String,
    },
    /// A request to a model took something.
    Spent(Spent),
    /// An entry that this version does not understand, because a newer one wrote it. Kept as it is.
    Unknown(RawJson),
}

/// Where a session works, and since when it exists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The directory of the session.
    pub cwd: String,
    /// The directories that belong to it beside that.
    pub directories: Vec<String>,
    /// When it was made, as RFC 3339 has it; see [`attache::trace::rfc3339`].
    pub created: String,
    /// Whose session it is. Empty for that of a person on their own machine. A store says it of the sessions that it makes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
}

impl Entry {
    /// The JSON form, with the member `type` first. Numbers and unknown members of updates are kept to the letter, which
    /// they are not on a way through serde.
    pub fn to_json(&self) -> Result<RawJson, serde_json::Error> {
        fn json<T: Serialize + ?Sized>(value: &T) -> Result<RawJson, serde_json::Error> {
            RawJson::from_value(value)
        }
        let (tag, members) = match self {
            Entry::Opened(Opened { cwd, directories, created, owner }) => {
                let mut members =
                    vec![("cwd", json(cwd)?), ("directories", json(directories)?), ("created", json(created)?)];
                if !owner.is_empty() {
                    members.push(("owner", json(owner)?));
                }
                ("opened", members)
            }
            Entry::Prompt { id, content } => {
                ("prompt", vec![("id", json(id)?), ("content", RawJson::from_model(content))])
            }
            Entry::Update { update } => ("update", vec![("update", RawJson::from_model(update))]),
            Entry::Said { message } => ("said", vec![("message", json(message)?)]),
            Entry::Compacted { messages, summary } => {
                let summary = summary.map(|summary| json(&summary)).transpose()?;
                let summary = summary.map(|summary| ("summary", summary));
                ("compacted", [("messages", json(messages)?)].into_iter().chain(summary).collect())
            }
            Entry::Plain { update } => ("plain", vec![("update", RawJson::from_model(update))]),
            Entry::Set { option, value } => ("set", vec![("option", json(option)?), ("value", json(value)?)]),
            Entry::Title { title } => ("title", vec![("title", json(title)?)]),
            Entry::TurnEnded { stop } => ("turn_ended", vec![("stop", json(stop)?)]),
            Entry::Spent(Spent { model, usage, cost }) => {
                ("spent", vec![("model", json(model)?), ("usage", json(usage)?), ("cost", json(cost)?)])
            }
            Entry::Unknown(entry) => return Ok(entry.clone()),
        };
        let mut text = format!("{{\"type\":\"{tag}\"");
        for (key, value) in members {
            text.extend([",\"", key, "\":", value.as_str()]);
        }
        text.push('}');
        RawJson::new(&text).map_err(serde::ser::Error::custom)
    }

    /// The JSON form of an entry that is to be kept in the log of this name: small enough, and read again as what it is.
    pub fn to_text(&self, log: &str) -> Result<String, StoreError> {
        let unkeepable = |problem: String| StoreError::Unkeepable { log: log.to_owned(), problem };
        let json = self.to_json().map_err(|error| unkeepable(error.to_string()))?;
        let length = json.as_str().len();
        if length > MAX_ENTRY {
            return Err(StoreError::TooLarge { log: log.to_owned(), length: length as u64 });
        }
        let text = json.as_str().to_owned();
        // What comes back as something else would be lost, and missed only when the session is opened again.
        let is_known = |entry: &Entry| !matches!(entry, Entry::Unknown(_));
        if is_known(self) && !is_known(&Entry::from_json(json)) {
            return Err(unkeepable("it is nested too deeply, or has no id".into()));
        }
        Ok(text)
    }

    /// Reads the JSON form. What is not understood is [`Entry::Unknown`], never lost.
    pub fn from_json(json: RawJson) -> Self {
        read(&json).unwrap_or(Entry::Unknown(json))
    }
}

fn read(json: &RawJson) -> Option<Entry> {
    fn value<T: DeserializeOwned>(json: &RawJson, key: &str) -> Option<T> {
        json.get(key)?.parse().ok()
    }
    fn model<T: Decode>(json: &RawJson, key: &str) -> Option<T> {
        json.get(key)?.to_model().ok()
    }
    Some(match value::<String>(json, "type")?.as_str() {
        "opened" => Entry::Opened(Opened {
            cwd: value(json, "cwd")?,
            directories: value(json, "directories")?,
            created: value(json, "created")?,
            owner: match json.get("owner") {
                Some(owner) => owner.parse().ok()?,
                None => String::new(),
            },
        }),
        "prompt" => Entry::Prompt { id: value(json, "id")?, content: model(json, "content")? },
        "update" => Entry::Update { update: Box::new(model(json, "update")?) },
        "said" => Entry::Said { message: value(json, "message")? },
        "compacted" => Entry::Compacted { messages: value(json, "messages")?, summary: value(json, "summary") },
        "plain" => Entry::Plain { update: Box::new(model(json, "update")?) },
        "set" => Entry::Set { option: value(json, "option")?, value: value(json, "value")? },
        "title" => Entry::Title { title: value(json, "title")? },
        "spent" => Entry::Spent(Spent {
            model: value(json, "model")?,
            usage: value(json, "usage")?,
            cost: value::<Option<_>>(json, "cost")?,
        }),
        "turn_ended" => Entry::TurnEnded { stop: value(json, "stop")? },
        _ => return None,
    })
}
