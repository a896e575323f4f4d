//! What a confined process may do, as one value: the kernel enforces it, a client's own services ask it, a person can
//! have it explained.

use std::path::{Path, PathBuf};

use super::{Layer, ProjectLayers, SandboxError, git, npm, project_secrets, view};

/// What a confined process may do.
///
/// Paths are looked up when the sandbox is made; links are followed. Of two paths that lie in one another the inner one
/// counts: something writable inside of something hidden is writable, and something hidden inside of something writable
/// is hidden, if the kernel has the means. What is `readable` never uncovers what is `hidden`; what is `shown` does. Harmless devices such as
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
    /// What can be read, but not changed, also inside of what is hidden, with all beneath. It need not exist.
    pub shown: Vec<PathBuf>,
    /// What can be read but not changed inside of what is writable, with all beneath. It need not exist.
    pub protected: Vec<PathBuf>,
    /// Sockets, and directories of sockets, outside of what is writable that can be connected to.
    pub sockets: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: Network,
    /// Variables that stand in for settings that are hidden, by name. Nothing secret is in them.
    pub variables: Vec<(String, String)>,
    /// Directories that can be read, and changed in a layer: what is shared stays as it is. It takes namespaces; without
    /// them they can be read.
    pub layers: Vec<Layer>,
    /// A directory that is seen in place of the one for temporary files. It takes namespaces.
    pub temporary: Option<PathBuf>,
    /// Variables that lead programs to directories of their own, by name. They go before what the person has set.
    pub private_variables: Vec<(String, String)>,
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
    /// The usual: the given directories, the repositories that they are in and the directory for temporary files can be
    /// changed, but for what git would run from them and what programs start from, if the home is among them; the rest of
    /// the machine can be read except the user's secrets and our own settings and records; no program outside can be
    /// reached through a socket; the network is open.
    pub fn new(writable: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let roots: Vec<PathBuf> = writable.into_iter().map(Into::into).collect();
        let home = std::env::home_dir();
        let mut hidden = home.as_deref().map(crate::secrets::hidden_beneath).unwrap_or_default();
        hidden.extend(own_directories().into_iter().filter(|path| !hidden.contains(path)).collect::<Vec<_>>());
        let mut variables = Vec::new();
        if let Some(home) = &home {
            hidden.retain(|path| !npm::is_harmless(home, path));
            variables = npm::variables(home, &hidden);
        }
        let repositories: Vec<_> = roots.iter().map(|root| git::repository_of(root)).collect();
        let mut policy = Self {
            protected: Vec::new(),
            writable: roots.iter().cloned().chain([std::env::temp_dir()]).collect(),
            readable: vec![PathBuf::from("/")],
            hidden,
            shown: Vec::new(),
            sockets: Vec::new(),
            network: Network::Open,
            variables,
            layers: Vec::new(),
            temporary: None,
            private_variables: Vec::new(),
        };
        policy.protect_home();
        let writable: Vec<PathBuf> = policy.writable.iter().map(|path| view::resolve(path)).collect();
        for repository in repositories {
            policy.protected.extend(repository.protected);
            // Inside of what can be changed it need not be added, and somebody may have put a link in its place: a command
            // that makes `.git` a link to anywhere must not find that writable the next time.
            let is_outside = |path: &PathBuf| {
                !roots.iter().any(|root| path.starts_with(root))
                    && !writable.iter().any(|writable| view::resolve(path).starts_with(writable))
            };
            let added = repository.directory.filter(|path| is_outside(path) && !policy.writable.contains(path));
            policy.writable.extend(added);
        }
        policy
    }

    /// The strictest, for what runs without a question: [`new`](Self::new) without a network, with temporary files of its
    /// own, with caches in [layers](Self::use_layers), and in the given directories nothing can be changed that other
    /// programs run by themselves: settings of editors, of CI, our own. Secrets that are found in them are hidden. `more` is
    /// what the person lets commands change besides; a cache among it is written in its layer all the same. `own` is hidden:
    /// our settings and records.
    ///
    /// Fails where there are more secrets than can be hidden.
    pub fn unasked(
        roots: &[PathBuf],
        more: &[PathBuf],
        own: &[PathBuf],
        layers: &ProjectLayers,
    ) -> Result<Self, SandboxError> {
        let mut policy = Policy { network: Network::Offline, ..Policy::new(roots) };
        policy.hide_own(own);
        let shared = std::env::temp_dir();
        policy.writable.retain(|path| *path != shared || roots.contains(path));
        policy.unprotect_home();
        policy.protected.extend(roots.iter().flat_map(|root| crate::secrets::run_in_project(root)));
        policy.use_layers(layers);
        let layered: Vec<PathBuf> = policy.layers.iter().map(|layer| layer.at.clone()).collect();
        for root in roots {
            // What is hidden as a whole, or is no part of the project, is not looked through.
            let left_out: Vec<PathBuf> = policy.hidden.iter().chain(&layered).map(|path| view::resolve(path)).collect();
            let found = project_secrets::find(&view::resolve(root), &left_out)?;
            policy.hidden.extend(found.into_iter().filter(|path| !left_out.contains(path)));
        }
        let is_layered = |path: &Path| layered.iter().any(|layer| view::resolve(path).starts_with(layer));
        for path in more.iter().filter(|path| !is_layered(path)) {
            policy.allow_writing(path);
        }
        let shared = view::resolve(&shared);
        let is_in_use = |path: &PathBuf| view::resolve(path).starts_with(&shared);
        let paths = policy.writable.iter().chain(&policy.hidden).chain(&policy.protected);
        if paths.chain([&layers.temporary()]).any(is_in_use) {
            policy.writable.push(layers.temporary());
            let own = layers.temporary().to_string_lossy().into_owned();
            policy.private_variables.push(("TMPDIR".into(), own));
        } else {
            policy.temporary = Some(layers.temporary());
        }
        Ok(policy)
    }

    /// For what only looks, without a question: [`new`](Self::new) without a network, and nothing can be changed. `own` is
    /// hidden: our settings and records.
    pub fn read_only(roots: &[PathBuf], own: &[PathBuf]) -> Self {
        let (network, writable, protected) = (Network::Offline, Vec::new(), Vec::new());
        let mut policy = Policy { network, writable, protected, ..Policy::new(roots) };
        policy.hide_own(own);
        policy
    }

    /// Lets a directory or a file be changed besides, with the same exceptions as in [`new`](Self::new). The repository
    /// that is around it cannot be changed.
    pub fn allow_writing(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        self.protected.extend(git::repository_of(&path).protected);
        self.writable.push(path);
        self.protect_home();
    }

    /// Hides our own settings and records, wherever they are.
    pub fn hide_own(&mut self, own: &[PathBuf]) {
        for path in own {
            // What does not exist cannot be kept from being made, if it is inside of something writable.
            if self.writable.iter().any(|writable| path.starts_with(writable)) {
                let _ = super::layers::make_private(path);
            }
            if !self.hidden.contains(path) {
                self.hidden.push(path.clone());
            }
        }
    }

    /// Whether a path is hidden by itself or by what is around it. To name it as writable would uncover it.
    pub fn is_hidden(&self, path: &Path) -> bool {
        let path = view::resolve(path);
        self.hidden.iter().any(|hidden| path.starts_with(view::resolve(hidden)))
    }

    /// Something that shells start from and is not there, in a home that can be changed: it can be made.
    pub(super) fn missing_start_file(&self) -> Option<PathBuf> {
        let files = std::env::home_dir().map(|home| crate::secrets::start_files(&home)).unwrap_or_default();
        let is_of_a_shell = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            [".bash", ".profile", ".zsh", ".zprofile"].iter().any(|beginning| name.starts_with(beginning))
        };
        let mut missing = files.into_iter().filter(|path| path.symlink_metadata().is_err() && is_of_a_shell(path));
        missing.find(|path| self.protected.contains(path))
    }

    /// What shells and other programs start from is run outside, sooner or later.
    fn protect_home(&mut self) {
        if let Some(home) = self.writable_home() {
            let files = crate::secrets::start_files(&home);
            self.protected.extend(files.into_iter().filter(|path| !self.protected.contains(path)).collect::<Vec<_>>());
        }
    }

    /// Takes that back for a home that cannot be changed after all: one among temporary files that are not shared.
    fn unprotect_home(&mut self) {
        if self.writable_home().is_none() {
            let files = std::env::home_dir().map(|home| crate::secrets::start_files(&home)).unwrap_or_default();
            self.protected.retain(|path| !files.contains(path));
        }
    }

    /// The home, if it can be changed.
    fn writable_home(&self) -> Option<PathBuf> {
        let home = std::env::home_dir().filter(|home| home.parent().is_some())?;
        let real = view::resolve(&home);
        self.writable.iter().any(|writable| real.starts_with(view::resolve(writable))).then_some(home)
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
