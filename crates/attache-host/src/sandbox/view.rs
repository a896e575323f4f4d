//! The paths of a policy as one table: what can be done where. Rules for Landlock, mounts and answers come from it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::{Policy, SandboxError};

/// What is allowed at a path and beneath, up to the next path in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Hidden,
    Read,
    Write,
}

/// Why a path is in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The policy names it.
    Named,
    /// A device, or the directory of all devices.
    Device,
    /// Programs outside listen there, or wait for others to share memory.
    Sockets,
    /// What programs need of a directory of sockets.
    Needed,
    /// It is shown inside of what is hidden.
    Shown,
    /// It would be run later, outside.
    Protected,
    /// A directory on the way to something protected or hidden: it may be changed, but not be moved away and replaced.
    Pinned,
    /// Something else is mounted there that can be changed: a layer, or temporary files of one's own. What is shared can
    /// only be read.
    Layer,
}

/// One path, without links in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) why: Why,
}

/// Devices that every program may expect, and that tell nothing about the machine. Not the terminals: the user sits at
/// some of them.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Memory that is shared by name. In a sandbox with namespaces of its own it is another one.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
/// Left out of what is readable: a disk can be read past all rules.
const ALL_DEVICES: &str = "/dev";

/// Where services keep their sockets.
const SERVICES: &str = "/run";
/// What programs need of it, all of it harmless: how names are looked up, where NixOS has its programs, disks that were
/// plugged in, and the sign of a container.
const NEEDED: [&str; 9] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/booted-system",
    "/run/opengl-driver",
    "/run/opengl-driver-32",
    "/run/media",
    "/run/.containerenv",
];

/// The table of a policy, by path, so that a directory comes before what is in it. What is not there is left out, unless
/// it is to be hidden.
pub(super) fn rows(policy: &Policy) -> Vec<Row> {
    let mut table: BTreeMap<PathBuf, (Access, Why)> = BTreeMap::new();
    let mut known = BTreeMap::new();
    let hidden: Vec<PathBuf> = policy.hidden.iter().map(|path| resolve_with(path, &mut known)).collect();
    let is_hidden = |path: &Path| hidden.iter().any(|hidden| path.starts_with(hidden));
    // Later ones win where two name the same path.
    let readable: Vec<PathBuf> = policy.readable.iter().map(|path| resolve(path)).collect();
    for path in readable.iter().filter(|path| !is_hidden(path)) {
        table.insert(path.clone(), (Access::Read, Why::Named));
    }
    let mut services = vec![resolve(Path::new(SERVICES))];
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    services.extend(runtime.map(|path| resolve(&path)).filter(|path| path != Path::new("/")));
    for path in services {
        table.insert(path, (Access::Hidden, Why::Sockets));
    }
    let resolver = fs::canonicalize("/etc/resolv.conf").ok().filter(|path| path.starts_with(SERVICES));
    for path in NEEDED.into_iter().map(PathBuf::from).chain(resolver) {
        // A link leads out of here, and is followed all the same.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink()) {
            table.insert(path, (Access::Read, Why::Needed));
        }
    }
    for path in policy.sockets.iter().filter_map(|path| fs::canonicalize(path).ok()) {
        table.entry(path).or_insert((Access::Read, Why::Needed));
    }
    // Whoever names a device wants it.
    table.entry(ALL_DEVICES.into()).or_insert((Access::Hidden, Why::Device));
    for path in DEVICES {
        table.insert(path.into(), (Access::Write, Why::Device));
    }
    if let Ok(path) = fs::canonicalize(SHARED_MEMORY) {
        table.insert(path, (Access::Write, Why::Device));
    }
    for path in &policy.writable {
        table.insert(resolve(path), (Access::Write, Why::Named));
    }
    for (path, kept) in replaced(policy).filter(|(path, _)| !is_hidden(path)) {
        table.insert(path, (Access::Read, Why::Layer));
        let is_plain = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
        for path in kept.iter().filter(is_plain) {
            table.insert(path.clone(), (Access::Read, Why::Protected));
        }
    }
    for path in hidden {
        table.insert(path, (Access::Hidden, Why::Named));
    }
    // A link would show what it leads to.
    let is_plain = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
    for path in policy.shown.iter().filter(is_plain) {
        table.insert(resolve(path), (Access::Read, Why::Shown));
    }
    // Only what a command could change has to be kept: nothing is uncovered by being protected.
    let is_changeable = |table: &BTreeMap<PathBuf, (Access, Why)>, path: &Path| {
        path.ancestors().find_map(|above| table.get(above)).is_some_and(|(access, _)| *access == Access::Write)
    };
    let is_named_writable = |path: &Path| policy.writable.iter().any(|writable| path.starts_with(writable));
    // Links on the way to what is hidden, too: who replaces one decides what is read there.
    let mut kept = Vec::new();
    for path in &policy.protected {
        kept.extend(links_and_end(path));
    }
    for path in policy.hidden.iter().filter(|path| is_named_writable(path)) {
        kept.extend(links_and_end(path).into_iter().filter(|path| is_link(path)));
    }
    kept.sort_unstable();
    for path in kept {
        if is_changeable(&table, &path) && fs::symlink_metadata(&path).is_ok() {
            // What is writable by name stays so: it was asked for.
            table.entry(path).or_insert((Access::Read, Why::Protected));
        }
    }
    let is_kept = |(_, (access, why)): &(&PathBuf, &(Access, Why))| {
        *why == Why::Protected || (*access == Access::Hidden && *why == Why::Named)
    };
    let ends: Vec<PathBuf> = table.iter().filter(is_kept).map(|(path, _)| path.clone()).collect();
    for end in ends {
        for above in end.ancestors().skip(1).take_while(|above| !table.contains_key(*above)).collect::<Vec<_>>() {
            let is_directory = fs::symlink_metadata(above).is_ok_and(|found| found.is_dir());
            if is_directory && is_changeable(&table, above) {
                table.insert(above.to_owned(), (Access::Write, Why::Pinned));
            }
        }
    }
    table.into_iter().map(|(path, (access, why))| Row { path, access, why }).collect()
}

/// Where something else is mounted, with what stays as it is inside.
fn replaced(policy: &Policy) -> impl Iterator<Item = (PathBuf, &[PathBuf])> {
    let layers = policy.layers.iter().map(|layer| (layer.at.clone(), &layer.kept[..]));
    layers.chain(policy.temporary.iter().map(|_| (resolve(&std::env::temp_dir()), &[][..])))
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// The rows around a path, the nearest first.
pub(super) fn around<'a>(rows: &'a [Row], path: &'a Path) -> impl Iterator<Item = &'a Row> {
    path.ancestors().skip(1).filter_map(move |ancestor| row_at(rows, ancestor))
}

fn row_at<'a>(rows: &'a [Row], path: &Path) -> Option<&'a Row> {
    rows.binary_search_by(|row| row.path.as_path().cmp(path)).ok().map(|at| &rows[at])
}

/// What is allowed at a path without links in it.
pub(super) fn access(rows: &[Row], path: &Path) -> Access {
    path.ancestors().find_map(|ancestor| row_at(rows, ancestor)).map_or(Access::Hidden, |row| row.access)
}

/// Hidden paths inside of writable ones, which Landlock cannot do: it knows only what is allowed.
pub(super) fn hidden_in_writable(rows: &[Row]) -> impl Iterator<Item = (&Row, &Row)> {
    let hidden = rows.iter().filter(|row| row.access == Access::Hidden);
    hidden.filter_map(|row| Some((row, writable_around(rows, row)?)))
}

/// What is writable around something hidden. Without that, it can be listed around.
fn writable_around<'a>(rows: &'a [Row], hidden: &'a Row) -> Option<&'a Row> {
    let outer = around(rows, &hidden.path).find(|outer| outer.access != Access::Hidden);
    outer.filter(|outer| outer.access == Access::Write)
}

/// Fails if something that is to be writable is not there.
pub(super) fn check_writable(policy: &Policy) -> Result<(), SandboxError> {
    for path in &policy.writable {
        fs::canonicalize(path).map_err(|source| SandboxError::Path { path: path.clone(), source })?;
    }
    Ok(())
}

/// More than any home directory has at its top, few enough to be opened in a moment.
const MAX_RULES: usize = 20_000;

/// What there usually is at the top of a machine, and at the top of a home.
const USUAL: [&str; 31] = [
    "bin",
    "etc",
    "gnu",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "mnt",
    "nix",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    ".bashrc",
    ".cache",
    ".cargo",
    ".config",
    ".gitconfig",
    ".local",
    ".npm",
    ".nvm",
    ".profile",
    ".rustup",
];

/// A path that Landlock is to allow, without links in it.
#[derive(Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) path: PathBuf,
    /// Never hidden.
    pub(super) access: Access,
    /// Whether sockets in it that somebody else made can be connected to.
    pub(super) connects: bool,
    /// Without it there would be no point in running; others may vanish before they are opened.
    pub(super) is_required: bool,
}

/// The table as Landlock wants it: what is allowed. Hiding means to list everything around.
pub(super) fn rules(rows: &[Row]) -> Result<Vec<Rule>, SandboxError> {
    // Inside of something writable there is nothing to list: it is covered there, or open.
    let is_listed_around = |row: &&Row| row.access == Access::Hidden && writable_around(rows, row).is_none();
    let hidden: Vec<&Path> = rows.iter().filter(is_listed_around).map(|row| row.path.as_path()).collect();
    let temporary = resolve(&std::env::temp_dir());
    let mut rules = Vec::new();
    for row in rows {
        match row.access {
            Access::Hidden => {}
            // It is inside of something writable as it is.
            Access::Write if row.why == Why::Pinned => {}
            Access::Write => {
                rules.push(Rule {
                    path: row.path.clone(),
                    access: Access::Write,
                    // Everybody makes sockets among the temporary files.
                    connects: row.why == Why::Named && row.path != temporary,
                    is_required: row.why == Why::Named,
                })
            }
            // Inside of something writable Landlock cannot take anything away.
            Access::Read if row.why == Why::Protected => {}
            // What is mounted there has rules of its own.
            Access::Read if row.why == Why::Layer => {}
            Access::Read => {
                let before = rules.len();
                list_around(row.path.clone(), &hidden, &mut rules)?;
                rules[before..].iter_mut().for_each(|rule| rule.connects = row.why == Why::Needed);
            }
        }
    }
    Ok(rules)
}

/// Allows a path to be read: as a whole if nothing in it is hidden, otherwise everything around what is hidden.
fn list_around(path: PathBuf, hidden: &[&Path], rules: &mut Vec<Rule>) -> Result<(), SandboxError> {
    if hidden.contains(&path.as_path()) {
        return Ok(());
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
        rules.push(Rule { path, access: Access::Read, connects: false, is_required: false });
        return if rules.len() > MAX_RULES { Err(SandboxError::TooManyPaths) } else { Ok(()) };
    }
    // As deep as the hidden paths are.
    let inside: Vec<PathBuf> = match fs::read_dir(&path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => guesses(&path, std::env::vars_os().map(|(_, value)| value)),
    };
    for path in inside {
        // A link needs no permission, and one that leads to something hidden must not give it.
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_symlink()) {
            list_around(path, hidden, rules)?;
        }
    }
    Ok(())
}

/// What a directory is likely to have in it that cannot be listed. That is so inside of another sandbox, which has listed
/// around what it hides and not allowed the directories above that. What is not guessed is not allowed.
fn guesses(path: &Path, variables: impl Iterator<Item = OsString>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = USUAL.iter().map(|name| path.join(name)).collect();
    for value in variables {
        // Such as PATH: programs are there, and what they need is beside them.
        for place in std::env::split_paths(&value).filter(|place| place.is_absolute()) {
            let first = place.strip_prefix(path).ok().and_then(|rest| rest.components().next());
            found.extend(first.map(|name| path.join(name)));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The path without links, as far as it exists.
pub(super) fn resolve(path: &Path) -> PathBuf {
    resolve_with(path, &mut BTreeMap::new())
}

/// The same for many paths: what was found out about directories is remembered, because most lie in the same few.
fn resolve_with(path: &Path, known: &mut BTreeMap<PathBuf, PathBuf>) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if path.components().any(|part| part == Component::ParentDir) {
        return fs::canonicalize(&path).unwrap_or(path);
    }
    resolve_down(&path, known)
}

fn resolve_down(path: &Path, known: &mut BTreeMap<PathBuf, PathBuf>) -> PathBuf {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    if let Some(found) = known.get(path) {
        return found.clone();
    }
    let found = match fs::symlink_metadata(path) {
        // One that leads nowhere is as good as not there.
        Ok(found) if found.is_symlink() => fs::canonicalize(path).ok(),
        // Who may not even look at a path hides it as it is named.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(path.to_owned()),
        _ => None,
    };
    let found = found.unwrap_or_else(|| resolve_down(parent, known).join(name));
    known.insert(path.to_owned(), found.clone());
    found
}

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// The links that the kernel would follow with a path, and where it would end up.
pub(super) fn links_and_end(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let end = follow_noting(path, &mut found);
    found.extend(end);
    found
}

/// Where the kernel would end up with an absolute path, also if that does not exist yet. `None` if it would fail, or if
/// that cannot be told.
pub(super) fn follow(path: &Path) -> Option<PathBuf> {
    follow_noting(path, &mut Vec::new())
}

fn follow_noting(path: &Path, noted: &mut Vec<PathBuf>) -> Option<PathBuf> {
    let mut found = PathBuf::from("/");
    let mut ahead: Vec<OsString> = names(path);
    let mut links = 0;
    let mut is_missing = false;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            // Nothing is above what does not exist.
            if is_missing {
                return None;
            }
            found.pop();
            continue;
        }
        found.push(name);
        match fs::symlink_metadata(&found) {
            Ok(what) if what.is_symlink() => {
                links += 1;
                noted.push(found.clone());
                let target = fs::read_link(&found).ok().filter(|_| links <= MOST_LINKS)?;
                found.pop();
                if target.is_absolute() {
                    found = PathBuf::from("/");
                }
                ahead.extend(names(&target));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => is_missing = true,
            Err(_) => return None,
        }
    }
    Some(found)
}

/// The names of a path, the last one first, without what means nothing.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect::<Vec<_>>().into_iter().rev().collect()
}

#[cfg(all(test, unix))]
#[path = "view_tests.rs"]
mod tests;
