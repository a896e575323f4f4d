//! What goes to a model, because a repository says so or because a person named a file in it.

use std::os::unix::fs::symlink;
use std::process::Command;

use attache_testkit::model_server::{Answer, ModelServer};

use super::support::{Place, Ran};

/// What must never reach a model.
const SECRET: &str = "very-secret-0815";

/// Runs the built-in agent with a scripted model, and gives what the model was sent, all of it.
fn send(place: &Place, options: &[&str]) -> (Ran, String) {
    place.own();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(ModelServer::start(vec![Answer::text("Done.")]));
    let mut command: Command = place.command(&["run"]);
    command.args(options).env("ATTACHE_MODEL", "openai:scripted").env("OPENAI_API_KEY", "sk-test");
    command.env("ATTACHE_BASE_URL", format!("{}/v1", server.url())).env("PLANTED", SECRET);
    let ran = place.run(command);
    let sent = server.requests().iter().map(|request| request.body.to_string()).collect();
    (ran, sent)
}

/// A place whose home holds a key, and whose project is a repository.
fn place() -> Place {
    let place = Place::new();
    place.write(".ssh/id_rsa", SECRET);
    place.write("notes.txt", "plain notes\n");
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place
}

/// What an `AGENTS.md` is, and how it is made.
type Trap<'a> = (&'a str, &'a dyn Fn(&Place));

#[test]
fn instructions_that_lead_to_a_secret_are_not_sent_and_that_is_said() {
    let targets: [Trap; 6] = [
        ("a link to a key", &|place| symlink("../.ssh/id_rsa", place.project().join("AGENTS.md")).unwrap()),
        ("a link to the environment", &|place| {
            symlink("/proc/self/environ", place.project().join("AGENTS.md")).unwrap();
        }),
        ("a link to a file of the project with secrets", &|place| {
            place.write("project/.env", format!("KEY={SECRET}"));
            symlink(".env", place.project().join("AGENTS.md")).unwrap();
        }),
        ("a hard link", &|place| {
            std::fs::hard_link(place.home().join(".ssh/id_rsa"), place.project().join("AGENTS.md")).unwrap();
        }),
        ("a chain of links", &|place| {
            place.write("project/a/b", "");
            symlink("../../.ssh", place.project().join("a/c")).unwrap();
            symlink("a/c/id_rsa", place.project().join("AGENTS.md")).unwrap();
        }),
        ("a pipe", &|place| {
            let path = place.project().join("AGENTS.md");
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
    ];
    for (what, make) in targets {
        let place = place();
        make(&place);
        let (ran, sent) = send(&place, &["hello"]);
        assert!(sent.contains("hello"), "{what}: {ran:?}");
        assert!(!sent.contains(SECRET), "{what} was sent");
        assert!(ran.err.contains("AGENTS.md") && ran.err.contains("not read"), "{what}: {}", ran.err);
    }
}

#[test]
fn instructions_above_the_directory_are_held_to_the_repository() {
    let place = place();
    place.write("project/sub/file", "");
    symlink("../.ssh/id_rsa", place.project().join("AGENTS.md")).unwrap();
    let (ran, sent) = send(&place, &["-C", "sub", "hello"]);
    assert!(sent.contains("hello") && !sent.contains(SECRET), "{ran:?}");
    assert!(ran.err.contains("not read"), "{}", ran.err);
    let plain = self::place();
    plain.write("project/docs/rules.md", "be brief\n");
    symlink("docs/rules.md", plain.project().join("AGENTS.md")).unwrap();
    let (ran, sent) = send(&plain, &["hello"]);
    assert!(sent.contains("be brief"), "a link within the repository is fine: {ran:?}");
}

#[test]
fn a_file_that_is_mentioned_is_a_plain_file_of_the_project() {
    let place = place();
    symlink("../.ssh/id_rsa", place.project().join("notes.md")).unwrap();
    symlink("../.ssh", place.project().join("docs")).unwrap();
    std::fs::hard_link(place.home().join(".ssh/id_rsa"), place.project().join("hard.md")).unwrap();
    place.write("project/.env", SECRET);
    let key = place.home().join(".ssh/id_rsa").display().to_string();
    for name in ["notes.md", "docs/id_rsa", "hard.md", ".env", "../.ssh/id_rsa", &key, "/proc/self/environ"] {
        let (ran, sent) = send(&place, &[&format!("look at @{name}")]);
        assert!(sent.contains("look at"), "{name}: {ran:?}");
        assert!(!sent.contains(SECRET), "{name} was sent");
        assert!(ran.err.contains("is not attached"), "{name}: {}", ran.err);
    }
}

#[test]
fn a_file_that_is_named_by_hand_is_not_redirected_by_a_link_of_the_repository() {
    let place = place();
    symlink("../.ssh/id_rsa", place.project().join("notes.md")).unwrap();
    symlink("..", place.project().join("up")).unwrap();
    place.write("other/.git/HEAD", "");
    symlink("../.ssh/id_rsa", place.home().join("other/key.md")).unwrap();
    for options in [["--attach", "notes.md"], ["--attach", "up/.ssh/id_rsa"], ["--attach", "../other/key.md"]] {
        let (ran, sent) = send(&place, &[&options[..], &["look"]].concat());
        assert!(!sent.contains(SECRET), "{options:?} was sent");
        assert_eq!(ran.code, Some(2), "{options:?}: {ran:?}");
        assert!(ran.err.contains("leads out of"), "{}", ran.err);
    }
    for options in [["-f", "notes.md"], ["--file", "up/.ssh/id_rsa"]] {
        let (ran, sent) = send(&place, &options);
        assert!(!sent.contains(SECRET) && ran.code == Some(2), "{options:?}: {ran:?}");
    }
    // The person's own choice, outside of any repository: by a link of their own, too.
    symlink("notes.txt", place.home().join("link.txt")).unwrap();
    for name in ["../notes.txt", "../link.txt"] {
        let (ran, sent) = send(&place, &["--attach", name, "look"]);
        assert!(sent.contains("plain notes"), "{name}: {ran:?}");
    }
}

#[test]
fn only_plain_files_are_attached() {
    let place = place();
    let pipe = place.project().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for options in [["--attach", "pipe"], ["--attach", "/dev/zero"], ["--image", "pipe"], ["--image", "/dev/zero"]] {
        let (ran, _) = send(&place, &[&options[..], &["look"]].concat());
        assert_eq!(ran.code, Some(2), "{options:?}: {ran:?}");
    }
    for options in [["-f", "pipe"], ["-f", "/dev/zero"]] {
        let (ran, _) = send(&place, &options);
        assert_eq!(ran.code, Some(2), "{options:?}: {ran:?}");
    }
}

#[test]
fn a_directory_that_is_added_is_not_redirected_by_a_link_of_the_repository() {
    let place = place();
    symlink("../.ssh", place.project().join("docs")).unwrap();
    let (ran, sent) = send(&place, &["--add-dir", "docs", "look"]);
    assert_eq!((ran.code, sent.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("leads out of") && ran.err.contains("/.ssh"), "{}", ran.err);
    let (ran, _) = send(&place, &["-C", "docs", "look"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
