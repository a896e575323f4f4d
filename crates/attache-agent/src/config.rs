//! How the agent is set up: `agent.toml`, and what the command line says instead.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use attache_host::paths::canonicalize;
use attache_host::permission::{Policy, Rule};
use attache_host::sandbox::LayerLimits;

use crate::hooks::{Hook, HookSettings};
use crate::model::discover::{self, Place};
use crate::model::metered::Budget;
use crate::model::price::{Cost, Price};
use crate::model::retry::Patience;
use crate::model::{ModelError, Thought, catalog};
use crate::providers::OwnProvider;
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
    /// Whoever answers questions is not whoever runs the agent: nothing outside of a session's directories is read or changed, no command
    /// runs outside of the sandbox, and no client changes that. No file says it.
    pub stays_inside: bool,
    /// The directories that sessions may work in or beneath, without links; anywhere if there are none. No file says it.
    pub beneath: Vec<PathBuf>,
    /// Rules that hold in every session of this process, besides those of files. No file says it.
    pub rules: Vec<Rule>,
    /// What is added to the system prompt, as the person's own words. No file says it.
    pub system: Option<String>,
    /// Variables that commands get besides those that every process does, by name; `*` at the end stands for any end.
    pub pass_env: Vec<String>,
    /// What commands may change in the sandbox besides the directories of the session.
    pub writable: Vec<PathBuf>,
    /// How much room the private layers of commands may take.
    pub layer_limits: LayerLimits,
    /// Commands that run before and after tools, and at the end of a turn.
    pub hooks: Vec<Hook>,
    /// What a turn may take.
    pub limits: Limits,
    /// What a session may spend from when this process opens it; what it spent before does not count. No file says it.
    pub run_budget: Budget,
    /// What cannot be told of a model by its name.
    pub models: BTreeMap<String, ModelFacts>,
    /// Providers of one's own, by name.
    pub providers: BTreeMap<String, OwnProvider>,
    /// Whether providers are asked which models they have.
    pub lists_models: bool,
    /// How patiently a model is asked again. No file says it: it is for tests, which have no time.
    #[doc(hidden)]
    pub patience: Patience,
    /// Where model servers of this machine may be. No file says it: it is for tests, which leave the machine's own alone.
    #[doc(hidden)]
    pub local_servers: Vec<Place>,
    /// Whether pages of this machine can be fetched. No file says it: it is for tests, which have no other server.
    #[doc(hidden)]
    pub fetches_loopback: bool,
    /// Whether the system is asked to tell of changes of files. No file says it: it is for tests, which cannot use up what
    /// the system can watch.
    #[doc(hidden)]
    pub watches_files: bool,
}

/// What cannot be told of a model by its name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
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
    /// Whether it is small: it gets a short prompt and few tools, and is held to a form.
    pub small: Option<bool>,
    /// Whether it can be told how long to think.
    pub thinks: Option<bool>,
    /// How freely it chooses its words; 0 is not at all.
    pub temperature: Option<f64>,
    /// What it costs.
    pub price: Option<PriceFacts>,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceFacts {
    /// For what goes in.
    pub input: f64,
    /// For what comes out.
    pub output: f64,
    /// For what goes in from a cache; as much as what does not, where it is not said.
    pub cached: Option<f64>,
    /// For what goes in and is written to a cache.
    pub written: Option<f64>,
}

impl ModelFacts {
    /// The price, if one is given that can be one.
    pub(crate) fn price(&self) -> Option<Price> {
        let price = self.price?;
        Price::per_million(price.input, price.output, price.cached, price.written)
    }
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
    max_turn_requests: Option<Spanned<u32>>,
    max_tokens: Option<u32>,
    max_tokens_total: Option<u64>,
    max_cost: Option<Spanned<f64>>,
    compact_at_percent: Option<Spanned<u8>>,
    lists_models: Option<bool>,
    #[serde(default)]
    commands: CommandSettings,
    #[serde(default)]
    hooks: Vec<HookSettings>,
    #[serde(default)]
    models: BTreeMap<String, Spanned<ModelFacts>>,
    #[serde(default)]
    providers: BTreeMap<String, Spanned<OwnProvider>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandSettings {
    #[serde(default)]
    pass_env: Vec<String>,
    #[serde(default)]
    writable: Vec<Spanned<String>>,
    max_project_layers_mib: Option<u32>,
    max_layers_mib: Option<u32>,
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
            layer_limits: LayerLimits::default(),
            hooks: Vec::new(),
            limits: Limits::default(),
            stays_inside: false,
            beneath: Vec::new(),
            run_budget: Budget::default(),
            models: BTreeMap::new(),
            providers: BTreeMap::new(),
            lists_models: true,
            patience: Patience::default(),
            local_servers: discover::usual_places(&std::env::var("OLLAMA_HOST").unwrap_or_default()),
            fetches_loopback: false,
            watches_files: true,
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
        let limits = LayerLimits::default();
        let bytes = |mib: Option<u32>| mib.map(|mib| u64::from(mib) << 20);
        self.layer_limits = LayerLimits {
            project: bytes(file.commands.max_project_layers_mib).unwrap_or(limits.project),
            all: bytes(file.commands.max_layers_mib).unwrap_or(limits.all),
        };
        self.writable = self.writable(text, file.commands.writable)?;
        self.hooks = HookSettings::read(text, file.hooks)?;
        self.lists_models = file.lists_models.unwrap_or(true);
        for (name, provider) in file.providers {
            let line = line_of(text, provider.span().start);
            let provider = provider.into_inner();
            if let Some(fault) = provider.fault(&name) {
                return Err(format!("line {line}: provider `{}`: {fault}", crate::model::tidy(&name, 40)));
            }
            self.providers.insert(name, provider);
        }
        for (id, facts) in file.models {
            let line = line_of(text, facts.span().start);
            let facts = facts.into_inner();
            let is_wrong = |what: &str| format!("line {line}: model `{}`: {what}", crate::model::tidy(&id, 80));
            if facts.price.is_some() && facts.price().is_none() {
                return Err(is_wrong("`price` is in dollars for a million tokens"));
            }
            if facts.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
                return Err(is_wrong("`temperature` is between 0 and 2"));
            }
            self.models.insert(id, facts);
        }
        let limits = Limits::default();
        let max_cost = file.max_cost.map(|cost| {
            let line = line_of(text, cost.span().start);
            let amount = Cost::from_dollars(cost.into_inner()).filter(|cost| cost.0 > 0);
            amount.ok_or_else(|| format!("line {line}: `max_cost` is an amount in dollars, such as 2.5"))
        });
        let requests = within(text, "max_turn_requests", file.max_turn_requests, 1..=u32::MAX)?;
        let compact_at = within(text, "compact_at_percent", file.compact_at_percent, 10..=95)?;
        self.limits = Limits {
            requests: requests.unwrap_or(limits.requests),
            max_tokens: file.max_tokens,
            compact_at: compact_at.unwrap_or(limits.compact_at),
            max_tokens_total: file.max_tokens_total,
            max_cost: max_cost.transpose()?,
        };
        Ok(())
    }

    /// What is wrong with the address that was given for the model, if anything. It is not repeated: it may have a password
    /// in it.
    pub fn base_url_fault(&self) -> Option<String> {
        let url = self.base_url.as_deref()?;
        let Some(model) = &self.model else {
            let hint = "hint: name one with it; `openai:NAME` is for servers that speak like OpenAI";
            return Some(format!("the base URL belongs to a model, and none was chosen\n{hint}"));
        };
        let provider = model.split(':').next().unwrap_or_default();
        if self.providers.contains_key(provider) {
            return Some(format!("the base URL of `{provider}` is that of its provider in agent.toml"));
        }
        match catalog::provider(provider) {
            Some(known) => crate::model::remote::Address::new(known.api, url).err().map(|error| error.message),
            None => Some(format!("`{provider}` is no language model, and has no base URL")),
        }
    }

    /// The whole name of a model, of the catalog or of a provider of one's own.
    pub fn model_id(&self, model: &str) -> Result<String, ModelError> {
        let model = model.trim();
        if matches!(model, "offline" | crate::model_list::OFFLINE) {
            return Ok(crate::model_list::OFFLINE.into());
        }
        let own = model.split_once(':').filter(|(name, _)| self.providers.contains_key(*name));
        if let Some((provider, name)) = own.filter(|(_, name)| !name.trim().is_empty()) {
            return Ok(format!("{provider}:{}", name.trim()));
        }
        if self.providers.contains_key(model.trim_end_matches(':')) {
            let name = model.trim_end_matches(':');
            let what = format!("`{name}` has no model of its own\nhint: write `{name}:` and the name of a model there");
            return Err(ModelError::new(crate::model::Failure::Request, what));
        }
        let choice = catalog::parse(model).map_err(|mut error| {
            // Who has providers of their own is told of them, too.
            let own: Vec<&str> = self.providers.keys().map(String::as_str).collect();
            if !own.is_empty() {
                error.message.push_str(&format!("\nhint: providers of your own: {}", own.join(", ")));
            }
            error
        })?;
        Ok(format!("{}:{}", choice.provider.name, choice.name))
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
            let path = canonicalize(&path).map_err(|error| wrong(format!("`{name}`: {error}")))?;
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

/// A number of a file, if it has one, or the line where it is out of its range.
pub(crate) fn within<N: PartialOrd + std::fmt::Display>(
    text: &str,
    field: &str,
    number: Option<Spanned<N>>,
    range: RangeInclusive<N>,
) -> Result<Option<N>, String> {
    let Some(number) = number else { return Ok(None) };
    let line = line_of(text, number.span().start);
    let number = number.into_inner();
    match range.contains(&number) {
        true => Ok(Some(number)),
        false => Err(format!(
            "line {line}: invalid value {number} for `{field}`; expected {} to {}",
            range.start(),
            range.end()
        )),
    }
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
        let expected = Limits { requests: 7, max_tokens: Some(99), compact_at: 50, ..Limits::default() };
        assert_eq!(config.limits, expected);
        assert_eq!(config.pass_env, ["GITHUB_TOKEN"]);
        assert_eq!(config.models["ollama:qwen3"].tools, Some(false));
    }

    #[test]
    fn layers_have_limits() {
        let limits = read("[commands]\nmax_layers_mib = 3\n").unwrap().layer_limits;
        assert_eq!((limits.project, limits.all), (5 << 30, 3 << 20));
        let limits = read("[commands]\nmax_project_layers_mib = 2\n").unwrap().layer_limits;
        assert_eq!((limits.project, limits.all), (2 << 20, 20 << 30));
        assert!(read("[commands]\nmax_layers_mib = -1\n").unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn what_commands_may_change_exists_and_is_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = attache_host::paths::canonicalize(directory.path()).unwrap();
        let config = read(&format!("[commands]\nwritable = ['{}']", path.display())).unwrap();
        assert_eq!(config.writable, [path]);
    }

    #[test]
    fn money_tokens_and_providers_are_read() {
        let config = read(
            "max_cost = 2.5\nmax_tokens_total = 1000\nlists_models = false\n\
             [models.'mine:x']\ntemperature = 0.0\nprice = { input = 1.0, output = 2 }\n\
             [providers.mine]\napi = 'anthropic'\nbase_url = 'https://h'\nkey_env = 'MINE_KEY'\n\
             headers = { x-team = 'hunter2' }\n",
        )
        .unwrap();
        assert_eq!((config.limits.max_cost, config.limits.max_tokens_total), (Cost::from_dollars(2.5), Some(1000)));
        assert!(!config.lists_models);
        assert_eq!(config.models["mine:x"].price().unwrap().output, 2_000_000);
        assert_eq!(config.providers["mine"].key_env.as_deref(), Some("MINE_KEY"));
        assert!(!format!("{config:?}").contains("hunter2"));
        assert_eq!(config.model_id(" mine:a:b ").unwrap(), "mine:a:b");
        assert!(config.model_id("mine").unwrap_err().message.contains("no model of its own"));
        assert!(config.model_id("other:x").unwrap_err().message.contains("providers of your own: mine"));
        assert_eq!(config.model_id("offline").unwrap(), "offline:rules");
    }

    // On Unix, because its paths and its words for errors are in the rows.
    #[cfg(unix)]
    #[test]
    fn mistakes_are_named() {
        for (text, named) in [
            ("max_cost = -1.0", "line 1: `max_cost` is an amount in dollars"),
            ("[models.'a:b']\ntemperature = 9.0", "`temperature` is between 0 and 2"),
            ("[models.'a:b']\nprice = { input = -1.0, output = 1.0 }", "`price` is in dollars"),
            ("[providers.openai]\napi = 'openai'\nbase_url = 'http://h'", "`openai` is built in"),
            ("[providers.Mine]\napi = 'openai'\nbase_url = 'http://h'", "small letters"),
            ("[providers.mine]\napi = 'smtp'\nbase_url = 'http://h'", "`api` is one of `openai`, `responses`"),
            ("[providers.mine]\napi = 'openai'\nbase_url = 'h'", "the base URL is not a URL"),
            (
                "[providers.mine]\napi = 'openai'\nbase_url = 'http://h'\nheaders = { 'a b' = 'x' }",
                "a name that is none",
            ),
            ("[commands]\nwritable = ['/']\nx = 1", "line 3"),
            (
                "[commands]\nwritable = ['cache']",
                "line 2: `writable`: `cache` is neither absolute nor begins with `~/`",
            ),
            ("[commands]\nwritable = [\n'/',\n'/no/such/place']", "line 4: `writable`: `/no/such/place`: No such file"),
            ("[commands]\nwritable = ['~']", "is neither absolute"),
            ("\n# x\nmode = 'free'", "line 3: `mode` is one of `ask`, `architect`, `code`"),
            ("\ncompact_at_percent = 96", "line 2: invalid value 96 for `compact_at_percent`; expected 10 to 95"),
            ("max_turn_requests = 0", "line 1: invalid value 0 for `max_turn_requests`"),
            ("[[hooks]]\nevent = 'before_tool'\ntools = ['write']\ncommand = 'x'", "line 3: unknown tool `write`"),
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
