//! x

pub mod process;
pub mod relay;
mod stdio;
pub mod trace;
