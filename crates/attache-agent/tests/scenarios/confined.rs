//! Confined means unasked: in mode `code`, a command that the kernel keeps in the project is not asked about; what wants more
//! is, by name.

use std::net::TcpListener;

use attache::Protocol;
use attache::model::permission::PermissionSubject;
use attache::model::tool::ToolCallContent;
use attache_agent::{Mode, ModelFacts, SandboxMode};
use attache_host::permission::Policy;
use attache_host::sandbox::Sandbox;
use attache_testkit::model_server::Answer;
use serde_json::{Value, json};

use crate::calling;
use crate::support::{Chat, DIALECTS, Hook, Person, Says, World, check};

/// Whether this machine can confine commands as strictly as it takes. What happens where it cannot has a test below.
fn can_be_enforced() -> bool {
    let is_whole = Sandbox::check().is_ok_and(|support| support.namespaces && support.gaps().is_empty());
    if !is_whole {
        eprintln!("cannot be enforced on this machine");
    }
    is_whole
}

async fn world(calls: Vec<(&str, Value)>) -> World {
    let mut world = World::answering(calling(calls)).await;
    world.config.mode = Mode::Code;
    world.config.sandbox = SandboxMode::On;
    world
}

/// A person who says no to everything.
fn no() -> Person {
    Person::saying(Says::RejectOnce)
}

fn run(line: &str) -> (&'static str, Value) {
    ("run_command", json!({"command": line}))
}

fn reasons(chat: &Chat) -> Vec<String> {
    chat.asked.iter().map(|ask| ask.description.clone().unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_confined_command_is_not_asked_about() {
    if !can_be_enforced() {
        return;
    }
    for protocol in DIALECTS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected");
        let world = world(vec![
            run("echo in > made.txt && cat made.txt"),
            run("echo out > ../outside.txt"),
            run(&connect),
            ("run_command", json!({"command": "echo ready; sleep 60", "background": true})),
            ("stop_job", json!({"job": "job-1"})),
        ])
        .await;
        let mut chat = world.open(Person { says: Says::RejectOnce, ..Person::at(protocol) }).await;
        chat.turn("run them").await;
        assert!(chat.asked.is_empty(), "{:?}", chat.asked);
        check(&world.files(), "made.txt \"in\\n\"");
        assert!(!world.root.join("outside.txt").exists());
        let results = world.results();
        assert_eq!(results[0], "in\n");
        for result in &results[1..3] {
            assert!(result.starts_with("error: exit code") && result.contains("strictest sandbox"), "{result}");
            assert!(!result.contains("connected"), "{result}");
        }
        assert!(results[3].contains("started as `job-1`"), "{results:?}");
    }
}

#[tokio::test]
async fn other_modes_and_other_policies_ask_as_before() {
    for mode in [Mode::Ask, Mode::Architect] {
        let mut world = world(vec![run("touch ran.txt")]).await;
        world.config.mode = mode;
        let mut chat = world.open(no()).await;
        chat.turn("run it").await;
        assert_eq!((chat.asked.len(), world.files().as_str()), (usize::from(mode == Mode::Ask), ""));
    }
    for policy in [Policy::None, Policy::Reads, Policy::Edits, Policy::Ask] {
        let mut world = world(vec![run("touch ran.txt")]).await;
        world.config.permissions = Some(policy);
        let mut chat = world.open(no()).await;
        chat.turn("run it").await;
        assert_eq!((chat.asked.len(), world.files().as_str()), (usize::from(policy != Policy::None), ""), "{policy:?}");
    }
}

#[tokio::test]
async fn a_mode_that_is_left_asks_again() {
    // The first call is asked about, and while it is, the person has enough of the mode.
    let world = world(vec![("delete_file", json!({"path": "a.txt"})), run("touch ran.txt")]).await;
    world.put("a.txt", "x");
    let mut chat = world.open(no()).await;
    let session = chat.session().clone();
    let runtime = tokio::runtime::Handle::current();
    chat.person.before_answer = Some(Hook::new(move || {
        let session = session.clone();
        runtime.spawn(async move {
            let ask = attache::model::config::ConfigSetting::Id("ask".into());
            session.set_option("mode", ask).await
        });
    }));
    chat.turn("run it").await;
    let titles: Vec<_> = chat.asked.iter().filter_map(|ask| ask.title.clone()).collect();
    // Whether the change arrives before the second call is a race; the file is made only if it did not.
    let is_made = world.project().join("ran.txt").exists();
    assert_eq!(titles.len(), if is_made { 1 } else { 2 }, "{titles:?}");
}

#[tokio::test]
async fn rules_come_first() {
    let world =
        world(vec![run("touch denied.txt"), run("sh -c 'touch denied.txt'"), run("mkdir asked"), run("$X denied")])
            .await;
    let rules = "[[rule]]\nverdict = 'deny'\ncommand = ['touch']\n\n[[rule]]\nverdict = 'ask'\ncommand = ['mkdir']\n";
    world.put_at("config/permissions.toml", rules);
    let mut chat = world.open(no()).await;
    chat.turn("run them").await;
    let results = world.results();
    assert!(results[0].contains("refused: "), "{results:?}");
    let titles: Vec<_> = chat.asked.iter().filter_map(|ask| ask.title.as_deref()).collect();
    // What cannot be told from what a rule denies is asked about.
    assert!(titles.ends_with(&["mkdir asked", "$X denied"]), "{titles:?} {results:?}");
    assert_eq!(world.files(), "");
    assert!(!world.project().join("asked").exists());
    // A file of rules that is wrong may have denied anything.
    let world = self::world(vec![run("touch ran.txt")]).await;
    world.put_at("config/permissions.toml", "[[rule]]\nverdict = 'perhaps'\n");
    let mut chat = world.open(no()).await;
    chat.turn("run it").await;
    assert_eq!((chat.asked.len(), world.files().as_str()), (1, ""));
}

#[tokio::test]
async fn a_command_that_names_a_secret_is_asked_about() {
    let world = world(vec![run("cat .env"), run("cat sub/../.env | head -1")]).await;
    world.put(".env", "KEY=private");
    let mut chat = world.open(no()).await;
    chat.turn("run it").await;
    assert_eq!(chat.asked.len(), 2);
    assert!(!world.results().concat().contains("private"));
}

#[tokio::test]
async fn a_command_that_comes_across_a_secret_does_not_read_it() {
    if !can_be_enforced() {
        return;
    }
    let world = world(vec![run("grep -r KEY .; cat sub/*")]).await;
    world.put(".env", "KEY=private");
    world.put("sub/server.pem", "private");
    world.put("sub/text", "KEY=public");
    let mut chat = world.open(no()).await;
    chat.turn("run it").await;
    assert!(chat.asked.is_empty(), "{:?}", reasons(&chat));
    let result = world.results().concat();
    assert!(result.contains("KEY=public") && !result.contains("private"), "{result}");
}

#[tokio::test]
async fn a_small_model_is_told_what_cannot_be_done_here() {
    if !can_be_enforced() {
        return;
    }
    let act = |action: &str, arguments| Answer::text(json!({"action": action, "arguments": arguments}).to_string());
    let done = || act("done", json!({"message": "It cannot be written."}));
    let answers = vec![act("run_command", json!({"command": "echo out > ../outside.txt"})), done(), done(), done()];
    let mut world = World::answering(answers).await;
    world.config.mode = Mode::Code;
    world.config.sandbox = SandboxMode::On;
    let facts = ModelFacts { small: Some(true), ..ModelFacts::default() };
    world.config.models.insert("openai:scripted".into(), facts);
    let mut chat = world.open(no()).await;
    chat.turn("Write the file above.").await;
    assert!(chat.asked.is_empty(), "{:?}", reasons(&chat));
    let told = world.model().requests().iter().map(|request| request.texts().concat()).collect::<String>();
    assert!(told.contains("only files of the project can be changed") && !told.contains("`needs"), "{told}");
}

#[tokio::test]
async fn the_network_is_asked_for_by_name() {
    if !can_be_enforced() {
        return;
    }
    for (says, connects) in [(Says::RejectOnce, false), (Says::AllowOnce, true)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The project is among the temporary files here, which a command that was allowed may change.
        let outside = format!("/var/tmp/attache-confined-{}", std::process::id());
        let line =
            format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected > made.txt; echo x > {outside}");
        let world = world(vec![(
            "run_command",
            json!({"command": line, "needs": ["network"], "reason": "fetch\u{1b}[2J the\ncrates"}),
        )])
        .await;
        let mut chat = world.open(Person { says, ..Person::at(Protocol::V2) }).await;
        chat.turn("run it").await;
        let [reason] = &reasons(&chat)[..] else { panic!("{:?}", chat.asked) };
        let expected = r#"the command wants the network, because (in the model's words) "fetch\x1b[2J the crates""#;
        assert!(reason.starts_with(expected), "{reason}");
        assert!(chat.asked[0].title.as_deref().unwrap().ends_with("(with the network)"), "{:?}", chat.asked[0].title);
        assert_eq!(world.project().join("made.txt").exists(), connects, "{says:?}");
        assert!(!std::path::Path::new(&outside).exists(), "it is still confined");
    }
}

#[tokio::test]
async fn to_leave_the_sandbox_is_always_asked_about() {
    let wants = || json!({"command": "touch ../out.txt", "needs": ["unsandboxed"], "reason": "it writes there"});
    let allow = "[[rule]]\nverdict = 'allow'\ncommand = ['touch', '../out.txt']\n";
    let rows = [
        ("", None, 1),
        // A rule for the command, for all commands, or for all tools is none for this.
        (allow, None, 1),
        ("[[rule]]\nverdict = 'allow'\nkind = 'execute'\n", None, 1),
        ("[[rule]]\nverdict = 'allow'\ntool = '*'\n", None, 1),
        ("[[rule]]\nverdict = 'allow'\ntool = 'command:unsandboxed'\n", None, 1),
        ("", Some(Policy::All), 1),
        ("[[rule]]\nverdict = 'allow'\ntool = 'command:*'\n", Some(Policy::All), 1),
        // One that names it is, for a command that is allowed.
        ("[[rule]]\nverdict = 'allow'\ntool = 'command:unsandboxed'\n", Some(Policy::All), 0),
        ("[[rule]]\nverdict = 'deny'\ntool = 'command:unsandboxed'\n", Some(Policy::All), 0),
        ("", Some(Policy::None), 0),
    ];
    for (rules, policy, asked) in rows {
        let mut world = world(vec![("run_command", wants())]).await;
        world.config.permissions = policy;
        world.put_at("config/permissions.toml", rules);
        let mut chat = world.open(Person { says: Says::RejectOnce, ..Person::at(Protocol::V2) }).await;
        chat.turn("run it").await;
        assert_eq!(chat.asked.len(), asked, "{rules} {policy:?} {:?}", world.results());
        let is_free = rules.contains("allow") && asked == 0;
        assert_eq!(world.root.join("out.txt").exists(), is_free, "{rules} {policy:?} {:?}", world.results());
        if let Some(ask) = chat.asked.first() {
            let kinds: Vec<&str> = ask.options.iter().map(|option| option.kind.as_str()).collect();
            assert_eq!(kinds, ["allow_once", "reject_once"], "it is for this once");
            assert!(ask.description.as_deref().unwrap().contains("outside of the sandbox"), "{ask:?}");
        }
    }
    // A client of version 1 shows the call and nothing else, so it is said there.
    let world = world(vec![("run_command", wants())]).await;
    let mut chat = world.open(Person::new()).await;
    chat.turn("run it").await;
    assert!(world.root.join("out.txt").exists());
    let Some(PermissionSubject::ToolCall(subject)) = &chat.asked[0].subject else { panic!("{:?}", chat.asked) };
    let ToolCallContent::Content(block) = &subject.tool_call.content.set().unwrap()[0] else { panic!("{subject:?}") };
    let expected =
        "It wants to run outside of the sandbox, with all that you may do. The model says why: \"it writes there\"";
    assert_eq!(block.content.as_text(), Some(expected));
}

#[tokio::test]
async fn where_nothing_is_confined_everything_is_asked_about_and_the_reason_is_told_once() {
    for terminals in [false, true] {
        let mut world = world(vec![run("touch one.txt"), run("touch two.txt")]).await;
        world.config.sandbox = SandboxMode::Off;
        let mut chat = world.open(Person { terminals, news: true, ..no() }).await;
        let seen = chat.turn("run them").await;
        assert_eq!((chat.asked.len(), world.files().as_str()), (2, ""));
        assert_eq!(seen.matches("because it cannot be confined: the sandbox is off").count(), 1, "{seen}");
    }
}

#[tokio::test]
async fn a_hostile_repository_does_no_harm() {
    let config = |world: &World| {
        let script = format!("{}/evil.sh", world.project().display());
        format!(
            "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {script}\n\thooksPath = {0}/hooks\n\tpager = {script}\n\
             [diff]\n\texternal = {script}\n[diff \"x\"]\n\ttextconv = {script}\n[filter \"x\"]\n\tclean = {script}\n\
             \tsmudge = {script}\n",
            world.project().display()
        )
    };
    let prepare = |world: &World| {
        world.put(".git/HEAD", "ref: refs/heads/main\n");
        world.put(".git/objects/info/keep", "");
        world.put(".git/refs/heads/keep", "");
        std::fs::remove_file(world.project().join(".git/refs/heads/keep")).unwrap();
        world.put(".git/config", &config(world));
        world.put(".gitattributes", "* filter=x diff=x\n");
        world.put("a.txt", "x");
        world.put("hooks/sample", "");
        let script = world.project().join("evil.sh");
        world.put("evil.sh", "#!/bin/sh\ntouch ran.txt\necho x > ../harm.txt\necho x > .git/hooks/evil\ncat\n");
        std::fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    let lines = ["git status", "git add a.txt", "git diff"];
    let calls = || lines.map(run).to_vec();
    if can_be_enforced() {
        let world = world(calls()).await;
        prepare(&world);
        let mut chat = world.open(no()).await;
        chat.turn("look at it").await;
        assert!(chat.asked.is_empty(), "{:?}", reasons(&chat));
        assert!(world.project().join("ran.txt").exists(), "it shows nothing: {:?}", world.results());
        assert!(!world.root.join("harm.txt").exists() && !world.project().join(".git/hooks/evil").exists());
    }
    let mut world = world(calls()).await;
    world.config.sandbox = SandboxMode::Off;
    prepare(&world);
    let mut chat = world.open(no()).await;
    chat.turn("look at it").await;
    assert_eq!(chat.asked.len(), lines.len());
    assert!(!world.project().join("ran.txt").exists());
}
