//! A PostgreSQL server of the tests' own, and a proxy that cuts connections.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by tests")]

pub mod proxy;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use attache_postgres::{PostgresStore, Settings};

/// A server in a temporary directory. It ends with this value, and also if the tests are killed.
pub struct Server {
    directory: PathBuf,
    bin: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
    /// A shell that ends the server and removes the directory when its input ends.
    keeper: Child,
}

/// Says something to the person who runs the tests, also where what a test prints is not shown.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The programs of PostgreSQL, the newest ones.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
        .filter(|(_, bin)| bin.join("postgres").exists() && bin.join("initdb").exists())
        .collect();
    found.sort();
    let in_path = std::env::var_os("PATH")?;
    let in_path =
        std::env::split_paths(&in_path).find(|bin| bin.join("postgres").exists() && bin.join("initdb").exists());
    found.pop().map(|(_, bin)| bin).or(in_path)
}

/// PostgreSQL refuses to run as root: another user does it then.
fn unprivileged() -> Option<(u32, u32)> {
    // SAFETY: it takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut words = line.split(':').skip(2);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user that is not root"))
}

impl Server {
    /// Starts a server, or says that there is none to start.
    pub fn start() -> Option<Server> {
        let Some(bin) = programs() else {
            say("SKIPPED: PostgreSQL is not installed, so this test shows nothing (`.ci/postgres` installs it)");
            assert!(std::env::var_os("ATTACHE_TEST_POSTGRES").is_none(), "PostgreSQL should be installed here");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("attache-pg-").tempdir().unwrap().keep();
        let user = unprivileged();
        if let Some((uid, gid)) = user {
            chown(&directory, Some(uid), Some(gid)).unwrap();
        }
        let mut initdb = Command::new(bin.join("initdb"));
        initdb.args(["--no-sync", "--auth=trust", "--username=attache", "--encoding=UTF8", "--locale=C", "-D"]);
        run(as_user(initdb.arg(directory.join("data")), user));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(
            directory.join("data/postgresql.auto.conf"),
            format!(
                "unix_socket_directories = '{}'\nlisten_addresses = '127.0.0.1'\nport = {port}\nmax_connections = 200\n\
                 shared_buffers = '16MB'\n",
                directory.display()
            ),
        )
        .unwrap();
        // A shell that lives as long as we do, and a moment longer.
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "cat >/dev/null; kill -CONT -- $(cat \"$1/pids\") 2>/dev/null; kill -QUIT $(head -1 \"$1/data/postmaster.pid\") 2>/dev/null; sleep 0.3; rm -rf \"$1\"", "sh"]);
        let keeper = keeper.arg(&directory).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = as_user(keeper, None).spawn().unwrap();
        let server = Server { directory, bin, user, port, keeper };
        server.launch();
        Some(server)
    }

    /// Starts the server again after [`Server::stop`].
    pub fn launch(&self) {
        let mut postgres = Command::new(self.bin.join("postgres"));
        let output = fs::OpenOptions::new().create(true).append(true).open(self.directory.join("output")).unwrap();
        postgres.arg("-D").arg(self.directory.join("data")).stdin(Stdio::null());
        postgres.stdout(output.try_clone().unwrap()).stderr(output);
        let mut child = as_user(&mut postgres, self.user).spawn().unwrap();
        // Whoever stops it waits for its end by the file that it leaves.
        std::thread::spawn(move || child.wait());
        let start = Instant::now();
        loop {
            // `ready` is the last line.
            let state = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap_or_default();
            if state.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
                return;
            }
            let output = || fs::read_to_string(self.directory.join("output")).unwrap();
            assert!(start.elapsed() < Duration::from_secs(60), "PostgreSQL does not start: {}", output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server: `INT` in good order, `QUIT` at once.
    pub fn stop(&self, signal: &str) {
        let pid = self.pid();
        run(Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()));
        let start = Instant::now();
        while Path::new(&format!("/proc/{pid}")).exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "PostgreSQL does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }

    /// The processes of the server: this one and its children.
    fn pids(&self) -> Vec<String> {
        let main = self.pid();
        let is_ours = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
            *pid == main || parent == Some(main)
        };
        let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        all.filter(is_ours).map(|pid| pid.to_string()).collect()
    }

    /// Stops all processes of the server where they are, as a machine does that swaps.
    pub fn pause(&self) {
        let pids = self.pids();
        fs::write(self.directory.join("pids"), pids.join(" ")).unwrap();
        // The first one starts others, so it comes first.
        for _ in 0..2 {
            let _ = Command::new("kill").arg("-STOP").arg(self.pid().to_string()).args(self.pids()).status();
        }
    }

    pub fn go_on(&self) {
        let _ = Command::new("kill").arg("-CONT").args(self.pids()).status();
    }

    /// A new and empty database: its URL on the socket.
    pub fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("create database {name}"));
        self.url(&name)
    }

    pub fn url(&self, database: &str) -> String {
        let host = self.directory.display().to_string().replace('/', "%2F");
        format!("postgres://attache@{host}:{}/{database}", self.port)
    }

    /// The same database on the loopback interface, at another port if there is a proxy.
    pub fn tcp_url(&self, url: &str, port: Option<u16>) -> String {
        let database = url.rsplit('/').next().unwrap();
        format!("postgres://attache@127.0.0.1:{}/{database}", port.unwrap_or(self.port))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A file of the server's own, such as its settings and certificates.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.directory.join("data").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((uid, gid)) = self.user {
            chown(&path, Some(uid), Some(gid)).unwrap();
        }
    }

    pub fn configure(&self, line: &str) {
        let path = self.directory.join("data/postgresql.auto.conf");
        fs::write(&path, fs::read_to_string(&path).unwrap() + line + "\n").unwrap();
    }

    /// Has SQL done in a database, by its name or its URL. Gives what is answered.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let url = if database.contains("://") { database.to_owned() } else { self.url(database) };
        let mut psql = Command::new(self.bin.join("psql"));
        let output = psql.args([&url, "-qAtXc", sql]).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

fn as_user(command: &mut Command, user: Option<(u32, u32)>) -> &mut Command {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid).current_dir("/");
    }
    // A signal for the tests' group is not for it.
    command.process_group(0)
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The server that tests share which leave it as it is.
pub fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(Server::start).as_ref()
}

/// Settings for tests: everything happens soon.
pub fn settings(url: &str) -> Settings {
    let mut settings = Settings::new(url).unwrap();
    settings.address = Some("https://one.example".into());
    settings.lease = Duration::from_millis(1500);
    settings.statement_timeout = Duration::from_millis(1500);
    settings.connect_timeout = Duration::from_millis(1500);
    settings.patience = Duration::from_secs(20);
    settings
}

/// A store in a database of its own.
pub fn store() -> Option<(String, PostgresStore)> {
    let url = shared()?.new_database();
    let store = PostgresStore::connect(settings(&url)).unwrap();
    Some((url, store))
}
