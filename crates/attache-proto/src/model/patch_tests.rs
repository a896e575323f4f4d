use super::{read, write};

#[track_caller]
fn check(old: Option<&str>, new: &str, expected: &str) {
    let patch = write("/a", old, new);
    let hunks = patch.find("@@").map_or("", |at| &patch[at..]);
    assert_eq!(hunks, expected);
}

#[test]
fn hunks_are_those_of_git() {
    check(Some("a\nb\nc\n"), "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
    check(Some("1\n2\n3\n4\n5\n6\n"), "1\n2\n3\n4\n5\n6\n7\n", "@@ -4,3 +4,4 @@\n 4\n 5\n 6\n+7\n");
    check(None, "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
    check(Some("a\n"), "", "@@ -1 +0,0 @@\n-a\n");
    check(Some("a\n"), "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
    check(Some("same\n"), "same\n", "");
    let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let new = old.replace("\n2\n", "\nx\n").replace("\n19\n", "\ny\n");
    check(
        Some(&old),
        &new,
        "@@ -1,5 +1,5 @@\n 1\n-2\n+x\n 3\n 4\n 5\n@@ -16,5 +16,5 @@\n 16\n 17\n 18\n-19\n+y\n 20\n",
    );
}

#[test]
fn names_are_those_of_git() {
    let patch = write("/a b/ü\"\n", None, "x\n");
    let name = "\"/a b/\\303\\274\\\"\\n\"";
    assert_eq!(
        patch,
        format!("diff --git {name} {name}\nnew file mode 100644\n--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n")
    );
}

#[test]
fn whole_texts_come_back() {
    let texts = ["", "a", "a\n", "a\nb\n", "a\nb", "\n\n", "b\nc\nd\n", "x\ny\nz\nb\n", "-a\n+b\n\\c\n"];
    for new in texts {
        assert_eq!(read(&write("/a", None, new), true), Some((String::new(), new.to_owned())));
        for old in texts.into_iter().filter(|old| *old != new) {
            let back = read(&write("/a", Some(old), new), false);
            assert!(back.is_none() || back == Some((old.to_owned(), new.to_owned())), "{old:?} {new:?} {back:?}");
        }
    }
    assert_eq!(read(&write("/a", Some("a\n"), "b\n"), false), Some(("a\n".into(), "b\n".into())));
}

#[test]
fn part_of_a_text_is_not_taken_for_the_whole() {
    let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&write("/a", Some(&old), &old.replace("\n10\n", "\nx\n")), false), None);
    assert_eq!(read(&write("/a", Some(&old), &old.replace("1\n2\n", "x\n")), false), None);
    let two = write("/a", None, "x\n") + &write("/b", None, "y\n");
    assert_eq!(read(&two, true), None);
}

#[test]
fn large_changes_stay_cheap() {
    let text = |word: &str| (0..3000).map(|line| format!("{word} {line}\n")).collect::<String>();
    let (old, new) = (text("old"), text("new"));
    let patch = write("/a", Some(&old), &new);
    assert_eq!(read(&patch, false), Some((old, new)));
}
