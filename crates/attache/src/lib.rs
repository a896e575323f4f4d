//! Write an agent or a client of the Agent Client Protocol (ACP): one API for protocol v1 and v2.
//!
//! ACP is JSON-RPC between code editors (clients) and coding agents. An agent or client that is written once against this
//! crate speaks protocol version 1, version 2 as published, and version 2 as its draft of June 2026 had it. Which of
//! them is settled for each connection when the two greet each other.
//!
//! # In Cargo.toml
//!
//! ```toml
//! [dependencies]
//! attache = { path = "…/crates/attache" }  # where you have the repository
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```
//!
//! It needs Rust 1.88 or newer, and works in editions 2021 and 2024.
//!
//! # The smallest agent
//!
//! It serves on stdin and stdout, the way editors start agents:
//!
//! ```no_run
//! use attache::{Prompt, Stop, Turn};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), attache::Error> {
//!     attache::serve(attache::agent_fn("echo", "1.0", async |turn: Turn, prompt: Prompt| {
//!         turn.text(prompt.text()).await?;
//!         Ok(Stop::EndTurn)
//!     }))
//!     .stdio()
//!     .await
//! }
//! ```
//!
//! An agent with state implements [`agent::Agent`], which opens sessions, and [`agent::Session`], which answers prompts.
//! What else it can do is said by small traits such as [`agent::Restore`] and registered with [`agent::Server`]: what is
//! offered to clients follows from that.
//!
//! # The smallest client
//!
//! It starts an agent, and reads a turn as a stream of events that can be answered:
//!
//! ```no_run
//! use attache::{Client, Event};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), attache::Error> {
//!     let agent = Client::new("my-client", "1.0").launch(["some-agent", "--acp"]).await?;
//!     let session = agent.session("/home/me/project").open().await?;
//!     let mut turn = session.prompt("fix the failing test").await?;
//!     while let Some(event) = turn.next().await? {
//!         match event {
//!             Event::Update(update) => println!("{update:?}"),
//!             Event::Permission(ask) => ask.allow_once().await?,
//!             other => other.decline().await?,
//!         }
//!     }
//!     println!("{:?}", turn.stop());
//!     Ok(())
//! }
//! ```
//!
//! # What to rely on
//!
//! - A handler may always ask the peer and wait for the answer. No session blocks another.
//! - The updates of a session come in the order they were sent, and the end of a turn after all of its updates.
//! - Everything is bounded by [`Limits`]. A slow reader slows its writer; nothing is dropped.
//! - What is dropped is answered: a reply with an error, a permission with `cancelled`, a turn with a cancel.
//! - Only a clear yes is a yes. Whatever is unknown is kept, and is never taken for approval.
//! - Bad input never ends a conversation, and is never repeated in an error or a log.
//!
//! ARCHITECTURE.md in the repository has these and the rest as eleven laws. Each has tests that carry its number.
//!
//! # Features
//!
//! On by default:
//!
//! - `agent` and `client` are the two sides: the modules of these names.
//! - `process` launches agents and other programs: [`Client::launch`](Client), the module `process`.
//! - `bridge` lets a client and an agent of different versions talk: `proto::bridge`.
//! - `relay` passes messages between a client and an agent: the module `relay`. It includes `bridge`.
//! - `serde` adds extension methods with types of your own, and serde's traits for the types of [`model`].
//! - `view` folds the updates of a session into what there is to show: `SessionView`, `proto::view`.
//!
//! Off by default:
//!
//! - `stream` adds `futures::Stream` for the events of turns, sessions and connections.
//! - `tracing` adds spans of `tracing` for connections, sessions, turns and requests. They hold nothing that was said.

#![cfg_attr(
    not(all(feature = "agent", feature = "client")),
    allow(dead_code, unused_imports, unused_macros, reason = "some of what a connection can do is for one side only")
)]

#[cfg(feature = "agent")]
pub mod agent;
mod cancel;
#[cfg(feature = "client")]
pub mod client;
pub mod draft;
mod error;
mod exit;
#[cfg(feature = "serde")]
mod extension;
#[cfg(feature = "process")]
mod launch;
mod limits;
mod link;
pub mod private;
#[cfg(feature = "process")]
pub mod process;
mod prompt;
mod queue;
mod random;
#[cfg(feature = "relay")]
pub mod relay;
mod report;
mod spans;
pub mod stdio;
pub mod trace;
pub mod transport;

#[cfg(feature = "agent")]
pub use agent::{Turn, agent_fn, serve};
pub use attache_proto as proto;
pub use attache_proto::Dialect;
pub use attache_proto::conversation::Protocol;
pub use attache_proto::frame::Framing;
pub use attache_proto::model;
pub use attache_proto::model::prompt::StopReason as Stop;
/// A session as a client shows it:
///
/// ```no_run
/// use attache::{Client, Event, Prompt, SessionView};
///
/// # async fn example() -> Result<(), attache::Error> {
/// let agent = Client::new("my-editor", "1.0").launch(["some-agent", "--acp"]).await?;
/// let session = agent.session("/home/me/project").open().await?;
/// let mut view = SessionView::new();
/// view.apply_options(session.options());
/// view.apply_commands(session.commands().to_vec());
///
/// let prompt = Prompt::from("fix the failing test");
/// view.user_prompt(&prompt.blocks);
/// view.begin_turn();
/// let mut turn = session.prompt(prompt).await?;
/// while let Some(event) = turn.next().await? {
///     match event {
///         Event::Update(update) => {
///             view.apply(&update);
///         }
///         Event::Permission(ask) => {
///             view.apply_permission(&ask);
///             ask.allow_once().await?;
///         }
///         other => other.decline().await?,
///     }
/// }
/// if let Some(stop) = turn.stop() {
///     view.end_turn(stop);
/// }
/// # Ok(())
/// # }
/// ```
///
#[cfg(feature = "view")]
#[doc(inline)]
pub use attache_proto::view::SessionView;
pub use cancel::CancelToken;
#[cfg(feature = "client")]
pub use client::{Client, Connection, Event};
pub use error::{Closed, Error};
pub use exit::ExitStatus;
#[cfg(feature = "process")]
pub use launch::{AgentExit, LaunchCause, LaunchError};
pub use limits::Limits;
pub use prompt::Prompt;
pub use report::Report;
pub use transport::pair;

/// The programs in the documents of the repository have to compile.
#[cfg(all(doctest, feature = "agent", feature = "process", feature = "serde", feature = "view"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../README.md")]
    struct CrateReadme;
    #[doc = include_str!("../../../docs/migration.md")]
    struct Migration;
    #[doc = include_str!("../../../docs/writing-an-agent.md")]
    struct WritingAnAgent;
    #[doc = include_str!("../../../docs/writing-a-client.md")]
    struct WritingAClient;
}
