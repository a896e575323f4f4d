//! A command as it is written.

use attache::process;

use super::shell::{ShellKind, shell};

/// A command, as a line for a shell or as the words of a program's start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A line that the [`shell`] of this machine reads: `sh`, unless this is Windows without Git.
    Line(String),
    /// A line that another shell reads, or `sh` in another way.
    Shell {
        /// The shell, such as `/bin/bash`.
        shell: String,
        /// How it is told, such as `-lc`.
        flag: String,
        /// The line.
        line: String,
    },
    /// A program and its arguments, which no shell reads.
    Words(Vec<String>),
}

/// Shells whose lines are read alike, as far as we read them.
const SHELLS: &[&str] = &["bash", "dash", "sh", "zsh"];
/// Where they are, or an empty name for wherever PATH has them.
const DIRECTORIES: &[&str] = &["", "/bin/", "/usr/bin/"];

impl Command {
    /// A command from the words of a program's start. A shell that is given a line is that line.
    pub fn from_words(words: Vec<String>) -> Self {
        let is_shell = |program: &str| {
            let names = DIRECTORIES.iter().filter_map(|directory| program.strip_prefix(directory));
            names.into_iter().any(|name| SHELLS.contains(&name))
        };
        match words.as_slice() {
            // Where lines are read by another shell, it would not be the same line.
            [name, flag, line] if name == "sh" && flag == "-c" && shell().kind == ShellKind::Posix => {
                Command::Line(line.clone())
            }
            [shell, flag, line] if matches!(flag.as_str(), "-c" | "-lc") && is_shell(shell) => {
                Command::Shell { shell: shell.clone(), flag: flag.clone(), line: line.clone() }
            }
            _ => Command::Words(words),
        }
    }

    /// A command from one text, as some agents send it: a program's name, or a line if there is more to it than that.
    ///
    /// It does not depend on what files there are: `ls ./x` is a line, also where a file is called so.
    ///
    /// ```
    /// use attache_host::commands::Command;
    ///
    /// assert_eq!(Command::from_text("make"), Command::Words(vec!["make".into()]));
    /// assert_eq!(Command::from_text("make all"), Command::Line("make all".into()));
    /// ```
    pub fn from_text(text: &str) -> Self {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,".contains(c) || cfg!(windows) && c == '\\';
        match text.chars().all(is_plain) {
            true => Command::Words(vec![text.to_owned()]),
            false => Command::Line(text.to_owned()),
        }
    }

    /// The line that a shell reads, if one does.
    pub fn line(&self) -> Option<&str> {
        match self {
            Command::Line(line) | Command::Shell { line, .. } => Some(line),
            Command::Words(_) => None,
        }
    }

    /// Whether it has a line for a shell whose grammar rules do not know.
    ///
    /// On Windows a shell that is named in another way than by us may be any: WSL calls one `bash`, too.
    pub(crate) fn is_for_other_shell(&self) -> bool {
        match self {
            Command::Line(_) => shell().kind != ShellKind::Posix,
            Command::Shell { .. } => cfg!(windows),
            Command::Words(_) => false,
        }
    }

    /// What is executed, as a process.
    pub(super) fn process(&self) -> process::Command {
        #[cfg(windows)]
        if let (Command::Line(line), ShellKind::Cmd) = (self, shell().kind) {
            // Quotes mean something else to `cmd` than to everybody: with `/s` the line is what is between these two.
            let mut words = self.words();
            words.pop();
            return process::Command::from(words).raw_args(format!("\"{line}\""));
        }
        self.words().into()
    }

    /// The program and the arguments that are executed.
    pub fn words(&self) -> Vec<String> {
        match self {
            Command::Line(line) => shell().words(line),
            Command::Shell { shell, flag, line } => vec![shell.clone(), flag.clone(), line.clone()],
            Command::Words(words) => words.clone(),
        }
    }
}
