//! A client that keeps to the protocol: what probes drive an agent with. Everything in it has a deadline.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use attache::process::Process;
use attache_proto::Dialect;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::hear::Step;
use super::serve::{Elicitation, Permission};
use super::settings::Options;
use super::start::Start;
use super::terminal::Terminals;
use super::words::{self, Feature};
use crate::probe::Wire;
use crate::record::{Event, Record, Side};

/// Why a probe does not go on: the agent is gone, does not offer what it takes, or did not do what it builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over;

pub(super) type Flow<T = ()> = Result<T, Over>;

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Result(Value),
    Error(Value),
    /// Nothing, in time.
    Nothing,
}

impl Answer {
    /// The result, without which there is no going on.
    pub(super) fn result(self) -> Flow<Value> {
        match self {
            Answer::Result(result) => Ok(result),
            _ => Err(Over),
        }
    }
}

/// A client that drives an agent.
pub(super) struct Driver {
    pub(super) wire: Wire,
    pub(super) dialect: Dialect,
    pub(super) options: Options,
    /// The result of `initialize`.
    pub(super) greeting: Value,
    /// What we said that we offer.
    pub(super) offered: Value,
    /// How we answer when the agent asks for permission.
    pub(super) permission: Permission,
    /// How we answer the agent's questions.
    pub(super) elicitation: Elicitation,
    /// The requests for permission that are left open.
    pub(super) held: Vec<Value>,
    pub(super) terminals: Terminals,
    /// How often each session was said to be idle.
    pub(super) idles: BTreeMap<String, usize>,
    /// Why each session was last said to be idle.
    pub(super) stops: BTreeMap<String, String>,
    /// How many turns run.
    pub(super) running: usize,
    start: Start,
    process: Option<Process>,
    folder: TempDir,
    cwd: String,
    last_id: i64,
    /// Our own requests that have no answer yet.
    pub(super) unanswered: BTreeSet<i64>,
    /// Answers that nobody took yet, by their id as JSON.
    pub(super) answers: BTreeMap<String, VecDeque<Value>>,
    /// Whether the agent has closed its end.
    pub(super) is_gone: bool,
    /// Whether the agent has said something, or had all the time that a start may take.
    pub(super) has_started: bool,
}

impl Driver {
    /// Starts the agent.
    pub(super) async fn new(start: &Start, dialect: Dialect, options: &Options) -> io::Result<Self> {
        let folder = TempDir::new()?;
        let cwd = folder.path().canonicalize()?.to_string_lossy().into_owned();
        std::fs::write(folder.path().join("notes.txt"), "one\ntwo\nthree\n")?;
        let (peer, process) = start.start().await?;
        Ok(Driver {
            wire: Wire::new(Side::Agent, peer).most_read(options.most_read),
            dialect,
            options: options.clone(),
            greeting: Value::Null,
            offered: words::everything(dialect),
            permission: Permission::Allow,
            elicitation: Elicitation::Accept,
            held: Vec::new(),
            terminals: Terminals::default(),
            idles: BTreeMap::new(),
            stops: BTreeMap::new(),
            running: 0,
            start: start.clone(),
            process,
            folder,
            cwd,
            last_id: 0,
            unanswered: BTreeSet::new(),
            answers: BTreeMap::new(),
            is_gone: false,
            has_started: false,
        })
    }

    /// The directory that sessions work in, which is the probe's own.
    pub(super) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The path of a file in it.
    pub(super) fn path(&self, name: &str) -> String {
        Path::new(&self.cwd).join(name).to_string_lossy().into_owned()
    }

    /// Says what comes now, for whoever reads the record.
    pub(super) fn note(&mut self, text: &str) {
        self.wire.note(Event::Note { text: text.to_owned() });
    }

    /// Goes on only if this is so.
    pub(super) fn need(&self, is_so: bool) -> Flow {
        if is_so { Ok(()) } else { Err(Over) }
    }

    /// Whether the agent offers something.
    pub(super) fn offers(&self, feature: Feature) -> bool {
        words::offers(self.dialect, &self.greeting, feature)
    }

    // What we send.

    /// Greets the agent, offering all that there is.
    pub(super) async fn hello(&mut self) -> Flow {
        self.hello_offering(words::everything(self.dialect)).await
    }

    /// Greets the agent, offering this.
    pub(super) async fn hello_offering(&mut self, offered: Value) -> Flow {
        let params = words::hello(self.dialect, &offered);
        self.offered = offered;
        let id = self.ask("initialize", params).await?;
        let startup = self.options.startup;
        self.greeting = self.answer(id, startup).await?.result()?;
        if self.greeting["protocolVersion"] == 1 {
            self.dialect = Dialect::V1;
        }
        if let Some(method) = self.options.authenticate.clone() {
            self.request(words::login(self.dialect), json!({ "methodId": method })).await?.result()?;
        }
        Ok(())
    }

    /// Greets the agent and opens a session.
    pub(super) async fn begin(&mut self) -> Flow<String> {
        self.hello().await?;
        self.open().await
    }

    /// Opens a session in the probe's directory.
    pub(super) async fn open(&mut self) -> Flow<String> {
        Ok(self.open_with_result().await?.0)
    }

    /// The same, with all that the agent said of it.
    pub(super) async fn open_with_result(&mut self) -> Flow<(String, Value)> {
        let params = words::opening(self.dialect, &self.cwd);
        let id = self.ask("session/new", params).await?;
        // A session may take as long as a start: some agents do then what others do before.
        let startup = self.options.startup;
        let result = self.answer(id, startup).await?.result()?;
        let session = result["sessionId"].as_str().ok_or(Over)?.to_owned();
        Ok((session, result))
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> Flow<Answer> {
        let id = self.ask(method, params).await?;
        let patience = self.options.patience;
        self.answer(id, patience).await
    }

    /// Sends a request; the answer is for later.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Flow<i64> {
        self.last_id += 1;
        let id = self.last_id;
        self.unanswered.insert(id);
        self.send(json!({ "id": id, "method": method, "params": params })).await?;
        Ok(id)
    }

    /// Sends a notification.
    pub(super) async fn notify(&mut self, method: &str, params: Value) -> Flow {
        self.send(json!({ "method": method, "params": params })).await
    }

    /// Cancels the turns of a session, and answers what it asks.
    pub(super) async fn cancel(&mut self, session: &str) -> Flow {
        self.notify("session/cancel", json!({ "sessionId": session })).await?;
        let held = std::mem::take(&mut self.held);
        let (mine, others): (Vec<_>, Vec<_>) = held.into_iter().partition(|ask| ask["params"]["sessionId"] == session);
        self.held = others;
        for ask in mine {
            self.answer_permission(&ask, Permission::Cancel).await?;
        }
        Ok(())
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: Value) -> Flow {
        let sent = self.wire.send(message, self.options.startup).await;
        self.sent(sent).await
    }

    /// Sends a line to the letter.
    pub(super) async fn send_line(&mut self, line: &str) -> Flow {
        let sent = self.wire.send_text(line, self.options.startup).await;
        self.sent(sent).await
    }

    /// Sends bytes that are no text, or too much of it.
    pub(super) async fn send_junk(&mut self, bytes: &[u8]) -> Flow {
        let sent = self.wire.send_junk(bytes, self.options.startup).await;
        self.sent(sent).await
    }

    /// What cannot be sent ends the probe; what the agent still has to say is heard.
    async fn sent(&mut self, sent: io::Result<()>) -> Flow {
        let Err(error) = sent else { return Ok(()) };
        self.note(&format!("Could not send: {}.", error.kind()));
        let deadline = Instant::now() + self.options.patience;
        while !matches!(self.step(deadline).await, Step::Late | Step::Gone) {}
        self.is_gone = true;
        Err(Over)
    }

    // How it ends.

    /// Closes our end, and gives the agent time to end.
    pub(super) async fn leave(&mut self) {
        self.wire.close().await;
        // It may take as long to end as to start: there may be things to save.
        let patience = self.options.startup.max(Duration::from_secs(2));
        let deadline = Instant::now() + patience;
        loop {
            match self.step(deadline).await {
                Step::Gone => return,
                Step::Late => {
                    self.wire.note(Event::Waited { time: patience });
                    return;
                }
                // What it asks now is not answered: our end is closed.
                Step::Message(_) | Step::Junk => {}
            }
        }
    }

    /// Ends the agent and starts it anew. It has time to write down what it keeps.
    pub(super) async fn restart(&mut self) -> Flow {
        self.note("The agent is ended and started again.");
        self.leave().await;
        self.keep_stderr();
        drop(self.process.take());
        let (peer, process) = self.start.start().await.map_err(|_| Over)?;
        self.wire.reconnect(peer);
        self.process = process;
        self.terminals = Terminals::default();
        self.held.clear();
        self.unanswered.clear();
        self.answers.clear();
        self.idles.clear();
        (self.running, self.is_gone, self.has_started) = (0, false, false);
        Ok(())
    }

    /// The agent has closed its end; its process ends soon, or it does not.
    pub(super) async fn gone(&mut self) {
        self.is_gone = true;
        let Some(process) = &mut self.process else { return };
        match tokio::time::timeout(self.options.patience, process.wait()).await {
            Ok(status) => self.wire.note(Event::Exited { code: status.code }),
            Err(_) => self.wire.note(Event::Waited { time: self.options.patience }),
        }
    }

    /// Writes down what the agent wrote to stderr, as far as it is kept.
    fn keep_stderr(&mut self) {
        let tail = self.process.as_ref().map(Process::stderr_tail).unwrap_or_default();
        for line in tail.lines() {
            self.wire.note(Event::Stderr { text: line.to_owned() });
        }
    }

    /// Waits for what is still owed, and ends the agent. What was recorded stays.
    pub(super) async fn finish(mut self, is_in_time: bool) -> Record {
        let has_all = |driver: &Driver| driver.unanswered.is_empty() && driver.terminals.is_empty();
        if is_in_time && !self.is_gone && self.running == 0 && !has_all(&self) {
            let patience = self.options.patience;
            let deadline = Instant::now() + patience;
            if let Ok(false) = self.pump(deadline, |driver, _| has_all(driver)).await {
                self.wire.note(Event::Waited { time: patience });
            }
        }
        self.keep_stderr();
        drop(self.process.take());
        // The agent is gone, so nobody works in its directory any more.
        drop(self.folder);
        self.wire.into_record()
    }
}
