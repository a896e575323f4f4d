//! Large files and floods of output pass through a little memory. On their own, because they measure this process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
    time::Duration,
};

use attache::model::terminal::{CreateTerminalRequest, TerminalOutputRequest, WaitForTerminalExitRequest};
use attache_host::{
    files::Files,
    terminals::{Limits, Terminals},
};

/// What either may need at most: buffers, pipes, an answer of a megabyte and its copies.
const MOST_KIB: u64 = 32 << 10;

/// The most memory that this process ever had.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn check_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    let mut file = fs::File::create(&path).unwrap();
    // One gigabyte of nothing in one line, and then some text.
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all("\nsecond line\nthird line\n".as_bytes()).unwrap();
    let before = peak_kib();
    let files = Files::open(dir.path(), &[]).unwrap();
    assert!(files.read(&path).is_err());
    assert!(files.read_lines(&path, None, Some(1)).is_err());
    assert_eq!(files.read_lines(&path, Some(2), Some(1)).unwrap(), "second line\n");
    let grown = peak_kib() - before;
    assert!(grown < MOST_KIB, "{grown} KiB more");
}

async fn check_terminal() {
    const BYTES: u64 = 2_147_483_646;
    let before = peak_kib();
    let terminals = Terminals::new(Limits::default());
    let line = format!("yes $(printf '€%.0s' $(seq 1000)) | head -c {BYTES}");
    let id = terminals.create(&CreateTerminalRequest::new("s", line), Path::new("/")).unwrap().terminal_id;
    let wait = terminals.wait_for_exit(&WaitForTerminalExitRequest::new("s", id.clone()));
    let exit = tokio::time::timeout(Duration::from_secs(300), wait).await.unwrap().unwrap();
    assert_eq!(exit.exit_code, Some(0));
    // Lines of 3001 bytes; the last one is cut, maybe within a character, which is then replaced by another of three.
    let mut view = terminals.view(&"s".into(), &id).unwrap();
    while view.changed().await {}
    let cut = BYTES % 3001 % 3;
    assert_eq!(view.output_since(u64::MAX).start, if cut == 0 { BYTES } else { BYTES - cut + 3 });
    let answer = terminals.output(&TerminalOutputRequest::new("s", id)).unwrap();
    assert!(answer.truncated);
    assert!(((1 << 20) - 2..=1 << 20).contains(&answer.output.len()));
    assert!(answer.output.trim_end_matches('\u{fffd}').chars().all(|c| matches!(c, '€' | '\n')));
    let grown = peak_kib() - before;
    assert!(grown < MOST_KIB, "{grown} KiB more");
}

#[test]
fn large_files_and_floods_of_output_need_little_memory() {
    // In this order, because a peak hides the smaller ones after it.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(check_terminal());
    check_file();
}
