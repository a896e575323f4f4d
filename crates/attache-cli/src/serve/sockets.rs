//! Unix sockets to listen on, and sockets that somebody else opened for us.

use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use attache_http::Listener;
use tokio::net::{TcpListener, UnixListener};

use super::listen::{Listening, tcp};
use super::options::Serve;
use crate::exit::Failure;

/// Where sockets begin that somebody else opened for us.
const FIRST_SOCKET: i32 = 3;

fn cannot(options: &Serve) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::usage(format!("cannot listen on `{}`: {error}", options.listen))
}

/// Listens on a Unix socket.
pub(super) fn listen(path: &str, options: &Serve) -> Result<Listening, Failure> {
    let listener = bind_unix(Path::new(path)).map_err(cannot(options))?;
    Ok(unix(listener, options.listen.clone()))
}

/// Listens on the socket that we were started with, if we were.
pub(super) fn inherited(options: &Serve) -> Result<Option<Listening>, Failure> {
    let address = "a socket that was passed on".to_owned();
    match take_inherited().map_err(cannot(options))? {
        None => Ok(None),
        Some(Inherited::Unix(listener)) => Ok(Some(unix(listener, address))),
        Some(Inherited::Tcp(listener)) => tcp(listener, options).map(Some),
    }
}

fn unix(listener: UnixListener, address: String) -> Listening {
    Listening { listener: Listener::unix(listener), address, hosts: Vec::new(), fingerprint: None }
}

/// A socket that only its owner can open. One that a server left behind is replaced.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket"));
        }
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "a server listens there, or somebody else's does",
                ));
            }
        },
    }
    // Bound under another name, so that nobody can open it before it is private.
    let hidden = path.with_extension(format!("{}.tmp", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&hidden)?;
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o600))?;
    // A link does not replace what another server has put there meanwhile.
    let linked = std::fs::hard_link(&hidden, path);
    std::fs::remove_file(&hidden)?;
    linked?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// A socket that systemd opened for us.
enum Inherited {
    Tcp(TcpListener),
    Unix(UnixListener),
}

fn take_inherited() -> io::Result<Option<Inherited>> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) || number("LISTEN_FDS") != Some(1) {
        return Ok(None);
    }
    // SAFETY: all zeros is a valid address, and its length is given.
    let family = unsafe {
        let mut address: libc::sockaddr_storage = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        if libc::getsockname(FIRST_SOCKET, (&raw mut address).cast(), &raw mut length) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::c_int::from(address.ss_family)
    };
    // Agents that are started here do not get it, too.
    // SAFETY: the descriptor is open, as was seen above, and only its flag is set.
    if unsafe { libc::fcntl(FIRST_SOCKET, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was passed to this process, which owns it from now on and takes it once.
    let socket = unsafe { std::os::fd::OwnedFd::from_raw_fd(FIRST_SOCKET) };
    if family == libc::AF_UNIX {
        let listener = std::os::unix::net::UnixListener::from(socket);
        listener.set_nonblocking(true)?;
        return UnixListener::from_std(listener).map(|listener| Some(Inherited::Unix(listener)));
    }
    let listener = std::net::TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener).map(|listener| Some(Inherited::Tcp(listener)))
}
