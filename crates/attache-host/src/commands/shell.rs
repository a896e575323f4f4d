//! The shell that reads lines on this machine.
//!
//! On Unix that is `sh`. On Windows it is the `sh` of Git where Git is installed, because models write for it and our rules
//! know its grammar; else PowerShell, else `cmd`. It is started by its full path, which is where installers put it, and never
//! looked for in the directory that a command runs in.

use std::{path::PathBuf, sync::OnceLock};

/// A shell that reads lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// What it reads.
    pub kind: ShellKind,
    /// The program: on Unix a name that is looked up, on Windows a full path.
    pub program: PathBuf,
}

/// What a shell reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellKind {
    /// The language of `sh`, which rules know.
    Posix,
    /// That of PowerShell. No rule allows a line of it.
    PowerShell,
    /// That of `cmd`. No rule allows a line of it.
    Cmd,
}

impl ShellKind {
    /// What a model is told that lines are written for.
    pub fn name(self) -> &'static str {
        match self {
            ShellKind::Posix => "sh",
            ShellKind::PowerShell => "PowerShell",
            ShellKind::Cmd => "cmd",
        }
    }
}

static SHELL: OnceLock<Shell> = OnceLock::new();

/// The shell that reads lines here. It stays the same for as long as the program runs.
pub fn shell() -> &'static Shell {
    SHELL.get_or_init(sys::find)
}

/// Has lines read by another shell, for a person who has set one. To be called before the first command; whether it was early
/// enough is the answer.
pub fn use_shell(shell: Shell) -> bool {
    SHELL.set(shell).is_ok()
}

impl Shell {
    /// The words that have a line read by this shell.
    pub(super) fn words(&self, line: &str) -> Vec<String> {
        let options: &[&str] = match self.kind {
            ShellKind::Posix => &["-c"],
            // Without the person's settings, which may change what words mean, and without questions.
            ShellKind::PowerShell => &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"],
            // Without what the registry has it run first; the quotes around the line are taken off, and no others.
            ShellKind::Cmd => &["/d", "/s", "/c"],
        };
        let program = self.program.to_string_lossy().into_owned();
        let options = options.iter().map(|option| (*option).to_owned());
        std::iter::once(program).chain(options).chain([line.to_owned()]).collect()
    }
}

#[cfg(not(windows))]
mod sys {
    use super::*;

    pub(super) fn find() -> Shell {
        Shell { kind: ShellKind::Posix, program: "sh".into() }
    }
}

#[cfg(windows)]
mod sys {
    use std::{
        env,
        ffi::OsString,
        os::windows::ffi::OsStringExt as _,
        path::{Path, PathBuf},
    };

    use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;

    use super::*;

    pub(super) fn find() -> Shell {
        let system = system_directory();
        let posix = gits().map(|git| (ShellKind::Posix, git.join(r"bin\sh.exe")));
        let new = programs().map(|programs| (ShellKind::PowerShell, programs.join(r"PowerShell\7\pwsh.exe")));
        let old = (ShellKind::PowerShell, system.join(r"WindowsPowerShell\v1.0\powershell.exe"));
        let last = (ShellKind::Cmd, system.join("cmd.exe"));
        let mut all = posix.chain(new).chain([old]).filter(|(_, program)| program.is_file());
        let (kind, program) = all.next().unwrap_or(last);
        Shell { kind, program }
    }

    /// Where programs are installed, for everybody and for one person.
    fn programs() -> impl Iterator<Item = PathBuf> {
        let named = ["ProgramW6432", "ProgramFiles"].into_iter().filter_map(env::var_os).map(PathBuf::from);
        let own = env::var_os("LOCALAPPDATA").map(|local| PathBuf::from(local).join("Programs"));
        named.chain(own).filter(|path| path.is_absolute())
    }

    /// Where Git may be: where its installer puts it, or around the `git` that is on the PATH.
    fn gits() -> impl Iterator<Item = PathBuf> {
        let search_path = env::var_os("PATH").unwrap_or_default();
        let directories: Vec<PathBuf> = env::split_paths(&search_path).collect();
        let around = directories.into_iter().filter(|directory| {
            let is_its = directory.file_name().is_some_and(|name| name.eq_ignore_ascii_case("cmd"));
            directory.is_absolute() && is_its && directory.join("git.exe").is_file()
        });
        let around = around.filter_map(|directory| directory.parent().map(Path::to_path_buf));
        programs().map(|programs| programs.join("Git")).chain(around)
    }

    /// Asked of the system, because a variable may say anything.
    pub(super) fn system_directory() -> PathBuf {
        let mut buffer = [0u16; 512];
        // SAFETY: the buffer has as many characters as we say.
        let length = unsafe { GetSystemDirectoryW(buffer.as_mut_ptr(), buffer.len() as u32) } as usize;
        match buffer.get(..length) {
            Some(path) if length > 0 => OsString::from_wide(path).into(),
            _ => r"C:\Windows\System32".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_word_for_every_shell() {
        let words = |kind| Shell { kind, program: "shell".into() }.words("echo 'a b' | x");
        assert_eq!(words(ShellKind::Posix), ["shell", "-c", "echo 'a b' | x"]);
        assert_eq!(words(ShellKind::Cmd), ["shell", "/d", "/s", "/c", "echo 'a b' | x"]);
        let words = words(ShellKind::PowerShell);
        assert_eq!((words[0].as_str(), words.last().map(String::as_str)), ("shell", Some("echo 'a b' | x")));
        assert!(words.contains(&"-NoProfile".to_owned()) && words.contains(&"-NonInteractive".to_owned()));
    }

    #[test]
    fn the_shell_is_found_where_it_belongs() {
        let shell = shell();
        assert_eq!(shell.program.is_absolute(), cfg!(windows), "{shell:?}");
        assert_eq!(shell.kind == ShellKind::Posix, shell.program.file_stem() == Some("sh".as_ref()));
        assert!(!use_shell(shell.clone()), "it is settled");
    }
}
