//! Maps whose keys are numbers that we count up ourselves.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from numbers of our own. A peer can look up any number but never choose one to be kept, so that the hash need not
/// withstand an attack, and can be cheap.
pub type IntMap<K, V> = HashMap<K, V, BuildHasherDefault<IntHasher>>;

/// Spreads what it is given over all bits, quickly and without a secret: not for keys of which a peer can have many kept.
#[derive(Debug, Default, Clone, Copy)]
pub struct IntHasher(u64);

impl Hasher for IntHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("the chunk has eight bytes")));
        }
        for byte in words.remainder() {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio as a fraction of 2^64, after Knuth; the rotation brings its good bits to both ends.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number as u64);
    }
}
