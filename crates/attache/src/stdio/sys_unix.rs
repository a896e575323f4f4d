//! Takes fd 0 and fd 1, and reads and writes each in the fastest way its kind allows.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd},
        unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    },
};

use tokio::net::{UnixStream, unix::pipe};

use super::{
    Reader, Writer,
    blocking::{ThreadReader, ThreadWriter},
};

pub(super) fn take() -> io::Result<(Reader, Writer)> {
    let stdin = duplicate(libc::STDIN_FILENO)?;
    let stdout = duplicate(libc::STDOUT_FILENO)?;
    // What Rust's stdout still has in its buffer was not meant for the wire. It is not flushed here, so it will end up
    // in stderr.
    replace(libc::STDIN_FILENO, File::open("/dev/null")?.as_raw_fd())?;
    replace(libc::STDOUT_FILENO, libc::STDERR_FILENO)?;
    Ok((open_reader(stdin)?, open_writer(stdout)?))
}

/// Gives a byte stream to read from, whatever is behind the descriptor.
pub(super) fn open_reader(fd: OwnedFd) -> io::Result<Reader> {
    Ok(match Kind::of(fd)? {
        Kind::Pipe(file) => Box::new(pipe::Receiver::from_file_unchecked(nonblocking_pipe(file, Direction::Read)?)?),
        Kind::Socket(socket) => Box::new(nonblocking_socket(socket)?),
        Kind::Other(file) => Box::new(ThreadReader::new(file)?),
    })
}

/// Gives a byte stream to write to, whatever is behind the descriptor.
pub(super) fn open_writer(fd: OwnedFd) -> io::Result<Writer> {
    Ok(match Kind::of(fd)? {
        Kind::Pipe(file) => Box::new(pipe::Sender::from_file_unchecked(nonblocking_pipe(file, Direction::Write)?)?),
        Kind::Socket(socket) => Box::new(nonblocking_socket(socket)?),
        Kind::Other(file) => Box::new(ThreadWriter::new(file)?),
    })
}

enum Kind {
    Pipe(File),
    /// Node.js gives its children sockets for stdin and stdout.
    Socket(OwnedFd),
    /// Files, terminals and devices: the runtime cannot wait for these.
    Other(File),
}

impl Kind {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        let file_type = file.metadata()?.file_type();
        Ok(if file_type.is_fifo() {
            Self::Pipe(file)
        } else if file_type.is_socket() {
            Self::Socket(file.into())
        } else {
            Self::Other(file)
        })
    }
}

fn nonblocking_socket(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Read,
    Write,
}

/// The pipe in non-blocking mode, without changing the mode for others who share it, if that can be done.
fn nonblocking_pipe(file: File, direction: Direction) -> io::Result<File> {
    if let Some(own) = reopen(&file, direction) {
        return Ok(own);
    }
    let fd = file.as_raw_fd();
    // SAFETY: the descriptor is open; reading its flags touches no memory.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })?;
    Ok(file)
}

/// Opens a pipe once more, which works where there is a `/proc`. The mode belongs to the opening, not to the pipe.
///
/// Not done with a named pipe: Linux does not tell a new reader of one that all writers have left.
fn reopen(file: &File, direction: Direction) -> Option<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    if !fs::read_link(&path).ok()?.to_str()?.starts_with("pipe:[") {
        return None;
    }
    let mut options = File::options();
    options.read(direction == Direction::Read).write(direction == Direction::Write);
    options.custom_flags(libc::O_NONBLOCK).open(path).ok()
}

/// Makes a copy that children do not inherit.
fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: if the descriptor is not open, the call fails. The borrow does not outlive this function.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    // SAFETY: duplicates a descriptor, touches no memory.
    let copy = check(unsafe { libc::fcntl(borrowed.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Makes `fd` mean what `by` means. Children inherit it.
fn replace(fd: RawFd, by: RawFd) -> io::Result<()> {
    // SAFETY: `fd` is 0 or 1, which no value in the program owns.
    check(unsafe { libc::dup2(by, fd) }).map(drop)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
