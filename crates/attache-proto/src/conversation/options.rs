//! The options of a session, with the modes and models of version 1 among them.

use crate::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue, ConfigValueId,
    SetConfigOptionRequest,
};
use crate::model::session::{Mode, ModeState, ModelInfo, ModelState, SessionId, SetModeRequest, SetModelRequest};
use crate::model::update::{ConfigOptionsUpdate, SessionUpdate};

/// The options of a session, as a client sees them. Modes and models of version 1 that the agent does not also list as
/// options are options too.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    all: Vec<ConfigOption>,
    /// The option that stands for the agent's modes.
    modes: Option<ConfigId>,
    /// The option that stands for the agent's models, as early version 1 had them.
    models: Option<ConfigId>,
}

/// The request that sets an option.
#[derive(Debug, Clone, PartialEq)]
pub enum SetRequest {
    /// As an option.
    Option(SetConfigOptionRequest),
    /// As a mode.
    Mode(SetModeRequest),
    /// As a model.
    Model(SetModelRequest),
}

impl SessionOptions {
    /// The options that an agent named when it opened a session.
    pub fn new(options: Option<Vec<ConfigOption>>, modes: Option<&ModeState>, models: Option<&ModelState>) -> Self {
        let mut this = SessionOptions { all: options.unwrap_or_default(), modes: None, models: None };
        if let Some(modes) = modes.filter(|_| option_of(&this.all, &ConfigCategory::Mode).is_none()) {
            let values = modes.available_modes.iter().map(|mode| ConfigValue {
                description: mode.description.clone(),
                meta: mode.meta.clone(),
                ..ConfigValue::new(mode.id.as_str(), mode.name.as_str())
            });
            let current = modes.current_mode_id.as_str();
            this.modes = Some(this.add("mode", "Mode", ConfigCategory::Mode, current, values.collect()));
        }
        if let Some(models) = models.filter(|_| option_of(&this.all, &ConfigCategory::Model).is_none()) {
            let values = models.available_models.iter().map(|model| ConfigValue {
                description: model.description.clone(),
                ..ConfigValue::new(model.model_id.as_str(), model.name.as_str())
            });
            let current = models.current_model_id.as_str();
            this.models = Some(this.add("model", "Model", ConfigCategory::Model, current, values.collect()));
        }
        this
    }

    fn add(
        &mut self,
        id: &str,
        name: &str,
        category: ConfigCategory,
        current: &str,
        values: Vec<ConfigValue>,
    ) -> ConfigId {
        let is_taken = self.all.iter().any(|option| option.id.as_str() == id);
        let id = if is_taken { ConfigId::from(format!("session_{id}")) } else { ConfigId::from(id) };
        let kind = ConfigKind::Select(ConfigSelect::new(current, values));
        self.all.push(ConfigOption { category: Some(category), ..ConfigOption::new(id.clone(), name, kind) });
        id
    }

    /// All options as they are now.
    pub fn all(&self) -> &[ConfigOption] {
        &self.all
    }

    /// The request that sets an option: one that stands for something older is set the older way.
    pub fn set_request(&self, session: &SessionId, id: ConfigId, value: ConfigSetting) -> SetRequest {
        match value {
            ConfigSetting::Id(value) if self.modes.as_ref() == Some(&id) => {
                SetRequest::Mode(SetModeRequest::new(session.clone(), value.as_str()))
            }
            ConfigSetting::Id(value) if self.models.as_ref() == Some(&id) => {
                SetRequest::Model(SetModelRequest::new(session.clone(), value))
            }
            value => SetRequest::Option(SetConfigOptionRequest::new(session.clone(), id, value)),
        }
    }

    /// The agent has set an option without naming all options as they are now: the others are as they were.
    pub fn was_set(&mut self, id: &ConfigId, value: &ConfigValueId) {
        if let Some(current) = self.all.iter_mut().find(|option| option.id == *id).and_then(current) {
            *current = value.clone();
        }
    }

    /// The same for an option that is on or off.
    pub fn was_switched(&mut self, id: &ConfigId, is_on: bool) {
        let option = self.all.iter_mut().find(|option| option.id == *id);
        if let Some(ConfigKind::Boolean(switch)) = option.map(|option| &mut option.kind) {
            switch.current = is_on;
        }
    }

    /// The agent has named its options as they are now. Those that stand for something older stay as they were, unless
    /// the agent lists them as options by now.
    pub fn replace(&mut self, mut options: Vec<ConfigOption>) {
        let is_listed = |id: &ConfigId, category: &ConfigCategory| {
            options.iter().any(|option| option.id == *id) || option_of(&options, category).is_some()
        };
        self.modes.take_if(|id| is_listed(id, &ConfigCategory::Mode));
        self.models.take_if(|id| is_listed(id, &ConfigCategory::Model));
        let is_older =
            |option: &ConfigOption| Some(&option.id) == self.modes.as_ref() || Some(&option.id) == self.models.as_ref();
        options.extend(self.all.drain(..).filter(is_older));
        self.all = options;
    }

    /// Takes in an update of the options or of the mode, and makes it one of all options.
    pub(super) fn handle_update(&mut self, update: &mut SessionUpdate) {
        match update {
            SessionUpdate::ConfigOptions(options) => {
                self.replace(std::mem::take(&mut options.config_options));
                options.config_options = self.all.clone();
            }
            SessionUpdate::CurrentMode(mode) => {
                let option = self.all.iter_mut().find(|option| option.category == Some(ConfigCategory::Mode));
                let Some(current) = option.and_then(current) else { return };
                // An agent that tells both has told the options already.
                if current.as_str() != mode.current_mode_id.as_str() {
                    *current = mode.current_mode_id.as_str().into();
                    let options =
                        ConfigOptionsUpdate { meta: mode.meta.take(), ..ConfigOptionsUpdate::new(self.all.clone()) };
                    *update = SessionUpdate::ConfigOptions(options);
                }
            }
            _ => {}
        }
    }
}

fn current(option: &mut ConfigOption) -> Option<&mut ConfigValueId> {
    match &mut option.kind {
        ConfigKind::Select(select) => Some(&mut select.current),
        _ => None,
    }
}

/// The option of a category that is a list of values.
pub(super) fn option_of<'o>(options: &'o [ConfigOption], category: &ConfigCategory) -> Option<&'o ConfigOption> {
    let is_it = |option: &&ConfigOption| {
        option.category.as_ref() == Some(category) && matches!(option.kind, ConfigKind::Select(_))
    };
    options.iter().find(is_it)
}

/// The option of category `mode` as version 1 has modes.
pub(super) fn modes_of(options: &[ConfigOption]) -> Option<ModeState> {
    let ConfigKind::Select(select) = &option_of(options, &ConfigCategory::Mode)?.kind else { return None };
    let mode = |value: &ConfigValue| Mode {
        description: value.description.clone(),
        meta: value.meta.clone(),
        ..Mode::new(value.value.as_str(), value.name.as_str())
    };
    let available: Vec<Mode> = select.options.iter().map(mode).collect();
    Some(ModeState::new(select.current.as_str(), available))
}

/// The option of category `model` as early version 1 had models.
pub(super) fn models_of(options: &[ConfigOption]) -> Option<ModelState> {
    let ConfigKind::Select(select) = &option_of(options, &ConfigCategory::Model)?.kind else { return None };
    let model = |value: &ConfigValue| ModelInfo {
        description: value.description.clone(),
        ..ModelInfo::new(value.value.clone(), value.name.as_str())
    };
    let available: Vec<ModelInfo> = select.options.iter().map(model).collect();
    Some(ModelState::new(select.current.clone(), available))
}

/// Leaves out the options that a client does not understand; says whether there were any. Clients of version 1 know no
/// kinds of options but those that they say they know.
pub(super) fn shown_options(options: &mut Vec<ConfigOption>, knows_switches: bool, knows_others: bool) -> bool {
    let all = options.len();
    options.retain(|option| match option.kind {
        ConfigKind::Select(_) => true,
        ConfigKind::Boolean(_) => knows_switches,
        ConfigKind::Other(_) => knows_others,
    });
    options.len() < all
}
