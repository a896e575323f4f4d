//! Bridges in a row, and bridges in a storm.

use super::*;

/// Two bridges in a row: a v1 client, v2 between them, a v1 agent.
#[test]
fn what_goes_through_two_versions_comes_back_as_it_was() {
    let mut bridges = (Bridge::new(Dialect::V2), Bridge::new(Dialect::V1));
    let mut heard: Vec<String> = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace('"', "'");
    for row in [
        "client {'id':0,'method':'initialize','params':{'protocolVersion':1}}",
        "agent {'id':0,'result':{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}}",
        "client {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}",
        "agent {'id':1,'result':{'sessionId':'s','modes':{'currentModeId':'a','availableModes':[{'id':'a','name':'A'}]}}}",
        "client {'id':2,'method':'session/set_mode','params':{'sessionId':'s','modeId':'a'}}",
        "agent {'id':2,'result':{}}",
        "client {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}",
        "agent {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call','toolCallId':'t','title':'T','content':[{'type':'diff','path':'/a','newText':'x\\n'}]}}}",
        "agent {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call_update','toolCallId':'t','status':'completed'}}}",
        "agent {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'plan','entries':[{'content':'c','priority':'low','status':'pending'}]}}}",
        "agent {'id':3,'result':{'stopReason':'max_tokens'}}",
    ] {
        let (who, frame) = row.split_once(' ').unwrap();
        let frame = frame.replace('\'', "\"").replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
        let (mut client, mut agent) = (Vec::new(), Vec::new());
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        match who {
            "client" => bridges.0.handle_client(&frame, &mut forth, &mut client),
            _ => bridges.1.handle_agent(&frame, &mut agent, &mut back),
        }
        // What one bridge says the other hears, until both are silent.
        while !forth.is_empty() || !back.is_empty() {
            for line in text(&std::mem::take(&mut forth)).lines() {
                bridges.1.handle_client(&line.replace('\'', "\""), &mut agent, &mut back);
            }
            for line in text(&std::mem::take(&mut back)).lines() {
                bridges.0.handle_agent(&line.replace('\'', "\""), &mut forth, &mut client);
            }
        }
        heard.extend(text(&client).lines().map(|line| format!("client {}", line.replace("'jsonrpc':'2.0',", ""))));
        heard.extend(text(&agent).lines().map(|line| format!("agent {}", line.replace("'jsonrpc':'2.0',", ""))));
    }
    let option = "{'id':'mode','name':'Mode','type':'select','currentValue':'a','options':[{'value':'a','name':'A'}],'category':'mode'}";
    let update =
        |update: &str| format!("client {{'method':'session/update','params':{{'sessionId':'s','update':{update}}}}}");
    let expected = [
        "agent {'id':0,'method':'initialize','params':{'protocolVersion':1,'clientInfo':{'name':'client','version':'0'},'clientCapabilities':{'session':{'compaction':{},'notices':{},'configOptions':{'boolean':{}}}}}}".into(),
        "client {'id':0,'result':{'protocolVersion':1,'agentInfo':{'name':'agent','version':'0'},'agentCapabilities':{'loadSession':true,'promptCapabilities':{'image':false,'audio':false,'embeddedContext':false},'mcpCapabilities':{'http':false,'sse':false},'sessionCapabilities':{'list':{},'resume':{},'close':{}}},'authMethods':[]}}".into(),
        "agent {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}".into(),
        format!("client {{'id':1,'result':{{'sessionId':'s','modes':{{'currentModeId':'a','availableModes':[{{'id':'a','name':'A'}}]}},'configOptions':[{option}]}}}}"),
        "agent {'id':2,'method':'session/set_mode','params':{'sessionId':'s','modeId':'a'}}".into(),
        update(&format!("{{'sessionUpdate':'config_option_update','configOptions':[{option}]}}")),
        update("{'sessionUpdate':'current_mode_update','currentModeId':'a'}"),
        "client {'id':2,'result':{}}".into(),
        "agent {'id':3,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}".into(),
        update("{'sessionUpdate':'tool_call','toolCallId':'t','title':'T','content':[{'type':'diff','path':'/a','newText':'x\\n','oldText':null}]}"),
        update("{'sessionUpdate':'tool_call_update','toolCallId':'t','status':'completed'}"),
        update("{'sessionUpdate':'plan','entries':[{'content':'c','priority':'low','status':'pending'}]}"),
        "client {'id':3,'result':{'stopReason':'max_tokens'}}".into(),
    ];
    assert_eq!(heard, expected);
}

/// Every frame of both sides, in every order that a simple generator makes, with holes.
#[test]
fn law_7_no_order_of_messages_breaks_the_bridge() {
    let frames: Vec<String> = concat!(include_str!("../tests.rs"), include_str!("v1_client.rs"))
        .lines()
        .map(str::trim)
        .filter_map(|line| line.split_once("--> {"))
        .filter(|(side, _)| matches!(side.trim_start_matches('"'), "client " | "agent "))
        .map(|(_, rest)| {
            format!("{{\"jsonrpc\":\"2.0\",{}", rest.trim_end_matches([',', '"', ';']).replace('\'', "\""))
        })
        .collect();
    assert!(frames.len() > 80, "{}", frames.len());
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for round in 0..300 {
        let mut bridge = Bridge::new([Dialect::V1, Dialect::V2Draft, Dialect::V2][round % 3]);
        let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
        for step in 0..60 {
            let mut frame = frames[random(frames.len())].clone();
            if step == 0 {
                frame = frames.iter().filter(|frame| frame.contains("\"initialize\"")).nth(round % 4).unwrap().clone();
            } else if step == 1 {
                let result = frames.iter().filter(|frame| frame.contains("\"result\":{\"protocolVersion\""));
                frame = result.clone().nth(random(result.count())).unwrap().clone();
            } else if random(4) == 0 {
                let at = random(frame.len());
                frame.replace_range(at..at + 1, ["", "null", "{}", "7", "\""][random(5)]);
            }
            if step == 0 || (step > 1 && random(2) == 0) {
                bridge.handle_client(&frame, &mut to_agent, &mut to_client);
            } else {
                bridge.handle_agent(&frame, &mut to_agent, &mut to_client);
            }
        }
        bridge.handle_agent_gone(&mut to_client);
        for out in [&to_agent, &to_client] {
            for line in std::str::from_utf8(out).unwrap().lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
        assert_eq!(bridge.client.open_calls(), 0, "every call is answered when the agent is gone");
    }
}
