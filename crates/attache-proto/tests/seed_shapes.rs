//! Every shape of message that the project's founding documents show: read in the right dialect, written back equal.
//!
//! Documents 000 and 001 describe version 1, 002 to 004 the draft of version 2. The rows below have values of our
//! own. Where the documents themselves are at hand, the second test reads every example in them.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use attache_proto::Dialect::{self, V1, V2Draft};
use attache_proto::json::{Reader, Writer};
use attache_proto::method::{AgentNotification, AgentRequest, ClientNotification, ClientRequest, Method};
use attache_proto::model::auth::AuthenticateResponse;
use attache_proto::model::content::ContentBlock;
use attache_proto::model::fs::{ReadTextFileResponse, WriteTextFileResponse};
use attache_proto::model::initialize::InitializeResponse;
use attache_proto::model::mcp::McpServer;
use attache_proto::model::permission::PermissionResponse;
use attache_proto::model::prompt::PromptResponse;
use attache_proto::model::session::{LoadSessionResponse, NewSessionResponse, SetModeResponse, SetModelResponse};
use attache_proto::model::terminal::{
    CreateTerminalResponse, KillTerminalResponse, ReleaseTerminalResponse, TerminalOutputResponse,
    WaitForTerminalExitResponse,
};
use attache_proto::model::tool::ToolCallContent;
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc::{Envelope, Incoming, parse};
use attache_proto::{Decode, Encode};
use serde_json::{Map, Value, json};

/// What a piece of JSON is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape<'a> {
    /// A request or notification, envelope and all.
    Message,
    /// The answer to this method, envelope and all.
    Answer(&'a str),
    Update,
    Content,
    ToolContent,
    Mcp,
    Location,
    /// What is said of modes when a session is opened.
    Modes,
    Outcome,
}
use Shape::*;

/// What may be there or not, because it says the same. Everything else has to be equal.
///
/// - `null` where it says what absence says: no signal, no text before, nothing to answer.
/// - A capability that is `false`, which is what absence says.
/// - An empty list of ways to log in.
fn without_empty_words(key: &str, value: &Value) -> Option<Value> {
    match (key, value) {
        ("signal" | "exitCode" | "oldText", Value::Null) => None,
        ("image" | "audio" | "embeddedContext" | "http" | "sse" | "loadSession", Value::Bool(false)) => None,
        ("authMethods", Value::Array(methods)) if methods.is_empty() => None,
        ("result", Value::Null) => Some(json!({})),
        (_, Value::Array(items)) => {
            Some(items.iter().map(|item| without_empty_words("", item).unwrap_or_default()).collect())
        }
        (_, Value::Object(fields)) => {
            let fields = fields.iter().filter_map(|(key, value)| Some((key.clone(), without_empty_words(key, value)?)));
            let fields: serde_json::Map<String, Value> = fields.collect();
            // Flags that are all false say what no flags at all say.
            let is_nothing = fields.is_empty() && matches!(key, "promptCapabilities" | "mcpCapabilities");
            (!is_nothing).then_some(Value::Object(fields))
        }
        (_, value) => Some(value.clone()),
    }
}

/// Reads and writes it in one dialect: equal, nothing let pass, nothing lost.
fn check(dialect: Dialect, shape: Shape<'_>, json: &Value) {
    let written = match shape {
        Message => message(dialect, json),
        Answer(method) => answer(dialect, method, json),
        Update => again::<SessionUpdate>(dialect, json),
        Content => again::<ContentBlock>(dialect, json),
        ToolContent => again::<ToolCallContent>(dialect, json),
        Mcp => again::<McpServer>(dialect, json),
        Location => again::<attache_proto::model::tool::Location>(dialect, json),
        Modes => again::<LoadSessionResponse>(dialect, json),
        Outcome => again::<PermissionResponse>(dialect, json),
    };
    let written = without_empty_words("", &written);
    assert_eq!(written, without_empty_words("", json), "{dialect:?} {shape:?}");
}

fn again<T: Decode + Encode>(dialect: Dialect, json: &Value) -> Value {
    let text = json.to_string();
    let mut reader = Reader::new(&text, dialect);
    let value: T = reader.decode().unwrap_or_else(|error| panic!("{dialect:?} {text}: {error}"));
    assert_eq!(reader.tolerated(), [], "{dialect:?} {text}");
    written(dialect, |writer| writer.value(&value))
}

fn written(dialect: Dialect, write: impl FnOnce(&mut Writer<'_>)) -> Value {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, dialect);
    write(&mut writer);
    assert_eq!(writer.lost(), [""; 0], "{dialect:?}");
    serde_json::from_slice(&buffer).unwrap()
}

/// A request or notification, through the envelope and the tables of methods.
fn message(dialect: Dialect, json: &Value) -> Value {
    let text = json.to_string();
    let (id, method, params) = match parse(&text) {
        Envelope::One(Ok(Incoming::Request { id, method, params })) => (Some(id), method, params),
        Envelope::One(Ok(Incoming::Notification { method, params })) => (None, method, params),
        other => panic!("{text}: {other:?}"),
    };
    let mut written = Map::new();
    written.insert("jsonrpc".into(), "2.0".into());
    if let Some(id) = &id {
        written.insert("id".into(), json!(id));
    }
    written.insert("params".into(), decoded(dialect, &method, id.is_some(), params));
    written.insert("method".into(), method.into());
    written.into()
}

fn decoded(dialect: Dialect, name: &str, is_request: bool, params: Option<&str>) -> Value {
    if name.starts_with('_') {
        // Methods of somebody's own: nobody but them knows what is in it.
        assert_eq!(Method::parse(name), None);
        return serde_json::from_str(params.unwrap()).unwrap();
    }
    let method = Method::parse(name).unwrap_or_else(|| panic!("no method {name}"));
    assert_eq!(method.name(dialect), Some(name), "{dialect:?}");
    let mut tolerated = Vec::new();
    macro_rules! try_as {
        ($($direction:ident if $is_wanted:expr),*) => {$(
            if $is_wanted && let Some(message) = $direction::decode(method, params, dialect, &mut tolerated) {
                let message = message.unwrap_or_else(|error| panic!("{dialect:?} {name}: {error}"));
                assert_eq!(tolerated, [], "{dialect:?} {name}");
                return written(dialect, |writer| message.encode_params(writer));
            }
        )*};
    }
    try_as!(ClientRequest if is_request, AgentRequest if is_request);
    try_as!(ClientNotification if !is_request, AgentNotification if !is_request);
    panic!("{name} is not sent this way");
}

/// An answer, through the envelope and the type of its result.
fn answer(dialect: Dialect, method: &str, json: &Value) -> Value {
    let text = json.to_string();
    let Envelope::One(Ok(Incoming::Response { id, outcome })) = parse(&text) else { panic!("{text}") };
    let result = match outcome {
        Err(error) => {
            let error = written(dialect, |writer| writer.value(&error));
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
        Ok(result) => serde_json::from_str(result).unwrap(),
    };
    let again = match method {
        "initialize" => again::<InitializeResponse>,
        "authenticate" => again::<AuthenticateResponse>,
        "session/new" => again::<NewSessionResponse>,
        "session/load" => again::<LoadSessionResponse>,
        "session/prompt" => again::<PromptResponse>,
        "session/set_mode" => again::<SetModeResponse>,
        "session/set_model" => again::<SetModelResponse>,
        "session/request_permission" => again::<PermissionResponse>,
        "fs/read_text_file" => again::<ReadTextFileResponse>,
        "fs/write_text_file" => again::<WriteTextFileResponse>,
        "terminal/create" => again::<CreateTerminalResponse>,
        "terminal/output" => again::<TerminalOutputResponse>,
        "terminal/wait_for_exit" => again::<WaitForTerminalExitResponse>,
        "terminal/kill" => again::<KillTerminalResponse>,
        "terminal/release" => again::<ReleaseTerminalResponse>,
        other => panic!("no answer to {other}"),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": again(dialect, &result)})
}

/// The rows: a shape and an example of it, in single quotes.
#[rustfmt::skip]
const ROWS: &[(Dialect, Shape<'_>, &str)] = &[
    // Opening the connection.
    (V1, Message, "{'jsonrpc':'2.0','id':10,'method':'initialize','params':{'protocolVersion':1,
        'clientCapabilities':{'fs':{'readTextFile':true,'writeTextFile':true},'terminal':true}}}"),
    (V1, Answer("initialize"), "{'jsonrpc':'2.0','id':10,'result':{'protocolVersion':1,'agentCapabilities':{
        'loadSession':true,'promptCapabilities':{'image':true,'audio':false,'embeddedContext':true},
        'mcpCapabilities':{'http':true,'sse':false}},'authMethods':[]}}"),
    (V1, Answer("initialize"), "{'jsonrpc':'2.0','id':'ten','result':{'protocolVersion':1,
        'agentCapabilities':{'promptCapabilities':{'audio':true},'mcpCapabilities':{'sse':true}},
        'authMethods':[{'id':'sso','name':'Single sign-on','description':'In the browser'},
        {'id':'key','name':'Key'}]}}"),
    (V1, Answer("initialize"), "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':1,'agentCapabilities':{
        'loadSession':true,'_meta':{'attache.example':{'replays':true,'depth':3}}}}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':11,'method':'authenticate','params':{'methodId':'sso'}}"),
    (V1, Answer("authenticate"), "{'jsonrpc':'2.0','id':11,'result':{}}"),
    // Opening a session.
    (V1, Message, "{'jsonrpc':'2.0','id':12,'method':'session/new','params':{'cwd':'/srv/shop','mcpServers':[
        {'name':'notes','command':'/opt/notes','args':['--serve','-v'],'env':[{'name':'LEVEL','value':'2'}]},
        {'type':'http','name':'search','url':'https://mcp.example/s','headers':[{'name':'X-Key','value':'k'}]},
        {'type':'sse','name':'news','url':'https://mcp.example/n','headers':[]}]}}"),
    (V1, Answer("session/new"), "{'jsonrpc':'2.0','id':12,'result':{'sessionId':'s-1'}}"),
    (V1, Answer("session/new"), "{'jsonrpc':'2.0','id':12,'result':{'sessionId':'s-1','modes':{
        'currentModeId':'careful','availableModes':[{'id':'careful','name':'Careful','description':'Asks first'},
        {'id':'bold','name':'Bold'}]}}}"),
    (V1, Answer("session/new"), "{'jsonrpc':'2.0','id':12,'result':{'sessionId':'s-1','models':{
        'currentModelId':'small','availableModels':[{'modelId':'small','name':'Small','description':'Quick'}]}}}"),
    (V1, Answer("session/new"), "{'jsonrpc':'2.0','id':12,'error':{'code':-32000,'message':'Log in first',
        'data':{'reason':'auth_required','authMethods':[{'id':'sso','name':'Single sign-on'}]}}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':13,'method':'session/load','params':{'sessionId':'s-0','cwd':'/srv/shop',
        'mcpServers':[{'name':'notes','command':'/opt/notes','args':[],'env':[]}]}}"),
    (V1, Answer("session/load"), "{'jsonrpc':'2.0','id':13,'result':null}"),
    (V1, Answer("session/load"), "{'jsonrpc':'2.0','id':13,'result':{'modes':{'currentModeId':'bold',
        'availableModes':[{'id':'bold','name':'Bold'}]}}}"),
    (V1, Modes, "{'modes':{'currentModeId':'bold','availableModes':[{'id':'bold','name':'Bold','description':'!'}]}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':14,'method':'session/set_mode','params':{'sessionId':'s-1','modeId':'bold'}}"),
    (V1, Answer("session/set_mode"), "{'jsonrpc':'2.0','id':14,'result':{}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':15,'method':'session/set_model',
        'params':{'sessionId':'s-1','modelId':'small'}}"),
    (V1, Answer("session/set_model"), "{'jsonrpc':'2.0','id':15,'result':{}}"),
    // The turn.
    (V1, Message, "{'jsonrpc':'2.0','id':16,'method':'session/prompt','params':{'sessionId':'s-1','prompt':[
        {'type':'text','text':'Why is it slow?'},{'type':'resource','resource':{'uri':'file:///srv/shop/cart.rb',
        'mimeType':'text/x-ruby','text':'loop {}'}}]}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':17,'method':'session/prompt','params':{'sessionId':'s-1',
        'prompt':[{'type':'text','text':'/deploy now'}],'_meta':{'attache.example/trace':[1,null,{'deep':false}]}}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':16,'result':{'stopReason':'end_turn'}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':16,'result':{'stopReason':'max_tokens'}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':16,'result':{'stopReason':'max_turn_requests'}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':16,'result':{'stopReason':'refusal'}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':16,'result':{'stopReason':'cancelled'}}"),
    (V1, Message, "{'jsonrpc':'2.0','method':'session/cancel','params':{'sessionId':'s-1'}}"),
    (V1, Message, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-1','update':{
        'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'Because of N+1.'}}}}"),
    (V1, Update, "{'sessionUpdate':'user_message_chunk','content':{'type':'text','text':'Why?'}}"),
    (V1, Update, "{'sessionUpdate':'agent_thought_chunk','content':
        {'type':'image','data':'AAAA','mimeType':'image/gif'}}"),
    (V1, Update, "{'sessionUpdate':'tool_call','toolCallId':'t-1','title':'Count queries'}"),
    (V1, Update, "{'sessionUpdate':'tool_call','toolCallId':'t-1','title':'Count queries','kind':'search',
        'status':'pending','content':[{'type':'content','content':{'type':'text','text':'12'}}],
        'locations':[{'path':'/srv/shop/cart.rb','line':7},{'path':'/srv/shop/db.rb'}],
        'rawInput':{'pattern':'SELECT','flags':[1,2.5,null]},'rawOutput':{'n':12}}"),
    (V1, Update, "{'sessionUpdate':'tool_call','toolCallId':'t-2','title':'Benchmark','kind':'execute',
        'status':'in_progress','content':[{'type':'terminal','terminalId':'tty-4'}]}"),
    (V1, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-1','status':'in_progress'}"),
    (V1, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-1','title':'Counted','kind':'think',
        'status':'failed','content':[{'type':'diff','path':'/srv/shop/cart.rb','oldText':'a','newText':'b'}],
        'locations':[{'path':'/srv/shop/cart.rb','line':1}],'rawInput':{},'rawOutput':{'error':'timeout'}}"),
    (V1, Update, "{'sessionUpdate':'plan','entries':[{'content':'Measure','priority':'high','status':'completed'},
        {'content':'Fix','priority':'medium','status':'in_progress'},
        {'content':'Celebrate','priority':'low','status':'pending'}]}"),
    (V1, Update, "{'sessionUpdate':'available_commands_update','availableCommands':[
        {'name':'deploy','description':'Ship it','input':{'hint':'where to'}},
        {'name':'undo','description':'Go back'}]}"),
    (V1, Update, "{'sessionUpdate':'current_mode_update','currentModeId':'bold'}"),
    // Content.
    (V1, Content, "{'type':'text','text':'T','annotations':{'audience':['user','assistant'],'priority':0.25,
        'lastModified':'2026-01-02T03:04:05Z'}}"),
    (V1, Content, "{'type':'text','text':'T','annotations':{}}"),
    (V1, Content, "{'type':'image','data':'QUJD','mimeType':'image/webp','uri':'file:///srv/logo.webp'}"),
    (V1, Content, "{'type':'audio','data':'QUJD','mimeType':'audio/ogg','annotations':{'priority':1.0}}"),
    (V1, Content, "{'type':'resource_link','name':'README','uri':'file:///srv/README'}"),
    (V1, Content, "{'type':'resource_link','name':'README','uri':'file:///srv/README','title':'Read me',
        'description':'First','mimeType':'text/plain','size':77,'annotations':{'audience':['user']}}"),
    (V1, Content, "{'type':'resource','resource':{'uri':'file:///srv/a','text':'A','mimeType':'text/plain'}}"),
    (V1, Content, "{'type':'resource','resource':{'uri':'file:///srv/b','blob':'QkI=','mimeType':'font/woff'}}"),
    (V1, ToolContent, "{'type':'content','content':{'type':'text','text':'Twelve.'}}"),
    (V1, ToolContent, "{'type':'diff','path':'/srv/new','oldText':null,'newText':'born\\n'}"),
    (V1, ToolContent, "{'type':'diff','path':'/srv/old','oldText':'x\\n','newText':'y\\n'}"),
    (V1, ToolContent, "{'type':'terminal','terminalId':'tty-4'}"),
    (V1, Location, "{'path':'/srv/shop/cart.rb','line':7}"),
    (V1, Location, "{'path':'/srv/shop/cart.rb'}"),
    (V1, Mcp, "{'name':'notes','command':'/opt/notes','args':['-v'],'env':[{'name':'A','value':'1'}]}"),
    (V1, Mcp, "{'type':'http','name':'search','url':'https://mcp.example/s','headers':[{'name':'A','value':'1'}]}"),
    (V1, Mcp, "{'type':'sse','name':'news','url':'https://mcp.example/n','headers':[]}"),
    // What the agent asks of the client.
    (V1, Message, "{'jsonrpc':'2.0','id':20,'method':'session/request_permission','params':{'sessionId':'s-1',
        'toolCall':{'toolCallId':'t-3','title':'Drop the table','kind':'delete'},'options':[
        {'optionId':'y','name':'Yes','kind':'allow_once'},{'optionId':'Y','name':'Always','kind':'allow_always'},
        {'optionId':'n','name':'No','kind':'reject_once'},{'optionId':'N','name':'Never','kind':'reject_always'}]}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':20,'method':'session/request_permission','params':{'sessionId':'s-1',
        'toolCall':{'toolCallId':'t-3'},'options':[{'optionId':'n','name':'No','kind':'reject_once'}]}}"),
    (V1, Answer("session/request_permission"), "{'jsonrpc':'2.0','id':20,
        'result':{'outcome':{'outcome':'selected','optionId':'n'}}}"),
    (V1, Outcome, "{'outcome':{'outcome':'cancelled'}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':21,'method':'fs/read_text_file','params':{'sessionId':'s-1',
        'path':'/srv/shop/cart.rb','line':40,'limit':2}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':21,'method':'fs/read_text_file',
        'params':{'sessionId':'s-1','path':'/srv/x'}}"),
    (V1, Answer("fs/read_text_file"), "{'jsonrpc':'2.0','id':21,'result':{'content':'def total\\n'}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':22,'method':'fs/write_text_file','params':{'sessionId':'s-1',
        'path':'/srv/shop/cart.rb','content':'def sum\\n'}}"),
    (V1, Answer("fs/write_text_file"), "{'jsonrpc':'2.0','id':22,'result':{}}"),
    (V1, Answer("fs/write_text_file"), "{'jsonrpc':'2.0','id':22,'result':null}"),
    (V1, Message, "{'jsonrpc':'2.0','id':23,'method':'terminal/create','params':{'sessionId':'s-1','command':'make',
        'args':['-j','2'],'env':[{'name':'CI','value':'1'}],'cwd':'/srv/shop','outputByteLimit':65536}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':23,'method':'terminal/create','params':{'sessionId':'s-1','command':'ls'}}"),
    (V1, Answer("terminal/create"), "{'jsonrpc':'2.0','id':23,'result':{'terminalId':'tty-4'}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':24,'method':'terminal/output',
        'params':{'sessionId':'s-1','terminalId':'tty-4'}}"),
    (V1, Answer("terminal/output"), "{'jsonrpc':'2.0','id':24,'result':{'output':'ok ✓\\n','truncated':true}}"),
    (V1, Answer("terminal/output"), "{'jsonrpc':'2.0','id':24,'result':{'output':'','truncated':false,
        'exitStatus':{'exitCode':2,'signal':null}}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':25,'method':'terminal/wait_for_exit',
        'params':{'sessionId':'s-1','terminalId':'tty-4'}}"),
    (V1, Answer("terminal/wait_for_exit"), "{'jsonrpc':'2.0','id':25,'result':{'exitCode':null,'signal':'SIGTERM'}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':26,'method':'terminal/kill',
        'params':{'sessionId':'s-1','terminalId':'tty-4'}}"),
    (V1, Answer("terminal/kill"), "{'jsonrpc':'2.0','id':26,'result':{}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':27,'method':'terminal/release',
        'params':{'sessionId':'s-1','terminalId':'tty-4'}}"),
    (V1, Answer("terminal/release"), "{'jsonrpc':'2.0','id':27,'result':{}}"),
    // Errors and extensions.
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':30,'error':{'code':-32601,'message':'No such method',
        'data':{'method':'_attache.example/fly','reason':'no wings'}}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':30,'error':{'code':-32029,'message':'Too fast',
        'data':{'reason':'rate_limited','retryAfter':9}}}"),
    (V1, Answer("session/prompt"), "{'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'Parse error'}}"),
    (V1, Message, "{'jsonrpc':'2.0','id':31,'method':'_attache.example/fly','params':{'height':100}}"),
    (V1, Message, "{'jsonrpc':'2.0','method':'_attache.example/landed','params':{'at':['here',{'x':null}]}}"),
    // The turn in the draft of version 2.
    (V2Draft, Message, "{'jsonrpc':'2.0','id':2,'method':'session/prompt','params':{'sessionId':'s-2','prompt':[
        {'type':'text','text':'Explain'},{'type':'resource','resource':{'uri':'file:///srv/k.py',
        'mimeType':'text/x-python','text':'print()'}}]}}"),
    (V2Draft, Answer("session/prompt"), "{'jsonrpc':'2.0','id':2,'result':{'stopReason':'end_turn'}}"),
    (V2Draft, Answer("session/prompt"), "{'jsonrpc':'2.0','id':2,'result':{'stopReason':'_out_of_ideas'}}"),
    (V2Draft, Message, "{'jsonrpc':'2.0','method':'session/cancel','params':{'sessionId':'s-2'}}"),
    (V2Draft, Message, "{'jsonrpc':'2.0','method':'session/update','params':{'sessionId':'s-2','update':{
        'sessionUpdate':'user_message','messageId':'m-1','content':[{'type':'text','text':'Explain'}]}}}"),
    (V2Draft, Update, "{'sessionUpdate':'user_message','messageId':'m-1'}"),
    (V2Draft, Update, "{'sessionUpdate':'user_message','messageId':'m-1','content':[],'_meta':{'k':1}}"),
    (V2Draft, Update, "{'sessionUpdate':'user_message_chunk','messageId':'m-1','content':{'type':'text','text':'E'}}"),
    (V2Draft, Update, "{'sessionUpdate':'agent_message','messageId':'m-2','content':[{'type':'text','text':'It'}]}"),
    (V2Draft, Update, "{'sessionUpdate':'agent_message','messageId':'m-2','content':null}"),
    (V2Draft, Update, "{'sessionUpdate':'agent_message_chunk','messageId':'m-2','content':
        {'type':'text','text':' is'}}"),
    (V2Draft, Update, "{'sessionUpdate':'agent_thought','messageId':'m-3','content':[{'type':'text','text':'Hm'}]}"),
    (V2Draft, Update, "{'sessionUpdate':'agent_thought_chunk','messageId':'m-3','content':{'type':'text','text':'m'}}"),
    (V2Draft, Update, "{'sessionUpdate':'plan_update','plan':{'type':'items','id':'p-1','entries':[
        {'content':'Read','priority':'high','status':'pending'},
        {'content':'Tell','priority':'low','status':'_soon'}]}}"),
    (V2Draft, Update, "{'sessionUpdate':'usage_update','used':1200,'size':8000,'cost':
        {'amount':0.5,'currency':'EUR'}}"),
    (V2Draft, Update, "{'sessionUpdate':'usage_update','used':0,'size':8000}"),
    // Tool calls in the draft of version 2.
    (V2Draft, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-9','title':'Look around','kind':'read',
        'status':'pending','locations':[{'path':'/srv/k.py','line':3}],'rawInput':{'q':1},'rawOutput':{'a':[]}}"),
    (V2Draft, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-9','status':'in_progress'}"),
    (V2Draft, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-9','title':null,'kind':null,'content':null,
        'locations':[],'rawInput':null}"),
    (V2Draft, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-9','kind':'_juggle','status':'_aloft'}"),
    (V2Draft, Update, "{'sessionUpdate':'tool_call_update','toolCallId':'t-9','status':'completed','content':[
        {'type':'content','content':{'type':'text','text':'Seen'}},
        {'type':'diff','path':'/srv/k.py','oldText':'1','newText':'2'},{'type':'_chart','points':[1,2]}]}"),
    (V2Draft, Update, "{'sessionUpdate':'tool_call_content_chunk','toolCallId':'t-9',
        'content':{'type':'content','content':{'type':'text','text':'...'}}}"),
    (V2Draft, ToolContent, "{'type':'diff','path':'/srv/new.py','oldText':null,'newText':'pass\\n'}"),
    (V2Draft, Location, "{'path':'/srv/k.py','line':3}"),
    (V2Draft, Message, "{'jsonrpc':'2.0','id':5,'method':'session/request_permission','params':{'sessionId':'s-2',
        'toolCall':{'toolCallId':'t-9','title':'Look around'},'options':[
        {'optionId':'y','name':'Yes','kind':'allow_once'},{'optionId':'m','name':'Maybe','kind':'_maybe'}]}}"),
    (V2Draft, Answer("session/request_permission"), "{'jsonrpc':'2.0','id':5,
        'result':{'outcome':{'outcome':'selected','optionId':'y'}}}"),
    (V2Draft, Outcome, "{'outcome':{'outcome':'cancelled'}}"),
    // What one has made up is kept: the draft wants it stored, forwarded and replayed.
    (V2Draft, Update, "{'sessionUpdate':'_weather','sky':'clear','wind':{'knots':4}}"),
    (V2Draft, Content, "{'type':'_hologram','frames':[1,2,3]}"),
];

#[test]
fn every_shape_of_the_documents_is_read_and_written_back() {
    for (dialect, shape, json) in ROWS {
        // A line end inside a row is only there to fit the page.
        let json = json.replace('\'', "\"").lines().map(str::trim).collect::<String>();
        let json = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
        check(*dialect, *shape, &json);
    }
}

/// Batches are in document 004: an array of what stands alone elsewhere.
#[test]
fn a_batch_is_its_messages() {
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {"cwd": "/srv"}}),
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s-2"}}),
    ];
    let batch = Value::from(messages.to_vec()).to_string();
    let Envelope::Batch(entries) = parse(&batch) else { panic!("{batch}") };
    for (entry, message) in entries.into_iter().zip(&messages) {
        let alone = message.to_string();
        let Envelope::One(alone) = parse(&alone) else { panic!("{alone}") };
        assert_eq!(entry, alone);
        check(V2Draft, Message, message);
    }
}

/// The examples in the documents themselves, where the folder `shared/seeds` stands beside the repository.
#[test]
fn the_examples_in_the_documents_are_read_and_written_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: the documents are not here ({})", folder.display());
        return;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut checked, mut skipped) = (0, 0);
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let dialect = if name.starts_with("000") || name.starts_with("001") { V1 } else { V2Draft };
        let text = std::fs::read_to_string(&file).unwrap();
        let mut asked = Asked::default();
        for example in examples(&text) {
            match example {
                Some(json) => {
                    checked += 1;
                    check_example(dialect, &mut asked, json);
                }
                None => skipped += 1,
            }
        }
    }
    eprintln!("{checked} examples checked, {skipped} with placeholders skipped");
    assert!(checked >= 110, "only {checked} examples were found");
    assert!(skipped <= 5, "{skipped} examples could not be read");
}

/// Every object that begins a line; `None` when it is not JSON, because it has a placeholder such as `ContentBlock`.
fn examples(text: &str) -> Vec<Option<Value>> {
    let mut examples = Vec::new();
    let mut position = 0;
    while let Some(start) = text[position..].find("\n{").map(|start| position + start + 1) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let example = stream.next().and_then(Result::ok);
        // Objects are examples; text in braces is not.
        position = if example.is_some() { start + stream.byte_offset() } else { start + 1 };
        examples.push(example);
    }
    examples
}

/// Which methods were asked, so that answers can be told apart.
#[derive(Default)]
struct Asked {
    by_id: HashMap<String, String>,
    last: String,
}

fn check_example(dialect: Dialect, asked: &mut Asked, mut json: Value) {
    let has = |key: &str| json.get(key).is_some();
    let kind = json["type"].as_str().unwrap_or_default();
    let shape = if has("method") {
        Message
    } else if has("result") || has("error") {
        Answer("")
    } else if has("sessionUpdate") {
        Update
    } else if has("outcome") {
        Outcome
    } else if has("modes") {
        Modes
    } else if has("command") || has("url") {
        Mcp
    } else if ["content", "diff", "terminal"].contains(&kind) {
        ToolContent
    } else if has("type") {
        Content
    } else {
        Location
    };
    if matches!(shape, Message | Answer(_)) {
        complete(&mut json, asked);
    }
    let method = match shape {
        Message => {
            if let (Some(id), Some(method)) = (json.get("id"), json["method"].as_str()) {
                asked.by_id.insert(id.to_string(), method.into());
                asked.last = method.into();
            }
            String::new()
        }
        // Two answers show who they are; the examples use the same ids over and over.
        Answer(_) if json["result"].get("protocolVersion").is_some() => "initialize".into(),
        Answer(_) if json["result"].get("sessionId").is_some() => "session/new".into(),
        Answer(_) => asked.by_id.get(&json["id"].to_string()).unwrap_or(&asked.last).clone(),
        _ => String::new(),
    };
    let shape = if shape == Answer("") { Answer(&method) } else { shape };
    check(dialect, shape, &json);
}

/// Document 000 often leaves the envelope out; it is the same for all.
fn complete(json: &mut Value, asked: &Asked) {
    let is_notification = ["session/update", "session/cancel"].iter().any(|method| json["method"] == *method)
        || json["method"].as_str().is_some_and(|method| method.starts_with('_'));
    if json.get("jsonrpc").is_some() {
        return;
    }
    json["jsonrpc"] = "2.0".into();
    if json.get("method").is_some() && !is_notification {
        json["id"] = (1000 + asked.by_id.len()).into();
    } else if json.get("result").is_some() {
        json["id"] = "the last one".into();
    }
}
