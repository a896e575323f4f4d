//! The methods of the protocol: their names, who calls them, and what they carry.
//!
//! Two tables: the names by dialect, and for each direction the types. A new method is one row in each.

use crate::Dialect;
use crate::codec::{Blank, Decode, Encode, ReadInPlace};
use crate::json::{DecodeError, Reader, Writer};
use crate::model::all::*;

/// Parameters of a method that is answered.
pub trait Request: Encode + Decode + Sync {
    /// The method.
    const METHOD: Method;
    /// The result.
    type Response: Encode + Decode + Send + 'static;
}

/// Parameters of a method that is not answered.
pub trait Notification: Encode + Decode + Sync {
    /// The method.
    const METHOD: Method;
}

macro_rules! names {
    ($( $(#[$doc:meta])* $method:ident = [$v1:literal, $v2_draft:literal, $v2:literal], )*) => {
        /// A method that the protocol defines. A name may serve as a request, as a notification and both ways.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Method {
            $( $(#[$doc])* $method, )*
        }

        impl Method {
            /// All methods.
            pub const ALL: &[Method] = &[$( Method::$method, )*];

            /// The names of each in v1, the draft of v2 and v2; empty where there is none.
            const NAMES: &[[&str; 3]] = &[$( [$v1, $v2_draft, $v2], )*];
        }
    };
}

names! {
    /// Opens the connection.
    Initialize = ["initialize", "initialize", "initialize"],
    /// Logs in.
    Authenticate = ["authenticate", "authenticate", "auth/login"],
    /// Logs out.
    Logout = ["logout", "logout", "auth/logout"],
    /// Tells who is logged in (unstable).
    AuthStatus = ["auth/status", "", "auth/status"],
    /// Who is logged in has changed (unstable).
    AuthStatusUpdate = ["auth/status_update", "", "auth/status_update"],
    /// Opens a session.
    NewSession = ["session/new", "session/new", "session/new"],
    /// Takes up a session with its history.
    LoadSession = ["session/load", "session/load", ""],
    /// Takes up a session.
    ResumeSession = ["session/resume", "session/resume", "session/resume"],
    /// Lists sessions.
    ListSessions = ["session/list", "session/list", "session/list"],
    /// Closes a session.
    CloseSession = ["session/close", "session/close", "session/close"],
    /// Deletes a session.
    DeleteSession = ["session/delete", "session/delete", "session/delete"],
    /// Opens a session with the history of another (unstable).
    ForkSession = ["session/fork", "", "session/fork"],
    /// Puts a session into the archive (unstable).
    ArchiveSession = ["session/archive", "", "session/archive"],
    /// Takes a session out of the archive (unstable).
    UnarchiveSession = ["session/unarchive", "", "session/unarchive"],
    /// Tells whether a session is open (unstable).
    SessionStatus = ["session/status", "", "session/status"],
    /// Gives a session a title (unstable).
    SetTitle = ["session/set_title", "", "session/set_title"],
    /// Puts a session into a mode.
    SetMode = ["session/set_mode", "", ""],
    /// Has a session use a model, as the first agents had it.
    SetModel = ["session/set_model", "", ""],
    /// Sets an option of a session.
    SetConfigOption = ["session/set_config_option", "session/set_config_option", "session/set_config_option"],
    /// Says something in a session.
    Prompt = ["session/prompt", "session/prompt", "session/prompt"],
    /// Stops what a session is doing.
    Cancel = ["session/cancel", "session/cancel", "session/cancel"],
    /// Stops a tool call.
    CancelToolCall = ["", "", "tool_call/cancel"],
    /// Stops a command of the agent.
    CancelTerminal = ["", "", "terminal/cancel"],
    /// Lists providers of language models (unstable).
    ListProviders = ["providers/list", "", "providers/list"],
    /// Sets a provider of language models (unstable).
    SetProvider = ["providers/set", "", "providers/set"],
    /// Disables a provider of language models (unstable).
    DisableProvider = ["providers/disable", "", "providers/disable"],
    /// Tells news of a session.
    SessionUpdate = ["session/update", "session/update", "session/update"],
    /// Asks whether something may be done.
    RequestPermission = ["session/request_permission", "session/request_permission", "session/request_permission"],
    /// Reads a text file.
    ReadTextFile = ["fs/read_text_file", "", ""],
    /// Writes a text file.
    WriteTextFile = ["fs/write_text_file", "", ""],
    /// Starts a command.
    CreateTerminal = ["terminal/create", "", ""],
    /// Tells what a command has written.
    TerminalOutput = ["terminal/output", "", ""],
    /// Waits for the end of a command.
    WaitForTerminalExit = ["terminal/wait_for_exit", "", ""],
    /// Ends a command.
    KillTerminal = ["terminal/kill", "", ""],
    /// Ends a command and gives up its terminal.
    ReleaseTerminal = ["terminal/release", "", ""],
    /// Asks the user something.
    CreateElicitation = ["elicitation/create", "", "elicitation/create"],
    /// A question was answered elsewhere.
    CompleteElicitation = ["elicitation/complete", "", "elicitation/complete"],
    /// Carries a message between the agent and an MCP server of the client (unstable).
    McpMessage = ["mcp/message", "", "mcp/message"],
    /// Opens the connection to a proxy (unstable).
    ProxyInitialize = ["proxy/initialize", "", "proxy/initialize"],
    /// Carries a message between a proxy and its neighbour (unstable).
    ProxySuccessor = ["proxy/successor", "", "proxy/successor"],
    /// A request is no longer wanted. The draft of v2 does not know it and ignores it.
    CancelRequest = ["$/cancel_request", "$/cancel_request", "$/cancel_request"],
}

impl Method {
    const fn names(self) -> [&'static str; 3] {
        Self::NAMES[self as usize]
    }

    /// The method of this name in any dialect: no name means two things.
    pub fn parse(name: &str) -> Option<Method> {
        let index = Self::NAMES.iter().position(|names| names.contains(&name))?;
        Self::ALL.get(index).copied().filter(|_| !name.is_empty())
    }

    /// The name in a dialect, if it has the method.
    pub fn name(self, dialect: Dialect) -> Option<&'static str> {
        let [v1, v2_draft, v2] = self.names();
        let name = match dialect {
            Dialect::V1 => v1,
            Dialect::V2Draft => v2_draft,
            Dialect::V2 => v2,
        };
        (!name.is_empty()).then_some(name)
    }

    /// A name to call the method by, whatever the dialect: the newest that it has.
    pub fn any_name(self) -> &'static str {
        let [v1, _, v2] = self.names();
        if v2.is_empty() { v1 } else { v2 }
    }

    /// Whether clients send it as a request.
    pub fn is_client_request(self) -> bool {
        ClientRequest::METHODS.contains(&self)
    }

    /// Whether agents send it as a request.
    pub fn is_agent_request(self) -> bool {
        AgentRequest::METHODS.contains(&self)
    }

    /// Whether clients send it as a notification.
    pub fn is_client_notification(self) -> bool {
        ClientNotification::METHODS.contains(&self)
    }

    /// Whether agents send it as a notification.
    pub fn is_agent_notification(self) -> bool {
        AgentNotification::METHODS.contains(&self)
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.any_name())
    }
}

/// Reads the parameters of a method. Absent ones and null are read as an object without fields.
pub fn decode_params<T: Decode>(
    params: Option<&str>,
    dialect: Dialect,
    tolerated: &mut Vec<DecodeError>,
) -> Result<T, DecodeError> {
    decode_result(object_of(params), dialect, tolerated)
}

/// Reads the result of a method. Where nothing is required in it, null will do.
pub fn decode_result<T: Decode>(
    result: &str,
    dialect: Dialect,
    tolerated: &mut Vec<DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = Reader::new(result, dialect);
    let value = T::decode(&mut reader);
    match finish(reader, value.is_ok(), tolerated) {
        Some(error) => Err(error),
        None => value,
    }
}

/// The text of parameters that may be absent or null.
#[inline(never)]
fn object_of(params: Option<&str>) -> &str {
    params.map(str::trim_ascii).filter(|params| *params != "null").unwrap_or("{}")
}

/// Hands over what a reader ignored; what follows a good value is an error.
#[inline(never)]
fn finish(mut reader: Reader<'_>, is_good: bool, tolerated: &mut Vec<DecodeError>) -> Option<DecodeError> {
    let error = if is_good { reader.end().err() } else { None };
    tolerated.append(&mut reader.tolerated());
    error
}

/// What one end sends: rows `Method(Params)`, with `session` where the parameters name one.
macro_rules! messages {
    ($( $(#[$attribute:meta])* pub enum $name:ident { $( $method:ident($type:ty) $($session:ident)?, )* } )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each is the method of the same name")]
        pub enum $name {
            $( $method($type), )*
        }

        impl $name {
            /// The methods that come this way.
            pub const METHODS: &[Method] = &[$( Method::$method, )*];

            /// Reads the parameters of a method; `None` when it does not come this way.
            pub fn decode(
                method: Method,
                params: Option<&str>,
                dialect: Dialect,
                tolerated: &mut Vec<DecodeError>,
            ) -> Option<Result<Self, DecodeError>> {
                let mut message = match method {
                    $( Method::$method => $name::$method(Blank::blank()), )*
                    _ => return None,
                };
                let mut reader = Reader::new(object_of(params), dialect);
                let result = match &mut message {
                    $( $name::$method(params) => params.read(&mut reader), )*
                };
                Some(match finish(reader, result.is_ok(), tolerated) {
                    Some(error) => Err(error),
                    None => result.map(|()| message),
                })
            }

            /// The method.
            pub fn method(&self) -> Method {
                match self {
                    $( $name::$method(_) => Method::$method, )*
                }
            }

            /// The session that it is about.
            pub fn session_id(&self) -> Option<&SessionId> {
                match self {
                    $( $name::$method(_params) => session_id!(_params $($session)?), )*
                }
            }

            /// Writes the parameters.
            pub fn encode_params(&self, writer: &mut Writer<'_>) {
                match self {
                    $( $name::$method(params) => params.encode(writer), )*
                }
            }
        }

        $( impl From<$type> for $name {
            fn from(params: $type) -> Self {
                $name::$method(params)
            }
        } )*
    )*};
}

macro_rules! session_id {
    ($params:ident) => {
        None
    };
    ($params:ident session) => {
        Some(&$params.session_id)
    };
    ($params:ident scope) => {
        $params.session_id()
    };
}

messages! {
    /// A request of the client to the agent.
    #[allow(clippy::large_enum_variant, reason = "the largest is sent once a connection")]
    pub enum ClientRequest {
        Initialize(InitializeRequest),
        Authenticate(AuthenticateRequest),
        Logout(LogoutRequest),
        AuthStatus(AuthStatusRequest),
        NewSession(NewSessionRequest),
        LoadSession(LoadSessionRequest) session,
        ResumeSession(ResumeSessionRequest) session,
        ListSessions(ListSessionsRequest),
        CloseSession(CloseSessionRequest) session,
        DeleteSession(DeleteSessionRequest) session,
        ForkSession(ForkSessionRequest) session,
        ArchiveSession(ArchiveSessionRequest) session,
        UnarchiveSession(UnarchiveSessionRequest) session,
        SessionStatus(SessionStatusRequest) session,
        SetTitle(SetTitleRequest) session,
        SetMode(SetModeRequest) session,
        SetModel(SetModelRequest) session,
        SetConfigOption(SetConfigOptionRequest) session,
        Prompt(PromptRequest) session,
        CancelToolCall(CancelToolCallRequest) session,
        CancelTerminal(CancelTerminalRequest) session,
        ListProviders(ListProvidersRequest),
        SetProvider(SetProviderRequest),
        DisableProvider(DisableProviderRequest),
        ProxyInitialize(ProxyInitializeRequest),
        ProxySuccessor(ProxySuccessorRequest),
    }

    /// A request of the agent to the client.
    #[allow(clippy::large_enum_variant, reason = "they are moved once and never stored in bulk")]
    pub enum AgentRequest {
        RequestPermission(PermissionRequest) session,
        ReadTextFile(ReadTextFileRequest) session,
        WriteTextFile(WriteTextFileRequest) session,
        CreateTerminal(CreateTerminalRequest) session,
        TerminalOutput(TerminalOutputRequest) session,
        WaitForTerminalExit(WaitForTerminalExitRequest) session,
        KillTerminal(KillTerminalRequest) session,
        ReleaseTerminal(ReleaseTerminalRequest) session,
        CreateElicitation(CreateElicitationRequest) scope,
        McpMessage(McpMessageRequest),
        ProxySuccessor(ProxySuccessorRequest),
    }

    /// A notification of the client to the agent.
    pub enum ClientNotification {
        Cancel(CancelNotification) session,
        McpMessage(McpMessageNotification),
        ProxySuccessor(ProxySuccessorNotification),
        CancelRequest(CancelRequestNotification),
    }

    /// A notification of the agent to the client.
    pub enum AgentNotification {
        SessionUpdate(SessionNotification) session,
        AuthStatusUpdate(AuthStatusNotification),
        CompleteElicitation(CompleteElicitationNotification),
        ProxySuccessor(ProxySuccessorNotification),
        CancelRequest(CancelRequestNotification),
    }
}

macro_rules! requests {
    ($( $method:ident($params:ty) -> $response:ty, )*) => {$(
        impl Request for $params {
            const METHOD: Method = Method::$method;
            type Response = $response;
        }
    )*};
}

requests! {
    Initialize(InitializeRequest) -> InitializeResponse,
    Authenticate(AuthenticateRequest) -> AuthenticateResponse,
    Logout(LogoutRequest) -> LogoutResponse,
    AuthStatus(AuthStatusRequest) -> AuthStatusResponse,
    NewSession(NewSessionRequest) -> NewSessionResponse,
    LoadSession(LoadSessionRequest) -> LoadSessionResponse,
    ResumeSession(ResumeSessionRequest) -> ResumeSessionResponse,
    ListSessions(ListSessionsRequest) -> ListSessionsResponse,
    CloseSession(CloseSessionRequest) -> CloseSessionResponse,
    DeleteSession(DeleteSessionRequest) -> DeleteSessionResponse,
    ForkSession(ForkSessionRequest) -> ForkSessionResponse,
    ArchiveSession(ArchiveSessionRequest) -> ArchiveSessionResponse,
    UnarchiveSession(UnarchiveSessionRequest) -> UnarchiveSessionResponse,
    SessionStatus(SessionStatusRequest) -> SessionStatusResponse,
    SetTitle(SetTitleRequest) -> SetTitleResponse,
    SetMode(SetModeRequest) -> SetModeResponse,
    SetModel(SetModelRequest) -> SetModelResponse,
    SetConfigOption(SetConfigOptionRequest) -> SetConfigOptionResponse,
    Prompt(PromptRequest) -> PromptResponse,
    CancelToolCall(CancelToolCallRequest) -> CancelToolCallResponse,
    CancelTerminal(CancelTerminalRequest) -> CancelTerminalResponse,
    ListProviders(ListProvidersRequest) -> ListProvidersResponse,
    SetProvider(SetProviderRequest) -> SetProviderResponse,
    DisableProvider(DisableProviderRequest) -> DisableProviderResponse,
    ProxyInitialize(ProxyInitializeRequest) -> InitializeResponse,
    ProxySuccessor(ProxySuccessorRequest) -> RawJson,
    RequestPermission(PermissionRequest) -> PermissionResponse,
    ReadTextFile(ReadTextFileRequest) -> ReadTextFileResponse,
    WriteTextFile(WriteTextFileRequest) -> WriteTextFileResponse,
    CreateTerminal(CreateTerminalRequest) -> CreateTerminalResponse,
    TerminalOutput(TerminalOutputRequest) -> TerminalOutputResponse,
    WaitForTerminalExit(WaitForTerminalExitRequest) -> WaitForTerminalExitResponse,
    KillTerminal(KillTerminalRequest) -> KillTerminalResponse,
    ReleaseTerminal(ReleaseTerminalRequest) -> ReleaseTerminalResponse,
    CreateElicitation(CreateElicitationRequest) -> CreateElicitationResponse,
    McpMessage(McpMessageRequest) -> McpMessageResponse,
}

macro_rules! notifications {
    ($( $method:ident($params:ty), )*) => {$(
        impl Notification for $params {
            const METHOD: Method = Method::$method;
        }
    )*};
}

notifications! {
    Cancel(CancelNotification),
    SessionUpdate(SessionNotification),
    AuthStatusUpdate(AuthStatusNotification),
    CompleteElicitation(CompleteElicitationNotification),
    McpMessage(McpMessageNotification),
    ProxySuccessor(ProxySuccessorNotification),
    CancelRequest(CancelRequestNotification),
}
