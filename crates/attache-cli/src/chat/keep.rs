//! What a chat keeps: its settings, what was typed before, and what was being typed.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use attache::private;
use attache_tui::theme::Background;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::paths;

/// How many prompts are remembered, and how long each may be.
const MOST_PROMPTS: usize = 1000;
const LONGEST_PROMPT: usize = 16 << 10;

/// A file of history is written anew when it has become longer than this.
const LONGEST_HISTORY: u64 = 4 << 20;

/// The longest draft that is read back.
const LONGEST_DRAFT: u64 = 64 << 20;

/// chat.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Keys by the name of what they do: `send = ["enter"]`.
    pub(crate) keys: BTreeMap<String, Vec<String>>,
    /// `dark` or `light`; without it the terminal is asked.
    pub(crate) background: Option<BackgroundName>,
    /// Whether the mouse is taken.
    pub(crate) mouse: bool,
    /// Whether a bell rings when a turn ends while nobody looks.
    pub(crate) bell: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BackgroundName {
    Dark,
    Light,
}

impl From<BackgroundName> for Background {
    fn from(name: BackgroundName) -> Self {
        match name {
            BackgroundName::Dark => Background::Dark,
            BackgroundName::Light => Background::Light,
        }
    }
}

impl Settings {
    pub(crate) fn read() -> Result<Self, Failure> {
        let path = paths::config()?.join("chat.toml");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(Failure::usage(format!("cannot read `{}`: {error}", path.display()))),
        };
        toml::from_str(&text).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
    }
}

/// What was typed in this directory, the newest last.
pub(crate) struct History {
    path: Option<PathBuf>,
    pub(crate) prompts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Prompt {
    cwd: String,
    prompt: String,
}

impl History {
    /// Reads it. What cannot be read is not remembered; that is no reason not to talk.
    pub(crate) fn read(cwd: &Path) -> Self {
        let path = paths::state().ok().map(|state| state.join("chat/history.jsonl"));
        let cwd = cwd.display().to_string();
        let mut all = Vec::new();
        if let Some(file) = path.as_ref().and_then(|path| fs::File::open(path).ok()) {
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            all.extend(lines.filter_map(|line| serde_json::from_str::<Prompt>(&line).ok()));
        }
        if let Some(path) = path.as_ref().filter(|path| path.metadata().is_ok_and(|file| file.len() > LONGEST_HISTORY))
        {
            let kept =
                all.iter().rev().take(MOST_PROMPTS).rev().filter_map(|prompt| serde_json::to_string(prompt).ok());
            let _ = paths::write_private(path, (kept.collect::<Vec<_>>().join("\n") + "\n").as_bytes());
        }
        let here = all.into_iter().filter(|prompt| prompt.cwd == cwd).map(|prompt| prompt.prompt);
        let mut prompts: Vec<String> = here.collect();
        prompts.drain(..prompts.len().saturating_sub(MOST_PROMPTS));
        History { path, prompts }
    }

    /// Remembers a prompt.
    pub(crate) fn add(&mut self, cwd: &Path, prompt: &str) {
        if prompt.trim().is_empty()
            || prompt.len() > LONGEST_PROMPT
            || self.prompts.last().is_some_and(|last| last == prompt)
        {
            return;
        }
        self.prompts.push(prompt.to_owned());
        let line = serde_json::to_string(&Prompt { cwd: cwd.display().to_string(), prompt: prompt.to_owned() });
        let (Some(path), Ok(line)) = (&self.path, line) else { return };
        let write = || {
            paths::private_directory(path.parent().unwrap_or(Path::new("/")))?;
            let mut file = private::append(path)?;
            file.write_all(format!("{line}\n").as_bytes())
        };
        // Remembering is a comfort; a full disk is not to keep anybody from talking.
        let _: std::io::Result<()> = write();
    }
}

/// What was written to an agent and not sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptDraft {
    /// Who the agent is. Drafts of the first version do not say.
    #[serde(default)]
    pub(crate) agent: Option<String>,
    #[serde(flatten)]
    pub(crate) draft: attache_tui::composer::Draft,
}

/// How many chats of a directory can keep what is being typed at the same time.
const MOST_DRAFTS: usize = 16;

/// What is being typed, so that it survives the end of the program.
///
/// A directory has several places for it. Who uses one holds its lock, so two chats do not take each other's; what a chat
/// that has ended left in its place is taken over by the next.
pub(crate) struct Draft {
    /// `None` where there is no place, or it cannot be used.
    place: Option<Place>,
    written: String,
}

struct Place {
    path: PathBuf,
    /// Locked as long as the place is in use.
    _lock: fs::File,
}

impl Place {
    /// Takes a place, unless another chat has it.
    fn take(directory: &Path, name: &str) -> Option<Self> {
        let lock = directory.join(format!("{name}.lock"));
        let lock = private::open_or_create(&lock).ok()?;
        lock.try_lock().ok()?;
        Some(Place { path: directory.join(format!("{name}.json")), _lock: lock })
    }

    fn read(&self) -> Option<String> {
        let is_short = self.path.metadata().ok()?.len() <= LONGEST_DRAFT;
        if is_short { fs::read_to_string(&self.path).ok() } else { None }
    }
}

impl Draft {
    /// No draft yet.
    pub(crate) fn none() -> Self {
        Draft { place: None, written: String::new() }
    }

    /// Whether there is a place already.
    pub(crate) fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Takes a place for the drafts of a directory, and all that chats which have ended left there.
    pub(crate) fn take_over<T: Serialize + DeserializeOwned>(&mut self, cwd: &Path) -> Vec<T> {
        let Ok(state) = paths::state() else { return Vec::new() };
        self.take_over_in(&state.join("chat/drafts"), cwd)
    }

    fn take_over_in<T: Serialize + DeserializeOwned>(&mut self, directory: &Path, cwd: &Path) -> Vec<T> {
        if paths::private_directory(directory).is_err() {
            return Vec::new();
        }
        let mut hasher = DefaultHasher::new();
        cwd.hash(&mut hasher);
        let name = format!("{:016x}", hasher.finish());
        let places = (0..MOST_DRAFTS).filter_map(|number| Place::take(directory, &format!("{name}-{number}")));
        let places: Vec<Place> = places.collect();
        let left = places.iter().filter_map(Place::read).filter_map(|text| serde_json::from_str::<Vec<T>>(&text).ok());
        let left: Vec<T> = left.flatten().collect();
        let mut places = places.into_iter();
        self.place = places.next();
        // Ours is written before the others go: nothing is lost on the way. Where it cannot be written, they stay.
        let is_written = left.is_empty() || self.write(Some(&left));
        for other in places.filter(|_| self.place.is_some() && is_written) {
            let _ = fs::remove_file(other.path);
        }
        left
    }

    /// Keeps what is there now, if it is not what is kept already. Whether it is kept.
    pub(crate) fn write<T: Serialize>(&mut self, draft: Option<&T>) -> bool {
        let Some(place) = &self.place else { return false };
        let text = draft.and_then(|draft| serde_json::to_string(draft).ok()).unwrap_or_default();
        if text == self.written {
            return true;
        }
        let done = match text.is_empty() {
            true => fs::remove_file(&place.path),
            false => paths::write_private(&place.path, text.as_bytes()),
        };
        let is_kept = done.is_ok() || text.is_empty();
        if is_kept {
            self.written = text;
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_takes_the_drafts_of_those_that_ended_and_of_no_other() {
        let home = tempfile::tempdir().unwrap();
        let (directory, cwd) = (home.path().join("drafts"), Path::new("/work"));
        let begin = || {
            let mut draft = Draft::none();
            let left: Vec<String> = draft.take_over_in(&directory, cwd);
            (draft, left)
        };
        let (mut first, left) = begin();
        assert!(left.is_empty());
        first.write(Some(&vec!["of the first"]));
        let (mut second, left) = begin();
        assert!(left.is_empty(), "{left:?}");
        second.write(Some(&vec!["of the second"]));
        // One that has nothing to keep takes nothing away.
        second.write(None::<&Vec<String>>);
        second.write(Some(&vec!["of the second"]));
        drop((first, second));
        let (third, left) = begin();
        assert_eq!(left, ["of the first", "of the second"]);
        // They are its own now: nobody else gets them while it goes on.
        assert!(begin().1.is_empty());
        drop(third);
        assert_eq!(begin().1, ["of the first", "of the second"]);
    }

    #[test]
    fn what_cannot_be_taken_over_stays_where_it_is() {
        let home = tempfile::tempdir().unwrap();
        let (directory, cwd) = (home.path().join("drafts"), Path::new("/work"));
        let begin = || {
            let mut draft = Draft::none();
            let left: Vec<String> = draft.take_over_in(&directory, cwd);
            (draft, left)
        };
        let (mut first, mut second) = (begin().0, begin().0);
        assert!(first.write(Some(&vec!["of the first"])) && second.write(Some(&vec!["of the second"])));
        let kept = |number: usize| {
            let names = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
            names.into_iter().find(|path| path.to_string_lossy().ends_with(&format!("-{number}.json"))).unwrap()
        };
        drop((first, second));
        // Where the first place cannot be written to, as on a full disk, the others are not emptied.
        fs::remove_file(kept(0)).unwrap();
        fs::create_dir(kept(1).with_file_name(kept(1).file_name().unwrap().to_string_lossy().replace("-1.", "-0.")))
            .unwrap();
        let (third, left) = begin();
        assert_eq!(left, ["of the second"]);
        drop(third);
        assert_eq!(begin().1, ["of the second"]);
    }
}
