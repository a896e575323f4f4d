//! A server with a scripted model, for tests of clients of the APIs of OpenAI, Anthropic and Google.
//!
//! **There is no language model in it.** It answers what a test told it to answer, in the words that the providers
//! document, and remembers what it was asked:
//!
//! ```text
//! POST …/chat/completions                       OpenAI's chat completions
//! POST …/responses                              OpenAI's Responses
//! POST …/messages                               Anthropic's messages
//! POST …/models/NAME:streamGenerateContent      Google's Gemini (with `alt=sse`)
//! POST …/models/NAME:generateContent
//! POST …/api/chat                               Ollama's own
//! GET  …/models                                 the list of models, in the words of the one who asks
//! GET  …/api/tags                               the list of models, in Ollama's words
//! ```
//!
//! ```
//! use attache_testkit::model_server::{Answer, ModelServer};
//! use serde_json::json;
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let server = ModelServer::start(vec![
//!     Answer::text("Let me see.").call("read_file", json!({"path": "a.txt"})),
//!     Answer::text("It is empty."),
//! ])
//! .await;
//! # let body = r#"{"model":"m","messages":[{"role":"user","content":"What is in a.txt?"}]}"#;
//! # let address = server.url().replace("http://", "");
//! # let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
//! # let head = format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
//! # client.write_all((head + body).as_bytes()).await.unwrap();
//! # let mut answer = String::new();
//! # client.read_to_string(&mut answer).await.unwrap();
//! # assert!(answer.contains("Let me see."), "{answer}");
//! // … a client asks `server.url()` …
//! assert_eq!(server.requests()[0].texts(), ["What is in a.txt?"]);
//! # });
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{Connection, Gone, HttpRequest, Listening, NoRequest, listen};
use crate::tally::Tally;

mod answer;
mod anthropic;
mod gemini;
mod ollama;
mod openai;
mod play;
mod request;
mod responses;
mod script;
#[cfg(test)]
mod tests;
mod tool;

pub use answer::{Answer, Stop};
pub use request::{Api, ModelRequest, Turn};
pub use tool::Tool;

/// A server with a scripted model, on a free port of 127.0.0.1 and on the runtime that it was started on. Stops when it
/// is dropped.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<Shared>,
    listening: Listening,
}

type Script = Box<dyn FnMut(&ModelRequest) -> Answer + Send>;

struct Shared {
    /// Locked while an answer is chosen, so that answers and requests are in the same order.
    script: Mutex<Script>,
    seen: Mutex<Seen>,
    tally: Tally,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("tally", &self.tally).finish_non_exhaustive()
    }
}

struct Seen {
    remembers: bool,
    count: usize,
    requests: Vec<ModelRequest>,
    lines: Vec<String>,
    models: Vec<String>,
    /// What is said under a path instead.
    pages: HashMap<String, Value>,
}

impl ModelServer {
    /// Starts a server that gives these answers, one a request. When they run out, requests are answered with status 500
    /// and a message that says so.
    pub async fn start(answers: Vec<Answer>) -> Self {
        let mut answers = answers.into_iter();
        ModelServer::with(move |request| {
            answers.next().unwrap_or_else(|| {
                let message = format!("the script ended: there is no answer for request {}", request.number);
                Answer::status(500).body(play::error(request.api, 500, &message))
            })
        })
        .await
    }

    /// Starts a server that asks a function for each answer.
    pub async fn with(script: impl FnMut(&ModelRequest) -> Answer + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            seen: Mutex::new(Seen {
                remembers: true,
                count: 0,
                requests: Vec::new(),
                lines: Vec::new(),
                models: vec!["scripted".to_owned()],
                pages: HashMap::new(),
            }),
            tally: Tally::default(),
        });
        let for_connections = Arc::clone(&shared);
        let listening = listen(move |connection| serve(Arc::clone(&for_connections), connection)).await;
        ModelServer { shared, listening }
    }

    /// Starts a server whose model does what the lines of the prompt say. The last prompt that has such lines is the
    /// script:
    ///
    /// ```text
    /// call NAME JSON      call that tool; this ends the answer, and what follows waits for the result
    /// use PURPOSE JSON    call the tool that is for this (`read`, `write`, `run`, `plan` or `ask`), whatever its name
    /// and NAME JSON       right after `call`: call this one too, in the same answer
    /// say TEXT            say this; before a call it replaces the words "step N"
    /// think TEXT          think this
    /// stop length         stop for this reason, and without "done"
    /// stop refusal
    /// slowly              at the end, talk for half a minute instead of saying "done"
    /// recall              at the end, say which words come after `remember` in the conversation
    /// ```
    ///
    /// After the last line the model says "done". How far it is, it sees from the tool results after the prompt, so it
    /// remembers nothing itself. A purpose that no tool has is passed over; what `use` is told are `path`, `content`,
    /// `command`, `seconds` (the call gives up by then), `entries` and `question`. Other lines mean nothing to it. To a request without tools it only says "done", or some JSON
    /// of the schema that it is given.
    pub async fn scripted() -> Self {
        ModelServer::with(script::answer).await
    }

    /// The same, and remembers only how often it was asked: for programs that run long, or for others.
    pub async fn scripted_without_memory() -> Self {
        let server = ModelServer::scripted().await;
        server.shared.seen().remembers = false;
        server
    }

    /// Where the server listens: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        self.listening.url()
    }

    /// What the model was asked so far. Requests that were refused as a provider would refuse them are not among them.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.seen().requests.clone()
    }

    /// The method and path of everything that came so far, such as `GET /v1/models`.
    pub fn request_lines(&self) -> Vec<String> {
        self.shared.seen().lines.clone()
    }

    /// Sets which models are listed; `scripted` without this. The server answers for any model all the same.
    pub fn list_models(&self, names: &[&str]) {
        self.shared.seen().models = names.iter().map(|&name| name.to_owned()).collect();
    }

    /// Says this under a path, whatever it would say there itself: a list with prices and contexts at `/v1/models`, the
    /// settings of llama.cpp at `/props`, what Ollama knows of a model at `/api/show`.
    pub fn say_at(&self, path: &str, body: Value) {
        self.shared.seen().pages.insert(path.to_owned(), body);
    }

    /// How many clients left before they had the whole answer.
    pub fn connections_closed(&self) -> usize {
        self.shared.tally.closed()
    }

    /// Waits until the model was asked so many times in all.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    pub async fn wait_for_requests(&self, count: usize) {
        self.shared.tally.wait_for_requests(count).await;
    }

    /// Waits until so many clients in all left before they had the whole answer.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    pub async fn wait_for_closed(&self, count: usize) {
        self.shared.tally.wait_for_closed(count).await;
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a request, and asks the script for the answer.
    fn answer(&self, request: &mut ModelRequest) -> Answer {
        // A script that panicked fails its test in some way of its own; the next request is still served.
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut seen = self.seen();
            seen.count += 1;
            request.number = seen.count;
            if seen.remembers {
                seen.requests.push(request.clone());
            }
        }
        self.tally.count_request();
        script(request)
    }
}

async fn serve(shared: Arc<Shared>, mut connection: Connection) {
    let request = match connection.request().await {
        Ok(request) => request,
        Err(NoRequest::Gone) => return,
        Err(NoRequest::Bad(status, reason)) => {
            return connection.refuse(status, openai::error(status, reason).to_string().as_bytes()).await;
        }
    };
    {
        let mut seen = shared.seen();
        if seen.remembers {
            seen.lines.push(format!("{} {}", request.method, request.target));
        }
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let page = shared.seen().pages.get(path).cloned();
    let is_complete = match (page, request.method.as_str(), Api::of(path)) {
        (Some(page), ..) => respond(connection, 200, &page).await,
        (None, "POST", Some(api)) => ask(&shared, connection, api, request).await,
        (None, "GET", None) if path.ends_with("/models") || path.ends_with("/api/tags") => {
            let list = list(&shared, path, &request);
            respond(connection, 200, &list).await
        }
        _ => respond(connection, 404, &openai::error(404, "there is no such path")).await,
    };
    if is_complete.is_err() {
        shared.tally.count_closed();
    }
}

async fn ask(shared: &Shared, connection: Connection, api: Api, request: HttpRequest) -> Result<(), Gone> {
    let refuse =
        |connection, reason: String| async move { respond(connection, 400, &play::error(api, 400, &reason)).await };
    let body = match serde_json::from_slice::<Value>(&request.body) {
        Ok(body) if body.is_object() => body,
        Ok(_) => return refuse(connection, "the body is not an object".to_owned()).await,
        Err(error) => return refuse(connection, format!("the body is not JSON: {error}")).await,
    };
    let mut request = ModelRequest { number: 0, api, path: request.target, headers: request.headers, body };
    if let Some(fault) = request.fault() {
        return refuse(connection, fault).await;
    }
    let answer = shared.answer(&mut request);
    play::play(connection, &answer, &request).await
}

/// The list of models, in the words of the one who asks.
fn list(shared: &Shared, path: &str, request: &HttpRequest) -> Value {
    let models = shared.seen().models.clone();
    if path.ends_with("/api/tags") {
        let model = |name: &String| json!({"name": name, "model": name, "size": 1, "details": {"family": "scripted"}});
        json!({"models": models.iter().map(model).collect::<Vec<_>>()})
    } else if request.headers.contains_key("anthropic-version") {
        anthropic::models(&models)
    } else if path.ends_with("/v1beta/models") {
        gemini::models(&models)
    } else {
        openai::models(&models)
    }
}

async fn respond(connection: Connection, status: u16, body: &Value) -> Result<(), Gone> {
    let headers = [("content-type".to_owned(), "application/json".to_owned())];
    connection.respond(status, &headers, body.to_string().as_bytes()).await
}
