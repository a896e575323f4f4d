//! The agent that probes a client: it asks, waits, and goes on serving the client meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use attache_proto::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::batch::is_response;
use super::options::Options;
use super::record_file::RecordFile;
use super::scenario::Setup;
use super::sessions::Session;
use super::turn::{Prompt, Turn};
use crate::exchange::at;
use crate::probe::{Peer, Received, Wire};
use crate::record::{Event, Record, Side};

/// How long a client that left two requests without an answer may take for any other.
const LITTLE_PATIENCE: Duration = Duration::from_secs(1);

/// How long the client may take to read what is sent.
const SENDING: Duration = Duration::from_secs(15);

/// As good as for ever.
const LONG: Duration = Duration::from_secs(365 * 24 * 3600);

/// An agent that keeps to the protocol in all dialects, serves what the client asks, and records everything. Scenarios make it do
/// whatever they are about.
#[derive(Debug)]
pub struct AgentDriver {
    pub(super) wire: Wire,
    pub(super) options: Options,
    pub(super) setup: Setup,
    pub(super) dialect: Dialect,
    /// What the client said of itself in the `initialize` that counts.
    pub(super) hello: Value,
    pub(super) is_greeted: bool,
    pub(super) is_logged_in: bool,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) deleted: BTreeSet<String>,
    pub(super) prompts: VecDeque<Prompt>,
    pub(super) turn: Option<Turn>,
    /// Tool calls and terminals that the client may cancel now, and those that it did.
    pub(super) cancellable: BTreeMap<String, bool>,
    /// The answer to `session/new` that was sent last.
    pub(super) last_answer: Option<Value>,
    pub(super) is_gone: bool,
    /// How many errors came that name no request.
    pub(super) refusals: usize,
    asked: BTreeMap<String, Asked>,
    next_id: i64,
    minted: u64,
    silent: u32,
    deadline: Option<Instant>,
    file: Option<RecordFile>,
}

#[derive(Debug)]
struct Asked {
    id: Value,
    is_permission: bool,
    answer: Option<Answer>,
}

/// What came of a request to the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A result.
    Result(Value),
    /// An error with this code.
    Error(i64),
    /// Nothing: it did not come in time, the turn was cancelled before it was asked, or the client is gone.
    Nothing,
}

impl Answer {
    /// The result; null if there is none.
    pub fn result(&self) -> &Value {
        match self {
            Answer::Result(result) => result,
            _ => &Value::Null,
        }
    }

    /// Whether it is a result.
    pub fn is_result(&self) -> bool {
        matches!(self, Answer::Result(_))
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Something came, and was served.
    Served,
    /// Nothing came in time.
    Nothing,
    /// The client is gone.
    Gone,
}

impl AgentDriver {
    /// An agent for the client at the other end.
    pub fn new(client: Peer, setup: Setup, options: Options) -> Self {
        let mut wire = Wire::new(Side::Client, client);
        let file = options.records.as_deref().map(RecordFile::create).transpose().unwrap_or_else(|error| {
            wire.note(Event::Note { text: format!("no file for the record: {error}") });
            None
        });
        AgentDriver {
            wire,
            deadline: options.limit.map(|limit| Instant::now() + limit),
            options,
            setup,
            dialect: Dialect::V1,
            hello: Value::Null,
            is_greeted: false,
            is_logged_in: false,
            sessions: BTreeMap::new(),
            deleted: BTreeSet::new(),
            prompts: VecDeque::new(),
            turn: None,
            cancellable: BTreeMap::new(),
            last_answer: None,
            is_gone: false,
            refusals: 0,
            asked: BTreeMap::new(),
            next_id: 0,
            minted: 0,
            silent: 0,
            file,
        }
    }

    /// How the two speak.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the client offered what is at a path of its capabilities.
    pub fn is_offered(&self, path: &str) -> bool {
        let root = if self.dialect == Dialect::V1 { "clientCapabilities" } else { "capabilities" };
        let value = at(&self.hello[root], path);
        value.as_bool() == Some(true) || value.is_object()
    }

    /// Whether nothing new should be begun: the client is gone, or has cancelled the turn.
    pub fn is_over(&self) -> bool {
        self.is_gone || self.turn.as_ref().is_some_and(|turn| turn.is_cancelled)
    }

    /// Asks the client, serves it until it has answered, and gives the answer. Nothing is asked in a turn that is over.
    pub async fn ask(&mut self, method: &str, params: Value) -> Answer {
        if self.is_over() { Answer::Nothing } else { self.ask_always(method, params).await }
    }

    /// Asks the client what has to be asked even in a turn that was cancelled.
    pub async fn ask_always(&mut self, method: &str, params: Value) -> Answer {
        let id = self.request(method, params).await;
        self.wait_for(std::slice::from_ref(&id), self.limit(method)).await;
        self.answer(&id)
    }

    /// Asks whether the client still serves what it is sent, by a method that nobody has.
    pub async fn ping(&mut self) -> Answer {
        self.ask("_attache.check/ping", json!({})).await
    }

    /// Sends a request with the next id and returns the id.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.request_as(id, method, params).await
    }

    /// Sends a request with an id of one's own.
    pub async fn request_as(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.expect(&id);
        if method == "session/request_permission" {
            self.asked.entry(id.to_string()).and_modify(|asked| asked.is_permission = true);
        }
        self.send(json!({"id": id, "method": method, "params": params})).await;
        id
    }

    /// Takes it that a request with this id was sent.
    pub(super) fn expect(&mut self, id: &Value) {
        self.asked.insert(id.to_string(), Asked { id: id.clone(), is_permission: false, answer: None });
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"method": method, "params": params})).await;
    }

    /// How long the client may take to answer a method.
    pub fn limit(&self, method: &str) -> Duration {
        let limit = match method {
            // What a careful client asks its person about.
            "session/request_permission"
            | "elicitation/create"
            | "fs/write_text_file"
            | "fs/read_text_file"
            | "terminal/create" => self.options.person,
            _ => self.options.patience,
        };
        if self.silent >= 2 { limit.min(LITTLE_PATIENCE) } else { limit }
    }

    /// Serves the client until all these requests have answers. That they have not in time is written down.
    pub async fn wait_for(&mut self, ids: &[Value], limit: Duration) {
        let (mut begin, mut limit, mut is_withdrawn) = (Instant::now(), limit, false);
        while !self.is_gone && ids.iter().any(|id| self.is_open(id)) {
            if self.is_over() && !is_withdrawn {
                is_withdrawn = true;
                (begin, limit) = (Instant::now(), limit.min(self.options.patience));
                self.withdraw(ids).await;
            }
            if self.step(begin + limit).await == Step::Nothing {
                self.wire.note(Event::Waited { time: begin.elapsed() });
                self.silent += 1;
                return;
            }
        }
    }

    /// The answer to a request.
    pub fn answer(&self, id: &Value) -> Answer {
        self.asked.get(&id.to_string()).and_then(|asked| asked.answer.clone()).unwrap_or(Answer::Nothing)
    }

    /// Serves the client for some time, or until the turn is over. Nothing is owed meanwhile.
    pub async fn idle(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_over() && self.step(until).await == Step::Served {}
    }

    pub(super) fn is_open(&self, id: &Value) -> bool {
        self.asked.get(&id.to_string()).is_some_and(|asked| asked.answer.is_none())
    }

    /// Takes back the questions of a cancelled turn. Before version 2 was published that was the client's part.
    async fn withdraw(&mut self, ids: &[Value]) {
        if self.dialect != Dialect::V2 {
            return;
        }
        let is_ours = |asked: &&Asked| asked.is_permission && asked.answer.is_none() && ids.contains(&asked.id);
        let open: Vec<Value> = self.asked.values().filter(is_ours).map(|asked| asked.id.clone()).collect();
        for id in open {
            self.notify("$/cancel_request", json!({"requestId": id})).await;
        }
    }

    /// The next prompt; `None` when there will be none.
    pub(super) async fn next_prompt(&mut self) -> Option<Prompt> {
        loop {
            if let Some(prompt) = self.prompts.pop_front() {
                return Some(prompt);
            }
            let silence = self.options.silence.unwrap_or(LONG);
            match self.step(Instant::now() + silence).await {
                Step::Served => {}
                Step::Nothing | Step::Gone => return None,
            }
        }
    }

    /// Takes in the next message of the client, and serves it.
    pub(super) async fn step(&mut self, until: Instant) -> Step {
        self.save();
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        // A client that never stops talking could keep us for ever.
        if self.is_gone || (self.deadline.is_some() && Instant::now() >= until) {
            return if self.is_gone { Step::Gone } else { Step::Nothing };
        }
        match self.wire.receive_until(until).await {
            Received::Json(message) => self.handle(message).await,
            Received::Junk => self.send(error(&Value::Null, -32700, "not JSON", None)).await,
            Received::Nothing => return Step::Nothing,
            Received::Closed => {
                self.is_gone = true;
                return Step::Gone;
            }
        }
        Step::Served
    }

    async fn handle(&mut self, message: Value) {
        match &message {
            Value::Array(_) => self.handle_batch(message).await,
            Value::Object(members) if members.contains_key("method") => {
                if let Some(response) = self.handle_call(&message).await {
                    self.send(response).await;
                }
            }
            _ if is_response(&message) => self.handle_response(&message),
            _ => self.send(error(&Value::Null, -32600, "not a message", None)).await,
        }
    }

    pub(super) fn handle_response(&mut self, message: &Value) {
        let Some(asked) = self.asked.get_mut(&message["id"].to_string()) else {
            self.refusals += usize::from(message["id"].is_null());
            return;
        };
        let outcome = match message.get("result") {
            Some(result) => Answer::Result(result.clone()),
            None => Answer::Error(message["error"]["code"].as_i64().unwrap_or_default()),
        };
        asked.answer.get_or_insert(outcome);
    }

    /// Sends a message.
    pub async fn send(&mut self, message: Value) {
        if !self.is_gone {
            let sent = self.wire.send(message, SENDING).await;
            self.sent(sent).await;
        }
    }

    /// Sends a line to the letter.
    pub async fn send_line(&mut self, line: &str) {
        if !self.is_gone {
            let sent = self.wire.send_text(line, SENDING).await;
            self.sent(sent).await;
        }
    }

    /// Sends bytes that are no text; how many is written down.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        if !self.is_gone {
            self.wire.note(Event::Junk { from: Side::Agent, bytes: bytes.len() });
            let sent = self.wire.send_bytes(bytes, SENDING).await;
            self.sent(sent).await;
        }
    }

    async fn sent(&mut self, sent: std::io::Result<()>) {
        if let Err(error) = sent {
            // Half a line may be out; nothing can be said after it.
            self.wire.note(Event::Note { text: format!("the client takes nothing more: {error}") });
            self.close().await;
        }
    }

    /// Closes our end.
    pub async fn close(&mut self) {
        self.is_gone = true;
        self.wire.close().await;
    }

    /// Writes down in words what is about to happen.
    pub fn note(&mut self, text: impl Into<String>) {
        self.wire.note(Event::Note { text: text.into() });
    }

    /// A number that was not used before.
    pub fn mint(&mut self) -> u64 {
        self.minted += 1;
        self.minted
    }

    fn save(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.save(self.wire.record())
        {
            self.file = None;
            self.note(format!("the record could not be written: {error}"));
        }
    }

    /// Ends the connection: closes our end, gives the client its time to close its own, and gives the record.
    pub(super) async fn finish(mut self) -> Record {
        self.wire.close().await;
        let (begin, patience) = (Instant::now(), self.options.patience);
        loop {
            match self.wire.receive_until(begin + patience).await {
                Received::Closed => break,
                Received::Json(message) if message.get("method").is_none() => self.handle_response(&message),
                Received::Nothing => {
                    self.wire.note(Event::Waited { time: patience });
                    break;
                }
                _ if begin.elapsed() > patience => break,
                _ => {}
            }
        }
        self.save();
        drop(self.file);
        self.wire.into_record()
    }
}

/// An error response.
pub(super) fn error(id: &Value, code: i32, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"id": id, "error": error})
}
