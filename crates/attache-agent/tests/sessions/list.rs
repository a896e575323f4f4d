//! Sessions as a list: pages, order, deleting, forking, titles, and ids that are none.

use std::collections::BTreeMap;
use std::path::Path;

use attache::Error;
use attache::model::content::ContentBlock;
use attache::model::error::ErrorObject;
use attache::model::prompt::PromptRequest;
use attache::model::session::{ListSessionsRequest, SessionId, SessionInfo};
use attache::model::unstable::{ForkSessionRequest, SetTitleRequest};

use crate::help::{STABLE, load, scripted, waiting};
use crate::support::{Chat, DIALECTS, Person, World};

async fn page(chat: &Chat, cwd: Option<&Path>, cursor: Option<String>) -> (Vec<SessionInfo>, Option<String>) {
    let cwd = cwd.map(|cwd| cwd.to_str().unwrap().to_owned());
    let request = ListSessionsRequest::new().with(|request| {
        request.cwd = cwd;
        request.cursor = cursor;
    });
    let page = chat.connection.list_sessions(&request).await.unwrap();
    (page.sessions, page.next_cursor)
}

async fn all(chat: &Chat, cwd: Option<&Path>) -> Vec<SessionInfo> {
    let (mut sessions, mut cursor) = page(chat, cwd, None).await;
    while cursor.is_some() {
        let (more, next) = page(chat, cwd, cursor).await;
        assert!(!more.is_empty());
        sessions.extend(more);
        cursor = next;
    }
    sessions
}

#[tokio::test]
async fn a_long_list_comes_in_pages_the_last_used_first() {
    for protocol in DIALECTS {
        let world = World::offline();
        let other = world.root.join("other");
        std::fs::create_dir(&other).unwrap();
        let mut chat = world.connect(Person::at(protocol)).await;
        let mut ids = Vec::new();
        for number in 0..53 {
            let cwd = if number % 10 == 0 { &other } else { &world.project() };
            chat.open(cwd).await;
            ids.push(chat.session().id().clone());
            if number < 5 {
                chat.turn(format!("say {number}").as_str()).await;
            }
        }
        let (first, cursor) = page(&chat, None, None).await;
        assert_eq!(first.len(), 50);
        assert!(cursor.is_some());
        let sessions = all(&chat, None).await;
        assert_eq!(sessions.len(), 53);
        let mut seen: Vec<SessionId> = sessions.iter().map(|session| session.session_id.clone()).collect();
        let times: Vec<&str> = sessions.iter().map(|session| session.updated_at.as_deref().unwrap()).collect();
        assert!(times.is_sorted_by(|one, other| one >= other), "{times:?}");
        seen.sort();
        ids.sort();
        assert_eq!(seen, ids);
        assert_eq!(sessions.last().unwrap().title.as_deref(), Some("say 0"));
        let elsewhere = all(&chat, Some(&other)).await;
        assert_eq!(elsewhere.len(), 6);
        assert!(elsewhere.iter().all(|session| Path::new(&session.cwd) == other));
        assert_eq!(all(&chat, Some(&world.root)).await.len(), 0);

        // Something is done in the oldest of all.
        let oldest = sessions.last().unwrap().session_id.clone();
        load(&mut chat, &other, &oldest).await;
        chat.turn("help").await;
        assert_eq!(all(&chat, None).await[0].session_id, oldest);
        for cursor in ["", "x", "ffff-../x", "999999999999999999999-a"] {
            let request = ListSessionsRequest::new().cursor(cursor);
            let error = chat.connection.list_sessions(&request).await.unwrap_err();
            assert!(error.to_string().contains("cursor"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_fork_has_the_history_and_a_log_of_its_own() {
    for protocol in STABLE {
        let world = scripted().await;
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("remember apple").await;
        let original = chat.session().clone();
        let cwd = world.project().to_str().unwrap().to_owned();
        let request = ForkSessionRequest::new(original.id().clone(), cwd);
        let forked = chat.connection.call(&request).await.unwrap().session_id;
        assert_ne!(&forked, original.id());
        // What came of it is open; it is taken up like any other.
        let view = load(&mut chat, &world.project(), &forked).await;
        assert_eq!(view.title.as_deref(), Some("remember apple"), "{protocol:?}");
        let seen = chat.turn("remember pear\nrecall").await;
        assert!(seen.contains("remembered apple pear"), "{seen}");
        chat.session = Some(original);
        let seen = chat.turn("recall").await;
        assert!(seen.contains("remembered apple\n"), "{seen}");
        chat.connection.delete_session(forked.clone()).await.unwrap();
        let left = all(&chat, None).await;
        assert_eq!(left.len(), 1, "{left:?}");
        assert_ne!(left[0].session_id, forked);
    }
}

#[tokio::test]
async fn a_title_can_be_set_while_the_session_is_open_and_while_it_is_not() {
    for protocol in STABLE {
        let world = World::offline();
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("help").await;
        let id = chat.session().id().clone();
        let set = async |chat: &Chat, title: &str| {
            chat.connection.call(&SetTitleRequest::new(id.clone(), title)).await.unwrap().title
        };
        assert_eq!(set(&chat, "  A title\nand more ").await, "A title …");
        let told = waiting(&chat).iter().any(|update| format!("{update:?}").contains("A title …"));
        assert!(told, "{protocol:?}");
        chat.session().close().await.unwrap();
        set(&chat, "Another").await;
        assert_eq!(all(&chat, None).await[0].title.as_deref(), Some("Another"));
        let view = load(&mut chat, &world.project(), &id).await;
        assert_eq!(view.title.as_deref(), Some("Another"));
        // It is not replaced by the next prompt.
        chat.turn("list").await;
        assert_eq!(all(&chat, None).await[0].title.as_deref(), Some("Another"));
    }
}

#[tokio::test]
async fn a_session_that_was_closed_or_deleted_takes_no_prompt_and_leaves_no_output_behind() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn(r#"call run_command {"command":"seq 1 100000"}"#).await;
        let id = chat.session().id().clone();
        let outputs = world.config.state_dir.join("agent/outputs").join(id.as_str());
        assert!(std::fs::read_dir(&outputs).unwrap().count() > 0);
        // Our own client would not even ask.
        let more = PromptRequest::new(id.clone(), vec![ContentBlock::text("more")]);
        let is_refused = async |chat: &Chat| match chat.connection.call(&more).await {
            Err(Error::Refused(error)) => error.code == ErrorObject::NOT_FOUND,
            _ => false,
        };
        chat.session().close().await.unwrap();
        assert!(is_refused(&chat).await, "{protocol:?}");
        assert!(outputs.exists());
        chat.connection.delete_session(id.clone()).await.unwrap();
        assert!(!outputs.exists());
        assert_eq!(all(&chat, None).await.len(), 0);
        assert!(is_refused(&chat).await, "{protocol:?}");
    }
}

/// Every file of a directory, with its content.
fn tree(directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        files.insert(path.display().to_string(), std::fs::read(&path).unwrap_or_default());
        if path.is_dir() {
            tree(&path, files);
        }
    }
}

#[tokio::test]
async fn an_id_that_is_none_touches_nothing() {
    for protocol in DIALECTS {
        let world = World::offline();
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("help").await;
        let real = chat.session().id().clone();
        chat.session().close().await.unwrap();
        for path in ["state/agent/victim.log", "state/victim.log", "victim.log", "state/agent/outputs/victim/x"] {
            world.put_at(path, "0 0 2 00000000 {}\n");
        }
        let mut before = BTreeMap::new();
        tree(&world.root, &mut before);
        let long = "x".repeat(10_000);
        let root = world.root.to_str().unwrap();
        let tricks = [
            "unknown".to_owned(),
            String::new(),
            ".".into(),
            "..".into(),
            "../victim".into(),
            "../../../victim".into(),
            "../outputs/victim".into(),
            "../outputs".into(),
            format!("{root}/victim"),
            format!("../sessions/{real}"),
            format!("./{real}"),
            format!("{real}.log"),
            format!("{real}/"),
            format!("{real}\0"),
            format!("{real}\n"),
            "~".into(),
            "ü".into(),
            "a\\b".into(),
            long,
        ];
        for id in tricks {
            let shown = format!("{protocol:?} {:?}", &id[..id.len().min(40)]);
            let cwd = world.project().to_str().unwrap().to_owned();
            let builder = || chat.connection.session(world.project());
            let title = SetTitleRequest::new(id.as_str(), "x");
            let mut results =
                vec![builder().load(id.as_str()).await.map(drop), builder().resume(id.as_str()).await.map(drop)];
            if STABLE.contains(&protocol) {
                let fork = ForkSessionRequest::new(id.as_str(), cwd);
                results.push(chat.connection.call(&fork).await.map(drop));
                results.push(chat.connection.call(&title).await.map(drop));
            }
            for result in results {
                let error = match result {
                    Err(Error::Refused(error)) => error,
                    other => panic!("{shown}: {other:?}"),
                };
                assert_eq!(error.code, ErrorObject::NOT_FOUND, "{shown}: {error:?}");
                assert!(id.len() < 5 || !error.message.contains(&id), "{shown}: {error:?}");
            }
            let deleted = chat.connection.delete_session(id.as_str()).await;
            assert!(id == "unknown" || deleted.is_err(), "{shown}");
        }
        let mut after = BTreeMap::new();
        tree(&world.root, &mut after);
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        assert!(before == after);
        load(&mut chat, &world.project(), &real).await;
    }
}
