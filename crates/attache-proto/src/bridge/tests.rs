mod chain;
mod limits;
mod v1_client;

use super::*;

/// A frame of a script.
fn frame(text: &str) -> String {
    text.replace('\'', "\"").replacen('{', "{\"jsonrpc\":\"2.0\",", 1)
}

/// Plays a conversation over a bridge. `client -->` and `agent -->` arrive, `--> agent` and `--> client` go out, `!` is
/// a report. Single quotes stand for double ones, and the version of JSON-RPC is left out.
#[track_caller]
fn check(agent: Dialect, script: &str) {
    let mut bridge = Bridge::new(agent);
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    let mut said = Vec::new();
    let mut expected = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(text) = line.strip_prefix("client --> ") {
            bridge.handle_client(&frame(text), &mut to_agent, &mut to_client);
        } else if let Some(text) = line.strip_prefix("agent --> ") {
            bridge.handle_agent(&frame(text), &mut to_agent, &mut to_client);
        } else if line == "agent is gone" {
            bridge.handle_agent_gone(&mut to_client);
        } else {
            expected.push(line.to_owned());
            continue;
        }
        // What belongs to one step is in order on each side; the agent's side comes first.
        for (name, out) in [("agent", &mut to_agent), ("client", &mut to_client)] {
            let text = String::from_utf8(std::mem::take(out)).unwrap();
            let short = |line: &str| line.replace('"', "'").replacen("'jsonrpc':'2.0',", "", 1);
            said.extend(text.lines().map(|line| format!("--> {name} {}", short(line))));
        }
        said.extend(bridge.take_reports().into_iter().map(|report| format!("! {report}")));
    }
    let difference = said.iter().zip(&expected).position(|(said, expected)| said != expected);
    if let Some(at) = difference {
        panic!("row {at}:\n  said     {}\n  expected {}", said[at], expected[at]);
    }
    assert_eq!(said.len(), expected.len(), "{:#?}", &said[said.len().min(expected.len())..]);
}

const V2_CLIENT: &str = "
    client --> {'id':'i','method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'},'capabilities':{'elicitation':{'form':{}},'auth':{'terminal':{}}}}}
    --> agent {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientInfo':{'name':'c','version':'1'},'clientCapabilities':{'auth':{'terminal':true},'elicitation':{'form':{}},'session':{'compaction':{},'notices':{},'configOptions':{'boolean':{}}}}}}";

/// A client opens the session `s`, by its first request after `initialize`.
const OPEN: &str = "
    client --> {'id':'o','method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
    --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
    agent --> {'id':1,'result':{'sessionId':'s'}}
    --> client {'id':'o','result':{'sessionId':'s'}}";

/// A v2 client and a v1 agent that offers this.
#[track_caller]
fn check_v1_agent(offers: &str, script: &str) {
    let beginning = format!(
        "{V2_CLIENT}
         agent --> {{'id':0,'result':{{'protocolVersion':1,'agentCapabilities':{offers}}}}}
         --> client {{'id':'i','result':{{'protocolVersion':2,'info':{{'name':'agent','version':'0'}},'capabilities':{{'session':{{'mcp':{{'stdio':{{}}}}}}}},'authMethods':[]}}}}"
    );
    check(Dialect::V1, &format!("{beginning}\n{script}"));
}

#[test]
fn a_v1_agent_is_presented_to_a_v2_client() {
    let script = "
        agent --> {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'a','version':'1'},'agentCapabilities':{'loadSession':true,'promptCapabilities':{'image':true},'mcpCapabilities':{'http':true},'sessionCapabilities':{'delete':{}},'_meta':{'x':1}},'authMethods':[{'id':'k','name':'Key'}]}}
        --> client {'id':'i','result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{'prompt':{'image':{}},'mcp':{'stdio':{},'http':{}},'delete':{}},'_meta':{'x':1}},'authMethods':[{'type':'agent','methodId':'k','name':'Key'}]}}
        client --> {'id':1,'method':'auth/login','params':{'methodId':'k'}}
        --> agent {'id':1,'method':'authenticate','params':{'methodId':'k'}}
        agent --> {'id':1,'result':null}
        --> client {'id':1,'result':{}}";
    check(Dialect::V1, &format!("{V2_CLIENT}\n{script}"));
}

#[test]
fn a_turn_of_a_v2_client_with_a_v1_agent() {
    check_v1_agent(
        "{}",
        "client --> {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[{'type':'stdio','name':'s','command':'/s'}]}}
         --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[{'name':'s','command':'/s','args':[],'env':[]}]}}
         agent --> {'id':1,'result':{'sessionId':'s'}}
         --> client {'id':1,'result':{'sessionId':'s'}}
         client --> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}],'_meta':{'t':1}}}
         --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}],'_meta':{'t':1}}}
         --> client {'id':2,'result':{'messageId':'msg_bridge1_1'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge1_1','content':[{'type':'text','text':'hi'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'a'}},'_meta':{'n':1}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'a'},'messageId':'stream_bridge1_1'},'_meta':{'n':1}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan','entries':[{'content':'c','priority':'low','status':'pending'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan_update','plan':{'type':'items','planId':'plan','entries':[{'content':'c','priority':'low','status':'pending'}]}}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call','toolCallId':'t','title':'Edit','content':[{'type':'diff','path':'/p/a','oldText':'x\\n','newText':'y\\n'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call_update','toolCallId':'t','title':'Edit','content':[{'type':'diff','changes':[{'operation':'modify','path':'/p/a','fileType':'text'}],'patch':{'format':'git_patch','text':'diff --git /p/a /p/a\\n--- /p/a\\n+++ /p/a\\n@@ -1 +1 @@\\n-x\\n+y\\n','_meta':{'attache.wholeFile':true}}}]}}}
         agent --> {'id':7,'method':'session/request_permission','params':{'sessionId':'s','toolCall':{'toolCallId':'t'},'options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'requires_action'}}}
         --> client {'id':0,'method':'session/request_permission','params':{'sessionId':'s','options':[{'optionId':'y','name':'Yes','kind':'allow_once'}],'title':'Edit','subject':{'type':'tool_call','toolCall':{'toolCallId':'t','title':'Edit'}}}}
         client --> {'id':0,'result':{'outcome':{'outcome':'selected','optionId':'y'}}}
         --> agent {'id':7,'result':{'outcome':{'outcome':'selected','optionId':'y'}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         agent --> {'id':8,'method':'fs/read_text_file','params':{'sessionId':'s','path':'/p/a'}}
         --> agent {'id':8,'error':{'code':-32601,'message':'Method not found','data':{'method':'fs/read_text_file'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'b'}}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'b'},'messageId':'stream_bridge1_2'}}}
         agent --> {'id':2,'result':{'stopReason':'end_turn'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}}}
         client --> {'id':3,'method':'session/list','params':{}}
         --> client {'id':3,'result':{'sessions':[{'sessionId':'s','cwd':'/p'}]}}
         client --> {'id':4,'method':'session/list','params':{'cwd':'/q'}}
         --> client {'id':4,'result':{'sessions':[]}}",
    );
}

#[test]
fn prompts_of_a_v2_client_wait_for_their_turn() {
    let script = "
        client --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> client {'id':1,'result':{'messageId':'msg_bridge1_1'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge1_1','content':[{'type':'text','text':'a'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         client --> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'b'}]}}
         client --> {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'c'}]}}
         client --> {'id':4,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'d'}]}}
         client --> {'method':'$/cancel_request','params':{'requestId':3}}
         --> client {'id':3,'error':{'code':-32800,'message':'Request cancelled'}}
         agent --> {'id':2,'error':{'code':-32603,'message':'oh'}}
         --> agent {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'b'}]}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'error','error':{'code':-32603,'message':'oh'}}}}
         --> client {'id':2,'result':{'messageId':'msg_bridge1_2'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge1_2','content':[{'type':'text','text':'b'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         agent --> {'id':9,'method':'session/request_permission','params':{'sessionId':'s','toolCall':{'toolCallId':'t'},'options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'requires_action'}}}
         --> client {'id':0,'method':'session/request_permission','params':{'sessionId':'s','options':[{'optionId':'y','name':'Yes','kind':'allow_once'}],'title':'Permission needed','subject':{'type':'tool_call','toolCall':{'toolCallId':'t'}}}}
         client --> {'method':'session/cancel','params':{'sessionId':'s'}}
         --> agent {'method':'session/cancel','params':{'sessionId':'s'}}
         --> agent {'id':9,'result':{'outcome':{'outcome':'cancelled'}}}
         --> client {'id':4,'error':{'code':-32800,'message':'Request cancelled'}}
         --> client {'method':'$/cancel_request','params':{'requestId':0}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         client --> {'id':0,'result':{'outcome':{'outcome':'cancelled'}}}
         agent --> {'id':3,'result':{'stopReason':'cancelled'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'cancelled'}}}
         client --> {'id':5,'method':'session/close','params':{'sessionId':'s'}}
         --> agent {'method':'session/cancel','params':{'sessionId':'s'}}
         --> client {'id':5,'result':{}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'late'}}}}";
    check_v1_agent("{}", &format!("{OPEN}\n{script}"));
}

#[test]
fn modes_of_a_v1_agent_are_an_option() {
    check_v1_agent(
        "{}",
        "client --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
         --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         agent --> {'id':1,'result':{'sessionId':'s','modes':{'currentModeId':'ask','availableModes':[{'id':'ask','name':'Ask'},{'id':'do','name':'Do'}]}}}
         --> client {'id':1,'result':{'sessionId':'s','configOptions':[{'configId':'mode','name':'Mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'},{'value':'do','name':'Do'}],'category':'mode'}]}}
         client --> {'id':2,'method':'session/set_config_option','params':{'sessionId':'s','configId':'mode','type':'id','value':'do'}}
         --> agent {'id':2,'method':'session/set_mode','params':{'sessionId':'s','modeId':'do'}}
         agent --> {'id':2,'result':{}}
         --> client {'id':2,'result':{'configOptions':[{'configId':'mode','name':'Mode','type':'select','currentValue':'do','options':[{'value':'ask','name':'Ask'},{'value':'do','name':'Do'}],'category':'mode'}]}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'current_mode_update','currentModeId':'ask'}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'config_option_update','configOptions':[{'configId':'mode','name':'Mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'},{'value':'do','name':'Do'}],'category':'mode'}]}}}
         client --> {'id':3,'method':'session/set_config_option','params':{'sessionId':'s','configId':'b','type':'boolean','value':true}}
         --> agent {'id':3,'method':'session/set_config_option','params':{'sessionId':'s','configId':'b','type':'boolean','value':true}}
         agent --> {'id':3,'error':{'code':-32602,'message':'no'}}
         --> client {'id':3,'error':{'code':-32602,'message':'no'}}",
    );
}

#[test]
fn sessions_of_a_v1_agent_are_taken_up_as_it_can() {
    let resume = "{'sessionId':'s','cwd':'/p'}";
    let replay = "{'sessionId':'s','cwd':'/p','replayFrom':{'type':'start'}}";
    check_v1_agent(
        "{}",
        &format!(
            "client --> {{'id':1,'method':'session/resume','params':{resume}}}
             --> client {{'id':1,'error':{{'code':-32601,'message':'Method not found','data':{{'method':'session/resume'}}}}}}
             client --> {{'id':2,'method':'tool_call/cancel','params':{{'sessionId':'s','toolCallId':'t'}}}}
             --> client {{'id':2,'error':{{'code':-32602,'message':'this cannot be cancelled'}}}}
             client --> {{'id':3,'method':'session/prompt','params':{{'sessionId':'s','prompt':[]}}}}
             --> client {{'id':3,'error':{{'code':-32602,'message':'prompt: must not be empty'}}}}
             client --> {{'id':4,'method':'session/prompt','params':{{}}}}
             --> client {{'id':4,'error':{{'code':-32602,'message':'Invalid params: missing field `sessionId`'}}}}"
        ),
    );
    let idle = "--> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle'}}}";
    let load = "{'method':'session/load','params':{'sessionId':'s','cwd':'/p','mcpServers':[]}}";
    let history = "{'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message_chunk','content':{'type':'text','text':'old'},'messageId':'m'}}}";
    check_v1_agent(
        "{'loadSession':true}",
        &format!(
            "client --> {{'id':1,'method':'session/resume','params':{replay}}}
             --> agent {}
             agent --> {history}
             --> client {history}
             agent --> {{'id':1,'result':null}}
             {idle}
             --> client {{'id':1,'result':{{}}}}
             client --> {{'id':2,'method':'session/resume','params':{resume}}}
             --> agent {}
             agent --> {history}
             agent --> {{'id':2,'result':null}}
             {idle}
             --> client {{'id':2,'result':{{}}}}",
            load.replacen('{', "{'id':1,", 1),
            load.replacen('{', "{'id':2,", 1),
        ),
    );
    check_v1_agent(
        "{'sessionCapabilities':{'resume':{}}}",
        &format!(
            "client --> {{'id':1,'method':'session/resume','params':{resume}}}
             --> agent {{'id':1,'method':'session/resume','params':{resume}}}
             agent --> {{'id':1,'result':{{}}}}
             {idle}
             --> client {{'id':1,'result':{{}}}}
             client --> {{'id':2,'method':'session/resume','params':{replay}}}
             --> client {{'id':2,'error':{{'code':-32602,'message':'replayFrom: the agent cannot replay the history'}}}}"
        ),
    );
}

#[test]
fn the_same_dialect_on_both_sides_is_left_alone() {
    check(
        Dialect::V1,
        "client --> {'id':'i','method':'initialize','params':{'protocolVersion':1,'extra':[1]}}
         --> agent {'id':0,'method':'initialize','params':{'protocolVersion':1,'extra':[1]}}
         agent --> {'id':0,'result':{'protocolVersion':1,'more':{}}}
         --> client {'id':'i','result':{'protocolVersion':1,'more':{}}}
         client --> {'id':1,'method':'session/prompt','params':{'odd':true}}
         --> agent {'id':1,'method':'session/prompt','params':{'odd':true}}
         agent --> {'id':2,'method':'fs/read_text_file','params':{'odd':true}}
         --> client {'id':0,'method':'fs/read_text_file','params':{'odd':true}}
         agent --> {'method':'session/update','params':{'odd':true}}
         --> client {'method':'session/update','params':{'odd':true}}",
    );
}

#[test]
fn a_client_of_the_draft_with_a_v1_agent() {
    check(
        Dialect::V1,
        "client --> {'id':'i','method':'initialize','params':{'protocolVersion':2,'clientInfo':{'name':'c','version':'1'}}}
         --> agent {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientInfo':{'name':'c','version':'1'},'clientCapabilities':{'session':{'configOptions':{'boolean':{}}}}}}
         agent --> {'id':0,'result':{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}}
         --> client {'id':'i','result':{'protocolVersion':2,'agentInfo':{'name':'agent','version':'0'},'capabilities':{'session':{'mcp':{'stdio':{}},'load':{}}},'authMethods':[]}}
         client --> {'id':'o','method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         agent --> {'id':1,'result':{'sessionId':'s'}}
         --> client {'id':'o','result':{'sessionId':'s'}}
         client --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan','entries':[]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan_update','plan':{'type':'items','id':'plan','entries':[]}}}}
         agent --> {'id':2,'result':{'stopReason':'end_turn'}}
         --> client {'id':1,'result':{'stopReason':'end_turn'}}",
    );
}

#[test]
fn an_agent_of_the_draft_with_a_v2_client() {
    check(
        Dialect::V2,
        "client --> {'id':'i','method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}
         --> agent {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}
         agent --> {'id':0,'result':{'protocolVersion':2,'agentInfo':{'name':'a','version':'1'},'capabilities':{'session':{'load':{}}}}}
         --> client {'id':'i','result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}},'authMethods':[]}}
         client --> {'id':'o','method':'session/new','params':{'cwd':'/p'}}
         --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         agent --> {'id':1,'result':{'sessionId':'s'}}
         --> client {'id':'o','result':{'sessionId':'s'}}
         client --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> client {'id':1,'result':{'messageId':'msg_bridge1_1'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge1_1','content':[{'type':'text','text':'a'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan_update','plan':{'type':'items','id':'p','entries':[]}}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan_update','plan':{'type':'items','planId':'p','entries':[]}}}}
         client --> {'id':2,'method':'session/close','params':{'sessionId':'s'}}
         --> agent {'method':'session/cancel','params':{'sessionId':'s'}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'cancelled'}}}
         --> client {'id':2,'result':{}}
         agent --> {'id':2,'result':{'stopReason':'cancelled'}}",
    );
}

#[test]
fn a_question_names_the_request_that_the_client_made() {
    check_v1_agent(
        "{}",
        "client --> {'id':'mine','method':'auth/login','params':{'methodId':'k'}}
         --> agent {'id':1,'method':'authenticate','params':{'methodId':'k'}}
         agent --> {'id':1,'method':'elicitation/create','params':{'message':'?','mode':'url','elicitationId':'e','url':'https://a','requestId':1}}
         --> client {'id':0,'method':'elicitation/create','params':{'message':'?','mode':'url','elicitationId':'e','url':'https://a','requestId':'mine'}}
         client --> {'id':0,'result':{'action':'accept'}}
         --> agent {'id':1,'result':{'action':'accept'}}",
    );
}

#[test]
fn a_bad_beginning_is_answered() {
    check(
        Dialect::V1,
        "client --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
         --> client {'id':1,'error':{'code':-32600,'message':'expected `initialize` first'}}
         ! expected `initialize` first
         client --> {'id':2,'method':'initialize','params':{'protocolVersion':'1'}}
         --> client {'id':2,'error':{'code':-32602,'message':'Invalid params: `protocolVersion`: expected a number'}}
         client --> {'id':3,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'}}}
         --> agent {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientInfo':{'name':'c','version':'1'},'clientCapabilities':{'session':{'compaction':{},'notices':{},'configOptions':{'boolean':{}}}}}}
         agent --> {'id':0,'result':{'protocolVersion':9}}
         --> client {'id':3,'error':{'code':-32603,'message':'the agent speaks protocol version 9, which is not supported'}}",
    );
}

#[test]
fn an_agent_of_version_1_behind_a_hint_of_version_2_is_greeted_again() {
    let client = "client --> {'id':'i','method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'terminal':true}}}
         --> agent {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'client','version':'0'},'capabilities':{}}}
         ! terminal";
    let again = "--> agent {'id':1,'method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'terminal':true}}}";
    let v1 = "{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}";
    let echo = "{'protocolVersion':2,'agentCapabilities':{'loadSession':true}}";
    for first in [v1, echo] {
        check(
            Dialect::V2,
            &format!(
                "{client}
                 agent --> {{'id':0,'result':{first}}}
                 {again}
                 agent --> {{'id':1,'result':{v1}}}
                 --> client {{'id':'i','result':{v1}}}"
            ),
        );
        // It will not hear it twice: what it said first holds.
        check(
            Dialect::V2,
            &format!(
                "{client}
                 agent --> {{'id':0,'result':{first}}}
                 {again}
                 agent --> {{'id':1,'error':{{'code':-32600,'message':'no'}}}}
                 --> client {{'id':'i','result':{{'protocolVersion':1,'agentInfo':{{'name':'agent','version':'0'}},'agentCapabilities':{{'loadSession':true,'promptCapabilities':{{'image':false,'audio':false,'embeddedContext':false}},'mcpCapabilities':{{'http':false,'sse':false}}}},'authMethods':[]}}}}"
            ),
        );
    }
    check(
        Dialect::V2,
        &format!(
            "{client}
             agent --> {{'id':0,'error':{{'code':-32602,'message':'no'}}}}
             {again}
             agent --> {{'id':1,'error':{{'code':-32603,'message':'nor that'}}}}
             --> client {{'id':'i','error':{{'code':-32603,'message':'nor that'}}}}"
        ),
    );
    check(
        Dialect::V2,
        &format!(
            "{client}
             agent is gone
             --> client {{'id':'i','error':{{'code':-32603,'message':'connection to the agent closed'}}}}"
        ),
    );
}

#[test]
fn what_comes_before_a_session_is_open_is_told() {
    check_v1_agent(
        "{'loadSession':true}",
        "client --> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
         --> agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'available_commands_update','availableCommands':[]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'available_commands_update','availableCommands':[]}}}
         client --> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> client {'id':2,'error':{'code':-32002,'message':'Session not found','data':{'sessionId':'s'}}}
         agent --> {'id':1,'result':{'sessionId':'s'}}
         --> client {'id':1,'result':{'sessionId':'s'}}
         agent --> {'method':'session/update','params':{'sessionId':'t','update':{'sessionUpdate':'available_commands_update','availableCommands':[]}}}
         ! session is not open
         client --> {'id':3,'method':'session/resume','params':{'sessionId':'s','cwd':'/p'}}
         --> agent {'id':2,'method':'session/load','params':{'sessionId':'s','cwd':'/p','mcpServers':[]}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message_chunk','content':{'type':'text','text':'old'}}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'usage_update','used':1,'size':2}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'usage_update','used':1,'size':2}}}
         agent --> {'id':2,'result':{}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle'}}}
         --> client {'id':3,'result':{}}
         client --> {'id':4,'method':'initialize','params':{'protocolVersion':1}}
         --> client {'id':4,'error':{'code':-32600,'message':'`initialize` came after a session was opened'}}",
    );
}

#[test]
fn a_form_of_a_v1_agent_makes_a_v2_session_require_action() {
    let script = "
        client --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
        --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
        --> client {'id':1,'result':{'messageId':'msg_bridge1_1'}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge1_1','content':[{'type':'text','text':'a'}]}}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
        agent --> {'id':3,'method':'elicitation/create','params':{'sessionId':'s','message':'?','mode':'url','elicitationId':'e','url':'https://a'}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'requires_action'}}}
        --> client {'id':0,'method':'elicitation/create','params':{'message':'?','mode':'url','elicitationId':'e','url':'https://a','sessionId':'s'}}
        client --> {'id':0,'result':{'action':'accept'}}
        --> agent {'id':3,'result':{'action':'accept'}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}";
    check_v1_agent("{}", &format!("{OPEN}\n{script}"));
}

#[test]
fn a_session_that_is_opened_again_is_another() {
    let script = "
        client --> {'id':1,'method':'session/close','params':{'sessionId':'s'}}
        --> agent {'method':'session/cancel','params':{'sessionId':'s'}}
        --> client {'id':1,'result':{}}
        client --> {'id':2,'method':'session/new','params':{'cwd':'/p'}}
        --> agent {'id':2,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
        agent --> {'id':3,'method':'session/request_permission','params':{'sessionId':'s','toolCall':{'toolCallId':'t'},'options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}
        --> agent {'id':3,'error':{'code':-32002,'message':'Session not found','data':{'sessionId':'s'}}}
        ! session is not open
        agent --> {'id':2,'result':{'sessionId':'t'}}
        --> client {'id':2,'result':{'sessionId':'t'}}
        client --> {'id':3,'method':'session/resume','params':{'sessionId':'s','cwd':'/p'}}
        --> agent {'id':3,'method':'session/resume','params':{'sessionId':'s','cwd':'/p'}}
        agent --> {'id':3,'result':{}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle'}}}
        --> client {'id':3,'result':{}}
        client --> {'id':4,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
        --> agent {'id':4,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
        --> client {'id':4,'result':{'messageId':'msg_bridge3_1'}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'msg_bridge3_1','content':[{'type':'text','text':'a'}]}}}
        --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}";
    check_v1_agent("{'sessionCapabilities':{'resume':{}}}", &format!("{OPEN}\n{script}"));
}
