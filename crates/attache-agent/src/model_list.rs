//! Which models there are, and which one a session begins with.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::Error;
use attache::model::auth::{AgentAuthMethod, AuthMethod, TerminalAuthMethod};
use attache::model::error::ErrorObject;

use crate::config::Config;
use crate::keys::{KeyError, Keys};
use crate::model::catalog::{self, PROVIDERS, Provider};
use crate::model::discover::{self, Found};
use crate::model::offline::Offline;
use crate::model::remote::Remote;
use crate::model::retry::Retry;
use crate::model::{Failure, Model, ModelError, ModelInfo};

/// The name of the model that needs nothing.
const OFFLINE: &str = "offline:rules";
/// How long is looked for a server on this machine.
const DISCOVERY: Duration = Duration::from_millis(100);

/// All models that can be had.
pub struct ModelList {
    config: Config,
    keys: Keys,
    found: Option<Found>,
    /// The model that sessions begin with, as `provider:name`.
    first: String,
    /// Why that one.
    why: String,
    /// Whether the user named it.
    is_chosen: bool,
    open: Mutex<HashMap<String, Arc<dyn Model>>>,
    /// Whether the user logged out: a key in the environment does not count then until they log in again.
    is_logged_out: AtomicBool,
}

impl ModelList {
    /// Looks what there is: the model that was named, else one whose key is there, else a server on this machine, else
    /// the one that is built in.
    pub async fn find(config: &Config) -> Result<Self, ModelError> {
        let keys = Keys::new(&config.config_dir);
        let mut found = None;
        let with_key = PROVIDERS.iter().find_map(|provider| Some((provider, with_key(&keys, provider)?)));
        let (first, why) = match (&config.model, with_key) {
            (Some(model), _) => (ModelList::id_of(model)?, "it was chosen".into()),
            (None, Some((provider, model))) => (model, keys.origin(provider)),
            (None, None) => {
                found = discover::local_server(DISCOVERY).await;
                match found.as_ref().and_then(|found| Some((found, found.models.first()?))) {
                    Some((found, name)) => {
                        (format!("{}:{name}", found.provider), format!("it is served at {}", found.base_url))
                    }
                    None => (OFFLINE.into(), "there is no key, and no model server on this machine".into()),
                }
            }
        };
        let is_chosen = config.model.is_some();
        Ok(ModelList {
            config: config.clone(),
            keys,
            found,
            first,
            why,
            is_chosen,
            open: Mutex::default(),
            is_logged_out: AtomicBool::new(false),
        })
    }

    /// The model that sessions begin with, as `provider:name`.
    pub fn first(&self) -> &str {
        &self.first
    }

    /// Why sessions begin with that one, in words.
    pub fn why(&self) -> &str {
        &self.why
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
        match self.open(&self.first) {
            Ok(model) => model.info().clone(),
            Err(_) => self.facts(&self.first),
        }
    }

    /// The models to choose from, with a word about each.
    pub fn choices(&self) -> Vec<(String, String)> {
        let mut choices: Vec<(String, String)> = vec![(self.first.clone(), String::new())];
        let mut add = |id: String, about: &str| {
            if !choices.iter().any(|(known, _)| *known == id) {
                choices.push((id, about.into()));
            }
        };
        for id in self.config.models.keys().filter_map(|id| ModelList::id_of(id).ok()) {
            add(id, "from agent.toml");
        }
        for model in PROVIDERS.iter().filter_map(|provider| with_key(&self.keys, provider)) {
            add(model, "");
        }
        if let Some(found) = &self.found {
            for name in found.models.iter().take(50) {
                add(format!("{}:{name}", found.provider), "on this machine");
            }
        }
        add(OFFLINE.into(), "no language model: follows plain commands");
        choices
    }

    /// A model, ready to be asked.
    pub fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut open = crate::lock(&self.open);
        if let Some(model) = open.get(id) {
            return Ok(model.clone());
        }
        let model = self.make(id)?;
        open.insert(id.into(), model.clone());
        Ok(model)
    }

    fn make(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        if id == OFFLINE {
            return Ok(Arc::new(Offline::new()));
        }
        let choice = catalog::parse(id)?;
        let provider = choice.provider;
        if self.is_logged_out.load(Relaxed) && self.login_provider().is_some_and(|out| out.name == provider.name) {
            return Err(ModelError::new(Failure::Key, format!("logged out of `{}`", provider.name)));
        }
        let key = self.keys.find(provider).map_err(|error| ModelError::new(Failure::Key, error.to_string()))?;
        if provider.needs_key && key.is_none() && !self.is_elsewhere(id) {
            return Err(ModelError::new(Failure::Key, missing_key(provider)));
        }
        let facts = self.config.models.get(id).cloned().unwrap_or_default();
        let mut settings = crate::model::remote::Settings::new(provider.name, choice.name);
        settings.base_url = self.base_url(id);
        settings.key = key;
        settings.context = facts.context;
        settings.native_tools = facts.tools;
        settings.images = facts.images;
        settings.audio = facts.audio;
        Ok(Arc::new(Retry::new(Arc::new(Remote::new(settings)?), self.config.patience)))
    }

    /// What is known of a model without asking for its key.
    pub(crate) fn facts(&self, id: &str) -> ModelInfo {
        let facts = self.config.models.get(id).cloned().unwrap_or_default();
        match catalog::parse(id) {
            Ok(choice) => {
                let traits = catalog::traits(choice.provider, choice.name);
                ModelInfo {
                    provider: choice.provider.name.into(),
                    name: choice.name.into(),
                    context: facts.context.unwrap_or(traits.context),
                    images: facts.images.unwrap_or(traits.images),
                    audio: facts.audio.unwrap_or(traits.audio),
                    thinks: traits.thinks,
                }
            }
            Err(_) => Offline::new().info().clone(),
        }
    }

    /// Whether a model is asked for at an address of the user's own, where no key may be needed.
    fn is_elsewhere(&self, id: &str) -> bool {
        self.base_url(id).is_some()
    }

    fn base_url(&self, id: &str) -> Option<String> {
        let found = self.found.as_ref().filter(|found| id.starts_with(&format!("{}:", found.provider)));
        let own = self.config.base_url.clone().filter(|_| id == self.first);
        own.or_else(|| found.map(|found| found.base_url.clone()))
    }

    /// The provider that was chosen and wants a key: there is a login for it.
    fn login_provider(&self) -> Option<&'static Provider> {
        let provider = catalog::parse(&self.first).ok()?.provider;
        (self.is_chosen && provider.needs_key && !self.is_elsewhere(&self.first)).then_some(provider)
    }

    /// Whether there is anything to log in to.
    pub fn can_log_in(&self) -> bool {
        self.login_provider().is_some()
    }

    /// The ways to log in.
    pub fn auth_methods(&self) -> Vec<AuthMethod> {
        let Some(provider) = self.login_provider() else { return Vec::new() };
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
        if self.can_log_in() {
            self.open(&self.first)?;
        }
        Ok(())
    }

    /// Logs in with the key that there is.
    pub fn log_in(&self) -> Result<(), ModelError> {
        let was_out = self.is_logged_out.swap(false, Relaxed);
        let opened = self.open(&self.first).map(|_| ());
        opened.inspect_err(|_| self.is_logged_out.store(was_out, Relaxed))
    }

    /// Forgets the key that was kept, and every model that was opened with one.
    pub fn log_out(&self) -> Result<(), KeyError> {
        self.is_logged_out.store(true, Relaxed);
        crate::lock(&self.open).clear();
        match self.login_provider() {
            Some(provider) => self.keys.forget(provider).map(|_| ()),
            None => Ok(()),
        }
    }
}

fn with_key(keys: &Keys, provider: &'static Provider) -> Option<String> {
    let name = provider.default_model.filter(|_| provider.needs_key)?;
    keys.find(provider).ok().flatten().map(|_| format!("{}:{name}", provider.name))
}

fn missing_key(provider: &Provider) -> String {
    let variable = provider.key_variables.first().copied().unwrap_or_default();
    format!("there is no key for `{name}`\nhint: set {variable}, or type `attache login {name}`", name = provider.name)
}
