//! The task that stands between a peer and whoever talks to it.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::{Defect, Flow, Memory, Way};

/// How much may be on its way unread. Beyond that the line is held in a queue without a limit, so that neither side can keep the other
/// from reading.
const ROOM: usize = 1 << 20;

/// A line that arrived with its end, or the end of its way.
type Arrived = (Way, Option<Vec<u8>>);

/// Puts a defect before a peer; returns the other end.
pub(super) fn start(defect: Defect, peer: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> DuplexStream {
    let (outer, inner) = tokio::io::duplex(ROOM);
    let (peer_reader, peer_writer) = split(peer);
    let (inner_reader, inner_writer) = split(inner);
    let (arrivals, arrived) = unbounded_channel();
    tokio::spawn(read(Way::FromPeer, peer_reader, arrivals.clone()));
    tokio::spawn(read(Way::ToPeer, inner_reader, arrivals));
    let (to_peer, lines) = unbounded_channel();
    tokio::spawn(write(peer_writer, lines));
    let (from_peer, lines) = unbounded_channel();
    tokio::spawn(write(inner_writer, lines));
    tokio::spawn(pass(defect, arrived, from_peer, to_peer));
    outer
}

async fn read(way: Way, stream: impl AsyncRead + Unpin, arrivals: UnboundedSender<Arrived>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match stream.read_until(b'\n', &mut line).await {
            Ok(count) if count > 0 => {
                if arrivals.send((way, Some(line))).is_err() {
                    return;
                }
            }
            _ => {
                let _ = arrivals.send((way, None));
                return;
            }
        }
    }
}

/// Writes what comes, until it is told to close its way or nobody can tell it any more.
async fn write(mut stream: impl AsyncWrite + Unpin, mut lines: UnboundedReceiver<Option<Vec<u8>>>) {
    while let Some(Some(bytes)) = lines.recv().await {
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn pass(
    defect: Defect,
    mut arrived: UnboundedReceiver<Arrived>,
    from_peer: UnboundedSender<Option<Vec<u8>>>,
    to_peer: UnboundedSender<Option<Vec<u8>>>,
) {
    let mut memory = Memory::default();
    while let Some((way, line)) = arrived.recv().await {
        for flow in flows(&defect, &mut memory, way, line) {
            let sender = if flow.way == Way::FromPeer { from_peer.clone() } else { to_peer.clone() };
            match flow.delay {
                // Whoever has closed their end gets nothing more.
                None => drop(sender.send(flow.bytes)),
                Some(delay) => drop(tokio::spawn(async move {
                    sleep(delay).await;
                    drop(sender.send(flow.bytes));
                })),
            }
        }
    }
}

/// What goes on instead of what arrived.
fn flows(defect: &Defect, memory: &mut Memory, way: Way, line: Option<Vec<u8>>) -> Vec<Flow> {
    let Some(line) = line else { return vec![Flow::close(way)] };
    if let Ok(message) = serde_json::from_slice::<Value>(&line) {
        memory.saw(way, &message);
        return (defect.apply)(memory, way, message);
    }
    let changed = defect.apply_to_text.as_ref().and_then(|apply| apply(memory, way, &line));
    changed.unwrap_or_else(|| vec![Flow::bytes(way, line)])
}
