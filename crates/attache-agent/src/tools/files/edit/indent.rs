//! How a model indented its lines, and how the file does.

use std::collections::HashMap;

/// What the indentation of some lines becomes.
pub(super) struct Indent<'a> {
    /// From that of the model to that of the file.
    known: HashMap<&'a str, &'a str>,
}

impl<'a> Indent<'a> {
    /// From lines that are the same but for their indentation. `None` if the same indentation is not the same in the
    /// file: then they are not the same lines.
    pub(super) fn between(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut known = HashMap::new();
        for (old, there) in pairs {
            if old.trim().is_empty() {
                continue;
            }
            let there = indent_of(there);
            if *known.entry(indent_of(old)).or_insert(there) != there {
                return None;
            }
        }
        Some(Indent { known })
    }

    /// Indents a new text like the file.
    pub(super) fn apply(&self, new: &str) -> String {
        let mut result = String::with_capacity(new.len());
        for line in new.split_inclusive('\n') {
            let text = line.trim_start_matches(is_indent);
            if text.trim().is_empty() {
                // Blank lines have no indentation.
                result.push_str(text);
            } else {
                result.push_str(&self.of(indent_of(line)));
                result.push_str(text);
            }
        }
        result
    }

    fn of(&self, indent: &str) -> String {
        if let Some(there) = self.known.get(indent) {
            return (*there).to_owned();
        }
        // Deeper than a line that is known: what is more stays more.
        let shallower = self.known.iter().filter(|(old, _)| indent.starts_with(**old)).max_by_key(|(old, _)| old.len());
        if let Some((old, there)) = shallower {
            return format!("{there}{}", self.converted(&indent[old.len()..]));
        }
        // Less deep than all that are known: what is less is taken away.
        let Some((old, there)) = self.known.iter().min_by_key(|(old, _)| old.len()) else { return indent.to_owned() };
        let less = old.strip_prefix(indent).unwrap_or_default();
        let less = self.converted(less);
        there.strip_suffix(less.as_str()).unwrap_or_default().to_owned()
    }

    /// A step of indentation, from spaces to tabs or back if the file has the other.
    fn converted(&self, step: &str) -> String {
        let file_tabs = self.known.values().any(|there| there.contains('\t'));
        let file_spaces = self.known.values().any(|there| there.contains(' '));
        if file_tabs && !file_spaces && !step.contains('\t') {
            let width = self.width().unwrap_or(4);
            return format!("{}{}", "\t".repeat(step.len() / width), " ".repeat(step.len() % width));
        }
        if file_spaces && !file_tabs && step.contains('\t') {
            return step.replace('\t', &" ".repeat(self.width().unwrap_or(4)));
        }
        step.to_owned()
    }

    /// How many spaces stand for a tab, if some line tells.
    fn width(&self) -> Option<usize> {
        self.known.iter().find_map(|(old, there)| {
            let count = |text: &str, c: char| text.chars().filter(|other| *other == c).count();
            let (tabs, spaces) = match (count(old, '\t'), count(there, '\t')) {
                (0, tabs) => (tabs, old.len()),
                (tabs, 0) => (tabs, there.len()),
                _ => return None,
            };
            (tabs > 0 && spaces > 0 && spaces % tabs == 0).then(|| spaces / tabs)
        })
    }
}

fn is_indent(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches(is_indent).len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn new_lines_are_indented_like_the_old_ones_in_the_file() {
        for (pairs, new, expected) in [
            // Less in the model's text, more in it, another width, tabs for spaces and back.
            (&[("a", "    a")][..], "b\n  c\n", "    b\n      c\n"),
            (&[("    a", "a")], "    b\n      c\n", "b\n  c\n"),
            (&[("  a", "    a"), ("    b", "        b")], "  x\n    y\n", "    x\n        y\n"),
            (&[("    a", "\ta")], "    b\n        c\n", "\tb\n\t\tc\n"),
            (&[("  a", "\ta")], "  b\n      c\n", "\tb\n\t\t\tc\n"),
            (&[("\ta", "  a")], "\tb\n\t\tc\n", "  b\n    c\n"),
            // What was there before, and blank lines.
            (&[("    a", "        a")], "  b\n\n   \n", "      b\n\n\n"),
            (&[("    a", "  a")], "b", "b"),
        ] {
            let indent = Indent::between(pairs.iter().copied()).unwrap();
            assert_eq!(indent.apply(new), expected, "{pairs:?}");
        }
        assert!(Indent::between([("  a", "  a"), ("  b", "b")]).is_none());
    }
}
