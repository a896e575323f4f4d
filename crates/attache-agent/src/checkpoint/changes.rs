//! What a task is about to change, as far as that is known before.

use std::path::PathBuf;

use attache::model::tool::ToolCallContent;
use attache_host::files::EntryKind;

use crate::toolbox::Task;
use crate::tools::commands::CommandWork;
use crate::workspace::{Target, Text};

/// What a task changes.
pub(super) enum Changes {
    Nothing,
    /// These, and nothing else.
    Paths(Vec<Touched>),
    /// A directory is moved, which may need directories above its new name.
    Move {
        from: PathBuf,
        to: PathBuf,
        was_asked: bool,
    },
    /// Whatever it likes, until it ends or, if it goes on, until the turn does.
    Anything {
        goes_on: bool,
    },
}

/// A path that is about to change.
pub(super) struct Touched {
    pub(super) path: PathBuf,
    pub(super) was_asked: bool,
    /// What an editor had of it that was not saved.
    pub(super) unsaved: Option<String>,
}

/// What a task is about to change. `shown` is what the person was shown of it.
pub(super) fn changes_of(task: &Task, shown: &[ToolCallContent]) -> Changes {
    match task {
        Task::File(work) => {
            let targets = work.changed_targets();
            match targets.as_slice() {
                [] => Changes::Nothing,
                [from, to] if from.kind() == Some(EntryKind::Directory) => Changes::Move {
                    from: from.real.clone(),
                    to: to.real.clone(),
                    was_asked: was_asked(from) || was_asked(to),
                },
                targets => Changes::Paths(targets.iter().map(|target| touched(target, shown)).collect()),
            }
        }
        Task::Command(CommandWork::Run { .. }) | Task::Mcp(_) => Changes::Anything { goes_on: false },
        Task::Command(CommandWork::Start { .. }) => Changes::Anything { goes_on: true },
        Task::Command(CommandWork::Look { .. } | CommandWork::Stop { .. }) | Task::Fetch(_) | Task::Skill(_) => {
            Changes::Nothing
        }
    }
}

fn was_asked(target: &Target) -> bool {
    !target.is_inside() || target.has_more_names()
}

fn touched(target: &Target, shown: &[ToolCallContent]) -> Touched {
    let unsaved = shown.iter().find_map(|content| match content {
        ToolCallContent::Diff(diff) => diff.to_text().filter(|diff| diff.path == target.path)?.old_text,
        _ => None,
    });
    Touched { path: target.real.clone(), was_asked: was_asked(target), unsaved }
}

/// What an editor had and the disk did not, as bytes of the same kind. Line ends are an editor's own business.
pub(super) fn unsaved_bytes(on_disk: &[u8], text: String) -> Option<Vec<u8>> {
    let saved = Text::decode(on_disk.to_vec()).ok()?;
    let plain = |text: &str| text.replace("\r\n", "\n");
    (plain(&saved.content) != plain(&text)).then(|| saved.with(text).encode())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_editor_has_not_saved_is_told_from_its_line_ends() {
        for (on_disk, text, unsaved) in [
            (&b"a\r\nb\r\n"[..], "a\nb\n", None),
            (b"a\n", "a\n", None),
            (b"a\n", "a\nmore\n", Some(&b"a\nmore\n"[..])),
            (b"a\r\nb\r\n", "a\nc\n", Some(b"a\r\nc\r\n")),
            (b"\xef\xbb\xbfa", "b", Some(b"\xef\xbb\xbfb")),
            (b"\0binary", "x", None),
        ] {
            assert_eq!(unsaved_bytes(on_disk, text.into()).as_deref(), unsaved, "{on_disk:?} {text:?}");
        }
    }
}
