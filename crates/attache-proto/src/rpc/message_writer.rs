//! Writes messages, and keeps what is needed to answer the calls of the peer.

use super::open_calls::OpenCalls;
use super::{Call, IntMap};
use crate::Dialect;
use crate::codec::Encode;
use crate::frame::Framing;
use crate::json::{Reader, Writer};
use crate::model::error::ErrorObject;
use crate::model::request::{CancelRequestNotification, RequestId};

/// The part of a peer that writes. It does not depend on the waiters, so it is compiled once for all kinds of them.
#[derive(Debug)]
pub(super) struct MessageWriter {
    /// `None` until `initialize` is answered.
    pub(super) dialect: Option<Dialect>,
    pub(super) framing: Framing,
    pub(super) open_calls: OpenCalls,
    batches: IntMap<u64, Batch>,
    next_batch: u64,
    /// Bytes of answers that wait for the rest of their batch.
    pub(super) unsent: usize,
    lost: Vec<&'static str>,
}

/// Writes the caller's part of a message.
pub(super) type Part<'p> = &'p mut dyn FnMut(&mut Writer<'_>);

/// Lets a part that can be written once be passed on without its type.
pub(super) fn once(write: impl FnOnce(&mut Writer<'_>)) -> impl FnMut(&mut Writer<'_>) {
    let mut write = Some(write);
    move |writer| {
        if let Some(write) = write.take() {
            write(writer);
        }
    }
}

/// A batch whose answers are collected until the last one is there.
#[derive(Debug, Default)]
struct Batch {
    open: usize,
    answers: Vec<u8>,
}

impl MessageWriter {
    pub(super) fn new() -> Self {
        MessageWriter {
            dialect: None,
            framing: Framing::Lines,
            open_calls: OpenCalls::default(),
            batches: IntMap::default(),
            next_batch: 0,
            unsent: 0,
            lost: Vec::new(),
        }
    }

    /// The calls that a `$/cancel_request` means, oldest first.
    pub(super) fn cancelled_by(&self, params: &str) -> Vec<u64> {
        let dialect = self.dialect.unwrap_or(Dialect::V1);
        match Reader::new(params, dialect).decode::<CancelRequestNotification>() {
            Ok(cancel) => self.open_calls.with_id(&cancel.request_id).collect(),
            Err(_) => Vec::new(),
        }
    }

    pub(super) fn take_lost(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.lost)
    }

    /// Notes fields that were left out. Each is named once, for nobody may ever ask.
    pub(super) fn note_lost(&mut self, lost: &[&'static str]) {
        for name in lost {
            if !self.lost.contains(name) {
                self.lost.push(name);
            }
        }
    }

    /// Begins a batch. It counts as an open entry of its own until all of it has been looked at.
    pub(super) fn open_batch(&mut self) -> u64 {
        let id = self.next_batch;
        self.next_batch += 1;
        self.batches.insert(id, Batch { open: 1, answers: Vec::new() });
        id
    }

    pub(super) fn open_entry(&mut self, batch: Option<u64>) {
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.open += 1;
        }
    }

    pub(super) fn settle(&mut self, call: Call, out: &mut Vec<u8>, key: &str, value: Part<'_>) {
        let Some(call) = self.open_calls.remove(call.0) else { return };
        self.write_entry(&call.id, call.batch, out, key, value);
        if let Some(batch) = call.batch {
            self.close_entry(batch, out);
        }
    }

    /// Writes an answer: by itself, or into the batch that it belongs to.
    pub(super) fn write_entry(
        &mut self,
        id: &RequestId,
        batch: Option<u64>,
        out: &mut Vec<u8>,
        key: &str,
        value: Part<'_>,
    ) {
        let dialect = self.dialect.unwrap_or(Dialect::V1);
        let fields: Part<'_> = &mut |writer| {
            writer.key("id");
            id.encode(writer);
            writer.key(key);
            value(writer);
        };
        match batch.and_then(|batch| self.batches.get_mut(&batch)) {
            Some(batch) => {
                let before = batch.answers.len();
                batch.answers.push(if before == 0 { b'[' } else { b',' });
                let lost = write_object(&mut batch.answers, dialect, fields);
                self.unsent += batch.answers.len() - before;
                self.note_lost(&lost);
            }
            None => self.write(out, fields),
        }
    }

    pub(super) fn close_entry(&mut self, id: u64, out: &mut Vec<u8>) {
        let Some(batch) = self.batches.get_mut(&id) else { return };
        batch.open -= 1;
        if batch.open > 0 {
            return;
        }
        if let Some(batch) = self.batches.remove(&id).filter(|batch| !batch.answers.is_empty()) {
            self.unsent -= batch.answers.len();
            let start = out.len();
            out.extend_from_slice(&batch.answers);
            out.push(b']');
            self.framing.finish(out, start);
        }
    }

    pub(super) fn write_error(&mut self, id: &RequestId, batch: Option<u64>, error: &ErrorObject, out: &mut Vec<u8>) {
        self.write_entry(id, batch, out, "error", &mut |writer| error.encode(writer));
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, fields: Part<'_>) {
        let start = out.len();
        let lost = write_object(out, self.dialect.unwrap_or(Dialect::V1), fields);
        self.note_lost(&lost);
        self.framing.finish(out, start);
    }
}

/// Writes one message; returns the names of fields that the dialect has no word for.
pub(super) fn write_object(out: &mut Vec<u8>, dialect: Dialect, fields: Part<'_>) -> Vec<&'static str> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    let mut writer = Writer::new(out, dialect);
    fields(&mut writer);
    writer.end_object();
    writer.lost()
}

pub(super) fn write_method(writer: &mut Writer<'_>, id: Option<i64>, method: &str, params: Part<'_>) {
    if let Some(id) = id {
        writer.key("id");
        writer.value(&id);
    }
    writer.key("method");
    writer.string(method);
    writer.key("params");
    params(writer);
}
