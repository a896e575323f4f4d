//! What a peer can make a connection keep for ever. One test, because the allocator counts the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache::{Client, Protocol};
use attache_testkit::{CountingAllocator, RawPeer};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Nothing is kept of a request that was refused, also when it is cancelled in the same batch.
#[tokio::test]
async fn requests_that_are_refused_and_cancelled_at_once_leave_nothing_behind() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let mut peer = RawPeer::new(far);
    let (reader, writer) = tokio::io::split(near);
    let client = tokio::spawn(Client::new("test", "1").protocol(Protocol::V1).connect(reader, writer));
    peer.play("<-- {'id':'$init','method':'initialize'}\n--> {'id':'$init','result':{'protocolVersion':1}}").await;
    let _agent = client.await.unwrap().unwrap();
    let mut live = Vec::new();
    for _ in 0..20 {
        let entry = |id: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}},{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
            )
        };
        let batch: Vec<_> = (0..500).map(entry).collect();
        peer.send_bytes(format!("[{}]\n", batch.join(",")).as_bytes()).await;
        assert_eq!(peer.next().await.unwrap().as_array().unwrap().len(), 500);
        live.push(CountingAllocator::live());
    }
    // The first round makes buffers grow.
    assert!(live[19] < live[4] + 64 * 1024, "{live:?}");
}
