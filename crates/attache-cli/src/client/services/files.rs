//! Reading and writing files for the agent: found first, then decided about, and then exactly that file is opened.

use std::path::{Path, PathBuf};

use attache::client::Pending;
use attache::model::diff::Diff;
use attache::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache::proto::method::Request;
use attache_host::files::{FileError, Files};

use crate::event::{self, FileOperation};

/// How often a file is looked for again that has moved between the look and the opening. Nothing that is meant well
/// moves this often.
const ATTEMPTS: usize = 8;

/// Where a file really is, links followed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spot {
    pub(crate) path: PathBuf,
    is_outside: bool,
    /// It has another name, and may be a file from outside.
    pub(crate) is_hard_link: bool,
    attempts: usize,
}

impl Spot {
    /// The files, with this one allowed where it lies: for use once that is decided. A link that has come in the way
    /// since is not followed.
    pub(crate) fn files(&self, files: &Files) -> Files {
        let files = files.clone().without_links();
        if self.is_outside || self.is_hard_link { files.allow(&self.path) } else { files }
    }

    /// Whether it is not known where the file is, or not any more.
    pub(crate) fn is_to_be_found(&self) -> bool {
        self.path.as_os_str().is_empty()
    }
}

/// A request that names a file.
pub(crate) trait NamesFile: Request + Clone {
    fn path(&self) -> &str;
}

impl NamesFile for ReadTextFileRequest {
    fn path(&self) -> &str {
        &self.path
    }
}

impl NamesFile for WriteTextFileRequest {
    fn path(&self) -> &str {
        &self.path
    }
}

/// A request that was not answered: its file is not where it was, or has several names. It has to be decided about anew.
pub(crate) struct Again<Q: Request> {
    pub(crate) call: Pending<Q>,
    pub(crate) spot: Spot,
}

/// Finds a file. One that cannot be found out about is answered so.
pub(crate) async fn find<Q>(
    operation: FileOperation,
    call: Pending<Q>,
    files: Files,
    before: Spot,
) -> Result<(Pending<Q>, Spot), event::Event>
where
    Q: NamesFile,
    Q::Response: Send + Sync,
{
    let path = PathBuf::from(call.request().path());
    // It blocks for as long as the disk takes.
    let place = tokio::task::spawn_blocking(move || files.place(&path)).await;
    match place.unwrap_or_else(|_| Err(interrupted())) {
        Ok(place) => {
            let is_outside = !place.is_inside();
            let spot = Spot { path: place.path().to_owned(), is_outside, ..before };
            Ok((call, spot))
        }
        Err(error) => Err(fail(operation, call, error).await),
    }
}

/// Does what the agent wants with a file, and answers it. Gives the request back, unanswered, if the file has moved or is
/// one of several names.
pub(crate) async fn touch<Q>(
    operation: FileOperation,
    call: Pending<Q>,
    spot: Spot,
    work: impl FnOnce(&Q, &Path) -> Result<Q::Response, FileError> + Send + 'static,
) -> Result<event::Event, Again<Q>>
where
    Q: NamesFile + Send + 'static,
    Q::Response: Send + Sync,
{
    let (request, path) = (call.request().clone(), spot.path.clone());
    let done = tokio::task::spawn_blocking(move || work(&request, &path)).await;
    match done.unwrap_or_else(|_| Err(interrupted())) {
        Err(FileError::HardLink { .. }) if !spot.is_hard_link => {
            Err(Again { call, spot: Spot { is_hard_link: true, ..spot } })
        }
        Err(FileError::Changed { .. } | FileError::Outside { .. }) if spot.attempts < ATTEMPTS => {
            Err(Again { call, spot: Spot { attempts: spot.attempts + 1, ..Spot::default() } })
        }
        Err(error) => Ok(fail(operation, call, error).await),
        Ok(answer) => {
            let path = call.request().path().to_owned();
            let _ = call.reply(Ok(answer)).await;
            Ok(event::Event::File(event::File { operation, path, error: None }))
        }
    }
}

async fn fail<Q>(operation: FileOperation, call: Pending<Q>, error: FileError) -> event::Event
where
    Q: NamesFile,
    Q::Response: Send + Sync,
{
    let path = call.request().path().to_owned();
    let told = error.to_string();
    let _ = call.reply(Err(error.to_peer())).await;
    event::Event::File(event::File { operation, path, error: Some(told) })
}

/// It did not come to an end, because we are coming to ours.
fn interrupted() -> FileError {
    FileError::Io { path: PathBuf::new(), source: std::io::ErrorKind::Interrupted.into() }
}

/// The file before and after a write, for the question.
pub(crate) async fn before_and_after(files: Files, spot: &Spot, call: &WriteTextFileRequest) -> Diff {
    let path = spot.path.clone();
    let old = tokio::task::spawn_blocking(move || files.read(&path)).await;
    let old = old.ok().and_then(Result::ok);
    Diff::text(spot.path.to_string_lossy(), old, call.content.as_str())
}
