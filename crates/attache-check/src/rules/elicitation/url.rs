//! Addresses to visit.

use super::questions;
use crate::exchange::MessageIndex;
use crate::rule::{Trial, Verdict};

fn addresses<'a>(trial: &'a Trial<'_>) -> impl Iterator<Item = (MessageIndex, &'a str)> {
    let by_url = questions(trial).filter(|question| question.params["mode"] == "url");
    by_url.filter_map(|question| Some((question.at, question.params["url"].as_str()?)))
}

/// The host of an address and what stands before it: `user:password@host:port`.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or("")
}

/// What is shown names no part of the address: it may be the very secret.
pub(super) fn no_credentials(trial: &Trial<'_>, verdict: &mut Verdict) {
    const SECRETS: &[&str] =
        &["password", "passwd", "access_token", "refresh_token", "api_key", "apikey", "client_secret", "id_token"];
    for (at, url) in addresses(trial) {
        let user = authority(url).rsplit_once('@').map_or("", |(user, _)| user);
        let query = url.split_once('?').map_or("", |(_, query)| query).split('#').next().unwrap_or("");
        let fragment = url.split_once('#').map_or("", |(_, fragment)| fragment);
        let mut pairs = query.split('&').chain(fragment.split('&')).filter_map(|pair| pair.split_once('='));
        let has_secret = pairs
            .any(|(key, value)| !value.is_empty() && SECRETS.iter().any(|secret| key.eq_ignore_ascii_case(secret)));
        let seen = if user.contains(':') { "a password before its host" } else { "a secret among its parameters" };
        verdict.check(!user.contains(':') && !has_secret, at, || format!("an address with {seen}"));
    }
}

pub(super) fn https(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (at, url) in addresses(trial) {
        let scheme = url.split(':').next().unwrap_or("");
        let host = authority(url).rsplit('@').next().unwrap_or("");
        let name = host.strip_prefix('[').map_or_else(|| host.split(':').next(), |v6| v6.split(']').next());
        // A page of this machine is not sent over a network.
        let is_local = matches!(name, Some("localhost" | "127.0.0.1" | "::1"));
        verdict.check(scheme.eq_ignore_ascii_case("https") || is_local, at, || "an address without HTTPS".into());
    }
}
