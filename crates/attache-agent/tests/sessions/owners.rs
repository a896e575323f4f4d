//! One session, and several who want it: two agents, two processes, one connection twice.

use attache::model::error::ErrorObject;
use attache::{Error, Event, Stop};

use crate::help::{STABLE, is_text, load, said};
use crate::served::Served;
use crate::support::{Chat, DIALECTS, Person, World};

#[track_caller]
fn check_busy<T: std::fmt::Debug>(result: Result<T, Error>) {
    match result {
        Err(Error::Refused(error)) => {
            assert_eq!(error.code, ErrorObject::INVALID_REQUEST, "{error:?}");
            assert!(
                error.message.starts_with("the session is open in another window, or on another machine\n"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// Nobody gets at a session that somebody else has open, but it can be seen.
async fn check(world: &World, first: &mut Chat, second: &mut Chat) {
    first.open(&world.project()).await;
    first.turn("create a.txt with \"hello\"").await;
    let id = first.session().id().clone();
    let builder = || second.connection.session(world.project());
    check_busy(builder().load(id.clone()).await);
    check_busy(builder().resume(id.clone()).await);
    check_busy(second.connection.delete_session(id.clone()).await);
    let title = attache::model::unstable::SetTitleRequest::new(id.clone(), "mine");
    if STABLE.contains(&second.person.protocol) {
        check_busy(second.connection.call(&title).await);
    }
    let listed = second.connection.list_sessions(&attache::model::session::ListSessionsRequest::new()).await.unwrap();
    assert!(listed.sessions.iter().any(|session| session.session_id == id));

    // The first has not noticed anything, and lets it go when it closes.
    let seen = first.turn("read a.txt").await;
    assert!(seen.contains("hello"), "{seen}");
    first.session().close().await.unwrap();
    let view = load(second, &world.project(), &id).await;
    assert!(said(&view).contains("hello"), "{}", said(&view));
    check_busy(first.connection.session(world.project()).load(id.clone()).await);
    second.connection.delete_session(id.clone()).await.unwrap();
    let gone = first.connection.session(world.project()).load(id).await;
    assert!(matches!(&gone, Err(Error::Refused(error)) if error.code == ErrorObject::NOT_FOUND), "{gone:?}");
}

#[tokio::test]
async fn a_session_has_one_owner_of_two_agents() {
    for protocol in DIALECTS {
        let world = World::offline();
        let mut first = world.connect(Person::at(protocol)).await;
        let mut second = world.connect(Person::at(protocol)).await;
        check(&world, &mut first, &mut second).await;
    }
}

#[tokio::test]
async fn a_session_has_one_owner_of_two_processes() {
    for protocol in DIALECTS {
        let world = World::offline();
        let mut first = Served::start(&world, Person::at(protocol), &[]).await;
        let mut second = Served::start(&world, Person::at(protocol), &[]).await;
        check(&world, &mut first.chat, &mut second.chat).await;
    }
}

#[tokio::test]
async fn a_session_is_free_when_the_process_that_had_it_is_killed() {
    let world = World::offline();
    let mut first = Served::start(&world, Person::new(), &[]).await;
    first.chat.open(&world.project()).await;
    first.chat.turn("list").await;
    let id = first.chat.session().id().clone();
    first.kill().await;
    let mut second = world.connect(Person::new()).await;
    load(&mut second, &world.project(), &id).await;
    let seen = second.turn("list").await;
    assert!(seen.ends_with("stop end_turn"), "{seen}");
}

#[tokio::test]
async fn a_connection_may_load_its_own_session_again_unless_a_turn_runs() {
    for protocol in DIALECTS {
        let world = World::offline();
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("list").await;
        let id = chat.session().id().clone();
        let view = load(&mut chat, &world.project(), &id).await;
        assert!(!said(&view).is_empty());
        let session = chat.session().clone();
        let mut turn = session.prompt("slowly one two three four five").await.unwrap();
        while !turn.next().await.unwrap().is_some_and(|event| is_text(&event)) {}
        let loaded = chat.connection.session(world.project()).load(id.clone()).await;
        assert!(matches!(&loaded, Err(Error::Refused(error)) if error.message.contains("open")), "{loaded:?}");
        while turn.next().await.unwrap().is_some() {}
        assert_eq!(turn.stop(), Some(&Stop::EndTurn));
    }
}

#[tokio::test]
async fn a_session_that_is_deleted_at_work_is_cancelled_and_gone() {
    for protocol in DIALECTS {
        let world = World::offline();
        let chat = world.open(Person::at(protocol)).await;
        let session = chat.session().clone();
        let mut turn = session.prompt("run sleep 1000").await.unwrap();
        let ask = loop {
            match turn.next().await.unwrap().expect("permission is asked for") {
                Event::Permission(ask) => break ask,
                _ => continue,
            }
        };
        let id = session.id().clone();
        chat.connection.delete_session(id.clone()).await.unwrap();
        drop(ask);
        while let Ok(Some(_)) = turn.next().await {}
        assert_eq!(std::fs::read_dir(world.config.sessions_dir()).unwrap().count(), 0);
        for gone in [
            chat.connection.session(world.project()).load(id.clone()).await,
            chat.connection.session(world.project()).resume(id.clone()).await,
        ] {
            assert!(matches!(&gone, Err(Error::Refused(error)) if error.code == ErrorObject::NOT_FOUND), "{gone:?}");
        }
        // Deleting what is not there is done.
        chat.connection.delete_session(id).await.unwrap();
    }
}
