//! Archives whose bytes depend on their contents alone: sorted, of one time, of nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read, Write};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_executable: bool,
}

impl Entry {
    pub(crate) fn file(bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { bytes: bytes.into(), is_executable: false }
    }

    pub(crate) fn program(bytes: impl Into<Vec<u8>>) -> Entry {
        Entry { bytes: bytes.into(), is_executable: true }
    }

    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// The files of an archive by their paths, with `/` between names. Being a map keeps them sorted.
pub(crate) type Files = BTreeMap<String, Entry>;

pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    // Without a name, a time or a system in its header.
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

pub(crate) fn tar_gz(files: &Files, time: u64) -> Result<Vec<u8>> {
    gzip(&tar(files, time, "")?)
}

/// A tar archive of files alone, whose paths all begin with `prefix`.
pub(crate) fn tar(files: &Files, time: u64, prefix: &str) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, entry) in files {
        let mut header = header(time, entry.mode(), entry.bytes.len() as u64);
        builder.append_data(&mut header, format!("{prefix}{path}"), entry.bytes.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

/// A tar archive with its directories, each once and before what is in it.
pub(crate) fn tar_with_directories(files: &Files, time: u64) -> Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut written = BTreeSet::new();
    for (path, entry) in files {
        for (end, _) in path.match_indices('/') {
            if written.insert(&path[..end]) {
                let mut header = header(time, 0o755, 0);
                header.set_entry_type(tar::EntryType::Directory);
                builder.append_data(&mut header, &path[..=end], std::io::empty())?;
            }
        }
        let mut header = header(time, entry.mode(), entry.bytes.len() as u64);
        builder.append_data(&mut header, path, entry.bytes.as_slice())?;
    }
    Ok(builder.into_inner()?)
}

fn header(time: u64, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_mtime(time);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// A zip archive. Its files are of 1980, before which zip has no time.
pub(crate) fn zip(files: &Files) -> Result<Vec<u8>> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, entry) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(zip::DateTime::default())
            .system(zip::System::Unix)
            .unix_permissions(entry.mode());
        writer.start_file(path.as_str(), options)?;
        writer.write_all(&entry.bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// The files of an archive of ours, by its name.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Files> {
    let files = if name.ends_with(".zip") { read_zip(bytes) } else { read_tar_gz(bytes) };
    files.with_context(|| format!("cannot read `{name}`"))
}

fn read_tar_gz(bytes: &[u8]) -> Result<Files> {
    let mut files = Files::new();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_str().context("a path is not UTF-8")?.to_owned();
        let is_executable = entry.header().mode()? & 0o111 != 0;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(path, Entry { bytes, is_executable });
    }
    Ok(files)
}

fn read_zip(bytes: &[u8]) -> Result<Files> {
    let mut files = Files::new();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        if !entry.is_file() {
            continue;
        }
        let is_executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let path = entry.name()?.into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(path, Entry { bytes, is_executable });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let text = Entry::file("text");
        Files::from([("b/two".into(), text.clone()), ("a/one".into(), Entry::program("x")), ("a/three".into(), text)])
    }

    #[test]
    fn archives_give_back_what_they_were_given() {
        assert_eq!(read("x.tar.gz", &tar_gz(&files(), 7).unwrap()).unwrap(), files());
        assert_eq!(read("x.zip", &zip(&files()).unwrap()).unwrap(), files());
    }

    #[test]
    fn nothing_of_this_machine_and_moment_is_in_an_archive() {
        let bytes = tar(&files(), 1_700_000_000, "").unwrap();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (1_700_000_000, 0, 0));
        }
        // Magic, deflate, no flags, no time, best compression, no system.
        assert_eq!(gzip(b"x").unwrap()[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn directories_come_once_and_before_their_files() {
        let bytes = tar_with_directories(&files(), 0).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let paths = archive.entries().unwrap().map(|entry| entry.unwrap().path_bytes().into_owned());
        let paths: Vec<String> = paths.map(|path| String::from_utf8(path).unwrap()).collect();
        assert_eq!(paths, ["a/", "a/one", "a/three", "b/", "b/two"]);
    }
}
