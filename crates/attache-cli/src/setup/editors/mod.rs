//! The editors that can be set up: a row and a small file each.

mod emacs;
mod jetbrains;
mod json;
mod neovim;
mod vscode;
mod zed;

use std::path::{Path, PathBuf};

use super::change::{Change, Found};
use crate::agents::catalog;
use crate::exit::Failure;

/// The answer that names no editor.
pub(super) const NONE: &str = "none";

/// What the agent is called in editors.
const AGENT: &str = "Attaché";

/// An editor that can be set up.
pub(super) struct Editor {
    /// What `--editor` takes.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Whether it seems to be on this machine.
    pub(super) is_here: fn(&Places) -> bool,
    /// What has to be done.
    pub(super) plan: fn(&Places, &Program) -> Plan,
    /// How to begin there, in a sentence for people.
    pub(super) begin: &'static str,
}

/// All editors, in the order in which they are shown.
pub(super) const EDITORS: &[Editor] =
    &[zed::ROW, jetbrains::ROW, vscode::ROW, neovim::AVANTE, neovim::CODE_COMPANION, emacs::ROW];

/// What has to be done for an editor. Neither of both: nothing.
#[derive(Debug)]
pub(super) struct Plan {
    /// The file that is looked at.
    pub(super) path: PathBuf,
    pub(super) change: Option<Change>,
    pub(super) by_hand: Option<ByHand>,
}

/// Something that a person has to add.
#[derive(Debug)]
pub(super) struct ByHand {
    /// Where.
    pub(super) place: String,
    pub(super) snippet: String,
    /// Why it was not done here, where a file of that kind usually is.
    pub(super) refused: Option<String>,
}

/// Where programs keep their settings.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) home: PathBuf,
    /// `$XDG_CONFIG_HOME`; `%APPDATA%` on Windows.
    pub(super) config: PathBuf,
}

impl Places {
    pub(super) fn here() -> Result<Self, Failure> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = std::env::home_dir().filter(absolute);
        let home = home
            .ok_or_else(|| Failure::usage("cannot determine the home directory\nhint: set HOME to an absolute path"))?;
        let (variable, otherwise) =
            if cfg!(windows) { ("APPDATA", "AppData/Roaming") } else { ("XDG_CONFIG_HOME", ".config") };
        let set = std::env::var_os(variable).map(PathBuf::from).filter(absolute);
        let config = set.unwrap_or_else(|| home.join(otherwise));
        Ok(Places { home, config })
    }

    /// A directory in `~/.config`, for programs that look there on every system.
    fn dot_config(&self, name: &str) -> PathBuf {
        if cfg!(target_os = "macos") { self.home.join(".config").join(name) } else { self.config.join(name) }
    }
}

/// This program, as an editor starts it.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// A name, where that is enough to find it.
    command: String,
    /// Its whole path.
    path: String,
}

impl Program {
    pub(super) fn here() -> Result<Self, Failure> {
        let whole = std::env::current_exe()
            .map_err(|error| Failure::usage(format!("cannot tell where this program is: {error}")))?;
        let is_ours = catalog::is_ourselves("attache");
        // The way by which it is found outlives the next update; the file that it leads to, perhaps not.
        let path = catalog::on_path("attache").filter(|path| is_ours && path.is_absolute()).unwrap_or(whole);
        let path = path.into_os_string().into_string();
        let path =
            path.map_err(|_| Failure::usage("the path of this program is not UTF-8, which editors cannot take"))?;
        Ok(Program { command: if is_ours { "attache".into() } else { path.clone() }, path })
    }

    /// Whether it lies where a package runner keeps what it fetched, and is gone some day.
    pub(super) fn is_passing(&self) -> bool {
        let path = self.path.replace('\\', "/");
        ["/_npx/", "/uv/archive-", "/uv/builds-", "/.cache/uv/", "/dlx-"].iter().any(|part| path.contains(part))
    }
}

/// The plan for a file of our own beside an editor's settings, which are a program.
fn own_file(path: PathBuf, text: String, by_hand: Option<ByHand>) -> Plan {
    let refuse = |path: PathBuf, why: String, snippet: String| {
        let place = format!("the settings of the editor, in place of `{}`", path.display());
        Plan { path, change: None, by_hand: Some(ByHand { place, snippet, refused: Some(why) }) }
    };
    match Found::read(&path) {
        Ok(found) if found.is_there() && !found.text().contains(MARK) => {
            refuse(path, "it is there, and somebody else wrote it".into(), text)
        }
        Ok(found) => Plan { path, change: found.becomes(text, false), by_hand },
        Err(why) => refuse(path, why, text),
    }
}

/// What a file of our own says in its first line.
const MARK: &str = "Written by `attache setup`, which writes it anew";

/// The plan for a file of JSON with comments.
fn json_file(path: PathBuf, wanted: &json::Wanted<'_>) -> Plan {
    let made = Found::read(&path).and_then(|found| {
        let text = json::with_entry(found.text(), wanted)?;
        Ok(found.becomes(text, false))
    });
    match made {
        Ok(change) => Plan { path, change, by_hand: None },
        Err(why) => {
            let by_hand = ByHand { place: place_of(&path), snippet: wanted.snippet(), refused: Some(why) };
            Plan { path, change: None, by_hand: Some(by_hand) }
        }
    }
}

fn place_of(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Whether a program of this name is on PATH.
fn is_installed(program: &str) -> bool {
    catalog::on_path(program).is_some()
}

/// A text as a string in double quotes of Lua or Lisp.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
