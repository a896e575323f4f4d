//! What a confined process may do, as one value: the kernel enforces it, a client's own services ask it, a person can
//! have it explained.

use std::path::{Path, PathBuf};

use super::{git, view};

/// What a confined process may do.
///
/// Paths are looked up when the sandbox is made; links are followed. Of two paths that lie in one another the inner one
/// counts: something writable inside of something hidden is writable, and something hidden inside of something writable
/// is hidden, if the kernel has the means. What is `readable` never uncovers what is `hidden`. Harmless devices such as
/// `/dev/null` can always be used; others only if they are listed, for example `/dev/ptmx` and `/dev/pts` for programs
/// that make terminals.
///
/// ```
/// use attache_host::sandbox::{Network, Policy};
/// use std::path::Path;
///
/// let policy = Policy { network: Network::Offline, ..Policy::new(["/home/me/project"]) };
/// assert!(policy.may_write(Path::new("/home/me/project/new.txt")));
/// assert!(policy.may_read(Path::new("/usr/lib")) && !policy.may_write(Path::new("/usr/lib")));
/// assert!(!policy.may_read(Path::new("/dev/sda")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What can be read, executed and changed, with all beneath.
    pub writable: Vec<PathBuf>,
    /// What can be read and executed, with all beneath.
    pub readable: Vec<PathBuf>,
    /// What can neither be read nor changed, with all beneath. Where only Landlock enforces it, the directories above it
    /// cannot be listed, and what is put into those later cannot be read. It need not exist.
    pub hidden: Vec<PathBuf>,
    /// What can be read but not changed inside of what is writable, with all beneath. It need not exist.
    pub protected: Vec<PathBuf>,
    /// Sockets, and directories of sockets, outside of what is writable that can be connected to.
    pub sockets: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: Network,
}

/// Whether a confined process has a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// As it is without a sandbox.
    #[default]
    Open,
    /// No sockets at all, but for pairs that are made together.
    Offline,
}

impl Policy {
    /// The usual: the given directories and the one for temporary files can be changed, but for what git would run from
    /// them; the rest of the machine can be read except the user's secrets and our own settings and records; no program
    /// outside can be reached through a socket; the network is open.
    pub fn new(writable: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let roots: Vec<PathBuf> = writable.into_iter().map(Into::into).collect();
        let home = std::env::home_dir();
        let mut hidden = home.as_deref().map(crate::secrets::hidden_beneath).unwrap_or_default();
        hidden.extend(own_directories().into_iter().filter(|path| !hidden.contains(path)).collect::<Vec<_>>());
        Self {
            protected: roots.iter().flat_map(|root| git::protected(root)).collect(),
            writable: roots.into_iter().chain([std::env::temp_dir()]).collect(),
            readable: vec![PathBuf::from("/")],
            hidden,
            sockets: Vec::new(),
            network: Network::Open,
        }
    }

    /// Whether a confined process may read this path, for whoever reads on its behalf.
    ///
    /// Links are followed as the kernel would follow them, also those that lead nowhere yet. What is not known for
    /// certain is not allowed: a relative path, and anything in `/proc`, which shows its reader and not the process.
    pub fn may_read(&self, path: &Path) -> bool {
        self.access(path).is_some_and(|access| access != view::Access::Hidden)
    }

    /// Whether a confined process may change, make or remove this path, for whoever does so on its behalf.
    pub fn may_write(&self, path: &Path) -> bool {
        self.access(path) == Some(view::Access::Write)
    }

    fn access(&self, path: &Path) -> Option<view::Access> {
        if !path.is_absolute() {
            return None;
        }
        let path = view::follow(path)?;
        let is_about_the_reader = path.starts_with("/proc");
        (!is_about_the_reader).then(|| view::access(&view::rows(self), &path))
    }
}

/// Where our own settings and records are: whoever can write there writes rules.
fn own_directories() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    ["XDG_CONFIG_HOME", "XDG_STATE_HOME"].into_iter().filter_map(set).map(|base| base.join("attache")).collect()
}
