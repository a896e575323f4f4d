//! The calls of the peer that have not been answered.

use super::IntMap;
use crate::model::request::RequestId;

/// Open calls, found by their number or by the id that the peer gave them.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    calls: IntMap<u64, OpenCall>,
    /// The same, sorted. A peer chooses its ids and may use one twice; a sorted list cannot be made slow by choosing badly.
    by_id: Vec<(RequestId, u64)>,
    /// The bytes of all ids and params.
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) id: RequestId,
    pub(super) batch: Option<u64>,
    /// The bytes of its params.
    pub(super) size: usize,
}

impl OpenCalls {
    pub(super) fn insert(&mut self, number: u64, call: OpenCall) {
        let entry = (call.id.clone(), number);
        let at = self.by_id.partition_point(|other| *other < entry);
        self.by_id.insert(at, entry);
        self.bytes += size(&call);
        self.calls.insert(number, call);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<OpenCall> {
        let call = self.calls.remove(&number)?;
        let at = self.by_id.partition_point(|(id, other)| (id, *other) < (&call.id, number));
        self.by_id.remove(at);
        self.bytes -= size(&call);
        Some(call)
    }

    pub(super) fn get(&self, number: u64) -> Option<&OpenCall> {
        self.calls.get(&number)
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The calls with this id, oldest first.
    pub(super) fn with_id(&self, id: &RequestId) -> impl Iterator<Item = u64> {
        let at = self.by_id.partition_point(|(other, _)| other < id);
        self.by_id[at..].iter().take_while(move |(other, _)| other == id).map(|(_, number)| *number)
    }
}

/// What a call costs in memory: close to what it cost on the wire, plus its place in the tables.
fn size(call: &OpenCall) -> usize {
    let id = match &call.id {
        RequestId::Null | RequestId::Number(_) => 0,
        RequestId::Text(text) => text.len(),
    };
    id + call.size + size_of::<OpenCall>() + size_of::<(RequestId, u64)>()
}
