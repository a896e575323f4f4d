//! What is known of a file without opening it.

use std::ffi::OsString;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, wherever it leads.
    Link,
    /// A FIFO, a socket, a device.
    Other,
}

/// What is known of a file without opening it. Two that are equal are most likely the same file, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// What it is.
    pub kind: EntryKind,
    /// How many bytes it has.
    pub size: u64,
    /// When it was changed: seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    /// When anything about it was changed, also its name or its permissions: seconds and nanoseconds since 1970. No program
    /// can set it back.
    pub changed: (i64, i64),
    /// Its permissions.
    pub mode: u32,
    /// How many names it has.
    pub links: u64,
    /// Which file it is on this machine: the device and the number there.
    pub id: (u64, u64),
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, which may be any bytes.
    pub name: OsString,
    /// What it stands for.
    pub info: Info,
}

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The names, sorted.
    pub entries: Vec<Entry>,
    /// There were more than were asked for; which of them are here is chance.
    pub is_cut: bool,
}
