//! A PostgreSQL server of our own, in a temporary directory and on a Unix socket.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Error, process};

/// A server with an empty database. It ends with this value.
pub struct Database {
    pub url: String,
    bin: PathBuf,
    server: Child,
    _directory: tempfile::TempDir,
}

/// The programs of the newest PostgreSQL of this machine.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let found = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    found.filter(|(_, bin)| bin.join("initdb").exists()).max().map(|(_, bin)| bin)
}

/// PostgreSQL refuses to run as root: another user does it then.
fn unprivileged() -> Result<Option<(u32, u32)>, Error> {
    // SAFETY: it takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut words = line.split(':').skip(2);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    Ok(Some(ids("postgres").or_else(|| ids("nobody")).ok_or("no user that is not root")?))
}

fn as_user(command: &mut Command, user: Option<(u32, u32)>) -> &mut Command {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid).current_dir("/");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

impl Database {
    /// Starts a server with the settings that it has by itself; `None` if PostgreSQL is not installed.
    pub fn start() -> Result<Option<Self>, Error> {
        let Some(bin) = programs() else { return Ok(None) };
        let user = unprivileged()?;
        let directory = tempfile::tempdir()?;
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid))?;
        }
        let data = directory.path().join("data");
        let mut initdb = Command::new(bin.join("initdb"));
        initdb
            .args(["--no-sync", "--auth=trust", "--username=attache", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data);
        if !as_user(&mut initdb, user).status()?.success() {
            return Err("initdb failed".into());
        }
        let socket = directory.path().display().to_string();
        let settings = format!("unix_socket_directories = '{socket}'\nlisten_addresses = ''\n");
        fs::write(data.join("postgresql.auto.conf"), settings)?;
        let mut postgres = Command::new(bin.join("postgres"));
        let server = as_user(postgres.arg("-D").arg(&data), user).spawn()?;
        let url = format!("postgres://attache@{}/postgres", socket.replace('/', "%2F"));
        let database = Database { url, bin, server, _directory: directory };
        let begun = Instant::now();
        loop {
            // `ready` is the last line.
            let state = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            if state.lines().nth(7).is_some_and(|state| state.trim() == "ready") {
                return Ok(Some(database));
            }
            if begun.elapsed() > Duration::from_secs(60) {
                return Err("PostgreSQL does not start".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Does what the database does by itself within a minute or so, which a benchmark does not wait for.
    pub fn tidy(&self) -> Result<(), Error> {
        let mut psql = Command::new(self.bin.join("psql"));
        let done =
            psql.args([&self.url, "-qXc", "vacuum analyze"]).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
        if done.success() { Ok(()) } else { Err("the database cannot be tidied up".into()) }
    }

    /// The CPU time of the server and of those that it started and that still run.
    pub fn cpu(&self) -> Duration {
        let main = self.server.id();
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_its = |pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
            *pid == main || parent == Some(main)
        };
        pids.filter(is_its).map(process::cpu).sum()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the process is our child and was not waited for. `SIGQUIT` ends it and its children at once.
        unsafe { libc::kill(self.server.id() as libc::pid_t, libc::SIGQUIT) };
        let _ = self.server.wait();
    }
}
