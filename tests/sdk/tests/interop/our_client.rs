//! A client made with Attaché.

use attache::client::Session;
use attache::model::config::ConfigValueId;
use attache::model::fs::{ReadTextFileResponse, WriteTextFileResponse};
use attache::model::session::ListSessionsRequest;
use attache::model::terminal::{
    CreateTerminalResponse, ExitStatus, KillTerminalResponse, ReleaseTerminalResponse, TerminalOutputResponse,
};
use attache::model::update::SessionUpdate;
use attache::{Client, Connection, Dialect, Error, Event, Protocol, Stop};
use serde_json::{Value, json};

use crate::our_agent::Number;
use crate::play::{Answer, Editor, failed};
use crate::seen::{self, Seen};

pub(crate) struct OurClient {
    connection: Connection,
    session: Option<Session>,
    seen: Seen,
}

/// A client that serves everything, ready to connect.
pub(crate) fn client(protocol: Protocol) -> Client {
    let client = Client::new("ours", "1").protocol(protocol).read_files().write_files().terminals();
    client.extension("_test/ask").extension("_test/note")
}

impl OurClient {
    pub(crate) fn new(connection: Connection) -> Self {
        OurClient { connection, session: None, seen: Seen::new(false) }
    }

    fn session(&self) -> Result<Session, Error> {
        self.session.clone().ok_or_else(|| Error::Invalid("no session is open".into()))
    }

    fn update(&mut self, update: &SessionUpdate) -> Option<String> {
        match update {
            SessionUpdate::CurrentMode(mode) => Some(format!("~mode {}", mode.current_mode_id)),
            update => self.seen.update(&json!(update)),
        }
    }

    /// What was told before the session was opened, and what was told with it.
    async fn opened(&mut self, session: Session) -> Result<Vec<String>, Error> {
        self.session = Some(session.clone());
        let mut lines = Vec::new();
        let options = seen::options(&json!(session.options()));
        if self.connection.dialect() == Dialect::V2 {
            // The state after a replay is the last that is told before the answer.
            lines.extend([options, seen::commands(&json!(session.commands()))]);
            return Ok(lines);
        }
        // Older versions tell the commands after the answer.
        loop {
            let Event::Update(update) = session.next().await? else { continue };
            let line = self.update(&update);
            if line.as_ref().is_some_and(|line| line.starts_with("commands")) {
                lines.push(options);
                lines.extend(line);
                return Ok(lines);
            }
            lines.extend(line);
        }
    }

    async fn replayed(&mut self, session: Session) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        if self.connection.dialect() == Dialect::V2 {
            // What is told again ends with the state.
            while lines.last().is_none_or(|line: &String| line != "~idle") {
                if let Event::Update(update) = session.next().await? {
                    lines.extend(self.update(&update));
                }
            }
        }
        lines.extend(self.opened(session).await?);
        Ok(lines)
    }

    async fn turn(&mut self, answer: Answer, word: &str) -> Result<Vec<String>, Error> {
        let mut turn = self.session()?.prompt(word).await?;
        let mut closing = None;
        let mut lines = Vec::new();
        loop {
            let event = match turn.next().await {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    lines.push(line_of(&error));
                    return Ok(lines);
                }
            };
            let request = |method: &str, params: Value| seen::request(method, &params);
            lines.push(match event {
                Event::Update(update) => {
                    let Some(line) = self.update(&update) else { continue };
                    if line == "text cancel me" && answer == Answer::Quit {
                        let session = self.session()?;
                        closing = Some(tokio::spawn(async move { session.close().await }));
                    } else if line == "text cancel me" {
                        turn.cancel().await?;
                    }
                    line
                }
                Event::Permission(ask) => {
                    let line = request("session/request_permission", json!(*ask));
                    match answer {
                        Answer::Allow | Answer::Quit => ask.allow_once().await?,
                        Answer::Reject => ask.reject().await?,
                        Answer::Dismiss => ask.cancel().await?,
                        Answer::Leave => {
                            turn.cancel().await?;
                            // Whoever has it in hand finds it answered.
                            assert!(matches!(ask.allow_once().await, Err(Error::Cancelled)));
                        }
                    }
                    line
                }
                Event::ReadTextFile(call) => {
                    let line = request("fs/read_text_file", json!(*call));
                    call.reply(Ok(ReadTextFileResponse::new("some text"))).await?;
                    line
                }
                Event::WriteTextFile(call) => {
                    let line = request("fs/write_text_file", json!(*call));
                    call.reply(Ok(WriteTextFileResponse::new())).await?;
                    line
                }
                Event::CreateTerminal(call) => {
                    let line = request("terminal/create", json!(*call));
                    call.reply(Ok(CreateTerminalResponse::new("t1"))).await?;
                    line
                }
                Event::TerminalOutput(call) => {
                    let line = request("terminal/output", json!(*call));
                    call.reply(Ok(TerminalOutputResponse::new("running", false))).await?;
                    line
                }
                Event::WaitForTerminalExit(call) => {
                    let line = request("terminal/wait_for_exit", json!(*call));
                    call.reply(Ok(ExitStatus::new().signal("SIGKILL"))).await?;
                    line
                }
                Event::KillTerminal(call) => {
                    let line = request("terminal/kill", json!(*call));
                    call.reply(Ok(KillTerminalResponse::new())).await?;
                    line
                }
                Event::ReleaseTerminal(call) => {
                    let line = request("terminal/release", json!(*call));
                    call.reply(Ok(ReleaseTerminalResponse::new())).await?;
                    line
                }
                Event::Extension(call) => {
                    let Number { n } = call.params()?;
                    let line = format!("called {} {n}", call.method());
                    call.reply(&Number { n: n + 1 }).await?;
                    line
                }
                Event::ExtensionNotice(notice) => format!("noted {} {}", notice.method(), notice.params::<Number>()?.n),
                other => format!("unexpected {other:?}"),
            });
        }
        lines.push(format!("end {}", turn.stop().map_or("without a word", Stop::as_str)));
        if let Some(closing) = closing {
            closing.await.expect("no panic")?;
            lines.push("closed".into());
        }
        Ok(lines)
    }

    async fn try_step(&mut self, verb: &str, rest: &str) -> Result<Vec<String>, Error> {
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = Number { n: second.parse().unwrap_or(0) };
        let ok = vec!["ok".to_string()];
        match verb {
            "open" => {
                let session = self.connection.session(rest).open().await?;
                self.opened(session).await
            }
            "load" => {
                let session = self.connection.session("/work").load(rest).await?;
                self.replayed(session).await
            }
            "resume" => {
                let session = self.connection.session("/work").resume(rest).await?;
                self.replayed(session).await
            }
            "list" => {
                let page = self.connection.list_sessions(&ListSessionsRequest::new()).await?;
                Ok(seen::sessions(&json!(page.sessions)))
            }
            "delete" => self.connection.delete_session(rest).await.map(|()| ok),
            "close" => self.session()?.close().await.map(|()| ok),
            "login" => self.connection.authenticate(rest).await.map(|()| ok),
            "logout" => self.connection.logout().await.map(|()| ok),
            "mode" => self.session()?.set_option("mode", ConfigValueId::from(rest)).await.map(|_| ok),
            "option" => {
                let options = self.session()?.set_option(first, ConfigValueId::from(second)).await?;
                Ok(vec![seen::options(&json!(options))])
            }
            "call" => {
                let answer: Number = self.connection.call_extension(first, &number).await?;
                Ok(vec![format!("answered {}", answer.n)])
            }
            "note" => self.connection.notify_extension(first, &number).await.map(|()| ok),
            verb => self.turn(Answer::parse(verb), rest).await,
        }
    }
}

fn line_of(error: &Error) -> String {
    match error {
        Error::Refused(error) => failed(&error.code.into(), &error.message),
        // It knows what the agent would say, and does not ask.
        Error::Invalid(text) if text == "the session is closed" => "failed -32002".into(),
        other => format!("failed here: {other}"),
    }
}

impl Editor for OurClient {
    async fn step(&mut self, verb: &str, rest: &str) -> Vec<String> {
        match self.try_step(verb, rest).await {
            Ok(lines) => lines,
            Err(error) => vec![line_of(&error)],
        }
    }
}
