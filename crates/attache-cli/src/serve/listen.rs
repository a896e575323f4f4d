//! Where a server listens, and whether it may.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_http::{Fingerprint, Listener};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;

use super::options::Serve;
use super::sockets;
use crate::exit::Failure;
use crate::paths;

/// Reads the name of a host.
pub(super) fn read_host(text: &str) -> Result<String, String> {
    match url::Host::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) if text.parse::<std::net::Ipv6Addr>().is_ok() => Ok(text.to_owned()),
        Err(_) => Err("expected a name without a scheme, a port or a path, such as `build.example.com`".to_owned()),
    }
}

/// A server that listens.
pub(super) struct Listening {
    pub(super) listener: Listener,
    /// For people.
    pub(super) address: String,
    /// Names that it is reached by.
    pub(super) hosts: Vec<String>,
    /// Of a certificate that we made ourselves.
    pub(super) fingerprint: Option<String>,
}

pub(super) async fn listen(options: &Serve) -> Result<Listening, Failure> {
    let cannot = |error: io::Error| Failure::usage(format!("cannot listen on `{}`: {error}", options.listen));
    if let Some(listening) = sockets::inherited(options)? {
        return Ok(listening);
    }
    if let Some(path) = options.listen.strip_prefix("unix:") {
        return sockets::listen(path, options);
    }
    let listener = TcpListener::bind(&options.listen).await.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => {
            let sockets = if cfg!(unix) { "; or unix:/run/user/1000/attache.sock" } else { "" };
            let hint = format!("hint: an address and a port, as in 127.0.0.1:7316 or [::1]:7316{sockets}");
            Failure::usage(format!("cannot listen on `{}`: it is no address with a port\n{hint}", options.listen))
        }
        _ => cannot(error),
    })?;
    tcp(listener, options)
}

pub(super) fn tcp(listener: TcpListener, options: &Serve) -> Result<Listening, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::usage(error.to_string()))?;
    let hosts = if address.ip().is_unspecified() { Vec::new() } else { vec![address.ip().to_string()] };
    let tls = tls(options)?;
    if tls.is_none() && !address.ip().is_loopback() && !options.behind_proxy {
        return Err(Failure::usage(format!(
            "refusing to listen on {address} without TLS\n\
             hint: --tls-self-signed, or --tls-cert and --tls-key, or --behind-proxy if a proxy on the way has TLS"
        )));
    }
    let (scheme, fingerprint, listener) = match tls {
        Some((config, fingerprint)) => ("https", fingerprint, Listener::tls(listener, config)),
        None => ("http", None, Listener::tcp(listener)),
    };
    Ok(Listening { listener, address: format!("{scheme}://{address}"), hosts, fingerprint })
}

/// How TLS is spoken, and the fingerprint of a certificate of our own.
fn tls(options: &Serve) -> Result<Option<(ServerConfig, Option<String>)>, Failure> {
    let (certificates, key, is_own) = match (&options.tls_cert, &options.tls_key, options.tls_self_signed) {
        (Some(certificate), Some(key), _) => (certificate.clone(), key.clone(), false),
        (None, None, true) => {
            let (certificate, key) = self_signed(&options.host)?;
            (certificate, key, true)
        }
        _ => return Ok(None),
    };
    let wrong = |path: &Path, what: String| Failure::usage(format!("`{}`: {what}", path.display()));
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&certificates).and_then(Iterator::collect);
    let chain = chain.map_err(|error| wrong(&certificates, error.to_string()))?;
    let first = chain.first().ok_or_else(|| wrong(&certificates, "there is no certificate in it".into()))?;
    let fingerprint = is_own.then(|| Fingerprint::of(first).to_string());
    let private = PrivateKeyDer::from_pem_file(&key).map_err(|error| wrong(&key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Failure::usage(error.to_string()))?.with_no_client_auth();
    let config = config.with_single_cert(chain, private).map_err(|error| wrong(&certificates, error.to_string()))?;
    Ok(Some((config, fingerprint)))
}

/// A certificate of our own, made once and kept: clients know it by its fingerprint.
fn self_signed(hosts: &[String]) -> Result<(PathBuf, PathBuf), Failure> {
    let directory = paths::config()?.join("serve");
    let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
    if certificate.exists() && key.exists() {
        return Ok((certificate, key));
    }
    let names: Vec<String> = hosts.iter().cloned().chain(["localhost".to_owned()]).collect();
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| Failure::usage(error.to_string()))?;
    let cannot = |error: io::Error| Failure::usage(format!("cannot write to `{}`: {error}", directory.display()));
    paths::write_private(&key, made.signing_key.serialize_pem().as_bytes()).map_err(cannot)?;
    paths::write_private(&certificate, made.cert.pem().as_bytes()).map_err(cannot)?;
    Ok((certificate, key))
}
