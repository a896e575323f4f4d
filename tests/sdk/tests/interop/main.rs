//! Attaché and the official Rust SDK speak with each other, both ways round and in both versions.

#![allow(clippy::unwrap_used)]

mod coding_agent;
mod our_agent;
mod our_client;
mod play;
mod seen;
mod their_agent;
mod their_client;
mod version;
mod wire;

use attache::{Client, Dialect, Error, Event, Prompt, Protocol, Stop, Turn};
use play::{Editor, Side, check, within_limit};
use serde_json::json;
use wire::Wire;

const BOTH: &[u16] = &[1, 2];

#[tokio::test]
async fn a_turn_streams_thoughts_and_text() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > prompt hello
        < thought hm
        < text Hello
        < text , world
        < end end_turn
        > prompt hello
        < thought hm
        < text Hello
        < text , world
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn version_2_repeats_the_prompt_and_tells_its_state() {
    check(
        &[2],
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > watch hello
        < user hello
        < ~running
        < thought hm
        < text Hello
        < text , world
        < ~idle end_turn
        < end end_turn
        > watch tool
        < user tool
        < ~running
        < tool Edit a file: pending
        < ~requires_action
        < asked allow_once|reject_once
        < ~running
        < text allowed
        < tool Edit a file: in_progress (edit)
        < tool Edit a file: completed (edit) 'done' diff of /project/a
        < ~idle end_turn
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_tool_call_is_allowed_rejected_or_neither() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > allow tool
        < tool Edit a file: pending
        < asked allow_once|reject_once
        < text allowed
        < tool Edit a file: in_progress (edit)
        < tool Edit a file: completed (edit) 'done' diff of /project/a
        < end end_turn
        ",
    )
    .await;
    for (verb, said) in [("reject", "rejected"), ("dismiss", "cancelled")] {
        check(
            BOTH,
            &format!(
                "
                > open /work
                < options mode=ask
                < commands /web <query>
                > {verb} tool
                < tool Edit a file: pending
                < asked allow_once|reject_once
                < text {said}
                < tool Edit a file: failed (edit)
                < end refusal
                "
            ),
        )
        .await;
    }
}

#[tokio::test]
async fn a_turn_is_cancelled_while_it_works() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > prompt wait
        < text cancel me
        < text stopped
        < end cancelled
        > prompt hello
        < thought hm
        < text Hello
        < text , world
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_turn_is_cancelled_while_it_asks_for_permission() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > leave tool
        < tool Edit a file: pending
        < asked allow_once|reject_once
        < text cancelled
        < tool Edit a file: failed (edit)
        < end cancelled
        > prompt mode
        < text ask
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn plans_usage_and_titles_are_told() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > prompt plan
        < plan Look (high, pending), Leap (low, pending)
        < plan Look (high, completed), Leap (low, pending)
        < usage 7/100
        < title Planning
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_version_1_client_serves_files_and_terminals() {
    check(
        &[1],
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > prompt files
        < read /project/in 2+3
        < write /project/out SOME TEXT
        < end end_turn
        > prompt terminal
        < run cargo [\"test\"]
        < output of t1
        < kill t1
        < wait for t1
        < release t1
        < text running SIGKILL
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn modes_and_options_are_set_and_switched() {
    // In `/modes` their agent of version 1 knows modes and no options.
    for cwd in ["/work", "/modes"] {
        check(
            BOTH,
            &format!(
                "
                > open {cwd}
                < options mode=ask
                < commands /web <query>
                > mode code
                < ok
                > prompt mode
                <? options mode=code
                < text code
                < end end_turn
                > mode nonsense
                < failed -32602
                "
            ),
        )
        .await;
    }
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > option mode code
        < options mode=code
        > option mode ask
        < options mode=ask
        > option mode nonsense
        < failed -32602
        > prompt switch
        < options mode=code
        <? options mode=ask
        <? options mode=code
        < end end_turn
        > prompt mode
        < text code
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_session_is_listed_loaded_resumed_closed_and_deleted() {
    check(
        BOTH,
        "
        > list
        < session old in /work: Old
        > load old
        < user hi
        < text hello
        < options mode=ask
        < commands /web <query>
        > prompt mode
        < text ask
        < end end_turn
        > close
        < ok
        > prompt hello
        < failed -32002
        > resume old
        < options mode=ask
        < commands /web <query>
        > prompt mode
        < text ask
        < end end_turn
        > close
        < ok
        > delete old
        < ok
        > list
        < no sessions
        > load old
        < failed -32002
        ",
    )
    .await;
}

#[tokio::test]
async fn who_is_not_logged_in_is_told_so_and_logs_in() {
    check(
        BOTH,
        "
        > open /locked
        < failed -32000
        > login key
        < ok
        > open /locked
        < options mode=ask
        < commands /web <query>
        > logout
        < ok
        > open /locked
        < failed -32000
        ",
    )
    .await;
}

#[tokio::test]
async fn extensions_are_called_and_noted_both_ways() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > call _test/double 21
        < answered 42
        > call _test/nothing 1
        < failed -32601
        > note _test/note 5
        < ok
        > note _test/unheard 5
        < ok
        > prompt notes
        < text 5
        < end end_turn
        > prompt extension
        < called _test/ask 1
        < text got 2
        < noted _test/note 3
        < text refused -32601
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_prompt_that_fails_leaves_the_session_usable() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > prompt fail
        < failed -32050 out of luck
        > prompt mode
        < text ask
        < end end_turn
        ",
    )
    .await;
}

#[tokio::test]
async fn a_session_is_closed_while_it_works() {
    check(
        BOTH,
        "
        > open /work
        < options mode=ask
        < commands /web <query>
        > quit wait
        < text cancel me
        < text stopped
        < end cancelled
        < closed
        > prompt hello
        < failed -32002
        ",
    )
    .await;
}

#[tokio::test]
async fn an_agent_of_one_function_serves_their_clients() {
    within_limit(async {
        for version in BOTH {
            let agent = attache::agent_fn("echo", "1", async |turn: Turn, prompt: Prompt| {
                turn.text(prompt.text()).await?;
                Ok(Stop::EndTurn)
            });
            let (near, far) = tokio::io::duplex(1024);
            let (reader, writer) = tokio::io::split(far);
            tokio::spawn(attache::serve(agent).connect(reader, writer));
            let seen = match version {
                1 => echoed(their_client::connect_v1(near).await.unwrap()).await,
                _ => echoed(their_client::connect_v2(near).await.unwrap()).await,
            };
            // Without a store, only version 2 has to know how to resume, and then tells the state before it answers.
            match version {
                1 => assert_eq!(seen, ["failed -32601", "text ping", "end end_turn"]),
                _ => assert_eq!(
                    seen,
                    ["~idle", "resumed", "user ping", "~running", "text ping", "~idle end_turn", "end end_turn"]
                ),
            }
        }
    })
    .await;
}

async fn echoed<V: version::Version>(mut client: their_client::TheirClient<V>) -> Vec<String> {
    let mut seen = client.open_and_resume().await;
    seen.extend(client.step("prompt", "ping").await);
    seen
}

#[tokio::test]
async fn version_2_refuses_what_it_did_not_offer_to_take() {
    within_limit(async {
        let (near, far) = tokio::io::duplex(1024);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(our_agent::server().connect(reader, writer));
        let client = their_client::connect_v2(near).await.unwrap();
        let server = |server| json!({"cwd": "/work", "mcpServers": [server]});
        let stdio = json!({"type": "stdio", "name": "n", "command": "/bin/n"});
        let session = client.call_any("session/new", server(stdio)).await.unwrap()["sessionId"].clone();
        let prompt = |block| json!({"sessionId": session, "prompt": [block]});
        for (method, params) in [
            ("session/new", server(json!({"type": "http", "name": "n", "url": "https://mcp.example"}))),
            ("session/new", server(json!({"type": "_other", "name": "n"}))),
            ("session/prompt", prompt(json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}))),
            ("session/prompt", prompt(json!({"type": "_other"}))),
            ("session/prompt", json!({"sessionId": session, "prompt": []})),
        ] {
            let answer = client.call_any(method, params.clone()).await;
            assert_eq!(i32::from(answer.unwrap_err().code), -32602, "{method} {params}");
        }
        let link = json!({"type": "resource_link", "name": "n", "uri": "file:///project/n"});
        client.call_any("session/prompt", prompt(link)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_not_offered_is_not_found() {
    within_limit(async {
        for method in ["session/nothing", "fs/read_text_file", "session/set_title", "$/nothing", "_test/nothing"] {
            for version in BOTH {
                let (near, far) = tokio::io::duplex(1024);
                let (reader, writer) = tokio::io::split(far);
                tokio::spawn(our_agent::server().connect(reader, writer));
                let params = json!({"sessionId": "s", "path": "/project/in", "title": "t"});
                let answer = match version {
                    1 => their_client::connect_v1(near).await.unwrap().call_any(method, params).await,
                    _ => their_client::connect_v2(near).await.unwrap().call_any(method, params).await,
                };
                assert_eq!(i32::from(answer.unwrap_err().code), -32601, "{method} in version {version}");
            }
        }
        // The other way round: a client that offers no files.
        let (way, _serving) = Wire::Pipe.serve(1, Side::Theirs).await;
        let agent = way.greet(Client::new("plain", "1").protocol(Protocol::V1)).await.unwrap();
        let session = agent.session("/work").open().await.unwrap();
        let mut turn = session.prompt("files").await.unwrap();
        let error = loop {
            match turn.next().await {
                Ok(Some(Event::Update(_))) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Refused(error) if error.code == -32601));
    })
    .await;
}

#[tokio::test]
async fn two_sessions_work_at_once() {
    within_limit(async {
        for wire in Wire::ALL {
            let (way, _serving) = wire.serve(1, Side::Ours).await;
            let [cancelled, short] = way.their_client_v1().await.two_at_once().await;
            assert_eq!(cancelled, ["cancel me", "stopped", "cancelled"], "{wire:?}");
            assert_eq!(short, ["Hello", ", world", "end_turn"], "{wire:?}");
            for version in BOTH {
                let (way, _serving) = wire.serve(*version, Side::Theirs).await;
                let agent = way.greet(Client::new("ours", "1")).await.unwrap();
                let (one, other) = (agent.session("/work").open().await, agent.session("/work").open().await);
                let (one, other) = (one.unwrap(), other.unwrap());
                let waiting = one.prompt("wait").await.unwrap();
                assert_eq!(other.prompt("hello").await.unwrap().text().await.unwrap(), "Hello, world");
                waiting.cancel().await.unwrap();
                assert_eq!(waiting.text().await.unwrap(), "cancel mestopped", "{wire:?}, version {version}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn versions_are_agreed_on() {
    within_limit(async {
        let client = |protocol| Client::new("ours", "1").protocol(protocol);
        for (protocol, version, expected) in [
            (Protocol::Auto, 1, Ok(Dialect::V1)),
            (Protocol::Auto, 2, Ok(Dialect::V2)),
            (Protocol::V1, 1, Ok(Dialect::V1)),
            (Protocol::V2, 2, Ok(Dialect::V2)),
            // An agent of version 1 answers with its own version, one of version 2 with an error that names them.
            (Protocol::V2, 1, Err("version 1")),
            (Protocol::V1, 2, Err("-32022")),
        ] {
            let clients = [client(protocol), client(protocol).read_files().terminals()];
            for (wire, client) in Wire::ALL.into_iter().flat_map(|wire| clients.clone().map(|client| (wire, client))) {
                let (way, _serving) = wire.serve(version, Side::Theirs).await;
                let agreed = match way.greet(client).await {
                    Ok(agent) => {
                        agent.session("/work").open().await.unwrap();
                        Ok(agent.dialect())
                    }
                    Err(Error::Version { peer: 1 }) => Err("version 1"),
                    Err(Error::Refused(error)) if error.code == -32022 => Err("-32022"),
                    Err(other) => panic!("{protocol:?} on version {version}, {wire:?}: {other}"),
                };
                assert_eq!(agreed, expected, "{protocol:?} on version {version}, {wire:?}");
            }
        }
    })
    .await;
}
