//! The filter of system calls: what would let a process out of its sandbox, or do harm to the machine around it.
//!
//! It names what is denied. A list of what is allowed would have to know every program; what Landlock confines needs no
//! filter. Denied calls fail with an error, so that programs can do without or say what they miss.

use std::{io, ptr};

use libc::{c_long, c_uint, sock_filter};

use super::Network;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Numbers from here on are the x32 variant of system calls, under which every denied one would have another number.
const X32: u32 = 0x4000_0000;

/// Denied whatever the arguments are.
const DENIED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Other views of the files. Handles lead to files without a path.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The user's keys in the kernel.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Parts of the kernel that get around filters, or are known for their holes.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `open_tree` with attributes, since Linux 6.15; the same number everywhere.
const OPEN_TREE_ATTR: c_long = 467;

/// Denied unless an argument, by its index, is 0, which means the caller. With another number they reach every process of
/// the same user: whoever ends our processes could be starved, or be kept from opening a file.
const ONLY_ITSELF: &[(c_long, u32)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];

/// The same where the first argument says whether the second is a process, a group or a user: only a process will do.
const ONLY_ITSELF_BY_KIND: &[(c_long, u32)] =
    &[(libc::SYS_setpriority, PRIO_PROCESS), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
/// From `linux/resource.h` and `linux/ioprio.h`.
const PRIO_PROCESS: u32 = 0;
const IOPRIO_WHO_PROCESS: u32 = 1;

/// Flags of `clone` that make a namespace. There is one more, for time, but `clone` cannot make that.
const NAMESPACES: c_uint = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as c_uint;

/// Where the kernel puts the parts of a call, `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// The lower half of an argument, which is all that the kernel looks at in those below.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const fn fail(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error as u32
}

const fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

const fn give(action: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: action }
}

/// Goes on if the test holds, skips some instructions if it does not.
const fn test(test: u32, value: u32, otherwise_skip: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt: 0, jf: otherwise_skip, k: value }
}

/// Makes the filter.
pub(super) fn filter(network: Network) -> Vec<sock_filter> {
    // Other architectures have other numbers.
    let skip_if_equal = sock_filter { jt: 1, ..test(libc::BPF_JEQ, ARCHITECTURE, 0) };
    let mut filter = vec![load(ARCH), skip_if_equal, give(libc::SECCOMP_RET_KILL_PROCESS), load(NUMBER)];
    if cfg!(target_arch = "x86_64") {
        filter.extend([test(libc::BPF_JGE, X32, 1), give(fail(libc::ENOSYS))]);
    }
    for number in DENIED {
        filter.extend([test(libc::BPF_JEQ, *number as u32, 1), give(fail(libc::EPERM))]);
    }
    // Its flags are behind a pointer, where no filter can look. Without it, programs use `clone`.
    filter.extend([test(libc::BPF_JEQ, libc::SYS_clone3 as u32, 1), give(fail(libc::ENOSYS))]);
    filter.extend([
        test(libc::BPF_JEQ, libc::SYS_clone as u32, 4),
        load(argument(0)),
        test(libc::BPF_JSET, NAMESPACES, 1),
        give(fail(libc::EPERM)),
        give(ALLOW),
    ]);
    // Both put words into the mouth of whoever sits at the terminal.
    filter.extend([
        test(libc::BPF_JEQ, libc::SYS_ioctl as u32, 6),
        load(argument(1)),
        test(libc::BPF_JEQ, libc::TIOCSTI as u32, 1),
        give(fail(libc::EPERM)),
        test(libc::BPF_JEQ, libc::TIOCLINUX as u32, 1),
        give(fail(libc::EPERM)),
        give(ALLOW),
    ]);
    for (number, index) in ONLY_ITSELF {
        filter.extend([
            test(libc::BPF_JEQ, *number as u32, 4),
            load(argument(*index)),
            test(libc::BPF_JEQ, 0, 1),
            give(ALLOW),
            give(fail(libc::EPERM)),
        ]);
    }
    for (number, kind) in ONLY_ITSELF_BY_KIND {
        filter.extend([
            test(libc::BPF_JEQ, *number as u32, 6),
            load(argument(0)),
            test(libc::BPF_JEQ, *kind, 3),
            load(argument(1)),
            test(libc::BPF_JEQ, 0, 1),
            give(ALLOW),
            give(fail(libc::EPERM)),
        ]);
    }
    if network == Network::Offline {
        // None at all: a filter cannot see where a Unix socket leads. Pairs come from another call, and lead nowhere.
        filter.extend([test(libc::BPF_JEQ, libc::SYS_socket as u32, 1), give(fail(libc::EACCES))]);
    }
    filter.push(give(ALLOW));
    filter
}

/// Asks whether the kernel knows filters, and what ours ends in.
pub(super) fn check() -> io::Result<()> {
    let action: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: reads one number.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts the filter on the calling thread. Only makes a system call.
pub(super) fn apply(filter: &[sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: ptr::from_ref(filter).cast_mut().cast() };
    // SAFETY: reads the program, which lives during the call; the kernel does not write to it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
