//! What a child writes to stdout and stderr, in one pipe.

use std::{
    io,
    pin::Pin,
    process::Stdio,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};

/// What a child writes to stdout and stderr, in the order in which it is written: see
/// [`Command::spawn_merged`](super::Command::spawn_merged).
#[derive(Debug)]
pub struct Output(sys::Pipe);

impl Output {
    /// A new pipe, and its two ends for the child.
    pub(super) fn new() -> io::Result<(Self, Stdio, Stdio)> {
        let (pipe, stdout, stderr) = sys::open()?;
        Ok((Self(pipe), stdout, stderr))
    }

    /// Reads what is in the pipe already, without waiting for more. 0 if there is nothing.
    ///
    /// All that a child wrote before its end was known is there by then.
    pub async fn read_available(&mut self, buffer: &mut [u8]) -> usize {
        sys::read_available(&mut self.0, buffer).await
    }
}

impl AsyncRead for Output {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        sys::poll_read(&mut self.0, context, out)
    }
}

#[cfg(unix)]
mod sys {
    use std::os::fd::AsRawFd as _;

    use super::*;

    pub(super) type Pipe = tokio::net::unix::pipe::Receiver;

    pub(super) fn open() -> io::Result<(Pipe, Stdio, Stdio)> {
        let (output, input) = io::pipe()?;
        Ok((Pipe::from_owned_fd(output.into())?, input.try_clone()?.into(), input.into()))
    }

    pub(super) fn poll_read(pipe: &mut Pipe, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(pipe).poll_read(context, out)
    }

    /// Asks the kernel and not the runtime, which may not have heard yet that there is something.
    pub(super) async fn read_available(pipe: &mut Pipe, buffer: &mut [u8]) -> usize {
        // SAFETY: the descriptor is open and does not block, and the buffer has as many bytes as we say.
        let length = unsafe { libc::read(pipe.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(length).unwrap_or_default()
    }
}

#[cfg(windows)]
mod sys {
    use std::{fs::OpenOptions, future::Future as _, pin::pin, task::Waker, time::Duration};

    use tokio::{
        io::AsyncReadExt as _,
        net::windows::named_pipe::{NamedPipeServer, ServerOptions},
        time::timeout,
    };

    use super::*;

    /// A named pipe, because those without a name can only be read by blocking.
    pub(super) type Pipe = NamedPipeServer;

    pub(super) fn open() -> io::Result<(Pipe, Stdio, Stdio)> {
        // The name is used here and now. Whoever guesses it and is faster takes the only place, and we fail.
        let name = format!(r"\\.\pipe\attache-{}-{:016x}{:016x}", std::process::id(), random(), random());
        let mut options = ServerOptions::new();
        options.access_outbound(false).first_pipe_instance(true).max_instances(1);
        let pipe = options.create(&name)?;
        let input = OpenOptions::new().write(true).open(&name)?;
        let is_connected = {
            let mut connecting = pin!(pipe.connect());
            connecting.as_mut().poll(&mut Context::from_waker(Waker::noop()))?
        };
        if is_connected.is_pending() {
            return Err(io::Error::other("the pipe for the output is not connected"));
        }
        Ok((pipe, input.try_clone()?.into(), input.into()))
    }

    /// Keys that the standard library takes from the system's chance.
    fn random() -> u64 {
        use std::hash::{BuildHasher as _, Hasher as _, RandomState};
        RandomState::new().build_hasher().finish()
    }

    pub(super) fn poll_read(pipe: &mut Pipe, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(pipe).poll_read(context, out) {
            // The end, as Windows says it.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            result => result,
        }
    }

    /// The runtime reads ahead, and hears of what it has read when it next looks at its events, which it does before it
    /// looks at its timers.
    pub(super) async fn read_available(pipe: &mut Pipe, buffer: &mut [u8]) -> usize {
        const LOOK: Duration = Duration::from_millis(2);
        match timeout(LOOK, pipe.read(buffer)).await {
            Ok(Ok(length)) => length,
            Ok(Err(_)) | Err(_) => 0,
        }
    }
}

#[cfg(not(any(unix, windows)))]
mod sys {
    use super::*;

    pub(super) type Pipe = tokio::io::Empty;

    pub(super) fn open() -> io::Result<(Pipe, Stdio, Stdio)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn poll_read(pipe: &mut Pipe, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(pipe).poll_read(context, out)
    }

    pub(super) async fn read_available(_: &mut Pipe, _: &mut [u8]) -> usize {
        0
    }
}
