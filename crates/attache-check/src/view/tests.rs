//! What the page is given.

use serde_json::Value;

use super::*;

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
