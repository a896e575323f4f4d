//! Programs that run other programs, and what makes others do so.
//!
//! A rule that allows a program allows it with any plain arguments. These tables say where that would go too far. They
//! are a net below the rules and no promise: a program that nobody thought of can still be told to run another.

use super::shell::Text;

/// How a program runs others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// The words after it are a command, as with `nohup`.
    Command,
    /// The words after this many others are a command, as with `timeout 60`.
    CommandAfter(usize),
    /// What it is given is a program in its own language, as with `python`.
    Script,
    /// It runs or changes anything, in ways that only the whole command tells.
    Anything,
}

/// The programs that run others whatever their arguments.
const RUNNERS: &[(&str, Runs)] = &[
    (".", Runs::Anything),
    ("agetty", Runs::Anything),
    ("alias", Runs::Anything),
    ("ansible", Runs::Anything),
    ("ash", Runs::Script),
    ("at", Runs::Anything),
    ("awk", Runs::Anything),
    ("bash", Runs::Script),
    ("batch", Runs::Anything),
    ("bind", Runs::Anything),
    ("builtin", Runs::Command),
    ("bun", Runs::Script),
    ("bunx", Runs::Command),
    ("busybox", Runs::Command),
    ("bwrap", Runs::Anything),
    ("caller", Runs::Anything),
    ("chroot", Runs::Anything),
    ("chrt", Runs::Anything),
    ("command", Runs::Command),
    ("compgen", Runs::Anything),
    ("complete", Runs::Anything),
    ("crontab", Runs::Anything),
    ("csh", Runs::Script),
    ("dash", Runs::Script),
    ("dbus-run-session", Runs::Anything),
    ("dc", Runs::Anything),
    ("declare", Runs::Anything),
    ("deno", Runs::Script),
    ("doas", Runs::Command),
    ("ed", Runs::Anything),
    ("emacs", Runs::Anything),
    ("enable", Runs::Anything),
    ("entr", Runs::Command),
    ("env", Runs::Command),
    ("eval", Runs::Anything),
    ("ex", Runs::Anything),
    ("exec", Runs::Command),
    ("expect", Runs::Script),
    ("export", Runs::Anything),
    ("fakeroot", Runs::Command),
    ("fc", Runs::Anything),
    ("fish", Runs::Script),
    ("flock", Runs::Anything),
    ("gawk", Runs::Anything),
    ("gdb", Runs::Anything),
    ("getopts", Runs::Anything),
    ("hash", Runs::Anything),
    ("hyperfine", Runs::Anything),
    ("ionice", Runs::Anything),
    ("jobs", Runs::Anything),
    ("ksh", Runs::Script),
    ("let", Runs::Anything),
    ("lldb", Runs::Anything),
    ("local", Runs::Anything),
    ("ltrace", Runs::Anything),
    ("lua", Runs::Script),
    ("luajit", Runs::Script),
    ("m4", Runs::Anything),
    ("mapfile", Runs::Anything),
    ("mawk", Runs::Anything),
    ("nawk", Runs::Anything),
    ("nc", Runs::Anything),
    ("ncat", Runs::Anything),
    ("netcat", Runs::Anything),
    ("nice", Runs::Command),
    ("node", Runs::Script),
    ("nodejs", Runs::Script),
    ("nohup", Runs::Command),
    ("npx", Runs::Command),
    ("nsenter", Runs::Anything),
    ("nvim", Runs::Anything),
    ("osascript", Runs::Script),
    ("parallel", Runs::Anything),
    ("perl", Runs::Script),
    ("perf", Runs::Anything),
    ("php", Runs::Script),
    ("pipx", Runs::Anything),
    ("pkexec", Runs::Command),
    ("pnpx", Runs::Command),
    ("popd", Runs::Anything),
    ("powershell", Runs::Script),
    ("prlimit", Runs::Anything),
    ("pushd", Runs::Anything),
    ("pwsh", Runs::Script),
    ("python", Runs::Script),
    ("rbash", Runs::Script),
    ("read", Runs::Anything),
    ("readarray", Runs::Anything),
    ("readonly", Runs::Anything),
    ("rlwrap", Runs::Command),
    ("ruby", Runs::Script),
    ("run-parts", Runs::Anything),
    ("runuser", Runs::Anything),
    ("screen", Runs::Anything),
    ("script", Runs::Anything),
    ("scp", Runs::Anything),
    ("sed", Runs::Anything),
    ("set", Runs::Anything),
    ("setarch", Runs::Anything),
    ("setpriv", Runs::Anything),
    ("setsid", Runs::Command),
    ("sftp", Runs::Anything),
    ("sg", Runs::Anything),
    ("sh", Runs::Script),
    ("shopt", Runs::Anything),
    ("socat", Runs::Anything),
    ("source", Runs::Anything),
    ("sshpass", Runs::Anything),
    ("ssh", Runs::Anything),
    ("start-stop-daemon", Runs::Anything),
    ("stdbuf", Runs::Command),
    ("strace", Runs::Command),
    ("su", Runs::Anything),
    ("sudo", Runs::Command),
    ("systemd-run", Runs::Anything),
    ("taskset", Runs::CommandAfter(1)),
    ("tclsh", Runs::Script),
    ("tcsh", Runs::Script),
    ("time", Runs::Command),
    ("timeout", Runs::CommandAfter(1)),
    ("tmux", Runs::Anything),
    ("trap", Runs::Anything),
    ("ts-node", Runs::Script),
    ("tsx", Runs::Script),
    ("typeset", Runs::Anything),
    ("unbuffer", Runs::Command),
    ("unset", Runs::Anything),
    ("unshare", Runs::Anything),
    ("uvx", Runs::Command),
    ("valgrind", Runs::Command),
    ("vi", Runs::Anything),
    ("view", Runs::Anything),
    ("vim", Runs::Anything),
    ("wait", Runs::Anything),
    ("watch", Runs::Command),
    ("wish", Runs::Script),
    ("wsl", Runs::Anything),
    ("xargs", Runs::Command),
    ("xvfb-run", Runs::Anything),
    ("zsh", Runs::Script),
];

/// Arguments of `tar`, by whatever name it goes.
const TAR: &[&str] =
    &["--checkpoint-action", "--to-command", "-I", "--use-compress-program", "-F", "--info-script", "--rsh-command"];

/// Arguments that make a program run another, or write where it should only read, after the words that the rule names.
/// A long option is also meant by its beginnings and with a value; a short one also with its value glued to it.
const FLAGS: &[(&str, &[&str])] = &[
    ("bat", &["--pager"]),
    ("cargo", &["--config", "-Z"]),
    ("cmake", &["-E", "-P", "-C"]),
    ("curl", &["-o", "-O", "--output", "--remote-name", "--output-dir", "-K", "--config", "-T", "--upload-file"]),
    ("date", &["-s", "--set"]),
    ("diff", &["--to-file", "--from-file"]),
    ("docker", &["run", "exec", "-H", "--host", "--config"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("gcc", &["-wrapper", "-B", "-specs", "--specs", "-fplugin"]),
    (
        "git",
        &[
            "--config",
            "--config-env",
            "--exec-path",
            "-x",
            "foreach",
            "run",
            "--ext-diff",
            "--extcmd",
            "--exec",
            "--git-dir",
            "--open-files-in-pager",
            "-O",
            "--output",
            "--paginate",
            "--receive-pack",
            "--template",
            "--upload-pack",
            "--work-tree",
            "ext::",
        ],
    ),
    ("go", &["-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay", "--overlay", "-C"]),
    ("gradle", &["-I", "--init-script", "-c", "--settings-file"]),
    ("gtar", TAR),
    ("jq", &["-L", "--from-file", "-f"]),
    ("journalctl", &["--vacuum-size", "--vacuum-time", "--rotate"]),
    ("kubectl", &["exec", "run", "--kubeconfig"]),
    ("less", &["-o", "-O", "--log-file", "--LOG-FILE", "-k", "--lesskey-file", "+"]),
    (
        "make",
        &[
            "-f",
            "--file",
            "--makefile",
            "-C",
            "--directory",
            "--eval",
            "-E",
            "-I",
            "--include-dir",
            "SHELL=",
            "MAKEFLAGS=",
        ],
    ),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("mvn", &["exec:"]),
    ("npm", &["exec", "x", "--script-shell", "--prefix", "-C", "--node-options", "--userconfig", "--globalconfig"]),
    ("pip", &["--target", "--config-settings", "--global-option", "--python"]),
    ("pnpm", &["exec", "dlx", "-C", "--dir", "--script-shell"]),
    ("podman", &["run", "exec"]),
    ("poetry", &["run", "-C", "--directory"]),
    ("printf", &["-v"]),
    ("rg", &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    ("rsync", &["-e", "--rsh", "--rsync-path", "--daemon"]),
    ("sort", &["-o", "--output", "--compress-program", "-T", "--temporary-directory"]),
    ("tar", TAR),
    ("tcpdump", &["-z", "--postrotate-command", "-w"]),
    ("test", &["-v"]),
    ("[", &["-v"]),
    ("tree", &["-o", "-R"]),
    ("uv", &["run", "tool", "--directory", "--project"]),
    (
        "wget",
        &[
            "-O",
            "-o",
            "-a",
            "--output-document",
            "--use-askpass",
            "--execute",
            "-e",
            "--output-file",
            "--append-output",
        ],
    ),
    ("yarn", &["exec", "dlx", "--cwd"]),
    ("zip", &["-TT", "--unzip-command", "-T"]),
];

/// Whether a rule for these words may allow a command that begins with them.
pub(super) fn prefix_is_enough(prefix: &[String], command: &[String]) -> bool {
    let (Some(program), Some((_, arguments))) = (command.first().map(|program| name(program)), prefix.split_first())
    else {
        return false;
    };
    let runs = runs(program);
    if prefix.len() >= command.len() && runs != Some(Runs::Script) {
        // The rule names the command to its last word.
        return true;
    }
    let named = match runs {
        None => true,
        Some(Runs::Anything) => false,
        // `python -m pytest` says what runs, `python` and `python -c` do not. At the end of a pipeline, `sh` alone runs
        // whatever it is given.
        Some(Runs::Script) => arguments.last().is_some_and(|last| !last.starts_with('-')),
        Some(Runs::Command) => inner_is_named(arguments, &command[1..]),
        Some(Runs::CommandAfter(skipped)) => {
            arguments.iter().take(skipped).all(|word| !word.starts_with('-'))
                && arguments.len() > skipped
                && inner_is_named(&arguments[skipped..], &command[1 + skipped..])
        }
    };
    let rest = command.iter().enumerate().skip(prefix.len());
    named
        && !git_is_redirected(program, prefix, command)
        && !rest.into_iter().any(|(index, word)| is_dangerous(program, index, word))
}

/// Whether the words that a rule names after a program such as `nohup` say which command it runs.
fn inner_is_named(arguments: &[String], inner: &[String]) -> bool {
    let Some(first) = arguments.first() else { return false };
    // After an option nobody can tell a value from a command.
    !first.starts_with('-') && !first.contains('=') && prefix_is_enough(arguments, inner)
}

/// Options of git before its command, such as `-c`, run other programs or lead to another repository.
fn git_is_redirected(program: &str, prefix: &[String], command: &[String]) -> bool {
    program == "git" && prefix.len() == 1 && command.get(1).is_some_and(|word| word.starts_with('-'))
}

/// Whether the word at an index makes a program run another.
fn is_dangerous(program: &str, index: usize, word: &str) -> bool {
    let Some((_, flags)) = FLAGS.iter().find(|(name, _)| *name == program) else { return false };
    flags.iter().any(|flag| match flag.strip_prefix("--") {
        Some(long) => word.strip_prefix("--").is_some_and(|word| {
            let word = word.split('=').next().unwrap_or_default();
            !word.is_empty() && long.starts_with(word)
        }),
        // A short option may stand in a cluster, as in `-so`.
        None if flag.len() == 2 && flag.starts_with('-') => {
            word.starts_with('-') && !word.starts_with("--") && word.contains(&flag[1..])
        }
        None if flag.ends_with(['=', ':', '+']) => word.starts_with(flag),
        // A subcommand stands near the beginning.
        None if !flag.starts_with('-') => index <= 2 && word == *flag,
        None => word == *flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')),
    })
}

/// The first word of a command that may begin another one, if any may.
pub(super) fn inner_start(words: &[Text]) -> Option<usize> {
    let program = name(words.first()?.as_ref()?);
    if runs(program).is_some() {
        return Some(1);
    }
    let mut rest = words.iter().enumerate().skip(1);
    let found = rest.find(|(index, word)| word.as_ref().is_some_and(|word| is_dangerous(program, *index, word)))?;
    Some(found.0 + 1)
}

/// The words after which a suggested rule ends: `cargo test`, `npm run build`, but all of `rm -r build`.
pub(super) fn suggested_length(command: &[String]) -> usize {
    const SUBCOMMANDS: &[&str] = &[
        "apt",
        "brew",
        "bundle",
        "cargo",
        "composer",
        "deno",
        "docker",
        "dotnet",
        "gh",
        "git",
        "go",
        "gradle",
        "helm",
        "just",
        "kubectl",
        "make",
        "mix",
        "mvn",
        "npm",
        "pip",
        "pnpm",
        "poetry",
        "rustup",
        "systemctl",
        "terraform",
        "uv",
        "yarn",
    ];
    let word = |index: usize| command.get(index).is_some_and(|word| !word.starts_with('-'));
    match command.first().map(String::as_str) {
        Some("npm" | "pnpm" | "yarn") if command.get(1).is_some_and(|verb| verb == "run") && word(2) => 3,
        Some(program) if SUBCOMMANDS.contains(&program) && word(1) => 2,
        _ => command.len(),
    }
}

/// The name of a program without its directory.
pub(super) fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn runs(program: &str) -> Option<Runs> {
    // Versions such as `python3.12` count as what they are versions of.
    let base = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let find = |wanted: &str| RUNNERS.iter().find(|(name, _)| *name == wanted).map(|(_, runs)| *runs);
    find(program).or_else(|| find(base))
}
