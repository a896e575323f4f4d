//! The Agent Client Protocol as a value: JSON, framing, JSON-RPC, one model and three dialects.
//!
//! This crate does no IO, has no clock, no threads and no async runtime: it is fed bytes, and gives events and bytes back.
//! The crate `attache` puts it on tokio; use this one for another runtime, a blocking program, a browser or a test.
//!
//! Here is a whole agent, without a runtime. It answers `initialize` and refuses the rest:
//!
//! ```
//! use attache_proto::Dialect;
//! use attache_proto::frame::{Frame, Splitter};
//! use attache_proto::json::Reader;
//! use attache_proto::model::error::ErrorObject;
//! use attache_proto::model::initialize::{InitializeRequest, InitializeResponse};
//! use attache_proto::rpc::{Event, Peer, Side};
//!
//! let mut splitter = Splitter::new(None, 1024 * 1024);
//! let mut peer: Peer<()> = Peer::new(Side::Agent);
//! let mut out = Vec::new();
//!
//! // Bytes come in, in pieces of any size.
//! splitter.feed(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","#);
//! splitter.feed(b"\"params\":{\"protocolVersion\":1}}\n");
//!
//! while let Some(frame) = splitter.next_frame() {
//!     let Frame::Message(text) = frame else { continue };
//!     for event in peer.handle_frame(text, &mut out).collect::<Vec<_>>() {
//!         // Events say what the bytes mean.
//!         let Event::Call { call, method, params } = event else { continue };
//!         let request = Reader::new(params.unwrap_or("{}"), Dialect::V1).decode::<InitializeRequest>();
//!         match request {
//!             Ok(_) if method == "initialize" => {
//!                 peer.set_dialect(Dialect::V1);
//!                 peer.answer(call, |writer| writer.value(&InitializeResponse::new(1)), &mut out);
//!             }
//!             _ => peer.refuse(call, &ErrorObject::method_not_found(None), &mut out),
//!         }
//!     }
//! }
//!
//! // Bytes to send are in `out`.
//! assert!(out.starts_with(br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1"#));
//! ```
//!
//! - [`frame`] cuts bytes into messages.
//! - [`rpc`] matches requests and answers.
//! - [`method`] and [`model`] are the protocol's methods and types, the same for all versions.
//! - [`conversation`] is what the messages mean: versions, turns, questions, options.
//! - [`dialect`] says them in the words of a version.
//! - [`json`] reads and writes JSON in one pass.
#![cfg_attr(feature = "view", doc = "- [`view`] folds the updates of a session into what there is to show.")]
#![cfg_attr(feature = "bridge", doc = "- [`bridge`] lets a client and an agent of different versions talk.")]
//!
//! # Features
//!
//! All are on by default: `bridge` and `view` for the modules of these names, `serde` for serde's traits on the types of
//! [`model`].
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

pub mod base64;
#[cfg(feature = "bridge")]
pub mod bridge;
mod codec;
pub mod conversation;
pub mod dialect;
pub mod frame;
pub mod json;
pub mod method;
pub mod model;
pub mod rpc;
#[cfg(feature = "view")]
pub mod view;

pub use codec::{Decode, Encode, IntoField};
pub use dialect::Dialect;
