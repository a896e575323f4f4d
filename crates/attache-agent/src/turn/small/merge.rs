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
    let is_long_enough = part.len() * 10 >= before.len() * 8;
    let begins_alike = part.first() == before.first() && part.len() * 2 >= before.len();
    if before.len() < SHORT || is_long_enough || begins_alike {
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
                match block.len() * 2 < replaced.len() && replaced.len() >= SHORT {
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
