//! Wheels for PyPI: a zip archive of the program, a launcher and what pip wants to know.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, bail};

use super::{Archive, NAME, Release, SUMMARY};
use crate::archive::{self, Entry, Files};
use crate::checksums::sha256;
use crate::licences;
use crate::project::Project;

/// The wheel of a platform. It runs with any Python 3, as nothing in it is compiled for one.
pub(crate) fn wheel(project: &Project, release: &Release, archive: &Archive) -> Result<(String, Vec<u8>)> {
    let module = NAME.replace('-', "_");
    let version = version(&release.version)?;
    let stem = format!("{module}-{version}");
    let info = format!("{stem}.dist-info");
    let mut files = Files::new();
    for name in ["__init__.py", "__main__.py"] {
        let from = project.root.join("packaging/pypi").join(&module).join(name);
        let bytes = fs::read(&from).with_context(|| format!("cannot read `{}`", from.display()))?;
        files.insert(format!("{module}/{name}"), Entry::file(bytes));
    }
    // pip puts what is in `scripts` on the path.
    let program = archive.target.program_name();
    files.insert(format!("{stem}.data/scripts/{program}"), archive.file(program)?.clone());
    for name in ["LICENSE", licences::NAME] {
        files.insert(format!("{info}/licenses/{name}"), archive.file(name)?.clone());
    }
    let readme = fs::read_to_string(project.root.join("packaging/pypi/README.md"))
        .context("cannot read packaging/pypi/README.md")?;
    let metadata = format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {version}\nSummary: {SUMMARY}\nKeywords: acp,agent-client-protocol,coding-agent\n\
         Project-URL: Source, {}\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: {}\nRequires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{readme}",
        release.repository,
        licences::NAME,
    );
    files.insert(format!("{info}/METADATA"), Entry::file(metadata));
    let mut tags = String::new();
    for platform in archive.target.wheel.split('.') {
        writeln!(tags, "Tag: py3-none-{platform}")?;
    }
    let about = format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n{tags}");
    files.insert(format!("{info}/WHEEL"), Entry::file(about));
    // `uvx` runs the command with the package's name.
    let entry_points = format!("[console_scripts]\n{NAME} = {module}.__main__:main\n");
    files.insert(format!("{info}/entry_points.txt"), Entry::file(entry_points));
    let record = format!("{info}/RECORD");
    files.insert(record.clone(), Entry::file(record_of(&files, &record)?));
    Ok((format!("{stem}-py3-none-{}.whl", archive.target.wheel), archive::zip(&files)?))
}

fn record_of(files: &Files, name: &str) -> Result<String> {
    let mut record = String::new();
    for (path, entry) in files {
        writeln!(record, "{path},sha256={},{}", base64(&sha256(&entry.bytes)), entry.bytes.len())?;
    }
    writeln!(record, "{name},,")?;
    Ok(record)
}

/// Base64 for addresses, without padding, as records of wheels have it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0, |bits, (index, byte)| bits | u32::from(*byte) << (16 - 8 * index));
        for index in 0..=chunk.len() {
            text.push(char::from(LETTERS[(bits >> (18 - 6 * index)) as usize & 63]));
        }
    }
    text
}

/// A version as Python writes it: `1.0.0-rc.1` is `1.0.0rc1`.
fn version(version: &str) -> Result<String> {
    let Some((release, stage)) = version.split_once('-') else { return Ok(version.to_owned()) };
    for (ours, theirs) in [("alpha.", "a"), ("beta.", "b"), ("rc.", "rc")] {
        if let Some(number) = stage.strip_prefix(ours).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        {
            return Ok(format!("{release}{theirs}{number}"));
        }
    }
    bail!("Python has no word for the version `{version}`; name it alpha.N, beta.N or rc.N");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let rows = [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")];
        for (bytes, text) in rows {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn versions_are_those_of_python() {
        assert_eq!(version("1.2.3").unwrap(), "1.2.3");
        assert_eq!(version("1.2.3-rc.1").unwrap(), "1.2.3rc1");
        assert!(version("1.2.3-nightly").is_err());
    }
}
