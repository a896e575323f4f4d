//! What a trusted folder would start: the commands of its `mcp.json`, `agents.toml` and `hooks.toml`, and the files behind
//! them.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use attache::model::mcp::McpServer;
use sha2::{Digest, Sha256};
use toml_edit::DocumentMut;

use super::{TrustError, open};
use crate::paths;

/// A larger program is named as not covered: it would be read whenever the project is opened.
const LARGEST_PROGRAM: u64 = 64 << 20;

/// More than this is read of no folder's programs together; those beyond it are not covered either.
const MOST_PROGRAMS: u64 = 256 << 20;

/// More words of commands are not looked at, and make the folder too large to trust.
const MOST_WORDS: usize = 1000;

/// Something that the folder would start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// What it is: ``MCP server `tools` ``, ``agent `mine` `` or ``hook `before_tool` ``.
    pub name: String,
    /// Its program and its arguments.
    pub words: Vec<String>,
    /// The files that its words name, each with where it really is.
    pub files: Vec<StartedFile>,
}

/// A file that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedFile {
    /// Where it is, without links.
    pub path: PathBuf,
    /// Its content is part of what is trusted: a change of it asks again. Only files of the project are.
    pub is_covered: bool,
    /// What is pinned of it.
    pin: String,
}

impl Started {
    /// What would be started by these files of the folder. A file that cannot be read starts nothing.
    pub(super) fn read(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<Started>, TrustError> {
        let file = |name: &str| files.iter().find(|(other, _)| other == name).map(|(_, bytes)| bytes.as_slice());
        let mut commands: Vec<(String, Vec<String>)> = Vec::new();
        for server in file("mcp.json").and_then(|content| crate::mcp::parse(content).ok()).unwrap_or_default().servers {
            if let McpServer::Stdio(server) = server {
                let words = std::iter::once(server.command.clone()).chain(server.args.iter().cloned());
                commands.push((format!("MCP server `{}`", server.name), words.collect()));
            }
        }
        let agents =
            file("agents.toml").and_then(|content| std::str::from_utf8(content).ok()?.parse::<DocumentMut>().ok());
        let agents = agents.as_ref().and_then(|document| document.get("agents")?.as_table_like());
        for (name, entry) in agents.into_iter().flat_map(|agents| agents.iter()) {
            let words = entry.get("command").and_then(|command| command.as_array()).into_iter().flatten();
            let words: Vec<String> = words.filter_map(|word| word.as_str().map(str::to_owned)).collect();
            commands.push((format!("agent `{name}`"), words));
        }
        let hooks = file("hooks.toml").map(hooks).unwrap_or_default();
        let all_words =
            commands.iter().map(|(_, words)| words.len()).chain(hooks.iter().map(|(_, line)| words_in(line).count()));
        if all_words.sum::<usize>() > MOST_WORDS {
            return Err(TrustError::TooLarge(directory.join(super::FOLDER)));
        }
        let mut digests = Digests::default();
        let started = |digests: &mut Digests, (name, words): (String, Vec<String>)| {
            // A program without a slash is looked for on the PATH, whatever the project has of that name.
            let named = words.iter().enumerate().filter(|(index, word)| *index > 0 || word.contains('/'));
            let named = named.flat_map(|(_, word)| names_in(word));
            let files = named.filter_map(|name| StartedFile::read(directory, &name, digests).transpose());
            Ok(Started { name, files: files.collect::<Result<_, _>>()?, words })
        };
        // A line for a shell: every word in it may be a file that it runs.
        let hooked = |digests: &mut Digests, (name, line): (String, String)| {
            let mut files = Vec::new();
            for word in words_in(&line) {
                if is_written_to(&line, word) {
                    files.extend(StartedFile::of_link(directory, word));
                    continue;
                }
                for name in names_in(word) {
                    files.extend(StartedFile::read(directory, &name, digests)?);
                }
            }
            Ok(Started { name, files, words: vec!["sh".into(), "-c".into(), line] })
        };
        let mut all = Vec::new();
        for command in commands {
            all.push(started(&mut digests, command)?);
        }
        for hook in hooks {
            all.push(hooked(&mut digests, hook)?);
        }
        Ok(all)
    }

    /// Adds what is pinned to a digest, as if one file was not there. Nothing is, where no command names a file.
    pub(super) fn pin(started: &[Started], missing: Option<&Path>, hash: &mut Sha256) {
        let files = started.iter().flat_map(|started| &started.files);
        for file in files.filter(|file| missing != Some(file.path.as_path())) {
            hash.update((file.pin.len() as u64).to_le_bytes());
            hash.update(&file.pin);
        }
    }
}

/// The hooks of a file, each with its line for a shell.
fn hooks(content: &[u8]) -> Vec<(String, String)> {
    let document = std::str::from_utf8(content).ok().and_then(|text| text.parse::<DocumentMut>().ok());
    let text = |hook: &dyn toml_edit::TableLike, key: &str| Some(hook.get(key)?.as_str()?.to_owned());
    let hook = |hook: &dyn toml_edit::TableLike| {
        let event = text(hook, "event").unwrap_or_default();
        Some((format!("hook `{event}`"), text(hook, "command")?))
    };
    match document.as_ref().and_then(|document| document.get("hooks")) {
        Some(toml_edit::Item::ArrayOfTables(hooks)) => hooks.iter().filter_map(|table| hook(table)).collect(),
        Some(toml_edit::Item::Value(toml_edit::Value::Array(hooks))) => {
            hooks.iter().filter_map(|value| hook(value.as_inline_table()?)).collect()
        }
        _ => Vec::new(),
    }
}

/// The words of a line for a shell, as far as they may be names of files: generously, because more is pinned then.
fn words_in(line: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || ";|&()<>{}\"'`$=,".contains(c);
    line.split(ends).filter(|word| !word.is_empty())
}

/// Whether the shell only writes to what this word of a line names: it stands behind a plain `>`. Such a file is made by the
/// hook itself. Where the same line runs it, it is named a second time.
fn is_written_to(line: &str, word: &str) -> bool {
    let start = word.as_ptr() as usize - line.as_ptr() as usize;
    let before = &line[..start];
    let before = before.strip_suffix(['"', '\'']).unwrap_or(before).trim_end_matches([' ', '\t']);
    let Some(before) = before.strip_suffix(">|").or_else(|| before.strip_suffix('>')) else { return false };
    // An arrow of another language, a `>` that is meant as a letter, and `<>`, which reads as well, are none.
    !before.strip_suffix('>').unwrap_or(before).ends_with(['=', '-', '\\', '<', '>'])
}

/// Endings that interpreters add to a name by themselves, and what they look for in a directory.
const ENDINGS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".sh", ".pl", ".lua", ".php"];
const BEGINNINGS: &[&str] = &["index.js", "index.mjs", "index.ts", "package.json", "__main__.py", "__init__.py"];

/// The names of files that a word may mean: itself, what stands behind a `=` (`--import=./x.mjs`), and either with what
/// interpreters add.
fn names_in(word: &str) -> Vec<String> {
    let value = word.split_once('=').map(|(_, value)| value).filter(|value| !value.is_empty());
    let bare = [Some(word), value].into_iter().flatten();
    bare.flat_map(|name| {
        let ended = ENDINGS.iter().map(move |ending| format!("{name}{ending}"));
        let inside = BEGINNINGS.iter().map(move |first| format!("{name}/{first}"));
        [name.to_owned()].into_iter().chain(ended).chain(inside)
    })
    .collect()
}

/// The digests of programs, each read once however often it is named.
#[derive(Default)]
struct Digests {
    known: HashMap<PathBuf, Option<String>>,
    bytes: u64,
}

impl Digests {
    /// The digest of a file. `None` for one that is too large.
    fn of(&mut self, path: &Path) -> std::io::Result<Option<String>> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let file = open(path)?;
        let length = file.metadata()?.len();
        let mut digest = None;
        if length <= LARGEST_PROGRAM && self.bytes + length <= MOST_PROGRAMS {
            self.bytes += length;
            let mut hash = Sha256::new();
            let mut file = file.take(LARGEST_PROGRAM);
            let mut buffer = vec![0; 64 << 10];
            while let count @ 1.. = file.read(&mut buffer)? {
                hash.update(&buffer[..count]);
            }
            digest = Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        self.known.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

impl StartedFile {
    /// The file that a word of a command names, if it names one by a path.
    fn read(directory: &Path, word: &str, digests: &mut Digests) -> Result<Option<Self>, TrustError> {
        let written = paths::to_look_at(directory, word);
        let real = written.and_then(|written| paths::canonicalize(&written).ok());
        let Some(path) = real.filter(|path| !word.is_empty() && path.is_file()) else {
            return Ok(None);
        };
        let failed = |error| TrustError::Io { path: path.clone(), error };
        // Where it leads is pinned in any case: a link can be turned to another program.
        let mut pin = format!("{word}\0{}", path.display());
        let digest = if path.starts_with(directory) { digests.of(&path).map_err(failed)? } else { None };
        pin.extend(digest.iter().map(String::as_str));
        Ok(Some(StartedFile { is_covered: digest.is_some(), path, pin }))
    }

    /// The file that a hook writes to, if a link leads there: one that is turned would have the hook write elsewhere.
    /// A plain file in its place is the hook's own matter, and so is none.
    fn of_link(directory: &Path, word: &str) -> Option<Self> {
        let written = paths::to_look_at(directory, word)?;
        let path = written.ancestors().find(|path| path.is_symlink())?.to_owned();
        // Not where it leads in the end, which may not be there before the hook has run.
        let (target, place) = (path.read_link().unwrap_or_default(), path.parent().map(Path::canonicalize));
        let place = place.and_then(Result::ok).unwrap_or_default();
        let pin = format!("> {word}\0{}\0{}", place.display(), target.display());
        Some(StartedFile { is_covered: false, path, pin })
    }
}

/// A word of a command with its file named from the top, where it names one of the project: it is to be the file that was
/// trusted, wherever the command is started. A bare word stays what it is, a program of the system or a word for one.
pub(super) fn anchored(directory: &Path, word: &str) -> String {
    let is_path = word.contains(['/', '.']) || cfg!(windows) && word.contains('\\');
    let is_relative = Path::new(word).is_relative() && !Path::new(word).has_root();
    let path = paths::to_look_at(directory, word).filter(|path| is_path && is_relative && path.is_file());
    path.as_ref().and_then(|path| path.to_str()).unwrap_or(word).to_owned()
}
