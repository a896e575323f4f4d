//! The agent is killed in the middle of a turn: what was shown is there when the session is loaded.

use std::time::{Duration, Instant};

use attache::proto::view::Entry as Shown;
use attache::{Event, Protocol, SessionView};
use attache_agent::store::{Entry, FileStore, Store};
use attache_testkit::Dice;
use attache_testkit::model_server::Answer;

use crate::help::{is_alive, is_at_rest, is_text, load, picture, same, until};
use crate::served::Served;
use crate::support::{LONGEST, Person, World};

/// A turn that does a bit of everything, for about two seconds.
const WORK: &str = "slowly one two three four\nrun echo hello; sleep 0.2; echo again\ncreate x.txt with \"hi\"\n\
                    read x.txt\nplan first, second\nreplace \"hi\" with \"ho\" in x.txt\nsearch ho\nrun exit 3\n\
                    slowly five six seven";

/// When the agent is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// After so many events.
    Events(usize),
    /// After so many milliseconds.
    Time(u64),
    /// While permission is asked for.
    Asked,
}

/// Runs the work until the agent is killed. Gives what the client had been shown.
async fn run_and_kill(served: &mut Served, moment: Moment) -> SessionView {
    let mut view = SessionView::new();
    view.user_prompt(&[WORK.into()]);
    let mut turn = served.chat.session().clone().prompt(WORK).await.unwrap();
    let begun = Instant::now();
    let (mut transcript, mut count, mut is_killed) = (Default::default(), 0, false);
    loop {
        let wait = match moment {
            Moment::Time(after) if !is_killed => Duration::from_millis(after).saturating_sub(begun.elapsed()),
            _ => LONGEST,
        };
        let next = match tokio::time::timeout(wait, turn.next()).await {
            Ok(next) => next,
            Err(_) => {
                served.kill().await;
                is_killed = true;
                continue;
            }
        };
        // What was on the way is read to its end.
        let Ok(Some(event)) = next else {
            served.kill().await;
            return view;
        };
        count += 1;
        let is_now = match moment {
            Moment::Events(events) => count == events,
            Moment::Time(_) => false,
            Moment::Asked => matches!(event, Event::Permission(_)),
        };
        if is_now {
            served.kill().await;
            is_killed = true;
        }
        match event {
            Event::Update(update) => _ = view.apply(&update),
            _ if is_killed => {}
            other => served.chat.handle(other, &mut transcript).await,
        }
    }
}

/// Everything that was shown is in what was loaded, in its place; what was running has ended there.
fn check_shown(shown: &SessionView, loaded: &SessionView, what: &str) {
    let (before, after) = (shown.timeline(), loaded.timeline());
    assert!(before.len() <= after.len(), "{what}: {} of {} entries are left", after.len(), before.len());
    for (before, after) in before.iter().zip(after) {
        match (before, after) {
            (Shown::Message(before), Shown::Message(after)) => {
                assert_eq!(before.role, after.role, "{what}");
                assert!(after.text().starts_with(&before.text()), "{what}: {before:?} {after:?}");
                assert!(before.id.is_none() || before.id == after.id, "{what}: {before:?} {after:?}");
            }
            (Shown::ToolCall(before), Shown::ToolCall(after)) => {
                assert_eq!((&before.id, &before.name), (&after.id, &after.name), "{what}");
                if before.status.is_final() {
                    assert_eq!(before, after, "{what}");
                }
            }
            (before, after) => assert_eq!(before, after, "{what}"),
        }
    }
    for (id, terminal) in &shown.terminals {
        let after = loaded.terminals[id].output.bytes();
        assert!(after.starts_with(terminal.output.bytes()), "{what}: {terminal:?}");
    }
    assert!(shown.title.is_none() || shown.title == loaded.title, "{what}");
}

async fn check(protocol: Protocol, moment: Moment) {
    let what = format!("{protocol:?} {moment:?}");
    let world = World::offline();
    let person = Person::at(protocol);
    let mut served = Served::start(&world, person.clone(), &[]).await;
    served.chat.open(&world.project()).await;
    let id = served.chat.session().id().clone();
    let shown = run_and_kill(&mut served, moment).await;

    // Twice: what is repaired is kept, and nothing is repaired again.
    let mut again = Served::start(&world, person.clone(), &[]).await;
    let loaded = load(&mut again.chat, &world.project(), &id).await;
    is_at_rest(&loaded, &what);
    check_shown(&shown, &loaded, &what);
    again.kill().await;
    let mut again = Served::start(&world, person, &[]).await;
    let loaded_again = load(&mut again.chat, &world.project(), &id).await;
    same(&picture(&loaded), &picture(&loaded_again), &what);

    let seen = again.chat.turn("create y.txt with \"more\"").await;
    assert!(seen.contains("completed") && seen.ends_with("stop end_turn"), "{what}: {seen}");
    let entries = FileStore::open(world.config.sessions_dir()).unwrap().read(id.as_str()).unwrap();
    assert!(!entries.iter().any(|entry| matches!(entry, Entry::Unknown(_))), "{what}");
    let prompts = entries.iter().filter(|entry| matches!(entry, Entry::Prompt { .. })).count();
    assert!((1..=2).contains(&prompts), "{what}: {prompts}");
}

#[tokio::test]
async fn killed_after_any_number_of_events_everything_that_was_shown_is_loaded() {
    let mut dice = Dice::new(7);
    for round in 0..8 {
        let protocol = [Protocol::V2, Protocol::V1][round % 2];
        check(protocol, Moment::Events(1 + dice.below(45))).await;
    }
}

#[tokio::test]
async fn killed_at_any_time_everything_that_was_shown_is_loaded() {
    let mut dice = Dice::new(11);
    for round in 0..6 {
        let protocol = [Protocol::V2, Protocol::V1][round % 2];
        check(protocol, Moment::Time(dice.below(1500) as u64)).await;
    }
}

#[tokio::test]
async fn killed_while_permission_is_asked_for_the_call_has_an_end_when_it_is_loaded() {
    for protocol in [Protocol::V1, Protocol::V2] {
        check(protocol, Moment::Asked).await;
    }
}

#[tokio::test]
async fn a_command_does_not_outlive_an_agent_that_is_killed() {
    let world = World::offline();
    let mut served = Served::start(&world, Person::new(), &[]).await;
    served.chat.open(&world.project()).await;
    let line =
        "run setsid sh -c 'echo $$ >a; sleep 1000' & while ! [ -s a ]; do sleep 0.01; done; echo $$ >b; sleep 1000";
    let session = served.chat.session().clone();
    let mut turn = session.prompt(line).await.unwrap();
    let pid = |name: &str| std::fs::read_to_string(world.project().join(name)).ok()?.trim().parse::<u32>().ok();
    while pid("b").is_none() {
        let Ok(next) = tokio::time::timeout(Duration::from_millis(20), turn.next()).await else { continue };
        let event = next.unwrap().expect("the command runs");
        if !is_text(&event) {
            served.chat.handle(event, &mut Default::default()).await;
        }
    }
    let pids = [pid("a").unwrap(), pid("b").unwrap()];
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    served.kill().await;
    until("processes are left", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

/// Killed while a summary is written, the session is what it was before: nothing of the conversation is lost.
#[tokio::test]
async fn killed_in_the_middle_of_a_compaction_the_session_is_as_before_it() {
    for protocol in [Protocol::V1, Protocol::V2] {
        let answers = vec![Answer::text("Blue."), Answer::text("Green."), Answer::hang(), Answer::text("Yes.")];
        let world = World::answering(answers).await;
        let person = Person { news: true, ..Person::at(protocol) };
        let mut served = Served::start(&world, person.clone(), &[]).await;
        served.chat.open(&world.project()).await;
        let id = served.chat.session().id().clone();
        served.chat.turn("which colour?").await;
        served.chat.turn("and the other?").await;
        let mut turn = served.chat.session().clone().prompt("/compact").await.unwrap();
        world.model().wait_for_requests(3).await;
        served.kill().await;
        while let Ok(Some(_)) = turn.next().await {}

        let mut again = Served::start(&world, person, &[]).await;
        let loaded = load(&mut again.chat, &world.project(), &id).await;
        is_at_rest(&loaded, "after a compaction that was killed");
        let seen = again.chat.turn("sure?").await;
        assert!(seen.ends_with("text Yes.\nusage\nstop end_turn"), "{seen}");
        let texts = world.model().requests()[3].texts();
        assert_eq!(texts, ["which colour?", "Blue.", "and the other?", "Green.", "sure?"]);
    }
}
