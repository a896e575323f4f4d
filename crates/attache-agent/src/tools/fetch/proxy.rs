//! The proxies that the person has set up in the environment.
//!
//! Behind a proxy it is the proxy that looks up names. We look them up too where we can, and refuse what is not public;
//! what the proxy finds itself is for the proxy to refuse.

use reqwest::{NoProxy, Proxy, Url};

/// The proxies, as far as they can be understood. Not to be shown: there may be a password in them.
pub(super) struct Proxies {
    pub(super) proxies: Vec<Proxy>,
    /// Their names, to be looked up like any other.
    pub(super) hosts: Vec<String>,
}

impl Proxies {
    /// The proxies in an environment.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        type Make = fn(Url) -> reqwest::Result<Proxy>;
        let kinds: [(&str, Make); 3] = [
            ("https_proxy", Proxy::https::<Url>),
            ("http_proxy", Proxy::http::<Url>),
            ("all_proxy", Proxy::all::<Url>),
        ];
        let not_for = variable("no_proxy").or_else(|| variable("NO_PROXY")).unwrap_or_default();
        let mut found = Proxies { proxies: Vec::new(), hosts: Vec::new() };
        for (name, make) in kinds {
            let value = variable(name).or_else(|| variable(&name.to_ascii_uppercase()));
            let Some(value) = value.filter(|value| !value.trim().is_empty()) else { continue };
            let text = if value.contains("://") { value } else { format!("http://{value}") };
            let Ok(url) = Url::parse(text.trim()) else { continue };
            let Some(host) = url.host_str().map(str::to_owned) else { continue };
            if let Ok(proxy) = make(url) {
                found.proxies.push(proxy.no_proxy(NoProxy::from_string(&not_for)));
                found.hosts.push(host);
            }
        }
        found
    }
}
