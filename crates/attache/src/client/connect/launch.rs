//! How a client launches an agent: starts its process and greets it.

use std::sync::Arc;
use std::time::Duration;

use attache_proto::model::error::ErrorObject;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::{Client, Connection, Greeting, Protocol, SHUTDOWN_GRACE};
use crate::launch::{AgentProcess, pipes};
use crate::link::BoxFuture;
use crate::process::Command;
use crate::{Closed, Error, LaunchCause, LaunchError};

/// What a client sets for the agents that it launches.
#[derive(Clone)]
pub(super) struct Settings {
    timeout: Option<Duration>,
    shutdown_grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { timeout: None, shutdown_grace: SHUTDOWN_GRACE }
    }
}

/// Launching agents. Needs the feature `process`.
impl Client {
    /// Sets how long a launched agent may take until it has answered `initialize`.
    ///
    /// Without it there is no limit, because an agent that is installed when it is first launched takes as long as its
    /// download. When the time is up, the agent is ended, and [`LaunchError`] has what it has printed so far.
    pub fn launch_timeout(mut self, limit: Duration) -> Self {
        self.launching.timeout = Some(limit);
        self
    }

    /// Sets how long [`Connection::shutdown`] waits for a launched agent to leave by itself, and again after SIGTERM,
    /// before it is killed. Two seconds unless set.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.launching.shutdown_grace = grace;
        self
    }

    /// Starts an agent as a process of its own and greets it. Needs a tokio runtime with IO and time enabled.
    ///
    /// The process ends with the connection. How much of what it started ends with it, and whether it ends when this
    /// program is killed, is described in [`process`](crate::process).
    ///
    /// When the agent exits, what it wrote before is still delivered. Then whatever waits fails with
    /// [`Closed::AgentExited`], which has its exit status and the end of its stderr.
    pub async fn launch(self, command: impl Into<Command>) -> Result<Connection, Error> {
        self.launch_command(command.into()).await
    }

    fn launch_command(self, command: Command) -> BoxFuture<'static, Result<Connection, Error>> {
        Box::pin(async move {
            let again = (self.protocol == Protocol::Auto).then(|| self.clone());
            // A limit past the end of time is none.
            let deadline = self.launching.timeout.and_then(|limit| Instant::now().checked_add(limit));
            match self.launch_once(command.clone(), deadline).await {
                // An agent of version 1 that cannot be greeted twice is started once more and greeted in its own version.
                Err(Greeting::NeedsFreshStart) => match again {
                    Some(client) => {
                        let launched = client.protocol(Protocol::V1).launch_once(command, deadline).await;
                        launched.map_err(Greeting::into_error)
                    }
                    None => Err(Error::Version { peer: 1 }),
                },
                other => other.map_err(Greeting::into_error),
            }
        })
    }

    async fn launch_once(self, command: Command, deadline: Option<Instant>) -> Result<Connection, Greeting> {
        let shown = command.to_string();
        let (process, stdin, stdout) = match command.spawn() {
            Ok(started) => started,
            Err(error) => return Err(failed(LaunchError::not_started(shown, error))),
        };
        let (exited, exit) = watch::channel(None);
        let (output, input) = pipes(stdout, stdin, exit);
        let link = self.open(Box::new(output), Box::new(input));
        let watched = link.0.clone();
        let on_exit = move |exit| watched.set_cause(Closed::AgentExited(exit));
        let agent = AgentProcess::watch(process, self.launching.shutdown_grace, exited, on_exit);
        let greeted = match deadline {
            Some(deadline) => timeout_at(deadline, self.greet(&link.0, true)).await,
            None => Ok(self.greet(&link.0, true).await),
        };
        let (cause, stderr_tail) = match greeted {
            Ok(Ok(answer)) => return Ok(Connection::new(link, Some(agent), answer)),
            Ok(Err(Greeting::Failed(Error::Closed(Closed::AgentExited(exit))))) => {
                (LaunchCause::Exited(exit.status), exit.stderr_tail.clone())
            }
            Ok(Err(Greeting::Failed(Error::Closed(_)))) => (LaunchCause::NotAnAgent, agent.stderr_tail()),
            // A program that echoes, for one: our own refusal of the request that it echoed comes back as its answer.
            Ok(Err(Greeting::Failed(Error::Refused(error)))) if error.code == ErrorObject::METHOD_NOT_FOUND => {
                (LaunchCause::NotAnAgent, agent.stderr_tail())
            }
            Ok(Err(other)) => return Err(other),
            Err(_) => (LaunchCause::TimedOut(self.launching.timeout.unwrap_or_default()), agent.stderr_tail()),
        };
        Err(failed(LaunchError { command: shown, cause, stdout: link.0.junk(), stderr_tail }))
    }
}

fn failed(error: LaunchError) -> Greeting {
    Greeting::Failed(Error::Launch(Arc::new(error)))
}
