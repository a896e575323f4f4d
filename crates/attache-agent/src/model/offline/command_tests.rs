//! What people write, and what is understood.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn one(prompt: &str) -> Command {
    let mut commands = commands(prompt).unwrap_or_else(|why| panic!("{prompt:?}: {why:?}"));
    assert_eq!(commands.len(), 1, "{prompt:?}: {commands:?}");
    commands.remove(0)
}

fn whole(path: &str) -> Lines {
    Lines { path: path.into(), span: None }
}

fn some(path: &str, line: u64, limit: u64) -> Lines {
    Lines { path: path.into(), span: Some((line, limit)) }
}

#[test]
fn reading_is_understood_however_it_is_said() {
    for (prompt, files) in [
        ("read a.txt", vec![whole("a.txt")]),
        ("Please READ the file `a.txt`.", vec![whole("a.txt")]),
        ("show me \"my notes.txt\" please", vec![whole("my notes.txt")]),
        ("cat a.txt and b.txt", vec![whole("a.txt"), whole("b.txt")]),
        ("read a, b, and 'c and d'", vec![whole("a"), whole("b"), whole("c and d")]),
        ("read a.txt lines 3-7", vec![some("a.txt", 3, 5)]),
        ("read a.txt line 3 and b.txt lines 1–2.", vec![some("a.txt", 3, 1), some("b.txt", 1, 2)]),
        ("read lines 3-7 of a.txt", vec![some("a.txt", 3, 5)]),
        ("read line 2 of the file a.txt", vec![some("a.txt", 2, 1)]),
        ("read a.txt lines 1-18446744073709551615", vec![some("a.txt", 1, u64::MAX)]),
        ("read line", vec![whole("line")]),
    ] {
        assert_eq!(one(prompt), Command::Read(files), "{prompt}");
    }
}

#[test]
fn looking_is_understood() {
    for prompt in ["list", "ls", "list files", "List all the files, please", "list the", "ls ."] {
        let Command::List(path) = one(prompt) else { panic!("{prompt}") };
        assert!(path == "." || prompt.contains("files,"), "{prompt}: {path}");
    }
    assert_eq!(one("list the files in the src folder"), Command::List("src".into()));
    let find =
        |pattern: &str, within: Option<&str>| Command::Find { pattern: pattern.into(), within: within.map(Into::into) };
    assert_eq!(one("find *.rs"), find("*.rs", None));
    assert_eq!(one("find all files named Cargo.toml in crates"), find("Cargo.toml", Some("crates")));
    assert_eq!(one("find main"), find("*main*", None));
    assert_eq!(one("find src/**/*.rs in ."), find("src/**/*.rs", Some(".")));
    let search = |pattern: &str, shown: &str, within: Option<&str>| Command::Search {
        pattern: pattern.into(),
        shown: shown.into(),
        within: within.map(Into::into),
    };
    assert_eq!(one("search for fn main() in src"), search(r"fn main\(\)", "fn main()", Some("src")));
    assert_eq!(one("search \"a in b\""), search("a in b", "a in b", None));
    assert_eq!(one("search /a.*b/"), search("a.*b", "/a.*b/", None));
    assert_eq!(one("grep a.*b in src"), search("a.*b", "a.*b", Some("src")));
    assert_eq!(one("search in src"), search("in src", "in src", None));
}

#[test]
fn commands_for_the_shell_are_passed_on_as_they_are() {
    let run = |command: &str, background| Command::Run { command: command.into(), background };
    assert_eq!(one("run cargo test"), run("cargo test", false));
    assert_eq!(one("$ ls -l; cat a | sort"), run("ls -l; cat a | sort", false));
    assert_eq!(one("run `for i in 1 2; do ls; done`"), run("for i in 1 2; do ls; done", false));
    assert_eq!(one("run \"my prog\" \"an arg\""), run("\"my prog\" \"an arg\"", false));
    assert_eq!(one("run sleep 9 in the background"), run("sleep 9", true));
    assert_eq!(one("run `sleep 9` in the background"), run("sleep 9", true));
    assert_eq!(one("run\n```sh\nls\npwd\n```"), run("ls\npwd", false));
    assert_eq!(one("run echo 'unclosed"), run("echo 'unclosed", false));
}

#[test]
fn changing_is_understood() {
    let write = |path: &str, text: &str| Command::Write { path: path.into(), text: text.into() };
    assert_eq!(one("create a.txt with hello world"), write("a.txt", "hello world\n"));
    assert_eq!(one("create a file called a.txt with \"hello\\nworld\""), write("a.txt", "hello\nworld"));
    assert_eq!(one("create a.txt with \"\""), write("a.txt", ""));
    assert_eq!(one("create `a.txt` containing the text x; y"), write("a.txt", "x; y\n"));
    assert_eq!(one("create a.txt with\n```\none\ntwo\n```"), write("a.txt", "one\ntwo\n"));
    assert_eq!(one("create a.txt with the text:\n```\n```"), write("a.txt", ""));
    assert_eq!(one("create a.txt:\n\n  one; two\nread x"), write("a.txt", "\n  one; two\nread x\n"));
    assert_eq!(one("write hello to a.txt"), write("a.txt", "hello\n"));
    assert_eq!(one("write \"with to\" to a.txt"), write("a.txt", "with to"));
    assert_eq!(one("write a.txt with what goes to them"), write("a.txt", "what goes to them\n"));
    assert_eq!(one("write to a.txt:\none"), write("a.txt", "one\n"));
    let replace =
        |old: &str, new: &str, all| Command::Replace { old: old.into(), new: new.into(), path: "a.txt".into(), all };
    assert_eq!(one("replace \"x in y\" with 'with z' in a.txt"), replace("x in y", "with z", false));
    assert_eq!(one("replace all old by \"\" in the file a.txt"), replace("old", "", true));
    let append = |text: &str| Command::Append { text: text.into(), path: "a.txt".into() };
    assert_eq!(one("append one to rule to a.txt"), append("one to rule\n"));
    assert_eq!(one("append to a.txt\n```\nx\n```"), append("x\n"));
    assert_eq!(one("delete a.txt and b.txt"), Command::Delete(vec!["a.txt".into(), "b.txt".into()]));
    assert_eq!(one("rename \"a b\" to c"), Command::Move { from: "a b".into(), to: "c".into() });
}

#[test]
fn the_rest_is_understood() {
    assert_eq!(one("fetch <https://example.com/>"), Command::Fetch("https://example.com/".into()));
    assert_eq!(one("fetch https://example.com/a?b=c,d."), Command::Fetch("https://example.com/a?b=c,d".into()));
    assert_eq!(one("think don't panic"), Command::Think("don't panic".into()));
    assert_eq!(one("say 'tis late"), Command::Say("'tis late".into()));
    assert_eq!(
        one("plan read a, say 'b, c', rest"),
        Command::Plan(vec!["read a".into(), "say 'b, c'".into(), "rest".into()])
    );
    assert_eq!(one("plan:\n1. read a\n- list\n"), Command::Plan(vec!["read a".into(), "list".into()]));
    let ask = |question: &str, choices: &[&str]| Command::Ask {
        question: question.into(),
        choices: choices.iter().map(|choice| choice.to_string()).collect(),
    };
    assert_eq!(one("ask Which? [a/b c/d]"), ask("Which?", &["a", "b c", "d"]));
    assert_eq!(one("ask me: what now?"), ask("what now?", &[]));
    assert_eq!(one("mode Architect"), Command::Mode { mode: "architect", plan: None });
    assert_eq!(one("mode code with do it"), Command::Mode { mode: "code", plan: Some("do it".into()) });
    let call = |tool: &str, arguments: &str| Command::Call { tool: tool.into(), arguments: arguments.into() };
    assert_eq!(one("call s__t {\"a\": \"b; read c\"}"), call("s__t", "{\"a\": \"b; read c\"}"));
    assert_eq!(one("call t"), call("t", "{}"));
    assert_eq!(one("call t not json"), call("t", "not json"));
    assert_eq!(one("call t\n```json\n{\"a\": 1}\n```"), call("t", "{\"a\": 1}"));
    assert_eq!(one("stop length"), Command::Stop(EndReason::MaxTokens));
    assert_eq!(one("stop refusal"), Command::Stop(EndReason::Refusal));
    assert_eq!(one("help me, please"), Command::Help);
    assert_eq!(commands("tour; loop\nslowly x").unwrap(), [Command::Tour, Command::Loop, Command::Slowly("x".into())]);
}

#[test]
fn every_example_of_the_table_is_a_command() {
    for row in super::super::verb::TABLE {
        one(row.example);
    }
}

#[test]
fn what_is_not_clear_is_not_guessed() {
    for prompt in ["", " \n\t; ;\n"] {
        assert_eq!(commands(prompt), Err(Unclear::Nothing));
    }
    for prompt in ["fix the bug", "```\nx\n```", "ünïcödé", "Hello!"] {
        assert!(matches!(commands(prompt), Err(Unclear::Unknown(_))), "{prompt}");
    }
    for prompt in [
        "create a REST API with authentication",
        "create tests",
        "write some tests for me",
        "remove the unused imports",
        "show me how it works",
        "find the bug and fix it",
        "move on",
        "read",
        "read a.txt lines 7-3",
        "read a.txt lines 0-3",
        "stop",
        "mode fast",
        "replace a in b",
        "fetch example",
        "say",
        "plan ,",
        "ask What? [a//b]",
        "create a.txt with x\n```\ny\n```",
        "call",
    ] {
        assert!(matches!(commands(prompt), Err(Unclear::Form(..))), "{prompt}: {:?}", commands(prompt));
    }
    for prompt in ["read \"a b", "create a.txt with 'x", "replace `a with b in c", "read a; delete 'b"] {
        assert!(matches!(commands(prompt), Err(Unclear::Quote(..))), "{prompt}: {:?}", commands(prompt));
    }
    assert_eq!(commands("create a with\n```\nx"), Err(Unclear::Fence));
    assert_eq!(commands(&"list\n".repeat(101)), Err(Unclear::TooMany));
}
