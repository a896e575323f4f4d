//! Agents on other machines: `attache connect`, and their tokens.

use std::path::Path;

use attache::Dialect;
use attache::proto::json::{RawJson, Reader, Writer};
use attache::relay::{Direction, Relay, RelayMessage, Verdict};
use attache_agent::Keys;
use attache_http::{Fingerprint, Remote, RemoteError};

use crate::cli::Connect;
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::paths;
use crate::tty::Tty;
use crate::visible::one_line;

/// The variable that has a token, for scripts.
const TOKEN: &str = "ATTACHE_TOKEN";

/// How the agent at an address is started: by ourselves.
pub(crate) fn command(url: &str, fingerprint: Option<&str>, directory: Option<&str>) -> Result<Vec<String>, Failure> {
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let program = program.ok_or_else(|| Failure::usage("this program cannot tell where it is"))?;
    Remote::new(url).map_err(failure)?;
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

/// The address of an agent that is started by a command that [`command`] made.
pub(crate) fn url_of(words: &[String]) -> Option<&str> {
    let [program, connect, url, ..] = words else { return None };
    let is_ours = std::env::current_exe().is_ok_and(|ours| ours == Path::new(program));
    (is_ours && connect == "connect").then_some(url)
}

/// Connects an editor on stdin and stdout to an agent on another machine.
pub(crate) async fn connect(options: Connect) -> Result<(), Failure> {
    let mut remote = Remote::new(&options.url).map_err(failure)?;
    let token = match &options.token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            Some(text.map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))?)
        }
        None => kept_token(&options.url)?,
    };
    if let Some(token) = token {
        remote = remote.token(&token);
    }
    if let Some(fingerprint) = &options.fingerprint {
        remote = remote.fingerprint(fingerprint.parse().map_err(failure)?);
    }
    let connected = remote.connect().await.map_err(failure)?;
    let (agent_reader, agent_writer) = connected.transport.into_streams();
    let relay = Relay::stdio(agent_reader, agent_writer);
    let mut relay = relay.map_err(|error| Failure::usage(format!("cannot use stdin and stdout: {error}")))?;
    if let Some(directory) = options.dir {
        relay = relay.on_message(move |direction, message| in_directory(&directory, direction, message));
    }
    let relayed = until_interrupted(async { Ok(relay.run().await) }).await?;
    match (connected.failure.get(), relayed) {
        // The server has ended the conversation, and that is that.
        (Some(RemoteError::Ended), Ok(_)) | (None, Ok(_)) => Ok(()),
        (Some(error), _) => Err(failure(error.clone())),
        (None, Err(error)) => Err(Failure::new(Code::Died, format!("the connection broke: {error}"))),
    }
}

/// Has a session work in this directory of the other machine, whatever the editor says.
fn in_directory(directory: &str, direction: Direction, message: &RelayMessage<'_>) -> Verdict {
    let (Direction::ClientToAgent, Some(method)) = (direction, message.method()) else { return Verdict::Pass };
    let changed = message.params().and_then(|params| match method {
        "initialize" => without_files(params),
        "session/new" | "session/load" | "session/resume" | "session/fork" | "session/list" => {
            with_cwd(params, directory)
        }
        _ => None,
    });
    changed.map_or(Verdict::Pass, |params| message.with_params(&params))
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
    keys()?.keep_for(&key_name(url), &token).map_err(|error| Failure::usage(error.to_string()))?;
    eprintln!("the token for {} is kept in a file that only you can read", one_line(url));
    Ok(())
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
        RemoteError::Unauthorized(_) => Code::Login,
        _ => Code::Died,
    };
    let message = match error {
        // A wrong token is 401; this is what a server says that is called by a name which it does not know.
        RemoteError::Unauthorized(403) => "the server does not answer to the name in the address (status 403)\n\
             hint: `attache serve --host NAME` has it answer to that name, too"
            .to_owned(),
        RemoteError::Unauthorized(status) => format!(
            "the server did not accept the token (status {status})\n\
             hint: `attache login URL` keeps a token for the server at that address"
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
    fn both_profiles_have_one_token() {
        assert_eq!(key_name("wss://a.example/acp"), key_name("https://a.example/"));
        assert_ne!(key_name("ws://a.example"), key_name("wss://a.example"));
    }
}
