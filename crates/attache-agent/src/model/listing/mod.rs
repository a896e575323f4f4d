//! Which models a provider has, as it lists them itself. What it says is bounded, and not believed further than it goes.

mod cache;
mod parse;

use std::time::Duration;

use attache::model::Secret;
use futures_util::stream::{self, StreamExt};
use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::catalog::Api;
use super::price::Price;
use super::remote::{Address, client, headers, key_headers};

pub(crate) use cache::Cache;

/// How much of a list is read. The longest there is, with descriptions of four hundred models, has a quarter of it.
const MOST_BYTES: usize = 8 << 20;
/// How many models of one provider are kept.
const MOST_MODELS: usize = 500;
/// How many models of a server are asked about one by one.
const MOST_ASKED: usize = 30;
/// How long one request may take.
const TIME: Duration = Duration::from_secs(10);

/// A model that a provider lists. What it does not say is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) images: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thinks: Option<bool>,
    /// How many parameters it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<Price>,
}

/// Whom to ask for a list.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The provider's name.
    pub(crate) provider: String,
    pub(crate) api: Api,
    pub(crate) base_url: String,
    pub(crate) key: Option<Secret>,
    pub(crate) headers: Vec<(String, Secret)>,
    /// Whether it is a server of the person's own, whose models have the context that it gives them.
    pub(crate) is_own: bool,
}

/// Asks for the list. If there is none to be had, why, in words that have nothing secret in them.
pub(crate) async fn fetch(source: &Source) -> Result<Vec<Listed>, String> {
    let asking = Asking::new(source).await?;
    let mut models = match source.api {
        Api::Ollama => match asking.ollama().await {
            Ok(models) => models,
            Err(_) => asking.openai().await?,
        },
        Api::OpenAi | Api::Responses => asking.openai().await?,
        Api::Anthropic => parse::anthropic(&asking.get(asking.address.join("models"), &[("limit", "1000")]).await?),
        Api::Gemini => parse::gemini(&asking.get(asking.address.join("models"), &[("pageSize", "1000")]).await?),
    };
    models.retain(|model| is_plain(&model.name) && !parse::is_no_chat(&source.provider, &model.name));
    models.truncate(MOST_MODELS);
    if models.is_empty() { Err("its answer lists no model".into()) } else { Ok(models) }
}

/// Whether a name can be shown and sent as it is.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && name.chars().all(|c| c.is_ascii_graphic() || c.is_alphanumeric())
}

struct Asking<'a> {
    source: &'a Source,
    address: Address,
    client: Client,
    headers: reqwest::header::HeaderMap,
}

impl<'a> Asking<'a> {
    async fn new(source: &'a Source) -> Result<Self, String> {
        let address = Address::new(source.api, &source.base_url).map_err(|error| error.message)?;
        let client = client(&address).await.map_err(|trouble| trouble.error.message)?;
        let key = key_headers(source.api, source.key.as_ref().map(Secret::expose));
        let own = source.headers.iter().map(|(name, value)| (name.as_str(), value.expose()));
        let headers = headers(key.iter().map(|(name, value)| (*name, value.as_str())).chain(own));
        let headers = headers.ok_or("its key or a header cannot be sent")?;
        Ok(Asking { source, address, client, headers })
    }

    /// The list of a server that speaks like OpenAI, with what local servers say elsewhere.
    async fn openai(&self) -> Result<Vec<Listed>, String> {
        if self.source.provider == "lmstudio"
            && let Ok(list) = self.get(self.address.beside("api/v0/models"), &[]).await
        {
            return Ok(parse::lmstudio(&list));
        }
        let mut models = parse::openai(&self.get(self.address.join("models"), &[]).await?);
        if self.source.is_own && models.iter().any(|model| model.context.is_none()) {
            // llama.cpp says here how much of the context it has room for.
            let props = self.get(self.address.beside("props"), &[]).await;
            let props = props.map(|props| parse::props(&props)).unwrap_or_default();
            for model in &mut models {
                model.context = model.context.or(props.context);
                model.images = model.images.or(props.images);
            }
        }
        Ok(models)
    }

    /// Ollama's list, and what it says of each of the first models.
    async fn ollama(&self) -> Result<Vec<Listed>, String> {
        let mut models = parse::tags(&self.get(self.address.beside("api/tags"), &[]).await?);
        models.retain(|model| is_plain(&model.name));
        let names: Vec<String> = models.iter().take(MOST_ASKED).map(|model| model.name.clone()).collect();
        let show = |name: String| async move {
            let request = self.client.post(self.address.beside("api/show")).body(json!({ "model": name }).to_string());
            self.read(request).await.ok().map(|said| parse::show(&name, &said))
        };
        let shown: Vec<Option<Listed>> = stream::iter(names).map(show).buffered(4).collect().await;
        for (model, shown) in models.iter_mut().zip(shown) {
            if let Some(shown) = shown {
                *model = shown;
            }
        }
        Ok(models)
    }

    async fn get(&self, mut url: Url, query: &[(&str, &str)]) -> Result<Value, String> {
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.read(self.client.get(url)).await
    }

    /// The JSON that a request brings, if it is not too long and does not take too long.
    async fn read(&self, request: reqwest::RequestBuilder) -> Result<Value, String> {
        let read = read_json(request.headers(self.headers.clone()), MOST_BYTES);
        let late = |_| format!("no whole answer within {} s", TIME.as_secs());
        tokio::time::timeout(TIME, read).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }
}

/// The JSON that a request brings, if it is a success and not longer than this; else why not. No address is named: people
/// put passwords into those.
pub(super) async fn read_json(request: reqwest::RequestBuilder, most: usize) -> Result<Value, String> {
    let unreachable = |error: reqwest::Error| match error.is_connect() {
        true => "cannot be reached".to_owned(),
        false => "the connection broke off".to_owned(),
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        let hint = if matches!(status.as_u16(), 401 | 403) { ": is its key right?" } else { "" };
        return Err(format!("answered with status {}{hint}", status.as_u16()));
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(unreachable)? {
        body.extend_from_slice(&bytes);
        if body.len() > most {
            return Err(format!("its answer is longer than {} MiB", most >> 20));
        }
    }
    serde_json::from_slice(&body).map_err(|_| "its answer is no JSON".to_owned())
}

#[cfg(test)]
mod tests;
