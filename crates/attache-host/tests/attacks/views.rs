//! Attacks on the view of the machine that a sandbox is made of: while it is made, from one command to the next, and on
//! what makes it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::sandbox::{attack, can_be_enforced, check, confined, home, open_to_all};
use super::support::{Place, sandbox_attacker};

/// An attack that goes on while others are tried.
struct Meanwhile(Child);

impl Meanwhile {
    fn start(place: &Place, attack: &str, argument: &str) -> Self {
        let mut command = Command::new(sandbox_attacker());
        command.args([attack, argument]).stdout(Stdio::piped());
        place.prepare(&mut command);
        Meanwhile(command.spawn().unwrap())
    }

    fn result(mut self) -> String {
        let output = self.0.stdout.take().unwrap();
        std::io::read_to_string(output).unwrap()
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_link_that_appears_while_the_view_is_made_leads_nowhere() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("project/.git/modules/.ssh/HEAD", "");
    place.write("project/.git/modules/.ssh/config", "");
    place.write("project/.git/modules/.ssh/hooks/x", "");
    symlink(place.home(), place.path("home/project/.git/sym")).unwrap();
    place.own();
    super::support::attache();
    let swapping = Meanwhile::start(&place, "exchange", ".git/modules:.git/sym");
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < Duration::from_secs(4) {
        let ran = confined(&place, &[], "echo ran; cat ../.ssh/id .git/modules/.ssh/id; echo x > ../.ssh/planted");
        assert!(!ran.out.contains("private"), "{ran:?}");
        assert!(!place.path("home/.ssh/planted").exists(), "{ran:?}");
        runs += usize::from(ran.out.contains("ran"));
    }
    assert!(runs > 0, "nothing ran");
    assert!(swapping.result().contains("got through"), "nothing was exchanged");
    // Nothing was made where the link led.
    assert!(!place.path("home/.ssh/config.worktree").exists());
}

#[test]
fn a_repository_cannot_be_made_to_look_like_none() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("project/.git/modules/vendor/lib/HEAD", "");
    place.write("project/.git/modules/vendor/lib/config", "");
    for git in [".git", ".git/modules/vendor/lib"] {
        confined(&place, &[], &format!("mv {git}/HEAD {git}/H; rm -f {git}/config; mv {git} {git}2; mkdir {git}"));
        let line = format!("echo '[core] fsmonitor = evil' >> {git}/config && echo got through; mv {git}/H {git}/HEAD");
        let ran = confined(&place, &[], &line);
        assert!(!ran.out.contains("got through"), "{git}: {ran:?}");
        assert!(!place.read(&format!("project/{git}/config")).contains("evil"));
    }
}

#[test]
fn git_runs_nothing_from_where_its_settings_lead() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("project/.git/modules/vendor/lib/config", "");
    place.write("project/.git/modules/vendor/lib/modules/deep/config", "");
    place.write("project/.git/config", "[core]\n\thooksPath = .husky\n[include]\n\tpath = ../settings\n");
    place.write("project/.husky/pre-commit", "");
    place.write("project/settings", "");
    let attacks = [
        "echo x > .git/config.worktree && echo got through",
        "echo x >> .git/modules/vendor/lib/config && echo got through",
        "echo x > .git/modules/vendor/lib/hooks/post-checkout && echo got through",
        "echo x >> .git/modules/vendor/lib/modules/deep/config && echo got through",
        "mv .git/modules .git/other && mkdir .git/modules && echo got through",
        "mv .git/modules/vendor .git/modules/other && echo got through",
        "echo x > .husky/pre-commit && echo got through",
        "mv .husky .other && echo got through",
        "echo '[core] fsmonitor = evil' >> settings && echo got through",
    ];
    for line in attacks {
        let ran = confined(&place, &[], line);
        assert!(!ran.out.contains("got through"), "{line}: {ran:?}");
    }
    // What is not there cannot be protected, which is told.
    fs::remove_dir_all(place.path("home/project/.husky")).unwrap();
    let ran = confined(&place, &[], "true");
    assert!(ran.err.contains("project/.husky`"), "{ran:?}");
}

#[test]
fn a_repository_behind_a_link_is_protected_with_the_link() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    fs::rename(place.path("home/project/.git"), place.path("home/project/repository")).unwrap();
    symlink("repository", place.path("home/project/.git")).unwrap();
    symlink("../scripts", place.path("home/project/repository/new")).unwrap();
    fs::remove_dir_all(place.path("home/project/repository/hooks")).unwrap();
    fs::rename(place.path("home/project/repository/new"), place.path("home/project/repository/hooks")).unwrap();
    place.write("project/scripts/pre-push", "");
    let attacks = [
        "echo '[core] fsmonitor = evil' >> .git/config && echo got through",
        "echo x >> repository/config && echo got through",
        "rm .git && echo got through",
        "mv .git other && echo got through",
        "mv repository other && echo got through",
        "ln -s evil new && mv -T new .git && echo got through",
        "rm .git/hooks && echo got through",
        "echo x > scripts/pre-commit && echo got through",
    ];
    for line in attacks {
        let ran = confined(&place, &[], line);
        assert!(!ran.out.contains("got through"), "{line}: {ran:?}");
        assert!(ran.code.is_some_and(|code| code < 125), "it did not run: {ran:?}");
    }
    let ran = confined(&place, &[], "ls .git/HEAD .git/hooks/pre-push && echo x > .git/index && echo works");
    assert!(ran.out.contains("works"), "{ran:?}");
}

/// A link by the name of a repository is a command's word for where it would like to write.
#[test]
fn a_link_that_a_command_makes_in_place_of_a_repository_makes_nothing_writable() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    fs::remove_dir_all(place.path("home/project/.git")).unwrap();
    place.write("other/HEAD", "ref: refs/heads/main\n");
    let other = place.path("home/other");
    let ran = confined(&place, &[], &format!("ln -s {} .git && echo works", other.display()));
    assert!(ran.out.contains("works"), "{ran:?}");
    let ran = confined(&place, &[], &format!("touch {}/new && echo got through", other.display()));
    assert!(!ran.out.contains("got through"), "{ran:?}");
    assert!(ran.code.is_some_and(|code| code < 125), "it did not run: {ran:?}");
    // Nor is anything made there by us.
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
}

#[test]
fn directories_above_what_is_hidden_cannot_be_moved_away() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    place.write("dotfiles/state/attache/trust.toml", "");
    fs::remove_dir_all(place.path("home/.local/state")).unwrap();
    symlink("../dotfiles/state", place.path("home/.local/state")).unwrap();
    place.own();
    let run = |line: &str| confined(&place, &["-C", place.home().to_str().unwrap()], &format!("cd ~; {line}"));
    let attacks = [
        "mv .config .c2; mkdir -p .config/attache; echo got through > .config/attache/permissions.toml",
        "mv .local .l2; mkdir -p .local/state/attache; echo got through > .local/state/attache/trust.toml",
        "rm .local/state; mkdir -p .local/state/attache; echo got through > .local/state/attache/trust.toml",
        "mv dotfiles d2; mkdir -p dotfiles/state/attache; echo got through > dotfiles/state/attache/trust.toml",
    ];
    for line in attacks {
        let ran = run(line);
        assert!(ran.code.is_some_and(|code| code < 125), "it did not run: {ran:?}");
        for file in [".config/attache/permissions.toml", ".local/state/attache/trust.toml"] {
            assert!(!place.read(file).contains("got through"), "{line}: {ran:?}");
        }
    }
    // The directories themselves can be used.
    assert!(run("echo x > .config/new && mkdir .local/share && echo works").out.contains("works"));
}

#[test]
fn directories_that_look_like_those_of_sockets_stop_nobody() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    for number in 0..100 {
        fs::create_dir(place.path(&format!("tmp/ssh-{number}"))).unwrap();
    }
    fs::create_dir(place.path("tmp/ssh-real")).unwrap();
    place.own();
    let _listener = UnixListener::bind(place.path("tmp/ssh-real/agent")).unwrap();
    open_to_all(&place.path("tmp/ssh-real/agent"));
    // Each cover takes time, and with some thousands of them there is no sandbox any more.
    let ran = confined(&place, &[], "grep -c /tmp/ssh- /proc/self/mountinfo");
    assert_eq!(ran.out.trim(), "1", "{ran:?}");
    check(&place, &attack("connect", place.path("tmp/ssh-real/agent").display()));
}

#[test]
fn a_socket_with_a_relative_name_is_out_of_reach_and_one_that_was_moved_stays_so() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    fs::create_dir(place.path("tmp/some")).unwrap();
    place.own();
    let mut command = Command::new(sandbox_attacker());
    command.args(["listen-here", "relative.sock"]).stdout(Stdio::piped());
    place.prepare(&mut command);
    command.current_dir(place.home());
    let _listening = Meanwhile(command.spawn().unwrap());
    while !place.path("home/relative.sock").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    check(&place, &attack("connect", place.path("home/relative.sock").display()));

    let _listener = UnixListener::bind(place.path("tmp/some/socket")).unwrap();
    open_to_all(&place.path("tmp/some/socket"));
    let (there, moved) = (place.path("tmp/some"), place.path("tmp/moved"));
    confined(&place, &[], &format!("mv {} {}", there.display(), moved.display()));
    for directory in [there, moved] {
        let ran = confined(&place, &[], &attack("connect", directory.join("socket").display()));
        assert!(!ran.out.contains("got through"), "{ran:?}");
    }
}

#[test]
fn what_stays_open_is_told() {
    let place = home();
    fs::remove_dir_all(place.path("home/project/.git")).unwrap();
    let mut command = place.command(&["sandbox", "explain", "--json"]);
    command.env("TMPDIR", place.path("tmp"));
    let explained: Value = serde_json::from_str(&place.run(command).out).unwrap();
    let limits = explained["limits"].to_string();
    for words in ["where there was none", "shared with your other programs", "settings.json"] {
        assert!(limits.contains(words), "{words}: {limits}");
    }
}
