//! Rich values of our own come through the official types unchanged.

use std::fmt::Debug;

use agent_client_protocol_schema as official;
use attache_proto::json::Reader;
use attache_proto::model::*;
use attache_proto::{Decode, Dialect, Encode};
use serde::{Serialize, de::DeserializeOwned};

use crate::theirs::encode;

#[track_caller]
fn check<Theirs, Ours>(dialect: Dialect, ours: Ours)
where
    Theirs: Serialize + DeserializeOwned,
    Ours: Encode + Decode + PartialEq + Debug,
{
    let (sent, lost) = encode(&ours, dialect);
    assert!(lost.is_empty(), "lost {lost:?}: {sent}");
    let theirs: Theirs = serde_json::from_str(&sent).unwrap_or_else(|error| panic!("{error}: {sent}"));
    let back = serde_json::to_string(&theirs).unwrap();
    let mut reader = Reader::new(&back, dialect);
    let again: Ours = reader.decode().unwrap_or_else(|error| panic!("{error}: {back}"));
    assert_eq!(reader.tolerated(), [], "{back}");
    assert_eq!(again, ours, "{sent}\n{back}");
}

macro_rules! check {
    ($version:ident $dialect:ident: $($theirs:ident = $ours:expr,)*) => {
        $( check::<official::$version::$theirs, _>(Dialect::$dialect, $ours); )*
    };
}

fn meta() -> Option<Meta> {
    Some(Meta::new(r#"{"example.com/x":{"deep":[1,null,"é"]}}"#).unwrap())
}

fn raw(json: &str) -> RawJson {
    RawJson::new(json).unwrap()
}

fn offered() -> Option<Capability> {
    Some(Capability::new())
}

fn annotations() -> Option<Box<Annotations>> {
    Some(Box::new(Annotations {
        audience: Some(vec![Role::User, Role::Assistant]),
        last_modified: Some("2026-11-02T10:00:00Z".into()),
        priority: Some(0.25),
        meta: meta(),
    }))
}

fn blocks() -> Vec<ContentBlock> {
    let text =
        TextResource { mime_type: Some("text/x-rust".into()), ..TextResource::new("fn main() {}\n", "file:///a.rs") };
    vec![
        TextContent { annotations: annotations(), meta: meta(), ..TextContent::new("say \"hé\"\n\t\u{1}") }.into(),
        ImageContent { uri: Some("file:///a.png".into()), ..ImageContent::new("aGk=", "image/png") }.into(),
        AudioContent::new("aGk=", "audio/wav").into(),
        ResourceLink { size: Some(7), title: Some("A".into()), ..ResourceLink::new("a", "file:///a") }.into(),
        EmbeddedResource { annotations: annotations(), ..EmbeddedResource::new(text) }.into(),
        EmbeddedResource::new(BlobResource::new("aGk=", "file:///a.bin")).into(),
    ]
}

fn servers() -> Vec<McpServer> {
    let header = HttpHeader { meta: meta(), ..HttpHeader::new("Authorization", "Bearer x") };
    vec![
        McpServerStdio {
            args: vec!["--stdio".into()],
            env: vec![EnvVariable::new("KEY", "secret")],
            ..McpServerStdio::new("files", "/bin/files")
        }
        .into(),
        McpServerHttp { headers: vec![header], ..McpServerHttp::new("web", "https://example.com/mcp") }.into(),
        McpServerAcp::new("mine", "server-1").into(),
    ]
}

fn options() -> Vec<ConfigOption> {
    let fast = ConfigValue { description: Some("Quick".into()), ..ConfigValue::new("fast", "Fast") };
    let group = ConfigGroup::new("all", "All", vec![fast.clone()]);
    vec![
        ConfigOption {
            category: Some(ConfigCategory::Model),
            description: Some("Which".into()),
            ..ConfigOption::new("model", "Model", ConfigSelect::new("fast", vec![fast]))
        },
        ConfigOption {
            category: Some("_mine".into()),
            ..ConfigOption::new("model2", "Model", ConfigSelect::new("fast", vec![group]))
        },
        ConfigOption { meta: meta(), ..ConfigOption::new("dry", "Dry run", ConfigSwitch::new(true)) },
    ]
}

fn commands() -> Vec<AvailableCommand> {
    let input = CommandInput::Text(TextInput::new("what to search for"));
    vec![
        Command { input: Some(input), ..Command::new("web", "Search") }.into(),
        Command::new("plain", "No input").into(),
    ]
}

fn diff(dialect: Dialect) -> Diff {
    let text = Diff::text("/p/a.rs", Some("a\nb\n".into()), "a\nc\n");
    if dialect == Dialect::V2 { Diff::Patch(text.to_patch()) } else { text }
}

fn tool_call(dialect: Dialect) -> ToolCallUpdate {
    ToolCallUpdate {
        title: Patch::Set("Edit".into()),
        name: Patch::Set("edit_file".into()),
        kind: Patch::Set(ToolKind::Edit),
        status: Patch::Set(ToolCallStatus::InProgress),
        content: Patch::Set(vec![
            ToolCallContent::text("done"),
            diff(dialect).into(),
            ToolCallTerminal::new("term-1").into(),
        ]),
        locations: Patch::Set(vec![Location { line: Some(3), ..Location::new("/p/a.rs") }, Location::new("/p/b.rs")]),
        raw_input: Patch::Set(raw(r#"{"path":"/p/a.rs"}"#)),
        raw_output: Patch::Set(raw(r#"[1,"x",null]"#)),
        meta: Patch::Set(meta().unwrap()),
        ..ToolCallUpdate::new("call-1")
    }
}

fn usage() -> Usage {
    Usage { thought_tokens: Some(3), cached_read_tokens: Some(4), ..Usage::new(12u64, 7u64, 5u64) }
}

fn permission_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectAlways),
    ]
}

fn sessions() -> ListSessionsResponse {
    let info = SessionInfo {
        title: Some("Fix it".into()),
        updated_at: Some("2026-11-02T10:00:00Z".into()),
        additional_directories: vec!["/q".into()],
        archived: Some(false),
        meta: meta(),
        ..SessionInfo::new("s-1", "/p")
    };
    ListSessionsResponse { next_cursor: Some("more".into()), ..ListSessionsResponse::new([info]) }
}

fn form(scope: impl Into<ElicitationScope>) -> CreateElicitationRequest {
    let choice = EnumOption { description: Some("First".into()), ..EnumOption::new("a", "A") };
    let mut properties: Vec<(String, ElicitationProperty)> = vec![
        (
            "name".into(),
            StringProperty {
                min_length: Some(1),
                format: Some(StringFormat::Email),
                default: Some("x".into()),
                ..StringProperty::new()
            }
            .into(),
        ),
        ("size".into(), NumberProperty { minimum: Some(0.5), ..NumberProperty::new() }.into()),
        ("count".into(), IntegerProperty { maximum: Some(9), ..IntegerProperty::new() }.into()),
        ("sure".into(), BooleanProperty { default: Some(false), ..BooleanProperty::new() }.into()),
        ("one".into(), StringProperty { one_of: Some(vec![choice.clone()]), ..StringProperty::new() }.into()),
        ("some".into(), MultiSelectProperty::new(TitledItems::new([choice])).into()),
        ("more".into(), MultiSelectProperty::new(StringItems::new(["a".to_owned()])).into()),
    ];
    // They sort by name, we keep the order.
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    let schema = ElicitationSchema {
        title: Some("About you".into()),
        properties,
        required: Some(vec!["name".into()]),
        ..ElicitationSchema::new()
    };
    CreateElicitationRequest {
        meta: meta(),
        ..CreateElicitationRequest::new("Who?", ElicitationForm::new(schema, scope))
    }
}

fn update(update: SessionUpdate) -> SessionNotification {
    SessionNotification { meta: meta(), ..SessionNotification::new("s-1", update) }
}

fn session(v1: bool) -> SessionCapabilities {
    SessionCapabilities {
        prompt: PromptCapabilities { image: offered(), embedded_context: offered(), ..PromptCapabilities::new() },
        mcp: McpCapabilities { http: offered(), acp: offered(), ..McpCapabilities::new() },
        load: if v1 { offered() } else { None },
        list: if v1 { offered() } else { None },
        delete: offered(),
        additional_directories: offered(),
        system_prompt: Some(SystemPromptCapabilities {
            mode: Some(SystemPromptModeCapabilities { override_mode: offered(), ..Default::default() }),
            ..Default::default()
        }),
        ..SessionCapabilities::new()
    }
}

fn auth_methods() -> Vec<AuthMethod> {
    let terminal = TerminalAuthMethod {
        args: vec!["login".into()],
        env: vec![EnvVariable::new("LOGIN", "1")],
        description: Some("In a terminal".into()),
        ..TerminalAuthMethod::new("t", "Terminal")
    };
    vec![AgentAuthMethod { meta: meta(), ..AgentAuthMethod::new("a", "Agent") }.into(), terminal.into()]
}

fn initialize_response(v1: bool) -> InitializeResponse {
    InitializeResponse {
        info: Some(Implementation { title: Some("Agent".into()), ..Implementation::new("agent", "1.2") }),
        capabilities: AgentCapabilities {
            session: Some(session(v1)),
            auth: AgentAuthCapabilities { status: offered(), ..Default::default() },
            providers: offered(),
            meta: meta(),
        },
        auth_methods: auth_methods(),
        ..InitializeResponse::new(if v1 { 1u16 } else { 2 })
    }
}

#[test]
fn v1_takes_ours() {
    let v1 = Dialect::V1;
    let modes = ModeState::new("code", [Mode { description: Some("Writes".into()), ..Mode::new("code", "Code") }]);
    let client = ClientCapabilities {
        fs: FsCapabilities { read_text_file: true, ..Default::default() },
        terminal: true,
        auth: ClientAuthCapabilities { terminal: offered(), ..Default::default() },
        elicitation: Some(ElicitationCapabilities { form: offered(), ..Default::default() }),
        session: ClientSessionCapabilities { notices: offered(), ..Default::default() },
        plan: offered(),
        ..ClientCapabilities::new()
    };
    let scope = SessionScope { tool_call_id: Some("call-1".into()), ..SessionScope::new("s-1") };
    let entries = vec![PlanEntry::new("Read", PlanPriority::High, PlanStatus::InProgress)];
    check! { v1 V1:
        InitializeRequest = InitializeRequest {
            info: Some(Implementation::new("client", "1")), capabilities: client, ..InitializeRequest::new(1u16) },
        InitializeResponse = initialize_response(true),
        AuthenticateRequest = AuthenticateRequest::new("a"),
        LogoutResponse = LogoutResponse { meta: meta() },
        NewSessionRequest = NewSessionRequest {
            additional_directories: vec!["/q".into()], mcp_servers: servers(), ..NewSessionRequest::new("/p") },
        NewSessionResponse = NewSessionResponse {
            modes: Some(modes.clone()), config_options: Some(options()), ..NewSessionResponse::new("s-1") },
        LoadSessionRequest = LoadSessionRequest::new("s-1", "/p"),
        LoadSessionResponse = LoadSessionResponse { modes: Some(modes), ..LoadSessionResponse::new() },
        ListSessionsResponse = sessions(),
        SetSessionModeRequest = SetModeRequest::new("s-1", "code"),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "model", ConfigValueId::new("fast")),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "dry", true),
        SetSessionConfigOptionResponse = SetConfigOptionResponse::new(options()),
        PromptRequest = PromptRequest { meta: meta(), ..PromptRequest::new("s-1", blocks()) },
        PromptResponse = PromptResponse { usage: Some(usage()), ..PromptResponse::ended(StopReason::Refusal) },
        CancelNotification = CancelNotification::new("s-1"),
        RequestPermissionRequest = PermissionRequest {
            title: Some("Edit".into()),
            ..PermissionRequest::new("s-1", PermissionSubject::tool_call(tool_call(v1)), permission_options()) },
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::selected("yes")),
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::cancelled()),
        ReadTextFileRequest = ReadTextFileRequest { line: Some(3), limit: Some(9), ..ReadTextFileRequest::new("s", "/a") },
        ReadTextFileResponse = ReadTextFileResponse::new("text\n"),
        WriteTextFileRequest = WriteTextFileRequest::new("s-1", "/a", "text\n"),
        CreateTerminalRequest = CreateTerminalRequest {
            args: vec!["-l".into()], env: vec![EnvVariable::new("A", "b")], cwd: Some("/p".into()),
            output_byte_limit: Some(1 << 40), ..CreateTerminalRequest::new("s-1", "ls") },
        TerminalOutputResponse = TerminalOutputResponse {
            exit_status: Some(ExitStatus { exit_code: Some(1), ..ExitStatus::new() }),
            ..TerminalOutputResponse::new("out", true) },
        WaitForTerminalExitResponse = ExitStatus { signal: Some("SIGTERM".into()), ..ExitStatus::new() },
        CreateElicitationRequest = form(scope),
        CreateElicitationResponse = CreateElicitationResponse::accept(vec![
            ("count".into(), ElicitationValue::Integer(-3)), ("name".into(), ElicitationValue::Text("x".into())),
            ("size".into(), ElicitationValue::Number(0.5)), ("some".into(), ElicitationValue::Texts(vec!["a".into()]))]),
        CreateElicitationResponse = CreateElicitationResponse::decline(),
        CancelRequestNotification = CancelRequestNotification::new("r-1"),
        SessionNotification = update(SessionUpdate::AgentMessageChunk(MessageChunk {
            message_id: Some("m-1".into()), ..MessageChunk::new("hello") })),
        SessionNotification = update(SessionUpdate::UserMessageChunk(MessageChunk::new("hello"))),
        SessionNotification = update(SessionUpdate::ToolCall(Box::new(ToolCallUpdate {
            kind: Patch::Set(ToolKind::Fetch), ..tool_call(v1) }))),
        SessionNotification = update(SessionUpdate::ToolCallUpdate(Box::new(tool_call(v1)))),
        SessionNotification = update(SessionUpdate::Plan(PlanEntries::new(entries.clone()))),
        SessionNotification = update(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanItems::new("plan-1", entries)))),
        SessionNotification = update(SessionUpdate::AvailableCommands(CommandsUpdate::new(commands()))),
        SessionNotification = update(SessionUpdate::CurrentMode(ModeUpdate::new("code"))),
        SessionNotification = update(SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(options()))),
        SessionNotification = update(SessionUpdate::SessionInfo(SessionInfoUpdate {
            title: Patch::Clear, updated_at: Patch::Set("2026-11-02T10:00:00Z".into()), ..SessionInfoUpdate::new() })),
        SessionNotification = update(SessionUpdate::Usage(UsageUpdate {
            cost: Patch::Set(Cost::new(0.5, "EUR")), ..UsageUpdate::new(5u64, 200_000u64) })),
        SessionNotification = update(SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, "Slow"))),
        SessionNotification = update(SessionUpdate::Compaction(CompactionUpdate {
            summary: Patch::Set(blocks()), error: Patch::Clear,
            ..CompactionUpdate::new("c-1", CompactionStatus::Completed) })),
    }
}

#[test]
fn v2_takes_ours() {
    let v2 = Dialect::V2;
    let entries = vec![PlanEntry::new("Read", PlanPriority::from("_some"), PlanStatus::Cancelled)];
    let client = ClientCapabilities {
        auth: ClientAuthCapabilities { terminal: offered(), ..Default::default() },
        elicitation: Some(ElicitationCapabilities { url: offered(), ..Default::default() }),
        ..ClientCapabilities::new()
    };
    let url = ElicitationUrl::new("e-1", "https://example.com/login", RequestScope::new(7i64));
    let background = Some(vec![BackgroundTerminal::new("term-1").into(), BackgroundToolCall::new("call-1").into()]);
    let icon = Icon { theme: Some(IconTheme::Dark), ..Icon::new("https://example.com/i.png") };
    let link = ResourceLink { icons: Some(vec![icon]), ..ResourceLink::new("a", "file:///a") };
    let custom = Unknown::new("_mine", raw(r#"{"type":"_mine","x":[1]}"#));
    let changes = vec![
        DiffChange::Move(PathPairChange::new("/a", "/b")),
        DiffChange::Delete(PathChange { file_type: Some(DiffFileType::Binary), ..PathChange::new("/c") }),
    ];
    let command = CommandSubject { terminal_id: Some("term-1".into()), ..CommandSubject::new("cargo test", "/p") };
    let failed = IdleState {
        stop_reason: Some(StopReason::Error),
        error: Some(ErrorObject::rate_limited(30)),
        usage: Some(usage()),
        background: background.clone(),
        ..IdleState::new()
    };
    let terminal = TerminalUpdate {
        command: Patch::Set("ls".into()),
        cwd: Patch::Set("/p".into()),
        output: Patch::Set(TerminalOutput::new("aGk=")),
        exit_status: Patch::Set(ExitStatus { exit_code: Some(-1), ..ExitStatus::new() }),
        size: Patch::Set(TerminalSize::new(80u16, 24u16)),
        capabilities: Patch::Clear,
        ..TerminalUpdate::new("term-1")
    };
    check! { v2 V2:
        InitializeRequest = InitializeRequest {
            info: Some(Implementation::new("client", "1")), capabilities: client, ..InitializeRequest::new(2u16) },
        InitializeResponse = initialize_response(false),
        LoginAuthRequest = AuthenticateRequest::new("a"),
        NewSessionRequest = NewSessionRequest {
            mcp_servers: servers(),
            system_prompt: Some(SystemPrompt::new(SystemPromptMode::Append, blocks())),
            ..NewSessionRequest::new("/p") },
        NewSessionResponse = NewSessionResponse {
            config_options: Some(options()), available_commands: Some(commands()), ..NewSessionResponse::new("s-1") },
        ResumeSessionRequest = ResumeSessionRequest {
            replay_from: Some(ReplayFrom::start()), ..ResumeSessionRequest::new("s-1", "/p") },
        ListSessionsResponse = sessions(),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "model", ConfigValueId::new("fast")),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "dry", false),
        PromptRequest = PromptRequest::new("s-1", vec![link.into(), ContentBlock::Other(custom)]),
        PromptResponse = PromptResponse::inserted("m-1"),
        CancelToolCallRequest = CancelToolCallRequest::new("s-1", "call-1"),
        CancelTerminalRequest = CancelTerminalRequest::new("s-1", "term-1"),
        RequestPermissionRequest = PermissionRequest {
            title: Some("Really?".into()), description: Some("It is big".into()),
            ..PermissionRequest::new("s-1", PermissionSubject::tool_call(tool_call(v2)), permission_options()) },
        RequestPermissionRequest = PermissionRequest {
            title: Some("Run?".into()), ..PermissionRequest::new("s-1", command, permission_options()) },
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::cancelled()),
        CreateElicitationRequest = form(SessionScope::new("s-1")),
        CreateElicitationRequest = CreateElicitationRequest::new("Log in", url),
        CompleteElicitationNotification = CompleteElicitationNotification::new("e-1"),
        UpdateSessionNotification = update(SessionUpdate::AgentThoughtChunk(MessageChunk {
            message_id: Some("m-1".into()), meta: meta(), ..MessageChunk::new("hmm") })),
        UpdateSessionNotification = update(SessionUpdate::AgentMessage(MessageUpdate {
            content: Patch::Set(blocks()), meta: Patch::Clear, ..MessageUpdate::new("m-1") })),
        UpdateSessionNotification = update(SessionUpdate::UserMessage(MessageUpdate {
            content: Patch::Clear, ..MessageUpdate::new("m-1") })),
        UpdateSessionNotification = update(SessionUpdate::ToolCallUpdate(Box::new(ToolCallUpdate {
            status: Patch::Set(ToolCallStatus::Paused), kind: Patch::Clear,
            capabilities: Patch::Set(CancelCapabilities { cancel: offered(), ..Default::default() }),
            ..tool_call(v2) }))),
        UpdateSessionNotification = update(SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new(
            "call-1", Diff::Patch(PatchDiff::new(changes))))),
        UpdateSessionNotification = update(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanItems::new("plan-1", entries)))),
        UpdateSessionNotification = update(SessionUpdate::AvailableCommands(CommandsUpdate::new(commands()))),
        UpdateSessionNotification = update(SessionUpdate::State(StateUpdate::running())),
        UpdateSessionNotification = update(SessionUpdate::State(failed.into())),
        UpdateSessionNotification = update(SessionUpdate::State(RequiresActionState { background, meta: meta() }.into())),
        UpdateSessionNotification = update(SessionUpdate::TerminalUpdate(Box::new(terminal))),
        UpdateSessionNotification = update(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new("t", "aGk="))),
        UpdateSessionNotification = update(SessionUpdate::Subagent(Box::new(SubagentUpdate {
            state: Patch::Set(StateUpdate::idle(StopReason::EndTurn)), cwd: Patch::Set("/p".into()),
            ..SubagentUpdate::new("s-2") }))),
        Error = ErrorObject::session_not_found(&"s-1".into()),
        Error = ErrorObject::unsupported_version(3, &[1, 2]),
        MessageMcpResponse = McpMessageResponse::Error { error: raw(r#"{"code":-1,"message":"no","x":1}"#), meta: meta() },
        MessageMcpResponse = McpMessageResponse::Result { result: raw("null"), meta: None },
    }
}
