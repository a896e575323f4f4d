//! Which models there are, and which one a session begins with.

mod lists;
pub(crate) mod news;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use attache::Error;
use attache::model::auth::{AgentAuthMethod, AuthMethod, TerminalAuthMethod};
use attache::model::error::ErrorObject;

use crate::config::Config;
use crate::keys::{KeyError, Keys};
use crate::model::catalog::{self, Api, PROVIDERS, Provider};
use crate::model::discover::{self, Found};
use crate::model::listing::Listed;
use crate::model::metered::{Meter, Metered};
use crate::model::offline::Offline;
use crate::model::price;
use crate::model::remote::Remote;
use crate::model::retry::Retry;
use crate::model::{Failure, Model, ModelError, ModelInfo};
use crate::providers::OwnProvider;

pub use lists::Lists;

/// The name of the model that needs nothing.
pub(crate) const OFFLINE: &str = "offline:rules";
const ABOUT_OFFLINE: &str = "no language model: follows plain commands";
/// How long is looked for a server on this machine.
const DISCOVERY: Duration = Duration::from_millis(100);

/// How many models there are to choose from at most.
const MOST_CHOICES: usize = 3000;

/// All models that can be had. Each session has its own, which counts what the session's requests take.
#[derive(Clone)]
pub struct ModelList {
    shared: Arc<Shared>,
    meter: Arc<Meter>,
}

/// What all sessions have in common.
struct Shared {
    config: Config,
    keys: Keys,
    /// The model servers of this machine that answered.
    found: Mutex<Vec<Found>>,
    /// The model that sessions begin with, as `provider:name`.
    first: String,
    /// Why that one.
    why: String,
    /// Whether the user named it.
    is_chosen: bool,
    open: Mutex<HashMap<String, Arc<dyn Model>>>,
    /// Whether the user logged out: a key in the environment does not count then until they log in again.
    is_logged_out: AtomicBool,
    /// What providers list, by their names.
    listed: Mutex<BTreeMap<String, Vec<Listed>>>,
    /// The providers whose lists are being fetched.
    fetching: watch::Sender<HashSet<String>>,
    /// Tells that there are other models to choose from.
    news: watch::Sender<()>,
}

/// Who serves a model.
#[derive(Clone, Copy)]
enum Served<'a> {
    Known(&'static Provider),
    Own(&'a str, &'a OwnProvider),
}

impl Served<'_> {
    fn name(&self) -> &str {
        match self {
            Served::Known(provider) => provider.name,
            Served::Own(name, _) => name,
        }
    }

    fn api(&self) -> Api {
        match self {
            Served::Known(provider) => provider.api,
            Served::Own(_, own) => own.api,
        }
    }
}

/// A model to choose, with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The model, as `provider:name`.
    pub id: String,
    /// What is known of it.
    pub info: ModelInfo,
    /// Whether it calls tools by itself, where that is known.
    pub tools: Option<bool>,
    /// Where it comes from, in words; empty if its provider lists it.
    pub origin: &'static str,
}

impl Choice {
    /// A word about it: where it comes from, its context, what it takes in, what it costs.
    pub fn about(&self) -> String {
        let mut words = vec![self.origin.to_owned()];
        if self.info.provider != "offline" {
            words.push(format!("{}k context", self.info.context / 1000));
            words.push(if self.info.images { "images" } else { "" }.to_owned());
            words.push(if self.info.thinks { "thinks" } else { "" }.to_owned());
            words.push(if self.tools == Some(false) { "no tools" } else { "" }.to_owned());
            words.push(self.info.price.map(|price| price.words()).unwrap_or_default());
        }
        words.retain(|word| !word.is_empty());
        words.join(", ")
    }
}

impl ModelList {
    /// Looks what there is: the model that was named, else one whose key is there, else a server on this machine, else
    /// the one that is built in. Lists of models are those that were kept; nobody is asked for one.
    pub async fn find(config: &Config) -> Result<Self, ModelError> {
        let keys = Keys::new(&config.config_dir);
        let mut found = None;
        let with_key = PROVIDERS.iter().find_map(|provider| Some((provider, with_key(&keys, provider)?)));
        let (first, why) = match (&config.model, with_key) {
            (Some(model), _) => (config.model_id(model)?, "it was chosen".into()),
            (None, Some((provider, model))) => (model, keys.origin(provider)),
            (None, None) => {
                found = discover::among(&config.local_servers, DISCOVERY).await;
                match found.as_ref().and_then(|found| Some((found, found.models.first()?))) {
                    Some((found, name)) => {
                        (format!("{}:{name}", found.provider), format!("it is served at {}", found.base_url))
                    }
                    None => (OFFLINE.into(), "there is no key, and no model server on this machine".into()),
                }
            }
        };
        let is_chosen = config.model.is_some();
        let shared = Arc::new(Shared {
            config: config.clone(),
            keys,
            found: Mutex::new(found.into_iter().collect()),
            first,
            why,
            is_chosen,
            open: Mutex::default(),
            is_logged_out: AtomicBool::new(false),
            listed: Mutex::default(),
            fetching: watch::Sender::default(),
            news: watch::Sender::default(),
        });
        let reader = shared.clone();
        // Files are read where nobody waits for the runtime.
        let _ = crate::spawn_blocking(move || reader.read_kept()).await;
        Ok(ModelList { shared, meter: Arc::default() })
    }

    /// The same for a session, which counts with this meter.
    pub(crate) fn metered(&self, meter: Meter) -> Self {
        ModelList { shared: self.shared.clone(), meter: Arc::new(meter) }
    }

    /// What counts the requests.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The model that sessions begin with, as `provider:name`.
    pub fn first(&self) -> &str {
        &self.shared.first
    }

    /// Why sessions begin with that one, in words.
    pub fn why(&self) -> &str {
        &self.shared.why
    }

    /// The whole name of a model: users may leave out the part behind the colon where there is a default.
    ///
    /// ```
    /// # use attache_agent::ModelList;
    /// assert_eq!(ModelList::id_of("offline").unwrap(), "offline:rules");
    /// assert_eq!(ModelList::id_of("ollama:qwen3:8b").unwrap(), "ollama:qwen3:8b");
    /// assert!(ModelList::id_of("nobody:nothing").is_err());
    /// ```
    pub fn id_of(model: &str) -> Result<String, ModelError> {
        if matches!(model.trim(), "offline" | OFFLINE) {
            return Ok(OFFLINE.into());
        }
        let choice = catalog::parse(model)?;
        Ok(format!("{}:{}", choice.provider.name, choice.name))
    }

    /// What is known of the model that sessions begin with: what can be put into a prompt follows from it.
    pub fn first_info(&self) -> ModelInfo {
        match self.open(self.first()) {
            Ok(model) => model.info().clone(),
            Err(_) => self.facts(self.first()),
        }
    }

    /// The models to choose from, with a word about each.
    pub fn choices(&self) -> Vec<(String, String)> {
        self.known().into_iter().map(|choice| (choice.id.clone(), choice.about())).collect()
    }

    /// The models to choose from, with what is known of each: the one that sessions begin with first.
    pub fn known(&self) -> Vec<Choice> {
        let shared = &self.shared;
        let of_first = if shared.first == OFFLINE { ABOUT_OFFLINE } else { "" };
        let mut ids: Vec<(String, &'static str)> = vec![(shared.first.clone(), of_first)];
        let mut seen: HashSet<String> = HashSet::from([shared.first.clone()]);
        let mut add = |id: String, origin: &'static str| {
            if ids.len() < MOST_CHOICES && seen.insert(id.clone()) {
                ids.push((id, origin));
            }
        };
        for id in shared.config.models.keys().filter_map(|id| shared.config.model_id(id).ok()) {
            add(id, "from agent.toml");
        }
        for model in PROVIDERS.iter().filter_map(|provider| with_key(&shared.keys, provider)) {
            add(model, "");
        }
        for found in crate::lock(&shared.found).iter() {
            for name in found.models.iter().take(50) {
                add(format!("{}:{name}", found.provider), "on this machine");
            }
        }
        let listed = crate::lock(&shared.listed).clone();
        for (provider, models) in &listed {
            for model in models {
                add(format!("{provider}:{}", model.name), "");
            }
        }
        add(OFFLINE.into(), ABOUT_OFFLINE);
        let choice = |(id, origin): (String, &'static str)| {
            let (info, tools) = shared.describe(&id, &listed);
            Choice { id, info, tools, origin }
        };
        ids.into_iter().map(choice).collect()
    }

    /// Whether a model may be chosen that is not among those to choose from: its provider is known, and gave no list that
    /// it is missing from.
    pub(crate) fn may_be_unlisted(&self, id: &str) -> bool {
        let is_known = self.shared.config.model_id(id).is_ok_and(|whole| whole == id);
        is_known && !crate::lock(&self.shared.listed).contains_key(provider_of(id))
    }

    /// A model, ready to be asked.
    pub fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        let model = self.shared.open(id)?;
        Ok(Arc::new(Metered::new(model, self.meter.clone())))
    }

    /// The same for whoever must not wait for the disk, from which its key may have to be read.
    pub(crate) async fn open_aside(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(self.metered_aside(id).await?))
    }

    /// The same for a sub-agent, whose requests are also counted apart.
    pub(crate) async fn open_for_subagent(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(self.metered_aside(id).await?.for_subagent()))
    }

    async fn metered_aside(&self, id: &str) -> Result<Metered, ModelError> {
        let opened = crate::lock(&self.shared.open).get(id).cloned();
        let model = match opened {
            Some(model) => model,
            None => {
                let (shared, id) = (self.shared.clone(), id.to_owned());
                crate::off_thread(move || shared.open(&id)).await?
            }
        };
        Ok(Metered::new(model, self.meter.clone()))
    }

    /// What is known of a model without asking for its key.
    pub(crate) fn facts(&self, id: &str) -> ModelInfo {
        let listed = crate::lock(&self.shared.listed);
        self.shared.describe(id, &listed).0
    }

    /// The provider of the model that sessions begin with, if it wants a key: there is a login for it.
    fn login_provider(&self) -> Option<&'static Provider> {
        self.shared.login_provider()
    }

    /// The ways to log in.
    pub fn auth_methods(&self) -> Vec<AuthMethod> {
        let Some(provider) = self.login_provider() else {
            // Nobody chose a model that needs no key: one with a key may be had as well. The ACP registry takes no agent
            // that knows no way to log in.
            let any = AgentAuthMethod::new("key", "Key of a model provider").description(
                "Uses a key from the environment, or one that `attache login` keeps; without any, a model server on this \
                 machine, else the built-in `offline`",
            );
            return if self.shared.is_chosen { Vec::new() } else { vec![AuthMethod::Agent(any)] };
        };
        let variable = provider.key_variables.first().copied().unwrap_or_default();
        let kept = AgentAuthMethod::new("key", format!("Key for {}", provider.name))
            .description(format!("Uses ${variable}, or the key that `attache login` keeps"));
        let terminal = TerminalAuthMethod::new("login", format!("Log in to {}", provider.name))
            .description("Asks for the key in a terminal and keeps it in a file that only you can read")
            .args(["login", provider.name]);
        vec![AuthMethod::Agent(kept), AuthMethod::Terminal(terminal)]
    }

    /// The error that asks for a login, with the ways there are. One in a terminal is for clients that can show it.
    pub(crate) fn auth_required(&self, error: ModelError, has_terminal: bool) -> Error {
        let mut methods = self.auth_methods();
        methods.retain(|method| has_terminal || !matches!(method, AuthMethod::Terminal(_)));
        let refusal = ErrorObject::auth_required(&methods).with(|object| object.message.clone_from(&error.message));
        Error::Refused(error.add_details(refusal))
    }

    /// Says what is missing before sessions can be opened.
    pub fn check_key(&self) -> Result<(), ModelError> {
        match self.login_provider() {
            Some(_) => self.open(self.first()).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Logs in with the key that there is.
    pub fn log_in(&self) -> Result<(), ModelError> {
        let was_out = self.shared.is_logged_out.swap(false, Relaxed);
        let opened = self.open(self.first()).map(|_| ());
        opened.inspect_err(|_| self.shared.is_logged_out.store(was_out, Relaxed))
    }

    /// Forgets the key that was kept, and every model that was opened with one.
    pub fn log_out(&self) -> Result<(), KeyError> {
        self.shared.is_logged_out.store(true, Relaxed);
        crate::lock(&self.shared.open).clear();
        match self.login_provider() {
            Some(provider) => self.shared.keys.forget(provider).map(|_| ()),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// A model, made when it is first wanted.
    fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(model) = crate::lock(&self.open).get(id) {
            return Ok(model.clone());
        }
        let model = self.make(id)?;
        crate::lock(&self.open).insert(id.into(), model.clone());
        Ok(model)
    }

    /// Who serves a model, and its name there.
    fn parse<'a>(&'a self, id: &'a str) -> Result<(Served<'a>, &'a str), ModelError> {
        if let Some((provider, name)) = id.split_once(':')
            && let Some((provider, own)) = self.config.providers.get_key_value(provider)
        {
            return Ok((Served::Own(provider, own), name));
        }
        let choice = catalog::parse(id)?;
        Ok((Served::Known(choice.provider), choice.name))
    }

    fn make(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        if id == OFFLINE {
            return Ok(Arc::new(Offline::new()));
        }
        let (served, name) = self.parse(id)?;
        let mut settings = crate::model::remote::Settings::new(served.name(), name);
        settings.key = self.key(served)?;
        match served {
            Served::Known(provider) => {
                if self.is_logged_out.load(Relaxed)
                    && self.login_provider().is_some_and(|out| out.name == provider.name)
                {
                    return Err(ModelError::new(Failure::Key, format!("logged out of `{}`", provider.name)));
                }
                if provider.needs_key && settings.key.is_none() && !self.is_elsewhere(id) {
                    return Err(ModelError::new(Failure::Key, missing_key(provider)));
                }
                settings.base_url = self.base_url(id);
            }
            Served::Own(name, own) => {
                settings.api = Some(own.api);
                settings.base_url = Some(own.base_url.clone());
                settings.headers = own.filled_headers(name)?;
                settings.key_variable = own.key_env.clone();
            }
        }
        let (info, tools) = self.describe(id, &crate::lock(&self.listed));
        settings.context = Some(info.context);
        settings.images = Some(info.images);
        settings.audio = Some(info.audio);
        settings.thinks = Some(info.thinks);
        settings.small = Some(info.is_small);
        settings.price = info.price;
        let facts = self.config.models.get(id).cloned().unwrap_or_default();
        // What a list says cannot be done is found out; what the person says is not.
        settings.native_tools = facts.tools.or(tools.filter(|tools| !tools));
        settings.temperature = facts.temperature;
        Ok(Arc::new(Retry::new(Arc::new(Remote::new(settings)?), self.config.patience)))
    }

    fn key(&self, served: Served<'_>) -> Result<Option<attache::model::Secret>, ModelError> {
        let found = match served {
            Served::Known(provider) => self.keys.find(provider),
            Served::Own(name, own) => self.keys.find_for(name, &own.variables()),
        };
        found.map_err(|error| ModelError::new(Failure::Key, error.to_string()))
    }

    /// What is known of a model: what the person says, else its provider, else its name. And whether it calls tools by
    /// itself.
    fn describe(&self, id: &str, listed: &BTreeMap<String, Vec<Listed>>) -> (ModelInfo, Option<bool>) {
        let Ok((served, name)) = self.parse(id) else { return (Offline::new().info().clone(), None) };
        let facts = self.config.models.get(id).cloned().unwrap_or_default();
        let known = match served {
            Served::Known(provider) => Some(provider),
            Served::Own(..) => None,
        };
        let models = listed.get(served.name()).map(Vec::as_slice).unwrap_or_default();
        let said = models.iter().find(|model| model.name == name);
        // A server of this machine with a single model answers with it, whatever name it is asked by: llama.cpp lists the
        // path of a file.
        let only = models.first().filter(|_| models.len() == 1 && known.is_some_and(|provider| !provider.needs_key));
        let said = said.or(only).cloned().unwrap_or_default();
        let traits = catalog::traits(known, served.api(), name);
        // Somebody else's server has prices of its own, or none.
        let table = || price::known(served.name(), name).filter(|_| !self.is_elsewhere(id));
        let info = ModelInfo {
            provider: served.name().into(),
            name: name.into(),
            context: facts.context.or(said.context).unwrap_or(traits.context),
            images: facts.images.or(said.images).unwrap_or(traits.images),
            audio: facts.audio.unwrap_or(traits.audio),
            thinks: facts.thinks.or(said.thinks).unwrap_or(traits.thinks),
            is_small: facts.small.or(said.parameters.map(catalog::is_few)).unwrap_or(traits.is_small),
            price: facts.price().or(said.price).or_else(table),
        };
        (info, facts.tools.or(said.tools))
    }

    /// Whether a model is asked for at an address of the user's own, where no key may be needed.
    fn is_elsewhere(&self, id: &str) -> bool {
        self.base_url(id).is_some()
    }

    fn base_url(&self, id: &str) -> Option<String> {
        let provider = provider_of(id);
        self.given_url(provider).map(str::to_owned).or_else(|| {
            let found = crate::lock(&self.found);
            found.iter().find(|found| found.provider == provider).map(|found| found.base_url.clone())
        })
    }

    /// The address that the user gave. It belongs to the provider of the model that it was given with.
    fn given_url(&self, provider: &str) -> Option<&str> {
        self.config.base_url.as_deref().filter(|_| provider_of(&self.first) == provider)
    }

    /// The provider of the model that sessions begin with, if it wants a key: there is a login for it.
    fn login_provider(&self) -> Option<&'static Provider> {
        let provider = catalog::parse(&self.first).ok()?.provider;
        let is_catalogs = !self.config.providers.contains_key(provider.name);
        (is_catalogs && provider.needs_key && !self.is_elsewhere(&self.first)).then_some(provider)
    }
}

/// The part of a model's name that says who serves it.
fn provider_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(provider, _)| provider)
}

fn with_key(keys: &Keys, provider: &'static Provider) -> Option<String> {
    let name = provider.default_model.filter(|_| provider.needs_key)?;
    keys.find(provider).ok().flatten().map(|_| format!("{}:{name}", provider.name))
}

fn missing_key(provider: &Provider) -> String {
    let variable = provider.key_variables.first().copied().unwrap_or_default();
    format!("no API key for `{name}`\nhint: set {variable}, or type `attache login {name}`", name = provider.name)
}
