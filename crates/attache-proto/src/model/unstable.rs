//! The parts of the protocol that may still change: always compiled, gathered here so that their users know.

pub use super::{
    ArchiveFilter, ArchiveSessionRequest, ArchiveSessionResponse, AuthAccount, AuthState, AuthStatusNotification,
    AuthStatusRequest, AuthStatusResponse, BackgroundSubagent, DisableProviderRequest, DisableProviderResponse,
    ForkSessionRequest, ForkSessionResponse, ListProvidersRequest, ListProvidersResponse, LlmProtocol,
    McpMessageNotification, McpMessageRequest, McpMessageResponse, McpServerAcp, PlanFile, PlanMarkdown, PlanRemoved,
    ProviderConfig, ProviderInfo, ProxyInitializeRequest, ProxySuccessorNotification, ProxySuccessorRequest,
    SessionMessage, SessionMessageChunk, SessionStatus, SessionStatusRequest, SessionStatusResponse,
    SetProviderRequest, SetProviderResponse, SetTitleRequest, SetTitleResponse, SubagentCapabilities, SubagentUpdate,
    SystemPrompt, SystemPromptCapabilities, SystemPromptMode, SystemPromptModeCapabilities, UnarchiveSessionRequest,
    UnarchiveSessionResponse, UnknownState, Usage,
};
