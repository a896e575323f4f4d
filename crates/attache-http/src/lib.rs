//! The Agent Client Protocol between machines: Streamable HTTP and WebSocket, server and client.
//!
//! Any agent or client of [`attache`] runs over it unchanged: a connection is a [`Transport`](attache::transport::Transport).
//! [`HttpServer`] gives one for each client that connects, [`Remote`] one to an agent; [`ServeHttp`] and [`ConnectRemote`] are both
//! in one call.
//!
//! # When a connection is lost
//!
//! Both ends of this crate agree in `_meta` of `initialize` (`"attache/resume": true`) to keep what they sent until the other has told
//! that it arrived. Then a lost connection is taken up again, and nothing is lost or repeated:
//!
//! - Streams of events have ids, and begin after `Last-Event-ID`.
//! - Posted messages have a number, `Attache-Message`; one that came before is not taken twice.
//! - A WebSocket is opened again with `Acp-Connection-Id`, and both ends tell how many messages they have: `Attache-Received`.
//! - In between, the notification `_attache/received` tells how many messages of a stream have arrived.
//! - A server that is told to stop says so by the notification `_attache/stopping`, before running turns are ended.
//!
//! With other implementations a lost connection is lost, and the session has to be loaded again.
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod access;
mod channel;
mod client;
mod hex;
mod intake;
mod limits;
mod message;
mod server;
mod socket;
mod sse;
mod verbs;

pub use access::{NoDigest, Principal, TokenDigest, Tokens, new_token};
pub use client::{Connected, Failure, Fingerprint, LinkNews, Remote, RemoteError};
pub use limits::ServerLimits;
pub use server::{Accepted, HttpServer, Listener};
pub use verbs::{ConnectError, ConnectRemote, ServeHttp};
