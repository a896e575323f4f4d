//! Sessions: forks, the archive, status, titles, system prompts, and what a turn took.

use crate::codec::{record, string_enum};
use crate::model::capability::Capability;
use crate::model::command::AvailableCommand;
use crate::model::config::ConfigOption;
use crate::model::content::ContentBlock;
use crate::model::mcp::McpServer;
use crate::model::session::{ModeState, SessionId};
use crate::model::state::{BackgroundWork, StateUpdate};

record! {
    /// Opens a new session that starts with the history of another (unstable).
    pub struct ForkSessionRequest {
        required {
            /// The other session.
            session_id: SessionId = "sessionId",
            /// The directory to work in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// More directories to work in, absolute.
            additional_directories: Vec<String> = "additionalDirectories" strict,
            /// MCP servers to connect to.
            mcp_servers: Vec<McpServer> = "mcpServers" strict,
            /// What to add to the agent's system prompt, or to use instead of it.
            system_prompt: Option<SystemPrompt> = "systemPrompt" strict,
        }
    }

    /// The new session (unstable).
    pub struct ForkSessionResponse {
        required {
            /// Its id.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// Its modes.
            modes: Option<ModeState> = ["modes", "", ""],
            /// Its configuration options.
            config_options: Option<Vec<ConfigOption>> = "configOptions" list,
            /// Its commands.
            available_commands: Option<Vec<AvailableCommand>> = ["", "", "availableCommands"] list,
        }
    }

    /// Puts a session into the archive (unstable).
    pub struct ArchiveSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    /// The session is in the archive (unstable).
    pub struct ArchiveSessionResponse {}

    /// Takes a session out of the archive (unstable).
    pub struct UnarchiveSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    /// The session is out of the archive (unstable).
    pub struct UnarchiveSessionResponse {}

    /// Asks whether a session is open (unstable).
    pub struct SessionStatusRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    /// Whether a session is open (unstable).
    pub struct SessionStatusResponse {
        required {
            /// Whether it is.
            status: SessionStatus = "status",
        }
        optional {
            /// What it is doing.
            state: Option<StateUpdate> = ["", "", "state"],
        }
    }

    /// Gives a session a title (unstable).
    pub struct SetTitleRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The title.
            title: String = "title",
        }
    }

    /// The title that the session has now (unstable).
    pub struct SetTitleResponse {
        required {
            /// The title, as the agent took it.
            title: String = "title",
        }
    }

    /// What to add to the agent's system prompt, or to use instead of it (unstable).
    pub struct SystemPrompt {
        required {
            /// Besides or instead.
            mode: SystemPromptMode = "mode",
            /// The words.
            content: Vec<ContentBlock> = "content",
        }
    }

    /// How a session takes a system prompt (unstable).
    pub struct SystemPromptCapabilities {
        optional {
            /// Ways to use it besides appending.
            mode: Option<SystemPromptModeCapabilities> = "mode",
        }
    }

    /// Ways to use a system prompt besides appending (unstable).
    pub struct SystemPromptModeCapabilities {
        optional {
            /// It can take the place of the agent's own.
            override_mode: Option<Capability> = "override",
        }
    }

    /// The tokens that a turn took (unstable).
    pub struct Usage {
        required {
            /// All of them.
            total_tokens: u64 = "totalTokens",
            /// Those that the model read.
            input_tokens: u64 = "inputTokens",
            /// Those that the model wrote.
            output_tokens: u64 = "outputTokens",
        }
        optional {
            /// Those that it thought.
            thought_tokens: Option<u64> = "thoughtTokens",
            /// Those that it had read before.
            cached_read_tokens: Option<u64> = "cachedReadTokens",
            /// Those that were kept to be read again.
            cached_write_tokens: Option<u64> = "cachedWriteTokens",
        }
    }

    /// The agent cannot tell what the session is doing (unstable).
    pub struct UnknownState {
        optional {
            /// What goes on beside it; absent means not reported.
            background: Option<Vec<BackgroundWork>> = ["-", "", "background"],
        }
    }
}

string_enum! {
    /// Whether sessions in the archive count (unstable).
    pub enum ArchiveFilter {
        /// They do not.
        Exclude = "exclude",
        /// They do.
        Include = "include",
        /// Only they do.
        Only = "only",
    }

    /// Whether a session is open (unstable).
    pub enum SessionStatus {
        /// It is open.
        Open = "open",
        /// It is kept, and can be taken up again.
        Saved = "saved",
    }

    /// How a system prompt is used (unstable).
    pub enum SystemPromptMode {
        /// After the agent's own.
        Append = "append",
        /// In its place.
        Override = "override",
    }
}
