//! Modes, which v2 has as an option of the session.

use crate::model::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigValue, ConfigValueId, Mode, ModeId,
    ModeState,
};

/// How the modes of a session reach the client.
#[derive(Debug, Default)]
pub(super) enum Modes {
    /// There are none, or they need no translation.
    #[default]
    Plain,
    /// The agent has modes, the client sees them as this option, beside the others.
    AsOption { id: ConfigId, modes: ModeState, options: Vec<ConfigOption> },
    /// The agent has this option, the client sees it as modes too.
    FromOption(ConfigId),
}

impl Modes {
    /// All options that the client sees, when the modes are one of them.
    #[inline]
    pub(super) fn as_options(&self) -> Option<Vec<ConfigOption>> {
        let Modes::AsOption { id, modes, options } = self else { return None };
        Some(options.iter().cloned().chain([option_of(id, modes)]).collect())
    }

    /// Takes note of the mode that the session is in now, when the client sees it as an option.
    #[inline]
    pub(super) fn set_current(&mut self, mode: &ModeId) -> bool {
        let Modes::AsOption { modes, .. } = self else { return false };
        modes.current_mode_id = mode.clone();
        true
    }

    /// Takes note of the agent's options as they are now, and adds the modes if they are seen as one.
    #[inline]
    pub(super) fn add_to(&mut self, options: Vec<ConfigOption>) -> Vec<ConfigOption> {
        match self {
            Modes::AsOption { options: known, .. } => *known = options,
            _ => return options,
        }
        self.as_options().unwrap_or_default()
    }
}

/// The agent's modes as an option, unless it has such an option itself.
#[inline]
pub(super) fn as_option(modes: ModeState, options: Vec<ConfigOption>) -> Modes {
    if mode_option(&options).is_some() {
        return Modes::Plain;
    }
    let is_taken = |id: &str| options.iter().any(|option| option.id.as_str() == id);
    let id = if is_taken("mode") { "session_mode" } else { "mode" };
    Modes::AsOption { id: id.into(), modes, options }
}

/// The option that is the mode.
#[inline]
pub(super) fn mode_option(options: &[ConfigOption]) -> Option<&ConfigOption> {
    let is_mode = |option: &&ConfigOption| {
        option.category == Some(ConfigCategory::Mode) && matches!(option.kind, ConfigKind::Select(_))
    };
    options.iter().find(is_mode)
}

/// An option as modes.
#[inline]
pub(super) fn modes_of(option: &ConfigOption) -> Option<ModeState> {
    let ConfigKind::Select(select) = &option.kind else { return None };
    let mode = |value: &ConfigValue| Mode {
        description: value.description.clone(),
        meta: value.meta.clone(),
        ..Mode::new(value.value.as_str(), value.name.as_str())
    };
    let modes: Vec<Mode> = select.options.iter().map(mode).collect();
    Some(ModeState::new(select.current.as_str(), modes))
}

#[inline]
fn option_of(id: &ConfigId, modes: &ModeState) -> ConfigOption {
    let value = |mode: &Mode| ConfigValue {
        description: mode.description.clone(),
        meta: mode.meta.clone(),
        ..ConfigValue::new(mode.id.as_str(), mode.name.as_str())
    };
    let values: Vec<ConfigValue> = modes.available_modes.iter().map(value).collect();
    let select = ConfigSelect::new(ConfigValueId::from(modes.current_mode_id.as_str()), values);
    ConfigOption { category: Some(ConfigCategory::Mode), ..ConfigOption::new(id.clone(), "Mode", select) }
}
