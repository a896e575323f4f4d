//! Commands that nobody was asked about: they run in the strictest sandbox or not at all, whatever changes meanwhile.

use attache_agent::tools::commands::{Need, Terms};
use serde_json::json;

use super::*;

/// A session with a place for layers.
fn place(sandbox: SandboxMode) -> Place {
    Place::with(|setup| {
        let state = setup.cwd.with_file_name("state");
        std::fs::create_dir(&state).unwrap();
        Setup { sandbox, state_dir: Some(state.clone()), hidden: vec![state], ..setup }
    })
}

/// Whether this machine can confine commands that strictly. What it does where it cannot has tests of its own.
fn can_be_enforced(place: &Place) -> bool {
    let why = place.commands.why_asked();
    if let Some(why) = &why {
        eprintln!("cannot be enforced on this machine: {why}");
    }
    why.is_none()
}

async fn unasked(place: &Place, line: &str) -> CommandWork {
    let mut work = place.prepare("run_command", json!({"command": line})).await.unwrap().work;
    work.confine();
    work
}

#[tokio::test]
async fn the_sandbox_is_the_strictest_whatever_the_setting_becomes() {
    let place = place(SandboxMode::On);
    if !can_be_enforced(&place) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!(
        "echo in > here; echo out > ../there; echo x > ${{TMPDIR:-/tmp}}/mine-$$; \
         bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'"
    );
    for mode in [SandboxMode::On, SandboxMode::Offline, SandboxMode::Off] {
        // It was judged as it was; the setting changes before it runs.
        let work = unasked(&place, &line).await;
        place.commands.set_sandbox(mode);
        let (outcome, _) = perform(&place.commands, work).await;
        let text = text(&outcome);
        assert!(outcome.is_error && !text.contains("connected"), "{mode:?} {text}");
        assert!(text.contains("strictest sandbox") && text.contains("`needs: [\"network\"]`"), "{text}");
        assert!(place.cwd().join("here").exists() && !place.directory.path().join("there").exists(), "{text}");
        std::fs::remove_file(place.cwd().join("here")).unwrap();
        place.commands.set_sandbox(SandboxMode::On);
    }
    // A failure that has nothing to do with it is no reason for many words.
    let (outcome, _) = perform(&place.commands, unasked(&place, "echo 1 failed; exit 1").await).await;
    assert_eq!(text(&outcome), "exit code 1\n(it ran in the sandbox, without the network)\n\n1 failed\n");
}

#[tokio::test]
async fn what_cannot_be_confined_any_more_does_not_run() {
    let place = place(SandboxMode::On);
    let work = unasked(&place, "touch ran").await;
    if can_be_enforced(&place) {
        // Git would follow this file, which no sandbox can make harmless.
        std::fs::create_dir(place.cwd().join(".git")).unwrap();
        std::fs::write(place.cwd().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(place.cwd().join(".git/commondir"), "elsewhere\n").unwrap();
        assert!(place.commands.why_asked().unwrap().contains("commondir"));
    }
    let (outcome, _) = perform(&place.commands, work).await;
    assert!(outcome.is_error && text(&outcome).contains("nobody was asked about it"), "{outcome:?}");
    assert!(!place.cwd().join("ran").exists());

    // Nor where nothing can be written down.
    let place = Place::with(|setup| setup);
    let (outcome, _) = perform(&place.commands, unasked(&place, "touch ran").await).await;
    assert!(outcome.is_error && !place.cwd().join("ran").exists(), "{outcome:?}");
    let place = Place::with(|setup| Setup { state_dir: Some("/dev/null/state".into()), ..setup });
    assert!(place.commands.why_asked().is_some());
    assert!(perform(&place.commands, unasked(&place, "touch ran").await).await.0.is_error);
    assert!(!place.cwd().join("ran").exists());
}

#[tokio::test]
async fn it_ends_with_the_session_with_all_that_it_started() {
    let place = place(SandboxMode::On);
    if !can_be_enforced(&place) {
        return;
    }
    let mut work = place.prepare("run_command", json!({"command": TREE, "background": true})).await.unwrap().work;
    work.confine();
    let (outcome, _) = perform(&place.commands, work).await;
    assert!(!outcome.is_error, "{outcome:?}");
    let pids = pids(&place.cwd()).await;
    // Another command meanwhile has the same temporary files, and layers of its own.
    let (outcome, _) = perform(&place.commands, unasked(&place, "echo beside").await).await;
    assert_eq!(text(&outcome), "beside\n");
    place.commands.close();
    are_gone(&pids).await;
}

#[tokio::test]
async fn needs_are_read_leniently_and_a_reason_is_wanted() {
    let place = place(SandboxMode::On);
    let need = async |arguments: Value| {
        let mut arguments = arguments;
        arguments["command"] = "make".into();
        place.prepare("run_command", arguments).await.map(|prepared| match prepared.work {
            CommandWork::Run { terms, .. } => (prepared.title, terms),
            other => panic!("{other:?}"),
        })
    };
    let none = || ("make".to_owned(), Terms::default());
    for arguments in [json!({}), json!({"needs": []}), json!({"needs": null}), json!({"needs": "", "reason": 1})] {
        assert_eq!(need(arguments).await, Ok(none()));
    }
    let network = || Terms { need: Some(Need::Network("to fetch".into())), ..Terms::default() };
    let unsandboxed = || Terms { need: Some(Need::Unsandboxed("to fetch".into())), ..Terms::default() };
    for (needs, title, terms) in [
        (json!(["network"]), "make (with the network)", network()),
        (json!("network"), "make (with the network)", network()),
        (json!(["unsandboxed"]), "make (outside of the sandbox)", unsandboxed()),
        (json!(["network", "unsandboxed"]), "make (outside of the sandbox)", unsandboxed()),
    ] {
        assert_eq!(need(json!({"needs": needs, "reason": " to fetch\n"})).await, Ok((title.to_owned(), terms)));
    }
    for (arguments, expected) in [
        (json!({"needs": ["root"]}), "`needs` must be a list of `network` and `unsandboxed`"),
        (json!({"needs": [1], "reason": "x"}), "`needs` must be a list"),
        (json!({"needs": true, "reason": "x"}), "`needs` has to be a list"),
        (json!({"needs": ["network"]}), "`reason` is missing"),
        (json!({"needs": ["network"], "reason": " "}), "`reason` is missing"),
        (json!({"needs": ["network"], "reason": {"a": 1}}), "`reason` has to be text"),
    ] {
        let refusal = need(arguments).await.unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
    // Where nothing is withheld nothing is needed, and where the person wants no network there is none to ask for.
    let wants = || json!({"needs": ["unsandboxed"], "reason": "x"});
    place.commands.set_sandbox(SandboxMode::Off);
    assert_eq!(need(wants()).await, Ok(none()));
    place.commands.set_sandbox(SandboxMode::Offline);
    assert!(need(wants()).await.unwrap_err().contains("`offline`"));
    assert!(need(json!({"needs": ["network"], "reason": "x"})).await.unwrap_err().contains("`offline`"));
}

#[tokio::test]
async fn outside_of_the_sandbox_is_outside_unless_the_person_changed_their_mind() {
    let place = place(SandboxMode::On);
    let wants = json!({"command": "echo out > ../there", "needs": ["unsandboxed"], "reason": "to write there"});
    let (outcome, _) = place.call("run_command", wants.clone()).await;
    assert!(!outcome.is_error && place.directory.path().join("there").exists(), "{outcome:?}");
    std::fs::remove_file(place.directory.path().join("there")).unwrap();
    let work = place.prepare("run_command", wants).await.unwrap().work;
    place.commands.set_sandbox(SandboxMode::Offline);
    let (outcome, _) = perform(&place.commands, work).await;
    assert!(outcome.is_error && !place.directory.path().join("there").exists(), "{outcome:?}");
}

/// What was too long for the model can be looked at by commands, in any sandbox; that of other sessions cannot, and nothing
/// of it can be changed.
#[tokio::test]
async fn what_was_too_long_can_be_read_and_nothing_else_of_our_records() {
    let place = Place::with(|setup| {
        let state = setup.cwd.with_file_name("state");
        std::fs::create_dir_all(state.join("outputs/other")).unwrap();
        std::fs::write(state.join("outputs/other/output-1.txt"), "secret").unwrap();
        std::fs::write(state.join("rules"), "secret").unwrap();
        let spill = std::sync::Arc::new(attache_agent::cut::Spill::new(state.join("outputs/own")));
        Setup { spill, state_dir: Some(state.clone()), hidden: vec![state], ..setup }
    });
    if !can_be_enforced(&place) {
        return;
    }
    let (long, _) = place.text("run_command", json!({"command": "seq 1 20000"})).await;
    let path = long.split('`').nth(1).unwrap().to_owned();
    let outputs = path.rsplit_once("/own/").unwrap().0.to_owned();
    let line = format!(
        "grep -n '^12345$' {path}; sed -n 7p {path}; cat {outputs}/other/* {outputs}/../rules; ls {outputs}; \
         echo x >> {path}; rm {path}; touch {outputs}/own/new; echo end"
    );
    let asked = place.prepare("run_command", json!({"command": line})).await.unwrap().work;
    for work in [unasked(&place, &line).await, asked] {
        let (outcome, _) = perform(&place.commands, work).await;
        let text = text(&outcome);
        assert!(text.contains("12345:12345\n7\n") && text.contains("end"), "{text}");
        assert!(!text.contains("secret") && !text.contains("\nother"), "{text}");
    }
    let (again, _) = place.text("run_command", json!({"command": format!("wc -l {path}")})).await;
    assert!(again.starts_with("20000 "), "{again}");
    assert!(!std::path::Path::new(&outputs).join("own/new").exists());
}
