//! The two versions of the protocol as the official SDK has them, under the same names.

use agent_client_protocol::{
    Error, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, v1::schema as v1, v2::schema as v2,
};
use serde_json::Value;

/// The SDK's types of one version. Everything that is sent or received goes through them.
pub(crate) trait Version: Send + Sync + 'static {
    const NUMBER: u16;
    type ClientRequest: JsonRpcRequest<Response = Value>;
    type ClientNotification: JsonRpcNotification;
    type ClientResponse: JsonRpcResponse;
    type AgentRequest: JsonRpcRequest<Response = Value>;
    type AgentNotification: JsonRpcNotification;
    type AgentResponse: JsonRpcResponse;
}

pub(crate) struct One;
pub(crate) struct Two;

impl Version for One {
    const NUMBER: u16 = 1;
    type ClientRequest = v1::ClientRequest;
    type ClientNotification = v1::ClientNotification;
    type ClientResponse = v1::ClientResponse;
    type AgentRequest = v1::AgentRequest;
    type AgentNotification = v1::AgentNotification;
    type AgentResponse = v1::AgentResponse;
}

impl Version for Two {
    const NUMBER: u16 = 2;
    type ClientRequest = v2::ClientRequest;
    type ClientNotification = v2::ClientNotification;
    type ClientResponse = v2::ClientResponse;
    type AgentRequest = v2::AgentRequest;
    type AgentNotification = v2::AgentNotification;
    type AgentResponse = v2::AgentResponse;
}

/// Params as the SDK's type for them says them.
pub(crate) fn message<T: JsonRpcMessage>(method: &str, params: &Value) -> Result<T, Error> {
    T::parse_message(method, params)
}

/// A result as the SDK's type for it says it.
pub(crate) fn result<T: JsonRpcResponse>(method: &str, result: Value) -> Result<Value, Error> {
    T::from_json(method, result)?.into_json(method)
}
