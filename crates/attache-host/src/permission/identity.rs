//! Who an agent is that was given as a command: for rules, sessions and records.

use std::collections::BTreeMap;
use std::path::Path;

use attache::process;
use sha2::{Digest, Sha256};

use super::place::normal;
use super::{programs, visible};

/// Programs that run code of the directory that they are started in, unless a script is named: the same words mean
/// something else in another directory. `npx` runs what the directory has installed before it fetches anything.
const OF_DIRECTORY: &[&str] = &[
    "bash", "bun", "bunx", "bundle", "cargo", "dash", "deno", "dotnet", "env", "go", "java", "just", "ksh", "make",
    "node", "npm", "npx", "nohup", "perl", "php", "pipenv", "pnpm", "poetry", "pypy", "python", "rake", "ruby", "sh",
    "task", "uv", "yarn", "zsh",
];

/// Options after which a word is the name of a package, a module or an image, and no secret.
const BEFORE_NAMES: &[&str] =
    &["-A", "-i", "-it", "-m", "-p", "-q", "-y", "--allow-all", "--from", "--package", "--quiet", "--rm", "--yes"];

/// Longer words are not told in full.
const LONGEST_WORD: usize = 200;

/// The identity of an agent that is started by this command in this directory: its program as a path, with its script or
/// package and plain options, and a digest of everything where that is not all.
///
/// No two commands have the same one, so a rule for `python3 a.py` is not one for `python3 b.py`. It is shown where rules
/// are made and stands in files, so values of variables and options, which may be secrets, are only in the digest.
///
/// ```
/// use attache_host::permission::agent_identity;
///
/// let identity = |words: &[&str]| {
///     let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
///     agent_identity(&words, &Default::default(), "/work".as_ref())
/// };
/// assert_eq!(identity(&["/opt/agent", "--acp"]), "/opt/agent --acp");
/// assert_ne!(identity(&["/opt/agent", "--key", "one"]), identity(&["/opt/agent", "--key", "two"]));
/// assert!(identity(&["/bin/python3", "-m", "agent"]).starts_with("/bin/python3 -m agent in /work"));
/// ```
pub fn agent_identity(words: &[String], env: &BTreeMap<String, String>, cwd: &Path) -> String {
    let Some((program, arguments)) = words.split_first() else { return "?".into() };
    let program = program_path(program, cwd);
    let mut hash = Sha256::new();
    let mut add = |word: &str| {
        hash.update((word.len() as u64).to_le_bytes());
        hash.update(word);
    };
    add(&program);
    let mut shown = vec![visible(&program)];
    let is_odd = |text: &str| visible(text) != text;
    // What cannot be shown as it is must not look like another.
    let mut is_cut = is_odd(&program) || is_odd(&cwd.to_string_lossy());
    let (mut has_script, mut has_name) = (false, false);
    let mut before: Option<&str> = None;
    for argument in arguments {
        let file = script_path(argument, cwd);
        let word = file.as_deref().unwrap_or(argument);
        add(word);
        let is_short = word.len() <= LONGEST_WORD && !is_odd(word);
        let follows_option = before.is_some_and(|before| before.starts_with('-') && !BEFORE_NAMES.contains(&before));
        if file.is_some() && is_short {
            has_script |= !has_name;
            has_name = true;
            shown.push(word.to_owned());
        } else if is_plain_option(word) && is_short {
            shown.push(word.to_owned());
        } else if !word.starts_with('-') && !word.contains('=') && !has_name && !follows_option && is_short {
            has_name = true;
            shown.push(word.to_owned());
        } else {
            is_cut = true;
            shown.push("…".into());
        }
        before = Some(argument);
    }
    for (name, value) in env {
        is_cut = true;
        add(name);
        add(value);
    }
    let mut identity = process::Command::from(shown).to_string();
    if !has_script && !arguments.is_empty() && is_of_directory(&program) {
        add(&cwd.to_string_lossy());
        identity.push_str(&format!(" in {}", visible(&cwd.to_string_lossy())));
    }
    if is_cut {
        let digest: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        identity.push_str(&format!(" #{digest}"));
    }
    identity
}

/// The file name of the program of such an identity: what the first version called the agent. `None` for a name from the
/// settings.
pub(super) fn launcher(identity: &str) -> Option<&str> {
    let path = match identity.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next()?,
        None => identity.split(' ').next()?,
    };
    let is_path = path.starts_with('/') || cfg!(windows) && Path::new(path).is_absolute();
    is_path.then(|| path.rsplit(std::path::is_separator).next()).flatten()
}

/// An option that says all it says by its name.
fn is_plain_option(word: &str) -> bool {
    word.starts_with('-') && word.len() <= 40 && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-' || c == '_')
}

fn is_of_directory(program: &str) -> bool {
    let usual = programs::usual_name(program);
    let name = usual.as_deref().unwrap_or(program).rsplit('/').next().unwrap_or_default();
    // As in `python3.13`.
    OF_DIRECTORY.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-'))
}

/// The program as a path: one without a slash is looked for where the system looks for it.
fn program_path(program: &str, cwd: &Path) -> String {
    let path = Path::new(program);
    let found = if cfg!(windows) {
        process::Command::new(program).cwd(cwd).program_file()
    } else if program.contains('/') {
        Some(cwd.join(path))
    } else {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&directories)
            .map(|directory| cwd.join(directory).join(program))
            .find(|path| path.is_file())
    };
    // One that is not there cannot be started. It must not be taken for a name, though.
    found.map_or_else(|| format!("/?/{program}"), |path| normal(&path).to_string_lossy().into_owned())
}

/// The whole path of an argument that names a file.
fn script_path(argument: &str, cwd: &Path) -> Option<String> {
    let path = normal(&cwd.join(argument));
    (!argument.is_empty() && path.is_file()).then(|| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_commands_are_the_same_agent() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.py", "b.py", "a.js", "with space.py"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let rows: &[&[&str]] = &[
            &["python3", "a.py"],
            &["python3", "b.py"],
            &["python3", "-u", "a.py"],
            &["python3", "-m", "a"],
            &["python3", "-m", "b"],
            &["python3", "with space.py"],
            &["python3", "a.py", "--key", "one"],
            &["python3", "a.py", "--key", "two"],
            &["python3", "a.py", "--key=one"],
            &["node", "a.js"],
            &["npx", "-y", "a"],
            &["npx", "-y", "b"],
            &["npx", "-y", "a@1"],
            &["npx", "a"],
            &["uvx", "a"],
            &["uvx", "b"],
            &["uvx", "--from", "a", "b"],
            &["uvx", "--from", "c", "b"],
            &["bunx", "a"],
            &["deno", "run", "-A", "npm:a"],
            &["deno", "run", "-A", "npm:b"],
            &["pipx", "run", "a"],
            &["pipx", "run", "b"],
            &["docker", "run", "--rm", "-i", "a"],
            &["docker", "run", "--rm", "-i", "b"],
            &["sh", "-c", "a"],
            &["sh", "-c", "b"],
            &["env", "A=1", "agent"],
            &["env", "A=2", "agent"],
            &["env", "agent"],
            &["agent"],
            &["./agent"],
            &["/agent"],
        ];
        let none = BTreeMap::new();
        let identity = |words: &[&str], env: &BTreeMap<String, String>, cwd: &Path| {
            let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
            agent_identity(&words, env, cwd)
        };
        let mut seen = std::collections::HashMap::new();
        for words in rows {
            let identity = identity(words, &none, directory.path());
            assert!(identity.starts_with(['/', '\'']), "{identity}");
            assert!(!["one", "two", "A=1"].iter().any(|secret| identity.contains(secret)), "{identity}");
            assert_eq!(seen.insert(identity.clone(), words), None, "{identity}");
            assert_ne!(launcher(&identity), None, "{identity}");
        }
        // Where the directory decides what is run, it is part of who it is; where a file does, it is not.
        for (words, is_same) in [
            (&["npx", "a"][..], false),
            (&["python3", "-m", "a"], false),
            (&["uvx", "a"], true),
            (&["/agent", "--acp"], true),
        ] {
            let (one, other) = (identity(words, &none, "/one".as_ref()), identity(words, &none, "/other".as_ref()));
            assert_eq!(one == other, is_same, "{words:?}");
        }
        let env = BTreeMap::from([("PYTHONPATH".to_owned(), "/evil".to_owned())]);
        assert_ne!(identity(&["/agent"], &none, "/".as_ref()), identity(&["/agent"], &env, "/".as_ref()));
    }

    #[test]
    fn a_launcher_is_known_by_its_file_name() {
        let rows = [
            ("/usr/bin/python3 /home/a.py", Some("python3")),
            ("'/opt/my agents/run' --acp", Some("run")),
            ("claude", None),
            ("", None),
        ];
        for (identity, expected) in rows {
            assert_eq!(launcher(identity), expected, "{identity}");
        }
    }
}
