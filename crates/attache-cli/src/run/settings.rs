//! Setting what the agent lets be set: model, mode and other options.

use attache::client::Session;
use attache::model::config::{ConfigCategory, ConfigKind, ConfigOption, ConfigSetting};

use crate::chat::worker::Setting;
use crate::cli::Run;
use crate::exit::Failure;
use crate::visible::visible;

/// Sets everything that the command line asks for, in an order that lets a mode depend on the model.
pub(crate) async fn apply(args: &Run, session: &Session) -> Result<(), Failure> {
    let mut options = session.options().to_vec();
    for (category, name, value) in
        [(ConfigCategory::Model, "model", &args.model), (ConfigCategory::Mode, "mode", &args.mode)]
    {
        let Some(value) = value else { continue };
        let option = options.iter().find(|option| option.category.as_ref() == Some(&category));
        let option = option.or_else(|| options.iter().find(|option| option.id.as_str() == name));
        let option = option.ok_or_else(|| Failure::usage(format!("the agent lets no {name} be chosen")))?;
        options = set(session, option, value).await?;
    }
    for (key, value) in &args.set {
        let option = options.iter().find(|option| option.id.as_str() == key).ok_or_else(|| {
            let known: Vec<_> = options.iter().map(|option| option.id.as_str()).collect();
            Failure::usage(format!("the agent has no option `{key}`\nhint: it has {}", list(&known)))
        })?;
        options = set(session, option, value).await?;
    }
    Ok(())
}

/// Sets one option: the one of a category, or the one with an id.
pub(crate) async fn set_by_name(
    session: &Session,
    setting: &Setting,
    value: &str,
) -> Result<Vec<ConfigOption>, Failure> {
    let options = session.options();
    let (category, name) = match setting {
        Setting::Model => (Some(ConfigCategory::Model), "model"),
        Setting::Mode => (Some(ConfigCategory::Mode), "mode"),
        Setting::Option(id) => (None, id.as_str()),
    };
    let is_it = |option: &&ConfigOption| category.is_some() && option.category == category;
    let option = options.iter().find(is_it).or_else(|| options.iter().find(|option| option.id.as_str() == name));
    let option = option.ok_or_else(|| {
        let known: Vec<_> = options.iter().map(|option| option.id.as_str()).collect();
        Failure::usage(format!("the agent has no option `{name}`\nhint: it has {}", list(&known)))
    })?;
    set(session, option, value).await
}

async fn set(session: &Session, option: &ConfigOption, value: &str) -> Result<Vec<ConfigOption>, Failure> {
    let setting = setting(option, value)?;
    Ok(session.set_option(option.id.clone(), setting).await?)
}

/// The setting that a person means: by its id, or by its name if only one is called so.
fn setting(option: &ConfigOption, value: &str) -> Result<ConfigSetting, Failure> {
    let name = visible(option.id.as_str()).into_owned();
    match &option.kind {
        ConfigKind::Boolean(_) => match value {
            "true" | "on" | "yes" => Ok(true.into()),
            "false" | "off" | "no" => Ok(false.into()),
            _ => Err(Failure::usage(format!("option `{name}` is either true or false"))),
        },
        ConfigKind::Select(select) => {
            if let Some(found) = select.options.iter().find(|offered| offered.value.as_str() == value) {
                return Ok(found.value.clone().into());
            }
            let mut named = select.options.iter().filter(|offered| offered.name.eq_ignore_ascii_case(value));
            match (named.next(), named.next()) {
                (Some(found), None) => Ok(found.value.clone().into()),
                _ => {
                    let known: Vec<_> = select.options.iter().map(|offered| offered.value.as_str()).collect();
                    let hint = format!("hint: it can be {}", list(&known));
                    Err(Failure::usage(format!("invalid value `{value}` for option `{name}`\n{hint}")))
                }
            }
        }
        _ => Err(Failure::usage(format!("option `{name}` is of an unknown kind"))),
    }
}

fn list(words: &[&str]) -> String {
    match words {
        [] => "none".into(),
        words => visible(&words.join(", ")).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use attache::model::config::{ConfigSelect, ConfigSwitch, ConfigValue};

    use super::*;

    #[test]
    fn a_value_is_found_by_id_or_by_name() {
        let values =
            vec![ConfigValue::new("a-1", "Fast"), ConfigValue::new("b-2", "Deep"), ConfigValue::new("c", "deep")];
        let select = ConfigOption::new("model", "Model", ConfigKind::Select(ConfigSelect::new("a-1", values)));
        let check = |value: &str| setting(&select, value).map_err(|failure| failure.message);
        assert_eq!(check("b-2"), Ok(ConfigSetting::Id("b-2".into())));
        assert_eq!(check("fast"), Ok(ConfigSetting::Id("a-1".into())));
        assert_eq!(check("deep").unwrap_err(), "invalid value `deep` for option `model`\nhint: it can be a-1, b-2, c");
        let switch = ConfigOption::new("web", "Web", ConfigKind::Boolean(ConfigSwitch::new(false)));
        assert_eq!(setting(&switch, "on").map_err(|failure| failure.message), Ok(ConfigSetting::Boolean(true)));
        assert!(setting(&switch, "maybe").is_err());
    }
}
