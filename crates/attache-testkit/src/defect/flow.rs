//! What goes on through a defect.

use std::time::Duration;

use serde_json::Value;

/// The way that a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the defective peer.
    FromPeer,
    /// To the defective peer.
    ToPeer,
}

impl Way {
    /// The other way.
    pub fn back(self) -> Way {
        match self {
            Way::FromPeer => Way::ToPeer,
            Way::ToPeer => Way::FromPeer,
        }
    }
}

/// Something that goes one way: mostly a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    pub(super) way: Way,
    /// The bytes with the end of their line; `None` closes the way.
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) delay: Option<Duration>,
}

impl Flow {
    /// A message.
    pub fn message(way: Way, message: Value) -> Flow {
        Flow::line(way, &message.to_string())
    }

    /// A message from the peer.
    pub fn from_peer(message: Value) -> Flow {
        Flow::message(Way::FromPeer, message)
    }

    /// A message to the peer.
    pub fn to_peer(message: Value) -> Flow {
        Flow::message(Way::ToPeer, message)
    }

    /// A line to the letter; its end is added.
    pub fn line(way: Way, line: &str) -> Flow {
        Flow::bytes(way, format!("{line}\n"))
    }

    /// Bytes to the letter; nothing is added.
    pub fn bytes(way: Way, bytes: impl Into<Vec<u8>>) -> Flow {
        Flow { way, bytes: Some(bytes.into()), delay: None }
    }

    /// The end of this way: nothing more goes it.
    pub fn close(way: Way) -> Flow {
        Flow { way, bytes: None, delay: None }
    }

    /// The same after some time. What comes meanwhile does not wait for it.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Flow {
        self.delay = Some(delay);
        self
    }
}
