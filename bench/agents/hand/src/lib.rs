//! What the hand-tuned references share: one pass over a line, and messages as bytes.

mod line;
mod say;

pub use line::{Block, Content, Line, Params, Resource, Text};
pub use say::*;

/// Cuts lines out of a stream. Keeps what is incomplete.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the first line begins that was not taken.
    start: usize,
    /// How far there is no line end.
    searched: usize,
}

/// A read takes at most so much: a pipe holds as much.
const PIECE: usize = 64 * 1024;

impl Lines {
    /// Room for the next read. What was read is told with [`Lines::filled`].
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(PIECE);
        &mut self.buffer
    }

    /// Reads once; false at the end.
    pub fn read(&mut self, source: &mut impl std::io::Read) -> std::io::Result<bool> {
        let buffer = self.room();
        let length = buffer.len();
        buffer.resize(length + PIECE, 0);
        let read = source.read(&mut buffer[length..]);
        buffer.truncate(length + read.as_ref().copied().unwrap_or(0));
        read.map(|read| read > 0)
    }

    /// The next whole line.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.start == self.buffer.len() {
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
                // A long message is not worth keeping room for.
                if self.buffer.capacity() > 16 * PIECE {
                    self.buffer = Vec::new();
                }
            }
            return None;
        };
        let line = self.start..self.searched + end;
        self.start = line.end + 1;
        self.searched = self.start;
        Some(&self.buffer[line])
    }
}
