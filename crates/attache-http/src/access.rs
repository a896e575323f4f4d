//! Who may talk to a server: tokens that name a principal, hosts and origins. Checked before anything else is read.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Request, StatusCode};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

/// Whom a token stands for. What one has opened, another cannot reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by name.
    pub fn new(name: &str) -> Self {
        Principal(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tokens that a server knows, as digests. They can be replaced while it runs.
///
/// ```
/// use attache_http::{Principal, Tokens, new_token};
///
/// let token = new_token()?;
/// let tokens = Tokens::new([(Principal::new("anna"), attache_http::digest(&token))]);
/// assert_eq!(tokens.principal(&token), Some(Principal::new("anna")));
/// assert_eq!(tokens.principal("another"), None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Vec<Known>>>);

/// Whom a token stands for, and its digest.
type Known = (Principal, [u8; 32]);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// These tokens: whom each stands for, and its [`digest`].
    pub fn new(tokens: impl IntoIterator<Item = (Principal, [u8; 32])>) -> Self {
        Tokens(Arc::new(RwLock::new(tokens.into_iter().collect())))
    }

    /// Knows these from now on, and no others.
    pub fn replace(&self, tokens: impl IntoIterator<Item = (Principal, [u8; 32])>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.into_iter().collect();
    }

    /// Whom a token stands for. All are compared, in the same time whichever fits.
    pub fn principal(&self, token: &str) -> Option<Principal> {
        let digest = digest(token);
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = u32::MAX;
        for (index, (_, known)) in (0_u32..).zip(tokens.iter()) {
            found.conditional_assign(&index, digest.ct_eq(known));
        }
        tokens.get(found as usize).map(|(principal, _)| principal.clone())
    }
}

/// What is kept of a token.
pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A token that nobody can guess: 64 hexadecimal digits.
pub fn new_token() -> std::io::Result<String> {
    random_hex::<32>()
}

pub(crate) fn random_hex<const BYTES: usize>() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|_| std::io::Error::other("no randomness"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a request has to show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    pub(crate) tokens: Tokens,
    /// Names in `Host` besides those of this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
}

impl Access {
    /// Whether a host is one of ours and the origin, if there is one, is allowed.
    pub(crate) fn check_place<B>(&self, request: &Request<B>) -> Result<(), StatusCode> {
        let named = one(request.headers(), HOST)?;
        let authority = request.uri().authority().map(|authority| authority.as_str());
        // Over HTTP/2 the name is in `:authority`. Two names that differ are one too many.
        let host = match (authority, named) {
            (Some(authority), Some(named)) if authority != named => return Err(StatusCode::BAD_REQUEST),
            (Some(host), _) | (None, Some(host)) => host,
            (None, None) => return Err(StatusCode::BAD_REQUEST),
        };
        if !self.is_our_host(host) {
            return Err(StatusCode::FORBIDDEN);
        }
        match one(request.headers(), ORIGIN)? {
            Some(origin) if !self.origins.iter().any(|allowed| allowed == origin) => Err(StatusCode::FORBIDDEN),
            _ => Ok(()),
        }
    }

    fn is_our_host(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let name = name.to_ascii_lowercase();
        matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1") || self.hosts.contains(&name)
    }

    /// Whom a request comes from.
    pub(crate) fn principal<B>(&self, request: &Request<B>) -> Result<Principal, StatusCode> {
        let header = one(request.headers(), AUTHORIZATION).ok().flatten().ok_or(StatusCode::UNAUTHORIZED)?;
        let (scheme, token) = header.split_once(' ').ok_or(StatusCode::UNAUTHORIZED)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(StatusCode::UNAUTHORIZED);
        }
        self.tokens.principal(token.trim()).ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// The value of a header that may be there once.
pub(crate) fn one(headers: &HeaderMap, name: impl http::header::AsHeaderName) -> Result<Option<&str>, StatusCode> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| StatusCode::BAD_REQUEST),
        _ => Err(StatusCode::BAD_REQUEST),
    }
}
