//! JSON-RPC 2.0: the envelope of messages, and one side of a connection without IO.
//!
//! ```
//! use attache_proto::rpc::{Event, Peer, Side};
//!
//! let mut agent: Peer<()> = Peer::new(Side::Agent);
//! let mut out = Vec::new();
//! let mut events = agent.handle_frame(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, &mut out);
//! let Some(Event::Call { call, method, .. }) = events.next() else { panic!() };
//! assert_eq!(method, "initialize");
//! drop(events);
//! agent.answer(call, |writer| writer.raw(r#"{"protocolVersion":1}"#), &mut out);
//! assert_eq!(out, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}\n");
//! ```

mod envelope;
mod event;
mod int_map;
mod message_writer;
mod open_calls;
mod partial;
mod peer;
mod violation;

pub use envelope::{Envelope, Incoming, InvalidMessage, MAX_BATCH, MAX_ID, Outcome, parse};
pub use event::{AnswerError, Call, Event, Events, RequestKey};
pub use int_map::{IntHasher, IntMap};
pub use partial::{Partial, PartialMessage};
pub use peer::{BatchWriter, Peer, Side};
pub use violation::Violation;

#[cfg(test)]
mod tests;
