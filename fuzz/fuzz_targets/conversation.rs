//! See `conversation` in attache-testkit.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| attache_fuzz_targets::conversation(data));
