//! Commands that run for an agent.
