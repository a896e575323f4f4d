//! Reading and writing files for the agent, and finding out that one is not where it seemed to be.

use std::path::{Path, PathBuf};

use attache::client::Pending;
use attache::model::diff::Diff;
use attache::model::fs::{ReadTextFileRequest, WriteTextFileRequest};
use attache::proto::method::Request;
use attache_host::files::{FileError, Files};

use crate::event::{self, FileOperation};

/// Where a file really is, when that is not plainly beneath a directory of the session.
pub(crate) struct Elsewhere {
    pub(crate) path: PathBuf,
    pub(crate) is_hard_link: bool,
}

/// Does what the agent wants with a file, and answers it. Gives the request back, unanswered, if the file is elsewhere
/// than was allowed.
pub(crate) async fn touch<Q>(
    operation: FileOperation,
    path: String,
    call: Pending<Q>,
    allowed: Option<Elsewhere>,
    work: impl FnOnce(&Q, Option<&Path>) -> Result<Q::Response, FileError> + Send + 'static,
) -> Result<event::Event, (Pending<Q>, Elsewhere)>
where
    Q: Request + Clone + Send + 'static,
    Q::Response: Send + Sync,
{
    let request = call.request().clone();
    let allowed = allowed.map(|elsewhere| elsewhere.path);
    // It blocks for as long as the disk takes.
    let done = tokio::task::spawn_blocking(move || work(&request, allowed.as_deref())).await;
    let done = match done {
        Ok(Err(FileError::Outside { path })) => return Err((call, Elsewhere { path, is_hard_link: false })),
        Ok(Err(FileError::HardLink { path })) => return Err((call, Elsewhere { path, is_hard_link: true })),
        Ok(done) => done,
        // It did not come to an end, because we are coming to ours.
        Err(_) => Err(FileError::Io { path: PathBuf::new(), source: std::io::ErrorKind::Interrupted.into() }),
    };
    let error = done.as_ref().err().map(ToString::to_string);
    let _ = call.reply(done.map_err(|error| error.to_peer())).await;
    Ok(event::Event::File(event::File { operation, path, error }))
}

/// The file before and after a write, for the question.
pub(crate) async fn before_and_after(files: Files, call: &WriteTextFileRequest) -> Diff {
    let request = ReadTextFileRequest::new(call.session_id.clone(), call.path.as_str());
    let old = tokio::task::spawn_blocking(move || files.read(&request)).await;
    let old = old.ok().and_then(Result::ok).map(|response| response.content);
    Diff::text(call.path.as_str(), old, call.content.as_str())
}
