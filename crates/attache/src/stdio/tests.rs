//! Every kind of stdin and stdout, and what the rest of the program sees of them.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    env,
    fs::File,
    io::{Read as _, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::{Command, Stdio},
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{
    sys::{open_reader, open_writer},
    take,
};

/// More than any buffer on the way holds.
const LARGE: usize = 1024 * 1024;

/// Reads everything that comes out of `ours` while a plain thread writes it into `theirs`.
async fn check_reading(ours: impl Into<OwnedFd>, theirs: impl Into<OwnedFd>) {
    let mut theirs = File::from(theirs.into());
    let sent: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    let expected = sent.clone();
    let writing = std::thread::spawn(move || theirs.write_all(&sent).unwrap());
    let mut received = Vec::new();
    open_reader(ours.into()).unwrap().read_to_end(&mut received).await.unwrap();
    assert!(received == expected, "{} bytes instead of {LARGE}", received.len());
    writing.join().unwrap();
}

/// Writes into `ours` what a plain thread reads out of `theirs`.
async fn check_writing(ours: impl Into<OwnedFd>, theirs: impl Into<OwnedFd>) {
    let mut theirs = File::from(theirs.into());
    let reading = std::thread::spawn(move || {
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).unwrap();
        received
    });
    let sent: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    let mut writer = open_writer(ours.into()).unwrap();
    writer.write_all(&sent).await.unwrap();
    writer.shutdown().await.unwrap();
    drop(writer);
    assert!(reading.join().unwrap() == sent);
}

#[tokio::test]
async fn pipes_carry_everything_in_both_directions() {
    let (read, write) = std::io::pipe().unwrap();
    check_reading(read, write).await;
    let (read, write) = std::io::pipe().unwrap();
    check_writing(write, read).await;
}

#[tokio::test]
async fn sockets_carry_everything_in_both_directions() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    check_reading(ours, theirs).await;
    let (ours, theirs) = UnixStream::pair().unwrap();
    check_writing(ours, theirs).await;
}

#[tokio::test]
async fn one_socket_can_be_stdin_and_stdout() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut reader = open_reader(ours.try_clone().unwrap().into()).unwrap();
    let mut writer = open_writer(ours.into()).unwrap();
    writer.write_all(b"to the peer").await.unwrap();
    writer.shutdown().await.unwrap();
    let mut theirs = theirs;
    let mut text = String::new();
    theirs.read_to_string(&mut text).unwrap();
    assert_eq!(text, "to the peer");
    theirs.write_all(b"and back").unwrap();
    drop(theirs);
    text.clear();
    reader.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "and back");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_stays_blocking_for_those_who_share_it() {
    use std::os::fd::AsRawFd as _;
    let is_nonblocking = |fd: &dyn std::os::fd::AsRawFd| {
        // SAFETY: reads the flags of an open descriptor.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) & libc::O_NONBLOCK != 0 }
    };
    let (read, write) = std::io::pipe().unwrap();
    let shared = (read.try_clone().unwrap(), write.try_clone().unwrap());
    let _taken = (open_reader(read.into()).unwrap(), open_writer(write.into()).unwrap());
    assert!(!is_nonblocking(&shared.0) && !is_nonblocking(&shared.1), "fd {}", shared.0.as_raw_fd());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_named_pipe_ends_when_its_writer_has_left_early() {
    let path = env::temp_dir().join(format!("attache-fifo-{}", std::process::id()));
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let writer_path = path.clone();
    let writing = std::thread::spawn(move || std::fs::write(writer_path, "hello").unwrap());
    let read = File::open(&path).unwrap();
    writing.join().unwrap();
    std::fs::remove_file(path).unwrap();
    let mut text = String::new();
    open_reader(read.into()).unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "hello");
}

#[tokio::test]
async fn files_are_read_to_their_end_and_hold_everything_once_flushed() {
    let path = env::temp_dir().join(format!("attache-stdio-{}", std::process::id()));
    let sent: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    let mut writer = open_writer(File::create(&path).unwrap().into()).unwrap();
    writer.write_all(&sent).await.unwrap();
    writer.flush().await.unwrap();
    assert!(std::fs::read(&path).unwrap() == sent, "flushed, but not in the file");
    writer.write_all(b"last words").await.unwrap();
    writer.shutdown().await.unwrap();
    assert!(std::fs::read(&path).unwrap().ends_with(b"last words"));
    assert!(writer.write_all(b"too late").await.is_err());

    let mut received = Vec::new();
    open_reader(File::open(&path).unwrap().into()).unwrap().read_to_end(&mut received).await.unwrap();
    std::fs::remove_file(path).unwrap();
    assert_eq!(received.len(), LARGE + "last words".len());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_device_that_refuses_bytes_is_an_error_at_the_flush() {
    let mut writer = open_writer(File::create("/dev/full").unwrap().into()).unwrap();
    writer.write_all(b"x").await.unwrap();
    assert_eq!(writer.flush().await.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(writer.shutdown().await.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
}

/// The child's half of the test below, started by it and idle otherwise.
#[tokio::test]
async fn program_that_takes_its_stdio() {
    if env::var_os("ATTACHE_TEST_TAKE").is_none() {
        return;
    }
    println!("before the conversation");
    let (mut reader, mut writer) = take().unwrap();
    println!("stray print");
    // A child finds an empty stdin, and its stdout goes to our stderr.
    let status = Command::new("sh").args(["-c", "cat; echo stray child"]).status().unwrap();
    assert!(status.success());
    assert_eq!(take().err().unwrap().to_string(), "stdin and stdout are already taken");
    let mut line = String::new();
    reader.read_to_string(&mut line).await.unwrap();
    writer.write_all(format!("wire: {line}").as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
}

#[test]
fn law_10_nothing_but_the_wire_reaches_the_wire() {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "stdio::tests::program_that_takes_its_stdio", "--nocapture"])
        .env("ATTACHE_TEST_TAKE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stdout}{stderr}");
    // What comes before is from the test harness.
    let (_, wire) = stdout.split_once("before the conversation\n").unwrap();
    assert_eq!(wire, "wire: hello\n");
    assert!(stderr.contains("stray print\n") && stderr.contains("stray child\n"), "{stderr}");
}
