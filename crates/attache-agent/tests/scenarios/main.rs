//! Whole turns of the coding agent: a folder and a scripted model in, what the person saw and the folder out.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod tools;
