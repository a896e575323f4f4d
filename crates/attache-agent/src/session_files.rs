//! What is read from the disk when a session opens, all at once and not on the runtime's thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache::agent::SessionHandle;
use attache_host::files::FileError;
use attache_host::mcp::{Loaded, name_of};
use attache_host::permission::{Places, Session as Asker};
use attache_host::trust::Contents;

use crate::checkpoint::Checkpoints;
use crate::config::Config;
use crate::gate::Gate;
use crate::hooks::Hooks;
use crate::project::{CommandFiles, Project};
use crate::skills::{self, Skill};
use crate::workspace::Workspace;

/// What a session has of the disk.
pub(crate) struct SessionFiles {
    /// The session's directories, its own first: as the client named them, or, where it is to stay inside of them, as they
    /// were opened.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) workspace: Workspace,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) commands: CommandFiles,
    pub(crate) servers: Loaded,
    pub(crate) skills: Arc<[Skill]>,
    pub(crate) hooks: Hooks,
    pub(crate) gate: Gate,
    /// What the person should know.
    pub(crate) notices: Vec<String>,
}

impl SessionFiles {
    /// Reads it all. Fails if the directories cannot be opened, or are not beneath those that sessions may have.
    pub(crate) fn read(config: &Config, given: Vec<PathBuf>, handle: &SessionHandle) -> Result<Self, FileError> {
        let id = handle.id();
        let mut workspace = Workspace::open(&given[0], &given[1..], Some(handle.clone()))?;
        // What a name leads to was decided when it was opened: whoever can put a link there decides no more.
        let opened: Vec<PathBuf> = workspace.files().roots().map(Path::to_owned).collect();
        let is_allowed = |path: &Path| config.beneath.iter().any(|directory| path.starts_with(directory));
        if let Some(outside) = opened.iter().find(|path| !config.beneath.is_empty() && !is_allowed(path)) {
            return Err(FileError::Outside { path: outside.clone() });
        }
        if config.stays_inside {
            workspace = workspace.by_real_names();
        }
        let roots = if config.stays_inside { opened } else { given };
        let cwd = roots[0].as_path();
        let project = Project::of(cwd, &config.state_dir);
        let (contents, notice) = project.contents();
        let contents = contents.as_ref();
        let mut servers = mcp_servers(&config.config_dir, contents);
        let mut notices = std::mem::take(&mut servers.problems);
        notices.extend(notice);
        let (skills, problems) = skills::read(&config.skills_dir(), contents);
        notices.extend(problems);
        let (hooks, notice) = Hooks::new(config.hooks.clone(), &project, contents);
        notices.extend(notice);
        let places = Places {
            config_dir: config.config_dir.clone(),
            state_dir: config.state_dir.clone(),
            project: Some(project.root.clone()),
        };
        let asker = Asker { roots: roots.clone(), ..Asker::new("attache", id.clone(), cwd) };
        let readable = config.spill_dir(id.as_str());
        let gate = Gate::new(places, asker, &project, readable, config.permissions, &config.rules)
            .stays_inside(config.stays_inside);
        Ok(SessionFiles {
            workspace,
            checkpoints: Checkpoints::open(config.checkpoints_dir(id.as_str())),
            commands: CommandFiles::read(config.commands_dir(), project),
            servers,
            skills: skills.into(),
            hooks,
            gate,
            notices,
            roots,
        })
    }
}

/// The MCP servers of the user's settings and of a project that is trusted, and what is wrong with the lists.
fn mcp_servers(config_dir: &Path, contents: Option<&Contents>) -> Loaded {
    let mut all = Loaded::default();
    let mut add = |loaded: Result<Loaded, String>, whose: &str| {
        let loaded = loaded.unwrap_or_else(|what| Loaded { problems: vec![what], ..Loaded::default() });
        all.problems.extend(loaded.problems.iter().map(|what| format!("`mcp.json` of {whose}: {what}")));
        all.values.extend(loaded.values);
        for server in loaded.servers {
            if !all.servers.iter().any(|known| name_of(known) == name_of(&server)) {
                all.servers.push(server);
            }
        }
    };
    match std::fs::read(config_dir.join("mcp.json")) {
        Ok(own) => add(attache_host::mcp::load(&own), "your settings"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => add(Err(format!("it cannot be read: {error}")), "your settings"),
    }
    if let Some(contents) = contents {
        add(contents.mcp_servers(), "the project");
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_list_of_servers_that_cannot_be_read_is_told() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(mcp_servers(directory.path(), None).problems, [""; 0]);
        std::fs::create_dir(directory.path().join("mcp.json")).unwrap();
        let problems = mcp_servers(directory.path(), None).problems;
        assert!(problems[0].starts_with("`mcp.json` of your settings: it cannot be read: "), "{problems:?}");
    }
}
