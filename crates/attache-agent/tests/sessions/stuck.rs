//! A disk that is stuck: the session whose log is there waits, and no other.

use std::fs;
use std::io::{PipeReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use attache::client::Turn;
use attache::model::session::ListSessionsRequest;
use attache::{Protocol, Stop};
use attache_testkit::model_server::Answer;
use serde_json::json;

use crate::support::{DIALECTS, Person, World};

/// How long the disk is stuck if nobody frees it. Much longer than anything here takes.
const STUCK: Duration = Duration::from_secs(20);

/// Has this process write to a full pipe where it means to write to a file, so that whoever does waits. The pipe breaks
/// when the reader is dropped.
fn clog(path: &Path) -> PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[0; 1 << 16]).unwrap();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_it = |entry: &fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|target| target == path);
    let name = descriptors.filter(is_it).map(|entry| entry.file_name()).next().expect("it is open");
    let number = name.to_str().unwrap().parse().unwrap();
    // SAFETY: both are open, and the file keeps its descriptor, which is closed in its time.
    let replaced = unsafe { libc::dup3(writer.as_raw_fd(), number, libc::O_CLOEXEC) };
    assert_eq!(replaced, number);
    reader
}

/// Waits for the end of a turn.
async fn end(turn: &mut Turn) -> Result<Option<Stop>, attache::Error> {
    while turn.next().await?.is_some() {}
    Ok(turn.stop().cloned())
}

#[tokio::test]
async fn a_session_on_a_stuck_disk_delays_no_other() {
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::hang(), Answer::text("fine")]).await;
        let chat = world.connect(Person::at(protocol)).await;
        let open = async || chat.connection.session(world.project()).open().await.unwrap();
        let (stuck, other) = (open().await, open().await);
        let pipe = clog(&world.config.sessions_dir().join(format!("{}.log", stuck.id().as_str())));
        let (free, freed) = mpsc::channel::<()>();
        // Not even a runtime that waits for the disk waits forever, so that it is seen that it did.
        let disk = std::thread::spawn(move || {
            let _ = freed.recv_timeout(STUCK);
            drop(pipe);
        });

        let start = Instant::now();
        let mut waiting = stuck.prompt("hello").await.unwrap();
        let mut turn = other.prompt("hello").await.unwrap();
        world.model().wait_for_requests(1).await;
        turn.cancel().await.unwrap();
        assert_eq!(end(&mut turn).await.unwrap(), Some(Stop::Cancelled), "{protocol:?}");
        let mut turn = other.prompt("go on").await.unwrap();
        assert_eq!(end(&mut turn).await.unwrap(), Some(Stop::EndTurn), "{protocol:?}");
        chat.connection.list_sessions(&ListSessionsRequest::new()).await.unwrap();
        open().await.close().await.unwrap();
        assert!(start.elapsed() < STUCK / 2, "{protocol:?}: {:?}", start.elapsed());

        drop(free);
        disk.join().unwrap();
        let error = end(&mut waiting).await.unwrap_err().to_string();
        assert!(error.contains("could not be saved"), "{protocol:?}: {error}");
    }
}

#[tokio::test]
async fn rules_on_a_stuck_disk_delay_no_other_session() {
    let read = Answer::new().call("read_file", json!({"path": "a.txt"}));
    let world = World::answering(vec![read, Answer::hang(), Answer::text("fine")]).await;
    world.put("a.txt", "x");
    let chat = world.connect(Person::at(Protocol::V2)).await;
    let open = async || chat.connection.session(world.project()).open().await.unwrap();
    let (stuck, other) = (open().await, open().await);
    // Whoever opens it waits until somebody writes to it.
    let (rules, aside) = (world.config.config_dir.join("permissions.toml"), world.root.join("aside"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &rules, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let (free, freed) = mpsc::channel::<()>();
    let disk = std::thread::spawn(move || {
        let _ = freed.recv_timeout(STUCK);
        fs::rename(&rules, &aside).unwrap();
        drop(fs::OpenOptions::new().write(true).open(aside).unwrap());
    });

    let start = Instant::now();
    let mut waiting = stuck.prompt("look").await.unwrap();
    world.model().wait_for_requests(1).await;
    let mut turn = other.prompt("hello").await.unwrap();
    world.model().wait_for_requests(2).await;
    turn.cancel().await.unwrap();
    assert_eq!(end(&mut turn).await.unwrap(), Some(Stop::Cancelled));
    chat.connection.list_sessions(&ListSessionsRequest::new()).await.unwrap();
    assert!(start.elapsed() < STUCK / 2, "{:?}", start.elapsed());

    drop(free);
    assert_eq!(end(&mut waiting).await.unwrap(), Some(Stop::EndTurn));
    disk.join().unwrap();
}
