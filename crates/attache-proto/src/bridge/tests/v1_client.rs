//! A client of v1 and an agent of v2.

use super::*;

pub(super) const V1_CLIENT: &str = "
    client --> {'id':'i','method':'initialize','params':{'protocolVersion':1,'clientCapabilities':{'fs':{'readTextFile':true},'terminal':true}}}
    --> agent {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'client','version':'0'},'capabilities':{}}}
    ! fs
    ! terminal
    agent --> {'id':0,'result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{'prompt':{'image':{}},'mcp':{'stdio':{}}}},'authMethods':[{'type':'agent','methodId':'m','name':'M'}]}}
    --> client {'id':'i','result':{'protocolVersion':1,'agentInfo':{'name':'a','version':'1'},'agentCapabilities':{'loadSession':true,'promptCapabilities':{'image':true,'audio':false,'embeddedContext':false},'mcpCapabilities':{'http':false,'sse':false},'sessionCapabilities':{'list':{},'resume':{},'close':{}},'auth':{'logout':{}}},'authMethods':[{'id':'m','name':'M'}]}}";

/// A client opens the session `s`, by its first request after `initialize`.
pub(super) const OPEN: &str = "
    client --> {'id':'o','method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
    --> agent {'id':1,'method':'session/new','params':{'cwd':'/p'}}
    agent --> {'id':1,'result':{'sessionId':'s'}}
    --> client {'id':'o','result':{'sessionId':'s'}}";

#[track_caller]
fn check_v2_agent(script: &str) {
    check(Dialect::V2, &format!("{V1_CLIENT}\n{script}"));
}

#[test]
fn a_turn_of_a_v1_client_with_a_v2_agent() {
    check_v2_agent(
        "client --> {'id':1,'method':'authenticate','params':{'methodId':'m'}}
         --> agent {'id':1,'method':'auth/login','params':{'methodId':'m'}}
         agent --> {'id':1,'result':{}}
         --> client {'id':1,'result':{}}
         client --> {'id':2,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
         --> agent {'id':2,'method':'session/new','params':{'cwd':'/p'}}
         agent --> {'id':2,'result':{'sessionId':'s','configOptions':[{'configId':'m','name':'M','category':'mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}]},{'configId':'b','name':'B','type':'boolean','currentValue':true}],'availableCommands':[{'type':'command','name':'web','description':'W'}]}}
         --> client {'id':2,'result':{'sessionId':'s','modes':{'currentModeId':'ask','availableModes':[{'id':'ask','name':'Ask'}]},'configOptions':[{'id':'m','name':'M','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}],'category':'mode'}]}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'available_commands_update','availableCommands':[{'name':'web','description':'W'}]}}}
         ! configOptions.type
         client --> {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}
         --> agent {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle'}}}
         agent --> {'id':3,'result':{'messageId':'u'}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'u','content':[{'type':'text','text':'hi'}]}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call_update','toolCallId':'t','name':'edit','content':[{'type':'diff','changes':[{'operation':'add','path':'/p/a'}],'patch':{'format':'git_patch','text':'diff --git /p/a /p/a\\nnew file mode 100644\\n--- /dev/null\\n+++ /p/a\\n@@ -0,0 +1 @@\\n+y\\n'}}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call','toolCallId':'t','title':'edit','name':'edit','content':[{'type':'diff','path':'/p/a','newText':'y\\n','oldText':null}]}}}
         agent --> {'id':4,'method':'session/request_permission','params':{'sessionId':'s','title':'Run?','subject':{'type':'command','command':'make','cwd':'/p','toolCallId':'t'},'options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}
         --> client {'id':0,'method':'session/request_permission','params':{'sessionId':'s','options':[{'optionId':'y','name':'Yes','kind':'allow_once'}],'toolCall':{'toolCallId':'t','title':'make','kind':'execute'}}}
         ! title
         agent --> {'method':'$/cancel_request','params':{'requestId':4}}
         --> client {'method':'$/cancel_request','params':{'requestId':0}}
         client --> {'id':0,'result':{'outcome':{'outcome':'cancelled'}}}
         --> agent {'id':4,'result':{'outcome':{'outcome':'cancelled'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan_update','plan':{'type':'items','planId':'p','entries':[]}}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan','entries':[]}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'notice','severity':'info','title':'n'}}}
         ! notice
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}}}
         --> client {'id':3,'result':{'stopReason':'end_turn'}}
         client --> {'id':5,'method':'session/set_mode','params':{'sessionId':'s','modeId':'ask'}}
         --> agent {'id':4,'method':'session/set_config_option','params':{'sessionId':'s','configId':'m','type':'id','value':'ask'}}
         agent --> {'id':4,'result':{'configOptions':[{'configId':'m','name':'M','category':'mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}]}]}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'config_option_update','configOptions':[{'id':'m','name':'M','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}],'category':'mode'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'current_mode_update','currentModeId':'ask'}}}
         --> client {'id':5,'result':{}}
         client --> {'id':6,'method':'logout','params':{}}
         --> agent {'id':5,'method':'auth/logout','params':{}}",
    );
}

#[test]
fn a_v1_prompt_ends_as_the_v2_turn_does() {
    let prompt =
        "client --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}
         --> agent {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'a'}]}}";
    let running = "agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}";
    let idle = |rest: &str| {
        format!(
            "agent --> {{'method':'session/update','params':{{'sessionId':'s','update':{{'sessionUpdate':'state_update','state':'idle'{rest}}}}}}}"
        )
    };
    let accepted = "agent --> {'id':2,'result':{'messageId':'u'}}";
    let rows = [
        // The end is told before the prompt is said to be taken.
        vec![
            running.into(),
            idle(",'stopReason':'refusal'"),
            accepted.into(),
            "--> client {'id':1,'result':{'stopReason':'refusal'}}".into(),
        ],
        vec![
            accepted.into(),
            idle(",'stopReason':'error','error':{'code':-32603,'message':'oh'}"),
            "--> client {'id':1,'error':{'code':-32603,'message':'oh'}}".into(),
        ],
        vec![
            accepted.into(),
            running.into(),
            idle(""),
            "--> client {'id':1,'result':{'stopReason':'end_turn'}}".into(),
        ],
        vec![
            accepted.into(),
            running.into(),
            idle(",'stopReason':'_bored'"),
            "--> client {'id':1,'result':{'stopReason':'end_turn'}}".into(),
            "! stopReason".into(),
        ],
        vec![
            "agent --> {'id':2,'error':{'code':-32002,'message':'no'}}".into(),
            "--> client {'id':1,'error':{'code':-32002,'message':'no'}}".into(),
        ],
        vec![
            "client --> {'method':'$/cancel_request','params':{'requestId':1}}".into(),
            "--> agent {'method':'$/cancel_request','params':{'requestId':2}}".into(),
        ],
        vec![
            accepted.into(),
            "client --> {'method':'$/cancel_request','params':{'requestId':1}}".into(),
            "--> agent {'method':'session/cancel','params':{'sessionId':'s'}}".into(),
        ],
        vec![
            accepted.into(),
            "agent is gone".into(),
            "--> client {'id':1,'error':{'code':-32603,'message':'connection to the agent closed'}}".into(),
        ],
        vec![
            "agent is gone".into(),
            "--> client {'id':1,'error':{'code':-32603,'message':'connection to the agent closed'}}".into(),
        ],
    ];
    for row in rows {
        check_v2_agent(&format!("{OPEN}\n{prompt}\n{}", row.join("\n")));
    }
}

#[test]
fn a_v1_client_loads_from_a_v2_agent() {
    check_v2_agent(
        "client --> {'id':1,'method':'session/load','params':{'sessionId':'s','cwd':'/p','mcpServers':[]}}
         --> agent {'id':1,'method':'session/resume','params':{'sessionId':'s','cwd':'/p','replayFrom':{'type':'start'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'u','content':[{'type':'text','text':'old'}]}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message_chunk','content':{'type':'text','text':'old'},'messageId':'u'}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle'}}}
         agent --> {'id':1,'result':{'configOptions':[]}}
         --> client {'id':1,'result':{}}",
    );
}

#[test]
fn what_is_not_known_passes_as_it_is() {
    let script = "
         client --> {'id':'x','method':'_zed/thing','params':{ 'a' : [1, 2.50] }}
         --> agent {'id':2,'method':'_zed/thing','params':{ 'a' : [1, 2.50] }}
         agent --> {'id':2,'result':  7.0e1}
         --> client {'id':'x','result':7.0e1}
         agent --> {'id':'y','method':'_agent/thing','params':[1]}
         --> client {'id':0,'method':'_agent/thing','params':[1]}
         client --> {'id':0,'error':{'code':5,'message':'no','data':[1]}}
         --> agent {'id':'y','error':{'code':5,'message':'no','data':[1]}}
         client --> {'method':'_told','params':{'b':1}}
         --> agent {'method':'_told','params':{'b':1}}
         agent --> {'method':'$/news','params':{'b':1}}
         --> client {'method':'$/news','params':{'b':1}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'_new','c':1}}}
         --> client {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'_new','c':1}}}
         agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'usage_update'}}}
         ! invalid params in a notification from the agent
         client --> {'id':3,'method':'session/set_model','params':{'sessionId':'s','modelId':'m'}}
         --> client {'id':3,'error':{'code':-32601,'message':'Method not found','data':{'method':'session/set_model'}}}
         client --> {'id':4,'method':'session/dance','params':{}}
         --> agent {'id':3,'method':'session/dance','params':{}}";
    check_v2_agent(&format!("{OPEN}\n{script}"));
}
