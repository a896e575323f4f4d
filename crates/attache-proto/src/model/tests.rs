use super::all::*;
use crate::codec::{Decode, Encode};
use crate::json::{DecodeError, Reader, Writer};
use crate::method::{AgentRequest, ClientRequest, Method, decode_params, decode_result};
use crate::{Dialect, Dialect::*};

fn try_read<T: Decode>(dialect: Dialect, json: &str) -> Result<(T, Vec<DecodeError>), DecodeError> {
    let json = json.replace('\'', "\"");
    let mut reader = Reader::new(&json, dialect);
    let value = reader.decode()?;
    Ok((value, reader.tolerated()))
}

#[track_caller]
fn read<T: Decode>(dialect: Dialect, json: &str) -> T {
    let (value, tolerated) = try_read(dialect, json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(tolerated, [], "{json}");
    value
}

fn write<T: Encode>(dialect: Dialect, value: &T) -> (String, Vec<&'static str>) {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, dialect);
    writer.value(value);
    let lost = writer.lost();
    (String::from_utf8(buffer).unwrap().replace('"', "'"), lost)
}

/// Reads in one dialect and writes in another, losing this.
#[track_caller]
fn check_lossy<T: Decode + Encode>(from: Dialect, json: &str, to: Dialect, expected: &str, expected_lost: &[&str]) {
    let (written, lost) = write(to, &read::<T>(from, json));
    assert_eq!(written, expected);
    assert_eq!(lost, expected_lost);
}

#[track_caller]
fn check<T: Decode + Encode>(from: Dialect, json: &str, to: Dialect, expected: &str) {
    check_lossy::<T>(from, json, to, expected, &[]);
}

#[track_caller]
fn check_error<T: Decode>(dialect: Dialect, json: &str, expected: &str) {
    match try_read::<T>(dialect, json) {
        Ok(_) => panic!("{json} was read"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn updates_stay_small() {
    assert!(size_of::<SessionUpdate>() <= 128, "{}", size_of::<SessionUpdate>());
    assert!(size_of::<ContentBlock>() <= 64, "{}", size_of::<ContentBlock>());
}

#[test]
fn capabilities_move_between_the_dialects() {
    let v1 = "{'loadSession':true,'promptCapabilities':{'image':true,'audio':false,'embeddedContext':false},\
        'mcpCapabilities':{'http':true,'sse':false},\
        'sessionCapabilities':{'list':{},'delete':{}},'auth':{'logout':{}}}";
    let v2 = "{'session':{'prompt':{'image':{}},'mcp':{'http':{}},'delete':{}},'auth':{}}";
    let draft = "{'session':{'prompt':{'image':{}},'mcp':{'http':{}},'load':{},'list':{},'delete':{}},\
        'auth':{'logout':{}}}";
    check::<AgentCapabilities>(V1, v1, V1, v1);
    check::<AgentCapabilities>(V1, v1, V2Draft, draft);
    check::<AgentCapabilities>(V2Draft, draft, V1, v1);
    check::<AgentCapabilities>(V2Draft, draft, V2, v2);
    // What is not offered is said: there are clients that ask for the flag.
    let least = "{'loadSession':false,'promptCapabilities':{'image':false,'audio':false,'embeddedContext':false},\
        'mcpCapabilities':{'http':false,'sse':false}}";
    check::<AgentCapabilities>(V1, "{}", V1, least);
    let client = "{'fs':{'readTextFile':true},'auth':{'terminal':true},'session':{'notices':{}},'plan':{}}";
    check_lossy::<ClientCapabilities>(V1, client, V2, "{'auth':{'terminal':{}}}", &["fs"]);
}

#[test]
fn a_malformed_capability_is_not_offered() {
    let json = "{'promptCapabilities':{'image':'yes','audio':true},'loadSession':false}";
    let (capabilities, tolerated) = try_read::<AgentCapabilities>(V1, json).unwrap();
    let session = capabilities.session.unwrap();
    assert_eq!((session.prompt.image, session.prompt.audio.is_some(), session.load), (None, true, None));
    assert_eq!(tolerated.len(), 1);
}

#[test]
fn a_v1_agent_always_has_sessions() {
    let response: InitializeResponse = read(V1, "{'protocolVersion':1}");
    assert!(response.capabilities.session.is_some());
    let response: InitializeResponse = read(V2, "{'protocolVersion':2,'info':{'name':'a','version':'1'}}");
    assert!(response.capabilities.session.is_none());
}

#[test]
fn both_names_of_the_client_may_stand_there() {
    let json = "{'protocolVersion':2,'clientInfo':{'name':'old','version':'1'},'info':{'name':'new','version':'1'}}";
    let name = |dialect| read::<InitializeRequest>(dialect, json).info.unwrap().name;
    assert_eq!((name(V1), name(V2Draft), name(V2)), ("old".into(), "old".into(), "new".into()));
    let (request, tolerated) = try_read::<InitializeRequest>(V2, "{'protocolVersion':2}").unwrap();
    assert_eq!((request.info, tolerated[0].to_string()), (None, "missing field `info`".into()));
    check_error::<InitializeRequest>(
        V2,
        "{'protocolVersion':2,'protocolVersion':2}",
        "duplicate field `protocolVersion`",
    );
    check_error::<InitializeRequest>(V1, "{'protocolVersion':'1'}", "`protocolVersion`: expected a number");
}

#[test]
fn old_names_are_read_and_new_ones_written() {
    check::<PlanContent>(
        V2,
        "{'type':'items','id':'p','entries':[]}",
        V2,
        "{'type':'items','planId':'p','entries':[]}",
    );
    check::<PlanContent>(
        V2,
        "{'type':'items','planId':'p','entries':[]}",
        V2Draft,
        "{'type':'items','id':'p','entries':[]}",
    );
    check::<AuthMethod>(V2, "{'id':'x','name':'X'}", V2, "{'type':'agent','methodId':'x','name':'X'}");
    check::<AuthMethod>(V2, "{'type':'agent','methodId':'x','name':'X'}", V1, "{'id':'x','name':'X'}");
    check::<AuthMethod>(
        V1,
        "{'type':'terminal','id':'t','name':'T','env':{'A':'b'}}",
        V2,
        "{'type':'terminal','methodId':'t','name':'T','env':[{'name':'A','value':'b'}]}",
    );
    check::<ConfigOption>(
        V2,
        "{'id':'m','name':'M','type':'select','currentValue':'a','options':[{'group':'g','name':'G','options':[]}]}",
        V2,
        "{'configId':'m','name':'M','type':'select','currentValue':'a','options':[{'groupId':'g','name':'G','options':[]}]}",
    );
    check::<AvailableCommand>(
        V2,
        "{'name':'web','description':'Search','input':{'hint':'query'}}",
        V2,
        "{'type':'command','name':'web','description':'Search','input':{'type':'text','hint':'query'}}",
    );
    check::<McpServer>(V2, "{'name':'f','command':'/f'}", V2, "{'type':'stdio','name':'f','command':'/f'}");
    check::<McpServer>(
        V2,
        "{'type':'stdio','name':'f','command':'/f'}",
        V1,
        "{'name':'f','command':'/f','args':[],'env':[]}",
    );
    check::<SessionUpdate>(
        V1,
        "{'sessionUpdate':'current_mode_update','modeId':'code'}",
        V1,
        "{'sessionUpdate':'current_mode_update','currentModeId':'code'}",
    );
    check::<NewSessionRequest>(V1, "{'cwd':'/p','mcpServers':null}", V1, "{'cwd':'/p','mcpServers':[]}");
    check::<NewSessionRequest>(V1, "{'cwd':'/p'}", V2, "{'cwd':'/p'}");
}

#[test]
fn a_setting_without_a_type_tells_by_its_value() {
    let start = "{'sessionId':'s','configId':'c',";
    let check = |from, json: &str, to, expected: &str| {
        check::<SetConfigOptionRequest>(from, &format!("{start}{json}"), to, &format!("{start}{expected}"));
    };
    check(V1, "'value':'fast'}", V2, "'type':'id','value':'fast'}");
    check(V1, "'value':true}", V2, "'type':'boolean','value':true}");
    check(V2, "'type':'id','value':'fast'}", V2Draft, "'value':'fast'}");
    check(V2, "'type':'boolean','value':false}", V1, "'type':'boolean','value':false}");
    check(V2, "'type':'_range','value':[1,2],'step':1}", V2, "'type':'_range','value':[1,2],'step':1}");
    check_error::<SetConfigOptionRequest>(V2, &format!("{start}'type':'id','value':7}}"), "`value`: expected a string");
}

#[test]
fn an_option_of_an_unknown_type_is_kept_whole() {
    let json = "{'configId':'c','name':'C','type':'_range','min':1,'deep':{'a':[]},'category':'model','_meta':{'x':1}}";
    let option: ConfigOption = read(V2, json);
    assert_eq!(write(V2, &read::<ConfigOption>(V2, &write(V2, &option).0)), write(V2, &option));
    let (written, _) = write(V1, &option);
    let parts =
        ["'id':'c'", "'name':'C'", "'type':'_range','min':1,'deep':{'a':[]}", "'category':'model'", "'_meta':{'x':1}"];
    assert!(parts.iter().all(|part| written.contains(part)), "{written}");
    assert_eq!(written.len(), json.len() - "config".len() - "I".len() + "i".len());
}

#[test]
fn prompt_answers_of_all_times_are_read() {
    let read = |dialect, json| {
        let response: PromptResponse = read(dialect, json);
        (response.stop_reason, response.message_id)
    };
    assert_eq!(read(V2, "{}"), (None, None));
    assert_eq!(read(V2, "{'messageId':'m'}"), (None, Some("m".into())));
    assert_eq!(read(V2, "{'stopReason':'end_turn'}"), (Some(StopReason::EndTurn), None));
    assert_eq!(read(V2Draft, "{'stopReason':'_mine'}"), (Some("_mine".into()), None));
    check_error::<PromptResponse>(V1, "{}", "missing field `stopReason`");
    check_error::<PromptResponse>(V2Draft, "{}", "missing field `stopReason`");
    let response = PromptResponse { message_id: Some("m".into()), ..PromptResponse::ended(StopReason::EndTurn) };
    assert_eq!(write(V1, &response).0, "{'stopReason':'end_turn'}");
    assert_eq!(write(V2, &response).0, "{'messageId':'m'}");
}

#[test]
fn null_keeps_in_v1_and_clears_since() {
    let json = "{'toolCallId':'c','title':null,'content':null}";
    let call: ToolCallUpdate = read(V1, json);
    assert!(call.title.is_keep() && call.content.is_keep());
    let call: ToolCallUpdate = read(V2, json);
    assert_eq!((&call.title, &call.content), (&Patch::Clear, &Patch::Clear));
    assert_eq!(write(V1, &call), ("{'toolCallId':'c','content':[]}".into(), vec!["title"]));
}

#[test]
fn a_new_tool_call_needs_a_title() {
    let json = "{'sessionUpdate':'tool_call','toolCallId':'c'}";
    check_error::<SessionUpdate>(V1, json, "missing field `title`");
    check::<SessionUpdate>(
        V1,
        "{'sessionUpdate':'tool_call','toolCallId':'c','title':'T'}",
        V2,
        "{'sessionUpdate':'tool_call_update','toolCallId':'c','title':'T'}",
    );
    check::<SessionUpdate>(
        V1,
        "{'sessionUpdate':'plan','entries':[]}",
        V2,
        "{'sessionUpdate':'plan_update','plan':{'type':'items','planId':'plan','entries':[]}}",
    );
}

#[test]
fn chunks_without_a_message_id_are_kept_and_noted_since_v2() {
    let content = "'content':{'type':'text','text':'hi'}";
    for kind in ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"] {
        for id in ["", ",'messageId':null"] {
            let json = format!("{{'sessionUpdate':'{kind}',{content}{id}}}").replace('\'', "\"");
            for (dialect, noted) in [(V1, false), (V2Draft, true), (V2, true)] {
                let mut reader = Reader::new(&json, dialect);
                let update: SessionUpdate = reader.decode().unwrap();
                assert_eq!(write(dialect, &update).0, format!("{{'sessionUpdate':'{kind}',{content}}}"));
                let notes: Vec<String> = reader.tolerated().iter().map(ToString::to_string).collect();
                let expected: &[&str] = if noted { &["missing field `messageId`"] } else { &[] };
                assert_eq!(notes, expected, "{dialect:?} {json}");
            }
        }
    }
    let wrong = format!("{{'sessionUpdate':'agent_message_chunk',{content},'messageId':7}}");
    check_error::<SessionUpdate>(V2, &wrong, "`messageId`: expected a string");
}

#[test]
fn unknown_variants_are_kept_and_malformed_ones_are_errors() {
    let json = "{'sessionUpdate':'_mine','x':{'y':[1,'é']}}";
    for dialect in [V1, V2Draft, V2] {
        check::<SessionUpdate>(dialect, json, dialect, json);
    }
    let state = "{'sessionUpdate':'state_update','state':'_busy','x':1}";
    check::<SessionUpdate>(V2, state, V2, state);
    check_error::<SessionUpdate>(
        V1,
        "{'sessionUpdate':'agent_message_chunk','content':{'type':'text'}}",
        "missing field `content.text`",
    );
    check_error::<ContentBlock>(V2, "{'text':'x'}", "missing field `type`");
}

#[test]
fn wrong_items_are_dropped_singly() {
    let json = "{'entries':[{'content':'a','priority':'high','status':'pending'},{'content':7},null]}";
    let (plan, tolerated) = try_read::<PlanEntries>(V1, json).unwrap();
    assert_eq!((plan.entries.len(), tolerated.len()), (1, 2));
    check_error::<PromptRequest>(
        V1,
        "{'sessionId':'s','prompt':[{'type':'text','text':'a'},{'type':'text'}]}",
        "missing field `prompt[1].text`",
    );
}

#[test]
fn permission_requests_of_all_times_are_read() {
    let old = "{'sessionId':'s','options':[],'toolCall':{'toolCallId':'c','title':'Edit'}}";
    let new = "{'sessionId':'s','options':[],'title':'Edit',\
        'subject':{'type':'tool_call','toolCall':{'toolCallId':'c','title':'Edit'}}}";
    for dialect in [V1, V2Draft, V2] {
        check::<PermissionRequest>(dialect, old, V1, old);
        check::<PermissionRequest>(dialect, old, V2Draft, old);
        check::<PermissionRequest>(dialect, old, V2, new);
        check::<PermissionRequest>(dialect, new, V1, old);
        check::<PermissionRequest>(dialect, new, V2, new);
    }
    check_error::<PermissionRequest>(V2, "{'sessionId':'s','options':[]}", "missing field `title`");
    check_error::<PermissionRequest>(V1, "{'sessionId':'s','options':[]}", "missing field `toolCall`");
    check_lossy::<PermissionRequest>(
        V2,
        "{'sessionId':'s','options':[],'title':'Run?','subject':{'type':'command','command':'ls','cwd':'/p'}}",
        V1,
        "{'sessionId':'s','options':[],'toolCall':{'toolCallId':'command','title':'ls','kind':'execute'}}",
        &["title"],
    );
    let untitled = PermissionRequest::new("s", []).subject(PermissionSubject::tool_call(ToolCallUpdate::new("c")));
    assert!(write(V2, &untitled).0.contains("'title':'Permission needed'"));
    assert!(!PermissionOptionKind::from("_allow_maybe").is_allow());
}

#[test]
fn diffs_move_between_the_dialects() {
    let old = r"{'type':'diff','path':'/p/a','newText':'y\n','oldText':'x\n'}";
    let new = r"{'type':'diff','changes':[{'operation':'modify','path':'/p/a','fileType':'text'}],'patch':{'format':'git_patch','text':'diff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n'}}";
    // A patch that we made of both texts says that it holds all of them, so that they can be had back.
    let marked = new.replace("\\n'}}", "\\n','_meta':{'attache.wholeFile':true}}}");
    check::<ToolCallContent>(V1, old, V2, &marked);
    check::<ToolCallContent>(V2, &marked, V1, old);
    check::<ToolCallContent>(V2, old, V1, old);
    // The file may have more lines than the patch.
    let text = r"{'type':'content','content':{'type':'text','text':'modify `/p/a`\n\n```diff\ndiff --git /p/a /p/a\n--- /p/a\n+++ /p/a\n@@ -1 +1 @@\n-x\n+y\n```\n'}}";
    check_lossy::<ToolCallContent>(V2, new, V1, text, &["changes"]);
    check_lossy::<ToolCallContent>(V2, new, V2Draft, text, &["changes"]);
    let whole = r"{'type':'diff','path':'/p/a','newText':'y\n','oldText':'x'}";
    let unended = |patch: &str| patch.replace(r"-x\n", r"-x\n\\ No newline at end of file\n");
    check::<ToolCallContent>(V1, whole, V2, &unended(&marked));
    check::<ToolCallContent>(V2, &unended(new), V1, whole);
    let added = r"{'type':'diff','path':'/p/a','newText':'y\n','oldText':null}";
    check::<ToolCallContent>(V1, r"{'type':'diff','path':'/p/a','newText':'y\n'}", V1, added);
    let patch = r"{'type':'diff','changes':[{'operation':'add','path':'/p/a','fileType':'text'}],'patch':{'format':'git_patch','text':'diff --git /p/a /p/a\nnew file mode 100644\n--- /dev/null\n+++ /p/a\n@@ -0,0 +1 @@\n+y\n'}}";
    check::<ToolCallContent>(V1, added, V2, patch);
    check::<ToolCallContent>(V2, patch, V2Draft, added);
    check_lossy::<ToolCallContent>(
        V2,
        "{'type':'diff','changes':[{'operation':'move','oldPath':'/a','path':'/b'}]}",
        V1,
        r"{'type':'content','content':{'type':'text','text':'move `/b`\n'}}",
        &["changes"],
    );
    check_error::<ToolCallContent>(V1, "{'type':'diff','path':'/a'}", "missing field `newText`");
}

#[test]
fn null_is_an_empty_result() {
    let read = |json| decode_result::<LoadSessionResponse>(json, V1, &mut vec![]).unwrap();
    assert_eq!(read("null"), read("{}"));
    assert_eq!(write(V1, &read("null")).0, "{}");
    decode_result::<AuthenticateResponse>("null", V2, &mut vec![]).unwrap();
    decode_result::<WaitForTerminalExitResponse>("null", V1, &mut vec![]).unwrap();
    decode_result::<NewSessionResponse>("null", V1, &mut vec![]).unwrap_err();
    decode_result::<ListSessionsResponse>("null", V1, &mut vec![]).unwrap_err();
    decode_params::<ListSessionsRequest>(None, V1, &mut vec![]).unwrap();
    decode_params::<PromptRequest>(Some("null"), V1, &mut vec![]).unwrap_err();
}

#[test]
fn methods_are_read_by_the_names_of_all_dialects() {
    assert_eq!(Method::parse("auth/login"), Method::parse("authenticate"));
    assert_eq!(Method::parse("logout").and_then(|method| method.name(V2)), Some("auth/logout"));
    assert_eq!(Method::LoadSession.name(V2), None);
    assert_eq!((Method::parse("_mine"), Method::parse("")), (None, None));
    let mut tolerated = Vec::new();
    let params = Some(r#"{"sessionId":"s","prompt":[]}"#);
    let request = ClientRequest::decode(Method::Prompt, params, V1, &mut tolerated).unwrap().unwrap();
    assert_eq!((request.method(), request.session_id()), (Method::Prompt, Some(&"s".into())));
    assert!(AgentRequest::decode(Method::Prompt, params, V1, &mut tolerated).is_none());
}

#[test]
fn a_question_has_one_scope() {
    let scoped = |scope: &str| format!("{{'message':'m','mode':'url','elicitationId':'e','url':'https://x',{scope}}}");
    let request: CreateElicitationRequest = read(V1, &scoped("'sessionId':'s'"));
    assert_eq!(request.session_id(), Some(&"s".into()));
    assert_eq!(read::<CreateElicitationRequest>(V1, &scoped("'requestId':7")).session_id(), None);
    let both = "`sessionId` and `requestId` exclude each other";
    check_error::<CreateElicitationRequest>(V2, &scoped("'sessionId':'s','requestId':7"), both);
}

#[test]
fn odd_request_ids_are_errors() {
    assert_eq!(read::<RequestId>(V1, "null"), RequestId::Null);
    assert_ne!(read::<RequestId>(V1, "1"), read::<RequestId>(V1, "'1'"));
    for odd in ["1.5", "9223372036854775808", "true", "{}", "[]", "1e3"] {
        assert!(try_read::<RequestId>(V1, odd).is_err(), "{odd}");
    }
}

#[test]
fn errors_carry_what_programs_need() {
    let method = AuthMethod::from(AgentAuthMethod::new("a", "Agent"));
    let error = ErrorObject::auth_required(std::slice::from_ref(&method));
    assert_eq!((error.reason(), error.auth_methods()), (Some("auth_required".into()), vec![method]));
    assert_eq!(ErrorObject::rate_limited(30).retry_after(), Some(30));
    assert_eq!(ErrorObject::permission_denied("fs.write").scope(), Some("fs.write".into()));
    assert_eq!(ErrorObject::session_not_found(&"s".into()).session_id(), Some("s".into()));
    for odd in ["s".repeat(129).as_str(), "", "a b", "<script>", "a\u{1b}[31m", "\u{202e}x", "a\nb"] {
        assert_eq!(ErrorObject::session_not_found(&odd.into()).data, None, "{odd:?} is not repeated");
    }
    assert_eq!(
        write(V2, &ErrorObject::unsupported_version(3, &[1, 2])).0,
        "{'code':-32022,'message':'Unsupported protocol version','data':{'requested':3,'supported':[1,2]}}"
    );
    assert_eq!(ErrorObject::method_not_found(None).to_string(), "Method not found (code -32601)");
}

#[test]
fn metas_are_merged_whatever_they_hold() {
    let merge = |stored: &str, patch: &str| {
        let meta = |text: &str| Meta::new(&text.replace('\'', "\"")).unwrap();
        meta(stored).merge(&meta(patch)).map(|merged| merged.as_raw().as_str().replace('"', "'"))
    };
    let rows = [
        ("{'a':1,'b':2}", "{'b':null,'c':3}", Some("{'a':1,'c':3}")),
        ("{'a':1,'a':2}", "{}", Some("{'a':1}")),
        ("{'a':1}", "{'a':2,'a':3}", Some("{'a':2}")),
        ("{'a':1}", "{'a':null,'a':3}", None),
        ("{'a':null}", "{}", None),
    ];
    for (stored, patch, merged) in rows {
        assert_eq!(merge(stored, patch).as_deref(), merged, "{stored} {patch}");
    }
}

#[test]
fn optional_fields_can_be_set_one_by_one() {
    let call = ToolCallUpdate::new("c")
        .title("Read")
        .kind(ToolKind::Read)
        .locations([Location::new("/a").line(3u32)])
        .content(vec![ToolCallContent::text("x")])
        .meta(Meta::new("{}").unwrap());
    let json = "{'toolCallId':'c','title':'Read','kind':'read','content':[{'type':'content','content':\
        {'type':'text','text':'x'}}],'locations':[{'path':'/a','line':3}],'_meta':{}}";
    assert_eq!(write(V1, &call), (json.into(), vec![]));
    let block = TextContent::new("x").annotations(Annotations::new().audience([Role::User]).priority(0.5));
    assert_eq!(write(V2, &block).0, "{'text':'x','annotations':{'audience':['user'],'priority':0.5}}");
    let server = McpServerStdio::new("f", "/f").args(["-v"]).env([EnvVariable::new("A", "b")]);
    assert_eq!(write(V2, &server).0, "{'name':'f','command':'/f','args':['-v'],'env':[{'name':'A','value':'b'}]}");
    let files = FsCapabilities::new().read_text_file(true);
    assert_eq!(write(V1, &ClientCapabilities::new().fs(files)).0, "{'fs':{'readTextFile':true}}");
}

#[test]
fn secrets_are_not_shown() {
    let server = McpServerStdio { env: vec![EnvVariable::new("KEY", "hunter2")], ..McpServerStdio::new("f", "/f") };
    assert!(!format!("{server:?}").contains("hunter2"));
}

#[test]
fn what_was_let_pass_is_named_by_its_place() {
    let json =
        r#"{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":7}},"authMethods":[{"id":"a"}]}"#;
    let mut reader = Reader::new(json, V1);
    reader.decode::<InitializeResponse>().unwrap();
    let places: Vec<String> = reader.tolerated().iter().map(|error| error.path()).collect();
    assert_eq!(places, ["agentCapabilities.promptCapabilities.image", "authMethods[0].name"]);
}
