//! Envelopes and params: nothing makes them panic, and what is written is read back as the same.

use attache_proto::json::{DecodeError, RawJson, Reader, Writer};
use attache_proto::method::{
    AgentNotification, AgentRequest, ClientNotification, ClientRequest, Method, Request, decode_result,
};
use attache_proto::model::auth::AuthenticateRequest;
use attache_proto::model::config::SetConfigOptionRequest;
use attache_proto::model::elicitation::CreateElicitationRequest;
use attache_proto::model::fs::ReadTextFileRequest;
use attache_proto::model::initialize::InitializeRequest;
use attache_proto::model::permission::PermissionRequest;
use attache_proto::model::prompt::PromptRequest;
use attache_proto::model::session::{ListSessionsRequest, LoadSessionRequest, NewSessionRequest, ResumeSessionRequest};
use attache_proto::model::terminal::{CreateTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest};
use attache_proto::model::tool::ToolCallContent;
use attache_proto::model::unstable::{
    AuthStatusRequest, ForkSessionRequest, ListProvidersRequest, McpMessageRequest, SessionStatusRequest,
    SetTitleRequest,
};
use attache_proto::rpc::parse;
use attache_proto::{Decode, Dialect, Encode};

use crate::input::Input;
use crate::message::{PARAMS, UPDATES, fill, json};

/// What is decoded and encoded in a dialect decodes to the same again, is not much longer than what came, and can be read
/// in every dialect that it is written in.
pub fn decoding(data: &[u8]) {
    let mut input = Input::new(data);
    let dialect = input.dialect();
    let text = match input.below(8) {
        0 => String::from_utf8_lossy(input.rest()).into_owned(),
        1 => json(&mut input, 4),
        2..=4 => {
            let update = fill(input.pick(UPDATES), &mut input, 3);
            format!(r#"{{"sessionId":"s","update":{update}}}"#)
        }
        _ => fill(input.pick(PARAMS), &mut input, 3),
    };
    let _ = parse(&text);
    for method in Method::ALL.iter().copied() {
        check_params(&text, dialect, |text, dialect| {
            ClientRequest::decode(method, Some(text), dialect, &mut Vec::new())
                .map(|decoded| decoded.map(|request| write(|writer| request.encode_params(writer))))
        });
        check_params(&text, dialect, |text, dialect| {
            AgentRequest::decode(method, Some(text), dialect, &mut Vec::new())
                .map(|decoded| decoded.map(|request| write(|writer| request.encode_params(writer))))
        });
        check_params(&text, dialect, |text, dialect| {
            ClientNotification::decode(method, Some(text), dialect, &mut Vec::new())
                .map(|decoded| decoded.map(|news| write(|writer| news.encode_params(writer))))
        });
        check_params(&text, dialect, |text, dialect| {
            AgentNotification::decode(method, Some(text), dialect, &mut Vec::new())
                .map(|decoded| decoded.map(|news| write(|writer| news.encode_params(writer))))
        });
    }
    check_results(&text, dialect);
}

/// The text of a value in each dialect, and whether the dialect has words for all of it.
type Written = [(String, bool); 3];

const DIALECTS: [Dialect; 3] = [Dialect::V1, Dialect::V2Draft, Dialect::V2];

fn write(write: impl Fn(&mut Writer<'_>)) -> Written {
    DIALECTS.map(|dialect| {
        let mut buffer = Vec::new();
        let mut writer = Writer::new(&mut buffer, dialect);
        write(&mut writer);
        let is_whole = writer.lost().is_empty();
        (String::from_utf8(buffer).unwrap(), is_whole)
    })
}

fn check_params(text: &str, dialect: Dialect, decode: impl Fn(&str, Dialect) -> Option<Result<Written, DecodeError>>) {
    check(text, dialect, |text, dialect| decode(text, dialect).and_then(Result::ok));
}

fn check(text: &str, dialect: Dialect, recode: impl Fn(&str, Dialect) -> Option<Written>) {
    let Some(written) = recode(text, dialect) else { return };
    for (index, to) in DIALECTS.into_iter().enumerate() {
        let (first, is_whole) = &written[index];
        let context = || format!("{text} in {dialect:?}, written in {to:?} as {first}");
        RawJson::new(first).unwrap_or_else(|error| panic!("{error}: {}", context()));
        // Escapes may take six bytes for one, a patch repeats names and lines, and defaults are spelled out.
        assert!(first.len() <= 8 * text.len() + 2048, "{} bytes become {}: {}", text.len(), first.len(), context());
        let again = recode(first, to).unwrap_or_else(|| panic!("is not read: {}", context()));
        let (second, _) = &again[index];
        if *is_whole && to == dialect {
            assert_eq!(first, second, "{}", context());
        } else {
            // What another dialect leaves out may leave something empty behind, and absence may mean something there.
            let third = recode(second, to).unwrap_or_else(|| panic!("{second} is not read: {}", context()));
            assert_eq!(*second, third[index].0, "{}", context());
        }
    }
}

fn check_results(text: &str, dialect: Dialect) {
    macro_rules! results {
        ($($request:ty,)*) => {$( check_result::<<$request as Request>::Response>(text, dialect); )*};
    }
    results! {
        InitializeRequest, AuthenticateRequest, AuthStatusRequest, NewSessionRequest, LoadSessionRequest,
        ResumeSessionRequest, ListSessionsRequest, ForkSessionRequest, SessionStatusRequest, SetTitleRequest,
        SetConfigOptionRequest, PromptRequest, ListProvidersRequest, PermissionRequest, ReadTextFileRequest,
        CreateTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest, CreateElicitationRequest,
        McpMessageRequest,
    }
    check(text, dialect, |text, dialect| {
        let content: ToolCallContent = Reader::new(text, dialect).decode().ok()?;
        Some(write(|writer| content.encode(writer)))
    });
}

fn check_result<T: Decode + Encode>(text: &str, dialect: Dialect) {
    check(text, dialect, |text, dialect| {
        let value: T = decode_result(text, dialect, &mut Vec::new()).ok()?;
        Some(write(|writer| value.encode(writer)))
    });
}
