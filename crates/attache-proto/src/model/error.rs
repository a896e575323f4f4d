//! Errors as they are on the wire: a code, a short message, and data for programs.

use super::auth::AuthMethod;
use super::session::SessionId;
use std::fmt;

use crate::Dialect;
use crate::codec::{Encode, record};
use crate::json::{DecodeError, RawJson, Reader, Writer};

record! {
    /// Why a request failed, or work ended.
    pub struct ErrorObject bare {
        required {
            /// What went wrong, for programs.
            code: i32 = "code",
            /// What went wrong, for people.
            message: String = "message",
        }
        optional {
            /// What depends on the code.
            data: Option<RawJson> = "data" strict,
        }
    }
}

impl ErrorObject {
    /// The text was not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON was not a message, or not one for this moment.
    pub const INVALID_REQUEST: i32 = -32600;
    /// There is no such method, or it was not offered.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Something went wrong on this side.
    pub const INTERNAL_ERROR: i32 = -32603;
    /// The user has to log in first.
    pub const AUTH_REQUIRED: i32 = -32000;
    /// There is no such session, file or other thing.
    pub const NOT_FOUND: i32 = -32002;
    /// It is not allowed. Our choice, in the range that the v1 text leaves to implementations.
    pub const PERMISSION_DENIED: i32 = -32003;
    /// None of the agent's versions fits.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
    /// Too much was asked too quickly. Our choice, as above.
    pub const RATE_LIMITED: i32 = -32029;
    /// The request was cancelled.
    pub const CANCELLED: i32 = -32800;

    /// The text was not JSON.
    pub fn parse_error() -> Self {
        ErrorObject::new(Self::PARSE_ERROR, "Parse error")
    }

    /// The JSON was not a message, or not one for this moment; says why.
    pub fn invalid_request(why: &'static str) -> Self {
        ErrorObject::new(Self::INVALID_REQUEST, why)
    }

    /// There is no such method. Its name goes into the data if it looks like one: whatever else a peer made up is not
    /// repeated.
    pub fn method_not_found(method: Option<&str>) -> Self {
        let is_name = |name: &&str| is_plain(name, b"_/$.-", LONGEST_METHOD);
        let data = method.filter(is_name).map(|method| object(|writer| field(writer, "method", method)));
        ErrorObject { data, ..ErrorObject::new(Self::METHOD_NOT_FOUND, "Method not found") }
    }

    /// The parameters do not fit; says where and why, never what was there.
    pub fn invalid_params(error: &DecodeError) -> Self {
        ErrorObject::new(Self::INVALID_PARAMS, format!("Invalid params: {error}"))
    }

    /// Params that can be read but are wrong; `why` tells which and why, and repeats nothing of them.
    pub fn wrong_params(why: &'static str) -> Self {
        ErrorObject::new(Self::INVALID_PARAMS, why)
    }

    /// Something went wrong on this side; says what.
    pub fn internal(what: impl Into<String>) -> Self {
        ErrorObject::new(Self::INTERNAL_ERROR, what)
    }

    /// The user has to log in, in one of these ways.
    pub fn auth_required(methods: &[AuthMethod]) -> Self {
        let data = object(|writer| {
            field(writer, "reason", "auth_required");
            writer.key("authMethods");
            writer.begin_array();
            for method in methods {
                writer.item();
                method.encode(writer);
            }
            writer.end_array();
        });
        ErrorObject { data: Some(data), ..ErrorObject::new(Self::AUTH_REQUIRED, "Authentication required") }
    }

    /// There is no such session. Its id goes into the data if it looks like one: a peer may have made it up.
    pub fn session_not_found(session_id: &SessionId) -> Self {
        let id = Some(session_id.as_str()).filter(|id| is_plain(id, b"_.:-", LONGEST_ID));
        let data = id.map(|id| object(|writer| field(writer, "sessionId", id)));
        ErrorObject { data, ..ErrorObject::new(Self::NOT_FOUND, "Session not found") }
    }

    /// There is no such thing; says what was looked for.
    pub fn not_found(what: impl Into<String>) -> Self {
        ErrorObject::new(Self::NOT_FOUND, what)
    }

    /// The request was cancelled.
    pub fn cancelled() -> Self {
        ErrorObject::new(Self::CANCELLED, "Request cancelled")
    }

    /// None of our versions is at most the one requested.
    pub fn unsupported_version(requested: u16, supported: &[u16]) -> Self {
        let data = object(|writer| {
            writer.key("requested");
            requested.encode(writer);
            writer.key("supported");
            supported.to_vec().encode(writer);
        });
        ErrorObject { data: Some(data), ..ErrorObject::new(Self::UNSUPPORTED_VERSION, "Unsupported protocol version") }
    }

    /// Too much was asked too quickly: come back after so many seconds.
    pub fn rate_limited(retry_after_seconds: u64) -> Self {
        let data = object(|writer| {
            field(writer, "reason", "rate_limited");
            writer.key("retryAfter");
            retry_after_seconds.encode(writer);
        });
        ErrorObject { data: Some(data), ..ErrorObject::new(Self::RATE_LIMITED, "Rate limited") }
    }

    /// It is not allowed; says what would have to be.
    pub fn permission_denied(scope: &str) -> Self {
        let data = object(|writer| {
            field(writer, "reason", "permission_denied");
            field(writer, "scope", scope);
        });
        ErrorObject { data: Some(data), ..ErrorObject::new(Self::PERMISSION_DENIED, "Permission denied") }
    }

    /// The reason in the data, such as `rate_limited`.
    pub fn reason(&self) -> Option<String> {
        self.datum("reason")
    }

    /// After how many seconds to try again.
    pub fn retry_after(&self) -> Option<u64> {
        let seconds: f64 = self.datum("retryAfter")?;
        // A fraction is rounded up, so that nobody comes back too early.
        (seconds >= 0.0).then_some(seconds.ceil() as u64)
    }

    /// What would have to be allowed.
    pub fn scope(&self) -> Option<String> {
        self.datum("scope")
    }

    /// The ways to log in that the data names.
    pub fn auth_methods(&self) -> Vec<AuthMethod> {
        self.datum("authMethods").unwrap_or_default()
    }

    /// The session that was not found.
    pub fn session_id(&self) -> Option<SessionId> {
        self.datum("sessionId")
    }

    fn datum<T: crate::Decode>(&self, key: &str) -> Option<T> {
        let raw = self.data.as_ref()?.get(key)?;
        Reader::new(raw.as_str(), Dialect::V1).decode().ok()
    }
}

/// Whether a text is letters, digits and these, and no longer than this.
fn is_plain(text: &str, besides: &[u8], longest: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || besides.contains(&byte);
    (1..=longest).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The longest id that an error repeats, in bytes: a few times a UUID. A longer one would make a short answer long.
const LONGEST_ID: usize = 128;

/// The longest name of a method that an error repeats, in bytes: twice the longest that there is.
const LONGEST_METHOD: usize = 64;

/// The data of an error. Only the v1 text knows data that differs by dialect (`authMethods`), so all is written so.
fn object(fields: impl FnOnce(&mut Writer<'_>)) -> RawJson {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, Dialect::V1);
    writer.begin_object();
    fields(&mut writer);
    writer.end_object();
    RawJson::trusted(String::from_utf8(buffer).expect("the writer takes strings and adds ASCII"))
}

fn field(writer: &mut Writer<'_>, key: &str, value: &str) {
    writer.key(key);
    writer.string(value);
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}
