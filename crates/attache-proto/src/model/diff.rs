//! Changes of files: the old and the new text, as v1 has them, or a patch, as v2 has it.

use super::{Meta, patch};
use crate::Dialect;
use crate::codec::{Blank, Decode, ReadInPlace, read_over, record, string_enum, union};
use crate::json::{DecodeError, Reader, Reason, Writer};

/// A change of files. Either form is read in every dialect, and is written in the form that the dialect has.
#[derive(Debug, Clone, PartialEq)]
pub enum Diff {
    /// One file, with its old and its new text.
    Text(TextDiff),
    /// One or more files, with a patch.
    Patch(PatchDiff),
}

record! {
    /// The old and the new text of one file.
    pub struct TextDiff {
        required {
            /// The file, absolute.
            path: String = "path",
            /// The new text.
            new_text: String = "newText",
        }
        optional {
            /// The old text; none if the file is new.
            old_text: Option<String> as OrNull = "oldText",
        }
    }

    /// Changes of one or more files.
    pub struct PatchDiff {
        required {
            /// What happened to which files.
            changes: Vec<DiffChange> = "changes" list,
        }
        optional {
            /// The changes of their contents.
            patch: Option<DiffPatch> = "patch",
        }
    }

    /// A patch.
    pub struct DiffPatch {
        required {
            /// The format of the text.
            format: DiffPatchFormat = "format",
            /// The patch itself.
            text: String = "text",
        }
    }

    /// A file that was added, deleted or modified.
    pub struct PathChange {
        required {
            /// The file, absolute.
            path: String = "path",
        }
        optional {
            /// The type of the file.
            file_type: Option<DiffFileType> = "fileType",
            /// Its media type.
            mime_type: Option<String> = "mimeType",
        }
    }

    /// A file that was moved or copied.
    pub struct PathPairChange {
        required {
            /// The old path, absolute.
            old_path: String = "oldPath",
            /// The new path, absolute.
            path: String = "path",
        }
        optional {
            /// The type of the file.
            file_type: Option<DiffFileType> = "fileType",
            /// Its media type.
            mime_type: Option<String> = "mimeType",
        }
    }
}

union! {
    /// What happened to a file.
    pub enum DiffChange tag "operation" without [From] {
        /// It was added.
        Add(PathChange) = "add",
        /// It was deleted.
        Delete(PathChange) = "delete",
        /// Its contents changed.
        Modify(PathChange) = "modify",
        /// It was moved, and its contents may have changed.
        Move(PathPairChange) = "move",
        /// It was copied, and the contents of the copy may differ.
        Copy(PathPairChange) = "copy",
    }
}

string_enum! {
    /// The type of a file.
    pub enum DiffFileType {
        /// Text.
        Text = "text",
        /// Not text.
        Binary = "binary",
        /// A directory.
        Directory = "directory",
        /// A symbolic link.
        Symlink = "symlink",
    }

    /// The format of a patch.
    pub enum DiffPatchFormat {
        /// What `git diff` writes, with absolute paths and without prefixes.
        GitPatch = "git_patch",
    }
}

impl Diff {
    /// A change of one file. Without an old text the file is new.
    pub fn text(path: impl Into<String>, old_text: Option<String>, new_text: impl Into<String>) -> Self {
        Diff::Text(TextDiff { old_text, ..TextDiff::new(path, new_text) })
    }

    /// The same change as a patch.
    pub fn to_patch(&self) -> PatchDiff {
        let diff = match self {
            Diff::Patch(patch) => return patch.clone(),
            Diff::Text(diff) => diff,
        };
        let change = PathChange { file_type: Some(DiffFileType::Text), ..PathChange::new(diff.path.as_str()) };
        let change = if diff.old_text.is_none() { DiffChange::Add(change) } else { DiffChange::Modify(change) };
        let text = patch::write(&diff.path, diff.old_text.as_deref(), &diff.new_text);
        let held = patch::read(&text, patch::Change::ModifiedWhole);
        let is_whole = held.is_some_and(|(old, new)| Some(old) == diff.old_text && new == diff.new_text);
        let mut patch = DiffPatch::new(DiffPatchFormat::GitPatch, text);
        patch.meta = if is_whole { Meta::new(WHOLE_FILE).ok() } else { None };
        PatchDiff { patch: Some(patch), meta: diff.meta.clone(), ..PatchDiff::new([change]) }
    }

    /// The same change as the texts of one file, if the patch is known to hold all of both: for a file that is new or
    /// gone, and for a modified one if a single hunk reaches from its first line to a last line without a line end, or if
    /// the patch was made by [`to_patch`](Self::to_patch), which says in `_meta` when it holds all.
    pub fn to_text(&self) -> Option<TextDiff> {
        let diff = match self {
            Diff::Text(diff) => return Some(diff.clone()),
            Diff::Patch(diff) => diff,
        };
        let [change] = diff.changes.as_slice() else { return None };
        let patch = diff.patch.as_ref().filter(|patch| patch.format == DiffPatchFormat::GitPatch)?;
        let (path, kind) = match change {
            DiffChange::Add(change) => (&change.path, patch::Change::Added),
            DiffChange::Delete(change) => (&change.path, patch::Change::Deleted),
            DiffChange::Modify(change) if is_marked_whole(patch) => (&change.path, patch::Change::ModifiedWhole),
            DiffChange::Modify(change) => (&change.path, patch::Change::Modified),
            _ => return None,
        };
        let (old_text, new_text) = patch::read(&patch.text, kind)?;
        let old_text = if matches!(change, DiffChange::Add(_)) { None } else { Some(old_text) };
        Some(TextDiff { old_text, meta: diff.meta.clone(), ..TextDiff::new(path.as_str(), new_text) })
    }

    /// The change as Markdown, for clients that cannot show it in any other way.
    pub(crate) fn to_markdown(&self) -> String {
        let diff = self.to_patch();
        let mut text = String::new();
        for change in &diff.changes {
            let path = match change {
                DiffChange::Add(change) | DiffChange::Delete(change) | DiffChange::Modify(change) => &change.path,
                DiffChange::Move(change) | DiffChange::Copy(change) => &change.path,
                DiffChange::Other(_) => continue,
            };
            text.push_str(&format!("{} `{path}`\n", change.tag()));
        }
        if let Some(patch) = &diff.patch {
            // The fence is longer than any in the patch, so that the patch cannot end it.
            let longest = patch.text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            text.push_str(&format!("\n{fence}diff\n{}\n{fence}\n", patch.text.trim_end_matches('\n')));
        }
        text
    }

    pub(crate) fn encode_fields(&self, writer: &mut Writer<'_>) {
        let old = writer.dialect() != Dialect::V2;
        match self {
            Diff::Text(diff) if old => diff.encode_fields(writer),
            Diff::Patch(diff) if !old => diff.encode_fields(writer),
            Diff::Text(_) => self.to_patch().encode_fields(writer),
            Diff::Patch(diff) => match self.to_text() {
                Some(text) => text.encode_fields(writer),
                None => diff.encode_fields(writer),
            },
        }
    }
}

/// The `_meta` of a patch that holds all of a file. A patch shows as much around a change as its maker likes, so that
/// nobody can see it.
const WHOLE_FILE: &str = r#"{"attache.wholeFile":true}"#;

fn is_marked_whole(patch: &DiffPatch) -> bool {
    let mark = patch.meta.as_ref().and_then(|meta| meta.get("attache.wholeFile"));
    mark.is_some_and(|mark| mark.as_str() == "true")
}

impl From<TextDiff> for Diff {
    fn from(diff: TextDiff) -> Self {
        Diff::Text(diff)
    }
}

impl From<PatchDiff> for Diff {
    fn from(diff: PatchDiff) -> Self {
        Diff::Patch(diff)
    }
}

impl Blank for Diff {
    fn blank() -> Self {
        Diff::Patch(PatchDiff::blank())
    }
}

impl ReadInPlace for Diff {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        read_over(self, reader)
    }
}

impl Decode for Diff {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if reader.has_key("changes")? {
            PatchDiff::decode(reader).map(Diff::Patch)
        } else if reader.has_key("newText")? {
            TextDiff::decode(reader).map(Diff::Text)
        } else {
            let field = if reader.dialect() == Dialect::V2 { "changes" } else { "newText" };
            Err(DecodeError::new(Reason::Missing).in_field(field))
        }
    }
}
