//! Choices made by the bytes of an input.

use attache_proto::Dialect;

/// The bytes that are left. When there are none, every choice is the first one.
#[derive(Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Input(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `bound`, which is at most 256.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub(crate) fn one_in(&mut self, odds: usize) -> bool {
        self.below(odds) == odds - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    pub(crate) fn dialect(&mut self) -> Dialect {
        self.pick(&[Dialect::V1, Dialect::V2Draft, Dialect::V2])
    }

    /// Some of the bytes.
    pub(crate) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let count = self.below(most + 1).min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// All bytes that are left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
