//! Who opened which session of an agent that does not know its clients.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use attache::private;
use attache_http::Principal;

use crate::exit::Failure;
use crate::paths;

/// Whose the sessions are that a principal opens: its own, or its group's. A name has no colon in it, so that nobody is called
/// like a group.
pub(super) fn owner_of(principal: &Principal) -> String {
    match principal.group() {
        Some(group) => format!("group:{group}"),
        None => principal.as_str().to_owned(),
    }
}

/// The owners of sessions: a file with a line for each, which is only added to.
pub(super) struct Owners {
    inner: Mutex<Inner>,
}

struct Inner {
    of: HashMap<String, String>,
    file: File,
}

impl Owners {
    /// The owners of the sessions of an agent.
    pub(super) fn open(agent: &str) -> Result<Self, Failure> {
        Self::open_in(&paths::state()?.join("serve"), agent)
    }

    /// The same, kept in this directory.
    pub(super) fn open_in(directory: &Path, agent: &str) -> Result<Self, Failure> {
        // A name of an agent is plain; a program may be called anything.
        let name: String = agent.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let path = directory.join(format!("owners-{name}.jsonl"));
        let cannot = |error: io::Error| Failure::usage(format!("cannot use `{}`: {error}", path.display()));
        paths::private_directory(directory).map_err(cannot)?;
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(cannot)?,
        };
        // The first who was written down is the owner; a torn line is nobody's.
        let mut of = HashMap::new();
        for (session, owner) in text.lines().filter_map(|line| serde_json::from_str::<(String, String)>(line).ok()) {
            of.entry(session).or_insert(owner);
        }
        let mut file = private::append(&path).map_err(cannot)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(cannot)?;
        }
        Ok(Owners { inner: Mutex::new(Inner { of, file }) })
    }

    /// Whether a session is this owner's. One that nobody opened here is nobody's.
    pub(super) fn is_owner(&self, session: &str, owner: &str) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.of.get(session).is_some_and(|found| found == owner)
    }

    /// Writes down whose a session is.
    pub(super) fn add(&self, session: &str, owner: &str) -> io::Result<()> {
        let inner = &mut *self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.of.contains_key(session) {
            return if inner.of[session] == owner { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) };
        }
        let line = format!("{}\n", serde_json::json!([session, owner]));
        inner.file.write_all(line.as_bytes())?;
        inner.of.insert(session.to_owned(), owner.to_owned());
        Ok(())
    }
}
