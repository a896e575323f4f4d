//! Probes for clients: an agent that keeps to the protocol and plays a scenario in each turn, so that there is something to judge.
//!
//! [`serve`] is the agent, for one connection; [`run_client`] starts a client that starts the agent, once for each scenario. What
//! comes of both is a [`Record`](crate::Record) for [`judge`](crate::judge). What a client never did was not tested.

mod answers;
mod batch;
mod driver;
mod options;
mod record_file;
mod run;
mod scenario;
mod scenarios;
mod serve;
mod sessions;
mod turn;

pub use driver::{AgentDriver, Answer};
pub use options::Options;
pub use run::{Ending, ProbeRun, RunLimits, agent_line, run_client};
pub use scenario::{Kind, Scenario, Setup, find, scenarios};
pub use serve::{Selection, serve};
