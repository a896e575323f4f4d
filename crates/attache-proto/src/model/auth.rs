//! Logging in and out.

use super::{AuthMethodId, EnvVariable};
use crate::codec::{record, string_enum, union};

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

    /// Asks who is logged in (unstable).
    pub struct AuthStatusRequest {}

    /// Who is logged in (unstable).
    pub struct AuthStatusResponse {
        required {
            /// Whether anybody is.
            state: AuthState = "state",
        }
        optional {
            /// The accounts.
            accounts: Vec<AuthAccount> = "accounts" list,
        }
    }

    /// Who is logged in has changed (unstable).
    pub struct AuthStatusNotification {
        required {
            /// Whether anybody is.
            state: AuthState = "state",
        }
        optional {
            /// The accounts.
            accounts: Vec<AuthAccount> = "accounts" list,
        }
    }

    /// An account (unstable).
    pub struct AuthAccount {
        required {
            /// What to call it.
            label: String = "label",
        }
        optional {
            /// Whether it is the one in use.
            active: Option<bool> = "active",
            /// The name of its owner.
            name: Option<String> = "name",
            /// The address of its owner.
            email: Option<String> = "email",
            /// The organisation that it belongs to.
            organization: Option<String> = "organization",
        }
    }
}

string_enum! {
    /// Whether anybody is logged in (unstable).
    pub enum AuthState {
        /// Somebody is.
        Authenticated = "authenticated",
        /// Nobody is.
        Unauthenticated = "unauthenticated",
        /// Nobody needs to be.
        NotRequired = "not_required",
        /// The agent cannot tell.
        Unknown = "unknown",
    }
}
