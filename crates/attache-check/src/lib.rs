//! Tells whether an agent or a client keeps to the Agent Client Protocol.
//!
//! A [`Record`] holds what both sides sent. [`judge`] reads it with the [`rules`], each a row with an id, a sentence and a function
//! that looks at the recorded exchange and nothing else, so a bug report, a trace and a live check are judged alike.
//!
//! ```
//! use attache_check::{Choice, Record, Side, judge};
//!
//! let record = Record::from_transcript("
//!     --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
//!     <== {\"id\":0,\"result\":{\"protocolVersion\":1}}
//! ")?;
//! let judged = judge(&record, Side::Agent, &Choice::default());
//! let version = judged.iter().find(|judged| judged.rule.id == "envelope/version").unwrap();
//! assert_eq!(version.findings[0].seen, "a message without `\"jsonrpc\":\"2.0\"`");
//! # Ok::<(), attache_check::record::TranscriptError>(())
//! ```
// The program in the README has to compile, too.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod exchange;
mod judge;
pub mod probe;
pub mod record;
pub mod report;
pub mod rule;
pub mod rules;
pub mod trace;
pub mod view;
mod waivers;

pub use judge::{Choice, Finding, Judged, judge};
pub use record::{Record, Side};
pub use report::{Report, Run};
pub use rule::{Binds, Dialects, Level, Rule};
pub use waivers::{WaiverError, Waivers};
