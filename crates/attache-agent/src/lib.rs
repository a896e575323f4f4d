//! A coding agent of the Agent Client Protocol: turn loop, models, tools, MCP and session store.

pub mod cut;
pub mod model;
pub mod store;
pub mod tools;
