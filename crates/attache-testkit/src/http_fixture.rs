//! A server with fixed pages, for tests of whatever fetches them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::http::{Connection, Gone, Listening, NoRequest, listen};
use crate::tally::Tally;

/// How many bytes of a page are written at a time, unless the page says so itself.
const WRITE_SIZE: usize = 64 * 1024;

/// A server with fixed pages, on a free port of 127.0.0.1 and on the runtime that it was started on. Stops when it is
/// dropped.
///
/// ```
/// use attache_testkit::{HttpFixture, Response};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let server = HttpFixture::start(vec![
///     ("/old", Response::redirect("/page")),
///     ("/page", Response::html("<h1>Hello</h1>")),
///     ("/flood", Response::text("water ").endless()),
/// ])
/// .await;
/// assert!(server.url("/old").starts_with("http://127.0.0.1:"));
/// # });
/// ```
#[derive(Debug)]
pub struct HttpFixture {
    shared: Arc<Shared>,
    listening: Listening,
}

#[derive(Debug)]
struct Shared {
    pages: BTreeMap<String, Response>,
    seen: Mutex<Vec<HttpAsked>>,
    tally: Tally,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct HttpAsked {
    /// `GET`, and so on.
    pub method: String,
    /// Its path, with its query.
    pub path: String,
    /// Its headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A page: what is answered to requests for its path.
#[derive(Debug, Clone)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    manner: Manner,
    write_size: usize,
    delay: Duration,
}

/// How a body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    Chunked,
    Endless,
    Cut,
    Hang,
}

impl Response {
    /// A page with nothing in it.
    pub fn status(status: u16) -> Self {
        let (headers, body) = (Vec::new(), Vec::new());
        Response { status, headers, body, manner: Manner::Whole, write_size: WRITE_SIZE, delay: Duration::ZERO }
    }

    /// A page of some type, such as `image/png`.
    pub fn bytes(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Response::status(200).header("content-type", content_type).body(bytes)
    }

    /// A page of HTML.
    pub fn html(html: impl Into<String>) -> Self {
        Response::bytes("text/html; charset=utf-8", html.into())
    }

    /// A page of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Response::bytes("text/plain; charset=utf-8", text.into())
    }

    /// A page that sends its reader elsewhere: to a path of this server, or to a whole address.
    pub fn redirect(location: &str) -> Self {
        Response::status(302).header("location", location)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Has this body.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        self
    }

    /// Does not say how long the body is.
    pub fn chunked(mut self) -> Self {
        self.manner = Manner::Chunked;
        self
    }

    /// Sends the body again and again until the client leaves, without saying how long it is.
    pub fn endless(mut self) -> Self {
        self.manner = Manner::Endless;
        self
    }

    /// Closes the connection in the middle of the body.
    pub fn cut(mut self) -> Self {
        self.manner = Manner::Cut;
        self
    }

    /// Sends the head, then nothing until the client leaves.
    pub fn hang(mut self) -> Self {
        self.manner = Manner::Hang;
        self
    }

    /// Sends so many bytes of the body at a time, and waits before each time.
    pub fn slow(mut self, bytes: usize, delay: Duration) -> Self {
        (self.write_size, self.delay) = (bytes.max(1), delay);
        self
    }
}

impl HttpFixture {
    /// Starts a server with these pages. Paths are compared without the query; other paths are answered with 404.
    pub async fn start(pages: Vec<(&str, Response)>) -> Self {
        let pages = pages.into_iter().map(|(path, page)| (path.to_owned(), page)).collect();
        let shared = Arc::new(Shared { pages, seen: Mutex::default(), tally: Tally::default() });
        let for_connections = Arc::clone(&shared);
        let listening = listen(move |connection| serve(Arc::clone(&for_connections), connection)).await;
        HttpFixture { shared, listening }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.listening.url())
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<HttpAsked> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many clients left before they had the whole page.
    pub fn connections_closed(&self) -> usize {
        self.shared.tally.closed()
    }

    /// Waits until there were so many requests in all.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    pub async fn wait_for_requests(&self, count: usize) {
        self.shared.tally.wait_for_requests(count).await;
    }

    /// Waits until so many clients in all left before they had the whole page.
    ///
    /// # Panics
    ///
    /// If that does not happen in time.
    pub async fn wait_for_closed(&self, count: usize) {
        self.shared.tally.wait_for_closed(count).await;
    }
}

async fn serve(shared: Arc<Shared>, mut connection: Connection) {
    let request = match connection.request().await {
        Ok(request) => request,
        Err(NoRequest::Gone) => return,
        Err(NoRequest::Bad(status, reason)) => return connection.refuse(status, reason.as_bytes()).await,
    };
    let is_head = request.method == "HEAD";
    let missing = Response::status(404);
    let path = request.target.split('?').next().unwrap_or_default();
    let page = shared.pages.get(path).unwrap_or(&missing);
    let (method, path) = (request.method, request.target);
    let asked = HttpAsked { method, path, headers: request.headers, body: request.body };
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    shared.tally.count_request();
    if send(connection, page, is_head).await.is_err() {
        shared.tally.count_closed();
    }
}

async fn send(mut connection: Connection, page: &Response, is_head: bool) -> Result<(), Gone> {
    if let Manner::Chunked | Manner::Endless = page.manner {
        connection.chunked_head(page.status, &page.headers).await?;
    } else {
        let length = ("content-length".to_owned(), page.body.len().to_string());
        connection.head(page.status, &[&page.headers[..], &[length]].concat()).await?;
    }
    if is_head {
        return Ok(());
    }
    let body = match page.manner {
        Manner::Hang => return Err(connection.until_gone().await),
        Manner::Cut => &page.body[..page.body.len() / 2],
        Manner::Whole | Manner::Chunked | Manner::Endless => &page.body,
    };
    loop {
        for part in body.chunks(page.write_size) {
            if !page.delay.is_zero() {
                connection.pause(page.delay).await?;
            }
            match page.manner {
                Manner::Chunked | Manner::Endless => connection.chunk(part).await?,
                Manner::Whole | Manner::Cut | Manner::Hang => connection.write(part).await?,
            }
        }
        match page.manner {
            // There is no end of nothing either.
            Manner::Endless if body.is_empty() => return Err(connection.until_gone().await),
            // Others get a turn although writing never has to wait.
            Manner::Endless => tokio::task::yield_now().await,
            Manner::Chunked => return connection.finish_chunks().await,
            Manner::Whole | Manner::Cut | Manner::Hang => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
