//! `cargo xtask dist`: an archive for each platform, with all that belongs to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::archive::{Entry, Files};
use crate::compile::compile;
use crate::project::{Commit, Project, output};
use crate::target::{Builder, System, TARGETS, Target};
use crate::{archive, checksums, dependencies, licences, package, sbom};

/// The shells, and what each of them wants its file to be called.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "attache.bash"),
    ("zsh", "_attache"),
    ("fish", "attache.fish"),
    ("powershell", "_attache.ps1"),
    ("elvish", "attache.elv"),
];

/// What a program should weigh at most, in bytes: people download it to try it.
const LARGEST: u64 = 25_000_000;

/// Builds the platforms that are asked for, or else all; false if one of them should have been built and was not.
pub(crate) fn dist(project: &Project, asked: &[&'static Target], out: &Path, is_packaged: bool) -> Result<bool> {
    let commit = project.commit()?;
    if commit.is_dirty {
        eprintln!("warning: there are uncommitted changes, so this is not what commit {} builds", &commit.id[..12]);
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create `{}`", out.display()))?;
    let targets = if asked.is_empty() { TARGETS.iter().collect() } else { asked.to_vec() };
    let mut left_out = Vec::new();
    let mut is_complete = true;
    let mut built = Vec::new();
    for target in targets {
        let binary = match target.builder() {
            Ok(builder) => compile(project, &commit, target, builder),
            Err(reason) => {
                // Whoever names a platform counts on it.
                is_complete &= asked.is_empty();
                left_out.push((target, reason));
                continue;
            }
        };
        match binary {
            Ok(binary) => built.push((target, binary)),
            Err(error) => {
                is_complete = false;
                left_out.push((target, format!("{error:#}")));
            }
        }
    }
    if !built.is_empty() {
        let generated = generated(project, &built)?;
        for (target, binary) in &built {
            let path = write_archive(project, &commit, target, binary, &generated, out)?;
            let (packed, size) = (fs::metadata(&path)?.len(), fs::metadata(binary)?.len());
            eprintln!(
                "built {} ({:.1} MB; the program {:.1} MB)",
                path.display(),
                packed as f64 / 1e6,
                size as f64 / 1e6
            );
            if size > LARGEST {
                eprintln!("warning: the program for {} is larger than {} MB", target.triple, LARGEST / 1_000_000);
            }
        }
        if is_packaged {
            package::package(project, out)?;
        }
        checksums::write(out)?;
    }
    for (target, reason) in &left_out {
        eprintln!("not built: {}: {reason}", target.triple);
    }
    Ok(is_complete)
}

/// Builds the archive of one platform from a checkout.
pub(crate) fn build(
    project: &Project,
    commit: &Commit,
    target: &'static Target,
    builder: Builder,
    out: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(out).with_context(|| format!("cannot create `{}`", out.display()))?;
    let binary = compile(project, commit, target, builder)?;
    let generated = generated(project, &[(target, binary.clone())])?;
    write_archive(project, commit, target, &binary, &generated, out)
}

fn write_archive(
    project: &Project,
    commit: &Commit,
    target: &Target,
    binary: &Path,
    generated: &Files,
    out: &Path,
) -> Result<PathBuf> {
    let binary = fs::read(binary).with_context(|| format!("cannot read `{}`", binary.display()))?;
    let crates = dependencies::crates(project, target)?;
    let bill = sbom::sbom(project, commit, target, &crates, &binary)?;
    let mut files = generated.clone();
    for name in ["LICENSE", "README.md"] {
        files.insert(name.into(), Entry::file(fs::read(project.root.join(name))?));
    }
    files.insert(licences::NAME.into(), Entry::file(licences::text(project, target, &crates)?));
    files.insert(sbom::NAME.into(), Entry::file(bill.clone()));
    files.insert(target.program_name().into(), Entry::program(binary));
    // Whoever unpacks it where they are has one new directory.
    let stem = target.archive_stem(&project.version);
    let directory = target.archive_directory();
    let files: Files = files.into_iter().map(|(path, entry)| (format!("{directory}/{path}"), entry)).collect();
    let bytes = match target.system {
        System::Windows => archive::zip(&files)?,
        System::Linux | System::MacOs => archive::tar_gz(&files, commit.time)?,
    };
    let path = out.join(target.archive_name(&project.version));
    fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
    fs::write(out.join(format!("{stem}.cdx.json")), bill)?;
    Ok(path)
}

/// Completions and manual pages. They are the same on all platforms, so any binary that runs here may write them.
fn generated(project: &Project, built: &[(&'static Target, PathBuf)]) -> Result<Files> {
    let own = built.iter().find(|(target, _)| target.runs_here()).map(|(_, binary)| binary);
    let attache = |arguments: &[&str]| -> Result<Vec<u8>> {
        let mut command = match own {
            Some(binary) => Command::new(binary),
            None => {
                let mut command = Command::new("cargo");
                command.args(["run", "--quiet", "--locked", "--package", "attache-cli", "--"]);
                command
            }
        };
        output(command.args(arguments).current_dir(&project.root))
    };
    let mut files = BTreeMap::new();
    for (shell, name) in SHELLS {
        files.insert(format!("completions/{name}"), Entry::file(attache(&["completions", shell])?));
    }
    let page = attache(&["man"])?;
    for name in pages_named_in(&String::from_utf8_lossy(&page)) {
        files.insert(format!("man/attache-{name}.1"), Entry::file(attache(&["man", &name])?));
    }
    files.insert("man/attache.1".to_owned(), Entry::file(page));
    Ok(files)
}

/// The commands that a manual page refers to: `attache\-run(1)`.
fn pages_named_in(page: &str) -> Vec<String> {
    let pages = page.lines().filter_map(|line| line.strip_prefix("attache\\-")?.strip_suffix("(1)"));
    // clap adds a command `help`, which has no page.
    pages.map(|name| name.replace("\\-", "-")).filter(|name| name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_page_tells_which_others_there_are() {
        let page =
            ".SH SUBCOMMANDS\n.TP\nattache\\-run(1)\nRun\n.TP\nattache\\-run\\-twice(1)\n.TP\nattache\\-help(1)\n";
        assert_eq!(pages_named_in(page), ["run", "run-twice"]);
    }
}
