//! Terminals: those that a v1 client runs for the agent, and those that a v2 agent shows.

use super::Patch;
use super::capability::TerminalCapabilities;
use super::mcp::EnvVariable;
use super::session::SessionId;
use crate::codec::{ids, record};

ids! {
    /// A terminal.
    pub struct TerminalId;
}

record! {
    /// Starts a command in a terminal of the client.
    pub struct CreateTerminalRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The command.
            command: String = "command",
        }
        optional {
            /// Its arguments.
            args: Vec<String> = "args" strict,
            /// Its variables.
            env: Vec<EnvVariable> = "env" strict,
            /// The directory to run it in, absolute.
            cwd: Option<String> = "cwd" strict,
            /// How many bytes of output to keep at most; older ones go first.
            output_byte_limit: Option<u64> = "outputByteLimit" strict,
        }
    }

    /// The new terminal.
    pub struct CreateTerminalResponse {
        required {
            /// Its id.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// Asks what a command has written so far.
    pub struct TerminalOutputRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// What a command has written so far.
    pub struct TerminalOutputResponse {
        required {
            /// The output that was kept.
            output: String = "output",
            /// Whether there was more.
            truncated: bool = "truncated",
        }
        optional {
            /// How it ended, when it has.
            exit_status: Option<ExitStatus> = "exitStatus",
        }
    }

    /// Waits until a command has ended.
    pub struct WaitForTerminalExitRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// How a command ended. Not to be confused with `attache::ExitStatus`, how a process ended that was launched here.
    pub struct ExitStatus {
        optional {
            /// Its exit code, unless a signal ended it.
            exit_code: Option<i64> = "exitCode",
            /// The signal that ended it.
            signal: Option<String> = "signal",
        }
    }

    /// Ends a command; its terminal stays.
    pub struct KillTerminalRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// The command is being ended.
    pub struct KillTerminalResponse {}

    /// Ends a command and gives up its terminal.
    pub struct ReleaseTerminalRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// The terminal is given up.
    pub struct ReleaseTerminalResponse {}

    /// What is new about a terminal of the agent. An id not seen before begins one.
    pub struct TerminalUpdate upsert {
        required {
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
        optional {
            /// The command.
            command: Patch<String> = "command",
            /// The directory that it runs in, absolute.
            cwd: Patch<String> = "cwd",
            /// All output so far.
            output: Patch<TerminalOutput> = "output",
            /// How it ended; that it is there means that it has.
            exit_status: Patch<ExitStatus> = "exitStatus",
            /// The size that the output was made for.
            size: Patch<TerminalSize> = "size",
            /// What the client can ask of it.
            capabilities: Patch<TerminalCapabilities> = "capabilities",
        }
    }

    /// All output of a terminal so far.
    pub struct TerminalOutput {
        required {
            /// The bytes, in base64.
            data: String = "data",
        }
    }

    /// More output of a terminal.
    pub struct TerminalOutputChunk {
        required {
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
            /// The bytes, in base64.
            data: String = "data",
        }
    }

    /// The size of a terminal.
    pub struct TerminalSize {
        required {
            /// Its columns.
            cols: u16 = "cols",
            /// Its rows.
            rows: u16 = "rows",
        }
    }

    /// Asks to cancel a command of the agent. The answer says only that it was understood.
    pub struct CancelTerminalRequest {
        required {
            /// The session.
            session_id: SessionId = "sessionId",
            /// The terminal.
            terminal_id: TerminalId = "terminalId",
        }
    }

    /// The command is being cancelled.
    pub struct CancelTerminalResponse {}
}

/// How a command ended: see [`ExitStatus`].
pub type WaitForTerminalExitResponse = ExitStatus;
