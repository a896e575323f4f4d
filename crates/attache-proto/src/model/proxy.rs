//! Messages between a proxy and the conductor that holds a chain of them together (unstable), and cancelled requests.

use super::{InitializeRequest, RequestId};
use crate::codec::{Blank, Decode, Encode, ReadInPlace, record, serde_through_json};
use crate::json::{DecodeError, RawJson, Reader, Writer};

record! {
    /// A request of the proxy's neighbour (unstable). The result is that of the method, unwrapped.
    pub struct ProxySuccessorRequest {
        required {
            /// The method.
            method: String = "method",
        }
        optional {
            /// Its parameters.
            params: Option<RawJson> = "params" strict,
        }
    }

    /// A notification of the proxy's neighbour (unstable).
    pub struct ProxySuccessorNotification {
        required {
            /// The method.
            method: String = "method",
        }
        optional {
            /// Its parameters.
            params: Option<RawJson> = "params" strict,
        }
    }

    /// A request is no longer wanted. It is answered all the same.
    pub struct CancelRequestNotification {
        required {
            /// The request.
            request_id: RequestId = "requestId",
        }
    }
}

/// Opens a connection to a proxy (unstable).
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyInitializeRequest(pub InitializeRequest);

impl Blank for ProxyInitializeRequest {
    fn blank() -> Self {
        ProxyInitializeRequest(InitializeRequest::blank())
    }
}

impl ReadInPlace for ProxyInitializeRequest {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.0.read(reader)
    }
}

impl Decode for ProxyInitializeRequest {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        InitializeRequest::decode(reader).map(ProxyInitializeRequest)
    }
}

impl Encode for ProxyInitializeRequest {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.0.encode(writer);
    }
}

serde_through_json!(ProxyInitializeRequest);
