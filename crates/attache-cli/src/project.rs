//! What a directory brings along in `.attache`: nothing of it takes effect until its user trusts it.
//!
//! There may be `permissions.toml`, `agents.toml` and `mcp.json`, each like the user's own.

use std::path::{Path, PathBuf};

use attache::model::mcp::McpServer;
use attache::process::Command;
use attache_host::mcp::{self, Loaded, Written};
use attache_host::trust::{self, Contents, FOLDER, Status};
use attache_host::visible::{visible as visible_strictly, visible_lines};

use crate::agents::catalog::on_path;
use crate::agents::config::Config;
use crate::cli::Trust;
use crate::event::{Event, Level};
use crate::exit::{Code, Failure};
use crate::visible::{one_line, visible};
use crate::{connect, paths, tty};

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
        let (contents, notice) = trusted()?.contents(&root);
        Ok(Project { root, contents, notice })
    }

    /// The project of the current directory.
    pub(crate) fn here() -> Result<Self, Failure> {
        Project::find(&connect::directory(None)?)
    }

    /// A directory that brings nothing along.
    pub(crate) fn none() -> Self {
        Project { root: PathBuf::from("/"), contents: None, notice: None }
    }

    /// What its user should know about it.
    pub(crate) fn notices(&self) -> Vec<Event> {
        let servers = self.contents.as_ref().and_then(|contents| contents.mcp_servers().ok()).unwrap_or_default();
        let path = self.path_of("mcp.json");
        let problems = servers.problems.iter().map(|what| format!("`{}`: {what}", path.display()));
        self.notice.iter().cloned().chain(problems).map(|text| Event::notice(Level::Warning, text)).collect()
    }

    /// Its MCP servers that can be used, with the values of variables in them. What is wrong with others is a notice.
    pub(crate) fn mcp_servers(&self) -> Result<Vec<McpServer>, Failure> {
        let servers = self.contents.as_ref().map_or_else(|| Ok(Loaded::default()), Contents::mcp_servers);
        let servers =
            servers.map_err(|what| Failure::usage(format!("`{}`: {what}", self.path_of("mcp.json").display())));
        Ok(servers?.servers)
    }

    /// Its MCP servers as they are written.
    pub(crate) fn written_mcp_servers(&self) -> Written {
        let content = self.contents.as_ref().and_then(|contents| contents.file("mcp.json"));
        content.and_then(|content| mcp::parse(content).ok()).unwrap_or_default()
    }

    /// Its agents. The user's own of the same name come before them.
    pub(crate) fn agents(&self) -> Result<Config, Failure> {
        let Some(contents) = &self.contents else { return Ok(Config::default()) };
        let Some(content) = contents.file("agents.toml") else { return Ok(Config::default()) };
        let parsed = std::str::from_utf8(content).map_err(|_| "it is not UTF-8".into()).and_then(Config::parse);
        let mut config = parsed
            .map_err(|what: String| Failure::usage(format!("`{}`: {what}", self.path_of("agents.toml").display())))?;
        // The program itself is never a relative path.
        for word in config.agents.values_mut().flat_map(|entry| entry.command.iter_mut().skip(1)) {
            *word = contents.anchored(word);
        }
        Ok(config)
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(FOLDER).join(name)
    }
}

/// Reads the MCP servers of a file that the user names, with the values of variables in them.
pub(crate) fn load_mcp(content: &[u8], path: &Path) -> Result<Vec<McpServer>, Failure> {
    let wrong = |what: &str| Failure::usage(format!("`{}`: {what}", path.display()));
    let loaded = mcp::load(content).map_err(|what| wrong(&what))?;
    match loaded.problems.first() {
        Some(what) => Err(wrong(what)),
        None => Ok(loaded.servers),
    }
}

/// The list of what the user trusts.
pub(crate) fn trusted() -> Result<trust::Trust, Failure> {
    Ok(trust::Trust::new(paths::state()?.join("trust.toml")))
}

/// `attache trust`.
pub(crate) async fn trust(args: &Trust) -> Result<(), Failure> {
    let failed = |error: trust::TrustError| Failure::usage(error.to_string());
    let list = trusted()?;
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
    let shown = visible(&directory.to_string_lossy()).into_owned();
    let how = match status {
        Status::NothingToTrust => {
            eprintln!("`{shown}` has no `{FOLDER}`, so there is nothing to trust");
            return Ok(());
        }
        Status::Trusted => {
            eprint!("`{shown}` is trusted:\n{}{}", names(&contents), effects(&contents));
            return Ok(());
        }
        Status::Changed => "has changed since it was trusted, or a program that it starts has",
        Status::Uncovered => {
            "was trusted by an earlier version, without the programs that it starts or the variables that it reads"
        }
        Status::Unknown => "is not trusted",
    };
    if args.status {
        let what = format!("{}{}", names(&contents), effects(&contents));
        return Err(Failure::new(Code::Agent, format!("`{shown}` {how}:\n{}", what.trim_end())));
    }
    let (text, is_whole) = document(&contents);
    eprint!("{text}{}", effects(&contents));
    if !is_whole && !args.yes {
        let hint = "hint: look at the files themselves, then `attache trust --yes`";
        return Err(Failure::new(Code::Denied, format!("`{shown}` has more than can be shown here\n{hint}")));
    }
    let question = format!("\n`{shown}` {how}. Trust what is shown above? [y] yes   [N] no: ");
    if !tty::confirm(&question, args.yes).await? {
        return Err(Failure::new(Code::Denied, format!("`{shown}` is not trusted")));
    }
    list.trust(&contents).map_err(failed)?;
    eprintln!("`{shown}` is trusted as it is now");
    Ok(())
}

fn names(contents: &Contents) -> String {
    contents.files().iter().map(|(name, _)| format!("  {FOLDER}/{}\n", one_line(name))).collect()
}

/// How many lines of a file are shown, and how many characters of a line: enough for settings, and not so much that the
/// beginning is forgotten at the end.
const SHOWN_LINES: usize = 200;
const SHOWN_LINE: usize = 400;

/// What is in the folder, file by file, and whether that is all of it. What is left out is said.
fn document(contents: &Contents) -> (String, bool) {
    let mut text = String::new();
    let mut is_whole = true;
    for (name, bytes) in contents.files() {
        text += &format!("{FOLDER}/{}\n", one_line(name));
        let Ok(content) = std::str::from_utf8(bytes) else {
            text += &format!("  ({} bytes that are no text)\n", bytes.len());
            is_whole = false;
            continue;
        };
        let mut lines = content.lines();
        for line in lines.by_ref().take(SHOWN_LINES) {
            let line = visible_lines(line);
            let cut: String = line.chars().take(SHOWN_LINE).collect();
            is_whole &= cut.len() == line.len();
            let mark = if cut.len() < line.len() { " … (the line goes on)" } else { "" };
            text += &format!("  | {cut}{mark}\n");
        }
        let left_out = lines.count();
        if left_out > 0 {
            is_whole = false;
            text += &format!("  … {left_out} lines are not shown: look at the file itself\n");
        }
    }
    (text, is_whole)
}

/// What the folder would start, and what it would read.
fn effects(contents: &Contents) -> String {
    let mut text = started(contents);
    for (server, variables) in contents.variables() {
        // Names of variables are letters, digits and underscores.
        let names: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
        let server = visible_strictly(server);
        text += &format!("it would give MCP server `{server}` variables of your environment: {}\n", names.join(", "));
    }
    text
}

/// What the folder would start, and how far that is covered by trust.
fn started(contents: &Contents) -> String {
    let mut text = String::new();
    for started in contents.starts() {
        let words: Vec<String> = started.words.iter().map(|word| visible_strictly(word)).collect();
        text += &format!("it would start {}: {}\n", visible_strictly(&started.name), Command::from(words));
        let program = started.words.first().map(String::as_str).unwrap_or_default();
        if !crate::paths::has_directory(program) {
            let found = on_path(program).map(|path| format!("`{}`", visible_strictly(&path.to_string_lossy())));
            let found = found.unwrap_or_else(|| "not installed here".into());
            text += &format!("  its program is {found}; changes of it are not noticed\n");
        }
        for file in &started.files {
            let path = visible_strictly(&file.path.to_string_lossy());
            text += &match file.is_covered {
                true => format!("  `{path}` is covered: a change of it asks again (look at the file itself)\n"),
                false => format!("  `{path}` is not covered: changes of it are not noticed\n"),
            };
        }
    }
    if !text.is_empty() {
        text += "what these programs load in turn is not covered\n";
    }
    text
}
