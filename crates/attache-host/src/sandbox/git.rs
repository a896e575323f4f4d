//! What git needs to write, and what it runs from a directory without being asked. A command that could change the latter
//! would run its own code later, outside of the sandbox, in the hands of whoever types `git status`.
//!
//! What is protected does not depend on anything that a command may change: what is protected once stays so.

use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::Policy;
#[cfg(target_os = "linux")]
use super::view;

/// How deep submodules are looked for: their names have slashes in them, and they have submodules of their own.
const DEEPEST_MODULE: usize = 12;
/// Where there are more directories than this, none of them can be changed.
const MOST_DIRECTORIES: usize = 1024;
/// Settings that are longer, or include more files, are not read any further.
const LONGEST_SETTINGS: u64 = 1 << 20;
const MOST_SETTINGS: usize = 64;

/// The repository that git would use in a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Repository {
    /// Its own directory, which a worktree shares with others. Only if there is one.
    pub(super) directory: Option<PathBuf>,
    /// What may not be changed in it. Its own directory is not in the list, but has to stay where it is: see
    /// `Why::Pinned` in `view.rs`.
    pub(super) protected: Vec<PathBuf>,
}

/// Finds the repository of a directory, at its top or above it.
///
/// Commands can write files called `.git` where there is none, so what such a file claims is believed only if the other
/// end agrees: the repository has to name the worktree, or be the one that is around the directory.
pub(super) fn repository_of(directory: &Path) -> Repository {
    for top in directory.ancestors() {
        let git = top.join(".git");
        match fs::symlink_metadata(&git) {
            // At the top it counts in any form, a link or without a HEAD: a command can bring about either.
            Ok(found) if !found.is_file() && git.is_dir() && (top == directory || git.join("HEAD").exists()) => {
                return Repository { protected: protected(top, &git), directory: Some(git) };
            }
            // A worktree or a submodule: the file says where the repository is.
            Ok(found) if found.is_file() => {
                let directory = claimed(&git).and_then(|claimed| confirmed(top, &git, &claimed));
                let mut protected = vec![git];
                protected.extend(directory.iter().flat_map(|directory| self::protected(top, directory)));
                return Repository { directory, protected };
            }
            // Whatever else it is, nobody replaces it.
            Ok(_) if top == directory => return Repository { directory: None, protected: vec![git] },
            _ => {}
        }
    }
    Repository::default()
}

/// The directory of git that the file `.git` of a worktree or a submodule leads to, if that agrees.
pub fn git_directory(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let claimed = claimed(&git)?;
    confirmed(top, &git, &claimed).map(|_| claimed)
}

/// Where a file `.git` leads, without links.
fn claimed(git: &Path) -> Option<PathBuf> {
    let text = short_text(git)?;
    git.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

/// The directory that a worktree or a submodule may write to, if it is one.
fn confirmed(top: &Path, git: &Path, claimed: &Path) -> Option<PathBuf> {
    let parent = claimed.parent()?;
    if parent.file_name()? == "worktrees" {
        // The way there and the way back, and no way on to anywhere else.
        let common = parent.parent()?;
        let back = PathBuf::from(short_text(&claimed.join("gitdir"))?.trim());
        let on = claimed.join(short_text(&claimed.join("commondir"))?.trim()).canonicalize().ok()?;
        let agrees = claimed.join(back).canonicalize().ok()? == git.canonicalize().ok()?;
        return (agrees && on == common && is_whole_repository(common)).then(|| common.to_owned());
    }
    // A submodule has its own inside of that of the project around it.
    let top = top.canonicalize().ok()?;
    let is_inside = |above: &Path| claimed.starts_with(above.join(".git/modules"));
    (top.ancestors().skip(1).any(is_inside) && is_whole_repository(claimed)).then(|| claimed.to_owned())
}

fn is_whole_repository(directory: &Path) -> bool {
    directory.join("HEAD").is_file() && directory.join("objects").is_dir() && directory.join("refs").is_dir()
}

/// A file of one line. Longer than any path there can be is not read.
fn short_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let file = fs::File::open(path).ok().filter(|_| is_file)?;
    file.take(8 << 10).read_to_string(&mut text).ok()?;
    Some(text)
}

/// What may not be changed of a repository, whose working directory is at `top`.
fn protected(top: &Path, git: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = in_repository(git).collect();
    let modules = git.join("modules");
    let mut left = MOST_DIRECTORIES;
    let mut found = Vec::new();
    match find_modules(&modules, DEEPEST_MODULE, &mut left, &mut found) {
        Some(()) => paths.extend(found),
        None => paths.push(modules),
    }
    // What leads the git of a worktree to its settings.
    let worktrees = fs::read_dir(git.join("worktrees")).into_iter().flatten().flatten().take(MOST_DIRECTORIES);
    paths.extend(
        worktrees.flat_map(|entry| ["commondir", "gitdir", "config.worktree"].map(|name| entry.path().join(name))),
    );
    let own: BTreeSet<PathBuf> = paths.iter().cloned().collect();
    let led_to = led_to(top, git).into_iter();
    paths.extend(led_to.filter(|path| !own.contains(path) && !top.starts_with(path) && path.exists()));
    paths
}

/// Hooks, and settings, which name programs.
fn in_repository(git: &Path) -> impl Iterator<Item = PathBuf> {
    ["hooks", "config", "config.worktree"].into_iter().map(|name| git.join(name))
}

/// What is protected of the submodules beneath a directory; `None` if there is too much to look at. Links are not followed.
fn find_modules(directory: &Path, depth: usize, left: &mut usize, found: &mut Vec<PathBuf>) -> Option<()> {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        *left = left.checked_sub(1)?;
        let path = entry.path();
        if is_repository(&path) {
            found.extend(in_repository(&path));
            find_modules(&path.join("modules"), depth.checked_sub(1)?, left, found)?;
        } else {
            find_modules(&path, depth.checked_sub(1)?, left, found)?;
        }
    }
    Some(())
}

/// Whether a directory is a repository. Its settings are protected, so a command cannot make it look as if it were none.
fn is_repository(path: &Path) -> bool {
    path.ends_with(".git") || ["config", "HEAD"].iter().any(|name| fs::symlink_metadata(path.join(name)).is_ok())
}

/// Makes what is missing of repositories and has to be protected: what is not there cannot be kept from being made. Empty,
/// it means nothing to git.
#[cfg(target_os = "linux")]
pub(super) fn make_missing(policy: &Policy) {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
    let roots = policy.writable.iter().map(|root| (root.clone(), view::resolve(root)));
    let roots: Vec<(PathBuf, PathBuf)> =
        roots.flat_map(|(root, real)| [(root, real.clone()), (real.clone(), real)]).collect();
    for path in &policy.protected {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let is_ours = ["hooks", "config", "config.worktree"].iter().any(|known| name == *known);
        if !is_ours || fs::symlink_metadata(path).is_ok() || !is_repository(parent) {
            continue;
        }
        // Links above the directory are the person's own, and so may be `.git`. Whoever puts one elsewhere gets nothing made
        // where it leads.
        let is_top = parent.ends_with(".git");
        let real = if is_top { fs::canonicalize(parent).ok() } else { None };
        let named = [parent.to_owned()].into_iter().chain(real);
        let beneath = named.rev().find_map(|parent| {
            let (root, real) = roots.iter().find(|(root, _)| parent.starts_with(root))?;
            Some(real.join(parent.strip_prefix(root).ok()?))
        });
        let Some(parent) = beneath else { continue };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(parent) = openat2(CWD, &parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else { continue };
        let _ = match name == "hooks" {
            true => mkdirat(&parent, name, Mode::from_raw_mode(0o755)),
            false => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                openat(&parent, name, flags, Mode::from_raw_mode(0o644)).map(drop)
            }
        };
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn make_missing(_: &Policy) {}

/// A file by which git takes its settings and hooks from elsewhere. No repository of its own has one; a worktree does.
pub(super) fn redirection(root: &Path) -> Option<PathBuf> {
    let places = [root.join(".git/commondir"), root.join("commondir")];
    places.into_iter().find(|path| path.exists() && path.with_file_name("HEAD").exists())
}

/// What the settings of a repository lead to and cannot be protected: it is not there yet, or is all of the project.
pub(super) fn unprotected(root: &Path) -> impl Iterator<Item = PathBuf> {
    let git = root.join(".git");
    let led_to = if git.is_dir() { led_to(root, &git) } else { BTreeSet::new() };
    // What leads out of the project is not changed by its commands.
    led_to.into_iter().filter(move |path| {
        root.starts_with(path) && path.exists() || path.starts_with(root) && fs::symlink_metadata(path).is_err()
    })
}

/// The directories of hooks and the files with more settings that the settings of a repository name.
fn led_to(root: &Path, git: &Path) -> BTreeSet<PathBuf> {
    let home = std::env::home_dir();
    let mut ahead = vec![git.join("config"), git.join("config.worktree")];
    // A directory that the person's own settings name may be one of every project.
    let base =
        std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or(home.as_deref().map(|home| home.join(".config")));
    let personal: Vec<PathBuf> = home
        .as_deref()
        .map(|home| home.join(".gitconfig"))
        .into_iter()
        .chain(base.map(|base| base.join("git/config")))
        .collect();
    ahead.extend(personal.iter().cloned());
    let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
    while let Some(file) = ahead.pop() {
        if seen.len() >= MOST_SETTINGS || !seen.insert(file.clone()) {
            continue;
        }
        let mut content = Vec::new();
        let is_plain = fs::metadata(&file).is_ok_and(|found| found.is_file());
        if !is_plain
            || fs::File::open(&file).and_then(|file| file.take(LONGEST_SETTINGS).read_to_end(&mut content)).is_err()
        {
            continue;
        }
        for named in named_paths(&String::from_utf8_lossy(&content)) {
            let (is_included, path) = match named {
                Named::Hooks(path) => (false, path),
                Named::Settings(path) => (true, path),
            };
            let path = match (path.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ if is_included => file.parent().unwrap_or(root).join(path),
                _ => root.join(path),
            };
            let path = plain(&path);
            found.insert(path.clone());
            if is_included {
                ahead.push(path);
            }
        }
    }
    found
}

/// A path without `.` and `..`, as it reads.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// A path that settings of git name.
#[derive(Debug, PartialEq)]
enum Named {
    Hooks(String),
    Settings(String),
}

/// Reads `core.hooksPath`, `include.path` and `includeIf.*.path`, whatever the condition.
fn named_paths(settings: &str) -> Vec<Named> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in settings.replace("\\\r\n", "").replace("\\\n", "").lines() {
        let mut line = line.trim();
        // A variable may follow on the same line.
        if let Some(rest) = line.strip_prefix('[') {
            let Some(end) = rest.rfind("\"]").map(|at| at + 1).or_else(|| rest.find(']')) else { continue };
            section = rest[..end].split([' ', '\t', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            line = rest[end + 1..].trim();
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let value = value_of(value);
        match (section.as_str(), name.as_str()) {
            (_, _) if value.is_empty() => {}
            ("core", "hookspath") => found.push(Named::Hooks(value)),
            ("include" | "includeif", "path") => found.push(Named::Settings(value)),
            _ => {}
        }
    }
    found
}

/// A value without quotes, escapes and comments.
fn value_of(text: &str) -> String {
    let (mut value, mut is_quoted) = (String::new(), false);
    let mut letters = text.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' => value.extend(letters.next()),
            '#' | ';' if !is_quoted => break,
            letter => value.push(letter),
        }
    }
    value.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn too_many_submodules_are_protected_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join(".git/modules");
        let deep = (0..2 * DEEPEST_MODULE).fold(modules.join("deep"), |path, _| path.join("d"));
        for make in [modules.join("vendor/lib/modules/inner/hooks"), deep] {
            fs::create_dir_all(make).unwrap();
        }
        assert!(repository_of(root.path()).protected.contains(&modules));
        fs::remove_dir_all(modules.join("deep")).unwrap();
        for settings in ["vendor/lib", "vendor/lib/modules/inner"].map(|name| modules.join(name).join("config")) {
            assert!(!repository_of(root.path()).protected.contains(&settings));
            fs::write(&settings, "").unwrap();
            assert!(
                repository_of(root.path()).protected.contains(&settings)
                    && !repository_of(root.path()).protected.contains(&modules)
            );
        }
        // There are `vendor`, `lib` and `inner`.
        for (left, expected) in [(3, Some(())), (2, None)] {
            let mut left = left;
            assert_eq!(find_modules(&modules, DEEPEST_MODULE, &mut left, &mut Vec::new()), expected);
        }
    }

    #[test]
    fn settings_are_read_for_what_they_lead_to() {
        let hooks = |path: &str| vec![Named::Hooks(path.into())];
        let settings = |path: &str| vec![Named::Settings(path.into())];
        let rows = [
            ("[core]\n\thooksPath = .husky/_\n", hooks(".husky/_")),
            ("[CORE]\nHOOKSPATH=\"a b\" # c\n", hooks("a b")),
            ("[core] hookspath = x;y\n", hooks("x")),
            ("[core]\nhooksPath = a\\\nb\n", hooks("ab")),
            ("[include]\n path = ../more\n", settings("../more")),
            ("[includeIf \"gitdir:~/x]/\"] path = ~/more\n", settings("~/more")),
            ("[user]\nhooksPath = x\npath = y\n[core]\nhooksPath\n", vec![]),
            ("[core\nhooksPath = x", vec![]),
            ("[", vec![]),
        ];
        for (text, expected) in rows {
            assert_eq!(named_paths(text), expected, "{text}");
        }
    }
}
