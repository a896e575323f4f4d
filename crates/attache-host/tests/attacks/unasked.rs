//! Attacks by a command that nobody was asked about: in mode `code` it runs all the same, in the strictest sandbox.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use serde_json::Value;

use super::sandbox::{attack, can_be_enforced, confined, free, home};
use super::support::{Place, Ran};

fn unasked(place: &Place, line: &str) -> Ran {
    confined(place, &["--unasked"], line)
}

/// An attack that gets through without a sandbox and not unasked.
fn check(place: &Place, line: &str) {
    let ran = free(place, line);
    assert!(ran.out.contains("got through"), "it shows nothing: {line}\n{ran:?}");
    let ran = unasked(place, line);
    assert!(!ran.out.contains("got through"), "{line}\n{ran:?}");
    assert!(ran.code.is_some_and(|code| code < 125), "it did not run: {ran:?}");
}

/// A home with caches, as somebody has who works in several languages.
fn home_with_caches() -> Place {
    let place = home();
    place.write(".cargo/registry/index/crate", "good\n");
    place.write(".cargo/registry/src/crate/lib.rs", "good\n");
    place.write(".cargo/bin/tool", "#!/bin/sh\necho good\n");
    place.write(".cargo/config.toml", "good\n");
    place.write(".cargo/credentials.toml", "token = 'private'\n");
    place.write(".npm/_cacache/index", "good\n");
    place.write(".cache/pip/wheel", "good\n");
    place.write("go/pkg/mod/module", "good\n");
    place.write(".gradle/caches/jar", "good\n");
    place.write(".gradle/gradle.properties", "password=private\n");
    place.write(".m2/repository/jar", "good\n");
    place.write(".m2/settings.xml", "<password>private</password>\n");
    place.write(".config/pip/pip.conf", "[global]\nindex-url = https://me:private@pypi.example.com/simple\n");
    place
}

const CACHES: [&str; 6] = [
    ".cargo/registry/index/crate",
    ".npm/_cacache/index",
    ".cache/pip/wheel",
    "go/pkg/mod/module",
    ".gradle/caches/jar",
    ".m2/repository/jar",
];

#[test]
fn nothing_but_the_project_is_changed() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("other/file", "as it was");
    for line in [
        "echo x > ../other/file && echo got through",
        "echo x > ../other/new && rm ../other/new && echo got through",
        "mv ../other ../another && mv ../another ../other && echo got through",
        "ln -s ../other/file link && echo x > link && echo got through; rm link",
        "chmod 700 ../other && echo got through",
    ] {
        check(&place, line);
    }
    let ran = unasked(&place, "echo x > here && mkdir sub && mv here sub/there && cat sub/there");
    assert_eq!(ran.out, "x\n", "{ran:?}");
}

#[test]
fn temporary_files_are_its_own() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let tmp = place.path("tmp").display().to_string();
    fs::write(place.path("tmp/theirs"), "got through").unwrap();
    place.own();
    check(&place, &format!("cat {tmp}/theirs"));
    let ran = unasked(&place, &format!("echo x > {tmp}/own && echo y > $(mktemp) && cat {tmp}/own"));
    assert_eq!((ran.out.as_str(), ran.code), ("x\n", Some(0)), "{ran:?}");
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 1, "all else is elsewhere");
    // The next command of the project finds them.
    assert_eq!(unasked(&place, &format!("cat {tmp}/own")).out, "x\n");
}

#[test]
fn nobody_is_reached() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = place.path("home/project/listener.sock");
    let in_project = UnixListener::bind(&path).unwrap();
    super::sandbox::open_to_all(&path);
    let name = format!("attache-unasked-{}", std::process::id());
    let abstract_one = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes()).unwrap()).unwrap();
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let python = |code: &str| format!("python3 -c 'import socket as s; {code}; print(\"got through\")'");
    let lines = [
        python(&format!("s.create_connection((\"127.0.0.1\", {tcp_port}), 5)")),
        python(&format!("s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {udp_port}))")),
        python(&format!("s.socket(s.AF_UNIX).connect(\"\\0{name}\")")),
        python("s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)"),
        format!("bash -c 'echo > /dev/tcp/127.0.0.1/{tcp_port} && echo got through'"),
    ];
    for line in lines {
        // Some machines have no Python, or none for every user.
        if free(&place, &line).out.contains("got through") {
            check(&place, &line);
        }
    }
    check(&place, &attack("connect", path.display()));
    check(&place, &attack("socket", ""));
    drop((in_project, abstract_one));
}

#[test]
fn secrets_are_hidden_and_what_others_run_cannot_be_planted() {
    if !can_be_enforced() {
        return;
    }
    let place = home_with_caches();
    place.write("project/.attache/permissions.toml", "");
    place.write("project/.vscode/tasks.json", "{}");
    place.write("project/.github/workflows/ci.yml", "");
    for name in [
        ".ssh/id",
        ".config/attache/permissions.toml",
        ".local/state/attache/trust.toml",
        ".cargo/credentials.toml",
        ".gradle/gradle.properties",
        ".m2/settings.xml",
        ".config/pip/pip.conf",
    ] {
        check(&place, &format!("cat ../{name} && echo got through"));
    }
    // Nor by another name.
    for line in [
        "cp -r ../.cargo copy 2>/dev/null; grep -r private copy && echo got through; rm -rf copy",
        "mv ../.m2/settings.xml ../.m2/other && cat ../.m2/other && echo got through; mv ../.m2/other ../.m2/settings.xml",
        "ln ../.cargo/credentials.toml token && cat token && echo got through; rm token",
    ] {
        check(&place, line);
    }
    let ran = unasked(&place, "echo $PIP_INDEX_URL");
    assert_eq!(ran.out, "https://pypi.example.com/simple\n", "where packages come from is told: {ran:?}");
    for name in [".git/config", ".git/hooks/new", ".attache/permissions.toml", ".vscode/tasks.json", ".github/new"] {
        check(&place, &format!("echo '# x' >> {name} && echo got through"));
    }
    for name in [".attache", ".vscode", ".github"] {
        check(&place, &format!("mv {name} aside && mv aside {name} && echo got through"));
    }
}

#[test]
fn secrets_of_the_project_are_hidden() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("project/.env", "KEY=private\n");
    place.write("project/apps/web/.env.local", "KEY=private\n");
    place.write("project/keys/server.pem", "private\n");
    place.write("shared/settings", "private\n");
    std::os::unix::fs::symlink("../shared/settings", place.path("home/project/.envrc")).unwrap();
    for line in [
        // Nobody names it.
        "grep -r private . && echo got through",
        "tar c . | grep -a private && echo got through",
        "cat keys/* && echo got through",
        "cat .envrc && echo got through",
        // Nor is it found by another name or in another place.
        "cp -r apps copy 2>/dev/null; grep -r private copy && echo got through; rm -rf copy",
        "ln .env other && cat other && echo got through; rm -f other",
        "mv .env other && cat other && echo got through; mv other .env",
        "mv apps moved && cat moved/web/.env.local && echo got through; mv moved apps",
        "rm .envrc && ln -s ../shared/settings .envrc && cat .envrc && echo got through",
    ] {
        check(&place, line);
    }
    assert_eq!(place.read("project/.env"), "KEY=private\n");
    let ran = unasked(&place, "cat .env; echo x > apps/web/new && cat apps/web/new");
    assert!(ran.out == "x\n" && ran.err.contains("Permission denied"), "{ran:?}");
    // Whoever allows a command lets it read what is in the project.
    assert_eq!(confined(&place, &[], "cat .env").out, "KEY=private\n");
    let mut command = place.command(&["sandbox", "explain", "--unasked", "--json"]);
    command.env("TMPDIR", place.path("tmp"));
    let explained: Value = serde_json::from_str(&place.run(command).out).unwrap();
    let path = place.project().join(".env").canonicalize().unwrap().display().to_string();
    assert!(explained["hidden"].as_array().unwrap().contains(&path.into()), "{explained}");
}

#[test]
fn what_a_repository_has_recorded_can_be_read_also_if_it_is_called_like_a_secret() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("project/.env.example", "KEY=\n");
    place.write("project/.env", "KEY=private\n");
    let git = "git -c user.name=me -c user.email=me@example.com";
    let made = free(&place, &format!("rm -r .git && git init -q && {git} add .env.example && {git} commit -qm one"));
    if made.code != Some(0) {
        eprintln!("git is not here: {made:?}");
        return;
    }
    let ran = unasked(&place, "cat .env.example; git status --short; cat .env");
    assert_eq!(ran.out, "KEY=\n?? .env\n", "{ran:?}");
    // To say that it is recorded takes to know what is in it.
    let forged = "blob=$(echo guess | git hash-object -w --stdin); \
                  git update-index --add --cacheinfo 100644,$blob,.env && git commit -qm two";
    let git = "GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=me GIT_COMMITTER_EMAIL=a@b";
    let ran = unasked(&place, &format!("export {git}; {forged} && git ls-files"));
    assert_eq!(ran.out, ".env\n.env.example\n", "{ran:?}");
    assert_eq!(unasked(&place, "cat .env").out, "");
    // What was added to it since is not recorded.
    place.write("project/.env.example", "KEY=private\n");
    assert_eq!(unasked(&place, "cat .env.example").out, "");
}

#[test]
fn no_shared_cache_is_poisoned() {
    if !can_be_enforced() {
        return;
    }
    let place = home_with_caches();
    for name in CACHES {
        let ran = unasked(&place, &format!("cat ../{name} && echo poison > ../{name} && cat ../{name}"));
        assert_eq!(ran.out, "good\npoison\n", "{name}: {ran:?}");
        assert_eq!(place.read(name), "good\n", "{name}");
    }
    let ran = unasked(&place, "rm -r ../.cargo/registry/src && mkdir ../.cargo/registry/new && ls ../.cargo/registry");
    assert_eq!(ran.out, "index\nnew\n", "{ran:?}");
    assert!(!place.home().join(".cargo/registry/new").exists());
    assert_eq!(place.read(".cargo/registry/src/crate/lib.rs"), "good\n");
    for name in [".cargo/bin/tool", ".cargo/config.toml"] {
        check(&place, &format!("echo '# x' >> ../{name} && echo got through"));
        check(&place, &format!("mv ../{name} ../{name}.old && mv ../{name}.old ../{name} && echo got through"));
    }
    // It stays in the layer of the project, for commands that were allowed as well; other projects see nothing of it.
    let poisoned = format!("cat ../{}", CACHES[0]);
    assert_eq!(unasked(&place, &poisoned).out, "poison\n");
    assert_eq!(confined(&place, &[], &poisoned).out, "poison\n");
    fs::create_dir(place.path("home/second")).unwrap();
    place.own();
    let elsewhere = confined(&place, &["--unasked", "-C", place.path("home/second").to_str().unwrap()], &poisoned);
    assert_eq!(elsewhere.out, "good\n", "{elsewhere:?}");
    assert_eq!(free(&place, &poisoned).out, "good\n");

    // Nobody else can look at a layer, and it can be removed.
    let layers = place.home().join(".local/state/attache/layers");
    for entry in fs::read_dir(&layers).unwrap().flatten() {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    for name in ["project", "1/cargo/upper/registry/index/crate"] {
        check(&place, &format!("cat {}/*/{name} && echo got through", layers.display()));
    }
    let clear = |args: &[&str]| {
        let mut command = place.command(&["sandbox", "clear"]);
        command.args(args);
        place.run(command)
    };
    let ran = clear(&[]);
    assert!(ran.code == Some(0) && ran.out.starts_with("removed the layers of 1 project"), "{ran:?}");
    assert_eq!(unasked(&place, &poisoned).out, "good\n");
    assert!(clear(&["--all"]).out.starts_with("removed the layers of 2 projects"));
    assert_eq!(fs::read_dir(&layers).unwrap().count(), 0);
    assert_eq!(clear(&["--all"]).out, "nothing to remove\n");
    for name in CACHES {
        assert_eq!(place.read(name), "good\n", "{name}");
    }
}

#[test]
fn a_cache_that_is_not_there_yet_is_private() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let line = "for name in $CARGO_HOME $npm_config_cache $XDG_CACHE_HOME $GOPATH $GRADLE_USER_HOME; do \
                echo x > $name/new && cat $name/new; done";
    let ran = unasked(&place, line);
    assert_eq!(ran.out, "x\n".repeat(5), "{ran:?}");
    assert!(!place.home().join(".cargo").exists());
    // What the person has set is no way around it.
    place.write("mine/registry/crate", "good\n");
    let mut command = place.command(&["sandbox", "run", "--unasked", "--", "sh", "-c"]);
    command.arg("cd $CARGO_HOME && cat registry/crate && echo poison > registry/crate && cat registry/crate");
    command.env("TMPDIR", place.path("tmp")).env("CARGO_HOME", place.path("home/mine"));
    let ran = place.run(command);
    assert_eq!(ran.out, "good\npoison\n", "{ran:?}");
    assert_eq!(place.read("mine/registry/crate"), "good\n");
}

#[test]
fn what_two_commands_write_at_the_same_time_stays_apart_and_is_seen_later() {
    if !can_be_enforced() {
        return;
    }
    let place = home_with_caches();
    let index = place.home().join(".cargo/registry/index");
    let index = index.display();
    let first =
        format!("echo one > {index}/one; touch started; while ! [ -e go ]; do sleep 0.02; done; cat {index}/one");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| unasked(&place, &first));
        while !place.path("home/project/started").exists() && !waiting.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let ran = unasked(
            &place,
            &format!(
                "cat {index}/one {index}/crate; echo two > {index}/one; cat {index}/one; cp {index}/one {index}/two"
            ),
        );
        assert_eq!(ran.out, "one\ngood\ntwo\n", "{ran:?}");
        let mut command = place.command(&["sandbox", "clear"]);
        command.env("TMPDIR", place.path("tmp"));
        let ran = place.run(command);
        assert!(ran.code == Some(1) && ran.err.contains("in use"), "{ran:?}");
        fs::write(place.path("home/project/go"), "").unwrap();
        let ran = waiting.join().unwrap();
        assert_eq!(ran.out, "one\n", "{ran:?}");
    });
    assert_eq!(unasked(&place, &format!("cat {index}/one {index}/two")).out, "one\ntwo\n");
}

#[test]
fn the_built_in_agent_runs_unasked_only_what_it_confines_and_only_where_it_may() {
    if !can_be_enforced() {
        return;
    }
    let place = home_with_caches();
    let run = |options: &[&str], line: &str| {
        let _ = fs::remove_file(place.path("home/project/made"));
        let mut command = place.command(&["run", "-o", "json"]);
        command.args(options).arg(format!("run {line}")).env("TMPDIR", place.path("tmp"));
        let ran = place.run(command);
        let result: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
        (place.path("home/project/made").exists(), result)
    };
    let poison =
        format!("sh -c 'touch made; echo x > ../new; echo x > ../{0}; echo x > .git/hooks/post-commit'", CACHES[0]);
    let (is_made, result) = run(&["--mode", "code"], &poison);
    assert!(is_made, "{result}");
    assert!(!place.home().join("new").exists() && !place.home().join("project/.git/hooks/post-commit").exists());
    assert_eq!(place.read(CACHES[0]), "good\n");
    // Nobody is there to be asked, so what is asked about is not done.
    for options in [
        &["--mode", "ask"][..],
        &["--mode", "architect"],
        &["--mode", "code", "--permissions", "none"],
        &["--mode", "code", "--permissions", "reads"],
        &["--mode", "code", "--permissions", "edits"],
        &["--mode", "code", "--set", "sandbox=off"],
        &["--mode", "code", "--deny", "command = ['touch']"],
    ] {
        let (is_made, result) = run(options, "touch made");
        assert!(!is_made, "{options:?} {result}");
    }
    // What it comes across in the project without naming it is not told to the model.
    place.write("project/.env", "KEY=private\n");
    let (_, result) = run(&["--mode", "code"], "grep -r KEY .");
    assert!(!result.to_string().contains("private"), "{result}");
    let (_, result) = run(&["--mode", "code", "--permissions", "all"], "grep -r KEY .");
    assert!(result.to_string().contains("private"), "it shows nothing: {result}");
    // A rule that asks is asked about, also in a line with more than that.
    place.rules("[[rule]]\nverdict = 'ask'\ncommand = ['touch']\n");
    assert!(!run(&["--mode", "code"], "touch made").0);
    assert!(!run(&["--mode", "code"], "sh -c 'touch made'").0);
}

#[test]
fn what_is_the_case_is_explained() {
    if !can_be_enforced() {
        return;
    }
    let place = home_with_caches();
    let explain = |args: &[&str]| {
        let mut command = place.command(&["sandbox", "explain"]);
        command.args(args).env("TMPDIR", place.path("tmp"));
        place.run(command).out
    };
    assert!(explain(&[]).contains("commands run unasked in a stricter one"));
    let text = explain(&["--unasked"]);
    assert!(text.contains("Commands that run unasked in mode `code` have this"), "{text}");
    assert!(text.contains("no network, and no sockets"), "{text}");
    let explained: Value = serde_json::from_str(&explain(&["--unasked", "--json"])).unwrap();
    let has = |list: &str, path: &Path| {
        explained[list].as_array().unwrap().contains(&path.canonicalize().unwrap().display().to_string().into())
    };
    assert!(has("layers", &place.home().join(".cargo")) && has("layers", &place.path("tmp")), "{explained}");
    assert!(has("protected", &place.home().join(".cargo/bin")), "{explained}");
    assert!(!has("writable", &place.path("tmp")) && has("writable", &place.project()), "{explained}");
    assert_eq!((&explained["unasked"], &explained["why_asked"]), (&true.into(), &Value::Null));
    place.write(".config/attache/agent.toml", "sandbox = 'off'\n");
    let explained: Value = serde_json::from_str(&explain(&["--json"])).unwrap();
    assert_eq!((&explained["unasked"], &explained["why_asked"]), (&false.into(), &"the sandbox is off".into()));
    assert!(explain(&[]).contains("Every command is asked about, also in mode `code`: the sandbox is off"));
}
