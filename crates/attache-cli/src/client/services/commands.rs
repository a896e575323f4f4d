//! Commands that run for the agent.

use attache::Event;
use attache::client::Pending;
use attache::model::terminal::{CreateTerminalRequest, KillTerminalRequest, TerminalId};
use attache_host::commands::Invocation;
use attache_host::terminals::TerminalView;
use tokio::sync::mpsc;

use super::{Finished, Services};
use crate::event::{self, Level};

impl Services {
    pub(super) fn serve_terminal(&mut self, event: Event) {
        let terminals = self.terminals.clone();
        let answering = self.answering.clone();
        self.tasks.spawn(async move {
            let _ = match event {
                Event::TerminalOutput(call) => {
                    let _held = answering.acquire().await;
                    let output = terminals.output(&call).map_err(|error| error.to_peer());
                    call.reply(output).await
                }
                Event::WaitForTerminalExit(call) => {
                    let status = terminals.wait_for_exit(&call).await.map_err(|error| error.to_peer());
                    call.reply(status).await
                }
                Event::KillTerminal(call) => {
                    let killed = terminals.kill(&call).await.map_err(|error| error.to_peer());
                    call.reply(killed).await
                }
                Event::ReleaseTerminal(call) => {
                    let released = terminals.release(&call).map_err(|error| error.to_peer());
                    call.reply(released).await
                }
                other => other.decline().await,
            };
            Finished::Events(Vec::new())
        });
    }

    pub(super) fn run(
        &mut self,
        call: Pending<CreateTerminalRequest>,
        invocation: &Invocation,
    ) -> Option<event::Event> {
        let created = self.terminals.start(&call.session_id, invocation, call.output_byte_limit);
        let view =
            created.as_ref().ok().and_then(|created| self.terminals.view(&call.session_id, &created.terminal_id).ok());
        let begun = match (&created, &view) {
            (Err(error), _) => {
                Some(event::Event::notice(Level::Warning, format!("a command could not be run: {error}")))
            }
            (Ok(_), None) => None,
            (Ok(_), Some(view)) => Some(event::Event::Command(event::Command {
                id: view.id().to_string(),
                command: Some(view.command().to_owned()),
                cwd: Some(view.cwd().display().to_string()),
                ..event::Command::default()
            })),
        };
        let news = self.news.0.clone();
        self.tasks.spawn(async move {
            let _ = call.reply(created.map_err(|error| error.to_peer())).await;
            let ended = match view {
                Some(view) => Some(follow(view, news).await),
                None => None,
            };
            Finished::Events(ended.into_iter().collect())
        });
        begun
    }

    /// Ends a command, because the person wants that. The agent sees that it was ended.
    pub(crate) fn kill(&mut self, terminal: TerminalId) {
        let (terminals, request) =
            (self.terminals.clone(), KillTerminalRequest::new(self.session.id.clone(), terminal));
        self.tasks.spawn(async move {
            // A command that is not there any more has ended.
            let _ = terminals.kill(&request).await;
            Finished::Events(Vec::new())
        });
    }
}

/// Tells the output of a command as it comes, and returns its end.
async fn follow(mut view: TerminalView, news: mpsc::Sender<event::Event>) -> event::Event {
    let mut told = 0;
    loop {
        let part = view.output_since(told);
        told = part.end();
        if !part.text.is_empty() {
            let output = event::Output { id: view.id().to_string(), text: part.text };
            // Nobody takes it any more: the turn is over.
            let _ = news.send(event::Event::CommandOutput(output)).await;
        }
        if !view.changed().await {
            break;
        }
    }
    let status = view.exit_status().unwrap_or_default();
    event::Event::Command(event::Command {
        id: view.id().to_string(),
        exit_code: status.exit_code,
        signal: status.signal,
        tail: Some(event::tail_of(&view.output_since(0).text)),
        ..event::Command::default()
    })
}
