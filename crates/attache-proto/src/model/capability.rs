//! What either end offers. A capability is there or it is not; v1's flags and v2's objects are the same to us.

use super::Meta;
use super::unstable::SystemPromptCapabilities;
use crate::Dialect;
use crate::codec::{Decode, Encode, model_type, record};
use crate::json::{DecodeError, Reader, Writer};

record! {
    /// Something that is offered: being there is all it says.
    pub struct Capability {}

    /// What a client can do.
    pub struct ClientCapabilities {
        optional {
            /// Which files it reads and writes for the agent.
            fs: FsCapabilities = ["fs", "", ""],
            /// Whether it runs commands for the agent.
            terminal: bool = ["terminal", "", ""],
            /// Which kinds of login it can do.
            auth: ClientAuthCapabilities = ["auth", "", "auth"],
            /// Which questions it can ask the user.
            elicitation: Option<ElicitationCapabilities> = ["elicitation", "", "elicitation"],
            /// Which updates of a session it understands. Since v2 it has to understand them all.
            session: ClientSessionCapabilities = ["session", "-", "-"],
            /// Whether it understands subagents (unstable).
            subagents: Option<Capability> = ["subagents", "-", "-"],
            /// Whether it understands plans that have an id (unstable).
            plan: Option<Capability> = ["plan", "-", "-"],
        }
    }

    /// Which file requests a client answers.
    pub struct FsCapabilities {
        optional {
            /// It reads text files.
            read_text_file: bool = "readTextFile",
            /// It writes text files.
            write_text_file: bool = "writeTextFile",
        }
    }

    /// Which kinds of login a client can do.
    pub struct ClientAuthCapabilities {
        optional {
            /// It can run the agent's login in a terminal.
            terminal: Option<Capability> as OrBool = "terminal",
        }
    }

    /// Which questions a client can ask the user.
    pub struct ElicitationCapabilities {
        optional {
            /// It shows forms.
            form: Option<Capability> = "form",
            /// It opens addresses.
            url: Option<Capability> = "url",
        }
    }

    /// Which updates of a session a v1 client understands.
    pub struct ClientSessionCapabilities {
        optional {
            /// Compactions of the conversation.
            compaction: Option<Capability> = "compaction",
            /// Notices.
            notices: Option<Capability> = "notices",
            /// Kinds of configuration options.
            config_options: Option<ClientConfigCapabilities> = "configOptions",
        }
    }

    /// Which configuration options a v1 client understands besides lists.
    pub struct ClientConfigCapabilities {
        optional {
            /// Switches.
            boolean: Option<Capability> = "boolean",
        }
    }

    /// How an agent logs in and out.
    pub struct AgentAuthCapabilities {
        optional {
            /// It can log out. Since v2 this follows from having ways to log in.
            logout: Option<Capability> = ["logout", "logout", "-"],
            /// It reports who is logged in (unstable).
            status: Option<Capability> = ["status", "", "status"],
        }
    }

    /// What an agent's sessions can do.
    pub struct SessionCapabilities {
        optional {
            /// What a prompt may hold besides text and links.
            prompt: PromptCapabilities = ["-", "prompt", "prompt"],
            /// Which MCP servers it connects to.
            mcp: McpCapabilities = ["-", "mcp", "mcp"],
            /// Sessions can be loaded with their history. Since v2 `resume` does that.
            load: Option<Capability> = ["-", "load", "-"],
            /// Sessions can be listed.
            list: Option<Capability> = ["list", "list", "-"],
            /// Sessions can be taken up again.
            resume: Option<Capability> = ["resume", "resume", "-"],
            /// Sessions can be closed.
            close: Option<Capability> = ["close", "close", "-"],
            /// Sessions can be deleted.
            delete: Option<Capability> = "delete",
            /// Sessions can have more than one root.
            additional_directories: Option<Capability> = "additionalDirectories",
            /// Sessions can be forked (unstable).
            fork: Option<Capability> = ["fork", "", "fork"],
            /// Sessions can be archived (unstable).
            archive: Option<Capability> = ["archive", "", "archive"],
            /// It reports whether a session is open (unstable).
            status: Option<Capability> = ["status", "", "status"],
            /// Sessions can be given a title (unstable).
            title: Option<Capability> = ["title", "", "title"],
            /// Sessions take a system prompt (unstable).
            system_prompt: Option<SystemPromptCapabilities> = "systemPrompt",
        }
    }

    /// What a prompt may hold besides text and links.
    pub struct PromptCapabilities {
        optional {
            /// Pictures.
            image: Option<Capability> as OrBool = "image" shown_in_v1,
            /// Sounds.
            audio: Option<Capability> as OrBool = "audio" shown_in_v1,
            /// Resources with their contents.
            embedded_context: Option<Capability> as OrBool = "embeddedContext" shown_in_v1,
        }
    }

    /// Which MCP servers an agent connects to.
    pub struct McpCapabilities {
        optional {
            /// Programs. In v1 every agent starts them.
            stdio: Option<Capability> = ["-", "stdio", "stdio"],
            /// Servers that speak HTTP.
            http: Option<Capability> as OrBool = "http" shown_in_v1,
            /// Servers that speak the old HTTP with events.
            sse: Option<Capability> as OrBool = ["sse", "sse", ""] shown_in_v1,
            /// Servers that the client carries messages to (unstable).
            acp: Option<Capability> as OrBool = "acp",
        }
    }

    /// What can be done to a thing that runs: a tool call, a terminal, a subagent.
    pub struct CancelCapabilities {
        optional {
            /// It can be cancelled.
            cancel: Option<Capability> = "cancel",
        }
    }

    /// The capabilities of an agent as they stand on the wire. v1 has what concerns sessions in four places.
    struct AgentWire {
        optional {
            load: Option<Capability> as OrBool = ["loadSession", "-", "-"] shown_in_v1,
            prompt: PromptCapabilities = ["promptCapabilities", "-", "-"] shown_in_v1,
            mcp: McpCapabilities = ["mcpCapabilities", "-", "-"] shown_in_v1,
            session: Option<SessionCapabilities> = ["sessionCapabilities", "session", "session"],
            auth: AgentAuthCapabilities = "auth",
            providers: Option<Capability> = ["providers", "", "providers"],
        }
    }
}

/// What the client can ask of a tool call: see [`CancelCapabilities`].
pub type ToolCallCapabilities = CancelCapabilities;
/// What the client can ask of a terminal: see [`CancelCapabilities`].
pub type TerminalCapabilities = CancelCapabilities;
/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AgentCapabilities {
    /// What its sessions can do; a v2 agent may have none. In v1 there are always sessions.
    pub session: Option<SessionCapabilities>,
    /// How it logs in and out.
    pub auth: AgentAuthCapabilities,
    /// Its providers of language models can be set (unstable).
    pub providers: Option<Capability>,
    /// Custom metadata (`_meta`), kept as it came.
    pub meta: Option<Meta>,
}

impl AgentCapabilities {
    /// The capabilities of an agent that offers nothing.
    pub fn new() -> Self {
        AgentCapabilities::default()
    }

    record! { @setter [pub] [#[doc = "What its sessions can do."]] session Option<SessionCapabilities> }
    record! { @setter [pub] [#[doc = "How it logs in and out."]] auth AgentAuthCapabilities }
    record! { @setter [pub] [#[doc = "Its providers of language models can be set (unstable)."]] providers Option<Capability> }
    record! { @setter [pub] [#[doc = "Custom metadata (`_meta`)."]] meta Option<Meta> }
    record! { @with [pub] }
}

impl Decode for AgentCapabilities {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let AgentWire { load, prompt, mcp, mut session, auth, providers, meta } = AgentWire::decode(reader)?;
        if reader.dialect() == Dialect::V1 {
            session = Some(SessionCapabilities { load, prompt, mcp, ..session.unwrap_or_default() });
        }
        Ok(AgentCapabilities { session, auth, providers, meta })
    }
}

impl Encode for AgentCapabilities {
    fn encode(&self, writer: &mut Writer<'_>) {
        let AgentCapabilities { session, auth, providers, meta } = self.clone();
        let mut wire = AgentWire { session, auth, providers, meta, ..AgentWire::default() };
        if writer.dialect() == Dialect::V1 {
            let mut session = wire.session.take().unwrap_or_default();
            wire.load = session.load.take();
            wire.prompt = std::mem::take(&mut session.prompt);
            wire.mcp = std::mem::take(&mut session.mcp);
            // The first agents had no more to say than that.
            wire.session = (session != SessionCapabilities::default()).then_some(session);
        }
        wire.encode(writer);
    }

    fn is_blank(&self) -> bool {
        *self == AgentCapabilities::default()
    }
}

model_type!(AgentCapabilities);
