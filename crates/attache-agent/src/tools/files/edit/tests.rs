//! Which texts are replaced by which, and what the model is told when none is.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_testkit::Dice;

use super::*;

fn check(content: &str, old: &str, new: &str, expected: &str, note: &str) {
    let edited = edit(content, old, new, false).unwrap_or_else(|error| panic!("{content:?} {old:?}: {error}"));
    assert_eq!(edited.content, expected, "{old:?} to {new:?}");
    assert_eq!(
        edited.note.split(". The old text is not there exactly: ").collect::<Vec<_>>(),
        note.split(" | ").collect::<Vec<_>>()
    );
}

const ENDS: &str = "lines end with CRLF here, or do not, and the new text was given the same";
const TAILS: &str = "the white space at the ends of lines differs";
const INDENT: &str = "the indentation differs, and the new text was indented to fit";
const SPACE: &str = "white space differs, and the new text was indented like the first line";

#[test]
fn what_is_there_exactly_is_replaced_exactly() {
    for (content, old, new, expected, note) in [
        ("one two three", "two", "2", "one 2 three", "replaced line 1"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n", "replaced line 2"),
        ("a\nb\nc\n", "a\nb", "x", "x\nc\n", "replaced lines 1-2"),
        ("\ta = 1;\n", "a = 1;", "a = 2;\nb = 3;", "\ta = 2;\nb = 3;\n", "replaced line 1"),
        ("größe 😀\n", "😀", "🙃", "größe 🙃\n", "replaced line 1"),
        ("a", "a", "", "", "replaced line 1"),
        // A file with CRLF keeps it, also in lines that are new.
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n", "replaced line 2"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", "replaced lines 1-2"),
        // The exact text wins over others that are like it.
        ("  a\na\n", "  a\n", "b\n", "b\na\n", "replaced line 1"),
    ] {
        check(content, old, new, expected, note);
    }
}

#[test]
fn what_differs_in_white_space_is_found_and_told() {
    let told = |lines: &str, difference: &str| format!("replaced {lines} | {difference}");
    for (content, old, new, expected, note) in [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n", told("lines 1-2", ENDS)),
        ("fn a(\r\n  b)\r\n", "a(\n  b", "a(c", "fn a(c)\r\n", told("lines 1-2", ENDS)),
        ("é\r\nb\r\nc\r\nd\r\n", "b\nc", "x", "é\r\nx\r\nd\r\n", told("lines 2-3", ENDS)),
        ("a\nb\n", "a\r\nb", "x", "x\n", told("lines 1-2", ENDS)),
        ("a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n", told("lines 1-2", TAILS)),
        ("a\nb", "a\nb\n", "x\ny\n", "x\ny", told("lines 1-2", TAILS)),
        ("a\nb", "b  ", "c", "a\nc", told("line 2", TAILS)),
        ("a \nb\n", "a\nb\n", "", "", told("lines 1-2", TAILS)),
        ("a \nb\nc\n", "a\nb\n", "x", "x\nc\n", told("lines 1-2", TAILS)),
        (
            "{\n    if a {\n        b\n    }\n}\n",
            "if a {\n    b\n}",
            "if a {\n    c\n    d\n}",
            "{\n    if a {\n        c\n        d\n    }\n}\n",
            told("lines 2-4", INDENT),
        ),
        (
            "{\n\tif a {\n\t\tb\n\t}\n}\n",
            "    if a {\n        b\n    }\n",
            "    if a {\n        if c {\n            d\n        }\n    }\n",
            "{\n\tif a {\n\t\tif c {\n\t\t\td\n\t\t}\n\t}\n}\n",
            told("lines 2-4", INDENT),
        ),
        (
            "def f():\r\n\treturn 1\r\n",
            "def f():\n    return 1\n",
            "def f():\n    x = 2\n    return x\n",
            "def f():\r\n\tx = 2\r\n\treturn x\r\n",
            told("lines 1-2", INDENT),
        ),
        ("  a\n\n  b\n", "a\n\nb", "c\n\nd", "  c\n\n  d\n", told("lines 1-3", INDENT)),
        ("  let  a =\n    1;\nend\n", "let a = 1;\n", "let a = 2;\n", "  let a = 2;\nend\n", told("lines 1-2", SPACE)),
        ("f(a, b)\n", "f(a,\n  b)", "f(b)", "f(b)\n", told("line 1", SPACE)),
        ("x\n\tf( a )", "f(\n a\n)\n", "g()\n", "x\n\tg()", told("line 2", SPACE)),
    ] {
        check(content, old, new, expected, &note);
    }
}

#[test]
fn what_is_not_clear_is_refused_with_the_lines() {
    for (content, old, expected) in [
        ("a\nb\na\n", "a", "the old text is there more than once, at lines 1, 3\nhint: give more"),
        ("aaa", "aa", "the old text is there more than once, at lines 1, 1\nhint"),
        ("é é", "é", "the old text is there more than once, at lines 1, 1\n"),
        (
            "a \nb\na\t\nb\n",
            "a\nb\n",
            "the old text is not there exactly (the white space at the ends of lines differs), but in more than one place, at lines 1, 3\n",
        ),
        (
            "  a\n b\n   a\n  b\n",
            "a\nb",
            "the old text is not there exactly (white space differs, and the new text was indented like the first line), but in more than one place, at lines 1, 3\n",
        ),
        ("a\n", "", "`old_text` is empty\nhint: use write_file"),
        ("a\n", "NEW", "`old_text` and `new_text` are the same"),
        ("a\nb\n", "  \n \n", "the old text is not there. This is the file:\na\nb\n\nhint: copy"),
        (
            &format!("fn main() {{\n    println!(\"hello\");\n}}\n{}", "\n".repeat(2_000)),
            "fn main() {\n    println!(\"hallo\");\n}",
            "the old text is not there. These lines are the most like it:\n1: fn main() {\n2:     println!(\"hello\");\n3: }\nhint: copy",
        ),
        ("alpha\nbeta\n", "zzz", "the old text is not there. This is the file:\nalpha\n"),
        ("", "zzz", "the old text is not there\nhint"),
        // A word is not found within others, nor some words in the middle of a line.
        ("x  =  a b c\n", "=\na", "the old text is not there"),
    ] {
        let error = edit(content, old, "NEW", false).unwrap_err();
        assert!(error.starts_with(expected), "{content:?} {old:?}\n{error}");
    }
    assert!(edit("a\n", "a\r\n", "a\n", false).unwrap_err().starts_with("the file has the new text already"));
}

#[test]
fn numbers_that_lines_were_shown_with_are_no_part_of_them() {
    for (old, new) in [("1\ta\n2\tb", "1\tc\n2\td"), ("1: a\n2: b", "c\nd"), ("  1\ta\n  2\tb", "  1\tc\n  2\td")] {
        assert_eq!(edit("a\nb\n", old, new, false).unwrap().content, "c\nd\n", "{old:?}");
    }
    // A file may begin its lines with numbers itself.
    assert_eq!(edit("1\ta\n", "1\ta", "1\tb", false).unwrap().content, "1\tb\n");
    assert!(edit("b\n", "1\ta", "c", false).is_err());
}

#[test]
fn several_edits_are_all_made_or_none() {
    let replacement = |old: &str, new: &str| Replacement { old: old.into(), new: new.into(), replace_all: false };
    let edited = edit_all("a\nb\n", &[replacement("a", "c"), replacement("c\nb", "d")]).unwrap();
    assert_eq!((edited.content.as_str(), edited.note.as_str()), ("d\n", "replaced line 1; replaced lines 1-2"));
    let error = edit_all("a\nb\n", &[replacement("a", "c"), replacement("x", "y")]).unwrap_err();
    assert!(error.starts_with("edit 2 of 2 cannot be made, so none was: the old text is not there"), "{error}");
}

#[test]
fn all_places_are_replaced_only_where_they_are_exact() {
    for (content, old, new, expected) in [
        ("a b a", "a", "x", Ok(("x b x", "replaced 2 places, at lines 1, 1"))),
        ("aaa", "aa", "b", Ok(("ba", "replaced 1 place, at lines 1"))),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb\n", "c\n", Ok(("c\r\nc\r\n", "replaced 2 places, at lines 1, 3"))),
        ("a \na \n", "a\n", "b\n", Err("the old text is not there exactly, as `replace_all` needs it")),
    ] {
        match (edit(content, old, new, true), expected) {
            (Ok(edited), Ok((content, note))) => {
                assert_eq!(edited.content, content);
                assert!(edited.note.starts_with(note), "{}", edited.note);
            }
            (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
            (result, _) => panic!("{content:?}: {result:?}"),
        }
    }
    // A model cannot make the file as large as it likes.
    let content = "a".repeat(1 << 20);
    assert_eq!(edit(&content, "a", &"b".repeat(1 << 10), true).unwrap_err(), "the file would become too large");
}

#[test]
fn an_exact_edit_is_what_the_standard_library_makes_of_it() {
    let mut exact = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let mut text = |most: usize| -> String {
            (0..dice.below(most)).map(|_| dice.pick(&["a", "b", " ", "\t", "\n", "é", "😀", "\u{feff}"])).collect()
        };
        let (content, old, new) = (text(30), text(4), text(6));
        if old.is_empty() || old == new {
            continue;
        }
        let places = content.char_indices().filter(|(at, _)| content[*at..].starts_with(&old)).count();
        let result = edit(&content, &old, &new, false);
        match places {
            // Whatever else is found has no exact place; that nothing panics is all that is said of it here.
            0 => {}
            1 => {
                exact += 1;
                let expected = content.replacen(&old, &new, 1);
                assert_eq!(result.map(|edited| edited.content), Ok(expected), "seed {seed}");
            }
            _ => assert!(result.unwrap_err().contains("more than once"), "seed {seed}"),
        }
        if places > 0 {
            let expected = content.replace(&old, &new);
            assert_eq!(edit(&content, &old, &new, true).map(|edited| edited.content), Ok(expected), "seed {seed}");
        }
    }
    assert!(exact > 1_000, "{exact}");
}

#[test]
fn texts_made_to_be_slow_are_not() {
    let started = std::time::Instant::now();
    let content = "\n".repeat(1 << 20);
    let old = format!("{}x", "\n".repeat(1 << 19));
    assert!(edit(&content, &old, "y", false).is_err());
    let content = " a\n".repeat(1 << 18);
    let old = format!("{}b\n", "a\n".repeat(1 << 17));
    assert!(edit(&content, &old, "y", false).is_err());
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}
