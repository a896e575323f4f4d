//! From a policy to a list of paths. Landlock knows only what is allowed, so hiding means to list everything around.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{Policy, SandboxError};

/// More than any home directory has at its top, few enough to be opened in a moment.
const MAX_RULES: usize = 20_000;

/// Devices that every program may expect, and that tell nothing about the machine. Not the terminals: the user sits at
/// some of them.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm"];
/// Left out of what is readable: a disk can be read past all rules.
const ALL_DEVICES: &str = "/dev";

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

/// What is allowed at a path and beneath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// One path, without links in it.
#[derive(Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) path: PathBuf,
    pub(super) access: Access,
    /// Without it there would be no point in running; others may vanish before they are opened.
    pub(super) is_required: bool,
}

impl Rule {
    fn new(path: impl Into<PathBuf>, access: Access) -> Self {
        Self { path: path.into(), access, is_required: false }
    }
}

pub(super) fn rules(policy: &Policy) -> Result<Vec<Rule>, SandboxError> {
    let hidden: Vec<PathBuf> = policy.hidden.iter().map(|path| resolve(path)).collect();
    let mut rules: Vec<Rule> = DEVICES.map(|device| Rule::new(device, Access::Write)).into();
    for path in &policy.writable {
        let writable = fs::canonicalize(path).map_err(|source| SandboxError::Path { path: path.clone(), source })?;
        if let Some(hidden) = hidden.iter().find(|hidden| hidden.starts_with(&writable)) {
            return Err(SandboxError::HiddenInWritable { hidden: hidden.clone(), writable });
        }
        rules.push(Rule { is_required: true, ..Rule::new(writable, Access::Write) });
    }
    for path in &policy.readable {
        let readable = resolve(path);
        let mut not_readable = hidden.clone();
        if !readable.starts_with(ALL_DEVICES) {
            not_readable.push(ALL_DEVICES.into());
        }
        if !hidden.iter().any(|hidden| readable.starts_with(hidden)) {
            list_around(readable, &not_readable, &mut rules)?;
        }
    }
    Ok(rules)
}

/// Allows a path to be read: as a whole if nothing in it is hidden, otherwise everything around what is hidden.
fn list_around(path: PathBuf, hidden: &[PathBuf], rules: &mut Vec<Rule>) -> Result<(), SandboxError> {
    if hidden.contains(&path) {
        return Ok(());
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
        rules.push(Rule::new(path, Access::Read));
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
fn resolve(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for (ancestor, rest) in path.ancestors().map(|ancestor| (ancestor, path.strip_prefix(ancestor))) {
        match (fs::canonicalize(ancestor), rest) {
            (Ok(resolved), Ok(rest)) if rest.as_os_str().is_empty() => return resolved,
            (Ok(resolved), Ok(rest)) => return resolved.join(rest),
            // Who may not even look at a path hides it as it is named.
            (Err(error), _) if error.kind() == io::ErrorKind::PermissionDenied => return path,
            _ => {}
        }
    }
    path
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::sandbox::Network;

    /// A home with the given files, and what of it can be read or written under a policy.
    fn check(
        files: &[&str],
        links: &[(&str, &str)],
        readable: &str,
        hidden: &[&str],
        writable: &[&str],
        allowed: &[&str],
    ) {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        for file in files {
            fs::create_dir_all(home.join(file).parent().unwrap()).unwrap();
            fs::write(home.join(file), "").unwrap();
        }
        for (link, target) in links {
            std::os::unix::fs::symlink(home.join(target), home.join(link)).unwrap();
        }
        let in_home = |paths: &[&str]| paths.iter().map(|path| home.join(path)).collect::<Vec<_>>();
        let policy = Policy {
            writable: in_home(writable),
            readable: vec![home.join(readable)],
            hidden: in_home(hidden),
            network: Network::Open,
        };
        let rules = rules(&policy).unwrap();
        let shown = rules.iter().filter_map(|rule| {
            let path = rule.path.strip_prefix(&home).ok()?.display();
            Some(format!("{} {path}", if rule.access == Access::Write { "w" } else { "r" }))
        });
        let mut shown: Vec<_> = shown.collect();
        shown.sort();
        assert_eq!(shown, allowed, "{hidden:?}");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn what_is_hidden_is_left_out_and_its_neighbours_are_listed() {
        let files = ["a", ".ssh/key", ".config/app/x", ".config/secret/y", "work/.env"];
        check(&files, &[], "", &[], &[], &["r "]);
        check(&files, &[], "", &[".ssh"], &[], &["r .config", "r a", "r work"]);
        check(&files, &[], "", &[".config/secret", ".ssh"], &[], &["r .config/app", "r a", "r work"]);
        check(&files, &[], "", &["work/.env"], &[], &["r .config", "r .ssh", "r a"]);
        check(&files, &[], "work", &[".ssh"], &[], &["r work"]);
        // Above, at and below what is hidden.
        check(&files, &[], ".config/secret", &[".config"], &[], &[]);
        check(&files, &[], ".config", &[".config"], &[], &[]);
        check(&files, &[], "", &[""], &[], &[]);
        // It may come into being later.
        check(&files, &[], ".config", &[".config/later/z"], &[], &["r .config/app", "r .config/secret"]);
    }

    #[test]
    fn links_lead_to_nothing_hidden() {
        let files = ["data/keys/key", "data/x"];
        check(&files, &[(".ssh", "data/keys"), ("also", "data/keys")], "", &[".ssh"], &[], &["r data/x"]);
    }

    #[test]
    fn what_cannot_be_listed_is_guessed() {
        let variables =
            ["/home/me/.pyenv/bin:/usr/bin:relative", "/home/me/go", "/home", "no path"].map(OsString::from);
        let found = guesses(Path::new("/home/me"), variables.into_iter());
        assert_eq!(found.iter().filter(|path| path.ends_with(".pyenv") || path.ends_with("go")).count(), 2);
        assert!(found.contains(&PathBuf::from("/home/me/.cargo")));
        assert!(found.iter().all(|path| path.parent() == Some(Path::new("/home/me"))), "{found:?}");
    }

    #[test]
    fn what_is_writable_stays_so_inside_of_what_is_hidden() {
        check(&[".config/agent/x", "a"], &[], "", &[".config"], &[".config/agent"], &["r a", "w .config/agent"]);
    }

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let policy = |writable: &Path| Policy {
            writable: vec![writable.to_owned()],
            readable: Vec::new(),
            hidden: vec![home.join(".ssh")],
            network: Network::Open,
        };
        let message = |policy| rules(&policy).unwrap_err().to_string().replace(home.to_str().unwrap(), "HOME");
        assert_eq!(
            message(policy(&home)),
            "cannot hide `HOME/.ssh` inside of `HOME`, which is to be writable\nhint: make less of it writable"
        );
        assert_eq!(
            message(policy(&home.join("gone"))),
            "cannot make `HOME/gone` writable in the sandbox: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn devices_are_not_readable_with_the_rest() {
        let policy =
            Policy { readable: vec!["/".into()], writable: Vec::new(), hidden: Vec::new(), network: Network::Open };
        let rules = rules(&policy).unwrap();
        let read: Vec<_> = rules.iter().filter(|rule| rule.access == Access::Read).map(|rule| &rule.path).collect();
        assert!(read.iter().all(|path| !Path::new("/dev").starts_with(path)), "{read:?}");
        assert!(read.contains(&&PathBuf::from("/usr")), "{read:?}");
    }
}
