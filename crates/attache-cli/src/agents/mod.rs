//! Agents by name: which there are, how they are started, and the commands about them.

pub(crate) mod catalog;
mod commands;
pub(crate) mod config;
pub(crate) mod probe;
mod registry;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use attache::process::Command;
use attache_host::environment;
use attache_host::permission::agent_identity;

use crate::connect::here;
use crate::exit::{Code, Failure};
use crate::paths::has_directory;
use crate::project::Project;
use crate::visible::visible;
use catalog::{Installed, ROWS};
use config::Config;

pub(crate) use commands::{login, logout, print_lines, run};

/// A directory that is always there, that only the system's owner writes to, and that has no packages of its own.
fn no_repository() -> String {
    match cfg!(windows) {
        true => std::env::var("SystemRoot").unwrap_or_else(|_| r"C:\Windows".into()),
        false => "/usr".into(),
    }
}

/// How an agent is started.
#[derive(Clone)]
pub(crate) struct AgentSpec {
    /// What it is called: its name, or the file name of the program of a command that was given.
    pub(crate) name: String,
    /// Whether `name` is one that `--agent` takes.
    pub(crate) named: bool,
    /// The program and its arguments; never empty.
    pub(crate) words: Vec<String>,
    /// Variables for its environment; often secrets.
    pub(crate) env: BTreeMap<String, String>,
    /// Variables of ours that it gets besides those that every process does, by name.
    pub(crate) pass_env: Vec<String>,
    /// Where it keeps its state, as far as is known. Not all of these paths have to exist.
    pub(crate) state: Vec<PathBuf>,
    /// How to log in outside of the protocol.
    pub(crate) login_hint: Option<&'static str>,
    /// How to install it.
    pub(crate) install_hint: Option<&'static str>,
    /// It is better off reading files itself than through the client.
    pub(crate) reads_itself: bool,
    /// It is this program itself, which needs its own settings.
    pub(crate) is_built_in: bool,
    /// It is the built-in agent as a command that was typed out, with options of its own.
    pub(crate) is_own: bool,
    /// What a person should know before it is started with the options that were given.
    pub(crate) notices: Vec<String>,
    /// Its name is the user's own word for it, or one of the catalog, and nobody else's.
    is_configured: bool,
}

impl AgentSpec {
    /// Adds an option to the command of the agent that is built in.
    pub(crate) fn add_option(&mut self, name: &str, value: impl clap::ValueEnum) {
        let value = value.to_possible_value().map(|value| value.get_name().to_owned());
        self.words.extend([name.to_owned()].into_iter().chain(value));
    }

    fn new(name: &str, named: bool, words: Vec<String>, env: BTreeMap<String, String>) -> Self {
        let row = catalog::row_of(name, &words);
        let is_own = words.get(1).is_some_and(|word| word == "agent") && catalog::is_ourselves(&words[0]);
        let mut state = catalog::state(name, &words);
        if is_own {
            state.extend(own_state().unwrap_or_default());
        }
        AgentSpec {
            name: name.into(),
            named,
            state,
            is_own,
            login_hint: row.and_then(|row| row.login),
            install_hint: row.map(|row| row.install),
            reads_itself: row.is_some_and(|row| catalog::READ_THEMSELVES.contains(&row.name)),
            is_built_in: false,
            notices: Vec::new(),
            is_configured: named,
            pass_env: row
                .into_iter()
                .flat_map(|row| row.env.iter().copied().flatten())
                .map(|name| (*name).into())
                .collect(),
            words,
            env,
        }
    }

    /// Who it is, for rules, sessions and records, when it is started in this directory: its name where that is the
    /// user's own word for it, else its command. A project that is trusted may name agents too, and must not get what
    /// was given to another of that name.
    pub(crate) fn identity(&self, cwd: &Path) -> String {
        match self.is_configured {
            true => self.name.clone(),
            false => agent_identity(&self.words, &self.env, cwd),
        }
    }

    /// The words of the command that starts it.
    ///
    /// `npx` runs what the directory has in `node_modules` if its version fits, and fetches from where the directory's
    /// `.npmrc` says. Under a name that the person knows, a repository would be run instead of the agent; so `npx` is sent
    /// to look where no repository is. The agent itself is started in its directory all the same.
    pub(crate) fn command_words(&self) -> Vec<String> {
        let mut words = self.words.clone();
        if self.is_configured && words.first().is_some_and(|program| program == "npx") {
            words.splice(1..1, ["--prefix".to_owned(), no_repository()]);
        }
        words
    }

    /// The command that starts it. It gets what is let through of our environment; ourselves get all of it, because what
    /// we start gets no more than that from us.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::from(self.command_words());
        if !self.is_built_in {
            command = environment::start_from(command, &self.pass_env);
        }
        self.env.iter().fold(command, |command, (name, value)| command.env(name, value))
    }

    /// What to tell a person whose agent does not work, if there are keys that it was not given.
    pub(crate) fn withheld_hint(&self) -> Option<String> {
        let withheld = if self.is_built_in { Vec::new() } else { environment::withheld_keys(&self.pass_env) };
        let named: Vec<String> = withheld.iter().take(5).map(|name| format!("`{}`", visible(name))).collect();
        let first = withheld.first()?;
        let named = named.join(", ");
        Some(format!("\nhint: it was not given {named}; `--env {}` passes a variable on", visible(first)))
    }

    /// Whether it is fetched when it is started, which can take its time.
    pub(crate) fn is_fetched(&self) -> bool {
        catalog::installed(&self.words) == Installed::OnDemand
    }

    /// What starting it may download, as a sentence for the person; `None` if nothing.
    pub(crate) fn download(&self) -> Option<String> {
        let runner = self.words.first().filter(|_| self.is_fetched())?;
        let package = catalog::fetched_package(&self.words)?;
        Some(format!("`{runner}` downloads `{}` now, unless it has it already", visible(package)))
    }

    /// Tells a person what starting it may download.
    pub(crate) fn tell_download(&self) {
        if let Some(text) = self.download() {
            eprintln!("note: {text}");
        }
    }

    /// What to type to log in by the method with this id.
    pub(crate) fn typed_login(&self, id: &str) -> String {
        // The id is the agent's word, and is not to become more than a word in somebody's shell.
        let id = Command::new(id);
        match self.named {
            true => format!("attache login {} --auth {id}", self.name),
            false => format!("attache login --auth {id} -- {}", Command::from(self.words.clone())),
        }
    }
}

/// Finds the agent that is meant: a command, else a name, else `ATTACHE_AGENT`, else the default of agents.toml, else the
/// one that is built in.
///
/// A name is never taken for a command: what a script puts there is not to become a program.
pub(crate) fn resolve(name: Option<&str>, command: &[String], project: &Project) -> Result<AgentSpec, Failure> {
    if let Some(program) = command.first() {
        let name = Path::new(program).file_name().unwrap_or(program.as_ref()).to_string_lossy();
        return Ok(AgentSpec::new(&visible(&name), false, from_anywhere(command)?, BTreeMap::new()));
    }
    let variable = std::env::var_os("ATTACHE_AGENT").map(|name| name.to_string_lossy().into_owned());
    let mut config = Config::read()?;
    let theirs = project.agents()?;
    let mut from_project = BTreeSet::new();
    for (name, mut entry) in theirs.agents {
        // Which of the person's variables an agent gets is not for a repository to say, trusted or not.
        entry.pass_env.clear();
        if let Entry::Vacant(free) = config.agents.entry(name) {
            from_project.insert(free.key().clone());
            free.insert(entry);
        }
    }
    config.default = config.default.or(theirs.default);
    let mut spec = meant(name, variable.as_deref(), &config)?;
    spec.is_configured &= !from_project.contains(&spec.name);
    Ok(spec)
}

fn meant(name: Option<&str>, variable: Option<&str>, config: &Config) -> Result<AgentSpec, Failure> {
    let from = |source: &str, failure: Failure| Failure::new(failure.code, format!("{source}: {failure}"));
    match (name, variable.filter(|name| !name.is_empty()), &config.default) {
        (Some(name), _, _) => find(name, config),
        (None, Some(name), _) => find(name, config).map_err(|failure| from("ATTACHE_AGENT", failure)),
        (None, None, Some(name)) => find(name, config).map_err(|failure| from("the default in agents.toml", failure)),
        (None, None, None) => find(BUILT_IN, config),
    }
}

/// The command with its program as a full path if it is a path: it is to be the same program wherever it is started.
pub(crate) fn from_anywhere(command: &[String]) -> Result<Vec<String>, Failure> {
    let mut words = command.to_vec();
    let is_relative = |program: &&mut String| has_directory(program) && !Path::new(program.as_str()).is_absolute();
    if let Some(program) = words.first_mut().filter(is_relative) {
        let path = here()?.join(program.trim_start_matches("./")).into_os_string();
        *program = path.into_string().map_err(|_| Failure::usage("the path of this directory is not UTF-8"))?;
    }
    Ok(words)
}

/// Finds an agent by its name; an entry of agents.toml comes before the catalog.
fn find(name: &str, config: &Config) -> Result<AgentSpec, Failure> {
    if let Some(entry) = config.agents.get(name) {
        let mut spec = AgentSpec::new(name, true, entry.command.clone(), entry.env.clone());
        spec.pass_env.extend_from_slice(&entry.pass_env);
        if crate::remote::url_of(&spec.words).is_some() {
            spec.pass_env.push("ATTACHE_TOKEN".into());
        }
        return Ok(spec);
    }
    if name == BUILT_IN {
        return built_in();
    }
    if name.contains("://") {
        let host = name.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or(name);
        let words = crate::remote::command(name, None, None)?;
        return Ok(AgentSpec {
            pass_env: vec!["ATTACHE_TOKEN".into()],
            ..AgentSpec::new(&visible(host), false, words, BTreeMap::new())
        });
    }
    if let Some(row) = ROWS.iter().find(|row| row.name == name) {
        return Ok(AgentSpec::new(name, true, row.command().0, BTreeMap::new()));
    }
    let shown = visible(name);
    if name.contains(|c: char| c == '/' || c.is_whitespace()) {
        let what = format!("`{shown}` is no name of an agent");
        return Err(Failure::usage(format!("{what}\nhint: a command to run as the agent is written after `--`")));
    }
    let names = config.agents.keys().map(String::as_str);
    let near = catalog::suggestions(name, names.chain([BUILT_IN]).chain(ROWS.iter().map(|row| row.name)));
    let mut message = format!("no agent `{shown}`");
    if !near.is_empty() {
        message.push_str(&format!("\nhint: did you mean `{}`?", near.join("`, `")));
    }
    message
        .push_str("\nhint: `attache agents list` has all names; a command to run as the agent is written after `--`");
    Err(Failure::new(Code::NotFound, message))
}

/// Whether there is an agent of this name without an entry in agents.toml.
pub(crate) fn is_known(name: &str) -> bool {
    name == BUILT_IN || ROWS.iter().any(|row| row.name == name)
}

/// The name of the agent that is built in.
pub(crate) const BUILT_IN: &str = "attache";

/// Where the built-in agent keeps its state.
fn own_state() -> Result<Vec<PathBuf>, Failure> {
    let state = crate::paths::state()?;
    Ok(vec![state.join("agent"), state.join("permissions")])
}

/// The agent that is built in: this program itself.
fn built_in() -> Result<AgentSpec, Failure> {
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    let program = program.ok_or_else(|| Failure::usage("this program cannot tell where it is"))?;
    let mut spec = AgentSpec::new(BUILT_IN, true, vec![program, "agent".into()], BTreeMap::new());
    spec.state = own_state()?;
    spec.login_hint = Some("attache login PROVIDER");
    spec.is_built_in = true;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_entry_comes_before_the_catalog() {
        let config = Config::parse("[agents.claude]\ncommand = ['my-claude', '-x']\nenv = { K = 'v' }").unwrap();
        let spec = find("claude", &config).unwrap();
        assert_eq!(spec.command().to_string(), "my-claude -x");
        let expected = environment::start_from(Command::from(["my-claude", "-x"]), &spec.pass_env).env("K", "v");
        assert_eq!(spec.command(), expected);
        // It has the name of a known agent, and gets the keys of that.
        assert!(environment::is_passed("ANTHROPIC_API_KEY", &spec.pass_env));
        assert!(!environment::is_passed("OPENAI_API_KEY", &spec.pass_env));
        assert_eq!(spec.typed_login("x; y"), "attache login claude --auth 'x; y'");
    }

    #[test]
    fn a_repository_is_not_run_in_the_place_of_an_agent_with_a_name() {
        let config = Config::parse("[agents.mine]\ncommand = ['npx', '-y', 'a@1', '--acp']").unwrap();
        assert_eq!(find("mine", &config).unwrap().command().to_string(), "npx --prefix /usr -y a@1 --acp");
        // What is typed out is what is run.
        let typed = ["npx", "-y", "a@1"].map(String::from);
        assert_eq!(resolve(None, &typed, &Project::none()).unwrap().command().to_string(), "npx -y a@1");
    }

    #[test]
    fn a_name_is_never_a_command() {
        let code = |name| find(name, &Config::default()).map(|_| ()).unwrap_err();
        assert_eq!(code("./agent").code, Code::Usage);
        assert_eq!(code("sh -c x").code, Code::Usage);
        assert_eq!(code("sh").code, Code::NotFound);
        let failure = code("claud\u{1b}e");
        assert_eq!(failure.code, Code::NotFound);
        assert!(failure.message.starts_with("no agent `claud\\x1be`\nhint: did you mean `claude`?"), "{failure}");
    }

    #[test]
    fn what_is_said_nearest_wins() {
        let config = Config::parse("default = 'codex'").unwrap();
        let name = |name, variable, config: &Config| meant(name, variable, config).map(|spec| spec.name);
        assert_eq!(name(Some("claude"), Some("gemini"), &config).unwrap(), "claude");
        assert_eq!(name(None, Some("gemini"), &config).unwrap(), "gemini");
        assert_eq!(name(None, Some(""), &config).unwrap(), "codex");
        let failure = name(None, Some("gemni"), &config).unwrap_err();
        assert_eq!(failure.code, Code::NotFound);
        assert!(failure.message.starts_with("ATTACHE_AGENT: no agent `gemni`"), "{failure}");
        let config = Config::parse("[agents.mine]\ncommand = ['x']").unwrap();
        assert_eq!(name(None, None, &config).unwrap(), BUILT_IN);
    }

    #[test]
    fn a_command_is_named_by_its_program() {
        let spec = resolve(Some("ignored"), &["/opt/my agent".into(), "--acp".into()], &Project::none()).unwrap();
        assert_eq!(spec.name, "my agent");
        assert_eq!(spec.typed_login("x"), "attache login --auth x -- '/opt/my agent' --acp");
    }
}
