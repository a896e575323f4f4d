//! What a directory brings along in `.attache`: nothing of it takes effect until its user trusts it.

use std::path::{Path, PathBuf};

use attache::model::McpServer;

use crate::cli::Trust;
use crate::event::Event;
use crate::exit::Failure;

/// The project that a run works in.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
}

impl Project {
    pub(crate) fn find(cwd: &Path) -> Result<Self, Failure> {
        Ok(Project { root: cwd.to_owned() })
    }

    pub(crate) fn notices(&self) -> Vec<Event> {
        Vec::new()
    }

    pub(crate) fn permission_rules(&self) -> Option<(String, &[u8])> {
        None
    }

    pub(crate) fn mcp_servers(&self) -> Result<Vec<McpServer>, Failure> {
        Ok(Vec::new())
    }
}

pub(crate) fn trust(_: &Trust) -> Result<(), Failure> {
    Ok(())
}
