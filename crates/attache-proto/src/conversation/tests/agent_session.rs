//! What a client hears of a session.

use super::*;
use crate::model::capability::ClientCapabilities;
use crate::model::config::{ConfigCategory, ConfigOption};
use crate::model::content::ContentBlock;
use crate::model::error::ErrorObject;
use crate::model::prompt::StopReason;
use crate::model::state::BackgroundWork;
use crate::model::update::SessionUpdate;

/// Plays a session of an agent. What it does stands at the beginning of a line, what the client hears after `->`, what
/// could not be said after `!`.
#[track_caller]
fn check(dialect: Dialect, client: &str, script: &str) {
    let client: ClientCapabilities = read(client, V1);
    let mut session = AgentSession::new(dialect, &client, "p");
    let mut heard = Vec::new();
    let mut expected = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("->") || line.starts_with('!') {
            expected.push(line.to_owned());
            continue;
        }
        let emit = &mut |emitted: Emitted<'_>| {
            heard.push(match emitted {
                Emitted::Update(update) => {
                    format!("-> {}", write(update, dialect).replace("'sessionUpdate':", ""))
                }
                Emitted::Answer(answer) => format!("-> answer {}", write(&answer, dialect)),
                Emitted::Refusal(error) => format!("-> error {}", error.code),
            });
        };
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (verb, rest) {
            ("begin", text) => {
                session.begin_turn(&[ContentBlock::text(text)], None, emit);
            }
            ("cancel_prompt", "") => session.cancel_prompt(emit),
            ("fail", code) => {
                session.end_turn(Err(ErrorObject::new(code.parse::<i32>().unwrap(), "no")), None, None, emit);
            }
            ("end", reason) => session.end_turn(Ok(StopReason::from(reason)), None, None, emit),
            ("ask", "") => session.ask(emit),
            ("answered", "") => session.end_question(emit),
            ("state", "") => session.say_state(emit),
            ("background", work) => session.set_background(read::<Vec<BackgroundWork>>(work, V2), emit),
            _ => panic!("{line}"),
        }
        heard.extend(session.take_lost().into_iter().map(|lost| format!("! {lost}")));
    }
    assert_eq!(heard, expected);
}

#[test]
fn a_turn_begins_and_ends_as_the_dialect_has_it() {
    for dialect in [V1, DRAFT] {
        check(dialect, "{}", "begin hi \n end refusal \n -> answer {'stopReason':'refusal'}");
        check(dialect, "{}", "begin hi \n fail -32000 \n -> error -32000");
        check(dialect, "{}", "cancel_prompt \n -> answer {'stopReason':'cancelled'}");
    }
    let begins = "begin hi
        -> answer {'messageId':'msg_p_1'}
        -> {'user_message','messageId':'msg_p_1','content':[{'type':'text','text':'hi'}]}
        -> {'state_update','state':'running'}";
    check(V2, "{}", &format!("{begins} \n end refusal \n -> {{'state_update','state':'idle','stopReason':'refusal'}}"));
    check(
        V2,
        "{}",
        &format!(
            "{begins} \n fail -32000 \n -> {{'state_update','state':'idle','stopReason':'error','error':{{'code':-32000,'message':'no'}}}}"
        ),
    );
    check(
        V2,
        "{}",
        &format!("{begins} \n fail -32800 \n -> {{'state_update','state':'idle','stopReason':'cancelled'}}"),
    );
    check(V2, "{}", "cancel_prompt \n -> error -32800");
}

#[test]
fn prompts_in_mid_turn_end_together_where_the_end_is_a_state() {
    let script = "begin a
        begin b
        end end_turn
        -> answer {'stopReason':'end_turn'}
        end end_turn
        -> answer {'stopReason':'end_turn'}";
    check(V1, "{}", script);
    check(
        V2,
        "{}",
        "begin a
         -> answer {'messageId':'msg_p_1'}
         -> {'user_message','messageId':'msg_p_1','content':[{'type':'text','text':'a'}]}
         -> {'state_update','state':'running'}
         begin b
         -> answer {'messageId':'msg_p_2'}
         -> {'user_message','messageId':'msg_p_2','content':[{'type':'text','text':'b'}]}
         end end_turn
         end refusal
         -> {'state_update','state':'idle','stopReason':'refusal'}",
    );
}

#[test]
fn ids_of_messages_differ_from_turn_to_turn() {
    for dialect in [V1, DRAFT, V2] {
        let mut session = AgentSession::new(dialect, &ClientCapabilities::new(), "p");
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.extend(session.begin_turn(&[ContentBlock::text("a")], None, &mut |_| {}));
            let (answer, goes_on) = session.message(MessageKind::Answer);
            assert!(!goes_on && session.goes_on(MessageKind::Answer) && !session.goes_on(MessageKind::Thought));
            assert_eq!(
                session.message(MessageKind::Answer),
                (answer.clone(), true),
                "pieces of one message have one id"
            );
            let (thought, _) = session.message(MessageKind::Thought);
            // Something else in between ends the message.
            let usage = read::<SessionUpdate>("{'sessionUpdate':'usage_update','used':1,'size':2}", V1);
            session.say(&usage, &mut |_| {});
            let (again, goes_on) = session.message(MessageKind::Thought);
            assert!(!goes_on);
            ids.extend([answer, thought, again]);
            session.end_turn(Ok(StopReason::EndTurn), None, None, &mut |_| {});
            assert!(!session.goes_on(MessageKind::Thought));
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "{dialect:?}");
    }
}

#[test]
fn pieces_without_an_id_get_one_that_differs_from_turn_to_turn() {
    let piece = "{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'a'}}";
    let mut last = String::new();
    for dialect in [DRAFT, V2] {
        let mut session = AgentSession::new(dialect, &ClientCapabilities::new(), "p");
        for _ in 0..3 {
            session.begin_turn(&[ContentBlock::text("a")], None, &mut |_| {});
            let update = read::<SessionUpdate>(piece, V1);
            let mut heard = Vec::new();
            session.say(&update, &mut |emitted| heard.extend(id_of(&emitted)));
            session.say(&update, &mut |emitted| heard.extend(id_of(&emitted)));
            assert!(heard.len() == 2 && heard[0] == heard[1] && heard[0] != last, "{dialect:?} {heard:?}");
            last = heard.remove(0);
            session.end_turn(Ok(StopReason::EndTurn), None, None, &mut |_| {});
        }
    }
}

fn id_of(emitted: &Emitted<'_>) -> Option<String> {
    match emitted {
        Emitted::Update(SessionUpdate::AgentMessageChunk(chunk)) => chunk.message_id.as_ref().map(ToString::to_string),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_requires_action_only_while_a_question_is_open() {
    let begin = "begin hi
        -> answer {'messageId':'msg_p_1'}
        -> {'user_message','messageId':'msg_p_1','content':[{'type':'text','text':'hi'}]}
        -> {'state_update','state':'running'}";
    check(
        V2,
        "{}",
        &format!(
            "{begin}
             ask
             -> {{'state_update','state':'requires_action'}}
             ask
             answered
             answered
             -> {{'state_update','state':'running'}}
             answered
             ask
             -> {{'state_update','state':'requires_action'}}
             end cancelled
             -> {{'state_update','state':'idle','stopReason':'cancelled'}}
             answered
             state
             -> {{'state_update','state':'idle'}}"
        ),
    );
    // A question may outlive its turn.
    check(
        V2,
        "{}",
        &format!(
            "{begin}
             ask
             -> {{'state_update','state':'requires_action'}}
             end end_turn
             -> {{'state_update','state':'idle','stopReason':'end_turn'}}
             begin hi
             -> answer {{'messageId':'msg_p_2'}}
             -> {{'user_message','messageId':'msg_p_2','content':[{{'type':'text','text':'hi'}}]}}
             -> {{'state_update','state':'requires_action'}}
             ask
             answered
             answered
             -> {{'state_update','state':'running'}}"
        ),
    );
    // Outside of a turn nobody waits for the user.
    check(V2, "{}", "ask \n answered \n state \n -> {'state_update','state':'idle'}");
    for dialect in [V1, DRAFT] {
        check(
            dialect,
            "{}",
            "begin hi \n ask \n answered \n state \n end end_turn \n -> answer {'stopReason':'end_turn'}",
        );
    }
}

#[test]
fn work_in_the_background_is_in_every_state() {
    let work = "[{'type':'terminal','terminalId':'t'}]";
    check(
        V2,
        "{}",
        &format!(
            "state
             -> {{'state_update','state':'idle'}}
             background {work}
             -> {{'state_update','state':'idle','background':{work}}}
             begin hi
             -> answer {{'messageId':'msg_p_1'}}
             -> {{'user_message','messageId':'msg_p_1','content':[{{'type':'text','text':'hi'}}]}}
             -> {{'state_update','state':'running','background':{work}}}
             ask
             -> {{'state_update','state':'requires_action','background':{work}}}
             answered
             -> {{'state_update','state':'running','background':{work}}}
             end end_turn
             -> {{'state_update','state':'idle','stopReason':'end_turn','background':{work}}}
             background []
             -> {{'state_update','state':'idle','background':[]}}"
        ),
    );
}

#[test]
fn a_reason_that_version_1_does_not_know_is_an_ordinary_end() {
    check(V1, "{}", "begin hi \n end _bored \n -> answer {'stopReason':'end_turn'} \n ! stopReason");
    check(DRAFT, "{}", "begin hi \n end _bored \n -> answer {'stopReason':'_bored'}");
    // But for one: a failure is not.
    for dialect in [V1, DRAFT] {
        check(dialect, "{}", "begin hi \n end error \n -> error -32603");
    }
}

#[test]
fn options_are_shown_as_the_client_understands_them() {
    let mode = "{'id':'m','name':'M','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}],'category':'mode'}";
    let switch = "{'id':'b','name':'B','type':'boolean','currentValue':true}";
    let options: Vec<ConfigOption> = vec![read(mode, V1), read(switch, V1)];
    let command = "{'type':'command','name':'web','description':'W'}";
    let switches = "{'session':{'configOptions':{'boolean':{}}}}";
    let modes = "'modes':{'currentModeId':'ask','availableModes':[{'id':'ask','name':'Ask'}]},";
    let v2 = |option: &str| option.replace("'id':", "'configId':");
    let rows = [
        (V1, "{}", format!("{{'sessionId':'s',{modes}'configOptions':[{mode}]}}"), 1, true),
        (V1, switches, format!("{{'sessionId':'s',{modes}'configOptions':[{mode},{switch}]}}"), 2, true),
        (DRAFT, switches, format!("{{'sessionId':'s','configOptions':[{mode},{switch}]}}"), 2, true),
        (
            V2,
            switches,
            format!(
                "{{'sessionId':'s','configOptions':[{},{}],'availableCommands':[{command}]}}",
                v2(mode),
                v2(switch)
            ),
            2,
            false,
        ),
    ];
    for (dialect, client, expected, shown, tells_later) in rows {
        let mut session = AgentSession::new(dialect, &read(client, V1), "p");
        let (opened, later) = session.open(options.clone(), vec![read(command, V2)], None);
        let mut buffer = Vec::new();
        let mut writer = crate::json::Writer::new(&mut buffer, dialect);
        opened.encode_as(crate::method::Method::NewSession, &"s".into(), &mut writer);
        assert_eq!(String::from_utf8(buffer).unwrap().replace('"', "'"), expected, "{dialect:?}");
        assert_eq!(later.is_some(), tells_later, "{dialect:?}");
        assert_eq!(session.take_lost().len(), options.len() - shown, "{dialect:?}");
        assert_eq!(session.option_of(&ConfigCategory::Mode), Some(&"m".into()));
        assert_eq!(session.option_of(&ConfigCategory::Model), None);
        assert_eq!(session.opened_with().0, options);
        assert_eq!(session.set_options(options.clone()).len(), shown, "{dialect:?}");
    }
}

#[test]
fn a_session_without_options_names_none() {
    for dialect in [V1, DRAFT, V2] {
        let (opened, later) = AgentSession::new(dialect, &ClientCapabilities::new(), "p").open(vec![], vec![], None);
        assert!(opened.config_options.is_none() && opened.modes.is_none() && later.is_none());
    }
}
