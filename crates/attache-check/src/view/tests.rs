//! What the page is given.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fold::Room;
use super::*;
use crate::exchange::Exchange;

const RECORD: &str = "
--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'},'capabilities':{}}}
<-- {'id':0,'result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}}
--> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
<-- {'id':1,'result':{'sessionId':'s'}}
--> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}
<-- {'id':2,'result':{'messageId':'m'}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'user_message','messageId':'m','content':[{'type':'text','text':'hi'}]}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','messageId':'n','content':{'type':'text','text':'</script><img src=x onerror=alert(1)>'}}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'agent_message_chunk','messageId':'n','content':{'type':'text','text':' there'}}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'tool_call_update','toolCallId':'t','title':'Read','kind':'read','status':'completed'}}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}}}
(stderr) bye
(closed by agent)
";

fn record() -> Record {
    Record::from_transcript(RECORD).unwrap()
}

#[test]
fn the_page_has_pairs_turns_and_what_each_message_changes() {
    let data = data::data("t", &record());
    assert_eq!(data["time"].as_array().unwrap().len(), 14);
    // `session/new` and its answer.
    assert_eq!((&data["peer"][2], &data["peer"][3]), (&Value::from(4), &Value::from(3)));
    assert_eq!(data["turns"], serde_json::json!([[1, 4, 11, "end_turn", null]]));
    let changes: Vec<String> = data["views"]["1"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            r#"[4,"state","beside","","prompted",0]"#,
            r#"[6,"0","user","","hi",0]"#,
            r#"[7,"state","beside","","running",0]"#,
            r#"[8,"1","agent","","</script><img src=x onerror=alert(1)>",0]"#,
            r#"[9,"1","agent",""," there",1]"#,
            r#"[10,"2","tool","Read (read, completed)","",0]"#,
            r#"[11,"state","beside","","idle",0]"#,
            r#"[11,"state","beside","","idle: end_turn",0]"#,
        ]
    );
}

#[test]
fn text_of_others_is_never_markup() {
    let page = page("<b>name</b>", &record());
    assert_eq!(page.matches("</script>").count(), 2, "only the page's own scripts end");
    assert!(!page.contains("<img") && !page.contains("<b>"));
    assert!(
        !SCRIPT.contains("innerHTML") && !SCRIPT.contains("insertAdjacentHTML") && !SCRIPT.contains("document.write")
    );
    for mark in ["@SCRIPT", "@STYLE", "@DATA@"] {
        assert!(!page.contains(mark), "{mark}");
    }
}

#[test]
fn a_recording_is_printed_line_by_line() {
    let text = text(&record());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("--> initialize #0 {\"protocolVersion\":2"), "{text}");
    assert!(lines[3].contains("<-- answer to session/new #1 (1 ms) {\"sessionId\":\"s\"}"), "{text}");
    assert!(text.contains(" .  stderr: bye\n") && text.contains(" .  closed by agent\n"), "{text}");
}

/// A conversation of version 2 with these updates.
fn with_updates(updates: impl Iterator<Item = String>) -> Record {
    let start = RECORD.lines().take(5).map(|line| format!("{line}\n")).collect::<String>();
    let mut text = start;
    for update in updates {
        text.push_str(&format!(
            "<== {{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{update}}}}}\n"
        ));
    }
    Record::from_transcript(&text).unwrap()
}

/// Makes the update of a number.
type Update = fn(usize) -> String;

#[test]
fn a_page_grows_with_what_was_said_and_not_faster() {
    const COUNT: usize = 2000;
    let kinds: [(&str, Update); 6] = [
        ("terminals", |n| format!(r#"{{"sessionUpdate":"terminal_update","terminalId":"term{n}","command":"x"}}"#)),
        ("output", |_| {
            r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"term","data":"cGFzc2VkDQo="}"#.to_owned()
        }),
        ("plans", |n| {
            format!(
                r#"{{"sessionUpdate":"plan_update","plan":{{"type":"items","planId":"p{n}","entries":[{{"content":"a","priority":"high","status":"pending"}}]}}}}"#
            )
        }),
        ("pieces", |n| {
            format!(
                r#"{{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{{"type":"content","content":{{"type":"text","text":"piece {n}"}}}}}}"#
            )
        }),
        ("pieces and updates", |n| match n % 2 {
            0 => format!(
                r#"{{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{{"type":"content","content":{{"type":"text","text":"piece {n}"}}}}}}"#
            ),
            _ => r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}"#.to_owned(),
        }),
        ("commands", |_| {
            format!(
                r#"{{"sessionUpdate":"available_commands_update","availableCommands":[{{"name":"{}","description":"d"}}]}}"#,
                "x".repeat(50)
            )
        }),
    ];
    for (name, update) in kinds {
        let record = with_updates((0..COUNT).map(update));
        let said: usize = record.entries.iter().map(|entry| format!("{:?}", entry.event).len()).sum();
        let page = page(name, &record);
        // What is said in pieces and said anew is shown anew, 8 KiB at most.
        let most = if name == "pieces and updates" { 10 << 20 } else { 3 * said + 100_000 };
        assert!(page.len() < most, "{name}: {} bytes said, {} of page", said, page.len());
    }
}

#[test]
fn pieces_of_a_tool_call_and_new_terminals_are_added() {
    let updates = [
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Make","status":"in_progress"}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"one"}}}"#,
        r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"two"}}}"#,
        r#"{"sessionUpdate":"terminal_update","terminalId":"a"}"#,
        r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"a","data":""}"#,
        r#"{"sessionUpdate":"terminal_update","terminalId":"b"}"#,
        r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}"#,
        r#"{"sessionUpdate":"plan_removed","planId":"p"}"#,
    ];
    let data = data::data("t", &with_updates(updates.into_iter().map(str::to_owned)));
    let changes: Vec<String> = data["views"]["1"].as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        changes,
        [
            r#"[4,"0","tool","Make (other, in_progress)","",0]"#,
            r#"[5,"0","tool","Make (other, in_progress)","one",0]"#,
            r#"[6,"0","tool","","\ntwo",1]"#,
            r#"[7,"terminals","beside","","a ",0]"#,
            r#"[9,"terminals","beside","","b ",1]"#,
            r#"[10,"plan p","beside","","{\"type\":\"items\",\"planId\":\"p\",\"entries\":[]}",0]"#,
            r#"[11,"plan p","beside","","removed",0]"#,
        ]
    );
}

#[test]
fn views_have_a_limit_and_say_so() {
    let piece = |text: &str| {
        format!(
            r#"{{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{{"type":"text","text":"{text}"}}}}"#
        )
    };
    let record = with_updates((0..10).map(|_| piece(&"x".repeat(1000))));
    let (_, entries) = record.connections().next().unwrap();
    let exchange = Exchange::new(entries);
    for (mut room, expected) in [(Room::default(), 10), (Room::new(5500, 100), 5), (Room::new(1 << 20, 3), 3)] {
        let mut changes = BTreeMap::new();
        fold::fold(&exchange, &mut changes, &mut room);
        assert_eq!(changes["s"].len(), expected);
        assert_eq!(room.is_full(), expected < 10);
    }
    // A text that goes on and on is cut, too.
    let data = data::data("t", &with_updates((0..400).map(|_| piece(&"x".repeat(1000)))));
    let size = data["views"].to_string().len();
    assert!((200_000..300_000).contains(&size), "{size}");
    assert_eq!(data["viewsAreCut"], false);
}

#[test]
fn entries_of_an_array_have_their_own_text() {
    let batch =
        format!("==> [{}1]\n", "1,".repeat(500)) + &format!("==> [{}\"{}\"]\n", "1, ".repeat(500), "x".repeat(60_000));
    let record = Record::from_transcript(&batch).unwrap();
    let data = data::data("t", &record);
    let texts = data["text"].as_array().unwrap();
    assert_eq!((texts.len(), texts[0].as_str()), (1002, Some("1")));
    assert_eq!(texts[1001].as_str().map(str::len), Some(60_002));
    assert!(page("t", &record).len() < 500_000);
    assert_eq!(text(&record).lines().filter(|line| line.contains("-->")).count(), 1002);
}

#[test]
fn a_finding_stands_at_the_message_that_breaks_the_rule() {
    let record = Record::from_transcript(
        "
        --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
        <-- {'id':0,'result':{'protocolVersion':1,'agentCapabilities':{}}}
        --> {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
        <-- {'id':1,'result':{'sessionId':'s'}}
        --> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[]}}
        --> {'method':'session/cancel','params':{'sessionId':'s'}}
        (waited 2000 ms)
        <-- {'id':2,'result':{'stopReason':'end_turn'}}",
    )
    .unwrap();
    let text = text(&record);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("[cancel/says-cancelled]")).unwrap();
    let message = lines[..at].iter().rfind(|line| !line.contains("  !  ")).unwrap();
    assert!(message.contains("answer to session/prompt"), "{text}");
}
