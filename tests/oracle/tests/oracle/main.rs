//! The official types as the oracle: whatever they can say, we can, and the other way round.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

mod methods;
mod ours;
mod sample;
mod theirs;

/// Every type of ours, whatever its topic.
mod model {
    pub(crate) use attache_proto::model::auth::*;
    pub(crate) use attache_proto::model::capability::*;
    pub(crate) use attache_proto::model::command::*;
    pub(crate) use attache_proto::model::config::*;
    pub(crate) use attache_proto::model::content::*;
    pub(crate) use attache_proto::model::diff::*;
    pub(crate) use attache_proto::model::elicitation::*;
    pub(crate) use attache_proto::model::error::*;
    pub(crate) use attache_proto::model::form::*;
    pub(crate) use attache_proto::model::fs::*;
    pub(crate) use attache_proto::model::initialize::*;
    pub(crate) use attache_proto::model::mcp::*;
    pub(crate) use attache_proto::model::notice::*;
    pub(crate) use attache_proto::model::permission::*;
    pub(crate) use attache_proto::model::plan::*;
    pub(crate) use attache_proto::model::prompt::*;
    pub(crate) use attache_proto::model::request::*;
    pub(crate) use attache_proto::model::session::*;
    pub(crate) use attache_proto::model::state::*;
    pub(crate) use attache_proto::model::terminal::*;
    pub(crate) use attache_proto::model::tool::*;
    pub(crate) use attache_proto::model::unstable::*;
    pub(crate) use attache_proto::model::update::*;
    pub(crate) use attache_proto::model::*;
}
