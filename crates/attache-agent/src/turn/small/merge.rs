//! Puts what a small model wrote into the file that it was told to write: it writes a part where it was told to write all,
//! and blanks for tabs. What cannot be told is not guessed: nothing of a file is lost because a model left it out.

/// A new text for something, in the form that the old one has. `None` if it is a part and it cannot be told of what, or if it
/// leaves out so much that it is no change of the old text.
pub(super) fn merged(old: &str, new: &str) -> Option<String> {
    let new = completed(old, new)?;
    Some(ended_like(old, &indented_like(old, &new)))
}

/// How a model says that it has left something out.
const LEFT_OUT: [&str; 5] = ["existing code", "rest of the", "remains unchanged", "unchanged code", "same as before"];

/// Files that are shorter can be written anew in any way.
const SHORT: usize = 6;

/// The whole of a text of which a model has written a part: only the function that it changed, say. Each block of the part
/// takes the place of the one that begins with the same line, wherever that is indented, and what is around them is as it was.
fn completed(old: &str, new: &str) -> Option<String> {
    let before: Vec<&str> = old.lines().collect();
    let part: Vec<&str> = new.trim_matches(['\r', '\n']).lines().collect();
    let leaves_out = |line: &&str| {
        let line = line.to_lowercase();
        (line.contains("...") || line.contains('…')) && LEFT_OUT.iter().any(|words| line.contains(words))
    };
    if part.iter().any(leaves_out) && !before.iter().any(leaves_out) {
        return None;
    }
    if before.len() < SHORT || is_whole(&before, &part) {
        return Some(new.to_owned());
    }
    let mut whole: Vec<String> = Vec::new();
    let mut at = 0;
    for block in blocks(&part) {
        let mut places = (at..before.len()).filter(|place| before[*place].trim() == block[0].trim());
        match (places.next(), places.next()) {
            (Some(place), None) => {
                let replaced = &blocks(&before[place..])[0];
                let block = shifted(&block, indent(before[place]), indent(block[0]));
                whole.extend(before[at..place].iter().map(|line| (*line).to_owned()));
                at = place + replaced.len();
                // A part of a block in turn: one function of a class, with the line that the class begins with.
                let lines: Vec<&str> = block.iter().map(String::as_str).collect();
                let is_part = block.len() * 2 < replaced.len() || leaves_definitions_out(replaced, &lines);
                match is_part && replaced.len() >= SHORT {
                    true => {
                        whole.push(block[0].clone());
                        whole.push(completed(&replaced[1..].join("\n"), &block[1..].join("\n"))?);
                    }
                    false => whole.extend(block),
                }
            }
            // One that is new stands behind the one before it.
            (None, _) if at > 0 => {
                whole.push(String::new());
                whole.extend(block.iter().map(|line| (*line).to_owned()));
            }
            _ => return None,
        }
    }
    whole.extend(before[at..].iter().map(|line| (*line).to_owned()));
    Some(whole.join("\n"))
}

/// Whether this is all of a text, and not a part of it: it goes from the first line to the last, or is about as long and has
/// as many definitions.
fn is_whole(before: &[&str], part: &[&str]) -> bool {
    let first = |lines: &[&str]| lines.iter().map(|line| line.trim()).find(|line| !line.is_empty()).map(str::to_owned);
    let last = |lines: &[&str]| lines.iter().map(|line| line.trim()).rfind(|line| !line.is_empty()).map(str::to_owned);
    let is_half = part.len() * 2 >= before.len();
    let begins_alike = first(before) == first(part);
    if is_half && begins_alike && last(before) == last(part) {
        return true;
    }
    let is_long = part.len() * 10 >= before.len() * 8 || (begins_alike && is_half);
    is_long && !leaves_definitions_out(before, part)
}

/// Whether definitions of a text are missing from another one that puts no others in their place.
fn leaves_definitions_out(before: &[&str], part: &[&str]) -> bool {
    let definitions = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line.trim()).filter(|line| is_definition(line)).map(str::to_owned).collect()
    };
    let (before, part) = (definitions(before), definitions(part));
    let missing = before.iter().filter(|line| !part.contains(line)).count();
    let added = part.iter().filter(|line| !before.contains(line)).count();
    missing > added
}

/// Words that begin a block which defines nothing.
const CONTROL: [&str; 17] = [
    "case", "catch", "do", "elif", "else", "except", "finally", "for", "if", "loop", "match", "return", "switch",
    "try", "unless", "while", "with",
];

/// Words that say that something is defined.
const DEFINES: [&str; 11] =
    ["class", "def", "enum", "fn", "func", "function", "impl", "interface", "module", "struct", "trait"];

/// Whether a line begins a function, a class or the like: by its words, or because it has brackets and a block begins with it.
fn is_definition(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let first = words.clone().find(|word| *word != "async" && *word != "await").unwrap_or_default();
    let begins_block = line.ends_with(['{', ':']);
    !CONTROL.contains(&first) && begins_block && (line.contains('(') || words.any(|word| DEFINES.contains(&word)))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Lines with another indentation at their beginning.
fn shifted(lines: &[&str], to: &str, from: &str) -> Vec<String> {
    let shift = |line: &&str| match line.strip_prefix(from) {
        Some(rest) if !line.trim().is_empty() => format!("{to}{rest}"),
        _ => (*line).to_owned(),
    };
    lines.iter().map(shift).collect()
}

/// The blocks of some lines: each begins with a line that is indented no more than the first one and closes nothing, and ends
/// with its last line that is not blank. Blank lines between them are left out, but for the last one's.
fn blocks<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let base = lines.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indent(line).len());
    let begins = |line: &str| {
        let text = line.trim_start();
        !text.is_empty() && indent(line).len() <= base && !text.starts_with(['}', ')', ']'])
    };
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some(block) if !begins(line) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    for block in &mut blocks {
        let end = block.iter().rposition(|line| !line.trim().is_empty()).map_or(1, |last| last + 1);
        block.truncate(end);
    }
    blocks
}

/// A text that ends with a line end if another one does.
fn ended_like(old: &str, new: &str) -> String {
    let new = new.trim_end_matches(['\r', '\n']);
    if new.is_empty() || !old.ends_with('\n') { new.to_owned() } else { format!("{new}\n") }
}

/// A text that is indented by tabs if another one is: models write blanks for them.
fn indented_like(old: &str, new: &str) -> String {
    let blanks = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let has_tabs = old.lines().any(|line| line.starts_with('\t')) && !old.lines().any(|line| blanks(line) > 1);
    let width = new.lines().map(blanks).filter(|blanks| *blanks > 1).min();
    let (true, Some(width)) = (has_tabs && !new.contains('\t'), width) else { return new.to_owned() };
    let line = |line: &str| {
        let count = blanks(line);
        format!("{}{}{}", "\t".repeat(count / width), " ".repeat(count % width), &line[count..])
    };
    new.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_file_is_put_in_its_place() {
        let old = "import re\n\n\ndef one():\n    return 1\n\n\ndef two() {\n    return 2\n}\n\n\nEND = 1\n";
        for (new, expected) in [
            ("def one():\n    x = 1\n    return 3", old.replace("    return 1", "    x = 1\n    return 3")),
            ("def two() {\n    return 4\n}", old.replace("return 2", "return 4")),
            (
                "def one():\n    return 1\n\n\ndef new():\n    return 0",
                old.replace("return 1", "return 1\n\ndef new():\n    return 0"),
            ),
        ] {
            assert_eq!(merged(old, new), Some(expected), "{new:?}");
        }
        // Of about its length: what was written is meant.
        let whole = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\n\n\nEND = 1\n";
        assert_eq!(merged(old, whole).as_deref(), Some(whole));
    }

    #[test]
    fn nothing_is_lost_because_a_model_left_it_out() {
        let method = |name: &str, value: u32| format!("    def {name}(self):\n        return {value}\n");
        let class = |one: u32| {
            let methods = [method("one", one), method("two", 2), method("three", 3), method("four", 4)];
            format!("class Many:\n{}", methods.join("\n"))
        };
        let old = class(1);
        // A method of a class, indented as it is there and not.
        assert_eq!(merged(&old, &method("one", 9)), Some(class(9)));
        assert_eq!(merged(&old, "def one(self):\n    return 9\n"), Some(class(9)));
        assert_eq!(merged(&old, "class Many:\n    def one(self):\n        return 9\n"), Some(class(9)));
        for new in [
            "def other(self):\n    return 9\n",
            "class Many:\n    def other(self):\n        return 9\n",
            "class Many:\n    # ... existing code ...\n    def four(self):\n        return 9\n\n\n\n\n\n\n\n",
            "",
        ] {
            let merged = merged(&old, new);
            assert!(merged.is_none() || merged.as_deref() == Some(&old), "{new:?}: {merged:?}");
        }
        // Some methods of a class, and the beginning of a file.
        let two = format!("class Many:\n{}\n{}", method("one", 9), method("two", 2));
        assert_eq!(merged(&old, &two), Some(class(9)));
        let three = format!("{two}\n{}", method("three", 3));
        assert_eq!(merged(&old, &three), Some(class(9)));
        let two_classes = format!("{old}\n\n{}", old.replace("Many", "More"));
        assert_eq!(merged(&two_classes, &class(9)), Some(two_classes.replacen("return 1", "return 9", 1)));
        // From the first line to the last, what is missing between is meant to go.
        let without = old.replace(&format!("{}\n", method("two", 2)), "");
        assert_eq!(merged(&old, &without), Some(without));
        // A function under another name, or with other words, is no loss.
        let renamed = old.replace("def four(self)", "def last(self, more)").replace("return 4", "return more");
        assert_eq!(merged(&old, &renamed), Some(renamed));
        let settings: String = (0..30).map(|number| format!("SETTING_{number} = 'on'\n")).collect();
        assert_eq!(merged(&settings, "SETTING_15 = 'frozen'\n"), None);
        // What is short can be anything.
        assert_eq!(merged("one\ntwo\n", "three").as_deref(), Some("three\n"));
    }

    #[test]
    fn a_file_with_tabs_keeps_them() {
        let old = "all:\n\tls\n";
        assert_eq!(indented_like(old, "all:\n    ls\n        pwd\n\n"), "all:\n\tls\n\t\tpwd\n\n");
        for (old, new) in [(old, "all:\n\tls\n"), ("a:\n  b\n\tc\n", "a:\n  b\n"), ("a\n", "a:\n  b\n"), (old, " x\n")]
        {
            assert_eq!(indented_like(old, new), new);
        }
    }
}
