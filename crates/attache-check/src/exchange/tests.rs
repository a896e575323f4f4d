//! What an exchange knows of a transcript.

use attache_proto::Dialect;

use super::*;
use crate::record::Record;

const V2: &str = "
--> {'id':0,'method':'initialize','params':{'protocolVersion':2,'info':{'name':'c','version':'1'},'capabilities':{'fs':{}}}}
<-- {'id':0,'result':{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{'fork':{}}}}}
--> {'id':1,'method':'session/new','params':{'cwd':'/p'}}
<-- {'id':1,'result':{'sessionId':'s'}}
--> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[{'type':'text','text':'hi'}]}}
<-- {'id':2,'result':{'messageId':'m'}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'running'}}}
--> {'method':'session/cancel','params':{'sessionId':'s'}}
<-- {'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':'state_update','state':'idle','stopReason':'cancelled'}}}
(waited 2000 ms)
";

#[test]
fn a_turn_of_version_2_ends_with_its_state() {
    let record = Record::from_transcript(V2).unwrap();
    let exchange = Exchange::new(&record.entries);
    assert_eq!(exchange.dialect, Dialect::V2);
    assert!(exchange.offers(Side::Agent, "session.fork") && !exchange.offers(Side::Agent, "session.list"));
    let session = &exchange.sessions["s"];
    assert_eq!((session.updates.len(), session.cancels.len()), (2, 1));
    let turn = &session.turns[0];
    assert_eq!((turn.begins, turn.ends, turn.cancelled), (4, Some(8), Some(7)));
    assert_eq!(turn.stop.as_deref(), Some("cancelled"));
    assert!(exchange.had_time(Side::Agent, 8) && exchange.had_time(Side::Client, 0));
    assert_eq!(exchange.agreed_at(), Some(1));
}

#[test]
fn a_turn_of_version_1_ends_with_its_answer() {
    let record = Record::from_transcript(
        "
        --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
        <-- {'id':0,'result':{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}}
        --> {'id':1,'method':'session/new','params':{'cwd':'/p','mcpServers':[]}}
        <-- {'id':1,'result':{'sessionId':'s'}}
        --> {'id':2,'method':'session/prompt','params':{'sessionId':'s','prompt':[]}}
        <-- {'id':'a','method':'session/request_permission','params':{'sessionId':'s'}}
        --> {'id':'a','result':{'outcome':{'outcome':'cancelled'}}}
        <-- {'id':2,'result':{'stopReason':'end_turn'}}
        --> {'id':3,'method':'session/close','params':{'sessionId':'s'}}
        <-- {'id':3,'result':{}}
        <== oops",
    )
    .unwrap();
    let exchange = Exchange::new(&record.entries);
    assert_eq!(exchange.dialect, Dialect::V1);
    assert!(exchange.offers(Side::Agent, "loadSession"));
    let session = &exchange.sessions["s"];
    assert_eq!((session.turns[0].ends, session.closed_at), (Some(7), Some(9)));
    let call = exchange.calls_of(Side::Agent).next().unwrap();
    assert_eq!((call.to(), call.answered_at()), (Side::Client, Some(6)));
    assert!(matches!(exchange.messages[10].body, Body::NotJson));
    assert!(!exchange.had_time(Side::Agent, 8));
}

const MISHAPS: &str = "
--> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
<-- {'id':0,'result':{'protocolVersion':1}}
==> nonsense
==> 7
--> {'id':1.5,'method':'session/list'}
<-- {'id':null,'error':{'code':-32600,'message':'Invalid request'}}
<-- {'id':null,'error':{'code':-32700,'message':'Parse error'}}
<-- {'id':1.5,'result':{'sessions':[]}}
--> {'method':'_hello'}
<-- {'id':null,'error':{'code':-32601,'message':'Method not found'}}
--> {'id':'x','result':{}}
--> {'id':4,'method':'session/list'}
<== {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"sessions
(closed by client)
(waited 2000 ms)
";

#[test]
fn an_error_without_an_id_is_given_to_what_calls_for_it() {
    let record = Record::from_transcript(MISHAPS).unwrap();
    let exchange = Exchange::new(&record.entries);
    let found: Vec<_> = exchange
        .mishaps
        .iter()
        .map(|mishap| (mishap.at, mishap.what.code(), mishap.answer.as_ref().map(|answer| answer.at)))
        .collect();
    let response = |at| (at, None, None);
    let expected = [
        (2, Some(-32700), Some(6)),
        (3, Some(-32600), Some(5)),
        (4, Some(-32600), Some(7)),
        response(9),
        response(10),
        response(12),
    ];
    assert_eq!(found, expected);
    let strays: Vec<_> = exchange.strays.iter().map(|stray| (stray.at, stray.to)).collect();
    assert_eq!(strays, [(9, Some(8)), (10, None)]);
    let call = exchange.calls.last().unwrap();
    assert_eq!((call.botched, call.answers.len()), (Some(12), 0));
    assert!(!exchange.is_ignored(call) && !exchange.had_time(Side::Agent, 11), "the client has gone");
}

#[test]
fn an_array_is_refused_or_served() {
    let refused = "
        --> [{'id':1,'method':'session/list'},7]
        ==> 7
        <-- {'id':null,'error':{'code':-32600,'message':'Invalid request'}}
        <-- {'id':null,'error':{'code':-32600,'message':'Invalid request'}}";
    let record = Record::from_transcript(refused).unwrap();
    let exchange = Exchange::new(&record.entries);
    assert_eq!(exchange.batches[0].refusal.as_ref().map(|answer| answer.at), Some(3));
    assert_eq!(exchange.mishaps[1].answer.as_ref().map(|answer| answer.at), Some(4));
    assert!(exchange.batch_of(1).is_some() && exchange.batch_of(2).is_none());

    let served = "
        --> [{'id':1,'method':'session/list'}]
        ==> 7
        <-- {'id':null,'error':{'code':-32600,'message':'Invalid request'}}
        <-- [{'id':1,'result':{'sessions':[]}}]";
    let record = Record::from_transcript(served).unwrap();
    let exchange = Exchange::new(&record.entries);
    assert!(exchange.batches[0].refusal.is_none());
    assert_eq!(exchange.mishaps[0].answer.as_ref().map(|answer| answer.at), Some(2));
}

#[test]
fn a_side_that_ends_by_itself_has_no_pulse() {
    let record = Record::from_transcript(
        "
        ==> nonsense
        --> {'id':1,'method':'session/list'}
        <-- {'id':1,'result':{'sessions':[]}}
        ==> nonsense
        (exited 1)",
    )
    .unwrap();
    let exchange = Exchange::new(&record.entries);
    let pulse = exchange.pulse(Side::Agent);
    assert_eq!((pulse.beats_after(0), pulse.beats_after(3)), (Some(true), Some(false)));
    assert_eq!(exchange.pulse(Side::Client).beats_after(2), Some(false), "whose process it is is not said");
}

/// What was recorded of a prompt that was given up after ten seconds. The agent said something after so many of them.
#[track_caller]
fn check_given_up(spoke: u64, expected: Option<u64>) {
    let mut record = Record::from_transcript(
        "
        --> {'id':0,'method':'initialize','params':{'protocolVersion':1}}
        <-- {'id':0,'result':{'protocolVersion':1}}
        --> {'id':1,'method':'session/prompt','params':{'sessionId':'s','prompt':[]}}",
    )
    .unwrap();
    let text = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}".to_owned();
    record.push(Duration::from_secs(spoke), Event::Frame { from: Side::Agent, text });
    record.push(Duration::from_secs(10), Event::Waited { time: Duration::from_secs(10) });
    assert_eq!(Exchange::new(&record.entries).gave_up_on_turn(2), expected.map(Duration::from_secs));
}

#[test]
fn an_agent_that_still_speaks_is_slow_and_one_that_is_silent_does_not_answer() {
    check_given_up(1, Some(10));
    check_given_up(8, None);
}
