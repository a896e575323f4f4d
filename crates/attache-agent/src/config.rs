//! How the agent is set up: `agent.toml`, and what the command line says instead.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use attache_host::permission::{Policy, Rule};

use crate::hooks::{Hook, HookSettings};
use crate::model::Thought;
use crate::model::retry::Patience;
use crate::settings::{Mode, Words};
use crate::tools::commands::SandboxMode;
use crate::turn::Limits;

/// How the agent is set up.
///
/// ```
/// use attache_agent::{Config, Mode, SandboxMode};
///
/// let directory = tempfile::tempdir()?;
/// std::fs::write(directory.path().join("agent.toml"), "model = \"ollama:qwen3\"\nmode = \"code\"\n")?;
/// let mut config = Config::load(directory.path(), directory.path().join("state"))?;
/// assert_eq!((config.model.as_deref(), config.mode), (Some("ollama:qwen3"), Mode::Code));
/// // Every field can be set by hand, too.
/// config.sandbox = SandboxMode::Offline;
///
/// std::fs::write(directory.path().join("agent.toml"), "modle = \"x\"")?;
/// let error = Config::load(directory.path(), directory.path().join("state")).unwrap_err();
/// assert!(error.to_string().contains("line 1: unknown field `modle`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    /// The user's settings: `agent.toml`, `keys.json`, `mcp.json`, `commands/`, `skills/`, `AGENTS.md`, `permissions.toml`.
    pub config_dir: PathBuf,
    /// What is remembered: sessions, rules for projects, trust.
    pub state_dir: PathBuf,
    /// The model, as `provider:name`; without one, whatever can be had.
    pub model: Option<String>,
    /// Where its provider is, if not where it usually is.
    pub base_url: Option<String>,
    /// The mode that sessions begin in.
    pub mode: Mode,
    /// How long models think.
    pub thought: Thought,
    /// How commands are confined.
    pub sandbox: SandboxMode,
    /// What becomes of that which no rule decides; without it, the mode says. A client that runs the agent for somebody
    /// sets it, so that a call is judged once.
    pub permissions: Option<Policy>,
    /// Rules that hold in every session of this process, besides those of files. No file says it.
    pub rules: Vec<Rule>,
    /// What is added to the system prompt, as the person's own words. No file says it.
    pub system: Option<String>,
    /// Variables that commands get besides those that every process does, by name; `*` at the end stands for any end.
    pub pass_env: Vec<String>,
    /// What commands may change in the sandbox besides the directories of the session, such as caches of package managers.
    pub writable: Vec<PathBuf>,
    /// Commands that run before and after tools, and at the end of a turn.
    pub hooks: Vec<Hook>,
    /// What a turn may take.
    pub limits: Limits,
    /// What cannot be told of a model by its name.
    pub models: BTreeMap<String, ModelFacts>,
    /// How patiently a model is asked again. No file says it: it is for tests, which have no time.
    #[doc(hidden)]
    pub patience: Patience,
    /// Whether pages of this machine can be fetched. No file says it: it is for tests, which have no other server.
    #[doc(hidden)]
    pub fetches_loopback: bool,
}

/// What cannot be told of a model by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// How many tokens it takes.
    pub context: Option<u64>,
    /// Whether it calls tools by itself; else it is made to by constrained JSON.
    pub tools: Option<bool>,
    /// Whether it sees images.
    pub images: Option<bool>,
    /// Whether it hears audio.
    pub audio: Option<bool>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        error: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("`{}`: {what}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What.
        what: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Option<String>,
    base_url: Option<String>,
    mode: Option<Spanned<String>>,
    thought: Option<Spanned<String>>,
    sandbox: Option<Spanned<String>>,
    max_turn_requests: Option<u32>,
    max_tokens: Option<u32>,
    compact_at_percent: Option<u8>,
    #[serde(default)]
    commands: CommandSettings,
    #[serde(default)]
    hooks: Vec<HookSettings>,
    #[serde(default)]
    models: BTreeMap<String, ModelFacts>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandSettings {
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    writable: Vec<Spanned<String>>,
}

impl Config {
    /// The settings that hold where nothing is written.
    pub fn new(config_dir: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Self {
        Config {
            config_dir: config_dir.into(),
            state_dir: state_dir.into(),
            model: None,
            base_url: None,
            mode: Mode::default(),
            thought: Thought::default(),
            sandbox: SandboxMode::default(),
            permissions: None,
            rules: Vec::new(),
            system: None,
            pass_env: Vec::new(),
            writable: Vec::new(),
            hooks: Vec::new(),
            limits: Limits::default(),
            models: BTreeMap::new(),
            patience: Patience::default(),
            fetches_loopback: false,
        }
    }

    /// The settings of `agent.toml`, if there is one.
    pub fn load(config_dir: impl Into<PathBuf>, state_dir: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let mut config = Config::new(config_dir, state_dir);
        let path = config.config_dir.join("agent.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => config.read(&text).map_err(|what| ConfigError::Wrong { path, what })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(ConfigError::Io { path, error }),
        }
        Ok(config)
    }

    fn read(&mut self, text: &str) -> Result<(), String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            format!("line {line}: {}", error.message())
        })?;
        self.model = file.model;
        self.base_url = file.base_url;
        self.mode = word(text, file.mode, "mode")?;
        self.thought = word(text, file.thought, "thought")?;
        self.sandbox = word(text, file.sandbox, "sandbox")?;
        self.pass_env = file.commands.pass_env;
        self.writable = self.writable(text, file.commands.writable)?;
        self.hooks = HookSettings::read(text, file.hooks)?;
        self.models = file.models;
        let limits = Limits::default();
        self.limits = Limits {
            requests: file.max_turn_requests.unwrap_or(limits.requests).max(1),
            max_tokens: file.max_tokens,
            compact_at: file.compact_at_percent.unwrap_or(limits.compact_at).clamp(10, 95),
        };
        Ok(())
    }

    /// The paths that commands may change besides: they exist, and neither are secrets nor belong to us.
    fn writable(&self, text: &str, paths: Vec<Spanned<String>>) -> Result<Vec<PathBuf>, String> {
        let mut sandbox = None;
        let check = |path: Spanned<String>| {
            let (line, name) = (line_of(text, path.span().start), path.into_inner());
            let wrong = |what: String| format!("line {line}: `writable`: {what}");
            let home = || std::env::home_dir().filter(|home| home.is_absolute());
            let path = match name.strip_prefix("~/") {
                Some(rest) => home().map(|home| home.join(rest)),
                None => Some(PathBuf::from(&name)).filter(|path| path.is_absolute()),
            };
            let path = path.ok_or_else(|| wrong(format!("`{name}` is neither absolute nor begins with `~/`")))?;
            // Without links, so that it stays what was looked at.
            let path = path.canonicalize().map_err(|error| wrong(format!("`{name}`: {error}")))?;
            let sandbox = sandbox.get_or_insert_with(|| {
                let mut sandbox = attache_host::sandbox::Policy::new([""; 0]);
                sandbox.hidden.extend([self.config_dir.clone(), self.state_dir.clone()]);
                sandbox
            });
            if sandbox.is_hidden(&path) {
                return Err(wrong(format!(
                    "`{name}` is hidden from commands, with other secrets and our own settings"
                )));
            }
            Ok(path)
        };
        paths.into_iter().map(check).collect()
    }

    /// Where sessions are kept.
    pub fn sessions_dir(&self) -> PathBuf {
        self.state_dir.join("agent").join("sessions")
    }

    /// Where the commands of a user are.
    pub(crate) fn commands_dir(&self) -> PathBuf {
        self.config_dir.join("commands")
    }

    /// Where the skills of a user are.
    pub(crate) fn skills_dir(&self) -> PathBuf {
        self.config_dir.join("skills")
    }

    /// Where what a session changed is kept, to take it back.
    pub(crate) fn checkpoints_dir(&self, session: &str) -> PathBuf {
        self.state_dir.join("agent").join("checkpoints").join(session)
    }

    /// Where long outputs of a session's tools are kept.
    pub(crate) fn spill_dir(&self, session: &str) -> PathBuf {
        self.state_dir.join("agent").join("outputs").join(session)
    }
}

fn word<T: Words + Default>(text: &str, word: Option<Spanned<String>>, name: &str) -> Result<T, String> {
    let Some(word) = word else { return Ok(T::default()) };
    T::from_word(word.get_ref()).ok_or_else(|| {
        let words: Vec<String> = T::ALL.iter().map(|row| format!("`{}`", row.1)).collect();
        format!("line {}: `{name}` is one of {}", line_of(text, word.span().start), words.join(", "))
    })
}

/// The number of the line that has this byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let mut config = Config::new("/config", "/state");
        config.read(text).map(|()| config)
    }

    #[test]
    fn every_setting_is_read() {
        let config = read(
            "model = 'ollama:qwen3'\nbase_url = 'http://localhost:1'\nmode = 'code'\nthought = 'low'\n\
             sandbox = 'offline'\nmax_turn_requests = 7\nmax_tokens = 99\ncompact_at_percent = 50\n\
             [commands]\npass_env = ['GITHUB_TOKEN']\n[models.'ollama:qwen3']\ncontext = 4096\ntools = false\n",
        )
        .unwrap();
        assert_eq!(config.model.as_deref(), Some("ollama:qwen3"));
        assert_eq!((config.mode, config.thought, config.sandbox), (Mode::Code, Thought::Low, SandboxMode::Offline));
        assert_eq!(config.limits, Limits { requests: 7, max_tokens: Some(99), compact_at: 50 });
        assert_eq!(config.pass_env, ["GITHUB_TOKEN"]);
        assert_eq!(config.models["ollama:qwen3"].tools, Some(false));
    }

    #[test]
    fn what_commands_may_change_exists_and_is_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let config = read(&format!("[commands]\nwritable = ['{}']", path.display())).unwrap();
        assert_eq!(config.writable, [path]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, named) in [
            ("[commands]\nwritable = ['/']\nx = 1", "line 3"),
            (
                "[commands]\nwritable = ['cache']",
                "line 2: `writable`: `cache` is neither absolute nor begins with `~/`",
            ),
            ("[commands]\nwritable = [\n'/',\n'/no/such/place']", "line 4: `writable`: `/no/such/place`: No such file"),
            ("[commands]\nwritable = ['~']", "is neither absolute"),
            ("\n# x\nmode = 'free'", "line 3: `mode` is one of `ask`, `architect`, `code`"),
            ("modle = 'x'", "line 1"),
            ("model = 'offline'\n\nmodle = 'x'\n", "line 3"),
            ("\n\nmodel = 3", "line 3"),
            ("model = ", "line 1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
