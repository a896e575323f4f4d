//! What is loaded is what was shown live.

use attache::{Protocol, SessionView};
use attache_testkit::model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::help::{is_at_rest, load, picture, said, same, scripted, show, waiting};
use crate::support::{DIALECTS, Person, Says, World};

/// A talk with everything in it: texts, thoughts, diffs, commands, plans, calls side by side and calls that fail.
const TALK: &[&str] = &[
    "remember apple\nthink Let me think about it.\nsay Hello there.",
    r#"remember pear
call read_file {"path":"a.txt"}
and list_directory {}
and search_files {"pattern":"on."}
say Now I change it.
call edit_file {"path":"a.txt","old_text":"one","new_text":"eins"}
call write_file {"path":"new/b.txt","content":"fresh\n"}
call move_file {"from":"new/b.txt","to":"c.txt"}"#,
    r#"call update_plan {"entries":[{"content":"first","status":"completed"},{"content":"second","status":"pending"}]}
call run_command {"command":"echo some output; echo more >&2"}
call run_command {"command":"echo it goes wrong; exit 3"}
call run_command {"command":"sleep 5","timeout_seconds":1}
call read_file {"path":"missing.txt"}
call no_such_tool {"a":1}
call think {"thought":"what now"}
call edit_file {"path":"a.txt","old_text":"nowhere","new_text":"x"}"#,
];

async fn check(person: Person) {
    let world = scripted().await;
    world.put("a.txt", "one\ntwo\n");
    let mut chat = world.open(person.clone()).await;
    let mut live = SessionView::new();
    for prompt in TALK {
        let seen = show(&mut chat, &mut live, prompt).await;
        assert!(seen.ends_with("stop end_turn"), "{seen}");
    }
    chat.says(Says::RejectOnce);
    show(&mut chat, &mut live, r#"call delete_file {"path":"a.txt"}"#).await;
    is_at_rest(&live, "live");
    let id = chat.session().id().clone();
    chat.session().close().await.unwrap();
    drop(chat);

    let mut chat = world.connect(person.clone()).await;
    let loaded = load(&mut chat, &world.project(), &id).await;
    let (mut before, mut after) = (picture(&live), picture(&loaded));
    if person.terminals {
        // The client's terminals are gone; what they had shown is there as text.
        let shown = terminals_to_text(&mut before, &mut after);
        assert_eq!(shown.len(), 3, "{shown:?}");
        assert!(shown[0].contains("some output") && shown[1].contains("goes wrong"), "{shown:?}");
    }
    same(&before, &after, &format!("{person:?}"));
    let found = after.to_string();
    for part in ["```txt\\none\\ntwo\\n```", "\"totalLines\":2", "a.txt:1: one"] {
        assert!(found.contains(part), "{part}: {found}");
    }

    // It goes on: shown as one talk, and known to the model as one.
    let mut live = loaded;
    let seen = show(&mut chat, &mut live, "remember plum\nrecall").await;
    assert!(seen.contains("remembered apple pear plum"), "{seen}");
    chat.session().close().await.unwrap();
    let loaded = load(&mut chat, &world.project(), &id).await;
    same(&picture(&live), &picture(&loaded), "loaded twice");
}

/// Takes the content of calls with terminals out of both, and gives the text that stands in its place.
fn terminals_to_text(before: &mut Value, after: &mut Value) -> Vec<String> {
    let mut texts = Vec::new();
    let entries = before["timeline"].as_array_mut().unwrap().iter_mut();
    for (before, after) in entries.zip(after["timeline"].as_array_mut().unwrap()) {
        let is_terminal = |part: &Value| part["type"] == "terminal";
        if before["content"].as_array().is_some_and(|content| content.iter().any(is_terminal)) {
            texts.push(after["content"][0]["content"]["text"].as_str().unwrap_or_default().to_owned());
            before["content"] = Value::Null;
            after["content"] = Value::Null;
        }
    }
    texts
}

#[tokio::test]
async fn a_version_1_session_is_loaded_as_it_was_live() {
    check(Person::at(Protocol::V1)).await;
}

#[tokio::test]
async fn a_version_2_draft_session_is_loaded_as_it_was_live() {
    check(Person::at(Protocol::V2Draft)).await;
}

#[tokio::test]
async fn a_version_2_session_is_loaded_as_it_was_live_with_its_terminals() {
    check(Person::at(Protocol::V2)).await;
}

#[tokio::test]
async fn a_session_with_the_clients_files_and_terminals_is_loaded_with_their_text() {
    check(Person { files: true, terminals: true, news: true, ..Person::new() }).await;
}

#[tokio::test]
async fn a_session_can_be_loaded_in_every_other_dialect() {
    let world = scripted().await;
    let run = "say Here.\ncall run_command {\"command\":\"echo some output\"}";
    for (from, terminals) in [(Protocol::V1, true), (Protocol::V1, false), (Protocol::V2, false)] {
        for to in DIALECTS {
            let mut chat = world.open(Person { terminals, ..Person::at(from) }).await;
            chat.turn(run).await;
            let id = chat.session().id().clone();
            drop(chat.session().close().await);
            let mut chat = world.connect(Person::at(to)).await;
            let view = load(&mut chat, &world.project(), &id).await;
            is_at_rest(&view, "loaded");
            assert_eq!(said(&view), "Here.done");
            let shown = picture(&view);
            let call = &shown["timeline"].as_array().unwrap().iter().find(|entry| entry["type"] == "tool_call");
            let content = call.unwrap()["content"].clone();
            match (from, to) {
                (Protocol::V2, Protocol::V2) => {
                    assert_eq!(content[0]["terminalId"], shown["terminals"][0]["terminalId"], "{shown}");
                }
                // A terminal that nobody has is no terminal.
                _ => {
                    let text = content[0]["content"]["text"].as_str().unwrap_or_default();
                    assert!(text.contains("some output"), "{from:?} {to:?}: {shown}");
                    assert_eq!(shown["terminals"], json!([]));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_compaction_is_loaded_and_the_model_goes_on_with_its_summary() {
    for person in [Person { news: true, ..Person::new() }, Person::new(), Person::at(Protocol::V2)] {
        let server = ModelServer::with(|request| match request.tool_names().is_empty() {
            true => Answer::text("THE SUMMARY"),
            false => Answer::text("fine"),
        });
        let world = World::new("openai:scripted", Some(server.await));
        let mut chat = world.open(person.clone()).await;
        let mut live = SessionView::new();
        for prompt in ["the first thing", "/compact", "the second thing"] {
            show(&mut chat, &mut live, prompt).await;
        }
        let id = chat.session().id().clone();
        chat.session().close().await.unwrap();
        let loaded = load(&mut chat, &world.project(), &id).await;
        same(&picture(&live), &picture(&loaded), &format!("{person:?}"));
        assert!(said(&loaded).starts_with("fine"), "the history is kept");
        let has_summary = picture(&loaded).to_string().contains("THE SUMMARY");
        assert_eq!(has_summary, person.news || person.protocol == Protocol::V2, "{}", picture(&loaded));
        chat.turn("the third thing").await;
        let texts = world.model().requests().last().unwrap().texts();
        let (first, second) = texts[0].split_once("THE SUMMARY").unwrap();
        assert!(first.starts_with("the first thing\n\nSummary of the conversation"), "{texts:?}");
        assert_eq!((second, &texts[1..]), ("\n\nthe second thing", &["fine".into(), "the third thing".into()][..]));
    }
}

#[tokio::test]
async fn a_resumed_session_says_nothing_old_and_the_model_knows_all_of_it() {
    for protocol in DIALECTS {
        let world = scripted().await;
        world.put("a.txt", "one\n");
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("remember apple\ncall read_file {\"path\":\"a.txt\"}").await;
        let id = chat.session().id().clone();
        drop(chat);
        let mut chat = world.connect(Person::at(protocol)).await;
        let opened = loop {
            // The agent of the connection that was dropped may still be putting its things away.
            match chat.connection.session(world.project()).resume(id.clone()).await {
                Ok(session) => break session,
                Err(error) => assert!(error.to_string().contains("open in another window"), "{error}"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        };
        chat.session = Some(opened);
        let mut view = SessionView::new();
        for update in waiting(&chat) {
            view.apply(&update);
        }
        assert_eq!(view.timeline().len(), 0, "{protocol:?}");
        let seen = chat.turn("recall").await;
        assert!(seen.contains("remembered apple"), "{seen}");
        assert!(world.results()[0].contains("one"), "{:?}", world.results());
    }
}

#[tokio::test]
async fn what_was_set_and_the_title_are_the_same_after_a_load() {
    for protocol in DIALECTS {
        let world = scripted().await;
        let mut chat = world.open(Person::at(protocol)).await;
        assert_eq!(chat.option("mode").as_deref(), Some("ask"));
        chat.set("mode", "architect").await;
        chat.set("sandbox", "offline").await;
        chat.set("model", "offline:rules").await;
        let mut live = SessionView::new();
        show(&mut chat, &mut live, "help\nand more").await;
        let id = chat.session().id().clone();
        assert_eq!(live.title.as_deref(), Some("help …"));
        chat.session().close().await.unwrap();

        let mut chat = world.connect(Person::at(protocol)).await;
        let loaded = load(&mut chat, &world.project(), &id).await;
        assert_eq!(loaded.title, live.title);
        for (option, value) in [("mode", "architect"), ("sandbox", "offline"), ("model", "offline:rules")] {
            assert_eq!(chat.option(option).as_deref(), Some(value), "{protocol:?}");
        }
        let seen = chat.turn("create x.txt with hello").await;
        assert!(seen.contains("this mode has no tool `write_file`") && world.files().is_empty(), "{seen}");
    }
}

#[tokio::test]
async fn a_session_that_is_not_there_is_named_as_such() {
    let world = World::offline();
    for protocol in DIALECTS {
        let chat = world.connect(Person::at(protocol)).await;
        // What looks like none is not repeated.
        for (id, repeated) in [("sess_nowhere", Some("sess_nowhere")), ("../../etc", None)] {
            let opening = || chat.connection.session(world.project());
            for opened in [opening().load(id).await, opening().resume(id).await] {
                let Err(attache::Error::Refused(error)) = opened else { panic!("{protocol:?} {id}") };
                assert_eq!(error.code, -32002, "{protocol:?} {id}: {error}");
                let named = error.session_id();
                assert_eq!(named.as_ref().map(|id| id.as_str()), repeated, "{protocol:?}: {error}");
            }
        }
    }
}

/// A client that has some of a message already does not show that twice: each begins with a whole one that is empty.
#[tokio::test]
async fn messages_of_a_replay_begin_with_nothing_since_version_2() {
    use attache::model::Patch;
    use attache::model::update::SessionUpdate;
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::text("Hello.").thought("Hm."), Answer::text("Bye.")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("hi").await;
        chat.turn("bye").await;
        let id = chat.session().id().clone();
        chat.session().close().await.unwrap();
        chat.session = Some(chat.connection.session(world.project()).load(id).await.unwrap());
        let mut seen = Vec::new();
        for update in waiting(&chat) {
            seen.push(match update {
                SessionUpdate::AgentMessage(message) if message.content == Patch::Set(Vec::new()) => {
                    "answer".to_owned()
                }
                SessionUpdate::AgentThought(message) if message.content == Patch::Set(Vec::new()) => {
                    "thought".to_owned()
                }
                SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
                    chunk.content.as_text().unwrap().to_owned()
                }
                _ => continue,
            });
        }
        match protocol {
            Protocol::V1 => assert_eq!(seen, ["Hm.", "Hello.", "Bye."]),
            _ => assert_eq!(seen, ["thought", "Hm.", "answer", "Hello.", "answer", "Bye."], "{protocol:?}"),
        }
    }
}
