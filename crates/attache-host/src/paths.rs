//! Paths as a person and the protocol write them, on every system.
//!
//! On Windows one file has many spellings: `C:\a` and `\\?\C:\a`, capitals and small letters, `/` and `\`. Paths that are
//! compared or shown go through here, so that a root, a rule or a secret is found whatever way it is spelled. On other systems
//! these functions do what the standard library does.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

/// The absolute path without links, as [`Path::canonicalize`] gives it, but on Windows as people write it: `C:\a` and not
/// `\\?\C:\a`.
pub fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(without_verbatim)
}

/// A path as people write it, if it can be written so: `C:\a` for `\\?\C:\a`. On other systems the same path.
pub fn without_verbatim(path: PathBuf) -> PathBuf {
    #[cfg(windows)]
    if let Some(plain) = windows::without_verbatim(&path) {
        return plain;
    }
    path
}

/// The rest of a path after `base`, if it begins with it, name by name. On Windows capitals and small letters are the same.
pub fn strip_prefix<'a>(path: &'a Path, base: &Path) -> Option<&'a Path> {
    let mut rest = path.components();
    for wanted in base.components() {
        if !is_same_part(&rest.next()?, &wanted) {
            return None;
        }
    }
    // `\\?\UNC\server\share` ends without the root that it has, `\\server\share` with it.
    if base.has_root() && rest.clone().next() == Some(Component::RootDir) {
        rest.next();
    }
    // What is a name behind a directory may be a disk at the beginning of a path, as the second part of `C:\a\D:\b`.
    let path = rest.as_path();
    path.components().eq(rest).then_some(path)
}

/// Whether a path is beneath `base` or the same, as far as their texts tell: see [`strip_prefix`].
pub fn starts_with(path: &Path, base: &Path) -> bool {
    strip_prefix(path, base).is_some()
}

/// Whether two paths are spelled alike: see [`strip_prefix`].
pub fn is_same(one: &Path, other: &Path) -> bool {
    strip_prefix(one, other).is_some_and(|rest| rest.as_os_str().is_empty())
}

/// Whether a name can be no other than it looks. Always so, except on Windows: there some names stand for devices (`CON`,
/// `com1.txt`), streams (`a:b`) or other names (`a.` and `a ` for `a`), and some cannot be (`a*`).
pub fn is_plain_name(name: &std::ffi::OsStr) -> bool {
    #[cfg(windows)]
    return windows::is_plain_name(&name.to_string_lossy());
    #[cfg(not(windows))]
    {
        let _ = name;
        true
    }
}

/// Where a word that somebody else wrote leads from a directory, to look at what is there. `None` if that must not be done: on
/// Windows another machine learns who looks at its files, and devices do what they do.
pub fn to_look_at(directory: &Path, word: &str) -> Option<PathBuf> {
    let path = directory.join(word);
    let is_near = !cfg!(windows)
        || match start(&path) {
            Some(Start::Here(_)) => true,
            Some(Start::Remote(_)) => starts_with(&path, directory),
            None => false,
        };
    is_near.then_some(path)
}

/// An absolute path as a `file://` address. `None` for one that is not absolute or not text.
///
/// ```
/// # #[cfg(unix)]
/// assert_eq!(attache_host::paths::to_uri("/a b/ä".as_ref()).as_deref(), Some("file:///a%20b/%C3%A4"));
/// # #[cfg(windows)]
/// assert_eq!(attache_host::paths::to_uri(r"C:\a b".as_ref()).as_deref(), Some("file:///C:/a%20b"));
/// ```
pub fn to_uri(path: &Path) -> Option<String> {
    let text = path.is_absolute().then(|| without_verbatim(path.to_owned()))?.to_str()?.to_owned();
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text };
    let mut uri = String::from("file://");
    // `//server/share` names its host itself.
    let rest = match text.strip_prefix("//") {
        Some(share) if cfg!(windows) => share,
        _ => {
            if !text.starts_with('/') {
                uri.push('/');
            }
            &text
        }
    };
    for byte in rest.bytes() {
        if byte.is_ascii_alphanumeric() || b"/:-._~!$&'()+,;=@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    Some(uri)
}

/// The path of a `file:` address of this machine: `file:/x`, `file:///x` and `file://localhost/x`, with `%2e` and the like as
/// what they stand for. `None` for all that some would read in another way than others.
pub fn from_uri(uri: &str) -> Option<PathBuf> {
    let (scheme, rest) = uri.split_once(':')?;
    if !scheme.eq_ignore_ascii_case("file") {
        return None;
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, _) = rest.split_once('/').unwrap_or((rest, ""));
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            &rest[host.len()..]
        }
        None => rest,
    };
    // A query is cut off by some and part of the name for others.
    let path = (path.starts_with('/') && !path.contains(['?', '#'])).then(|| decoded(path)).flatten()?;
    #[cfg(windows)]
    return windows::from_uri_path(&path);
    #[cfg(not(windows))]
    Some(path.into())
}

/// A text with its `%XX` decoded, once. Nothing for what would be something else if it were decoded again, or is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, tail) = rest.split_at_checked(2)?;
        // `from_str_radix` takes a sign as well.
        let hex = std::str::from_utf8(hex).ok().filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains(['%', '\0']))
}

fn is_same_part(one: &Component<'_>, other: &Component<'_>) -> bool {
    #[cfg(windows)]
    return windows::is_same_part(one, other);
    #[cfg(not(windows))]
    {
        one == other
    }
}

/// Where a path begins that has no root of ours before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// On this machine: `/`, or a disk such as `C:\`.
    Here(PathBuf),
    /// On another machine, which learns who we are when we only look: `\\server\share\`.
    #[cfg_attr(not(windows), allow(dead_code, reason = "only Windows has such paths"))]
    Remote(PathBuf),
}

/// Where an absolute path begins. `None` for a device and whatever else has no files beneath it.
pub(crate) fn start(path: &Path) -> Option<Start> {
    #[cfg(windows)]
    return windows::start(path);
    #[cfg(not(windows))]
    path.is_absolute().then(|| Start::Here("/".into()))
}

#[cfg(any(windows, test))]
#[cfg_attr(not(windows), allow(dead_code, reason = "only what is text alone is tested elsewhere"))]
mod windows {
    use std::path::Prefix;

    use super::*;

    /// Names of devices, whatever stands behind a dot after them.
    const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

    pub(super) fn is_plain_name(name: &str) -> bool {
        let is_odd = |c: char| c < ' ' || "<>:\"/\\|?*".contains(c);
        if name.is_empty() || name.contains(is_odd) || name.ends_with(['.', ' ']) {
            return false;
        }
        let beginning = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
        // `COM¹` is one as well, by an accident of history.
        let is_port = |kind: &str| {
            let number = beginning.strip_prefix(kind).map(|rest| rest.chars().collect::<Vec<_>>());
            number.is_some_and(|number| matches!(number[..], [digit] if "0123456789¹²³".contains(digit)))
        };
        !DEVICES.contains(&beginning.as_str()) && !is_port("com") && !is_port("lpt")
    }

    pub(super) fn start(path: &Path) -> Option<Start> {
        let mut components = path.components();
        let Some(Component::Prefix(prefix)) = components.next() else { return None };
        if components.next() != Some(Component::RootDir) {
            return None;
        }
        match prefix.kind() {
            Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => Some(Start::Here(disk(letter).into())),
            Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                let (server, share) = (server.to_str()?, share.to_str()?);
                // `\\.\` and `\\?\` are devices, also where they are written so that they look like a server.
                let is_plain = is_plain_name(server) && is_plain_name(share);
                is_plain.then(|| Start::Remote(format!(r"\\{server}\{share}\").into()))
            }
            _ => None,
        }
    }

    fn disk(letter: u8) -> String {
        format!(r"{}:\", char::from(letter.to_ascii_uppercase()))
    }

    pub(super) fn without_verbatim(path: &Path) -> Option<PathBuf> {
        let (Start::Here(mut plain) | Start::Remote(mut plain)) = start(path)?;
        for component in path.components().skip(2) {
            match component {
                Component::Normal(name) if is_plain_name(&name.to_string_lossy()) => plain.push(name),
                _ => return None,
            }
        }
        Some(plain)
    }

    pub(super) fn is_same_part(one: &Component<'_>, other: &Component<'_>) -> bool {
        let (Component::Prefix(one), Component::Prefix(other)) = (one, other) else {
            let name = |part: &Component<'_>| match part {
                Component::Normal(name) => Some(folded(&name.to_string_lossy())),
                _ => None,
            };
            return match (name(one), name(other)) {
                (Some(one), Some(other)) => one == other,
                (one_name, other_name) => one_name.is_none() && other_name.is_none() && one == other,
            };
        };
        // `\\?\C:` is `C:`.
        let prefix = |kind: Prefix<'_>| match kind {
            Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => Some((folded(&disk(letter)), String::new())),
            Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                Some((folded(&server.to_string_lossy()), folded(&share.to_string_lossy())))
            }
            _ => None,
        };
        match (prefix(one.kind()), prefix(other.kind())) {
            (Some(one), Some(other)) => one == other,
            _ => one == other,
        }
    }

    /// A name as the file system compares it: each character on its own, so `ß` stays what it is.
    fn folded(name: &str) -> String {
        let fold = |c: char| {
            let mut upper = c.to_uppercase();
            match (upper.next(), upper.next()) {
                (Some(single), None) => single,
                _ => c,
            }
        };
        name.chars().map(fold).collect()
    }

    /// `/C:/x` is `C:\x`. `/x` would be on whatever disk we happen to be.
    pub(super) fn from_uri_path(path: &str) -> Option<PathBuf> {
        let path = path.strip_prefix('/')?;
        let [letter, b':', b'/', ..] = path.as_bytes() else { return None };
        letter.is_ascii_alphabetic().then(|| path.replace('/', "\\").into())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn names_that_are_not_what_they_look_like_are_known() {
            for name in
                ["a", "a.b", ".env", "con1", "comb", "com", "com10", "lpt", "a b", "ä", "~", "a~1", "nulls", "x.con"]
            {
                assert!(is_plain_name(name), "{name}");
            }
            for name in [
                "",
                "a.",
                "a ",
                "...",
                "a:b",
                "a:",
                "::$DATA",
                "a/b",
                "a\\b",
                "a*",
                "a?",
                "\"",
                "a\u{1}",
                "a|b",
                "<",
                ">",
                "CON",
                "con",
                "Con.txt",
                "con .txt",
                "nul",
                "NUL.tar.gz",
                "prn",
                "aux.c",
                "com1",
                "COM9.log",
                "com0",
                "com¹",
                "lpt3",
                "LPT².x",
                "conin$",
                "CONOUT$",
                "clock$",
            ] {
                assert!(!is_plain_name(name), "{name}");
            }
        }

        #[test]
        fn addresses_name_a_disk() {
            assert_eq!(from_uri_path("/C:/a b/c"), Some(r"C:\a b\c".into()));
            for path in ["/a", "/C:", "/C:a", "C:/a", "//server/share", "/1:/a", "/C|/a"] {
                assert_eq!(from_uri_path(path), None, "{path}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_being_an_address() {
        let rows: &[&str] = match cfg!(windows) {
            true => &[r"C:\a b\c%.txt", r"D:\ä#?"],
            false => &["/", "/a b/c%x.txt", "/ä#x"],
        };
        for path in rows {
            let uri = to_uri(Path::new(path)).unwrap_or_default();
            // What looks as if it were encoded twice is refused.
            let expected = (!path.contains(['%'])).then(|| PathBuf::from(path));
            assert_eq!(from_uri(&uri), expected, "{uri}");
        }
        assert_eq!(to_uri(Path::new("relative")), None);
        for uri in ["http://x/y", "file://host/x", "file:x", "file:///x?y", "file:///x#y", "file:///%ff", "file:///%2"]
        {
            assert_eq!(from_uri(uri), None, "{uri}");
        }
    }

    #[cfg(windows)]
    #[test]
    fn one_file_has_many_spellings() {
        let rows = [
            (r"C:\a\B", r"c:\A", Some("B")),
            (r"\\?\C:\a\b", r"C:/A", Some("b")),
            (r"C:\ab", r"C:\a", None),
            (r"C:\a", r"D:\a", None),
            (r"\\Server\Share\x", r"\\?\UNC\server\SHARE", Some("x")),
            (r"\\server\other\x", r"\\server\share", None),
            (r"C:\ÄÖ\x", r"C:\äö", Some("x")),
            (r"C:\straße", r"C:\strasse", None),
            (r"\\.\C:\a", r"C:\a", None),
            (r"C:a", r"C:\", None),
            (r"\a", r"C:\", None),
            (r"C:\a\D:\b", r"C:\a", None),
            (r"\\?\C:\a\b/c", r"C:\a", None),
        ];
        for (path, base, rest) in rows {
            assert_eq!(strip_prefix(Path::new(path), Path::new(base)), rest.map(Path::new), "{path} {base}");
        }
        let plain = |path: &str| without_verbatim(path.into()).display().to_string();
        assert_eq!(plain(r"\\?\c:\a\b"), r"C:\a\b");
        assert_eq!(plain(r"\\?\UNC\server\share\a"), r"\\server\share\a");
        for path in [r"\\?\C:\a.", r"\\?\C:\nul", r"\\?\GLOBALROOT\Device\x", r"\\.\COM1", "relative"] {
            assert_eq!(plain(path), path);
        }
        assert_eq!(start(Path::new(r"c:\x")), Some(Start::Here(r"C:\".into())));
        assert_eq!(start(Path::new(r"\\server\share\x")), Some(Start::Remote(r"\\server\share\".into())));
        for path in [r"\\.\PhysicalDrive0", r"\\.\pipe\x", r"\\?\GLOBALROOT\x", r"C:x", r"\x", "x", r"\\?\Volume{0}\x"]
        {
            assert_eq!(start(Path::new(path)), None, "{path}");
        }
    }
}
