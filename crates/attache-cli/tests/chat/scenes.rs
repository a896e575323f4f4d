//! Whole screens as they were reviewed. `BLESS=1` writes them anew.

use std::path::Path;

use crate::driver::*;

/// Compares a screen with the one that was reviewed. Paths that differ from run to run are named.
#[track_caller]
fn check(name: &str, chat: &Chat) {
    let home = chat.home.0.path().display().to_string();
    let agent = crate::support::scripted();
    let agent = agent.as_str();
    let named = |line: &str| match line.contains(agent) || line.contains(&home) {
        // How long they are differs as well.
        true => line.replace(agent, "AGENT").replace(&home, "HOME").trim_end_matches('│').trim_end().to_owned(),
        false => line.trim_end().to_owned(),
    };
    let screen: Vec<String> = chat.screen().lines().map(named).collect();
    let screen = screen.join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/chat").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &screen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(screen, expected, "{name}: BLESS=1 takes it over\n{screen}");
}

fn named() -> Setup {
    let setup = Setup::new(&["chat", "-a", "tester"]);
    let agent = crate::support::scripted();
    setup.home.write_config(&format!(
        "[agents.tester]\ncommand = [{agent:?}, \"--generous\"]\ndescription = \"An agent for tests\"\n"
    ));
    setup
}

#[test]
fn an_empty_session() {
    let chat = named().start();
    chat.see_ready();
    chat.see("· Ask");
    check("empty", &chat);
}

#[test]
fn a_turn_with_everything() {
    let mut chat = named().start();
    chat.see_ready();
    chat.say("think it over; tool read the book; fail execute the order; say **Done**, see `x`; steps now; spend");
    chat.see("Plan (0/2)");
    chat.see("$1.50");
    chat.see_ready();
    check("turn", &chat);
}

#[test]
fn a_question() {
    let mut chat = named().start();
    chat.see_ready();
    chat.say("ask cargo test --workspace");
    chat.see("[y] yes");
    check("question", &chat);
}

#[test]
fn a_dead_agent() {
    let mut chat = named().start();
    chat.see_ready();
    chat.say("die here");
    chat.see("panicked at here");
    check("dead", &chat);
}

#[test]
fn the_list_to_begin_with() {
    let mut setup = named();
    setup.args = vec!["chat".into()];
    // Whatever agents this machine could download.
    let chat = setup.env("PATH", "/nowhere").start();
    chat.see("tester");
    check("choices", &chat);
}
