//! x

pub mod process;
mod stdio;
