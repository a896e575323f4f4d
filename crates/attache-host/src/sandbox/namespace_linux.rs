//! A view of the machine of one's own: mount and IPC namespaces that show what a policy allows.
//!
//! A helper process makes them, once for a sandbox, and is gone; what is left are descriptors, which every confined
//! process enters. So what cannot be made is known before anything runs. An ordinary user needs a user namespace for
//! it, in which nobody but themselves is known; root does without.

use std::{
    ffi::CStr,
    fmt, io, mem,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    ptr,
    sync::OnceLock,
};

use libc::{c_char, c_int, c_long, c_uint, pid_t};

#[path = "user_namespace_linux.rs"]
mod user_namespace;

use super::mounts::{EMPTY_DIRECTORY, EMPTY_FILE, Make, Mount, Overlay, Plan, What};

// From `linux/mount.h` and `linux/fcntl.h`.
const OPEN_TREE_CLONE: c_uint = 1;
const OPEN_TREE_CLOEXEC: c_uint = libc::O_CLOEXEC as c_uint;
const AT_RECURSIVE: c_uint = 0x8000;
const AT_EMPTY_PATH: c_uint = 0x1000;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 4;
const MOVE_MOUNT_T_EMPTY_PATH: c_uint = 0x40;
const FSOPEN_CLOEXEC: c_uint = 1;
const FSCONFIG_SET_FLAG: c_uint = 0;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CMD_CREATE: c_uint = 6;
const FSMOUNT_CLOEXEC: c_uint = 1;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Namespaces that confined processes enter.
#[derive(Debug)]
pub(super) struct Namespaces {
    user: Option<&'static OwnedFd>,
    ipc: OwnedFd,
    mount: OwnedFd,
    /// The top of the memory that is shared by name in them, for Landlock to allow.
    pub(super) shared_memory: Option<OwnedFd>,
    /// The tops of the layers that were made, likewise.
    pub(super) layers: Vec<OwnedFd>,
}

/// Why there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    step: Step,
    error: i32,
}

/// How far the helper came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Start,
    Unshare,
    Map,
    Private,
    Tree,
    ReadOnly,
    Memory,
    Mount,
    Tell,
}

const STEPS: [Step; 9] = [
    Step::Start,
    Step::Unshare,
    Step::Map,
    Step::Private,
    Step::Tree,
    Step::ReadOnly,
    Step::Memory,
    Step::Mount,
    Step::Tell,
];

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step {
            Step::Start => "no process could be started to make them",
            Step::Unshare => "the kernel, or a container around us, does not allow them",
            Step::Map => "the user cannot be made known in them",
            Step::Private | Step::Tree | Step::ReadOnly | Step::Memory | Step::Mount => {
                "nothing can be mounted in them"
            }
            Step::Tell => "they were lost",
        };
        write!(f, "{what} ({})", io::Error::from_raw_os_error(self.error))
    }
}

impl Failure {
    /// Whether something was no longer as it was when the plan was made.
    pub(super) fn is_change(self) -> bool {
        let gone = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::ESTALE, libc::EINVAL];
        matches!(self.step, Step::Tree | Step::Mount) && gone.contains(&self.error)
    }

    pub(super) fn into_error(self) -> io::Error {
        io::Error::new(io::Error::from_raw_os_error(self.error).kind(), self.to_string())
    }
}

/// How namespaces can be had here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// We are root, and stay that.
    Plain,
    /// Inside of a user namespace.
    User,
}

/// Whether this machine lets us have namespaces, tried once.
pub(super) fn check() -> Result<(), Failure> {
    kind().map(|_| ())
}

fn kind() -> Result<Kind, Failure> {
    static KIND: OnceLock<Result<Kind, Failure>> = OnceLock::new();
    *KIND.get_or_init(|| {
        // As little as shows that something can be mounted.
        let mount = Mount { what: What::Made(EMPTY_DIRECTORY.into()), at: c"/dev".into(), may_be_missing: false };
        let plan = Plan { mounts: vec![mount], ..Plan::default() };
        // Root in a user namespace would lose the files of everybody else, so root has to do without one.
        // SAFETY: asks for a number.
        let kind = if unsafe { libc::geteuid() } == 0 { Kind::Plain } else { Kind::User };
        make(&plan, kind).map(|_| kind)
    })
}

/// Whether overlays can be made of these directories, which have to be empty.
pub(super) fn can_overlay(overlay: Overlay) -> bool {
    let plan = Plan { overlays: vec![overlay], ..Plan::default() };
    kind().is_ok_and(|kind| make(&plan, kind).is_ok_and(|made| made.layers.len() == 1))
}

impl Namespaces {
    pub(super) fn new(plan: &Plan) -> Result<Self, Failure> {
        make(plan, kind()?)
    }

    /// Takes the calling process into them, to the same directory. Only makes system calls.
    pub(super) fn enter(&self) -> io::Result<()> {
        // The directory is the one outside until it is looked up anew.
        let mut directory = [0 as c_char; libc::PATH_MAX as usize];
        // SAFETY: the buffer is as long as is said, and the descriptors are ours.
        unsafe {
            if libc::syscall(libc::SYS_getcwd, directory.as_mut_ptr(), directory.len()) < 0 {
                return Err(io::Error::last_os_error());
            }
            // The user namespace first: the rights to enter the others come from it.
            for namespace in self.user.into_iter().chain([&self.ipc, &self.mount]) {
                if libc::setns(namespace.as_raw_fd(), 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            // One that cannot be reached from the root is told with a word in front of it.
            if directory[0] != b'/' as c_char || libc::chdir(directory.as_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

/// What the helper needs, made before it is started.
struct Helper<'a> {
    plan: &'a Plan,
    /// The user namespace to be in; root does without.
    user: Option<&'static OwnedFd>,
    trees: Vec<RawFd>,
    overlays: Vec<RawFd>,
    link: RawFd,
}

fn make(plan: &Plan, kind: Kind) -> Result<Namespaces, Failure> {
    let at_start = |error: io::Error| Failure { step: Step::Start, error: error.raw_os_error().unwrap_or(libc::EIO) };
    let user = match kind {
        Kind::Plain => None,
        Kind::User => Some(user_namespace::ours()?),
    };
    let (ours, theirs) = socket_pair().map_err(at_start)?;
    let (trees, overlays) = (vec![-1; plan.trees.len()], vec![-1; plan.overlays.len()]);
    let mut helper = Helper { plan, user, trees, overlays, link: theirs.as_raw_fd() };
    // Nobody is told of its end by a signal: it is ours to wait for.
    // SAFETY: without shared memory or a stack this is a plain fork, without what the C library does around it. The child
    // only makes system calls until it ends.
    let pid = unsafe {
        let pid = libc::syscall(libc::SYS_clone, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long);
        if pid == 0 {
            helper.run();
            libc::_exit(0);
        }
        pid as pid_t
    };
    if pid == -1 {
        return Err(at_start(io::Error::last_os_error()));
    }
    drop(theirs);
    let told = receive(&ours, user);
    wait_for(pid);
    told
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    if unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were made just now, and nobody else has them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn wait_for(pid: pid_t) {
    // SAFETY: the child is ours, and nobody else waits for it.
    unsafe { while libc::waitpid(pid, ptr::null_mut(), libc::__WALL) == -1 && errno() == libc::EINTR {} }
}

fn errno() -> c_int {
    // SAFETY: it is the calling thread's own.
    unsafe { *libc::__errno_location() }
}

/// As many as are ever sent: a few, and a layer for each row of the table of caches.
const MOST_DESCRIPTORS: usize = 64;
/// Space for one control message with them, aligned as the kernel wants it.
type ControlBuffer = [u64; 2 + MOST_DESCRIPTORS / 2];

/// Takes what the helper tells: an error, or the namespaces.
fn receive(link: &OwnedFd, user: Option<&'static OwnedFd>) -> Result<Namespaces, Failure> {
    let (has_shared_memory, descriptors) = receive_descriptors(link)?;
    let mut descriptors = descriptors.into_iter();
    let (Some(mount), Some(ipc)) = (descriptors.next(), descriptors.next()) else {
        return Err(Failure { step: Step::Tell, error: libc::EMFILE });
    };
    let shared_memory = if has_shared_memory { descriptors.next() } else { None };
    Ok(Namespaces { user, ipc, mount, shared_memory, layers: descriptors.collect() })
}

/// Takes what was sent with `tell`: an error, or whether there is shared memory and the descriptors.
fn receive_descriptors(link: &OwnedFd) -> Result<(bool, Vec<OwnedFd>), Failure> {
    let lost = |error| Failure { step: Step::Tell, error };
    let mut report = [0u8; 6];
    let mut control: ControlBuffer = [0; 2 + MOST_DESCRIPTORS / 2];
    let mut descriptors = Vec::new();
    // SAFETY: the buffers live through the call and are as long as is said; a descriptor that came is nobody else's.
    unsafe {
        let mut part = libc::iovec { iov_base: report.as_mut_ptr().cast(), iov_len: report.len() };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<ControlBuffer>() as _;
        let length = loop {
            match libc::recvmsg(link.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) {
                -1 if errno() == libc::EINTR => {}
                length => break length,
            }
        };
        if length != 6 {
            return Err(lost(if length < 0 { errno() } else { libc::EIO }));
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            for at in 0..bytes / size_of::<c_int>() {
                let descriptor = libc::CMSG_DATA(header).cast::<c_int>().add(at).read_unaligned();
                descriptors.push(OwnedFd::from_raw_fd(descriptor));
            }
        }
    }
    let [step, has_shared_memory, error @ ..] = report;
    match i32::from_ne_bytes(error) {
        0 => {}
        error => return Err(Failure { step: STEPS.get(step as usize).copied().unwrap_or(Step::Tell), error }),
    }
    // A copy is never one of the first three descriptors, which become the program's own.
    let high = |fd: OwnedFd| if fd.as_raw_fd() > 2 { Ok(fd) } else { fd.try_clone() };
    let descriptors: io::Result<Vec<OwnedFd>> = descriptors.into_iter().map(high).collect();
    let descriptors = descriptors.map_err(|error| lost(error.raw_os_error().unwrap_or(libc::EMFILE)))?;
    Ok((has_shared_memory == 1, descriptors))
}

/// Everything from here on runs in the helper: no allocation, no lock, no panic.
impl Helper<'_> {
    fn run(&mut self) {
        let mut step = Step::Start;
        let mut descriptors = [-1; MOST_DESCRIPTORS];
        let (count, error) = match self.build(&mut step, &mut descriptors) {
            Some(count) => (count, 0),
            None => (0, errno().max(1)),
        };
        let has_shared_memory = u8::from(self.plan.shared_memory.is_some());
        tell(self.link, step, has_shared_memory, error, &descriptors, count);
    }

    fn build(&mut self, step: &mut Step, descriptors: &mut [c_int; MOST_DESCRIPTORS]) -> Option<usize> {
        let plan = self.plan;
        // SAFETY: system calls on prepared strings and on descriptors that are the helper's own.
        unsafe {
            *step = Step::Unshare;
            if let Some(user) = self.user {
                done(libc::setns(user.as_raw_fd(), libc::CLONE_NEWUSER))?;
            }
            done(libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC))?;
            *step = Step::Private;
            let flags = libc::MS_REC | libc::MS_PRIVATE;
            done(libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null()))?;
            *step = Step::Tree;
            for (at, tree) in plan.trees.iter().enumerate() {
                let found = open_without_links(&tree.path);
                let taken = if found < 0 { -1 } else { open_tree(found, c"", AT_RECURSIVE | AT_EMPTY_PATH) };
                libc::close(found);
                if taken >= 0 && tree.is_read_only {
                    set_attributes(taken, c"", MOUNT_ATTR_RDONLY)?;
                }
                // What has gone is seen when it is to be mounted.
                *self.trees.get_mut(at)? = taken;
            }
            for (at, overlay) in plan.overlays.iter().enumerate() {
                // Before all becomes read-only, or nothing could be written. What cannot be made is left out.
                let made = make_overlay(overlay, self.user.is_some()).unwrap_or(-1);
                *self.overlays.get_mut(at)? = made;
            }
            *step = Step::ReadOnly;
            if !plan.is_root_writable {
                set_attributes(libc::AT_FDCWD, c"/", MOUNT_ATTR_RDONLY)?;
            }
            *step = Step::Memory;
            let made = self.make_skeleton()?;
            *step = Step::Mount;
            for mount in &plan.mounts {
                let what = match &mount.what {
                    What::Tree(at) | What::TreeElsewhere(at) => *self.trees.get(*at)?,
                    What::Overlay(at) => match *self.overlays.get(*at)? {
                        -1 => continue,
                        overlay => overlay,
                    },
                    What::Made(path) => {
                        let cover = valid(open_tree(made, path, 0))?;
                        set_attributes(cover, c"", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)?;
                        cover
                    }
                };
                let is_tree = matches!(mount.what, What::Tree(_));
                let is_mounted = self.mount(what, is_tree, &mount.at);
                let is_gone = matches!(errno(), libc::ENOENT | libc::ENOTDIR);
                if is_mounted.is_none() && !(mount.may_be_missing && is_gone) {
                    return None;
                }
                // Those are still told of.
                if !matches!(mount.what, What::Overlay(_)) {
                    libc::close(what);
                }
            }
            if made >= 0 {
                // Away from the root, where it was put for a moment.
                done(libc::fchdir(made))?;
                done(libc::umount2(c".".as_ptr(), libc::MNT_DETACH))?;
                done(libc::chdir(c"/".as_ptr()))?;
            }
            let mut memory = -1;
            if let Some(path) = &plan.shared_memory {
                memory = file_system(c"1777")?;
                move_mount(memory, libc::AT_FDCWD, path)?;
            }
            *step = Step::Tell;
            let mut count = 0;
            let flags = libc::O_RDONLY | libc::O_CLOEXEC;
            for namespace in [c"/proc/self/ns/mnt", c"/proc/self/ns/ipc"] {
                *descriptors.get_mut(count)? = valid(libc::open(namespace.as_ptr(), flags))?;
                count += 1;
            }
            if memory >= 0 {
                *descriptors.get_mut(count)? = memory;
                count += 1;
            }
            for overlay in self.overlays.iter().filter(|overlay| **overlay >= 0) {
                *descriptors.get_mut(count)? = *overlay;
                count += 1;
            }
            Some(count)
        }
    }

    /// Mounts something where a path leads without any link. A tree is mounted only on what it was taken from: whoever
    /// can change the directories above it may have put something else there meanwhile.
    unsafe fn mount(&self, what: c_int, is_tree: bool, at: &CStr) -> Option<()> {
        if what < 0 {
            return fail(libc::ENOENT);
        }
        // SAFETY: system calls on a string and on descriptors that are the helper's own.
        unsafe {
            let target = valid(open_without_links(at))?;
            let mounted = match is_tree && !is_same(what, target) {
                true => fail(libc::ESTALE),
                false => move_mount(what, target, c""),
            };
            let error = errno();
            libc::close(target);
            *libc::__errno_location() = error;
            mounted
        }
    }

    /// Makes a file system in memory with all that covers something, and gives its top.
    unsafe fn make_skeleton(&self) -> Option<c_int> {
        if self.plan.mounts.is_empty() {
            return Some(-1);
        }
        // SAFETY: system calls on prepared strings.
        unsafe {
            let top = file_system(c"0755")?;
            // It has to be mounted somewhere for parts of it to be mounted elsewhere. On top of the root it is in nobody's
            // way: a path begins below it.
            move_mount(top, libc::AT_FDCWD, c"/")?;
            done(libc::mkdirat(top, EMPTY_DIRECTORY.as_ptr(), 0))?;
            make_file(top, EMPTY_FILE, 0)?;
            for make in &self.plan.skeleton {
                let made = match make {
                    Make::Directory(path) => done(libc::mkdirat(top, path.as_ptr(), 0o755)),
                    Make::File(path) => make_file(top, path, 0o444),
                    Make::Link { path, target } => done(libc::symlinkat(target.as_ptr(), top, path.as_ptr())),
                };
                // Two ways may have a directory in common.
                if made.is_none() && errno() != libc::EEXIST {
                    return None;
                }
            }
            Some(top)
        }
    }
}

fn done(result: c_int) -> Option<()> {
    (result == 0).then_some(())
}

fn fail(error: c_int) -> Option<()> {
    // SAFETY: it is the calling thread's own.
    unsafe { *libc::__errno_location() = error };
    None
}

fn valid(descriptor: c_int) -> Option<c_int> {
    (descriptor >= 0).then_some(descriptor)
}

unsafe fn open_tree(directory: c_int, path: &CStr, flags: c_uint) -> c_int {
    let flags = flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | libc::AT_SYMLINK_NOFOLLOW as c_uint;
    // SAFETY: reads a string.
    unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) as c_int }
}

unsafe fn move_mount(what: c_int, directory: c_int, at: &CStr) -> Option<()> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: reads two strings.
    let moved =
        unsafe { libc::syscall(libc::SYS_move_mount, what, c"".as_ptr(), directory, at.as_ptr(), flags) as c_int };
    done(moved)
}

/// Finds what a path names, which may be a link itself; -1 if there is a link on the way to it.
unsafe fn open_without_links(path: &CStr) -> c_int {
    // SAFETY: a structure of numbers, of which zero means nothing.
    let mut how: libc::open_how = unsafe { mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    let size = size_of::<libc::open_how>();
    // SAFETY: reads a string and the structure.
    unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, size) as c_int }
}

/// Whether two descriptors are the same file or directory.
unsafe fn is_same(one: c_int, other: c_int) -> bool {
    // SAFETY: writes two structures of numbers.
    unsafe {
        let (mut first, mut second): (libc::stat, libc::stat) = (mem::zeroed(), mem::zeroed());
        libc::fstat(one, &mut first) == 0
            && libc::fstat(other, &mut second) == 0
            && (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
    }
}

/// Sets attributes of what is mounted there, and of all that is mounted in it.
unsafe fn set_attributes(directory: c_int, path: &CStr, set: u64) -> Option<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    let size = size_of::<MountAttributes>();
    let flags = AT_RECURSIVE | AT_EMPTY_PATH;
    // SAFETY: reads a string and the attributes.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, directory, path.as_ptr(), flags, &raw const attributes, size) as c_int
    };
    done(result)
}

/// A new file system in memory, not mounted yet.
unsafe fn file_system(mode: &CStr) -> Option<c_int> {
    // SAFETY: system calls on strings and on a descriptor that was made just now.
    unsafe {
        let none = ptr::null::<c_char>();
        let context = valid(libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), FSOPEN_CLOEXEC) as c_int)?;
        let set = FSCONFIG_SET_STRING;
        done(libc::syscall(libc::SYS_fsconfig, context, set, c"mode".as_ptr(), mode.as_ptr(), 0) as c_int)?;
        done(libc::syscall(libc::SYS_fsconfig, context, FSCONFIG_CMD_CREATE, none, none, 0) as c_int)?;
        let attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
        let made = libc::syscall(libc::SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes) as c_int;
        libc::close(context);
        valid(made)
    }
}

/// An overlay, not mounted yet. Its parts are found without links, and named by their descriptors: so nobody can put
/// something else in their place, and no path is too long.
unsafe fn make_overlay(overlay: &Overlay, is_user: bool) -> Option<c_int> {
    // SAFETY: system calls on strings and on descriptors that were made just now.
    unsafe {
        let none = ptr::null::<c_char>();
        let context = valid(libc::syscall(libc::SYS_fsopen, c"overlay".as_ptr(), FSOPEN_CLOEXEC) as c_int)?;
        let mut opened = [-1; MOST_PARTS];
        let made = (|| {
            let mut lower = Text::default();
            for (at, path) in overlay.lower.iter().enumerate() {
                let part = valid(open_without_links(path))?;
                *opened.get_mut(at)? = part;
                if at > 0 {
                    lower.push(b":")?;
                }
                lower.push_descriptor(part)?;
            }
            let set = |name: &CStr, text: &Text| {
                let text = text.bytes.as_ptr();
                done(libc::syscall(libc::SYS_fsconfig, context, FSCONFIG_SET_STRING, name.as_ptr(), text, 0) as c_int)
            };
            set(c"lowerdir", &lower)?;
            for (at, (name, path)) in
                [(c"upperdir", &overlay.upper), (c"workdir", &overlay.work)].into_iter().enumerate()
            {
                let part = valid(open_without_links(path))?;
                *opened.get_mut(overlay.lower.len().wrapping_add(at))? = part;
                let mut text = Text::default();
                text.push_descriptor(part)?;
                set(name, &text)?;
            }
            if is_user {
                // Only root may write the attributes that are usual.
                let flag = c"userxattr".as_ptr();
                done(libc::syscall(libc::SYS_fsconfig, context, FSCONFIG_SET_FLAG, flag, none, 0) as c_int)?;
            }
            // One that was in use until a moment ago is no mistake.
            let (index, off) = (c"index".as_ptr(), c"off".as_ptr());
            done(libc::syscall(libc::SYS_fsconfig, context, FSCONFIG_SET_STRING, index, off, 0) as c_int)?;
            done(libc::syscall(libc::SYS_fsconfig, context, FSCONFIG_CMD_CREATE, none, none, 0) as c_int)?;
            let attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
            valid(libc::syscall(libc::SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes) as c_int)
        })();
        for part in opened.iter().filter(|part| **part >= 0) {
            libc::close(*part);
        }
        libc::close(context);
        made
    }
}

/// As many directories as an overlay has at most, with its upper one and the kernel's.
const MOST_PARTS: usize = 16;

/// A text that is put together without memory being asked for. It ends with a zero.
struct Text {
    bytes: [u8; 256],
    length: usize,
}

impl Default for Text {
    fn default() -> Self {
        Text { bytes: [0; 256], length: 0 }
    }
}

impl Text {
    fn push(&mut self, more: &[u8]) -> Option<()> {
        let end = self.length.checked_add(more.len()).filter(|end| *end < self.bytes.len())?;
        self.bytes.get_mut(self.length..end)?.copy_from_slice(more);
        self.length = end;
        Some(())
    }

    /// The path of a descriptor of this process.
    fn push_descriptor(&mut self, descriptor: c_int) -> Option<()> {
        self.push(b"/proc/self/fd/")?;
        let mut digits = [0; 10];
        let mut first = digits.len();
        let mut rest = u32::try_from(descriptor).ok()?;
        while rest > 0 || first == digits.len() {
            first = first.checked_sub(1)?;
            *digits.get_mut(first)? = b'0'.wrapping_add((rest % 10) as u8);
            rest /= 10;
        }
        self.push(digits.get(first..)?)
    }
}

unsafe fn make_file(directory: c_int, path: &CStr, mode: c_uint) -> Option<()> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: reads a string; the descriptor is closed at once.
    unsafe {
        let file = valid(libc::openat(directory, path.as_ptr(), flags, mode))?;
        libc::close(file);
    }
    Some(())
}

/// Sends how it went, and the first descriptors.
fn tell(link: c_int, step: Step, has_memory: u8, error: c_int, descriptors: &[c_int; MOST_DESCRIPTORS], count: usize) {
    let [a, b, c, d] = error.to_ne_bytes();
    let mut report = [step as u8, has_memory, a, b, c, d];
    let mut control: ControlBuffer = [0; 2 + MOST_DESCRIPTORS / 2];
    let size = (count.min(MOST_DESCRIPTORS) * size_of::<c_int>()) as c_uint;
    // SAFETY: the buffers live through the call; the control buffer is large enough and aligned.
    unsafe {
        let mut part = libc::iovec { iov_base: report.as_mut_ptr().cast(), iov_len: report.len() };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if size > 0 {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size) as _;
            ptr::copy_nonoverlapping(descriptors.as_ptr().cast::<u8>(), libc::CMSG_DATA(header), size as usize);
        }
        // Not the C library's function, which not every caller could use.
        libc::syscall(libc::SYS_sendmsg, link, &raw const message, libc::MSG_NOSIGNAL);
    }
}
