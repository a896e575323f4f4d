//! The first exchange: who both ends are, and what they can do.

use super::auth::AuthMethod;
use super::capability::{AgentCapabilities, ClientCapabilities};
use crate::codec::record;

record! {
    /// A program that speaks the protocol.
    pub struct Implementation {
        required {
            /// Its name, for programs.
            name: String = "name",
            /// Its version.
            version: String = "version",
        }
        optional {
            /// Its name, for people.
            title: Option<String> = "title",
        }
    }

    /// Opens a connection.
    pub struct InitializeRequest {
        required {
            /// The newest version that the client speaks.
            protocol_version: u16 = "protocolVersion",
        }
        optional {
            /// The client.
            info: Option<Implementation> = ["clientInfo", "clientInfo", "info"] expected,
            /// What the client can do.
            capabilities: ClientCapabilities = ["clientCapabilities", "capabilities", "capabilities"],
        }
    }

    /// Says how the connection goes on.
    pub struct InitializeResponse {
        required {
            /// The version that both ends speak from now on.
            protocol_version: u16 = "protocolVersion",
        }
        optional {
            /// The agent.
            info: Option<Implementation> = ["agentInfo", "agentInfo", "info"] expected,
            /// What the agent can do.
            capabilities: AgentCapabilities = ["agentCapabilities", "capabilities", "capabilities"] empty_object,
            /// The ways to log in.
            auth_methods: Vec<AuthMethod> = "authMethods" list shown,
        }
    }
}
