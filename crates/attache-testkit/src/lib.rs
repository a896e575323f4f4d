//! Test tools for Attaché: transcripts, a raw peer that plays them, and streams with faults.
//!
//! There are two servers on the loopback device: one with a scripted model ([`model_server`]), one with fixed pages
//! ([`HttpFixture`]).
//!
//! Everything here is for tests. A raw peer is scripted: it knows nothing of the protocol and says what it is told to.

mod alloc;
mod conversation;
mod dice;
mod fault;
mod http;
mod http_fixture;
pub mod model_server;
#[cfg(test)]
mod raw_client;
mod tally;
mod transcript;

pub use alloc::CountingAllocator;
pub use conversation::conversation;
pub use dice::Dice;
pub use fault::{Cut, Dribble};
pub use http_fixture::{HttpAsked, HttpFixture, Response};
pub use transcript::{RawPeer, matches};
