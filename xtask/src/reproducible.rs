//! Whether a commit gives the same bytes in another directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::archive::{self, Files};
use crate::dist;
use crate::project::{Project, run};
use crate::target::{TARGETS, Target};

/// Builds here and in a clone elsewhere, and compares the archives. False if they differ, or if there is nothing to compare.
pub(crate) fn check(project: &Project, asked: &[&'static Target]) -> Result<bool> {
    let commit = project.commit()?;
    if commit.is_dirty {
        bail!("there are uncommitted changes; commit or stash them, as what is built twice is a commit");
    }
    let targets: Vec<&'static Target> = if asked.is_empty() { TARGETS.iter().collect() } else { asked.to_vec() };
    let scratch = project.target_directory.join("reproducible");
    let elsewhere = scratch.join("a/checkout/elsewhere");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    run(Command::new("git").args(["clone", "--quiet", "--no-local"]).arg(&project.root).arg(&elsewhere))?;
    run(Command::new("git").args(["checkout", "--quiet", &commit.id]).current_dir(&elsewhere))?;
    let clone = Project { target_directory: elsewhere.join("target"), ..Project::at(&elsewhere)? };
    let (mut compared, mut is_same) = (0, true);
    for target in targets {
        let builder = match target.builder() {
            Ok(builder) => builder,
            Err(reason) => {
                is_same &= asked.is_empty();
                eprintln!("not compared: {}: {reason}", target.triple);
                continue;
            }
        };
        let here = dist::build(project, &commit, target, builder, &scratch.join("here"))?;
        let there = dist::build(&clone, &commit, target, builder, &scratch.join("there"))?;
        let differences = differences(&here, &there)?;
        compared += 1;
        if differences.is_empty() {
            eprintln!("the same bytes twice: {}", target.archive_name(&project.version));
        } else {
            is_same = false;
            eprintln!("different: {}: {}", target.archive_name(&project.version), differences.join(", "));
        }
    }
    if is_same {
        // What differs is left to be looked at; the rest takes gigabytes.
        fs::remove_dir_all(&scratch)?;
    }
    Ok(is_same && compared > 0)
}

/// What differs between two archives: names of files, or the archive itself.
fn differences(one: &Path, other: &Path) -> Result<Vec<String>> {
    let name = one.file_name().and_then(|name| name.to_str()).context("no file name")?;
    let (one, other) = (fs::read(one)?, fs::read(other)?);
    if one == other {
        return Ok(Vec::new());
    }
    let (one, other): (Files, Files) = (archive::read(name, &one)?, archive::read(name, &other)?);
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    let different: Vec<String> = names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect();
    Ok(if different.is_empty() { vec!["the archive itself".to_owned()] } else { different })
}
