//! The bound of what is possible: prebuilt bytes, no JSON. Requests are told apart by the words in them.
//!
//! It also is the other end when clients are measured.

use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use script::Script;

const BATCH: usize = 64 * 1024;

fn main() -> io::Result<()> {
    // SAFETY: descriptors 0 and 1 are open, nothing else here uses them, and they are never closed.
    let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let mut agent = Raw { input: ManuallyDrop::new(input), output: ManuallyDrop::new(output), unread: Vec::new() };
    let mut sessions = 0;
    while let Some(line) = agent.line()? {
        let text = String::from_utf8_lossy(&line);
        let id = after(&text, "\"id\":").unwrap_or("null");
        let mut out = Vec::new();
        if text.contains("\"session/prompt\"") {
            let session = after(&text, "\"sessionId\":\"").unwrap_or_default().to_owned();
            let words = after(&text, "\"text\":\"").and_then(Script::parse);
            agent.play(words, &session)?;
            hand::say_end(&mut out, id);
        } else if text.contains("\"session/new\"") {
            sessions += 1;
            hand::say_session(&mut out, id, &format!("s{sessions}"));
        } else if text.contains("\"initialize\"") {
            hand::say_hello(&mut out, id);
        } else if text.contains("\"id\"") {
            hand::say_result(&mut out, id, "{}");
        }
        agent.output.write_all(&out)?;
    }
    Ok(())
}

/// What follows a key, up to the end of its value.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = &text[text.find(key)? + key.len()..];
    // An id may be a string.
    let (rest, skipped) = if key.ends_with(':') && rest.starts_with('"') { (rest, 1) } else { (rest, 0) };
    let ends: &[char] = if skipped == 1 || key.ends_with('"') { &['"'] } else { &[',', '}', ' '] };
    let end = rest[skipped..].find(ends)? + 2 * skipped;
    Some(&rest[..end])
}

struct Raw {
    input: ManuallyDrop<File>,
    output: ManuallyDrop<File>,
    unread: Vec<u8>,
}

impl Raw {
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.unread.drain(..=end).collect()));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut piece = [0; 8192];
        let length = self.input.read(&mut piece)?;
        self.unread.extend_from_slice(&piece[..length]);
        Ok(length > 0)
    }

    fn play(&mut self, script: Option<Script>, session: &str) -> io::Result<()> {
        let mut message = Vec::new();
        match script {
            Some(Script::Chunks { count, size, is_flushed }) => {
                hand::say_chunk(&mut message, session, &script::text(size));
                self.blast(&message, count, is_flushed)
            }
            Some(Script::ToolUpdates { count, size }) => {
                hand::say_tool(&mut message, session, "call_1", script::TOOL);
                self.output.write_all(&message)?;
                message.clear();
                hand::say_tool_update(&mut message, session, "call_1", &script::text(size));
                self.blast(&message, count, false)
            }
            Some(Script::Reads { outstanding, rounds }) => {
                for id in 0..outstanding {
                    hand::say_read(&mut message, id as u64, session, script::PATH);
                }
                for _ in 0..rounds {
                    self.output.write_all(&message)?;
                    let mut open = outstanding;
                    while open > 0 {
                        open -= self.unread.iter().filter(|byte| **byte == b'\n').count();
                        self.unread.clear();
                        if open > 0 && !self.fill()? {
                            return Ok(());
                        }
                    }
                }
                Ok(())
            }
            Some(Script::Size) | None => Ok(()),
        }
    }

    fn blast(&mut self, message: &[u8], count: usize, one_by_one: bool) -> io::Result<()> {
        let a_batch = if one_by_one { 1 } else { (BATCH / message.len()).clamp(1, count.max(1)) };
        let batch = message.repeat(a_batch);
        for _ in 0..count / a_batch {
            self.output.write_all(&batch)?;
        }
        self.output.write_all(&batch[..count % a_batch * message.len()])
    }
}
