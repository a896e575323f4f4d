//! Real processes in the sandbox. Where the kernel cannot enforce one, the tests check that it is refused.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use attache::process::Command;
use attache_host::sandbox::{Network, Policy, Sandbox};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(30);

/// A home with a project, a place for temporary files, a secret, and a file like any other.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for directory in ["project/src", "temp", "open", "secret"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        fs::write(home.path().join("open/file"), "plain").unwrap();
        fs::write(home.path().join("secret/key"), "hunter2").unwrap();
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn policy(&self) -> Policy {
        Policy {
            writable: vec![self.path().join("project"), self.path().join("temp")],
            readable: vec!["/".into()],
            hidden: vec![self.path().join("secret")],
            protected: Vec::new(),
            sockets: Vec::new(),
            variables: Vec::new(),
            shown: Vec::new(),
            layers: Vec::new(),
            temporary: None,
            private_variables: Vec::new(),
            network: Network::Open,
        }
    }
}

/// The sandbox, or nothing where it was refused with the reason that the check gives.
fn sandbox(policy: &Policy) -> Option<Sandbox> {
    match Sandbox::check() {
        Ok(_) => Some(Sandbox::new(policy).unwrap()),
        Err(reason) => {
            println!("no sandbox on this machine: {reason}");
            assert_eq!(Sandbox::new(policy).unwrap_err().to_string(), reason.to_string());
            None
        }
    }
}

async fn output(command: Command) -> String {
    let (process, mut output) = command.spawn_merged().unwrap();
    let mut text = String::new();
    tokio::time::timeout(LONG, output.read_to_string(&mut text)).await.unwrap().unwrap();
    process.shutdown(LONG).await;
    text
}

#[tokio::test]
async fn files_can_be_changed_in_the_roots_and_read_elsewhere_but_for_secrets() {
    let home = Home::new();
    let Some(sandbox) = sandbox(&home.policy()) else { return };
    let check = async |script: &str, works: bool| {
        let script = format!("{{ {script}; }} >out 2>err && echo works || {{ echo fails; cat err; }}");
        let alone = Command::from(["sh", "-c", &script]);
        // Children are confined as well, also in a session of their own.
        let as_child = Command::from(["sh", "-c", "setsid -w sh -c \"$0\"; true", &script]);
        for command in [alone, as_child] {
            let text = output(sandbox.confine(command.cwd(home.path().join("project")))).await;
            assert_eq!(text.starts_with("works"), works, "{script}: {text}");
            // Root sees that what covers a secret is empty, others may not look.
            let words = ["denied", "cross-device", "Read-only file system", "No such file"];
            let is_denied = words.iter().any(|word| text.contains(word));
            assert!(works || is_denied, "{script}: {text}");
        }
    };
    check("echo x > src/new && mkdir d && mv src/new d/moved && cat d/moved && rm -r d", true).await;
    check("ln -sf ../open/file link && cat link && chmod 600 out", true).await;
    check("echo x > ../temp/new && rm ../temp/new", true).await;
    check("echo x > /dev/null && head -c 1 /dev/urandom && ls /usr", true).await;
    check("cat ../open/file", true).await;

    check("echo x > ../open/new", false).await;
    check("echo x > ../open/file", false).await;
    check("echo x >> ../open/file", false).await;
    check("truncate -s 0 ../open/file", false).await;
    check("rm ../open/file", false).await;
    check("mkdir ../open/d", false).await;
    check("ln ../open/file hard", false).await;
    check("mv ../open/file moved", false).await;
    check("ln -sf ../open/file link && echo x > link", false).await;
    check("cat ../secret/key", false).await;
    check("ls ../secret/key", false).await;
    check("ln -sf ../secret/key to && cat to", false).await;
    check("cat /proc/self/cwd/../secret/key", false).await;
    check("cp ../secret/key .", false).await;

    assert_eq!(fs::read_to_string(home.path().join("open/file")).unwrap(), "plain");
}

/// What the program below finds out about itself: the error number of each door that it tried, 0 if it went through.
async fn doors(network: Network, port: u16) -> Option<Vec<(String, i32)>> {
    let home = Home::new();
    let sandbox = sandbox(&Policy { network, ..home.policy() })?;
    let program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program_that_tries_doors", "--nocapture"])
        .env("ATTACHE_TEST_DOORS", format!("{port} {}", std::process::id()))
        .cwd(home.path().join("project"));
    let text = output(sandbox.confine(program)).await;
    let door = |line: &str| {
        let (name, code) = line.strip_prefix("door ")?.split_once(' ')?;
        Some((name.to_owned(), code.parse().ok()?))
    };
    let doors: Vec<_> = text.lines().filter_map(door).collect();
    assert_eq!(doors.last().map(|(name, _)| name.as_str()), Some("thread"), "{text}");
    Some(doors)
}

/// Runs in the sandbox, started by the test below and idle otherwise.
#[test]
fn program_that_tries_doors() {
    let Ok(settings) = std::env::var("ATTACHE_TEST_DOORS") else { return };
    let (port, outside) = settings.split_once(' ').unwrap();
    let tell = |name: &str, result: i64| {
        let code = if result == -1 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 };
        println!("door {name} {code}");
    };
    println!();
    // SAFETY: calls that fail, or that do no harm if they do not.
    unsafe {
        tell("ptrace", libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0));
        tell("unshare", libc::unshare(libc::CLONE_NEWUSER).into());
        let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
        let child = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if child == 0 {
            libc::_exit(0);
        }
        tell("clone", child);
        tell("clone3", libc::syscall(libc::SYS_clone3, 0, 0));
        tell("io_uring", libc::syscall(libc::SYS_io_uring_setup, 0, 0));
        tell("mount", libc::mount(c"x".as_ptr(), c"/".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()).into());
        tell("tree", libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), 1));
        tell("tree-attr", libc::syscall(467, libc::AT_FDCWD, c"/".as_ptr(), 1, 0, 0));
        tell("keys", libc::syscall(libc::SYS_keyctl, 0, -3, 0));
        tell("tiocsti", libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into());
        #[cfg(target_arch = "x86_64")]
        tell("x32", libc::syscall(0x4000_0000 | libc::SYS_getpid));
        tell("signal", libc::kill(outside.parse().unwrap(), 0).into());
        tell("own-signal", libc::kill(libc::getpid(), 0).into());
        tell("inet", libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).into());
        tell("inet6", libc::socket(libc::AF_INET6, libc::SOCK_STREAM, 0).into());
        tell("netlink", libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).into());
        tell("unix", libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into());
        let mut pair = [0; 2];
        tell("pair", libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()).into());
        let parent = libc::getppid();
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        tell("own-limit", libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit).into());
        let limits = |pid| libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit);
        tell("limit", { limits }(parent).into());
        tell("own-nice", libc::setpriority(libc::PRIO_PROCESS, 0, 0).into());
        tell("nice", libc::setpriority(libc::PRIO_PROCESS, parent as u32, 19).into());
        tell("nice-all", libc::setpriority(libc::PRIO_USER, 0, 19).into());
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size, &mut processors);
        tell("own-affinity", libc::sched_setaffinity(0, size, &processors).into());
        tell("affinity", libc::sched_setaffinity(parent, size, &processors).into());
        let idle = libc::sched_param { sched_priority: 0 };
        tell("scheduler", libc::sched_setscheduler(parent, libc::SCHED_IDLE, &idle).into());
        tell("io-priority", libc::syscall(libc::SYS_ioprio_set, 1, parent, 3 << 13));
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().unwrap()));
    let connect = TcpStream::connect_timeout(&address, LONG);
    println!("door connect {}", connect.err().map_or(0, |error| error.raw_os_error().unwrap()));
    println!("door thread {}", std::thread::spawn(|| 0).join().unwrap());
}

#[tokio::test]
async fn doors_out_are_closed_and_the_network_only_if_asked() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for network in [Network::Open, Network::Offline] {
        let Some(doors) = doors(network, port).await else { return };
        let online = if network == Network::Open { 0 } else { libc::EACCES };
        let signal = if Sandbox::check().unwrap().signals() { libc::EPERM } else { 0 };
        let expected = [
            ("ptrace", libc::EPERM),
            ("unshare", libc::EPERM),
            ("clone", libc::EPERM),
            ("clone3", libc::ENOSYS),
            ("io_uring", libc::EPERM),
            ("mount", libc::EPERM),
            ("tree", libc::EPERM),
            ("tree-attr", libc::EPERM),
            ("keys", libc::EPERM),
            ("tiocsti", libc::EPERM),
            #[cfg(target_arch = "x86_64")]
            ("x32", libc::ENOSYS),
            ("signal", signal),
            ("own-signal", 0),
            ("inet", online),
            ("inet6", online),
            ("netlink", online),
            ("unix", online),
            ("pair", 0),
            ("own-limit", 0),
            ("limit", libc::EPERM),
            ("own-nice", 0),
            ("nice", libc::EPERM),
            ("nice-all", libc::EPERM),
            ("own-affinity", 0),
            ("affinity", libc::EPERM),
            ("scheduler", libc::EPERM),
            ("io-priority", libc::EPERM),
            ("connect", online),
            ("thread", 0),
        ];
        let doors: Vec<_> = doors.iter().map(|(name, code)| (name.as_str(), *code)).collect();
        assert_eq!(doors, expected, "{network:?}");
    }
}

#[tokio::test]
async fn a_confined_tree_ends_like_any_other() {
    attache::process::use_keeper();
    let home = Home::new();
    let Some(sandbox) = sandbox(&home.policy()) else { return };
    let script = "trap '' TERM HUP; (setsid sleep 1000 & echo $!); cat";
    let (process, _stdin, stdout) = sandbox.confine(Command::from(["sh", "-c", script])).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.unwrap();
    let daemon = Path::new("/proc").join(line.trim());
    assert!(daemon.exists());
    drop(process);
    let start = Instant::now();
    while daemon.exists() {
        assert!(start.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn the_usual_policy_lets_ordinary_programs_work() {
    let home = Home::new();
    let Some(sandbox) = sandbox(&Policy::new([home.path().join("project")])) else { return };
    println!("{}", Sandbox::check().unwrap());
    let script = "f=$(mktemp) && echo made > $f && cat $f && rm $f && cat /etc/passwd >/dev/null && echo read";
    let text = output(sandbox.confine(Command::from(["sh", "-c", script]))).await;
    assert_eq!(text, "made\nread\n");
}

#[tokio::test]
async fn a_program_in_a_hidden_place_is_not_started() {
    let home = Home::new();
    let Some(sandbox) = sandbox(&home.policy()) else { return };
    fs::copy("/bin/true", home.path().join("secret/true")).unwrap();
    let error = sandbox.confine(Command::new(home.path().join("secret/true"))).spawn().unwrap_err();
    // Root sees that there is nothing where it was, others may not look.
    let words = ["is not executable", "not found"];
    assert!(words.iter().any(|word| error.to_string().contains(word)), "{error}");
}

/// How long each of some runs of `true` took, the middle one.
async fn median(runs: usize, mut command: impl FnMut() -> Command) -> Duration {
    let mut times = Vec::new();
    for _ in 0..runs {
        let start = Instant::now();
        let (mut process, _output) = command().spawn_merged().unwrap();
        assert!(process.wait().await.success());
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[runs / 2]
}

/// `cargo test -p attache-host --release --test sandbox costs -- --nocapture` prints the figures. Made anew for each
/// command, as the agent does.
#[tokio::test]
async fn a_sandbox_costs_a_few_milliseconds() {
    attache::process::use_keeper();
    let home = Home::new();
    let policy = Policy::new([home.path().join("project")]);
    if sandbox(&policy).is_none() {
        return;
    }
    let free = median(50, || Command::new("true")).await;
    let confined = median(50, || Sandbox::new(&policy).unwrap().confine(Command::new("true"))).await;
    let ready = Sandbox::new(&policy).unwrap();
    let kept = median(50, || ready.confine(Command::new("true"))).await;
    println!("free {free:?}, confined {confined:?}, in a sandbox that is kept {kept:?}");
    // What we promise is 5 ms on a machine that has nothing else to do; this is for one that runs all tests at once.
    assert!(confined < free + Duration::from_millis(100), "free {free:?}, confined {confined:?}");
}

/// Asks for a sandbox where there is none, started by the test below and idle otherwise.
#[test]
fn program_that_asks_for_a_sandbox() {
    if std::env::var_os("ATTACHE_TEST_ASK").is_some() {
        let error = Sandbox::new(&Home::new().policy()).unwrap_err();
        assert_eq!(error.to_string(), Sandbox::check().unwrap_err().to_string());
        println!("\n<{error}>");
    }
}

#[tokio::test]
async fn a_kernel_without_landlock_is_refused_with_the_reason() {
    let check = async |error: i32, expected: &str| {
        let program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "program_that_asks_for_a_sandbox", "--nocapture"])
            .env("ATTACHE_TEST_ASK", "1");
        // SAFETY: the hook makes two system calls.
        let program = unsafe { program.before_exec(std::sync::Arc::new(move || fail_landlock(error))) };
        let text = output(program).await;
        assert!(text.contains(expected), "{text}");
    };
    let missing = "<the kernel offers no Landlock, which the sandbox needs\nhint: it takes Linux 6.2 or newer>";
    check(libc::ENOSYS, missing).await;
    let off = "<Landlock is switched off, and the sandbox needs it\nhint: add `landlock` to `lsm=` on the kernel's command line>";
    check(libc::EOPNOTSUPP, off).await;
}

/// Makes the kernel look like one without Landlock, for the caller and its children.
fn fail_landlock(error: i32) -> io::Result<()> {
    let step = |code: u32, value: u32, otherwise_skip: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: otherwise_skip,
        k: value,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ, libc::SYS_landlock_create_ruleset as u32, 1),
        step(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | error as u32, 0),
        step(libc::BPF_RET, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: reads the program, which lives during the call.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
