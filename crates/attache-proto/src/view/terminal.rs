//! A terminal of the agent as it is now.

use std::borrow::Cow;

use super::patch_meta;
use crate::base64;
use crate::codec::{Decode, Encode, model_type, record};
use crate::json::{DecodeError, Reader, Reason, Writer};
use crate::model::Patch;
use crate::model::capability::TerminalCapabilities;
use crate::model::terminal::{ExitStatus, TerminalId, TerminalOutputChunk, TerminalSize, TerminalUpdate};

/// How many bytes of a terminal's output are kept: far more than anybody scrolls back, and little enough for hundreds
/// of terminals.
pub const OUTPUT_LIMIT: usize = 1 << 20;

record! {
    /// A terminal as it is now.
    pub struct Terminal {
        required {
            /// Its id.
            id: TerminalId = "terminalId",
        }
        optional {
            /// The command.
            command: Option<String> = "command",
            /// The directory that it runs in, absolute.
            cwd: Option<String> = "cwd",
            /// Its output so far.
            output: OutputBytes = "output" shown,
            /// How it ended, when it has.
            exit_status: Option<ExitStatus> = "exitStatus",
            /// The size that the output was made for.
            size: Option<TerminalSize> = "size",
            /// What the user can do to it, such as cancel it.
            capabilities: Option<TerminalCapabilities> = "capabilities",
            /// How many pieces of output are missing because they were not valid base64.
            undecodable: u64 = "undecodable",
        }
    }

    struct OutputWire bare {
        required {
            data: String = "data",
        }
        optional {
            omitted: u64 = "omitted",
        }
    }
}

/// The last bytes of a terminal's output, at most [`OUTPUT_LIMIT`]. They may hold control sequences: make them harmless
/// before you show them.
#[derive(Debug, Clone, Default)]
pub struct OutputBytes {
    /// Up to twice as many bytes as are kept, so that the front is not moved at every piece.
    buffer: Vec<u8>,
    /// Where the kept bytes begin.
    start: usize,
    omitted: u64,
}

impl Terminal {
    /// Its output as text: see [`OutputBytes::text`].
    #[inline]
    pub fn text(&self) -> Cow<'_, str> {
        self.output.text()
    }

    #[inline]
    pub(super) fn handle_update(&mut self, update: &TerminalUpdate) {
        update.command.clone().apply(&mut self.command);
        update.cwd.clone().apply(&mut self.cwd);
        match &update.output {
            Patch::Keep => {}
            Patch::Clear => self.output = OutputBytes::default(),
            Patch::Set(output) => match base64::decode(&output.data) {
                Some(bytes) => self.output = OutputBytes::from(bytes),
                None => self.undecodable += 1,
            },
        }
        update.exit_status.clone().apply(&mut self.exit_status);
        update.size.clone().apply(&mut self.size);
        update.capabilities.clone().apply(&mut self.capabilities);
        patch_meta(&mut self.meta, &update.meta);
    }

    #[inline]
    pub(super) fn handle_output(&mut self, chunk: &TerminalOutputChunk) {
        match base64::decode(&chunk.data) {
            Some(bytes) => self.output.push(&bytes),
            None => self.undecodable += 1,
        }
    }
}

impl OutputBytes {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// How many bytes before these are not kept.
    #[inline]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The bytes as text. Invalid UTF-8 becomes `�`, and so does a character whose last bytes are still to come.
    #[inline]
    pub fn text(&self) -> Cow<'_, str> {
        let bytes = self.bytes();
        // The first character may be cut.
        let halves = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let cut = if self.omitted > 0 { halves } else { 0 };
        String::from_utf8_lossy(&bytes[cut..])
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        let over = self.bytes().len().saturating_sub(OUTPUT_LIMIT);
        self.start += over;
        self.omitted += over as u64;
        if self.start >= OUTPUT_LIMIT {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }
}

impl From<Vec<u8>> for OutputBytes {
    #[inline]
    fn from(bytes: Vec<u8>) -> Self {
        let mut output = OutputBytes::default();
        output.push(&bytes);
        output
    }
}

impl PartialEq for OutputBytes {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes() && self.omitted == other.omitted
    }
}

impl Decode for OutputBytes {
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let OutputWire { data, omitted } = OutputWire::decode(reader)?;
        let not_base64 = || DecodeError::new(Reason::Expected("base64")).in_field("data");
        let mut output = OutputBytes::from(base64::decode(&data).ok_or_else(not_base64)?);
        output.omitted = output.omitted.saturating_add(omitted);
        Ok(output)
    }
}

impl Encode for OutputBytes {
    #[inline]
    fn encode(&self, writer: &mut Writer<'_>) {
        OutputWire { omitted: self.omitted, ..OutputWire::new(base64::encode(self.bytes())) }.encode(writer);
    }
}

model_type!(OutputBytes);
