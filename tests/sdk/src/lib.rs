//! Nothing but a place for the tests: Attaché and the official Rust SDK, talking to each other in memory, over HTTP and over WebSocket.
