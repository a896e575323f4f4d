//! The lists of models that providers give: read from where they were kept, and fetched in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::{ModelList, OFFLINE, Shared, provider_of};
use crate::config::Config;
use crate::model::catalog::{self, PROVIDERS};
use crate::model::discover;
use crate::model::listing::{self, Cache, Source};

/// How long is looked for servers on this machine where nobody waits for it.
const DISCOVERY: Duration = Duration::from_millis(500);

/// Which lists to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lists {
    /// All that can be had.
    All,
    /// Those that were never fetched, unless nobody is to be asked for lists.
    Missing,
}

/// How old a list is that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Missing,
    Old,
    New,
}

impl ModelList {
    /// The models of the lists that were kept, as `provider:name`. Reads files, looks for no key and asks nobody: whoever
    /// kept a list could ask for it once.
    pub fn kept_names(config: &Config) -> Vec<String> {
        let cache = Cache::new(&config.state_dir);
        let chosen = config.model.as_deref().map(provider_of);
        let known = PROVIDERS.iter().map(|provider| {
            let own = config.base_url.as_deref().filter(|_| chosen == Some(provider.name));
            (provider.name, own.unwrap_or(provider.base_url))
        });
        let own = config.providers.iter().map(|(name, own)| (name.as_str(), own.base_url.as_str()));
        let kept = known.chain(own).filter_map(|(name, base_url)| Some((name, cache.read(name, base_url)?)));
        kept.flat_map(|(name, kept)| kept.models.into_iter().map(move |model| format!("{name}:{}", model.name)))
            .collect()
    }

    /// Fetches lists that are old or missing, in the background. What a server of one's own has room for may be something
    /// else each time, so it is asked again.
    pub(crate) fn refresh(&self) {
        if !self.shared.config.lists_models {
            return;
        }
        let shared = self.shared.clone();
        // Who chose to do without a language model waits for nobody, and asks nobody.
        if shared.is_offline() {
            return;
        }
        let first = provider_of(&shared.first).to_owned();
        // At once, so that a prompt that follows finds something to wait for.
        let has_begun = shared.begin(&first);
        tokio::spawn(async move {
            let is_old = |source: &Source, age: Age| age != Age::New || source.is_own;
            let known = async {
                let is_mine = |name: &str| (has_begun && name == first) || shared.begin(name);
                shared
                    .fetch_where(|source, age| is_old(source, age) && is_mine(&source.provider), |_| {}, |_, _| {})
                    .await;
                if has_begun {
                    shared.end(&first);
                }
            };
            // A port that does not answer keeps nobody else waiting.
            let local = async {
                shared.look_for_servers().await;
                let is_mine = |name: &str| shared.is_found(name) && shared.begin(name);
                shared
                    .fetch_where(|source, age| is_old(source, age) && is_mine(&source.provider), |_| {}, |_, _| {})
                    .await;
            };
            tokio::join!(known, local);
        });
    }

    /// Fetches lists, and waits for them. Whose lists these are is told before, if there are any; and of each that fails,
    /// whose it is and why.
    pub async fn fetch_lists(&self, which: Lists, tell: impl FnOnce(&[&str]), failed: impl Fn(&str, &str)) {
        let shared = &self.shared;
        if which == Lists::Missing && !shared.config.lists_models {
            return;
        }
        shared.look_for_servers().await;
        let is_wanted = |age: Age| which == Lists::All || age == Age::Missing;
        shared.fetch_where(|source, age| is_wanted(age) && shared.begin(&source.provider), tell, failed).await;
    }

    /// Waits until the list of a model's provider is there, if that is a server of one's own which is being asked; not
    /// longer than this. Of others, the table knows enough.
    pub(crate) async fn wait_for_list(&self, id: &str, limit: Duration) {
        let provider = provider_of(id);
        let is_hosted = catalog::provider(provider).is_some_and(|provider| provider.needs_key);
        if is_hosted && !self.shared.is_elsewhere(id) {
            return;
        }
        let mut fetching = self.shared.fetching.subscribe();
        let _ = tokio::time::timeout(limit, fetching.wait_for(|names| !names.contains(provider))).await;
    }
}

impl Shared {
    /// Looks for model servers on this machine. One whose address the user gave is not looked for, and none for those who
    /// chose to do without.
    async fn look_for_servers(&self) {
        if self.is_offline() {
            return;
        }
        let mut places = self.config.local_servers.clone();
        places.retain(|place| self.given_url(place.provider).is_none());
        for found in discover::all(&places, DISCOVERY).await {
            let provider = found.provider;
            let mut all = crate::lock(&self.found);
            match all.iter_mut().find(|known| known.provider == provider) {
                Some(known) if *known == found => continue,
                Some(known) => *known = found,
                None => all.push(found),
            }
            drop(all);
            self.forget_opened(provider);
            self.news.send_replace(());
        }
    }

    /// Whether the user chose to do without a language model.
    fn is_offline(&self) -> bool {
        self.is_chosen && self.first == OFFLINE
    }

    /// Makes the models of a provider anew: more is known of them now.
    fn forget_opened(&self, provider: &str) {
        crate::lock(&self.open).retain(|id, _| provider_of(id) != provider);
    }

    fn is_found(&self, provider: &str) -> bool {
        crate::lock(&self.found).iter().any(|found| found.provider == provider)
    }

    /// Fetches the lists that are wanted, and waits for them.
    async fn fetch_where(
        self: &Arc<Self>,
        is_wanted: impl Fn(&Source, Age) -> bool,
        tell: impl FnOnce(&[&str]),
        failed: impl Fn(&str, &str),
    ) {
        let shared = self.clone();
        let sources = crate::off_thread(move || shared.sources()).await.into_iter();
        let sources: Vec<Source> =
            sources.filter(|(source, age)| is_wanted(source, *age)).map(|(source, _)| source).collect();
        let names: Vec<&str> = sources.iter().map(|source| source.provider.as_str()).collect();
        if !names.is_empty() {
            tell(&names);
        }
        let fetch = |source| async move { (source, self.fetch(source).await) };
        let mut fetches: FuturesUnordered<_> = sources.iter().map(fetch).collect();
        while let Some((source, fetched)) = fetches.next().await {
            if let Err(why) = fetched {
                failed(&source.provider, &why);
            }
        }
    }

    /// Whom to ask for lists: who has a key, who was found, who was chosen; and how old that is which was kept of it.
    fn sources(&self) -> Vec<(Source, Age)> {
        let cache = Cache::new(&self.config.state_dir);
        let known = PROVIDERS.iter().filter_map(|provider| {
            let id = format!("{}:", provider.name);
            let base_url = self.base_url(&id);
            let key = self.keys.find(provider).ok().flatten();
            let is_wanted =
                base_url.is_some() || if provider.needs_key { key.is_some() } else { self.first.starts_with(&id) };
            is_wanted.then(|| Source {
                provider: provider.name.into(),
                api: provider.api,
                is_own: !provider.needs_key || base_url.is_some(),
                base_url: base_url.unwrap_or_else(|| provider.base_url.into()),
                key,
                headers: Vec::new(),
            })
        });
        let own = self.config.providers.iter().filter_map(|(name, own)| {
            let key = self.keys.find_for(name, &own.variables()).ok().flatten();
            (key.is_some() || own.key_env.is_none()).then_some(())?;
            Some(Source {
                provider: name.clone(),
                api: own.api,
                base_url: own.base_url.clone(),
                key,
                headers: own.filled_headers(name).ok()?,
                is_own: true,
            })
        });
        let with_age = |source: Source| {
            let age = match cache.read(&source.provider, &source.base_url) {
                None => Age::Missing,
                Some(kept) if kept.is_stale() => Age::Old,
                Some(_) => Age::New,
            };
            (source, age)
        };
        known.chain(own).map(with_age).collect()
    }

    /// Reads the lists that were kept, however old.
    pub(super) fn read_kept(&self) {
        let cache = Cache::new(&self.config.state_dir);
        for (source, _) in self.sources() {
            if let Some(kept) = cache.read(&source.provider, &source.base_url) {
                crate::lock(&self.listed).insert(source.provider, kept.models);
            }
        }
    }

    /// Notes that a list is being fetched. Not if it is already.
    fn begin(&self, provider: &str) -> bool {
        self.fetching.send_if_modified(|names| names.insert(provider.to_owned()))
    }

    fn end(&self, provider: &str) {
        self.fetching.send_if_modified(|names| names.remove(provider));
    }

    async fn fetch(self: &Arc<Self>, source: &Source) -> Result<(), String> {
        let fetched = match listing::fetch(source).await {
            Ok(models) => {
                let (shared, source) = (self.clone(), source.clone());
                let keep = move || {
                    Cache::new(&shared.config.state_dir).write(&source.provider, &source.base_url, &models);
                    let before = crate::lock(&shared.listed).insert(source.provider.clone(), models.clone());
                    if before.as_ref() != Some(&models) {
                        shared.forget_opened(&source.provider);
                        shared.news.send_replace(());
                    }
                };
                let _ = crate::spawn_blocking(keep).await;
                Ok(())
            }
            Err(why) => Err(why),
        };
        self.end(&source.provider);
        fetched
    }
}
