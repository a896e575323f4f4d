//! Logging in: what is offered, what is refused without a key, and that no key is ever seen.

use attache::model::auth::AuthMethod;
use attache::model::capability::Capability;
use attache::model::error::ErrorObject;
use attache::{Client, Connection, Error, Protocol};
use attache_agent::model::catalog;
use attache_agent::{CodingAgent, Keys};
use attache_testkit::model_server::{Answer, ModelServer, Turn};
use serde_json::json;

use crate::help::{example, mcp_server};
use crate::served::Served;
use crate::support::{DIALECTS, Person, World};

const KEY: &str = "sk-very-confidential-0123456789";

async fn connect(world: &World, protocol: Protocol, has_terminal: bool) -> Connection {
    let agent = CodingAgent::new(world.config.clone()).await.unwrap();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(agent.server().connect(reader, writer));
    let (reader, writer) = tokio::io::split(ours);
    let client = Client::new("editor", "1").protocol(protocol).capabilities(|capabilities| {
        capabilities.auth.terminal = has_terminal.then(Capability::new);
    });
    client.connect(reader, writer).await.unwrap()
}

/// Checks for the error that asks for a login, with the ways that there are for this client.
#[track_caller]
fn check_refused<T: std::fmt::Debug>(result: Result<T, Error>, has_terminal: bool) {
    let error = match result {
        Err(Error::Refused(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error.code, ErrorObject::AUTH_REQUIRED, "{error:?}");
    let data = error.data.unwrap().as_str().to_owned();
    assert!(data.contains("\"key\""), "{data}");
    assert_eq!(data.contains("\"login\""), has_terminal, "{data}");
    assert!(!error.message.contains(KEY) && !data.contains(KEY));
}

#[tokio::test]
async fn without_a_key_sessions_wait_for_a_login() {
    for protocol in DIALECTS {
        // The draft has no words for logins in a terminal.
        for has_terminal in [false, protocol != Protocol::V2Draft] {
            let mut world = World::offline();
            world.config.model = Some("groq:some-model".into());
            let connection = connect(&world, protocol, has_terminal).await;
            let methods = connection.auth_methods();
            assert!(matches!(&methods[0], AuthMethod::Agent(method) if method.id.as_str() == "key"), "{methods:?}");
            let terminal = methods.iter().find_map(|method| match method {
                AuthMethod::Terminal(terminal) => Some(terminal.args.clone()),
                _ => None,
            });
            assert_eq!(terminal, has_terminal.then(|| vec!["login".to_owned(), "groq".to_owned()]), "{protocol:?}");

            let builder = || connection.session(world.project());
            check_refused(builder().open().await, has_terminal);
            check_refused(builder().load("sess_1").await, has_terminal);
            check_refused(builder().resume("sess_1").await, has_terminal);
            check_refused(connection.authenticate("key").await, false);

            let keys = Keys::new(&world.config.config_dir);
            let groq = catalog::provider("groq").unwrap();
            keys.keep(groq, KEY).unwrap();
            connection.authenticate("key").await.unwrap();
            let session = builder().open().await.unwrap();

            connection.logout().await.unwrap();
            assert!(keys.find(groq).unwrap().is_none());
            check_refused(builder().open().await, has_terminal);
            // Also in a session that is open.
            let mut turn = session.prompt("hello").await.unwrap();
            let failed = loop {
                match turn.next().await {
                    Ok(Some(_)) => continue,
                    Ok(None) => panic!("{:?}", turn.stop()),
                    Err(error) => break Err::<(), _>(error),
                }
            };
            check_refused(failed, has_terminal);
        }
    }
}

#[tokio::test]
async fn without_a_choice_of_a_provider_there_is_nothing_to_log_in_to() {
    let world = World::offline();
    for protocol in DIALECTS {
        let connection = connect(&world, protocol, true).await;
        assert!(connection.auth_methods().is_empty());
        assert!(matches!(connection.authenticate("key").await, Err(Error::NotOffered(_))));
        assert!(matches!(connection.logout().await, Err(Error::NotOffered(_))));
    }
}

/// Every file beneath a directory that has the key in it.
fn files_with_key(directory: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with_key(&path, found);
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(KEY) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
}

/// The key is used, and seen nowhere: not on the wire, in files, in what is printed, or by what is started.
async fn check_unseen(is_kept: bool) {
    for protocol in DIALECTS {
        let command = json!({"command": "env; cat /proc/self/environ"});
        let server = ModelServer::with(move |request| match (request.turns().last(), request.tool_results().len()) {
            (Some(Turn::User(_)), 0) => Answer::text("I look.").call("run_command", command.clone()),
            (Some(Turn::Result { .. }), 1) => Answer::new().call("tiny__env", json!({"text": "OPENAI_API_KEY"})),
            (Some(Turn::Result { .. }), _) => Answer::text("done"),
            // As servers do that repeat what they were sent.
            _ => Answer::status(401).body(json!({"error": {"message": format!("wrong key: {KEY}")}})),
        })
        .await;
        let world = World::new("openai:scripted", Some(server));
        let variables = [("OPENAI_API_KEY", KEY)];
        if is_kept {
            Keys::new(&world.config.config_dir).keep(catalog::provider("openai").unwrap(), KEY).unwrap();
        }
        let variables = if is_kept { &[][..] } else { &variables[..] };
        let mut served = Served::start(&world, Person { news: true, ..Person::at(protocol) }, variables).await;
        let builder = served.chat.connection.session(world.project()).mcp_server(mcp_server("tiny", &[]));
        served.chat.session = Some(builder.open().await.unwrap());
        let seen = served.chat.turn("begin").await;
        assert!(seen.contains("PATH=") || world.results()[0].contains("PATH="), "{seen}");
        assert!(world.results()[1].contains("unset"), "{:?}", world.results());
        let seen = served.chat.turn("more").await;
        assert!(seen.contains("error -32"), "{seen}");
        served.chat.turn("/status").await;

        let requests = world.model().requests();
        assert!(requests.iter().all(|request| request.header("authorization") == Some(&format!("Bearer {KEY}"))));
        assert!(!requests.iter().any(|request| request.body.to_string().contains(KEY)));
        assert!(!served.chat.wire.lines().iter().any(|line| line.contains(KEY)));
        let wire = served.chat.wire.clone();
        served.chat.session().close().await.unwrap();
        let Served { chat, child } = served;
        drop(chat);
        let output = child.wait_with_output().await.unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains(KEY));
        let mut found = Vec::new();
        files_with_key(&world.root, &mut found);
        assert_eq!(found, if is_kept { vec!["keys.json"] } else { vec![] });
        assert!(wire.lines().len() > 10);
    }
}

#[tokio::test]
async fn a_key_from_the_environment_is_seen_nowhere() {
    assert!(example("serve").exists());
    check_unseen(false).await;
}

#[tokio::test]
async fn a_key_that_was_kept_is_seen_nowhere() {
    check_unseen(true).await;
}
