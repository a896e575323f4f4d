//! What the keeper reads from `/proc`, with buffers on the stack. As in `keeper.rs`, nothing may allocate, lock or panic.

use std::ffi::CStr;

use libc::{c_int, c_uint, c_void, pid_t};

/// The processes of this machine, through files that are opened once. -1 stands for one that could not be.
pub(super) struct ProcessTable {
    children: c_int,
    all: c_int,
}

impl ProcessTable {
    /// Opens what there is. The children are those of the thread that calls this.
    pub(super) fn open() -> Self {
        Self {
            children: open(c"/proc/thread-self/children", 0),
            // In that of another namespace we have another id, and so has everybody else.
            all: if is_proc_ours() { open(c"/proc", libc::O_DIRECTORY) } else { -1 },
        }
    }

    pub(super) fn descriptors(&self) -> [c_int; 2] {
        [self.children, self.all]
    }

    /// Calls with each child of ours; says whether the kernel keeps a list of them.
    pub(super) fn for_each_child(&self, mut child: impl FnMut(pid_t)) -> bool {
        let mut number = 0;
        rewind(self.children)
            && read_bytes(self.children, |byte| match byte {
                b'0'..=b'9' => number = push_digit(number, byte),
                _ if number > 0 => {
                    child(number);
                    number = 0;
                }
                _ => {}
            })
    }

    /// Calls with every process that we can see.
    pub(super) fn for_each_process(&self, process: impl FnMut(pid_t)) {
        if rewind(self.all) {
            for_each_number(self.all, process);
        }
    }
}

/// Calls with each of our descriptors; says whether they could be listed.
pub(super) fn for_each_descriptor(mut each: impl FnMut(c_int)) -> bool {
    let list = open(c"/proc/self/fd", libc::O_DIRECTORY);
    if list == -1 {
        return false;
    }
    // The list is read through a descriptor that must stay for the while; closing others does not disturb it.
    for_each_number(list, |descriptor| {
        if descriptor != list {
            each(descriptor);
        }
    });
    close(list);
    true
}

fn is_proc_ours() -> bool {
    let mut target = [0u8; 16];
    // SAFETY: writes to a local buffer.
    let length = unsafe { libc::readlink(c"/proc/self".as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    let digits = target.iter().take(length.max(0) as usize);
    // SAFETY: asks for a number.
    digits.fold(0, |number, digit| push_digit(number, *digit)) == unsafe { libc::getpid() }
}

/// How many generations a process is away from us, its ancestor; `None` if we are not.
pub(super) fn is_descendant(pid: pid_t) -> Option<u32> {
    // SAFETY: asks for a number.
    let us = unsafe { libc::getpid() };
    let mut ancestor = pid;
    // The limit is for a table that changes while it is read.
    for generations in 1..10_000 {
        match parent_of(ancestor)? {
            parent if parent == us => return Some(generations),
            0 | 1 => return None,
            parent => ancestor = parent,
        }
    }
    None
}

/// Reads a line like `42 (name) S 1 42 42 ...`. The name may contain anything, also a bracket; the rest may not.
fn parent_of(pid: pid_t) -> Option<pid_t> {
    let mut fields_after_name = 0;
    let mut parent = 0;
    let path = path_of(pid);
    let stat = open(CStr::from_bytes_until_nul(&path).ok()?, 0);
    if stat == -1 {
        return None;
    }
    let read = read_bytes(stat, |byte| match byte {
        b')' => (fields_after_name, parent) = (0, 0),
        b' ' => fields_after_name += 1,
        b'0'..=b'9' if fields_after_name == 2 => parent = push_digit(parent, byte),
        _ => {}
    });
    close(stat);
    read.then_some(parent)
}

/// `/proc/<pid>/stat`, with a nul byte at the end.
fn path_of(pid: pid_t) -> [u8; 32] {
    let mut digits = [0; 10];
    let mut rest = pid.unsigned_abs();
    let mut count = 0;
    for digit in &mut digits {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    let mut path = [0; 32];
    let text = b"/proc/".iter().chain(digits.iter().take(count).rev()).chain(b"/stat");
    path.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
    path
}

/// Closes every descriptor but these. -1 among them is none.
pub(super) fn close_all_but(mut kept: [c_int; 4]) {
    kept.sort_unstable();
    let close_range = |first: i64, last: i64| {
        // SAFETY: closes descriptors. Whoever they belonged to is not in this process.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first as c_uint, last as c_uint, 0) } == 0
    };
    let mut first = 0;
    let mut all_closed = true;
    for kept in kept.into_iter().filter(|kept| *kept >= 0).map(i64::from) {
        all_closed &= close_range(first, kept - 1);
        first = kept + 1;
    }
    all_closed &= close_range(first, i64::from(c_uint::MAX));
    // Kernels before 5.9 have no such call.
    if !all_closed {
        for_each_descriptor(|descriptor| {
            if !kept.contains(&descriptor) {
                close(descriptor);
            }
        });
    }
}

/// Gives back the memory of the program that the keeper is a copy of, except the stack it runs on and the thread's own
/// variables (`errno`). Otherwise every page that our program writes to would exist twice, once for each.
///
/// The keeper uses nothing of it. What is mapped from files stays: code, and the tables to call the C library.
pub(super) fn forget_memory() {
    let stack = 0u8;
    // SAFETY: gives the address of a variable.
    let own = [(&raw const stack) as usize, unsafe { libc::__errno_location() } as usize];
    let maps = open(c"/proc/self/maps", 0);
    let mut mapping = Mapping::default();
    read_bytes(maps, |byte| {
        mapping.push(byte);
        if byte == b'\n' {
            let range = mapping.start..mapping.end;
            if mapping.is_private_memory() && !own.iter().any(|address| range.contains(address)) {
                // SAFETY: nothing in this process uses that memory any more.
                unsafe { libc::madvise(range.start as *mut c_void, range.len(), libc::MADV_DONTNEED) };
            }
            mapping = Mapping::default();
        }
    });
    close(maps);
}

/// A line like `7f00-7f10 rw-p 00000000 00:00 0 [heap]`, read byte by byte.
#[derive(Default)]
struct Mapping {
    start: usize,
    end: usize,
    field: u32,
    is_writable: bool,
    is_private: bool,
    is_file: bool,
}

impl Mapping {
    fn push(&mut self, byte: u8) {
        match (self.field, byte) {
            (0, b'-') => self.start = std::mem::take(&mut self.end),
            (0, b'0'..=b'9') => self.end = self.end << 4 | usize::from(byte - b'0'),
            (0, b'a'..=b'f') => self.end = self.end << 4 | usize::from(byte - b'a' + 10),
            (1, b'w') => self.is_writable = true,
            (1, b'p') => self.is_private = true,
            (4, b'1'..=b'9') => self.is_file = true,
            (0..=4, b' ') => self.field += 1,
            _ => {}
        }
    }

    fn is_private_memory(&self) -> bool {
        self.is_writable && self.is_private && !self.is_file
    }
}

/// Opens a file to read it; -1 if that fails.
fn open(path: &CStr, flags: c_int) -> c_int {
    // SAFETY: a system call on a C string.
    unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | flags) }
}

fn close(descriptor: c_int) {
    // SAFETY: closes a descriptor that is nobody else's. -1 is none, which the kernel says.
    unsafe { libc::close(descriptor) };
}

/// Goes back to the beginning of a file; says whether there is one.
fn rewind(descriptor: c_int) -> bool {
    // SAFETY: a system call on numbers.
    unsafe { libc::lseek(descriptor, 0, libc::SEEK_SET) == 0 }
}

/// Reads a file byte by byte to its end; says whether that went well.
fn read_bytes(descriptor: c_int, mut each: impl FnMut(u8)) -> bool {
    let mut buffer = [0u8; 1024];
    loop {
        // SAFETY: writes to a local buffer.
        match unsafe { libc::read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) } {
            length @ 1.. => buffer.iter().take(length as usize).for_each(|byte| each(*byte)),
            end => return end == 0,
        }
    }
}

/// Calls with each entry of a directory whose name is a number.
fn for_each_number(directory: c_int, mut each: impl FnMut(c_int)) {
    /// Where the length of an entry and its name are in the kernel's `linux_dirent64`.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut buffer = [0u64; 256];
    loop {
        // SAFETY: writes to a local buffer.
        let length =
            unsafe { libc::syscall(libc::SYS_getdents64, directory, buffer.as_mut_ptr(), size_of_val(&buffer)) };
        if length <= 0 {
            break;
        }
        // SAFETY: the kernel has filled so many bytes of the buffer, which is borrowed for no longer than this round.
        let mut rest = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length as usize) };
        while let Some([low, high]) = rest.get(LENGTH..LENGTH + 2) {
            let entry_length = usize::from(u16::from_ne_bytes([*low, *high]));
            let name = rest.get(NAME..).unwrap_or_default().iter().take_while(|byte| **byte != 0);
            let is_number = name.clone().all(u8::is_ascii_digit);
            if is_number {
                each(name.fold(0, |number, digit| push_digit(number, *digit)));
            }
            rest = rest.get(entry_length.max(1)..).unwrap_or_default();
        }
    }
}

fn push_digit(number: c_int, digit: u8) -> c_int {
    number.wrapping_mul(10).wrapping_add(c_int::from(digit.wrapping_sub(b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_by_their_parents() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as pid_t;
        let mut seen = 0;
        let table = ProcessTable::open();
        table.for_each_process(|process| seen += i32::from(process == pid));
        assert_eq!((seen, is_descendant(pid)), (1, Some(1)));
        assert_eq!(parent_of(pid), Some(std::process::id() as pid_t));
        assert_eq!(is_descendant(1), None);
        // It can be read again, through the same descriptor.
        table.for_each_process(|process| seen += i32::from(process == pid));
        assert_eq!(seen, 2);
        table.descriptors().into_iter().for_each(close);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(parent_of(pid), None);
    }

    #[test]
    fn children_are_listed_by_the_kernel() {
        // Of the calling thread only, which in the keeper is the only one.
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let table = ProcessTable::open();
        for _ in 0..2 {
            let mut children = Vec::new();
            if table.for_each_child(|child| children.push(child)) {
                assert_eq!(children, [child.id() as pid_t]);
            }
        }
        table.descriptors().into_iter().for_each(close);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_parent_is_found_past_an_odd_name() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: renames this thread.
                unsafe { libc::prctl(libc::PR_SET_NAME, c"a) S 1 (b) 2 3".as_ptr()) };
                // SAFETY: asks for a number.
                let thread = unsafe { libc::gettid() };
                // SAFETY: asks for a number.
                assert_eq!(parent_of(thread), Some(unsafe { libc::getppid() }));
            });
        });
    }

    #[test]
    fn only_private_memory_of_no_file_is_forgotten() {
        let check = |line: &str, expected: bool| {
            let mut mapping = Mapping::default();
            line.bytes().for_each(|byte| mapping.push(byte));
            assert_eq!((mapping.start, mapping.end), (0x7f00, 0x8a10), "{line}");
            assert_eq!(mapping.is_private_memory(), expected, "{line}");
        };
        check("7f00-8a10 rw-p 00000000 00:00 0    [heap]\n", true);
        check("7f00-8a10 rw-p 00001000 00:00 0\n", true);
        check("7f00-8a10 rw-p 00001000 fe:01 10                  /lib/libc.so.6\n", false);
        check("7f00-8a10 r--p 00000000 00:00 0    [vvar]\n", false);
        check("7f00-8a10 rw-s 00000000 00:00 0\n", false);
    }
}
