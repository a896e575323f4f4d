//! MCP servers that a session uses, and the messages that a client carries to them.

use super::{ErrorObject, McpRequestId, McpServerId, Meta, Secret};
use crate::codec::{Decode, Encode, peek_field, record, serde_through_json, union};
use crate::json::{DecodeError, RawJson, Reader, Reason, Writer};

union! {
    /// An MCP server to connect to.
    pub enum McpServer tag "type" else Stdio in [V1] {
        /// A program to start.
        Stdio(McpServerStdio) = "stdio",
        /// A server that speaks HTTP.
        Http(McpServerHttp) = "http",
        /// A server that speaks the old HTTP with events.
        Sse(McpServerSse) = "sse" in [V1, V2Draft],
        /// A server that the client carries messages to (unstable).
        Acp(McpServerAcp) = "acp",
    }
}

record! {
    /// A program to start.
    pub struct McpServerStdio {
        required {
            /// Its name.
            name: String = "name",
            /// The path of the program.
            command: String = "command",
        }
        optional {
            /// Its arguments.
            args: Vec<String> = "args" strict shown_before_v2,
            /// Its variables.
            env: Vec<EnvVariable> = "env" strict shown_before_v2,
        }
    }

    /// A server that speaks HTTP.
    pub struct McpServerHttp {
        required {
            /// Its name.
            name: String = "name",
            /// Where it is.
            url: String = "url",
        }
        optional {
            /// Headers of every request to it.
            headers: Vec<HttpHeader> = "headers" strict shown_before_v2,
        }
    }

    /// A server that speaks the old HTTP with events.
    pub struct McpServerSse {
        required {
            /// Its name.
            name: String = "name",
            /// Where it is.
            url: String = "url",
        }
        optional {
            /// Headers of every request to it.
            headers: Vec<HttpHeader> = "headers" strict shown_before_v2,
        }
    }

    /// A server that the client carries messages to (unstable).
    pub struct McpServerAcp {
        required {
            /// Its name.
            name: String = "name",
            /// Its id in the messages.
            server_id: McpServerId = "serverId",
        }
    }

    /// A variable of a program's environment.
    pub struct EnvVariable {
        required {
            /// Its name.
            name: String = "name",
            /// Its value.
            value: Secret = "value",
        }
    }

    /// A header of an HTTP request.
    pub struct HttpHeader {
        required {
            /// Its name.
            name: String = "name",
            /// Its value.
            value: Secret = "value",
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
        /// Free data of the implementations, kept as it came.
        meta: Option<Meta>,
    },
    /// It did not.
    Error {
        /// The error object, as it came.
        error: RawJson,
        /// Free data of the implementations, kept as it came.
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

serde_through_json!(McpMessageResponse);
