//! Two agents with one database: a session that was opened at one is resumed at the other, and has one of them at a time.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use attache::client::Session;
use attache::model::error::ErrorObject;
use attache::model::session::{ListSessionsRequest, SessionId};
use attache::proto::view::{Entry, MessageRole};
use attache::{Client, Connection, Error, Event, SessionView, Stop};
use attache_testkit::Dice;
use support::Server;
use tokio::process::{Child, Command};

/// A folder that both agents have, and their database.
struct World {
    directory: tempfile::TempDir,
    url: String,
}

impl World {
    fn new(server: &Server) -> Self {
        World { directory: tempfile::tempdir().unwrap(), url: server.new_database() }
    }

    fn project(&self) -> PathBuf {
        let project = self.directory.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        project
    }

    /// Starts an agent, and a client of it.
    async fn start(&self, name: &str, owner: &str) -> Agent {
        // Cargo builds examples together with all tests, and puts them beside each other.
        let test = std::env::current_exe().unwrap();
        let program = test.parent().unwrap().parent().unwrap().join("examples/postgres_agent");
        assert!(program.exists(), "run `cargo build -p attache-postgres --examples` first");
        let mut child = Command::new(program)
            .args([&self.url, &format!("https://{name}.example"), owner])
            .arg(self.directory.path().join("config"))
            .arg(self.directory.path().join(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let connection = Client::new("test", "1.0").connect(stdout, stdin).await.unwrap();
        Agent { connection, child, project: self.project() }
    }
}

struct Agent {
    connection: Connection,
    child: Child,
    project: PathBuf,
}

impl Agent {
    async fn open(&self) -> Session {
        self.connection.session(&self.project).open().await.unwrap()
    }

    async fn load(&self, id: &SessionId) -> Result<Session, ErrorObject> {
        match self.connection.session(&self.project).load(id.clone()).await {
            Ok(session) => Ok(session),
            Err(Error::Refused(error)) => Err(error),
            Err(error) => panic!("{error}"),
        }
    }

    /// Loads a session as soon as its lease has ended.
    async fn load_when_free(&self, id: &SessionId) -> Session {
        let start = Instant::now();
        loop {
            match self.load(id).await {
                Ok(session) => return session,
                Err(error) if error.message.contains("on another machine") => {}
                Err(error) => panic!("{error:?}"),
            }
            assert!(start.elapsed() < Duration::from_secs(20), "the lease does not end");
        }
    }

    async fn ids(&self) -> Vec<String> {
        let listed = self.connection.list_sessions(&ListSessionsRequest::new()).await.unwrap();
        listed.sessions.into_iter().map(|session| session.session_id.to_string()).collect()
    }
}

/// Which server an error sends a client to.
fn server_of(error: &ErrorObject) -> Option<String> {
    error.data.as_ref()?.get("server")?.parse().ok()
}

/// Runs a turn to its end.
async fn turn(session: &Session, prompt: &str) -> Result<String, ErrorObject> {
    let mut turn = session.prompt(prompt).await.unwrap();
    let mut view = SessionView::new();
    loop {
        match turn.next().await {
            Ok(Some(Event::Update(update))) => _ = view.apply(&update),
            Ok(Some(Event::Permission(ask))) => ask.allow_once().await.unwrap(),
            Ok(Some(other)) => other.decline().await.unwrap(),
            Ok(None) => {
                assert_eq!(turn.stop(), Some(&Stop::EndTurn));
                return Ok(said(&view));
            }
            Err(Error::Refused(error)) => return Err(error),
            Err(error) => panic!("{error}"),
        }
    }
}

fn said(view: &SessionView) -> String {
    let texts = view.timeline().iter().filter_map(|entry| match entry {
        Entry::Message(message) if message.role == MessageRole::Agent => Some(message.text()),
        _ => None,
    });
    texts.collect()
}

/// What a session shows that was just loaded.
async fn history(session: &Session) -> SessionView {
    let mut view = SessionView::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(100), session.next()).await {
        if let Event::Update(update) = event.unwrap() {
            view.apply(&update);
        }
    }
    view
}

const SLOWLY: &str =
    "slowly one two three four five six seven eight nine ten\ncreate a.txt with \"hi\"\nslowly more and more";

#[tokio::test]
async fn a_session_is_resumed_at_the_other_server_when_the_first_is_killed_in_a_turn() {
    let Some(server) = support::shared() else { return };
    // A fifth as often as the store's own test does it.
    let kills: usize = std::env::var("ATTACHE_TEST_KILLS").map_or(4, |kills| kills.parse::<usize>().unwrap() / 5);
    let world = World::new(server);
    let mut dice = Dice::new(3);
    for round in 0..kills {
        let (mut first, second) = (world.start("one", "alice").await, world.start("two", "alice").await);
        let session = first.open().await;
        let id = session.id().clone();
        let mut turn_at_first = session.prompt(SLOWLY).await.unwrap();
        let (mut shown, events) = (SessionView::new(), 1 + dice.below(14));
        for _ in 0..events {
            match turn_at_first.next().await.unwrap() {
                Some(Event::Update(update)) => _ = shown.apply(&update),
                Some(Event::Permission(ask)) => ask.allow_once().await.unwrap(),
                Some(other) => other.decline().await.unwrap(),
                None => break,
            }
        }
        // While it runs, the other one tells where it does.
        let refused = second.load(&id).await.unwrap_err();
        assert_eq!(server_of(&refused).as_deref(), Some("https://one.example"), "{refused:?}");
        first.child.kill().await.unwrap();
        let session = second.load_when_free(&id).await;
        let loaded = history(&session).await;
        assert!(said(&loaded).starts_with(&said(&shown)), "round {round}: {} {}", said(&shown), said(&loaded));
        let users = loaded.timeline().iter();
        let prompts =
            users.filter(|entry| matches!(entry, Entry::Message(message) if message.role == MessageRole::User));
        assert_eq!(prompts.count(), 1, "round {round}");
        assert!(loaded.tool_calls().all(|call| call.status.is_final()), "round {round}");
        let seen = turn(&session, "say all is well").await.unwrap();
        assert!(seen.contains("all is well"), "{seen}");
    }
}

#[tokio::test]
async fn an_idle_session_moves_to_the_server_that_its_client_comes_to() {
    let Some(server) = support::shared() else { return };
    let world = World::new(server);
    let (first, second) = (world.start("one", "").await, world.start("two", "").await);
    let at_first = first.open().await;
    turn(&at_first, "say hello").await.unwrap();
    let at_second = second.load(at_first.id()).await.expect("it is handed over");
    assert!(said(&history(&at_second).await).contains("hello"));
    turn(&at_second, "say more").await.unwrap();
    // Who is still at the first one is told where the session is.
    let refused = turn(&at_first, "say no").await.unwrap_err();
    assert_eq!(server_of(&refused).as_deref(), Some("https://two.example"), "{refused:?}");
    let back = first.load(at_first.id()).await.expect("it is handed over again");
    let seen = said(&history(&back).await);
    assert!(seen.contains("hello") && seen.contains("more") && !seen.contains("no\n"), "{seen}");
}

#[tokio::test]
async fn nobody_gets_at_the_session_of_somebody_else() {
    let Some(server) = support::shared() else { return };
    let world = World::new(server);
    let (alice, bob) = (world.start("one", "alice").await, world.start("two", "bob").await);
    let session = alice.open().await;
    turn(&session, "say hello").await.unwrap();
    let id = session.id().clone();
    assert_eq!(alice.ids().await, [id.to_string()]);
    assert!(bob.ids().await.is_empty());
    let refused = bob.load(&id).await.unwrap_err();
    assert_eq!(refused.code, ErrorObject::NOT_FOUND, "{refused:?}");
    assert_eq!(server_of(&refused), None);
    let forked = bob.connection.session(world.project()).fork(id.clone()).await;
    assert!(matches!(&forked, Err(Error::Refused(error)) if error.code == ErrorObject::NOT_FOUND), "{forked:?}");
    // To delete what is not there is done.
    bob.connection.delete_session(id.clone()).await.unwrap();
    turn(&session, "say still here").await.unwrap();
    assert_eq!(alice.ids().await, [id.to_string()]);
}

#[tokio::test]
async fn a_turn_waits_for_the_database_and_fails_by_name_when_it_is_away_for_too_long() {
    let Some(server) = Server::start() else { return };
    let world = World::new(&server);
    let agent = world.start("one", "").await;
    let session = agent.open().await;
    // It waits.
    let waiting = turn(&session, "slowly one two three four");
    let disturb = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.pause();
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.go_on();
    };
    let (seen, ()) = tokio::join!(waiting, disturb);
    assert!(seen.unwrap().contains("one two three four"));
    // It fails before another server could have the session.
    let failing = async {
        let start = Instant::now();
        let failed = turn(&session, SLOWLY).await.unwrap_err();
        (failed, start.elapsed())
    };
    let disturb = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.pause();
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.go_on();
    };
    let ((failed, took), ()) = tokio::join!(failing, disturb);
    assert!(failed.message.contains("did not answer for too long"), "{failed:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Nobody else wanted it, so it goes on.
    let start = Instant::now();
    while turn(&session, "say back").await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let id = session.id().clone();
    session.close().await.unwrap();
    let loaded = history(&agent.load(&id).await.unwrap()).await;
    assert!(said(&loaded).contains("one two three four") && said(&loaded).contains("back"), "{}", said(&loaded));
}
