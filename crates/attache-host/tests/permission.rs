//! Rules, modes, secrets, answers and files of the permission engine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use attache::model::diff::Diff;
use attache::model::permission::{
    PermissionOption, PermissionOptionKind, PermissionOutcome, PermissionRequest, PermissionSubject,
};
use attache::model::terminal::CreateTerminalRequest;
use attache::model::tool::{Location, ToolCallContent, ToolCallUpdate, ToolKind};
use attache::proto::json::RawJson;
use attache_host::permission::{
    Action, Change, Decision, Engine, Places, Policy, Question, Rule, Scope, Session, Subject, Verdict, allow,
    parse_rules, reject,
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
        fs::create_dir_all(directory.path().join("config")).unwrap();
        fs::create_dir_all(directory.path().join("project/src")).unwrap();
        fs::write(directory.path().join("config/permissions.toml"), rules).unwrap();
        let engine = Engine::open(places(&directory), policy);
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
        Session::new("claude", "session", self.directory.path().join("project"))
    }

    /// A path, from the project if it is relative.
    fn path(&self, path: &str) -> String {
        self.directory.path().join("project").join(path).to_string_lossy().into_owned()
    }

    fn file(&self, kind: &str, path: &str) -> Verdict {
        let path = self.path(path);
        let subject = match kind {
            "served read" => Subject::served(self.session(), Action::Files { kind: ToolKind::Read, paths: vec![path] }),
            "edit" => Subject::served(self.session(), Action::Files { kind: ToolKind::Edit, paths: vec![path] }),
            _ => return self.call(kind, &[&path], "{}").verdict,
        };
        self.engine.decide(&subject).verdict
    }

    fn run(&self, line: &str) -> Verdict {
        let request = CreateTerminalRequest::new("session", line);
        self.engine.decide(&from_terminal(self.session(), &request)).verdict
    }

    fn call(&self, kind: &str, locations: &[&str], input: &str) -> Decision {
        self.engine.decide(&Subject::from_request(self.session(), &request(kind, locations, input, vec![]), None))
    }
}

fn places(directory: &TempDir) -> Places {
    let path = |name: &str| directory.path().join(name);
    Places { config_dir: path("config"), state_dir: path("state"), project: Some(path("project")) }
}

fn request(kind: &str, locations: &[&str], input: &str, content: Vec<ToolCallContent>) -> PermissionRequest {
    let call = ToolCallUpdate::new("call")
        .title("`git status`")
        .kind(ToolKind::from(kind))
        .locations(locations.iter().map(|path| Location::new(*path)).collect::<Vec<_>>())
        .raw_input(RawJson::new(input).unwrap())
        .content(content);
    PermissionRequest::new("session", []).subject(PermissionSubject::tool_call(call))
}

fn rule(verdict: &str, command: &str) -> Rule {
    let text = format!("[[rule]]\nverdict = {verdict:?}\ncommand = {:?}\n", command.split(' ').collect::<Vec<_>>());
    parse_rules("r", &text).unwrap().remove(0)
}

#[test]
fn deny_beats_ask_beats_allow_over_all_scopes() {
    const SCOPES: [Option<Scope>; 4] = [Some(Scope::Session), Some(Scope::Project), Some(Scope::Always), None];
    for strong in [Verdict::Deny, Verdict::Ask] {
        for weak in [Verdict::Ask, Verdict::Allow] {
            for (first, second) in SCOPES.iter().flat_map(|first| SCOPES.iter().map(move |second| (first, second))) {
                let mut desk = Desk::new(Policy::Ask, "");
                let session = desk.session();
                let mut add = |scope: &Option<Scope>, verdict: Verdict| match scope {
                    Some(scope) => {
                        desk.engine.remember(*scope, &session, &[rule(verdict.as_str(), "make")]).unwrap();
                    }
                    // Rules of the repository come all at once.
                    None => desk.trust_repository(
                        format!("[[rule]]\nverdict = '{}'\ncommand = ['make']\n", verdict.as_str()).as_bytes(),
                    ),
                };
                add(first, weak);
                add(second, strong);
                let expected = if first.is_none() && second.is_none() { strong } else { strong.max(weak) };
                assert_eq!(desk.run("make"), expected, "{first:?} {weak:?}, {second:?} {strong:?}");
            }
        }
    }
}

#[test]
fn scopes_end_where_they_should() {
    let mut desk = Desk::new(Policy::Ask, "");
    let session = desk.session();
    let other = Session { id: "other".into(), ..session.clone() };
    let subject =
        |session: &Session, line: &str| from_terminal(session.clone(), &CreateTerminalRequest::new("session", line));
    for (scope, line) in [(Scope::Once, "a"), (Scope::Session, "b"), (Scope::Project, "c"), (Scope::Always, "d")] {
        desk.engine.remember(scope, &session, &[rule("allow", line)]).unwrap();
    }
    let allowed = |engine: &Engine, session: &Session| -> String {
        let is_allowed = |line: &&str| engine.decide(&subject(session, line)).verdict == Verdict::Allow;
        ["a", "b", "c", "d"].into_iter().filter(is_allowed).collect()
    };
    assert_eq!(allowed(&desk.engine, &session), "bcd");
    assert_eq!(allowed(&desk.engine, &other), "cd");
    assert_eq!(allowed(&Engine::open(places(&desk.directory), Policy::Ask), &session), "cd");
    let elsewhere = Places { project: Some(desk.directory.path().join("config")), ..places(&desk.directory) };
    assert_eq!(allowed(&Engine::open(elsewhere, Policy::Ask), &session), "d");
    desk.engine.forget_session(&session.id);
    assert_eq!(allowed(&desk.engine, &session), "cd");
    // Nothing is written into the project.
    assert_eq!(fs::read_dir(desk.directory.path().join("project")).unwrap().count(), 1);
}

#[test]
fn broken_files_fail_closed() {
    let good = "[[rule]]\nverdict = 'allow'\ncommand = ['make']\n";
    for (text, line, problem) in [
        ("[[rule]]\nverdict = ", "permissions.toml:5", ""),
        ("[[rule]]\ncommand = ['x']", "permissions.toml:4", "no `verdict`"),
        ("[[rule]]\nverdict = 'yes'", "permissions.toml:5", "`verdict` is"),
        ("[[rule]]\nverdict = 'deny'\ncommnd = ['x']", "permissions.toml:6", "`commnd` is not known"),
        ("[[rules]]\nverdict = 'deny'", "permissions.toml:4", "`rules` is not known"),
        ("rule = 1", "", "`rule`"),
        ("[[rule]]\nverdict = 'deny'\ncommand = 'rm x'", "permissions.toml:6", "`command` is a list"),
        ("[[rule]]\nverdict = 'deny'\ncommand = []", "permissions.toml:6", "`command` is empty"),
        ("[[rule]]\nverdict = 'deny'\ncommand = [1]", "permissions.toml:6", "`command` is a list"),
        ("[[rule]]\nverdict = 'deny'\nkind = 'reed'", "permissions.toml:6", "`reed` is not a kind"),
        ("[[rule]]\nverdict = 'deny'\npath = 'a['", "permissions.toml:4", "`a[` is not a pattern"),
        ("[[rule]]\nverdict = 'allow'", "permissions.toml:4", "names a `command` or a `kind`"),
        ("[[rule]]\nverdict = 'allow'\nagent = 'x'", "permissions.toml:4", "names a `command` or a `kind`"),
        ("[[rule]]\nverdict = 'allow'\npath = 'x'", "permissions.toml:4", "names a `command` or a `kind`"),
        ("[[rule]]\nverdict = 'allow'\nkind = 'execute'", "permissions.toml:4", "names a `command`"),
        ("[[rule]]\nverdict = 'allow'\ncommand = ['x']\npath = 'y'", "permissions.toml:4", "not for both"),
        ("[[rule]]\nverdict = 'allow'\ncommand = ['x']\nkind = 'read'", "permissions.toml:4", "kind `execute`"),
        ("[[rule]]\nverdict = 'deny'\ncommand = ['x']\nnot_args = ['y']", "permissions.toml:4", "`not_args`"),
        ("[[rule]]\nverdict = 'deny'\npath = 'a/*'\nkind = 'edit'\nmatch = ['b']", "permissions.toml:4", "`b`"),
    ] {
        let desk = Desk::new(Policy::All, &format!("{good}{text}\n"));
        let errors: Vec<String> = desk.engine.problems().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 1, "{text}");
        assert!(errors[0].contains(line) && errors[0].contains(problem), "{text}: {}", errors[0]);
        // The good rule of the same file does not apply either, nor does a mode.
        assert_eq!(desk.run("make"), Verdict::Ask, "{text}");
        assert_eq!(desk.file("read", "src/a"), Verdict::Ask, "{text}");
    }
    // What other files deny stays denied, and a broken file is not written to.
    let mut desk = Desk::new(Policy::All, "broken");
    desk.trust_repository(b"[[rule]]\nverdict = 'deny'\ncommand = ['make']");
    assert_eq!(desk.run("make"), Verdict::Deny);
    let session = desk.session();
    assert!(desk.engine.remember(Scope::Always, &session, &[rule("allow", "x")]).is_err());
    assert_eq!(fs::read_to_string(desk.directory.path().join("config/permissions.toml")).unwrap(), "broken");
    desk.trust_repository(b"\xff");
    assert_eq!(desk.engine.problems().count(), 2);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_fails_closed() {
    let desk = Desk::new(Policy::All, "");
    fs::remove_file(desk.directory.path().join("config/permissions.toml")).unwrap();
    fs::create_dir(desk.directory.path().join("config/permissions.toml")).unwrap();
    let engine = Engine::open(places(&desk.directory), Policy::All);
    assert_eq!(engine.problems().count(), 1);
    assert_eq!(Desk { engine, ..desk }.run("make"), Verdict::Ask);
}

#[test]
fn modes_decide_what_rules_do_not() {
    use Verdict::{Allow, Ask, Deny};
    let rows = [
        ("read", "src/a", [Ask, Allow, Allow, Allow, Deny]),
        // What the client serves beneath the roots is shown by opening the session.
        ("served read", "src/a", [Allow, Allow, Allow, Allow, Deny]),
        ("served read", "../other", [Ask, Ask, Ask, Allow, Deny]),
        ("served read", ".env", [Ask, Ask, Ask, Allow, Deny]),
        ("search", "src", [Ask, Allow, Allow, Allow, Deny]),
        ("edit", "src/a", [Ask, Ask, Allow, Allow, Deny]),
        ("move", "src/a", [Ask, Ask, Allow, Allow, Deny]),
        ("delete", "src/a", [Ask, Ask, Ask, Allow, Deny]),
        ("read", "../other", [Ask, Ask, Ask, Allow, Deny]),
        ("read", "/etc/hosts", [Ask, Ask, Ask, Allow, Deny]),
        ("edit", "src/../../x", [Ask, Ask, Ask, Allow, Deny]),
        ("read", ".env", [Ask, Ask, Ask, Allow, Deny]),
        ("fetch", "x", [Ask, Ask, Ask, Allow, Deny]),
        ("switch_mode", "x", [Ask, Ask, Ask, Allow, Deny]),
        ("execute", "x", [Ask, Ask, Ask, Allow, Deny]),
        ("other", "x", [Ask, Ask, Ask, Allow, Deny]),
        ("_new", "x", [Ask, Ask, Ask, Allow, Deny]),
    ];
    for (kind, path, expected) in rows {
        for (name, expected) in ["ask", "reads", "edits", "all", "none"].into_iter().zip(expected) {
            assert_eq!(Desk::new(name.parse().unwrap(), "").file(kind, path), expected, "{name}: {kind} {path}");
        }
    }
    for name in ["reads", "edits"] {
        assert_eq!(Desk::new(name.parse().unwrap(), "").call("think", &[], "{}").verdict, Allow);
        assert_eq!(Desk::new(name.parse().unwrap(), "").run("ls"), Ask);
    }
    let allowed = Desk::new(Policy::None, "[[rule]]\nverdict = 'allow'\ncommand = ['ls']\n");
    assert_eq!((allowed.run("ls"), allowed.run("rm x")), (Allow, Deny));
    assert!("yes".parse::<Policy>().is_err());
}

#[test]
fn rules_for_paths() {
    let desk = Desk::new(
        Policy::Ask,
        "
        [[rule]]
        verdict = 'allow'
        kind = ['read', 'edit']
        path = ['src/**', '*.md']
        match = ['src/a/b.rs', 'README.md']
        not_match = ['docs/x.md', 'src']
        [[rule]]
        verdict = 'deny'
        kind = 'edit'
        path = 'src/generated/**'
        [[rule]]
        verdict = 'allow'
        kind = 'delete'
        path = 'src/**'
        agent = 'other'
        ",
    );
    assert_eq!(desk.engine.problems().count(), 0);
    for (line, expected) in [
        // Whether a command changes the file is not to be seen.
        ("touch src/generated/a.rs", Verdict::Ask),
        ("sh -c 'rm src/generated/a.rs'", Verdict::Ask),
        ("tool --out=src/generated/a.rs", Verdict::Ask),
        ("touch src/a.rs", Verdict::Allow),
    ] {
        let rules = fs::read_to_string(places(&desk.directory).user_file()).unwrap();
        assert_eq!(Desk::new(Policy::All, &rules).run(line), expected, "{line}");
    }
    for (kind, path, expected) in [
        ("read", "src/a.rs", Verdict::Allow),
        ("edit", "src/deep/a.rs", Verdict::Allow),
        ("read", "README.md", Verdict::Allow),
        ("edit", "src/generated/a.rs", Verdict::Deny),
        ("edit", "src/x/../generated/a.rs", Verdict::Deny),
        ("read", "src/generated/a.rs", Verdict::Allow),
        ("read", "docs/x.md", Verdict::Ask),
        ("read", "src/../secret", Verdict::Ask),
        ("read", "../src/a.rs", Verdict::Ask),
        ("delete", "src/a.rs", Verdict::Ask),
        ("read", "src/.env", Verdict::Ask),
    ] {
        assert_eq!(desk.file(kind, path), expected, "{kind} {path}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_where_they_lead() {
    use std::os::unix::fs::symlink;
    let desk = Desk::new(Policy::Edits, "[[rule]]\nverdict = 'deny'\nkind = 'edit'\npath = 'src/kept/**'\n");
    let project = desk.directory.path().join("project");
    fs::create_dir(project.join("src/kept")).unwrap();
    symlink("/etc", project.join("out")).unwrap();
    symlink("nowhere", project.join("dangling")).unwrap();
    symlink("src/kept", project.join("alias")).unwrap();
    fs::write(project.join(".env"), "x").unwrap();
    symlink(".env", project.join("harmless")).unwrap();
    for (path, expected) in [
        ("src/new/file", Verdict::Allow),
        ("out/hosts", Verdict::Ask),
        ("out/../src/a", Verdict::Ask),
        ("dangling", Verdict::Ask),
        ("dangling/x", Verdict::Ask),
        ("harmless", Verdict::Ask),
        ("alias/x", Verdict::Deny),
    ] {
        assert_eq!(desk.file("edit", path), expected, "{path}");
    }
}

#[test]
fn secrets_are_asked_about_unless_their_very_path_is_allowed() {
    let everything = "[[rule]]\nverdict = 'allow'\nkind = ['read', 'edit']\npath = '**'\n";
    let desk = Desk::new(Policy::Edits, everything);
    for path in [
        ".env",
        ".env.local",
        "a/.env",
        ".envrc",
        ".ssh/config",
        "home/.ssh/id_rsa",
        "id_rsa",
        "id_ed25519",
        "x.pem",
        "a/x.key",
        ".gnupg/x",
        ".aws/credentials",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".git/config",
        ".git/hooks/pre-commit",
        ".kube/config",
        ".docker/config.json",
        ".ENV",
        "x.PEM",
        ".env.bak",
        "id_rsa.bak",
        "../config/permissions.toml",
        ".attache/permissions.toml",
        "store.p12",
        ".config/gh/hosts.yml",
        "../state/trust.toml",
    ] {
        assert_eq!(desk.file("read", path), Verdict::Ask, "{path}");
        assert_eq!(desk.file("edit", path), Verdict::Ask, "{path}");
        let named = desk.path(path);
        let literal = format!("{everything}[[rule]]\nverdict = 'allow'\nkind = 'read'\npath = '{named}'\n");
        if !path.starts_with("..") {
            let other = Desk::new(Policy::Ask, &literal.replace(desk.directory.path().to_str().unwrap(), "/nowhere"));
            assert_eq!(other.file("read", path), Verdict::Ask, "{path}");
            let literal = format!("{everything}[[rule]]\nverdict = 'allow'\nkind = 'read'\npath = '{path}'\n");
            let named = Desk::new(Policy::Ask, &literal);
            assert_eq!(named.file("read", path), Verdict::Allow, "{path}");
            assert_eq!(named.file("edit", path), Verdict::Ask, "{path}");
            let denied = format!("{literal}[[rule]]\nverdict = 'deny'\npath = '**'\n");
            assert_eq!(Desk::new(Policy::All, &denied).file("read", path), Verdict::Deny, "{path}");
        }
        assert_eq!(Desk::new(Policy::All, "").file("read", path), Verdict::Allow, "{path}");
    }
    // What others run may be read, not changed.
    for path in [
        ".bashrc",
        ".zshrc",
        ".profile",
        ".git/info/attributes",
        ".vscode/tasks.json",
        ".github/workflows/x.yml",
        ".husky/x",
    ] {
        assert_eq!((desk.file("read", path), desk.file("edit", path)), (Verdict::Allow, Verdict::Ask), "{path}");
    }
    for path in
        ["environment.rs", "src/key.rs", "keys.md", ".gitignore", "src/hooks/use.ts", "monkey", "config", "src/ssh.rs"]
    {
        assert_eq!((desk.file("read", path), desk.file("edit", path)), (Verdict::Allow, Verdict::Allow), "{path}");
    }
}

#[test]
fn every_combination_of_choices_has_its_answer() {
    let kinds = [
        ("ao", PermissionOptionKind::AllowOnce),
        ("aa", PermissionOptionKind::AllowAlways),
        ("ro", PermissionOptionKind::RejectOnce),
        ("ra", PermissionOptionKind::RejectAlways),
        ("un", PermissionOptionKind::from("_new")),
    ];
    for offered in 0..1 << kinds.len() {
        let options: Vec<PermissionOption> = (0..kinds.len())
            .filter(|bit| offered & (1 << bit) != 0)
            .map(|bit| PermissionOption::new(kinds[bit].0, "Allow everything", kinds[bit].1.clone()))
            .rev()
            .collect();
        let has = |id: &str| options.iter().any(|option| option.option_id.as_str() == id);
        let first = |ids: &[&str]| ids.iter().find(|id| has(id)).map(|id| PermissionOutcome::selected(*id));
        for scope in [Scope::Once, Scope::Session] {
            assert_eq!(allow(&options, scope).ok(), first(&["ao"]), "{options:?}");
        }
        for scope in [Scope::Project, Scope::Always] {
            assert_eq!(allow(&options, scope).ok(), first(&["ao", "aa"]), "{options:?}");
        }
        let refusal = first(&["ro", "ra"]).unwrap_or_else(PermissionOutcome::cancelled);
        assert_eq!(reject(&options), refusal, "{options:?}");
    }
    // One id for two choices is none.
    let twice = [
        PermissionOption::new("x", "No", PermissionOptionKind::RejectOnce),
        PermissionOption::new("x", "Yes", PermissionOptionKind::AllowOnce),
        PermissionOption::new("y", "Never", PermissionOptionKind::RejectAlways),
    ];
    assert_eq!(reject(&twice), PermissionOutcome::selected("y"));
    assert!(allow(&twice, Scope::Once).is_err());
}

#[test]
fn what_a_request_carries_counts_and_not_what_it_is_called() {
    let rules = "
        [[rule]]
        verdict = 'allow'
        command = ['git', 'status']
        [[rule]]
        verdict = 'deny'
        command = ['rm']
    ";
    let desk = Desk::new(Policy::Reads, rules);
    let inside = desk.path("src/a");
    for (kind, input, expected) in [
        ("execute", r#"{"command":"git status","description":"x"}"#, Verdict::Allow),
        ("execute", r#"{"command":["git","status"]}"#, Verdict::Allow),
        ("execute", r#"{"command":["bash","-lc","git status"]}"#, Verdict::Allow),
        ("execute", r#"{"cmd":"git status"}"#, Verdict::Allow),
        ("execute", r#"{"command":"git","args":["status","-s"]}"#, Verdict::Allow),
        ("other", r#"{"command":"git status"}"#, Verdict::Allow),
        ("execute", r#"{"command":"git status","cmd":"git status"}"#, Verdict::Allow),
        ("execute", r#"{"command":"git status","cmd":"make"}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","argv":["make"]}"#, Verdict::Ask),
        ("execute", r#"{"command":{"line":"git status"}}"#, Verdict::Ask),
        ("execute", r#"{"command":["git",1]}"#, Verdict::Ask),
        ("execute", r#"{"command":[]}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","cwd":"/tmp"}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","directory":"/tmp"}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","cwd":"/tmp","workdir":"/"}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","env":{"PATH":"/tmp"}}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status","input":{"command":"make"}}"#, Verdict::Ask),
        ("execute", r#"{"command":"git status; rm x"}"#, Verdict::Deny),
        ("execute", r#"{"a":{"b":[{"command":"rm x"}]}}"#, Verdict::Deny),
        ("execute", r#"{"a":{"b":{"c":{"d":{"e":{"command":"rm x"}}}}}}"#, Verdict::Ask),
        ("execute", "{}", Verdict::Ask),
        ("execute", "[]", Verdict::Ask),
        ("execute", "\"git status\"", Verdict::Ask),
        ("read", r#"{"command":"rm x"}"#, Verdict::Deny),
        ("read", r#"{"command":"make"}"#, Verdict::Ask),
        ("read", "{}", Verdict::Allow),
        ("read", r#"{"file_path":"/etc/passwd"}"#, Verdict::Ask),
        ("read", r#"{"paths":["/etc/passwd"]}"#, Verdict::Ask),
        ("read", r#"{"options":{"absPath":"~/x"}}"#, Verdict::Ask),
        ("read", r#"{"uri":"file:///etc/passwd"}"#, Verdict::Ask),
        ("edit", "{}", Verdict::Ask),
    ] {
        assert_eq!(desk.call(kind, &[&inside], input).verdict, expected, "{kind} {input}");
    }
    // Without a file there is nothing that a mode could allow.
    assert_eq!(desk.call("read", &[], "{}").verdict, Verdict::Ask);

    // A diff is a change, whatever the kind.
    let decide = |kind: &str, path: &str, policy: Policy| {
        let desk = Desk::new(policy, rules);
        let content = vec![ToolCallContent::Diff(Box::new(Diff::text(desk.path(path), None, "x")))];
        let request = request(kind, &[&desk.path("src/a")], "{}", content);
        desk.engine.decide(&Subject::from_request(desk.session(), &request, None)).verdict
    };
    assert_eq!(decide("read", "src/a", Policy::Reads), Verdict::Ask);
    assert_eq!(decide("edit", "src/a", Policy::Edits), Verdict::Allow);
    assert_eq!(decide("edit", "../a", Policy::Edits), Verdict::Ask);
    assert_eq!(decide("edit", ".env", Policy::Edits), Verdict::Ask);
}

#[test]
fn every_file_that_an_input_names_counts_however_it_is_named() {
    let desk = Desk::new(Policy::Edits, "");
    let inside = desk.path("src/a");
    let root = desk.path("");
    let root = root.trim_end_matches('/');
    let (inner, outer) = (format!("{root}/src/b"), "/etc/passwd");
    let keys = [
        "source",
        "destination",
        "src",
        "dst",
        "dest",
        "from",
        "to",
        "target",
        "source_path",
        "sourcePath",
        "SourcePath",
        "source-path",
        "sourceFile",
        "destination_file",
        "targetUri",
        "output_path",
        "outFile",
        "new_file_name",
        "folder",
        "rootDir",
        "target_directory",
    ];
    for key in keys {
        for kind in ["edit", "move"] {
            let call = |path: &str| desk.call(kind, &[&inside], &format!(r#"{{"{key}":"{path}"}}"#)).verdict;
            assert_eq!((call(&inner), call(outer)), (Verdict::Allow, Verdict::Ask), "{kind} {key}");
        }
    }
    let asked = [
        "file:///etc/passwd".to_owned(),
        "FILE:///etc/passwd".into(),
        "file:/etc/passwd".into(),
        "file://localhost/etc/passwd".into(),
        format!("file://{root}/%2e%2e/x"),
        format!("file://{root}/%2E%2e%2fx"),
        format!("file://localhost{root}/%2e%2e/x"),
        // Nobody knows what becomes of these.
        format!("file://elsewhere{root}/x"),
        format!("file://{root}/x%00"),
        format!("file://{root}/x%ff"),
        format!("file://{root}/x%2"),
        format!("file://{root}/%252e%252e/x"),
        format!("file://{root}/x?../y"),
        format!("file://{root}/x#y"),
        format!("vscode-remote://host{root}/x"),
        // What decides what other programs run.
        format!("file://{root}/%2egit/hooks/x"),
        format!("file://{root}/.git%2fconfig"),
    ];
    for path in asked {
        assert_eq!(desk.call("edit", &[&inside], &format!(r#"{{"uri":"{path}"}}"#)).verdict, Verdict::Ask, "{path}");
    }
    for path in [format!("file://{root}/a%20b"), format!("file://localhost{root}/a"), format!("{root}/100%25")] {
        assert_eq!(desk.call("edit", &[&inside], &format!(r#"{{"uri":"{path}"}}"#)).verdict, Verdict::Allow, "{path}");
    }
}

#[test]
fn files_that_decide_what_other_programs_run_are_asked_about_in_edits() {
    let desk = Desk::new(Policy::Edits, "");
    for name in [
        ".yarnrc.yml",
        ".yarn/plugins/x.cjs",
        ".pnpmfile.cjs",
        ".mise.toml",
        "mise.toml",
        ".tool-versions",
        ".zed/tasks.json",
        ".devcontainer/devcontainer.json",
        ".devcontainer.json",
        "lefthook.yml",
        ".lefthook/pre-commit/x",
        ".gitlab-ci.yml",
        "ci/Jenkinsfile",
        ".circleci/config.yml",
        ".travis.yml",
        "azure-pipelines.yml",
        ".buildkite/pipeline.yml",
        ".envrc",
        ".exrc",
        ".nvim.lua",
        ".dir-locals.el",
        "my.code-workspace",
        ".mvn/jvm.config",
        "rust-toolchain.toml",
        ".windsurf/x",
        "sitecustomize.py",
        ".hg/hgrc",
    ] {
        assert_eq!(desk.call("edit", &[&desk.path(name)], "{}").verdict, Verdict::Ask, "{name}");
    }
    for name in ["src/main.rs", "justfile", "Makefile", "package.json", "mise.md", "yarn.lock"] {
        assert_eq!(desk.call("edit", &[&desk.path(name)], "{}").verdict, Verdict::Allow, "{name}");
    }
}

#[test]
fn what_was_told_before_belongs_to_the_request() {
    let desk = Desk::new(Policy::Ask, "[[rule]]\nverdict = 'allow'\ncommand = ['git', 'status']\n");
    let mut view = attache::SessionView::new();
    let first = request("execute", &[], r#"{"command":"git status"}"#, vec![]);
    view.apply_permission(&first);
    let known = view.tool_call(&"call".into()).unwrap();
    let bare =
        |id: &str| PermissionRequest::new("session", []).subject(PermissionSubject::tool_call(ToolCallUpdate::new(id)));
    let decide = |request: &PermissionRequest, known| {
        desk.engine.decide(&Subject::from_request(desk.session(), request, known)).verdict
    };
    assert_eq!(decide(&bare("call"), Some(known)), Verdict::Allow);
    assert_eq!(decide(&bare("call"), None), Verdict::Ask);
    assert_eq!(decide(&bare("another"), Some(known)), Verdict::Ask);
    assert_eq!(decide(&request("execute", &[], r#"{"command":"make"}"#, vec![]), Some(known)), Verdict::Ask);
}

#[test]
fn a_question_shows_everything_and_hides_nothing() {
    let desk = Desk::new(Policy::Ask, "");
    let content =
        vec![ToolCallContent::Diff(Box::new(Diff::text("/p/a\u{202e}b", Some("old\n".into()), "new\x1b[2K\n")))];
    let request =
        request("edit", &["/p/loc\n"], r#"{"command":"git status\u001b[1A\nrm x","cwd":"/p/\u200bq"}"#, content);
    let subject = Subject::from_request(desk.session(), &request, None);
    let question = Question::new(&subject, &desk.engine.decide(&subject));
    assert_eq!(question.agent, "claude");
    assert_eq!(question.commands, ["git status\\x1b[1A\nrm x"]);
    assert_eq!(question.cwd, "/p/\\u{200b}q");
    assert_eq!(question.kinds, ["edit", "execute"]);
    assert_eq!(question.paths, ["/p/a\\u{202e}b"]);
    assert_eq!(question.named, ["/p/loc\\x0a"]);
    let change =
        Change::Texts { path: "/p/a\\u{202e}b".into(), old: Some("old\n".into()), new: "new\\x1b[2K\n".into() };
    assert_eq!(question.changes, [change]);
    assert_eq!(question.title.as_deref(), Some("`git status`"));
    assert!(!question.reason.is_empty() && question.suggestion.is_empty());

    let request = CreateTerminalRequest::new("session", "echo").args(["a b", "it's\n"]);
    let subject = from_terminal(desk.session(), &request);
    let question = Question::new(&subject, &desk.engine.decide(&subject));
    assert_eq!(question.commands, ["echo 'a b' 'it'\\''s\\x0a'"]);
}

#[test]
fn reasons_name_the_rule() {
    let desk = Desk::new(Policy::Ask, "\n\n[[rule]]\nverdict = 'deny'\ncommand = ['rm']\n");
    let request = CreateTerminalRequest::new("session", "rm x");
    let decision = desk.engine.decide(&from_terminal(desk.session(), &request));
    assert!(decision.reason.contains("permissions.toml:3` says: deny the command `rm …`"), "{}", decision.reason);
    let decision = desk.call("edit", &[&desk.path("src/a")], "{}");
    assert_eq!(decision.suggestion.len(), 1);
    assert_eq!(decision.suggestion[0].paths, [desk.path("src/**")]);
    assert_eq!(decision.suggestion[0].agent.as_deref(), Some("claude"));
}

#[test]
fn saving_keeps_the_rest_of_the_file() {
    let text = "# mine\n\n[[rule]] # first\nverdict = \"deny\"   # never\ncommand = ['rm']\n";
    let mut desk = Desk::new(Policy::Ask, text);
    let session = desk.session();
    let new = Rule { agent: Some("a\"b\n".into()), ..rule("allow", "make test") };
    desk.engine.remember(Scope::Always, &session, &[new.clone(), new]).unwrap();
    let saved = fs::read_to_string(desk.directory.path().join("config/permissions.toml")).unwrap();
    assert!(saved.starts_with(text), "{saved}");
    assert_eq!(parse_rules("r", &saved).unwrap().len(), 2);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = desk.directory.path().join("config/permissions.toml");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A file that is a link stays one.
        let real = desk.directory.path().join("real.toml");
        fs::rename(&path, &real).unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        desk.engine.remember(Scope::Always, &session, &[rule("allow", "ls")]).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("ls"));
    }
}

#[test]
fn many_engines_that_save_at_once_lose_nothing() {
    let desk = Desk::new(Policy::Ask, "# kept\n");
    let session = desk.session();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (places, session) = (places(&desk.directory), &session);
            scope.spawn(move || {
                let mut engine = Engine::open(places, Policy::Ask);
                for number in 0..8 {
                    for target in [Scope::Always, Scope::Project] {
                        engine.remember(target, session, &[rule("allow", &format!("c{writer} n{number}"))]).unwrap();
                    }
                }
            });
        }
    });
    let files: [PathBuf; 2] = [places(&desk.directory).user_file(), places(&desk.directory).project_file().unwrap()];
    for path in files {
        let rules = parse_rules("r", &fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(rules.len(), 64);
    }
}

fn from_terminal(session: Session, request: &CreateTerminalRequest) -> Subject {
    let action = attache_host::terminals::invocation(request, &session.cwd).action();
    Subject::served(session, action)
}

/// Rules are looked at before every decision, so they are read only when they have changed; and then also if the file has the
/// length and the time that it had.
#[test]
fn rules_are_read_again_when_the_bytes_of_their_file_change() {
    let rules = |verdict: &str| format!("[[rule]]\nverdict = \"{verdict}\"\ntool = \"x\"\n");
    let mut desk = Desk::new(Policy::Ask, &rules("deny "));
    assert_eq!(desk.engine.problems().count(), 1, "there is no such verdict");
    let file = places(&desk.directory).user_file();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let write = |text: &str, desk: &mut Desk| {
        fs::write(&file, text).unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(long_ago).unwrap();
        desk.engine.reload();
        let rule = desk.engine.rules().next().unwrap();
        (std::ptr::from_ref(rule), rule.verdict)
    };
    let first = write(&rules("allow"), &mut desk);
    assert_eq!(write(&rules("allow"), &mut desk), first, "they are those that were read before");
    let text = format!("{}  ", rules("ask"));
    assert_eq!(text.len(), rules("allow").len());
    assert_eq!(write(&text, &mut desk).1, Verdict::Ask);
    fs::remove_file(&file).unwrap();
    desk.engine.reload();
    assert_eq!(desk.engine.rules().count() + desk.engine.problems().count(), 0);
}

#[test]
fn rules_of_a_repository_follow_what_the_user_trusts() {
    const ALLOW: &str = "[[rule]]\nverdict = 'allow'\ncommand = ['make']\n";
    const DENY: &str = "[[rule]]\nverdict = 'deny'\ncommand = ['rm']\n";
    let mut desk = Desk::new(Policy::Ask, "");
    let project = desk.directory.path().join("project");
    let folder = project.join(".attache");
    let trust = Trust::new(desk.directory.path().join("state/trust.toml"));
    let trust_it = || trust.trust(&Contents::read(&project).unwrap()).unwrap();
    let rules = |text: &str| fs::write(folder.join("permissions.toml"), text).unwrap();
    fs::create_dir(&folder).unwrap();
    desk.engine.follow_repository(trust.clone(), project.clone());
    let check = |desk: &mut Desk, when: &str, expected: [Verdict; 2]| {
        desk.engine.reload();
        assert_eq!([desk.run("make"), desk.run("rm a")], expected, "{when}");
    };
    check(&mut desk, "without rules", [Verdict::Ask, Verdict::Ask]);
    rules(&format!("{ALLOW}{DENY}"));
    check(&mut desk, "not trusted", [Verdict::Ask, Verdict::Ask]);
    trust_it();
    check(&mut desk, "trusted", [Verdict::Allow, Verdict::Deny]);
    check(&mut desk, "unchanged", [Verdict::Allow, Verdict::Deny]);
    rules(ALLOW);
    check(&mut desk, "changed, and not trusted again", [Verdict::Ask, Verdict::Deny]);
    fs::remove_dir_all(&folder).unwrap();
    check(&mut desk, "deleted", [Verdict::Ask, Verdict::Deny]);
    fs::create_dir(&folder).unwrap();
    rules(&format!("{ALLOW}{DENY}"));
    check(&mut desk, "as it was trusted", [Verdict::Allow, Verdict::Deny]);
    rules(ALLOW);
    trust_it();
    check(&mut desk, "trusted again", [Verdict::Allow, Verdict::Ask]);
    trust.revoke(&project).unwrap();
    check(&mut desk, "not trusted any more", [Verdict::Ask, Verdict::Ask]);
    rules("[[rule]]\nverdict = 'perhaps'\n");
    trust_it();
    desk.engine.set_policy(Policy::All);
    check(&mut desk, "trusted, and wrong", [Verdict::Ask, Verdict::Ask]);
}
