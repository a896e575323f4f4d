//! Rules that name tools, and rules that are listed and taken back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use attache::model::tool::ToolKind;
use attache_host::permission::{
    Action, Decision, Engine, Places, Policy, Rule, Scope, Session, Subject, Verdict, parse_rules,
};
use attache_host::trust::{Contents, Trust};
use tempfile::TempDir;

struct Desk {
    directory: TempDir,
    engine: Engine,
}

impl Desk {
    fn new(policy: Policy, rules: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["config", "project"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("config/permissions.toml"), rules).unwrap();
        let engine = Engine::open(places(&directory), policy);
        assert_eq!(engine.problems().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
        Desk { directory, engine }
    }

    /// Has the user trust a repository with these rules.
    fn trust_repository(&mut self, rules: &[u8]) {
        let project = self.directory.path().join("project");
        fs::create_dir_all(project.join(".attache")).unwrap();
        fs::write(project.join(".attache/permissions.toml"), rules).unwrap();
        let trust = Trust::new(self.directory.path().join("state/trust.toml"));
        trust.trust(&Contents::read(&project).unwrap()).unwrap();
        self.engine.follow_repository(trust, project);
    }

    fn session(&self) -> Session {
        Session::new("attache", "session", self.directory.path().join("project"))
    }

    fn decide(&self, action: Action) -> Decision {
        self.engine.decide(&Subject {
            session: self.session(),
            actions: vec![action],
            diffs: Vec::new(),
            title: None,
            description: None,
            input: None,
            texts: Vec::new(),
            is_served: false,
        })
    }

    fn project_file(&self) -> std::path::PathBuf {
        places(&self.directory).project_file().unwrap()
    }
}

fn places(directory: &TempDir) -> Places {
    let path = |name: &str| directory.path().join(name);
    Places { config_dir: path("config"), state_dir: path("state"), project: Some(path("project")) }
}

fn tool(kind: &str, name: &str) -> Action {
    Action::Other { kind: ToolKind::from(kind), name: Some(name.into()), paths: Vec::new() }
}

fn unnamed(kind: &str) -> Action {
    Action::Other { kind: ToolKind::from(kind), name: None, paths: Vec::new() }
}

fn allowing(tool: &str) -> Rule {
    Rule { tools: vec![tool.into()], ..Rule::new(Verdict::Allow) }
}

#[test]
fn rules_decide_by_the_name_of_the_tool() {
    let desk = Desk::new(
        Policy::Ask,
        "
        [[rule]]
        verdict = 'allow'
        tool = ['github__*', 'fetch:docs.rs', 'exact']
        match = ['github__get', 'fetch:docs.rs']
        not_match = ['fetch:evil.docs.rs', 'GITHUB__x']

        [[rule]]
        verdict = 'ask'
        tool = 'github__create_*'

        [[rule]]
        verdict = 'deny'
        tool = 'github__delete_*'
        match = ['GitHub__Delete_repo']

        [[rule]]
        verdict = 'allow'
        kind = 'fetch'
        tool = 'web__*'

        [[rule]]
        verdict = 'deny'
        tool = 'elsewhere__*'
        agent = 'another'
    ",
    );
    for (kind, name, expected) in [
        ("other", "github__get_issue", Verdict::Allow),
        ("other", "github__create_issue", Verdict::Ask),
        ("other", "github__delete_repo", Verdict::Deny),
        // Who denies is not fooled by letters; who allows is exact.
        ("other", "github__Delete_repo", Verdict::Deny),
        ("other", "GITHUB__get_issue", Verdict::Ask),
        ("fetch", "fetch:docs.rs", Verdict::Allow),
        ("fetch", "fetch:docs.rs.evil.org", Verdict::Ask),
        ("fetch", "fetch:evil.org/fetch:docs.rs", Verdict::Ask),
        ("other", "exactly", Verdict::Ask),
        ("other", "xgithub__get", Verdict::Ask),
        ("other", "", Verdict::Ask),
        ("fetch", "web__get", Verdict::Allow),
        ("other", "web__get", Verdict::Ask),
        ("other", "elsewhere__x", Verdict::Ask),
    ] {
        assert_eq!(desk.decide(tool(kind, name)).verdict, expected, "{kind} {name}");
    }
}

#[test]
fn a_rule_about_tools_is_about_no_file_and_no_command() {
    let rules = "[[rule]]\nverdict = 'deny'\ntool = '*'\n[[rule]]\nverdict = 'allow'\ntool = '*'\nkind = 'read'\n";
    let desk = Desk::new(Policy::All, rules);
    let line = attache_host::commands::Command::Line("ls".into());
    let run = Action::Execute { command: line, cwd: None, env: Vec::new(), paths: Vec::new() };
    let read = Action::Files { kind: ToolKind::Read, paths: vec!["a".into()] };
    assert_eq!(desk.decide(run.clone()).verdict, Verdict::Allow);
    assert_eq!(desk.decide(read.clone()).verdict, Verdict::Allow);
    let asking = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ntool = '*'\n");
    assert_eq!(asking.decide(run).verdict, Verdict::Ask);
    assert_eq!(asking.decide(read).verdict, Verdict::Ask);
}

#[test]
fn a_tool_without_a_name_is_never_allowed_by_name_and_asked_about_where_one_is_denied() {
    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ntool = '*'\n");
    assert_eq!(desk.decide(unnamed("fetch")).verdict, Verdict::Ask);
    let desk = Desk::new(Policy::All, "[[rule]]\nverdict = 'deny'\nkind = 'fetch'\ntool = 'fetch:evil.org'\n");
    assert_eq!(desk.decide(unnamed("fetch")).verdict, Verdict::Ask);
    assert_eq!(desk.decide(unnamed("other")).verdict, Verdict::Allow);
    assert_eq!(desk.decide(tool("fetch", "fetch:good.org")).verdict, Verdict::Allow);
    assert_eq!(desk.decide(tool("fetch", "fetch:EVIL.org")).verdict, Verdict::Deny);
    let unclear = Action::Unclear { kind: ToolKind::Fetch, paths: Vec::new(), reason: "x" };
    assert_eq!(desk.decide(unclear).verdict, Verdict::Ask);
    // A rule for a kind goes for tools with names too.
    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\nkind = 'fetch'\n");
    assert_eq!(desk.decide(tool("fetch", "fetch:docs.rs")).verdict, Verdict::Allow);
}

#[test]
fn files_that_a_tool_works_on_count() {
    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ntool = 'x'\n");
    for (path, expected) in [("a", Verdict::Allow), ("/etc/passwd", Verdict::Ask), (".env", Verdict::Ask)] {
        let action = Action::Other { kind: ToolKind::Generic, name: Some("x".into()), paths: vec![path.into()] };
        assert_eq!(desk.decide(action).verdict, expected, "{path}");
    }
}

#[test]
fn what_is_suggested_allows_exactly_that_tool() {
    let mut desk = Desk::new(Policy::Ask, "");
    let session = desk.session();
    for name in ["github__get_issue", "a*b", "x[1]?", "fetch:docs.rs", "ünï__tool", "[!a]"] {
        let decision = desk.decide(tool("other", name));
        assert_eq!(decision.suggestion.len(), 1, "{name}");
        assert_eq!(decision.suggestion[0].agent.as_deref(), Some("attache"));
        desk.engine.remember(Scope::Project, &session, &decision.suggestion).unwrap();
        assert_eq!(desk.decide(tool("other", name)).verdict, Verdict::Allow, "{name}");
    }
    for name in ["github__get_issues", "aXb", "x1y", "x[1]z", "fetch:docs_rs", "b"] {
        assert_eq!(desk.decide(tool("other", name)).verdict, Verdict::Ask, "{name}");
    }
    // The next process knows them.
    let engine = Engine::open(places(&desk.directory), Policy::Ask);
    assert_eq!(engine.rules().count(), 6);
    // A kind that nobody knows is no obstacle where the tool is named.
    assert_eq!(desk.decide(tool("_new", "new__tool")).suggestion.len(), 1);
    for name in ["", "a\nb", "a\x1b[2Kb", "a\u{202e}b", "a\0", "a\u{200b}b"] {
        assert_eq!(desk.decide(tool("other", name)).suggestion, [], "{name:?}");
    }
}

#[test]
fn rules_are_checked_and_shown() {
    for (rule, problem) in [
        ("verdict = 'allow'\ntool = 'x'\ncommand = ['y']", "for commands or for tools"),
        ("verdict = 'deny'\ntool = 'a['", "`a[` is not a pattern"),
        ("verdict = 'deny'\ntool = []", "`tool` is empty"),
        ("verdict = 'deny'\ntool = 1", "`tool` is a list"),
        ("verdict = 'allow'\npath = 'x'", "or a `tool`"),
        ("verdict = 'allow'\ntool = 'x'\nmatch = ['y']", "`y`"),
        ("verdict = 'allow'\ntool = 'x'\nnot_match = ['x']", "`x`"),
    ] {
        let error = parse_rules("r", &format!("[[rule]]\n{rule}\n")).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    for (rule, shown) in [
        ("verdict = 'allow'\ntool = 'github__*'", "allow the tool `github__*`"),
        ("verdict = 'deny'\ntool = ['a', 'b']\nagent = 'x'", "deny the tool `a`, `b` for the agent `x`"),
        ("verdict = 'ask'\ntool = 'a'\nkind = 'fetch'", "ask the tool `a` to fetch"),
        ("verdict = 'allow'\ntool = 'a'\nkind = 'execute'", "allow the tool `a` to execute"),
        ("verdict = 'deny'\ntool = \"a\\u001b\"", "deny the tool `a\\x1b`"),
    ] {
        assert_eq!(parse_rules("r", &format!("[[rule]]\n{rule}\n")).unwrap()[0].to_string(), shown);
    }
}

#[test]
fn rules_are_listed_with_their_places() {
    let mut desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'deny'\ntool = 'user'\n");
    let session = desk.session();
    desk.engine.remember(Scope::Project, &session, &[allowing("project")]).unwrap();
    desk.engine.remember(Scope::Session, &session, &[allowing("session")]).unwrap();
    desk.trust_repository(b"[[rule]]\nverdict = 'ask'\ntool = 'repository'\n");
    let listed: Vec<_> = desk.engine.rules().map(|rule| (rule.tools[0].clone(), rule.origin.clone())).collect();
    assert_eq!(listed.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(), ["user", "project", "repository"]);
    assert!(listed[0].1.ends_with("config/permissions.toml:1"), "{listed:?}");
    assert!(listed[1].1.starts_with(desk.project_file().to_str().unwrap()), "{listed:?}");
    assert!(listed[2].1.ends_with("project/.attache/permissions.toml:1"), "{listed:?}");
    assert_eq!(desk.engine.project_rules().len(), 1);
}

#[test]
fn a_rule_is_taken_back_and_the_rest_stays() {
    let mut desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ntool = 'b'\n");
    let session = desk.session();
    let names = ["a", "b", "c"];
    desk.engine.remember(Scope::Project, &session, &names.map(allowing)).unwrap();
    let path = desk.project_file();
    let heading = fs::read_to_string(&path).unwrap().lines().next().unwrap().to_owned();
    assert!(heading.starts_with("# What agents may do in "), "{heading}");
    let text = format!(
        "{heading}\n\n# about a\n[[rule]] # a\nverdict = 'allow'\ntool = 'a'\n\n# for all\n\n# about b\n[[rule]]\n\
         verdict = \"allow\"\ntool = ['b'] # why\n# about c\n[[rule]]\nverdict = 'allow'\ntool = 'c'\n\n[[rule]]\n\
         verdict = 'allow'\ntool = 'b'\n# the end\n"
    );
    fs::write(&path, &text).unwrap();
    assert!(desk.engine.forget_rule(&allowing("b")).unwrap());
    let kept = format!(
        "{heading}\n\n# about a\n[[rule]] # a\nverdict = 'allow'\ntool = 'a'\n\n# for all\n\n# about c\n[[rule]]\n\
         verdict = 'allow'\ntool = 'c'\n# the end\n"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), kept);
    assert_eq!(desk.engine.project_rules().len(), 2);
    // The user's own rule says the same and stays.
    assert_eq!(desk.engine.rules().count(), 3);
    assert!(!desk.engine.forget_rule(&allowing("b")).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), kept);
    for name in ["c", "a"] {
        assert!(desk.engine.forget_rule(&allowing(name)).unwrap());
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{heading}\n\n# for all\n\n# the end\n"));
    assert_eq!(Engine::open(places(&desk.directory), Policy::Ask).project_rules(), []);
    // And there is room for new ones, below the comments.
    desk.engine.remember(Scope::Project, &session, &[allowing("d")]).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&heading) && text.trim_end().ends_with("tool = [\"d\"]"), "{text}");
    assert!(desk.engine.forget_rule(&allowing("d")).unwrap());
    desk.engine.remember(Scope::Project, &session, &[allowing("d")]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "the file does not grow by blank lines");
}

#[test]
fn one_rule_is_removed_by_its_number() {
    let text = "[[rule]]\nverdict = 'allow'\ntool = 'a'\n\n[[rule]]\nverdict = 'allow'\ntool = 'a'\n";
    let mut desk = Desk::new(Policy::Ask, text);
    let session = desk.session();
    desk.engine.remember(Scope::Project, &session, &[allowing("a"), allowing("b")]).unwrap();
    desk.trust_repository(b"[[rule]]\nverdict = 'allow'\ntool = 'c'\n");
    let tools = |desk: &Desk| desk.engine.rules().map(|rule| rule.tools[0].clone()).collect::<String>();
    assert_eq!(tools(&desk), "aaabc");
    assert!(desk.engine.remove_rule(1).unwrap(), "one of two that say the same");
    assert_eq!(tools(&desk), "aabc");
    assert!(desk.engine.remove_rule(2).unwrap());
    assert_eq!(tools(&desk), "aac");
    // A repository's file is not ours to change, and what is not there cannot be removed.
    assert!(!desk.engine.remove_rule(2).unwrap());
    assert!(!desk.engine.remove_rule(7).unwrap());
    // Nor is a file that says something else by now.
    fs::write(desk.project_file(), "[[rule]]\nverdict = 'deny'\ntool = 'x'\n").unwrap();
    assert!(!desk.engine.remove_rule(1).unwrap());
    assert!(fs::read_to_string(desk.project_file()).unwrap().contains("'x'"));
}

#[test]
fn a_rule_covers_what_it_decides_as_well() {
    let rule = |text: &str| parse_rules("x", &format!("[[rule]]\n{text}\n")).unwrap().remove(0);
    let make = "verdict = 'allow'\ncommand = ['make', 'all']\nargs = 'none'";
    let rows = [
        (make, make, true),
        ("verdict = 'allow'\ncommand = ['make']\nargs = 'any'", make, true),
        ("verdict = 'allow'\ncommand = ['make']\nargs = 'none'", make, false),
        ("verdict = 'deny'\nkind = 'execute'", "verdict = 'deny'\ncommand = ['make']", true),
        ("verdict = 'deny'\nkind = 'edit'", "verdict = 'deny'\ncommand = ['make']", false),
        ("verdict = 'deny'\ncommand = ['make']", make, false),
        ("verdict = 'allow'\nagent = 'x'\nkind = 'edit'", "verdict = 'allow'\nkind = 'edit'", false),
        ("verdict = 'allow'\nkind = ['edit', 'read']", "verdict = 'allow'\nkind = 'edit'\npath = 'a/**'", true),
        ("verdict = 'allow'\nkind = 'edit'\npath = 'a/**'", "verdict = 'allow'\nkind = 'edit'", false),
        ("verdict = 'allow'\ntool = ['a', 'b']", "verdict = 'allow'\ntool = 'a'", true),
    ];
    for (one, other, expected) in rows {
        assert_eq!(rule(one).covers(&rule(other)), expected, "{one} / {other}");
    }
}

#[test]
fn what_cannot_be_taken_back_is_told() {
    let mut desk = Desk::new(Policy::Ask, "");
    assert!(!desk.engine.forget_rule(&allowing("a")).unwrap());
    assert!(!desk.project_file().exists());
    let session = desk.session();
    desk.engine.remember(Scope::Project, &session, &[allowing("a")]).unwrap();
    fs::write(desk.project_file(), "broken").unwrap();
    assert!(desk.engine.forget_rule(&allowing("a")).is_err());
    assert_eq!(fs::read_to_string(desk.project_file()).unwrap(), "broken");
    let nowhere = Places { project: None, ..places(&desk.directory) };
    assert!(!Engine::open(nowhere, Policy::Ask).forget_rule(&allowing("a")).unwrap());
}

#[test]
fn taking_back_and_remembering_at_once_lose_nothing() {
    let desk = Desk::new(Policy::Ask, "");
    let session = desk.session();
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let (places, session) = (places(&desk.directory), &session);
            scope.spawn(move || {
                let mut engine = Engine::open(places, Policy::Ask);
                for number in 0..6 {
                    let rule = allowing(&format!("w{writer}_{number}"));
                    engine.remember(Scope::Project, session, std::slice::from_ref(&rule)).unwrap();
                    if number % 2 == 0 {
                        assert!(engine.forget_rule(&rule).unwrap());
                    }
                }
            });
        }
    });
    let engine = Engine::open(places(&desk.directory), Policy::Ask);
    assert_eq!(engine.project_rules().len(), 18);
    assert!(engine.project_rules().iter().all(|rule| !rule.tools[0].ends_with(['0', '2', '4'])));
}

#[test]
fn the_mode_can_change() {
    let mut desk = Desk::new(Policy::Ask, "");
    for (policy, expected) in
        [(Policy::All, Verdict::Allow), (Policy::None, Verdict::Deny), (Policy::Ask, Verdict::Ask)]
    {
        desk.engine.set_policy(policy);
        assert_eq!(desk.decide(tool("other", "x")).verdict, expected);
    }
}

#[test]
fn more_files_than_anybody_can_decide_about_are_refused() {
    let files = |count: usize| Action::Files {
        kind: ToolKind::Edit,
        paths: (0..count).map(|number| format!("/project/f{number}")).collect(),
    };
    let desk = Desk::new(Policy::All, "");
    assert_eq!(desk.decide(files(1000)).verdict, Verdict::Allow);
    let decision = desk.decide(files(40_000));
    assert_eq!(decision.verdict, Verdict::Deny);
    assert!(decision.reason.contains("40000 files"), "{}", decision.reason);
}
