//! What git says of the project, for the model.
//!
//! Nobody is asked about it, and a repository may be anybody's: its settings name programs that git runs. So git runs where
//! nothing can be changed and no network is, or not at all, and what it would run is switched off as far as git lets us:
//! the watcher of files, hooks, filters, submodules, and the fetching of what is missing.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::model::Secret;
use attache_host::commands::{Command, Invocation};
use attache_host::paths::canonicalize;
use attache_host::permission::{is_secret, visible};
use attache_host::sandbox::{Policy, Sandbox};

use super::{Commands, Setup};

/// How long git may take in all. A project that takes longer is told without it.
pub(crate) const GIT_TIME: Duration = Duration::from_millis(1500);

/// How much of what it prints is read. Where there is more, none of it is: the beginning would be missing.
const OUTPUT: usize = 1 << 20;

/// How many files are named.
const MOST_NAMES: usize = 8;

/// How long their names are together, in bytes.
const LONGEST_NAMES: usize = 400;

/// How long a file is that names a path, in bytes.
const LONGEST_PATH: u64 = 8 << 10;

/// How many filters are switched off. No honest repository has more.
const MOST_FILTERS: usize = 64;

/// Settings that go before those of the repository.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.quotePath", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
];

/// What has changed in the working directory of a session since the last commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GitState {
    staged: usize,
    changed: usize,
    untracked: usize,
    conflicts: usize,
    /// How many commits the branch is ahead of its upstream, and behind.
    distance: (u64, u64),
    /// The first of the files, as git writes them.
    names: Vec<String>,
    has_more: bool,
}

impl GitState {
    /// The state in a line.
    pub(crate) fn words(&self) -> String {
        let count = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let files = [
            (self.staged, "staged"),
            (self.changed, "changed"),
            (self.conflicts, "in conflict"),
            (self.untracked, "untracked"),
        ];
        let files: Vec<String> = files.iter().filter_map(|(number, what)| count(*number as u64, what)).collect();
        let mut words = if files.is_empty() { "clean".to_owned() } else { files.join(", ") };
        if !self.names.is_empty() {
            let more = if self.has_more { ", …" } else { "" };
            words.push_str(&format!(" ({}{more})", self.names.join(", ")));
        }
        let (ahead, behind) = self.distance;
        let distance = [count(ahead, "ahead of its upstream"), count(behind, "behind it")];
        distance.into_iter().flatten().for_each(|words_of| words.push_str(&format!("; {words_of}")));
        words
    }

    /// Reads `git status --porcelain=v2`. Names are from the top of the repository; they are told without `prefix`.
    pub(crate) fn parse(text: &str, prefix: &str) -> Self {
        let mut state = GitState::default();
        let mut length = 0;
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            // The name is the last of so many words, and may have blanks in it.
            let name = match kind {
                "#" => {
                    state.measure(rest);
                    continue;
                }
                "1" => rest.splitn(8, ' ').nth(7),
                "2" => rest.splitn(9, ' ').nth(8).and_then(|names| names.split('\t').next()),
                "u" => rest.splitn(10, ' ').nth(9),
                "?" => Some(rest),
                _ => None,
            };
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            let name = name.trim_matches('"');
            // As in the list of files.
            if is_secret(Path::new(name)) {
                continue;
            }
            match (kind, rest.as_bytes()) {
                ("?", _) => state.untracked += 1,
                ("u", _) => state.conflicts += 1,
                (_, [index, tree, ..]) => {
                    state.staged += usize::from(*index != b'.');
                    state.changed += usize::from(*tree != b'.');
                }
                _ => continue,
            }
            let name = visible(name.strip_prefix(prefix).unwrap_or(name));
            length += name.len() + 2;
            match state.names.len() < MOST_NAMES && length <= LONGEST_NAMES && !state.has_more {
                true => state.names.push(name),
                false => state.has_more = true,
            }
        }
        state
    }

    fn measure(&mut self, header: &str) {
        let Some((ahead, behind)) = header.strip_prefix("branch.ab +").and_then(|counts| counts.split_once(" -"))
        else {
            return;
        };
        self.distance = (ahead.parse().unwrap_or(0), behind.parse().unwrap_or(0));
    }
}

impl Commands {
    /// What git says of the session's directory. `None` if it is in no repository of the person's own, if nothing can
    /// confine git, or if it takes too long. Whoever drops the future ends git.
    pub(crate) async fn git_state(&self, limit: Duration) -> Option<GitState> {
        tokio::time::timeout(limit, self.ask_git()).await.ok().flatten()
    }

    async fn ask_git(&self) -> Option<GitState> {
        let setup = self.setup.clone();
        let found = crate::off_thread(move || {
            let repository = Checkout::of(&setup.cwd)?;
            Some((repository, Arc::new(sandbox(&setup)?)))
        });
        let (repository, sandbox) = found.await?;
        let names = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
        let filters = filters(&self.git(&sandbox, &repository, &names, &[]).await?)?;
        let status = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=normal",
            "--ignore-submodules=all",
            "--no-renames",
            "--",
            ".",
        ];
        let text = self.git(&sandbox, &repository, &status, &filters).await?;
        let prefix = match self.setup.cwd.strip_prefix(&repository.top).ok().and_then(Path::to_str) {
            None | Some("") => String::new(),
            Some(below) => format!("{below}/"),
        };
        // Without a header it was no status: git did not want to.
        text.starts_with("# branch.").then(|| GitState::parse(&text, &prefix))
    }

    /// What git prints on stdout.
    async fn git(
        &self,
        sandbox: &Arc<Sandbox>,
        repository: &Checkout,
        words: &[&str],
        filters: &[String],
    ) -> Option<String> {
        let (top, git_dir) = (repository.top.to_str()?, repository.git_dir.to_str()?);
        let begin = ["sh", "-c", r#"exec "$@" 2>/dev/null"#, "sh", "git", "--no-optional-locks", "--no-pager"];
        let places = [format!("--git-dir={git_dir}"), format!("--work-tree={top}")];
        let words = begin.into_iter().chain(places.iter().map(String::as_str)).chain(words.iter().copied());
        let off = filters.iter().flat_map(|filter| {
            let rows = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
            rows.map(|(key, value)| (format!("{filter}.{key}"), value))
        });
        let settings: Vec<(String, &str)> =
            SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), *value)).chain(off).collect();
        let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
        for (number, (key, value)) in settings.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{number}"), key));
            variables.push((format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()));
        }
        variables.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        let variables = variables.into_iter().map(|(name, value)| (name, Secret::from(value)));
        let command = Command::Words(words.map(str::to_owned).collect());
        let invocation = Invocation::new(command, &self.setup.cwd).env(variables);
        let (starter, sandbox) = (self.starter(), sandbox.clone());
        let run = crate::off_thread(move || starter.launch(&invocation, OUTPUT, Some(&sandbox))).await.ok()?;
        run.wait().await;
        let written = run.output();
        (!written.is_truncated).then_some(written.text)
    }
}

/// Files of a repository of the person's own.
struct Checkout {
    /// Where its files are.
    top: PathBuf,
    /// Where git keeps what it knows of them.
    git_dir: PathBuf,
}

impl Checkout {
    /// The one that a directory is in: a plain one, or a worktree. Nothing else that leads elsewhere is followed: there may be
    /// names that are nobody's business.
    fn of(cwd: &Path) -> Option<Self> {
        let top = cwd.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
        let git = top.join(".git");
        let found = git.symlink_metadata().ok()?;
        if !is_own(&found) {
            return None;
        }
        let git_dir = match found.is_dir() {
            true => Some(git.clone()).filter(|git| git.join("commondir").symlink_metadata().is_err()),
            false => worktree(&git),
        };
        Some(Checkout { top: top.to_owned(), git_dir: git_dir? })
    }
}

/// Whether a file is the person's own.
#[cfg(unix)]
fn is_own(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.uid() == rustix::process::geteuid().as_raw()
}

/// Nothing is taken for it: there is no sandbox either that git could run in.
#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    false
}

/// What git keeps of a worktree, whose `.git` is a file that names it. Anybody can write such a file, so the other side has to
/// name it too: only who may write there made both.
fn worktree(file: &Path) -> Option<PathBuf> {
    let git_dir = PathBuf::from(line(file)?.strip_prefix("gitdir: ")?);
    let is_own = is_own(&git_dir.symlink_metadata().ok()?);
    let is_plain = git_dir.is_absolute() && canonicalize(&git_dir).ok()? == git_dir;
    let names_it = canonicalize(Path::new(&line(&git_dir.join("gitdir"))?)).ok()? == canonicalize(file).ok()?;
    let is_shared = line(&git_dir.join("commondir"))? == "../.." && git_dir.parent()?.ends_with(".git/worktrees");
    (is_own && is_plain && names_it && is_shared).then_some(git_dir)
}

/// The one line of a small file that is no link.
fn line(path: &Path) -> Option<String> {
    let found = path.symlink_metadata().ok()?;
    let text = (found.is_file() && found.len() <= LONGEST_PATH).then(|| std::fs::read_to_string(path).ok())??;
    Some(text.trim_end_matches('\n').to_owned()).filter(|line| !line.contains('\n'))
}

/// A sandbox in which nothing can be changed, if this machine enforces all of it.
fn sandbox(setup: &Setup) -> Option<Sandbox> {
    let sandbox = Sandbox::new(&Policy::read_only(&setup.roots, &setup.hidden)).ok()?;
    (sandbox.is_whole() && sandbox.gaps().is_empty()).then_some(sandbox)
}

/// The filters that settings name, as `filter.NAME`. `None` if one of them cannot be told, and so not be switched off.
fn filters(names: &str) -> Option<Vec<String>> {
    let sections = names.split_terminator('\0').filter_map(|name| name.rsplit_once('.'));
    let mut filters: Vec<String> = sections.map(|(filter, _)| filter.to_owned()).collect();
    filters.sort_unstable();
    filters.dedup();
    (filters.len() <= MOST_FILTERS && !names.contains('\u{fffd}')).then_some(filters)
}

// On Unix, because git is asked nowhere else.
#[cfg(all(test, unix))]
mod tests;
