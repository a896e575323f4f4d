//! MCP servers that the client carries messages to.

use crate::codec::{Decode, Encode, ids, model_type, peek_field, record};
use crate::json::{DecodeError, RawJson, Reader, Reason, Writer};
use crate::model::Meta;
use crate::model::error::ErrorObject;

ids! {
    /// An MCP server that is reached through the client.
    pub struct McpServerId;
    /// A request to an MCP server that is reached through the client.
    pub struct McpRequestId;
}

record! {
    /// A server that the client carries messages to (unstable).
    pub struct McpServerAcp {
        required {
            /// Its name.
            name: String = "name",
            /// Its id in the messages.
            server_id: McpServerId = "serverId",
        }
    }

    /// A request of the agent to an MCP server of the client (unstable).
    pub struct McpMessageRequest {
        required {
            /// The server.
            server_id: McpServerId = "serverId",
            /// The id of the request.
            request_id: McpRequestId = "requestId",
            /// The method, in MCP's words.
            method: String = "method",
        }
        optional {
            /// The parameters, in MCP's words.
            params: Option<RawJson> = "params" strict,
        }
    }

    /// A message of the client's MCP server that belongs to a request of the agent (unstable).
    pub struct McpMessageNotification {
        required {
            /// The server.
            server_id: McpServerId = "serverId",
            /// The request that it belongs to.
            request_id: McpRequestId = "requestId",
            /// The method, in MCP's words.
            method: String = "method",
        }
        optional {
            /// The parameters, in MCP's words.
            params: Option<RawJson> = "params" strict,
        }
    }
}

/// The answer of an MCP server (unstable).
#[derive(Debug, Clone, PartialEq)]
pub enum McpMessageResponse {
    /// It did what it was asked.
    Result {
        /// The result, in MCP's words.
        result: RawJson,
        /// Custom metadata (`_meta`), kept as it came.
        meta: Option<Meta>,
    },
    /// It did not.
    Error {
        /// The error object, as it came.
        error: RawJson,
        /// Custom metadata (`_meta`), kept as it came.
        meta: Option<Meta>,
    },
}

impl McpMessageResponse {
    /// The error, if it is one.
    pub fn error(&self) -> Option<ErrorObject> {
        match self {
            McpMessageResponse::Result { .. } => None,
            McpMessageResponse::Error { error, .. } => error.to_model().ok(),
        }
    }
}

impl Decode for McpMessageResponse {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let result = peek_field::<RawJson>(reader, "result")?;
        let error = peek_field::<RawJson>(reader, "error")?;
        let meta = peek_field::<RawJson>(reader, "_meta")?.and_then(|raw| Meta::from_raw(raw).ok());
        reader.skip()?;
        match (result, error) {
            (Some(result), None) => Ok(McpMessageResponse::Result { result, meta }),
            (None, Some(error)) => {
                error.to_model::<ErrorObject>().map_err(|wrong| wrong.in_field("error"))?;
                Ok(McpMessageResponse::Error { error, meta })
            }
            (None, None) => Err(DecodeError::new(Reason::Missing).in_field("result")),
            (Some(_), Some(_)) => Err(DecodeError::new(Reason::Invalid("`result` and `error` exclude each other"))),
        }
    }
}

impl Encode for McpMessageResponse {
    fn encode(&self, writer: &mut Writer<'_>) {
        let (key, value, meta) = match self {
            McpMessageResponse::Result { result, meta } => ("result", result, meta),
            McpMessageResponse::Error { error, meta } => ("error", error, meta),
        };
        writer.begin_object();
        writer.key(key);
        value.encode(writer);
        if let Some(meta) = meta {
            writer.key("_meta");
            meta.encode(writer);
        }
        writer.end_object();
    }
}

model_type!(McpMessageResponse);
