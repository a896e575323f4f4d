//! Messages between a proxy and the conductor that holds a chain of them together (unstable).

use crate::codec::{Blank, Decode, Encode, ReadInPlace, model_type, record};
use crate::json::{DecodeError, RawJson, Reader, Writer};
use crate::model::initialize::InitializeRequest;

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

model_type!(ProxyInitializeRequest);
