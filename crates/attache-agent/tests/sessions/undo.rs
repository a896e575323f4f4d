//! What an agent changed can be taken back when it was killed, and when the disk was full meanwhile.

use std::fs;

use crate::help::{load, scripted};
use crate::served::Served;
use crate::support::{Person, World};

/// Runs a turn until the project looks like this, then kills the agent.
async fn kill_when(world: &World, prompt: &str, wanted: &str) -> attache::model::session::SessionId {
    let mut served = Served::start(world, Person::new(), &[]).await;
    served.chat.open(&world.project()).await;
    served.chat.set("sandbox", "off").await;
    let id = served.chat.session().id().clone();
    let mut turn = served.chat.session().clone().prompt(prompt).await.unwrap();
    let mut transcript = Default::default();
    loop {
        let event = tokio::select! {
            event = turn.next() => event.unwrap().expect("the turn does not end by itself"),
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {
                if world.files() == wanted {
                    break;
                }
                continue;
            }
        };
        served.chat.handle(event, &mut transcript).await;
    }
    served.kill().await;
    id
}

#[tokio::test]
async fn a_turn_can_be_taken_back_after_the_agent_was_killed() {
    let world = scripted().await;
    world.put("a.txt", "before\n");
    world.put("b.txt", "before\n");
    let prompt = "call read_file {\"path\":\"a.txt\"}\n\
                  call edit_file {\"path\":\"a.txt\",\"old_text\":\"before\",\"new_text\":\"after\"}\n\
                  call run_command {\"command\":\"echo after > b.txt\"}\n\
                  call write_file {\"path\":\"c.txt\",\"content\":\"new\"}\nslowly";
    let id = kill_when(&world, prompt, "a.txt \"after\\n\"\nb.txt \"after\\n\"\nc.txt \"new\"").await;
    let mut chat = world.connect(Person::new()).await;
    load(&mut chat, &world.project(), &id).await;
    let seen = chat.turn("/undo all").await;
    assert_eq!(world.files(), "a.txt \"before\\n\"\nb.txt \"before\\n\"", "{seen}");
    assert!(!seen.contains("Left alone"), "{seen}");
}

#[tokio::test]
async fn what_a_command_was_changing_when_the_agent_was_killed_is_said_to_be_unknown() {
    let world = scripted().await;
    world.put("a.txt", "before\n");
    world.put("b.txt", "before\n");
    let prompt = "call read_file {\"path\":\"a.txt\"}\n\
                  call edit_file {\"path\":\"a.txt\",\"old_text\":\"before\",\"new_text\":\"after\"}\n\
                  call run_command {\"command\":\"echo after > b.txt; sleep 60\"}";
    let id = kill_when(&world, prompt, "a.txt \"after\\n\"\nb.txt \"after\\n\"").await;
    let mut chat = world.connect(Person::new()).await;
    load(&mut chat, &world.project(), &id).await;
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("`a.txt`: restored") && seen.contains("stopped while a command ran"), "{seen}");
    assert_eq!(world.files(), "a.txt \"before\\n\"\nb.txt \"after\\n\"");
}

#[tokio::test]
async fn a_command_that_is_cancelled_is_taken_back() {
    let world = scripted().await;
    world.put("b.txt", "before\n");
    let mut chat = world.open(Person::new()).await;
    let prompt = "call run_command {\"command\":\"echo after > b.txt; echo ready; sleep 60\"}";
    let mut turn = chat.session().clone().prompt(prompt).await.unwrap();
    let mut transcript = Default::default();
    let mut is_cancelled = false;
    while let Some(event) = turn.next().await.unwrap() {
        // Its output is an event, and comes after that.
        if world.files().contains("after") && !is_cancelled {
            is_cancelled = true;
            turn.cancel().await.unwrap();
        }
        chat.handle(event, &mut transcript).await;
    }
    assert_eq!(world.files(), "b.txt \"after\\n\"");
    let seen = chat.turn("/undo all").await;
    assert!(seen.contains("`b.txt`: restored"), "{seen}");
    assert_eq!(world.files(), "b.txt \"before\\n\"");
}

#[tokio::test]
async fn what_cannot_be_kept_on_a_full_disk_is_said_once_and_the_work_goes_on() {
    let world = scripted().await;
    world.put("small.txt", "before\n");
    world.put("large.txt", &"x".repeat(60_000));
    // A process that may not write files of more than some blocks stands for a full disk.
    let mut served = Served::start_limited(&world, Person::new(), 64).await;
    served.chat.open(&world.project()).await;
    served.chat.set("sandbox", "off").await;
    let seen = served.chat.turn("call run_command {\"command\":\"echo after > small.txt\"}").await;
    assert!(seen.contains("completed") && seen.contains("`/undo` cannot take back what commands change"), "{seen}");
    let seen = served.chat.turn("call run_command {\"command\":\"echo again > small.txt\"}").await;
    assert!(seen.contains("completed") && !seen.contains("cannot take back"), "{seen}");
    assert_eq!(fs::read_to_string(world.project().join("small.txt")).unwrap(), "again\n");
    let seen = served.chat.turn("/undo").await;
    assert!(seen.contains("Nothing was taken back") && seen.contains("could not be looked at"), "{seen}");
    let seen = served.chat.turn(
        "call read_file {\"path\":\"small.txt\"}\ncall edit_file {\"path\":\"small.txt\",\"old_text\":\"again\",\"new_text\":\"edited\"}",
    )
    .await;
    assert!(!seen.contains("failed"), "{seen}");
    let seen = served.chat.turn("/undo").await;
    assert!(seen.contains("`small.txt`: restored"), "what is small is kept all the same: {seen}");
}
