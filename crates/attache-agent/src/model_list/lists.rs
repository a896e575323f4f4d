//! The lists of models that providers give: read from where they were kept, and fetched in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::{ModelList, Shared, provider_of};
use crate::config::Config;
use crate::model::catalog::{self, PROVIDERS};
use crate::model::listing::{self, Cache, Source};

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
        let first = provider_of(&shared.first).to_owned();
        // At once, so that a prompt that follows finds something to wait for.
        let has_begun = shared.begin(&first);
        tokio::spawn(async move {
            let reader = shared.clone();
            let sources = tokio::task::spawn_blocking(move || reader.sources()).await.unwrap_or_default();
            let wanted = sources.into_iter().filter(|(source, is_stale)| *is_stale || source.is_own);
            let mine = |source: &Source| (has_begun && source.provider == first) || shared.begin(&source.provider);
            let wanted: Vec<Source> = wanted.map(|(source, _)| source).filter(mine).collect();
            let mut fetches: FuturesUnordered<_> = wanted.iter().map(|source| shared.fetch(source)).collect();
            while fetches.next().await.is_some() {}
            if has_begun {
                shared.end(&first);
            }
        });
    }

    /// Fetches all lists that can be had, and waits for them.
    pub async fn fetch_lists(&self) {
        let sources = self.shared.sources().into_iter().map(|(source, _)| source);
        let mut fetches: FuturesUnordered<_> = sources
            .filter(|source| self.shared.begin(&source.provider))
            .map(|source| async move { self.shared.fetch(&source).await })
            .collect();
        while fetches.next().await.is_some() {}
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
    /// Whom to ask for lists: who has a key, who was found, who was chosen; and whether what was kept of it is old.
    fn sources(&self) -> Vec<(Source, bool)> {
        let cache = Cache::new(&self.config.state_dir);
        let known = PROVIDERS.iter().filter_map(|provider| {
            let id = format!("{}:", provider.name);
            let base_url = self.base_url(&id);
            let key = self.keys.find(provider).ok().flatten();
            let is_used = self.first.starts_with(&id);
            let is_wanted = if provider.needs_key { key.is_some() || base_url.is_some() } else { is_used };
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
            let is_stale = cache.read(&source.provider, &source.base_url).is_none_or(|kept| kept.is_stale());
            (source, is_stale)
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

    async fn fetch(self: &Arc<Self>, source: &Source) {
        if let Some(models) = listing::fetch(source).await {
            let (shared, source) = (self.clone(), source.clone());
            let keep = move || {
                Cache::new(&shared.config.state_dir).write(&source.provider, &source.base_url, &models);
                let before = crate::lock(&shared.listed).insert(source.provider.clone(), models.clone());
                if before.as_ref() != Some(&models) {
                    // Those that were made with what was known before are made anew.
                    let prefix = format!("{}:", source.provider);
                    crate::lock(&shared.open).retain(|id, _| !id.starts_with(&prefix));
                }
            };
            let _ = tokio::task::spawn_blocking(keep).await;
        }
        self.end(&source.provider);
    }
}
