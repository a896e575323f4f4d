//! What the reference agent keeps of its sessions, across connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use attache::model::command::{AvailableCommand, Command, TextInput};
use attache::model::config::{
    ConfigCategory, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigSwitch, ConfigValue,
};
use attache::model::error::ErrorObject;
use attache::model::update::SessionUpdate;

/// What is kept. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) sessions: BTreeMap<String, Kept>,
    pub(crate) is_logged_in: bool,
}

/// A session that is kept.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) cwd: String,
    pub(crate) directories: Vec<String>,
    pub(crate) title: Option<String>,
    /// What its client has seen, to be told again.
    pub(crate) history: Vec<SessionUpdate>,
    pub(crate) settings: Settings,
    /// How many ids were given out in it.
    pub(crate) ids: u64,
}

impl Store {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Does something with a session that is kept.
    pub(crate) fn with<T>(&self, id: &str, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(self.lock().sessions.entry(id.to_owned()).or_default())
    }
}

/// What can be set in a session.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) mode: String,
    pub(crate) model: String,
    pub(crate) is_brief: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { mode: "ask".into(), model: "large".into(), is_brief: false }
    }
}

impl Settings {
    pub(crate) fn options(&self) -> Vec<ConfigOption> {
        let values = |values: &[(&str, &str)]| {
            values.iter().map(|(value, name)| ConfigValue::new(*value, *name)).collect::<Vec<_>>()
        };
        let modes = values(&[("ask", "Ask"), ("code", "Code")]);
        let models = values(&[("large", "Large"), ("small", "Small")]);
        vec![
            ConfigOption::new("mode", "Mode", ConfigKind::Select(ConfigSelect::new(self.mode.as_str(), modes)))
                .category(ConfigCategory::Mode),
            ConfigOption::new("model", "Model", ConfigKind::Select(ConfigSelect::new(self.model.as_str(), models)))
                .category(ConfigCategory::Model),
            ConfigOption::new("brief", "Brief", ConfigKind::Boolean(ConfigSwitch::new(self.is_brief))),
        ]
    }

    /// Sets an option.
    pub(crate) fn set(&mut self, option: &str, value: &ConfigSetting) -> Result<(), ErrorObject> {
        match (option, value) {
            ("mode", ConfigSetting::Id(id)) if matches!(id.as_str(), "ask" | "code") => self.mode = id.as_str().into(),
            ("model", ConfigSetting::Id(id)) if matches!(id.as_str(), "large" | "small") => {
                self.model = id.as_str().into();
            }
            ("brief", ConfigSetting::Boolean(is_on)) => self.is_brief = *is_on,
            ("mode" | "model" | "brief", _) => return Err(ErrorObject::wrong_params("value: no such value")),
            _ => return Err(ErrorObject::wrong_params("configId: no such option")),
        }
        Ok(())
    }
}

/// The slash commands of every session.
pub(crate) fn commands() -> Vec<AvailableCommand> {
    let help = Command::new("help", "Says what there is.");
    let find = Command::new("find", "Finds a word.")
        .input(attache::model::command::CommandInput::Text(TextInput::new("word")));
    vec![help.into(), find.into()]
}
