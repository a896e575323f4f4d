//! Permission: only a clear yes lets anything happen, and the person sees what they allow.

use attache::Protocol;
use attache::model::diff::Diff;
use attache::model::permission::{PermissionRequest, PermissionSubject};
use attache::model::tool::{ToolCallContent, ToolCallUpdate};
use serde_json::{Value, json};

use crate::calling;
use crate::support::{DIALECTS, Hook, Person, Says, World, check};

const NO: [Says; 7] = [
    Says::RejectOnce,
    Says::RejectAlways,
    Says::Cancelled,
    Says::SomethingElse,
    Says::Error,
    Says::Nonsense,
    Says::Nothing,
];

/// Everything that has to be asked for, one after the other.
fn changes() -> Vec<(&'static str, Value)> {
    vec![
        ("write_file", json!({"path": "new.txt", "content": "x"})),
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "a", "new_text": "b"})),
        ("move_file", json!({"from": "b.txt", "to": "c.txt"})),
        ("delete_file", json!({"path": "d.txt"})),
        ("run_command", json!({"command": "touch ran.txt"})),
        ("run_command", json!({"command": "touch ran.txt", "background": true})),
        ("read_file", json!({"path": "../secret.txt"})),
    ]
}

async fn answer(says: Says, protocol: Protocol) -> (World, String, usize) {
    let world = World::answering(calling(changes())).await;
    for name in ["a.txt", "b.txt", "d.txt"] {
        world.put(name, "a");
    }
    world.put_at("secret.txt", "secret");
    let mut chat = world.open(Person { says, ..Person::at(protocol) }).await;
    let seen = chat.turn("change everything").await;
    let asked = chat.asked.len();
    (world, seen, asked)
}

#[tokio::test]
async fn anything_but_a_clear_yes_is_no() {
    for protocol in DIALECTS {
        for says in NO {
            let (world, seen, asked) = answer(says, protocol).await;
            check(&world.files(), "a.txt \"a\"\nb.txt \"a\"\nd.txt \"a\"");
            assert!(seen.ends_with("stop end_turn"), "{protocol:?} {says:?}: {seen}");
            assert!(asked >= 6, "{protocol:?} {says:?}: {asked}");
            let results = world.results();
            assert_eq!(results.len(), changes().len());
            assert!(!results.concat().contains("secret\n"), "{results:?}");
            assert_eq!(results.iter().filter(|result| result.starts_with("error: ")).count(), 7, "{results:#?}");
        }
    }
}

#[tokio::test]
async fn a_clear_yes_lets_it_happen() {
    for protocol in DIALECTS {
        let (world, _, asked) = answer(Says::AllowOnce, protocol).await;
        check(&world.files(), "a.txt \"b\"\nc.txt \"a\"\nnew.txt \"x\"\nran.txt \"\"");
        assert_eq!(asked, 7, "once each");
    }
}

fn call(ask: &PermissionRequest) -> &ToolCallUpdate {
    let Some(PermissionSubject::ToolCall(subject)) = &ask.subject else { panic!("{ask:?}") };
    &subject.tool_call
}

#[tokio::test]
async fn the_request_carries_the_real_command() {
    let line = "printf 'a\\n' | sort -u | head -n 1 && echo \"done with a line that is much longer than any title is, \
                which is why all of it has to be somewhere else\"\ntrue";
    for protocol in DIALECTS {
        let world = World::answering(calling(vec![("run_command", json!({"command": line}))])).await;
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("run it").await;
        let call = call(&chat.asked[0]);
        let input: Value = serde_json::from_str(call.raw_input.set().unwrap().as_str()).unwrap();
        assert_eq!(input["command"], line);
        let ToolCallContent::Content(block) = &call.content.set().unwrap()[0] else { panic!("{call:?}") };
        assert!(block.content.as_text().unwrap().contains(line), "{block:?}");
    }
}

#[tokio::test]
async fn the_request_carries_the_diff() {
    for protocol in DIALECTS {
        let world = World::answering(calling(vec![
            ("read_file", json!({"path": "a.txt"})),
            ("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "eins"})),
        ]))
        .await;
        world.put("a.txt", "one\n");
        let mut chat = world.open(Person::at(protocol)).await;
        chat.turn("edit it").await;
        let call = call(&chat.asked[0]);
        let ToolCallContent::Diff(diff) = &call.content.set().unwrap()[0] else { panic!("{call:?}") };
        let diff: &Diff = diff;
        let diff = diff.to_text().unwrap();
        assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("one\n"), "eins\n"));
        assert_eq!(call.locations.set().unwrap()[0].path, world.project().join("a.txt").to_str().unwrap());
    }
}

/// What "always" stands for, as the options say it.
#[tokio::test]
async fn always_names_its_pattern() {
    let world = World::answering(calling(changes())).await;
    for name in ["a.txt", "b.txt", "d.txt"] {
        world.put(name, "a");
    }
    world.put_at("secret.txt", "secret");
    let mut chat = world.open(Person::new()).await;
    chat.turn("change everything").await;
    let names = chat.asked.iter().map(|ask| {
        let names: Vec<&str> = ask.options.iter().map(|option| option.name.as_str()).collect();
        format!("{}: {}", ask.title.as_deref().unwrap_or_default(), names.join(" | "))
    });
    let names: Vec<String> = names.collect();
    check(
        &names.join("\n").replace(world.root.to_str().unwrap(), "$WORLD"),
        r#"
        Create `new.txt`: Allow once | Always allow edit of `$WORLD/project/**` in this project | Always allow edit of `$WORLD/project/**` in this session | Reject | Never allow edit of `$WORLD/project/**` in this project
        Edit `a.txt`: Allow once | Always allow edit of `$WORLD/project/**` in this project | Always allow edit of `$WORLD/project/**` in this session | Reject | Never allow edit of `$WORLD/project/**` in this project
        Move `b.txt` to `c.txt`: Allow once | Always allow move of `$WORLD/project/**` in this project | Always allow move of `$WORLD/project/**` in this session | Reject | Never allow move of `$WORLD/project/**` in this project
        Delete `d.txt`: Allow once | Always allow delete of `$WORLD/project/d.txt` in this project | Always allow delete of `$WORLD/project/d.txt` in this session | Reject | Never allow delete of `$WORLD/project/d.txt` in this project
        touch ran.txt: Allow once | Always allow the command `touch ran.txt` in this project | Always allow the command `touch ran.txt` in this session | Reject | Never allow the command `touch ran.txt` in this project
        touch ran.txt: Allow once | Always allow the command `touch ran.txt` in this project | Always allow the command `touch ran.txt` in this session | Reject | Never allow the command `touch ran.txt` in this project
        Read `$WORLD/secret.txt`: Allow once | Reject
        "#,
    );
}

#[tokio::test]
async fn a_file_that_changes_while_the_person_thinks_is_not_overwritten() {
    let world = World::answering(calling(vec![
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": "eins"})),
    ]))
    .await;
    world.put("a.txt", "one\n");
    let project = world.project();
    let mut person = Person::new();
    person.before_answer = Some(Hook::new(move || std::fs::write(project.join("a.txt"), "mine\n").unwrap()));
    let seen = world.turn(person, "edit it").await;
    check(
        &seen,
        r#"
        tool read_file "Read `a.txt`" read: pending → in_progress → completed
          at ~/a.txt
          | ```txt
          | one
          | ```
        usage
        tool edit_file "Edit `a.txt`" edit: pending → in_progress → failed
          at ~/a.txt:1
          diff ~/a.txt: "one\n" → "eins\n"
          | `a.txt` has changed since it was read: read it again, then make the change
        usage
        permission "Edit `a.txt`" [allow_once, allow_always, allow_always, reject_once, reject_always] → allow_once
        text Done.
        usage
        stop end_turn
        "#,
    );
    check(&world.files(), "a.txt \"mine\\n\"");
}
