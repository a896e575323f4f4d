//! One page, with the redirects on the way to it.

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};

use super::guard::{Closed, Guard, Lookup, system_lookup};
use super::page::{self, Page};
use super::proxy::Proxies;
use crate::tools::Refusal;

/// How long all of it may take.
const TIME: Duration = Duration::from_secs(30);
/// How long it may take to reach a server, so that another of its addresses can be tried.
const CONNECT: Duration = Duration::from_secs(10);
/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How much of a page is read, unpacked.
const BODY: usize = 2 << 20;

/// Gets pages.
pub(super) struct Getter {
    pub(super) allows_loopback: bool,
    pub(super) lookup: Lookup,
    pub(super) time: Duration,
    pub(super) proxies: fn() -> Proxies,
}

impl Default for Getter {
    fn default() -> Self {
        let proxies = || Proxies::read(|name| std::env::var(name).ok());
        Getter { allows_loopback: false, lookup: system_lookup(), time: TIME, proxies }
    }
}

impl fmt::Debug for Getter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Getter").field("allows_loopback", &self.allows_loopback).finish_non_exhaustive()
    }
}

impl Getter {
    /// Whether a URL may be fetched, as far as that can be told from itself.
    pub(super) fn check(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal(format!("`{}` is not fetched, only `http` and `https` are", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal("a URL with a user or a password in it is not fetched".into()));
        }
        self.guard(Vec::new()).check_host(url.host_str().unwrap_or_default()).map_err(refuse)
    }

    pub(super) async fn get(&self, url: Url) -> Result<Page, Refusal> {
        let host = url.host_str().unwrap_or_default().to_owned();
        match tokio::time::timeout(self.time, self.follow(url)).await {
            Ok(page) => page,
            Err(_) => Err(Refusal(format!("`{host}` did not answer within {} seconds", self.time.as_secs()))),
        }
    }

    async fn follow(&self, mut url: Url) -> Result<Page, Refusal> {
        let Proxies { proxies, hosts } = (self.proxies)();
        let guard = self.guard(hosts);
        let has_proxy = !proxies.is_empty();
        let client = make_client(guard.clone(), proxies).await?;
        for _ in 0..=REDIRECTS {
            self.check(&url)?;
            let host = url.host_str().unwrap_or_default();
            // Without a proxy, the same is asked where the connection is made.
            if has_proxy
                && let Err(error) = guard.addresses(host).await
                && let Some(closed) = find::<Closed>(&error)
            {
                return Err(refuse(closed));
            }
            let request = client.get(url.clone()).header(ACCEPT, "text/html, text/*, application/json, */*;q=0.5");
            let response = request.send().await.map_err(|error| explain(&error, host))?;
            if let Some(location) = redirect(&response) {
                url = next(&url, location)?;
                continue;
            }
            return read(response, url).await;
        }
        Err(Refusal(format!("there were more than {REDIRECTS} redirects")))
    }

    fn guard(&self, proxies: Vec<String>) -> Guard {
        Guard { lookup: self.lookup.clone(), allows_loopback: self.allows_loopback, proxies }
    }
}

/// A client for one fetch. Made anew each time, so that an agent which fetches nothing has nothing of it; beside the
/// others, because it reads the certificates that the system trusts.
async fn make_client(guard: Guard, proxies: Vec<reqwest::Proxy>) -> Result<Client, Refusal> {
    let make = move || {
        // Whoever was first has the say, and all of us say the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(0)
            .no_proxy()
            .dns_resolver(guard);
        proxies.into_iter().fold(builder, |builder, proxy| builder.proxy(proxy)).build()
    };
    let refusal = || Refusal("there is no way to fetch anything on this machine: no certificates, or no TLS".into());
    crate::spawn_blocking(make).await.map_err(|_| refusal())?.map_err(|_| refusal())
}

/// Where a response sends us.
fn redirect(response: &Response) -> Option<&str> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    response.headers().get(LOCATION).filter(|_| is_redirect)?.to_str().ok()
}

/// The URL of a redirect. Another host is another question: what was allowed is this one.
pub(super) fn next(from: &Url, location: &str) -> Result<Url, Refusal> {
    let wrong =
        || Refusal(format!("`{}` redirects to something that is no address", from.host_str().unwrap_or_default()));
    let mut to = from.join(location).map_err(|_| wrong())?;
    to.set_fragment(None);
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(Refusal("the page redirects to one without encryption, which is not followed".into()));
    }
    if to.host_str() != from.host_str() {
        // Credentials are not repeated, and neither is what is too long to be read.
        let _ = (to.set_username(""), to.set_password(None));
        let shown: String = to.as_str().chars().take(1000).collect();
        return Err(Refusal(format!("the page redirects to another host: {shown}\nhint: fetch that if it is wanted")));
    }
    Ok(to)
}

async fn read(mut response: Response, url: Url) -> Result<Page, Refusal> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.chars().take(200).collect::<String>();
    let size = response.content_length();
    let status = response.status();
    page::check_type(&content_type, size)?;
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| explain(&error, &host))? {
        let room = BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    drop(response);
    let read = page::Read { url, content_type, status: status.as_u16(), body, is_cut };
    crate::spawn_blocking(|| page::make(read)).await.map_err(|_| Refusal("the page could not be read".into()))?
}

/// What went wrong, without the URL and whatever else is in it.
fn explain(error: &reqwest::Error, host: &str) -> Refusal {
    if let Some(closed) = find::<Closed>(error) {
        return refuse(closed);
    }
    if error.is_timeout() {
        return Refusal(format!("`{host}` did not answer in time"));
    }
    if error.is_connect() {
        let cause = find::<std::io::Error>(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return Refusal(format!("`{host}` cannot be reached{cause}"));
    }
    if error.is_decode() || error.is_body() {
        return Refusal(format!("what `{host}` sent is broken"));
    }
    Refusal(format!("`{host}` gave no answer that can be understood"))
}

fn refuse(closed: impl fmt::Display) -> Refusal {
    Refusal(closed.to_string())
}

/// An error of some type behind another one, also inside of an IO error, whose `source` leaves out what it holds.
fn find<'a, E: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
