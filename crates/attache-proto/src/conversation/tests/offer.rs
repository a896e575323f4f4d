//! What either end serves.

use super::*;
use crate::method::{AgentRequest, ClientRequest, Method};
use crate::model::capability::ClientCapabilities;
use crate::model::initialize::InitializeResponse;

fn offer(answer: &str) -> Offer {
    Offer::from(&read::<InitializeResponse>(answer, V1))
}

#[test]
fn an_agent_serves_what_it_offers_and_what_its_dialect_requires() {
    let plain = offer("{'protocolVersion':1}");
    let full =
        offer("{'protocolVersion':1,'agentCapabilities':{'loadSession':true,'sessionCapabilities':{'fork':{}}}}");
    let rows = [
        // The dialects in which a plain agent serves it, and those in which one serves it that restores and forks.
        (Method::NewSession, vec![V1, DRAFT, V2], vec![V1, DRAFT, V2]),
        (Method::Prompt, vec![V1, DRAFT, V2], vec![V1, DRAFT, V2]),
        (Method::CloseSession, vec![V1, DRAFT, V2], vec![V1, DRAFT, V2]),
        (Method::SetConfigOption, vec![V1, DRAFT, V2], vec![V1, DRAFT, V2]),
        (Method::SetMode, vec![V1], vec![V1]),
        (Method::SetModel, vec![V1], vec![V1]),
        (Method::LoadSession, vec![], vec![V1, DRAFT]),
        (Method::ResumeSession, vec![V2], vec![V1, DRAFT, V2]),
        (Method::ForkSession, vec![], vec![V1, V2]),
        (Method::ListSessions, vec![V2], vec![V2]),
        (Method::CancelToolCall, vec![V2], vec![V2]),
        (Method::CancelTerminal, vec![V2], vec![V2]),
        (Method::DeleteSession, vec![], vec![]),
        (Method::Authenticate, vec![], vec![]),
    ];
    let serving = |offer: &Offer, method| {
        [V1, DRAFT, V2].into_iter().filter(|dialect| offer.serves(method, *dialect)).collect::<Vec<_>>()
    };
    for (method, of_plain, of_full) in rows {
        assert_eq!(serving(&plain, method), of_plain, "{method}");
        assert_eq!(serving(&full, method), of_full, "{method}");
    }
    let mut registered = plain;
    registered.methods.insert(Method::DeleteSession);
    assert_eq!(serving(&registered, Method::DeleteSession), [V1, DRAFT, V2]);
    registered.methods.insert(Method::SetTitle);
    assert_eq!(serving(&registered, Method::SetTitle), [V1, V2]);
}

#[test]
fn what_was_not_offered_is_refused() {
    let plain = offer("{'protocolVersion':1}");
    let images = offer(
        "{'protocolVersion':1,'agentCapabilities':{'promptCapabilities':{'image':true},'mcpCapabilities':{'http':true}}}",
    );
    let check = |offer: &Offer, method, params: &str, dialect| {
        let params = params.replace('\'', "\"");
        let request = ClientRequest::decode(method, Some(&params), dialect, &mut Vec::new()).unwrap().unwrap();
        offer.check(&request, dialect).map_err(|error| (error.code, error.message))
    };
    let content = Err((-32602, "prompt: this kind of content is not supported".to_owned()));
    let server = Err((-32602, "mcpServers: this kind of server is not supported".to_owned()));
    let text = "{'type':'text','text':'a'}";
    let link = "{'type':'resource_link','name':'a','uri':'file:///a'}";
    let image = "{'type':'image','mimeType':'image/png','data':''}";
    let audio = "{'type':'audio','mimeType':'audio/wav','data':''}";
    let other = "{'type':'_smell','of':'roses'}";
    for dialect in [V1, DRAFT, V2] {
        for (block, of_plain, of_images) in [
            (text, Ok(()), Ok(())),
            (link, Ok(()), Ok(())),
            (image, content.clone(), Ok(())),
            (audio, content.clone(), content.clone()),
            (other, content.clone(), content.clone()),
        ] {
            let params = format!("{{'sessionId':'s','prompt':[{text},{block}]}}");
            assert_eq!(check(&plain, Method::Prompt, &params, dialect), of_plain, "{block} {dialect:?}");
            assert_eq!(check(&images, Method::Prompt, &params, dialect), of_images, "{block} {dialect:?}");
        }
        let is_v2 = dialect == V2;
        let empty = check(&plain, Method::Prompt, "{'sessionId':'s','prompt':[]}", dialect);
        assert_eq!(empty.is_err(), is_v2, "{dialect:?}");
        // Version 1 leaves it to the client which servers it names.
        let http = "{'cwd':'/p','mcpServers':[{'type':'http','name':'h','url':'https://h','headers':[]}]}";
        let refused = if is_v2 { server.clone() } else { Ok(()) };
        assert_eq!(check(&plain, Method::NewSession, http, dialect), refused, "{dialect:?}");
        assert_eq!(check(&images, Method::NewSession, http, dialect), Ok(()), "{dialect:?}");
    }
}

#[test]
fn a_terminal_login_is_offered_to_clients_with_a_terminal() {
    let offer =
        offer("{'protocolVersion':1,'authMethods':[{'id':'k','name':'K'},{'type':'terminal','id':'t','name':'T'}]}");
    for (capabilities, methods) in [("{}", 1), ("{'auth':{'terminal':true}}", 2)] {
        let params = format!("{{'protocolVersion':1,'clientCapabilities':{capabilities}}}").replace('\'', "\"");
        let (dialect, _, response) = offer.handle_initialize(Some(&params), &mut Vec::new()).unwrap();
        assert_eq!((dialect, response.auth_methods.len()), (V1, methods), "{capabilities}");
    }
}

#[test]
fn a_client_serves_files_and_commands_in_version_1_only() {
    let rows = [
        ("{}", Method::RequestPermission, vec![V1, DRAFT, V2]),
        ("{}", Method::ReadTextFile, vec![]),
        ("{'fs':{'readTextFile':true}}", Method::ReadTextFile, vec![V1]),
        ("{'fs':{'readTextFile':true}}", Method::WriteTextFile, vec![]),
        ("{'fs':{'writeTextFile':true}}", Method::WriteTextFile, vec![V1]),
        ("{'terminal':true}", Method::CreateTerminal, vec![V1]),
        ("{'terminal':true}", Method::TerminalOutput, vec![V1]),
        ("{'terminal':true}", Method::WaitForTerminalExit, vec![V1]),
        ("{'terminal':true}", Method::KillTerminal, vec![V1]),
        ("{'terminal':true}", Method::ReleaseTerminal, vec![V1]),
        ("{}", Method::CreateTerminal, vec![]),
        ("{}", Method::CreateElicitation, vec![]),
        ("{'elicitation':{'form':{}}}", Method::CreateElicitation, vec![V1, V2]),
        ("{}", Method::McpMessage, vec![]),
    ];
    for (capabilities, method, served) in rows {
        let offer =
            ClientOffer { capabilities: read::<ClientCapabilities>(capabilities, V1), ..ClientOffer::default() };
        let serving: Vec<Dialect> =
            [V1, DRAFT, V2].into_iter().filter(|dialect| offer.serves(method, *dialect)).collect();
        assert_eq!(serving, served, "{capabilities} {method}");
    }
    let offer = ClientOffer { methods: [Method::McpMessage].into(), ..ClientOffer::default() };
    assert!(offer.serves(Method::McpMessage, V2) && !offer.serves(Method::McpMessage, DRAFT));
}

#[test]
fn a_question_of_a_kind_that_was_not_offered_is_refused() {
    let form = "{'sessionId':'s','message':'?','mode':'form','requestedSchema':{'type':'object','properties':{}}}";
    let url = "{'sessionId':'s','message':'?','mode':'url','elicitationId':'e','url':'https://a'}";
    for (capabilities, question, is_fine) in [
        ("{'elicitation':{'form':{}}}", form, true),
        ("{'elicitation':{'form':{}}}", url, false),
        ("{'elicitation':{'url':{}}}", form, false),
        ("{'elicitation':{'url':{}}}", url, true),
    ] {
        let offer =
            ClientOffer { capabilities: read::<ClientCapabilities>(capabilities, V1), ..ClientOffer::default() };
        let params = question.replace('\'', "\"");
        let request =
            AgentRequest::decode(Method::CreateElicitation, Some(&params), V1, &mut Vec::new()).unwrap().unwrap();
        assert_eq!(offer.check(&request).is_ok(), is_fine, "{capabilities} {question}");
    }
}
