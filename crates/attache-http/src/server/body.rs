//! The body of a request, read as far as there is room for it.

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use super::answer::Refusal;
use crate::intake::Held;

/// What is refused for want of room. Clients try again later.
pub(super) const CROWDED: Refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too much is being posted");

/// What is made ready for a body before it arrives.
const AT_FIRST: u64 = 16 << 10;

/// Reads a body of at most so many bytes. They count from when they arrive.
pub(super) async fn read(mut body: Incoming, longest: usize, held: &mut Held) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::with_capacity(body.size_hint().lower().min(AT_FIRST) as usize);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(StatusCode::BAD_REQUEST.into()) };
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > longest - bytes.len() {
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "message too long"));
        }
        if !held.grow(data.len()) {
            return Err(CROWDED);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
