//! What the agent can do: each tool looks at a call first, so that it can be shown and asked about, and then does it.

mod arguments;
pub mod commands;
mod excerpt;
pub mod fetch;
pub mod files;
mod own;

pub(crate) use arguments::{Arguments, beginning, fitted, parse as parse_arguments, usual_name};
pub(crate) use excerpt::{excerpt, fenced, first_items};
pub(crate) use own::{OwnWork, Subtask, prepare as prepare_own, specs as own_specs};

use attache::model::tool::{Location, ToolCallContent, ToolKind};
use attache::model::update::SessionUpdate;
use attache_host::permission::Action;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::model::Part;

/// A call that has been looked at: what it would do, ready to be shown, asked about and done.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared<W> {
    /// What it is called for people.
    pub title: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// The files that it works on.
    pub locations: Vec<Location>,
    /// What can be shown before it is done: the diff.
    pub content: Vec<ToolCallContent>,
    /// All that has to be allowed. Empty when it touches nothing.
    pub actions: Vec<Action>,
    /// How to do it.
    pub work: W,
}

impl<W> Prepared<W> {
    /// The same call, with its work as something else.
    pub(crate) fn map<V>(self, change: impl FnOnce(W) -> V) -> Prepared<V> {
        Prepared {
            title: self.title,
            kind: self.kind,
            locations: self.locations,
            content: self.content,
            actions: self.actions,
            work: change(self.work),
        }
    }
}

/// What is shown of a call before it is looked at: what its arguments alone tell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Introduction {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) locations: Vec<Location>,
}

impl Introduction {
    /// The same as a call that was looked at is shown.
    pub(crate) fn of<W>(prepared: Prepared<W>) -> Self {
        Introduction { title: prepared.title, kind: prepared.kind, locations: prepared.locations }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the model is told.
    pub parts: Vec<Part>,
    /// Whether it failed.
    pub is_error: bool,
    /// Whether the parts are the content of a file, of which nothing may be taken out: an edit has to find it again.
    pub is_exact: bool,
    /// What people see in place of what was shown so far. `None` leaves that as it is.
    pub content: Option<Vec<ToolCallContent>>,
    /// The same for programs: a few facts, and no more of what was found than `content` has.
    pub raw: Option<Value>,
    /// The files that it turned out to work on. `None` leaves them as they are.
    pub locations: Option<Vec<Location>>,
}

impl Outcome {
    /// It worked; the model is told this.
    pub fn done(text: impl Into<String>) -> Self {
        Outcome {
            parts: vec![Part::text(text)],
            is_error: false,
            is_exact: false,
            content: None,
            raw: None,
            locations: None,
        }
    }

    /// It failed; the model is told why, and so are people.
    pub fn failed(text: impl Into<String>) -> Self {
        let text = text.into();
        Outcome { is_error: true, content: Some(vec![ToolCallContent::text(text.as_str())]), ..Outcome::done(text) }
    }
}

/// Why a call cannot be done, in a sentence for the model (and people).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Where a tool shows what it is doing while it works. Nobody may be looking: that changes nothing for the tool.
#[derive(Debug, Clone)]
pub struct Live(mpsc::Sender<Shown>);

/// Something that a tool shows while it works.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// What the call has to show now, in place of what it had.
    Content(Vec<ToolCallContent>),
    /// An update beside the call itself: a terminal and its output.
    Update(SessionUpdate),
}

impl Live {
    /// A line from a tool to whoever shows it. A slow viewer slows the tool.
    pub fn channel() -> (Live, mpsc::Receiver<Shown>) {
        let (sender, receiver) = mpsc::channel(16);
        (Live(sender), receiver)
    }

    /// Shows something.
    pub async fn show(&self, shown: Shown) {
        let _ = self.0.send(shown).await;
    }

    /// Waits until all that was shown has been taken.
    async fn taken(&self) {
        let _ = self.0.reserve_many(self.0.max_capacity()).await;
    }
}

/// How much of a reason that a model gives is shown.
const LONGEST_REASON: usize = 300;

/// What a model says, for a person: on one line, made short, with nothing invisible in it.
pub(crate) fn on_one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    attache_host::permission::visible(&first_line(&words, LONGEST_REASON))
}

/// The first line of a text, made short.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if text.trim().lines().nth(1).is_some() => format!("{line} …"),
        None => line.into(),
    }
}
