//! Models behind HTTP: chat completions, OpenAI's Responses, Anthropic's messages, Gemini and Ollama.

mod address;
mod answer;
mod anthropic;
mod failure;
mod gemini;
mod http;
mod ollama;
mod openai;
mod out;
mod reader;
mod request;
mod responses;
mod sse;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use attache::model::Secret;
use futures_util::stream::{self, BoxStream, StreamExt};
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::catalog::{self, Api};
use super::constrained::{self, Constrained};
use super::{Failure, Model, ModelError, ModelInfo, Piece, Reply, Request, tidy, written};
pub(crate) use address::Address;
use answer::Answer;
pub(super) use failure::Trouble;
use failure::{Lack, Who};
pub(crate) use http::{client, headers};
pub(super) use out::{Out, spare_id};
use reader::Reader;

/// Where OpenAI is.
const OPENAI: &str = "api.openai.com";

/// Which model to ask, and how. What is `None` follows from the catalog.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Who serves it: a name in the catalog, or one of the person's own with `api` and `base_url`.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// Where the provider is.
    pub base_url: Option<String>,
    /// The key. No other place is looked at for one.
    pub key: Option<Secret>,
    /// How the provider is spoken to.
    pub api: Option<Api>,
    /// Headers that go with every request. They come before our own of the same name.
    pub headers: Vec<(String, Secret)>,
    /// The variable that a key is looked for in, for the hint when there is none.
    pub key_variable: Option<String>,
    /// How many tokens it takes in.
    pub context: Option<u64>,
    /// How freely it chooses its words.
    pub temperature: Option<f64>,
    /// What it costs.
    pub price: Option<super::price::Price>,
    /// Whether it can call tools by itself. `None` finds out.
    pub native_tools: Option<bool>,
    /// Whether it sees images.
    pub images: Option<bool>,
    /// Whether it hears audio.
    pub audio: Option<bool>,
    /// Whether it can be told how long to think.
    pub thinks: Option<bool>,
    /// Whether it is small.
    pub small: Option<bool>,
    /// How long the beginning of an answer may take.
    pub header_timeout: Option<Duration>,
    /// How long the server may be silent in the middle of an answer.
    pub read_timeout: Option<Duration>,
}

impl Settings {
    /// Settings with nothing but the model's name.
    pub fn new(provider: impl Into<String>, name: impl Into<String>) -> Self {
        Settings { provider: provider.into(), name: name.into(), ..Settings::default() }
    }
}

/// A model behind HTTP. Nothing is loaded and nobody is asked before the first question.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    info: ModelInfo,
    api: Api,
    address: Address,
    headers: Vec<(String, Secret)>,
    who: Who,
    temperature: Option<f64>,
    header_timeout: Duration,
    read_timeout: Duration,
    /// Whether the server that should speak Ollama's API only knows chat completions.
    is_plain: AtomicBool,
    /// Whether the server refuses to sum up thoughts.
    hides_thoughts: AtomicBool,
    /// How tools are called, as [`Tools`] by number. Learnt from what the server says.
    tools: AtomicU8,
    finds_out: bool,
}

/// How a model calls tools. Each way asks less of its server than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tools {
    /// By the API's own calls.
    Native,
    /// By JSON that its server holds to a schema.
    Schema,
    /// By JSON that it was asked for.
    Asked,
}

/// How a model is asked. What is learnt meanwhile, by this request or another, counts for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    tools: Tools,
    api: Api,
    shows_summaries: bool,
}

impl Remote {
    /// A model with these settings. Fails on an unknown provider, a bad address, and when there is no key where one is
    /// needed.
    pub fn new(settings: Settings) -> Result<Remote, ModelError> {
        let Settings { provider, name, base_url, key, headers, .. } = settings;
        let known = catalog::provider(&provider);
        if known.is_none() && (settings.api.is_none() || base_url.is_none()) {
            let hint = format!("hint: the providers are {}", catalog::names());
            let message = format!("there is no provider `{}`\n{hint}", tidy(&provider, 60));
            return Err(ModelError::new(Failure::Request, message));
        }
        // The name becomes a part of URLs.
        if name.is_empty() || name.len() > 200 || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ModelError::new(Failure::Request, format!("invalid model name `{}`", tidy(&name, 60))));
        }
        let is_given = base_url.is_some();
        let api = settings.api.or(known.map(|known| known.api)).unwrap_or(Api::OpenAi);
        let address = Address::new(api, base_url.as_deref().unwrap_or(known.map_or("", |known| known.base_url)))?;
        let api = match api {
            // Others who speak chat completions have no such thing, or not quite.
            Api::OpenAi if address.host == OPENAI && catalog::has_responses(&name) => Api::Responses,
            api => api,
        };
        // Keys that come from files often end with a new line.
        let key = key.map(|key| Secret::from(key.expose().trim())).filter(|key| !key.expose().is_empty());
        let first_variable = || known.and_then(|known| known.key_variables.first()).map(|&name| name.to_owned());
        let who = Who {
            provider: provider.clone(),
            name: name.clone(),
            host: address.host.clone(),
            key,
            secrets: headers.iter().map(|(_, value)| value.clone()).collect(),
            key_variable: settings.key_variable.or_else(first_variable),
        };
        // Someone else's server may want no key, whoever's API it speaks.
        if who.key.is_none() && known.is_some_and(|known| known.needs_key) && !is_given {
            return Err(who.no_key());
        }
        let traits = catalog::traits(known, api, &name);
        let info = ModelInfo {
            provider,
            name,
            context: settings.context.unwrap_or(traits.context),
            images: settings.images.unwrap_or(traits.images),
            audio: settings.audio.unwrap_or(traits.audio),
            thinks: settings.thinks.unwrap_or(traits.thinks),
            is_small: settings.small.unwrap_or(traits.is_small),
            price: settings.price,
        };
        // A model on this machine may have to be read from disk first, and reads long prompts slowly.
        let (header, read) = if address.is_local { (300, 300) } else { (60, 120) };
        // Small ones were taught to call tools, and do not.
        let is_native = settings.native_tools.unwrap_or(!info.is_small);
        let tools = if is_native { Tools::Native } else { Tools::Schema };
        let temperature = settings.temperature.or(info.is_small.then_some(0.0));
        let inner = Inner {
            info,
            api,
            address,
            headers,
            who,
            // Chance leads small ones astray.
            temperature,
            header_timeout: settings.header_timeout.unwrap_or(Duration::from_secs(header)),
            read_timeout: settings.read_timeout.unwrap_or(Duration::from_secs(read)),
            is_plain: AtomicBool::new(false),
            hides_thoughts: AtomicBool::new(false),
            tools: AtomicU8::new(tools as u8),
            finds_out: settings.native_tools.is_none(),
        };
        Ok(Remote { inner: Arc::new(inner) })
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Remote").field(&self.inner.info.id()).finish()
    }
}

impl Model for Remote {
    fn info(&self) -> &ModelInfo {
        &self.inner.info
    }

    fn ask(&self, request: Request) -> Reply {
        let asking = Asking { inner: self.inner.clone(), request, current: None, begun: false, over: false };
        stream::unfold(asking, Asking::next).boxed()
    }
}

/// A question on its way, which may have to be put in another form.
struct Asking {
    inner: Arc<Inner>,
    request: Request,
    current: Option<(Way, BoxStream<'static, Result<Piece, Trouble>>)>,
    begun: bool,
    over: bool,
}

impl Asking {
    async fn next(mut self) -> Option<(Result<Piece, ModelError>, Self)> {
        while !self.over {
            let (way, answer) = match &mut self.current {
                Some(current) => current,
                empty => {
                    let way = self.inner.way();
                    empty.insert((way, self.inner.start(&self.request, way.tools).await))
                }
            };
            let trouble = match answer.next().await {
                Some(Ok(piece)) => {
                    self.begun |= !matches!(piece, Piece::Usage(_));
                    self.over = matches!(piece, Piece::End(_));
                    return Some((Ok(piece), self));
                }
                Some(Err(trouble)) => trouble,
                None => Trouble::new(Failure::Server, "the answer of the model was cut off"),
            };
            let way = *way;
            let next = match (trouble.lack, way.tools) {
                (Some(Lack::Tools), Tools::Native) if self.inner.finds_out => Some(Tools::Schema),
                (Some(Lack::Schema), Tools::Schema) => Some(Tools::Asked),
                _ => None,
            };
            if !self.begun && self.inner.does_without(trouble.lack, way) {
                self.current = None;
                continue;
            }
            match next {
                Some(next) if !self.begun && !self.request.tools.is_empty() => {
                    self.inner.tools.fetch_max(next as u8, Ordering::Relaxed);
                    self.current = None;
                }
                _ => {
                    self.over = true;
                    return Some((Err(trouble.error), self));
                }
            }
        }
        None
    }
}

impl Inner {
    /// The way to ask, as far as we know by now.
    fn way(&self) -> Way {
        Way { tools: self.tools(), api: self.api(), shows_summaries: self.shows_summaries() }
    }

    fn tools(&self) -> Tools {
        match self.tools.load(Ordering::Relaxed) {
            0 => Tools::Native,
            1 => Tools::Schema,
            _ => Tools::Asked,
        }
    }

    /// Begins to ask.
    async fn start(self: &Arc<Self>, request: &Request, tools: Tools) -> BoxStream<'static, Result<Piece, Trouble>> {
        if request.tools.is_empty() {
            return self.send(request, None).await;
        }
        if tools == Tools::Native {
            return written::recognise(self.send(request, None).await, request);
        }
        let (shaped, schema) = constrained::shape(request);
        let answer = self.send(&shaped, (tools == Tools::Schema).then_some(schema)).await;
        constrained::unwrap(answer, Constrained::new(request))
    }

    /// Learns what the server lacks that we can do without. Tells whether it is to be asked again, if it was asked that way.
    fn does_without(&self, lack: Option<Lack>, way: Way) -> bool {
        match lack {
            Some(Lack::OwnApi) if way.api == Api::Ollama => self.is_plain.store(true, Ordering::Relaxed),
            Some(Lack::Summaries) if way.api == Api::Responses && way.shows_summaries => {
                self.hides_thoughts.store(true, Ordering::Relaxed);
            }
            _ => return false,
        }
        true
    }

    /// How the server is spoken to, as far as we know by now.
    fn api(&self) -> Api {
        if self.is_plain.load(Ordering::Relaxed) { Api::OpenAi } else { self.api }
    }

    /// Whether thoughts are to be summed up for people.
    fn shows_summaries(&self) -> bool {
        !self.hides_thoughts.load(Ordering::Relaxed)
    }

    async fn send(&self, request: &Request, schema: Option<Value>) -> BoxStream<'static, Result<Piece, Trouble>> {
        match self.answer(request, schema).await {
            Ok(answer) => stream::unfold(answer, Answer::next).boxed(),
            Err(trouble) => stream::iter([Err(trouble)]).boxed(),
        }
    }

    async fn answer(&self, request: &Request, schema: Option<Value>) -> Result<Answer, Trouble> {
        let api = self.api();
        let url = self.address.request_url(api, &self.info.name);
        let body = request::body(self, request, schema);
        let headers = self.all_headers(api).ok_or_else(|| self.who.bad_key())?;
        let client = client(&self.address).await?;
        let (response, first) = http::post(&client, &url, headers, &body, &self.who, self.header_timeout).await?;
        let out = Out::new(&request.messages);
        let (who, id) = (self.who.clone(), self.info.id());
        let mut answer = Answer::new(response, Reader::new(api), out, who, id, self.read_timeout);
        if !first.is_empty() {
            answer.handle(&first);
        }
        Ok(answer)
    }

    /// The headers of a request. `None` if there is something in a key that cannot be sent.
    fn all_headers(&self, api: Api) -> Option<HeaderMap> {
        let key = self.who.key.as_ref().map(Secret::expose);
        let own: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        headers(key_headers(api, key).iter().map(|(name, value)| (*name, value.as_str())).chain(own))
    }
}

/// Where a key goes, and what an API wants to be told beside it.
pub(crate) fn key_headers(api: Api, key: Option<&str>) -> Vec<(&'static str, String)> {
    let key = match api {
        Api::OpenAi | Api::Responses | Api::Ollama => key.map(|key| ("authorization", format!("Bearer {key}"))),
        Api::Anthropic => key.map(|key| ("x-api-key", key.to_owned())),
        Api::Gemini => key.map(|key| ("x-goog-api-key", key.to_owned())),
    };
    let version = (api == Api::Anthropic).then(|| ("anthropic-version", "2023-06-01".to_owned()));
    key.into_iter().chain(version).collect()
}

#[cfg(test)]
mod tests;
