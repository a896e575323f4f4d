//! Programs that run other programs, and what makes others do so.
//!
//! What a rule allows is decided by the rows of `table.rs`. The tables here are for the other side: where a rule denies,
//! they say what else a command may run. That is a net and no promise. They also say which programs a rule has to name with
//! all their words, because what they do is in their words.

use super::arguments::{self, Anywhere, Surroundings};
use super::rules::Arguments;
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
    ("parallel", Runs::Command),
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

/// Arguments that make a program run another, for rules that deny. A long option is also meant by its beginnings and with a
/// value; a short one also with its value glued to it.
const FLAGS: &[(&str, &[&str])] = &[
    ("bat", &["--pager"]),
    ("cargo", &["run", "--config", "-Z"]),
    ("cmake", &["-E", "-P", "-C"]),
    ("docker", &["run", "exec"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("find", &["-exec", "-execdir", "-ok", "-okdir"]),
    ("gcc", &["-wrapper", "-B", "-specs", "--specs", "-fplugin"]),
    (
        "git",
        &[
            "-c",
            "--config",
            "--config-env",
            "--exec-path",
            "-x",
            "foreach",
            "run",
            "--ext-diff",
            "--extcmd",
            "--exec",
            "--open-files-in-pager",
            "-O",
            "--receive-pack",
            "--template",
            "--upload-pack",
            "ext::",
        ],
    ),
    ("go", &["run", "generate", "-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"]),
    ("gtar", TAR),
    ("journalctl", &["--pager"]),
    ("kubectl", &["exec", "run"]),
    ("less", &["+"]),
    ("make", &["--eval", "SHELL=", "SHELL:=", "MAKEFLAGS="]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("npm", &["exec", "x", "--script-shell", "--node-options"]),
    ("pnpm", &["exec", "dlx", "--script-shell"]),
    ("podman", &["run", "exec"]),
    ("poetry", &["run"]),
    ("bundle", &["exec"]),
    ("rustup", &["run"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("tar", TAR),
    ("tcpdump", &["-z", "--postrotate-command"]),
    ("uv", &["run", "tool"]),
    ("wget", &["--use-askpass", "--execute", "-e"]),
    ("yarn", &["exec", "dlx"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Subcommands that run what their words name: a rule names all of them.
const RUNNING_SUBCOMMANDS: &[&str] = &["bisect", "dlx", "exec", "foreach", "generate", "run", "run-script"];

/// More words after a program that runs others are not read as commands.
const MAX_WORDS: usize = 100;

/// Programs that take what they run from their input.
const FED: &[&str] = &["parallel", "xargs"];

/// Commands of the shell that change what later commands mean, or that read a text as commands.
const SHELL_STATE: &[&str] = &[
    ".",
    "alias",
    "bind",
    "complete",
    "declare",
    "enable",
    "eval",
    "export",
    "fc",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unset",
];

/// Shells, which read commands from their input if they are given no file and no line.
const SHELLS: &[&str] = &["ash", "bash", "csh", "dash", "fish", "ksh", "rbash", "sh", "tcsh", "zsh"];

/// The commands of git itself. What is none of them may be an alias for any.
const GIT: &str = "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap \
    check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit commit-graph commit-tree config \
    count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch \
    filter-branch fmt-merge-msg for-each-ref format-patch fsck gc grep gui hash-object help index-pack init \
    interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index \
    merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-redundant pack-refs patch-id prune \
    prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset restore \
    rev-list rev-parse revert rm send-email send-pack shortlog show show-branch show-index show-ref sparse-checkout stash \
    status stripspace submodule switch symbolic-ref tag unpack-file unpack-objects update-index update-ref \
    update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version whatchanged worktree \
    write-tree";

/// Other programs whose subcommands have aliases or shorter forms. What has no row may be one.
const HAVE_ALIASES: &[&str] = &["bun", "bundle", "cargo", "composer", "gh", "gradle", "npm", "pnpm", "yarn"];

/// Whether a rule that names a command to its last word may allow it: not if it runs what it is given as input.
pub(super) fn says_what_runs(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let is_said = |words: &[String]| words.split_first().is_none_or(|(program, words)| is_said(program, words));
    // Any word may be the command that a program such as `sudo` runs.
    let is_inner_said = || (1..command.len()).all(|index| is_said(&command[index..]));
    let words: Vec<Text> = arguments.iter().cloned().map(Some).collect();
    is_said(command) && !starts_shell(name(program), &words) && (!needs_all_words(command) || is_inner_said())
}

/// Whether an interpreter is told what to run: `python x.py` is, `python` and `python -c` are not. At the end of a pipeline,
/// `sh` alone runs whatever it is given.
fn is_said(program: &str, arguments: &[String]) -> bool {
    if runs(name(program)) != Some(Runs::Script) || is_version(arguments) {
        return true;
    }
    let is_shell = SHELLS.contains(&base(name(program)));
    let is_input_option = |word: &String| is_shell && word.starts_with('-') && word.contains('s');
    arguments.last().is_some_and(|last| !last.starts_with('-'))
        && !arguments.iter().any(|word| is_input_option(word) || is_input(word))
}

/// Whether a file is the input of the program that opens it.
fn is_input(path: &str) -> bool {
    path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
}

/// `python --version` runs nothing.
fn is_version(arguments: &[String]) -> bool {
    matches!(arguments, [only] if matches!(only.as_str(), "--version" | "-V" | "-v"))
}

/// Whether what a command does is in all of its words, so that a rule has to name them all, whatever it says about
/// arguments.
pub(super) fn needs_all_words(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return true };
    let is_short = |word: &str| word == "x" && matches!(name(program), "bun" | "npm" | "pnpm");
    let is_subcommand = |word: &String| RUNNING_SUBCOMMANDS.contains(&word.as_str()) || is_short(word);
    runs(name(program)).is_some() || arguments.iter().take_while(|word| *word != "--").any(is_subcommand)
}

/// The words that a rule would have to begin with to allow a command from now on, and what it says about the rest. `None` if
/// even the whole command does not say what it does.
pub(super) fn suggestion(command: &[String], surroundings: &dyn Surroundings) -> Option<(Vec<String>, Arguments)> {
    let plain = arguments::without_leading_options(arguments::without_timeout(command));
    if let Some((row, length)) = arguments::row_for(&plain)
        && !row.changes_what_it_names()
        && arguments::are_harmless(row, &plain[length..], surroundings)
    {
        return Some((plain[..length].to_vec(), Arguments::Known));
    }
    let program = name(command.first()?);
    let is_text = |word: &String| word.starts_with('-') && word != "-m";
    let has_text =
        runs(program) == Some(Runs::Script) && command.get(1).is_none_or(is_text) && !is_version(&command[1..]);
    // Editors, debuggers and shells on other machines take commands as input too; what `sed` and `awk` do is in their words.
    let is_fed =
        runs(program) == Some(Runs::Anything) && !matches!(base(program), "awk" | "gawk" | "mawk" | "nawk" | "sed");
    let is_unsafe =
        has_text || is_fed || FED.contains(&program) || SHELL_STATE.contains(&program) || !says_what_runs(command);
    (!is_unsafe).then(|| (command.to_vec(), Arguments::None))
}

/// What is known about a command and why no more of it, for a reason that people read.
pub(super) fn limits(command: &[String]) -> String {
    match arguments::row_for(&arguments::without_leading_options(command)) {
        Some((row, _)) => format!(" (`{}`: {})", row.command, row.reason.trim_end_matches('.')),
        None => String::new(),
    }
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
    if is_known_harmless(words) {
        return None;
    }
    if runs(program).is_some() {
        return Some(1);
    }
    let mut rest = words.iter().enumerate().skip(1);
    let found = rest.find(|(index, word)| word.as_ref().is_some_and(|word| is_dangerous(program, *index, word)))?;
    // The value may be glued to the option, as in `--filter='rm x'`.
    Some(found.0)
}

/// Whether a command may run something that its words do not show: a text in some language, what comes as input, or what was
/// said to the shell before.
pub(super) fn is_opaque(words: &[Text]) -> bool {
    let Some(Some(program)) = words.first() else { return false };
    let program = name(program);
    if is_known_harmless(words) {
        return false;
    }
    let arguments = &words[1..];
    let is_option = |word: &Text| word.as_ref().is_none_or(|word| word.starts_with(['-', '+']));
    // Scripts begin with `set -e`, and `sed -i` does what `sed` does with the same script.
    let is_strictness = |word: &Text| {
        let letters = |word: &String| {
            word == "pipefail" || word.strip_prefix('-').is_some_and(|w| w.chars().all(|c| "euxo".contains(c)))
        };
        word.as_ref().is_some_and(letters)
    };
    if program == "set" && arguments.iter().all(is_strictness) {
        return false;
    }
    if program == "sed" && arguments.iter().any(|word| word.as_deref() == Some("-i")) {
        let others: Vec<Text> = words.iter().filter(|word| word.as_deref() != Some("-i")).cloned().collect();
        return !is_known_harmless(&others);
    }
    if SHELL_STATE.contains(&program) {
        return true;
    }
    match runs(program) {
        Some(Runs::Script) if arguments.iter().flatten().any(|word| is_input(word)) => true,
        // A line is read as such; a file is a program like any other.
        Some(Runs::Script) if SHELLS.contains(&base(program)) => {
            match arguments.iter().position(|word| !is_option(word)) {
                None => true,
                Some(0) => false,
                Some(first) => {
                    let is_line = |word: &Text| word.as_ref().is_some_and(|word| is_line_option(word));
                    !arguments[..first].iter().all(|word| word.is_some())
                        || !arguments[..first].last().is_some_and(is_line)
                }
            }
        }
        Some(Runs::Script) => {
            let is_module = |word: &Text| matches!(word.as_deref(), Some("-m" | "--version" | "-V"));
            arguments.first().is_none_or(|first| is_option(first) && !is_module(first))
        }
        Some(Runs::Anything) => true,
        // What is given to it may be arguments of a program that runs others.
        Some(Runs::Command | Runs::CommandAfter(_)) if FED.contains(&program) => {
            let inner = |word: &Text| word.as_ref().is_none_or(|word| runs(name(word)).is_some());
            arguments.iter().all(is_option) || arguments.iter().any(inner)
        }
        Some(Runs::Command | Runs::CommandAfter(_)) => starts_shell(program, arguments) || has_opaque_inner(words, 1),
        None => {
            let is_text = |word: &String| word.starts_with(['-', '+']) || word.contains('=');
            let is_flag = |(index, word): (usize, &Text)| {
                word.as_ref().is_some_and(|word| is_text(word) && is_dangerous(program, index, word))
            };
            words.iter().enumerate().skip(1).any(is_flag)
                || inner_start(words).is_some_and(|start| has_opaque_inner(words, start))
        }
    }
}

/// Whether one of the words after a program that runs others begins a command that is opaque: `sudo -u me sh`.
fn has_opaque_inner(words: &[Text], start: usize) -> bool {
    let is_interpreter = |word: &String| matches!(runs(name(word)), Some(Runs::Script | Runs::Anything));
    // Each word is looked at with all that follow it; so many are nobody's honest command.
    if words.len() > MAX_WORDS {
        return true;
    }
    (start..words.len()).any(|index| words[index].as_ref().is_some_and(is_interpreter) && is_opaque(&words[index..]))
}

/// Whether `sudo` is told to start a shell of its own.
fn starts_shell(program: &str, arguments: &[Text]) -> bool {
    let is_shell = |option: &str| {
        matches!(option, "--login" | "--shell") || (!option.starts_with("--") && option.contains(['i', 's']))
    };
    let mut options = arguments.iter().flatten().filter(|word| word.starts_with('-'));
    matches!(program, "doas" | "sudo") && options.any(|option| is_shell(option))
}

/// Whether an option of a shell says that the next word is a line: `-c`, `-lc`.
fn is_line_option(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| {
        letters.ends_with('c') && letters.bytes().all(|letter| letter.is_ascii_lowercase() && letter != b's')
    })
}

/// Whether further words may come to a command from its input, as with `xargs`.
pub(super) fn is_fed(words: &[Text]) -> bool {
    let Some(Some(program)) = words.first() else { return false };
    FED.contains(&name(program))
}

/// Whether a subcommand of a program could be another name for one that a rule denies.
pub(super) fn may_be_alias(program: &str, subcommand: &str) -> bool {
    let program = name(program);
    if program == "git" {
        return !GIT.split_whitespace().any(|command| command == subcommand);
    }
    HAVE_ALIASES.contains(&program) && !arguments::is_known_subcommand(program, subcommand)
}

/// Whether a row of the table takes all words as they are. Such a command runs no other, whatever its words.
pub(super) fn is_known_harmless(words: &[Text]) -> bool {
    let Some(words) = words.iter().cloned().collect::<Option<Vec<String>>>() else { return false };
    let plain = arguments::without_leading_options(&words);
    arguments::row_for(&plain).is_some_and(|(row, length)| arguments::are_harmless(row, &plain[length..], &Anywhere))
}

/// The name of a program without its directory.
pub(super) fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The name that rules have for a program that is spelled in another way: `git` for `C:\x\GIT.exe`. `None` if it is spelled so
/// already, which is always the case where file systems tell capitals from small letters.
pub(super) fn usual_name(program: &str) -> Option<String> {
    /// What can be left out on Windows.
    const ENDS: [&str; 4] = [".exe", ".com", ".cmd", ".bat"];
    let usual = if cfg!(windows) {
        let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let end = ENDS.iter().find(|end| name.ends_with(*end));
        end.map_or(name.as_str(), |end| &name[..name.len() - end.len()]).to_owned()
    } else if cfg!(target_vendor = "apple") {
        program.to_lowercase()
    } else {
        return None;
    };
    (usual != program).then_some(usual)
}

/// Versions such as `python3.12` count as what they are versions of.
fn base(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

fn runs(program: &str) -> Option<Runs> {
    let find = |wanted: &str| RUNNERS.iter().find(|(name, _)| *name == wanted).map(|(_, runs)| *runs);
    find(program).or_else(|| find(base(program)))
}
