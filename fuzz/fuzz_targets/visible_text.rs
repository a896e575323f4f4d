//! See `visible_text` in tests/fuzz.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| attache_fuzz_targets::visible_text(data));
