//! SHA-256 of what is released, and the file that lists it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The list's name, which installers ask for.
pub(crate) const NAME: &str = "SHA256SUMS";

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the list of all files of a directory, in the form that `sha256sum --check` reads.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a file name is not UTF-8")?;
        if entry.file_type()?.is_file() && name != NAME {
            lines.push((name, hex(&sha256(&fs::read(entry.path())?))));
        }
    }
    lines.sort();
    let text: String = lines.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    fs::write(directory.join(NAME), text).with_context(|| format!("cannot write `{NAME}`"))
}
