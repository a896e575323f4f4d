//! Questions that stand on the screen until they are answered.
//!
//! Each dialog takes keys in and says what the person answered; `None` means that it stays open. A key that comes within
//! half a second of a question that can be answered by one key is swallowed: it was meant for what was there before.

mod confirm;
mod form;
mod help;
mod login;
mod options;
mod permission;
pub mod question;
mod scroll;
mod url;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub use confirm::{ConfirmDialog, TextDialog, TextReply};
pub use form::{FormDialog, FormReply};
pub use help::HelpDialog;
pub use login::{LoginDialog, LoginReply};
pub use options::{OptionsDialog, OptionsReply, next_mode};
pub use permission::PermissionDialog;
pub use question::PermissionReply;
pub use url::{UrlDialog, UrlError, UrlReply};

/// How long a question swallows keys after it appears. For forms and texts the app may do the same.
pub const GRACE: Duration = Duration::from_millis(500);

/// Whether a key was pressed for what is on the screen.
fn is_meant(key: KeyEvent, elapsed: Duration) -> bool {
    key.kind != KeyEventKind::Release && elapsed >= GRACE
}

/// What an agent is called that goes by the path of its program.
fn last_part(name: &str) -> &str {
    name.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(name)
}

/// The letter that was typed, in lower case: none with Ctrl or Alt, which mean something else.
fn letter(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            Some(letter.to_ascii_lowercase())
        }
        _ => None,
    }
}
