//! Which dialect a client and an agent find.

use super::*;
use crate::model::capability::{ClientCapabilities, FsCapabilities};
use crate::model::error::ErrorObject;
use crate::model::initialize::InitializeRequest;

const V2_ANSWER: &str = "{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}}}";
const V1_ANSWER: &str = "{'protocolVersion':1,'agentCapabilities':{'loadSession':true}}";
/// Some agents of version 1 repeat the number that they were asked for.
const ECHO: &str =
    "{'protocolVersion':2,'agentCapabilities':{'loadSession':true},'agentInfo':{'name':'a','version':'1'}}";
const REFUSAL: &str = "refused";

fn files() -> ClientCapabilities {
    let fs = FsCapabilities { read_text_file: true, ..FsCapabilities::new() };
    ClientCapabilities { fs, ..ClientCapabilities::new() }
}

/// Greets an agent that answers so, and says what follows from each answer.
#[track_caller]
fn check(mut greeting: Greeting, answers: &[&str], expected: &[&str]) {
    let mut said = Vec::new();
    for answer in answers {
        let json = answer.replace('\'', "\"");
        let answer = if *answer == REFUSAL { Err(ErrorObject::internal("no")) } else { Ok(json.as_str()) };
        said.push(match greeting.handle_answer(answer) {
            Greeted::Agreed(dialect, _) => format!("agreed on {dialect:?}"),
            Greeted::Again(dialect) => {
                assert_eq!(greeting.dialect(), dialect);
                format!("again in {dialect:?}")
            }
            Greeted::Restart => "restart".into(),
            Greeted::Failed(GreetingError::Refused(_)) => "refused".into(),
            Greeted::Failed(GreetingError::BadAnswer(error)) => error.to_string(),
            Greeted::Failed(GreetingError::Version(version)) => format!("version {version}"),
        });
    }
    assert_eq!(said, expected);
}

fn auto() -> Greeting {
    Greeting::new(Protocol::Auto, &ClientCapabilities::new())
}

#[test]
fn the_shape_of_the_answer_shows_the_dialect() {
    check(auto(), &[V2_ANSWER], &["agreed on V2"]);
    check(auto(), &["{'protocolVersion':2}"], &["agreed on V2"]);
    check(auto(), &["{'protocolVersion':2,'agentInfo':{'name':'a','version':'1'}}"], &["agreed on V2Draft"]);
    for capability in ["load", "list", "resume", "close"] {
        let answer = format!("{{'protocolVersion':2,'capabilities':{{'session':{{'{capability}':{{}}}}}}}}");
        check(auto(), &[&answer], &["agreed on V2Draft"]);
    }
    let draft = || Greeting::new(Protocol::V2Draft, &ClientCapabilities::new());
    check(draft(), &["{'protocolVersion':2}"], &["agreed on V2Draft"]);
    check(draft(), &[V2_ANSWER], &["agreed on V2"]);
    check(auto(), &["{'protocolVersion':3}"], &["version 3"]);
    check(auto(), &["{'protocolVersion':0}"], &["version 0"]);
    check(auto(), &["{'protocolVersion':'1'}"], &["`protocolVersion`: expected a number"]);
    check(auto(), &["{}"], &["missing field `protocolVersion`"]);
}

#[test]
fn an_agent_of_version_1_is_greeted_again_if_it_has_to_know_what_is_offered() {
    check(auto(), &[V1_ANSWER], &["agreed on V1"]);
    let offering = || Greeting::new(Protocol::Auto, &files());
    check(offering(), &[V1_ANSWER, V1_ANSWER], &["again in V1", "agreed on V1"]);
    check(Greeting::in_dialect(V2), &[V1_ANSWER], &["agreed on V1"]);
    check(Greeting::in_dialect(V2).offering(&files()), &[V1_ANSWER, V1_ANSWER], &["again in V1", "agreed on V1"]);
    // It may not want to hear it twice.
    check(offering(), &[V1_ANSWER, REFUSAL], &["again in V1", "agreed on V1"]);
    check(offering().can_restart(), &[V1_ANSWER, REFUSAL], &["again in V1", "restart"]);
}

#[test]
fn an_agent_that_repeats_the_version_in_the_words_of_version_1_is_greeted_again() {
    check(auto(), &[ECHO, V1_ANSWER], &["again in V1", "agreed on V1"]);
    check(auto(), &[ECHO, REFUSAL], &["again in V1", "agreed on V1"]);
    check(auto().can_restart(), &[ECHO, REFUSAL], &["again in V1", "restart"]);
    check(Greeting::new(Protocol::V2, &files()), &[ECHO], &["version 1"]);
}

#[test]
fn a_refusal_is_asked_again_in_version_1_once() {
    check(auto(), &[REFUSAL, V1_ANSWER], &["again in V1", "agreed on V1"]);
    check(auto(), &[REFUSAL, REFUSAL], &["again in V1", "refused"]);
    check(Greeting::new(Protocol::V1, &files()), &[REFUSAL], &["refused"]);
    check(Greeting::new(Protocol::V2, &files()), &[REFUSAL], &["refused"]);
    check(Greeting::in_dialect(V1), &[REFUSAL], &["refused"]);
}

#[test]
fn a_fixed_version_is_not_left() {
    let fixed = |protocol| Greeting::new(protocol, &files());
    check(fixed(Protocol::V1), &[V1_ANSWER], &["agreed on V1"]);
    check(fixed(Protocol::V1), &[V2_ANSWER], &["version 2"]);
    check(fixed(Protocol::V2), &[V1_ANSWER], &["version 1"]);
    check(fixed(Protocol::V2Draft), &[V1_ANSWER], &["version 1"]);
}

/// What goes without saying in a dialect is said after the greeting.
#[test]
fn what_an_agent_offers_without_saying_so_is_written_down() {
    let offered = |greeting: &mut Greeting, answer: &str| match greeting.handle_answer(Ok(&answer.replace('\'', "\"")))
    {
        // The draft has a word for everything that the others leave out.
        Greeted::Agreed(_, response) => write(&response.capabilities, DRAFT),
        other => panic!("{other:?}"),
    };
    let rows = [
        (V1_ANSWER, "{'session':{'mcp':{'stdio':{}},'load':{}}}"),
        (
            "{'protocolVersion':2,'agentInfo':{'name':'a','version':'1'},'capabilities':{'session':{}}}",
            "{'session':{}}",
        ),
        (V2_ANSWER, "{'session':{'load':{},'list':{},'resume':{},'close':{}}}"),
        ("{'protocolVersion':2,'capabilities':{},'authMethods':[]}", "{}"),
        (
            "{'protocolVersion':2,'info':{'name':'a','version':'1'},'capabilities':{'session':{}},'authMethods':[{'type':'agent','methodId':'m','name':'M'}]}",
            "{'session':{'load':{},'list':{},'resume':{},'close':{}},'auth':{'logout':{}}}",
        ),
    ];
    for (answer, capabilities) in rows {
        assert_eq!(offered(&mut auto(), answer), capabilities, "{answer}");
    }
}

#[test]
fn the_shape_of_the_request_shows_the_dialect() {
    let rows = [
        ("{'protocolVersion':1}", Ok(V1)),
        ("{'protocolVersion':0}", Ok(V1)),
        ("{'protocolVersion':1,'info':{'name':'c','version':'1'}}", Ok(V1)),
        ("{'protocolVersion':2,'info':{'name':'c','version':'1'}}", Ok(V2)),
        ("{'protocolVersion':3,'info':{'name':'c','version':'1'}}", Ok(V2)),
        ("{'protocolVersion':2,'clientInfo':{'name':'c','version':'1'}}", Ok(DRAFT)),
        ("{'protocolVersion':2}", Ok(DRAFT)),
        ("{'protocolVersion':'1'}", Err("`protocolVersion`: expected a number")),
        ("{}", Err("missing field `protocolVersion`")),
    ];
    for (params, expected) in rows {
        let dialect = requested_dialect(Some(&params.replace('\'', "\""))).map_err(|error| error.to_string());
        assert_eq!(dialect, expected.map_err(str::to_owned), "{params}");
    }
    assert!(requested_dialect(None).is_err());
}

/// In the words of every dialect: the version that is older than all of ours is named with those that there are, and what
/// is no version is a mistake.
#[test]
fn only_a_version_that_is_older_than_ours_is_not_served() {
    let shapes = [
        "",
        ",'clientCapabilities':{}",
        ",'clientInfo':{'name':'c','version':'1'}",
        ",'info':{'name':'c','version':'1'}",
    ];
    for shape in shapes {
        let params = |version: &str| format!("{{'protocolVersion':{version}{shape}}}").replace('\'', "\"");
        let error = unsupported_version(Some(&params("0"))).unwrap();
        let said = "{'code':-32022,'message':'Unsupported protocol version','data':{'requested':0,'supported':[1,2]}}";
        for dialect in [V1, DRAFT, V2] {
            assert_eq!(write(&error, dialect), said, "{shape}");
        }
        for served in ["1", "2", "3", "65535"] {
            assert_eq!(unsupported_version(Some(&params(served))), None, "{served}{shape}");
            assert!(requested_dialect(Some(&params(served))).is_ok(), "{served}{shape}");
        }
        for no_version in ["-1", "0.5", "1.5", "65536", "1e99", "'0'", "'1'", "null", "true", "[]", "{}"] {
            assert_eq!(unsupported_version(Some(&params(no_version))), None, "{no_version}{shape}");
            assert!(requested_dialect(Some(&params(no_version))).is_err(), "{no_version}{shape}");
        }
    }
    assert_eq!(unsupported_version(None), None);
}

#[test]
fn what_a_client_understands_without_saying_so_is_written_down() {
    let rows = [
        (V1, "{'fs':{'readTextFile':true},'terminal':true}"),
        (DRAFT, "{'session':{'configOptions':{'boolean':{}}}}"),
        (V2, "{'session':{'compaction':{},'notices':{},'configOptions':{'boolean':{}}}}"),
    ];
    for (dialect, understood) in rows {
        let mut request = InitializeRequest { capabilities: files(), ..InitializeRequest::new(dialect.version()) };
        request.capabilities.terminal = true;
        understand_client(&mut request, dialect);
        assert_eq!(write(&request.capabilities, V1), understood, "{dialect:?}");
    }
}
