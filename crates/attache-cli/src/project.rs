//! What a directory brings along in `.attache`: nothing of it takes effect until its user trusts it.
//!
//! There may be `permissions.toml`, `agents.toml` and `mcp.json`, each like the user's own.

use std::path::{Path, PathBuf};

use attache::model::mcp::McpServer;
use attache_host::mcp;
use attache_host::trust::{self, Contents, FOLDER, Status};

use crate::agents::config::Config;
use crate::cli::Trust;
use crate::event::{Event, Level};
use crate::exit::{Code, Failure};
use crate::visible::visible;
use crate::{connect, paths};

/// The project that a run works in.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// What is trusted; nothing otherwise.
    contents: Option<Contents>,
    notice: Option<String>,
}

impl Project {
    pub(crate) fn find(cwd: &Path) -> Result<Self, Failure> {
        let root = trust::project_of(cwd);
        let (contents, notice) = list()?.contents(&root);
        Ok(Project { root, contents, notice })
    }

    /// The project of the current directory.
    pub(crate) fn here() -> Result<Self, Failure> {
        Project::find(&connect::directory(None)?)
    }

    /// A directory that brings nothing along.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Project { root: PathBuf::from("/"), contents: None, notice: None }
    }

    /// What its user should know about it.
    pub(crate) fn notices(&self) -> Vec<Event> {
        self.notice.iter().map(|text| Event::notice(Level::Warning, text.as_str())).collect()
    }

    /// Its rules, with the name of their file.
    pub(crate) fn permission_rules(&self) -> Option<(String, &[u8])> {
        let rules = self.contents.as_ref()?.file("permissions.toml")?;
        Some((self.path_of("permissions.toml").display().to_string(), rules))
    }

    /// Its MCP servers.
    pub(crate) fn mcp_servers(&self) -> Result<Vec<McpServer>, Failure> {
        match self.contents.as_ref().and_then(|contents| contents.file("mcp.json")) {
            Some(content) => parse_mcp(content, &self.path_of("mcp.json")),
            None => Ok(Vec::new()),
        }
    }

    /// Its agents. The user's own of the same name come before them.
    pub(crate) fn agents(&self) -> Result<Config, Failure> {
        let Some(content) = self.contents.as_ref().and_then(|contents| contents.file("agents.toml")) else {
            return Ok(Config::default());
        };
        let parsed = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".into()).and_then(Config::parse);
        parsed.map_err(|what: String| Failure::usage(format!("`{}`: {what}", self.path_of("agents.toml").display())))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(FOLDER).join(name)
    }
}

/// Reads the MCP servers of a file's content.
pub(crate) fn parse_mcp(content: &[u8], path: &Path) -> Result<Vec<McpServer>, Failure> {
    mcp::parse(content).map_err(|what| Failure::usage(format!("`{}`: {what}", path.display())))
}

fn list() -> Result<trust::Trust, Failure> {
    Ok(trust::Trust::new(paths::state()?.join("trust.toml")))
}

/// `attache trust`.
pub(crate) fn trust(args: &Trust) -> Result<(), Failure> {
    let failed = |error: trust::TrustError| Failure::usage(error.to_string());
    let list = list()?;
    if args.revoke {
        // A directory that is gone can be named too.
        let path = args.directory.clone().unwrap_or_else(|| PathBuf::from("."));
        let directory = connect::directory(Some(&path)).map(|cwd| trust::project_of(&cwd)).unwrap_or(path);
        list.revoke(&directory).map_err(failed)?;
        eprintln!("`{}` is not trusted", directory.display());
        return Ok(());
    }
    let directory = trust::project_of(&connect::directory(args.directory.as_deref())?);
    let (status, contents) = list.check(&directory).map_err(failed)?;
    let names =
        || contents.files().iter().map(|(name, _)| format!("  {FOLDER}/{}\n", visible(name))).collect::<String>();
    match (status, args.status) {
        (Status::NothingToTrust, _) => {
            eprintln!("`{}` has no `{FOLDER}`, so there is nothing to trust", directory.display());
        }
        (Status::Trusted, _) => eprint!("`{}` is trusted:\n{}", directory.display(), names()),
        (Status::Changed | Status::Unknown, true) => {
            let how = if status == Status::Changed { "has changed since it was trusted" } else { "is not trusted" };
            return Err(Failure::new(Code::Agent, format!("`{}` {how}:\n{}", directory.display(), names().trim_end())));
        }
        (Status::Changed | Status::Unknown, false) => {
            list.trust(&contents).map_err(failed)?;
            eprint!("`{}` is trusted as it is now:\n{}", directory.display(), names());
        }
    }
    Ok(())
}
