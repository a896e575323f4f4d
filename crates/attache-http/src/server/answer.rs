//! Bodies of answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::connection::Connection;
use crate::channel::{Next, StreamId};
use crate::socket::PING;
use crate::sse;

/// The body of an answer.
pub(crate) enum Body {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Body::Full(Some(bytes.into()).filter(|bytes| !bytes.is_empty()))
    }
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Full(None));
    *response.status_mut() = status;
    response
}

/// Why a request is refused: a status, and a line or a message, which is never what the client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: StatusCode,
    text: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: StatusCode, text: &'static str) -> Self {
        Refusal { status, text }
    }

    pub(crate) fn response(self) -> Response<Body> {
        if self.text.is_empty() {
            return empty(self.status);
        }
        let mut response = json(self.status, self.text);
        if !self.text.starts_with('{') {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        response
    }
}

impl From<StatusCode> for Refusal {
    fn from(status: StatusCode) -> Self {
        Refusal { status, text: "" }
    }
}

/// An answer with a message in it.
pub(crate) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The messages of a stream as events, as they come.
pub(crate) struct Events {
    connection: Arc<Connection>,
    stream: StreamId,
    reader: u64,
    keep_alive: Interval,
    is_over: bool,
}

/// As much is put into one piece. More is not gained by more.
const PIECE: usize = 32 << 10;

impl Events {
    pub(crate) fn response(connection: Arc<Connection>, stream: StreamId, reader: u64) -> Response<Body> {
        // The first goes at once: proxies hold back the head of an answer until its body begins.
        let mut keep_alive = interval_at(Instant::now(), PING);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let events = Events { connection, stream, reader, keep_alive, is_over: false };
        let mut response = Response::new(Body::Events(Box::new(events)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        // A proxy that collects what comes before it passes it on is no use here.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut piece = BytesMut::new();
        while !self.is_over && piece.len() < PIECE {
            match self.connection.channel.poll_next(cx, &self.stream, self.reader) {
                Poll::Ready(Next::Message(number, message)) => {
                    self.connection.metrics().sent(message.len());
                    sse::write(&mut piece, number, &message);
                }
                Poll::Ready(Next::Over | Next::Replaced) => self.is_over = true,
                Poll::Pending => break,
            }
        }
        if !piece.is_empty() {
            self.keep_alive.reset();
            return Poll::Ready(Some(piece.freeze()));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        match self.keep_alive.poll_tick(cx) {
            Poll::Ready(_) => Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.channel.detach(&self.stream, self.reader);
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Events(events) => events.poll_piece(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Full(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Body::Full(bytes) => http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Events(_) => http_body::SizeHint::default(),
        }
    }
}
