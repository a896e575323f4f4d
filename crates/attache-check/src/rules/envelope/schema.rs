//! Whether params and results fit the schema: they do if the library can read them.

use attache_proto::Dialect;
use attache_proto::conversation::requested_dialect;
use attache_proto::json::{DecodeError, Reason};
use attache_proto::method::{
    AgentNotification, AgentRequest, ClientNotification, ClientRequest, Method, Request, decode_result,
};
use attache_proto::model::auth::{AuthenticateRequest, LogoutRequest};
use attache_proto::model::config::SetConfigOptionRequest;
use attache_proto::model::elicitation::CreateElicitationRequest;
use attache_proto::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache_proto::model::initialize::InitializeRequest;
use attache_proto::model::permission::PermissionRequest;
use attache_proto::model::prompt::PromptRequest;
use attache_proto::model::session::{
    CloseSessionRequest, DeleteSessionRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    ResumeSessionRequest, SetModeRequest, SetModelRequest,
};
use attache_proto::model::terminal::{
    CancelTerminalRequest, CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalOutputRequest,
    WaitForTerminalExitRequest,
};
use attache_proto::model::tool::CancelToolCallRequest;
use attache_proto::model::unstable::{
    ArchiveSessionRequest, AuthStatusRequest, DisableProviderRequest, ForkSessionRequest, ListProvidersRequest,
    McpMessageRequest, SessionStatusRequest, SetProviderRequest, SetTitleRequest, UnarchiveSessionRequest,
};
use serde_json::Value;

use crate::exchange::{Body, Call, other};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::initialize::has_words_of_another_version;

/// What was ignored in something that can be read, or why it cannot be read.
type Reading = Result<Vec<DecodeError>, DecodeError>;

/// Reads the params of a message; `None` for methods that its side does not send, or that the dialect does not have.
pub(in crate::rules) fn read_params(from: Side, body: &Body, spoken: Dialect) -> Option<Reading> {
    let (name, params, is_request) = match body {
        Body::Request { method, params, .. } => (method, params, true),
        Body::Notification { method, params } => (method, params, false),
        _ => return None,
    };
    let method = Method::parse(name)?;
    let text = (!params.is_null()).then(|| params.to_string());
    let text = text.as_deref();
    let dialect = if method == Method::Initialize { requested_dialect(text).unwrap_or(spoken) } else { spoken };
    if method.name(dialect) != Some(name) {
        return None;
    }
    let mut tolerated = Vec::new();
    let read = match (from, is_request) {
        (Side::Client, true) => ClientRequest::decode(method, text, dialect, &mut tolerated)?.map(drop),
        (Side::Client, false) => ClientNotification::decode(method, text, dialect, &mut tolerated)?.map(drop),
        (Side::Agent, true) => AgentRequest::decode(method, text, dialect, &mut tolerated)?.map(drop),
        (Side::Agent, false) => AgentNotification::decode(method, text, dialect, &mut tolerated)?.map(drop),
    };
    Some(read.map(|()| tolerated))
}

pub(super) fn params(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        match read_params(trial.side, &message.body, trial.dialect) {
            None => {}
            Some(Ok(_)) => verdict.kept(),
            Some(Err(error)) => verdict.broken(index, wrong(message.body.method(), &error)),
        }
    }
}

pub(super) fn results(trial: &Trial<'_>, verdict: &mut Verdict) {
    for call in trial.calls.iter().filter(|call| call.to() == trial.side) {
        let Some(at) = call.answered_at() else { continue };
        match read_result(trial, call) {
            None => {}
            Some(Ok(_)) => verdict.kept(),
            Some(Err(error)) => verdict.broken_by(vec![call.at, at], wrong(Some(&call.method), &error)),
        }
    }
}

pub(super) fn optional_parts(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        let Some(Ok(mut tolerated)) = read_params(trial.side, &message.body, trial.dialect) else { continue };
        if message.body.method() == Some("initialize") {
            drop_what_initialize_judges(&mut tolerated, message.body.params());
        }
        verdict.check(tolerated.is_empty(), index, || wrong_parts(message.body.method(), &tolerated));
    }
    for call in trial.calls.iter().filter(|call| call.to() == trial.side) {
        let (Some(at), Some(Ok(mut tolerated))) = (call.answered_at(), read_result(trial, call)) else { continue };
        if let Some(said) = call.result().filter(|_| call.method == "initialize") {
            drop_what_initialize_judges(&mut tolerated, said);
        }
        verdict.check(tolerated.is_empty(), at, || wrong_parts(Some(&call.method), &tolerated));
    }
}

/// Leaves out what rules on `initialize` say better: that the words are those of another version, and that a name is missing.
fn drop_what_initialize_judges(tolerated: &mut Vec<DecodeError>, said: &Value) {
    let is_another = has_words_of_another_version(said);
    tolerated.retain(|error| !(is_another || error.reason() == Reason::Missing && error.path() == "info"));
}

fn wrong_parts(method: Option<&str>, tolerated: &[DecodeError]) -> String {
    tolerated.first().map(|error| wrong(method, error)).unwrap_or_default()
}

fn wrong(method: Option<&str>, error: &DecodeError) -> String {
    format!("{}: {error}", shown(method.unwrap_or_default()))
}

pub(super) fn method_kind(trial: &Trial<'_>, verdict: &mut Verdict) {
    for (index, message) in trial.messages_of(trial.side) {
        let Some((name, method)) = message.body.method().and_then(|name| Some((name, Method::parse(name)?))) else {
            continue;
        };
        let is_sent = |side, is_request| match (side, is_request) {
            (Side::Client, true) => method.is_client_request(),
            (Side::Client, false) => method.is_client_notification(),
            (Side::Agent, true) => method.is_agent_request(),
            (Side::Agent, false) => method.is_agent_notification(),
        };
        let is_request = matches!(message.body, Body::Request { .. });
        verdict.check(is_sent(trial.side, is_request), index, || {
            let name = shown(name);
            match is_sent(trial.side, !is_request) {
                true if is_request => format!("{name} with an id, though it is a notification"),
                true => format!("{name} without an id, though it is a request"),
                false if is_sent(other(trial.side), is_request) => format!("{name}, which the other side sends"),
                false => format!("{name}, which is not sent like this"),
            }
        });
    }
}

/// Reads the result of a call; `None` if it has none, or the method is unknown.
fn read_result(trial: &Trial<'_>, call: &Call) -> Option<Reading> {
    let result = call.result()?;
    let method = Method::parse(&call.method)?;
    let dialect = if method == Method::Initialize { greeted(trial, call, result) } else { trial.dialect };
    let is_sent = if call.from == Side::Client { method.is_client_request() } else { method.is_agent_request() };
    if !is_sent || method.name(dialect) != Some(&call.method) {
        return None;
    }
    fits(method, &result.to_string(), dialect)
}

/// The dialect of an answer to `initialize`.
fn greeted(trial: &Trial<'_>, call: &Call, result: &Value) -> Dialect {
    let asked = requested_dialect(Some(&call.params.to_string())).unwrap_or(trial.dialect);
    match result["protocolVersion"].as_u64() {
        Some(0 | 1) => Dialect::V1,
        _ => asked,
    }
}

fn fits(method: Method, result: &str, dialect: Dialect) -> Option<Reading> {
    macro_rules! read {
        ($($method:ident($request:ty),)*) => {
            match method {
                $(Method::$method => read::<$request>(result, dialect),)*
                _ => return None,
            }
        };
    }
    Some(read! {
        Initialize(InitializeRequest),
        Authenticate(AuthenticateRequest),
        Logout(LogoutRequest),
        AuthStatus(AuthStatusRequest),
        NewSession(NewSessionRequest),
        LoadSession(LoadSessionRequest),
        ResumeSession(ResumeSessionRequest),
        ListSessions(ListSessionsRequest),
        CloseSession(CloseSessionRequest),
        DeleteSession(DeleteSessionRequest),
        ForkSession(ForkSessionRequest),
        ArchiveSession(ArchiveSessionRequest),
        UnarchiveSession(UnarchiveSessionRequest),
        SessionStatus(SessionStatusRequest),
        SetTitle(SetTitleRequest),
        SetMode(SetModeRequest),
        SetModel(SetModelRequest),
        SetConfigOption(SetConfigOptionRequest),
        Prompt(PromptRequest),
        CancelToolCall(CancelToolCallRequest),
        CancelTerminal(CancelTerminalRequest),
        ListProviders(ListProvidersRequest),
        SetProvider(SetProviderRequest),
        DisableProvider(DisableProviderRequest),
        RequestPermission(PermissionRequest),
        ReadTextFile(ReadTextFileRequest),
        WriteTextFile(WriteTextFileRequest),
        CreateTerminal(CreateTerminalRequest),
        TerminalOutput(TerminalOutputRequest),
        WaitForTerminalExit(WaitForTerminalExitRequest),
        KillTerminal(KillTerminalRequest),
        ReleaseTerminal(ReleaseTerminalRequest),
        CreateElicitation(CreateElicitationRequest),
        McpMessage(McpMessageRequest),
    })
}

fn read<R: Request>(result: &str, dialect: Dialect) -> Reading {
    let mut tolerated = Vec::new();
    decode_result::<R::Response>(result, dialect, &mut tolerated)?;
    Ok(tolerated)
}
