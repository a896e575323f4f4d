//! Which key means what.
//!
//! The defaults reach a program in ordinary terminals, in tmux and over ssh: letters with Ctrl or Alt, function keys,
//! arrows. A key that types something acts only where nothing is typed.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// In the composer, which holds text.
    Composer,
    /// In the composer, which is empty.
    EmptyComposer,
    /// In the transcript, where nothing is typed.
    Transcript,
    /// In a dialog or a list, which has keys of its own. Only what is about the screen is left, and what gets away from
    /// an agent that does not stop asking.
    Dialog,
}

/// A row for each action: its name in the configuration, what it does, its keys everywhere, in an empty composer, and in
/// the transcript.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident, $name:literal, $help:literal, $keys:literal, $empty:literal, $transcript:literal;)*) => {
        /// What a person can want of the screen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $(#[doc = $help] $action,)*
        }

        impl Action {
            /// All actions, in the order of the help screen.
            pub const ALL: &[Action] = &[$(Action::$action),*];

            /// Its name in the configuration.
            pub fn name(self) -> &'static str {
                match self { $(Action::$action => $name,)* }
            }

            /// What it does, as a sentence.
            pub fn help(self) -> &'static str {
                match self { $(Action::$action => $help,)* }
            }

            fn defaults(self) -> [&'static str; 3] {
                match self { $(Action::$action => [$keys, $empty, $transcript],)* }
            }
        }
    };
}

actions! {
    Send, "send", "Send the message; while the agent works, queue it.", "enter", "", "";
    Newline, "newline", "Begin a new line.", "alt-enter ctrl-j shift-enter", "", "";
    Steer, "steer", "Send the message to the agent at once while it works.", "alt-s", "", "";
    Cancel, "cancel", "Cancel the turn, or close what is open.", "esc", "", "";
    Quit, "quit", "Clear the composer; once more: leave.", "ctrl-c", "ctrl-d", "q";
    Help, "help", "Show all keys.", "f1", "?", "?";
    OpenEditor, "open-editor", "Edit the message in $EDITOR.", "ctrl-g", "", "";
    HistorySearch, "history-search", "Search the messages sent before.", "ctrl-r", "", "/";
    AttachFile, "attach-file", "Attach a file.", "alt-a", "", "";
    PasteImage, "paste-image", "Attach the image in the clipboard.", "ctrl-v alt-v", "", "";
    ExpandPaste, "expand-paste", "Show the pasted text at the cursor in full.", "alt-x", "", "";
    EditQueue, "edit-queue", "Edit, reorder or delete the messages that wait.", "alt-q", "", "";
    ScrollUp, "scroll-up", "Scroll up by a line.", "ctrl-up alt-up", "", "up k";
    ScrollDown, "scroll-down", "Scroll down by a line.", "ctrl-down alt-down", "", "down j";
    PageUp, "page-up", "Scroll up by a page.", "pageup", "", "b";
    PageDown, "page-down", "Scroll down by a page.", "pagedown", "", "space";
    ScrollTop, "scroll-top", "Go to the beginning.", "ctrl-home", "", "home g";
    ScrollBottom, "scroll-bottom", "Go to the end, and follow it.", "ctrl-end", "", "end G";
    FocusTranscript, "focus-transcript", "Go to the transcript, where letters are keys.", "alt-t", "tab", "";
    FocusComposer, "focus-composer", "Go back to the composer.", "", "", "esc tab i";
    PreviousEntry, "previous-entry", "Go to the entry before.", "ctrl-p", "", "K";
    NextEntry, "next-entry", "Go to the next entry.", "ctrl-n", "", "J";
    ToggleFold, "toggle-fold", "Unfold or fold the entry.", "ctrl-o", "", "enter o";
    UnfoldAll, "unfold-all", "Unfold everything.", "alt-o", "", "O";
    FoldAll, "fold-all", "Fold everything.", "alt-i", "", "I";
    OpenLocation, "open-location", "Open the file and line of the entry in $EDITOR.", "alt-e", "", "e";
    CopyEntry, "copy-entry", "Copy the entry.", "alt-c", "", "y";
    KillTerminal, "kill-terminal", "Kill the command of the entry, or the last that runs.", "alt-k", "", "x";
    TogglePlan, "toggle-plan", "Show or hide the plan.", "f3 alt-p", "", "p";
    CycleMode, "cycle-mode", "Change to the next mode.", "shift-tab", "", "";
    Models, "models", "Choose a model.", "alt-m", "", "m";
    Options, "options", "Change modes, models and other options.", "f2", "", ",";
    Sessions, "sessions", "Switch to, resume or delete a session.", "ctrl-t", "", "s";
    NewSession, "new-session", "Open a new session.", "alt-n", "", "n";
    NextTab, "next-tab", "Go to the next open session.", "alt-right", "", "]";
    PreviousTab, "previous-tab", "Go to the open session before.", "alt-left", "", "[";
    CloseTab, "close-tab", "Close the session.", "alt-w", "", "";
    Fork, "fork", "Go on in a copy of the session.", "f6", "", "F";
    Undo, "undo", "Undo the last turn, if the agent can.", "f8 alt-u", "", "u";
    RestartAgent, "restart-agent", "Restart the agent and resume the session.", "f5 alt-r", "", "R";
    ShowLog, "show-log", "Show what the agent wrote to stderr.", "f7 alt-l", "", "l";
    ToggleMouse, "toggle-mouse", "Use the mouse here, or leave it to the terminal.", "f9", "", "";
    Redraw, "redraw", "Draw the screen anew.", "ctrl-l", "", "";
    Suspend, "suspend", "Go back to the shell; `fg` returns.", "ctrl-z", "", "";
}

/// A key with its modifiers, in one spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("del", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("space", KeyCode::Char(' ')),
    ("minus", KeyCode::Char('-')),
];

impl Key {
    /// The key of an event; `None` for the release of one.
    pub fn of(event: KeyEvent) -> Option<Self> {
        (event.kind != KeyEventKind::Release).then(|| Key::new(event.code, event.modifiers))
    }

    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let known = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT;
        let mut modifiers = modifiers & known;
        let code = match code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            // A capital letter says it already, and with Ctrl terminals do not tell the difference.
            KeyCode::Char(c) => {
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(if modifiers.contains(KeyModifiers::CONTROL) { c.to_ascii_lowercase() } else { c })
            }
            code => code,
        };
        Key { code, modifiers }
    }

    /// Reads a key such as `ctrl-x`, `alt-enter`, `f2` or `?`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        let mut modifiers = KeyModifiers::NONE;
        loop {
            let lower = rest.to_ascii_lowercase();
            let found = [
                ("ctrl", KeyModifiers::CONTROL),
                ("control", KeyModifiers::CONTROL),
                ("alt", KeyModifiers::ALT),
                ("shift", KeyModifiers::SHIFT),
            ]
            .into_iter()
            .find(|(name, _)| {
                lower.strip_prefix(name).is_some_and(|rest| rest.len() > 1 && rest.starts_with(['-', '+']))
            });
            let Some((name, modifier)) = found else { break };
            modifiers |= modifier;
            rest = &rest[name.len() + 1..];
        }
        let lower = rest.to_ascii_lowercase();
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next()) {
            (Some(letter), None) if !letter.is_control() && !letter.is_whitespace() => KeyCode::Char(letter),
            _ => match NAMES.iter().find(|(name, _)| *name == lower) {
                Some((_, code)) => *code,
                None => {
                    let number = lower.strip_prefix('f')?.parse().ok()?;
                    (1..=24).contains(&number).then_some(KeyCode::F(number))?
                }
            },
        };
        // Nobody can type it: a terminal sends the capital letter.
        if modifiers.contains(KeyModifiers::SHIFT) && matches!(code, KeyCode::Char(_)) {
            return None;
        }
        Some(Key::new(code, modifiers))
    }

    /// Whether it types something.
    fn is_typed(self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in
            [(KeyModifiers::CONTROL, "ctrl-"), (KeyModifiers::ALT, "alt-"), (KeyModifiers::SHIFT, "shift-")]
        {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        match self.code {
            KeyCode::F(number) => write!(f, "f{number}"),
            code => match (NAMES.iter().find(|(_, known)| *known == code), code) {
                (Some((name, _)), _) => f.write_str(name),
                (None, KeyCode::Char(letter)) => write!(f, "{letter}"),
                (None, _) => f.write_str("?"),
            },
        }
    }
}

/// Why the keys of the configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyMapError {
    /// There is no such action.
    UnknownAction(String),
    /// A key that cannot be read.
    InvalidKey {
        /// The action it was meant for.
        action: &'static str,
        /// The key as it is written.
        key: String,
    },
    /// An action that nobody can do without has no key, or only one that types something.
    NoKey {
        /// The action.
        action: &'static str,
    },
    /// One key, two actions.
    Conflict {
        /// The key.
        key: String,
        /// The actions.
        actions: [&'static str; 2],
    },
}

impl fmt::Display for KeyMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| attache_host::visible::visible(text);
        match self {
            KeyMapError::NoKey { action } => {
                write!(f, "`{action}` needs a key that types nothing\nhint: `{action} = [\"alt-enter\"]`, for one")
            }
            KeyMapError::UnknownAction(name) => {
                write!(f, "unknown action `{}` in the keys\nhint: F1 shows all actions by name", shown(name))
            }
            KeyMapError::InvalidKey { action, key } => write!(
                f,
                "invalid key `{}` for `{action}`\nhint: write it as `ctrl-x`, `alt-enter`, `f2` or `pageup`",
                shown(key)
            ),
            KeyMapError::Conflict { key, actions: [first, second] } => write!(
                f,
                "key `{key}` is bound to both `{first}` and `{second}`\nhint: give one of them another key, or `[]` for none"
            ),
        }
    }
}

impl std::error::Error for KeyMapError {}

/// A row of the help screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// The action.
    pub action: Action,
    /// Its keys, as they are written in the configuration.
    pub keys: Vec<String>,
    /// Its keys where nothing is typed.
    pub transcript_keys: Vec<String>,
}

/// The keys of one action: everywhere, in an empty composer, and in the transcript.
type Keys = [Vec<Key>; 3];

/// Which key means what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyMap {
    keys: BTreeMap<Action, Keys>,
}

impl Default for KeyMap {
    fn default() -> Self {
        KeyMap::new()
    }
}

impl KeyMap {
    /// The keys that are right for most.
    pub fn new() -> Self {
        let read = |keys: &str| keys.split_whitespace().filter_map(Key::parse).collect();
        KeyMap { keys: Action::ALL.iter().map(|action| (*action, action.defaults().map(read))).collect() }
    }

    /// The same, with other keys for some actions by name. An empty list takes an action's keys away.
    pub fn with(overrides: BTreeMap<String, Vec<String>>) -> Result<Self, KeyMapError> {
        let mut map = KeyMap::new();
        for (name, keys) in overrides {
            let Some(action) = Action::ALL.iter().find(|action| action.name() == name) else {
                return Err(KeyMapError::UnknownAction(name));
            };
            let mut read = Keys::default();
            for key in keys {
                let Some(parsed) = Key::parse(&key) else {
                    return Err(KeyMapError::InvalidKey { action: action.name(), key });
                };
                read[if parsed.is_typed() { 2 } else { 0 }].push(parsed);
            }
            map.keys.insert(*action, read);
        }
        // Without these nobody gets anywhere.
        for action in [Action::Send, Action::Quit] {
            if map.keys.get(&action).is_none_or(|keys| keys[0].is_empty()) {
                return Err(KeyMapError::NoKey { action: action.name() });
            }
        }
        match map.conflict() {
            Some(conflict) => Err(conflict),
            None => Ok(map),
        }
    }

    fn conflict(&self) -> Option<KeyMapError> {
        (0..3).find_map(|place| {
            let mut seen: Vec<(Key, Action)> = Vec::new();
            for (action, keys) in &self.keys {
                for key in &keys[place] {
                    if let Some((_, other)) = seen.iter().find(|(known, other)| known == key && other != action) {
                        let actions = [other.name(), action.name()];
                        return Some(KeyMapError::Conflict { key: key.to_string(), actions });
                    }
                    seen.push((*key, *action));
                }
            }
            None
        })
    }

    /// What a key means where it was pressed.
    pub fn action(&self, event: KeyEvent, context: Context) -> Option<Action> {
        let key = Key::of(event)?;
        let find =
            |place: usize| self.keys.iter().find(|(_, keys)| keys[place].contains(&key)).map(|(action, _)| *action);
        match context {
            Context::Composer => find(0),
            Context::EmptyComposer => find(1).or_else(|| find(0)),
            Context::Transcript => find(2).or_else(|| find(0)),
            Context::Dialog => find(0).filter(|action| {
                matches!(
                    action,
                    Action::Redraw
                        | Action::Suspend
                        | Action::ToggleMouse
                        | Action::RestartAgent
                        | Action::CloseTab
                        | Action::Sessions
                )
            }),
        }
    }

    /// The first key of an action, for a hint.
    pub fn hint(&self, action: Action) -> Option<String> {
        self.keys.get(&action)?.iter().flatten().next().map(ToString::to_string)
    }

    /// The first key that an action has in the transcript, for a hint.
    pub fn transcript_hint(&self, action: Action) -> Option<String> {
        self.keys.get(&action)?[2].first().map(ToString::to_string)
    }

    /// All actions with their keys, for the help screen.
    pub fn rows(&self) -> Vec<KeyRow> {
        let names = |keys: &[Key]| keys.iter().map(ToString::to_string).collect();
        let row = |action: &Action| {
            let [keys, empty, transcript] = self.keys.get(action).cloned().unwrap_or_default();
            KeyRow { action: *action, keys: names(&[keys, empty].concat()), transcript_keys: names(&transcript) }
        };
        Action::ALL.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(key: &str) -> KeyEvent {
        let key = Key::parse(key).unwrap();
        KeyEvent::new(key.code, key.modifiers)
    }

    fn with(rows: &[(&str, &[&str])]) -> Result<KeyMap, KeyMapError> {
        let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect();
        KeyMap::with(rows.iter().map(|(name, list)| (name.to_string(), keys(list))).collect())
    }

    #[test]
    fn all_defaults_can_be_read_and_none_conflict() {
        for action in Action::ALL {
            for key in action.defaults().iter().flat_map(|keys| keys.split_whitespace()) {
                let parsed = Key::parse(key).unwrap_or_else(|| panic!("{key}"));
                assert_eq!(Key::parse(&parsed.to_string()), Some(parsed));
            }
            assert!(action.help().ends_with('.'));
        }
        assert_eq!(KeyMap::new().conflict(), None);
        assert_eq!(with(&[]).unwrap(), KeyMap::new());
    }

    #[test]
    fn a_key_means_what_its_place_says() {
        let map = KeyMap::new();
        for (key, context, action) in [
            ("enter", Context::Composer, Some(Action::Send)),
            ("enter", Context::Transcript, Some(Action::ToggleFold)),
            ("ctrl-j", Context::Composer, Some(Action::Newline)),
            ("?", Context::Composer, None),
            ("?", Context::EmptyComposer, Some(Action::Help)),
            ("x", Context::Transcript, Some(Action::KillTerminal)),
            ("x", Context::EmptyComposer, None),
            ("ctrl-d", Context::Composer, None),
            ("ctrl-d", Context::EmptyComposer, Some(Action::Quit)),
            ("ctrl-c", Context::Dialog, None),
            ("ctrl-l", Context::Dialog, Some(Action::Redraw)),
            ("esc", Context::Transcript, Some(Action::FocusComposer)),
        ] {
            assert_eq!(map.action(event(key), context), action, "{key} {context:?}");
        }
        let back_tab = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
        assert_eq!(map.action(back_tab, Context::Composer), Some(Action::CycleMode));
        let capital = KeyEvent::new(KeyCode::Char('O'), KeyModifiers::SHIFT);
        assert_eq!(map.action(capital, Context::Transcript), Some(Action::UnfoldAll));
        let released = KeyEvent::new_with_kind(KeyCode::Enter, KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(map.action(released, Context::Composer), None);
    }

    #[test]
    fn keys_can_be_bound_anew() {
        let map =
            with(&[("send", &["ctrl-s"]), ("newline", &["enter"]), ("fork", &[]), ("help", &["F10", "h"])]).unwrap();
        assert_eq!(map.action(event("enter"), Context::Composer), Some(Action::Newline));
        assert_eq!(map.action(event("ctrl-s"), Context::Composer), Some(Action::Send));
        assert_eq!(map.action(event("h"), Context::Composer), None);
        assert_eq!(map.action(event("h"), Context::Transcript), Some(Action::Help));
        assert_eq!((map.hint(Action::Fork), map.hint(Action::Help)), (None, Some("f10".into())));
    }

    #[test]
    fn mistakes_are_named() {
        for (rows, message) in [
            (&[("snd", &["f2"][..])][..], "unknown action `snd` in the keys"),
            (&[("send", &["crtl-x"])], "invalid key `crtl-x` for `send`"),
            (&[("send", &["f99"])], "invalid key `f99` for `send`"),
            (&[("send", &["shift-a"])], "invalid key `shift-a` for `send`"),
            (&[("send", &["\u{1b}"])], "invalid key `\\x1b` for `send`"),
            (&[("send", &["ctrl-g"])], "key `ctrl-g` is bound to both `send` and `open-editor`"),
        ] {
            assert_eq!(with(rows).unwrap_err().to_string().lines().next(), Some(message));
        }
    }
}
