use super::*;
use crate::Dialect;
use crate::model::ErrorObject;

/// Plays a conversation as `side` hears it. `-->` is what arrives, `<--` what goes out at once, `*` an event.
/// Single quotes stand for double ones. A call is answered with `true` when its method is `now`.
#[track_caller]
fn check(side: Side, dialect: Option<Dialect>, script: &str) {
    let mut peer: Peer<&str> = Peer::new(side);
    if let Some(dialect) = dialect {
        peer.set_dialect(dialect);
    }
    peer.set_strict(true);
    let mut out = Vec::new();
    let mut said = Vec::new();
    let mut expected = Vec::new();
    // Three requests of our own wait for an answer, with the ids 0 to 2.
    for waiter in ["zero", "one", "two"] {
        peer.request("ask", |writer| writer.raw("{}"), waiter, &mut Vec::new());
    }
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.replace('\'', "\"");
        let Some(frame) = line.strip_prefix("--> ") else {
            expected.push(line);
            continue;
        };
        let mut now = Vec::new();
        for event in peer.handle_frame(frame, &mut out) {
            match event {
                Event::Call { call, method, .. } => {
                    said.push(format!("* call {method}"));
                    if method == "now" {
                        now.push(call);
                    }
                }
                Event::Notification { method, .. } => said.push(format!("* notification {method}")),
                Event::Answer { waiter, outcome } => said.push(match outcome {
                    Ok(text) => format!("* answer {waiter} {text}"),
                    Err(error) => format!("* error {waiter} {}", error.code),
                }),
                Event::Cancel(_) => said.push("* cancel".into()),
                Event::Violation(violation) => said.push(format!("* violation {violation:?}")),
            }
        }
        for call in now {
            peer.answer(call, |writer| writer.raw("true"), &mut out);
        }
        let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
        said.extend(text.lines().map(|line| format!("<-- {}", shorten(line))));
    }
    assert_eq!(said, expected);
}

/// The answer without its boilerplate: the id and the code or the result.
fn shorten(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let one = |value: &serde_json::Value| {
        assert_eq!(value["jsonrpc"], "2.0");
        if value["error"].is_object() {
            format!("{} {}", value["id"], value["error"]["code"])
        } else {
            format!("{} {}", value["id"], value["result"])
        }
    };
    match value.as_array() {
        Some(answers) => format!("[{}]", answers.iter().map(one).collect::<Vec<_>>().join(", ")),
        None => one(&value),
    }
}

const V1: Option<Dialect> = Some(Dialect::V1);
const V2: Option<Dialect> = Some(Dialect::V2);
const DRAFT: Option<Dialect> = Some(Dialect::V2Draft);

#[test]
fn law_7_what_is_no_message_is_answered_and_nothing_else_is_lost() {
    check(
        Side::Agent,
        V1,
        "--> hello
         * violation NotJson
         <-- null -32700
         --> {'jsonrpc':'2.0','id':1,'method':'now'
         * violation NotJson
         <-- null -32700
         --> 7
         * violation NotAnObject
         <-- null -32600
         --> {'id':1,'method':'now'}
         * violation NoVersion
         <-- null -32600
         --> {'jsonrpc':'2.0','id':1,'method':'now','params':3}
         * violation BadParams
         <-- null -32600
         --> {'jsonrpc':'2.0','id':1,'method':'now','params':null}
         * call now
         <-- 1 true
         --> {'jsonrpc':'2.0','id':1,'method':'now','result':3}
         * violation Mixed
         <-- null -32600
         --> {'jsonrpc':'2.0','id':1,'id':2,'method':'now'}
         * violation Mixed
         <-- null -32600",
    );
}

#[test]
fn ids_are_echoed_exactly() {
    check(
        Side::Agent,
        V1,
        "--> {'jsonrpc':'2.0','id':'1','method':'now'}
         * call now
         <-- '1' true
         --> {'jsonrpc':'2.0','id':-9223372036854775808,'method':'now'}
         * call now
         <-- -9223372036854775808 true
         --> {'jsonrpc':'2.0','id':1.5,'method':'now'}
         * violation BadId
         <-- null -32600
         --> {'jsonrpc':'2.0','id':9223372036854775808,'method':'now'}
         * violation BadId
         <-- null -32600
         --> {'jsonrpc':'2.0','id':{},'method':'now'}
         * violation BadId
         <-- null -32600
         --> {'jsonrpc':'2.0','id':null,'method':'now'}
         * violation NullId
         * call now
         <-- null true",
    );
    check(
        Side::Agent,
        V2,
        "--> {'jsonrpc':'2.0','id':null,'method':'now'}
         * violation NullId
         <-- null -32600",
    );
}

#[test]
fn two_calls_of_one_id_are_two_calls() {
    check(
        Side::Agent,
        V1,
        "--> {'jsonrpc':'2.0','id':1,'method':'later'}
         * call later
         --> {'jsonrpc':'2.0','id':1,'method':'now'}
         * violation DuplicateId
         * call now
         <-- 1 true",
    );
}

#[test]
fn responses_find_their_request_and_are_never_answered() {
    check(
        Side::Client,
        V1,
        "--> {'jsonrpc':'2.0','id':1,'result':{'a':1}}
         * answer one {'a':1}
         --> {'jsonrpc':'2.0','id':1,'result':{}}
         * violation UnknownResponse
         --> {'jsonrpc':'2.0','id':'0','result':{}}
         * violation UnknownResponse
         --> {'jsonrpc':'2.0','id':null,'error':{'code':-32700,'message':'x'}}
         * violation ErrorWithoutId
         --> {'jsonrpc':'2.0','id':2,'error':{'code':-1,'message':'x'}}
         * error two -1
         --> {'jsonrpc':'2.0','id':0,'error':3}
         * violation MalformedResponse
         * error zero -32603
         --> {'jsonrpc':'2.0','id':0,'result':1,'error':{'code':1,'message':''}}
         * violation Mixed",
    );
}

#[test]
fn before_initialize_only_initialize_is_heard() {
    check(
        Side::Agent,
        None,
        "--> {'jsonrpc':'2.0','id':1,'method':'session/new'}
         * violation BeforeInitialize
         <-- 1 -32600
         --> {'jsonrpc':'2.0','method':'session/cancel'}
         * violation BeforeInitialize
         --> {'jsonrpc':'2.0','id':1,'method':'initialize'}
         * call initialize",
    );
}

#[test]
fn cancel_request_names_an_open_call_or_nothing() {
    check(
        Side::Agent,
        V1,
        "--> {'jsonrpc':'2.0','id':'a','method':'later'}
         * call later
         --> {'jsonrpc':'2.0','method':'$/cancel_request','params':{'requestId':'a'}}
         * cancel
         --> {'jsonrpc':'2.0','method':'$/cancel_request','params':{'requestId':'b'}}
         --> {'jsonrpc':'2.0','method':'$/cancel_request','params':{}}
         --> {'jsonrpc':'2.0','method':'$/cancel_request'}",
    );
}

#[test]
fn batches_follow_the_rules_of_the_draft() {
    check(
        Side::Agent,
        DRAFT,
        "--> []
         * violation EmptyBatch
         <-- null -32600
         --> [1,2]
         * violation NotAnObject
         * violation NotAnObject
         <-- [null -32600, null -32600]
         --> [{'jsonrpc':'2.0','method':'note'}]
         * notification note
         --> [{'jsonrpc':'2.0','id':1,'method':'now'},{'jsonrpc':'2.0','method':'note'},3,{'jsonrpc':'2.0','id':2,'method':'now'}]
         * call now
         * notification note
         * violation NotAnObject
         * call now
         <-- [null -32600, 1 true, 2 true]
         --> [{'jsonrpc':'2.0','id':0,'result':1},{'jsonrpc':'2.0','id':1,'result':2}]
         * answer zero 1
         * answer one 2
         --> [{'jsonrpc':'2.0','id':3,'method':'later'},{'jsonrpc':'2.0','method':'$/cancel_request','params':{'requestId':3}}]
         * call later
         * cancel
         --> [{'jsonrpc':'2.0'
         * violation NotJson
         <-- null -32700",
    );
    check(
        Side::Agent,
        V2,
        "--> [{'jsonrpc':'2.0','id':1,'method':'now'}]
         * violation Batch
         * call now
         <-- [1 true]",
    );
}

#[test]
fn law_7_a_huge_batch_costs_one_answer() {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    let mut out = Vec::new();
    let frame = format!("[{}1]", "1,".repeat(MAX_BATCH));
    let events: Vec<_> = peer.handle_frame(&frame, &mut out).collect();
    assert_eq!(events, [Event::Violation(Violation::HugeBatch)]);
    assert_eq!(shorten(std::str::from_utf8(&out).unwrap().trim()), "null -32600");
}

#[test]
fn batches_can_be_refused_as_a_whole() {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    peer.set_accepts_batches(false);
    let mut out = Vec::new();
    let events: Vec<_> = peer.handle_frame(r#"[{"jsonrpc":"2.0","id":1,"method":"now"}]"#, &mut out).collect();
    assert_eq!(events, [Event::Violation(Violation::Batch)]);
    assert_eq!(shorten(std::str::from_utf8(&out).unwrap().trim()), "null -32600");
}

#[test]
fn law_4_an_abandoned_request_tells_the_peer_and_ignores_the_answer() {
    let mut peer: Peer<u8> = Peer::new(Side::Client);
    let mut out = Vec::new();
    let key = peer.request("ask", |writer| writer.raw("{}"), 7, &mut out);
    out.clear();
    assert_eq!(peer.abandon(key, &mut out), Some(7));
    let sent = String::from_utf8(out).unwrap();
    assert_eq!(sent, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}}\n");
    let events: Vec<_> = peer.handle_frame(r#"{"jsonrpc":"2.0","id":0,"result":1}"#, &mut Vec::new()).collect();
    assert_eq!(events, [Event::Violation(Violation::UnknownResponse)]);
}

#[test]
fn a_call_is_answered_once() {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    let mut out = Vec::new();
    let frame = r#"{"jsonrpc":"2.0","id":1,"method":"later"}"#;
    let Some(Event::Call { call, .. }) = peer.handle_frame(frame, &mut out).next() else { panic!() };
    peer.answer(call, |writer| writer.raw("1"), &mut out);
    let length = out.len();
    peer.answer(call, |writer| writer.raw("2"), &mut out);
    peer.refuse(call, &ErrorObject::cancelled(), &mut out);
    assert_eq!(out.len(), length);
    assert_eq!(peer.owed(), 0);
}
