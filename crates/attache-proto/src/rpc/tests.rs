use super::*;
use crate::Dialect;
use crate::frame::Junk;
use crate::model::error::ErrorObject;

/// Plays a conversation as `side` hears it. `-->` is what arrives, `<--` what goes out at once, `*` an event. `-l>` is the
/// beginning of something that is too long, `-u>` of something that is not UTF-8.
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
        let events: Vec<_> = match line.split_at_checked(4) {
            Some(("--> ", frame)) => peer.handle_frame(frame, &mut out).collect(),
            Some(("-l> ", start)) => peer.handle_junk(Junk::TooLong(start), &mut out).collect(),
            Some(("-u> ", start)) => peer.handle_junk(Junk::NotUtf8(start), &mut out).collect(),
            _ => {
                expected.push(line);
                continue;
            }
        };
        let mut now = Vec::new();
        for event in events {
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
                    Err(AnswerError::Refused(error)) => format!("* error {waiter} {}", error.code),
                    Err(AnswerError::Unreadable(violation)) => format!("* unreadable {waiter} {violation:?}"),
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
         <-- 1 -32600
         --> {'jsonrpc':'2.0','method':'now','params':'x'}
         * violation BadParams
         <-- null -32600
         --> {'jsonrpc':'2.0','id':'a','method':7}
         * violation NoMethod
         <-- 'a' -32600
         --> {'jsonrpc':'2.0','id':1,'method':'now','params':null}
         * call now
         <-- 1 true
         --> {'jsonrpc':'2.0','id':1,'method':'now','result':3}
         * violation Mixed
         <-- null -32600
         --> {'jsonrpc':'2.0','id':1,'id':2,'method':'now'}
         * violation DuplicateMember
         <-- null -32600
         --> {'jsonrpc':'2.0','id':1,'method':'now','method':'now'}
         * violation DuplicateMember
         <-- 1 -32600",
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
         * unreadable zero MalformedResponse
         --> {'jsonrpc':'2.0','id':0,'result':1,'error':{'code':1,'message':''}}
         * violation Mixed",
    );
}

#[test]
fn law_4_whoever_waits_for_a_response_that_cannot_be_read_is_told() {
    check(
        Side::Client,
        V1,
        "--> {'jsonrpc':'2.0','id':0,'result':{'a':
         * violation NotJson
         * unreadable zero NotJson
         -u> {'jsonrpc':'2.0','id':1,'result':{'a':'
         * violation NotUtf8
         * unreadable one NotUtf8
         -l> {'jsonrpc':'2.0','id':2,'result':{'a':'
         * violation TooLong
         * unreadable two TooLong
         -l> {'jsonrpc':'2.0','id':2,'result':{'a':'
         * violation TooLong
         --> {'jsonrpc':'2.0','id':2,'result':{'a':
         * violation NotJson",
    );
    // An id that comes last is never read. It can only be that of the one request that is open.
    check(
        Side::Client,
        V1,
        "-l> {'jsonrpc':'2.0','result':{'a':'
         * violation TooLong
         --> {'jsonrpc':'2.0','id':0,'result':1}
         * answer zero 1
         --> {'jsonrpc':'2.0','id':2,'result':1}
         * answer two 1
         -l> {'jsonrpc':'2.0','method':'now','params':{'a':'
         * violation TooLong
         <-- null -32600
         -l> {'jsonrpc':'2.0','result':{'a':'
         * violation TooLong
         * unreadable one TooLong",
    );
    let deep = format!("{{'jsonrpc':'2.0','id':1,'result':{}{}}}", "[".repeat(200), "]".repeat(200));
    check(Side::Client, V1, &format!("--> {deep}\n* violation NotJson\n* unreadable one NotJson"));
    check(
        Side::Client,
        DRAFT,
        "--> [{'jsonrpc':'2.0','id':0,'result':1},{'jsonrpc':'2.0','id':2,'error':
         * violation NotJson
         * unreadable zero NotJson
         * unreadable two NotJson
         -l> [{'jsonrpc':'2.0','id':1,'result':1},{'jsonrpc':'2.0','id':7,'method':
         * violation TooLong
         * unreadable one TooLong
         <-- null -32600",
    );
}

#[test]
fn law_7_a_request_that_is_too_long_is_refused_under_its_own_id() {
    check(
        Side::Agent,
        V1,
        "-l> {'jsonrpc':'2.0','id':'a','method':'now','params':{'a':'
         * violation TooLong
         <-- 'a' -32600
         -l> {'method':'now','params':{'id':5},'id':1,'x':'
         * violation TooLong
         <-- 1 -32600
         -l> {'jsonrpc':'2.0','id':1,'params':{'a':'
         * violation TooLong
         <-- 1 -32600
         -l> {'jsonrpc':'2.0','id':7,'x':
         * violation TooLong
         <-- 7 -32600
         -l> {'jsonrpc':'2.0','id':1,'x':
         * violation TooLong
         * unreadable one TooLong
         -l> {'jsonrpc':'2.0','method':'now','id':2
         * violation TooLong
         <-- null -32600
         -l> {'jsonrpc':'2.0','method':'now','params':{'id':3,
         * violation TooLong
         <-- null -32600
         -l> xxx
         * violation TooLong
         <-- null -32600
         -u> {'jsonrpc':'2.0','id':'a','method':'now','params':{'a':'
         * violation NotUtf8
         <-- null -32700
         -u> xxx
         * violation NotUtf8
         <-- null -32700",
    );
}

#[test]
fn law_7_an_id_that_is_too_long_is_not_kept() {
    let id = "x".repeat(MAX_ID);
    let mut peer: Peer<()> = Peer::new(Side::Client);
    let mut out = Vec::new();
    let mut held = Vec::new();
    for id in [id.clone(), id + "x"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"later"}}"#);
        peer.handle_frame(&frame, &mut out);
        assert_eq!(peer.open_calls(), 1);
        held.push(peer.held_bytes());
    }
    assert_eq!(held[0], held[1]);
    assert!((MAX_ID..MAX_ID + 256).contains(&held[0]), "{held:?}");
    assert_eq!(shorten(std::str::from_utf8(&out).unwrap().trim()), "null -32600");
}

#[test]
fn law_3_open_calls_and_unfinished_batches_are_counted_and_limited() {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    peer.set_max_open_calls(2);
    let mut out = Vec::new();
    let entry = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"later"}}"#);
    let frame = format!("[{},{},{}]", entry(1), entry(2), entry(3));
    let mut calls = Vec::new();
    let mut violations = Vec::new();
    for event in peer.handle_frame(&frame, &mut out) {
        match event {
            Event::Call { call, .. } => calls.push(call),
            Event::Violation(violation) => violations.push(violation),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(violations, [Violation::Batch, Violation::TooManyRequests]);
    let refusal = peer.held_bytes();
    assert!(refusal > 0 && out.is_empty());
    peer.answer(calls[0], |writer| writer.raw("true"), &mut out);
    assert!(peer.held_bytes() > 0 && out.is_empty());
    peer.answer(calls[1], |writer| writer.raw("true"), &mut out);
    assert_eq!((peer.held_bytes(), peer.open_calls()), (0, 0));
    assert_eq!(shorten(std::str::from_utf8(&out).unwrap().trim()), "[3 -32029, 1 true, 2 true]");
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
    let response = r#"{"jsonrpc":"2.0","id":0,"result":1},"#;
    let frame = format!("[{response}{}1]", "1,".repeat(MAX_BATCH));
    peer.request("ask", |writer| writer.raw("{}"), (), &mut Vec::new());
    let events: Vec<_> = peer.handle_frame(&frame, &mut out).collect();
    let outcome = Err(AnswerError::Unreadable(Violation::HugeBatch));
    assert_eq!(events, [Event::Violation(Violation::HugeBatch), Event::Answer { waiter: (), outcome }]);
    assert_eq!(shorten(std::str::from_utf8(&out).unwrap().trim()), "null -32600");
}

#[test]
fn batches_can_be_refused_as_a_whole() {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    peer.set_accepts_batches(false);
    let mut out = Vec::new();
    peer.request("ask", |writer| writer.raw("{}"), (), &mut Vec::new());
    let frame = r#"[{"jsonrpc":"2.0","id":1,"method":"now"},{"jsonrpc":"2.0","id":0,"result":1}]"#;
    let events: Vec<_> = peer.handle_frame(frame, &mut out).collect();
    let outcome = Err(AnswerError::Unreadable(Violation::Batch));
    assert_eq!(events, [Event::Violation(Violation::Batch), Event::Answer { waiter: (), outcome }]);
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
    assert_eq!(peer.open_calls(), 0);
}
