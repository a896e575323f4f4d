//! What to launch, and why it could not be launched.

use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{Hook, Output, Process, start, tail::is_harmful};

/// A program to launch, with its arguments, environment and working directory.
///
/// Not to be confused with `model::command::Command`, a slash command of an agent.
///
/// No shell is involved: every argument reaches the program as it is. Values of environment variables are often
/// secrets, so they are never shown, neither by `Debug` nor by `Display` nor in an error.
///
/// ```
/// use attache::process::Command;
///
/// let command = Command::new("npx").args(["some-agent", "--log dir"]).env("API_KEY", "secret");
/// assert_eq!(command.to_string(), "npx some-agent '--log dir'");
/// assert_eq!(command, Command::from(["npx", "some-agent", "--log dir"]).env("API_KEY", "secret"));
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    raw_args: OsString,
    env: Vec<(OsString, OsString)>,
    clear_env: bool,
    cwd: Option<PathBuf>,
    stderr: Stderr,
    input: Option<Vec<u8>>,
    hook: Option<Hook>,
}

/// Where a child's stderr goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stderr {
    /// Its tail is kept for [`Process::stderr_tail`].
    #[default]
    Keep,
    /// To our own stderr, as it is.
    Inherit,
}

impl Command {
    /// A command without arguments, in our own directory and environment.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            raw_args: OsString::new(),
            env: Vec::new(),
            clear_env: false,
            cwd: None,
            stderr: Stderr::Keep,
            input: None,
            hook: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets what follows the arguments on the command line, as it is: for programs that read it in their own way, such as
    /// `cmd`. Whoever calls this answers for the quoting.
    #[cfg(windows)]
    #[must_use]
    pub fn raw_args(mut self, text: impl Into<OsString>) -> Self {
        self.raw_args = text.into();
        self
    }

    /// Sets an environment variable. A later value for the same name wins.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts from an empty environment instead of ours.
    #[must_use]
    pub fn clear_env(mut self) -> Self {
        self.clear_env = true;
        self
    }

    /// Starts from these variables instead of our environment. What [`env`](Command::env) has set, or sets later, wins.
    ///
    /// ```
    /// use attache::process::Command;
    ///
    /// let command = Command::new("env").env("LANG", "C").base_env([("LANG", "de"), ("HOME", "/")]);
    /// assert_eq!(command, Command::new("env").clear_env().env("LANG", "de").env("HOME", "/").env("LANG", "C"));
    /// ```
    #[must_use]
    pub fn base_env(mut self, variables: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>) -> Self {
        self.clear_env = true;
        self.env.splice(0..0, variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets the working directory. A relative program path is looked up from there.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets where stderr goes; it is kept unless told otherwise.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets what the program reads on stdin, where it is started by [`spawn_merged`](Command::spawn_merged). Like the values
    /// of variables it is never shown.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// Sets what runs in the child directly before the program is executed, for example to confine it.
    ///
    /// What ends the tree when we are gone runs beside the child, not in it, and is not confined. If the hook fails, the
    /// program is not started. A later hook replaces an earlier one; two commands are equal if they share the hook.
    ///
    /// # Safety
    ///
    /// The hook runs between `fork` and `exec` in a copy of a program with several threads: it must not allocate, lock,
    /// or do anything else that is not async-signal-safe. See [`pre_exec`](std::os::unix::process::CommandExt::pre_exec).
    #[cfg(unix)]
    #[must_use]
    pub unsafe fn before_exec(mut self, hook: Arc<dyn Fn() -> io::Result<()> + Send + Sync>) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Starts the program and gives its process, its stdin and its stdout.
    ///
    /// Must be called in a tokio runtime with IO and time enabled. Returns when the program has been started or could
    /// not be.
    pub fn spawn(self) -> Result<(Process, ChildStdin, ChildStdout), SpawnError> {
        let (mut process, stdin, stdout, stderr) = self.spawn_piped()?;
        process.keep_tail(stderr);
        Ok((process, stdin, stdout))
    }

    /// Starts the program like [`spawn`](Command::spawn) and gives its stderr, too: it is the caller's to read, and there is no
    /// stderr tail. There is none with [`Stderr::Inherit`].
    pub fn spawn_piped(self) -> Result<(Process, ChildStdin, ChildStdout, Option<ChildStderr>), SpawnError> {
        let mut command = self.prepare()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(match self.stderr {
            Stderr::Keep => Stdio::piped(),
            Stderr::Inherit => Stdio::inherit(),
        });
        let (process, pipes) = start(command, self.hook.clone()).map_err(|error| self.explain(error))?;
        let (stdin, stdout) = pipes.stdin.zip(pipes.stdout).expect("the command was made with stdin and stdout piped");
        Ok((process, stdin, stdout, pipes.stderr))
    }

    /// Starts the program as in a terminal's window: without input, unless [`input`](Command::input) has some, and with stdout and stderr in one pipe, so that
    /// what it writes stays in order. [`Command::stderr`] does not count here, and there is no stderr tail.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use attache::process::Command;
    /// use tokio::io::AsyncReadExt as _;
    ///
    /// let (mut process, mut output) = Command::from(["sh", "-c", "echo out; echo err >&2; echo out"]).spawn_merged()?;
    /// let mut text = String::new();
    /// output.read_to_string(&mut text).await?;
    /// assert_eq!(text, "out\nerr\nout\n");
    /// assert!(process.wait().await.success());
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn_merged(self) -> Result<(Process, Output), SpawnError> {
        let mut command = self.prepare()?;
        let launch = || {
            let (output, stdout, stderr) = Output::new()?;
            let stdin = if self.input.is_some() { Stdio::piped() } else { Stdio::null() };
            command.stdin(stdin).stdout(stdout).stderr(stderr);
            let (process, pipes) = start(command, self.hook.clone())?;
            if let (Some(mut stdin), Some(bytes)) = (pipes.stdin, self.input.clone()) {
                // A program that does not read it is no failure. When it has ended, so does this.
                tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut stdin, &bytes).await });
            }
            Ok((process, output))
        };
        launch().map_err(|error| self.explain(error))
    }

    /// All that can be compared.
    #[expect(clippy::type_complexity, reason = "it is only compared")]
    fn parts(
        &self,
    ) -> (&OsStr, (&[OsString], &OsStr), &[(OsString, OsString)], bool, Option<&Path>, Stderr, Option<&[u8]>) {
        let Self { program, args, raw_args, env, clear_env, cwd, stderr, input, hook: _ } = self;
        (program, (args, raw_args), env, *clear_env, cwd.as_deref(), *stderr, input.as_deref())
    }

    /// The command without its pipes.
    fn prepare(&self) -> Result<std::process::Command, SpawnError> {
        if self.program.is_empty() {
            return Err(SpawnError::Empty);
        }
        // Asked first, because the kernel gives the same error for a missing directory and a missing program.
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(SpawnError::NoDirectory { path: cwd.clone() });
        }
        #[cfg(not(windows))]
        let mut command = std::process::Command::new(&self.program);
        #[cfg(windows)]
        let mut command = std::process::Command::new(
            self.program_file()
                .ok_or_else(|| SpawnError::NotFound { program: self.program.to_string_lossy().into_owned() })?,
        );
        if self.clear_env {
            command.env_clear();
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.args(&self.args);
        #[cfg(windows)]
        if !self.raw_args.is_empty() {
            std::os::windows::process::CommandExt::raw_arg(&mut command, &self.raw_args);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    fn explain(&self, error: io::Error) -> SpawnError {
        let program = self.program.to_string_lossy().into_owned();
        match (error.kind(), self.program_file().is_some()) {
            (io::ErrorKind::NotFound, true) => SpawnError::NoInterpreter { program },
            // A directory on the PATH that we may not enter turns "not found" into "permission denied".
            (io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied, false) => SpawnError::NotFound { program },
            (io::ErrorKind::PermissionDenied, true) => SpawnError::NotExecutable { program },
            _ => SpawnError::Io { command: self.to_string(), source: error },
        }
    }

    /// The file that the program's name stands for, if there is one: what is there, or in the search path of the command.
    pub fn program_file(&self) -> Option<PathBuf> {
        #[cfg(windows)]
        return super::program::find(&self.program, self.cwd.as_deref(), self.search_path().as_deref());
        #[cfg(not(windows))]
        {
            if has_directory(&self.program) {
                let path = self.cwd.as_deref().unwrap_or(Path::new("")).join(&self.program);
                return path.exists().then_some(path);
            }
            let search_path = self.search_path()?;
            let mut paths = std::env::split_paths(&search_path).map(|directory| directory.join(&self.program));
            paths.find(|path| path.is_file())
        }
    }

    /// Where programs are looked for.
    fn search_path(&self) -> Option<OsString> {
        let is_path = |name: &OsStr| if cfg!(windows) { name.eq_ignore_ascii_case("PATH") } else { name == "PATH" };
        let own = self.env.iter().rev().find(|(name, _)| is_path(name)).map(|(_, value)| value.clone());
        own.or_else(|| if self.clear_env { None } else { std::env::var_os("PATH") })
    }
}

impl PartialEq for Command {
    fn eq(&self, other: &Self) -> bool {
        let is_hook_shared = match (&self.hook, &other.hook) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_hook_shared && self.parts() == other.parts()
    }
}

impl Eq for Command {}

pub(super) fn has_directory(program: &OsStr) -> bool {
    Path::new(program).components().nth(1).is_some() || Path::new(program).has_root()
}

/// Shows the program and its arguments as one would type them into a shell.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_quoted(f, &self.program)?;
        for arg in &self.args {
            f.write_str(" ")?;
            write_quoted(f, arg)?;
        }
        if !self.raw_args.is_empty() {
            f.write_str(" ")?;
            write_quoted(f, &self.raw_args)?;
        }
        Ok(())
    }
}

/// Shows the names of environment variables, never their values.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("raw_args", &self.raw_args)
            .field("env", &names)
            .field("clear_env", &self.clear_env)
            .field("cwd", &self.cwd)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

impl From<&str> for Command {
    /// The text is the program's name, spaces included.
    fn from(program: &str) -> Self {
        Self::new(program)
    }
}

impl From<String> for Command {
    /// The text is the program's name, spaces included.
    fn from(program: String) -> Self {
        Self::new(program)
    }
}

impl<S: Into<OsString>, const N: usize> From<[S; N]> for Command {
    /// The first element is the program, the others are its arguments.
    fn from(words: [S; N]) -> Self {
        from_words(words)
    }
}

impl<S: Into<OsString>> From<Vec<S>> for Command {
    /// The first element is the program, the others are its arguments.
    fn from(words: Vec<S>) -> Self {
        from_words(words)
    }
}

fn from_words(words: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
    let mut words = words.into_iter();
    // No words make a command that `spawn` refuses as empty.
    let program = words.next().map(Into::into).unwrap_or_default();
    Command::new(program).args(words)
}

/// Writes one word in the quoting of POSIX shells; with `$'..'` where a character could harm a terminal.
fn write_quoted(f: &mut fmt::Formatter<'_>, word: &OsStr) -> fmt::Result {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return f.write_str(&word);
    }
    if !word.contains(is_harmful) {
        return write!(f, "'{}'", word.replace('\'', r"'\''"));
    }
    f.write_str("$'")?;
    for c in word.chars() {
        match c {
            '\n' => f.write_str(r"\n")?,
            '\t' => f.write_str(r"\t")?,
            '\'' | '\\' => write!(f, "\\{c}")?,
            c if is_harmful(c) => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("'")
}

/// Why a program could not be started.
#[non_exhaustive]
pub enum SpawnError {
    /// The command names no program.
    Empty,
    /// There is no such program.
    NotFound {
        /// The program as it was given.
        program: String,
    },
    /// The program is there, but the program that should run it is not.
    NoInterpreter {
        /// The program as it was given.
        program: String,
    },
    /// The program is there, but may not be executed.
    NotExecutable {
        /// The program as it was given.
        program: String,
    },
    /// The working directory is not a directory.
    NoDirectory {
        /// The directory as it was given.
        path: PathBuf,
    },
    /// The system refused for another reason.
    Io {
        /// The program and its arguments.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty command\nhint: name a program to start"),
            Self::NotFound { program } if program.contains(' ') => {
                let words: Vec<_> = program.split_whitespace().collect();
                write!(f, "program `{program}` not found\nhint: give the arguments separately: {words:?}")
            }
            Self::NotFound { program } if has_directory(OsStr::new(program)) => {
                write!(f, "program `{program}` not found\nhint: check the path")
            }
            Self::NotFound { program } => {
                write!(f, "program `{program}` not found\nhint: install it, add it to PATH, or give its full path")
            }
            Self::NoInterpreter { program } => {
                write!(f, "interpreter of `{program}` not found\nhint: check the first line of the file")
            }
            Self::NotExecutable { program } => {
                write!(f, "`{program}` is not executable\nhint: check its permissions")
            }
            Self::NoDirectory { path } => write!(f, "`{}` is not a directory", path.display()),
            Self::Io { command, source } => write!(f, "cannot start `{command}`: {source}"),
        }
    }
}

/// Shows the text, because that is what `main` prints of an error.
impl fmt::Debug for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SpawnError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let check = |words: &[&str], shown: &str| assert_eq!(Command::from(words.to_vec()).to_string(), shown);
        check(&["gemini", "--acp"], "gemini --acp");
        check(&["/opt/my agent", ""], "'/opt/my agent' ''");
        check(&["sh", "-c", "echo $HOME; it's"], r"sh -c 'echo $HOME; it'\''s'");
        check(&["a", "\u{1b}[2J\n'\\", "\u{202e}"], r"a $'\u001b[2J\n\'\\' $'\u202e'");
    }
}
