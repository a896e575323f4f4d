//! What crates.io is told of each crate that is published.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn packages() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output = cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// An empty list of registries is `publish = false`.
fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

#[test]
fn every_crate_says_what_it_is() {
    let packages = packages();
    let published: Vec<&Value> = packages.iter().filter(|package| is_published(package)).collect();
    assert!(published.len() >= 10, "{}", published.len());
    for package in published {
        let name = package["name"].as_str().unwrap();
        assert!(name == "attache" || name.starts_with("attache-"), "{name}");
        assert_eq!(package["repository"], "https://github.com/attache-acp/attache", "{name}");
        for key in ["description", "documentation", "license"] {
            assert!(package[key].as_str().is_some_and(|text| text.len() > 5), "{name}: {key}");
        }
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned();
        let readme = std::fs::read_to_string(folder.join(package["readme"].as_str().unwrap())).unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        // The limits of crates.io.
        let keywords: Vec<&str> = package["keywords"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        let is_keyword = |word: &&str| {
            word.len() <= 20
                && word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        assert!(keywords.iter().all(is_keyword), "{name}: {keywords:?}");
        assert!((1..=5).contains(&package["categories"].as_array().unwrap().len()), "{name}");
    }
}

/// Whatever a crate needs to be built or used has to be on crates.io before it, in a version; and nothing may wait for itself.
#[test]
fn the_crates_can_be_published_in_some_order() {
    let packages = packages();
    let ours: Vec<&str> = packages
        .iter()
        .filter(|package| is_published(package))
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut done: Vec<&str> = Vec::new();
    loop {
        let before = done.len();
        for package in packages.iter().filter(|package| is_published(package)) {
            let name = package["name"].as_str().unwrap();
            let dependencies = package["dependencies"].as_array().unwrap();
            let ours_of_it = dependencies.iter().filter(|dependency| !dependency["path"].is_null());
            // One that is only for tests and has no version is left out of what is published.
            let is_left_out = |dependency: &Value| dependency["kind"] == "dev" && dependency["req"] == "*";
            let needed: Vec<&Value> = ours_of_it.filter(|dependency| !is_left_out(dependency)).collect();
            for dependency in &needed {
                assert_ne!(dependency["req"], "*", "{name} needs a version of {}", dependency["name"]);
                assert!(ours.contains(&dependency["name"].as_str().unwrap()), "{name} needs {}", dependency["name"]);
            }
            let is_ready = needed.iter().all(|dependency| done.contains(&dependency["name"].as_str().unwrap()));
            if is_ready && !done.contains(&name) {
                done.push(name);
            }
        }
        if done.len() == before {
            break;
        }
    }
    assert_eq!(done.len(), ours.len(), "published: {done:?}; the rest wait for each other");
}
