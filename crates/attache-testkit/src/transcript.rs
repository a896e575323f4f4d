//! Transcripts: what is sent and what has to come back, line by line.

use std::collections::HashMap;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

/// How long an expected message may take: far longer than any should, so that only a hang fails.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// A peer that plays a transcript: what it sends, and what has to come back, line by line.
///
/// ```text
/// # A comment.
/// --> {'id':1,'method':'session/new','params':{'cwd':'/tmp','mcpServers':[]}}
/// <-- {'id':1,'result':{'sessionId':'$session'}}
/// --> {'method':'session/cancel','params':{'sessionId':'$session'}}
/// ```
///
/// - `-->` sends a message, `<--` waits for the next one and compares it.
/// - Single quotes stand for double quotes.
/// - `"jsonrpc":"2.0"` is added to what is sent.
/// - An expected object may leave members out. The items of an array, and all other values, have to be the same.
/// - `'*'` matches anything.
/// - `'$name'` matches anything the first time, and the same value from then on. In what is sent it is replaced by that value.
pub struct RawPeer {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    names: HashMap<String, Value>,
}

impl RawPeer {
    /// A peer on a stream that goes both ways.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        RawPeer { reader: BufReader::new(Box::new(reader)), writer: Box::new(writer), names: HashMap::new() }
    }

    /// Plays a transcript; blank lines are skipped.
    ///
    /// # Panics
    ///
    /// When a message is not as expected, does not come, or a line is not one of a transcript.
    pub async fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(message) = line.strip_prefix("--> ") {
                self.send(message).await;
            } else if let Some(pattern) = line.strip_prefix("<-- ") {
                self.expect(pattern).await;
            } else {
                panic!("not a line of a transcript: {line}");
            }
        }
    }

    /// Sends one message of a transcript.
    pub async fn send(&mut self, message: &str) {
        let text = message.replace('\'', "\"");
        let mut value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {message}"));
        self.fill_in(&mut value);
        if let Value::Object(members) = &mut value {
            members.entry("jsonrpc").or_insert_with(|| "2.0".into());
        }
        self.send_bytes(format!("{value}\n").as_bytes()).await;
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.expect("the peer reads");
        self.writer.flush().await.expect("the peer reads");
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let count = tokio::time::timeout(PATIENCE, self.reader.read_line(&mut line))
            .await
            .expect("a message comes in time")
            .expect("the stream can be read");
        (count > 0).then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line}")))
    }

    /// Reads the next message and compares it with a pattern.
    pub async fn expect(&mut self, pattern: &str) -> Value {
        let text = pattern.replace('\'', "\"");
        let wanted: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {pattern}"));
        let message = self.next().await.unwrap_or_else(|| panic!("the stream ended, expected {pattern}"));
        assert!(matches(&wanted, &message, &mut self.names), "expected {wanted}\n     got {message}");
        message
    }

    /// What a `$name` stands for.
    pub fn name(&self, name: &str) -> &Value {
        &self.names[name]
    }

    /// Closes our end; what the peer still says can be read.
    pub async fn close(&mut self) {
        self.writer.shutdown().await.expect("the stream can be closed");
    }

    fn fill_in(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.starts_with('$') => {
                if let Some(known) = self.names.get(&text[1..]) {
                    *value = known.clone();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_in(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.fill_in(member)),
            _ => {}
        }
    }
}

/// Whether a message fits a pattern. New names are noted.
pub fn matches(pattern: &Value, message: &Value, names: &mut HashMap<String, Value>) -> bool {
    match (pattern, message) {
        (Value::String(text), _) if text == "*" => true,
        (Value::String(text), _) if text.starts_with('$') && text.len() > 1 && !text.contains('/') => {
            names.entry(text[1..].into()).or_insert_with(|| message.clone()) == message
        }
        (Value::Object(wanted), Value::Object(members)) => {
            wanted.iter().all(|(key, value)| members.get(key).is_some_and(|member| matches(value, member, names)))
        }
        (Value::Array(wanted), Value::Array(items)) => {
            wanted.len() == items.len() && wanted.iter().zip(items).all(|(want, item)| matches(want, item, names))
        }
        _ => pattern == message,
    }
}
