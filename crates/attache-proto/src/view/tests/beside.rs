//! What is beside the conversation.

use super::*;

#[test]
fn plans_are_replaced_by_id() {
    let entry = |text: &str| format!("{{'content':'{text}','priority':'high','status':'pending'}}");
    let (a, b) = (entry("a"), entry("b"));
    check(
        V1,
        &format!("plan 'entries':[{a}]\n plan 'entries':[{b}]"),
        &format!("{{'plans':[{{'type':'items','planId':'plan','entries':[{b}]}}]}}"),
    );
    check(
        V2Draft,
        &format!(
            "plan_update 'plan':{{'type':'items','id':'1','entries':[]}}
            plan_update 'plan':{{'type':'_own','id':'2'}}
            plan_update 'plan':{{'type':'items','id':'1','entries':[{a}]}}
            plan_update 'plan':{{'type':'_own','id':'2','x':1}}"
        ),
        &format!("{{'plans':[{{'type':'items','planId':'1','entries':[{a}]}},{{'type':'_own','id':'2','x':1}}]}}"),
    );
    check(
        V2,
        "plan_update 'plan':{'type':'items','planId':'1','entries':[]}
        plan_update 'plan':{'type':'markdown','planId':'2','content':'x'}
        plan_update 'plan':{'type':'file','planId':'1','uri':'file:///p'}
        plan_removed 'planId':'2'
        plan_removed 'planId':'3'",
        "{'plans':[{'type':'file','planId':'1','uri':'file:///p'}]}",
    );
}

#[test]
fn what_is_beside_the_conversation_is_kept() {
    check(
        V1,
        "current_mode_update 'currentModeId':'code'
        available_commands_update 'availableCommands':[{'name':'web','description':'Search'}]
        config_option_update 'configOptions':[{'id':'f','name':'Fast','type':'boolean','currentValue':true}]
        usage_update 'used':1,'size':10,'cost':{'amount':0.5,'currency':'USD'}
        usage_update 'used':2,'size':10
        session_info_update 'title':'T','updatedAt':'2026'
        session_info_update 'title':null
        begin
        end max_tokens",
        "{'currentModeId':'code','availableCommands':[{'type':'command','name':'web','description':'Search'}],
        'configOptions':[{'configId':'f','name':'Fast','type':'boolean','currentValue':true}],
        'usage':{'used':2,'size':10,'cost':{'amount':0.5,'currency':'USD'}},'updatedAt':'2026','stopReason':'max_tokens'}",
    );
    check(
        V2,
        "usage_update 'used':1,'size':10,'cost':{'amount':1.5,'currency':'USD'}\n usage_update 'used':2,'size':10,'cost':null",
        "{'usage':{'used':2,'size':10}}",
    );
    check(
        V2,
        "notice 'severity':'warning','title':'Slow'
        compaction_summary_chunk 'compactionId':'c','content':{'type':'text','text':'a'}
        compaction_summary_chunk 'compactionId':'c','content':{'type':'text','text':'b'}
        compaction_update 'compactionId':'c','status':'completed'
        subagent_update 'sessionId':'child','title':'Look','state':{'state':'running'}
        subagent_update 'sessionId':'child','title':null,'cwd':'/p'
        session_message 'messageId':'m','senderSessionId':'child','content':[{'type':'text','text':'fo'}]
        session_message_chunk 'messageId':'m','content':{'type':'text','text':'und'}",
        "{'timeline':[{'type':'notice','severity':'warning','title':'Slow'},
            {'type':'compaction','compactionId':'c','status':'completed','summary':[{'type':'text','text':'ab'}]},
            {'type':'session_message','messageId':'m','senderSessionId':'child','content':[{'type':'text','text':'found'}]}],
        'subagents':[{'sessionId':'child','state':{'state':'running'},'cwd':'/p'}]}",
    );
}

#[test]
fn a_state_is_what_the_agent_says() {
    let terminal = "[{'type':'terminal','terminalId':'t'}]";
    let mut script = format!("state_update 'state':'running','background':{terminal}\n");
    check(V2, &script, &format!("{{'state':'running','background':{terminal}}}"));
    script +=
        "state_update 'state':'idle','stopReason':'error','error':{'code':-32603,'message':'Oh'},'background':[]\n";
    let ended = "'stopReason':'error','error':{'code':-32603,'message':'Oh'}";
    check(V2, &script, &format!("{{'state':'idle','background':[],{ended}}}"));
    script += "state_update 'state':'idle'\n";
    check(V2, &script, &format!("{{{ended}}}"));
    let unknown = script.clone() + &format!("state_update 'state':'_napping','background':{terminal}\n");
    check(V2, &unknown, &format!("{{'state':'_napping','background':{terminal},{ended}}}"));
    assert!(run(V2, &unknown).state.is_busy());
    script += "state_update 'state':'requires_action'\n state_update 'state':'idle','stopReason':'end_turn'\n";
    check(V2, &script, "{'stopReason':'end_turn'}");
}

#[test]
fn unknown_updates_are_counted_and_the_last_are_kept() {
    check(V2, "_mood 'value':'good'", "{'unknown':{'count':1,'last':[{'sessionUpdate':'_mood','value':'good'}]}}");
    let mut view = SessionView::new();
    for number in 0..20 {
        step(&mut view, V2, &format!("_mood 'value':{number}"));
    }
    assert_eq!((view.unknown_count, view.unknown.len()), (20, UNKNOWN_LIMIT));
    assert_eq!(view.unknown[0].raw().get("value").unwrap().as_str(), "4");
}

/// A line of a script: bytes that a terminal has put out.
fn output(bytes: &[u8]) -> String {
    format!("terminal_output_chunk 'terminalId':'t','data':'{}'\n", crate::base64::encode(bytes))
}

#[test]
fn output_is_bytes_until_it_is_shown() {
    let text = "grün ✓".as_bytes();
    let mut script = String::new();
    for byte in text {
        script += &output(&[*byte]);
    }
    let view = run(V2, &script);
    assert_eq!(view.terminals["t"].text(), "grün ✓");

    let first = "terminal_update 'terminalId':'t','command':'make','cwd':'/p','output':{'data':'YQ=='},'size':{'cols':80,'rows':24}\n";
    let bad =
        "terminal_output_chunk 'terminalId':'t','data':'YQ'\n terminal_update 'terminalId':'t','output':{'data':'?'}\n";
    let script = first.to_owned()
        + &output(b"b")
        + bad
        + "terminal_update 'terminalId':'t','cwd':null,'exitStatus':{'exitCode':0}\n";
    check(
        V2,
        &script,
        "{'terminals':[{'terminalId':'t','command':'make','output':{'data':'YWI='},'exitStatus':{'exitCode':0},'size':{'cols':80,'rows':24},'undecodable':2}]}",
    );
    assert_eq!(run(V2, &(script.clone() + first)).terminals["t"].text(), "a");
    assert_eq!(run(V2, &(script + "terminal_update 'terminalId':'t','output':null")).terminals["t"].text(), "");
}

#[test]
fn output_is_cut_from_the_front() {
    let mut view = SessionView::new();
    let line = output("é".repeat(500).as_bytes());
    for _ in 0..3000 {
        step(&mut view, V2, line.trim());
    }
    let kept = &view.terminals["t"].output;
    assert_eq!(kept.bytes().len(), OUTPUT_LIMIT);
    assert_eq!(kept.omitted(), 3_000_000 - OUTPUT_LIMIT as u64);
    assert!(kept.text().chars().all(|c| c == 'é'));
    step(&mut view, V2, output(b"x").trim());
    let kept = &view.terminals["t"].output;
    assert_eq!(kept.bytes().len(), OUTPUT_LIMIT);
    assert!(kept.text().starts_with('é') && kept.text().ends_with("éx"), "half a character is not shown");
    let copy: Terminal = serde_json::from_value(serde_json::to_value(&view.terminals["t"]).unwrap()).unwrap();
    assert_eq!(copy, view.terminals["t"]);
}
