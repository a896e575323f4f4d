use super::Change::{Added, Deleted, Modified};
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
        assert_eq!(read(&write("/a", None, new), Added), Some((String::new(), new.to_owned())));
        let gone = write("/a", Some(new), "");
        assert_eq!(read(&gone, Deleted), Some((new.to_owned(), String::new())));
        for old in texts.into_iter().filter(|old| *old != new) {
            let back = read(&write("/a", Some(old), new), Modified);
            let ends = [old, new].iter().any(|text| !text.is_empty() && !text.ends_with('\n'));
            assert_eq!(back, ends.then(|| (old.to_owned(), new.to_owned())), "{old:?} {new:?}");
        }
    }
}

#[test]
fn part_of_a_text_is_not_taken_for_the_whole() {
    let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&write("/a", Some(&old), &old.replace("\n10\n", "\nx\n")), Modified), None);
    assert_eq!(read(&write("/a", Some(&old), &old.replace("1\n2\n", "x\n")), Modified), None);
    let two = write("/a", None, "x\n") + &write("/b", None, "y\n");
    assert_eq!(read(&two, Added), None);
    // As `git diff -U1` writes it: the file may go on after the context.
    for hunk in [
        "@@ -1 +1 @@\n-fn a() {}\n+fn b() {}\n",
        "@@ -1,2 +1,2 @@\n-fn a() {}\n+fn b() {}\n \n",
        "@@ -1,2 +1,3 @@\n use a;\n+use b;\n use c;\n",
        "@@ -0,0 +1 @@\n+// Added at the top.\n",
        "@@ -1,2 +0,0 @@\n-// Removed\n-// from the top.\n",
    ] {
        let patch = format!("diff --git /a /a\n--- /a\n+++ /a\n{hunk}");
        assert_eq!(read(&patch, Modified), None, "{hunk}");
    }
}

#[test]
fn what_a_patch_does_not_hold_is_not_made_up() {
    let header = "diff --git /a /a\nnew file mode 100644\nindex 0000000..e69de29\n";
    assert_eq!(read(header, Added), Some((String::new(), String::new())));
    for (rest, change) in [
        ("Binary files /dev/null and /a differ\n", Added),
        ("GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n", Added),
        ("--- /dev/null\n+++ /a\n@@ -1 +1,2 @@\n a\n+b\n", Added),
        ("--- /a\n+++ /dev/null\n@@ -1,2 +1 @@\n-a\n b\n", Deleted),
        ("--- /dev/null\n+++ /a\n@@ -0,0 +5 @@\n+b\n", Added),
        ("--- /dev/null\n+++ /a\n@@ -0,0 +1,2 @@\n+b\n", Added),
        ("--- /dev/null\n+++ /a\n@@ -0,0 +1,2 @@\n+b\n\\ No newline at end of file\n+c\n", Added),
        ("--- /dev/null\n+++ /a\n@@ -0,0 +1 @@\n+b\nand so on\n", Added),
        ("--- /a\n+++ /a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n+c\n", Modified),
        ("", Modified),
    ] {
        assert_eq!(read(&format!("{header}{rest}"), change), None, "{rest}");
    }
}

#[test]
fn large_changes_stay_cheap() {
    let text = |word: &str| (0..3000).map(|line| format!("{word} {line}\n")).collect::<String>();
    let (old, new) = (text("old"), text("new"));
    let patch = write("/a", Some(&old), &new);
    assert_eq!(patch.lines().filter(|line| line.starts_with("-old") || line.starts_with("+new")).count(), 6000);
    let patch = write("/a", Some(old.trim_end()), &new);
    assert_eq!(read(&patch, Modified), Some((old.trim_end().to_owned(), new)));
}
