//! MCP servers that a session uses, and the messages that a client carries to them.

use super::Secret;
use super::unstable::McpServerAcp;
use crate::codec::{record, union};

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
}
