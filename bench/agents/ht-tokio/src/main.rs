//! A hand-tuned agent on tokio: one pass over each message, a task a prompt, one output buffer with a bound.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;

use hand::{Line, Lines};
use script::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;

/// Bytes that wait to be written before senders have to wait.
const BOUND: usize = 256 * 1024;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    // SAFETY: descriptors 0 and 1 are open and nothing else here uses them.
    let (input, output) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let (input, output) = (pipe::Receiver::from_owned_fd(input)?, pipe::Sender::from_owned_fd(output)?);
    LocalSet::new().run_until(serve(input, output)).await
}

async fn serve(mut input: pipe::Receiver, output: pipe::Sender) -> io::Result<()> {
    let out = Rc::new(Out::default());
    tokio::task::spawn_local(write_all(out.clone(), output));
    let (mut lines, mut sessions) = (Lines::default(), 0);
    while input.read_buf(lines.room()).await? > 0 {
        while let Some(line) = lines.next_line() {
            let Some(line) = Line::parse(line) else { continue };
            match line.method() {
                "initialize" => out.send(|out| hand::say_hello(out, line.id())).await,
                "session/new" => {
                    sessions += 1;
                    out.send(|out| hand::say_session(out, line.id(), &format!("s{sessions}"))).await;
                }
                "session/set_mode" => out.send(|out| hand::say_result(out, line.id(), "{}")).await,
                "session/prompt" => {
                    let text = line.prompt().first().and_then(|block| block.text.as_ref());
                    let script = text.and_then(|text| Script::parse(&text.0));
                    let resource = line.prompt().iter().find_map(|block| block.resource.as_ref()?.text.as_ref());
                    let length = resource.map_or(0, |text| text.0.len());
                    let (session, id) = (line.session().to_owned(), line.id().to_owned());
                    let out = out.clone();
                    tokio::task::spawn_local(async move {
                        play(script, &session, length, &out).await;
                        out.send(|out| hand::say_end(out, &id)).await;
                    });
                }
                "" => {
                    let id = line.id().parse().ok();
                    let waiter = id.and_then(|id: u64| out.waiters.borrow_mut().remove(&id));
                    if let (Some(waiter), Some(content)) = (waiter, line.result.and_then(|result| result.content)) {
                        let _ = waiter.send(content.0.into_owned());
                    }
                }
                _ if line.id.is_some() => out.send(|out| hand::say_unknown(out, line.id())).await,
                _ => {}
            }
        }
    }
    Ok(())
}

async fn play(script: Option<Script>, session: &str, length: usize, out: &Out) {
    match script {
        Some(Script::Chunks { count, size, is_flushed }) => {
            let text = script::text(size);
            for _ in 0..count {
                out.send(|out| hand::say_chunk(out, session, &text)).await;
                if is_flushed {
                    out.flush().await;
                }
            }
        }
        Some(Script::ToolUpdates { count, size }) => {
            let text = script::text(size);
            out.send(|out| hand::say_tool(out, session, "call_1", script::TOOL)).await;
            for _ in 0..count {
                out.send(|out| hand::say_tool_update(out, session, "call_1", &text)).await;
            }
        }
        Some(Script::Reads { outstanding, rounds }) => {
            for _ in 0..rounds {
                let mut waiting = Vec::with_capacity(outstanding);
                for _ in 0..outstanding {
                    let (sender, receiver) = oneshot::channel();
                    let id = out.next_id.get();
                    out.next_id.set(id + 1);
                    out.waiters.borrow_mut().insert(id, sender);
                    out.send(|out| hand::say_read(out, id, session, script::PATH)).await;
                    waiting.push(receiver);
                }
                for answer in waiting {
                    let _ = answer.await;
                }
            }
        }
        Some(Script::Size) => out.send(|out| hand::say_chunk(out, session, &length.to_string())).await,
        None => {}
    }
}

/// What waits to be written, and who waits for an answer.
#[derive(Default)]
struct Out {
    bytes: RefCell<Vec<u8>>,
    is_writing: Cell<bool>,
    has_bytes: Notify,
    has_room: Notify,
    next_id: Cell<u64>,
    waiters: RefCell<HashMap<u64, oneshot::Sender<String>>>,
}

impl Out {
    async fn send(&self, say: impl FnOnce(&mut Vec<u8>)) {
        while self.bytes.borrow().len() >= BOUND {
            self.has_room.notified().await;
        }
        let mut bytes = self.bytes.borrow_mut();
        let was_empty = bytes.is_empty();
        say(&mut bytes);
        if was_empty {
            self.has_bytes.notify_one();
        }
    }

    async fn flush(&self) {
        while self.is_writing.get() || !self.bytes.borrow().is_empty() {
            self.has_room.notified().await;
        }
    }
}

async fn write_all(out: Rc<Out>, mut output: pipe::Sender) {
    let mut batch = Vec::new();
    loop {
        while out.bytes.borrow().is_empty() {
            out.has_bytes.notified().await;
        }
        std::mem::swap(&mut *out.bytes.borrow_mut(), &mut batch);
        out.is_writing.set(true);
        let written = output.write_all(&batch).await;
        out.is_writing.set(false);
        batch.clear();
        out.has_room.notify_waiters();
        if written.is_err() {
            return;
        }
    }
}
