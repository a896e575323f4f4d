//! Corner cases of the protocol, as a raw client sees them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use attache::agent::{
    Agent, Authenticate, Context, Delete, HandlerError, List, OpenRequest, Opened, Restore, Session, SessionHandle,
};
use attache::model::auth::{AgentAuthMethod, AuthMethod, AuthMethodId};
use attache::model::command::Command;
use attache::model::config::{
    ConfigCategory, ConfigId, ConfigKind, ConfigOption, ConfigSelect, ConfigSetting, ConfigValue, ConfigValues,
};
use attache::model::error::ErrorObject;
use attache::model::initialize::Implementation;
use attache::model::session::{ListSessionsRequest, ListSessionsResponse, SessionId, SessionInfo};
use attache::{Framing, Prompt, Stop, Turn};
use attache_testkit::RawPeer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An agent that can do everything an agent can register, and writes down what is asked of it.
#[derive(Clone, Default)]
struct Full(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    log: Vec<String>,
    is_authenticated: bool,
}

impl Full {
    fn log(&self, line: impl Into<String>) {
        self.0.lock().unwrap().log.push(line.into());
    }
}

struct Talk(Full);

impl Agent for Full {
    type Session = Talk;

    fn info(&self) -> Implementation {
        Implementation::new("full", "1")
    }

    async fn open(&self, request: OpenRequest, _: SessionHandle) -> Result<Opened<Talk>, HandlerError> {
        if !self.0.lock().unwrap().is_authenticated {
            return Err(ErrorObject::auth_required(&self.methods()).into());
        }
        self.log(format!("open {}", request.cwd));
        Ok(Opened::from(Talk(self.clone())).options(options("ask")))
    }
}

fn options(mode: &str) -> Vec<ConfigOption> {
    let modes = vec![ConfigValue::new("ask", "Ask"), ConfigValue::new("code", "Code")];
    let mode = ConfigKind::Select(ConfigSelect::new(mode, ConfigValues::Flat(modes)));
    let models = vec![ConfigValue::new("small", "Small")];
    let model = ConfigKind::Select(ConfigSelect::new("small", ConfigValues::Flat(models)));
    vec![
        ConfigOption::new("m", "Mode", mode).category(ConfigCategory::Mode),
        ConfigOption::new("l", "Model", model).category(ConfigCategory::Model),
    ]
}

impl Session for Talk {
    async fn prompt(&mut self, turn: Turn, prompt: Prompt) -> Result<Stop, HandlerError> {
        turn.text(prompt.text()).await?;
        if prompt.text() == "wait" {
            turn.cancelled().await;
        }
        Ok(Stop::EndTurn)
    }

    async fn set_option(&mut self, option: ConfigId, value: ConfigSetting) -> Result<Vec<ConfigOption>, HandlerError> {
        self.0.log(format!("set {option} {value:?}"));
        match value {
            ConfigSetting::Id(value) if option.as_str() == "m" => Ok(options(value.as_str())),
            _ => Ok(options("ask")),
        }
    }

    async fn close(self) {
        self.0.log("close");
    }
}

impl Restore for Full {
    async fn restore(
        &self,
        session: SessionId,
        _: OpenRequest,
        replay: bool,
        handle: SessionHandle,
    ) -> Result<Opened<Talk>, HandlerError> {
        self.log(format!("restore {session} {replay}"));
        if replay {
            handle.text("history").await?;
        }
        Ok(Opened::from(Talk(self.clone())).commands(vec![Command::new("help", "Helps").into()]))
    }
}

impl List for Full {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse, HandlerError> {
        Ok(ListSessionsResponse::new(vec![SessionInfo::new("old", "/tmp")]))
    }
}

impl Delete for Full {
    async fn delete(&self, session: SessionId) -> Result<(), HandlerError> {
        self.log(format!("delete {session}"));
        Ok(())
    }
}

impl Authenticate for Full {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::from(AgentAuthMethod::new("key", "Key"))]
    }

    async fn authenticate(&self, _: AuthMethodId, _: Context) -> Result<(), HandlerError> {
        self.0.lock().unwrap().is_authenticated = true;
        Ok(())
    }

    async fn logout(&self) -> Result<(), HandlerError> {
        self.0.lock().unwrap().is_authenticated = false;
        Ok(())
    }
}

fn serve(agent: Full) -> RawPeer {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let server = attache::serve(agent).restores().lists().deletes().authenticates();
    let server = server.extension("_test/add", async |(a, b): (u32, u32), _| Ok(a + b));
    tokio::spawn(server.connect(reader, writer));
    RawPeer::new(near)
}

/// A peer that has been greeted in version 1 and is logged in.
async fn greeted() -> (RawPeer, Full) {
    let agent = Full::default();
    let mut peer = serve(agent.clone());
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'full'},'agentCapabilities':{'loadSession':true,'sessionCapabilities':{'list':{},'resume':{},'close':{},'delete':{}},'auth':{'logout':{}}},'authMethods':[{'id':'key','name':'Key'}]}}
         --> {'id':1,'method':'authenticate','params':{'methodId':'key'}}
         <-- {'id':1,'result':{}}",
    )
    .await;
    (peer, agent)
}

#[tokio::test]
async fn greetings() {
    let mut peer = serve(Full::default());
    peer.play(
        "--> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':1,'error':{'code':-32600}}
         --> {'method':'session/cancel','params':{'sessionId':'x'}}
         --> {'id':2,'method':'initialize','params':{}}
         <-- {'id':2,'error':{'code':-32602,'message':'Invalid params: missing field `protocolVersion`'}}
         --> {'id':3,'method':'initialize','params':{'protocolVersion':'1'}}
         <-- {'id':3,'error':{'code':-32602}}
         --> {'id':4,'method':'initialize','params':{'protocolVersion':70000}}
         <-- {'id':4,'error':{'code':-32602}}
         --> {'id':4,'method':'initialize','params':{'protocolVersion':-1,'info':{'name':'c','version':'1'}}}
         <-- {'id':4,'error':{'code':-32602}}
         --> {'id':4,'method':'initialize','params':{'protocolVersion':1.5}}
         <-- {'id':4,'error':{'code':-32602}}
         # One that is older than all of ours cannot be served, whatever words it comes with.
         --> {'id':40,'method':'initialize','params':{'protocolVersion':0}}
         <-- {'id':40,'error':{'code':-32022,'data':{'requested':0,'supported':[1,2]}}}
         --> {'id':41,'method':'initialize','params':{'protocolVersion':0,'clientInfo':{'name':'c','version':'1'}}}
         <-- {'id':41,'error':{'code':-32022,'data':{'requested':0,'supported':[1,2]}}}
         --> {'id':42,'method':'initialize','params':{'protocolVersion':0,'info':{'name':'c','version':'1'}}}
         <-- {'id':42,'error':{'code':-32022,'data':{'requested':0,'supported':[1,2]}}}
         # A version that nobody knows yet is answered with the newest that we know.
         --> {'id':5,'method':'initialize','params':{'protocolVersion':9,'info':{'name':'c','version':'1'}}}
         <-- {'id':5,'result':{'protocolVersion':2,'info':{'name':'full'},'authMethods':[{'type':'agent','methodId':'key'}]}}
         # The last greeting before anything else counts.
         --> {'id':6,'method':'initialize','params':{'protocolVersion':2,'clientInfo':{'name':'c','version':'1'}}}
         <-- {'id':6,'result':{'protocolVersion':2,'agentInfo':{'name':'full'},'capabilities':{'session':{'load':{},'list':{},'resume':{},'close':{}}}}}
         --> {'id':7,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':7,'result':{'protocolVersion':1}}",
    )
    .await;
}

/// An agent that can do something in one dialect cannot do it in another that has no such method.
#[tokio::test]
async fn methods_of_another_dialect() {
    let info = "'name':'c','version':'1'";
    for (greeting, method) in [
        (format!("'protocolVersion':2,'info':{{{info}}}"), "session/load"),
        (format!("'protocolVersion':2,'clientInfo':{{{info}}}"), "tool_call/cancel"),
        ("'protocolVersion':1".to_owned(), "tool_call/cancel"),
    ] {
        let mut peer = serve(Full::default());
        peer.play(&format!(
            "--> {{'id':1,'method':'initialize','params':{{{greeting}}}}}
             <-- {{'id':1}}
             --> {{'id':2,'method':'{method}','params':{{'sessionId':'x','cwd':'/tmp','mcpServers':[]}}}}
             <-- {{'id':2,'error':{{'code':-32601,'data':{{'method':'{method}'}}}}}}"
        ))
        .await;
    }
}

#[tokio::test]
async fn methods_that_are_not_there() {
    let (mut peer, _) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'_nobody/knows'}
         <-- {'id':2,'error':{'code':-32601,'data':{'method':'_nobody/knows'}}}
         --> {'id':3,'method':'session/fork','params':{'sessionId':'x','cwd':'/tmp'}}
         <-- {'id':3,'error':{'code':-32601,'data':{'method':'session/fork'}}}
         --> {'id':4,'method':'$/whatever'}
         <-- {'id':4,'error':{'code':-32601}}
         --> {'id':5,'method':'fs/read_text_file','params':{'sessionId':'x','path':'/a'}}
         <-- {'id':5,'error':{'code':-32601,'data':{'method':'fs/read_text_file'}}}
         --> {'method':'_nobody/told'}
         --> {'method':'$/whatever'}
         --> {'method':'session/unheard_of'}
         --> {'id':6,'method':'_test/add','params':[2,3]}
         <-- {'id':6,'result':5}
         --> {'id':7,'method':'_test/add','params':{'a':2}}
         <-- {'id':7,'error':{'code':-32602}}",
    )
    .await;
}

#[tokio::test]
async fn sessions_that_are_not_there_and_params_that_are_wrong() {
    let (mut peer, _) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'session/prompt','params':{'sessionId':'ghost','prompt':[{'type':'text','text':'x'}]}}
         <-- {'id':2,'error':{'code':-32002,'data':{'sessionId':'ghost'}}}
         --> {'id':3,'method':'session/new','params':{'cwd':'relative','mcpServers':[]}}
         <-- {'id':3,'error':{'code':-32602,'message':'cwd: not an absolute path'}}
         --> {'id':4,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[{'name':'x'}]}}
         <-- {'id':4,'error':{'code':-32602,'message':'Invalid params: missing field `mcpServers[0].command`'}}
         --> {'id':5,'method':'session/close','params':{'sessionId':'ghost'}}
         <-- {'id':5,'error':{'code':-32002}}
         --> {'id':6,'method':'authenticate','params':{'methodId':'other'}}
         <-- {'id':6,'error':{'code':-32602}}",
    )
    .await;
}

/// A client of version 2 that closes what is closed has what it wants; one of version 1 is told.
#[tokio::test]
async fn what_is_not_open_is_closed() {
    let mut peer = serve(Full::default());
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}
         <-- {'id':0}
         --> {'id':1,'method':'session/close','params':{'sessionId':'ghost'}}
         <-- {'id':1,'result':{}}",
    )
    .await;
}

/// An agent that offers little says so in every word that version 1 has for it.
#[tokio::test]
async fn what_is_not_offered_is_said() {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    let agent = attache::agent_fn("small", "1", async |_: Turn, _: Prompt| Ok(Stop::EndTurn));
    tokio::spawn(attache::serve(agent).connect(reader, writer));
    let mut peer = RawPeer::new(near);
    peer.play("--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}").await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["result"]["authMethods"], serde_json::json!([]));
    let offered = &answer["result"]["agentCapabilities"];
    assert_eq!(offered["loadSession"], false);
    let nothing = serde_json::json!({"image": false, "audio": false, "embeddedContext": false});
    assert_eq!(offered["promptCapabilities"], nothing);
    assert_eq!(offered["mcpCapabilities"], serde_json::json!({"http": false, "sse": false}));
    peer.play("--> {'id':1,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}")
        .await;
    let answer = peer.next().await.unwrap();
    assert_eq!(answer["result"]["authMethods"], serde_json::json!([]));
}

#[tokio::test]
async fn authentication_is_asked_for_with_the_ways_to_do_it() {
    let mut peer = serve(Full::default());
    peer.play(
        "--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
         <-- {'id':0}
         --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':1,'error':{'code':-32000,'data':{'reason':'auth_required','authMethods':[{'id':'key','name':'Key'}]}}}
         --> {'id':2,'method':'authenticate','params':{'methodId':'key'}}
         <-- {'id':2,'result':{}}
         --> {'id':3,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':3,'result':{'sessionId':'*'}}
         --> {'id':4,'method':'logout','params':{}}
         <-- {'id':4,'result':{}}
         --> {'id':5,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':5,'error':{'code':-32000}}",
    )
    .await;
}

#[tokio::test]
async fn modes_and_models_are_options_by_another_name() {
    let (mut peer, agent) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':2,'result':{'sessionId':'$s','modes':{'currentModeId':'ask','availableModes':[{'id':'ask','name':'Ask'},{'id':'code','name':'Code'}]},'models':{'currentModelId':'small','availableModels':[{'modelId':'small','name':'Small'}]},'configOptions':[{'id':'m','category':'mode'},{'id':'l','category':'model'}]}}
         # Whichever is set, the other is told of.
         --> {'id':3,'method':'session/set_mode','params':{'sessionId':'$s','modeId':'code'}}
         <-- {'method':'session/update','params':{'update':{'sessionUpdate':'config_option_update','configOptions':[{'id':'m','currentValue':'code'},{'id':'l'}]}}}
         <-- {'method':'session/update','params':{'update':{'sessionUpdate':'current_mode_update','currentModeId':'code'}}}
         <-- {'id':3,'result':{}}
         --> {'id':30,'method':'session/set_config_option','params':{'sessionId':'$s','configId':'m','value':'ask'}}
         <-- {'method':'session/update','params':{'update':{'sessionUpdate':'current_mode_update','currentModeId':'ask'}}}
         <-- {'id':30,'result':{'configOptions':[{'id':'m','currentValue':'ask'},{'id':'l'}]}}
         # What changes nothing about the mode says nothing about it.
         --> {'id':31,'method':'session/set_config_option','params':{'sessionId':'$s','configId':'l','value':'small'}}
         <-- {'id':31,'result':{'configOptions':[{'id':'m','currentValue':'ask'},{'id':'l'}]}}
         --> {'id':4,'method':'session/set_mode','params':{'sessionId':'$s'}}
         <-- {'id':4,'error':{'code':-32602}}",
    )
    .await;
    peer.play(
        "--> {'id':5,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':5,'result':{'sessionId':'$t'}}
         --> {'id':6,'method':'session/set_model','params':{'sessionId':'$t','modelId':'small'}}
         <-- {'method':'session/update','params':{'update':{'sessionUpdate':'config_option_update'}}}
         <-- {'method':'session/update','params':{'update':{'sessionUpdate':'current_mode_update','currentModeId':'ask'}}}
         <-- {'id':6,'result':{}}",
    )
    .await;
    let log = agent.0.lock().unwrap().log.join("; ");
    assert!(log.contains("set \"m\" Id(\"code\")") || log.contains("set m Id(\"code\")"), "{log}");
    assert!(log.contains("set l Id(\"small\")"), "{log}");
}

#[tokio::test]
async fn a_session_that_is_open_is_opened_anew_and_closed_when_deleted() {
    let (mut peer, agent) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'session/load','params':{'sessionId':'old','cwd':'/tmp','mcpServers':[]}}
         <-- {'method':'session/update','params':{'sessionId':'old','update':{'content':{'text':'history'}}}}
         # All of it comes before the answer.
         <-- {'method':'session/update','params':{'sessionId':'old','update':{'sessionUpdate':'available_commands_update','availableCommands':[{'name':'help'}]}}}
         <-- {'id':2,'result':{}}
         --> {'id':3,'method':'session/resume','params':{'sessionId':'old','cwd':'/tmp'}}
         <-- {'method':'session/update','params':{'sessionId':'old','update':{'sessionUpdate':'available_commands_update'}}}
         <-- {'id':3,'result':{}}
         --> {'id':4,'method':'session/prompt','params':{'sessionId':'old','prompt':[{'type':'text','text':'wait'}]}}
         <-- {'method':'session/update'}
         # A session that is at work is not opened anew.
         --> {'id':5,'method':'session/resume','params':{'sessionId':'old','cwd':'/tmp'}}
         <-- {'id':5,'error':{'code':-32602}}
         --> {'id':6,'method':'session/delete','params':{'sessionId':'old'}}
         <-- {'id':4,'result':{'stopReason':'cancelled'}}
         <-- {'id':6,'result':{}}
         --> {'id':7,'method':'session/prompt','params':{'sessionId':'old','prompt':[{'type':'text','text':'x'}]}}
         <-- {'id':7,'error':{'code':-32002}}",
    )
    .await;
    let expected = ["restore old true", "close", "restore old false", "close", "delete old"];
    assert_eq!(agent.0.lock().unwrap().log, expected);
}

#[tokio::test]
async fn cancelling_a_request_cancels_its_turn_and_queued_prompts_wait_their_turn() {
    let (mut peer, _) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':2,'result':{'sessionId':'$s'}}
         --> {'id':'a','method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'wait'}]}}
         --> {'id':'b','method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'second'}]}}
         <-- {'method':'session/update','params':{'update':{'content':{'text':'wait'}}}}
         --> {'method':'$/cancel_request','params':{'requestId':'a'}}
         <-- {'id':'a','result':{'stopReason':'cancelled'}}
         <-- {'method':'session/update','params':{'update':{'content':{'text':'second'}}}}
         <-- {'id':'b','result':{'stopReason':'end_turn'}}
         --> {'id':'c','method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'wait'}]}}
         --> {'id':'d','method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'never'}]}}
         <-- {'method':'session/update'}
         --> {'method':'session/cancel','params':{'sessionId':'$s'}}
         <-- {'id':'c','result':{'stopReason':'cancelled'}}
         <-- {'id':'d','result':{'stopReason':'cancelled'}}",
    )
    .await;
}

#[tokio::test]
async fn a_batch_is_answered_as_one_when_its_last_entry_is() {
    let (mut peer, _) = greeted().await;
    peer.play(
        "--> {'id':2,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
         <-- {'id':2,'result':{'sessionId':'$s'}}
         --> [{'jsonrpc':'2.0','id':3,'method':'session/prompt','params':{'sessionId':'$s','prompt':[{'type':'text','text':'hi'}]}},{'jsonrpc':'2.0','id':4,'method':'_test/add','params':[1,1]},{'jsonrpc':'2.0','method':'_test/note'},7]",
    )
    .await;
    let mut messages = vec![peer.next().await.unwrap(), peer.next().await.unwrap()];
    let update = messages.remove(0);
    assert_eq!(update["method"], "session/update");
    let mut answers: Vec<String> = messages[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| {
            format!(
                "{} {}",
                answer["id"],
                if answer["error"].is_null() { &answer["result"] } else { &answer["error"]["code"] }
            )
        })
        .collect();
    answers.sort();
    assert_eq!(answers, ["3 {\"stopReason\":\"end_turn\"}", "4 2", "null -32600"]);
}

#[tokio::test]
async fn content_length_frames_are_recognised_and_answered_in_kind() {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(attache::serve(Full::default()).connect(reader, writer));
    let mut bytes = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#.to_vec();
    Framing::ContentLength.finish(&mut bytes, 0);
    near.write_all(&bytes).await.unwrap();
    let mut said = vec![0; 16];
    near.read_exact(&mut said).await.unwrap();
    assert_eq!(said, b"Content-Length: ");
}
