//! A Debian package. It is an `ar` archive of two tar archives, which is quickly written where there is no dpkg.

use std::fmt::Write;

use anyhow::Result;

use super::{Archive, Release, SUMMARY};
use crate::archive::{self, Entry, Files};
use crate::{licences, sbom};

/// The package of a platform, and its file name.
pub(crate) fn package(release: &Release, archive: &Archive, architecture: &str) -> Result<(String, Vec<u8>)> {
    // What comes before a release sorts before it with `~`.
    let version = format!("{}-1", release.version.replacen('-', "~", 1));
    let files = files(release, archive, &version)?;
    let size: usize = files.values().map(|entry| entry.bytes.len().div_ceil(1024)).sum();
    let control = format!(
        "Package: attache\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {}\nInstalled-Size: {size}\n\
         Recommends: ca-certificates, git\nSection: devel\nPriority: optional\nHomepage: {}\n\
         Description: {SUMMARY}\n Attaché is a coding agent that editors start, and a client that runs such\n agents from a \
         terminal, a script or a pipe. It speaks the Agent Client\n Protocol.\n",
        release.maintainer()?,
        release.repository,
    );
    let control = Files::from([("control".to_owned(), Entry::file(control))]);
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::gzip(&archive::tar_with_directories(&control, release.time)?)?),
        ("data.tar.gz", archive::gzip(&archive::tar_with_directories(&files, release.time)?)?),
    ] {
        member(&mut bytes, name, release.time, &content);
    }
    Ok((format!("attache_{version}_{architecture}.deb"), bytes))
}

fn files(release: &Release, archive: &Archive, version: &str) -> Result<Files> {
    let mut files = Files::new();
    let doc = "usr/share/doc/attache";
    for (from, to) in [
        ("attache", "usr/bin/attache"),
        ("completions/attache.bash", "usr/share/bash-completion/completions/attache"),
        ("completions/_attache", "usr/share/zsh/vendor-completions/_attache"),
        ("completions/attache.fish", "usr/share/fish/vendor_completions.d/attache.fish"),
    ] {
        files.insert(to.to_owned(), archive.file(from)?.clone());
    }
    for (path, entry) in archive.files.iter().filter(|(path, _)| path.starts_with("man/")) {
        let path = path.replacen("man/", "usr/share/man/man1/", 1) + ".gz";
        files.insert(path, Entry::file(archive::gzip(&entry.bytes)?));
    }
    for name in ["README.md", licences::NAME, sbom::NAME] {
        files.insert(format!("{doc}/{name}.gz"), Entry::file(archive::gzip(&archive.file(name)?.bytes)?));
    }
    let copyright = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: attache\nSource: {}\n\n\
         Files: *\nCopyright: {} the authors of Attaché\nLicense: Apache-2.0\n\nLicense: Apache-2.0\n \
         /usr/share/common-licenses/Apache-2.0 has the text. {} has\n those of the libraries in the program.\n",
        release.repository,
        &sbom::date(release.time)[..4],
        licences::NAME,
    );
    files.insert(format!("{doc}/copyright"), Entry::file(copyright));
    let mut changelog = String::new();
    writeln!(changelog, "attache ({version}) unstable; urgency=medium\n\n  * {}/releases\n", release.repository)?;
    writeln!(changelog, " -- {}  {}", release.maintainer()?, mail_date(release.time))?;
    files.insert(format!("{doc}/changelog.Debian.gz"), Entry::file(archive::gzip(changelog.as_bytes())?));
    // The program brings its libraries, so that it runs on any Debian.
    let overrides = "attache: statically-linked-binary [usr/bin/attache]\n";
    files.insert("usr/share/lintian/overrides/attache".to_owned(), Entry::file(overrides));
    Ok(files)
}

fn member(archive: &mut Vec<u8>, name: &str, time: u64, bytes: &[u8]) {
    let header = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", bytes.len());
    archive.extend(header.as_bytes());
    archive.extend(bytes);
    if !bytes.len().is_multiple_of(2) {
        archive.push(b'\n');
    }
}

/// Seconds since 1970 as mails have it, which changelogs of Debian do.
fn mail_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let date = sbom::date(seconds);
    let (year, month, day) = (&date[..4], &date[5..7], &date[8..]);
    let month = MONTHS[month.parse::<usize>().unwrap_or(1) - 1];
    let (weekday, rest) = (DAYS[(seconds / 86_400 % 7) as usize], seconds % 86_400);
    format!("{weekday}, {day} {month} {year} {:02}:{:02}:{:02} +0000", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_mails() {
        assert_eq!(mail_date(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(mail_date(1_798_761_599), "Thu, 31 Dec 2026 23:59:59 +0000");
    }
}
