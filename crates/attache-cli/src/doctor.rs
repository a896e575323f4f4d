//! `attache doctor`: what works on this machine, and what to do about the rest.

mod agent;
mod mcp;

use std::fs;
use std::io::IsTerminal;
use std::path::Path;

use attache::private;
use attache_host::own_files;
use attache_host::permission::{Engine, Places, Policy, Rule, Verdict};
use attache_host::sandbox::{Sandbox, layer_use};
use serde::Serialize;

use crate::agents::catalog::{self, Installed};
use crate::agents::config::{self, Config};
use crate::agents::{BUILT_IN, is_known, print_lines};
use crate::cli::Doctor;
use crate::exit::{Code, Failure};
use crate::paths::{self, is_writable};
use crate::visible::{self, one_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Ok,
    /// Something works less well than it could.
    Warn,
    /// Something does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) check: &'static str,
    pub(crate) status: Status,
    /// How it is.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Row {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Row {
        Row { check, status: Status::Ok, found: found.into(), hint: None }
    }

    pub(crate) fn warn(check: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Row {
        Row { check, status: Status::Warn, found: without_hint(found.into()), hint: Some(hint.into()) }
    }

    pub(crate) fn fail(check: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Row {
        Row { check, status: Status::Fail, found: without_hint(found.into()), hint: Some(hint.into()) }
    }
}

/// What was found without the hint that a message may have: a row has one of its own.
fn without_hint(mut found: String) -> String {
    found.truncate(found.find("\nhint: ").unwrap_or(found.len()));
    found
}

/// Looks at everything and prints it.
pub(crate) async fn run(options: &Doctor) -> Result<(), Failure> {
    let rows = look().await;
    match options.json {
        true => print_lines(rows.iter().map(visible::json))?,
        false => print_lines(rows.iter().map(line))?,
    }
    match rows.iter().filter(|row| row.status == Status::Fail).count() {
        0 => Ok(()),
        count => Err(Failure::new(Code::Agent, format!("{count} of {} checks failed", rows.len()))),
    }
}

fn line(row: &Row) -> String {
    let status = match row.status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
    };
    let hint = row.hint.as_ref().map(|hint| format!("\n{:18}hint: {}", "", one_line(hint))).unwrap_or_default();
    format!("{status:<6}{:<12}{}{hint}", row.check, one_line(&row.found))
}

async fn look() -> Vec<Row> {
    let mut rows = vec![Row::ok("version", format!("attache {}", env!("CARGO_PKG_VERSION")))];
    rows.push(directory("settings", paths::config()));
    rows.push(directory("records", paths::state()));
    rows.push(agents_file());
    rows.extend(permissions());
    rows.push(agents());
    rows.extend(mcp::look());
    rows.extend(agent::look().await);
    rows.push(runners());
    rows.extend(kernel());
    rows.push(sandbox());
    rows.extend(layers());
    rows.push(terminal());
    rows.push(shell());
    rows
}

/// A directory of ours: private if it is there, possible to make if it is not.
fn directory(check: &'static str, path: Result<std::path::PathBuf, Failure>) -> Row {
    let path = match path {
        Ok(path) => path,
        Err(failure) => {
            let (what, hint) = failure.message.split_once("\nhint: ").unwrap_or((&failure.message, "set HOME"));
            return Row::fail(check, what, hint);
        }
    };
    let shown = path.display().to_string();
    match fs::metadata(&path) {
        Ok(found) if !found.is_dir() => Row::fail(check, format!("{shown} is no directory"), "move it away"),
        Ok(_) if !is_writable(&path) => {
            let hint = match cfg!(windows) {
                true => "make yourself its owner".to_owned(),
                false => format!("chown it, or `chmod u+rwx {shown}`"),
            };
            Row::fail(check, format!("{shown} cannot be written to"), hint)
        }
        Ok(_) if !private::is_private(&path).unwrap_or(false) => {
            let hint = format!("`{}`", own_files::hint_to_protect(&path));
            Row::warn(check, format!("{shown} is open to others"), hint)
        }
        Ok(_) => Row::ok(check, shown),
        Err(_) => match path.ancestors().find(|above| above.is_dir()) {
            Some(above) if is_writable(above) => Row::ok(check, format!("{shown}, not made yet")),
            _ => Row::fail(check, format!("{shown} cannot be made"), "check the directories above it"),
        },
    }
}

fn agents_file() -> Row {
    const CHECK: &str = "agents.toml";
    let path = match config::path() {
        Ok(path) => path,
        Err(_) => return Row::warn(CHECK, "cannot determine the settings directory", "set HOME"),
    };
    let Ok(_) = fs::metadata(&path) else { return Row::ok(CHECK, "not there; only built-in agents have names") };
    let config = match Config::read() {
        Ok(config) => config,
        Err(failure) => return Row::fail(CHECK, failure.message, "mend that line"),
    };
    let is_open = !private::is_private(&path).unwrap_or(false);
    if is_open && config.agents.values().any(|agent| !agent.env.is_empty()) {
        let hint = format!("`{}`", own_files::hint_to_protect(&path));
        return Row::warn(CHECK, "others can read the secrets in it", hint);
    }
    let known = |name: &String| config.agents.contains_key(name) || is_known(name);
    match &config.default {
        Some(name) if !known(name) => {
            Row::fail(CHECK, format!("there is no agent `{name}`, its default"), "`attache agents list` has all names")
        }
        default => {
            let default = default.as_ref().map(|name| format!(", default `{name}`")).unwrap_or_default();
            Row::ok(CHECK, format!("{} agents{default}", config.agents.len()))
        }
    }
}

fn agents() -> Row {
    let config = Config::read().unwrap_or_default();
    let own = config.agents.iter().filter(|(_, entry)| catalog::installed(&entry.command) != Installed::No);
    let known = catalog::ROWS.iter().filter(|row| row.command().1 == Installed::Yes).map(|row| row.name);
    let mut others: Vec<&str> = own.map(|(name, _)| name.as_str()).chain(known).collect();
    others.retain(|name| *name != BUILT_IN);
    others.sort_unstable();
    others.dedup();
    let others: String = others.iter().map(|name| format!(", {name}")).collect();
    Row::ok("agents", format!("{BUILT_IN}{others}"))
}

/// The programs that fetch agents and start them.
fn runners() -> Row {
    let (there, missing): (Vec<&str>, Vec<&str>) =
        ["node", "npx", "uvx"].into_iter().partition(|program| catalog::on_path(program).is_some());
    match missing.is_empty() {
        true => Row::ok("runners", there.join(", ")),
        false => {
            let found = format!(
                "{}; missing: {}",
                if there.is_empty() { "none".into() } else { there.join(", ") },
                missing.join(", ")
            );
            match missing.iter().any(|program| *program != "uvx") {
                true => Row::warn("runners", found, "install Node.js to start agents that come as npm packages"),
                // Few agents need it.
                false => Row::ok("runners", found),
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn kernel() -> Vec<Row> {
    // SAFETY: all zeroes is a value of `open_how`, whose fields are numbers.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_BENEATH;
    // SAFETY: both pointers live through the call, and the size is that of what is pointed to.
    let opened = unsafe {
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, c".".as_ptr(), &raw const how, size_of::<libc::open_how>())
    };
    close(opened);
    // SAFETY: takes numbers only.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    close(pidfd);
    let mut reaper: libc::c_int = 0;
    // SAFETY: the kernel writes one `int` to where the pointer leads.
    let subreaper = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut reaper) };
    let newer = "a newer kernel, or a container that allows the call";
    vec![
        match opened >= 0 {
            true => Row::ok("files", "openat2 keeps agents in their directories"),
            false => Row::fail("files", "openat2 is not there", newer),
        },
        match pidfd >= 0 && subreaper == 0 {
            true => Row::ok("processes", "pidfd and subreaper end agents with all they started"),
            false => {
                Row::warn("processes", "pidfd or subreaper is not there; processes may outlive their agent", newer)
            }
        },
    ]
}

#[cfg(target_os = "linux")]
fn close(descriptor: libc::c_long) {
    use std::os::fd::{FromRawFd, OwnedFd};
    if let Ok(descriptor @ 0..) = i32::try_from(descriptor) {
        // SAFETY: the kernel gave it to us just now, and nobody else has it.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    }
}

#[cfg(windows)]
fn kernel() -> Vec<Row> {
    let what = "commands and agents are not confined on this system: they may do what you may do";
    vec![
        Row::ok("files", "open directories keep what agents ask us for in them"),
        Row::ok("processes", "jobs end agents with all they started"),
        Row::warn(
            "confinement",
            what,
            "every command is asked about, also in mode `code`; use Linux, or WSL, for more",
        ),
    ]
}

#[cfg(not(any(target_os = "linux", windows)))]
fn kernel() -> Vec<Row> {
    let what = "agents are not confined on this system, and processes may outlive them";
    vec![Row::warn("processes", what, "use Linux for agents that you do not trust")]
}

fn terminal() -> Row {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let kind = set("TERM");
    let is_terminal = std::io::stdout().is_terminal();
    let colours = is_terminal && set("NO_COLOR").is_none() && kind.as_deref().is_some_and(|kind| kind != "dumb");
    let why = match (is_terminal, set("NO_COLOR")) {
        (false, _) => "stdout is no terminal",
        (true, Some(_)) => "NO_COLOR is set",
        (true, None) => "stdout is a terminal",
    };
    let colours = if colours { "colours" } else { "no colours" };
    let kind = kind.map(|kind| format!(", TERM={kind}")).unwrap_or_default();
    Row::ok("terminal", format!("{why}, {colours}{kind}"))
}

/// What runs the commands of agents that give a whole line.
#[cfg(not(windows))]
fn shell() -> Row {
    match catalog::on_path("sh") {
        Some(path) => {
            let own = std::env::var("SHELL").map(|shell| format!("; yours is {shell}")).unwrap_or_default();
            Row::ok("shell", format!("{}{own}", path.display()))
        }
        None => Row::fail("shell", "there is no `sh` on PATH", "check PATH"),
    }
}

/// What runs the commands of agents that give a whole line. Rules know the language of `sh` only.
#[cfg(windows)]
fn shell() -> Row {
    use attache_host::commands::{ShellKind, shell};
    let shell = shell();
    let found = format!("{} ({})", shell.kind.name(), shell.program.display());
    match shell.kind {
        ShellKind::Posix => Row::ok("shell", found),
        _ => {
            let what = format!("{found}; every line for it is asked about, whatever rules say");
            Row::warn("shell", what, "install Git for Windows: rules know the language of its `sh`")
        }
    }
}

/// As many rules are told one by one.
const MOST_RULES: usize = 5;

/// The rules that the user has, as far as this directory is concerned: files that are wrong, and rules that do less than
/// they seem to.
fn permissions() -> Vec<Row> {
    const CHECK: &str = "permissions";
    let (Ok(config_dir), Ok(state_dir)) = (paths::config(), paths::state()) else {
        return vec![Row::warn(CHECK, "cannot determine the settings directory", "set HOME")];
    };
    let engine = Engine::open(Places { config_dir, state_dir, project: std::env::current_dir().ok() }, Policy::Ask);
    let wrong = engine
        .problems()
        .map(|problem| Row::fail(CHECK, problem.to_string(), "mend it: until then everything is asked about"));
    let mut rows: Vec<Row> = wrong.collect();
    let told: Vec<Row> = engine.rules().filter_map(|rule| about_rule(CHECK, rule)).collect();
    let more = told.len().saturating_sub(MOST_RULES);
    rows.extend(told.into_iter().take(MOST_RULES));
    if more > 0 {
        let what = format!("{more} more rules do less than they seem to");
        rows.push(Row::warn(CHECK, what, "mend those above, and ask again"));
    }
    if rows.is_empty() {
        rows.push(Row::ok(CHECK, "the files of rules are in order"));
    }
    rows
}

/// What a person should know about a rule, if anything.
fn about_rule(check: &'static str, rule: &Rule) -> Option<Row> {
    let (what, hint) = if let Some(mistake) = rule.mistake() {
        let (what, hint) = mistake.split_once("\nhint: ").unwrap_or((&mistake, "write each word by itself"));
        (what.to_owned(), hint.to_owned())
    } else if let Some(agent) = rule.agent.as_deref().filter(|agent| rule.verdict == Verdict::Allow && !is_agent(agent))
    {
        let what = format!("the rule for the agent `{agent}` allows nothing, because no agent has that name");
        (what, "an agent that is given as a command is named by all of it: answer \"always\" again".to_owned())
    } else {
        // Rules of the first version say nothing about arguments.
        let sentence = rule.narrowed()?;
        let (what, hint) = sentence.split_once("; ").unwrap_or((&sentence, "say what it means about arguments"));
        (what.to_owned(), hint.to_owned())
    };
    Some(Row::warn(check, format!("{}: {what}", rule.origin), hint))
}

/// Whether an agent of a rule may be one: it has a name, or it is a command, which begins with the path of a program.
fn is_agent(name: &str) -> bool {
    let is_configured = || Config::read().is_ok_and(|config| config.agents.contains_key(name));
    let of_project = || {
        let project = std::env::current_dir().ok().and_then(|cwd| crate::project::Project::find(&cwd).ok());
        project.and_then(|project| project.agents().ok()).is_some_and(|config| config.agents.contains_key(name))
    };
    name.starts_with('\'') || Path::new(name).is_absolute() || is_known(name) || is_configured() || of_project()
}

/// What a sandbox in this directory can enforce.
fn sandbox() -> Row {
    const CHECK: &str = "sandbox";
    let support = match Sandbox::check() {
        Ok(support) => support,
        Err(error) => return Row::warn(CHECK, error.to_string(), "without it, `--sandbox` refuses to run"),
    };
    match policy_here().map(|policy| Sandbox::new(&policy)) {
        Some(Err(error)) => {
            let what = format!("cannot be made for this directory: {error}");
            Row::warn(CHECK, what, "here `--sandbox` refuses to run; another directory will do")
        }
        Some(Ok(sandbox)) if !sandbox.gaps().is_empty() => {
            let gaps = sandbox.gaps().join("; ");
            Row::warn(CHECK, format!("{support}. Not enforced: {gaps}"), "`attache sandbox explain` has it all")
        }
        Some(Ok(_)) | None => Row::ok(CHECK, support.to_string()),
    }
}

/// What commands wrote into private layers, if anything.
fn layers() -> Option<Row> {
    const CHECK: &str = "layers";
    let used = layer_use(&paths::state().ok()?);
    let limits = crate::agent::settings(None).map(|(config, _)| config.layer_limits).unwrap_or_default();
    let found = format!(
        "{} MiB in private layers (projects: {}); removed above {}",
        used.bytes.div_ceil(1 << 20),
        used.projects,
        crate::sandbox::layer_words(limits)
    );
    match used.bytes > limits.all {
        _ if used.projects == 0 => None,
        true => Some(Row::warn(CHECK, found, "`attache sandbox clear --all` removes what is not in use")),
        false => Some(Row::ok(CHECK, found)),
    }
}

fn policy_here() -> Option<attache_host::sandbox::Policy> {
    let cwd = std::env::current_dir().ok()?;
    crate::sandbox::policy(&cwd, &[], attache_host::sandbox::Network::Open).ok()
}
