//! The user namespace that an ordinary user needs to make all others: in it, nobody but themselves is known.
//!
//! Whoever makes one has to write to files in `/proc` that a program which nobody may look into does not own. So a process
//! of its own does it, which forgets everything before it lets others look: it is a copy of us, and we hold keys.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    ptr,
    sync::OnceLock,
};

use libc::{c_int, c_long, c_uint, c_void};

use super::{Failure, MOST_DESCRIPTORS, Step, done, errno, receive_descriptors, socket_pair, tell, valid, wait_for};

/// Room for the stack of the process and for what it is told.
const ROOM: usize = 256 << 10;

/// What the process is told. It lies in the memory that it keeps.
struct Task {
    link: c_int,
    memory: usize,
    user_map: Map,
    group_map: Map,
}

/// A line such as `1000 1000 1`.
struct Map {
    text: [u8; 32],
    length: usize,
}

impl Map {
    /// Who is known by the same number inside and outside.
    fn same(id: u32) -> Self {
        let (mut text, line) = ([0; 32], format!("{id} {id} 1"));
        let length = line.len().min(text.len());
        text[..length].copy_from_slice(&line.as_bytes()[..length]);
        Self { text, length }
    }

    fn line(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or_default()
    }
}

/// The one of this program, made when it is first needed. Every sandbox is in it: what keeps them apart are the namespaces
/// beneath it, and whoever runs in one has no rights over it.
pub(super) fn ours() -> Result<&'static OwnedFd, Failure> {
    static MADE: OnceLock<Result<OwnedFd, Failure>> = OnceLock::new();
    MADE.get_or_init(make).as_ref().map_err(|failure| *failure)
}

fn make() -> Result<OwnedFd, Failure> {
    let at_start = |error: io::Error| Failure { step: Step::Start, error: error.raw_os_error().unwrap_or(libc::EIO) };
    let (ours, theirs) = socket_pair().map_err(at_start)?;
    // SAFETY: asks for numbers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: new memory; the task is at its beginning and the stack begins at its end. The child has its own copy of it,
    // and ours is given back.
    let pid = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), ROOM, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(at_start(io::Error::last_os_error()));
        }
        let task = memory.cast::<Task>();
        let (user_map, group_map) = (Map::same(user), Map::same(group));
        task.write(Task { link: theirs.as_raw_fd(), memory: memory as usize, user_map, group_map });
        // Nobody is told of its end by a signal: it is ours to wait for.
        let pid = libc::clone(run, memory.byte_add(ROOM), 0, memory);
        let error = io::Error::last_os_error();
        libc::munmap(memory, ROOM);
        if pid == -1 {
            return Err(at_start(error));
        }
        pid
    };
    drop(theirs);
    let told = receive_descriptors(&ours);
    wait_for(pid);
    told?.1.into_iter().next().ok_or(Failure { step: Step::Tell, error: libc::EMFILE })
}

/// Everything from here on runs in the new process: no allocation, no lock, no panic.
extern "C" fn run(task: *mut c_void) -> c_int {
    // SAFETY: it was written before the process was made, into memory that the process keeps.
    let task = unsafe { &*task.cast::<Task>() };
    let mut step = Step::Start;
    let (descriptor, error) = match build(task, &mut step) {
        Some(descriptor) => (descriptor, 0),
        None => (-1, errno().max(1)),
    };
    let mut descriptors = [-1; MOST_DESCRIPTORS];
    descriptors[0] = descriptor;
    tell(task.link, step, 0, error, &descriptors, usize::from(descriptor >= 0));
    // SAFETY: ends the process, without what a program does at its end.
    unsafe { libc::_exit(0) }
}

fn build(task: &Task, step: &mut Step) -> Option<c_int> {
    // SAFETY: system calls on constants, on the process itself and on what it keeps.
    unsafe {
        close_all_but(task.link)?;
        forget_all_but(task.memory)?;
        *step = Step::Unshare;
        done(libc::unshare(libc::CLONE_NEWUSER))?;
        *step = Step::Map;
        // Here is nothing left to see.
        done(libc::prctl(libc::PR_SET_DUMPABLE, 1))?;
        write_to(c"/proc/self/setgroups", b"deny")?;
        write_to(c"/proc/self/uid_map", task.user_map.line())?;
        write_to(c"/proc/self/gid_map", task.group_map.line())?;
        *step = Step::Tell;
        valid(open(c"/proc/self/ns/user", libc::O_RDONLY))
    }
}

unsafe fn close_all_but(kept: c_int) -> Option<()> {
    let close = |first: c_int, last: c_uint| {
        // SAFETY: closes descriptors. Whoever they belonged to is not in this process.
        first as c_uint > last || unsafe { libc::syscall(libc::SYS_close_range, first as c_uint, last, 0) } == 0
    };
    let below = kept == 0 || close(0, (kept as c_uint).wrapping_sub(1));
    (below && close(kept.wrapping_add(1), c_uint::MAX)).then_some(())
}

/// Empties all memory that is not mapped from a file, but for the piece that begins here. What is mapped from files stays:
/// code, and the tables to call the C library.
///
/// The variables of the thread are emptied too. `errno` is among them, and works as before; much of the C library does not.
unsafe fn forget_all_but(kept: usize) -> Option<()> {
    // SAFETY: system calls on a local buffer, on the list of our own memory, and on memory that nothing here uses.
    unsafe {
        let maps = valid(open(c"/proc/self/maps", libc::O_RDONLY))?;
        let mut mapping = Mapping::default();
        let mut buffer = [0u8; 4096];
        loop {
            let length = libc::syscall(libc::SYS_read, maps, buffer.as_mut_ptr(), buffer.len());
            if length <= 0 {
                libc::syscall(libc::SYS_close, maps);
                return (length == 0).then_some(());
            }
            for byte in buffer.iter().take(length as usize) {
                mapping.push(*byte);
                if *byte == b'\n' {
                    if mapping.is_memory() {
                        // The kernel may have joined what is kept with what is around it.
                        let end = kept.wrapping_add(ROOM);
                        forget(mapping.start, mapping.end.min(kept))?;
                        forget(mapping.start.max(end), mapping.end)?;
                    }
                    mapping = Mapping::default();
                }
            }
        }
    }
}

unsafe fn forget(start: usize, end: usize) -> Option<()> {
    if start >= end {
        return Some(());
    }
    // SAFETY: nothing in this process uses that memory any more.
    done(unsafe { libc::madvise(start as *mut c_void, end.wrapping_sub(start), libc::MADV_DONTNEED) })
}

// The C library's own functions for these look at variables of the thread, to see whether it is to be ended.

unsafe fn open(path: &CStr, flags: c_int) -> c_int {
    // SAFETY: reads a string.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags | libc::O_CLOEXEC) as c_int }
}

unsafe fn write_to(path: &CStr, content: &[u8]) -> Option<()> {
    // SAFETY: reads a string and the content. The descriptor goes with the process.
    unsafe {
        let file = valid(open(path, libc::O_WRONLY))?;
        let written = libc::syscall(libc::SYS_write, file, content.as_ptr(), content.len());
        (written == content.len() as c_long).then_some(())
    }
}

/// A line like `7f00-7f10 rw-p 00000000 00:00 0 [heap]`, read byte by byte.
#[derive(Default)]
struct Mapping {
    start: usize,
    end: usize,
    field: u32,
    is_writable: bool,
    is_file: bool,
}

impl Mapping {
    fn push(&mut self, byte: u8) {
        match (self.field, byte) {
            (0, b'-') => (self.start, self.end) = (self.end, 0),
            (0, b'0'..=b'9') => self.end = self.end << 4 | usize::from(byte.wrapping_sub(b'0')),
            (0, b'a'..=b'f') => self.end = self.end << 4 | usize::from(byte.wrapping_sub(b'a').wrapping_add(10)),
            (1, b'w') => self.is_writable = true,
            (4, b'1'..=b'9') => self.is_file = true,
            (0..=4, b' ') => self.field = self.field.wrapping_add(1),
            _ => {}
        }
    }

    /// Guards between stacks and what the kernel maps have nothing of ours in them.
    fn is_memory(&self) -> bool {
        self.is_writable && !self.is_file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the process of the test is told: addresses at which it looks.
    struct Looks {
        memory: usize,
        at: [usize; 4],
    }

    extern "C" fn look(looks: *mut c_void) -> c_int {
        // SAFETY: the memory is there, if perhaps emptied; what it is told lies in what is kept.
        unsafe {
            let looks = &*looks.cast::<Looks>();
            if forget_all_but(looks.memory).is_none() {
                libc::_exit(100);
            }
            let left = looks.at.iter().filter(|address| ptr::read_volatile(**address as *const u8) != 0);
            libc::_exit(left.count() as c_int)
        }
    }

    #[test]
    fn nothing_of_our_memory_is_left_in_the_process_that_others_may_look_into() {
        let (small, large) = (vec![b'k'; 32], vec![b'k'; 4 << 20]);
        let on_the_stack = [b'k'; 64];
        let variable = std::env::vars_os().next().map(|_| {
            unsafe extern "C" {
                static environ: *const *const u8;
            }
            // SAFETY: there is a variable, and nobody removes it here.
            unsafe { *environ as usize }
        });
        std::hint::black_box((&small, &large, &on_the_stack));
        let heap = small.as_ptr() as usize;
        let at = [heap, large.as_ptr() as usize + 4096, (&raw const on_the_stack) as usize, variable.unwrap_or(heap)];
        // SAFETY: as in `make`; all that is looked at lives until the process has ended.
        let status = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let memory = libc::mmap(ptr::null_mut(), ROOM, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert!(memory != libc::MAP_FAILED);
            memory.cast::<Looks>().write(Looks { memory: memory as usize, at });
            let pid = libc::clone(look, memory.byte_add(ROOM), 0, memory);
            let mut status = -1;
            assert_eq!(libc::waitpid(pid, &mut status, libc::__WALL), pid);
            libc::munmap(memory, ROOM);
            status
        };
        drop((small, large));
        assert_eq!(
            (libc::WIFEXITED(status), libc::WEXITSTATUS(status)),
            (true, 0),
            "places with something left in them"
        );
    }
}
