//! Windows has no Unix sockets that its access lists protect, and nobody there passes on sockets.

use super::listen::Listening;
use super::options::Serve;
use crate::exit::Failure;

pub(super) fn listen(_: &str, options: &Serve) -> Result<Listening, Failure> {
    Err(Failure::usage(format!(
        "cannot listen on `{}`: there are no Unix sockets on Windows\nhint: an address and a port, as in 127.0.0.1:7316",
        options.listen
    )))
}

pub(super) fn inherited(_: &Serve) -> Result<Option<Listening>, Failure> {
    Ok(None)
}
