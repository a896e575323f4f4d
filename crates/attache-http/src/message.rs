//! What the transport has to know of a message: its id, its method, its session. The rest is the program's.

use attache::Dialect;
use attache::model::request::RequestId;
use attache::proto::json::Reader;
use attache::proto::rpc::{Envelope, Incoming, parse};

/// The key in `_meta` of `initialize` by which both ends agree that a lost connection is taken up again.
pub(crate) const RESUME: &str = "attache/resume";

/// What a message is.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    /// A request, with its id.
    Request(RequestId),
    /// A notification.
    Notification,
    /// The answer to a request.
    Response(RequestId),
}

/// The parts of a message that decide which way it goes.
#[derive(Debug, PartialEq)]
pub(crate) struct Parts<'a> {
    pub(crate) kind: Kind,
    /// The method, unless it is a response.
    pub(crate) method: std::borrow::Cow<'a, str>,
    /// The params of a request or a notification, the result of a response.
    pub(crate) body: Option<&'a str>,
}

/// Why a text is no single message.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum NotOne {
    /// It is not JSON.
    NotJson,
    /// It is an array.
    Batch,
    /// It is JSON that breaks the rules of JSON-RPC.
    Invalid,
}

/// The parts of a text that is one message.
pub(crate) fn parts(text: &str) -> Result<Parts<'_>, NotOne> {
    match parse(text) {
        Envelope::One(Ok(Incoming::Request { id, method, params })) => {
            Ok(Parts { kind: Kind::Request(id), method, body: params })
        }
        Envelope::One(Ok(Incoming::Notification { method, params })) => {
            Ok(Parts { kind: Kind::Notification, method, body: params })
        }
        Envelope::One(Ok(Incoming::Response { id, outcome })) => {
            Ok(Parts { kind: Kind::Response(id), method: "".into(), body: outcome.ok() })
        }
        Envelope::One(Err(_)) => Err(NotOne::Invalid),
        Envelope::NotJson { .. } => Err(NotOne::NotJson),
        _ => Err(NotOne::Batch),
    }
}

impl Parts<'_> {
    /// The session that a message is about: `params.sessionId`, or `result.sessionId` of an answer.
    pub(crate) fn session(&self) -> Option<String> {
        string_member(self.body?, "sessionId")
    }

    /// Whether `_meta` of an `initialize`, or of its answer, says that connections are taken up again.
    pub(crate) fn wants_resume(&self) -> bool {
        let meta = self.body.and_then(|body| raw_member(body, "_meta"));
        meta.and_then(|meta| raw_member(meta, RESUME)).is_some_and(|value| value == "true")
    }
}

/// How the library writes an update.
const UPDATE_START: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;

/// The session of an update as the library writes it, without a look at the rest. Most messages are such updates; one that is
/// written in another way is no different, only slower.
pub(crate) fn updated_session(text: &str) -> Option<&str> {
    let (session, _) = text.strip_prefix(UPDATE_START)?.split_once('"')?;
    (!session.contains('\\')).then_some(session)
}

/// The value of a member of an object, as its text.
pub(crate) fn raw_member<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let mut reader = Reader::new(object, Dialect::V1);
    reader.begin_object().ok()?;
    let mut first = true;
    while let Some(name) = reader.next_key(&mut first).ok()? {
        let value = reader.raw().ok()?;
        if name == key {
            return Some(value);
        }
    }
    None
}

/// The value of a member of an object that is a string.
pub(crate) fn string_member(object: &str, key: &str) -> Option<String> {
    Reader::new(raw_member(object, key)?, Dialect::V1).string().ok().map(Into::into)
}

/// The same message with `"attache/resume": true` in `_meta` of its params or its result.
pub(crate) fn with_resume(text: &str) -> String {
    let Ok(Parts { body: Some(body), .. }) = parts(text) else { return text.to_owned() };
    let (Some(start), true) = (offset_in(text, body), body.starts_with('{')) else { return text.to_owned() };
    let changed = match raw_member(body, "_meta").filter(|meta| meta.starts_with('{')) {
        Some(meta) => {
            let Some(at) = offset_in(body, meta) else { return text.to_owned() };
            let (before, after) = (&body[..at], &body[at + meta.len()..]);
            format!("{before}{}{after}", with_member(meta))
        }
        None if raw_member(body, "_meta").is_some() => return text.to_owned(),
        None => with_first(body, &format!("\"_meta\":{{\"{RESUME}\":true}}")),
    };
    format!("{}{changed}{}", &text[..start], &text[start + body.len()..])
}

fn with_member(meta: &str) -> String {
    if raw_member(meta, RESUME).is_some() { meta.to_owned() } else { with_first(meta, &format!("\"{RESUME}\":true")) }
}

/// An object with one more member, before the others.
fn with_first(object: &str, member: &str) -> String {
    let rest = object[1..].trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!("{{{member}{comma}{rest}")
}

/// Where `part` begins in `whole`, which it was cut from.
fn offset_in(whole: &str, part: &str) -> Option<usize> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start)
}

const RECEIVED_START: &str = r#"{"jsonrpc":"2.0","method":"_attache/received","params":{"count":"#;

/// The notification that tells how many messages of a stream have arrived. Only between ends that agreed on it.
pub(crate) fn received(count: u64) -> String {
    format!("{RECEIVED_START}{count}}}}}")
}

/// The count of a notification that [`received`] made.
pub(crate) fn read_received(text: &str) -> Option<u64> {
    text.strip_prefix(RECEIVED_START)?.strip_suffix("}}")?.parse().ok()
}

/// What a server says to whoever comes while it stops.
pub(crate) const STOPPING: &str = "the server is stopping";

/// The notification that the server stops. Only between ends that agreed to take connections up again.
pub(crate) const STOPPING_NOTICE: &str = r#"{"jsonrpc":"2.0","method":"_attache/stopping"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_by_its_parts() {
        let request = parts(r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"a":1,"sessionId":"s"}}"#);
        let request = request.unwrap();
        assert_eq!((request.kind, request.method.as_ref()), (Kind::Request(1.into()), "session/prompt"));
        let answer = parts(r#"{"jsonrpc":"2.0","id":"x","result":{"sessionId":"s2"}}"#).unwrap();
        assert_eq!(answer.session().as_deref(), Some("s2"));
        assert_eq!(parts("[]"), Err(NotOne::Batch));
        assert_eq!(parts("{"), Err(NotOne::NotJson));
        assert_eq!(parts("{}"), Err(NotOne::Invalid));
    }

    #[test]
    fn the_wish_to_resume_is_added_to_what_is_there() {
        let rows = [
            (r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#, r#"{"_meta":{"attache/resume":true}}"#),
            (
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"v":1,"_meta":{"k":2}}}"#,
                r#"{"v":1,"_meta":{"attache/resume":true,"k":2}}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":0,"result":{ "v":1 }}"#, r#"{"_meta":{"attache/resume":true},"v":1 }"#),
        ];
        for (text, expected) in rows {
            let changed = with_resume(text);
            let parts = parts(&changed).unwrap();
            assert_eq!(parts.body, Some(expected));
            assert!(parts.wants_resume());
            assert_eq!(with_resume(&changed), changed);
        }
        for untouched in [r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"_meta":null}}"#, "junk", "[1]"] {
            assert_eq!(with_resume(untouched), untouched);
        }
    }

    #[test]
    fn the_session_of_an_update_is_told_without_reading_it() {
        let update = |params: &str| format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#);
        for id in ["s1", "", "ü"] {
            let text = update(&format!(r#"{{"sessionId":"{id}","update":{{"sessionId":"other"}}}}"#));
            assert_eq!(updated_session(&text), Some(id));
            assert_eq!(parts(&text).unwrap().session().as_deref(), Some(id));
        }
        for params in [
            r#"{"update":{},"sessionId":"s1"}"#,
            r#"{"sessionId":"\u0073"}"#,
            r#"{"sessionId":null}"#,
            r#"{"sessionId":"s"#,
        ] {
            assert_eq!(updated_session(&update(params)), None, "{params}");
        }
        assert_eq!(
            updated_session(r#"{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"s"}}"#),
            None
        );
    }

    #[test]
    fn a_count_is_read_as_it_was_written() {
        assert_eq!(read_received(&received(17)), Some(17));
        assert_eq!(read_received(r#"{"jsonrpc":"2.0","method":"_attache/received","params":{"count":"x"}}"#), None);
    }
}
