//! A client that sends bytes and takes answers apart by hand, for tests of the loopback servers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    /// The body in the parts it came in.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether the body is there to its end.
    pub(crate) is_whole: bool,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.chunks.concat()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

/// Sends a request and reads until the server closes the connection.
pub(crate) async fn send(url: &str, request: &str) -> Reply {
    let mut client = connect(url).await;
    client.write_all(request.as_bytes()).await.unwrap();
    read(client).await
}

pub(crate) async fn connect(url: &str) -> TcpStream {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).await.unwrap()
}

/// Reads an answer until the server closes the connection.
pub(crate) async fn read(mut client: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut bytes));
    reading.await.expect("the server closes the connection").unwrap();
    let head_end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut body = &bytes[head_end + 4..];
    let mut lines = head.lines();
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers: BTreeMap<_, _> = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if headers.get("transfer-encoding").is_none_or(|value| value != "chunked") {
        let length: usize = headers["content-length"].parse().unwrap();
        return Reply { status, headers, chunks: vec![body.to_vec()], is_whole: body.len() == length };
    }
    let mut chunks = Vec::new();
    let mut is_whole = false;
    while let Some(end) = body.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        body = &body[end + 2..];
        assert_eq!(&body[size..size + 2], b"\r\n");
        if size == 0 {
            is_whole = true;
            break;
        }
        chunks.push(body[..size].to_vec());
        body = &body[size + 2..];
    }
    Reply { status, headers, chunks, is_whole }
}
