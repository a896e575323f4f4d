//! The three questions, at a terminal.

use std::process::{Command, Stdio};

use attache_testkit::model_server::{Answer, ModelServer};

use super::support::at_terminal;
use super::{Home, KEY, read, setup, tree, with_key, write};

/// Answers at a terminal; returns what was seen, and the exit code. The terminal shows what is typed in the end.
#[track_caller]
fn asked(mut command: Command, answers: &[(&str, &str)]) -> (String, i32) {
    command.stdout(Stdio::null());
    let (seen, code, shows) = at_terminal(command, true, answers);
    assert!(shows && !seen.contains(KEY), "{seen}");
    (seen, code)
}

const NUMBER: &str = "Number [1]: ";
const EDITOR: &str = "Number, or several [1]: ";
const AGREE: &str = "[N] no: ";

#[test]
fn three_answers_and_a_yes_are_enough() {
    let home = Home::new();
    write(&home.path("config/zed/settings.json"), "{}\n");
    let key = format!("{KEY}\n");
    let answers = [(NUMBER, "key\n"), (NUMBER, "groq\n"), ("(not shown): ", &key), (EDITOR, "\n"), (AGREE, "y\n")];
    let (seen, code) = asked(setup(&home, &["--no-test"]), &answers);
    assert_eq!(code, 0, "{seen}");
    for shown in
        ["1 of 3: which model?", "2 of 3: which provider?", "3 of 3: which editor?", "Zed, found here", "+model = "]
    {
        assert!(seen.contains(shown), "{shown} in {seen}");
    }
    assert_eq!(read(&home.path("config/attache/agent.toml")), "model = \"groq:openai/gpt-oss-120b\"\n");
    assert!(read(&home.path("config/zed/settings.json")).contains("Attaché"));
    assert_eq!(with_key(&home), [home.path("config/attache/keys.json")]);
    // What is there is the first answer now.
    let (seen, code) = asked(setup(&home, &["--no-test"]), &[(NUMBER, "\n"), (EDITOR, "zed\n")]);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("as it is in agent.toml") && seen.contains("nothing to change"), "{seen}");
}

#[test]
fn a_key_of_the_environment_is_left_there_or_copied() {
    for (answer, kept) in [("\n", false), ("copy\n", true)] {
        let home = Home::new();
        let mut command = setup(&home, &["--no-test"]);
        command.env("MISTRAL_API_KEY", KEY);
        let (seen, code) = asked(command, &[(NUMBER, "1\n"), (NUMBER, answer), (EDITOR, "none\n"), (AGREE, "yes\n")]);
        assert_eq!(code, 0, "{seen}");
        assert!(seen.contains("MISTRAL_API_KEY is set") && seen.contains("2 of 3: which key?"), "{seen}");
        assert_eq!(with_key(&home).len(), usize::from(kept));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_this_machine_is_found_and_asked() {
    let server = ModelServer::with(|_| Answer::text("ready")).await;
    server.list_models(&["small", "large"]);
    let home = Home::new();
    let mut command = setup(&home, &[]);
    command.env_remove("ATTACHE_MODEL_LISTS").env("OLLAMA_HOST", server.url());
    let answers = [(NUMBER, "ollama\n"), (NUMBER, "2\n"), (EDITOR, "none\n"), (AGREE, "y\n")];
    let (seen, code) = asked(command, &answers);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("on this machine: 2 models") && seen.contains("it answered in"), "{seen}");
    let settings = format!("model = \"ollama:large\"\nbase_url = \"{}/v1/\"\n", server.url());
    assert_eq!(read(&home.path("config/attache/agent.toml")), settings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_elsewhere_is_named_by_its_address() {
    let server = ModelServer::with(|_| Answer::text("ready")).await;
    let home = Home::new();
    let url = format!("{}/v1\n", server.url());
    let answers = [
        (NUMBER, "server\n"),
        ("host:8000/v1: ", "nowhere\n"),
        ("name there: ", "m\n"),
        ("host:8000/v1: ", &url),
        ("name there: ", "m\n"),
        ("Enter alone is none): ", "\n"),
        (EDITOR, "none\n"),
        (AGREE, "y\n"),
    ];
    let (seen, code) = asked(setup(&home, &[]), &answers);
    assert_eq!(code, 0, "{seen}");
    assert_eq!(
        read(&home.path("config/attache/agent.toml")),
        format!("model = \"openai:m\"\nbase_url = \"{}\"\n", url.trim())
    );
}

#[test]
fn who_gives_up_finds_everything_as_it_was() {
    let key = format!("{KEY}\n");
    let upto = |rest: &[(&'static str, &'static str)]| -> Vec<(&'static str, String)> {
        let first = [(NUMBER, "key\n".to_owned()), (NUMBER, "groq\n".into()), ("(not shown): ", key.clone())];
        first.into_iter().chain(rest.iter().map(|(question, answer)| (*question, (*answer).to_owned()))).collect()
    };
    let rows = [
        (vec![(NUMBER, "\u{3}".to_owned())], 130),
        (vec![(NUMBER, "\u{4}".to_owned())], 1),
        (upto(&[])[..2].iter().cloned().chain([("(not shown): ", "half\u{3}".to_owned())]).collect(), 130),
        (upto(&[(EDITOR, "\u{3}")]), 130),
        (upto(&[(EDITOR, "zed\n"), (AGREE, "\u{3}")]), 130),
        (upto(&[(EDITOR, "zed\n"), (AGREE, "\n")]), 1),
        (upto(&[(EDITOR, "zed\n"), (AGREE, "n\n")]), 1),
    ];
    for (answers, expected) in rows {
        let home = Home::new();
        write(&home.path("config/zed/settings.json"), "{}\n");
        let before = tree(home.0.path());
        let answers: Vec<(&str, &str)> =
            answers.iter().map(|(question, answer)| (*question, answer.as_str())).collect();
        let (seen, code) = asked(setup(&home, &["--no-test"]), &answers);
        assert_eq!(code, expected, "{seen}");
        assert_eq!(tree(home.0.path()), before, "{seen}");
    }
}

#[test]
fn what_is_no_answer_is_asked_again() {
    let home = Home::new();
    let answers =
        [(NUMBER, "99\n"), (NUMBER, "offline\n"), (EDITOR, "zed, nothing\n"), (EDITOR, "none\n"), (AGREE, "y\n")];
    let (seen, code) = asked(setup(&home, &["--no-test"]), &answers);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("Expected a number from 1 to 3, or a name.") && seen.contains("Expected numbers"), "{seen}");
}
