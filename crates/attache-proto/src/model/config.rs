//! The options of a session: what can be set, and setting it.

use super::Unknown;
use super::session::SessionId;
use crate::Dialect;
use crate::codec::{Blank, Decode, Encode, ids, model_type, peek_field, record, string_enum, union};
use crate::json::{DecodeError, Kind, Reader, Reason, Writer};

ids! {
    /// A configuration option, named by the agent.
    pub struct ConfigId;
    /// A value of a configuration option, named by the agent.
    pub struct ConfigValueId;
    /// A group of values of a configuration option.
    pub struct ConfigGroupId;
}

record! {
    /// Something about a session that can be set.
    pub struct ConfigOption {
        required {
            /// Its id.
            id: ConfigId = ["id", "id", "configId"],
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it does.
            description: Option<String> = "description",
            /// What it is about, for clients that have a place for it.
            category: Option<ConfigCategory> = "category",
        }
        flat {
            /// What it can be set to, and is.
            kind: ConfigKind,
        }
    }

    /// One of a list.
    pub struct ConfigSelect bare {
        required {
            /// The value it has.
            current: ConfigValueId = "currentValue",
            /// The values it can have.
            options: ConfigValues = "options",
        }
    }

    /// A switch.
    pub struct ConfigSwitch bare {
        required {
            /// Whether it is on.
            current: bool = "currentValue",
        }
    }

    /// A value that an option can have.
    pub struct ConfigValue {
        required {
            /// Its id.
            value: ConfigValueId = "value",
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it means.
            description: Option<String> = "description",
        }
    }

    /// Values that belong together.
    pub struct ConfigGroup {
        required {
            /// Its id.
            id: ConfigGroupId = ["group", "group", "groupId"],
            /// Its name to show.
            name: String = "name",
            /// The values.
            options: Vec<ConfigValue> = "options" list,
        }
    }

    /// Sets an option.
    pub struct SetConfigOptionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The option.
            config_id: ConfigId = "configId",
        }
        flat {
            /// What to set it to.
            value: ConfigSetting,
        }
    }

    /// The options as they are now.
    pub struct SetConfigOptionResponse {
        required {
            /// All of them.
            config_options: Vec<ConfigOption> = "configOptions" list,
        }
    }
}

union! {
    /// What an option can be set to, and is.
    pub enum ConfigKind tag "type" within ["id", "configId", "name", "description", "category", "_meta"] {
        /// One of a list.
        Select(ConfigSelect) = "select",
        /// On or off.
        Boolean(ConfigSwitch) = "boolean",
    }
}

string_enum! {
    /// What an option is about.
    pub enum ConfigCategory {
        /// How the agent works.
        Mode = "mode",
        /// Which model it uses.
        Model = "model",
        /// How that model is set up.
        ModelConfig = "model_config",
        /// How much the model thinks.
        ThoughtLevel = "thought_level",
    }
}

/// The values that an option can have.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigValues {
    /// A list.
    Flat(Vec<ConfigValue>),
    /// Lists with headings.
    Grouped(Vec<ConfigGroup>),
}

impl ConfigValues {
    /// All values, with or without headings.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigValue> {
        let (flat, groups): (&[ConfigValue], &[ConfigGroup]) = match self {
            ConfigValues::Flat(values) => (values, &[]),
            ConfigValues::Grouped(groups) => (&[], groups),
        };
        flat.iter().chain(groups.iter().flat_map(|group| &group.options))
    }
}

impl From<Vec<ConfigValue>> for ConfigValues {
    fn from(values: Vec<ConfigValue>) -> Self {
        ConfigValues::Flat(values)
    }
}

impl From<Vec<ConfigGroup>> for ConfigValues {
    fn from(groups: Vec<ConfigGroup>) -> Self {
        ConfigValues::Grouped(groups)
    }
}

impl Blank for ConfigValues {
    fn blank() -> Self {
        ConfigValues::Flat(Vec::new())
    }
}

impl Decode for ConfigValues {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // The first item tells: only groups hold options.
        let grouped = reader.look_ahead(|reader| {
            reader.begin_array()?;
            Ok(reader.next_item(&mut true)? && reader.has_key("options")?)
        })?;
        if grouped {
            Vec::decode(reader).map(ConfigValues::Grouped)
        } else {
            Vec::decode(reader).map(ConfigValues::Flat)
        }
    }
}

impl Encode for ConfigValues {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            ConfigValues::Flat(values) => values.encode(writer),
            ConfigValues::Grouped(groups) => groups.encode(writer),
        }
    }
}

model_type!(ConfigValues);

/// What to set an option to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigSetting {
    /// One of the listed values.
    Id(ConfigValueId),
    /// On or off.
    Boolean(bool),
    /// A kind of value that we do not know, kept as it came.
    Other(Unknown),
}

crate::codec::into_field!(ConfigSetting);

impl From<ConfigValueId> for ConfigSetting {
    fn from(id: ConfigValueId) -> Self {
        ConfigSetting::Id(id)
    }
}

impl From<&str> for ConfigSetting {
    fn from(id: &str) -> Self {
        ConfigSetting::Id(id.into())
    }
}

impl From<String> for ConfigSetting {
    fn from(id: String) -> Self {
        ConfigSetting::Id(id.into())
    }
}

impl From<bool> for ConfigSetting {
    fn from(on: bool) -> Self {
        ConfigSetting::Boolean(on)
    }
}

impl ConfigSetting {
    fn encode_fields(&self, writer: &mut Writer<'_>) {
        match self {
            ConfigSetting::Id(id) => {
                if writer.dialect() == Dialect::V2 {
                    writer.key("type");
                    writer.string("id");
                }
                writer.key("value");
                id.encode(writer);
            }
            ConfigSetting::Boolean(on) => {
                writer.key("type");
                writer.string("boolean");
                writer.key("value");
                on.encode(writer);
            }
            ConfigSetting::Other(unknown) => unknown.encode_fields(writer),
        }
    }
}

impl Blank for ConfigSetting {
    fn blank() -> Self {
        ConfigSetting::Boolean(false)
    }
}

impl Decode for ConfigSetting {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let missing = || DecodeError::new(Reason::Missing).in_field("value");
        let tag = match reader.peek_tag("type")? {
            Some(tag) => tag,
            // Before it had a type, the value itself told.
            None => match peek_field::<AnyKind>(reader, "value")?.ok_or_else(missing)?.0 {
                Kind::Bool => "boolean".into(),
                _ => "id".into(),
            },
        };
        let setting = match &*tag {
            "id" => ConfigSetting::Id(peek_field(reader, "value")?.ok_or_else(missing)?),
            "boolean" => ConfigSetting::Boolean(peek_field(reader, "value")?.ok_or_else(missing)?),
            other => {
                return Unknown::decode_rest(other, reader, &["sessionId", "configId", "_meta"])
                    .map(ConfigSetting::Other);
            }
        };
        reader.skip()?;
        Ok(setting)
    }
}

/// The kind of a value, without the value.
struct AnyKind(Kind);

impl Decode for AnyKind {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = reader.peek()?;
        reader.skip()?;
        Ok(AnyKind(kind))
    }
}
