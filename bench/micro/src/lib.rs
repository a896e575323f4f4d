//! Micro-benchmarks of the hot functions; see `benches/hot.rs`.
