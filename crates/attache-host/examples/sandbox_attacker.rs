//! For tests: one attack on a sandbox, from inside. `sandbox_attacker ATTACK [ARGUMENT]` prints `got through` or why not.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "for tests: it fails by panicking")]

#[cfg(target_os = "linux")]
fn main() {
    let mut args = std::env::args().skip(1);
    let (attack, argument) = (args.next().unwrap(), args.next().unwrap_or_default());
    match attempt(&attack, &argument) {
        Ok(()) => println!("got through"),
        Err(error) => println!("{error}"),
    }
}

#[cfg(target_os = "linux")]
fn attempt(attack: &str, argument: &str) -> std::io::Result<()> {
    use attache_host::sandbox::{Policy, Sandbox};
    use std::io::{Error, ErrorKind};
    use std::time::{Duration, Instant};

    let number = || argument.parse::<i32>().unwrap();
    let done = |result: i64| if result == -1 { Err(Error::last_os_error()) } else { Ok(()) };
    // SAFETY: plain system calls on numbers and local variables; what is read from shared memory is inside of it.
    unsafe {
        match attack {
            "connect" => std::os::unix::net::UnixStream::connect(argument).map(drop),
            "datagram" => {
                std::os::unix::net::UnixDatagram::unbound()?.send_to(b"hello", argument)?;
                Ok(())
            }
            "socket" => done(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into()),
            "pair" => std::os::unix::net::UnixStream::pair().map(drop),
            // The first byte of a segment that somebody else made.
            "system-v" => {
                let segment = libc::shmget(number(), 1, 0);
                done(segment.into())?;
                let memory = libc::shmat(segment, std::ptr::null(), libc::SHM_RDONLY);
                match memory as isize {
                    -1 => Err(Error::last_os_error()),
                    _ if *memory.cast::<u8>() == b'!' => Ok(()),
                    _ => Err(ErrorKind::InvalidData.into()),
                }
            }
            "limit" => {
                let limit = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
                done(libc::prlimit(number(), libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut()).into())
            }
            "renice" => done(libc::setpriority(libc::PRIO_PROCESS, number() as u32, 19).into()),
            "idle" => {
                let nothing = libc::sched_param { sched_priority: 0 };
                done(libc::sched_setscheduler(number(), libc::SCHED_IDLE, &nothing).into())
            }
            // Exchanges two paths, `a:b`, again and again for some seconds.
            "exchange" => {
                let (one, other) = argument.split_once(':').unwrap();
                let [one, other] = [one, other].map(|path| std::ffi::CString::new(path).unwrap());
                let began = Instant::now();
                for round in 0u64.. {
                    let flags = libc::RENAME_EXCHANGE;
                    done(libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), flags).into())?;
                    std::thread::sleep(Duration::from_micros(round * 7919 % 6000));
                    if began.elapsed() > Duration::from_secs(4) {
                        break;
                    }
                }
                Ok(())
            }
            // Binds a socket by a relative name and stays.
            "listen-here" => {
                let _listener = std::os::unix::net::UnixListener::bind(argument)?;
                println!("listening");
                std::thread::sleep(Duration::from_secs(20));
                Ok(())
            }
            // No attack: a program that keeps others from looking into it makes a sandbox as well as any.
            "confine-from-the-dark" => {
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                let sandbox = Sandbox::new(&Policy::new(["."])).map_err(Error::other)?;
                let is_dark = libc::prctl(libc::PR_GET_DUMPABLE) == 0;
                if is_dark && sandbox.gaps().is_empty() { Ok(()) } else { Err(Error::other(sandbox.gaps().join("; "))) }
            }
            _ => panic!("there is no attack `{attack}`"),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
