//! What a session is doing.

use super::error::ErrorObject;
use super::prompt::StopReason;
use super::terminal::TerminalId;
use super::tool::ToolCallId;
use super::unstable::{BackgroundSubagent, UnknownState, Usage};
use crate::codec::{record, union};

union! {
    /// What a session is doing from now on.
    pub enum StateUpdate tag "state" within ["sessionUpdate"] {
        /// It works.
        Running(RunningState) = "running",
        /// It waits for the user's next message.
        Idle(IdleState) boxed = "idle",
        /// It waits for the user to decide something.
        RequiresAction(RequiresActionState) = "requires_action",
        /// The agent cannot tell (unstable).
        Unknown(UnknownState) = "unknown",
    }

    /// Work that goes on beside the conversation.
    pub enum BackgroundWork tag "type" {
        /// A command.
        Terminal(BackgroundTerminal) = "terminal",
        /// A tool call.
        ToolCall(BackgroundToolCall) = "tool_call",
        /// A subagent (unstable).
        Subagent(BackgroundSubagent) = "subagent",
    }
}

impl BackgroundWork {
    /// The tool call, when it is one.
    pub fn tool_call_id(&self) -> Option<&ToolCallId> {
        match self {
            BackgroundWork::ToolCall(work) => Some(&work.tool_call_id),
            _ => None,
        }
    }
}

impl StateUpdate {
    /// Idle, for this reason.
    pub fn idle(stop_reason: StopReason) -> Self {
        IdleState { stop_reason: Some(stop_reason), ..IdleState::new() }.into()
    }

    /// At rest, without saying why.
    pub fn at_rest() -> Self {
        StateUpdate::Idle(Box::default())
    }

    /// At rest because of an error.
    pub fn failed(error: ErrorObject) -> Self {
        let state = IdleState { stop_reason: Some(StopReason::Error), error: Some(error), ..IdleState::new() };
        StateUpdate::Idle(Box::new(state))
    }

    /// Working.
    pub fn running() -> Self {
        RunningState::new().into()
    }

    /// Waiting for the user to decide something.
    pub fn requires_action() -> Self {
        RequiresActionState::new().into()
    }
}

record! {
    /// The session works.
    pub struct RunningState {
        optional {
            /// What goes on beside it; absent means not reported.
            background: Option<Vec<BackgroundWork>> = ["-", "", "background"],
        }
    }

    /// The session waits for the user's next message.
    pub struct IdleState {
        optional {
            /// Why the last work ended; absent means not reported.
            stop_reason: Option<StopReason> = "stopReason",
            /// What went wrong, when that is the reason.
            error: Option<ErrorObject> = "error",
            /// The tokens that the work took (unstable).
            usage: Option<Usage> = "usage",
            /// What goes on beside it; absent means not reported.
            background: Option<Vec<BackgroundWork>> = ["-", "", "background"],
        }
    }

    /// The session waits for the user to decide something.
    pub struct RequiresActionState {
        optional {
            /// What goes on beside it; absent means not reported.
            background: Option<Vec<BackgroundWork>> = ["-", "", "background"],
        }
    }

    /// A command that goes on beside the conversation.
    pub struct BackgroundTerminal {
        required {
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// A tool call that goes on beside the conversation.
    pub struct BackgroundToolCall {
        required {
            /// The tool call.
            tool_call_id: ToolCallId = "toolCallId",
        }
    }
}
