//! Options of a session, and the modes and models that are options by another name.

use super::*;
use crate::method::{ClientRequest, Method};
use crate::model::config::{ConfigOption, ConfigSetting, SetConfigOptionRequest};
use crate::model::update::SessionUpdate;

const MODES: &str = "'modes':{'currentModeId':'ask','availableModes':[{'id':'ask','name':'Ask','description':'d'},{'id':'do','name':'Do'}]}";
const MODELS: &str = "'models':{'currentModelId':'big','availableModels':[{'modelId':'big','name':'Big'},{'modelId':'small','name':'Small'}]}";
const OWN_MODE: &str = "{'id':'m','name':'M','category':'mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask'},{'value':'do','name':'Do'}]}";
const SWITCH: &str = "{'id':'mode','name':'S','type':'boolean','currentValue':true}";

fn session(opened: &str) -> ClientSession {
    let opened = format!("{{'sessionId':'s',{opened}}}").replace('\'', "\"");
    let mut opened = OpenedSession::decode_as(Method::NewSession, &opened, V1).unwrap();
    let mut session = ClientSession::default();
    session.options = opened.options();
    session
}

/// The options by id and value.
fn shown(options: &[ConfigOption]) -> String {
    let one = |option: &ConfigOption| {
        let json = write(option, V1);
        let current = json.split("'currentValue':").nth(1).unwrap().split([',', '}']).next().unwrap().to_owned();
        format!("{}={}", option.id, current.replace('\'', ""))
    };
    options.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn modes_and_models_are_options_unless_they_are_listed_as_such() {
    let rows = [
        ("'_meta':{}".to_owned(), ""),
        (MODES.to_owned(), "mode=ask"),
        (MODELS.to_owned(), "model=big"),
        (format!("{MODES},{MODELS}"), "mode=ask model=big"),
        (format!("{MODES},'configOptions':[{OWN_MODE}]"), "m=ask"),
        // The id is taken by something else.
        (format!("{MODES},'configOptions':[{SWITCH}]"), "mode=true session_mode=ask"),
    ];
    for (opened, expected) in rows {
        assert_eq!(shown(session(&opened).options.all()), expected, "{opened}");
    }
    let mode = &session(MODES).options.all()[0].clone();
    let expected = "{'id':'mode','name':'Mode','type':'select','currentValue':'ask','options':[{'value':'ask','name':'Ask','description':'d'},{'value':'do','name':'Do'}],'category':'mode'}";
    assert_eq!(write(mode, V1), expected);
}

#[test]
fn an_option_is_set_the_way_that_the_agent_has_it() {
    let rows = [
        (MODES.to_owned(), "mode", "{'type':'id','value':'do'}", "session/set_mode {'sessionId':'s','modeId':'do'}"),
        (
            MODELS.to_owned(),
            "model",
            "{'type':'id','value':'small'}",
            "session/set_model {'sessionId':'s','modelId':'small'}",
        ),
        (
            format!("{MODES},'configOptions':[{OWN_MODE}]"),
            "m",
            "{'type':'id','value':'do'}",
            "session/set_config_option {'sessionId':'s','configId':'m','value':'do'}",
        ),
        (
            MODES.to_owned(),
            "other",
            "{'type':'boolean','value':true}",
            "session/set_config_option {'sessionId':'s','configId':'other','type':'boolean','value':true}",
        ),
        (
            format!("{MODES},'configOptions':[{SWITCH}]"),
            "session_mode",
            "{'type':'id','value':'do'}",
            "session/set_mode {'sessionId':'s','modeId':'do'}",
        ),
    ];
    for (opened, option, value, expected) in rows {
        let value = value.replacen('{', "{'sessionId':'s','configId':'x',", 1);
        let value: ConfigSetting = read::<SetConfigOptionRequest>(&value, V2).value;
        let request: ClientRequest = match session(&opened).options.set_request(&"s".into(), option.into(), value) {
            SetRequest::Option(request) => request.into(),
            SetRequest::Mode(request) => request.into(),
            SetRequest::Model(request) => request.into(),
        };
        let mut buffer = Vec::new();
        request.encode_params(&mut crate::json::Writer::new(&mut buffer, V1));
        let params = String::from_utf8(buffer).unwrap().replace('"', "'");
        assert_eq!(format!("{} {params}", request.method().name(V1).unwrap()), expected);
    }
}

#[test]
fn what_was_set_shows() {
    let mut session = session(&format!("{MODES},{MODELS}"));
    session.options.was_set(&"mode".into(), &"do".into());
    assert_eq!(shown(session.options.all()), "mode=do model=big");
    session.options.was_set(&"nothing".into(), &"do".into());
    // The agent names its options; modes and models stay, until it lists them as well.
    let rows = [
        ("[]".to_owned(), "mode=do model=big"),
        (format!("[{}]", SWITCH.replace("'mode'", "'b'")), "b=true mode=do model=big"),
        (format!("[{OWN_MODE}]"), "m=ask model=big"),
        (format!("[{SWITCH}]"), "mode=true model=big"),
        ("[]".to_owned(), "model=big"),
    ];
    for (options, expected) in rows {
        session.options.replace(read(&options, V1));
        assert_eq!(shown(session.options.all()), expected, "{options}");
    }
}

#[test]
fn a_change_of_mode_is_a_change_of_an_option() {
    let mode = |mode: &str| format!("{{'sessionUpdate':'current_mode_update','currentModeId':'{mode}'}}");
    let rows = [
        // What the session has, what the agent tells, what the client hears.
        (MODES.to_owned(), mode("do"), "config_option_update mode=do"),
        (MODES.to_owned(), mode("ask"), "current_mode_update"),
        (format!("{MODES},'configOptions':[{OWN_MODE}]"), mode("do"), "config_option_update m=do"),
        (MODELS.to_owned(), mode("do"), "current_mode_update"),
        (
            MODES.to_owned(),
            format!("{{'sessionUpdate':'config_option_update','configOptions':[{}]}}", SWITCH.replace("'mode'", "'b'")),
            "config_option_update b=true mode=ask",
        ),
    ];
    for (opened, update, expected) in rows {
        let mut session = session(&opened);
        let mut told: SessionUpdate = read(&update, V1);
        assert!(session.handle_update(&mut told).is_empty());
        let heard = match &told {
            SessionUpdate::ConfigOptions(options) => {
                assert_eq!(options.config_options, session.options.all());
                format!("config_option_update {}", shown(&options.config_options))
            }
            SessionUpdate::CurrentMode(_) => "current_mode_update".into(),
            other => panic!("{other:?}"),
        };
        assert_eq!(heard, expected, "{update}");
    }
}
