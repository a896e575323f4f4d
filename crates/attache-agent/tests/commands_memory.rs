//! A flood of output takes no more memory than there is room for.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use attache_agent::cut::Spill;
use attache_agent::tools::Live;
use attache_agent::tools::commands::{Commands, SandboxMode, Setup};
use attache_testkit::CountingAllocator;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[tokio::test]
async fn a_hundred_mebibytes_of_output_are_run_through_ten() {
    let directory = tempfile::tempdir().unwrap();
    let spill = Arc::new(Spill::new(directory.path().join("spill")));
    let commands = Commands::new(Setup { sandbox: SandboxMode::Off, ..Setup::new(directory.path(), spill) });
    // The last line is short, so that it can be told.
    let line = "head -c 104857600 /dev/zero | tr '\\0' 'a'; echo; echo end";
    let work = commands.prepare("run_command", &json!({"command": line})).await.unwrap().unwrap().work;
    let (live, mut shown) = Live::channel();
    let watching = tokio::spawn(async move { while shown.recv().await.is_some() {} });
    let before = CountingAllocator::live();
    CountingAllocator::take_peak();
    let outcome = commands.perform(work, &live).await;
    let peak = CountingAllocator::take_peak() - before;
    assert!(!outcome.is_error && format!("{:?}", outcome.parts).contains("end"));
    assert!(peak < 10 << 20, "{peak} bytes");
    drop((outcome, live));
    watching.await.unwrap();
    // The process is ended beside us.
    let until = Instant::now() + Duration::from_secs(10);
    while CountingAllocator::live().saturating_sub(before) > 1 << 19 {
        assert!(Instant::now() < until, "{} bytes stay", CountingAllocator::live() - before);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
