//! Confining a process by the kernel: which files it may touch, and which doors out it does not get.
//!
//! [Landlock] decides about files, a seccomp filter about system calls. Both hold for the process, for everything it
//! starts, and for good. What ends its tree (`attache::process`) stays outside. Where the kernel cannot enforce a
//! policy, there is no [`Sandbox`], only an error that says why: nothing ever runs with less than it asked for.
//!
//! What it does not cover, because the kernel offers no means: whether a file exists, its size and times can be seen;
//! mode, owner, times and attributes can be changed where the user may; Unix sockets with a path can be connected to
//! where the user may, so a service behind one (`docker.sock`, a D-Bus) can be asked to act outside. Before Landlock 6
//! other processes of the user can be sent signals.
//!
//! [Landlock]: https://docs.kernel.org/userspace-api/landlock.html
//!
//! ```no_run
//! use attache::process::Command;
//! use attache_host::sandbox::{Network, Policy, Sandbox};
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy { network: Network::Offline, ..Policy::new(["/home/me/project"]) };
//! let (process, stdin, stdout) = Sandbox::new(&policy)?.confine(Command::new("gemini").args(["--acp"])).spawn()?;
//! # Ok(())
//! # }
//! ```

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing can be enforced there"))]
mod paths;

#[cfg_attr(
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")),
    path = "sandbox/kernel_linux.rs"
)]
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "sandbox/kernel_other.rs"
)]
mod kernel;

use std::{fmt, io, path::PathBuf, sync::Arc};

use attache::process::Command;

/// What a confined process may do.
///
/// Paths are looked up when the sandbox is made; links are followed. A path in `hidden` is taken out of what is
/// `readable`, and a `writable` path inside of a hidden one is writable all the same. Harmless devices such as
/// `/dev/null` can always be used, and `/dev/shm`; other devices only if they are listed, for example `/dev/ptmx` and
/// `/dev/pts` for programs that make terminals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What can be read, executed and changed, with all beneath.
    pub writable: Vec<PathBuf>,
    /// What can be read and executed, with all beneath.
    pub readable: Vec<PathBuf>,
    /// What can neither be read nor changed, with all beneath. The directories above it cannot be listed, and what is
    /// put into those later cannot be read. It need not exist.
    pub hidden: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: Network,
}

/// Whether a confined process has a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// As it is without a sandbox.
    #[default]
    Open,
    /// No sockets but Unix ones; of those, with Landlock 6, none that has an abstract name outside of the sandbox.
    Offline,
}

/// Where the user's secrets are, from their home. Directories of agents are not among them: an agent needs its own.
const SECRETS: [&str; 17] = [
    ".aws",
    ".azure",
    ".config/attache",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/chromium",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".password-store",
    ".pypirc",
    ".ssh",
];

impl Policy {
    /// The usual: the given directories and the one for temporary files can be changed, the rest of the machine can be
    /// read except the user's secrets, and the network is open.
    pub fn new(writable: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let hidden = std::env::home_dir().map(|home| SECRETS.map(|secret| home.join(secret)).to_vec());
        Self {
            writable: writable.into_iter().map(Into::into).chain([std::env::temp_dir()]).collect(),
            readable: vec![PathBuf::from("/")],
            hidden: hidden.unwrap_or_default(),
            network: Network::Open,
        }
    }
}

/// A policy that this machine's kernel enforces. Cheap to clone; good for any number of processes.
#[derive(Clone)]
pub struct Sandbox {
    confinement: Arc<kernel::Confinement>,
}

impl Sandbox {
    /// Makes a policy ready to be enforced.
    pub fn new(policy: &Policy) -> Result<Self, SandboxError> {
        let support = Self::check()?;
        let rules = paths::rules(policy)?;
        let confinement = kernel::Confinement::new(support, &rules, policy.network)?;
        Ok(Self { confinement: Arc::new(confinement) })
    }

    /// Says what the kernel of this machine can enforce, or why a sandbox is not possible.
    pub fn check() -> Result<Support, SandboxError> {
        kernel::check()
    }

    /// The same command, to be run in the sandbox. It replaces a hook that the command already has.
    #[must_use]
    pub fn confine(&self, command: Command) -> Command {
        kernel::confine(command, self.confinement.clone())
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

/// What the kernel can enforce. Shown as a line for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// The version of Landlock, 3 or more.
    pub landlock: u32,
}

impl Support {
    /// Whether use of devices is confined beyond reading and writing them.
    pub fn devices(self) -> bool {
        self.landlock >= 5
    }

    /// Whether signals and connections to abstract Unix sockets cannot leave the sandbox.
    pub fn signals(self) -> bool {
        self.landlock >= 6
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Landlock {} and seccomp: files, system calls, network", self.landlock)?;
        if self.devices() {
            f.write_str(", devices")?;
        }
        if self.signals() {
            f.write_str(", signals, abstract sockets")?;
        }
        Ok(())
    }
}

/// Why there can be no sandbox.
#[derive(Debug)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no support for this system or processor.
    OtherSystem,
    /// The kernel was built without Landlock, or is too old for it, or an outer sandbox keeps it from us.
    NoLandlock,
    /// Landlock is there, but switched off.
    LandlockOff,
    /// Landlock is there, but does not cover enough.
    OldLandlock {
        /// The version that is there.
        version: u32,
    },
    /// The kernel has no seccomp filters.
    NoSeccomp,
    /// A path that is to be writable is not there, or cannot be opened.
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is to be hidden is inside of what is to be writable, which the kernel cannot do.
    HiddenInWritable {
        /// What is to be hidden.
        hidden: PathBuf,
        /// What is to be writable.
        writable: PathBuf,
    },
    /// Around the hidden paths there are more files than can be listed one by one.
    TooManyPaths,
    /// The kernel refused.
    Refused {
        /// What it said.
        source: io::Error,
    },
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherSystem => {
                f.write_str("there is no sandbox for this system\nhint: it takes Linux on x86_64 or aarch64")
            }
            Self::NoLandlock => {
                f.write_str("the kernel offers no Landlock, which the sandbox needs\nhint: it takes Linux 6.2 or newer")
            }
            Self::LandlockOff => f.write_str(
                "Landlock is switched off, and the sandbox needs it\nhint: add `landlock` to `lsm=` on the kernel's command line",
            ),
            Self::OldLandlock { version } => write!(
                f,
                "the kernel has Landlock {version}, the sandbox needs 3 or newer\nhint: it takes Linux 6.2 or newer"
            ),
            Self::NoSeccomp => f.write_str("the kernel offers no seccomp filters, which the sandbox needs"),
            Self::Path { path, source } => write!(f, "cannot make `{}` writable in the sandbox: {source}", path.display()),
            Self::HiddenInWritable { hidden, writable } => write!(
                f,
                "cannot hide `{}` inside of `{}`, which is to be writable\nhint: make less of it writable",
                hidden.display(),
                writable.display()
            ),
            Self::TooManyPaths => {
                f.write_str("there are too many files next to the hidden ones\nhint: hide the directory that they are in")
            }
            Self::Refused { source } => write!(f, "the kernel refused the sandbox: {source}"),
        }
    }
}

impl std::error::Error for SandboxError {}
