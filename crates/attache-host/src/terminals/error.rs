//! Why something could not be done with a terminal: for a person, and for the agent.

use std::fmt;

use attache::{model::error::ErrorObject, process::SpawnError};

use crate::commands::CommandError;

/// Why something could not be done with a terminal.
#[derive(Debug)]
#[non_exhaustive]
pub enum TerminalError {
    /// There is no such terminal, or it is another session's, or it was released.
    NotFound,
    /// Too many commands run.
    TooManyRunning {
        /// How many may.
        limit: usize,
    },
    /// Too many terminals were not released.
    TooManyKept {
        /// How many there may be.
        limit: usize,
    },
    /// The command could not be started.
    Command(CommandError),
}

impl TerminalError {
    /// The answer for the agent. It repeats nothing of the request.
    pub fn to_peer(&self) -> ErrorObject {
        match self {
            Self::NotFound => ErrorObject::not_found("Terminal not found"),
            Self::TooManyRunning { limit } => {
                ErrorObject::internal(format!("{limit} commands are running: kill one or wait for its end"))
            }
            Self::TooManyKept { limit } => {
                ErrorObject::internal(format!("{limit} terminals are open: release those that are no longer needed"))
            }
            Self::Command(CommandError::Directory { .. }) => ErrorObject::wrong_params("cwd must be absolute"),
            Self::Command(CommandError::BadVariable) => {
                ErrorObject::wrong_params("env has a name or value that no variable can have")
            }
            Self::Command(CommandError::Launch(error)) => match error {
                SpawnError::NotFound { .. } => ErrorObject::not_found("Program not found"),
                SpawnError::NoInterpreter { .. } => ErrorObject::not_found("Interpreter of the program not found"),
                SpawnError::NotExecutable { .. } => ErrorObject::wrong_params("the command may not be executed"),
                SpawnError::NoDirectory { .. } => ErrorObject::wrong_params("cwd is not a directory"),
                SpawnError::Empty => ErrorObject::wrong_params("the command is empty"),
                _ => ErrorObject::internal("the command could not be started"),
            },
        }
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such terminal in this session"),
            Self::TooManyRunning { limit } => {
                write!(f, "the agent runs {limit} commands already\nhint: end one of them")
            }
            Self::TooManyKept { limit } => {
                write!(f, "the agent has {limit} terminals that it did not release\nhint: end the session")
            }
            Self::Command(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TerminalError {}

impl From<CommandError> for TerminalError {
    fn from(error: CommandError) -> Self {
        TerminalError::Command(error)
    }
}
