//! Sessions: opening, finding, closing them, and what they start with.

use super::command::AvailableCommand;
use super::config::{ConfigOption, ConfigValueId};
use super::mcp::McpServer;
use super::unstable::{ArchiveFilter, SystemPrompt};
use crate::codec::{ids, record, union};

ids! {
    /// A session, named by the agent.
    pub struct SessionId;
    /// A session mode, named by the agent.
    pub struct ModeId;
}

record! {
    /// Opens a new session.
    pub struct NewSessionRequest {
        required {
            /// The directory to work in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// More directories to work in, absolute.
            additional_directories: Vec<String> = "additionalDirectories" strict,
            /// MCP servers to connect to.
            mcp_servers: Vec<McpServer> = "mcpServers" strict shown_before_v2,
            /// What to add to the agent's system prompt, or to use instead of it (unstable).
            system_prompt: Option<SystemPrompt> = ["systemPrompt", "", "systemPrompt"] strict,
        }
    }

    /// The new session.
    pub struct NewSessionResponse {
        required {
            /// Its id.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// Its modes.
            modes: Option<ModeState> = ["modes", "", ""],
            /// Its models, as the first agents had them.
            models: Option<ModelState> = ["models", "", ""],
            /// Its configuration options.
            config_options: Option<Vec<ConfigOption>> = "configOptions" list,
            /// Its commands.
            available_commands: Option<Vec<AvailableCommand>> = ["", "", "availableCommands"] list,
        }
    }

    /// Takes up a session and sends its history again. v2 resumes instead, with a place to replay from.
    pub struct LoadSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The directory to work in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// More directories to work in, absolute.
            additional_directories: Vec<String> = "additionalDirectories" strict,
            /// MCP servers to connect to.
            mcp_servers: Vec<McpServer> = "mcpServers" strict shown_before_v2,
            /// What to add to the agent's system prompt, or to use instead of it (unstable).
            system_prompt: Option<SystemPrompt> = ["systemPrompt", "", "systemPrompt"] strict,
        }
    }

    /// The session is loaded, and its history has been sent.
    pub struct LoadSessionResponse {
        optional {
            /// Its modes.
            modes: Option<ModeState> = ["modes", "", ""],
            /// Its models, as the first agents had them.
            models: Option<ModelState> = ["models", "", ""],
            /// Its configuration options.
            config_options: Option<Vec<ConfigOption>> = "configOptions" list,
        }
    }

    /// Takes up a session.
    pub struct ResumeSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The directory to work in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// More directories to work in, absolute.
            additional_directories: Vec<String> = "additionalDirectories" strict,
            /// MCP servers to connect to.
            mcp_servers: Vec<McpServer> = "mcpServers" strict,
            /// From where to replay its history; absent means not at all.
            replay_from: Option<ReplayFrom> = ["", "", "replayFrom"] strict,
            /// What to add to the agent's system prompt, or to use instead of it (unstable).
            system_prompt: Option<SystemPrompt> = ["systemPrompt", "", "systemPrompt"] strict,
        }
    }

    /// The session goes on.
    pub struct ResumeSessionResponse {
        optional {
            /// Its modes.
            modes: Option<ModeState> = ["modes", "", ""],
            /// Its models, as the first agents had them.
            models: Option<ModelState> = ["models", "", ""],
            /// Its configuration options.
            config_options: Option<Vec<ConfigOption>> = "configOptions" list,
            /// Its commands.
            available_commands: Option<Vec<AvailableCommand>> = ["", "", "availableCommands"] list,
        }
    }

    /// Asks for the sessions that there are.
    pub struct ListSessionsRequest {
        optional {
            /// Only those that work in this directory.
            cwd: Option<String> = "cwd" strict,
            /// Where the last answer ended.
            cursor: Option<String> = "cursor" strict,
            /// Whether those in the archive count (unstable).
            archived: Option<ArchiveFilter> = ["archived", "", "archived"] strict,
        }
    }

    /// Some of the sessions that there are.
    pub struct ListSessionsResponse {
        required {
            /// The sessions.
            sessions: Vec<SessionInfo> = "sessions" list,
        }
        optional {
            /// Where to go on, when there are more.
            next_cursor: Option<String> = "nextCursor" strict,
        }
    }

    /// A session in a list.
    pub struct SessionInfo {
        required {
            /// Its id.
            session_id: SessionId = "sessionId",
            /// The directory that it works in, absolute.
            cwd: String = "cwd",
        }
        optional {
            /// More directories that it works in.
            additional_directories: Vec<String> = "additionalDirectories" list,
            /// Its title.
            title: Option<String> = "title",
            /// When it last changed, as an ISO 8601 time.
            updated_at: Option<String> = "updatedAt",
            /// Whether it is in the archive (unstable).
            archived: Option<bool> = ["archived", "", "archived"],
        }
    }

    /// Closes a session: what runs in it is cancelled.
    pub struct CloseSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    /// The session is closed.
    pub struct CloseSessionResponse {}

    /// Deletes a session and its history.
    pub struct DeleteSessionRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
        }
    }

    /// The session is deleted.
    pub struct DeleteSessionResponse {}

    /// The modes of a session.
    pub struct ModeState {
        required {
            /// The one it is in.
            current_mode_id: ModeId = "currentModeId",
            /// All of them.
            available_modes: Vec<Mode> = "availableModes" list,
        }
    }

    /// A mode that a session can be in.
    pub struct Mode {
        required {
            /// Its id.
            id: ModeId = "id",
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it means.
            description: Option<String> = "description",
        }
    }

    /// Puts a session into a mode.
    pub struct SetModeRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The mode.
            mode_id: ModeId = "modeId",
        }
    }

    /// The session is in that mode.
    pub struct SetModeResponse {}

    /// The models of a session, as the first agents had them; a configuration option took their place.
    pub struct ModelState {
        required {
            /// The one in use.
            current_model_id: ConfigValueId = "currentModelId",
            /// All of them.
            available_models: Vec<ModelInfo> = "availableModels" list,
        }
    }

    /// A model that a session can use.
    pub struct ModelInfo {
        required {
            /// Its id.
            model_id: ConfigValueId = "modelId",
            /// Its name to show.
            name: String = "name",
        }
        optional {
            /// What it is good for.
            description: Option<String> = "description",
        }
    }

    /// Has a session use a model, as the first agents had it.
    pub struct SetModelRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The model.
            model_id: ConfigValueId = "modelId",
        }
    }

    /// The session uses that model.
    pub struct SetModelResponse {}

    /// Tells the history from its start.
    pub struct ReplayFromStart {}
}

union! {
    /// From where to replay the history of a session.
    pub enum ReplayFrom tag "type" {
        /// From its start.
        Start(ReplayFromStart) = "start",
    }
}

impl ReplayFrom {
    /// From the start.
    pub fn start() -> Self {
        ReplayFrom::Start(ReplayFromStart::new())
    }
}
