//! The licences of everything in a binary, with their texts as the crates bring them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::dependencies::{Crate, Key};
use crate::project::Project;
use crate::target::{System, Target};

/// The file's name in the archives.
pub(crate) const NAME: &str = "THIRD-PARTY-LICENSES.txt";

/// Which files of a crate are about its licence, by how their names begin.
const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// Directories that hold nothing of what is linked.
const SKIPPED: [&str; 6] = ["tests", "test", "benches", "examples", "fuzz", "target"];

/// Code of others that may be deep in a crate, like C sources.
const DEPTH: usize = 4;

pub(crate) fn text(project: &Project, target: &Target, crates: &BTreeMap<Key, Crate>) -> Result<String> {
    let ours = fs::read_to_string(project.root.join("LICENSE")).context("cannot read LICENSE")?;
    let mut list = String::new();
    // Hundreds of crates share a few dozen texts.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for krate in crates.values().filter(|krate| !krate.is_ours) {
        let name = format!("{} {}", krate.name, krate.version);
        let repository = krate.repository.as_deref().unwrap_or("no repository");
        writeln!(list, "{name}: {} ({repository})", krate.licence)?;
        let mut found = Vec::new();
        collect(&krate.directory, DEPTH, &mut found)?;
        if found.is_empty() {
            found.push(fallback(krate, &ours)?);
        }
        for text in found {
            let users = texts.entry(text).or_default();
            if users.last() != Some(&name) {
                users.push(name.clone());
            }
        }
    }
    writeln!(list, "The Rust standard library: MIT OR Apache-2.0 (https://github.com/rust-lang/rust)")?;
    texts.entry(tidy(&ours)).or_default().push("The Rust standard library".to_owned());
    if target.system == System::Linux {
        writeln!(list, "musl: MIT (https://musl.libc.org)")?;
        texts.entry(tidy(include_str!("licences/musl.txt"))).or_default().push("musl".to_owned());
    }

    let mut page = format!("What `attache` for {} is made of besides its own code.\n\n{list}", target.triple);
    let mut sections: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, users)| (users, text)).collect();
    sections.sort();
    for (users, text) in sections {
        write!(page, "\n{}\n{}\n{}\n\n{text}\n", "=".repeat(80), users.join(", "), "-".repeat(80))?;
    }
    Ok(page)
}

/// The licence of a crate that brings no text. All but the one of Apache need the names of those who hold the rights.
fn fallback(krate: &Crate, apache: &str) -> Result<String> {
    let alternatives = krate.licence.trim_matches(['(', ')']).split(" OR ");
    if !alternatives.clone().any(|licence| licence == "Apache-2.0") {
        bail!("`{} {}` brings no text of its licence, {}", krate.name, krate.version, krate.licence);
    }
    let authors = krate.authors.join(", ");
    Ok(if authors.is_empty() { tidy(apache) } else { format!("Authors: {authors}\n\n{}", tidy(apache)) })
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<String>) -> Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 && !SKIPPED.contains(&name.as_str()) {
            collect(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && is_licence(&name, directory) {
            found.push(tidy(&String::from_utf8_lossy(&fs::read(entry.path())?)));
        }
    }
    Ok(())
}

/// Whether a file, its name in small letters, is about a licence. `licenses/MIT.txt` is, `src/license.rs` is not.
fn is_licence(name: &str, directory: &Path) -> bool {
    let is_source = [".rs", ".c", ".h", ".py", ".toml", ".json", ".tmpl"].iter().any(|ending| name.ends_with(ending));
    let begins = |name: &str| BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let parent = directory.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    !is_source && (begins(name) || parent == "licenses" || parent == "licences")
}

/// A text as it is compared: ends of lines and what surrounds it say nothing.
fn tidy(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dependencies;
    use crate::target::TARGETS;

    #[test]
    fn every_dependency_on_every_platform_has_a_licence_with_a_text() {
        let project = Project::here().unwrap();
        for target in &TARGETS {
            let crates = dependencies::crates(&project, target).unwrap();
            let page = text(&project, target, &crates).unwrap();
            for krate in crates.values().filter(|krate| !krate.is_ours) {
                let line = format!("\n{} {}: {} (", krate.name, krate.version, krate.licence);
                assert!(page.contains(&line), "{} has no {line}", target.triple);
            }
        }
    }

    fn krate(licence: &str, directory: &Path) -> Crate {
        Crate {
            name: "x".into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            authors: vec!["Ann".into()],
            repository: None,
            is_ours: false,
            directory: directory.into(),
            uses: BTreeSet::new(),
        }
    }

    #[test]
    fn a_crate_without_text_needs_a_licence_that_we_have_the_text_of() {
        let nowhere = Path::new("");
        assert_eq!(fallback(&krate("MIT OR Apache-2.0", nowhere), "apache\n").unwrap(), "Authors: Ann\n\napache");
        assert!(fallback(&krate("MIT", nowhere), "apache").is_err());
        assert!(fallback(&krate("MIT AND Apache-2.0", nowhere), "apache").is_err());
    }

    #[test]
    fn texts_are_found_where_crates_put_them() {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("LICENSE-MIT", "one\r\n"),
            ("c/lib/COPYING", "two"),
            ("LICENSES/0BSD.txt", "three"),
            ("src/license.rs", "code"),
            ("tests/LICENSE", "not linked"),
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut found = Vec::new();
        collect(directory.path(), DEPTH, &mut found).unwrap();
        found.sort();
        assert_eq!(found, ["one", "three", "two"]);
    }
}
