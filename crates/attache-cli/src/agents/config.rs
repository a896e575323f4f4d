//! `agents.toml`: the agents that a person set up.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use attache::private;
use serde::Deserialize;
use toml::Spanned;
use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::exit::Failure;
use crate::paths;
use crate::visible::visible;

/// How long another process may take to write the file. It takes milliseconds unless that process was stopped.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The agent to use when none is named.
    pub(crate) default: Option<String>,
    /// Variables that commands in our terminals get besides those that every process does.
    pub(crate) command_env: Vec<String>,
    pub(crate) agents: BTreeMap<String, Entry>,
}

/// An agent of a person's own.
#[derive(Clone, Default)]
pub(crate) struct Entry {
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<String>,
    /// Often secrets.
    pub(crate) env: BTreeMap<String, String>,
    /// Names of variables of ours that it gets besides those that every process does; `*` at the end stands for any end.
    pub(crate) pass_env: Vec<String>,
    pub(crate) description: Option<String>,
}

/// Shows the names of environment variables, never their values.
impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.keys().collect();
        f.debug_struct("Entry").field("command", &self.command).field("env", &names).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileWire {
    default: Option<String>,
    #[serde(default)]
    commands: CommandsWire,
    #[serde(default)]
    agents: BTreeMap<Spanned<String>, EntryWire>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandsWire {
    #[serde(default)]
    pass_env: Vec<String>,
}

/// `env` is taken as any value, because an error about a type repeats the value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryWire {
    command: Spanned<Vec<String>>,
    env: Option<Spanned<toml::Value>>,
    #[serde(default)]
    pass_env: Vec<String>,
    description: Option<String>,
}

impl Config {
    /// Reads the file. One that is not there says nothing.
    pub(crate) fn read() -> Result<Config, Failure> {
        let path = path()?;
        match fs::read_to_string(&path) {
            Ok(text) => Config::parse(&text).map_err(|what| unreadable(&path, &what)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(unreadable(&path, &error.to_string())),
        }
    }

    /// Reads its text; what is wrong is told with its line, and never with the line itself: there may be secrets in it.
    pub(crate) fn parse(text: &str) -> Result<Config, String> {
        let line = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
        let wire: FileWire = toml::from_str(text).map_err(|error| {
            let place = error.span().map(|span| format!("line {}: ", line(span.start))).unwrap_or_default();
            format!("{place}{}", error.message().trim_end())
        })?;
        let mut agents = BTreeMap::new();
        for (name, entry) in wire.agents {
            let at = |at: usize, what: &str| format!("line {}: agent `{}`: {what}", line(at), visible(name.get_ref()));
            if !is_name(name.get_ref()) {
                return Err(at(name.span().start, NAME_RULE));
            }
            let command = entry.command.get_ref().clone();
            if command.first().is_none_or(String::is_empty) {
                return Err(at(entry.command.span().start, "`command` names no program"));
            }
            // Relative to where? What lies in the current directory may be anybody's.
            if paths::has_directory(&command[0]) && !Path::new(&command[0]).is_absolute() {
                return Err(at(entry.command.span().start, "`command` must begin with a full path, or a name on PATH"));
            }
            let mut env = BTreeMap::new();
            if let Some(given) = entry.env {
                let wrong = at(given.span().start, "`env` must be a table of strings");
                let toml::Value::Table(table) = given.into_inner() else { return Err(wrong) };
                for (variable, value) in table {
                    let toml::Value::String(value) = value else { return Err(wrong) };
                    if !is_variable(&variable) || value.contains('\0') {
                        return Err(wrong);
                    }
                    env.insert(variable, value);
                }
            }
            let entry = Entry { command, env, pass_env: entry.pass_env, description: entry.description };
            agents.insert(name.into_inner(), entry);
        }
        Ok(Config { default: wire.default, command_env: wire.commands.pass_env, agents })
    }
}

/// Changes the file, with comments and order kept, while no other process does.
pub(crate) fn edit<T>(change: impl FnOnce(&mut DocumentMut) -> Result<T, Failure>) -> Result<T, Failure> {
    let path = path()?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let cannot = |error: io::Error| Failure::usage(format!("cannot write `{}`: {error}", path.display()));
    paths::private_directory(directory).map_err(cannot)?;
    let _lock = lock(&path.with_extension("lock")).map_err(cannot)?;
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unreadable(&path, &error.to_string())),
    };
    // A file that is wrong is not made more so.
    Config::parse(&text).map_err(|what| unreadable(&path, &what))?;
    let mut document: DocumentMut = text.parse().map_err(|_| unreadable(&path, "it is no TOML"))?;
    let made = change(&mut document)?;
    let changed = document.to_string();
    Config::parse(&changed).map_err(Failure::usage)?;
    // A link to a file elsewhere stays a link.
    let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    paths::write_private(&target, changed.as_bytes()).map_err(cannot)?;
    Ok(made)
}

/// Puts an entry in the place of the one that has its name; says whether there was one.
pub(crate) fn put(document: &mut DocumentMut, name: &str, entry: &Entry) -> Result<bool, Failure> {
    let mut table = toml_edit::Table::new();
    table.insert("command", Item::Value(entry.command.iter().collect::<Value>()));
    if let Some(description) = &entry.description {
        table.insert("description", toml_edit::value(description));
    }
    if !entry.env.is_empty() {
        let env: toml_edit::InlineTable = entry.env.iter().map(|(name, value)| (name.as_str(), value)).collect();
        table.insert("env", toml_edit::value(env));
    }
    if !entry.pass_env.is_empty() {
        table.insert("pass_env", Item::Value(entry.pass_env.iter().collect::<Value>()));
    }
    let agents = document.entry("agents").or_insert_with(|| {
        let mut agents = toml_edit::Table::new();
        agents.set_implicit(true);
        Item::Table(agents)
    });
    let agents = agents.as_table_like_mut().ok_or_else(|| Failure::usage("`agents` in agents.toml is no table"))?;
    Ok(agents.insert(name, Item::Table(table)).is_some())
}

/// Takes an entry out; says whether there was one.
pub(crate) fn take(document: &mut DocumentMut, name: &str) -> bool {
    let agents = document.get_mut("agents").and_then(Item::as_table_like_mut);
    agents.is_some_and(|agents: &mut dyn TableLike| agents.remove(name).is_some())
}

/// Waits until no other process changes the file. Dropping what is returned lets the next one.
fn lock(path: &Path) -> io::Result<File> {
    let file = private::open_or_create(path)?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process is changing it")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Where the file is.
pub(crate) fn path() -> Result<PathBuf, Failure> {
    Ok(paths::config()?.join("agents.toml"))
}

fn unreadable(path: &Path, what: &str) -> Failure {
    Failure::usage(format!("`{}`: {}", path.display(), visible(what)))
}

/// What a name has to look like.
pub(crate) const NAME_RULE: &str = "a name is made of a-z, 0-9, `-` and `_`, and begins with a letter or digit";

/// Whether a name is one that agents can have.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(plain) && name.chars().all(|c| plain(c) || c == '-' || c == '_')
}

/// Whether the system takes this for the name of an environment variable.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(
            "default = 'mine'\n[commands]\npass_env = ['GH_*']\n[agents.mine]\ncommand = ['/a', 'b c']\n\
             env = { KEY = 'secret' }\npass_env = ['MY_KEY']\ndescription = 'My own'\n",
        )
        .unwrap();
        assert_eq!(config.default.as_deref(), Some("mine"));
        let mine = &config.agents["mine"];
        assert_eq!(mine.command, ["/a", "b c"]);
        assert_eq!(mine.env["KEY"], "secret");
        assert_eq!(
            (&config.command_env[..], &mine.pass_env[..]),
            (&["GH_*".to_owned()][..], &["MY_KEY".to_owned()][..])
        );
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_without_secrets() {
        let rows = [
            ("\ndefalt = 'x'", "line 2: unknown field `defalt`"),
            ("[agents.a]\ncommand = ['x']\nsecret = 'sk-1'", "line 3: unknown field `secret`"),
            ("[agents.a]\ncommand = 'x'", "line 2: invalid type"),
            ("[agents.a]\ncommand = []", "line 2: agent `a`: `command` names no program"),
            ("[agents.a]\ncommand = ['./x']", "line 2: agent `a`: `command` must begin"),
            ("[agents.a]\n", "missing field `command`"),
            ("[agents.a]\ncommand = ['x']\nenv = 'sk-1'", "line 3: agent `a`: `env` must be"),
            ("[agents.a]\ncommand = ['x']\nenv = { A = ['sk-1'] }", "line 3: agent `a`: `env` must be"),
            ("[agents.a]\ncommand = ['x']\nenv = { A = 'sk-1 }", "line 3: "),
            ("[agents.'A b']\ncommand = ['x']", "line 1: agent `A b`: a name is"),
        ];
        for (text, expected) in rows {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("sk-1"), "{error}");
        }
    }

    #[test]
    fn comments_survive_a_change() {
        let before = "# mine\ndefault = \"a\" # this one\n\n# about a\n[agents.a]\ncommand = [\"x\"] # old\n";
        let mut document: DocumentMut = before.parse().unwrap();
        let entry = Entry { command: vec!["y".into(), "a \"b\"".into()], ..Entry::default() };
        assert!(!put(&mut document, "b", &entry).unwrap());
        let text = document.to_string();
        assert!(text.starts_with(before), "{text}");
        assert_eq!(Config::parse(&text).unwrap().agents["b"].command, entry.command);
        assert!(put(&mut document, "b", &entry).unwrap());
        assert!(take(&mut document, "b") && !take(&mut document, "b"));
        assert_eq!(document.to_string(), before);
    }

    #[test]
    fn names_are_plain() {
        for (name, good) in
            [("claude", true), ("a_b-2", true), ("-a", false), ("A", false), ("a b", false), ("", false)]
        {
            assert_eq!(is_name(name), good, "{name}");
        }
    }
}
