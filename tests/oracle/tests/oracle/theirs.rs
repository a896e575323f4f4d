//! Everything that the official types can say comes through ours unchanged.

use std::collections::BTreeSet;
use std::fmt::Debug;

use agent_client_protocol_schema as official;
use attache_proto::json::{Reader, Writer};
use attache_proto::{Decode, Dialect, Encode};
use schemars::generate::SchemaSettings;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::model;
use crate::sample::{Definitions, samples};

/// Groups of capabilities that we do not tell from absent ones when nothing is in them: nothing is offered either way.
const EMPTY_GROUPS: &[(&str, &str)] = &[
    ("/capabilities", "auth"),
    ("/capabilities/session", "prompt"),
    ("/capabilities/session", "mcp"),
    ("/clientCapabilities", "session"),
];

/// What a custom stop reason carries besides its name is not kept: `_meta` is the place for custom data.
const STOP_REASON_EXTRAS: &[&str] = &["/update", "/update/state", "/state"];

/// Takes out what may differ; the two lists above say why.
fn without_exceptions(mut value: Value) -> Value {
    for (parent, group) in EMPTY_GROUPS {
        if let Some(Value::Object(fields)) = value.pointer_mut(parent)
            && fields.get(*group) == Some(&json!({}))
        {
            fields.remove(*group);
        }
    }
    for place in STOP_REASON_EXTRAS {
        if let Some(Value::Object(fields)) = value.pointer_mut(place)
            && fields.get("state") == Some(&json!("idle"))
        {
            fields.remove("x_extra");
        }
    }
    value
}

pub(crate) fn definitions(dialect: Dialect) -> Definitions {
    macro_rules! generate {
        ($version:ident: $($message:ident)*) => {{
            let mut generator = SchemaSettings::draft2020_12().into_generator();
            $( generator.subschema_for::<official::$version::$message>(); )*
            generator.definitions().clone()
        }};
    }
    match dialect {
        Dialect::V1 => generate!(v1: ClientRequest AgentRequest AgentResponse ClientResponse ClientNotification
            AgentNotification ProtocolLevelNotification ProxyRequest ProxyResponse ProxyNotification Error),
        _ => generate!(v2: ClientRequest AgentRequest AgentResponse ClientResponse ClientNotification
            AgentNotification ProtocolLevelNotification ProxyRequest ProxyResponse ProxyNotification Error),
    }
}

pub(crate) fn encode<T: Encode>(value: &T, dialect: Dialect) -> (String, Vec<&'static str>) {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, dialect);
    writer.value(value);
    let lost = writer.lost();
    (String::from_utf8(buffer).unwrap(), lost)
}

/// Sends every sample of the official type through ours, and reports what came back changed.
fn check<Theirs, Ours>(name: &str, dialect: Dialect, definitions: &Definitions) -> Vec<String>
where
    Theirs: Serialize + DeserializeOwned,
    Ours: Encode + Decode + PartialEq + Debug,
{
    let through = |sample: Value| -> Result<(), String> {
        let raw = sample.to_string();
        let theirs: Theirs = serde_json::from_value(sample).map_err(|error| format!("they reject it: {error}"))?;
        let sent = serde_json::to_value(&theirs).unwrap();
        let text = sent.to_string();
        // They write less than they read, so both have to be good enough for us.
        let read = |text: &str| -> Result<Ours, String> {
            let mut reader = Reader::new(text, dialect);
            let ours = reader.decode().map_err(|error| format!("we reject it: {error}: {text}"))?;
            match reader.tolerated().as_slice() {
                [] => Ok(ours),
                tolerated => Err(format!("we tolerate {tolerated:?}: {text}")),
            }
        };
        read(&raw)?;
        let ours = read(&text)?;
        let (written, lost) = encode(&ours, dialect);
        if !lost.is_empty() {
            return Err(format!("we lose {lost:?}: {text}"));
        }
        if read(&written)? != ours {
            return Err(format!("we read our own differently: {written}"));
        }
        let theirs: Theirs =
            serde_json::from_str(&written).map_err(|error| format!("they reject ours: {error}: {written}"))?;
        let back = serde_json::to_value(&theirs).unwrap();
        if without_exceptions(back.clone()) != without_exceptions(sent) {
            return Err(format!("sent {text}\n    back {back}"));
        }
        Ok(())
    };
    let samples = samples(&definitions[name], definitions);
    assert!(!samples.is_empty());
    samples
        .into_iter()
        .filter_map(|sample| through(sample.clone()).err().map(|why| format!("{name} {sample}\n    {why}")))
        .collect()
}

macro_rules! rows {
    ($version:ident $dialect:ident: $($theirs:ident = $ours:ident,)*) => {{
        let definitions = definitions(Dialect::$dialect);
        let rows = BTreeSet::from([$( stringify!($theirs) ),*]);
        let all: BTreeSet<&str> = definitions
            .iter()
            .filter(|(name, definition)| definition.get("x-method").is_some() || *name == "Error")
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(all, rows, "the table has a row for every message");
        let mut failures = Vec::new();
        $( failures.extend(check::<official::$version::$theirs, model::$ours>(
            stringify!($theirs), Dialect::$dialect, &definitions)); )*
        let shown: String = failures.iter().take(20).flat_map(|failure| [failure.as_str(), "\n"]).collect();
        assert!(failures.is_empty(), "{} failures, among them:\n{shown}", failures.len());
    }};
}

#[test]
fn v1_comes_through_unchanged() {
    rows! { v1 V1:
        ArchiveSessionRequest = ArchiveSessionRequest,
        ArchiveSessionResponse = ArchiveSessionResponse,
        AuthStatusRequest = AuthStatusRequest,
        AuthStatusResponse = AuthStatusResponse,
        AuthStatusUpdateNotification = AuthStatusNotification,
        AuthenticateRequest = AuthenticateRequest,
        AuthenticateResponse = AuthenticateResponse,
        CancelNotification = CancelNotification,
        CancelRequestNotification = CancelRequestNotification,
        CloseSessionRequest = CloseSessionRequest,
        CloseSessionResponse = CloseSessionResponse,
        CompleteElicitationNotification = CompleteElicitationNotification,
        CreateElicitationRequest = CreateElicitationRequest,
        CreateElicitationResponse = CreateElicitationResponse,
        CreateTerminalRequest = CreateTerminalRequest,
        CreateTerminalResponse = CreateTerminalResponse,
        DeleteSessionRequest = DeleteSessionRequest,
        DeleteSessionResponse = DeleteSessionResponse,
        DisableProviderRequest = DisableProviderRequest,
        DisableProviderResponse = DisableProviderResponse,
        Error = ErrorObject,
        ForkSessionRequest = ForkSessionRequest,
        ForkSessionResponse = ForkSessionResponse,
        InitializeProxyRequest = ProxyInitializeRequest,
        InitializeProxyResponse = InitializeResponse,
        InitializeRequest = InitializeRequest,
        InitializeResponse = InitializeResponse,
        KillTerminalRequest = KillTerminalRequest,
        KillTerminalResponse = KillTerminalResponse,
        ListProvidersRequest = ListProvidersRequest,
        ListProvidersResponse = ListProvidersResponse,
        ListSessionsRequest = ListSessionsRequest,
        ListSessionsResponse = ListSessionsResponse,
        LoadSessionRequest = LoadSessionRequest,
        LoadSessionResponse = LoadSessionResponse,
        LogoutRequest = LogoutRequest,
        LogoutResponse = LogoutResponse,
        MessageMcpNotification = McpMessageNotification,
        MessageMcpRequest = McpMessageRequest,
        MessageMcpResponse = McpMessageResponse,
        NewSessionRequest = NewSessionRequest,
        NewSessionResponse = NewSessionResponse,
        PromptRequest = PromptRequest,
        PromptResponse = PromptResponse,
        ProxySuccessorNotification = ProxySuccessorNotification,
        ProxySuccessorRequest = ProxySuccessorRequest,
        ProxySuccessorResponse = RawJson,
        ReadTextFileRequest = ReadTextFileRequest,
        ReadTextFileResponse = ReadTextFileResponse,
        ReleaseTerminalRequest = ReleaseTerminalRequest,
        ReleaseTerminalResponse = ReleaseTerminalResponse,
        RequestPermissionRequest = PermissionRequest,
        RequestPermissionResponse = PermissionResponse,
        ResumeSessionRequest = ResumeSessionRequest,
        ResumeSessionResponse = ResumeSessionResponse,
        SessionNotification = SessionNotification,
        SessionStatusRequest = SessionStatusRequest,
        SessionStatusResponse = SessionStatusResponse,
        SetProviderRequest = SetProviderRequest,
        SetProviderResponse = SetProviderResponse,
        SetSessionConfigOptionRequest = SetConfigOptionRequest,
        SetSessionConfigOptionResponse = SetConfigOptionResponse,
        SetSessionModeRequest = SetModeRequest,
        SetSessionModeResponse = SetModeResponse,
        SetSessionTitleRequest = SetTitleRequest,
        SetSessionTitleResponse = SetTitleResponse,
        TerminalOutputRequest = TerminalOutputRequest,
        TerminalOutputResponse = TerminalOutputResponse,
        UnarchiveSessionRequest = UnarchiveSessionRequest,
        UnarchiveSessionResponse = UnarchiveSessionResponse,
        WaitForTerminalExitRequest = WaitForTerminalExitRequest,
        WaitForTerminalExitResponse = WaitForTerminalExitResponse,
        WriteTextFileRequest = WriteTextFileRequest,
        WriteTextFileResponse = WriteTextFileResponse,
    }
}

#[test]
fn v2_comes_through_unchanged() {
    rows! { v2 V2:
        ArchiveSessionRequest = ArchiveSessionRequest,
        ArchiveSessionResponse = ArchiveSessionResponse,
        AuthStatusRequest = AuthStatusRequest,
        AuthStatusResponse = AuthStatusResponse,
        AuthStatusUpdateNotification = AuthStatusNotification,
        CancelRequestNotification = CancelRequestNotification,
        CancelSessionNotification = CancelNotification,
        CancelTerminalRequest = CancelTerminalRequest,
        CancelTerminalResponse = CancelTerminalResponse,
        CancelToolCallRequest = CancelToolCallRequest,
        CancelToolCallResponse = CancelToolCallResponse,
        CloseSessionRequest = CloseSessionRequest,
        CloseSessionResponse = CloseSessionResponse,
        CompleteElicitationNotification = CompleteElicitationNotification,
        CreateElicitationRequest = CreateElicitationRequest,
        CreateElicitationResponse = CreateElicitationResponse,
        DeleteSessionRequest = DeleteSessionRequest,
        DeleteSessionResponse = DeleteSessionResponse,
        DisableProviderRequest = DisableProviderRequest,
        DisableProviderResponse = DisableProviderResponse,
        Error = ErrorObject,
        ForkSessionRequest = ForkSessionRequest,
        ForkSessionResponse = ForkSessionResponse,
        InitializeProxyRequest = ProxyInitializeRequest,
        InitializeProxyResponse = InitializeResponse,
        InitializeRequest = InitializeRequest,
        InitializeResponse = InitializeResponse,
        ListProvidersRequest = ListProvidersRequest,
        ListProvidersResponse = ListProvidersResponse,
        ListSessionsRequest = ListSessionsRequest,
        ListSessionsResponse = ListSessionsResponse,
        LoginAuthRequest = AuthenticateRequest,
        LoginAuthResponse = AuthenticateResponse,
        LogoutAuthRequest = LogoutRequest,
        LogoutAuthResponse = LogoutResponse,
        MessageMcpNotification = McpMessageNotification,
        MessageMcpRequest = McpMessageRequest,
        MessageMcpResponse = McpMessageResponse,
        NewSessionRequest = NewSessionRequest,
        NewSessionResponse = NewSessionResponse,
        PromptRequest = PromptRequest,
        PromptResponse = PromptResponse,
        ProxySuccessorNotification = ProxySuccessorNotification,
        ProxySuccessorRequest = ProxySuccessorRequest,
        ProxySuccessorResponse = RawJson,
        RequestPermissionRequest = PermissionRequest,
        RequestPermissionResponse = PermissionResponse,
        ResumeSessionRequest = ResumeSessionRequest,
        ResumeSessionResponse = ResumeSessionResponse,
        SessionStatusRequest = SessionStatusRequest,
        SessionStatusResponse = SessionStatusResponse,
        SetProviderRequest = SetProviderRequest,
        SetProviderResponse = SetProviderResponse,
        SetSessionConfigOptionRequest = SetConfigOptionRequest,
        SetSessionConfigOptionResponse = SetConfigOptionResponse,
        SetSessionTitleRequest = SetTitleRequest,
        SetSessionTitleResponse = SetTitleResponse,
        UnarchiveSessionRequest = UnarchiveSessionRequest,
        UnarchiveSessionResponse = UnarchiveSessionResponse,
        UpdateSessionNotification = SessionNotification,
    }
}
