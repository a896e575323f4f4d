//! Commands that search whole directories: whether they would show a secret that nobody has named.
//!
//! Naming `.env` is asked about, so a search that comes across it has to be asked about too. What is looked at is bounded:
//! the directories near the top, where such files are. Deeper ones, and what a repository has recorded, are not looked at.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

use attache::model::tool::ToolKind;

use super::secrets;

/// How many directories deep names are looked at: `a/b/.env` is found.
const MAX_DEPTH: usize = 3;

/// The most names that are looked at, those near the top first. It takes some ten milliseconds.
const MAX_NAMES: usize = 10_000;

/// The most bytes of a repository's settings; none that people write are longer.
const MAX_CONFIG: u64 = 64 << 10;

/// Kinds of files that `rg` knows by these ends of names and by no others.
const TYPES: &[(&str, &[&str])] = &[
    ("go", &[".go"]),
    ("java", &[".java", ".jsp", ".jspx", ".properties"]),
    ("js", &[".js", ".jsx", ".vue", ".cjs", ".mjs"]),
    ("py", &[".py", ".pyi"]),
    ("rust", &[".rs"]),
    ("ts", &[".ts", ".tsx", ".cts", ".mts"]),
];

/// What a search takes in of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Search {
    /// Whether names that begin with a dot are taken in.
    hidden: bool,
    /// Whether directories of git are.
    git: bool,
    /// The ends of names that are taken in; all if there are none.
    ends: Vec<String>,
    /// Names of directories that are left out.
    without: Vec<String>,
}

impl Search {
    /// What a command takes in of the directories that it is given. `None` if it shows nothing of them.
    pub(super) fn of(command: &str, options: &[(&'static str, String)]) -> Option<Search> {
        let has = |names: &[&str]| options.iter().any(|(name, _)| names.contains(name));
        let values = |names: &'static [&'static str]| {
            options.iter().filter(move |(name, _)| names.contains(name)).map(|(_, value)| value.as_str())
        };
        match command {
            "grep" if has(&["-r", "--recursive"]) => Some(Search {
                hidden: true,
                git: true,
                // With `--exclude` before it, what an `--include` does not name is taken in as well.
                ends: if has(&["--exclude"]) { Vec::new() } else { ends(values(&["--include"])) },
                without: values(&["--exclude-dir"]).filter(|name| is_plain(name)).map(str::to_owned).collect(),
            }),
            "rg" if !has(&["--files", "--type-list"]) => {
                // What a glob or a type names is searched even if it is hidden.
                let globs: Vec<&str> = values(&["-g", "--glob", "--iglob"]).collect();
                let types: Vec<&str> = values(&["-t", "--type"]).collect();
                let ends = match (globs.is_empty(), types.is_empty()) {
                    (false, true) => ends(globs.iter().copied()),
                    (true, false) => ends_of_types(&types),
                    _ => Vec::new(),
                };
                let hidden = !globs.is_empty() || !types.is_empty();
                Some(Search { hidden, git: hidden, ends, without: Vec::new() })
            }
            // Without it only what is tracked is searched, and that is recorded for all to see.
            "git grep" if has(&["--untracked"]) => Some(Search { hidden: true, ..Search::default() }),
            _ => None,
        }
    }

    /// Whether a directory has a secret that would be taken in. The closure has the last word on a path that looks like one.
    pub(super) fn finds_secret(&self, directory: &Path, is_secret: &dyn Fn(&Path) -> bool) -> bool {
        let Ok(directory) = directory.canonicalize() else { return false };
        if is_git(&directory) {
            return git_holds_secret(&directory);
        }
        let mut waiting = VecDeque::from([(directory, 1)]);
        let mut names = 0;
        while let Some((directory, depth)) = waiting.pop_front() {
            let Ok(entries) = directory.read_dir() else { continue };
            for entry in entries.flatten() {
                names += 1;
                if names > MAX_NAMES {
                    // Whoever fills the top with names may want to hide one among them.
                    return depth == 1;
                }
                // No search here follows links.
                let Ok(kind) = entry.file_type() else { continue };
                let path = entry.path();
                if kind.is_symlink() || !self.takes_in(&path, kind.is_dir()) {
                    continue;
                }
                if kind.is_dir() && is_git(&path) {
                    if self.git && git_holds_secret(&path) {
                        return true;
                    }
                    continue;
                }
                let counts = self.ends.is_empty() || kind.is_file();
                if counts && secrets::is_guarded(&end_of(&path), &ToolKind::Read) && is_secret(&path) {
                    return true;
                }
                if kind.is_dir() && depth < MAX_DEPTH {
                    waiting.push_back((path, depth + 1));
                }
            }
        }
        false
    }

    /// Whether something of this name is taken in. Names that are no text may be anything.
    fn takes_in(&self, path: &Path, is_directory: bool) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return true };
        let is_wanted = |name: &str| {
            let name = name.to_lowercase();
            self.ends.is_empty() || self.ends.iter().any(|end| name.ends_with(end.as_str()))
        };
        (self.hidden || !name.starts_with('.'))
            && if is_directory { !self.without.iter().any(|without| without == name) } else { is_wanted(name) }
    }
}

fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git")
}

/// The end of a path that is long enough for every name in the list of secrets.
fn end_of(path: &Path) -> String {
    let parts: Vec<_> = path.iter().collect();
    let end: PathBuf = parts[parts.len().saturating_sub(MAX_DEPTH)..].iter().collect();
    end.to_string_lossy().into_owned()
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// What names end in that globs such as `*.rs` name. None, which stands for all, if one of them is of another form.
fn ends<'a>(globs: impl Iterator<Item = &'a str>) -> Vec<String> {
    let end =
        |glob: &str| glob.strip_prefix('*').filter(|end| end.starts_with('.') && is_plain(end)).map(str::to_lowercase);
    globs.map(end).collect::<Option<Vec<String>>>().unwrap_or_default()
}

fn ends_of_types(types: &[&str]) -> Vec<String> {
    let known = |name: &&str| TYPES.iter().find(|(known, _)| known == name).map(|(_, ends)| *ends);
    let all: Option<Vec<&[&str]>> = types.iter().map(known).collect();
    all.unwrap_or_default().concat().iter().map(ToString::to_string).collect()
}

/// Whether a directory of git has passwords in it. Most have none, and are searched along with the rest of the project; so
/// the settings are read, and count where anything in them may be a password.
fn git_holds_secret(directory: &Path) -> bool {
    const WORDS: &[&str] = &["extraheader", "pass", "token", "secret", "apikey", "cookie"];
    if directory.join("credentials").symlink_metadata().is_ok() {
        return true;
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    // A link may lead anywhere, and a pipe would keep us waiting.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(
        &mut options,
        windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OPEN_REPARSE_POINT,
    );
    let file = match options.open(directory.join("config")) {
        Ok(file) => file,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return true;
    }
    let mut text = String::new();
    if file.take(MAX_CONFIG + 1).read_to_string(&mut text).is_err() || text.len() as u64 > MAX_CONFIG {
        return true;
    }
    let text = text.to_lowercase();
    // `https://name:password@host`; `git@` is what everybody is called.
    let has_user = |rest: &str| {
        let host = rest.split(['/', '\n']).next().unwrap_or_default();
        host.rsplit_once('@').is_some_and(|(user, _)| user != "git")
    };
    WORDS.iter().any(|word| text.contains(word)) || text.split("://").skip(1).any(has_user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(command: &str, options: &[(&'static str, &str)]) -> Option<Search> {
        let options: Vec<_> = options.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Search::of(command, &options)
    }

    fn finds(search: &Search, directory: &Path) -> bool {
        search.finds_secret(directory, &|_| true)
    }

    #[test]
    fn a_search_finds_the_secrets_that_it_would_show_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |name: &str| {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "KEY=1\n").unwrap();
        };
        let grep = search("grep", &[("-r", "")]).unwrap();
        let rg = search("rg", &[]).unwrap();
        write("src/main.rs");
        write("a/b/c/.env");
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", path("src/.ssh")).unwrap();
        assert!(!finds(&grep, directory.path()), "too deep, or a link");
        assert!(finds(&grep, &path("a/b")) && finds(&grep, &path("a")));
        write(".env");
        assert!(finds(&grep, directory.path()) && !finds(&rg, directory.path()));
        assert!(!finds(&grep, &path("src")) && !finds(&grep, &path(".env")) && !finds(&grep, &path("missing")));
        for (option, is_found) in [
            (("--include", "*.rs"), false),
            (("--include", "*"), true),
            (("--include", ".e*"), true),
            (("--include", "*.env"), true),
            (("--include", "*.ENV"), true),
            (("--include", "*.[er]*"), true),
            (("--exclude", ".env"), true),
            (("--exclude-dir", "src"), true),
        ] {
            let search = search("grep", &[("-r", ""), option]).unwrap();
            assert_eq!(finds(&search, directory.path()), is_found, "{option:?}");
        }
        let search_after_exclude = search("grep", &[("-r", ""), ("--exclude", "x"), ("--include", "*.rs")]).unwrap();
        assert!(finds(&search_after_exclude, directory.path()));
        for (option, is_found) in [
            (("-g", "*.rs"), false),
            (("-g", "*"), true),
            (("-g", "!x"), true),
            (("--glob", "*.{rs,env}"), true),
            (("--iglob", ".E*"), true),
            (("-t", "rust"), false),
            (("-t", "all"), true),
            (("--type", "config"), true),
        ] {
            let search = search("rg", &[option]).unwrap();
            assert_eq!(finds(&search, directory.path()), is_found, "{option:?}");
        }
        let untracked = search("git grep", &[("--untracked", "")]).unwrap();
        assert!(finds(&untracked, directory.path()));
        for (command, options) in [("grep", &[][..]), ("git grep", &[]), ("fd", &[]), ("rg", &[("--files", "")])] {
            assert_eq!(search(command, options), None, "{command}");
        }
        std::fs::remove_file(path(".env")).unwrap();
        write("keys/.aws/credentials");
        let without = search("grep", &[("-r", ""), ("--exclude-dir", "keys")]).unwrap();
        assert!(finds(&grep, directory.path()) && !finds(&without, directory.path()));
    }

    #[test]
    fn a_top_with_too_many_names_counts() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("below");
        std::fs::create_dir(&below).unwrap();
        for number in 0..=MAX_NAMES {
            std::fs::write(below.join(number.to_string()), "").unwrap();
        }
        let grep = search("grep", &[("-r", "")]).unwrap();
        assert!(finds(&grep, &below) && !finds(&grep, directory.path()));
    }

    #[test]
    fn a_repository_counts_where_its_settings_may_hold_a_password() {
        let directory = tempfile::tempdir().unwrap();
        let git = directory.path().join(".git");
        std::fs::create_dir_all(git.join("hooks")).unwrap();
        let grep = search("grep", &[("-r", "")]).unwrap();
        let check = |is_found: bool, text: &str| {
            for start in [directory.path(), git.as_path()] {
                assert_eq!(finds(&grep, start), is_found, "{text}");
            }
        };
        check(false, "no settings");
        for (text, is_found) in [
            ("[core]\n\tbare = false\n", false),
            ("[remote \"origin\"]\n\turl = https://example.org/x@y.git\n", false),
            ("[remote \"origin\"]\n\turl = git@example.org:x.git\n\turl = ssh://git@example.org/x\n", false),
            ("[remote \"origin\"]\n\turl = https://me:word@example.org/x.git\n", true),
            ("[remote \"origin\"]\n\turl = https://0123abcd@example.org/x.git\n", true),
            ("[http]\n\textraHeader = Authorization: x\n", true),
            ("[sendemail]\n\tsmtpPass = x\n", true),
        ] {
            std::fs::write(git.join("config"), text).unwrap();
            check(is_found, text);
        }
        std::fs::write(git.join("config"), "#".repeat(70_000)).unwrap();
        check(true, "too long to be looked at");
        std::fs::write(git.join("config"), [0xff, 0xfe]).unwrap();
        check(true, "no text");
        std::fs::remove_file(git.join("config")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("hooks", git.join("config")).unwrap();
            check(true, "a link");
            std::fs::remove_file(git.join("config")).unwrap();
            std::process::Command::new("mkfifo").arg(git.join("config")).status().unwrap();
            check(true, "a pipe");
        }
    }
}
