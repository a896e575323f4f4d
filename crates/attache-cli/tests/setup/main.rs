//! `attache setup` and `attache update`, as they are typed.
// On Unix, because they need signals, modes of files and shell scripts. What holds on every system is in `everywhere.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod asked;
mod editors;
mod first_run;
mod mishaps;
mod options;
mod update;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Home, Ran, run};

/// A key that must not be seen anywhere but where it is kept.
const KEY: &str = "sk-very-secret-0001";

/// `attache setup` with these options, on a machine without model servers, with this home and nothing else set.
fn setup(home: &Home, options: &[&str]) -> Command {
    let mut command = home.command(&[&["setup"], options].concat());
    command.env_remove("ATTACHE_MODEL").env("ATTACHE_MODEL_LISTS", "remote").env("MY_KEY", KEY);
    command
}

fn ran(home: &Home, options: &[&str]) -> Ran {
    let ran = run(setup(home, options));
    assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{}{}", ran.out, ran.err);
    ran
}

/// The options that leave only an editor to be set up.
fn editor(name: &str) -> [&str; 6] {
    ["--model", "offline", "--editor", name, "--yes", "--no-test"]
}

/// All files beneath a directory with what is in them, links as where they lead to.
fn tree(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            files.insert(path.clone(), fs::read_link(&path).unwrap().display().to_string());
        } else if kind.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files.insert(path.clone(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
    files
}

/// The files that have the key in them.
fn with_key(home: &Home) -> Vec<PathBuf> {
    tree(home.0.path()).into_iter().filter(|(_, text)| text.contains(KEY)).map(|(path, _)| path).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
