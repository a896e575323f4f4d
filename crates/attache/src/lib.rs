//! Write an agent or a client of the Agent Client Protocol (ACP): one API for protocol v1 and v2.

pub mod agent;
mod batch;
pub mod client;
mod error;
mod extension;
mod launch;
mod limits;
mod link;
pub mod process;
mod prompt;
mod random;
mod report;
mod stdio;
pub mod trace;

pub use agent::{Turn, agent_fn, serve};
pub use attache_proto::Dialect;
pub use attache_proto::frame::Framing;
pub use attache_proto::model;
pub use attache_proto::model::StopReason as Stop;
pub use batch::{Answer, Batch};
pub use client::{Client, Connection, Event, Protocol};
pub use error::{Closed, Error};
pub use launch::LaunchFailure;
pub use limits::Limits;
pub use prompt::Prompt;
pub use report::Report;
