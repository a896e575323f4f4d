//! Correct peers that are made to break one rule: for tests of whoever judges peers.
//!
//! A [`Defect`] sits before a peer that does nothing wrong and changes what goes through: [`before`](Defect::before) gives the other
//! end of the defective peer. It works message by message, on lines of JSON.
//!
//! ```
//! use attache_testkit::defect::Defect;
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! // The agent, whose end of the connection this is, is made to give every session the same id.
//! let (mut agent, theirs) = tokio::io::duplex(4096);
//! let defect = Defect::in_results("session/new", |result| result["sessionId"] = "same".into());
//! let mut client = BufReader::new(defect.before(theirs));
//!
//! client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/new\"}\n").await.unwrap();
//! # BufReader::new(&mut agent).read_line(&mut String::new()).await.unwrap();
//! agent.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"sessionId\":\"s1\"}}\n").await.unwrap();
//! let mut answer = String::new();
//! client.read_line(&mut answer).await.unwrap();
//! assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"sessionId\":\"same\"}}\n");
//! # }
//! ```
//!
//! Most defects alter what the peer says: [`in_results`](Defect::in_results), [`in_answers`](Defect::in_answers),
//! [`in_params`](Defect::in_params), [`in_updates`](Defect::in_updates), or leave it out: [`without`](Defect::without). What those
//! cannot do, [`Defect::new`] can.

mod flow;
mod memory;
mod proxy;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

pub use flow::{Flow, Way};
pub use memory::Memory;

/// What is done to a message: its memory, the way that the message goes, and the message; returned is what goes on instead of it.
type Apply = dyn Fn(&mut Memory, Way, Value) -> Vec<Flow> + Send + Sync;

/// What is done to a line that is not JSON.
type ApplyToText = dyn Fn(&mut Memory, Way, &[u8]) -> Option<Vec<Flow>> + Send + Sync;

/// Something that is wrong with a peer. Cheap to clone; every connection has its own [`Memory`].
#[derive(Clone)]
pub struct Defect {
    apply: Arc<Apply>,
    apply_to_text: Option<Arc<ApplyToText>>,
}

impl fmt::Debug for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Defect")
    }
}

impl Defect {
    /// Does anything to messages, in both ways. Returns what goes on instead of the message, in order.
    ///
    /// ```
    /// use attache_testkit::defect::{Defect, Flow, Way};
    ///
    /// // Answers every request itself, and twice.
    /// let defect = Defect::new(|_, way, message| match (way, &message["id"]) {
    ///     (Way::ToPeer, id) if !id.is_null() => {
    ///         let answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "result": {}});
    ///         vec![Flow::from_peer(answer.clone()), Flow::from_peer(answer)]
    ///     }
    ///     _ => vec![Flow::message(way, message)],
    /// });
    /// # let _ = defect;
    /// ```
    pub fn new(apply: impl Fn(&mut Memory, Way, Value) -> Vec<Flow> + Send + Sync + 'static) -> Self {
        Defect { apply: Arc::new(apply), apply_to_text: None }
    }

    /// A peer with nothing wrong.
    pub fn none() -> Self {
        Defect::new(|_, way, message| vec![Flow::message(way, message)])
    }

    /// The same, and besides does something to lines that are not JSON, which go on as they are where this returns `None`.
    #[must_use]
    pub fn and_to_text(
        mut self,
        apply: impl Fn(&mut Memory, Way, &[u8]) -> Option<Vec<Flow>> + Send + Sync + 'static,
    ) -> Self {
        self.apply_to_text = Some(Arc::new(apply));
        self
    }

    /// Does something to each message that the peer sends. Returns what goes on instead of it.
    pub fn in_messages(apply: impl Fn(&mut Memory, Value) -> Vec<Flow> + Send + Sync + 'static) -> Self {
        Defect::new(move |memory, way, message| match way {
            Way::FromPeer => apply(memory, message),
            Way::ToPeer => vec![Flow::to_peer(message)],
        })
    }

    /// Alters each message that the peer sends.
    pub fn altering(alter: impl Fn(&mut Memory, &mut Value) + Send + Sync + 'static) -> Self {
        Defect::in_messages(move |memory, mut message| {
            alter(memory, &mut message);
            vec![Flow::from_peer(message)]
        })
    }

    /// Leaves out the messages of the peer for which this is so.
    pub fn without(is_left_out: impl Fn(&mut Memory, &Value) -> bool + Send + Sync + 'static) -> Self {
        Defect::in_messages(move |memory, message| match is_left_out(memory, &message) {
            true => Vec::new(),
            false => vec![Flow::from_peer(message)],
        })
    }

    /// Alters the peer's answers to a method: the whole message.
    pub fn in_answers(method: &'static str, alter: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Defect::altering(move |memory, message| {
            if memory.answered_method(Way::FromPeer, message) == Some(method) {
                alter(message);
            }
        })
    }

    /// Alters the results that the peer gives to a method.
    pub fn in_results(method: &'static str, alter: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Defect::in_answers(method, move |message| {
            if let Some(result) = message.get_mut("result") {
                alter(result);
            }
        })
    }

    /// Alters the params of the peer's requests and notifications of a method.
    pub fn in_params(method: &'static str, alter: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Defect::altering(move |_, message| {
            if message["method"] == method {
                alter(&mut message["params"]);
            }
        })
    }

    /// Alters the peer's updates of sessions that are of one kind (`sessionUpdate`).
    pub fn in_updates(kind: &'static str, alter: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Defect::in_params("session/update", move |params| {
            if params["update"]["sessionUpdate"] == kind {
                alter(&mut params["update"]);
            }
        })
    }

    /// Answers requests of a method in place of the peer, which never hears of them: what is made of the request is the result.
    pub fn answering(
        method: &'static str,
        answer: impl Fn(&mut Memory, &Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        Defect::new(move |memory, way, message| {
            if way == Way::ToPeer && message["method"] == method && message.get("id").is_some() {
                let result = answer(memory, &message);
                return vec![Flow::from_peer(
                    serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
                )];
            }
            vec![Flow::message(way, message)]
        })
    }

    /// Puts the defect before a peer, whose end of the connection this is. What is returned is the other end. Needs a tokio runtime.
    pub fn before(&self, peer: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> DuplexStream {
        proxy::start(self.clone(), peer)
    }
}

#[cfg(test)]
mod tests;
