//! Packages for npm: one with the program for each platform, and one that runs whichever of them npm installed.

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{Archive, NAME, Release, SUMMARY};
use crate::archive::{self, Entry, Files};
use crate::licences;
use crate::project::Project;
use crate::target::Target;

fn platform_name(target: &Target) -> String {
    let (system, processor) = target.npm;
    format!("{NAME}-{system}-{processor}")
}

/// The package with the program of a platform.
pub(crate) fn platform(release: &Release, archive: &Archive) -> Result<(String, Vec<u8>)> {
    let target = archive.target;
    let (system, processor) = target.npm;
    let name = platform_name(target);
    let mut manifest = manifest(release, &name, &format!("The program of {NAME} for {system} {processor}"));
    manifest["os"] = json!([system]);
    manifest["cpu"] = json!([processor]);
    // Yarn keeps packages zipped, and programs cannot be run from there.
    manifest["preferUnplugged"] = json!(true);
    let mut files = Files::new();
    for path in ["LICENSE", licences::NAME] {
        files.insert(path.to_owned(), archive.file(path)?.clone());
    }
    let readme = format!(
        "# {name}\n\nThe program of [{NAME}](https://www.npmjs.com/package/{NAME}) for {system} {processor}.\n"
    );
    files.insert("README.md".to_owned(), Entry::file(readme));
    files.insert(format!("bin/{}", target.program_name()), archive.file(target.program_name())?.clone());
    pack(release, &name, manifest, files)
}

/// The package that people name.
pub(crate) fn main(project: &Project, release: &Release) -> Result<(String, Vec<u8>)> {
    let mut manifest = manifest(release, NAME, SUMMARY);
    // `npx` runs the one with the package's name.
    manifest["bin"] = json!({ "attache": "attache.js", NAME: "attache.js" });
    manifest["engines"] = json!({ "node": ">=18" });
    let platforms =
        release.archives.iter().map(|archive| (platform_name(archive.target), release.version.clone().into()));
    manifest["optionalDependencies"] = platforms.collect::<Map<String, Value>>().into();
    let mut files = Files::new();
    for (from, to) in
        [("packaging/npm/attache.js", "attache.js"), ("packaging/npm/README.md", "README.md"), ("LICENSE", "LICENSE")]
    {
        let bytes = fs::read(project.root.join(from)).with_context(|| format!("cannot read `{from}`"))?;
        files.insert(to.to_owned(), Entry { bytes, is_executable: to == "attache.js" });
    }
    pack(release, NAME, manifest, files)
}

fn manifest(release: &Release, name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "version": release.version,
        "description": description,
        "keywords": ["acp", "agent-client-protocol", "agent", "coding-agent"],
        "license": "Apache-2.0",
        "homepage": release.repository,
        "repository": { "type": "git", "url": format!("git+{}.git", release.repository) },
    })
}

fn pack(release: &Release, name: &str, manifest: Value, mut files: Files) -> Result<(String, Vec<u8>)> {
    files.insert("package.json".to_owned(), Entry::file(serde_json::to_vec_pretty(&manifest)?));
    let bytes = archive::gzip(&archive::tar(&files, release.time, "package/")?)?;
    Ok((format!("{name}-{}.tgz", release.version), bytes))
}
