//! `attache agent`: the coding agent that is built in, its keys, its models and its sessions.

pub(crate) mod sessions;
mod unready;

use std::fmt;
use std::io::{IsTerminal, Read};
use std::time::Duration;

use attache_agent::model::catalog::{self, PROVIDERS, Provider};
use attache_agent::model::price::Cost;
use attache_agent::{Budget, Choice, CodingAgent, Config, Keys, Lists, Mode, ModelList, SandboxMode};
use serde::Serialize;

use crate::agents::print_lines;
use crate::cli::{AgentCommand, AgentMode, AgentOptions, CommandSandbox, ModelChoice, ModelListOptions, Permissions};
use crate::connect::{here, until_interrupted};
use crate::exit::{Code, Failure};
use crate::tty::Tty;
use crate::visible::{self, one_line};
use crate::{paths, rule_option};

/// The variable that chooses a model.
pub(crate) const MODEL: &str = "ATTACHE_MODEL";

/// The variable that says where its provider is.
pub(crate) const BASE_URL: &str = "ATTACHE_BASE_URL";

/// The variable that, set to `off`, keeps the agent from asking providers which models they have; set to `remote`, from
/// looking for servers on this machine.
const MODEL_LISTS: &str = "ATTACHE_MODEL_LISTS";

/// The variable that adds to the system prompt.
pub(crate) const SYSTEM: &str = "ATTACHE_SYSTEM";

/// Does what the command line says.
pub(crate) async fn run(options: AgentOptions) -> Result<(), Failure> {
    match options.command {
        None => serve(options).await,
        Some(AgentCommand::Login { provider }) => until_interrupted(login(&provider)).await,
        Some(AgentCommand::Logout { provider }) => logout(&provider),
        Some(AgentCommand::Models(list)) => models(&list).await,
        Some(AgentCommand::Sessions(command)) => sessions::run(command).await,
    }
}

/// Serves on stdin and stdout until the client closes them. What is wrong with the settings is told to the client, which
/// shows it; a process that is gone before it has said a word shows nothing.
async fn serve(options: AgentOptions) -> Result<(), Failure> {
    let is_terminal = std::io::stdin().is_terminal();
    let served = match prepare(options).await? {
        Ok(agent) => agent.server().stdio().await,
        Err(failure) if is_terminal => return Err(failure),
        Err(failure) => {
            let agent = unready::Unready { why: failure.message.clone() };
            return agent.server().stdio().await.map_err(Failure::from).and(Err(failure));
        }
    };
    match served {
        Ok(()) | Err(attache::Error::Closed(_)) => Ok(()),
        Err(error) => Err(Failure::new(Code::Agent, error.to_string())),
    }
}

/// The agent that the command line and the settings describe. The inner error is about the settings.
async fn prepare(options: AgentOptions) -> Result<Result<CodingAgent, Failure>, Failure> {
    let mut config = match config(&options.choice) {
        Ok((config, _)) => config,
        Err(failure) => return Ok(Err(failure)),
    };
    if let Some(mode) = options.mode {
        config.mode = match mode {
            AgentMode::Ask => Mode::Ask,
            AgentMode::Architect => Mode::Architect,
            AgentMode::Code => Mode::Code,
        };
    }
    if let Some(sandbox) = options.sandbox {
        config.sandbox = match sandbox {
            CommandSandbox::On => SandboxMode::On,
            CommandSandbox::Offline => SandboxMode::Offline,
            CommandSandbox::Off => SandboxMode::Off,
        };
    }
    config.permissions = options.permissions.map(Permissions::policy);
    if let Some(requests) = options.max_turn_requests {
        config.limits.requests = requests;
    }
    config.run_budget = Budget { cost: options.max_cost.and_then(Cost::from_dollars), tokens: options.max_tokens };
    config.system = options.system.as_deref().map(system_text).transpose()?.or_else(|| variable(SYSTEM));
    config.rules = rule_option::read(&options.allow, &options.deny)?;
    if std::io::stdin().is_terminal() {
        eprintln!("attache agent speaks the Agent Client Protocol on stdin and stdout; an editor starts it.");
        eprintln!("hint: to use it from this terminal, type `attache run help`");
    }
    Ok(CodingAgent::new(config).await.map_err(|error| Failure::usage(error.to_string())))
}

/// More than this is no instruction any more, and would not fit where it goes: into one variable.
const LONGEST_SYSTEM: u64 = 64 << 10;

/// What `--system` adds to the system prompt: a text, or that of a file.
pub(crate) fn system_text(text: &str) -> Result<String, Failure> {
    let wrong = |what: &str| Failure::usage(format!("--system `{}`: {what}", one_line(text)));
    let text_of = |path: &str| {
        let (file, _) =
            attache_host::files::open_named(&here()?.join(path), None).map_err(|error| wrong(&error.to_string()))?;
        let mut bytes = Vec::new();
        file.take(LONGEST_SYSTEM + 1).read_to_end(&mut bytes).map_err(|error| wrong(&error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8 text"))
    };
    let whole = match text.strip_prefix('@') {
        Some(path) => text_of(path)?,
        None => text.to_owned(),
    };
    match (whole.trim().is_empty(), whole.len() as u64 > LONGEST_SYSTEM || whole.contains('\0')) {
        (false, false) => Ok(whole),
        (true, _) => Err(wrong("there is nothing in it")),
        (false, true) => Err(wrong("it is longer than 64 KiB, or no text")),
    }
}

/// The value of a variable that is set to something.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Who chose the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    Option,
    Variable,
    File,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Chosen::Option => "--model",
            Chosen::Variable => MODEL,
            Chosen::File => "agent.toml",
        })
    }
}

/// The settings, with what the command line and the environment say instead, and who chose the model if anybody did.
fn config(choice: &ModelChoice) -> Result<(Config, Option<Chosen>), Failure> {
    let loaded = Config::load(paths::config()?, paths::state()?);
    let mut config = loaded.map_err(|error| Failure::usage(error.to_string()))?;
    match variable(MODEL_LISTS).as_deref() {
        Some("off") => config.lists_models = false,
        Some("remote") => config.local_servers.clear(),
        _ => {}
    }
    let base_url = choice.base_url.clone().or_else(|| variable(BASE_URL));
    let chosen = match (&choice.model, variable(MODEL), config.model.take()) {
        (Some(model), _, _) => Some((Chosen::Option, model.clone())),
        (None, Some(model), _) => Some((Chosen::Variable, model)),
        (None, None, Some(model)) => Some((Chosen::File, model)),
        (None, None, None) => None,
    };
    // An address in the file belongs to the model in the file.
    if base_url.is_some() || chosen.as_ref().is_some_and(|(by, _)| *by != Chosen::File) {
        config.base_url = base_url;
    }
    let by = match chosen {
        Some((by, model)) => {
            let id = config.model_id(&model).map_err(|error| Failure::usage(format!("{by}: {}", error.message)))?;
            config.model = Some(id);
            Some(by)
        }
        None => None,
    };
    // What is in the environment may be meant for another time.
    if choice.base_url.is_some()
        && let Some(fault) = config.base_url_fault()
    {
        return Err(Failure::usage(format!("--base-url: {fault}")));
    }
    Ok((config, by))
}

/// Whether an address can be that of the model that would be used now, or of this one.
pub(crate) fn check_base_url(model: Option<&String>, url: &str) -> Result<(), Failure> {
    config(&ModelChoice { model: model.cloned(), base_url: Some(url.to_owned()) }).map(|_| ())
}

/// The settings that the agent would have now, with this model if one is named. An error is one that it would not
/// start with.
pub(crate) fn settings(model: Option<&String>) -> Result<(Config, Option<Chosen>), Failure> {
    config(&ModelChoice { model: model.cloned(), base_url: None })
}

/// The whole name of a model.
pub(crate) fn model_id(model: &str) -> Result<String, Failure> {
    let loaded = Config::load(paths::config()?, paths::state()?);
    let config = loaded.map_err(|error| Failure::usage(error.to_string()))?;
    config.model_id(model).map_err(|error| Failure::usage(error.message))
}

/// Whether a name is that of a provider: one that is known, or one of agent.toml.
pub(crate) fn is_provider(name: &str) -> Result<bool, Failure> {
    if catalog::provider(name).is_some() {
        return Ok(true);
    }
    let loaded = Config::load(paths::config()?, paths::state()?);
    Ok(loaded.is_ok_and(|config| config.providers.contains_key(name)))
}

/// A provider that a key can be kept for.
struct KeyOwner {
    name: String,
    /// The variable that is set to a key, and comes before one that is kept.
    variable: Option<String>,
}

fn key_owner(name: &str) -> Result<KeyOwner, Failure> {
    if name == "offline" {
        return Err(Failure::usage("`offline` is built in and has no key"));
    }
    if let Some(provider) = catalog::provider(name) {
        let variable = Keys::variable(provider).map(str::to_owned);
        return Ok(KeyOwner { name: name.into(), variable });
    }
    let loaded = Config::load(paths::config()?, paths::state()?);
    let own = loaded.map(|config| config.providers).unwrap_or_default();
    match own.get(name) {
        Some(provider) => {
            let set = provider.key_env.clone().filter(|name| variable(name).is_some());
            Ok(KeyOwner { name: name.into(), variable: set })
        }
        None => {
            let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
            let names: Vec<&str> = names.into_iter().chain(own.keys().map(String::as_str)).collect();
            let names = names.join(", ");
            Err(Failure::usage(format!("there is no provider `{}`\nhint: the providers are {names}", one_line(name))))
        }
    }
}

/// Asks for a key and keeps it.
pub(crate) async fn login(provider: &str) -> Result<(), Failure> {
    let provider = key_owner(provider)?;
    let key = Tty::read_secret(&format!("Key for {} (not shown): ", provider.name), "key").await?;
    keys()?.keep_for(&provider.name, &key).map_err(|error| Failure::usage(error.to_string()))?;
    eprintln!("the key for {} is kept in a file that only you can read", provider.name);
    if let Some(variable) = provider.variable {
        eprintln!("note: {variable} is set, and comes before it");
    }
    Ok(())
}

/// Forgets a key.
pub(crate) fn logout(provider: &str) -> Result<(), Failure> {
    let provider = key_owner(provider)?;
    match keys()?.forget_for(&provider.name).map_err(|error| Failure::usage(error.to_string()))? {
        true => eprintln!("the key for {} is forgotten", provider.name),
        false => eprintln!("there was no key for {}", provider.name),
    }
    if let Some(variable) = provider.variable {
        eprintln!("note: {variable} is still set");
    }
    Ok(())
}

fn keys() -> Result<Keys, Failure> {
    Ok(Keys::new(&paths::config()?))
}

#[derive(Serialize)]
struct ProviderRow {
    provider: String,
    /// `yes`, `no`, or `not needed`.
    key: &'static str,
    variable: Option<String>,
    default_model: Option<&'static str>,
    /// The models that it lists, as far as that is known.
    models: Vec<ModelRow>,
}

#[derive(Serialize)]
struct ModelRow {
    model: String,
    context: u64,
    tools: Option<bool>,
    images: bool,
    thinks: bool,
    /// In US dollars for a million tokens.
    price: Option<PriceRow>,
}

#[derive(Serialize)]
struct PriceRow {
    input: f64,
    output: f64,
    cached: f64,
}

impl ModelRow {
    fn new(choice: &Choice) -> Self {
        let dollars = |token: u64| token as f64 / 1e6;
        let price = choice.info.price.map(|price| PriceRow {
            input: dollars(price.input),
            output: dollars(price.output),
            cached: dollars(price.cached),
        });
        let info = &choice.info;
        let (images, thinks) = (info.images, info.thinks);
        ModelRow { model: choice.id.clone(), context: info.context, tools: choice.tools, images, thinks, price }
    }
}

/// How long lists of models are waited for.
const LISTS_TIME: Duration = Duration::from_secs(20);

/// Lists the providers and their models, and what would be used now.
pub(crate) async fn models(list: &ModelListOptions) -> Result<(), Failure> {
    let ModelListOptions { choice, refresh, json } = list;
    let (config, chosen) = config(choice)?;
    let keys = keys()?;
    if let Err(error) = keys.kept() {
        eprintln!("warning: {error}");
    }
    let models = ModelList::find(&config).await;
    if let Ok(models) = &models {
        let which = if *refresh { Lists::All } else { Lists::Missing };
        let tell = |names: &[&str]| eprintln!("fetching lists of models: {}", one_line(&names.join(", ")));
        let failed = |name: &str, why: &str| eprintln!("warning: no list from {}: {}", one_line(name), one_line(why));
        if tokio::time::timeout(LISTS_TIME, models.fetch_lists(which, tell, failed)).await.is_err() {
            eprintln!("warning: not all lists came within {} s", LISTS_TIME.as_secs());
        }
    }
    let known: Vec<Choice> = models.as_ref().map(ModelList::known).unwrap_or_default();
    let of = |provider: &str| -> Vec<ModelRow> {
        known.iter().filter(|choice| choice.info.provider == provider).map(ModelRow::new).collect()
    };
    let row = |provider: &'static Provider| ProviderRow {
        provider: provider.name.into(),
        key: match keys.find(provider) {
            Ok(Some(_)) => "yes",
            _ if provider.needs_key => "no",
            _ => "not needed",
        },
        variable: provider.key_variables.first().map(|&name| name.to_owned()),
        default_model: provider.default_model,
        models: of(provider.name),
    };
    let own = config.providers.iter().map(|(name, own)| {
        let variables: Vec<&str> = own.key_env.as_deref().into_iter().collect();
        // A header has the key of a server that wants it elsewhere.
        let missing = own.missing_variable();
        let key = match keys.find_for(name, &variables) {
            _ if missing.is_some() => "no",
            Ok(Some(_)) => "yes",
            _ if own.key_env.is_some() => "no",
            _ => "not needed",
        };
        if let Some(variable) = &missing {
            let (name, variable) = (one_line(name), one_line(variable));
            eprintln!("warning: a header of provider `{name}` needs ${variable}, which is not set");
        }
        let variable = missing.or_else(|| own.key_env.clone());
        ProviderRow { provider: name.clone(), key, variable, default_model: None, models: of(name) }
    });
    let offline = ProviderRow {
        provider: "offline".into(),
        key: "not needed",
        variable: None,
        default_model: Some("rules"),
        models: of("offline"),
    };
    let rows: Vec<ProviderRow> = PROVIDERS.iter().map(row).chain(own).chain([offline]).collect();
    if *json {
        return print_lines(rows.iter().map(visible::json));
    }
    let models = models.map_err(|error| Failure::usage(error.to_string()))?;
    print_lines(rows.iter().map(provider_line))?;
    print_lines(std::iter::once(String::new()).chain(known.iter().map(model_line)))?;
    let why = chosen.map_or_else(|| models.why().to_owned(), |by| by.to_string());
    eprintln!("would use: {} ({})", one_line(models.first()), one_line(&why));
    Ok(())
}

fn provider_line(row: &ProviderRow) -> String {
    let model = row.default_model.map(|model| format!("  {}:{model}", row.provider)).unwrap_or_default();
    let variable = row.variable.as_deref().unwrap_or_default();
    let line = format!("{:<12} key: {:<10} {variable:<20}{model}", row.provider, row.key);
    line.trim_end().to_owned()
}

fn model_line(choice: &Choice) -> String {
    format!("{:<44} {}", one_line(&choice.id), choice.about()).trim_end().to_owned()
}
