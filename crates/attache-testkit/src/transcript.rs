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

    /// Plays a transcript; blank lines are skipped. A panic names the line that failed.
    ///
    /// # Panics
    ///
    /// When a message is not as expected, does not come, or a line is not one of a transcript.
    pub async fn play(&mut self, script: &str) {
        for (number, line) in (1..).zip(script.lines().map(str::trim)) {
            let played = match line.split_at_checked(4) {
                _ if line.is_empty() || line.starts_with('#') => Ok(()),
                Some(("--> ", message)) => self.try_send(message).await,
                Some(("<-- ", pattern)) => self.try_expect(pattern).await.map(drop),
                _ => Err(format!("not a line of a transcript: {line}")),
            };
            played.unwrap_or_else(|error| panic!("line {number}: {error}"));
        }
    }

    /// Sends one message of a transcript.
    pub async fn send(&mut self, message: &str) {
        self.try_send(message).await.unwrap_or_else(|error| panic!("{error}"));
    }

    async fn try_send(&mut self, message: &str) -> Result<(), String> {
        let mut value = parse(message)?;
        self.fill_in(&mut value);
        if let Value::Object(members) = &mut value {
            members.entry("jsonrpc").or_insert_with(|| "2.0".into());
        }
        self.try_send_bytes(format!("{value}\n").as_bytes()).await
    }

    /// Sends bytes as they are.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.try_send_bytes(bytes).await.unwrap_or_else(|error| panic!("{error}"));
    }

    async fn try_send_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        let failed = |error| format!("the peer does not read: {error}");
        self.writer.write_all(bytes).await.map_err(failed)?;
        self.writer.flush().await.map_err(failed)
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        self.try_next().await.unwrap_or_else(|error| panic!("expected a message, but {error}"))
    }

    async fn try_next(&mut self) -> Result<Option<Value>, String> {
        let mut line = String::new();
        let count = tokio::time::timeout(PATIENCE, self.reader.read_line(&mut line))
            .await
            .map_err(|_| format!("nothing came within {} s", PATIENCE.as_secs()))?
            .map_err(|error| format!("the stream cannot be read: {error}"))?;
        if count == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line).map(Some).map_err(|error| format!("{error} in {}", line.trim_end()))
    }

    /// Reads the next message and compares it with a pattern.
    pub async fn expect(&mut self, pattern: &str) -> Value {
        self.try_expect(pattern).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn try_expect(&mut self, pattern: &str) -> Result<Value, String> {
        let wanted = parse(pattern)?;
        let next = self.try_next().await.and_then(|next| next.ok_or("the stream ended".into()));
        let message = next.map_err(|error| format!("expected {pattern}, but {error}"))?;
        if matches(&wanted, &message, &mut self.names) {
            return Ok(message);
        }
        Err(format!("expected {wanted}\n     got {message}"))
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

fn parse(message: &str) -> Result<Value, String> {
    serde_json::from_str(&message.replace('\'', "\"")).map_err(|error| format!("{error} in {message}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What playing a script panics with, when the other end says this and waits or leaves.
    async fn failure(said: &str, leaves: bool, script: &'static str) -> String {
        let (near, mut far) = tokio::io::duplex(1024);
        far.write_all(said.as_bytes()).await.unwrap();
        let far = (!leaves).then_some(far);
        let playing = tokio::spawn(async move { RawPeer::new(near).play(script).await });
        let panic = playing.await.unwrap_err().into_panic();
        drop(far);
        *panic.downcast::<String>().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_names_the_line_of_the_script_and_what_was_expected() {
        let script = "
            # a comment
            --> {'id':1,'method':'m'}
            <-- {'id':1,'result':'x'}
        ";
        let failed = failure("", false, script).await;
        assert_eq!(failed, "line 4: expected {'id':1,'result':'x'}, but nothing came within 20 s");
        let failed = failure("", true, "\n<-- {'id':1}").await;
        assert_eq!(failed, "line 2: expected {'id':1}, but the stream ended");
        let failed = failure("{\"id\":2}\n", false, "<-- {'id':1}").await;
        assert_eq!(failed, "line 1: expected {\"id\":1}\n     got {\"id\":2}");
        let failed = failure("rubbish\n", false, "<-- {'id':1}").await;
        assert!(failed.starts_with("line 1: expected {'id':1}") && failed.ends_with("in rubbish"), "{failed}");
        let failed = failure("", false, "\n\n--> {'id'").await;
        assert!(failed.starts_with("line 3: ") && failed.ends_with("in {'id'"), "{failed}");
        let failed = failure("", false, "\n>>> {}").await;
        assert_eq!(failed, "line 2: not a line of a transcript: >>> {}");
    }
}
