//! Where the database is, and how long it is waited for.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode};

/// Where the database is, and how long it is waited for.
///
/// ```
/// let settings = attache_postgres::Settings::new("postgres://attache:secret@db.example:6432/attache")?;
/// // The password is shown nowhere.
/// assert_eq!(settings.to_string(), "postgres://attache@db.example:6432/attache");
/// assert!(!format!("{settings:?}").contains("secret"));
/// # Ok::<(), attache_postgres::SettingsError>(())
/// ```
#[derive(Clone)]
pub struct Settings {
    pub(crate) database: tokio_postgres::Config,
    /// The certificates that a server's has to lead to; those of the system where there is none.
    pub(crate) root_certificates: Option<PathBuf>,
    /// Where clients reach this server. Others tell it to clients that want a session which this one has.
    pub address: Option<String>,
    /// How long a session stays with a server that is not heard of. It is renewed three times as often.
    pub lease: Duration,
    /// How many connections there are at most, beside one that listens.
    pub connections: usize,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long is tried again while the database does not answer.
    pub patience: Duration,
}

/// Why there can be no such settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It is no URL of a database. It is not repeated, because it may have a password in it.
    #[error(
        "invalid database URL\n\
         hint: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full`; percent-encode special characters of the \
         password"
    )]
    InvalidUrl,
    /// There is no such `sslmode`.
    #[error("invalid value for `sslmode`; expected `disable`, `prefer`, `require`, `verify-ca` or `verify-full`")]
    InvalidSslMode,
}

impl Settings {
    /// The database of a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE&…`, as `psql` takes it.
    ///
    /// A connection over a network is encrypted and the certificate is checked (`sslmode=verify-full`), unless another
    /// `sslmode` is given. `require` and `verify-ca` check as much. `sslrootcert` is a file with certificates to trust
    /// instead of those of the system. On a Unix socket and on the same machine nothing is encrypted by default.
    pub fn new(url: &str) -> Result<Self, SettingsError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(SettingsError::InvalidUrl);
        }
        // A password may have a question mark in it.
        let host = url.find('@').unwrap_or_default();
        let question = url[host..].find('?').map_or(url.len(), |question| host + question);
        let (place, parameters) = (&url[..question], url[question..].trim_start_matches('?'));
        let (mut ssl_mode, mut root_certificates, mut others) = (None, None, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", mode)) => ssl_mode = Some(read_ssl_mode(mode)?),
                Some(("sslrootcert", path)) => {
                    let path = percent_decode_str(path).decode_utf8().map_err(|_| SettingsError::InvalidUrl)?;
                    root_certificates = Some(PathBuf::from(&*path));
                }
                _ => others.push(parameter),
            }
        }
        let url = if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
        let mut database: tokio_postgres::Config = url.parse().map_err(|_| SettingsError::InvalidUrl)?;
        let is_local = database.get_hostaddrs().iter().all(IpAddr::is_loopback)
            && database.get_hosts().iter().all(|host| match host {
                #[cfg(unix)]
                Host::Unix(_) => true,
                Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|host: IpAddr| host.is_loopback()),
            });
        database.ssl_mode(ssl_mode.unwrap_or(if is_local { SslMode::Disable } else { SslMode::Require }));
        if database.get_application_name().is_none() {
            database.application_name("attache");
        }
        Ok(Settings {
            database,
            root_certificates,
            address: None,
            lease: Duration::from_secs(20),
            connections: 8,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            patience: Duration::from_secs(30),
        })
    }

    /// Sets the password, for those who do not want it in a URL.
    pub fn password(&mut self, password: &str) {
        self.database.password(password);
    }
}

fn read_ssl_mode(mode: &str) -> Result<SslMode, SettingsError> {
    match mode {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => Err(SettingsError::InvalidSslMode),
    }
}

impl fmt::Display for Settings {
    /// The URL without its password and its parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.database.get_user() {
            write!(f, "{user}@")?;
        }
        for (number, host) in self.database.get_hosts().iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            let ports = self.database.get_ports();
            if let Some(port) = ports.get(number).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        write!(f, "/{}", self.database.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("database", &self.to_string())
            .field("address", &self.address)
            .field("lease", &self.lease)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_not_trusted() {
        for (url, mode) in [
            ("postgres://db.example/a", SslMode::Require),
            ("postgres://localhost,db.example/a", SslMode::Require),
            ("postgres:///a?host=db.example", SslMode::Require),
            ("postgres://localhost/a?hostaddr=192.0.2.1", SslMode::Require),
            ("postgresql://db.example/a?sslmode=verify-full", SslMode::Require),
            ("postgres://db.example/a?sslmode=prefer", SslMode::Prefer),
            ("postgres://db.example/a?connect_timeout=3&sslmode=disable", SslMode::Disable),
            ("postgres://localhost/a", SslMode::Disable),
            ("postgres://127.0.0.1:6432/a", SslMode::Disable),
            ("postgres:///a?host=%2Frun%2Fpostgresql", SslMode::Disable),
            ("postgres://localhost/a?sslmode=require", SslMode::Require),
        ] {
            assert_eq!(Settings::new(url).unwrap().database.get_ssl_mode(), mode, "{url}");
        }
        let settings = Settings::new("postgres://h/a?sslrootcert=/a%20b.pem").unwrap();
        assert_eq!(settings.root_certificates, Some("/a b.pem".into()));
    }

    #[test]
    fn a_password_is_shown_nowhere() {
        for url in [
            "postgres://u:secret@h/d",
            "postgres://u@h:1/d?password=secret",
            "postgres://u:a?secret=1@h/d?sslmode=require",
            "postgresql://u:secret@%2Frun%2Fpostgresql/d",
            "postgres://u:secret@h,i:5/d?sslmode=disable",
        ] {
            let mut settings = Settings::new(url).unwrap();
            assert!(!format!("{settings} {settings:?}").contains("secret"), "{settings:?}");
            settings.password("another secret");
            assert!(!format!("{settings} {settings:?}").contains("secret"), "{settings:?}");
        }
        for (url, error) in [
            ("mysql://u:secret@h/d", SettingsError::InvalidUrl),
            ("secret", SettingsError::InvalidUrl),
            ("postgres://u:secret@h:port/d", SettingsError::InvalidUrl),
            ("postgres://u:p@h/d?secret=1", SettingsError::InvalidUrl),
            ("postgres://u:secret@h/d?sslmode=secret", SettingsError::InvalidSslMode),
        ] {
            let found = Settings::new(url).unwrap_err();
            assert_eq!(found, error);
            assert!(!format!("{found} {found:?}").contains("secret"), "{found}");
        }
    }
}
