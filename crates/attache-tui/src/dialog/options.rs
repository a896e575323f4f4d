//! Modes, models and other options of a session in one menu, whatever the protocol calls them.

use attache_proto::model::config::{ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSetting, ConfigValues};
use attache_proto::model::session::{Mode, ModeId};
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::picker::{Item, Picker, PickerReply};
use crate::text::shown;
use crate::theme::Theme;

/// What the person wants.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionsReply {
    /// Set an option.
    Set {
        /// The option.
        id: ConfigId,
        /// What to set it to.
        value: ConfigSetting,
    },
    /// Change to a mode of protocol version 1.
    SetMode(ModeId),
    /// Nothing.
    Closed,
}

/// A line of the menu.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// The modes of protocol version 1.
    Modes,
    /// An option by its place.
    Option(usize),
}

/// The menu of options.
#[derive(Debug, Clone)]
pub struct OptionsDialog {
    options: Vec<ConfigOption>,
    modes: Vec<Mode>,
    current_mode: Option<ModeId>,
    menu: Picker<Entry>,
    values: Option<Picker<OptionsReply>>,
    /// Whether there is a menu to go back to.
    is_direct: bool,
}

impl OptionsDialog {
    /// The options of a session, with the modes of protocol version 1.
    pub fn new(options: &[ConfigOption], modes: &[Mode], current_mode: Option<&ModeId>) -> Self {
        let mut dialog = OptionsDialog {
            options: Vec::new(),
            modes: Vec::new(),
            current_mode: None,
            menu: Picker::new("options", Vec::new()).with_empty("this agent has no options"),
            values: None,
            is_direct: false,
        };
        dialog.update(options, modes, current_mode);
        dialog
    }

    /// The values of the option that is about this, such as the models. `None` if there is no such option.
    pub fn of_category(
        category: &ConfigCategory,
        options: &[ConfigOption],
        modes: &[Mode],
        current_mode: Option<&ModeId>,
    ) -> Option<Self> {
        let mut dialog = OptionsDialog::new(options, modes, current_mode);
        let place = options.iter().position(|option| option.category.as_ref() == Some(category));
        let entry = match place {
            Some(place) => Entry::Option(place),
            None if *category == ConfigCategory::Mode && !modes.is_empty() => Entry::Modes,
            None => return None,
        };
        dialog.values = dialog.values_of(&entry);
        dialog.is_direct = true;
        dialog.values.is_some().then_some(dialog)
    }

    /// The options as they are now.
    pub fn update(&mut self, options: &[ConfigOption], modes: &[Mode], current_mode: Option<&ModeId>) {
        self.options = options.to_vec();
        self.current_mode = current_mode.cloned();
        // An agent that has an option for it offers its modes twice.
        let has_mode = options.iter().any(|option| option.category == Some(ConfigCategory::Mode));
        self.modes = if has_mode { Vec::new() } else { modes.to_vec() };
        let mut items = Vec::new();
        if !self.modes.is_empty() {
            let current = self.modes.iter().find(|mode| Some(&mode.id) == self.current_mode.as_ref());
            let name = current.map_or("not known", |mode| mode.name.as_str());
            items.push(Item::new(Entry::Modes, "Mode").detail(name).preview("How the agent works."));
        }
        for (place, option) in options.iter().enumerate() {
            let item = Item::new(Entry::Option(place), option.name.clone()).detail(value_name(&option.kind));
            items.push(item.preview(option.description.clone().unwrap_or_default()));
        }
        self.menu.set_items(items);
    }

    fn values_of(&self, entry: &Entry) -> Option<Picker<OptionsReply>> {
        let mark = |is_current: bool| if is_current { "current" } else { "" };
        match entry {
            Entry::Modes => {
                let item = |mode: &Mode| {
                    let is_current = Some(&mode.id) == self.current_mode.as_ref();
                    Item::new(OptionsReply::SetMode(mode.id.clone()), mode.name.clone())
                        .detail(mark(is_current))
                        .preview(mode.description.clone().unwrap_or_default())
                };
                let current = self.current_mode.clone();
                let picker = Picker::new("Mode", self.modes.iter().map(item).collect());
                Some(picker.select(
                    |reply| matches!((reply, &current), (OptionsReply::SetMode(id), Some(current)) if id == current),
                ))
            }
            Entry::Option(place) => {
                let option = self.options.get(*place)?;
                let ConfigKind::Select(select) = &option.kind else { return None };
                let set = |value: &attache_proto::model::config::ConfigValue| {
                    let reply =
                        OptionsReply::Set { id: option.id.clone(), value: ConfigSetting::Id(value.value.clone()) };
                    Item::new(reply, value.name.clone())
                        .detail(mark(value.value == select.current))
                        .preview(value.description.clone().unwrap_or_default())
                };
                let items = match &select.options {
                    ConfigValues::Flat(values) => values.iter().map(set).collect(),
                    ConfigValues::Grouped(groups) => groups
                        .iter()
                        .flat_map(|group| group.options.iter().map(|value| set(value).group(group.name.clone())))
                        .collect(),
                };
                let current = ConfigSetting::Id(select.current.clone());
                let picker = Picker::new(option.name.clone(), items);
                Some(picker.select(|reply| matches!(reply, OptionsReply::Set { value, .. } if *value == current)))
            }
        }
    }

    /// Takes a key in. A reply other than `Closed` leaves the menu open for the next option.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<OptionsReply> {
        if let Some(values) = &mut self.values {
            let reply = values.handle_key(key)?;
            if !self.is_direct {
                self.values = None;
            }
            return match reply {
                PickerReply::Chosen(reply) => Some(reply),
                PickerReply::Closed if !self.is_direct => None,
                _ => Some(OptionsReply::Closed),
            };
        }
        match self.menu.handle_key(key)? {
            PickerReply::Chosen(entry) => {
                if let Entry::Option(place) = entry
                    && let Some(option) = self.options.get(place)
                    && let ConfigKind::Boolean(switch) = &option.kind
                {
                    let value = ConfigSetting::Boolean(!switch.current);
                    return Some(OptionsReply::Set { id: option.id.clone(), value });
                }
                self.values = self.values_of(&entry);
                None
            }
            _ => Some(OptionsReply::Closed),
        }
    }

    /// Takes in text that was pasted.
    pub fn handle_paste(&mut self, text: &str) {
        match &mut self.values {
            Some(values) => values.handle_paste(text),
            None => self.menu.handle_paste(text),
        }
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self) -> u16 {
        self.values.as_ref().map_or_else(|| self.menu.height(), Picker::height)
    }

    /// Draws the menu.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        match &mut self.values {
            Some(values) => values.render(area, buffer, theme),
            None => self.menu.render(area, buffer, theme),
        }
    }
}

fn value_name(kind: &ConfigKind) -> String {
    match kind {
        ConfigKind::Select(select) => {
            let value = select.options.iter().find(|value| value.value == select.current);
            value.map_or_else(|| shown(select.current.as_str()), |value| value.name.clone())
        }
        ConfigKind::Boolean(switch) => if switch.current { "on" } else { "off" }.into(),
        _ => "cannot be changed here".into(),
    }
}

/// What the key that goes on to the next mode sets, and that mode in words. `None` if there are not two modes.
pub fn next_mode(
    options: &[ConfigOption],
    modes: &[Mode],
    current_mode: Option<&ModeId>,
) -> Option<(OptionsReply, String)> {
    let words = |name: &str, description: Option<&str>| match description.filter(|words| !words.trim().is_empty()) {
        Some(description) => format!("{name}: {description}"),
        None => name.to_owned(),
    };
    for option in options.iter().filter(|option| option.category == Some(ConfigCategory::Mode)) {
        if let ConfigKind::Select(select) = &option.kind {
            let values: Vec<_> = select.options.iter().collect();
            let at = values.iter().position(|value| value.value == select.current);
            let next = values.get(at.map_or(0, |at| (at + 1) % values.len()))?;
            let reply = OptionsReply::Set { id: option.id.clone(), value: ConfigSetting::Id(next.value.clone()) };
            let words = words(&next.name, next.description.as_deref());
            return (next.value != select.current).then_some((reply, words));
        }
    }
    let at = modes.iter().position(|mode| Some(&mode.id) == current_mode);
    let next = modes.get(at.map_or(0, |at| (at + 1) % modes.len()))?;
    let words = words(&next.name, next.description.as_deref());
    (Some(&next.id) != current_mode).then_some((OptionsReply::SetMode(next.id.clone()), words))
}
