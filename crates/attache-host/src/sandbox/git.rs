//! What git runs from a directory without being asked. A command that could change it would run its own code later,
//! outside of the sandbox, in the hands of whoever types `git status`.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// More submodules than this are not looked for.
const MOST_MODULES: usize = 64;

/// What may not be changed in the repository of a directory, if it is the top of one.
///
/// The repository's own directory is not in the list, but has to stay where it is: see `Row::is_pinned` in `view.rs`.
pub(super) fn protected(root: &Path) -> Vec<PathBuf> {
    let git = root.join(".git");
    match fs::symlink_metadata(&git) {
        // A worktree or a submodule: the file says where the repository is.
        Ok(found) if found.is_file() => vec![git],
        Ok(found) if found.is_dir() && git.join("HEAD").exists() => {
            let mut paths = in_repository(&git);
            let modules = fs::read_dir(git.join("modules")).into_iter().flatten().flatten().take(MOST_MODULES);
            paths.extend(modules.flat_map(|module| in_repository(&module.path())));
            paths
        }
        _ => Vec::new(),
    }
}

/// Hooks, and settings, which name programs.
fn in_repository(git: &Path) -> Vec<PathBuf> {
    ["hooks", "config", "config.worktree"].into_iter().map(|name| git.join(name)).collect()
}

/// Makes the directories of hooks that are missing: what is not there cannot be protected from being made.
pub(super) fn make_hooks(protected: &[PathBuf]) {
    for hooks in protected.iter().filter(|path| path.ends_with("hooks") && repository(path).is_some()) {
        let _ = fs::create_dir(hooks);
    }
}

/// The repository whose place has to be kept for a protected path to mean anything: the directory that it is in.
pub(super) fn repository(protected: &Path) -> Option<&Path> {
    protected.parent().filter(|parent| parent.join("HEAD").exists())
}

/// A file by which git takes its settings and hooks from elsewhere. No repository of its own has one; a worktree does.
pub(super) fn redirection(root: &Path) -> Option<PathBuf> {
    Some(root.join(".git/commondir")).filter(|path| path.exists())
}
