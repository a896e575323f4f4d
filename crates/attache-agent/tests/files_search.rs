//! Searching and finding against the plainest way to do it, on random trees.
#![cfg(any(target_os = "linux", windows))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use attache_agent::model::Part;
use attache_agent::tools::files;
use attache_agent::workspace::Workspace;
use attache_testkit::Dice;
use serde_json::{Value, json};

/// A tree of some directories and files. Those named `ignored` are in `.gitignore`.
fn plant(dice: &mut Dice, directory: &Path, depth: usize) {
    for _ in 0..dice.below(6) {
        let name = dice.pick(&["a", "b.txt", "c.rs", ".hidden", "ignored", "é", "with space", ".git", "Z"]);
        let path = directory.join(name);
        if path.exists() {
            continue;
        }
        if depth > 0 && dice.one_in(2) {
            fs::create_dir(&path).unwrap();
            plant(dice, &path, depth - 1);
        } else if dice.one_in(8) {
            #[cfg(unix)]
            std::os::unix::fs::symlink("/etc", &path).unwrap();
        } else {
            let end = dice.pick(&["\n", "\r\n"]);
            let words = ["foo", "bar", "foo bar", "", "größe", "Foo"];
            let lines: Vec<&str> = (0..dice.below(6)).map(|_| dice.pick(&words)).collect();
            let last = if dice.one_in(2) { end } else { "" };
            fs::write(&path, format!("{}{last}", lines.join(end))).unwrap();
        }
    }
}

/// All files in order, by what is written in the documentation and nothing clever.
fn walk(directory: &Path, prefix: &str, found: &mut Vec<(String, String)>) {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    for name in names {
        let path = directory.join(&name);
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if name == ".git" || name == "ignored" || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            walk(&path, &format!("{prefix}{name}/"), found);
        } else {
            found.push((format!("{prefix}{name}"), fs::read_to_string(path).unwrap()));
        }
    }
}

async fn call(workspace: &Workspace, tool: &str, arguments: Value) -> Vec<String> {
    let prepared = files::prepare(workspace, tool, &arguments).await.unwrap().unwrap();
    let outcome = files::perform(workspace, prepared.work).await;
    assert!(!outcome.is_error, "{outcome:?}");
    let Part::Text { text } = &outcome.parts[0] else { panic!() };
    // As if everything were written with slashes.
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text.clone() };
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn searches_find_what_the_plain_way_finds() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".gitignore"), "ignored\n").unwrap();
        plant(&mut dice, dir.path(), 4);
        let mut all = Vec::new();
        walk(dir.path(), "", &mut all);
        let workspace = Workspace::open(dir.path(), &[], None).unwrap();

        type Fits = fn(&str) -> bool;
        let patterns: [(Value, Fits); 5] = [
            (json!({"pattern": "foo"}), |line| line.contains("foo")),
            (json!({"pattern": "^foo$"}), |line| line == "foo"),
            (json!({"pattern": "foo", "ignore_case": true}), |line| line.to_lowercase().contains("foo")),
            (json!({"pattern": "gr.ße"}), |line| line.contains("größe")),
            (json!({"pattern": "^$"}), str::is_empty),
        ];
        for (arguments, fits) in patterns {
            let mut expected: Vec<String> = Vec::new();
            for (path, content) in &all {
                let fitting = content.lines().enumerate().filter(|(_, line)| fits(line));
                expected.extend(fitting.map(|(index, line)| format!("{path}:{}: {line}", index + 1)));
            }
            if expected.is_empty() {
                expected.push("nothing found in `.`".into());
            }
            assert_eq!(call(&workspace, "search_files", arguments.clone()).await, expected, "seed {seed} {arguments}");
        }
        type Named = fn(&str) -> bool;
        let patterns: [(&str, Named); 4] = [
            ("*", |_| true),
            ("*.rs", |path| path.ends_with(".rs")),
            ("a/**", |path| path.starts_with("a/")),
            ("**/é/*", |path| path.rsplit('/').nth(1) == Some("é")),
        ];
        for (pattern, fits) in patterns {
            let mut expected: Vec<String> =
                all.iter().map(|(path, _)| path.clone()).filter(|path| fits(path)).collect();
            if expected.is_empty() {
                expected.push("no file beneath `.` fits the pattern".into());
            }
            assert_eq!(
                call(&workspace, "find_files", json!({ "pattern": pattern })).await,
                expected,
                "seed {seed} {pattern}"
            );
        }
    }
}
