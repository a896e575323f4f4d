//! Messages over a WebSocket, the same for both ends.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use attache::proto::json::RawJson;
use attache::proto::rpc::{Envelope, parse};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message, Utf8Bytes};

use crate::channel::{Channel, Next, Number, Pushed};
use crate::intake::{Held, Metered};
use crate::message::{Kind, NotOne, STOPPING_NOTICE, parts, read_received, received};

/// How often the peer is asked whether it is there.
pub(crate) const PING: Duration = Duration::from_secs(15);
/// How long it may say nothing at all.
const SILENCE: Duration = Duration::from_secs(45);
/// After so many bytes, or so many messages, the peer is told that they have arrived.
pub(crate) const TELL_BYTES: usize = 64 << 10;
const TELL_MESSAGES: u64 = 64;
/// How soon it is told of fewer.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// How long a close frame may take.
const CLOSING: Duration = Duration::from_secs(2);
/// How many messages are moved before other tasks get their turn.
const AT_ONCE: usize = 128;

/// How a socket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketEnd {
    /// It broke, or the peer says nothing any more.
    Lost,
    /// The peer closed it.
    Closed,
    /// Everything is said: the program is done, or it was told to stop.
    Over,
    /// Another socket took its place.
    Replaced,
    /// The peer broke a rule of the transport.
    Protocol,
    /// The peer sent more than it may.
    TooLong,
}

impl SocketEnd {
    /// The code and the words for the peer.
    fn close_frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            SocketEnd::Lost | SocketEnd::Closed => return None,
            SocketEnd::Over => (CloseCode::Away, "the conversation is over"),
            SocketEnd::Replaced => (CloseCode::Policy, "another socket took its place"),
            SocketEnd::Protocol => (CloseCode::Protocol, "the first message has to be `initialize`"),
            SocketEnd::TooLong => (CloseCode::Size, "message too long"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

/// How a socket is set up.
pub(crate) fn config(longest: usize) -> WebSocketConfig {
    // What is not needed for an idle connection is not held for one.
    WebSocketConfig::default()
        .read_buffer_size(8 << 10)
        .write_buffer_size(16 << 10)
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest))
}

/// Moves messages between a socket and a channel until one of them ends, and says goodbye. A client has somebody who hears that
/// the server stops.
pub(crate) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<Metered<S>>,
    channel: &Channel,
    reader: u64,
    stopping: Option<&(dyn Fn() + Sync)>,
) -> SocketEnd {
    let mut ping = interval_at(Instant::now() + PING, PING);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pump = Pump {
        socket,
        channel,
        reader,
        is_server: stopping.is_none(),
        stopping,
        ping,
        heard: Instant::now(),
        staged: None,
        is_dirty: false,
        program_is_over: false,
        unread: None,
        untold: (0, 0),
        tell: None,
        is_tell_set: false,
        is_greeted: channel.received() > 0,
    };
    let end = std::future::poll_fn(|cx| pump.poll(cx)).await;
    if let Some(frame) = end.close_frame() {
        // The peer may be gone already.
        let _ = tokio::time::timeout(CLOSING, socket.close(Some(frame))).await;
    }
    end
}

/// A message that came in, and what counts for it once there is room.
struct Unread {
    text: String,
    is_counted: bool,
    held: Option<Held>,
}

struct Pump<'a, S> {
    socket: &'a mut WebSocketStream<Metered<S>>,
    channel: &'a Channel,
    reader: u64,
    is_server: bool,
    /// At the client: who hears that the server stops.
    stopping: Option<&'a (dyn Fn() + Sync)>,
    ping: Interval,
    heard: Instant,
    /// What is sent next.
    staged: Option<Message>,
    is_dirty: bool,
    program_is_over: bool,
    /// What came in and has no room yet.
    unread: Option<Unread>,
    /// Messages and bytes that came in since the peer was told.
    untold: (u64, usize),
    /// When the peer is told at the latest. A peer with little room waits for it.
    tell: Option<Pin<Box<Sleep>>>,
    is_tell_set: bool,
    is_greeted: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Pump<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SocketEnd> {
        if let Err(end) = self.poll_in(cx) {
            return Poll::Ready(end);
        }
        if self.ping.poll_tick(cx).is_ready() {
            if self.heard.elapsed() > SILENCE {
                return Poll::Ready(SocketEnd::Lost);
            }
            // Between messages: what is staged goes first.
            if self.staged.is_none() {
                self.staged = Some(Message::Ping(Default::default()));
            }
            // Registered anew.
            let _ = self.ping.poll_tick(cx);
        }
        match self.poll_out(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    fn poll_in(&mut self, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
        for _ in 0..AT_ONCE {
            if let Some(Unread { text, is_counted, held }) = &mut self.unread {
                if !*is_counted {
                    match self.socket.get_mut().poll_held(cx, text.len()) {
                        Poll::Ready(counted) => (*held, *is_counted) = (counted, true),
                        Poll::Pending => {
                            self.heard = Instant::now();
                            return Ok(());
                        }
                    }
                }
                match self.channel.poll_push(cx, text, held, Number::Next(self.reader)) {
                    Poll::Ready(Pushed::Replaced) => return Err(SocketEnd::Replaced),
                    Poll::Ready(Pushed::Closed) if self.is_server => return Err(SocketEnd::Over),
                    // The program reads no more, and may still have something to say.
                    Poll::Ready(_) => self.unread = None,
                    // It is us who do not read.
                    Poll::Pending => {
                        self.heard = Instant::now();
                        return Ok(());
                    }
                }
            }
            let message = match Pin::new(&mut *self.socket).poll_next(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => return Err(SocketEnd::Lost),
                Poll::Ready(Some(Err(error))) => return Err(end_of(&error)),
                Poll::Ready(Some(Ok(message))) => message,
            };
            self.heard = Instant::now();
            match message {
                Message::Text(text) => self.take(&text)?,
                Message::Close(_) => return Err(SocketEnd::Closed),
                // The answer to a ping is written with what is written next.
                Message::Ping(_) => self.is_dirty = true,
                _ => {}
            }
            if self.unread.is_none() {
                self.socket.get_mut().forget();
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// A text that came in.
    fn take(&mut self, text: &Utf8Bytes) -> Result<(), SocketEnd> {
        if self.channel.resumes()
            && let Some(count) = read_received(text)
        {
            self.channel.acknowledge(&None, count);
            return Ok(());
        }
        if let Some(stopping) = self.stopping.filter(|_| text.as_str() == STOPPING_NOTICE && self.channel.resumes()) {
            stopping();
            return Ok(());
        }
        if self.is_server && !self.is_greeted {
            match parts(text) {
                Ok(parts) if parts.method == "initialize" && matches!(parts.kind, Kind::Request(_)) => {
                    self.is_greeted = true;
                }
                Ok(_) => return Err(SocketEnd::Protocol),
                Err(why) => {
                    self.staged = Some(Message::Text(refusal(why).into()));
                    return Ok(());
                }
            }
        }
        if !self.is_tell_set && self.channel.resumes() {
            let tell = self.tell.get_or_insert_with(|| Box::pin(tokio::time::sleep(TELL_AFTER)));
            tell.as_mut().reset(Instant::now() + TELL_AFTER);
            self.is_tell_set = true;
        }
        self.untold = (self.untold.0 + 1, self.untold.1 + text.len());
        self.unread = Some(Unread { text: text.as_str().to_owned(), is_counted: false, held: None });
        Ok(())
    }

    fn poll_out(&mut self, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
        for _ in 0..AT_ONCE {
            if self.staged.is_none() {
                self.stage(cx)?;
            }
            if self.staged.is_none() {
                return self.poll_flush(cx);
            }
            match Pin::new(&mut *self.socket).poll_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(end_of(&error)),
                Poll::Ready(Ok(())) => {}
            }
            if let Some(message) = self.staged.take() {
                Pin::new(&mut *self.socket).start_send(message).map_err(|error| end_of(&error))?;
                self.is_dirty = true;
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    /// Takes what is to be sent next, if there is something.
    fn stage(&mut self, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
        let is_due = self.is_tell_set && self.tell.as_mut().is_some_and(|tell| tell.as_mut().poll(cx).is_ready());
        self.is_tell_set &= !is_due;
        let is_late = is_due && self.untold.0 > 0;
        if (self.untold.0 >= TELL_MESSAGES || self.untold.1 >= TELL_BYTES || is_late) && self.unread.is_none() {
            self.untold = (0, 0);
            if self.channel.resumes() {
                self.staged = Some(Message::Text(received(self.channel.received()).into()));
                return Ok(());
            }
        }
        if self.program_is_over {
            return Ok(());
        }
        match self.channel.poll_next(cx, &None, self.reader) {
            Poll::Ready(Next::Message(_, text)) => self.staged = Some(Message::Text(text)),
            Poll::Ready(Next::Over) => self.program_is_over = true,
            Poll::Ready(Next::Replaced) => return Err(SocketEnd::Replaced),
            Poll::Pending => {}
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
        if self.is_dirty {
            match Pin::new(&mut *self.socket).poll_flush(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(end_of(&error)),
                Poll::Ready(Ok(())) => self.is_dirty = false,
            }
        }
        if self.program_is_over { Err(SocketEnd::Over) } else { Ok(()) }
    }
}

fn end_of(error: &SocketError) -> SocketEnd {
    match error {
        SocketError::Capacity(_) => SocketEnd::TooLong,
        SocketError::ConnectionClosed | SocketError::AlreadyClosed => SocketEnd::Closed,
        _ => SocketEnd::Lost,
    }
}

/// What is answered to a text that is no message, with its id if it has one. A response is never answered.
pub(crate) fn bad_message(text: &str) -> Option<String> {
    let id = match parse(text) {
        Envelope::One(Ok(_)) => return None,
        Envelope::One(Err(invalid)) if invalid.is_response => return None,
        Envelope::One(Err(invalid)) => invalid.id,
        _ => None,
    };
    let why = parts(text).err()?;
    Some(match id {
        None => refusal(why).to_owned(),
        Some(id) => {
            let (id, null) = (RawJson::from_model(&id), r#""id":null"#);
            refusal(why).replacen(null, &format!(r#""id":{}"#, id.as_str()), 1)
        }
    })
}

/// What is answered to a text that is no message, when there is no program yet that could.
pub(crate) fn refusal(why: NotOne) -> &'static str {
    match why {
        NotOne::NotJson => r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        NotOne::Batch => {
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batches are not supported over this transport"}}"#
        }
        NotOne::Invalid => r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}"#,
    }
}
