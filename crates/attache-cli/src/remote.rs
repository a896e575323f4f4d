//! Agents on other machines: `attache connect`, and their tokens.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache::Dialect;
use attache::model::error::ErrorObject;
use attache::proto::json::{RawJson, Reader, Writer};
use attache::relay::{Direction, Relay, RelayMessage, Verdict};
use attache_agent::Keys;
use attache_http::{Fingerprint, LinkNews, Remote, RemoteError};

use crate::agents::catalog::is_ourselves;
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure, server_of};
use crate::paths;
use crate::serve::options::Connect;
use crate::tty::Tty;
use crate::visible::one_line;

/// The variable that has a token, for scripts.
const TOKEN: &str = "ATTACHE_TOKEN";

/// How the agent at an address is started: by ourselves.
pub(crate) fn command(url: &str, fingerprint: Option<&str>, directory: Option<&str>) -> Result<Vec<String>, Failure> {
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let program = program.ok_or_else(|| Failure::usage("this program cannot tell where it is"))?;
    let remote = Remote::new(url).map_err(failure)?;
    let is_plain = ["http://", "ws://"].iter().any(|scheme| url.starts_with(scheme));
    if fingerprint.is_some() && is_plain {
        return Err(Failure::usage("a fingerprint is one of a certificate: use it with https:// or wss://"));
    }
    if remote.is_in_the_clear() {
        return Err(failure(RemoteError::InTheClear));
    }
    check_directory(directory)?;
    let mut words = vec![program, "connect".to_owned(), url.to_owned()];
    if let Some(fingerprint) = fingerprint {
        fingerprint.parse::<Fingerprint>().map_err(failure)?;
        words.extend(["--fingerprint".to_owned(), fingerprint.to_owned()]);
    }
    if let Some(directory) = directory {
        words.extend(["--dir".to_owned(), directory.to_owned()]);
    }
    Ok(words)
}

fn check_directory(directory: Option<&str>) -> Result<(), Failure> {
    // The server may be of another system than we are.
    let has_drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let is_absolute = |path: &str| path.starts_with('/') || path.starts_with(r"\\") || has_drive(path);
    match directory.filter(|directory| !is_absolute(directory)) {
        None => Ok(()),
        Some(directory) => Err(Failure::usage(format!(
            "`--dir {}` is not absolute\nhint: it is a directory of the server, such as /srv/projects/shop",
            one_line(directory)
        ))),
    }
}

/// The address of an agent that is started by a command that [`command`] made, or that was typed out like one.
pub(crate) fn url_of(words: &[String]) -> Option<&str> {
    let [program, connect, url, ..] = words else { return None };
    (connect == "connect" && is_ourselves(program)).then_some(url)
}

/// Where an agent works that is on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The name in its address.
    pub(crate) host: String,
    /// The directory there, if it is not the one of the same name as here.
    pub(crate) directory: Option<String>,
}

/// Where an agent works, if it is started by a command that connects to another machine.
pub(crate) fn place_of(words: &[String]) -> Option<Place> {
    let url = url_of(words)?;
    let mut options = words[3..].iter();
    let mut directory = None;
    while let Some(word) = options.next() {
        match word.strip_prefix("--dir") {
            Some("") => directory = options.next().cloned(),
            Some(rest) => directory = rest.strip_prefix('=').map(str::to_owned).or(directory),
            None => {}
        }
    }
    Some(Place { host: host_of(url), directory })
}

/// The name and the port in an address.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    one_line(rest.split('/').next().unwrap_or(rest))
}

/// Connects an editor on stdin and stdout to an agent on another machine.
pub(crate) async fn connect(options: Connect) -> Result<(), Failure> {
    check_directory(options.dir.as_deref())?;
    let url = options.url;
    let host = host_of(&url);
    let is_stopping = Arc::new(AtomicBool::new(false));
    let (stopping, named) = (is_stopping.clone(), host.clone());
    let mut remote = Remote::new(&url).map_err(failure)?.on_news(move |news| match news {
        LinkNews::Lost => eprintln!("connection to {named} lost, trying again"),
        LinkNews::Back => eprintln!("connected to {named} again"),
        LinkNews::Stopping => {
            stopping.store(true, Ordering::Relaxed);
            eprintln!("the server {named} is stopping");
        }
        _ => {}
    });
    let token = match &options.token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            Some(text.map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))?)
        }
        None => kept_token(&url)?,
    };
    let failure = |error| match error {
        RemoteError::Unauthorized(401) => refused_token(&url, &TokenSource::of(options.token_file.as_deref(), &token)),
        error => failure(error),
    };
    let shown = token.clone();
    if let Some(token) = shown {
        remote = remote.token(&token);
    }
    if let Some(fingerprint) = &options.fingerprint {
        remote = remote.fingerprint(fingerprint.parse().map_err(failure)?);
    }
    let has_answered = Arc::new(AtomicBool::new(false));
    let (answered, waited_for) = (has_answered.clone(), host.clone());
    let telling = tokio::spawn(async move {
        tokio::time::sleep(TOLD_AFTER).await;
        if !answered.load(Ordering::Relaxed) {
            eprintln!("waiting for the agent on {waited_for} to answer `initialize`");
        }
    });
    let connected = until_interrupted(async { remote.connect().await.map_err(failure) }).await?;
    let (agent_reader, agent_writer) = connected.transport.into_streams();
    let relay = Relay::stdio(agent_reader, agent_writer);
    let mut relay = relay.map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
    let directory = options.dir;
    relay = relay.on_message(move |direction, message| match (direction, &directory) {
        (Direction::AgentToClient, directory) => {
            has_answered.store(true, Ordering::Relaxed);
            if is_stopping.load(Ordering::Relaxed) && says_cancelled(message) {
                return stopped(message);
            }
            with_server(message, directory.as_deref())
        }
        (Direction::ClientToAgent, Some(directory)) => in_directory(directory, message),
        (Direction::ClientToAgent, None) => Verdict::Pass,
    });
    let relayed = until_interrupted(async { Ok(relay.run().await) }).await;
    telling.abort();
    let relayed = relayed?;
    match (connected.failure.get(), relayed) {
        // The editor has left, so the end of the connection is none of its business.
        (Some(RemoteError::Ended | RemoteError::Stopping), Ok(relayed)) if relayed.client_left => Ok(()),
        (None, Ok(_)) => Ok(()),
        (Some(error), _) => Err(failure(error.clone())),
        (None, Err(error)) => Err(Failure::new(Code::Died, format!("the connection broke: {error}"))),
    }
}

/// Has a session work in this directory of the other machine, whatever the editor says.
fn in_directory(directory: &str, message: &RelayMessage<'_>) -> Verdict {
    let Some(method) = message.method() else { return Verdict::Pass };
    let changed = message.params().and_then(|params| match method {
        "initialize" => without_files(params),
        "session/new" | "session/load" | "session/resume" | "session/fork" | "session/list" => {
            with_cwd(params, directory)
        }
        _ => None,
    });
    changed.map_or(Verdict::Pass, |params| message.with_params(&params))
}

/// How long an agent may take to answer before it is said what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(5);

/// The longest message that may tell the end of a turn.
const LONGEST_END: usize = 16 << 10;

/// Whether a message ends a turn as cancelled.
fn says_cancelled(message: &RelayMessage<'_>) -> bool {
    let text = message.text().filter(|text| text.len() <= LONGEST_END && text.contains("\"cancelled\""));
    text.is_some_and(|text| text.contains("\"stopReason\"") || text.contains("\"stop_reason\""))
}

/// What becomes of the end of a turn that the server's end has cancelled: nobody here has. An answer is an error that says so; where
/// turns end by an update, the connection is about to end, with the reason.
fn stopped(message: &RelayMessage<'_>) -> Verdict {
    let (Some(id), Some(_)) = (message.id(), message.outcome()) else { return Verdict::Drop };
    let error = ErrorObject::internal(RemoteError::Stopping.to_string());
    let (id, error) = (RawJson::from_model(id), RawJson::from_model(&error));
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.as_str(), error.as_str());
    RawJson::new(&text).map_or(Verdict::Drop, Verdict::Change)
}

/// The longest error that is looked at.
const LONGEST_ERROR: usize = 4 << 10;

/// Editors show the message of an error, and not its data: the server that has a session goes into the message.
fn with_server(message: &RelayMessage<'_>, directory: Option<&str>) -> Verdict {
    let may_be = message.text().is_some_and(|text| text.len() <= LONGEST_ERROR && text.contains("\"server\""));
    let (true, Some(id), Some(Err(error))) = (may_be, message.id(), message.outcome()) else { return Verdict::Pass };
    let Some(server) = server_of(error) else { return Verdict::Pass };
    let mut words = vec!["attache".to_owned(), "connect".to_owned(), server.clone()];
    words.extend(directory.into_iter().flat_map(|directory| ["--dir".to_owned(), directory.to_owned()]));
    let command = attache::process::Command::from(words);
    let message = format!(
        "the session is open on {server}\n\
         hint: close it there, or reach it there: `{command}`, after `attache login {server}`\n\
         hint: if that server has just been killed, try again in 20 s"
    );
    let data = serde_json::json!({ "server": server, "directory": directory });
    let error = error.clone().with(|error| {
        error.message = message;
        error.data = RawJson::from_value(&data).ok().or(error.data.take());
    });
    let (id, error) = (RawJson::from_model(id), RawJson::from_model(&error));
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, id.as_str(), error.as_str());
    RawJson::new(&text).map_or(Verdict::Pass, Verdict::Change)
}

/// The same `initialize` without the files and terminals of version 1: those are on the editor's machine, and the directory
/// is not.
fn without_files(params: &str) -> Option<RawJson> {
    let mut params: serde_json::Value = serde_json::from_str(params).ok()?;
    let offered = params.get_mut("clientCapabilities")?.as_object_mut()?;
    let had = [offered.remove("fs"), offered.remove("terminal")].iter().any(Option::is_some);
    had.then(|| RawJson::new(&params.to_string()).ok()).flatten()
}

/// The same object with another `cwd`, if it has one.
fn with_cwd(params: &str, directory: &str) -> Option<RawJson> {
    let mut reader = Reader::new(params, Dialect::V1);
    reader.begin_object().ok()?;
    let (mut text, mut first, mut had) = (Vec::new(), true, false);
    let mut writer = Writer::new(&mut text, Dialect::V1);
    writer.begin_object();
    while let Some(key) = reader.next_key(&mut first).ok()? {
        let value = reader.raw().ok()?;
        writer.free_key(&key);
        if key == "cwd" && value.starts_with('"') {
            had = true;
            writer.string(directory);
        } else {
            writer.raw(value);
        }
    }
    writer.end_object();
    had.then(|| RawJson::new(std::str::from_utf8(&text).ok()?).ok()).flatten()
}

/// Keeps the token for the agent at an address.
pub(crate) async fn login(url: &str) -> Result<(), Failure> {
    Remote::new(url).map_err(failure)?;
    let token = Tty::read_secret(&format!("Token for {} (not shown): ", one_line(url)), "token").await?;
    let token = token.trim();
    if token.is_empty() {
        return Err(Failure::usage("no token was given, and nothing is kept"));
    }
    let remote = Remote::new(url).map_err(failure)?.token(token);
    let checked = tokio::time::timeout(CHECK, remote.check()).await;
    if let Ok(Err(RemoteError::Unauthorized(401))) = checked {
        let hint = "hint: `attache serve token add NAME` makes one, at the server";
        let what = format!("{} does not accept this token, and it is not kept\n{hint}", one_line(url));
        return Err(Failure::new(Code::Login, what));
    }
    keys()?.keep_for(&key_name(url), token).map_err(|error| Failure::usage(error.to_string()))?;
    eprintln!("the token for {} is kept in a file that only you can read", one_line(url));
    match checked {
        Ok(Ok(())) => eprintln!("the server accepts it"),
        Ok(Err(error)) => {
            let why = failure(error).message;
            eprintln!("note: it was not tried: {}", why.lines().next().unwrap_or_default());
        }
        Err(_) => eprintln!("note: it was not tried: the server does not answer"),
    }
    Ok(())
}

/// How long a login waits for the server.
const CHECK: Duration = Duration::from_secs(5);

/// Where a token was found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenSource {
    Nowhere,
    File(String),
    Variable,
    Kept,
}

impl TokenSource {
    fn of(file: Option<&Path>, token: &Option<String>) -> Self {
        let is_set =
            std::env::var(TOKEN).is_ok_and(|variable| Some(variable.trim()) == token.as_deref().map(str::trim));
        match (file, token) {
            (Some(file), _) => TokenSource::File(one_line(&file.to_string_lossy())),
            (None, None) => TokenSource::Nowhere,
            (None, Some(_)) if is_set => TokenSource::Variable,
            (None, Some(_)) => TokenSource::Kept,
        }
    }
}

/// What a person is told whose token is wrong or missing.
pub(crate) fn not_logged_in(url: &str) -> Failure {
    let token = kept_token(url).ok().flatten();
    refused_token(url, &TokenSource::of(None, &token))
}

fn refused_token(url: &str, source: &TokenSource) -> Failure {
    let url = one_line(url);
    let (what, hint) = match source {
        TokenSource::Nowhere => {
            ("there is no token".to_owned(), format!("`attache login {url}` asks for one and keeps it"))
        }
        TokenSource::Kept => (
            "the server did not accept the token that `attache login` kept".to_owned(),
            format!("`attache login {url}` asks for another one and keeps it"),
        ),
        TokenSource::Variable => (
            format!("the server did not accept the token in {TOKEN}"),
            format!("`attache login {url}` keeps one, which is used when {TOKEN} is not set"),
        ),
        TokenSource::File(file) => (
            format!("the server did not accept the token in `{file}`"),
            format!("`attache login {url}` keeps one, which is used without `--token-file`"),
        ),
    };
    let message = format!(
        "not logged in to {url}: {what}\nhint: {hint}; `attache serve token add NAME` makes one, at the server"
    );
    Failure::new(Code::Login, message)
}

/// Forgets the token for the agent at an address.
pub(crate) fn logout(url: &str) -> Result<(), Failure> {
    match keys()?.forget_for(&key_name(url)).map_err(|error| Failure::usage(error.to_string()))? {
        true => eprintln!("the token for {} is forgotten", one_line(url)),
        false => eprintln!("there was no token for {}", one_line(url)),
    }
    Ok(())
}

fn kept_token(url: &str) -> Result<Option<String>, Failure> {
    let found = keys()?.find_for(&key_name(url), &[TOKEN]).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(found.map(|token| token.expose().to_owned()))
}

/// Both profiles of a server have the same tokens.
fn key_name(url: &str) -> String {
    let url = url.trim_end_matches('/').trim_end_matches("/acp");
    match url.split_once("://") {
        Some(("ws" | "http", rest)) => format!("http://{rest}"),
        Some((_, rest)) => format!("https://{rest}"),
        None => url.to_owned(),
    }
}

fn keys() -> Result<Keys, Failure> {
    Ok(Keys::new(&paths::config()?.join("remote")))
}

/// What a person is told, and the exit code.
fn failure(error: RemoteError) -> Failure {
    let code = match error {
        RemoteError::Address(_) | RemoteError::InTheClear | RemoteError::Tls(_) => Code::Usage,
        RemoteError::Unauthorized(401) => Code::Login,
        _ => Code::Died,
    };
    let message = match error {
        // A wrong token is 401; this is what a server says that is called by a name which it does not know.
        RemoteError::Unauthorized(403) => "the server does not answer to the name in the address (status 403)\n\
             hint: `attache serve --host NAME` has it answer to that name, too"
            .to_owned(),
        error @ RemoteError::Certificate(_) => format!(
            "{error}\nhint: if it is one of the server's own, its fingerprint is in the log of the server: give it with \
             `attache connect URL --fingerprint sha256:…` or `attache agents add NAME --url URL --fingerprint sha256:…`"
        ),
        error @ RemoteError::WrongFingerprint(_) => format!(
            "{error}\nhint: compare it with the one in the log of the server; another one means another server, or that its \
             certificate was made anew"
        ),
        error => error.to_string(),
    };
    Failure::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_session_is_replaced() {
        let changed = with_cwd(r#"{"cwd":"/home/me","mcpServers":[{"cwd":1}]}"#, "/srv/\"p").unwrap();
        assert_eq!(changed.as_str(), r#"{"cwd":"/srv/\"p","mcpServers":[{"cwd":1}]}"#);
        assert!(with_cwd(r#"{"cursor":"x"}"#, "/srv").is_none());
    }

    #[test]
    fn files_and_terminals_of_this_machine_are_not_offered_to_another() {
        let offer =
            r#"{"protocolVersion":1,"clientCapabilities":{"auth":{},"fs":{"readTextFile":true},"terminal":true}}"#;
        let changed: serde_json::Value = serde_json::from_str(without_files(offer).unwrap().as_str()).unwrap();
        assert_eq!(changed, serde_json::json!({ "protocolVersion": 1, "clientCapabilities": { "auth": {} } }));
        assert!(without_files(r#"{"protocolVersion":2,"capabilities":{}}"#).is_none());
    }

    #[test]
    fn the_place_of_an_agent_on_another_machine_is_in_its_command() {
        let place = |fingerprint, directory| {
            place_of(&command("wss://build.example.com:7316/acp", fingerprint, directory).unwrap()).unwrap()
        };
        let fingerprint = format!("sha256:{}", "0a".repeat(32));
        let host = || "build.example.com:7316".to_owned();
        assert_eq!(place(None, None), Place { host: host(), directory: None });
        let expected = Place { host: host(), directory: Some("/srv/shop".into()) };
        assert_eq!(place(Some(&fingerprint), Some("/srv/shop")), expected);
        assert_eq!(place_of(&["sh".into(), "connect".into(), "wss://a.example".into()]), None);
    }

    #[test]
    fn what_could_not_work_is_no_address_of_an_agent() {
        let wrong = |url: &str, fingerprint, directory| command(url, fingerprint, directory).unwrap_err().message;
        let fingerprint = format!("sha256:{}", "0a".repeat(32));
        assert!(wrong("http://build.example.com", None, None).contains("without TLS"));
        assert!(wrong("ws://localhost", Some(&fingerprint), None).contains("https:// or wss://"));
        assert!(wrong("wss://a.example", None, Some("shop")).contains("not absolute"));
        assert!(command("http://localhost:7316", None, Some("/srv")).is_ok());
    }

    #[test]
    fn both_profiles_have_one_token() {
        assert_eq!(key_name("wss://a.example/acp"), key_name("https://a.example/"));
        assert_ne!(key_name("ws://a.example"), key_name("wss://a.example"));
    }
}
