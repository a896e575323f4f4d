//! Attacks on people who run agents, through the real `attache`: what an agent, a repository, a model or a command that
//! means harm can try. Each test is an attack that got through once, or one of its kin.
//!
//! `cargo test -p attache-host --test attacks`. The command is built first, so the first test takes a while.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs, reason = "a test fails by panicking")]

mod addresses;
mod arguments;
mod around;
mod commands;
mod environment;
mod escapes;
mod everyday;
mod files;
mod grants;
mod identity;
mod installing;
mod memory;
mod processes;
mod question;
mod reading;
mod records;
mod rules;
mod sandbox;
mod support;
mod trusting;
mod unasked;
mod views;
