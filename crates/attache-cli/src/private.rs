//! Keeps the secrets of this process from other programs of the same user, which the commands of an agent are.
//!
//! Keys come in the environment, and the kernel shows that to every program of the user, as it was when we were started:
//! `/proc/<pid>/environ`. So the variables are moved to memory of our own, and their old place is overwritten. That memory,
//! our descriptors and the rest are closed to others by not being dumpable; this also means no core dumps, and no debugger
//! but root's. Root can read everything. Outside of Linux nothing is done: other users' programs are kept out there by the
//! system, and those of the same user are not.

/// Closes this process off. To be called at the start of `main`, while there is one thread.
#[cfg(target_os = "linux")]
pub(crate) fn close_off() {
    // SAFETY: there is one thread, so nobody reads the environment meanwhile.
    unsafe { move_environment() };
    // SAFETY: sets a flag of this process. If a sandbox forbids it, we are as open as any other program.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0 as libc::c_ulong) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn close_off() {}

/// Moves every variable to memory that the kernel does not show, and overwrites the place where it was.
///
/// `std::env::remove_var` alone would leave the text in its place. What the loader of shared libraries reads (`LD_…`) is
/// left as it is: it may have kept pointers to it.
///
/// # Safety
///
/// No other thread may run.
#[cfg(target_os = "linux")]
unsafe fn move_environment() {
    use std::collections::HashSet;
    use std::ffi::{CStr, OsStr, OsString, c_char};
    use std::os::unix::ffi::OsStrExt;

    unsafe extern "C" {
        /// What the C library and the standard library read variables from: pointers to texts `NAME=value`, null last.
        static environ: *const *mut c_char;
    }

    let mut variables: Vec<(OsString, OsString, *mut u8, usize)> = Vec::new();
    // SAFETY: the list ends with null, each text with a nul byte, and nobody changes them, as the caller has promised.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            // A name is not empty, though it may begin with the sign.
            if let Some(at) = text.iter().skip(1).position(|byte| *byte == b'=') {
                let (name, value) = (&text[..at + 1], &text[at + 2..]);
                if !name.starts_with(b"LD_") && !name.contains(&b'=') {
                    let old = (*entry).cast::<u8>().add(at + 2);
                    let copy = |bytes| OsStr::from_bytes(bytes).to_owned();
                    variables.push((copy(name), copy(value), old, value.len()));
                }
            }
            entry = entry.add(1);
        }
    }
    let mut moved = HashSet::new();
    for (name, value, _, _) in &variables {
        // The first one of a name is the one that counts.
        if moved.insert(name) {
            // SAFETY: there is one thread. Removed first, because setting it would leave further ones of that name.
            unsafe {
                std::env::remove_var(name);
                std::env::set_var(name, value);
            }
        }
    }
    for (_, _, old, length) in variables {
        for at in 0..length {
            // SAFETY: inside of the old text, which is writable memory of this process, and which nothing points to any
            // more. Volatile, because nobody in this program will read it.
            unsafe { old.add(at).write_volatile(0) };
        }
    }
}
