//! Rich values of our own come through the official types unchanged.

use std::fmt::Debug;

use agent_client_protocol_schema as official;
use attache_proto::json::Reader;
use attache_proto::{Decode, Dialect, Encode};
use serde::{Serialize, de::DeserializeOwned};

use crate::model::*;
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
    let annotations = Annotations::new().audience([Role::User, Role::Assistant]).last_modified("2026-11-02T10:00:00Z");
    Some(Box::new(annotations.priority(0.25).with(|annotations| annotations.meta = meta())))
}

fn blocks() -> Vec<ContentBlock> {
    let text = TextResource::new("fn main() {}\n", "file:///a.rs").mime_type("text/x-rust");
    vec![
        TextContent::new("say \"hé\"\n\t\u{1}")
            .with(|content| {
                content.annotations = annotations();
                content.meta = meta();
            })
            .into(),
        ImageContent::new("aGk=", "image/png").uri("file:///a.png").into(),
        AudioContent::new("aGk=", "audio/wav").into(),
        ResourceLink::new("a", "file:///a").size(7).title("A").into(),
        EmbeddedResource::new(text).with(|resource| resource.annotations = annotations()).into(),
        EmbeddedResource::new(BlobResource::new("aGk=", "file:///a.bin")).into(),
    ]
}

fn servers() -> Vec<McpServer> {
    let header = HttpHeader::new("Authorization", "Bearer x").with(|header| header.meta = meta());
    vec![
        McpServerStdio::new("files", "/bin/files").args(["--stdio"]).env([EnvVariable::new("KEY", "secret")]).into(),
        McpServerHttp::new("web", "https://example.com/mcp").headers([header]).into(),
        McpServerAcp::new("mine", "server-1").into(),
    ]
}

fn options() -> Vec<ConfigOption> {
    let fast = ConfigValue::new("fast", "Fast").description("Quick");
    let group = ConfigGroup::new("all", "All", vec![fast.clone()]);
    vec![
        ConfigOption::new("model", "Model", ConfigSelect::new("fast", vec![fast]))
            .category(ConfigCategory::Model)
            .description("Which"),
        ConfigOption::new("model2", "Model", ConfigSelect::new("fast", vec![group])).category("_mine"),
        ConfigOption::new("dry", "Dry run", ConfigSwitch::new(true)).with(|option| option.meta = meta()),
    ]
}

fn commands() -> Vec<AvailableCommand> {
    let input = CommandInput::Text(TextInput::new("what to search for"));
    vec![Command::new("web", "Search").input(input).into(), Command::new("plain", "No input").into()]
}

fn diff(dialect: Dialect) -> Diff {
    let text = Diff::text("/p/a.rs", Some("a\nb\n".into()), "a\nc\n");
    if dialect == Dialect::V2 { Diff::Patch(text.to_patch()) } else { text }
}

fn tool_call(dialect: Dialect) -> ToolCallUpdate {
    ToolCallUpdate::new("call-1")
        .title("Edit")
        .name("edit_file")
        .kind(ToolKind::Edit)
        .status(ToolCallStatus::InProgress)
        .content(vec![ToolCallContent::text("done"), diff(dialect).into(), ToolCallTerminal::new("term-1").into()])
        .locations(vec![Location::new("/p/a.rs").line(3), Location::new("/p/b.rs")])
        .raw_input(raw(r#"{"path":"/p/a.rs"}"#))
        .raw_output(raw(r#"[1,"x",null]"#))
        .meta(meta().unwrap())
}

fn usage() -> Usage {
    Usage::new(12, 7, 5).thought_tokens(3).cached_read_tokens(4)
}

fn permission_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectAlways),
    ]
}

fn sessions() -> ListSessionsResponse {
    let info = SessionInfo::new("s-1", "/p")
        .title("Fix it")
        .updated_at("2026-11-02T10:00:00Z")
        .additional_directories(["/q"])
        .archived(false)
        .with(|info| info.meta = meta());
    ListSessionsResponse::new([info]).next_cursor("more")
}

fn form(scope: impl Into<ElicitationScope>) -> CreateElicitationRequest {
    let choice = EnumOption::new("a", "A").description("First");
    let mut properties: Vec<(String, ElicitationProperty)> = vec![
        ("name".into(), StringProperty::new().min_length(1).format(StringFormat::Email).default("x").into()),
        ("size".into(), NumberProperty::new().minimum(0.5).into()),
        ("count".into(), IntegerProperty::new().maximum(9).into()),
        ("sure".into(), BooleanProperty::new().default(false).into()),
        ("one".into(), StringProperty::new().one_of(vec![choice.clone()]).into()),
        ("some".into(), MultiSelectProperty::new(TitledItems::new([choice])).into()),
        ("more".into(), MultiSelectProperty::new(StringItems::new(["a".to_owned()])).into()),
    ];
    // They sort by name, we keep the order.
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    let schema = ElicitationSchema::new().title("About you").properties(properties).required(vec!["name".into()]);
    CreateElicitationRequest::new("Who?", ElicitationForm::new(schema, scope)).with(|request| request.meta = meta())
}

fn update(update: SessionUpdate) -> SessionNotification {
    SessionNotification::new("s-1", update).with(|notification| notification.meta = meta())
}

fn session(v1: bool) -> SessionCapabilities {
    SessionCapabilities::new()
        .prompt(PromptCapabilities::new().with(|capabilities| {
            capabilities.image = offered();
            capabilities.embedded_context = offered();
        }))
        .mcp(McpCapabilities::new().with(|capabilities| {
            capabilities.http = offered();
            capabilities.acp = offered();
        }))
        .system_prompt(
            SystemPromptCapabilities::new().mode(SystemPromptModeCapabilities::new().override_mode(Capability::new())),
        )
        .with(|capabilities| {
            capabilities.load = if v1 { offered() } else { None };
            capabilities.list = if v1 { offered() } else { None };
            capabilities.delete = offered();
            capabilities.additional_directories = offered();
        })
}

fn auth_methods() -> Vec<AuthMethod> {
    let terminal = TerminalAuthMethod::new("t", "Terminal")
        .args(["login"])
        .env([EnvVariable::new("LOGIN", "1")])
        .description("In a terminal");
    vec![AgentAuthMethod::new("a", "Agent").with(|method| method.meta = meta()).into(), terminal.into()]
}

fn initialize_response(v1: bool) -> InitializeResponse {
    InitializeResponse::new(if v1 { 1 } else { 2 })
        .info(Implementation::new("agent", "1.2").title("Agent"))
        .capabilities(
            AgentCapabilities::default()
                .session(session(v1))
                .auth(AgentAuthCapabilities::new().status(Capability::new()))
                .with(|offer| {
                    offer.providers = offered();
                    offer.meta = meta();
                }),
        )
        .auth_methods(auth_methods())
}

#[test]
fn v1_takes_ours() {
    let v1 = Dialect::V1;
    let modes = ModeState::new("code", [Mode::new("code", "Code").description("Writes")]);
    let client = ClientCapabilities::new()
        .fs(FsCapabilities::new().read_text_file(true))
        .terminal(true)
        .auth(ClientAuthCapabilities::new().terminal(Capability::new()))
        .elicitation(ElicitationCapabilities::new().form(Capability::new()))
        .session(ClientSessionCapabilities::new().notices(Capability::new()))
        .with(|capabilities| capabilities.plan = offered());
    let scope = SessionScope::new("s-1").tool_call_id("call-1");
    let entries = vec![PlanEntry::new("Read", PlanPriority::High, PlanStatus::InProgress)];
    check! { v1 V1:
        InitializeRequest = InitializeRequest::new(1).info(Implementation::new("client", "1")).capabilities(client),
        InitializeResponse = initialize_response(true),
        AuthenticateRequest = AuthenticateRequest::new("a"),
        LogoutResponse = LogoutResponse::new().with(|it| it.meta = meta()),
        NewSessionRequest = NewSessionRequest::new("/p").additional_directories(["/q"]).mcp_servers(servers()),
        NewSessionResponse = NewSessionResponse::new("s-1").modes(modes.clone()).config_options(options()),
        LoadSessionRequest = LoadSessionRequest::new("s-1", "/p"),
        LoadSessionResponse = LoadSessionResponse::new().modes(modes),
        ListSessionsResponse = sessions(),
        SetSessionModeRequest = SetModeRequest::new("s-1", "code"),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "model", ConfigValueId::new("fast")),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "dry", true),
        SetSessionConfigOptionResponse = SetConfigOptionResponse::new(options()),
        PromptRequest = PromptRequest::new("s-1", blocks()).with(|request| request.meta = meta()),
        PromptResponse = PromptResponse::ended(StopReason::Refusal).usage(usage()),
        CancelNotification = CancelNotification::new("s-1"),
        RequestPermissionRequest = PermissionRequest::new("s-1", permission_options()).subject(PermissionSubject::tool_call(tool_call(v1))).title("Edit"),
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::selected("yes")),
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::cancelled()),
        ReadTextFileRequest = ReadTextFileRequest::new("s", "/a").line(3).limit(9),
        ReadTextFileResponse = ReadTextFileResponse::new("text\n"),
        WriteTextFileRequest = WriteTextFileRequest::new("s-1", "/a", "text\n"),
        CreateTerminalRequest = CreateTerminalRequest::new("s-1", "ls").args(["-l"]).env([EnvVariable::new("A", "b")]).cwd("/p").output_byte_limit(1 << 40),
        TerminalOutputResponse = TerminalOutputResponse::new("out", true).exit_status(ExitStatus::new().exit_code(1)),
        WaitForTerminalExitResponse = ExitStatus::new().signal("SIGTERM"),
        CreateElicitationRequest = form(scope),
        CreateElicitationResponse = CreateElicitationResponse::accept(vec![
            ("count".into(), ElicitationValue::Integer(-3)), ("name".into(), ElicitationValue::Text("x".into())),
            ("size".into(), ElicitationValue::Number(0.5)), ("some".into(), ElicitationValue::Texts(vec!["a".into()]))]),
        CreateElicitationResponse = CreateElicitationResponse::decline(),
        CancelRequestNotification = CancelRequestNotification::new("r-1"),
        SessionNotification = update(SessionUpdate::AgentMessageChunk(MessageChunk::new("hello").message_id("m-1"))),
        SessionNotification = update(SessionUpdate::UserMessageChunk(MessageChunk::new("hello"))),
        SessionNotification = update(SessionUpdate::ToolCall(Box::new(tool_call(v1).kind(ToolKind::Fetch)))),
        SessionNotification = update(SessionUpdate::ToolCallUpdate(Box::new(tool_call(v1)))),
        SessionNotification = update(SessionUpdate::Plan(PlanEntries::new(entries.clone()))),
        SessionNotification = update(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanItems::new("plan-1", entries)))),
        SessionNotification = update(SessionUpdate::AvailableCommands(CommandsUpdate::new(commands()))),
        SessionNotification = update(SessionUpdate::CurrentMode(ModeUpdate::new("code"))),
        SessionNotification = update(SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(options()))),
        SessionNotification = update(SessionUpdate::SessionInfo(SessionInfoUpdate::new().updated_at("2026-11-02T10:00:00Z").with(|update| update.title = Patch::Clear))),
        SessionNotification = update(SessionUpdate::Usage(UsageUpdate::new(5, 200_000).cost(Cost::new(0.5, "EUR")))),
        SessionNotification = update(SessionUpdate::Notice(Notice::new(NoticeSeverity::Warning, "Slow"))),
        SessionNotification = update(SessionUpdate::Compaction(CompactionUpdate::new("c-1", CompactionStatus::Completed).summary(blocks()).with(|update| update.error = Patch::Clear))),
    }
}

#[test]
fn v2_takes_ours() {
    let v2 = Dialect::V2;
    let entries = vec![PlanEntry::new("Read", PlanPriority::from("_some"), PlanStatus::Cancelled)];
    let client = ClientCapabilities::new()
        .auth(ClientAuthCapabilities::new().terminal(Capability::new()))
        .elicitation(ElicitationCapabilities::new().url(Capability::new()));
    let url = ElicitationUrl::new("e-1", "https://example.com/login", RequestScope::new(7));
    let background = Some(vec![BackgroundTerminal::new("term-1").into(), BackgroundToolCall::new("call-1").into()]);
    let icon = Icon::new("https://example.com/i.png").theme(IconTheme::Dark);
    let link = ResourceLink::new("a", "file:///a").icons(vec![icon]);
    let custom = Unknown::new("_mine", raw(r#"{"type":"_mine","x":[1]}"#));
    let changes = vec![
        DiffChange::Move(PathPairChange::new("/a", "/b")),
        DiffChange::Delete(PathChange::new("/c").file_type(DiffFileType::Binary)),
    ];
    let command = CommandSubject::new("cargo test", "/p").terminal_id("term-1");
    let failed = IdleState::new()
        .stop_reason(StopReason::Error)
        .error(ErrorObject::rate_limited(30))
        .usage(usage())
        .with(|state| state.background = background.clone());
    let terminal = TerminalUpdate::new("term-1")
        .command("ls")
        .cwd("/p")
        .output(TerminalOutput::new("aGk="))
        .exit_status(ExitStatus::new().exit_code(-1))
        .size(TerminalSize::new(80, 24))
        .with(|update| update.capabilities = Patch::Clear);
    check! { v2 V2:
        InitializeRequest = InitializeRequest::new(2).info(Implementation::new("client", "1")).capabilities(client),
        InitializeResponse = initialize_response(false),
        LoginAuthRequest = AuthenticateRequest::new("a"),
        NewSessionRequest = NewSessionRequest::new("/p").mcp_servers(servers()).system_prompt(SystemPrompt::new(SystemPromptMode::Append, blocks())),
        NewSessionResponse = NewSessionResponse::new("s-1").config_options(options()).available_commands(commands()),
        ResumeSessionRequest = ResumeSessionRequest::new("s-1", "/p").replay_from(ReplayFrom::start()),
        ListSessionsResponse = sessions(),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "model", ConfigValueId::new("fast")),
        SetSessionConfigOptionRequest = SetConfigOptionRequest::new("s-1", "dry", false),
        PromptRequest = PromptRequest::new("s-1", vec![link.into(), ContentBlock::Other(custom)]),
        PromptResponse = PromptResponse::inserted("m-1"),
        CancelToolCallRequest = CancelToolCallRequest::new("s-1", "call-1"),
        CancelTerminalRequest = CancelTerminalRequest::new("s-1", "term-1"),
        RequestPermissionRequest = PermissionRequest::new("s-1", permission_options()).subject(PermissionSubject::tool_call(tool_call(v2))).title("Really?").description("It is big"),
        RequestPermissionRequest = PermissionRequest::new("s-1", permission_options()).subject(command).title("Run?"),
        RequestPermissionResponse = PermissionResponse::new(PermissionOutcome::cancelled()),
        CreateElicitationRequest = form(SessionScope::new("s-1")),
        CreateElicitationRequest = CreateElicitationRequest::new("Log in", url),
        CompleteElicitationNotification = CompleteElicitationNotification::new("e-1"),
        UpdateSessionNotification = update(SessionUpdate::AgentThoughtChunk(MessageChunk::new("hmm").message_id("m-1").with(|chunk| chunk.meta = meta()))),
        UpdateSessionNotification = update(SessionUpdate::AgentMessage(MessageUpdate::new("m-1").content(blocks()).with(|update| update.meta = Patch::Clear))),
        UpdateSessionNotification = update(SessionUpdate::UserMessage(MessageUpdate::new("m-1").with(|update| update.content = Patch::Clear))),
        UpdateSessionNotification = update(SessionUpdate::ToolCallUpdate(Box::new(tool_call(v2).status(ToolCallStatus::Paused).capabilities(ToolCallCapabilities::new().cancel(Capability::new())).with(|update| update.kind = Patch::Clear)))),
        UpdateSessionNotification = update(SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new(
            "call-1", Diff::Patch(PatchDiff::new(changes))))),
        UpdateSessionNotification = update(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanItems::new("plan-1", entries)))),
        UpdateSessionNotification = update(SessionUpdate::AvailableCommands(CommandsUpdate::new(commands()))),
        UpdateSessionNotification = update(SessionUpdate::State(StateUpdate::running())),
        UpdateSessionNotification = update(SessionUpdate::State(failed.into())),
        UpdateSessionNotification = update(SessionUpdate::State(RequiresActionState::new().with(|state| { state.background = background; state.meta = meta(); }).into())),
        UpdateSessionNotification = update(SessionUpdate::TerminalUpdate(Box::new(terminal))),
        UpdateSessionNotification = update(SessionUpdate::TerminalOutputChunk(TerminalOutputChunk::new("t", "aGk="))),
        UpdateSessionNotification = update(SessionUpdate::Subagent(Box::new(SubagentUpdate::new("s-2").state(StateUpdate::idle(StopReason::EndTurn)).cwd("/p")))),
        Error = ErrorObject::session_not_found(&"s-1".into()),
        Error = ErrorObject::unsupported_version(3, &[1, 2]),
        MessageMcpResponse = McpMessageResponse::Error { error: raw(r#"{"code":-1,"message":"no","x":1}"#), meta: meta() },
        MessageMcpResponse = McpMessageResponse::Result { result: raw("null"), meta: None },
    }
}
