//! The targets with fixed inputs: random bytes from fixed seeds, and what once failed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use attache_fuzz_targets::TARGETS;
use attache_testkit::Dice;

/// Inputs a target. `fuzz/` runs millions.
const SEEDS: u64 = 1500;

fn random_bytes(seed: u64) -> Vec<u8> {
    let dice = &mut Dice::new(seed);
    let length = dice.below(if seed.is_multiple_of(10) { 2000 } else { 200 });
    (0..length).map(|_| dice.below(256) as u8).collect()
}

#[test]
fn random_bytes_from_fixed_seeds() {
    for (name, target) in TARGETS {
        for seed in 0..SEEDS {
            let input = random_bytes(seed);
            let result = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(result.is_ok(), "target `{name}` fails with seed {seed}");
        }
    }
}

#[test]
fn inputs_that_once_failed() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    for (name, target) in TARGETS {
        let Ok(entries) = std::fs::read_dir(found.join(name)) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            let result = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(result.is_ok(), "target `{name}` fails with {}", path.display());
        }
    }
}
