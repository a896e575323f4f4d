//! Attacks from inside of the sandbox. Each is tried without one first, where it has to work: else it shows nothing.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::{Place, Ran, sandbox_attacker};

/// A home outside of the directory for temporary files, with secrets, settings and a repository.
pub(super) fn home() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("tmp")).unwrap();
    place.write("file", "plain");
    place.write(".ssh/id", "private");
    place.write(".config/attache/permissions.toml", "");
    place.write(".local/state/attache/trust.toml", "");
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place.write("project/.git/config", "[core]\n");
    place.write("project/.git/hooks/pre-push.sample", "");
    place
}

/// Whether this machine allows the user namespaces. Where it does not, that is said and tested below, and nothing else can be.
pub(super) fn can_be_enforced() -> bool {
    static GAPS: OnceLock<String> = OnceLock::new();
    let gaps = GAPS.get_or_init(|| {
        let place = home();
        let mut command = place.command(&["sandbox", "explain", "--json"]);
        command.env("TMPDIR", place.path("tmp"));
        let explained: Value = serde_json::from_str(&place.run(command).out).unwrap();
        assert_eq!(explained["enforced"], true, "{explained}");
        let gaps = explained["gaps"].as_array().unwrap().iter().filter_map(Value::as_str);
        gaps.collect::<Vec<_>>().join("; ")
    });
    if !gaps.is_empty() {
        eprintln!("cannot be enforced on this machine: {gaps}");
    }
    gaps.is_empty()
}

/// A line for `sh` as the user, without a sandbox.
pub(super) fn free(place: &Place, line: &str) -> Ran {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    place.prepare(&mut command);
    command.env("TMPDIR", place.path("tmp"));
    place.run(command)
}

/// The same in the sandbox.
pub(super) fn confined(place: &Place, options: &[&str], line: &str) -> Ran {
    let mut command = place.command(&["sandbox", "run"]);
    command.args(options).args(["--", "sh", "-c", line]).env("TMPDIR", place.path("tmp"));
    place.run(command)
}

/// An attack that gets through without a sandbox and not within it.
pub(super) fn check(place: &Place, line: &str) {
    let ran = free(place, line);
    assert!(ran.out.contains("got through"), "it shows nothing: {line}\n{ran:?}");
    let ran = confined(place, &[], line);
    assert!(!ran.out.contains("got through"), "{line}\n{ran:?}");
    assert!(ran.code.is_some_and(|code| code < 125), "it did not run: {ran:?}");
}

/// A line with an attack of the program in it.
pub(super) fn attack(name: &str, argument: impl std::fmt::Display) -> String {
    format!("{} {name} {argument}", sandbox_attacker().display())
}

/// Another program of the user.
struct Bystander(Child);

impl Bystander {
    fn new(place: &Place) -> Self {
        let mut command = Command::new("sleep");
        command.arg("60");
        place.prepare(&mut command);
        Bystander(command.spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

pub(super) fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn sockets_of_programs_outside_are_out_of_reach() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    fs::create_dir(place.path("tmp/tmux-65534")).unwrap();
    place.own();
    let names = ["home/outside.sock", "tmp/listener.sock", "tmp/tmux-65534/default", "home/.ssh/agent.sock"];
    let listeners: Vec<UnixListener> = names.map(|name| UnixListener::bind(place.path(name)).unwrap()).into();
    let datagrams = UnixDatagram::bind(place.path("home/log.sock")).unwrap();
    let inside = UnixListener::bind(place.path("home/project/inside.sock")).unwrap();
    for name in names.iter().chain(&["home/log.sock", "home/project/inside.sock"]) {
        open_to_all(&place.path(name));
    }
    for name in names {
        check(&place, &attack("connect", place.path(name).display()));
    }
    check(&place, &attack("datagram", place.path("home/log.sock").display()));
    // Through links, and through what /proc shows.
    check(&place, &format!("ln -sf ../outside.sock link; {}", attack("connect", "link")));
    let bystander = Bystander::new(&place);
    let root = format!("/proc/{}/root", bystander.0.id());
    check(&place, &attack("connect", format!("{root}{}", place.path("home/outside.sock").display())));
    // A socket of the project is part of it, and one that is named can be had.
    assert!(confined(&place, &[], &attack("connect", "inside.sock")).out.contains("got through"));
    let outside = place.path("home/outside.sock").display().to_string();
    let ran = confined(&place, &["--socket", &outside], &attack("connect", &outside));
    assert!(ran.out.contains("got through"), "{ran:?}");
    drop((listeners, datagrams, inside));
}

#[test]
fn services_of_the_user_are_out_of_reach_unless_they_are_named() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    fs::create_dir_all(place.path("runtime/bus")).unwrap();
    place.own();
    let listener = UnixListener::bind(place.path("runtime/bus/socket")).unwrap();
    open_to_all(&place.path("runtime/bus/socket"));
    let socket = place.path("runtime/bus/socket").display().to_string();
    let run = |options: &[&str], line: &str| {
        let mut command = place.command(&["sandbox", "run"]);
        command.args(options).args(["--", "sh", "-c", line]);
        command.env("TMPDIR", place.path("tmp")).env("XDG_RUNTIME_DIR", place.path("runtime"));
        place.run(command)
    };
    // As a whole: also what a service makes there later.
    let later = format!(
        "for i in $(seq 1000); do [ -e go ] && break; sleep 0.01; done; {}",
        attack("connect", place.path("runtime/later").display())
    );
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&[], &format!("touch started; {later}")));
        while !place.path("home/project/started").exists() && !waiting.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
        }
        let made_later = UnixListener::bind(place.path("runtime/later")).unwrap();
        open_to_all(&place.path("runtime/later"));
        assert!(free(&place, &attack("connect", place.path("runtime/later").display())).out.contains("got through"));
        fs::write(place.path("home/project/go"), "").unwrap();
        let ran = waiting.join().unwrap();
        assert!(!ran.out.contains("got through"), "{ran:?}");
        drop(made_later);
    });
    let line = attack("connect", &socket);
    assert!(free(&place, &line).out.contains("got through"));
    assert!(!run(&[], &line).out.contains("got through"));
    let ran = run(&["--socket", &socket], &line);
    assert!(ran.out.contains("got through"), "{ran:?}");
    drop(listener);
}

#[test]
fn offline_there_are_no_sockets_but_pairs() {
    let place = home();
    for (name, expected) in [("socket", false), ("pair", true)] {
        let ran = confined(&place, &["--offline"], &attack(name, ""));
        assert_eq!(ran.out.contains("got through"), expected, "{name}: {ran:?}");
    }
    assert!(confined(&place, &[], &attack("socket", "")).out.contains("got through"));
}

#[test]
fn memory_that_others_share_is_out_of_reach() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let name = format!("/dev/shm/attache-attack-{}", std::process::id());
    fs::write(&name, "got through").unwrap();
    open_to_all(Path::new(&name));
    check(&place, &format!("cat {name}"));
    fs::remove_file(&name).unwrap();
    // It has some of its own.
    assert!(confined(&place, &[], &format!("echo got through > {name} && cat {name}")).out.contains("got through"));
    assert!(!Path::new(&name).exists());

    let key = std::process::id() as i32;
    // SAFETY: makes a segment of one byte, writes that, and removes the segment in the end.
    unsafe {
        let segment = libc::shmget(key, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o666);
        assert!(segment >= 0);
        let memory = libc::shmat(segment, std::ptr::null(), 0);
        memory.cast::<u8>().write(b'!');
        check(&place, &attack("system-v", key));
        libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
    }
}

#[test]
fn modes_and_times_outside_cannot_be_changed() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    check(&place, "chmod 600 ../file && echo got through");
    check(&place, "touch ../file && echo got through");
    check(&place, "chmod 777 .. && echo got through");
    // Inside they can.
    assert!(confined(&place, &[], "touch new && chmod 600 new && echo got through").out.contains("got through"));
}

#[test]
fn what_git_would_run_later_cannot_be_planted() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let attacks = [
        "echo got through > .git/hooks/pre-commit && cat .git/hooks/pre-commit",
        "echo '[core] fsmonitor = evil' >> .git/config && echo got through",
        "printf x > .git/new && mv .git/new .git/config && echo got through",
        "mv .git other && mkdir .git && echo got through; rmdir .git && mv other .git",
    ];
    for line in attacks {
        check(&place, line);
    }
    // Nor where there are no hooks yet, nor in a worktree.
    fs::remove_dir_all(place.path("home/project/.git/hooks")).unwrap();
    let ran = confined(&place, &[], "mkdir -p .git/hooks; echo x > .git/hooks/post-commit && echo got through");
    assert!(!ran.out.contains("got through"), "{ran:?}");
    fs::remove_dir_all(place.path("home/project/.git")).unwrap();
    place.write("project/.git", "gitdir: /elsewhere\n");
    let ran = confined(&place, &[], "echo 'gitdir: evil' > .git && echo got through; rm .git && echo got through");
    assert!(!ran.out.contains("got through"), "{ran:?}");
}

#[test]
fn git_still_works_in_its_own_repository() {
    let place = home();
    fs::remove_dir_all(place.path("home/project/.git")).unwrap();
    let identity = "-c user.name=n -c user.email=e";
    let made = free(&place, &format!("git init -q . && git {identity} commit -q --allow-empty -m first && echo made"));
    if !made.out.contains("made") {
        return;
    }
    let line = format!("echo x > a && git add a && git {identity} commit -q -m second && git log --oneline | wc -l");
    let ran = confined(&place, &[], &line);
    assert_eq!(ran.out.trim(), "2", "{ran:?}");
}

#[test]
fn whoever_is_outside_cannot_be_starved() {
    let place = home();
    let bystander = Bystander::new(&place);
    for name in ["limit", "renice", "idle"] {
        check(&place, &attack(name, bystander.0.id()));
    }
    // Nor the command that runs it.
    let ran = confined(&place, &[], &attack("limit", "$PPID"));
    assert!(ran.out.contains("not permitted"), "{ran:?}");
    // The caller itself may do with less.
    assert!(confined(&place, &[], "ulimit -n 64 && nice -n 5 true && echo got through").out.contains("got through"));
}

#[test]
fn settings_and_records_are_hidden_from_every_command() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let secrets = [".ssh/id", ".config/attache/permissions.toml", ".local/state/attache/trust.toml"];
    for name in secrets {
        check(&place, &format!("cat ../{name} && echo got through"));
        check(&place, &format!("echo x > ../{name} && echo got through"));
        check(&place, &format!("stat ../{name} && echo got through"));
    }
    // A command that a client runs for an agent.
    let rule = place.home().join(".local/state/attache/permissions/x.toml");
    let line = format!("mkdir -p {0} && echo got through > {1}", rule.parent().unwrap().display(), rule.display());
    let script = json!([
        {"call": "terminal/create", "params": {"command": "sh", "args": ["-c", line]}},
        {"call": "terminal/wait_for_exit", "params": {"terminalId": "$terminal"}},
        {"run": line},
    ]);
    let run = |options: &[&str]| {
        let mut command = place.attack(1, &[&["--permissions", "all"], options].concat(), &script);
        command.env("TMPDIR", place.path("tmp"));
        place.run(command);
        fs::remove_file(&rule).is_ok()
    };
    assert!(run(&[]), "it shows nothing");
    assert!(!run(&["--sandbox"]));
    // A command of the agent that is built in, as a process of its own and in our terminals, with a sandbox around all.
    for options in [&[][..], &["--protocol", "1"], &["--sandbox"], &["--sandbox", "--protocol", "1"]] {
        let mut command = place.command(&["run", "--permissions", "all"]);
        command.args(options).arg(format!("run {line}")).env("TMPDIR", place.path("tmp"));
        let ran = place.run(command);
        assert!(!rule.exists(), "{options:?} {ran:?}");
    }
}

#[test]
fn the_home_as_the_project_hides_its_secrets_all_the_same() {
    if !can_be_enforced() {
        return;
    }
    let place = Place::new();
    place.write(".ssh/id", "private");
    let home = place.home().display().to_string();
    // The home is also beneath the directory for temporary files here, which is writable.
    for directory in [home.as_str(), "/", "."] {
        let line = format!("cat {home}/.ssh/id; echo x > {home}/new; mkdir -p {home}/.config/attache/rules");
        let ran = confined_at_temp(&place, &["-C", directory], &line);
        assert!(!ran.out.contains("private"), "{directory}: {ran:?}");
        assert_eq!(place.read("new"), "x\n", "{directory}: {ran:?}");
        assert!(!place.home().join(".config/attache/rules").exists(), "{directory}: {ran:?}");
        fs::remove_file(place.home().join("new")).unwrap();
    }
    // The built-in agent says how it is confined, and is.
    let mut command = place.command(&["run", "-o", "json", "--permissions", "all", "-C", &home, "run cat .ssh/id"]);
    command.env("HOME", place.home());
    let ran = place.run(command);
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(result["sandbox"]["state"], "on", "{ran:?}");
    assert!(!ran.out.contains("private"), "{ran:?}");
}

/// In the sandbox, with the usual directory for temporary files, which the home is beneath.
fn confined_at_temp(place: &Place, options: &[&str], line: &str) -> Ran {
    let mut command = place.command(&["sandbox", "run"]);
    command.args(options).args(["--", "sh", "-c", line]);
    place.run(command)
}

#[test]
fn a_sandbox_works_inside_of_a_sandbox() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let line = format!("{} sandbox run -- sh -c 'echo inner; cat ../.ssh/id'", super::support::attache().display());
    let ran = confined(&place, &[], &line);
    assert!(ran.out.contains("inner") && !ran.out.contains("private"), "{ran:?}");
    // What the outer one enforces is no gap of the inner one.
    assert!(!ran.err.contains("not enforced"), "{ran:?}");
}

#[test]
fn what_a_sandbox_means_can_be_read_before_anything_runs() {
    if !can_be_enforced() {
        return;
    }
    let place = home();
    let run = |args: &[&str]| {
        let mut command = place.command(&["sandbox", "explain"]);
        command.args(args).env("TMPDIR", place.path("tmp"));
        place.run(command).out
    };
    let explained: Value = serde_json::from_str(&run(&["--json", "--offline", "--", "sh"])).unwrap();
    let has = |list: &str, path: &str| {
        let path = place.path(path).canonicalize().unwrap().display().to_string();
        explained[list].as_array().unwrap().contains(&json!(path))
    };
    assert!(has("writable", "home/project") && has("writable", "tmp") && has("readable", "/"), "{explained}");
    assert!(has("hidden", "home/.ssh") && has("hidden", "home/.config/attache"), "{explained}");
    assert!(has("protected", "home/project/.git/hooks"), "{explained}");
    assert_eq!(explained["reachable"][0], "no network, and no sockets");
    assert_eq!((&explained["enforced"], &explained["can_start"]), (&json!(true), &json!(true)), "{explained}");
    let text = run(&["--", "sh"]);
    assert!(text.contains("and can be started") && text.contains("Hidden: neither read nor changed:\n"), "{text}");
    // What is above something hidden can be listed, and ordinary programs find what they need.
    let ran = confined(&place, &[], "ls -a .. && ls / && getent hosts localhost && mktemp");
    assert!(ran.code == Some(0) && ran.out.contains("usr") && ran.out.contains("file"), "{ran:?}");
}

#[test]
fn a_program_that_nobody_may_look_into_can_confine_others() {
    if !can_be_enforced() {
        return;
    }
    let ran = free(&home(), &attack("confine-from-the-dark", ""));
    assert!(ran.out.contains("got through"), "{ran:?}");
}

#[test]
fn a_command_ends_with_all_that_it_started_and_its_exit_code_is_passed_on() {
    let place = home();
    super::support::attache();
    let started = std::time::Instant::now();
    let ran = confined(&place, &[], "(setsid sleep 1000 & echo $! > pid); exit 7");
    assert_eq!(ran.code, Some(7), "{ran:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    let pid = place.read("project/pid");
    assert!(!Path::new("/proc").join(pid.trim()).exists());
    assert_eq!(confined(&place, &[], "kill -TERM $$").code, Some(128 + libc::SIGTERM));
    let mut command = place.command(&["sandbox", "run", "--", "no-such-program"]);
    command.env("TMPDIR", place.path("tmp"));
    assert_eq!(place.run(command).code, Some(127));
}

/// Makes the kernel look like one that allows no namespaces.
fn without_namespaces(command: &mut Command) {
    let deny = || {
        let step = |code: u32, value: u32, otherwise_skip: u8| libc::sock_filter {
            code: code as u16,
            jt: 0,
            jf: otherwise_skip,
            k: value,
        };
        let mut filter = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ, libc::SYS_unshare as u32, 1),
            step(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
            step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: reads the program, which lives during the call.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes system calls on local variables.
    unsafe { command.pre_exec(deny) };
}

#[test]
fn what_a_machine_cannot_enforce_is_said_everywhere() {
    let place = home();
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("TMPDIR", place.path("tmp"));
        without_namespaces(&mut command);
        place.run(command)
    };
    let home = place.home().display().to_string();
    const GAP: &str = "programs that listen on a socket with a path";
    let ran = run(&["sandbox", "run", "--", "sh", "-c", "cat ../.ssh/id; echo x > ../new; echo ran"]);
    assert!(ran.err.contains(GAP) && ran.out.contains("ran") && !ran.out.contains("private"), "{ran:?}");
    assert!(!place.home().join("new").exists());
    assert!(run(&["sandbox", "explain"]).out.contains(GAP));
    let explained: Value = serde_json::from_str(&run(&["sandbox", "explain", "--json"]).out).unwrap();
    assert!(explained["gaps"][0].as_str().unwrap().contains(GAP), "{explained}");
    assert!(run(&["doctor"]).out.contains(GAP));
    let told = run(&["run", "-o", "stream-json", "say hi"]).out;
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // In one line, with the command that tells the rest.
    let is_told = |line: &Value| {
        line["type"] == "notice" && line["text"].to_string().contains("does not enforce all of its rules")
    };
    assert!(lines.iter().any(is_told), "{told}");
    assert!(lines.last().unwrap()["sandbox"]["gaps"][0].as_str().unwrap().contains(GAP), "{told}");
    assert!(run(&["run", "/status"]).out.contains(GAP));

    // Where the home is the project, its secrets cannot be hidden: an error if a sandbox was asked for, else it is said.
    for args in [&["sandbox", "run", "-C", &home, "--", "true"][..], &["run", "--sandbox", "-C", &home, "say hi"]] {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("inside of"), "{ran:?}");
    }
    let told = run(&["run", "-o", "json", "-C", &home, "say hi"]).out;
    assert!(told.contains(".ssh` cannot be hidden inside of"), "{told}");
}
