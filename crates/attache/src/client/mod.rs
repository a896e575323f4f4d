//! The client's end: start an agent, open sessions, send prompts, and answer what the agent asks.

mod connect;
mod event;
mod inbox;
mod router;
mod session;
mod turn;

pub use connect::{Client, Connection};
pub use event::{Event, ExtensionCall, ExtensionNotice, Pending, PermissionAsk};
#[cfg(feature = "stream")]
pub use session::Events;
pub use session::{Session, SessionBuilder};
pub use turn::Turn;
