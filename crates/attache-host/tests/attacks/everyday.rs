//! What people do every day in the sandbox, and what must not become possible by letting them.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::support::{Place, Ran};

/// A home outside of the directory for temporary files.
fn home() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("tmp")).unwrap();
    place.own();
    place
}

/// A line for `sh` in a directory beneath the home, as the user, without a sandbox.
fn free(place: &Place, directory: &str, line: &str) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    place.prepare(&mut command);
    place.run({
        command.current_dir(place.home().join(directory)).env("TMPDIR", place.path("tmp"));
        command
    })
}

/// `attache sandbox` with these arguments in a directory beneath the home.
fn sandbox(place: &Place, directory: &str, args: &[&str]) -> Command {
    let mut command = place.command(&["sandbox"]);
    command.args(args).current_dir(place.home().join(directory)).env("TMPDIR", place.path("tmp"));
    command
}

fn confined(place: &Place, directory: &str, line: &str) -> Ran {
    place.run(sandbox(place, directory, &["run", "--", "sh", "-c", line]))
}

fn explained(place: &Place, directory: &str) -> Value {
    let ran = place.run(sandbox(place, directory, &["explain", "--json"]));
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// Whether this machine has namespaces, without which files inside of what is writable cannot be protected.
fn has_namespaces() -> bool {
    let support = attache_host::sandbox::Sandbox::check().unwrap();
    if !support.namespaces {
        eprintln!("cannot be enforced on this machine: there are no namespaces");
    }
    support.namespaces
}

fn has_git() -> bool {
    Command::new("git").arg("--version").output().is_ok_and(|ran| ran.status.success())
}

/// A repository with a commit, a subdirectory and a linked worktree.
fn repository() -> Place {
    let place = home();
    let ran = free(
        &place,
        "project",
        "git init -q . && git config user.name me && git config user.email me@example.com && mkdir sub && \
         echo x > sub/file && git add . && git commit -qm first && git worktree add -q ../linked && mkdir ../linked/deep",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place
}

#[test]
fn git_works_in_a_subdirectory_and_in_a_linked_worktree() {
    if !has_git() || !has_namespaces() {
        return;
    }
    let place = repository();
    for directory in ["project", "project/sub", "linked", "linked/deep"] {
        let ran =
            confined(&place, directory, "echo y >> new && git add new && git commit -qm more && git log --oneline");
        assert!(ran.code == Some(0) && ran.out.contains("more"), "{directory}: {ran:?}");
    }
    let common = place.home().join("project/.git").display().to_string();
    for directory in ["project/sub", "linked"] {
        let explanation = explained(&place, directory);
        let has = |list: &str, path: &str| explanation[list].as_array().unwrap().iter().any(|row| row == path);
        assert!(has("writable", &common), "{explanation}");
        assert!(has("protected", &format!("{common}/hooks")) && has("protected", &format!("{common}/config")));
    }
}

#[test]
fn what_git_runs_later_is_protected_wherever_the_repository_is() {
    if !has_git() || !has_namespaces() {
        return;
    }
    for directory in ["project/sub", "linked"] {
        let attacks = [
            "echo x > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\" && echo got through",
            "echo '[core] fsmonitor = evil' >> \"$(git rev-parse --git-common-dir)/config\" && echo got through",
            "git config core.fsmonitor evil && echo got through",
            // Git goes where these lead.
            "echo /elsewhere > ~/project/.git/worktrees/linked/commondir && echo got through",
            "cd ~/project/.git/worktrees && mv linked other && echo got through",
            "cd ~/project/.git && mv worktrees other && echo got through",
        ];
        for line in attacks {
            let place = repository();
            let ran = free(&place, directory, line);
            assert!(ran.out.contains("got through"), "it shows nothing: {line}\n{ran:?}");
            let place = repository();
            let ran = confined(&place, directory, line);
            assert!(!ran.out.contains("got through"), "{directory}: {line}\n{ran:?}");
        }
    }
    // The files of the project around it are not part of the session.
    let place = repository();
    let ran = confined(&place, "project/sub", "echo x > ../outside && echo got through");
    assert!(!ran.out.contains("got through"), "{ran:?}");
}

#[test]
fn a_file_that_claims_a_repository_elsewhere_opens_nothing() {
    if !has_git() {
        return;
    }
    let place = repository();
    fs::create_dir_all(place.home().join("plain/fake/worktrees/x")).unwrap();
    place.write("victim/file", "precious");
    for name in ["HEAD", "refs/x", "objects/x"] {
        place.write(&format!("victim/{name}"), "");
    }
    place.write("victim/worktrees/x/HEAD", "");
    let fake = place.home().join("plain/fake/worktrees/x");
    let claims = [
        ("victim itself", place.home().join("victim").display().to_string(), ""),
        ("a worktree of another", place.home().join("project/.git/worktrees/linked").display().to_string(), ""),
        ("one without a way back", place.home().join("victim/worktrees/x").display().to_string(), ""),
        ("one that leads on", fake.display().to_string(), "victim"),
    ];
    for (what, claim, common) in claims {
        place.write("plain/.git", format!("gitdir: {claim}\n"));
        place.write("plain/fake/worktrees/x/HEAD", "ref: refs/heads/main\n");
        place.write("plain/fake/worktrees/x/commondir", place.home().join(common).display().to_string());
        place.write("plain/fake/worktrees/x/gitdir", place.home().join("plain/.git").display().to_string());
        for target in
            ["../victim/file", "../victim/new", "../project/.git/new", "../project/.git/worktrees/linked/HEAD"]
        {
            let ran = confined(&place, "plain", &format!("echo x > {target} && echo got through"));
            assert!(!ran.out.contains("got through"), "{what}: {target} {ran:?}");
        }
    }
}

#[test]
fn what_programs_start_from_is_protected_where_the_home_is_the_project() {
    if !has_namespaces() {
        return;
    }
    let place = home();
    for name in
        [".bashrc", ".profile", ".config/fish/config.fish", ".gitconfig", ".local/bin/tool", ".config/attache/x"]
    {
        place.write(name, "mine");
    }
    let attacks = [
        "echo evil >> .bashrc && echo got through",
        "rm -f .profile && echo got through",
        "echo evil > new && mv new .gitconfig && echo got through",
        "echo evil > .config/fish/conf.d && echo got through",
        "echo evil > .local/bin/tool && echo got through",
        "mv .config elsewhere && mkdir -p .config/fish .config/attache && echo got through",
        "mv .local elsewhere && echo got through",
    ];
    for line in attacks {
        let ran = confined(&place, "", line);
        assert!(!ran.out.contains("got through"), "{line}: {ran:?}");
    }
    // The rest is the project.
    let ran =
        confined(&place, "", "echo y > notes && mkdir -p .config/app && echo y > .config/app/settings && cat .bashrc");
    assert!(ran.code == Some(0) && ran.out.contains("mine"), "{ran:?}");
    assert!(explained(&place, "")["protected"].as_array().unwrap().len() >= 4);
    // What is not there yet can be made, and that is said.
    assert!(explained(&place, "")["gaps"].to_string().contains(".bash_aliases"), "{}", explained(&place, ""));
    // The same where something around the home is writable.
    let mut command =
        sandbox(&place, "project", &["run", "--", "sh", "-c", "echo evil >> ~/.bashrc && echo got through"]);
    command.env("TMPDIR", place.path(""));
    let ran = place.run(command);
    assert!(!ran.out.contains("got through"), "{ran:?}");
}

#[test]
fn a_command_gets_no_keys_unless_they_are_named() {
    let place = home();
    let run = |options: &[&str]| {
        let mut command = sandbox(&place, "project", &["run"]);
        command.args(options).args(["--", "env"]).env("ANTHROPIC_API_KEY", "sk-hunter2").env("MY_KEY", "other-hunter2");
        place.run(command)
    };
    let ran = run(&[]);
    assert!(ran.code == Some(0) && ran.out.contains("PATH="), "{ran:?}");
    assert!(!ran.out.contains("hunter2"), "{ran:?}");
    let ran = run(&["--env", "MY_*"]);
    assert!(ran.out.contains("other-hunter2") && !ran.out.contains("sk-hunter2"), "{ran:?}");
    let mut command = sandbox(&place, "project", &["explain", "--env", "MY_KEY"]);
    command.env("ANTHROPIC_API_KEY", "sk-hunter2").env("MY_KEY", "other-hunter2");
    let ran = place.run(command);
    assert!(ran.out.contains("Variables") && ran.out.contains("MY_KEY") && !ran.out.contains("hunter2"), "{ran:?}");
}

#[test]
fn settings_of_npm_are_hidden_only_if_there_are_credentials_in_them() {
    let place = home();
    let show = "cat ~/.npmrc; echo \"registry: $npm_config_registry\"";
    place.write(".npmrc", "; ours\nregistry=https://npm.example.com/\n@corp:registry = https://corp.example.com\n");
    let ran = confined(&place, "project", show);
    assert!(ran.out.contains("npm.example.com"), "{ran:?}");
    for secret in ["//npm.example.com/:_authToken=npm_hunter2", "_auth = hunter2", "unknown=hunter2"] {
        place.write(".npmrc", format!("registry=https://me:hunter2@npm.example.com/a\n{secret}\n"));
        let ran = confined(&place, "project", show);
        assert!(!ran.out.contains("hunter2"), "{ran:?}");
        assert!(ran.out.contains("registry: https://npm.example.com/a\n"), "{ran:?}");
    }
    let ran = place.run(sandbox(&place, "project", &["explain"]));
    assert!(ran.out.contains("npm_config_registry") && !ran.out.contains("hunter2"), "{ran:?}");
    // What the person says goes first.
    let mut command = sandbox(&place, "project", &["run", "--env", "npm_config_*", "--", "sh", "-c", show]);
    command.env("npm_config_registry", "https://mine.example.com/");
    let ran = place.run(command);
    assert!(ran.out.contains("registry: https://mine.example.com/\n"), "{ran:?}");
}

#[test]
fn more_can_be_made_writable_but_never_secrets_or_our_own_settings() {
    let place = home();
    place.write(".npm/x", "");
    place.write(".ssh/id", "");
    place.write(".local/state/attache/x", "");
    let settings = |writable: &str| {
        place.write(".config/attache/agent.toml", format!("model = 'offline'\n[commands]\nwritable = {writable}\n"));
    };
    let line = "echo y > ~/.npm/new && echo got through";
    settings("[]");
    let npm = place.home().join(".npm");
    // Where there are layers it is written there, else not at all.
    confined(&place, "project", line);
    assert!(!npm.join("new").exists());
    settings("['~/.npm']");
    let ran = confined(&place, "project", line);
    assert!(ran.out.contains("got through"), "{ran:?}");
    assert!(
        explained(&place, "project")["writable"].as_array().unwrap().iter().any(|row| *row == *npm.to_str().unwrap())
    );
    // The agent's commands, too.
    fs::remove_file(npm.join("new")).unwrap();
    let ran = place.run(place.command(&["run", "--permissions", "all", "run echo y > ~/.npm/new"]));
    assert!(npm.join("new").exists(), "{ran:?}");
    for (wrong, why) in [
        ("['~/.ssh']", "secrets"),
        ("['~/.config/attache']", "secrets"),
        ("['~/.local/state/attache/x']", "secrets"),
        ("['cache']", "absolute"),
        ("['~/gone']", "gone"),
        ("['~/.npm/../.ssh']", "secrets"),
    ] {
        settings(wrong);
        let ran = confined(&place, "project", "echo ran");
        assert!(!ran.out.contains("ran") && ran.err.contains(why), "{wrong}: {ran:?}");
    }
    // A link to a secret is that secret.
    std::os::unix::fs::symlink(place.home().join(".ssh"), place.home().join("link")).unwrap();
    settings("['~/link']");
    let ran = confined(&place, "project", "echo ran");
    assert!(!ran.out.contains("ran") && ran.err.contains("secrets"), "{ran:?}");
}

#[test]
fn a_failed_command_comes_with_a_hint_for_people_only() {
    let place = home();
    let ran = confined(&place, "project", "echo x > ~/new");
    assert!(ran.code != Some(0) && !ran.err.contains("hint:"), "{ran:?}");
    let ran = place.ask(sandbox(&place, "project", &["run", "--", "sh", "-c", "echo x > ~/new"]), &[]);
    assert!(ran.err.contains("hint:") && ran.err.contains("writable"), "{ran:?}");
    let ran = place.ask(sandbox(&place, "project", &["run", "--", "true"]), &[]);
    assert!(!ran.err.contains("hint:"), "{ran:?}");
}

#[test]
fn an_agent_that_never_ran_here_gets_a_place_for_its_state() {
    let place = home();
    let agent = place.write("bin/codex-acp", "#!/bin/sh\necho x > ~/.codex/state\n");
    fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let claude = place.write("bin/claude-agent-acp", "#!/bin/sh\necho x > ~/.claude/state\n");
    fs::set_permissions(&claude, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    place.own();
    for (name, state) in [("codex", ".codex"), ("claude", ".claude")] {
        let mut command = place.command(&["run", "--agent", name, "--sandbox", "hello"]);
        let path = format!("{}:/usr/bin:/bin", place.home().join("bin").display());
        command.env("PATH", path).env("TMPDIR", place.path("tmp"));
        let ran = place.run(command);
        assert_eq!(place.read(&format!("{state}/state")), "x\n", "{ran:?}");
        let mode = fs::metadata(place.home().join(state)).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o700);
    }
    assert!(!place.home().join(".claude.json").exists());
}

#[test]
fn a_prompt_that_is_meant_as_the_kind_of_sandbox_is_not_sent() {
    let place = home();
    for word in ["offline", "on", "off"] {
        let ran = place.run(place.command(&["run", "--sandbox", word]));
        assert!(ran.code == Some(2) && ran.err.contains(&format!("`--sandbox={word}`")), "{word}: {ran:?}");
    }
    let ran = place.run(place.command(&["run", "offline"]));
    assert_ne!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn explain_follows_the_settings_and_names_what_is_hidden() {
    let place = home();
    let reachable = |place: &Place| explained(place, "project")["reachable"].to_string();
    assert!(!reachable(&place).contains("no network"));
    place.write(".config/attache/agent.toml", "sandbox = 'offline'\n");
    assert!(reachable(&place).contains("no network"));
    let explanation = explained(&place, "project");
    assert!(!explanation["hidden"].as_array().unwrap().iter().any(|path| path == "/dev"), "{explanation}");
    place.write(".config/attache/agent.toml", "sandbox = 'off'\n");
    let ran = place.run(sandbox(&place, "project", &["explain"]));
    assert!(ran.out.contains("sandbox = \"off\""), "{ran:?}");
}
