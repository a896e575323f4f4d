//! What can be set about a session: its mode, its model, how long that thinks, and the sandbox of commands.

use std::sync::{Arc, Mutex, MutexGuard};

use attache::model::config::{ConfigCategory, ConfigKind, ConfigOption, ConfigSelect, ConfigValue};
use attache_host::permission::Policy;

use crate::model::Thought;
use crate::tools::commands::SandboxMode;

/// How freely the agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Reads beneath the roots; asks before everything else.
    #[default]
    Ask,
    /// Reads and plans. Changes are refused.
    Architect,
    /// Changes files beneath the roots; commands by rule.
    Code,
}

/// A closed list of words for a setting.
pub(crate) trait Words: Copy + PartialEq + Sized + 'static {
    /// Every value, with its word, its name and what it means.
    const ALL: &'static [(Self, &'static str, &'static str, &'static str)];

    /// The word for it.
    fn word(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The value that a word stands for.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == word).map(|row| row.0)
    }

    /// The option that offers them.
    fn option(self, id: &str, name: &str) -> ConfigOption {
        let values = Self::ALL
            .iter()
            .map(|(_, word, name, description)| ConfigValue::new(*word, *name).description(*description));
        select(id, name, self.word(), values.collect())
    }
}

impl Words for Mode {
    const ALL: &'static [(Self, &'static str, &'static str, &'static str)] = &[
        (Mode::Ask, "ask", "Ask", "Reads freely, asks before it changes or runs anything"),
        (Mode::Architect, "architect", "Architect", "Reads and plans; changes nothing"),
        (
            Mode::Code,
            "code",
            "Code",
            "Changes files in the project and runs commands in the sandbox; asks for the rest",
        ),
    ];
}

impl Words for SandboxMode {
    const ALL: &'static [(Self, &'static str, &'static str, &'static str)] = &[
        (SandboxMode::On, "on", "On", "Commands write in the project and in temporary directories only"),
        (SandboxMode::Offline, "offline", "On, without network", "Commands have no network either"),
        (SandboxMode::Off, "off", "Off", "Commands may do what you may do"),
    ];
}

impl Words for Thought {
    const ALL: &'static [(Self, &'static str, &'static str, &'static str)] = &[
        (Thought::Default, "default", "Default", "The provider's default"),
        (Thought::Off, "off", "Off", "As little as it can"),
        (Thought::Low, "low", "Low", "A little"),
        (Thought::Medium, "medium", "Medium", "Some"),
        (Thought::High, "high", "High", "Long"),
    ];
}

impl Mode {
    /// What becomes of that which no rule decides.
    pub(crate) fn policy(self) -> Policy {
        match self {
            Mode::Ask | Mode::Architect => Policy::Reads,
            Mode::Code => Policy::Edits,
        }
    }
}

/// What is set now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values {
    /// How freely the agent works.
    pub(crate) mode: Mode,
    /// The model, as `provider:name`.
    pub(crate) model: String,
    /// How long it thinks.
    pub(crate) thought: Thought,
    /// How commands are confined.
    pub(crate) sandbox: SandboxMode,
}

/// The settings of one session, shared by the turn that runs and the client that may change them meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    values: Arc<Mutex<Values>>,
    /// The models that can be chosen, as `provider:name` with a description.
    models: Arc<Mutex<Vec<(String, String)>>>,
    /// Whether any of them can be told how long to think.
    thinks: bool,
    /// The sandbox is not for a client to change.
    fixes_sandbox: bool,
}

/// A setting that is not there, or not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    NoSuchOption,
    NoSuchValue,
}

impl Settings {
    pub(crate) fn new(values: Values, mut models: Vec<(String, String)>, thinks: bool) -> Self {
        if !models.iter().any(|(id, _)| *id == values.model) {
            models.insert(0, (values.model.clone(), String::new()));
        }
        Settings {
            values: Arc::new(Mutex::new(values)),
            models: Arc::new(Mutex::new(models)),
            thinks,
            fixes_sandbox: false,
        }
    }

    /// Keeps the sandbox as it is, whatever a client says.
    pub(crate) fn fixing_sandbox(mut self, fixes: bool) -> Self {
        self.fixes_sandbox = fixes;
        self
    }

    pub(crate) fn now(&self) -> Values {
        self.lock().clone()
    }

    pub(crate) fn mode(&self) -> Mode {
        self.lock().mode
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    pub(crate) fn models(&self) -> Vec<(String, String)> {
        crate::lock(&self.models).clone()
    }

    /// Sets which models can be chosen. Tells whether that is something new.
    pub(crate) fn set_models(&self, mut models: Vec<(String, String)>) -> bool {
        let now = self.now().model;
        if !models.iter().any(|(id, _)| *id == now) {
            models.insert(0, (now, String::new()));
        }
        let mut known = crate::lock(&self.models);
        let is_new = *known != models;
        *known = models;
        is_new
    }

    /// Adds a model to those that can be chosen.
    pub(crate) fn add_model(&self, id: &str) {
        let mut known = crate::lock(&self.models);
        if !known.iter().any(|(known, _)| known == id) {
            known.insert(0, (id.to_owned(), String::new()));
        }
    }

    /// Sets an option by its words.
    pub(crate) fn set_word(&self, id: &str, word: &str) -> Result<(), Unset> {
        let mut values = self.lock();
        match id {
            "mode" => values.mode = Mode::from_word(word).ok_or(Unset::NoSuchValue)?,
            "thought" if self.thinks => values.thought = Thought::from_word(word).ok_or(Unset::NoSuchValue)?,
            "sandbox" if !self.fixes_sandbox => {
                values.sandbox = SandboxMode::from_word(word).ok_or(Unset::NoSuchValue)?
            }
            "model" if crate::lock(&self.models).iter().any(|(id, _)| id == word) => values.model = word.into(),
            "model" => return Err(Unset::NoSuchValue),
            _ => return Err(Unset::NoSuchOption),
        }
        Ok(())
    }

    /// All options as they are now.
    pub(crate) fn options(&self) -> Vec<ConfigOption> {
        let values = self.now();
        let models = self.models().into_iter().map(|(id, description)| {
            ConfigValue::new(id.as_str(), id.as_str())
                .with(|value| value.description = Some(description).filter(|text| !text.is_empty()))
        });
        let mut options = vec![
            values.mode.option("mode", "Mode").category(ConfigCategory::Mode),
            select("model", "Model", &values.model, models.collect()).category(ConfigCategory::Model),
        ];
        if self.thinks {
            let thought = values.thought.option("thought", "Thought");
            options.push(thought.category(ConfigCategory::ThoughtLevel));
        }
        if !self.fixes_sandbox {
            options.push(values.sandbox.option("sandbox", "Sandbox"));
        }
        options
    }

    fn lock(&self) -> MutexGuard<'_, Values> {
        crate::lock(&self.values)
    }
}

fn select(id: &str, name: &str, current: &str, values: Vec<ConfigValue>) -> ConfigOption {
    ConfigOption::new(id, name, ConfigKind::Select(ConfigSelect::new(current, values)))
}
