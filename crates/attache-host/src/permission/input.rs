//! What the input of a tool says: its command, its directory and its files, by the keys that agents use.

use attache::model::Secret;
use attache::proto::json::RawJson;
use serde_json::Value;

use crate::commands::Command;

/// Keys whose text is a command line, or whose list is its words.
const COMMANDS: &[&str] = &["command", "cmd", "script", "argv", "shell_command", "commandLine", "command_line"];

/// Keys with the arguments of a command that is given by its program.
const ARGUMENTS: &[&str] = &["args", "arguments"];

/// Keys with the directory that a command runs in.
const DIRECTORIES: &[&str] = &["cwd", "workdir", "working_directory", "workingDirectory", "working_dir"];

/// Words that stand for files when a key is one of them, or ends with one: `path`, `file_path`, `sourceFile`.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "abspath",
    "file",
    "files",
    "filename",
    "filenames",
    "filepath",
    "filepaths",
    "uri",
    "uris",
    "directory",
    "directories",
    "dir",
    "dirs",
    "folder",
    "folders",
    "pathname",
];

/// Keys that stand for files by themselves: what is copied or moved, and where to.
const ENDS: &[&str] =
    &["source", "sources", "src", "destination", "destinations", "dest", "dst", "from", "to", "target", "targets"];

/// Whether the value of a key names files. Agents write their keys in every style there is.
fn names_files(key: &str) -> bool {
    let words = words(key);
    let is = |list: &[&str], word: &String| list.contains(&word.as_str());
    match words.as_slice() {
        [only] => is(PATHS, only) || is(ENDS, only),
        // As in `new_file_name`.
        [.., first, second] if first == "file" && second == "name" => true,
        [.., last] => is(PATHS, last),
        [] => false,
    }
}

/// The words of a key in small letters: `sourcePath`, `source_path` and `Source-Path` are the same.
fn words(key: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut was_small = false;
    for c in key.chars() {
        if !c.is_alphanumeric() {
            is_open = false;
            continue;
        }
        if !is_open || (c.is_uppercase() && was_small) {
            words.push(String::new());
        }
        is_open = true;
        was_small = !c.is_uppercase();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Deeper objects are not looked into, and longer lists not to their end: then something may have been missed.
const MAX_DEPTH: usize = 4;
const MAX_VALUES: usize = 10_000;

/// What was found.
#[derive(Debug)]
pub(super) struct Input {
    /// The command, or why it cannot be told.
    pub(super) command: Result<Option<Command>, &'static str>,
    pub(super) cwd: Option<String>,
    pub(super) env: Vec<(String, Secret)>,
    pub(super) paths: Vec<String>,
    left: usize,
}

impl Default for Input {
    fn default() -> Self {
        Input { command: Ok(None), cwd: None, env: Vec::new(), paths: Vec::new(), left: MAX_VALUES }
    }
}

impl Input {
    /// Reads the input of a tool. What is not an object says nothing.
    pub(super) fn read(raw: &RawJson) -> Self {
        let mut input = Input::default();
        match raw.parse::<Value>() {
            Ok(value) => input.read_value(&value, 0),
            Err(_) => input.command = Err("the input of the tool cannot be read"),
        }
        input
    }

    fn read_value(&mut self, value: &Value, depth: usize) {
        self.left = self.left.saturating_sub(1);
        if depth > MAX_DEPTH || self.left == 0 {
            if matches!(value, Value::Object(_) | Value::Array(_)) {
                self.command = Err("the input of the tool is too large or too deep to look at");
            }
            return;
        }
        match value {
            Value::Object(map) => {
                self.read_object(map);
                map.values().for_each(|value| self.read_value(value, depth + 1));
            }
            Value::Array(list) => list.iter().for_each(|value| self.read_value(value, depth + 1)),
            _ => {}
        }
    }

    fn read_object(&mut self, map: &serde_json::Map<String, Value>) {
        let arguments = ARGUMENTS.iter().find_map(|key| map.get(*key)).filter(|value| value.is_array());
        for key in COMMANDS {
            let Some(value) = map.get(*key).filter(|value| !value.is_null()) else { continue };
            let command = match (value, arguments) {
                (Value::String(program), Some(arguments)) => strings(arguments).map(|mut arguments| {
                    arguments.insert(0, program.clone());
                    Command::from_words(arguments)
                }),
                (Value::String(line), None) => Some(Command::Line(line.clone())),
                (Value::Array(_), None) => strings(value).filter(|words| !words.is_empty()).map(Command::from_words),
                _ => None,
            };
            match command {
                Some(command) => self.note_command(command),
                None => self.command = Err("its command is of a form that is not known"),
            }
        }
        for key in DIRECTORIES {
            match map.get(*key) {
                None | Some(Value::Null) => {}
                Some(Value::String(directory)) if self.cwd.as_ref().is_none_or(|cwd| cwd == directory) => {
                    self.cwd = Some(directory.clone());
                }
                Some(_) => self.command = Err("the directory of its command cannot be told"),
            }
        }
        for key in ["env", "environment"] {
            match map.get(key) {
                Some(Value::Object(variables)) => {
                    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    self.env.extend(variables.iter().map(|(name, value)| (name.clone(), text(value).into())));
                }
                Some(Value::Array(list)) if list.is_empty() => {}
                None | Some(Value::Null) => {}
                Some(_) => self.command = Err("the variables of its command cannot be told"),
            }
        }
        for (_, value) in map.iter().filter(|(key, _)| names_files(key)) {
            match value {
                Value::String(path) => self.paths.push(path.clone()),
                // One that is no text does not make the others less.
                Value::Array(list) => {
                    self.paths.extend(list.iter().filter_map(|path| path.as_str().map(str::to_owned)))
                }
                _ => {}
            }
        }
    }

    fn note_command(&mut self, command: Command) {
        match &self.command {
            Ok(None) => self.command = Ok(Some(command)),
            Ok(Some(other)) if *other == command => {}
            Ok(Some(_)) => self.command = Err("it names two commands that differ"),
            Err(_) => {}
        }
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
