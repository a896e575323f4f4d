//! What git needs to write, and what it runs from a directory without being asked. A command that could change the latter
//! would run its own code later, outside of the sandbox, in the hands of whoever types `git status`.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// More submodules, or worktrees, than this are not looked for.
const MOST_MODULES: usize = 64;

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
            Ok(found) if found.is_dir() && git.join("HEAD").exists() => {
                return Repository { protected: in_repository(&git), directory: Some(git) };
            }
            // A worktree or a submodule: the file says where the repository is.
            Ok(found) if found.is_file() => {
                let directory = claimed(&git).and_then(|claimed| confirmed(top, &git, &claimed));
                let mut protected = vec![git];
                protected.extend(directory.iter().flat_map(|directory| in_repository(directory)));
                return Repository { directory, protected };
            }
            _ => {}
        }
    }
    Repository::default()
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
        return (agrees && on == common && is_repository(common)).then(|| common.to_owned());
    }
    // A submodule has its own inside of that of the project around it.
    let top = top.canonicalize().ok()?;
    let is_inside = |above: &Path| claimed.starts_with(above.join(".git/modules"));
    (top.ancestors().skip(1).any(is_inside) && is_repository(claimed)).then(|| claimed.to_owned())
}

fn is_repository(directory: &Path) -> bool {
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

/// Hooks, and settings, which name programs; of the submodules too. And what leads git to other settings.
fn in_repository(git: &Path) -> Vec<PathBuf> {
    let inside = |name: &str| {
        let found = fs::read_dir(git.join(name)).into_iter().flatten().flatten();
        found.take(MOST_MODULES).map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let own = |git: &Path| ["hooks", "config", "config.worktree"].map(|name| git.join(name));
    let mut paths: Vec<PathBuf> = own(git).into();
    paths.extend(inside("modules").iter().flat_map(|module| own(module)));
    let worktree = |path: &PathBuf| ["commondir", "gitdir", "config.worktree"].map(|name| path.join(name));
    paths.extend(inside("worktrees").iter().flat_map(worktree));
    paths
}

/// Makes the directories of hooks that are missing: what is not there cannot be protected from being made.
pub(super) fn make_hooks(protected: &[PathBuf]) {
    let is_repository = |hooks: &Path| hooks.parent().is_some_and(|git| git.join("HEAD").exists());
    for hooks in protected.iter().filter(|path| path.ends_with("hooks") && is_repository(path)) {
        let _ = fs::create_dir(hooks);
    }
}

/// A file by which git takes its settings and hooks from elsewhere. No repository of its own has one; a worktree does.
pub(super) fn redirection(root: &Path) -> Option<PathBuf> {
    let places = [root.join(".git/commondir"), root.join("commondir")];
    places.into_iter().find(|path| path.exists() && path.with_file_name("HEAD").exists())
}
