//! The binary of a platform: the same bytes, whoever builds it, wherever.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::{Commit, Project, run};
use crate::target::{Builder, Target};

/// Builds the program with the profile `dist`, and says where it is.
pub(crate) fn compile(project: &Project, commit: &Commit, target: &Target, builder: Builder) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.arg(match builder {
        Builder::Cargo => "build",
        Builder::Zigbuild => "zigbuild",
    });
    command.args(["--locked", "--package", "attache-cli", "--profile", "dist", "--target", target.triple]);
    command.current_dir(&project.root);
    // Flags from outside would give other bytes; so would the directories of this machine, which panics name.
    command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", remapped(project)?.join("\u{1f}"));
    command.env("SOURCE_DATE_EPOCH", commit.time.to_string()).env("CARGO_TARGET_DIR", &project.target_directory);
    run(&mut command)?;
    Ok(project.target_directory.join(target.triple).join("dist").join(target.program_name()))
}

/// Directories of this machine, and what stands for them. Rust takes the last that fits, so the more exact ones come last.
fn directories(project: &Project) -> Result<Vec<(PathBuf, &'static str)>> {
    let mut directories = vec![(project.root.clone(), "/attache")];
    if !project.target_directory.starts_with(&project.root) {
        directories.push((project.target_directory.clone(), "/attache/target"));
    }
    directories.extend(sources(project)?.into_iter().map(|directory| (directory, "/crates")));
    Ok(directories)
}

fn remapped(project: &Project) -> Result<Vec<String>> {
    let directories = directories(project)?;
    Ok(directories.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect())
}

/// The directories that hold the crates of registries.
fn sources(project: &Project) -> Result<BTreeSet<PathBuf>> {
    let packages = project.metadata["packages"].as_array().context("no packages in `cargo metadata`")?;
    let manifests = packages.iter().filter(|package| !package["source"].is_null());
    let manifests = manifests.filter_map(|package| package["manifest_path"].as_str());
    // …/src/INDEX/CRATE/Cargo.toml
    Ok(manifests.filter_map(|manifest| Path::new(manifest).ancestors().nth(2)).map(Path::to_path_buf).collect())
}
