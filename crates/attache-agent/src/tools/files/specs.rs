//! What the model is told of these tools.

use serde_json::{Value, json};

use crate::model::ToolSpec;

/// The tools of this module, as the model is told of them.
pub fn specs() -> Vec<ToolSpec> {
    let path = |what: &str| text(&format!("{what}, absolute or relative to the session's directory"));
    vec![
        spec(
            "read_file",
            "Reads a text file, or shows an image (PNG, JPEG, GIF, WebP). The answer begins with a line that names the \
             range of lines; the text follows as it is in the file, without line numbers. Shows 2,000 lines unless told \
             otherwise. A file has to be read before it can be changed.",
            json!({
                "path": path("The file"),
                "line": number("The first line to show, counted from 1"),
                "limit": number("How many lines to show"),
            }),
            &["path"],
        ),
        spec(
            "write_file",
            "Writes a whole file, and creates it and its directories where they are missing. To change some lines of a \
             file use edit_file. An existing file has to have been read before.",
            json!({ "path": path("The file"), "content": text("The whole new text of the file") }),
            &["path", "content"],
        ),
        spec(
            "edit_file",
            "Replaces text in a file. `old_text` has to be in the file exactly once, so give enough lines around it; \
             copy it from the file with its indentation. Where only white space differs, it is found all the same, and \
             you are told. The file has to have been read before.",
            json!({
                "path": path("The file"),
                "old_text": text("The text to replace"),
                "new_text": text("The text to put there; empty to delete the old one"),
                "replace_all": flag("Replace every place where the old text is, exactly as given"),
            }),
            &["path", "old_text", "new_text"],
        ),
        spec(
            "delete_file",
            "Deletes a file, a symbolic link or an empty directory.",
            json!({ "path": path("What to delete") }),
            &["path"],
        ),
        spec(
            "move_file",
            "Moves or renames a file or a directory, and creates the directories that needs. Nothing is overwritten.",
            json!({ "from": path("What to move"), "to": path("Its new path, not the directory to move it into") }),
            &["from", "to"],
        ),
        spec(
            "list_directory",
            "Lists one directory: directories end with `/`, files have their size.",
            json!({ "path": path("The directory; the session's own if left out") }),
            &[],
        ),
        spec(
            "find_files",
            "Finds files by name. What git ignores is left out. Paths are sorted.",
            json!({
                "pattern": text(
                    "A glob such as `*.rs` (in any directory), `src/**/*.test.ts` or `**/{README,LICENSE}*`"
                ),
                "path": path("The directory to look in; the session's own if left out"),
            }),
            &["pattern"],
        ),
        spec(
            "search_files",
            "Searches the content of files, line by line, with a regular expression (Rust syntax: no look-around, no \
             back-references). What git ignores, binary files and files that may hold secrets are left out. Answers \
             with `path:line: text`.",
            json!({
                "pattern": text("The regular expression; escape what is meant literally, such as `\\(`"),
                "path": path("The file or directory to search; the session's own directory if left out"),
                "glob": text("Only files that fit this glob, such as `*.rs`"),
                "ignore_case": flag("Do not tell capitals from small letters"),
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
