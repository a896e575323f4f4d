//! The secrets of a project, such as `.env`: they are hidden from commands that nobody was asked about.
//!
//! They are looked for anew for each command, those near the top first, and not everywhere: it has to take milliseconds.
//! What package managers and builds put there is nobody's secret. Neither is what the repository has recorded: every
//! command can read it there, and git would take it for changed where it is hidden.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{SandboxError, git, npm, recorded::Recorded, view};
use crate::secrets::{is_secret_directory, is_secret_file};

/// How many directories deep they are looked for: `a/b/c/d/.env` is found.
const DEEPEST: usize = 5;
/// How many names are looked at, besides those at the top. It takes some ten milliseconds.
const MOST_NAMES: usize = 10_000;
/// How many files can be hidden: each is a mount, and every command waits for all of them.
pub(super) const MOST_SECRETS: usize = 256;
/// Directories that are not looked into: git's own, and what packages bring along. By their names alone, because a command
/// can put anything else into a directory.
const LEFT_OUT: [&str; 5] = [".git", "node_modules", "site-packages", "target", "vendor"];

/// The files beneath a directory that may hold secrets, but for those beneath what is `left_out`. Fails if there are more
/// than can be hidden.
pub(super) fn find(root: &Path, left_out: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxError> {
    let mut found = remembered(root, candidates(root, left_out));
    if !found.is_empty() {
        let recorded = git::repository_of(root).directory.map(|repository| Recorded::of(&repository));
        let is_harmless = |path: &PathBuf| {
            path.parent().is_some_and(|directory| npm::is_harmless(directory, path))
                || recorded.as_ref().is_some_and(|recorded| recorded.has(path))
        };
        found.retain(|path| !is_harmless(path));
    }
    match found.len() > MOST_SECRETS {
        true => Err(SandboxError::TooManySecrets { directory: root.to_owned() }),
        false => Ok(found),
    }
}

/// What was found before in each project. A command can make so many names that its own secrets are not come to any more.
static FOUND: Mutex<BTreeMap<PathBuf, BTreeSet<PathBuf>>> = Mutex::new(BTreeMap::new());

/// What was found now and before, as far as it is there.
fn remembered(root: &Path, found: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut all = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.entry(root.to_owned()).or_default();
    known.extend(found);
    known.retain(|path| path.symlink_metadata().is_ok());
    known.iter().cloned().collect()
}

/// A directory that is still to be looked through.
struct Waiting {
    path: PathBuf,
    /// The names from the root to it, in small letters. What is above the root is not the project's.
    names: Vec<String>,
    /// Whether all that is in it may be secret.
    is_secret: bool,
}

/// What is called like a secret.
fn candidates(root: &Path, left_out: &[PathBuf]) -> Vec<PathBuf> {
    let credentials = root.join(".git/credentials");
    let mut found: Vec<PathBuf> = credentials.is_file().then_some(credentials).into_iter().collect();
    let mut waiting = VecDeque::from([Waiting { path: root.to_owned(), names: Vec::new(), is_secret: false }]);
    let mut looked_at = 0;
    while let Some(Waiting { path, names, is_secret }) = waiting.pop_front() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            looked_at += usize::from(!names.is_empty());
            if looked_at > MOST_NAMES {
                return found;
            }
            let (Ok(kind), name) = (entry.file_type(), entry.file_name().to_string_lossy().to_lowercase()) else {
                continue;
            };
            if kind.is_dir() {
                let path = entry.path();
                if names.len() + 1 < DEEPEST && !LEFT_OUT.contains(&&*name) && !left_out.contains(&path) {
                    let is_secret = is_secret || is_secret_directory(&names, &name);
                    let names = names.iter().cloned().chain([name]).collect();
                    waiting.push_back(Waiting { path, names, is_secret });
                }
            } else if (is_secret || is_secret_file(&names, &name))
                && (kind.is_file() || leads_to_secret(&entry.path(), root))
            {
                found.push(entry.path());
            }
        }
    }
    found
}

/// Whether a link leads to a file of the project or of the person. Others, such as programs, are not hidden because a
/// project has a link to them.
fn leads_to_secret(link: &Path, root: &Path) -> bool {
    let Ok(end) = fs::canonicalize(link) else { return false };
    let home = std::env::home_dir().filter(|home| home.parent().is_some());
    end.is_file() && (end.starts_with(root) || home.is_some_and(|home| end.starts_with(view::resolve(&home))))
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// A directory without links in its path, with these files.
    fn project(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        (directory, root)
    }

    fn found(root: &Path, left_out: &[PathBuf]) -> Vec<String> {
        let found = find(root, left_out).unwrap();
        let mut found: Vec<String> =
            found.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect();
        found.sort();
        found
    }

    #[test]
    fn secrets_are_found_by_name_and_others_are_not() {
        let secrets = [
            ".cargo/credentials.toml",
            ".env",
            ".env.local",
            ".git/credentials",
            ".npmrc",
            ".ssh/anything",
            "a/b/c/d/.ENV",
            "apps/web/.env.bak",
            "keys/server.pem",
            "secrets.yaml",
        ];
        let others = [
            ".attache/commands/x.md",
            // Some call their virtual environment like this.
            ".env.d/lib/x.py",
            ".git/config",
            "a/b/c/d/e/.env",
            "cache/.env",
            "environment",
            "node_modules/x/cert.pem",
            "src/key.rs",
            "sub/node_modules/x/.env",
            "target/x.pem",
            "venv/lib/site-packages/certifi/cacert.pem",
        ];
        let (_directory, root) = project(&[&secrets[..], &others].concat());
        fs::write(root.join(".npmrc"), "//registry.example.com/:_authToken=x\n").unwrap();
        assert_eq!(found(&root, &[root.join("cache")]), secrets);
        // Settings of npm without credentials have nothing to hide.
        fs::write(root.join(".npmrc"), "save-exact=true\n").unwrap();
        assert!(!found(&root, &[]).contains(&".npmrc".to_owned()));
    }

    #[test]
    fn a_link_is_followed_to_files_of_the_project_only() {
        let (_directory, root) = project(&["shared/settings", "sub/x"]);
        for (link, target) in [(".env", "shared/settings"), (".envrc", "sub"), ("id_rsa", "gone"), ("a.key", "/bin/sh")]
        {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        assert_eq!(found(&root, &[]), [".env"]);
    }

    #[test]
    fn what_is_at_the_top_is_found_among_any_number_and_too_many_are_an_error() {
        let (_directory, root) = project(&[".env", "sub/.env"]);
        for number in 0..=MOST_NAMES {
            fs::write(root.join(number.to_string()), "").unwrap();
        }
        assert_eq!(found(&root, &[]), [".env", "sub/.env"]);
        for number in 0..MOST_SECRETS {
            fs::write(root.join(format!("{number}.pem")), "").unwrap();
        }
        let error = find(&root, &[]).unwrap_err().to_string();
        assert!(error.contains("more than 256 files that may hold secrets"), "{error}");
    }

    #[test]
    fn what_was_found_once_stays_hidden_however_many_names_are_made() {
        let (_directory, root) = project(&["z/.env"]);
        assert_eq!(found(&root, &[]), ["z/.env"]);
        for number in 0..=MOST_NAMES {
            let directory = root.join(format!("a{}", number % 100));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), "").unwrap();
        }
        assert_eq!(found(&root, &[]), ["z/.env"]);
        fs::remove_file(root.join("z/.env")).unwrap();
        assert_eq!(found(&root, &[]), Vec::<String>::new());
    }
}
