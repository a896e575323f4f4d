//! Commands that a v1 client runs in a terminal of its own.

use std::path::Path;
use std::time::Duration;

use attache::agent::{SessionHandle, Terminal};
use attache::model::Secret;
use attache::model::mcp::EnvVariable;
use attache::model::terminal::CreateTerminalRequest;
use attache_host::environment::UNATTENDED;
use tokio::time::timeout;

use super::report::{self, Ending, Written};
use super::screen::terminal_content;
use super::{Commands, OUTPUT};
use crate::tools::{Live, Outcome, Refusal, Shown};

/// How long the client may take for what takes no time.
const PROMPTLY: Duration = Duration::from_secs(10);

/// Has the client run a command. It is given to `sh`, as the protocol's command and arguments: clients that start
/// programs themselves know no lines, and those that use a shell quote the line.
pub(super) async fn run(
    commands: &Commands,
    client: &SessionHandle,
    line: String,
    cwd: &Path,
    limit: Duration,
    live: &Live,
) -> Result<Outcome, Refusal> {
    let (starter, place) = (commands.starter(), cwd.to_owned());
    crate::off_thread(move || starter.check_directory(&place)).await?;
    let mut words = attache_host::commands::Command::Line(line).words().into_iter();
    let request = CreateTerminalRequest::new(client.id().clone(), words.next().unwrap_or_default())
        .args(words.collect::<Vec<_>>())
        .env(UNATTENDED.map(|(name, value)| EnvVariable::new(name, Secret::from(value))))
        .output_byte_limit(OUTPUT as u64)
        .with(|request| request.cwd = cwd.to_str().map(str::to_owned));
    // In a task of its own: if nobody waits for the answer any more, the terminal that it brings is still released. The
    // client may ask its user first, so this takes as long as it takes.
    let creating = tokio::spawn({
        let client = client.clone();
        async move { client.create_terminal(request).await }
    });
    let terminal = match creating.await {
        Ok(Ok(terminal)) => terminal,
        Ok(Err(error)) => return Err(Refusal(format!("the client does not run the command: {error}"))),
        Err(_) => return Err(Refusal("the client does not run the command".into())),
    };
    let mut held = Held { terminal: Some(terminal), live };
    let Some(terminal) = &held.terminal else { return Err(Refusal("the client does not run the command".into())) };
    live.show(Shown::Content(vec![terminal_content(terminal.id())])).await;

    let ending = match timeout(limit, terminal.wait()).await {
        Ok(Ok(status)) => Ending::Exit(status),
        Ok(Err(error)) => return Err(Refusal(format!("the client does not tell how the command ended: {error}"))),
        Err(_) => {
            let _ = timeout(PROMPTLY, terminal.kill()).await;
            Ending::TimeOver(limit.as_secs())
        }
    };
    let written = match timeout(PROMPTLY, terminal.output()).await {
        Ok(Ok(output)) => Written { text: output.output, is_truncated: output.truncated },
        Ok(Err(_)) | Err(_) => {
            Written { text: "[the client does not tell what the command printed]".into(), is_truncated: false }
        }
    };
    // A terminal has to be shown before it is released; then it stays.
    live.taken().await;
    if let Some(terminal) = held.terminal.take() {
        let _ = timeout(PROMPTLY, terminal.release()).await;
    }
    Ok(report::outcome(&ending, &written, None, &commands.setup.spill).await)
}

/// A terminal of the client. Dropped, it is released, but not before it was shown.
struct Held<'a> {
    terminal: Option<Terminal>,
    live: &'a Live,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let (Some(terminal), Ok(runtime)) = (self.terminal.take(), tokio::runtime::Handle::try_current()) {
            let live = self.live.clone();
            runtime.spawn(async move {
                let _ = timeout(PROMPTLY, live.taken()).await;
                drop(terminal);
            });
        }
    }
}
