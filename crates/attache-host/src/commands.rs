//! Commands: what is judged and what is executed is one value.
//!
//! A line is read by the [`shell`] of this machine: on Windows that is not always one whose grammar rules know, and then no
//! rule allows a line.
//!
//! An [`Invocation`] is made once from what somebody wants to run. Its [`action`](Invocation::action) is what rules and
//! people decide about, and [`start`](Invocation::start) executes the very same. A [`Run`] is the process with everything
//! it starts, and the end of what it wrote; it ends when the run is dropped. How far "everything" reaches is up to the
//! program: see [`use_keeper`](attache::process::use_keeper).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), attache_host::commands::CommandError> {
//! use attache_host::commands::{Command, Invocation};
//!
//! let invocation = Invocation::new(Command::Line("echo hello; exit 3".into()), "/");
//! let run = invocation.start(1 << 20, |command| command)?;
//! assert_eq!(run.wait().await.exit_code, Some(3));
//! assert_eq!(run.output().text, "hello\n");
//! # Ok(())
//! # }
//! ```

mod command;
mod error;
mod invocation;
mod output;
mod run;
mod shell;
mod view;

pub use command::Command;
pub use error::CommandError;
pub use invocation::{Invocation, Run, Written};
pub use shell::{Shell, ShellKind, shell, use_shell};
pub use view::{OutputPart, View};
