//! Packages of archives with a small program, unpacked and looked at.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;

use super::*;
use crate::package::recipes::RECIPES;

fn project() -> Project {
    Project::at(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap()
}

/// Writes an archive for each of these platforms.
fn archives(project: &Project, targets: &[Target], directory: &Path) {
    for target in targets {
        let inside = target.archive_directory();
        let mut files = Files::new();
        files.insert(
            format!("{inside}/{}", target.program_name()),
            Entry::program(format!("program of {}", target.triple)),
        );
        for path in [
            "LICENSE",
            "README.md",
            "THIRD-PARTY-LICENSES.txt",
            "sbom.cdx.json",
            "completions/attache.bash",
            "completions/_attache",
            "completions/attache.fish",
            "man/attache.1",
        ] {
            files.insert(format!("{inside}/{path}"), Entry::file(path));
        }
        let name = target.archive_name(&project.version);
        let bytes = if name.ends_with(".zip") { archive::zip(&files) } else { archive::tar_gz(&files, 0) };
        fs::write(directory.join(name), bytes.unwrap()).unwrap();
    }
}

fn packed(targets: &[Target]) -> (tempfile::TempDir, Project) {
    let project = project();
    let directory = tempfile::tempdir().unwrap();
    archives(&project, targets, directory.path());
    package(&project, directory.path()).unwrap();
    (directory, project)
}

fn names(directory: &Path) -> BTreeSet<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn ending(directory: &Path, ending: &str) -> PathBuf {
    let name = names(directory).into_iter().find(|name| name.ends_with(ending));
    directory.join(name.unwrap_or_else(|| panic!("nothing ends with `{ending}` in {:?}", names(directory))))
}

#[test]
fn every_recipe_is_filled_and_every_file_has_a_checksum() {
    let (directory, project) = packed(&TARGETS);
    for recipe in RECIPES {
        let text = fs::read_to_string(directory.path().join(recipe.name)).unwrap();
        assert!(
            !text.contains("@VERSION@") && !text.contains("@REPOSITORY@") && !text.contains("@SHA256"),
            "{}",
            recipe.name
        );
        assert!(text.contains(&project.version) && text.contains(&project.repository), "{}", recipe.name);
    }
    let scoop: Value = serde_json::from_slice(&fs::read(directory.path().join("attache.json")).unwrap()).unwrap();
    let windows = fs::read(ending(directory.path(), "windows-gnu.zip")).unwrap();
    assert_eq!(scoop["architecture"]["64bit"]["hash"], hex(&sha256(&windows)));

    let sums = fs::read_to_string(directory.path().join(checksums::NAME)).unwrap();
    let listed: BTreeSet<String> = sums.lines().map(|line| line.split_once("  ").unwrap().1.to_owned()).collect();
    let mut expected = names(directory.path());
    expected.remove(checksums::NAME);
    assert_eq!(listed, expected);
}

#[test]
fn a_recipe_that_needs_a_missing_archive_is_not_written() {
    let (directory, _) = packed(&TARGETS[..1]);
    let names = names(directory.path());
    assert!(names.contains("install.sh"), "it needs none: {names:?}");
    assert!(
        !names.contains("attache.rb") && !names.contains("attache.json") && !names.contains("attache.nix"),
        "{names:?}"
    );
}

#[test]
fn packing_twice_gives_the_same_bytes() {
    let (one, _) = packed(&TARGETS);
    let (other, _) = packed(&TARGETS);
    assert_eq!(names(one.path()), names(other.path()));
    for name in names(one.path()) {
        assert!(fs::read(one.path().join(&name)).unwrap() == fs::read(other.path().join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn the_package_for_npm_depends_on_one_for_each_platform() {
    let (directory, project) = packed(&TARGETS);
    let manifest = |name: &str| -> Value {
        let bytes = fs::read(directory.path().join(name)).unwrap();
        let files = archive::read("x.tgz", &bytes).unwrap();
        serde_json::from_slice(&files["package/package.json"].bytes).unwrap()
    };
    let main = manifest(&format!("attache-acp-{}.tgz", project.version));
    let platforms = main["optionalDependencies"].as_object().unwrap();
    assert_eq!(platforms.len(), TARGETS.len());
    for (name, version) in platforms {
        let platform = manifest(&format!("{name}-{}.tgz", project.version));
        assert_eq!((platform["name"].as_str(), &platform["version"]), (Some(name.as_str()), version));
        let (system, processor) = (platform["os"][0].as_str().unwrap(), platform["cpu"][0].as_str().unwrap());
        assert_eq!(*name, format!("attache-acp-{system}-{processor}"), "the launcher looks for this");
    }
}

#[test]
fn the_record_of_a_wheel_is_that_of_its_files() {
    let (directory, _) = packed(&TARGETS[..1]);
    let wheel = archive::read("x.zip", &fs::read(ending(directory.path(), ".whl")).unwrap()).unwrap();
    let (_, record) = wheel.iter().find(|(path, _)| path.ends_with("/RECORD")).unwrap();
    let record = String::from_utf8(record.bytes.clone()).unwrap();
    let recorded: BTreeSet<&str> = record.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(recorded, wheel.keys().map(String::as_str).collect());
    let (_, program) = wheel.iter().find(|(path, _)| path.ends_with(".data/scripts/attache")).unwrap();
    assert!(program.is_executable);
}

#[test]
fn a_debian_package_is_three_members_with_the_program_in_its_place() {
    let (directory, _) = packed(&TARGETS[..1]);
    let bytes = fs::read(ending(directory.path(), "_amd64.deb")).unwrap();
    let mut rest = bytes.strip_prefix(b"!<arch>\n").unwrap();
    let mut members = Vec::new();
    while !rest.is_empty() {
        let header = std::str::from_utf8(&rest[..60]).unwrap();
        let size: usize = header[48..58].trim().parse().unwrap();
        members.push((header[..16].trim().to_owned(), rest[60..60 + size].to_vec()));
        rest = &rest[60 + size.next_multiple_of(2)..];
    }
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(members[2].1.as_slice()).read_to_end(&mut text).unwrap();
    let mut archive = tar::Archive::new(text.as_slice());
    let program =
        archive.entries().unwrap().map(Result::unwrap).find(|entry| &*entry.path_bytes() == b"usr/bin/attache");
    assert_eq!(program.unwrap().header().mode().unwrap(), 0o755);
}

#[test]
fn a_directory_without_archives_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = package(&project(), directory.path()).unwrap_err();
    assert!(error.to_string().contains("cargo xtask dist"), "{error}");
}
