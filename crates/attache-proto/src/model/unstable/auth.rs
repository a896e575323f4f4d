//! Who is logged in.

use crate::codec::{record, string_enum};

record! {
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
