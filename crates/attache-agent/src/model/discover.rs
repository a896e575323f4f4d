//! Looks for a model server on this machine, quickly and without trusting what answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::stream::{FuturesOrdered, StreamExt};
use serde_json::Value;

use super::catalog::Api;
use super::listing::{is_plain, read_json};
use super::remote::{Address, client};

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its name in the catalog.
    pub provider: &'static str,
    /// Where it is, for chat completions.
    pub base_url: String,
    /// The models that it has, in its order. Never empty.
    pub models: Vec<String>,
}

/// A place where a model server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Whose server it would be.
    pub provider: &'static str,
    /// Where it would listen. Only loopback is looked at.
    pub address: SocketAddr,
}

/// How much of an answer is read. A list of a thousand models has less.
const MOST_BYTES: usize = 1 << 20;
/// How many models are kept.
const MOST_MODELS: usize = 500;

/// The places that are looked at: those of Ollama (where `OLLAMA_HOST` says, if that is this machine), LM Studio,
/// llama.cpp and vLLM.
pub fn usual_places(ollama_host: &str) -> Vec<Place> {
    let local = |provider, port| Place { provider, address: (Ipv4Addr::LOCALHOST, port).into() };
    let mut ollama = local("ollama", 11434);
    if let Some(address) = loopback(ollama_host) {
        ollama.address = address;
    }
    vec![ollama, local("lmstudio", 1234), local("llamacpp", 8080), local("vllm", 8000)]
}

/// Asks all places at the same time, and gives the first in their order that answered in time and has a model.
pub async fn among(places: &[Place], limit: Duration) -> Option<Found> {
    looks(places, limit).filter_map(std::future::ready).next().await
}

/// Asks all places at the same time, and gives those that answered in time and have a model.
pub async fn all(places: &[Place], limit: Duration) -> Vec<Found> {
    looks(places, limit).filter_map(std::future::ready).collect().await
}

fn looks(places: &[Place], limit: Duration) -> FuturesOrdered<impl Future<Output = Option<Found>> + Send> {
    places
        .iter()
        .filter(|place| place.address.ip().is_loopback())
        .map(|place| async move { tokio::time::timeout(limit, look(place)).await.ok().flatten() })
        .collect()
}

/// Reads `OLLAMA_HOST`: a host, a port or both, with or without `http://`. Only loopback counts.
fn loopback(text: &str) -> Option<SocketAddr> {
    const PORT: u16 = 11434;
    let text = text.trim();
    let text = text.strip_prefix("http://").unwrap_or(text);
    let text = text.split('/').next().unwrap_or(text);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return usable(address);
    }
    if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return usable((ip, PORT).into());
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, PORT),
    };
    matches!(host, "localhost" | "").then(|| (Ipv4Addr::LOCALHOST, port).into()).filter(|_| !text.is_empty())
}

/// What listens everywhere can be reached here; what is elsewhere is not for us.
fn usable(mut address: SocketAddr) -> Option<SocketAddr> {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address.ip().is_loopback().then_some(address)
}

async fn look(place: &Place) -> Option<Found> {
    let base_url = format!("http://{}/v1/", place.address);
    let address = Address::new(Api::OpenAi, &base_url).ok()?;
    let url = if place.provider == "ollama" { address.beside("api/tags") } else { address.join("models") };
    let body = read_json(client(&address).await.ok()?.get(url), MOST_BYTES).await.ok()?;
    Some(Found { provider: place.provider, base_url, models: models(&body)? })
}

/// The models that an answer lists: `{"models":[{"name":…}]}` or `{"data":[{"id":…}]}`. `None` if it is anything else.
fn models(body: &Value) -> Option<Vec<String>> {
    let (list, key) = match (body.get("models"), body.get("data")) {
        (_, Some(Value::Array(list))) => (list, "id"),
        (Some(Value::Array(list)), _) => (list, "name"),
        _ => return None,
    };
    let models: Vec<String> = list
        .iter()
        .filter_map(|model| model.get(key)?.as_str())
        .filter(|name| is_plain(name) && !name.to_ascii_lowercase().contains("embed"))
        .map(str::to_owned)
        .take(MOST_MODELS)
        .collect();
    (!models.is_empty()).then_some(models)
}

#[cfg(test)]
mod tests;
