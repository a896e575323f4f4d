//! Test an agent or a client of the Agent Client Protocol, message by message.
//!
//! [`RawPeer`] plays a transcript against the other end: what it sends, what has to come back. It knows nothing of the
//! protocol and sends what the script says, so it can also send what is wrong:
//!
//! ```
//! use attache_testkit::RawPeer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (near, far) = tokio::io::duplex(4096);
//! # let agent = tokio::spawn(async move {
//! #     RawPeer::new(far).play("<-- {'id':'$i','method':'initialize'}\n--> {'id':'$i','result':{'protocolVersion':1}}").await
//! # });
//! // … serve the agent that is tested on `far` …
//! let mut client = RawPeer::new(near);
//! client
//!     .play(
//!         "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
//!          <-- {'id':0,'result':{'protocolVersion':1}}",
//!     )
//!     .await;
//! # agent.await.unwrap();
//! # }
//! ```
//!
//! Beside it: streams that break off or deliver byte by byte ([`Cut`], [`Dribble`]), an allocator that counts
//! ([`CountingAllocator`]), peers that break one rule ([`defect`]), repeatable chance ([`Dice`]), a time limit for a child ([`TimeLimit`]), and two servers on the loopback device: one with a scripted model
//! ([`model_server`]), one with fixed pages ([`HttpFixture`]). Everything here is for tests only.
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod alloc;
mod conversation;
pub mod defect;
mod dice;
mod fault;
mod http;
mod http_fixture;
pub mod model_server;
#[cfg(test)]
mod raw_client;
mod tally;
mod time_limit;
mod transcript;

pub use alloc::CountingAllocator;
#[doc(hidden)]
pub use conversation::conversation;
pub use dice::Dice;
pub use fault::{Cut, Dribble};
pub use http_fixture::{HttpAsked, HttpFixture, Response};
pub use time_limit::TimeLimit;
pub use transcript::{RawPeer, matches};
