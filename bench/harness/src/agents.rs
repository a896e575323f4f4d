//! The coding agents that people use, beside our own: how fast they start, what they hold while idle, how large they are.
//!
//! Nothing but `initialize` and `session/new` is asked of them, and the model that some want to look at is a scripted one on
//! loopback.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use serde_json::json;

use crate::driver::Driver;
use crate::peers;
use crate::report;
use crate::results::Results;
use crate::workloads::Metrics;

/// How long an agent is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

/// An agent under test.
struct Agent {
    id: &'static str,
    /// The directory of its packages beneath `npm`, if it comes from there, and its command in it.
    npm: Option<(&'static str, &'static str)>,
    args: &'static [&'static str],
    /// How it wants to be logged in before it opens a session.
    auth: Option<&'static str>,
}

const AGENTS: &[Agent] = &[
    Agent { id: "attache", npm: None, args: &["agent", "--model", "offline"], auth: None },
    Agent { id: "codex-acp", npm: Some(("codexacp", "codex-acp")), args: &[], auth: None },
    Agent { id: "claude-agent-acp", npm: Some(("claude", "claude-agent-acp")), args: &[], auth: None },
    Agent { id: "gemini", npm: Some(("gemini", "gemini")), args: &["--acp"], auth: Some("gemini-api-key") },
    Agent { id: "opencode", npm: Some(("opencode", "opencode")), args: &["acp"], auth: None },
];

/// The ids of all agents, in the order of the table.
pub fn ids() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().map(|agent| agent.id)
}

/// Measures all agents that are installed, and writes the page. False when one could not be measured.
pub fn run(reps: usize, only: Option<&[String]>, command: String) -> io::Result<bool> {
    let place = Place::new()?;
    let wanted = |agent: &&Agent| only.is_none_or(|only| only.iter().any(|id| id == agent.id));
    let mut agents: Vec<&Agent> = AGENTS.iter().filter(wanted).collect();
    let path =
        if only.is_none() { peers::home().join("agents.jsonl") } else { peers::target().join("agents-partial.jsonl") };
    let mut results = Results::create(&path)?;
    let mut is_whole = true;
    // The first start reads programs from the disk and makes directories, and is not counted.
    for rep in 0..=reps {
        for agent in &agents {
            eprint!("{rep}/{reps} {}", agent.id);
            match measure(agent, &place) {
                Ok(metrics) => {
                    for (name, value) in &metrics {
                        eprint!("  {name} {value:.2}");
                    }
                    eprintln!();
                    if rep > 0 {
                        results.push("agents", agent.id, rep - 1, &metrics)?;
                    }
                }
                Err(error) => {
                    eprintln!("  {error}");
                    is_whole = false;
                }
            }
        }
        let count = agents.len();
        agents.rotate_left(1.min(count));
    }
    let context = report::Context::here(command, versions());
    let page = report::agents::page(&path, &context)?;
    println!("{page}");
    if only.is_none() {
        fs::write(peers::home().join("AGENTS.md"), page)?;
    }
    Ok(is_whole)
}

/// What is measured, and with what it runs.
fn versions() -> Vec<(String, String)> {
    let commit = std::env::var("BENCH_COMMIT").unwrap_or_else(|_| "this repository".into());
    let mut versions = vec![("attache".to_owned(), commit)];
    versions.extend(AGENTS.iter().filter_map(|agent| {
        let (directory, command) = agent.npm?;
        let link = fs::canonicalize(npm(directory).join("node_modules/.bin").join(command)).ok()?;
        let package = link.ancestors().map(|parent| parent.join("package.json")).find(|file| file.exists())?;
        let package: serde_json::Value = serde_json::from_slice(&fs::read(package).ok()?).ok()?;
        Some((agent.id.to_owned(), format!("{} {}", package["name"].as_str()?, package["version"].as_str()?)))
    }));
    let node = Command::new("node").arg("--version").env("PATH", path()).output();
    let node = node.map_or_else(|_| "none".into(), |node| String::from_utf8_lossy(&node.stdout).trim().to_owned());
    versions.push(("node".into(), node));
    versions
}

fn npm(directory: &str) -> PathBuf {
    peers::peers_home().join("npm").join(directory)
}

/// With a newer node first, where one was installed.
fn path() -> String {
    let rest = std::env::var("PATH").unwrap_or_default();
    format!("{}:{rest}", peers::peers_home().join("node24/node_modules/.bin").display())
}

fn measure(agent: &Agent, place: &Place) -> io::Result<Metrics> {
    let (mut command, size) = place.command(agent)?;
    let begun = Instant::now();
    let mut driver = Driver::start_command(command.process_group(0))?;
    let group = driver.process.child.id();
    let result = (|| {
        driver.initialize()?;
        let initialize = begun.elapsed();
        if let Some(method) = agent.auth {
            driver.call("authenticate", &json!({"methodId": method}))?;
        }
        let begun = Instant::now();
        driver.call("session/new", &json!({"cwd": place.project(agent.id), "mcpServers": []}))?;
        let session = begun.elapsed();
        std::thread::sleep(IDLE);
        let memory = tree(group);
        Ok(vec![
            ("initialize_ms", initialize.as_secs_f64() * 1e3),
            ("session_ms", session.as_secs_f64() * 1e3),
            ("pss_kib", memory.iter().map(|memory| memory.pss).sum::<u64>() as f64),
            ("rss_kib", memory.iter().map(|memory| memory.rss).sum::<u64>() as f64),
            ("processes", memory.len() as f64),
            ("disk_bytes", size as f64),
        ])
    })();
    drop(driver);
    // Whatever it started is in its group.
    // SAFETY: plain system call; the group is the one that we made for this child.
    unsafe { libc::kill(-(group as libc::pid_t), libc::SIGKILL) };
    result
}

/// Resident memory of a process in KiB: its share of what is shared, and all that is mapped.
struct Memory {
    pss: u64,
    rss: u64,
}

/// A process and all that descend from it.
fn tree(root: u32) -> Vec<Memory> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name, in brackets, may have spaces and brackets of its own.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        if let Some(parent) = parent {
            parents.insert(pid, parent);
        }
    }
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(pid) = tree.get(at).copied() {
        tree.extend(parents.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child));
        at += 1;
    }
    tree.into_iter().map(memory).collect()
}

fn memory(pid: u32) -> Memory {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let field = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    Memory { pss: field("Pss:"), rss: field("Rss:") }
}

/// Where the agents work and keep what is theirs, and the model that they may talk to.
struct Place {
    directory: PathBuf,
    model: Child,
    address: String,
}

impl Place {
    fn new() -> io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("attache-bench-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let port = directory.join("port");
        let script = peers::home().join("../interop/model.py");
        let mut model = Command::new("python3").arg(script).arg(&port).stderr(Stdio::null()).spawn()?;
        for _ in 0..100 {
            if let Ok(port) = fs::read_to_string(&port) {
                return Ok(Place { directory, model, address: format!("http://127.0.0.1:{}", port.trim()) });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = model.kill();
        let _ = model.wait();
        Err(io::Error::other("the scripted model does not start"))
    }

    fn project(&self, id: &str) -> PathBuf {
        self.directory.join(id).join("project")
    }

    /// How an agent is started, and how many bytes it takes on the disk.
    fn command(&self, agent: &Agent) -> io::Result<(Command, u64)> {
        let (program, size) = match agent.npm {
            None => {
                let binary = our_binary();
                let size = fs::metadata(&binary).map_err(|_| io::Error::other("not built"))?.len();
                (binary, size)
            }
            Some((directory, command)) => {
                let modules = npm(directory).join("node_modules");
                let program = modules.join(".bin").join(command);
                if !program.exists() {
                    return Err(io::Error::other("not installed"));
                }
                (program, size_of(&modules, &mut HashSet::new())?)
            }
        };
        let home = self.directory.join(agent.id).join("home");
        for directory in [home.clone(), self.project(agent.id)] {
            fs::create_dir_all(&directory)?;
            // One of them does not work for root.
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))?;
        }
        let mut command = Command::new(program);
        command.args(agent.args).current_dir(self.project(agent.id));
        command.env_clear().env("HOME", &home).env("PATH", path()).env("DO_NOT_TRACK", "1");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
            // Whoever tries to reach the world finds a closed door at once.
            command.env(name, "http://127.0.0.1:9");
        }
        command.env("NO_PROXY", "127.0.0.1,localhost").env("no_proxy", "127.0.0.1,localhost");
        self.settle(agent.id, &home, &mut command)?;
        Ok((command, size))
    }

    /// What the agents need to be told before they work with a model on loopback.
    fn settle(&self, id: &str, home: &Path, command: &mut Command) -> io::Result<()> {
        let address = &self.address;
        match id {
            "codex-acp" => {
                let config = format!(
                    "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
                     [analytics]\nenabled = false\n[model_providers.scripted]\nname = \"Scripted\"\n\
                     base_url = \"{address}/v1\"\nenv_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n\
                     requires_openai_auth = false\n"
                );
                fs::write(home.join("config.toml"), config)?;
                command.env("CODEX_HOME", home).env("SCRIPTED_KEY", "none");
            }
            "claude-agent-acp" => {
                command.env("ANTHROPIC_BASE_URL", address).env("ANTHROPIC_API_KEY", "none");
                for name in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"] {
                    command.env(name, "1");
                }
                // SAFETY: plain system call.
                if unsafe { libc::getuid() } == 0 {
                    command.uid(65534).gid(65534);
                }
            }
            "gemini" => {
                command.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", address);
                command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
            }
            "opencode" => {
                let options = json!({"baseURL": format!("{address}/v1"), "apiKey": "none"});
                let models = json!({"scripted": {"name": "Scripted", "limit": {"context": 200_000, "output": 8000}}});
                let provider = json!({
                    "npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options, "models": models,
                });
                let config = json!({
                    "model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false,
                    "share": "disabled", "provider": {"scripted": provider},
                });
                let file = home.join("opencode.json");
                fs::write(&file, config.to_string())?;
                command.env("OPENCODE_CONFIG", file);
                for name in ["AUTOUPDATE", "MODELS_FETCH", "DEFAULT_PLUGINS", "LSP_DOWNLOAD"] {
                    command.env(format!("OPENCODE_DISABLE_{name}"), "1");
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.model.kill();
        let _ = self.model.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Where cargo puts our program: in the workspace above this one.
fn our_binary() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| peers::home().join("../target"), PathBuf::from).join("dist/attache")
}

/// The bytes of all files beneath a directory. What has several names counts once.
fn size_of(directory: &Path, seen: &mut HashSet<(u64, u64)>) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            size += size_of(&entry.path(), seen)?;
        } else if metadata.is_file() && seen.insert((metadata.dev(), metadata.ino())) {
            size += metadata.len();
        }
    }
    Ok(size)
}
