//! The bill of materials of a binary, as CycloneDX 1.6.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::checksums::{hex, sha256};
use crate::dependencies::{Crate, Key};
use crate::project::{Commit, Project};
use crate::target::Target;

/// The file's name in the archives.
pub(crate) const NAME: &str = "sbom.cdx.json";

pub(crate) fn sbom(
    project: &Project,
    commit: &Commit,
    target: &Target,
    crates: &BTreeMap<Key, Crate>,
    binary: &[u8],
) -> Result<Vec<u8>> {
    let lock = fs::read_to_string(project.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let checksums = checksums(&lock);
    let main = crates.values().find(|krate| krate.name == "attache-cli").context("no package `attache-cli`")?;
    let components: Vec<Value> = crates
        .iter()
        .filter(|(_, krate)| krate.name != main.name)
        .map(|(key, krate)| component(project, krate, checksums.get(key).copied()))
        .collect();
    let dependencies: Vec<Value> = crates
        .values()
        .map(|krate| {
            let uses: Vec<String> = krate.uses.iter().map(|key| purl(project, &crates[key])).collect();
            json!({ "ref": purl(project, krate), "dependsOn": uses })
        })
        .collect();
    let mut program = component(project, main, None);
    program["type"] = "application".into();
    program["name"] = "attache".into();
    program["hashes"] = json!([{ "alg": "SHA-256", "content": hex(&sha256(binary)) }]);
    let page = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial_number(target, binary),
        "version": 1,
        "metadata": {
            "timestamp": timestamp(commit.time),
            "component": program,
            "properties": [
                { "name": "attache:target", "value": target.triple },
                { "name": "attache:commit", "value": commit.id },
            ],
        },
        "components": components,
        "dependencies": dependencies,
    });
    let mut bytes = serde_json::to_vec_pretty(&page)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(project: &Project, krate: &Crate, checksum: Option<&str>) -> Value {
    let purl = purl(project, krate);
    let mut component = json!({
        "type": "library",
        "bom-ref": purl,
        "name": krate.name,
        "version": krate.version,
        "licenses": [{ "expression": krate.licence }],
        "purl": purl,
    });
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &krate.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// The name of a crate among the packages of all registries. Ours are named by where their source is.
fn purl(project: &Project, krate: &Crate) -> String {
    let name = format!("pkg:cargo/{}@{}", krate.name, krate.version);
    if krate.is_ours { format!("{name}?vcs_url=git%2B{}", encoded(&project.repository)) } else { name }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// What Cargo.lock says that the packages of registries hash to.
fn checksums(lock: &str) -> BTreeMap<Key, &str> {
    let mut checksums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        if let (Some(name), Some(version), Some(checksum)) = (field("name"), field("version"), field("checksum")) {
            checksums.insert((name.to_owned(), version.to_owned()), checksum);
        }
    }
    checksums
}

/// A UUID that says which binary it is about, so that it is the same whenever it is written. Version 8 is for such.
fn serial_number(target: &Target, binary: &[u8]) -> String {
    let mut seed = target.triple.as_bytes().to_vec();
    seed.extend(sha256(binary));
    let mut id = sha256(&seed);
    id[6] = id[6] & 0x0f | 0x80;
    id[8] = id[8] & 0x3f | 0x80;
    let id = hex(&id[..16]);
    format!("urn:uuid:{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..])
}

/// Seconds since 1970 as a date and time.
fn timestamp(seconds: u64) -> String {
    let (date, rest) = (date(seconds), seconds % 86_400);
    format!("{date}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Seconds since 1970 as a date.
pub(crate) fn date(seconds: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut day = seconds / 86_400;
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TARGETS;

    #[test]
    fn seconds_become_a_date_and_time() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_798_761_599), "2026-12-31T23:59:59Z");
    }

    #[test]
    fn a_serial_number_is_a_uuid_of_the_binary() {
        let number = serial_number(&TARGETS[0], b"x");
        assert_eq!(number, serial_number(&TARGETS[0], b"x"));
        assert_ne!(number, serial_number(&TARGETS[0], b"y"));
        assert_ne!(number, serial_number(&TARGETS[1], b"x"));
        assert_eq!(number.len(), "urn:uuid:".len() + 36);
        assert_eq!(&number[23..24], "8");
    }

    #[test]
    fn checksums_are_read_from_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([(("a".to_owned(), "1.0.0".to_owned()), "ab")]));
    }
}
