//! A change of one file as a unified diff, or as other agents write patches: hunks of old and new lines.

use super::Replacement;

/// The replacements that a patch stands for. The error is a sentence for the model.
pub(in super::super) fn replacements(patch: &str) -> Result<Vec<Replacement>, String> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut files = 0;
    for line in patch.lines() {
        if line.starts_with("@@") {
            hunks.push(Hunk::default());
        } else if let Some(hunk) = hunks.last_mut().filter(|_| !is_header(line)) {
            hunk.add(line)?;
        } else if line.starts_with("+++ ") || line.starts_with("*** Update File:") {
            files += 1;
        }
    }
    if files > 1 {
        return Err("the patch is for several files: make a call for each of them".into());
    }
    if hunks.is_empty() {
        return Err(
            "the patch has no hunk: each begins with a line `@@`, then lines with ` `, `-` or `+` before them".into()
        );
    }
    hunks.into_iter().map(Hunk::replacement).collect()
}

/// Lines around hunks, not in them.
fn is_header(line: &str) -> bool {
    ["diff --git ", "--- a/", "+++ b/", "*** End Patch", "*** Update File:", "```"]
        .iter()
        .any(|mark| line.starts_with(mark))
}

#[derive(Default)]
struct Hunk {
    old: String,
    new: String,
}

impl Hunk {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (mark, text) = match line.chars().next() {
            // Models and editors drop blanks at the end of lines.
            None => (' ', ""),
            Some(mark) => (mark, &line[mark.len_utf8()..]),
        };
        for (side, is_there) in [(&mut self.old, mark != '+'), (&mut self.new, mark != '-')] {
            if is_there && mark != '\\' {
                side.push_str(text);
                side.push('\n');
            }
        }
        match mark {
            ' ' | '+' | '-' | '\\' => Ok(()),
            _ => Err("a line of the patch begins with none of ` `, `-`, `+` and `@@`".into()),
        }
    }

    fn replacement(self) -> Result<Replacement, String> {
        if self.old.trim().is_empty() {
            return Err("a hunk of the patch has no line of the file in it: give some lines around the new ones".into());
        }
        Ok(Replacement { old: self.old, new: self.new, replace_all: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_old_and_new_lines() {
        let patch =
            "--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@ fn x\n a\n-b\n+c\n\n@@\n-d\n\\ No newline at end of file\n+e\n";
        let hunks =
            replacements(patch).map(|hunks| hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect::<Vec<_>>());
        let expected = [("a\nb\n\n", "a\nc\n\n"), ("d\n", "e\n")].map(|(old, new)| (old.to_owned(), new.to_owned()));
        assert_eq!(hunks, Ok(expected.to_vec()));
    }

    #[test]
    fn what_is_no_patch_of_one_file_is_said() {
        for (patch, why) in [
            ("", "no hunk"),
            ("some words", "no hunk"),
            ("@@\n+new\n", "no line of the file"),
            ("@@\nwords\n", "begins with none of"),
            ("+++ b/x\n--- a/y\n+++ b/y\n@@\n-a\n", "several files"),
        ] {
            assert!(replacements(patch).is_err_and(|error| error.contains(why)), "{patch:?}");
        }
    }
}
