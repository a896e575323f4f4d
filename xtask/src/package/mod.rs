//! Packages of the archives that `dist` has built: nothing is compiled here, so any machine can make all of them.

mod debian;
mod npm;
mod recipes;
mod wheel;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::archive::{self, Entry, Files};
use crate::checksums::{self, hex, sha256};
use crate::project::Project;
use crate::target::{TARGETS, Target};

/// What a package says that this is.
const SUMMARY: &str = "Agent Client Protocol (ACP): a coding agent, and a client for all agents";

/// The package's name where `attache` belongs to others.
const NAME: &str = "attache-acp";

/// A version with its archives.
struct Release {
    version: String,
    repository: String,
    /// When it was committed, in seconds since 1970.
    time: u64,
    archives: Vec<Archive>,
}

/// The archive of a platform.
struct Archive {
    target: &'static Target,
    sha256: String,
    /// Its files by their paths beneath its one directory.
    files: Files,
}

impl Archive {
    fn file(&self, path: &str) -> Result<&Entry> {
        self.files.get(path).with_context(|| format!("the archive for {} has no `{path}`", self.target.triple))
    }
}

impl Release {
    /// The version whose archives are in a directory.
    fn read(project: &Project, directory: &Path) -> Result<Release> {
        let mut archives = Vec::new();
        for target in &TARGETS {
            let name = target.archive_name(&project.version);
            let path = directory.join(&name);
            if !path.exists() {
                continue;
            }
            let bytes = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            let directory = format!("{}/", target.archive_directory());
            let mut files = Files::new();
            for (path, entry) in archive::read(&name, &bytes)? {
                let path = path.strip_prefix(&directory).with_context(|| format!("`{name}` has a file `{path}`"))?;
                files.insert(path.to_owned(), entry);
            }
            archives.push(Archive { target, sha256: hex(&sha256(&bytes)), files });
        }
        if archives.is_empty() {
            bail!("no archive of {} in `{}`; run `cargo xtask dist` first", project.version, directory.display());
        }
        let time = project.commit()?.time;
        Ok(Release { version: project.version.clone(), repository: project.repository.clone(), time, archives })
    }

    /// Who answers for it: the owner of the repository, at the address that GitHub gives to everyone.
    fn maintainer(&self) -> Result<String> {
        let owner = self.repository.strip_prefix("https://github.com/").and_then(|path| path.split('/').next());
        let owner = owner.with_context(|| format!("`{}` is not on GitHub", self.repository))?;
        Ok(format!("Attaché <{owner}@users.noreply.github.com>"))
    }
}

/// Writes all packages that can be made of the archives in a directory, and the checksums of all that is there.
pub(crate) fn package(project: &Project, directory: &Path) -> Result<()> {
    let release = Release::read(project, directory)?;
    let write = |name: &str, bytes: Vec<u8>| -> Result<()> {
        let path = directory.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
        eprintln!("packed {}", path.display());
        Ok(())
    };
    for archive in &release.archives {
        if let Some(architecture) = archive.target.debian {
            let (name, bytes) = debian::package(&release, archive, architecture)?;
            write(&name, bytes)?;
        }
        let (name, bytes) = npm::platform(&release, archive)?;
        write(&name, bytes)?;
        let (name, bytes) = wheel::wheel(project, &release, archive)?;
        write(&name, bytes)?;
    }
    let (name, bytes) = npm::main(project, &release)?;
    write(&name, bytes)?;
    for recipe in recipes::RECIPES {
        match recipes::fill(project, &release, recipe)? {
            Ok(text) => write(recipe.name, text.into_bytes())?,
            Err(missing) => eprintln!("not written: {}: there is no archive for {missing}", recipe.name),
        }
    }
    checksums::write(directory)
}

#[cfg(test)]
mod tests;
