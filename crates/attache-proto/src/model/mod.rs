//! The protocol's types, by topic: one set for all versions, with the meaning of version 2.
//!
//! What all topics are made of is here. What may still change is in [`unstable`].

pub mod auth;
mod base;
pub mod capability;
pub mod command;
pub mod config;
pub mod content;
pub mod diff;
pub mod elicitation;
pub mod error;
pub mod form;
pub mod fs;
pub mod initialize;
pub mod mcp;
pub mod notice;
mod patch;
pub mod permission;
pub mod plan;
pub mod prompt;
pub mod request;
pub mod session;
pub mod state;
pub mod terminal;
pub mod tool;
pub mod unstable;
pub mod update;

pub use crate::json::RawJson;
pub use base::*;

/// Every type, for tables that name them all.
#[allow(unused_imports, reason = "not every table names everything")]
pub(crate) mod all {
    pub(crate) use super::auth::*;
    pub(crate) use super::capability::*;
    pub(crate) use super::command::*;
    pub(crate) use super::config::*;
    pub(crate) use super::content::*;
    pub(crate) use super::diff::*;
    pub(crate) use super::elicitation::*;
    pub(crate) use super::error::*;
    pub(crate) use super::form::*;
    pub(crate) use super::fs::*;
    pub(crate) use super::initialize::*;
    pub(crate) use super::mcp::*;
    pub(crate) use super::notice::*;
    pub(crate) use super::permission::*;
    pub(crate) use super::plan::*;
    pub(crate) use super::prompt::*;
    pub(crate) use super::request::*;
    pub(crate) use super::session::*;
    pub(crate) use super::state::*;
    pub(crate) use super::terminal::*;
    pub(crate) use super::tool::*;
    pub(crate) use super::unstable::*;
    pub(crate) use super::update::*;
    pub(crate) use super::*;
}

#[cfg(test)]
mod tests;
