//! Slash commands: those that are built in, and the user's own from Markdown files.

use std::path::{Path, PathBuf};

use attache::model::command::{AvailableCommand, Command, CommandInput, TextInput};
use attache_host::trust::{Contents, FOLDER};

/// A command that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltIn {
    Help,
    Plan,
    Compact,
    Init,
    Undo,
    Diff,
    Permissions,
    Model,
    Mcp,
    Status,
}

/// Every one, with its name, what it does, and what it wants to be told.
const BUILT_IN: &[(BuiltIn, &str, &str, Option<&str>)] = &[
    (BuiltIn::Help, "help", "List the commands", None),
    (BuiltIn::Plan, "plan", "Read and plan, without changing anything", Some("what to plan")),
    (BuiltIn::Compact, "compact", "Put a summary in the place of the conversation", None),
    (BuiltIn::Init, "init", "Write an AGENTS.md for this project", None),
    (
        BuiltIn::Undo,
        "undo",
        "Take back what the agent changed in its last turn with changes; `all`: also what changed while its commands ran",
        Some("all"),
    ),
    (BuiltIn::Diff, "diff", "Show what the agent has changed in this session", Some("last")),
    (BuiltIn::Permissions, "permissions", "List what is always allowed or refused", Some("remove NUMBER")),
    (BuiltIn::Model, "model", "Show or change the model", Some("provider:name")),
    (
        BuiltIn::Mcp,
        "mcp",
        "List MCP servers with their tools, prompts and resources",
        Some("login, logout or restart NAME"),
    ),
    (BuiltIn::Status, "status", "Show the status of the session", None),
];

/// What `/init` asks the model for.
pub(crate) const INIT: &str = "Look at this project and write an AGENTS.md for its root: what it is, how it is laid out, \
                               how to build, test and run it, and the conventions that its code follows. Only what you \
                               have seen. Keep it under 60 lines. If there is one already, improve it.";

/// A command of the user's own: a text with a place for what is said after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) name: String,
    description: String,
    text: String,
}

/// A file of a command is not longer than this.
const MOST_BYTES: usize = 64 * 1024;
/// There are not more commands than this.
const MOST_COMMANDS: usize = 100;

/// The commands of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    templates: Vec<Template>,
}

/// What a prompt that begins with a slash calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Called {
    BuiltIn(BuiltIn, String),
    /// A template, filled in.
    Prompt(String),
}

impl Commands {
    /// Reads the commands of a directory of the user's, and those of a project that is trusted. The user's own come
    /// first where both have one of the same name, and neither can take the name of one that is built in.
    pub(crate) fn read(directory: &Path, project: Option<&Contents>) -> Self {
        let mut templates: Vec<Template> = Vec::new();
        let own = own_files(directory);
        let trusted = project
            .map(Contents::files)
            .unwrap_or_default()
            .iter()
            .filter_map(|(path, content)| Some((path.strip_prefix("commands/")?.to_owned(), content.clone())));
        for (name, content) in own.into_iter().chain(trusted) {
            let Some(template) = Template::parse(&name, &content) else { continue };
            let is_taken = BUILT_IN.iter().any(|row| row.1 == template.name)
                || templates.iter().any(|known| known.name == template.name);
            if !is_taken && templates.len() < MOST_COMMANDS {
                templates.push(template);
            }
        }
        Commands { templates }
    }

    /// All commands, as the client is told of them.
    pub(crate) fn available(&self) -> Vec<AvailableCommand> {
        let built_in = BUILT_IN.iter().map(|(_, name, description, hint)| {
            Command::new(*name, *description)
                .with(|command| command.input = hint.map(|hint| CommandInput::Text(TextInput::new(hint))))
        });
        let own = self.templates.iter().map(|template| {
            Command::new(template.name.as_str(), template.description.as_str()).with(|command| {
                command.input =
                    template.text.contains(ARGUMENTS).then(|| CommandInput::Text(TextInput::new("what to do it with")))
            })
        });
        built_in.chain(own).map(AvailableCommand::Command).collect()
    }

    /// What a prompt calls, if it begins with a command that there is.
    pub(crate) fn called(&self, prompt: &str) -> Option<Called> {
        let (name, rest) = prompt
            .trim_start()
            .strip_prefix('/')?
            .split_once(char::is_whitespace)
            .unwrap_or((prompt.trim().strip_prefix('/')?, ""));
        let rest = rest.trim();
        if let Some((command, ..)) = BUILT_IN.iter().find(|row| row.1 == name) {
            return Some(Called::BuiltIn(*command, rest.into()));
        }
        let template = self.templates.iter().find(|template| template.name == name)?;
        Some(Called::Prompt(template.fill(rest)))
    }

    /// The commands as a list for people.
    pub(crate) fn list(&self) -> String {
        let built_in = BUILT_IN.iter().map(|(_, name, description, hint)| {
            let hint = hint.map(|hint| format!(" [{hint}]")).unwrap_or_default();
            format!("- `/{name}{hint}`: {description}\n")
        });
        let own = self.templates.iter().map(|template| format!("- `/{}`: {}\n", template.name, template.description));
        built_in.chain(own).collect()
    }
}

/// The command that a prompt of a single word means, where there is none of that name. What has more words is for the model,
/// and so is a path.
pub(crate) fn unknown(prompt: &str) -> Option<&str> {
    let name = prompt.trim().strip_prefix('/')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_command = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_name);
    (is_command && !Path::new("/").join(name).exists()).then_some(name)
}

/// What stands for that which is said after a command's name.
const ARGUMENTS: &str = "$ARGUMENTS";

impl Template {
    /// Reads a Markdown file. Its first heading, or its first line, says what it does.
    fn parse(file_name: &str, content: &[u8]) -> Option<Self> {
        let name = file_name.strip_suffix(".md")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) || content.len() > MOST_BYTES {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?.trim();
        let first = text.lines().next()?;
        let (description, text) = match first.strip_prefix('#') {
            Some(heading) => (heading.trim_start_matches('#').trim(), text[first.len()..].trim()),
            None => (first.trim(), text),
        };
        if text.is_empty() {
            return None;
        }
        let description = crate::tools::first_line(description, 100);
        Some(Template { name: name.into(), description, text: text.into() })
    }

    fn fill(&self, rest: &str) -> String {
        match (self.text.contains(ARGUMENTS), rest.is_empty()) {
            (true, _) => self.text.replace(ARGUMENTS, rest),
            (false, true) => self.text.clone(),
            (false, false) => format!("{}\n\n{rest}", self.text),
        }
    }
}

/// The Markdown files of a directory, by name.
fn own_files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).take(10 * MOST_COMMANDS).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        // The user's own settings may be links to wherever they keep them, but a pipe would never come to its end.
        attache_host::files::read_named(&path, None, MOST_BYTES).ok().map(|content| (name, content))
    };
    paths.into_iter().filter_map(read).collect()
}

/// Where a project keeps commands, for people.
pub(crate) fn project_folder() -> String {
    format!("{FOLDER}/commands")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn commands(files: &[(&str, &str)]) -> Commands {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        Commands::read(directory.path(), None)
    }

    #[test]
    fn a_markdown_file_is_a_command() {
        let commands =
            commands(&[("review.md", "# Review a file\n\nLook at $ARGUMENTS closely."), ("go.md", "Go on.")]);
        assert_eq!(commands.called("/review src/a.rs"), Some(Called::Prompt("Look at src/a.rs closely.".into())));
        assert_eq!(commands.called("/go"), Some(Called::Prompt("Go on.".into())));
        assert_eq!(commands.called("/go now"), Some(Called::Prompt("Go on.\n\nnow".into())));
        assert_eq!(commands.available().len(), BUILT_IN.len() + 2);
        assert!(commands.list().contains("- `/review`: Review a file"));
    }

    #[test]
    fn what_is_no_command_is_a_prompt_like_any_other() {
        let commands =
            commands(&[("help.md", "Mine."), ("bad name.md", "x"), ("empty.md", "# Only a heading"), ("a.txt", "x")]);
        assert_eq!(commands.available().len(), BUILT_IN.len());
        for prompt in ["/unknown", "/etc/hosts is what?", "no /help", "", "/"] {
            assert_eq!(commands.called(prompt), None, "{prompt}");
        }
        for (prompt, name) in [
            (" /unknown ", Some("unknown")),
            ("/no-such_1", Some("no-such_1")),
            ("/etc/hosts is what?", None),
            ("/dev", None),
            ("/unknown thing", None),
            ("/server:prompt", None),
            ("/", None),
            ("unknown", None),
        ] {
            assert_eq!(unknown(prompt), name, "{prompt}");
        }
        assert_eq!(commands.called(" /help "), Some(Called::BuiltIn(BuiltIn::Help, String::new())));
        assert_eq!(
            commands.called("/permissions remove 2"),
            Some(Called::BuiltIn(BuiltIn::Permissions, "remove 2".into()))
        );
    }
}
