//! What the model is told of these tools.

use serde_json::{Value, json};

use crate::model::ToolSpec;

/// The tools of this module, as the model is told of them.
pub fn specs() -> Vec<ToolSpec> {
    vec![
        spec(
            "read_file",
            "Reads a text file, or shows an image (PNG, JPEG, GIF, WebP). Each line has its number and a tab before it. \
             Shows 2,000 lines unless told otherwise. A file has to be read before it can be changed.",
            json!({
                "path": text("The file"),
                "line": number("The first line to show, counted from 1"),
                "limit": number("How many lines to show"),
            }),
            &["path"],
        ),
        spec(
            "write_file",
            "Writes a whole file, and creates it and its directories where they are missing. An existing file has to have \
             been read as a whole before.",
            json!({ "path": text("The file"), "content": text("The whole new text of the file") }),
            &["path", "content"],
        ),
        spec(
            "edit_file",
            "Changes a file that was read before: by `old_text` and `new_text`, by `edits` (all or none), or by `patch`. \
             `old_text` has to be in the file exactly once: give enough lines, with indentation, without numbers.",
            json!({
                "path": text("The file"),
                "old_text": text("The text to replace"),
                "new_text": text("The text to put there; empty to delete the old one"),
                "replace_all": flag("Replace every place where the old text is"),
                "edits": {
                    "type": "array",
                    "description": "Several changes, made in this order",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_text": { "type": "string" },
                            "new_text": { "type": "string" },
                            "replace_all": { "type": "boolean" },
                        },
                        "required": ["old_text", "new_text"],
                        "additionalProperties": false,
                    },
                },
                "patch": text("Hunks of a unified diff of this file; line numbers are not needed"),
            }),
            &["path"],
        ),
        spec(
            "delete_file",
            "Deletes a file, a symbolic link or an empty directory.",
            json!({ "path": text("What to delete") }),
            &["path"],
        ),
        spec(
            "move_file",
            "Moves or renames a file or a directory, and creates the directories that needs. Nothing is overwritten.",
            json!({ "from": text("What to move"), "to": text("Its new path, not the directory to move it into") }),
            &["from", "to"],
        ),
        spec(
            "list_directory",
            "Lists one directory: directories end with `/`, files have their size.",
            json!({ "path": text("The directory; the working directory if left out") }),
            &[],
        ),
        spec(
            "find_files",
            "Finds files by name. What git ignores is left out. Paths are sorted.",
            json!({
                "pattern": text(
                    "A glob such as `*.rs` (in any directory), `src/**/*.test.ts` or `**/{README,LICENSE}*`"
                ),
                "path": text("The directory to look in; the working directory if left out"),
            }),
            &["pattern"],
        ),
        spec(
            "search_files",
            "Searches the lines of files with a regular expression (Rust syntax). What git ignores, binary files and \
             secrets are left out.",
            json!({
                "pattern": text("The regular expression; escape what is meant literally, such as `\\(`"),
                "path": text("The file or directory to search; the working directory if left out"),
                "glob": text("Only files that fit this glob, such as `*.rs`"),
                "ignore_case": flag("Ignore case"),
                "context": number("How many lines to show before and after each that fits; none if left out"),
            }),
            &["pattern"],
        ),
    ]
}

fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: description.into(),
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "description": description })
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}
