#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use attache_testkit::Dice;

use super::*;

fn limits(head: usize, tail: usize) -> Limits {
    Limits { head, tail }
}

/// The head, the line between, the whole as it was kept, and the tail.
fn parts(cut: &str) -> (String, String, String, String) {
    let start = cut.find("[… ").unwrap();
    let end = start + cut[start..].find('\n').unwrap();
    let line = &cut[start..end];
    let path = line.split('`').nth(1).unwrap();
    (cut[..start].into(), line.into(), std::fs::read_to_string(path).unwrap(), cut[end + 1..].into())
}

#[test]
fn terminal_sequences_and_control_characters_are_taken_out() {
    let rows = [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[m", "red"),
        ("\x1b[?25l\x1b[2Kdone", "done"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b(Btext\x1b=\x1b7", "text"),
        ("\u{9b}31mred\u{9d}title\u{9c}x", "redx"),
        ("a\r\nb\rc\r", "a\nb\nc\n"),
        ("a\x00b\x08c\x7fd\u{85}e", "abcde"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("\x1b[31\nnext", "\nnext"),
        ("\x1b", ""),
        ("é\x1b[31m€😀", "é€😀"),
    ];
    for (text, expected) in rows {
        assert_eq!(clean(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_short_enough_stays_whole_and_makes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let spill = Spill::new(directory.path().join("spill"));
    assert_eq!(cut("12345\n7890", limits(5, 5), &spill), "12345\n7890");
    assert!(!spill.directory().exists());
}

#[test]
fn what_is_long_is_cut_between_lines_and_kept_whole() {
    let directory = tempfile::tempdir().unwrap();
    let spill = Spill::new(directory.path().join("spill"));
    let text: String = (1..=1000).map(|number| format!("line {number}\n")).collect();
    let cut = cut(&format!("\x1b[1m{text}"), limits(20, 22), &spill);
    let (head, line, whole, tail) = parts(&cut);
    assert_eq!((head.as_str(), tail.as_str()), ("line 1\nline 2\n", "line 999\nline 1000\n"));
    assert!(line.starts_with("[… 996 lines, 8860 bytes are left out here; the whole text is in `"), "{line}");
    assert_eq!(whole, text);
}

#[test]
fn one_long_line_is_cut_between_characters() {
    let directory = tempfile::tempdir().unwrap();
    let spill = Spill::new(directory.path());
    let text = "€".repeat(100);
    let cut = cut(&text, limits(10, 10), &spill);
    let (head, line, whole, tail) = parts(&cut);
    assert_eq!((head.as_str(), tail.as_str(), whole.as_str()), ("€€€\n", "€€€", text.as_str()));
    assert!(line.starts_with("[… 282 bytes"), "{line}");
}

#[test]
fn the_files_are_for_the_user_alone() {
    use attache::private::is_private;
    let directory = tempfile::tempdir().unwrap();
    let spill = Spill::new(directory.path().join("a/b"));
    let path = spill.keep("text").unwrap();
    assert!(is_private(&path).unwrap() && is_private(spill.directory()).unwrap());
}

#[test]
fn the_oldest_files_go_when_there_is_too_much_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("other.txt"), "x".repeat(100)).unwrap();
    let spill = Spill::new(directory.path()).bounded(10);
    let paths: Vec<_> = (0..5).map(|_| spill.keep("1234").unwrap()).collect();
    let there: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
    assert_eq!(there, [false, false, false, true, true]);
    assert!(directory.path().join("other.txt").exists());
    assert!(spill.keep("12345678901").is_err());

    // A session that is opened again goes on where it was.
    let again = Spill::new(directory.path()).bounded(10);
    assert_eq!(again.keep("1").unwrap(), directory.path().join("output-6.txt"));
}

#[test]
fn where_nothing_can_be_kept_the_model_is_told() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let spill = Spill::new(directory.path().join("file/spill"));
    let cut = cut("1234567890", limits(2, 2), &spill);
    assert!(cut.starts_with("12\n[… 6 bytes are left out here; the whole text could not be kept: "), "{cut}");
    assert!(cut.ends_with("…]\n90"), "{cut}");
}

#[test]
fn any_text_with_any_limits_keeps_its_ends() {
    let directory = tempfile::tempdir().unwrap();
    let pieces = ["a", "\n", "é", "€", "😀", "word ", "\x1b[1m", "\r"];
    for seed in 0..500 {
        let mut dice = Dice::new(seed);
        let text: String = (0..dice.below(60)).map(|_| (*dice.pick(&pieces)).to_owned()).collect();
        let limits = limits(dice.below(40), dice.below(40));
        let spill = Spill::new(directory.path()).bounded(1 << 10);
        let clean = clean(&text);
        let cut = cut(&text, limits, &spill);
        if clean.len() <= limits.head + limits.tail {
            assert_eq!(cut, clean, "seed {seed}");
            continue;
        }
        let (head, _, whole, tail) = parts(&cut);
        assert_eq!(whole, clean, "seed {seed}");
        assert!(clean.starts_with(head.trim_end_matches('\n')) && head.len() <= limits.head + 1, "seed {seed}");
        assert!(clean.ends_with(&tail) && tail.len() <= limits.tail, "seed {seed}");
    }
}
