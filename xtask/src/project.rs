//! The checkout that is worked on: where it is, its version and commit, and what Cargo knows of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A checkout of this repository.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) target_directory: PathBuf,
    pub(crate) version: String,
    /// Where the source is, as the root Cargo.toml has it. Nothing else in the repository knows.
    pub(crate) repository: String,
    /// What `cargo metadata` says.
    pub(crate) metadata: Value,
}

/// The commit that is checked out.
pub(crate) struct Commit {
    pub(crate) id: String,
    /// Seconds since 1970. Everything that we write is from then, whenever it is written.
    pub(crate) time: u64,
    /// Whether files that git knows have changed since. The records of `cargo xtask matrix` do not count: to test is to change them.
    pub(crate) is_dirty: bool,
}

impl Project {
    /// The checkout that this program was built in.
    pub(crate) fn here() -> Result<Project> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask is in no workspace")?;
        Project::at(root)
    }

    pub(crate) fn at(root: &Path) -> Result<Project> {
        let mut command = Command::new("cargo");
        command.args(["metadata", "--locked", "--format-version", "1"]).current_dir(root);
        let metadata: Value = serde_json::from_slice(&output(&mut command)?).context("cannot read `cargo metadata`")?;
        let of = |name: &str, field: &str| -> Result<String> {
            let packages = metadata["packages"].as_array();
            let mut packages = packages.into_iter().flatten().filter(|package| package["source"].is_null());
            let value = packages.find(|package| package["name"] == name).and_then(|package| package[field].as_str());
            Ok(value.with_context(|| format!("`cargo metadata` has no {field} of `{name}`"))?.to_owned())
        };
        let target_directory =
            metadata["target_directory"].as_str().context("`cargo metadata` has no target_directory")?;
        Ok(Project {
            root: root.to_path_buf(),
            target_directory: target_directory.into(),
            version: of("attache-cli", "version")?,
            repository: of("xtask", "repository")?,
            metadata,
        })
    }

    pub(crate) fn commit(&self) -> Result<Commit> {
        let git = |arguments: &[&str]| -> Result<String> {
            let bytes = output(Command::new("git").args(arguments).current_dir(&self.root))?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        let time = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(time) => time,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        Ok(Commit {
            id: git(&["rev-parse", "HEAD"])?,
            time: time.parse().with_context(|| format!("invalid SOURCE_DATE_EPOCH `{time}`"))?,
            is_dirty: !git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/platforms.*"])?
                .is_empty(),
        })
    }
}

/// Runs a command whose output is for the person, and says which one failed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", program(command)))?;
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

/// What a command writes to stdout.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {}", program(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}\n{}", line(command), output.status, said.trim_end());
    }
    Ok(output.stdout)
}

fn program(command: &Command) -> String {
    format!("`{}`", command.get_program().to_string_lossy())
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    format!("`{}`", words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
}
