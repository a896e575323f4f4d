//! What an id, or the beginning of one, stands for: a run, or a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agent::sessions as kept;
use crate::connect;
use crate::exit::{Code, Failure};
use crate::journal;
use crate::visible::one_line;

/// What an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meant {
    /// A run, by its id.
    Run(String),
    Session(Session),
}

/// A session that is known here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Its runs, the newest first.
    pub(crate) runs: Vec<String>,
    /// Whether the built-in agent keeps it.
    pub(crate) is_kept: bool,
}

/// How many are named where an id can mean several.
const MOST_NAMED: usize = 10;

/// What an id or the unique beginning of one stands for.
pub(crate) fn find(id: &str) -> Result<Meant, Failure> {
    let known = Known::read()?;
    known.find(id)?.ok_or_else(|| {
        let hint = "hint: `attache sessions list` has them";
        Failure::new(Code::NotFound, format!("there is no run or session `{}`\n{hint}", one_line(id)))
    })
}

/// The session that an id means: its own, that of a run, or the beginning of one. An id that is not known here may be
/// known to the agent, and stays as it is.
pub(crate) fn session(id: &str) -> Result<String, Failure> {
    match Known::read()?.find(id)? {
        Some(Meant::Session(session)) => Ok(session.id),
        Some(Meant::Run(run)) => journal::session_of(&run)
            .ok_or_else(|| Failure::new(Code::NotFound, format!("run `{run}` has no session to resume"))),
        None => Ok(id.into()),
    }
}

/// Where a session goes on: in the directory that it belongs to. Elsewhere its agent would look at other files than the
/// ones it knows, and could undo nothing. A session that is not known here goes where it is told.
pub(crate) fn directory(session: &str, given: Option<&Path>) -> Result<PathBuf, Failure> {
    let own = directories_of(session)?;
    match given {
        None if own.is_empty() || own.contains(&connect::here()?) => connect::directory(None),
        None => match own.iter().find(|directory| directory.is_dir()) {
            Some(directory) => Ok(directory.clone()),
            None => {
                let what = format!("the directory of session `{}` is gone: `{}`", one_line(session), shown(&own[0]));
                Err(Failure::usage(format!("{what}\nhint: `-C DIR` takes it elsewhere, without what it could undo")))
            }
        },
        Some(_) => {
            let given = connect::directory(given)?;
            match own.iter().find(|directory| directory.is_dir()) {
                Some(directory) if !own.contains(&given) => {
                    let what = format!(
                        "session `{}` belongs to `{}` and cannot go on in `{}`",
                        one_line(session),
                        shown(directory),
                        shown(&given)
                    );
                    Err(Failure::usage(format!("{what}\nhint: leave out `-C` to go on where it belongs")))
                }
                _ => Ok(given),
            }
        }
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}

/// The directories in which a session was held: of one that the built-in agent keeps the only one, else those of its runs.
fn directories_of(session: &str) -> Result<Vec<PathBuf>, Failure> {
    if let Some(kept) = kept::summaries(None)?.into_iter().find(|kept| kept.id == session) {
        return Ok(vec![kept.cwd.into()]);
    }
    journal::directories_of(session)
}

/// The session of the built-in agent that an id means.
pub(crate) fn kept_session(id: &str) -> Result<Option<String>, Failure> {
    let kept = kept_by_built_in();
    // One that cannot be read is in no list of sessions, but has a file.
    Ok(Some(session(id)?).filter(|id| kept.contains(id)))
}

/// The sessions that the built-in agent keeps; none where that cannot be told.
pub(crate) fn kept_by_built_in() -> Vec<String> {
    kept::kept_before(None).unwrap_or_default()
}

/// All runs and sessions that are known here.
struct Known {
    runs: Vec<String>,
    sessions: BTreeMap<String, Session>,
}

impl Known {
    fn read() -> Result<Self, Failure> {
        let runs = journal::runs()?;
        let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
        for run in &runs {
            if let Some(id) = journal::session_of(run) {
                let session = sessions.entry(id.clone()).or_insert_with(|| Session { id, ..Session::default() });
                session.runs.push(run.clone());
            }
        }
        for id in kept::kept_before(None)? {
            let session = sessions.entry(id.clone()).or_insert_with(|| Session { id, ..Session::default() });
            session.is_kept = true;
        }
        Ok(Known { runs, sessions })
    }

    fn find(&self, id: &str) -> Result<Option<Meant>, Failure> {
        if self.runs.iter().any(|run| run == id) {
            return Ok(Some(Meant::Run(id.into())));
        }
        if let Some(session) = self.sessions.get(id) {
            return Ok(Some(Meant::Session(session.clone())));
        }
        if id.is_empty() {
            return Ok(None);
        }
        let runs = self.runs.iter().filter(|run| run.starts_with(id)).map(|run| Meant::Run(run.clone()));
        let sessions = self.sessions.values().filter(|session| session.id.starts_with(id)).cloned();
        let mut found: Vec<Meant> = runs.chain(sessions.map(Meant::Session)).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => {
                let named = found.iter().take(MOST_NAMED).map(|meant| match meant {
                    Meant::Run(run) => format!("\n  run {run}"),
                    Meant::Session(session) => format!("\n  session {}", one_line(&session.id)),
                });
                let more = count.saturating_sub(MOST_NAMED);
                let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
                let named: String = named.collect();
                let what = format!("`{}` is the beginning of {count} ids:{named}{more}", one_line(id));
                Err(Failure::usage(format!("{what}\nhint: give more of it")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_means_one_thing_or_the_candidates_are_named() {
        let session = |id: &str| Session { id: id.into(), ..Session::default() };
        let known = Known {
            runs: vec!["20261116t2-b".into(), "20261116t1-a".into()],
            sessions: [("sess_1", session("sess_1")), ("sess_12", session("sess_12")), ("other", session("other"))]
                .map(|(id, session)| (id.into(), session))
                .into(),
        };
        let found = |id| known.find(id).map_err(|failure| failure.message);
        assert_eq!(found("20261116t1"), Ok(Some(Meant::Run("20261116t1-a".into()))));
        // A whole id is that, also where it is the beginning of another.
        assert_eq!(found("sess_1"), Ok(Some(Meant::Session(session("sess_1")))));
        assert_eq!(found("o"), Ok(Some(Meant::Session(session("other")))));
        assert_eq!(found("x"), Ok(None));
        assert_eq!(found(""), Ok(None));
        let message = found("2026").unwrap_err();
        assert!(message.contains("2 ids:\n  run 20261116t2-b\n  run 20261116t1-a\nhint: "), "{message}");
        assert!(found("sess").unwrap_err().contains("session sess_12"));
    }
}
