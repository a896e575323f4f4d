//! Logging in and out.

use super::mcp::EnvVariable;
use crate::codec::{ids, record, union};

ids! {
    /// A way to authenticate, named by the agent.
    pub struct AuthMethodId;
}

union! {
    /// A way to log in.
    pub enum AuthMethod tag "type" else Agent in [V1] {
        /// The agent does it, when `authenticate` names this method.
        Agent(AgentAuthMethod) = "agent",
        /// The client runs the agent in a terminal, where the user does it.
        Terminal(TerminalAuthMethod) = "terminal",
    }
}

impl AuthMethod {
    /// Its id, if it has one: an unknown kind may not.
    pub fn id(&self) -> Option<AuthMethodId> {
        match self {
            AuthMethod::Agent(method) => Some(method.id.clone()),
            AuthMethod::Terminal(method) => Some(method.id.clone()),
            AuthMethod::Other(unknown) => unknown.text("methodId").or_else(|| unknown.text("id")).map(Into::into),
        }
    }

    /// Its name to show, if it has one: an unknown kind may not.
    pub fn name(&self) -> Option<String> {
        match self {
            AuthMethod::Agent(method) => Some(method.name.clone()),
            AuthMethod::Terminal(method) => Some(method.name.clone()),
            AuthMethod::Other(unknown) => unknown.text("name"),
        }
    }
}

record! {
    /// A login that the agent does.
    pub struct AgentAuthMethod {
        required {
            /// Its id.
            id: AuthMethodId = ["id", "id", "methodId"],
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it is.
            description: Option<String> = "description",
        }
    }

    /// A login that the user does in a terminal, with the agent started in another way.
    pub struct TerminalAuthMethod {
        required {
            /// Its id.
            id: AuthMethodId = ["id", "id", "methodId"],
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it is.
            description: Option<String> = "description",
            /// Arguments to start the agent with.
            args: Vec<String> = "args" strict,
            /// Variables to start the agent with.
            env: Vec<EnvVariable> as OrObject = "env" strict,
        }
    }

    /// Logs in.
    pub struct AuthenticateRequest {
        required {
            /// One of the ways that the agent named.
            method_id: AuthMethodId = "methodId",
        }
    }

    /// The login is done.
    pub struct AuthenticateResponse {}

    /// Logs out.
    pub struct LogoutRequest {}

    /// The logout is done.
    pub struct LogoutResponse {}
}
