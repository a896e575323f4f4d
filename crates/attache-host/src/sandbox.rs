//! Confining a process by the kernel: which files it may touch, and which doors out it does not get.
//!
//! [Landlock] decides about files, a seccomp filter about system calls. Where the machine allows namespaces, a confined
//! process also has a view of the machine of its own: everything is read-only but for what is writable, what is hidden is
//! covered, and so are the sockets of other programs; shared memory is its own. All of it holds for the process, for
//! everything it starts, and for good. What ends its tree (`attache::process`) stays outside.
//!
//! One value, a [`Policy`], says what is allowed. Where the kernel cannot enforce it, there is no [`Sandbox`], only an
//! error that says why. What a machine can only enforce in part is said by [`Sandbox::gaps`]; what no machine can, by
//! [`LIMITS`].
//!
//! [Landlock]: https://docs.kernel.org/userspace-api/landlock.html
//!
//! ```no_run
//! use attache::process::Command;
//! use attache_host::sandbox::{Network, Policy, Sandbox};
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy { network: Network::Offline, ..Policy::new(["/home/me/project"]) };
//! let sandbox = Sandbox::new(&policy)?;
//! for gap in sandbox.gaps() {
//!     eprintln!("the sandbox has a gap: {gap}");
//! }
//! let (process, stdin, stdout) = sandbox.confine(Command::new("gemini").args(["--acp"])).spawn()?;
//! # Ok(())
//! # }
//! ```

mod caches;
mod explain;
mod git;
mod layer_limits;
mod layers;
mod npm;
mod policy;
mod project_secrets;
mod recorded;
mod removal;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing can be enforced there"))]
mod view;

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

pub use explain::Explanation;
pub use git::git_directory;
pub use layer_limits::{LayerLimits, LayerUse, layer_use, limit_layers, look_after_layers};
pub use layers::{Cleared, Layer, ProjectLayers, clear_layers};
pub use policy::{Network, Policy};

/// What no sandbox of ours keeps back, on any machine, in a sentence each.
pub const LIMITS: [&str; 8] = [
    "What commands write into the project is run by whoever builds or tests it later; look at it first.",
    "Files outside of the project can be read, also those of other projects, `.env` among them; only known secrets of your \
     home are hidden, and from commands that run unasked those that are found in the project.",
    "Before Linux 7.1, a socket that another program makes after a command has started can be reached by it, unless it is \
     in `/run` or hidden.",
    "With the network open, anything that can be read can be sent anywhere, and local servers can be reached.",
    "What git runs from the project is protected: its hooks and settings, and those of its submodules. Repositories inside \
     of it, and one that a command makes where there was none, are not; and git follows a file `.git/commondir`, which \
     `attache doctor` and `/status` tell of.",
    "When you change the settings of a repository, commands that are already running are no longer kept from doing so.",
    "The directory for temporary files is shared with your other programs: what they put there can be read and changed.",
    "An agent that is confined keeps its own state directory, and with it settings that may name programs to be run later, \
     such as hooks in `~/.claude/settings.json`.",
];

/// How often it is tried to make a sandbox while files change.
const MOST_TRIES: usize = 4;

/// A policy that this machine's kernel enforces. Cheap to clone; good for any number of processes.
#[derive(Clone)]
pub struct Sandbox {
    confinement: Arc<kernel::Confinement>,
    policy: Arc<Policy>,
    gaps: Arc<[String]>,
    /// What can be changed, where its names led when it was made.
    writable: Arc<[PathBuf]>,
}

impl Sandbox {
    /// Makes a policy ready to be enforced, all that it says about files included.
    pub fn new(policy: &Policy) -> Result<Self, SandboxError> {
        Self::make(policy, true)
    }

    /// The same, but what cannot be hidden inside of something writable is left open, and told as a [gap](Self::gaps).
    pub fn best_effort(policy: &Policy) -> Result<Self, SandboxError> {
        Self::make(policy, false)
    }

    fn make(policy: &Policy, is_strict: bool) -> Result<Self, SandboxError> {
        // Other programs may be at work in the same directories.
        for _ in 1..MOST_TRIES {
            match Self::try_to_make(policy, is_strict) {
                Err(SandboxError::Changed) => {}
                made => return made,
            }
        }
        Self::try_to_make(policy, is_strict)
    }

    fn try_to_make(policy: &Policy, is_strict: bool) -> Result<Self, SandboxError> {
        let support = Self::check()?;
        let without_layers;
        let policy = match support.namespaces || policy.layers.is_empty() && policy.temporary.is_none() {
            true => policy,
            false => {
                without_layers = Policy { layers: Vec::new(), temporary: None, ..policy.clone() };
                &without_layers
            }
        };
        view::check_writable(policy)?;
        git::make_missing(policy);
        let mut rows = view::rows(policy);
        let mut gaps = support.gaps();
        for root in &policy.writable {
            gaps.extend(
                git::redirection(root)
                    .map(|path| format!("`{}` leads git elsewhere; remove it if you did not make it", path.display())),
            );
            gaps.extend(
                git::unprotected(root).map(|path| {
                    format!("git would run what is made at `{}`, which cannot be protected", path.display())
                }),
            );
        }
        if !support.namespaces {
            let mut open = Vec::new();
            for (hidden, writable) in view::hidden_in_writable(&rows) {
                let (hidden, writable) = (hidden.path.clone(), writable.path.clone());
                if is_strict {
                    return Err(SandboxError::HiddenInWritable { hidden, writable });
                }
                let (inner, outer) = (hidden.display(), writable.display());
                gaps.push(format!("`{inner}` cannot be hidden inside of `{outer}`, which is writable"));
                open.push(hidden);
            }
            rows.retain(|row| !open.contains(&row.path));
        }
        let missing = view::hidden_in_writable(&rows).filter(|(row, _)| row.path.symlink_metadata().is_err());
        let missing: Vec<_> = missing.map(|(row, _)| row.path.display()).collect();
        if let [first, others @ ..] = &missing[..] {
            let others = if others.is_empty() { String::new() } else { format!(" and {} others", others.len()) };
            gaps.push(format!("what is to be hidden and does not exist yet can be made: `{first}`{others}"));
        }
        if let Some(missing) = policy.missing_start_file() {
            gaps.push(format!(
                "your home can be changed; what programs start from is protected in it, but what does not exist yet can be \
                 made, such as `{}`",
                missing.display()
            ));
        }
        let confinement = kernel::Confinement::new(support, &rows, policy)?;
        let named = rows.iter().filter(|row| row.access == view::Access::Write && row.why == view::Why::Named);
        let writable = named.map(|row| row.path.clone()).collect();
        Ok(Self { confinement: Arc::new(confinement), policy: Arc::new(policy.clone()), gaps: gaps.into(), writable })
    }

    /// Says what the kernel of this machine can enforce, or why a sandbox is not possible.
    pub fn check() -> Result<Support, SandboxError> {
        kernel::check()
    }

    /// Whether a sandbox of ours is around us already, in which our own settings and records may be hidden from us.
    pub fn is_around_us() -> bool {
        kernel::is_inside_of_another()
    }

    /// What it enforces. Whoever acts on behalf of a confined process asks it first: [`Policy::may_read`].
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether this path is one of those that the policy lets be changed, and no name on it was a link when the sandbox was made. If
    /// it was one, something else can be changed in its place.
    pub fn has_writable(&self, path: &std::path::Path) -> bool {
        self.writable.iter().any(|writable| writable == path)
    }

    /// What this machine does not enforce of what a sandbox should, in a sentence each, without a full stop. Best is none.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// The same command, to be run in the sandbox, with the [variables](Policy::variables) that stand in for what is hidden.
    /// It replaces a hook that the command already has.
    #[must_use]
    pub fn confine(&self, command: Command) -> Command {
        // What the person has set goes before what was read from a file, if it is passed on.
        let unset = self.policy.variables.iter().filter(|(name, _)| std::env::var_os(name).is_none());
        let private = self.policy.private_variables.iter();
        let command = unset.chain(private).fold(command, |command, (name, value)| command.env(name, value));
        kernel::confine(command, self.confinement.clone())
    }

    /// Whether the kernel enforces all that a sandbox should: nothing is missing, and it has a view of the machine of its
    /// own.
    pub fn is_whole(&self) -> bool {
        self.gaps.is_empty() && Self::check().is_ok_and(|support| support.namespaces)
    }

    /// Confines the calling process for good, for those who start a program by other means than [`Command`]. The process
    /// must have one thread. Only makes system calls, so it may run between `fork` and `exec`.
    pub fn enter(&self) -> io::Result<()> {
        self.confinement.apply()
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
    /// Whether a confined process can have a view of the machine of its own.
    pub namespaces: bool,
}

impl Support {
    /// The first version of Landlock that decides about sockets with a path, in Linux 7.1.
    const SOCKETS: u32 = 9;

    /// Whether use of devices is confined beyond reading and writing them.
    pub fn devices(self) -> bool {
        self.landlock >= 5
    }

    /// Whether signals and connections to abstract Unix sockets cannot leave the sandbox.
    pub fn signals(self) -> bool {
        self.landlock >= 6
    }

    /// Whether sockets with a path that others made cannot be reached.
    pub fn sockets(self) -> bool {
        self.namespaces || self.landlock >= Self::SOCKETS
    }

    /// What is missing, in a sentence each, without a full stop.
    pub fn gaps(self) -> Vec<String> {
        let mut gaps = Vec::new();
        // A sandbox of ours around this one has told its own gaps.
        if !self.namespaces && !kernel::is_inside_of_another() {
            let why = kernel::why_no_namespaces().unwrap_or_else(|| "not on this system".into());
            if !self.sockets() {
                gaps.push(format!(
                    "with the network open, programs that listen on a socket with a path can be asked to act outside \
                     (Docker, D-Bus, tmux, agents of ssh), because there are no namespaces: {why}"
                ));
            }
            gaps.push("modes, owners and times of the user's files can be changed, though not their content".into());
            gaps.push("memory that other programs share (`/dev/shm`, System V) can be read and changed".into());
            gaps.push("`.git/hooks` and `.git/config` of the project can be changed".into());
        }
        if !self.signals() {
            let what = "signals can be sent to the user's other programs, and abstract sockets be reached";
            gaps.push(format!("{what}: that takes Linux 6.12"));
        }
        if !self.devices() {
            gaps.push("devices that are open can be controlled: that takes Linux 6.10".into());
        }
        gaps
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
        if self.namespaces {
            f.write_str("; namespaces: sockets, shared memory, modes and times")?;
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
    /// What is to be hidden is inside of what is to be writable, which takes namespaces.
    HiddenInWritable {
        /// What is to be hidden.
        hidden: PathBuf,
        /// What is to be writable.
        writable: PathBuf,
    },
    /// Around the hidden paths there are more files than can be listed one by one.
    TooManyPaths,
    /// Beneath the directory for temporary files there are more sockets of programs than can be closed off.
    TooManySockets {
        /// That directory.
        directory: PathBuf,
    },
    /// A project has more files that may hold secrets than can be hidden.
    TooManySecrets {
        /// The directory of the project.
        directory: PathBuf,
    },
    /// Files that are to be hidden or protected changed whenever it was tried to make the sandbox.
    Changed,
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
                "cannot hide `{}` inside of `{}`, which is to be writable\nhint: make less of it writable, or allow user namespaces",
                hidden.display(),
                writable.display()
            ),
            Self::TooManyPaths => {
                f.write_str("there are too many files next to the hidden ones\nhint: hide the directory that they are in")
            }
            Self::TooManySockets { directory } => write!(
                f,
                "there are too many sockets to close off in `{}`\nhint: look for directories in it whose names begin \
                 with `ssh-`, `tmux-` or the like, and remove what is not yours",
                directory.display()
            ),
            Self::TooManySecrets { directory } => write!(
                f,
                "`{}` has more than {} files that may hold secrets, which cannot all be hidden",
                directory.display(),
                project_secrets::MOST_SECRETS
            ),
            Self::Changed => f.write_str(
                "files that are to be hidden or protected change all the time\nhint: end what is at work in the directory, \
                 such as a command in the background",
            ),
            Self::Refused { source } => write!(f, "the kernel refused the sandbox: {source}"),
        }
    }
}

impl std::error::Error for SandboxError {}
