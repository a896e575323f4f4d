//! Whom a client trusts.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt;
use sha2::{Digest, Sha256};

use super::RemoteError;
use crate::hex;

/// The SHA-256 of a certificate, written `sha256:` and 64 hexadecimal digits.
///
/// ```
/// let text = format!("sha256:{}", "0a".repeat(32));
/// let fingerprint: attache_http::Fingerprint = text.parse()?;
/// assert_eq!(fingerprint.to_string(), text);
/// # Ok::<(), attache_http::RemoteError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        hex::write(f, &self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let wrong = RemoteError::Address("a fingerprint is `sha256:` and 64 hexadecimal digits");
        let digits = text.strip_prefix("sha256:").unwrap_or(text).replace(':', "");
        hex::read(&digits).map(Fingerprint).ok_or(wrong)
    }
}

/// The fingerprint of the certificate that a server showed in the place of the right one.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Option<Fingerprint>>>);

impl Seen {
    fn set(&self, fingerprint: Option<Fingerprint>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fingerprint;
    }

    pub(super) fn wrong(&self) -> Option<Fingerprint> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How TLS is spoken to a server: trusting the system's certificates, or one alone.
pub(super) fn config(
    fingerprint: Option<Fingerprint>,
    protocols: &[&str],
    seen: &Seen,
) -> Result<ClientConfig, RemoteError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| RemoteError::Tls(error.to_string()))?;
    let mut config = match fingerprint {
        Some(fingerprint) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pinned { fingerprint, provider, seen: seen.clone() }))
            .with_no_client_auth(),
        None => {
            builder.with_platform_verifier().map_err(|error| RemoteError::Tls(error.to_string()))?.with_no_client_auth()
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Ok(config)
}

/// Trusts one certificate, whatever name is in it.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
    seen: Seen,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Fingerprint::of(certificate);
        let is_right = shown == self.fingerprint;
        self.seen.set((!is_right).then_some(shown));
        if is_right {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
