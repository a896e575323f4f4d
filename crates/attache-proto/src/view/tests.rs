//! Scripts of updates in, pictures out.

use serde_json::Value;

use super::*;
use crate::Dialect::{self, *};
use crate::codec::Decode;
use crate::json::Reader;

fn read<T: Decode>(dialect: Dialect, json: &str) -> T {
    let json = json.replace('\'', "\"");
    Reader::new(&json, dialect).decode().unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// Takes in one line of a script: an update, or what a client does beside updates.
fn step(view: &mut SessionView, dialect: Dialect, line: &str) {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("prompt", text) => _ = view.user_prompt(&[text.into()]),
        ("begin", _) => view.begin_turn(),
        ("end", reason) => view.end_turn(&reason.into()),
        ("cancel", _) => view.cancel_requested(),
        ("permission", request) => _ = view.apply_permission(&read(dialect, request)),
        (kind, fields) => {
            let update = format!("{{'sessionUpdate':'{kind}',{fields}}}").replace(",}", "}");
            _ = view.apply(&read(dialect, &update));
        }
    }
}

#[track_caller]
fn run(dialect: Dialect, script: &str) -> SessionView {
    let mut view = SessionView::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        step(&mut view, dialect, line);
    }
    view
}

fn json(text: &str) -> Value {
    let text = text.replace('\'', "\"");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs a script and compares the snapshot: keys that are not expected are as in a new view.
#[track_caller]
fn check(dialect: Dialect, script: &str, expected: &str) {
    let view = run(dialect, script);
    assert_eq!(view.snapshot(), run(dialect, script).snapshot(), "the same script gives the same picture");
    check_restored(&view);
    let mut whole = serde_json::to_value(SessionView::new()).unwrap();
    whole.as_object_mut().unwrap().extend(json(expected).as_object().unwrap().clone());
    let found = serde_json::to_value(&view).unwrap();
    assert!(found == whole, "found\n{found:#}\nexpected\n{whole:#}");
}

/// A view that is read from its snapshot shows the same.
#[track_caller]
fn check_restored(view: &SessionView) {
    let restored = SessionView::from_snapshot(&view.snapshot()).unwrap();
    assert_eq!(restored.snapshot().as_str(), view.snapshot().as_str());
    let again: SessionView = serde_json::from_str(&serde_json::to_string(&restored).unwrap()).unwrap();
    assert_eq!(again, restored);
}

/// The messages as lines: the role, the id and the text of each block.
#[track_caller]
fn check_messages(dialect: Dialect, script: &str, expected: &[&str]) {
    let view = run(dialect, script);
    let lines: Vec<_> = view.timeline().iter().map(entry_line).collect();
    assert_eq!(lines, expected, "{script}");
    check_restored(&view);
}

fn entry_line(entry: &Entry) -> String {
    match entry {
        Entry::Message(message) => {
            let id = message.id.as_ref().map_or("-", |id| id.as_str());
            let blocks: Vec<_> = message.content.iter().map(|block| block.as_text().unwrap_or(block.tag())).collect();
            format!("{} {id} {}", message.role.as_str(), blocks.join("|"))
        }
        Entry::ToolCall(call) => format!("tool {} {}", call.id, call.status),
        Entry::Notice(notice) => format!("notice {}", notice.title),
        Entry::Compaction(compaction) => format!("compaction {} {}", compaction.id, compaction.status),
        Entry::PeerMessage(message) => format!("peer {}", message.id),
    }
}

/// A line of a script: a chunk of text.
fn chunk(kind: &str, id: &str, text: &str) -> String {
    let id = if id.is_empty() { String::new() } else { format!("'messageId':'{id}',") };
    format!("{kind} {id}'content':{{'type':'text','text':'{text}'}}\n")
}

fn agent(id: &str, text: &str) -> String {
    chunk("agent_message_chunk", id, text)
}

fn user(id: &str, text: &str) -> String {
    chunk("user_message_chunk", id, text)
}

mod beside;

#[test]
fn an_upsert_replaces_what_chunks_have_added() {
    let whole = |text: &str| format!("agent_message 'messageId':'m','content':[{{'type':'text','text':'{text}'}}]\n");
    for dialect in [V2Draft, V2] {
        let mut script = whole("A") + &agent("m", "B");
        check_messages(dialect, &script, &["agent m AB"]);
        script += &whole("C");
        check_messages(dialect, &script, &["agent m C"]);
        script += &agent("m", "D");
        check_messages(dialect, &script, &["agent m CD"]);
        script += "agent_message 'messageId':'m','_meta':{'a':1}\n";
        check_messages(dialect, &script, &["agent m CD"]);
        script += "agent_message 'messageId':'m','content':null\n";
        check_messages(dialect, &script, &["agent m "]);
        script += &agent("m", "E");
        check_messages(dialect, &script, &["agent m E"]);
        script += "agent_message 'messageId':'m','content':[]\n";
        check_messages(dialect, &script, &["agent m "]);
    }
}

#[test]
fn chunks_with_ids_find_their_message() {
    let thought = chunk("agent_thought_chunk", "1", "hm");
    let script = agent("1", "a") + &agent("2", "x") + &thought + &agent("1", "b") + &user("1", "u") + &agent("2", "y");
    for dialect in [V1, V2Draft, V2] {
        check_messages(dialect, &script, &["agent 1 ab", "agent 2 xy", "thought 1 hm", "user 1 u"]);
    }
}

#[test]
fn chunks_without_ids_continue_the_last_entry_only() {
    let tool = "tool_call 'toolCallId':'t','title':'Read'\n";
    let rows: &[(String, &[&str])] = &[
        (agent("", "a") + &agent("", "b"), &["agent - ab"]),
        (agent("", "a") + tool + &agent("", "b"), &["agent - a", "tool t pending", "agent - b"]),
        (
            agent("", "a") + tool + tool + &agent("", "b") + &agent("", "c"),
            &["agent - a", "tool t pending", "agent - bc"],
        ),
        (
            agent("", "a") + &chunk("agent_thought_chunk", "", "b") + &agent("", "c"),
            &["agent - a", "thought - b", "agent - c"],
        ),
        (agent("", "a") + "end end_turn\n" + &agent("", "b"), &["agent - a", "agent - b"]),
        (agent("", "a") + "begin\n" + &agent("", "b"), &["agent - a", "agent - b"]),
        (
            agent("", "a")
                + "agent_message_chunk 'content':{'type':'image','data':'','mimeType':'i/p'}\n"
                + &agent("", "b"),
            &["agent - a|image|b"],
        ),
        (
            agent("", "a") + "agent_message_chunk 'content':{'type':'text','text':'b','annotations':{'priority':1}}\n",
            &["agent - a|b"],
        ),
    ];
    for (script, expected) in rows {
        check_messages(V1, script, expected);
        // Since v2 an id is missing, but what is said is shown all the same.
        check_messages(V2Draft, script, expected);
        check_messages(V2, script, expected);
    }
    // Other work, another message; a state that is repeated changes nothing.
    let script = "state_update 'state':'running'\n".to_owned()
        + &agent("", "a")
        + "state_update 'state':'running','background':[]\n"
        + &agent("", "b")
        + "state_update 'state':'idle','stopReason':'end_turn'\n state_update 'state':'running'\n"
        + &agent("", "c");
    check_messages(V2, &script, &["agent - ab", "agent - c"]);
}

#[test]
fn a_prompt_is_not_shown_twice() {
    let whole = |id: &str, text: &str| {
        format!("user_message 'messageId':'{id}','content':[{{'type':'text','text':'{text}'}}]\n")
    };
    let rows: &[(Dialect, String, &[&str])] = &[
        // No echo.
        (V1, "prompt hi\n begin\n".to_owned() + &agent("", "x"), &["user - hi", "agent - x"]),
        // An echo, whole or in pieces.
        (V1, "prompt hi\n begin\n".to_owned() + &user("", "hi") + &agent("", "x"), &["user - hi", "agent - x"]),
        (V1, "prompt hi\n begin\n".to_owned() + &user("", "h") + &user("", "i"), &["user - hi"]),
        (V1, "prompt hi\n begin\n".to_owned() + &user("1", "h") + &user("1", "i"), &["user 1 hi"]),
        // Something else that is told as the user's.
        (V1, "prompt /cost\n begin\n".to_owned() + &user("", "12 tokens"), &["user - /cost", "user - 12 tokens"]),
        // Too late for an echo.
        (V1, "prompt hi\n".to_owned() + &agent("", "x") + &user("", "hi"), &["user - hi", "agent - x", "user - hi"]),
        (V1, "prompt hi\n end end_turn\n".to_owned() + &user("", "hi"), &["user - hi", "user - hi"]),
        (V1, "prompt a\n prompt b\n".to_owned(), &["user - a", "user - b"]),
        // The agent's word for it counts.
        (V2, "prompt hi\n".to_owned() + &whole("1", "hi"), &["user 1 hi"]),
        (V2, "prompt hi\n".to_owned() + &whole("1", "hi!") + &whole("2", "other"), &["user 1 hi!", "user 2 other"]),
        (V2, "prompt hi\n".to_owned() + &agent("1", "x") + &whole("1", "hi"), &["user 1 hi", "agent 1 x"]),
        (V2, "prompt a\n prompt b\n".to_owned() + &whole("2", "b") + &whole("1", "a"), &["user 1 a", "user 2 b"]),
        (V2, "prompt a\n".to_owned() + &user("1", "a") + &user("1", "b"), &["user 1 ab"]),
        (V2, "prompt a\n user_message 'messageId':'1'\n".to_owned(), &["user 1 a"]),
    ];
    for (dialect, script, expected) in rows {
        check_messages(*dialect, script, expected);
    }
}

#[test]
fn null_keeps_in_v1_and_clears_since() {
    let script = "
        tool_call_update 'toolCallId':'t','title':'Edit','name':'edit','kind':'edit','status':'in_progress','content':[{'type':'content','content':{'type':'text','text':'x'}}],'locations':[{'path':'/a','line':3}],'rawInput':{'a':1},'rawOutput':'o'
        tool_call_update 'toolCallId':'t','title':null,'name':null,'kind':null,'status':null,'content':null,'locations':null,'rawInput':null,'rawOutput':null
    ";
    let full = "{'timeline':[{'type':'tool_call','toolCallId':'t','title':'Edit','name':'edit','kind':'edit','status':'in_progress',\
        'content':[{'type':'content','content':{'type':'text','text':'x'}}],'locations':[{'path':'/a','line':3}],\
        'rawInput':{'a':1},'rawOutput':'o'}]}";
    let empty = "{'timeline':[{'type':'tool_call','toolCallId':'t','title':'','kind':'other','status':'pending','content':[],'locations':[]}]}";
    check(V1, script, full);
    check(V2Draft, script, empty);
    check(V2, script, empty);
}

#[test]
fn a_tool_call_grows_from_whatever_comes_first() {
    let text = |text: &str| format!("{{'type':'content','content':{{'type':'text','text':'{text}'}}}}");
    let chunk = |chunk: &str| format!("tool_call_content_chunk 'toolCallId':'t','content':{}\n", text(chunk));
    let call = |content: &str| {
        format!(
            "{{'timeline':[{{'type':'tool_call','toolCallId':'t','title':'','kind':'other','status':'pending',\
            'content':[{content}],'locations':[]}}]}}"
        )
    };
    let mut script = chunk("a") + &chunk("b");
    check(V2, &script, &call(&(text("a") + "," + &text("b"))));
    script += &format!("tool_call_update 'toolCallId':'t','content':[{}]\n", text("c"));
    check(V2, &script, &call(&text("c")));
    script += &chunk("d");
    check(V2, &script, &call(&(text("c") + "," + &text("d"))));
}

#[test]
fn meta_merges_by_key() {
    let rows = [
        ("{'a':1,'b':{'x':1}}", "{'b':{'y':2},'c':3}", "{'a':1,'b':{'y':2},'c':3}"),
        ("{'a':1,'b':2}", "{'a':null}", "{'b':2}"),
        ("{'a':1}", "{'a':null}", ""),
        ("{'a':1}", "{}", "{'a':1}"),
        ("{}", "{'a':null,'b':1}", "{'b':1}"),
        ("{'a':1,'a':2}", "{'b':1,'b':null}", "{'a':1,'b':1}"),
        ("{'a':1,'b':2,'c':3}", "{'b':'\\u0041'}", "{'a':1,'b':'\\u0041','c':3}"),
    ];
    for (stored, patch, expected) in rows {
        let merged = read::<Meta>(V2, stored).merge(&read(V2, patch));
        let merged = merged.map_or(String::new(), |meta| meta.as_raw().as_str().replace('"', "'"));
        assert_eq!(merged, expected, "{stored} {patch}");
    }
    check(
        V2,
        "
        session_info_update '_meta':{'a':1,'b':null}
        session_info_update 'title':'T','_meta':{'c':2}
        agent_message 'messageId':'m','_meta':{'a':1}
        agent_message 'messageId':'m','_meta':null
        agent_message 'messageId':'n','_meta':{'a':1}
        agent_message 'messageId':'n','content':[],'_meta':{'a':null,'b':[]}
        ",
        "{'title':'T','_meta':{'a':1,'c':2},'timeline':[
            {'type':'message','role':'agent','messageId':'m','content':[]},
            {'type':'message','role':'agent','messageId':'n','content':[],'_meta':{'b':[]}}]}",
    );
}

#[test]
fn cancelling_marks_what_is_not_done_until_the_agent_tells() {
    let script = "
        tool_call_update 'toolCallId':'done','status':'completed'
        tool_call_update 'toolCallId':'runs','status':'in_progress'
        tool_call_update 'toolCallId':'waits'
        tool_call_update 'toolCallId':'beside','status':'in_progress'
        tool_call_update 'toolCallId':'odd','status':'_odd'
        state_update 'state':'running','background':[{'type':'tool_call','toolCallId':'beside'}]
        cancel
    ";
    let statuses = |script: &str| -> Vec<String> {
        let view = run(V2, script);
        view.tool_calls()
            .map(|call| format!("{}{}", call.status, if call.presumed_cancelled { "?" } else { "" }))
            .collect()
    };
    assert_eq!(statuses(script), ["completed", "cancelled?", "cancelled?", "in_progress", "_odd"]);
    let late = "
        tool_call_update 'toolCallId':'runs','title':'Run'
        tool_call_update 'toolCallId':'waits','status':'completed'
    ";
    let script = script.to_owned() + late;
    assert_eq!(statuses(&script), ["completed", "cancelled?", "completed", "in_progress", "_odd"]);
    let script = script + "tool_call_update 'toolCallId':'runs','status':'cancelled'";
    assert_eq!(statuses(&script), ["completed", "cancelled", "completed", "in_progress", "_odd"]);
}

#[test]
fn a_permission_request_tells_of_its_tool_call() {
    let call = "{'timeline':[{'type':'tool_call','toolCallId':'t','title':'Run','kind':'execute','status':'pending','content':[],'locations':[]}]}";
    let update = "'toolCall':{'toolCallId':'t','title':'Run','kind':'execute'}";
    check(V1, &format!("permission {{'sessionId':'s','options':[],{update}}}"), call);
    let subject = format!("'title':'May I?','subject':{{'type':'tool_call',{update}}}");
    check(V2, &format!("permission {{'sessionId':'s','options':[],{subject}}}"), call);
    check(
        V2,
        "permission {'sessionId':'s','options':[],'title':'May I?','subject':{'type':'command','command':'ls','cwd':'/'}}",
        "{}",
    );
}

#[test]
fn upserts_may_be_repeated() {
    let script = "
        user_message 'messageId':'1','content':[{'type':'text','text':'hi'}],'_meta':{'a':1}
        agent_thought 'messageId':'1','content':[{'type':'text','text':'hm'}]
        agent_message 'messageId':'1','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]
        tool_call_update 'toolCallId':'t','title':'Edit','status':'completed','_meta':{'x':null,'y':1},'content':[{'type':'diff','path':'/a','oldText':null,'newText':'x'},{'type':'terminal','terminalId':'t'}]
        plan_update 'plan':{'type':'items','planId':'p','entries':[]}
        terminal_update 'terminalId':'t','output':{'data':'YQ=='},'exitStatus':{'exitCode':1}
        compaction_update 'compactionId':'c','status':'completed','summary':[]
        available_commands_update 'availableCommands':[]
        usage_update 'used':1,'size':2
        session_info_update 'title':'T'
        state_update 'state':'idle','stopReason':'end_turn'
    ";
    let once = run(V2, script);
    let twice = run(V2, &(script.to_owned() + script));
    assert_eq!(once.snapshot().as_str(), twice.snapshot().as_str());
    assert_eq!(once, twice);
}

#[test]
fn the_whole_picture() {
    let script = "
        prompt fix it
        user_message 'messageId':'u1','content':[{'type':'text','text':'fix it'}]
        state_update 'state':'running'
        agent_message_chunk 'messageId':'a1','content':{'type':'text','text':'On '}
        tool_call_update 'toolCallId':'t1','title':'Edit','kind':'edit','status':'in_progress'
        agent_message_chunk 'messageId':'a1','content':{'type':'text','text':'it.'}
        tool_call_update 'toolCallId':'t1','status':'completed','content':[{'type':'diff','path':'/a','oldText':'x\\n','newText':'y\\n'}]
        state_update 'state':'idle','stopReason':'end_turn'
    ";
    let expected = "{'timeline':[\
        {'type':'message','role':'user','messageId':'u1','content':[{'type':'text','text':'fix it'}]},\
        {'type':'message','role':'agent','messageId':'a1','content':[{'type':'text','text':'On it.'}]},\
        {'type':'tool_call','toolCallId':'t1','title':'Edit','kind':'edit','status':'completed',\
        'content':[{'type':'diff','changes':[{'operation':'modify','path':'/a','fileType':'text'}],\
        'patch':{'format':'git_patch','text':'diff --git /a /a\\n--- /a\\n+++ /a\\n@@ -1 +1 @@\\n-x\\n+y\\n','_meta':{'attache.wholeFile':true}}}],'locations':[]}],\
        'plans':[],'terminals':[],'subagents':[],'availableCommands':[],'configOptions':[],'availableModes':[],\
        'state':'idle','stopReason':'end_turn'}";
    let view = run(V2, script);
    assert_eq!(view.snapshot().as_str().replace('"', "'"), expected);
    assert_eq!(view.message(MessageRole::Agent, &"a1".into()).unwrap().text(), "On it.");
    assert_eq!(view.tool_call(&"t1".into()).unwrap().title, "Edit");
    assert_eq!(view.message(MessageRole::User, &"a1".into()), None);
}

#[test]
fn apply_tells_what_changed() {
    let mut view = SessionView::new();
    let mut apply = |update: &str| view.apply(&read(V2, update));
    assert_eq!(apply("{'sessionUpdate':'agent_message','messageId':'a'}"), Some(0));
    assert_eq!(apply("{'sessionUpdate':'tool_call_update','toolCallId':'t'}"), Some(1));
    assert_eq!(apply("{'sessionUpdate':'agent_message','messageId':'a','content':[]}"), Some(0));
    assert_eq!(apply("{'sessionUpdate':'usage_update','used':1,'size':2}"), None);
}

#[test]
fn a_restored_view_goes_on_like_the_first() {
    let mut view = run(
        V2,
        &("user_message 'messageId':'1','content':[{'type':'text','text':'hi'}],'_meta':{'a':1}\n".to_owned()
            + &agent("1", "a")
            + "tool_call_update 'toolCallId':'t','title':'Edit','content':[{'type':'terminal','terminalId':'x'}]
            terminal_update 'terminalId':'x','command':'make'
            compaction_update 'compactionId':'c','status':'in_progress'
            session_message 'messageId':'1','senderSessionId':'s'
            subagent_update 'sessionId':'s','title':'Look'
            plan_update 'plan':{'type':'items','planId':'p','entries':[]}
            notice 'severity':'info','title':'n'
            _mood 'value':'good'
            cancel"),
    );
    let mut restored = SessionView::from_snapshot(&view.snapshot()).unwrap();
    let more = agent("1", "b")
        + "user_message 'messageId':'1','_meta':{'b':2}
        tool_call_update 'toolCallId':'t','status':'completed'
        terminal_output_chunk 'terminalId':'x','data':'YQ=='
        compaction_summary_chunk 'compactionId':'c','content':{'type':'text','text':'s'}
        session_message_chunk 'messageId':'1','content':{'type':'text','text':'m'}
        subagent_update 'sessionId':'s','cwd':'/p'
        plan_removed 'planId':'p'
        _mood 'value':'bad'";
    for line in more.lines().map(str::trim) {
        step(&mut view, V2, line);
        step(&mut restored, V2, line);
        assert_eq!(restored.snapshot().as_str(), view.snapshot().as_str(), "{line}");
    }
    assert!(SessionView::from_snapshot(&RawJson::new("[]").unwrap()).is_err());
    let odd = "{'timeline':[{'type':'_dance'},7,{'type':'message','role':'agent'}],'title':7,'state':'idle'}";
    let odd = SessionView::from_snapshot(&RawJson::new(&odd.replace('\'', "\"")).unwrap()).unwrap();
    assert_eq!((odd.timeline().len(), odd.title), (1, None));
}

#[test]
fn a_full_view_forgets_the_oldest_entries() {
    let mut view = SessionView::with_limit(100_000);
    let text = "x".repeat(1000);
    for number in 0..300 {
        let id = number.to_string();
        let shown =
            format!("tool_call_update 'toolCallId':'{id}','content':[{{'type':'terminal','terminalId':'{id}'}}]");
        for line in [
            format!("terminal_update 'terminalId':'{id}','command':'{text}','exitStatus':{{'exitCode':0}}"),
            shown,
            agent(&id, &text).trim().to_owned(),
        ] {
            step(&mut view, V2, &line);
        }
        let place = view.apply(&read(V2, &format!("{{'sessionUpdate':'agent_message','messageId':'{id}'}}"))).unwrap();
        assert_eq!(place, 2 * number + 1);
        let Some(Entry::Message(message)) = view.entry(place) else { panic!("{place}") };
        assert_eq!(message.text(), text);
        assert!(view.snapshot().as_str().len() <= 100_000, "{number}");
    }
    assert!(view.timeline().len() > 40);
    assert_eq!(view.first_place() + view.timeline().len(), 600);
    assert_eq!(view.entry(0), None);
    assert_eq!(view.tool_call(&"0".into()), None);
    assert!(view.tool_call(&"299".into()).is_some() && !view.terminals.contains_key("0"));
    // What is shown is there.
    let shown = view.tool_calls().filter(|call| view.terminals.contains_key(call.id.as_str())).count();
    assert_eq!(view.tool_calls().count(), shown);
    assert_eq!(view.omitted as usize, view.first_place() + 300 - view.terminals.len());
    check_restored(&view);
    // One thing that is too long does not stay either.
    let place = view.apply(&read(
        V2,
        &format!(
            "{{'sessionUpdate':'agent_message','messageId':'a','content':[{{'type':'text','text':'{}'}}]}}",
            "x".repeat(200_000)
        ),
    ));
    assert_eq!((view.timeline(), view.entry(place.unwrap())), (&[][..], None));
    step(&mut view, V2, agent("b", "on we go").trim());
    check_restored(&view);
    assert_eq!(view.timeline().len(), 1);
}
