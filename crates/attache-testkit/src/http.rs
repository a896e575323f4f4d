//! The HTTP that the loopback servers of tests speak: HTTP/1.1, one request a connection, bounded, and watching for
//! clients that leave.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The longest head of a request that is read.
const HEAD_LIMIT: u64 = 64 * 1024;
/// The longest body of a request that is read: prompts with images stay below it.
pub(crate) const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// How many connections are served at a time; the others wait.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to send its request.
const REQUEST_TIME: Duration = Duration::from_secs(60);
/// How long a refused client may go on sending before the connection is closed over it.
const LINGER: Duration = Duration::from_secs(1);

/// A server on a free port of 127.0.0.1. Ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listening {
    /// Where it listens: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server on the current runtime; every connection is given to `serve`.
pub(crate) async fn listen<F, S>(serve: F) -> Listening
where
    F: Fn(Connection) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("the loopback device has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let task = tokio::spawn(async move {
        // The set ends its tasks when this task is ended.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => { connections.spawn(serve(Connection::new(stream))); }
                    // Out of file descriptors, most likely: some are free again when connections have ended.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
                Some(_) = connections.join_next() => {}
                else => unreachable!("either there is room, or a connection that ends"),
            }
        }
    });
    Listening { address, task }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) target: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRequest {
    /// The client left.
    Gone,
    /// It is not one: the status and the reason to answer with.
    Bad(u16, &'static str),
}

/// The client left before it had its answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// A connection with a client.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        // Every write is a packet of its own, so that clients see the pieces that a test wants them to see.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        Connection { reader: BufReader::new(reader), writer }
    }

    /// Reads the request.
    pub(crate) async fn request(&mut self) -> Result<HttpRequest, NoRequest> {
        tokio::time::timeout(REQUEST_TIME, self.read_request()).await.unwrap_or(Err(NoRequest::Gone))
    }

    async fn read_request(&mut self) -> Result<HttpRequest, NoRequest> {
        let mut head = (&mut self.reader).take(HEAD_LIMIT);
        let line = head_line(&mut head).await?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(NoRequest::Bad(400, "the request line has three words"));
        };
        if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
            return Err(NoRequest::Bad(400, "this server speaks HTTP/1.1"));
        }
        let (method, target) = (method.to_owned(), target.to_owned());
        let mut headers = BTreeMap::<String, String>::new();
        loop {
            let line = head_line(&mut head).await?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else {
                return Err(NoRequest::Bad(400, "a header has a colon"));
            };
            let value = value.trim();
            headers
                .entry(name.to_ascii_lowercase())
                .and_modify(|all| *all = format!("{all}, {value}"))
                .or_insert_with(|| value.to_owned());
        }
        if headers.get("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(|Gone| NoRequest::Gone)?;
        }
        let body = self.body(&headers).await?;
        Ok(HttpRequest { method, target, headers, body })
    }

    async fn body(&mut self, headers: &BTreeMap<String, String>) -> Result<Vec<u8>, NoRequest> {
        if headers.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return self.chunked_body().await;
        }
        let Some(length) = headers.get("content-length") else { return Ok(Vec::new()) };
        let mut body = Vec::new();
        let length = length.parse().map_err(|_| NoRequest::Bad(400, "`content-length` is a number"))?;
        self.read_onto(&mut body, length).await?;
        Ok(body)
    }

    async fn chunked_body(&mut self) -> Result<Vec<u8>, NoRequest> {
        let mut body = Vec::new();
        loop {
            let line = head_line(&mut (&mut self.reader).take(HEAD_LIMIT)).await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| NoRequest::Bad(400, "a chunk has a size"))?;
            self.read_onto(&mut body, size).await?;
            // The line end after a chunk; after the last one, the end of the trailers, which nobody sends.
            head_line(&mut (&mut self.reader).take(HEAD_LIMIT)).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn read_onto(&mut self, body: &mut Vec<u8>, count: usize) -> Result<(), NoRequest> {
        if count > BODY_LIMIT - body.len() {
            return Err(NoRequest::Bad(413, "the body is longer than 16 MiB"));
        }
        let mut part = (&mut self.reader).take(count as u64);
        match part.read_to_end(body).await {
            Ok(read) if read == count => Ok(()),
            _ => Err(NoRequest::Gone),
        }
    }

    /// Answers with a whole body, and closes the connection.
    pub(crate) async fn respond(mut self, status: u16, headers: &[(String, String)], body: &[u8]) -> Result<(), Gone> {
        let length = ("content-length".to_owned(), body.len().to_string());
        self.head(status, &[headers, &[length]].concat()).await?;
        self.write(body).await?;
        self.close().await;
        Ok(())
    }

    /// Says why there is no answer, and lets the client read that although it may still be sending.
    pub(crate) async fn refuse(mut self, status: u16, body: &[u8]) {
        let headers = [
            ("content-type".to_owned(), "application/json".to_owned()),
            ("content-length".to_owned(), body.len().to_string()),
        ];
        if self.head(status, &headers).await.is_err() || self.writer.write_all(body).await.is_err() {
            return;
        }
        self.close().await;
        let _ = tokio::time::timeout(LINGER, left(&mut self.reader)).await;
    }

    /// Sends the head of an answer.
    pub(crate) async fn head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), Gone> {
        let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("connection: close\r\n\r\n");
        // Whoever is refused may not have been read to the end, so nobody watches for its leaving here.
        self.writer.write_all(head.as_bytes()).await.map_err(|_| Gone)
    }

    /// Sends the head of an answer whose body comes in chunks.
    pub(crate) async fn chunked_head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), Gone> {
        let chunked = ("transfer-encoding".to_owned(), "chunked".to_owned());
        self.head(status, &[headers, &[chunked]].concat()).await
    }

    /// Sends one chunk of the body.
    pub(crate) async fn chunk(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk).await
    }

    /// Ends a body of chunks, and closes the connection.
    pub(crate) async fn finish_chunks(mut self) -> Result<(), Gone> {
        self.write(b"0\r\n\r\n").await?;
        self.close().await;
        Ok(())
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        tokio::select! {
            biased;
            written = self.writer.write_all(bytes) => written.map_err(|_| Gone),
            () = left(&mut self.reader) => Err(Gone),
        }
    }

    /// Waits, unless the client leaves before that.
    pub(crate) async fn pause(&mut self, time: Duration) -> Result<(), Gone> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            () = left(&mut self.reader) => Err(Gone),
        }
    }

    /// Waits until the client leaves.
    pub(crate) async fn until_gone(mut self) -> Gone {
        left(&mut self.reader).await;
        Gone
    }

    async fn close(&mut self) {
        let _ = self.writer.shutdown().await;
    }
}

/// Ends when the client has closed the connection. What it still sends is thrown away.
async fn left(reader: &mut BufReader<OwnedReadHalf>) {
    let mut buffer = [0; 4096];
    while reader.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

/// A line of a request's head, without its end.
async fn head_line(head: &mut tokio::io::Take<&mut BufReader<OwnedReadHalf>>) -> Result<String, NoRequest> {
    let mut line = Vec::new();
    head.read_until(b'\n', &mut line).await.map_err(|_| NoRequest::Gone)?;
    if line.pop() != Some(b'\n') {
        return Err(if head.limit() == 0 { NoRequest::Bad(431, "the head is too long") } else { NoRequest::Gone });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| NoRequest::Bad(400, "the head is not text"))
}

/// What servers say after a status.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
