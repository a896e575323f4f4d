//! The crates that a binary is made of: those that Cargo links, without tests, build scripts and macros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::project::{Project, output};
use crate::target::Target;

/// Name and version. One binary never has two crates that share both.
pub(crate) type Key = (String, String);

/// A crate of a binary.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its licence as an SPDX expression.
    pub(crate) licence: String,
    pub(crate) authors: Vec<String>,
    pub(crate) repository: Option<String>,
    /// Whether it is of this workspace.
    pub(crate) is_ours: bool,
    pub(crate) directory: PathBuf,
    pub(crate) uses: BTreeSet<Key>,
}

/// The crates of a binary, `attache-cli` itself included.
pub(crate) fn crates(project: &Project, target: &Target) -> Result<BTreeMap<Key, Crate>> {
    let mut command = Command::new("cargo");
    command.args(["tree", "--locked", "--package", "attache-cli", "--edges", "normal,no-proc-macro"]);
    command.args(["--target", target.triple, "--prefix", "depth", "--format", " {p}"]);
    let tree = String::from_utf8(output(command.current_dir(&project.root))?)?;
    let packages = project.metadata["packages"].as_array().context("no packages in `cargo metadata`")?;
    let packages: BTreeMap<Key, &Value> =
        packages.iter().filter_map(|package| Some((key(package)?, package))).collect();
    let mut crates = BTreeMap::new();
    for (key, uses) in edges(&tree)? {
        let package = packages.get(&key).with_context(|| format!("`cargo metadata` has no `{} {}`", key.0, key.1))?;
        crates.insert(key, crate_of(package, uses)?);
    }
    Ok(crates)
}

fn key(package: &Value) -> Option<Key> {
    Some((package["name"].as_str()?.to_owned(), package["version"].as_str()?.to_owned()))
}

fn crate_of(package: &Value, uses: BTreeSet<Key>) -> Result<Crate> {
    let (name, version) = key(package).context("a package without name or version")?;
    let text = |field: &str| package[field].as_str().map(str::to_owned);
    let manifest = PathBuf::from(text("manifest_path").context("a package without a manifest")?);
    let licence = text("license").with_context(|| format!("`{name} {version}` names no licence"))?;
    let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Ok(Crate {
        // Some still write it as Cargo once wanted it.
        licence: licence.replace(" / ", " OR ").replace('/', " OR "),
        authors: authors.collect(),
        repository: text("repository"),
        is_ours: package["source"].is_null(),
        directory: manifest.parent().context("a manifest without a directory")?.to_path_buf(),
        name,
        version,
        uses,
    })
}

/// Who uses whom, from a tree with the depth before each name. What a crate uses is shown only where it first occurs.
fn edges(tree: &str) -> Result<BTreeMap<Key, BTreeSet<Key>>> {
    let mut edges: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    let mut path: Vec<Key> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let wrong = || format!("cannot read the line `{line}` of `cargo tree`");
        let (depth, package) = line.split_once(' ').with_context(wrong)?;
        let depth: usize = depth.parse().with_context(wrong)?;
        let mut words = package.split(' ');
        let (name, version) = (words.next().with_context(wrong)?, words.next().with_context(wrong)?);
        let key: Key = (name.to_owned(), version.strip_prefix('v').with_context(wrong)?.to_owned());
        path.truncate(depth);
        if let Some(parent) = path.last() {
            edges.entry(parent.clone()).or_default().insert(key.clone());
        }
        edges.entry(key.clone()).or_default();
        path.push(key);
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_becomes_edges() {
        let tree = "0 a v1.0.0 (/here)\n1 b v2.0.0\n2 c v3.0.0\n1 c v3.0.0 (*)\n1 d v0.1.0\n";
        let edges = edges(tree).unwrap();
        let uses = |name: &str| -> Vec<&str> {
            let (_, uses) = edges.iter().find(|((found, _), _)| found == name).unwrap();
            uses.iter().map(|(name, _)| name.as_str()).collect()
        };
        assert_eq!(uses("a"), ["b", "c", "d"]);
        assert_eq!(uses("b"), ["c"]);
        assert!(uses("c").is_empty() && uses("d").is_empty());
    }

    #[test]
    fn what_is_not_a_tree_is_an_error() {
        assert!(edges("a v1.0.0").is_err());
        assert!(edges("0 a 1.0.0").is_err());
    }
}
