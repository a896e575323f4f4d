use super::*;
use crate::codec::Encode;
use crate::json::{RawJson, Reader, Writer};
use crate::model::capability::ClientCapabilities;
use crate::model::prompt::StopReason;
use crate::model::state::StateUpdate;
use crate::model::terminal::TerminalUpdate;
use crate::model::tool::{ToolCallContent, ToolCallContentChunk, ToolCallStatus, ToolCallUpdate};
use crate::model::update::{MessageChunk, SessionUpdate};
use crate::view::SessionView;

/// Says updates to a client. `>` is an update as v2 writes it, `<` what goes out, `!` what could not be said.
/// Single quotes stand for double ones.
#[track_caller]
fn check(dialect: Dialect, client: &str, script: &str) {
    let client = client.replace('\'', "\"");
    let client: ClientCapabilities = Reader::new(&client, Dialect::V1).decode().unwrap();
    let mut translator = UpdateTranslator::new(dialect, &client, "p");
    let mut said = Vec::new();
    let mut expected = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let Some(update) = line.strip_prefix("> ") else {
            expected.push(line.to_owned());
            continue;
        };
        let lost = translator.say(&read(update), &mut |update| said.push(format!("< {}", write(dialect, update))));
        said.extend(lost.into_iter().map(|what| format!("! {what}")));
    }
    assert_eq!(said, expected);
}

fn read(json: &str) -> SessionUpdate {
    let json = json.replace('\'', "\"");
    Reader::new(&json, Dialect::V2).decode().unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn write(dialect: Dialect, update: &SessionUpdate) -> String {
    let mut buffer = Vec::new();
    update.encode(&mut Writer::new(&mut buffer, dialect));
    String::from_utf8(buffer).unwrap().replace('"', "'").replace("'sessionUpdate':", "")
}

const V1: Dialect = Dialect::V1;
const DRAFT: Dialect = Dialect::V2Draft;
const V2: Dialect = Dialect::V2;

#[test]
fn chunks_pass_by_reference() {
    let chunk = read("{'sessionUpdate':'agent_message_chunk','messageId':'m','content':{'type':'text','text':'a'}}");
    for dialect in [V1, DRAFT, V2] {
        let mut translator = UpdateTranslator::new(dialect, &ClientCapabilities::new(), "p");
        let mut said = 0;
        for _ in 0..2 {
            translator.say(&chunk, &mut |update| {
                assert!(std::ptr::eq(update, &chunk));
                said += 1;
            });
        }
        assert_eq!(said, 2);
    }
}

#[test]
fn v2_needs_ids_of_messages() {
    let script = "
        > {'sessionUpdate':'agent_thought_chunk','content':{'type':'text','text':'a'}}
        < {'agent_thought_chunk','content':{'type':'text','text':'a'},'messageId':'stream_p_1'}
        > {'sessionUpdate':'agent_thought_chunk','content':{'type':'text','text':'b'}}
        < {'agent_thought_chunk','content':{'type':'text','text':'b'},'messageId':'stream_p_1'}
        > {'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'c'}}
        < {'agent_message_chunk','content':{'type':'text','text':'c'},'messageId':'stream_p_2'}
        > {'sessionUpdate':'usage_update','used':1,'size':2}
        < {'usage_update','used':1,'size':2}
        > {'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'d'}}
        < {'agent_message_chunk','content':{'type':'text','text':'d'},'messageId':'stream_p_2'}
        > {'sessionUpdate':'tool_call','toolCallId':'t','title':'T'}
        < {'tool_call_update','toolCallId':'t','title':'T'}
        > {'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'e'}}
        < {'agent_message_chunk','content':{'type':'text','text':'e'},'messageId':'stream_p_3'}";
    check(V2, "{}", script);
    check(DRAFT, "{}", script);
}

#[test]
fn v2_has_no_words_for_modes_and_plans_without_id() {
    let script = "
        > {'sessionUpdate':'plan','entries':[{'content':'a','priority':'high','status':'pending'}]}
        < {'plan_update','plan':{'type':'items','planId':'plan','entries':[{'content':'a','priority':'high','status':'pending'}]}}
        > {'sessionUpdate':'current_mode_update','currentModeId':'ask'}
        ! current_mode_update";
    check(V2, "{}", script);
    check(DRAFT, "{}", &script.replace("'planId'", "'id'"));
}

#[test]
fn the_first_report_of_a_tool_call_begins_it_in_v1() {
    check(
        V1,
        "{}",
        "> {'sessionUpdate':'tool_call_update','toolCallId':'t','name':'grep','status':'pending'}
         < {'tool_call','toolCallId':'t','title':'grep','name':'grep','status':'pending'}
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'paused'}
         < {'tool_call_update','toolCallId':'t','status':'in_progress'}
         ! tool_call_update.status
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','content':null,'locations':null,'kind':null,'rawInput':null}
         < {'tool_call_update','toolCallId':'t','kind':'other','content':[],'locations':[]}
         ! tool_call_update.rawInput
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'cancelled'}
         < {'tool_call_update','toolCallId':'t','status':'failed'}
         > {'sessionUpdate':'tool_call','toolCallId':'t','title':'Again'}
         < {'tool_call_update','toolCallId':'t','title':'Again'}
         > {'sessionUpdate':'tool_call_update','toolCallId':'u','kind':'_dance'}
         < {'tool_call','toolCallId':'u','title':'Tool call','kind':'other'}
         ! tool_call_update.kind",
    );
    check(
        DRAFT,
        "{}",
        "> {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'paused'}
         < {'tool_call_update','toolCallId':'t','status':'in_progress'}
         ! tool_call_update.status
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','title':null,'status':'cancelled'}
         < {'tool_call_update','toolCallId':'t','title':null,'status':'failed'}",
    );
}

/// A chunk of text of the tool call `t`.
fn text_chunk(text: &str) -> SessionUpdate {
    SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new("t", ToolCallContent::text(text)))
}

fn status(id: &str, status: ToolCallStatus) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate { status: status.into(), ..ToolCallUpdate::new(id) }.into())
}

/// What a client shows that was sent these updates, and how many bytes they took.
#[derive(Default)]
struct Shown {
    view: SessionView,
    bytes: usize,
    updates: usize,
}

impl Shown {
    fn send(&mut self, dialect: Dialect, update: &SessionUpdate) {
        let json = RawJson::encode_in(update, dialect);
        self.bytes += json.as_str().len();
        self.updates += 1;
        self.view.apply(&Reader::new(json.as_str(), dialect).decode().unwrap());
    }

    fn text(&self) -> String {
        let content = self.view.tool_call(&"t".into()).map_or(&[][..], |call| &call.content);
        content
            .iter()
            .map(|piece| match piece {
                ToolCallContent::Content(block) => block.content.as_text().unwrap_or_default(),
                _ => "",
            })
            .collect()
    }
}

#[test]
fn v1_is_sent_all_of_a_tool_calls_content() {
    check(
        V1,
        "{}",
        "> {'sessionUpdate':'tool_call_content_chunk','toolCallId':'t','content':{'type':'content','content':{'type':'text','text':'a'}}}
         < {'tool_call','toolCallId':'t','title':'Tool call','content':[{'type':'content','content':{'type':'text','text':'a'}}]}
         > {'sessionUpdate':'tool_call_content_chunk','toolCallId':'t','content':{'type':'content','content':{'type':'text','text':'b'}}}
         < {'tool_call_update','toolCallId':'t','content':[{'type':'content','content':{'type':'text','text':'ab'}}]}
         > {'sessionUpdate':'tool_call_content_chunk','toolCallId':'t','content':{'type':'content','content':{'type':'image','data':'','mimeType':'image/png'}}}
         < {'tool_call_update','toolCallId':'t','content':[{'type':'content','content':{'type':'text','text':'ab'}},{'type':'content','content':{'type':'image','data':'','mimeType':'image/png'}}]}
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','content':null}
         < {'tool_call_update','toolCallId':'t','content':[]}
         > {'sessionUpdate':'tool_call_content_chunk','toolCallId':'t','content':{'type':'content','content':{'type':'text','text':'c'}}}
         < {'tool_call_update','toolCallId':'t','content':[{'type':'content','content':{'type':'text','text':'c'}}]}
         > {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'completed'}
         < {'tool_call_update','toolCallId':'t','status':'completed'}
         > {'sessionUpdate':'tool_call_content_chunk','toolCallId':'t','content':{'type':'content','content':{'type':'text','text':'d'}}}
         ! tool_call_content_chunk",
    );
}

#[test]
fn streamed_tool_content_costs_v1_a_few_times_its_length() {
    let mut translator = UpdateTranslator::new(V1, &ClientCapabilities::new(), "p");
    let mut shown = Shown::default();
    let piece = format!("{}\n", "x".repeat(63));
    let mut longest_gap = 0;
    for count in 1..=11_200 {
        let lost = translator.say(&text_chunk(&piece), &mut |update| shown.send(V1, update));
        assert!(lost.is_empty(), "{lost:?}");
        longest_gap = longest_gap.max(count * piece.len() - shown.text().len());
    }
    translator.say(&status("t", ToolCallStatus::Completed), &mut |update| shown.send(V1, update));
    assert_eq!(shown.text(), piece.repeat(11_200));
    assert!(shown.bytes < 4_000_000, "700 KB took {} bytes", shown.bytes);
    assert!(longest_gap < 700 * 1024 / 2, "{longest_gap} bytes were held back");
    assert_eq!(shown.view.tool_call(&"t".into()).unwrap().status, ToolCallStatus::Completed);
}

#[test]
fn tool_content_longer_than_a_mebibyte_arrives_in_v1() {
    for end in [status("t", ToolCallStatus::Failed), SessionUpdate::State(StateUpdate::idle(StopReason::EndTurn))] {
        let mut translator = UpdateTranslator::new(V1, &ClientCapabilities::new(), "p");
        let mut shown = Shown::default();
        let piece = "y".repeat(1000);
        for _ in 0..5000 {
            assert!(translator.say(&text_chunk(&piece), &mut |update| shown.send(V1, update)).is_empty());
        }
        assert!(translator.say(&end, &mut |update| shown.send(V1, update)).is_empty());
        assert_eq!(shown.text().len(), 5_000_000);
        assert!(shown.bytes < 5 * 5_000_000);
    }
}

#[test]
fn tool_content_that_is_held_back_is_sent_by_flush() {
    let mut translator = UpdateTranslator::new(V1, &ClientCapabilities::new(), "p");
    let mut shown = Shown::default();
    let mut said = String::new();
    // Until something is held back.
    while shown.text().len() == said.len() {
        let piece = format!("{}\n", said.len());
        said.push_str(&piece);
        translator.say(&text_chunk(&piece), &mut |update| shown.send(V1, update));
        assert!(said.len() < 1_000_000);
    }
    let updates = shown.updates;
    assert!(translator.flush(&mut |update| shown.send(V1, update)).is_empty());
    assert_eq!(shown.text(), said);
    assert_eq!(shown.updates, updates + 1);
    translator.flush(&mut |_| panic!("nothing is held back any more"));
    // A question stops the turn until somebody reads what there is.
    translator.say(&text_chunk("more"), &mut |update| shown.send(V1, update));
    let asks = SessionUpdate::State(StateUpdate::requires_action());
    translator.say(&asks, &mut |update| shown.send(V1, update));
    assert_eq!(shown.text(), said + "more");
}

#[test]
fn more_tool_content_than_can_be_remembered_is_reported() {
    let mut translator = UpdateTranslator::new(V1, &ClientCapabilities::new(), "p");
    let mut shown = Shown::default();
    let piece = "x".repeat(1 << 20);
    let mut lost = Vec::new();
    let mut kept = 0;
    while lost.is_empty() {
        lost = translator.say(&text_chunk(&piece), &mut |update| shown.send(V1, update));
        kept += usize::from(lost.is_empty());
    }
    assert_eq!(lost, ["tool_call_content_chunk"]);
    assert_eq!(kept, 15);
    translator.say(&status("t", ToolCallStatus::Completed), &mut |update| shown.send(V1, update));
    assert_eq!(shown.text().len(), kept << 20, "what was taken is shown");
    // The room of an ended call is free again.
    assert!(translator.say(&status("u", ToolCallStatus::Pending), &mut |_| {}).is_empty());
    let chunk = SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new("u", ToolCallContent::text(piece)));
    assert!(translator.say(&chunk, &mut |_| {}).is_empty());
}

#[test]
fn a_long_session_remembers_the_newest_tool_calls_only() {
    for dialect in [V1, DRAFT] {
        let mut translator = UpdateTranslator::new(dialect, &ClientCapabilities::new(), "p");
        for number in 0..100_000 {
            let id = format!("call-{number}");
            translator.say(&status(&id, ToolCallStatus::InProgress), &mut |_| {});
            translator.say(&status(&id, ToolCallStatus::Completed), &mut |_| {});
            assert!(translator.remembered_tool_calls() <= 1024);
        }
        // The last ones are known: an update does not begin them again.
        translator.say(&status("call-99999", ToolCallStatus::Failed), &mut |update| {
            assert!(matches!(update, SessionUpdate::ToolCallUpdate(_)));
        });
        // Calls that never end are bounded, too.
        for number in 0..10_000 {
            translator.say(&status(&format!("open-{number}"), ToolCallStatus::InProgress), &mut |_| {});
        }
        assert!(translator.remembered_tool_calls() <= 1024);
    }
}

#[test]
fn what_an_agent_names_takes_no_memory_without_limit() {
    let options = |id: &str| {
        read(&format!(
            "{{'sessionUpdate':'config_option_update','configOptions':[{{'configId':'{id}','name':'M','category':'mode','type':'select','currentValue':'a','options':[{{'value':'a','name':'A'}}]}}]}}"
        ))
    };
    let mut translator = UpdateTranslator::new(V1, &ClientCapabilities::new(), "p");
    for number in 0..1000 {
        translator.say(&options(&format!("option-{number}")), &mut |_| {});
    }
    assert_eq!(format!("{translator:?}").matches("option-").count(), 1);
    let long = "i".repeat(1 << 20);
    for number in 0..100 {
        let id = format!("{long}{number}");
        let chunk = MessageChunk { message_id: Some(id.as_str().into()), ..MessageChunk::new("a") };
        translator.say(&SessionUpdate::AgentMessageChunk(chunk), &mut |_| {});
        translator.say(&status(&id, ToolCallStatus::Pending), &mut |_| {});
        let command = TerminalUpdate { command: id.clone().into(), ..TerminalUpdate::new(id.as_str()) };
        translator.say(&SessionUpdate::TerminalUpdate(command.into()), &mut |_| {});
        let command = TerminalUpdate { command: id.into(), ..TerminalUpdate::new(number.to_string()) };
        translator.say(&SessionUpdate::TerminalUpdate(command.into()), &mut |_| {});
    }
    assert!(format!("{translator:?}").len() < 1 << 20);
}

#[test]
fn messages_become_chunks_in_v1() {
    check(
        V1,
        "{}",
        "> {'sessionUpdate':'user_message','messageId':'m','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}
         < {'user_message_chunk','content':{'type':'text','text':'a'},'messageId':'m'}
         < {'user_message_chunk','content':{'type':'text','text':'b'},'messageId':'m'}
         > {'sessionUpdate':'agent_message','messageId':'m'}
         > {'sessionUpdate':'agent_message_chunk','messageId':'m','content':{'type':'text','text':'c'}}
         < {'agent_message_chunk','content':{'type':'text','text':'c'},'messageId':'m'}
         > {'sessionUpdate':'agent_message','messageId':'m','content':[{'type':'text','text':'d'}]}
         ! agent_message
         > {'sessionUpdate':'agent_thought','messageId':'t','content':[{'type':'text','text':'e'}]}
         < {'agent_thought_chunk','content':{'type':'text','text':'e'},'messageId':'t'}
         > {'sessionUpdate':'agent_thought','messageId':'t','content':null}
         ! agent_thought",
    );
}

#[test]
fn v1_has_one_plan_unless_the_client_knows_more() {
    let script = "
        > {'sessionUpdate':'plan_update','plan':{'type':'items','planId':'p','entries':[{'content':'a','priority':'low','status':'pending'},{'content':'b','priority':'low','status':'cancelled'}]}}
        < {'plan','entries':[{'content':'a','priority':'low','status':'pending'}]}
        ! plan.entries.status
        > {'sessionUpdate':'plan_update','plan':{'type':'markdown','planId':'p','content':'# a'}}
        ! plan_update
        > {'sessionUpdate':'plan_update','plan':{'type':'items','planId':'q','entries':[]}}
        < {'plan','entries':[]}
        ! plan_update.planId
        > {'sessionUpdate':'plan_removed','planId':'p'}
        > {'sessionUpdate':'plan_removed','planId':'q'}
        < {'plan','entries':[]}";
    check(V1, "{}", script);
    let script = "
        > {'sessionUpdate':'plan_update','plan':{'type':'items','planId':'p','entries':[]}}
        < {'plan_update','plan':{'type':'items','planId':'p','entries':[]}}
        > {'sessionUpdate':'plan_update','plan':{'type':'markdown','planId':'p','content':'# a'}}
        < {'plan_update','plan':{'type':'markdown','planId':'p','content':'# a'}}
        > {'sessionUpdate':'plan_removed','planId':'p'}
        < {'plan_removed','planId':'p'}";
    check(V1, "{'plan':{}}", script);
    check(
        DRAFT,
        "{}",
        "> {'sessionUpdate':'plan_removed','planId':'p'}
         < {'plan_update','plan':{'type':'items','id':'p','entries':[]}}",
    );
}

#[test]
fn v1_hears_what_its_client_understands() {
    let script = "
        > {'sessionUpdate':'notice','severity':'info','title':'n'}
        < {'notice','severity':'info','title':'n'}
        > {'sessionUpdate':'compaction_update','compactionId':'c','status':'completed'}
        < {'compaction_update','compactionId':'c','status':'completed'}
        > {'sessionUpdate':'subagent_update','sessionId':'s'}
        < {'subagent_update','sessionId':'s'}
        > {'sessionUpdate':'session_message_chunk','messageId':'m','content':{'type':'text','text':'a'}}
        < {'session_message_chunk','messageId':'m','content':{'type':'text','text':'a'}}
        > {'sessionUpdate':'state_update','state':'running'}
        > {'sessionUpdate':'_custom','a':1}
        < {'_custom','a':1}";
    check(V1, "{'session':{'notices':{},'compaction':{}},'subagents':{}}", script);
    let script = "
        > {'sessionUpdate':'notice','severity':'info','title':'n'}
        ! notice
        > {'sessionUpdate':'compaction_update','compactionId':'c','status':'completed'}
        ! compaction_update
        > {'sessionUpdate':'compaction_summary_chunk','compactionId':'c','content':{'type':'text','text':'a'}}
        ! compaction_summary_chunk
        > {'sessionUpdate':'subagent_update','sessionId':'s'}
        ! subagent_update
        > {'sessionUpdate':'state_update','state':'idle','stopReason':'end_turn'}";
    check(V1, "{}", script);
    check(DRAFT, "{'session':{'notices':{},'compaction':{}},'subagents':{}}", script);
}

#[test]
fn options_commands_and_usage_in_v1() {
    let script = "
        > {'sessionUpdate':'config_option_update','configOptions':[{'configId':'m','name':'M','category':'mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}]},{'configId':'b','name':'B','type':'boolean','currentValue':true},{'configId':'n','name':'N','type':'_number','currentValue':3}]}
        < {'config_option_update','configOptions':[{'id':'m','name':'M','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}],'category':'mode'}]}
        < {'current_mode_update','currentModeId':'ask'}
        ! config_option_update.type
        > {'sessionUpdate':'config_option_update','configOptions':[{'configId':'m','name':'M','category':'mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}]}]}
        < {'config_option_update','configOptions':[{'id':'m','name':'M','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'}],'category':'mode'}]}
        > {'sessionUpdate':'usage_update','used':1,'size':2,'cost':null}
        < {'usage_update','used':1,'size':2}
        ! usage_update.cost
        > {'sessionUpdate':'available_commands_update','availableCommands':[{'type':'command','name':'a','description':'A'},{'type':'_menu','name':'b'}]}
        < {'available_commands_update','availableCommands':[{'name':'a','description':'A'}]}
        ! available_commands_update.type";
    check(V1, "{}", script);
    check(
        V1,
        "{'session':{'configOptions':{'boolean':{}}}}",
        "> {'sessionUpdate':'config_option_update','configOptions':[{'configId':'b','name':'B','type':'boolean','currentValue':true}]}
         < {'config_option_update','configOptions':[{'id':'b','name':'B','type':'boolean','currentValue':true}]}",
    );
}

#[test]
fn terminals_of_the_agent_become_text() {
    let script = "
        > {'sessionUpdate':'terminal_update','terminalId':'x','command':'make'}
        > {'sessionUpdate':'tool_call_update','toolCallId':'t','title':'T','content':[{'type':'terminal','terminalId':'x'}]}
        < {'tool_call','toolCallId':'t','title':'T','content':[{'type':'content','content':{'type':'text','text':'```console\\n$ make\\n```'}}]}
        > {'sessionUpdate':'terminal_output_chunk','terminalId':'x','data':'b25l'}
        ! terminal_output_chunk
        > {'sessionUpdate':'terminal_output_chunk','terminalId':'x','data':'DQp0d28='}
        > {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'completed'}
        < {'tool_call_update','toolCallId':'t','status':'completed','content':[{'type':'content','content':{'type':'text','text':'```console\\n$ make\\none\\ntwo\\n```'}}]}
        > {'sessionUpdate':'terminal_update','terminalId':'x','exitStatus':{'exitCode':2}}
        < {'tool_call_update','toolCallId':'t','content':[{'type':'content','content':{'type':'text','text':'```console\\n$ make\\none\\ntwo\\n```\\nexit code 2'}}]}
        > {'sessionUpdate':'terminal_update','terminalId':'x','exitStatus':{'exitCode':2}}";
    check(V1, "{}", script);
    check(DRAFT, "{}", &script.replace("'tool_call',", "'tool_call_update',"));
}

#[test]
fn terminals_of_the_client_stay() {
    let script = "
        > {'sessionUpdate':'tool_call_update','toolCallId':'t','title':'T','content':[{'type':'terminal','terminalId':'x'}]}
        < {'tool_call','toolCallId':'t','title':'T','content':[{'type':'terminal','terminalId':'x'}]}
        > {'sessionUpdate':'tool_call_update','toolCallId':'t','status':'completed'}
        < {'tool_call_update','toolCallId':'t','status':'completed'}";
    check(V1, "{}", script);
}
