//! What goes over the connection.

use attache::Protocol::{V1, V2};
use attache_testkit::defect::{Defect, Flow, Way};

use super::{Row, agent, client, is_begin};

pub(crate) fn rows() -> Vec<Row> {
    let logging = || writing(b"INFO: starting up\n");
    let garbled = || writing(b"\xff\xfe\n");
    vec![
        agent("transport/only-messages", V1, logging()),
        client("transport/only-messages", V2, logging()),
        agent("transport/utf-8", V2, garbled()),
        client("transport/utf-8", V1, garbled()),
    ]
}

/// Writes something where messages belong.
fn writing(bytes: &'static [u8]) -> Defect {
    Defect::in_messages(move |memory, message| {
        let mut flows = Vec::new();
        if is_begin(&message) && memory.is_first("written") {
            flows.push(Flow::bytes(Way::FromPeer, bytes));
        }
        flows.push(Flow::from_peer(message));
        flows
    })
}
