//! The best case of the SDK: a runtime of one thread, and pipes that do not block.

use std::os::fd::{FromRawFd, OwnedFd};

use agent_client_protocol::{ByteStreams, Error, Result};
use tokio::net::unix::pipe;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // SAFETY: descriptors 0 and 1 are open and nothing else here uses them.
    let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let input = pipe::Receiver::from_owned_fd(input).map_err(Error::into_internal_error)?;
    let output = pipe::Sender::from_owned_fd(output).map_err(Error::into_internal_error)?;
    agent_rust_sdk::serve(ByteStreams::new(output.compat_write(), input.compat())).await
}
