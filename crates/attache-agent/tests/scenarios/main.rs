//! Whole turns of the coding agent: a folder and a scripted model in, what the person saw and the folder out.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod clumsy;
mod commands;
mod compaction;
mod confined;
mod content;
mod context;
mod files;
mod hooks;
mod memory;
mod modes;
mod offline;
mod order;
mod own;
mod permissions;
mod requests;
mod results;
mod shown;
mod skills;
mod slash;
mod small;
mod stops;
mod subagents;
mod through_client;
mod trouble;
mod undo;
mod undo_others;
mod written;

use attache_testkit::model_server::Answer;
use serde_json::Value;

/// A world whose model does what the lines of a prompt say.
async fn scripted() -> support::World {
    support::World::new("openai:scripted", Some(attache_testkit::model_server::ModelServer::scripted().await))
}

/// A model that makes these calls, one a request, and is done.
fn calling(calls: Vec<(&str, Value)>) -> Vec<Answer> {
    let calls = calls.into_iter().map(|(name, arguments)| Answer::new().call(name, arguments));
    calls.chain([Answer::text("Done.")]).collect()
}
