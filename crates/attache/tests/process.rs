//! Real processes under a keeper: they end with everything they started, and say why they could not start.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    io::{BufRead as _, BufReader as StdBufReader},
    process::Stdio,
    time::{Duration, Instant},
};

use attache::process::{Command, ExitStatus, Process, SpawnError, use_keeper};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout},
};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);
/// Long enough for a signal to be acted on by a busy machine, short enough to wait for.
const SHORT: Duration = Duration::from_secs(1);

fn program(name: &str) -> Command {
    use_keeper();
    Command::new(name)
}

fn shell(script: &str) -> Command {
    program("/bin/sh").args(["-c", script])
}

/// A running shell script, and the process id that is its first line of output.
async fn start(script: &str) -> (Process, ChildStdin, BufReader<ChildStdout>, u32) {
    let (process, stdin, stdout) = shell(script).spawn().unwrap();
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    (process, stdin, stdout, line.trim().parse().unwrap())
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended; whoever adopted it may take its time to reap it.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = String::from_utf8_lossy(&stat).rsplit(')').next().unwrap_or_default().trim().chars().next();
    !matches!(state, None | Some('Z' | 'X'))
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn check_drop_ends(script: &str) {
    let (process, _stdin, _stdout, descendant) = start(script).await;
    let child = process.id().unwrap();
    assert!(is_alive(descendant) && is_alive(child));
    drop(process);
    wait_until("the descendant has ended", || !is_alive(descendant)).await;
    wait_until("the child has been reaped", || !std::path::Path::new(&format!("/proc/{child}")).exists()).await;
}

#[tokio::test]
async fn a_dropped_process_ends_with_its_grandchildren() {
    check_drop_ends("sleep 1000 & echo $!; wait").await;
}

#[tokio::test]
async fn a_dropped_process_ends_with_descendants_that_left_the_group() {
    // The second shell leaves the group and starts another process there.
    check_drop_ends("setsid sh -c 'sleep 1000 & echo $!; wait' & wait").await;
}

#[tokio::test]
async fn a_dropped_process_ends_with_what_an_ended_child_left_in_the_group() {
    check_drop_ends("(sleep 1000 & echo $!); read line").await;
}

#[tokio::test]
async fn a_dropped_process_ends_although_everything_ignores_sigterm() {
    check_drop_ends("trap '' TERM HUP INT; setsid sleep 1000 & echo $!; wait").await;
}

#[tokio::test]
async fn a_dropped_process_outruns_one_that_keeps_forking_out_of_the_group() {
    // Each is in a session of its own, and new ones appear while we look.
    let directory = std::env::temp_dir().join(format!("attache-fork-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let script = r#"echo $$; while :; do setsid sh -c 'echo $$ >> pids; exec sleep 1000' & done"#;
    let (process, _stdin, stdout) = shell(script).cwd(&directory).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.unwrap();
    let pids = || std::fs::read_to_string(directory.join("pids")).unwrap_or_default();
    wait_until("some have started", || pids().lines().count() > 20).await;
    drop(process);
    wait_until("all have ended", || pids().lines().all(|pid| !is_alive(pid.parse().unwrap()))).await;
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_dropped_process_outruns_one_that_never_stays() {
    // It lives for a moment only and hands over to a child in a new session, so that whoever was seen is gone.
    let directory = std::env::temp_dir().join(format!("attache-hop-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("hop"), "echo >> steps; [ -e hop ] && (setsid sh hop &)").unwrap();
    let (process, _stdin, _stdout) = shell("sh hop; cat").cwd(&directory).spawn().unwrap();
    let steps = || std::fs::read(directory.join("steps")).unwrap_or_default().len();
    wait_until("it is on its way", || steps() > 10).await;
    let keeper = keeper_of(&process);
    drop(process);
    wait_until("the keeper has nothing left to keep", || !is_alive(keeper)).await;
    let last_step = steps();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(steps(), last_step);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn a_dropped_process_ends_with_daemons() {
    // The daemon's parent ends before anyone looks, so only its adoption by the keeper leads to it.
    check_drop_ends("(setsid sleep 1000 & echo $!); read line").await;
    check_drop_ends("trap '' TERM HUP INT; (setsid sh -c '(setsid sleep 1000 & echo $!)' &); read line").await;
}

#[tokio::test]
async fn what_a_child_left_behind_lives_until_the_process_is_dropped() {
    let (mut process, _stdin, _stdout, daemon) = start("(setsid sleep 1000 </dev/null 2>&0 & echo $!); exit 5").await;
    assert_eq!(process.wait().await.code, Some(5));
    assert!(is_alive(daemon));
    assert_eq!(process.id(), None, "the id may be somebody else's by now");
    drop(process);
    wait_until("the daemon has ended", || !is_alive(daemon)).await;
}

#[tokio::test]
async fn shutdown_ends_daemons_that_ignore_sigterm() {
    let script = "trap '' TERM HUP INT; (setsid sh -c '(setsid sleep 1000 & echo $!)' &); cat; exit 6";
    let (process, stdin, _stdout, daemon) = start(script).await;
    drop(stdin);
    assert_eq!(process.shutdown(Duration::from_millis(100)).await.code, Some(6));
    assert!(!is_alive(daemon), "shutdown returns when the tree is gone");
}

#[tokio::test]
async fn shutdown_asks_daemons_to_leave() {
    let script =
        "(setsid sh -c 'trap \"echo left in peace; exit\" TERM; echo $$; while :; do sleep 0.01; done' &); cat";
    let (process, stdin, mut stdout, _) = start(script).await;
    drop(stdin);
    assert!(process.shutdown(LONG).await.success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "left in peace\n");
}

#[tokio::test]
async fn shutdown_ends_a_grandchild_that_called_setsid() {
    let (process, stdin, _stdout, grandchild) = start("setsid sleep 1000 & echo $!; wait").await;
    drop(stdin);
    let status = process.shutdown(SHORT).await;
    assert_eq!(status, ExitStatus { code: None, signal: Some(15) });
    assert!(!is_alive(grandchild), "shutdown returns when the tree is gone");
}

#[tokio::test]
async fn shutdown_gives_every_process_of_the_group_time_to_leave() {
    // The child ends at once when asked, its own child needs a moment; both would be in the group of a wrapper script.
    let script =
        "sh -c 'trap \"sleep 0.1; echo left in peace; exit\" TERM; echo $$; while :; do sleep 0.01; done' & wait";
    let (process, stdin, mut stdout, _) = start(script).await;
    drop(stdin);
    let shutdown = tokio::spawn(process.shutdown(2 * SHORT));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "left in peace\n");
    assert_eq!(shutdown.await.unwrap().signal, Some(15));
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed_after_the_grace() {
    let script = "trap 'echo asked' TERM; echo $$; while :; do sleep 0.01; done";
    let (process, stdin, mut stdout, child) = start(script).await;
    drop(stdin);
    let status = process.shutdown(SHORT).await;
    assert_eq!(status.to_string(), "killed by signal 9 (SIGKILL)");
    assert!(!is_alive(child));
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "asked\n");
}

#[tokio::test]
async fn a_child_that_leaves_when_stdin_ends_gets_no_signal() {
    let (process, stdin, _stdout, _) = start("trap 'exit 9' TERM HUP INT; echo $$; cat; exit 3").await;
    drop(stdin);
    let started = Instant::now();
    let status = process.shutdown(LONG).await;
    assert_eq!(status.to_string(), "exit code 3");
    assert!(started.elapsed() < LONG, "it was not waited for longer than needed");
}

#[tokio::test]
async fn a_dropped_shutdown_ends_the_tree_at_once() {
    let (process, _stdin, _stdout, grandchild) = start("sleep 1000 & echo $!; wait").await;
    let cancelled = tokio::time::timeout(Duration::from_millis(1), process.shutdown(LONG)).await;
    assert!(cancelled.is_err());
    wait_until("the grandchild has ended", || !is_alive(grandchild)).await;
}

#[tokio::test]
async fn a_flood_of_stderr_neither_blocks_the_child_nor_grows_the_tail() {
    let script = "head -c 10485760 /dev/zero | tr '\\0' x >&2; printf '\\033[31mlast words\\033[0m\\n' >&2; exit 4";
    let (mut process, _stdin, _stdout) = shell(script).spawn().unwrap();
    assert_eq!(process.wait().await, ExitStatus { code: Some(4), signal: None });
    let tail = process.stderr_tail();
    assert!(tail.len() <= 8 * 1024 && tail.len() > 8 * 1024 - 20, "{}", tail.len());
    assert!(tail.ends_with("xlast words\n"));
    // It can be asked again.
    assert_eq!(process.wait().await.code, Some(4));
}

#[tokio::test]
async fn a_process_outlives_the_thread_that_launched_it() {
    let runtime = tokio::runtime::Handle::current();
    let launch = move || {
        let _guard = runtime.enter();
        program("cat").spawn().unwrap()
    };
    let (process, mut stdin, stdout) = std::thread::spawn(launch).join().unwrap();
    stdin.write_all(b"still here\n").await.unwrap();
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.unwrap();
    assert_eq!(line, "still here\n");
    drop(stdin);
    assert!(process.shutdown(LONG).await.success());
}

/// The owner's half of the test below, started by it and idle otherwise.
#[tokio::test]
async fn program_that_owns_a_process() {
    if std::env::var_os("ATTACHE_TEST_OWNER").is_none() {
        return;
    }
    let (mut process, _stdin, _stdout) = program("sleep").args(["1000"]).spawn().unwrap();
    println!("\nchild {}", process.id().unwrap());
    process.wait().await;
}

#[tokio::test]
async fn a_child_ends_when_its_owner_is_killed() {
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program_that_owns_a_process", "--nocapture"])
        .env("ATTACHE_TEST_OWNER", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = StdBufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let child = lines.find_map(|line| line.strip_prefix("child ")?.parse().ok()).unwrap();
    assert!(is_alive(child));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("the child has ended", || !is_alive(child)).await;
}

fn status_line(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
}

fn keeper_of(process: &Process) -> u32 {
    let keeper = status_line(process.id().unwrap(), "PPid:").parse().unwrap();
    assert_eq!(status_line(keeper, "Name:"), "attache-keeper");
    keeper
}

#[tokio::test]
async fn the_keeper_holds_nothing_of_ours_and_leaves_no_zombie() {
    // Written to, so that it is there; the keeper gives its copy back.
    let ballast = vec![1u8; 64 << 20];
    let (process, _stdin, _stdout) = program("cat").spawn().unwrap();
    let keeper = keeper_of(&process);
    wait_until("it has only its socket and what it looks with", || {
        // Only root sees these of a process that is not dumpable.
        std::fs::read_dir(format!("/proc/{keeper}/fd")).map_or(true, |descriptors| descriptors.count() == 4)
            && status_line(keeper, "RssAnon:").trim_end_matches(" kB").parse::<u32>().unwrap() < 1024
    })
    .await;
    if let Ok(directory) = std::fs::read_link(format!("/proc/{keeper}/cwd")) {
        assert_eq!(directory, std::path::Path::new("/"));
    }
    drop((process, ballast));
    wait_until("the keeper has been reaped", || !std::path::Path::new(&format!("/proc/{keeper}")).exists()).await;
}

#[tokio::test]
async fn a_child_ends_when_its_keeper_is_killed() {
    let (mut process, _stdin, _stdout) = program("sleep").args(["1000"]).spawn().unwrap();
    let child = process.id().unwrap();
    // SAFETY: the keeper is our child, and we have not reaped it.
    unsafe { libc::kill(keeper_of(&process) as i32, libc::SIGKILL) };
    assert_eq!(process.wait().await, ExitStatus { code: None, signal: None });
    wait_until("the child has ended", || !is_alive(child)).await;
    process.shutdown(LONG).await;
}

#[tokio::test]
async fn a_child_starts_with_the_signals_that_any_child_has() {
    let print = ["-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let mut usual = std::process::Command::new("grep");
    // SAFETY: does nothing. With a hook the child is forked, as ours is, and not made by the C library.
    let usual = unsafe { std::os::unix::process::CommandExt::pre_exec(usual.args(print), || Ok(())) }.output().unwrap();
    let (_process, mut output) = program("grep").args(print).spawn_merged().unwrap();
    let mut ours = String::new();
    output.read_to_string(&mut ours).await.unwrap();
    assert_eq!(ours, String::from_utf8(usual.stdout).unwrap());
}

#[tokio::test]
async fn merged_output_comes_in_order_and_without_input() {
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; cat; exit 7";
    let (process, mut output) = shell(script).spawn_merged().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(process.shutdown(LONG).await.code, Some(7));
    let error = Command::new("no-such-agent").spawn_merged().unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }));
}

#[tokio::test]
async fn a_hook_runs_in_the_child_but_not_in_its_keeper() {
    // SAFETY: one system call, which is async-signal-safe.
    let confine = || match unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: see above.
    let command = unsafe { program("cat").before_exec(std::sync::Arc::new(confine)) };
    assert_eq!(command, command.clone());
    assert_ne!(command, program("cat"));
    let (process, _stdin, _stdout) = command.spawn().unwrap();
    assert_eq!(status_line(process.id().unwrap(), "NoNewPrivs:"), "1");
    assert_eq!(status_line(keeper_of(&process), "NoNewPrivs:"), "0");

    let refuse = || Err(std::io::Error::from_raw_os_error(libc::ENOSYS));
    // SAFETY: it makes a value without allocating.
    let error = unsafe { program("cat").before_exec(std::sync::Arc::new(refuse)) }.spawn().unwrap_err();
    assert_eq!(error.to_string(), "cannot start `cat`: Function not implemented (os error 38)");
}

#[tokio::test]
async fn what_cannot_be_started_is_explained() {
    let directory = std::env::temp_dir().join(format!("attache-launch-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let script = directory.join("no-interpreter");
    std::fs::write(&script, "#!/no/such/program\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(directory.join("plain.txt"), "").unwrap();

    let check = |command: Command, expected: &str| {
        let message = command.env("API_KEY", "hunter2").spawn().unwrap_err().to_string();
        assert_eq!(message.replace(directory.to_str().unwrap(), "DIR"), expected);
    };
    check(
        Command::new("no-such-agent"),
        "program `no-such-agent` not found\nhint: install it, add it to PATH, or give its full path",
    );
    check(Command::new("./no/agent"), "program `./no/agent` not found\nhint: check the path");
    check(
        Command::new(&script),
        "interpreter of `DIR/no-interpreter` not found\nhint: check the first line of the file",
    );
    check(Command::new("./plain.txt").cwd(&directory), "`./plain.txt` is not executable\nhint: check its permissions");
    check(program("cat").cwd(directory.join("gone")), "`DIR/gone` is not a directory");
    check(Command::from(Vec::<String>::new()), "empty command\nhint: name a program to start");
    check(Command::from(["echo", "a b\0"]), r"cannot start `echo $'a b\u0000'`: nul byte found in provided data");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[tokio::test]
async fn values_of_environment_variables_are_never_shown() {
    let command = shell("echo \"$API_KEY\"; echo \"${HOME-none}\"").env("API_KEY", "hunter2").clear_env();
    for shown in [format!("{command:?}"), format!("{command:#?}"), command.to_string()] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert!(format!("{command:?}").contains("API_KEY"));
    let error: SpawnError = Command::new("no-such-agent").env("API_KEY", "hunter2").spawn().unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));

    // The child does see it.
    let (process, _stdin, mut stdout) = command.spawn().unwrap();
    assert!(!format!("{process:?}").contains("hunter2"));
    let mut output = String::new();
    stdout.read_to_string(&mut output).await.unwrap();
    assert_eq!(output, "hunter2\nnone\n");
}

/// A field of `/proc/<pid>/stat`, counted from the state, which is 0.
fn stat_field(pid: u32, field: usize) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(field).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_child_has_a_session_of_its_own_without_a_terminal() {
    let (process, _stdin, _stdout, child) = start("echo $$; cat").await;
    assert_eq!((stat_field(child, 3), stat_field(child, 4)), (child, 0));
    let keeper = keeper_of(&process);
    wait_until("the keeper is away from the terminal", || stat_field(keeper, 3) == keeper).await;
}

#[tokio::test]
async fn a_child_gets_no_descriptors_but_its_three() {
    // The fourth is the list itself.
    // SAFETY: duplicates our stdin, without close-on-exec, as a careless library would leave it.
    let leaked = unsafe { libc::dup(0) };
    assert!(leaked > 2);
    let (_process, mut output) = program("ls").args(["/proc/self/fd"]).spawn_merged().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).await.unwrap();
    assert_eq!(text.split_ascii_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    // SAFETY: closes what was opened above.
    unsafe { libc::close(leaked) };
}
