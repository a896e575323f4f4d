//! Opening a session: one request, whatever the dialect calls it.

use super::*;
use crate::method::{ClientRequest, Method};
use crate::model::capability::SessionCapabilities;
use crate::model::config::ConfigOption;
use crate::model::initialize::InitializeResponse;

/// Has a client's request put to an agent: the request that reaches it, `unwanted history` if more comes than was asked
/// for, or what the agent does not offer.
#[track_caller]
fn check(from: Dialect, request: &str, to: Dialect, offered: &str, expected: &str) {
    let (method, params) = request.split_once(' ').unwrap();
    let params = params.replace('\'', "\"");
    let method = Method::parse(method).unwrap();
    let request = ClientRequest::decode(method, Some(&params), from, &mut Vec::new()).unwrap().unwrap();
    let opening = Opening::from_request(request).unwrap();
    let offered = read::<InitializeResponse>(&format!("{{'protocolVersion':1,'agentCapabilities':{offered}}}"), V1);
    let offered: SessionCapabilities = offered.capabilities.session.unwrap();
    let said = match opening.map(|opening| opening.into_request(to, &offered)) {
        Err(error) => format!("{} {}", error.code, error.message),
        Ok(Err(what)) => format!("no {what}"),
        Ok(Ok((request, is_unwanted))) => {
            let mut buffer = Vec::new();
            request.encode_params(&mut crate::json::Writer::new(&mut buffer, to));
            let params = String::from_utf8(buffer).unwrap().replace('"', "'");
            let name = request.method().name(to).unwrap();
            format!("{name} {params}{}", if is_unwanted { " unwanted history" } else { "" })
        }
    };
    assert_eq!(said, expected);
}

const LOAD: &str = "session/load {'sessionId':'s','cwd':'/p','mcpServers':[]}";
const RESUME: &str = "session/resume {'sessionId':'s','cwd':'/p'}";
const REPLAY: &str = "session/resume {'sessionId':'s','cwd':'/p','replayFrom':{'type':'start'}}";
const LOADS: &str = "{'loadSession':true}";
const RESUMES: &str = "{'sessionCapabilities':{'resume':{}}}";
const BOTH: &str = "{'loadSession':true,'sessionCapabilities':{'resume':{}}}";

#[test]
fn a_new_session_is_new_everywhere() {
    let new = "session/new {'cwd':'/p','mcpServers':[],'additionalDirectories':['/q'],'_meta':{'a':1}}";
    let new_v2 = "session/new {'cwd':'/p','additionalDirectories':['/q'],'_meta':{'a':1}}";
    for dialect in [V1, DRAFT] {
        check(
            V2,
            new_v2,
            dialect,
            "{}",
            new.replace(
                "'mcpServers':[],'additionalDirectories':['/q']",
                "'additionalDirectories':['/q'],'mcpServers':[]",
            )
            .as_str(),
        );
    }
    check(V1, new, V2, "{}", new_v2);
}

#[test]
fn a_session_is_restored_in_the_words_that_the_agent_has() {
    for dialect in [V1, DRAFT] {
        check(V1, LOAD, dialect, LOADS, LOAD);
        check(V1, LOAD, dialect, BOTH, LOAD);
        check(V1, LOAD, dialect, RESUMES, "no loading sessions");
        check(V2, REPLAY, dialect, LOADS, LOAD);
        check(V2, REPLAY, dialect, BOTH, LOAD);
        check(V2, REPLAY, dialect, RESUMES, "no loading sessions");
        check(V2, RESUME, dialect, BOTH, RESUME);
        check(V2, RESUME, dialect, RESUMES, RESUME);
        // It can only load, and what it tells then nobody asked for.
        check(V2, RESUME, dialect, LOADS, &format!("{LOAD} unwanted history"));
        check(V2, RESUME, dialect, "{}", "no resuming sessions");
    }
    check(V1, LOAD, V2, BOTH, REPLAY);
    check(V2, REPLAY, V2, BOTH, REPLAY);
    check(V2, RESUME, V2, BOTH, RESUME);
    check(V2, RESUME, V2, LOADS, "no resuming sessions");
    check(
        V2,
        "session/resume {'sessionId':'s','cwd':'/p','replayFrom':{'type':'_noon'}}",
        V2,
        BOTH,
        "-32602 replayFrom: cannot replay from there",
    );
}

#[test]
fn a_session_is_forked_where_the_agent_can() {
    let fork = "session/fork {'sessionId':'s','cwd':'/p'}";
    check(V2, fork, V2, "{'sessionCapabilities':{'fork':{}}}", fork);
    check(V2, fork, V2, "{}", "no forking sessions");
}

#[test]
fn other_requests_open_nothing() {
    let request = ClientRequest::decode(Method::ListSessions, None, V2, &mut Vec::new()).unwrap().unwrap();
    assert!(Opening::from_request(request).is_none());
}

#[test]
fn the_answer_says_the_same_in_every_dialect_that_has_words_for_it() {
    let new = "{'sessionId':'s','configOptions':[{'configId':'m','name':'M','type':'select','currentValue':'a','options':[{'value':'a','name':'A'}]}],'_meta':{'x':1}}";
    let opened = OpenedSession::decode_as(Method::NewSession, &new.replace('\'', "\""), V2).unwrap();
    assert_eq!(opened.session_id, Some("s".into()));
    let option = "{'id':'m','name':'M','type':'select','currentValue':'a','options':[{'value':'a','name':'A'}]}";
    assert_eq!(opened.config_options, Some(vec![read::<ConfigOption>(option, V1)]));
    for (method, expected) in [
        (Method::NewSession, format!("{{'sessionId':'s','configOptions':[{option}],'_meta':{{'x':1}}}}")),
        (Method::ForkSession, format!("{{'sessionId':'s','configOptions':[{option}],'_meta':{{'x':1}}}}")),
        (Method::LoadSession, format!("{{'configOptions':[{option}],'_meta':{{'x':1}}}}")),
        (Method::ResumeSession, format!("{{'configOptions':[{option}],'_meta':{{'x':1}}}}")),
    ] {
        let mut buffer = Vec::new();
        opened.clone().encode_as(method, &"s".into(), &mut crate::json::Writer::new(&mut buffer, V1));
        let written = String::from_utf8(buffer).unwrap();
        assert_eq!(written.replace('"', "'"), expected, "{method}");
        let back = OpenedSession::decode_as(method, &written, V1).unwrap();
        assert_eq!((back.config_options, back.meta), (opened.config_options.clone(), opened.meta.clone()), "{method}");
    }
}
