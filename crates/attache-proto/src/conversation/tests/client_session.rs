//! Turns and questions, as a client sees them.

use super::*;
use crate::model::error::ErrorObject;
use crate::model::permission::{PermissionRequest, PermissionSubject};
use crate::model::prompt::{PromptResponse, StopReason};
use crate::model::state::{IdleState, StateUpdate};
use crate::model::tool::{ToolCallId, ToolCallUpdate};
use crate::model::update::{MessageUpdate, SessionUpdate};
use crate::rpc::{Call, Event, Peer, Side};

/// Plays a session to a client, one word of the agent or the client a line; `=>` names the turns that end by it, and how.
#[track_caller]
fn check(script: &str) {
    let mut session = ClientSession::default();
    let mut turns = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (step, expected) = line.split_once("=>").map_or((line, ""), |(step, ends)| (step, ends.trim()));
        let words: Vec<&str> = step.split_whitespace().collect();
        let turn = |number: &str| turns[number.parse::<usize>().unwrap() - 1];
        let mut state = |state: StateUpdate| session.handle_update(&mut SessionUpdate::State(state));
        let ends: Vec<TurnEnd> = match words[..] {
            ["prompt"] => {
                turns.push(session.begin_turn());
                Vec::new()
            }
            ["accepted", number] => {
                session.prompt_answered(turn(number), Ok(PromptResponse::default())).into_iter().collect()
            }
            ["accepted", number, id] => {
                session.prompt_answered(turn(number), Ok(PromptResponse::inserted(id))).into_iter().collect()
            }
            ["answered", number, reason] => {
                let response = PromptResponse::ended(StopReason::from(reason));
                session.prompt_answered(turn(number), Ok(response)).into_iter().collect()
            }
            ["refused", number, code] => {
                let error = ErrorObject::new(code.parse::<i32>().unwrap(), "no");
                session.prompt_answered(turn(number), Err(error)).into_iter().collect()
            }
            ["echo", id] => session.handle_update(&mut SessionUpdate::UserMessage(MessageUpdate::new(id))),
            ["running"] => state(StateUpdate::running()),
            ["requires_action"] => state(StateUpdate::requires_action()),
            ["_dreaming"] => state(read("{'state':'_dreaming'}", V2)),
            ["idle"] => state(IdleState::new().into()),
            ["idle", "error"] => state(StateUpdate::failed(ErrorObject::new(-32603, "no"))),
            ["idle", reason] => state(StateUpdate::idle(StopReason::from(reason))),
            ["cancel"] => {
                session.cancel(None);
                Vec::new()
            }
            ["cancel", number] => {
                session.cancel(Some(turn(number)));
                Vec::new()
            }
            ["close"] => {
                let end = |turn| TurnEnd { turn, result: Ok(StopReason::from("closed")), usage: None, meta: None };
                session.close().into_iter().map(end).collect()
            }
            _ => panic!("{line}"),
        };
        let ends: Vec<String> = ends
            .into_iter()
            .map(|end| {
                let number = turns.iter().position(|turn| *turn == end.turn).unwrap() + 1;
                assert!(!session.is_open(end.turn), "{line}");
                match end.result {
                    Ok(reason) => format!("{number} {reason}"),
                    Err(error) => format!("{number} {}", error.code),
                }
            })
            .collect();
        assert_eq!(ends.join(", "), expected, "{line}");
    }
}

#[test]
fn an_answer_with_a_reason_ends_the_turn() {
    check(
        "prompt
         prompt
         answered 2 refusal => 2 refusal
         answered 2 refusal
         answered 1 end_turn => 1 end_turn
         idle end_turn
         prompt
         refused 3 -32000 => 3 -32000",
    );
}

#[test]
fn in_version_2_the_end_is_an_idle_state() {
    check(
        "prompt
         accepted 1 a
         echo a
         running
         requires_action
         running
         idle max_tokens => 1 max_tokens
         idle max_tokens",
    );
    check("prompt \n accepted 1 a \n running \n idle => 1 end_turn");
    check("prompt \n accepted 1 a \n running \n idle error => 1 -32603");
    // Some say nothing of having worked.
    check("prompt \n accepted 1 a \n idle refusal => 1 refusal");
    // Some name no message.
    check("prompt \n accepted 1 \n running \n idle end_turn => 1 end_turn");
    // An unknown state is busy.
    check("prompt \n accepted 1 a \n running \n _dreaming \n idle end_turn => 1 end_turn");
}

#[test]
fn an_idle_state_from_before_a_prompt_does_not_end_it() {
    check("prompt \n idle \n accepted 1 a \n running \n idle end_turn => 1 end_turn");
    check("prompt \n idle end_turn \n accepted 1 a \n running \n idle refusal => 1 refusal");
    check("prompt \n accepted 1 a \n idle \n running \n idle end_turn => 1 end_turn");
}

#[test]
fn an_end_that_comes_before_the_acceptance_is_not_lost() {
    check("prompt \n running \n idle refusal \n accepted 1 a => 1 refusal");
    check("prompt \n echo a \n running \n idle refusal \n accepted 1 a => 1 refusal");
    check("prompt \n requires_action \n idle \n accepted 1 => 1 end_turn");
}

#[test]
fn work_that_the_agent_began_by_itself_does_not_end_a_prompt() {
    // The echo shows that the prompt came after it.
    check("prompt \n running \n idle end_turn \n echo a \n accepted 1 a \n running \n idle refusal => 1 refusal");
}

#[test]
fn prompts_in_mid_run_end_with_the_run() {
    check(
        "prompt
         accepted 1 a
         running
         prompt
         accepted 2 b
         idle end_turn => 1 end_turn, 2 end_turn",
    );
    check("prompt \n accepted 1 a \n running \n prompt \n accepted 2 b \n idle => 1 end_turn, 2 end_turn");
    // The run may end after the agent took the second prompt in and before it says so.
    check(
        "prompt
         accepted 1 a
         running
         prompt
         echo b
         idle end_turn => 1 end_turn
         accepted 2 b => 2 end_turn",
    );
    check(
        "prompt
         prompt
         echo a
         echo b
         running
         idle cancelled
         accepted 2 b => 2 cancelled
         accepted 1 a => 1 cancelled",
    );
}

#[test]
fn a_prompt_that_waits_for_its_turn_has_its_own_end() {
    check(
        "prompt
         accepted 1 a
         running
         prompt
         idle end_turn => 1 end_turn
         accepted 2 b
         running
         idle refusal => 2 refusal",
    );
    check(
        "prompt
         accepted 1 a
         running
         prompt
         refused 2 -32000 => 2 -32000
         idle end_turn => 1 end_turn",
    );
}

#[test]
fn a_cancelled_prompt_that_was_not_taken_in_is_no_error() {
    check("prompt \n cancel \n refused 1 -32800 => 1 cancelled");
    check("prompt \n refused 1 -32800 => 1 -32800");
    check("prompt \n cancel \n refused 1 -32603 => 1 -32603");
    check("prompt \n prompt \n cancel 1 \n refused 2 -32800 => 2 -32800 \n refused 1 -32800 => 1 cancelled");
    check("prompt \n cancel \n prompt \n refused 2 -32800 => 2 -32800 \n answered 1 cancelled => 1 cancelled");
    check("prompt \n accepted 1 a \n running \n cancel \n idle cancelled => 1 cancelled");
}

#[test]
fn a_closed_session_has_no_open_turns() {
    check(
        "prompt \n prompt \n accepted 2 b \n close => 1 closed, 2 closed \n answered 1 end_turn \n idle end_turn \n close",
    );
}

#[test]
fn echoes_are_remembered_as_long_as_they_matter_and_no_longer() {
    let echoes: Vec<String> = (0..100).map(|number| format!("echo m{number}")).collect();
    // A prompt of the client is open all the time, so each could be it.
    let script = format!("prompt \n {} \n running \n idle end_turn \n accepted 1 m99 => 1 end_turn", echoes.join("\n"));
    check(&script);
}

/// Calls as a peer would hand them out.
fn calls(count: usize) -> Vec<Call> {
    let mut peer: Peer<()> = Peer::new(Side::Client);
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\",\"params\":{}}";
    let one = |_| match peer.handle_frame(ask, &mut Vec::new()).next() {
        Some(Event::Call { call, .. }) => call,
        other => panic!("{other:?}"),
    };
    (0..count).map(one).collect()
}

#[test]
fn every_question_is_answered_once() {
    let calls = calls(5);
    let mut request = PermissionRequest::new("s", []);
    let mut session = ClientSession::default();
    let turn = session.begin_turn();
    for call in &calls[..3] {
        assert_eq!(session.handle_question(*call, &mut request), Question::Ask);
    }
    assert!(session.question_answered(calls[1]));
    assert!(!session.question_answered(calls[1]));
    // What is cancelled with its turn has its answer, and so has what comes late.
    assert_eq!(session.cancel(Some(turn)), [calls[0], calls[2]]);
    assert!(!session.question_answered(calls[0]));
    assert_eq!(session.handle_question(calls[3], &mut request), Question::Cancelled);
    assert_eq!(session.cancel(None), []);
    // The next turn's questions are asked.
    session.prompt_answered(turn, Ok(PromptResponse::ended(StopReason::Cancelled)));
    session.begin_turn();
    assert_eq!(session.handle_question(calls[4], &mut request), Question::Ask);
    session.close();
    assert!(!session.question_answered(calls[4]));
}

#[test]
fn only_what_says_so_can_be_cancelled() {
    let mut session = ClientSession::default();
    let id = ToolCallId::from("t");
    let rows = [
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t'}", false),
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t','capabilities':{'cancel':{}}}", true),
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t','status':'in_progress'}", true),
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t','capabilities':{}}", false),
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t','capabilities':{'cancel':{}}}", true),
        ("{'sessionUpdate':'tool_call_update','toolCallId':'t','capabilities':null}", false),
        ("{'sessionUpdate':'terminal_update','terminalId':'t','capabilities':{'cancel':{}}}", false),
    ];
    for (update, can_cancel) in rows {
        session.handle_update(&mut read(update, V2));
        assert_eq!(session.can_cancel_tool_call(&id), can_cancel, "{update}");
    }
    assert!(session.can_cancel_terminal(&"t".into()));
}

#[test]
fn a_question_about_a_call_has_the_title_of_the_call() {
    let asked = |session: &mut ClientSession, title: &str| {
        let call = read::<ToolCallUpdate>(&format!("{{'toolCallId':'c'{title}}}"), V1);
        let mut request = PermissionRequest::new("s", []).subject(PermissionSubject::tool_call(call));
        session.handle_question(calls(1)[0], &mut request);
        (request.title.clone(), request.tool_call().and_then(|call| call.title.set().cloned()))
    };
    let mut session = ClientSession::default();
    let show = |session: &mut ClientSession, update: &str| {
        session.handle_update(&mut read(update, V1));
    };
    assert_eq!(asked(&mut session, ""), (None, None));
    show(&mut session, "{'sessionUpdate':'tool_call','toolCallId':'c','title':'Edit'}");
    assert_eq!(asked(&mut session, ""), (Some("Edit".into()), Some("Edit".into())));
    // One of its own stays.
    assert_eq!(asked(&mut session, ",'title':'Really edit'").1.as_deref(), Some("Really edit"));
    show(&mut session, "{'sessionUpdate':'tool_call_update','toolCallId':'c','status':'completed'}");
    assert_eq!(asked(&mut session, ""), (None, None));
}
