//! The files of a session: beneath its directories, through the client's editor where that offers it.
//!
//! What is outside of the directories is only touched after a person has been asked. So there are two looks: a
//! `Target` says where a path leads, which is what is asked about, and what is then done is done to just that. A link
//! that has come in between makes it fail.

mod background;
mod seen;
mod text;
mod transfer;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use attache::agent::SessionHandle;
use attache::model::tool::{Location, ToolKind};
use attache_host::files::{EntryKind, FileError, Files, Info, Place};
use attache_host::permission::{Action, visible};

use crate::tools::Refusal;

pub(crate) use background::{Stop, blocking, bounded};
pub(crate) use seen::{Digest, changed};
pub(crate) use text::{Encoding, Text, TextError, has_wide_ends, is_binary, media_type, shortened, widen};
pub(crate) use transfer::{TEXT_LIMIT, check_file, check_size, not_text};
pub(crate) use walk::Walk;

/// The files of a session, and what the model has seen of them.
#[derive(Debug)]
pub struct Workspace {
    files: Files,
    /// The directories as the client named them: the session's own first. Editors know their buffers by such paths.
    given: Vec<PathBuf>,
    client: Option<SessionHandle>,
    seen: Mutex<seen::Seen>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// As the file system has it, without links.
    pub(crate) real: PathBuf,
    /// The same, absolute, as the client would name it.
    pub(crate) path: String,
    /// For people and the model: from the session's directory where it is beneath that. Nothing in it is invisible.
    pub(crate) name: String,
    /// The path from the root that it is beneath, if it is beneath one.
    pub(crate) relative: Option<PathBuf>,
    /// What is there, if anything is.
    pub(crate) info: Option<Info>,
}

impl Workspace {
    /// Opens the session's directory and its additional directories.
    pub fn open(cwd: &Path, directories: &[PathBuf], client: Option<SessionHandle>) -> Result<Self, FileError> {
        let files = Files::open(cwd, directories)?;
        let given = std::iter::once(cwd.to_owned()).chain(directories.iter().cloned()).collect();
        Ok(Workspace { files, given, client, seen: Mutex::default() })
    }

    /// The same with its directories by what their names led to when they were opened.
    pub(crate) fn by_real_names(self) -> Self {
        Workspace { given: self.files.roots().map(Path::to_owned).collect(), ..self }
    }

    /// The files beneath the session's directories.
    pub(crate) fn files(&self) -> Files {
        self.files.clone()
    }

    /// The session's directory, as the client named it.
    pub fn cwd(&self) -> &Path {
        &self.given[0]
    }

    /// Where a path leads, links followed, and what is there.
    pub(crate) async fn target(&self, path: &str) -> Result<Target, Refusal> {
        self.look(path, |files, path| {
            let place = files.place(path)?;
            // Nothing is opened here, so what is outside may be looked at, too.
            let info = files.allow(place.path()).stat(path);
            Ok((place, info))
        })
        .await
    }

    /// Where a name is, and what it stands for: a link itself, not where that leads.
    pub(crate) async fn target_of_name(&self, path: &str) -> Result<Target, Refusal> {
        self.look(path, |files, path| {
            let place = files.place_of_name(path)?;
            let info = files.allow(place.path()).stat_name(path);
            Ok((place, info))
        })
        .await
    }

    async fn look(
        &self,
        path: &str,
        find: impl FnOnce(Files, &Path) -> Result<(Place, Result<Info, FileError>), FileError> + Send + 'static,
    ) -> Result<Target, Refusal> {
        if path.is_empty() || path.contains('\0') {
            return Err(Refusal("the path is empty or has a zero byte in it".into()));
        }
        let files = self.files.clone();
        let path = self.cwd().join(path);
        let (place, info) = blocking(move || find(files, &path)).await?.map_err(|error| refusal(&error))?;
        let info = match info {
            Ok(info) => Some(info),
            Err(FileError::NotFound { .. }) => None,
            Err(error) => return Err(refusal(&error)),
        };
        self.describe(place, info)
    }

    /// A place in the client's words.
    pub(crate) fn describe(&self, place: Place, info: Option<Info>) -> Result<Target, Refusal> {
        let (path, real, relative): (PathBuf, _, _) = match place {
            Place::Inside { root, relative, path } => {
                // By its parts: joined to nothing, the root itself would end with a slash.
                let given = self.given[root].join(&relative).components().collect();
                (given, path, Some(relative))
            }
            Place::Outside { path } => (path.clone(), path, None),
        };
        let name = visible(&self.name_of(&path));
        // What the client and the rules are told has to be the path and not something like it.
        let path = path.into_os_string().into_string();
        let path = path.map_err(|_| Refusal(format!("the file name of `{name}` is not valid UTF-8")))?;
        Ok(Target { real, path, name, relative, info })
    }

    fn name_of(&self, path: &Path) -> String {
        match path.strip_prefix(self.cwd()) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    /// The files beneath the session's directories, with no link followed.
    pub(crate) fn files_without_links(&self) -> Files {
        self.files.clone().without_links()
    }

    /// How people know paths that are without links.
    pub(crate) fn real_names(&self) -> RealNames {
        RealNames(self.files.roots().next().map(Path::to_owned).unwrap_or_default())
    }

    /// The files, to do with a target what was allowed.
    pub(crate) fn files_for(&self, targets: &[&Target]) -> Files {
        let needs_yes = targets.iter().filter(|target| !target.is_inside() || target.has_more_names());
        needs_yes.fold(self.files.clone().without_links(), |files, target| files.allow(&target.real))
    }
}

/// Names paths for people: from the session's directory where they are beneath that. Nothing in a name is invisible.
pub(crate) struct RealNames(PathBuf);

impl RealNames {
    pub(crate) fn of(&self, path: &Path) -> String {
        visible(&path.strip_prefix(&self.0).unwrap_or(path).to_string_lossy())
    }
}

impl Target {
    pub(crate) fn is_inside(&self) -> bool {
        self.relative.is_some()
    }

    pub(crate) fn kind(&self) -> Option<EntryKind> {
        self.info.map(|info| info.kind)
    }

    /// Whether it is a file that may be one from outside, under another name.
    pub(crate) fn has_more_names(&self) -> bool {
        self.info.is_some_and(|info| info.kind == EntryKind::File && info.links > 1)
    }

    /// What has to be allowed before it is read or changed.
    pub(crate) fn actions(&self, kind: ToolKind) -> Vec<Action> {
        let paths = vec![self.path.clone()];
        let mut actions = vec![Action::Files { kind: kind.clone(), paths: paths.clone() }];
        if self.has_more_names() && self.is_inside() {
            let reason = "the file has more than one hard link, so it may be one from outside";
            actions.push(Action::Unclear { kind, paths, reason });
        }
        actions
    }

    pub(crate) fn location(&self, line: Option<usize>) -> Location {
        let line = line.map(|line| u32::try_from(line).unwrap_or(u32::MAX));
        Location::new(self.path.as_str()).with(|location| location.line = line)
    }
}

/// What the model is told of a failure of the file system.
pub(crate) fn refusal(error: &FileError) -> Refusal {
    Refusal(error.to_string())
}
