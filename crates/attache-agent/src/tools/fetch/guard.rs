//! Names and addresses that may be reached. What is checked is what is connected to: there is no second look-up.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::is_public;

/// Asks for the addresses of a name.
pub(super) type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The way the system does it.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    })
}

/// What may be reached.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) lookup: Lookup,
    pub(super) allows_loopback: bool,
    /// Names of proxies, which the person has set up and which may be anywhere.
    pub(super) proxies: Vec<String>,
}

impl Guard {
    /// Whether the host of a URL may be reached, as far as that can be told without asking for its address.
    pub(super) fn check_host(&self, host: &str) -> Result<(), Closed> {
        let bare = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        if let Ok(address) = bare.parse() {
            return if self.is_open(address) { Ok(()) } else { Err(Closed { host: bare }) };
        }
        // Names that never mean a public host.
        const ENDS: [&str; 6] = ["localhost", "local", "internal", "home.arpa", "lan", "intranet"];
        let is_closed =
            ENDS.iter().any(|end| bare.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
        if bare.is_empty() || (is_closed && !self.allows_loopback) { Err(Closed { host: bare }) } else { Ok(()) }
    }

    /// The addresses of a name that may be connected to. If it has any other, it is not to be trusted with one of them.
    pub(super) async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let addresses = (self.lookup)(name.to_owned()).await?;
        if addresses.iter().all(|address| self.is_open(*address)) {
            return Ok(addresses);
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, Closed { host: name.to_owned() }))
    }

    fn is_open(&self, address: IpAddr) -> bool {
        is_public(address) || (self.allows_loopback && address.is_loopback())
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            let is_proxy = guard.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name));
            let addresses = match is_proxy {
                true => (guard.lookup)(name.to_owned()).await?,
                false => guard.addresses(name).await?,
            };
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// An address that is not on the public internet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Closed {
    host: String,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not on the public internet, so it is not fetched\nhint: a command can reach it", self.host)
    }
}

impl std::error::Error for Closed {}
