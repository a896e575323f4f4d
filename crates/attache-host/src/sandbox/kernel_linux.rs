//! The calls into the kernel: Landlock here, the filter of system calls in `seccomp.rs`, a view of the machine of one's
//! own in `namespace_linux.rs`.
//!
//! Made directly, because what is applied between fork and exec has to be a few plain system calls.

#[path = "mounts.rs"]
mod mounts;
#[path = "namespace_linux.rs"]
mod namespace;
#[path = "seccomp.rs"]
mod seccomp;
#[path = "sockets.rs"]
mod sockets;

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    ptr,
    sync::{Arc, Mutex},
};

use attache::process::Command;
use libc::c_int;

use super::{
    Network, Policy, ProjectLayers, SandboxError, Support,
    view::{self, Access, Row, Rule, Why},
};

/// The first version that also keeps files from being truncated.
const OLDEST: u32 = 3;

// What can be allowed, from `linux/landlock.h`.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// To connect to a socket with a path that was made outside.
const RESOLVE_UNIX: u64 = 1 << 16;

const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const CHANGE: u64 =
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE;
/// Nobody in a sandbox makes devices.
const NEVER: u64 = MAKE_CHAR | MAKE_BLOCK;
/// What can be allowed for something that is not a directory.
const FOR_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX;

const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1;
const SCOPE_SIGNAL: u64 = 1 << 1;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: c_int = 1;

#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

pub(super) fn check() -> Result<Support, SandboxError> {
    // SAFETY: with this flag the call takes no memory and gives a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<RulesetAttributes>(),
            0usize,
            CREATE_RULESET_VERSION,
        )
    };
    let version = match (version, io::Error::last_os_error().raw_os_error()) {
        (-1, Some(libc::EOPNOTSUPP)) => return Err(SandboxError::LandlockOff),
        (-1, _) => return Err(SandboxError::NoLandlock),
        (version, _) => version as u32,
    };
    if version < OLDEST {
        return Err(SandboxError::OldLandlock { version });
    }
    seccomp::check().map_err(|_| SandboxError::NoSeccomp)?;
    Ok(Support { landlock: version, namespaces: namespace::check().is_ok() })
}

/// Why there are no namespaces.
pub(super) fn why_no_namespaces() -> Option<String> {
    namespace::check().err().map(|failure| failure.to_string())
}

/// Whether a sandbox of ours with namespaces is around us already. Nobody else makes a file where its sign is.
pub(super) fn is_inside_of_another() -> bool {
    Path::new(mounts::SIGN).exists()
}

/// Whether layers can be made among these, tried once for each project.
pub(super) fn can_overlay(layers: &ProjectLayers) -> bool {
    static TRIED: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let top = layers.directory().join("trial");
    let mut tried = TRIED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *tried.entry(top.clone()).or_insert_with(|| {
        let part = |name: &str| {
            let path = top.join(name);
            super::layers::make_private(&path).ok()?;
            CString::new(path.into_os_string().into_encoded_bytes()).ok()
        };
        match (part("lower"), part("upper"), part("work")) {
            (Some(lower), Some(upper), Some(work)) => {
                namespace::can_overlay(mounts::Overlay { lower: vec![lower], upper, work })
            }
            _ => false,
        }
    })
}

/// A set of rules in the kernel and a filter, ready to be applied.
pub(super) struct Confinement {
    namespaces: Option<namespace::Namespaces>,
    ruleset: OwnedFd,
    filter: Vec<libc::sock_filter>,
}

impl Confinement {
    pub(super) fn new(support: Support, rows: &[Row], policy: &Policy) -> Result<Self, SandboxError> {
        let refused = |source| SandboxError::Refused { source };
        let rules = view::rules(rows)?;
        let namespaces = match support.namespaces {
            true => Some(namespaces(rows, policy)?),
            false => None,
        };
        let ruleset = create_ruleset(support).map_err(refused)?;
        if let Some(memory) = namespaces.as_ref().and_then(|namespaces| namespaces.shared_memory.as_ref()) {
            allow(&ruleset, memory.as_raw_fd(), (READ | CHANGE) & handled(support)).map_err(refused)?;
        }
        for layer in namespaces.iter().flat_map(|namespaces| &namespaces.layers) {
            allow(&ruleset, layer.as_raw_fd(), (READ | CHANGE) & handled(support)).map_err(refused)?;
        }
        if let (Some(own), Some(_)) = (&policy.temporary, &namespaces) {
            let directory = open_without_links(own).map_err(refused)?;
            allow(&ruleset, directory.as_raw_fd(), (READ | CHANGE) & handled(support)).map_err(refused)?;
        }
        if namespaces.is_some() {
            // What is hidden is covered, so the directories above it may be listed.
            let tops = rows.iter().filter(|row| row.access == Access::Read && row.why == Why::Named);
            for row in tops {
                if let Ok(directory) = open_without_links(&row.path)
                    && directory.metadata().is_ok_and(|found| found.is_dir())
                {
                    allow(&ruleset, directory.as_raw_fd(), READ_DIR).map_err(refused)?;
                }
            }
        }
        for rule in &rules {
            match add_rule(&ruleset, support, rule) {
                Err(source) if rule.is_required => {
                    return Err(SandboxError::Path { path: rule.path.clone(), source });
                }
                // It has gone since it was listed, or cannot be reached. What is not allowed is denied.
                Err(_) | Ok(()) => {}
            }
        }
        Ok(Self { namespaces, ruleset, filter: seccomp::filter(policy.network) })
    }

    /// Confines the calling thread for good. Only makes system calls.
    pub(super) fn apply(&self) -> io::Result<()> {
        // First, because everything after it forbids to mount and to enter.
        if let Some(namespaces) = &self.namespaces {
            namespaces.enter()?;
        }
        // SAFETY: numbers, and a descriptor that we own.
        unsafe {
            // Whoever cannot gain rights by executing a setuid program may confine itself.
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0) != 0
            {
                return Err(io::Error::last_os_error());
            }
        }
        seccomp::apply(&self.filter)
    }
}

/// The view of the machine that a table describes.
fn namespaces(rows: &[Row], policy: &Policy) -> Result<namespace::Namespaces, SandboxError> {
    let temporary = view::resolve(&std::env::temp_dir());
    let allowed: Vec<PathBuf> = policy.sockets.iter().map(|path| view::resolve(path)).collect();
    let sockets = sockets::within_reach(rows, &temporary, &allowed)?;
    let plan = mounts::plan(&with_pins(rows, &sockets), &sockets, policy)?;
    namespace::Namespaces::new(&plan).map_err(|failure| match failure.is_change() {
        true => SandboxError::Changed,
        false => SandboxError::Refused { source: failure.into_error() },
    })
}

/// The table, in which the directories around sockets stay where they are: the kernel lists a socket by the path that it
/// was made with, so one that was moved would not be found by the next sandbox.
fn with_pins(rows: &[Row], sockets: &[PathBuf]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    for above in sockets.iter().flat_map(|socket| socket.ancestors().skip(1)) {
        if let Err(at) = rows.binary_search_by(|row| row.path.as_path().cmp(above))
            && view::access(&rows, above) == Access::Write
        {
            rows.insert(at, Row { path: above.to_owned(), access: Access::Write, why: Why::Pinned });
        }
    }
    rows
}

/// Opens what a path names, to refer to it; a link on the way, or there, is an error. Whoever can change the directories
/// on it could otherwise have us allow something else.
fn open_without_links(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    Ok(opened.into())
}

fn create_ruleset(support: Support) -> io::Result<OwnedFd> {
    let attributes = RulesetAttributes {
        handled_access_fs: handled(support),
        handled_access_net: 0,
        scoped: if support.signals() { SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL } else { 0 },
    };
    // An older kernel takes the part that it knows, if the rest is zero.
    // SAFETY: reads the attributes; gives a new descriptor (close-on-exec) or -1.
    let fd = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size_of::<RulesetAttributes>(), 0u32)
    };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    let ruleset = unsafe { OwnedFd::from_raw_fd(fd as c_int) };
    // A copy is never one of the first three descriptors, which become the program's own.
    if ruleset.as_raw_fd() > 2 { Ok(ruleset) } else { ruleset.try_clone() }
}

/// What is denied unless a rule allows it.
fn handled(support: Support) -> u64 {
    let devices = if support.devices() { IOCTL_DEV } else { 0 };
    let sockets = if support.landlock >= Support::SOCKETS { RESOLVE_UNIX } else { 0 };
    READ | CHANGE | NEVER | devices | sockets
}

fn add_rule(ruleset: &OwnedFd, support: Support, rule: &Rule) -> io::Result<()> {
    let file = open_without_links(&rule.path)?;
    let kind = file.metadata()?.file_type();
    allow(ruleset, file.as_raw_fd(), allowed(support, rule, kind.is_dir()))
}

/// What a rule allows, as far as the kernel knows it.
fn allowed(support: Support, rule: &Rule, is_directory: bool) -> u64 {
    let allowed = match rule.access {
        Access::Hidden => 0,
        Access::Read => READ,
        Access::Write => READ | CHANGE | IOCTL_DEV,
    };
    let connects = if rule.connects { RESOLVE_UNIX } else { 0 };
    (allowed | connects) & handled(support) & if is_directory { u64::MAX } else { FOR_FILES }
}

fn allow(ruleset: &OwnedFd, path: c_int, allowed: u64) -> io::Result<()> {
    let attributes = PathBeneath { allowed_access: allowed, parent_fd: path };
    // SAFETY: reads the attributes; the descriptors are open.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), RULE_PATH_BENEATH, &raw const attributes, 0u32)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn confine(command: Command, confinement: Arc<Confinement>) -> Command {
    // SAFETY: `apply` only makes system calls.
    unsafe { command.before_exec(Arc::new(move || confinement.apply())) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_directory_that_was_swapped_since_it_was_looked_at_is_not_shown() {
        let support = match check() {
            Ok(support) if support.namespaces => support,
            _ => return,
        };
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = fs::canonicalize(home.path()).unwrap();
        let modules = home.join("project/.git/modules");
        for directory in [modules.join("keys/hooks"), home.join("secrets/keys")] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [modules.join("keys/config"), home.join("secrets/keys/config")] {
            fs::write(file, "").unwrap();
        }
        let policy = Policy {
            writable: vec![home.join("project")],
            hidden: vec![home.join("secrets")],
            protected: super::super::git::repository_of(&home.join("project")).protected,
            ..Policy::new([home.join("project")])
        };
        let rows = view::rows(&policy);
        assert!(rows.iter().any(|row| row.path == modules && row.why == Why::Pinned), "{rows:?}");
        assert!(Confinement::new(support, &rows, &policy).is_ok());
        let swaps: [&dyn Fn(); 3] = [
            &|| std::os::unix::fs::symlink(home.join("secrets"), &modules).unwrap(),
            &|| fs::create_dir_all(modules.join("keys/hooks")).unwrap(),
            &|| (),
        ];
        for swap in swaps {
            fs::rename(&modules, home.join("aside")).unwrap();
            swap();
            let made = Confinement::new(support, &rows, &policy);
            assert!(matches!(made, Err(SandboxError::Changed)), "{:?}", made.err());
            let _ = fs::remove_file(&modules).or_else(|_| fs::remove_dir_all(&modules));
            fs::rename(home.join("aside"), &modules).unwrap();
        }
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn a_kernel_is_asked_for_no_more_than_its_version_knows() {
        let rule = |access, connects| Rule { path: "/".into(), access, connects, is_required: false };
        for (landlock, highest) in [(3, TRUNCATE), (5, IOCTL_DEV), (7, IOCTL_DEV), (8, IOCTL_DEV), (9, RESOLVE_UNIX)] {
            let support = Support { landlock, namespaces: false };
            assert!(handled(support) & highest != 0 && handled(support) < highest << 1, "{landlock}");
            for rule in [rule(Access::Read, true), rule(Access::Write, false), rule(Access::Write, true)] {
                assert_eq!(allowed(support, &rule, true) & !handled(support), 0, "{landlock} {rule:?}");
                assert_eq!(allowed(support, &rule, false) & !FOR_FILES, 0, "{landlock} {rule:?}");
                let connects = allowed(support, &rule, true) & RESOLVE_UNIX != 0;
                assert_eq!(connects, landlock >= 9 && rule.connects, "{landlock} {rule:?}");
            }
        }
    }
}
