//! Who may talk to a server: tokens that name a principal, hosts and origins. Checked before anything else is read.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Request, StatusCode};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::hex;

/// Whom a token stands for. A connection that one has opened, another cannot reach.
///
/// ```
/// use attache_http::Principal;
///
/// let anna = Principal::new("anna");
/// assert_eq!((anna.as_str(), anna.group()), ("anna", None));
/// // Whoever shows this token shares with the group what is opened with it.
/// let in_team = anna.clone().in_group("team");
/// assert_eq!((in_team.as_str(), in_team.group()), ("anna", Some("team")));
/// assert_ne!(anna, in_team);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    name: Arc<str>,
    group: Option<Arc<str>>,
}

impl Principal {
    /// A principal by name.
    pub fn new(name: &str) -> Self {
        Principal { name: name.into(), group: None }
    }

    /// The same one as a member of a group. Connections stay its own; whose sessions are whose is up to the program that
    /// [`Accepted`](crate::Accepted) connections are given to.
    #[must_use]
    pub fn in_group(self, group: &str) -> Self {
        Principal { group: Some(group.into()), ..self }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The group, if there is one.
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The tokens that a server knows, as digests. They can be replaced while it runs.
///
/// ```
/// use attache_http::{Principal, TokenDigest, Tokens, new_token};
///
/// let token = new_token()?;
/// let tokens = Tokens::new([(Principal::new("anna"), TokenDigest::of(&token))]);
/// assert_eq!(tokens.principal(&token), Some(Principal::new("anna")));
/// assert_eq!(tokens.principal("another"), None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Arc<RwLock<Vec<Known>>>);

/// Whom a token stands for, and its digest.
type Known = (Principal, TokenDigest);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// These tokens: whom each stands for, and its digest.
    pub fn new(tokens: impl IntoIterator<Item = (Principal, TokenDigest)>) -> Self {
        Tokens(Arc::new(RwLock::new(tokens.into_iter().collect())))
    }

    /// Knows these from now on, and no others.
    pub fn replace(&self, tokens: impl IntoIterator<Item = (Principal, TokenDigest)>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tokens.into_iter().collect();
    }

    /// Whom a token stands for. All are compared, in the same time whichever fits.
    pub fn principal(&self, token: &str) -> Option<Principal> {
        let digest = TokenDigest::of(token);
        let tokens = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = u32::MAX;
        for (index, (_, known)) in (0_u32..).zip(tokens.iter()) {
            found.conditional_assign(&index, digest.0.ct_eq(&known.0));
        }
        tokens.get(found as usize).map(|(principal, _)| principal.clone())
    }
}

/// What is kept of a token: its SHA-256, written as 64 hexadecimal digits.
///
/// ```
/// use attache_http::TokenDigest;
///
/// let digest = TokenDigest::of("a token");
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token.
    pub fn of(token: &str) -> Self {
        TokenDigest(Sha256::digest(token.as_bytes()).into())
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(f, &self.0)
    }
}

impl FromStr for TokenDigest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        hex::read(text).map(TokenDigest).ok_or(NoDigest)
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct NoDigest;

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

    /// Whether a request shows a token, known or not.
    pub(crate) fn has_token<B>(&self, request: &Request<B>) -> bool {
        one(request.headers(), AUTHORIZATION).ok().flatten().is_some()
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
