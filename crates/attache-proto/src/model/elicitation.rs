//! Questions of the agent to the user: a form to fill in, or an address to visit.

use super::form::ElicitationSchema;
use super::request::RequestId;
use super::session::SessionId;
use super::tool::ToolCallId;
use crate::codec::{Blank, Decode, Encode, ids, model_type, peek_field, record, union};
use crate::json::{DecodeError, Kind, RawJson, Reader, Reason, Writer};

ids! {
    /// A question of the agent that is answered elsewhere, named by the agent.
    pub struct ElicitationId;
}

record! {
    /// Asks the user something.
    pub struct CreateElicitationRequest {
        required {
            /// The question.
            message: String = "message",
        }
        flat {
            /// How it is to be answered.
            mode: ElicitationMode,
        }
    }

    /// A form to fill in.
    pub struct ElicitationForm bare {
        required {
            /// The fields of the form.
            requested_schema: ElicitationSchema = "requestedSchema",
        }
        flat {
            /// What the question belongs to.
            scope: ElicitationScope,
        }
    }

    /// An address to visit.
    pub struct ElicitationUrl bare {
        required {
            /// The id of the question, for when it is answered.
            elicitation_id: ElicitationId = "elicitationId",
            /// The address.
            url: String = "url",
        }
        flat {
            /// What the question belongs to.
            scope: ElicitationScope,
        }
    }

    /// A question that belongs to a session.
    pub struct SessionScope bare {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// The tool call that it is asked for.
            tool_call_id: Option<ToolCallId> = "toolCallId",
        }
    }

    /// A question that belongs to a request of the client.
    pub struct RequestScope bare {
        required {
            /// The request.
            request_id: RequestId = "requestId",
        }
    }

    /// The user's answer.
    pub struct CreateElicitationResponse {
        flat {
            /// What the user did. What we do not know counts as cancelled.
            action: ElicitationAction,
        }
    }

    /// The user answered.
    pub struct ElicitationAccept bare {
        optional {
            /// The values of the form's fields.
            content: Option<Vec<(String, ElicitationValue)>> = "content" strict,
        }
    }

    /// The user said no.
    pub struct ElicitationDecline bare {}

    /// The user went away.
    pub struct ElicitationCancel bare {}

    /// The address was visited, the question is answered.
    pub struct CompleteElicitationNotification {
        required {
            /// The question.
            elicitation_id: ElicitationId = "elicitationId",
        }
    }
}

union! {
    /// How a question is to be answered.
    pub enum ElicitationMode tag "mode" within ["message", "_meta"] {
        /// By filling in a form.
        Form(ElicitationForm) = "form",
        /// By visiting an address.
        Url(ElicitationUrl) = "url",
    }

    /// What the user did with a question.
    pub enum ElicitationAction tag "action" within ["_meta"] {
        /// Answered it.
        Accept(ElicitationAccept) = "accept",
        /// Said no.
        Decline(ElicitationDecline) = "decline",
        /// Went away.
        Cancel(ElicitationCancel) = "cancel",
    }
}

impl CreateElicitationRequest {
    /// What the question belongs to; an unknown mode does not tell.
    pub fn scope(&self) -> Option<&ElicitationScope> {
        match &self.mode {
            ElicitationMode::Form(form) => Some(&form.scope),
            ElicitationMode::Url(url) => Some(&url.scope),
            ElicitationMode::Other(_) => None,
        }
    }

    /// The session that the question belongs to.
    pub fn session_id(&self) -> Option<&SessionId> {
        match self.scope()? {
            ElicitationScope::Session(scope) => Some(&scope.session_id),
            ElicitationScope::Request(_) => None,
        }
    }
}

impl CreateElicitationResponse {
    /// The user answered with these values.
    pub fn accept(content: Vec<(String, ElicitationValue)>) -> Self {
        CreateElicitationResponse::new(ElicitationAccept { content: Some(content) })
    }

    /// The user said no.
    pub fn decline() -> Self {
        CreateElicitationResponse::new(ElicitationDecline::new())
    }

    /// The user went away.
    pub fn cancel() -> Self {
        CreateElicitationResponse::new(ElicitationCancel::new())
    }
}

/// What a question belongs to: one session, or one request outside of sessions.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationScope {
    /// A session.
    Session(SessionScope),
    /// A request of the client.
    Request(RequestScope),
}

crate::codec::into_field!(ElicitationScope);

impl From<SessionScope> for ElicitationScope {
    fn from(scope: SessionScope) -> Self {
        ElicitationScope::Session(scope)
    }
}

impl From<RequestScope> for ElicitationScope {
    fn from(scope: RequestScope) -> Self {
        ElicitationScope::Request(scope)
    }
}

impl ElicitationScope {
    fn encode_fields(&self, writer: &mut Writer<'_>) {
        match self {
            ElicitationScope::Session(scope) => scope.encode_fields(writer),
            ElicitationScope::Request(scope) => scope.encode_fields(writer),
        }
    }
}

impl Blank for ElicitationScope {
    fn blank() -> Self {
        ElicitationScope::Request(RequestScope::blank())
    }
}

impl Decode for ElicitationScope {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // `toolCallId` next to a request is no mistake that anybody makes; the two ids together are.
        match (peek_field::<RawJson>(reader, "sessionId")?, reader.has_key("requestId")?) {
            (Some(_), false) => SessionScope::decode(reader).map(ElicitationScope::Session),
            (None, true) => RequestScope::decode(reader).map(ElicitationScope::Request),
            (Some(_), true) => Err(DecodeError::new(Reason::Invalid("`sessionId` and `requestId` exclude each other"))),
            (None, false) => Err(DecodeError::new(Reason::Missing).in_field("sessionId")),
        }
    }
}

/// The value of a form's field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationValue {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Boolean(bool),
    /// Choices.
    Texts(Vec<String>),
    /// Something else, kept as it came.
    Other(RawJson),
}

impl Decode for ElicitationValue {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.peek()? {
            Kind::String => ElicitationValue::Text(String::decode(reader)?),
            Kind::Bool => ElicitationValue::Boolean(reader.bool()?),
            Kind::Number => match reader.look_ahead(i64::decode) {
                Ok(_) => ElicitationValue::Integer(i64::decode(reader)?),
                Err(_) => ElicitationValue::Number(f64::decode(reader)?),
            },
            Kind::Array => match reader.look_ahead(Vec::<String>::decode) {
                Ok(_) => ElicitationValue::Texts(Vec::decode(reader)?),
                Err(_) => ElicitationValue::Other(RawJson::decode(reader)?),
            },
            Kind::Null | Kind::Object => ElicitationValue::Other(RawJson::decode(reader)?),
        })
    }
}

impl Encode for ElicitationValue {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            ElicitationValue::Text(text) => text.encode(writer),
            ElicitationValue::Integer(number) => number.encode(writer),
            ElicitationValue::Number(number) => number.encode(writer),
            ElicitationValue::Boolean(yes) => yes.encode(writer),
            ElicitationValue::Texts(texts) => texts.encode(writer),
            ElicitationValue::Other(raw) => raw.encode(writer),
        }
    }
}

model_type!(ElicitationValue);
