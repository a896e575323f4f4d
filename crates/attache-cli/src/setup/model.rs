//! The first two questions: which model, and with which key or at which server.

use std::time::Duration;

use attache::model::Secret;
use attache_agent::model::catalog::{self, PROVIDERS, Provider};
use attache_agent::model::discover::{self, Found};
use attache_agent::{Config, Keys};

use super::options::Setup;
use super::questions::{Person, Row};
use crate::agent;
use crate::exit::Failure;
use crate::tty::Tty;
use crate::visible::one_line;

/// The model that is no language model.
pub(super) const OFFLINE: &str = "offline:rules";

/// How long servers of this machine have to answer. One that has just been woken up takes a moment.
const DISCOVERY: Duration = Duration::from_millis(700);

/// How many models of a server are shown.
const MOST_MODELS: usize = 30;

/// What was answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// The model, as `provider:name`.
    pub(super) id: String,
    pub(super) base_url: Option<String>,
    pub(super) key: Key,
}

/// Where the key of a model's provider comes from.
#[derive(Debug)]
pub(super) enum Key {
    NotNeeded,
    /// It is there already: in this variable, or kept.
    There(Option<String>),
    /// It has to be kept.
    Keep(Secret),
}

impl Answer {
    pub(super) fn provider(&self) -> &str {
        provider_of(&self.id)
    }
}

fn provider_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(provider, _)| provider)
}

/// What is known before anybody is asked.
pub(super) struct Known<'a> {
    pub(super) config: &'a Config,
    keys: Keys,
    /// The servers of this machine that answer.
    found: Vec<Found>,
}

impl<'a> Known<'a> {
    /// Looks for keys, and for servers on this machine.
    pub(super) async fn look(config: &'a Config) -> Result<Self, Failure> {
        let keys = Keys::new(&config.config_dir);
        // A file of keys that is broken is found out now, not when one has to be kept.
        keys.kept().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Known { config, keys, found: discover::all(&config.local_servers, DISCOVERY).await })
    }

    /// Where the key of a provider is, if there is one: in a variable, or kept.
    fn key(&self, provider: &str) -> Option<Option<String>> {
        let variables: Vec<&str> = match (self.config.providers.get(provider), catalog::provider(provider)) {
            (Some(own), _) => own.key_env.as_deref().into_iter().collect(),
            (None, Some(known)) => known.key_variables.to_vec(),
            (None, None) => Vec::new(),
        };
        let is_set = |name: &&&str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
        if let Some(variable) = variables.iter().find(is_set) {
            return Some(Some((*variable).to_owned()));
        }
        self.keys.kept().is_ok_and(|kept| kept.iter().any(|name| name == provider)).then_some(None)
    }

    fn found(&self, provider: &str) -> Option<&Found> {
        self.found.iter().find(|found| found.provider == provider)
    }

    /// The whole name of a model that was named, and its address if that is not the usual one.
    fn named(&self, model: &str, base_url: Option<&String>) -> Result<(String, Option<String>), Failure> {
        let found = self.found(provider_of(model)).filter(|_| base_url.is_none());
        // A server of this machine has no usual model, but perhaps it has one.
        let is_bare = !model.trim_end_matches(':').contains(':');
        let model = match found.and_then(|found| found.models.first()).filter(|_| is_bare) {
            Some(first) => format!("{}:{first}", model.trim_end_matches(':')),
            None => model.to_owned(),
        };
        let id = self.config.model_id(&model).map_err(|error| Failure::usage(format!("--model: {}", error.message)))?;
        if let Some(url) = base_url {
            agent::check_base_url(Some(&id), url)?;
        }
        let base_url = base_url.cloned().or_else(|| found.and_then(unusual_address));
        Ok((id, base_url))
    }

    /// Whether there is no key, and the provider answers nobody without one.
    fn lacks_key(&self, id: &str, base_url: Option<&String>) -> bool {
        let provider = provider_of(id);
        let is_own = self.config.providers.contains_key(provider);
        let needs = catalog::provider(provider).is_some_and(|known| known.needs_key && !is_own && base_url.is_none());
        needs && self.key(provider).is_none()
    }

    /// What the options leave open that a person would have to say.
    pub(super) fn missing(&self, options: &Setup) -> Result<Vec<&'static str>, Failure> {
        let Some(model) = options.model.as_ref() else {
            return Ok(if self.current().is_none() { vec!["--model"] } else { Vec::new() });
        };
        let (id, base_url) = self.named(model, options.base_url.as_ref())?;
        let lacks_key = options.key_from.is_none() && self.lacks_key(&id, base_url.as_ref());
        Ok(if lacks_key { vec!["--key-from"] } else { Vec::new() })
    }

    /// The answers of the options, and of the person where these say nothing.
    pub(super) async fn answer(&self, options: &Setup, person: Option<&Person>) -> Result<Answer, Failure> {
        match (&options.model, person) {
            (Some(model), _) => {
                let (id, base_url) = self.named(model, options.base_url.as_ref())?;
                let key = self.key_of(&id, base_url.as_ref(), options, person).await?;
                Ok(Answer { id, base_url, key })
            }
            (None, Some(person)) => self.asked(options, person).await,
            (None, None) => {
                let (id, base_url) = self.current().ok_or_else(|| Failure::usage("missing option `--model`"))?;
                let key = self.key_of(&id, base_url.as_ref(), options, None).await?;
                Ok(Answer { id, base_url, key })
            }
        }
    }

    /// The model that agent.toml has.
    fn current(&self) -> Option<(String, Option<String>)> {
        let id = self.config.model_id(self.config.model.as_deref()?).ok()?;
        Some((id, self.config.base_url.clone()))
    }

    async fn key_of(
        &self,
        id: &str,
        base_url: Option<&String>,
        options: &Setup,
        person: Option<&Person>,
    ) -> Result<Key, Failure> {
        let provider = provider_of(id);
        if let Some(from) = &options.key_from {
            if id == OFFLINE {
                return Err(Failure::usage("`offline` is built in and has no key"));
            }
            return Ok(Key::Keep(key_from(provider, from).await?));
        }
        match (self.key(provider), person) {
            _ if id == OFFLINE => Ok(Key::NotNeeded),
            (Some(there), _) => Ok(Key::There(there)),
            (None, Some(person)) if self.lacks_key(id, base_url) => Ok(Key::Keep(typed_key(person, provider).await?)),
            (None, _) => Ok(Key::NotNeeded),
        }
    }

    /// Asks which model, and with which key or at which server.
    async fn asked(&self, options: &Setup, person: &Person) -> Result<Answer, Failure> {
        let offers = self.offers();
        let rows: Vec<Row> = offers.iter().map(|offer| offer.row(self)).collect();
        let offer = &offers[person.choose("1 of 3: which model?", &rows).await?];
        let (id, base_url) = match offer {
            Offer::Current => self.current().unwrap_or_default(),
            Offer::Provider(provider) => (default_of(provider), None),
            Offer::Server(found) => (which_of(found, person).await?, unusual_address(found)),
            Offer::Other => (self.other(person).await?, None),
            Offer::Address => {
                let (id, base_url) = self.address(person).await?;
                let key = match options.key_from.as_deref() {
                    Some(from) => Key::Keep(key_from("openai", from).await?),
                    None => optional_key(person).await?,
                };
                return Ok(Answer { id, base_url: Some(base_url), key });
            }
            Offer::Offline => (OFFLINE.into(), None),
        };
        let key = match (offer, self.key(provider_of(&id))) {
            (Offer::Provider(provider), Some(there)) if options.key_from.is_none() => {
                which_key(person, provider.name, there).await?
            }
            _ => self.key_of(&id, base_url.as_ref(), options, Some(person)).await?,
        };
        Ok(Answer { id, base_url, key })
    }

    /// What there is to choose, the likeliest first.
    fn offers(&self) -> Vec<Offer<'_>> {
        let current = self.current().into_iter().map(|_| Offer::Current);
        let is_there = |provider: &&Provider| provider.needs_key && self.key(provider.name).is_some();
        let providers = PROVIDERS.iter().filter(is_there).map(Offer::Provider);
        let servers = self.found.iter().map(Offer::Server);
        let rest = [Offer::Other, Offer::Address, Offer::Offline];
        current.chain(providers).chain(servers).chain(rest).collect()
    }

    /// A provider that is named, with its usual model.
    async fn other(&self, person: &Person) -> Result<String, Failure> {
        let hosted: Vec<&Provider> = PROVIDERS.iter().filter(|provider| provider.needs_key).collect();
        let rows: Vec<Row> = hosted.iter().map(|provider| Row::new(provider.name, default_of(provider))).collect();
        let row = person.choose("2 of 3: which provider?", &rows).await?;
        Ok(default_of(hosted[row]))
    }

    /// A server that speaks OpenAI's chat completions, by its address.
    async fn address(&self, person: &Person) -> Result<(String, String), Failure> {
        loop {
            let url = person.line("2 of 3: the server's address, such as http://host:8000/v1: ").await?;
            let name = person.line("The model's name there: ").await?;
            if name.is_empty() {
                person.show("  It has to be named, as the server lists it.\n").await?;
                continue;
            }
            let named = self.config.model_id(&format!("openai:{name}"));
            let named = named.map_err(|error| Failure::usage(error.message));
            match named.and_then(|id| agent::check_base_url(Some(&id), &url).map(|()| (id, url))) {
                Ok(named) => return Ok(named),
                Err(failure) => person.show(&format!("  {}\n", crate::visible::visible(&failure.message))).await?,
            }
        }
    }
}

/// A row of the first question.
enum Offer<'a> {
    /// The model that agent.toml has.
    Current,
    /// A provider whose key is there.
    Provider(&'static Provider),
    /// A server of this machine.
    Server(&'a Found),
    /// A provider whose key is not there.
    Other,
    /// A server somewhere.
    Address,
    Offline,
}

impl Offer<'_> {
    fn row(&self, known: &Known<'_>) -> Row {
        match self {
            Offer::Current => Row::new(known.config.model.clone().unwrap_or_default(), "as it is in agent.toml"),
            Offer::Provider(provider) => {
                let why = known.key(provider.name).flatten();
                let why = why.map_or_else(|| "its key is kept".into(), |variable| format!("{variable} is set"));
                Row::new(default_of(provider), why)
            }
            Offer::Server(found) => {
                let models = match found.models.len() {
                    1 => found.models[0].clone(),
                    count => format!("{count} models"),
                };
                Row::new(found.provider, format!("on this machine: {models}"))
            }
            Offer::Other => Row::new("key", "a provider that you have a key for"),
            Offer::Address => Row::new("server", "a server whose address you know, which speaks like OpenAI"),
            Offer::Offline => Row::new("offline", "no language model: follows plain commands"),
        }
    }
}

fn default_of(provider: &Provider) -> String {
    format!("{}:{}", provider.name, provider.default_model.unwrap_or_default())
}

/// The address of a server of this machine, if it is another than the usual one.
fn unusual_address(found: &Found) -> Option<String> {
    let usual = catalog::provider(found.provider).map(|provider| provider.base_url);
    (usual != Some(found.base_url.as_str())).then(|| found.base_url.clone())
}

async fn which_of(found: &Found, person: &Person) -> Result<String, Failure> {
    let id = |name: &str| format!("{}:{name}", found.provider);
    let rows: Vec<Row> = found.models.iter().take(MOST_MODELS).map(|name| Row::new(id(name), "")).collect();
    let row = match rows.len() {
        1 => 0,
        _ => person.choose(&format!("2 of 3: which model of {}?", found.provider), &rows).await?,
    };
    Ok(id(&found.models[row]))
}

/// Asks what to do with a key that is there.
async fn which_key(person: &Person, provider: &str, there: Option<String>) -> Result<Key, Failure> {
    let other = Row::new("other", "type another one");
    let Some(variable) = there else {
        let rows = [Row::new("kept", "the one that is kept"), other];
        return match person.choose("2 of 3: which key?", &rows).await? {
            0 => Ok(Key::There(None)),
            _ => Ok(Key::Keep(typed_key(person, provider).await?)),
        };
    };
    let rows = [
        Row::new(&variable, "of your environment; an editor that is started from the desktop may not have it"),
        Row::new("copy", "keep a copy of it in a file that only you can read, for every editor"),
        other,
    ];
    match person.choose("2 of 3: which key?", &rows).await? {
        0 => Ok(Key::There(Some(variable))),
        1 => Ok(Key::Keep(key_from(provider, &variable).await?)),
        _ => Ok(Key::Keep(typed_key(person, provider).await?)),
    }
}

async fn optional_key(person: &Person) -> Result<Key, Failure> {
    loop {
        let typed: Secret = person.hidden("Its key, if it wants one (not shown; Enter alone is none): ").await?.into();
        if typed.expose().is_empty() {
            return Ok(Key::NotNeeded);
        }
        match checked(typed) {
            Ok(key) => return Ok(Key::Keep(key)),
            Err(failure) => person.show(&format!("  {}\n", failure.message)).await?,
        }
    }
}

async fn typed_key(person: &Person, provider: &str) -> Result<Secret, Failure> {
    loop {
        let key: Secret = person.hidden(&format!("2 of 3: key for {provider} (not shown): ")).await?.into();
        match checked(key) {
            Ok(key) => return Ok(key),
            Err(failure) => person.show(&format!("  {}\n", failure.message)).await?,
        }
    }
}

/// The key of a variable, or of stdin. What was given is not repeated: it may be the key itself.
async fn key_from(provider: &str, from: &str) -> Result<Secret, Failure> {
    if from == "-" {
        let key = Tty::read_secret(&format!("Key for {} (not shown): ", one_line(provider)), "key").await?;
        return checked(key.into());
    }
    let value = std::env::var(from).ok().filter(|value| !value.trim().is_empty());
    let value = value.ok_or_else(|| {
        Failure::usage(
            "--key-from: no environment variable of that name is set\nhint: `--key-from -` reads the key from stdin",
        )
    })?;
    checked(value.into())
}

fn checked(key: Secret) -> Result<Secret, Failure> {
    let text = key.expose().trim();
    match Keys::is_key(text) {
        true => Ok(text.into()),
        false => Err(Failure::usage(attache_agent::KeyError::NoKey.to_string())),
    }
}
