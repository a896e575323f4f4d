//! Models behind HTTP: chat completions, Anthropic's messages and Gemini, carried by `genai`.

mod address;
mod answer;
mod anthropic;
mod date;
mod failure;
mod gemini;
mod openai;
mod out;
mod reader;
mod request;
mod unfinished;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use attache::model::Secret;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::Value;

use super::catalog::{self, Api};
use super::constrained::{self, Constrained};
use super::{Failure, Model, ModelError, ModelInfo, Piece, Reply, Request, tidy, written};
use address::Address;
use answer::{Answer, Inbox};
pub(super) use failure::Trouble;
use failure::{Lack, Who};
pub(super) use out::{Out, spare_id};
use reader::Reader;

/// Which model to ask, and how. What is `None` follows from the catalog.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Who serves it, by the name in the catalog.
    pub provider: String,
    /// Its name there.
    pub name: String,
    /// Where the provider is.
    pub base_url: Option<String>,
    /// The key. No other place is looked at for one.
    pub key: Option<Secret>,
    /// How many tokens it takes in.
    pub context: Option<u64>,
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
    who: Who,
    header_timeout: Duration,
    read_timeout: Duration,
    client: OnceLock<genai::Client>,
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

impl Remote {
    /// A model with these settings. Fails on an unknown provider, a bad address, and when there is no key where one is
    /// needed.
    pub fn new(settings: Settings) -> Result<Remote, ModelError> {
        let Settings { provider, name, base_url, key, .. } = settings;
        let Some(known) = catalog::provider(&provider) else {
            let hint = format!("hint: the providers are {}", catalog::names());
            let message = format!("there is no provider `{}`\n{hint}", tidy(&provider, 60));
            return Err(ModelError::new(Failure::Request, message));
        };
        // The name becomes a part of URLs.
        if name.is_empty() || name.len() > 200 || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ModelError::new(Failure::Request, format!("`{}` is no name of a model", tidy(&name, 60))));
        }
        let is_given = base_url.is_some();
        let address = Address::new(known.api, base_url.as_deref().unwrap_or(known.base_url))?;
        // Keys that come from files often end with a new line.
        let key = key.map(|key| Secret::from(key.expose().trim())).filter(|key| !key.expose().is_empty());
        let key_variable = known.key_variables.first().copied();
        let who = Who { provider: provider.clone(), name: name.clone(), host: address.host.clone(), key, key_variable };
        // Someone else's server may want no key, whoever's API it speaks.
        if who.key.is_none() && known.needs_key && !is_given {
            return Err(who.no_key());
        }
        let traits = catalog::traits(known, &name);
        let info = ModelInfo {
            provider,
            name,
            context: settings.context.unwrap_or(traits.context),
            images: settings.images.unwrap_or(traits.images),
            audio: settings.audio.unwrap_or(traits.audio),
            thinks: settings.thinks.unwrap_or(traits.thinks),
            is_small: settings.small.unwrap_or(traits.is_small),
        };
        // A model on this machine may have to be read from disk first, and reads long prompts slowly.
        let (header, read) = if address.is_local { (300, 300) } else { (60, 120) };
        // Small ones were taught to call tools, and do not.
        let is_native = settings.native_tools.unwrap_or(!info.is_small);
        let tools = if is_native { Tools::Native } else { Tools::Schema };
        let inner = Inner {
            info,
            api: known.api,
            address,
            who,
            header_timeout: settings.header_timeout.unwrap_or(Duration::from_secs(header)),
            read_timeout: settings.read_timeout.unwrap_or(Duration::from_secs(read)),
            client: OnceLock::new(),
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
    current: Option<(Tools, BoxStream<'static, Result<Piece, Trouble>>)>,
    begun: bool,
    over: bool,
}

impl Asking {
    async fn next(mut self) -> Option<(Result<Piece, ModelError>, Self)> {
        while !self.over {
            let (tools, answer) = match &mut self.current {
                Some(current) => current,
                empty => {
                    let tools = self.inner.tools();
                    empty.insert((tools, self.inner.start(&self.request, tools).await))
                }
            };
            let trouble = match answer.next().await {
                Some(Ok(piece)) => {
                    self.begun = true;
                    self.over = matches!(piece, Piece::End(_));
                    return Some((Ok(piece), self));
                }
                Some(Err(trouble)) => trouble,
                None => Trouble::new(Failure::Server, "the answer of the model was cut off"),
            };
            let next = match (trouble.lack, *tools) {
                (Some(Lack::Tools), Tools::Native) if self.inner.finds_out => Some(Tools::Schema),
                (Some(Lack::Schema), Tools::Schema) => Some(Tools::Asked),
                _ => None,
            };
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
            return self.send(request.clone(), None).await;
        }
        if tools == Tools::Native {
            return written::recognise(self.send(request.clone(), None).await, request);
        }
        let (shaped, schema) = constrained::shape(request);
        let answer = self.send(shaped.clone(), (tools == Tools::Schema).then_some(schema)).await;
        let inner = self.clone();
        let ask = Box::new(move |request| async move { inner.send(request, None).await }.boxed());
        constrained::unwrap(answer, Constrained::new(request, shaped, ask))
    }

    async fn send(&self, request: Request, schema: Option<Value>) -> BoxStream<'static, Result<Piece, Trouble>> {
        let out = Out::new(&request.messages);
        let inbox = Arc::new(Inbox::default());
        let options = request::options(self, &request, schema).with_raw_frame_sink_arc(inbox.clone());
        let chat = request::chat(self, request);
        let started = match self.client() {
            Ok(client) => client.exec_chat_stream(self.target(), chat, Some(&options)).await.map_err(|_| {
                Trouble::new(Failure::Request, format!("the request to `{}` cannot be made", self.who.provider))
            }),
            Err(trouble) => Err(trouble),
        };
        match started {
            Ok(response) => Answer::new(
                response.stream,
                inbox,
                Reader::new(self.api),
                out,
                self.who.clone(),
                self.info.id(),
                (self.header_timeout, self.read_timeout),
            )
            .boxed(),
            Err(trouble) => stream::iter([Err(trouble)]).boxed(),
        }
    }

    /// Where the request goes. Nothing of it is left to `genai`, which would go by the name of the model and look for
    /// keys in the environment.
    fn target(&self) -> ServiceTarget {
        let kind = match self.api {
            Api::OpenAi => AdapterKind::OpenAI,
            Api::Anthropic => AdapterKind::Anthropic,
            Api::Gemini => AdapterKind::Gemini,
        };
        let auth = match &self.who.key {
            Some(key) => AuthData::from_single(key.expose()),
            None => AuthData::RequestOverride {
                url: self.address.request_url(self.api, &self.info.name),
                headers: match self.api {
                    Api::Anthropic => Headers::from(("anthropic-version", "2023-06-01")),
                    Api::OpenAi | Api::Gemini => Headers::default(),
                },
            },
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.address.base.as_str()),
            auth,
            model: ModelIden::new(kind, self.info.name.as_str()),
        }
    }

    /// The HTTP client, made when it is first needed: it loads the system's certificates.
    fn client(&self) -> Result<genai::Client, Trouble> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        // Whoever came first has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            // A redirect would take the key with it.
            .redirect(reqwest::redirect::Policy::none())
            // A small compressed answer can be a very large one.
            .no_gzip()
            .tcp_nodelay(true)
            .connect_timeout(self.header_timeout)
            // Servers on this machine close connections as they please, and new ones cost nothing.
            .pool_max_idle_per_host(if self.address.is_local { 0 } else { 4 })
            .pool_idle_timeout(Duration::from_secs(60))
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")));
        if self.address.is_local {
            builder = builder.no_proxy();
        }
        if !self.address.is_secure {
            // Nothing will be checked against certificates, so none have to be there.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().ok().and_then(|client| genai::Client::builder().with_reqwest(client).build().ok());
        let Some(client) = client else {
            let hint = "hint: are the system's certificates installed?";
            return Err(Trouble::new(Failure::Request, format!("TLS does not work on this machine\n{hint}")));
        };
        Ok(self.client.get_or_init(|| client).clone())
    }
}

#[cfg(test)]
mod tests;
