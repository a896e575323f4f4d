//! What changes from prompt to prompt: the date, the mode, the branch, what git says, and which files there are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use attache_host::files::Files;
use attache_host::permission::{is_secret, visible};
use attache_host::sandbox::git_directory;

use super::{Detail, Place};
use crate::settings::{Mode, Words};
use crate::tools::commands::GitState;
use crate::workspace::{Stop, Walk};

/// How long is looked for files. A project that takes longer is told in part.
const LOOKING: Duration = Duration::from_millis(300);

/// How many files are counted.
const MOST_FILES: usize = 20_000;

/// How long the list of files may be, in bytes, for models that can follow much and for those that cannot.
const LISTING: usize = 3_000;
const SHORT_LISTING: usize = 900;

/// What the model is told of where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Surroundings {
    date: String,
    mode: Mode,
    branch: Option<String>,
    git: Option<GitState>,
    files: Vec<PathBuf>,
    is_cut: bool,
}

/// Looks at the project. Reads directories and blocks.
pub(crate) fn look_around(place: &Place, mode: Mode) -> Surroundings {
    let (files, is_cut) = files(&place.cwd);
    let mut date = attache::trace::rfc3339(SystemTime::now());
    date.truncate(10);
    Surroundings { date, mode, branch: branch(&place.cwd), git: None, files, is_cut }
}

impl Surroundings {
    /// The same with what git says.
    pub(crate) fn with_git(self, git: Option<GitState>) -> Self {
        Surroundings { git, ..self }
    }

    /// What is to be told, as a part of a prompt: all of it at first, then what has changed. `None` if nothing has.
    pub(crate) fn told(&self, before: Option<&Surroundings>, detail: Detail) -> Option<String> {
        let Detail { is_brief, is_small, .. } = detail;
        let is_new = |same: fn(&Surroundings, &Surroundings) -> bool| before.is_none_or(|before| !same(self, before));
        let mut lines = Vec::new();
        if is_new(|one, two| one.date == two.date) && !is_small {
            lines.push(format!("Date: {}", self.date));
        }
        // A small model has to know of the mode in which its changes are refused, and that it has been left.
        let is_architect = self.mode == Mode::Architect || before.is_some_and(|before| before.mode == Mode::Architect);
        if is_new(|one, two| one.mode == two.mode) && (!is_small || is_architect) {
            lines.push(format!("Mode: {}", self.mode.word()));
        }
        if is_new(|one, two| one.branch == two.branch)
            && let Some(branch) = self.branch.as_ref().filter(|_| !is_small)
        {
            lines.push(format!("Git branch: {branch}"));
        }
        if is_new(|one, two| one.git == two.git)
            && let Some(git) = self.git.as_ref().filter(|_| !is_small)
        {
            lines.push(format!("Git status: {}", git.words()));
        }
        if is_new(|one, two| one.files == two.files) {
            lines.push(self.listing(if is_brief { SHORT_LISTING } else { LISTING }));
        }
        // No name of a file or of a branch can end the mark.
        let told = lines.join("\n").replace("</environment", "< /environment");
        (!lines.is_empty()).then(|| format!("<environment>\n{told}\n</environment>"))
    }

    /// The files by name, if that is short enough; else the directories with how many are in each.
    fn listing(&self, limit: usize) -> String {
        let name = |path: &PathBuf| visible(&path.to_string_lossy());
        let more = if self.is_cut { ", and more" } else { "" };
        let count = self.files.len();
        match self.files.iter().map(|path| path.as_os_str().len() + 1).sum::<usize>() {
            0 => return "Files: none".into(),
            length if length <= limit => {
                let names: Vec<String> = self.files.iter().map(name).collect();
                return format!("Files{more}:\n{}", names.join("\n"));
            }
            _ => {}
        }
        let mut lines = vec![format!("Files: {count}{more}. By directory:")];
        let mut length = 0;
        for (directory, count) in self.directories(limit) {
            let line = if directory.is_empty() { format!("./ ({count})") } else { format!("{directory}/ ({count})") };
            length += line.len() + 1;
            if length > limit {
                lines.push("…".into());
                break;
            }
            lines.push(line);
        }
        lines.join("\n")
    }

    /// The directories with how many files are beneath each, as deep as there is room for.
    fn directories(&self, limit: usize) -> BTreeMap<String, usize> {
        let at_depth = |depth: usize| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for path in &self.files {
                let parent: PathBuf = path.parent().unwrap_or(Path::new("")).components().take(depth).collect();
                *counts.entry(visible(&parent.to_string_lossy())).or_default() += 1;
            }
            counts
        };
        let fits = |counts: &BTreeMap<String, usize>| counts.keys().map(|name| name.len() + 8).sum::<usize>() <= limit;
        let deepest = (2..=4).map(at_depth).take_while(fits).last();
        deepest.unwrap_or_else(|| at_depth(1))
    }
}

fn files(cwd: &Path) -> (Vec<PathBuf>, bool) {
    let Ok(files) = Files::open(cwd, &[]) else { return (Vec::new(), false) };
    let Some(start) = files.roots().next().map(Path::to_owned) else { return (Vec::new(), false) };
    let stop = Stop::after(LOOKING);
    let Ok(mut walk) = Walk::new(&files, &start, &stop) else { return (Vec::new(), false) };
    let found = walk.by_ref().map(|found| found.relative).filter(|path| !is_secret(path));
    let found: Vec<PathBuf> = found.take(MOST_FILES).collect();
    let is_cut = walk.is_cut || found.len() == MOST_FILES;
    (found, is_cut)
}

/// The branch that is checked out. Read from its file: the repository may be anybody's, and git runs what it names.
fn branch(cwd: &Path) -> Option<String> {
    let top = cwd.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
    // A worktree or a submodule has a file that says where its directory is. That has to agree: whoever wrote the file could
    // have us read of any other repository.
    let head = match top.join(".git").is_file() {
        true => first_bytes(&git_directory(top)?, "HEAD", 300)?,
        false => first_bytes(top, ".git/HEAD", 300)?,
    };
    let head = head.trim();
    match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => Some(visible(branch)),
        None if head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Some(format!("none, detached at {}", head.get(..10)?))
        }
        None => None,
    }
}

/// The beginning of a file beneath a directory.
fn first_bytes(directory: &Path, name: &str, most: usize) -> Option<String> {
    let read = Files::open(directory, &[]).and_then(|files| files.read_unasked(&directory.join(name), most));
    String::from_utf8(read.ok()?).ok()
}
