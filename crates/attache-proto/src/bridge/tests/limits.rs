//! What a peer can make a bridge hold, and what is left when a side is gone.

use super::v1_client::{OPEN, V1_CLIENT};
use super::*;

/// A bridge that has seen the frames of a script; what it said is left out.
fn bridge(agent: Dialect, script: &str) -> Bridge {
    let mut bridge = Bridge::new(agent);
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    for line in script.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("client --> ") {
            bridge.handle_client(&frame(text), &mut to_agent, &mut to_client);
        } else if let Some(text) = line.strip_prefix("agent --> ") {
            bridge.handle_agent(&frame(text), &mut to_agent, &mut to_client);
        }
    }
    bridge.take_reports();
    bridge
}

#[test]
fn no_queued_prompt_is_begun_when_the_agent_is_gone() {
    check_v1_agent(
        "{}",
        &format!(
            "{}
             client --> {{'id':1,'method':'session/prompt','params':{{'sessionId':'s','prompt':[{{'type':'text','text':'a'}}]}}}}
             --> agent {{'id':2,'method':'session/prompt','params':{{'sessionId':'s','prompt':[{{'type':'text','text':'a'}}]}}}}
             --> client {{'id':1,'result':{{'messageId':'msg_bridge1_1'}}}}
             --> client {{'method':'session/update','params':{{'sessionId':'s','update':{{'sessionUpdate':'user_message','messageId':'msg_bridge1_1','content':[{{'type':'text','text':'a'}}]}}}}}}
             --> client {{'method':'session/update','params':{{'sessionId':'s','update':{{'sessionUpdate':'state_update','state':'running'}}}}}}
             client --> {{'id':2,'method':'session/prompt','params':{{'sessionId':'s','prompt':[{{'type':'text','text':'b'}}]}}}}
             agent is gone
             --> client {{'id':2,'error':{{'code':-32603,'message':'connection to the agent closed'}}}}
             --> client {{'method':'session/update','params':{{'sessionId':'s','update':{{'sessionUpdate':'state_update','state':'idle','stopReason':'error','error':{{'code':-32603,'message':'connection to the agent closed'}}}}}}}}
             client --> {{'id':3,'method':'session/new','params':{{'cwd':'/p'}}}}
             --> client {{'id':3,'error':{{'code':-32603,'message':'connection to the agent closed'}}}}",
            super::OPEN
        ),
    );
}

#[test]
fn nothing_is_kept_of_sessions_that_nobody_opened() {
    let mut bridge = bridge(Dialect::V2, V1_CLIENT);
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    for number in 0..1000 {
        for update in [
            "'agent_message_chunk','messageId':'m','content':{'type':'text','text':'a'}",
            "'usage_update','used':1,'size':2",
        ] {
            let update = format!(
                "{{'method':'session/update','params':{{'sessionId':'s{number}','update':{{'sessionUpdate':{update}}}}}}}"
            );
            bridge.handle_agent(&frame(&update), &mut to_agent, &mut to_client);
        }
        let ask = format!(
            "{{'id':{number},'method':'session/request_permission','params':{{'sessionId':'s{number}','title':'?','options':[{{'optionId':'y','name':'Yes','kind':'allow_once'}}]}}}}"
        );
        bridge.handle_agent(&frame(&ask), &mut to_agent, &mut to_client);
        for (method, rest) in
            [("prompt", "'prompt':[{'type':'text','text':'a'}]"), ("set_mode", "'modeId':'m'"), ("cancel", "'a':1")]
        {
            let ask =
                format!("{{'id':{number},'method':'session/{method}','params':{{'sessionId':'c{number}',{rest}}}}}");
            bridge.handle_client(&frame(&ask), &mut to_agent, &mut to_client);
        }
    }
    assert_eq!(bridge.sessions.len(), 0);
    let refused = String::from_utf8(to_client).unwrap();
    assert_eq!(refused.matches("-32002").count(), 2000, "{}", &refused[..400]);
}

#[test]
fn a_session_is_freed_with_its_end() {
    let session = |end: &str| {
        let bridge = bridge(Dialect::V2, &format!("{V1_CLIENT}\n{OPEN}\n{end}"));
        let mut left: Vec<String> = bridge.sessions.keys().map(ToString::to_string).collect();
        left.sort();
        left
    };
    let child = "agent --> {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'subagent_update','sessionId':'child'}}}";
    let load = "client --> {'id':1,'method':'session/load','params':{'sessionId':'t','cwd':'/p','mcpServers':[]}}";
    let new = "client --> {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}";
    let close = "client --> {'id':1,'method':'session/close','params':{'sessionId':'s'}}";
    let delete = "client --> {'id':1,'method':'session/delete','params':{'sessionId':'s'}}";
    let done = "agent --> {'id':2,'result':{}}";
    let failed = "agent --> {'id':2,'error':{'code':-32603,'message':'no'}}";
    let unknown = "agent --> {'id':2,'error':{'code':-32002,'message':'no'}}";
    let early = "agent --> {'method':'session/update','params':{'sessionId':'u','update':{'sessionUpdate':'usage_update','used':1,'size':2}}}";
    let another = early.replace("'u'", "'v'");
    let rows: &[(&[&str], &[&str])] = &[
        (&[], &["s"]),
        (&[child], &["child", "s"]),
        (&[close], &["s"]),
        (&[close, done], &[]),
        (&[close, failed], &["s"]),
        (&[close, unknown], &[]),
        (&[child, close, done], &[]),
        (&[delete, done], &[]),
        (&[load], &["s", "t"]),
        (&[load, done], &["s", "t"]),
        (&[load, failed], &["s"]),
        (&[new, early], &["s", "u"]),
        (&[new, early, another.as_str()], &["s", "u"]),
        (&[new, early, "agent --> {'id':2,'result':{'sessionId':'u'}}"], &["s", "u"]),
        (&[new, early, "agent --> {'id':2,'result':{'sessionId':'n'}}"], &["n", "s"]),
        (&[new, early, failed], &["s"]),
    ];
    for (script, left) in rows {
        assert_eq!(session(&script.join("\n")), *left, "{script:#?}");
    }
}

#[test]
fn open_requests_are_limited_on_both_sides() {
    // What a peer allows if it is told nothing else.
    const OPEN_CALLS: usize = 1024;
    let mut bridge = bridge(Dialect::V2, V1_CLIENT);
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    for number in 0..3 * OPEN_CALLS {
        let ask = frame(&format!("{{'id':{number},'method':'_ask','params':{{}}}}"));
        bridge.handle_client(&ask, &mut to_agent, &mut to_client);
        bridge.handle_agent(&ask, &mut to_agent, &mut to_client);
    }
    assert_eq!((bridge.client.open_calls(), bridge.agent.open_calls()), (OPEN_CALLS, OPEN_CALLS));
    assert_eq!((bridge.client_calls.len(), bridge.agent_calls.len()), (OPEN_CALLS, OPEN_CALLS));
    for out in [to_agent, to_client] {
        let refused = String::from_utf8(out).unwrap().matches("\"code\":-32029").count();
        assert_eq!(refused, 2 * OPEN_CALLS);
    }
    // There is room again when something is answered.
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    bridge.handle_agent(&frame("{'id':1,'result':{}}"), &mut to_agent, &mut to_client);
    bridge.handle_client(&frame("{'id':1,'method':'_ask'}"), &mut to_agent, &mut to_client);
    assert!(String::from_utf8(to_agent).unwrap().contains("_ask"));
}

#[test]
fn queued_prompts_are_limited_in_bytes() {
    let mut bridge = bridge(
        Dialect::V1,
        &format!("{V2_CLIENT}\nagent --> {{'id':0,'result':{{'protocolVersion':1}}}}\n{}", super::OPEN),
    );
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    let text = "a".repeat(crate::bridge::sessions::QUEUED_BYTES * 5 / 16);
    for number in 0..6 {
        let prompt = frame(&format!(
            "{{'id':{number},'method':'session/prompt','params':{{'sessionId':'s','prompt':[{{'type':'text','text':'{text}'}}]}}}}"
        ));
        bridge.handle_client(&prompt, &mut to_agent, &mut to_client);
    }
    let refused = |out: &[u8]| String::from_utf8_lossy(out).matches("\"code\":-32029").count();
    // One runs, three wait, two are refused.
    assert_eq!((refused(&to_client), bridge.client.open_calls()), (2, 3));
    to_client.clear();
    bridge.handle_client(
        &frame("{'method':'session/cancel','params':{'sessionId':'s'}}"),
        &mut to_agent,
        &mut to_client,
    );
    assert_eq!(bridge.client.open_calls(), 0);
    let prompt = frame(&format!(
        "{{'id':7,'method':'session/prompt','params':{{'sessionId':'s','prompt':[{{'type':'text','text':'{text}'}}]}}}}"
    ));
    bridge.handle_client(&prompt, &mut to_agent, &mut to_client);
    assert_eq!((refused(&to_client), bridge.client.open_calls()), (0, 1));
}

#[test]
fn reports_that_nobody_takes_are_limited() {
    let mut bridge = bridge(Dialect::V2, &format!("{V1_CLIENT}\n{OPEN}"));
    let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
    let notice = frame(
        "{'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'notice','severity':'info','title':'n'}}}",
    );
    let ask = frame(
        "{'id':1,'method':'session/request_permission','params':{'sessionId':'s','title':'?','options':[{'optionId':'y','name':'Yes','kind':'allow_once'}]}}",
    );
    let list = frame("{'id':1,'method':'session/list','params':{}}");
    for _ in 0..2 * REPORTS {
        bridge.handle_agent(&notice, &mut to_agent, &mut to_client);
        bridge.handle_agent(&ask, &mut to_agent, &mut to_client);
        bridge.handle_client(&list, &mut to_agent, &mut to_client);
        bridge.handle_agent("not a message", &mut to_agent, &mut to_client);
    }
    assert_eq!(bridge.take_reports().len(), REPORTS);
}
