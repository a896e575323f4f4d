//! A session of the Agent Client Protocol on a terminal's screen.
//!
//! Everything here is a function of values: what there is to show goes in, and cells of a [`ratatui::buffer::Buffer`]
//! come out; keys go in, and what the person means by them comes out. No IO and no threads, and a clock only to give up a
//! diff that takes too long.

mod ansi;
pub mod composer;
pub mod dialog;
mod diff;
pub mod highlight;
mod image;
pub mod keymap;
pub mod markdown;
pub mod picker;
pub mod status;
pub mod theme;
pub mod transcript;

mod input;
mod text;
mod wrap;

pub use ansi::to_ansi;
