//! What the messages of a conversation mean, for both ends and in every dialect, without IO.
//!
//! The wire layer ([`rpc`](crate::rpc)) knows requests and answers. This module knows what they are about: which dialect a
//! connection speaks, when a turn begins and ends, which questions are open, which options a session has. It is plain data
//! that is told what arrived or what our own side wants, and says what follows. Agents, clients and the
//! [bridge](crate::bridge) are built on it, so they cannot disagree.
//!
//! - [`Greeting`] finds the dialect that a client and an agent have in common; [`Offer`] is what an agent serves.
//! - [`ClientSession`] is a session as its client has to remember it, [`AgentSession`] as its agent has to.
//! - [`UpdateTranslator`] turns updates with version 2's meaning into what a dialect can say.
//! - [`SessionOptions`] are the options of a session, with the modes and models of version 1 among them.
//!
//! A turn, as a client sees it end in version 2:
//!
//! ```
//! use attache_proto::conversation::ClientSession;
//! use attache_proto::model::prompt::{PromptResponse, StopReason};
//! use attache_proto::model::state::StateUpdate;
//! use attache_proto::model::update::SessionUpdate;
//!
//! let mut session = ClientSession::default();
//! let turn = session.begin_turn();
//! assert!(session.prompt_answered(turn, Ok(PromptResponse::inserted("message-1"))).is_none());
//! assert!(session.handle_update(&mut SessionUpdate::State(StateUpdate::running())).is_empty());
//! let ended = session.handle_update(&mut SessionUpdate::State(StateUpdate::idle(StopReason::EndTurn)));
//! assert_eq!(ended[0].turn, turn);
//! assert_eq!(ended[0].result, Ok(StopReason::EndTurn));
//! ```

mod agent_session;
mod client_session;
mod greeting;
mod offer;
mod opening;
mod options;
mod translator;
mod turns;

#[cfg(test)]
mod tests;

pub use agent_session::{AgentSession, Emitted, MessageKind};
pub use client_session::{ClientSession, Question};
#[cfg(feature = "bridge")]
pub(crate) use greeting::understand_client;
pub use greeting::{Greeted, Greeting, GreetingError, Protocol, requested_dialect, unsupported_version};
pub use offer::{ClientOffer, Offer};
pub use opening::{OpenKind, OpenedSession, Opening};
pub use options::{SessionOptions, SetRequest};
pub use translator::UpdateTranslator;
#[cfg(feature = "bridge")]
pub(crate) use translator::is_memorable;
pub use turns::{TurnEnd, TurnId};
