//! Real conversations of others: all that was said can be read, written again and read again without a difference.
//!
//! `interop/run` records them and `interop/trim.py` makes them small. In a recording, `in` is what the client sends.
#![allow(clippy::unwrap_used, reason = "this is a test")]

use std::collections::BTreeMap;

use attache::Dialect;
use attache::model::config::SetConfigOptionResponse;
use attache::model::error::ErrorObject;
use attache::model::fs::{ReadTextFileResponse, WriteTextFileResponse};
use attache::model::initialize::InitializeResponse;
use attache::model::permission::PermissionResponse;
use attache::model::prompt::PromptResponse;
use attache::model::session::{
    CloseSessionResponse, DeleteSessionResponse, ListSessionsResponse, LoadSessionResponse, NewSessionResponse,
    ResumeSessionResponse, SetModeResponse,
};
use attache::model::terminal::{
    CreateTerminalResponse, KillTerminalResponse, ReleaseTerminalResponse, TerminalOutputResponse,
    WaitForTerminalExitResponse,
};
use attache_proto::json::{DecodeError, Writer};
use attache_proto::method::{
    AgentNotification, AgentRequest, ClientNotification, ClientRequest, Method, decode_result,
};
use attache_proto::{Decode, Encode};
use serde_json::Value;

/// What a recording shows that is not as the protocol has it, each once, as `METHOD: what was let pass`.
/// So far there is nothing of the kind.
const TOLERATED: &[(&str, &[&str])] = &[];

/// What a recording says in fields that the protocol does not have, each once, as `METHOD.FIELD`. These are not kept.
const UNKNOWN: &[(&str, &[&str])] = &[];

#[test]
fn recorded_conversations_are_understood() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 11);
    let mut messages = 0;
    let (mut tolerated, mut unknown) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut reading = Reading::new(&name, &std::fs::read_to_string(&file).unwrap());
        messages += reading.messages;
        for (all, found) in [(&mut tolerated, &mut reading.tolerated), (&mut unknown, &mut reading.unknown)] {
            found.sort();
            found.dedup();
            all.extend(found.drain(..).map(|found| (name.clone(), found)));
        }
    }
    assert!(messages > 300, "{messages}");
    assert_eq!(tolerated, table(TOLERATED));
    assert_eq!(unknown, table(UNKNOWN));
}

fn table(rows: &[(&str, &[&str])]) -> Vec<(String, String)> {
    let row = |(name, what): &(&str, &[&str])| what.iter().map(|what| (name.to_string(), what.to_string())).collect();
    rows.iter().flat_map(row as fn(&_) -> Vec<_>).collect()
}

/// One recording as it is read.
struct Reading<'a> {
    name: &'a str,
    dialect: Dialect,
    messages: usize,
    /// Questions that wait for their answer, by direction and id.
    asked: BTreeMap<(bool, String), Method>,
    tolerated: Vec<String>,
    unknown: Vec<String>,
}

impl<'a> Reading<'a> {
    fn new(name: &'a str, text: &str) -> Self {
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let header = lines.next().unwrap();
        let dialect = dialect(header["protocol"].as_str().unwrap());
        let (messages, asked) = (0, BTreeMap::new());
        let mut reading = Reading { name, dialect, messages, asked, tolerated: Vec::new(), unknown: Vec::new() };
        for line in lines {
            reading.messages += 1;
            reading.message(line["dir"] == "in", &line["message"]);
        }
        reading
    }

    fn message(&mut self, from_client: bool, message: &Value) {
        let id = message.get("id").map(Value::to_string);
        let params = message.get("params").unwrap_or(&Value::Null);
        match (message.get("method").and_then(Value::as_str), id) {
            // Methods of one's own have no types here.
            (Some(name), _) if name.starts_with('_') => {}
            (Some(name), id) => {
                let method = Method::parse(name).unwrap_or_else(|| panic!("{}: no method {name}", self.name));
                match (&id, from_client) {
                    (Some(_), true) => self.params(method, params, ClientRequest::decode, ClientRequest::encode_params),
                    (Some(_), false) => self.params(method, params, AgentRequest::decode, AgentRequest::encode_params),
                    (None, true) => {
                        self.params(method, params, ClientNotification::decode, ClientNotification::encode_params);
                    }
                    (None, false) => {
                        self.params(method, params, AgentNotification::decode, AgentNotification::encode_params);
                    }
                }
                if let Some(id) = id {
                    self.asked.insert((from_client, id), method);
                }
            }
            (None, id) => {
                let method = self.asked.remove(&(!from_client, id.unwrap())).unwrap();
                match message.get("error") {
                    Some(error) => self.value::<ErrorObject>(method, error),
                    None => self.result(method, &message["result"]),
                }
            }
        }
    }

    #[expect(clippy::type_complexity, reason = "the four directions have no trait in common")]
    fn params<T: PartialEq + std::fmt::Debug>(
        &mut self,
        method: Method,
        params: &Value,
        decode: fn(Method, Option<&str>, Dialect, &mut Vec<DecodeError>) -> Option<Result<T, DecodeError>>,
        encode: fn(&T, &mut Writer<'_>),
    ) {
        let read = |text: &str, dialect, tolerated: &mut _| decode(method, Some(text), dialect, tolerated).unwrap();
        self.check(method, params, read, encode);
    }

    fn result(&mut self, method: Method, result: &Value) {
        match method {
            Method::Initialize => self.value::<InitializeResponse>(method, result),
            Method::NewSession => self.value::<NewSessionResponse>(method, result),
            Method::LoadSession => self.value::<LoadSessionResponse>(method, result),
            Method::ResumeSession => self.value::<ResumeSessionResponse>(method, result),
            Method::ListSessions => self.value::<ListSessionsResponse>(method, result),
            Method::CloseSession => self.value::<CloseSessionResponse>(method, result),
            Method::DeleteSession => self.value::<DeleteSessionResponse>(method, result),
            Method::SetMode => self.value::<SetModeResponse>(method, result),
            Method::SetConfigOption => self.value::<SetConfigOptionResponse>(method, result),
            Method::Prompt => self.value::<PromptResponse>(method, result),
            Method::RequestPermission => self.value::<PermissionResponse>(method, result),
            Method::ReadTextFile => self.value::<ReadTextFileResponse>(method, result),
            Method::WriteTextFile => self.value::<WriteTextFileResponse>(method, result),
            Method::CreateTerminal => self.value::<CreateTerminalResponse>(method, result),
            Method::TerminalOutput => self.value::<TerminalOutputResponse>(method, result),
            Method::WaitForTerminalExit => self.value::<WaitForTerminalExitResponse>(method, result),
            Method::KillTerminal => self.value::<KillTerminalResponse>(method, result),
            Method::ReleaseTerminal => self.value::<ReleaseTerminalResponse>(method, result),
            other => panic!("{}: no row for the answer to {other}", self.name),
        }
    }

    fn value<T: Decode + Encode + PartialEq + std::fmt::Debug>(&mut self, method: Method, value: &Value) {
        self.check(method, value, |text, dialect, tolerated| decode_result::<T>(text, dialect, tolerated), T::encode);
    }

    /// Reads a value, writes it and reads it again.
    fn check<T: PartialEq + std::fmt::Debug>(
        &mut self,
        method: Method,
        value: &Value,
        decode: impl Fn(&str, Dialect, &mut Vec<DecodeError>) -> Result<T, DecodeError>,
        encode: impl Fn(&T, &mut Writer<'_>),
    ) {
        // A greeting is in the words of the version that it names.
        let version = value.get("protocolVersion").and_then(Value::as_u64);
        let dialect = version.map_or(self.dialect, |version| dialect(&version.to_string()));
        let fail = |error: DecodeError| panic!("{} {method}: {error} in {value}", self.name);
        let mut tolerated = Vec::new();
        let model = decode(&value.to_string(), dialect, &mut tolerated).unwrap_or_else(fail);
        let mut written = Vec::new();
        let mut writer = Writer::new(&mut written, dialect);
        encode(&model, &mut writer);
        assert_eq!(writer.lost(), [""; 0], "{} {method}: {value}", self.name);
        let written = String::from_utf8(written).unwrap();
        let again = decode(&written, dialect, &mut Vec::new()).unwrap_or_else(fail);
        assert_eq!(model, again, "{} {method}", self.name);
        self.tolerated.extend(tolerated.iter().map(|error| format!("{method}: {error}")));
        left_out(value, &serde_json::from_str(&written).unwrap(), &method.to_string(), &mut self.unknown);
    }
}

/// Finds what was read and not written again. Null, false and an empty list or object say as much as nothing.
fn left_out(read: &Value, written: &Value, path: &str, found: &mut Vec<String>) {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            for (key, value) in read {
                left_out(value, written.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"), found);
            }
        }
        (Value::Array(read), Value::Array(written)) => {
            for (at, value) in read.iter().enumerate() {
                left_out(value, written.get(at).unwrap_or(&Value::Null), path, found);
            }
        }
        (read, written) if read == written => {}
        (Value::Array(read), Value::Null) if read.is_empty() => {}
        (Value::Object(read), Value::Null) if read.is_empty() => {}
        (Value::Bool(false), Value::Null) | (Value::Null, _) => {}
        _ => found.push(path.to_owned()),
    }
}

fn dialect(protocol: &str) -> Dialect {
    match protocol {
        "1" => Dialect::V1,
        "2" => Dialect::V2,
        "draft" => Dialect::V2Draft,
        other => panic!("there is no protocol {other}"),
    }
}
