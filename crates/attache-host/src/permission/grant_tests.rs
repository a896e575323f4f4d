//! The grant matrix: whatever differs between what was shown and what is to be done refuses.

use super::*;
use crate::permission::Session;

fn session() -> Session {
    Session::new("agent", "s1", "/w/x")
}

fn command(command: Command, cwd: Option<&str>, env: &[(&str, &str)]) -> Action {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    Action::Execute { command, cwd: cwd.map(str::to_owned), env, paths: Vec::new() }
}

fn line(text: &str) -> Command {
    Command::Line(text.into())
}

fn words(words: &[&str]) -> Command {
    Command::from_words(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Whether something that is wanted is covered by a yes to something else.
fn is_covered(granted: &Action, wanted: &Action) -> bool {
    let mut grants = Grants::default();
    let now = Instant::now();
    grants.add(&Subject::new(session(), vec![granted.clone()]), now);
    grants.take(&session(), wanted, now)
}

#[test]
fn only_the_same_command_is_covered() {
    let make = || command(line("make"), None, &[]);
    type Row<'a> = (Command, Option<&'a str>, &'a [(&'a str, &'a str)], bool);
    let rows: &[Row<'_>] = &[
        // What does not differ, or not in what it does.
        (line("make"), None, &[], true),
        (line("make"), Some("/w/x"), &[], true),
        (line("cd /w/x && make"), None, &[], true),
        (line("cd '/w/x' && make"), None, &[], true),
        (line("cd \"/w/x\" && make"), None, &[], true),
        (words(&["bash", "-lc", "make"]), None, &[], true),
        (words(&["/bin/bash", "-c", "cd /w/x && make"]), None, &[], true),
        (line("make"), None, &[("TERM", "dumb"), ("SHELL", "/bin/bash")], true),
        // The command.
        (line("make x"), None, &[], false),
        (line("make "), None, &[], false),
        (line("cd / && make"), None, &[], false),
        (line("cd /w/x; make"), None, &[], false),
        (line("cd /w/x && rm -rf . && make"), None, &[], false),
        (line("cd /w/x && make && rm -rf ."), None, &[], false),
        (words(&["make", "make"]), None, &[], false),
        (words(&["./make"]), None, &[], false),
        (words(&["./bash", "-c", "make"]), None, &[], false),
        (words(&["bash", "-ic", "make"]), None, &[], false),
        // The directory.
        (line("make"), Some("/etc"), &[], false),
        (line("make"), Some("/w/x/"), &[], true),
        (line("make"), Some("/w/x/.."), &[], false),
        (line("make"), Some("x"), &[], false),
        // The variables.
        (line("make"), None, &[("SHELL", "/tmp/evil")], false),
        (line("make"), None, &[("LD_PRELOAD", "x")], false),
        (line("make"), None, &[("PATH", "/tmp")], false),
    ];
    for (wanted, cwd, env, expected) in rows {
        assert_eq!(is_covered(&make(), &command(wanted.clone(), *cwd, env)), *expected, "{wanted:?} {cwd:?} {env:?}");
    }
    let elsewhere = command(line("make"), Some("/etc"), &[]);
    assert!(!is_covered(&elsewhere, &make()));
    let with_mode = command(line("make"), None, &[("MODE", "dry")]);
    assert!(!is_covered(&with_mode, &make()), "a variable that was shown is left out");
    assert!(!is_covered(&with_mode, &command(line("make"), None, &[("MODE", "wet")])), "it has another value");
    assert!(is_covered(&with_mode, &with_mode));
    assert!(
        !is_covered(&command(words(&["make"]), None, &[]), &make()),
        "words were shown, and a shell is to read them"
    );
}

#[test]
fn a_grant_is_used_up_and_belongs_to_its_session_and_time() {
    let make = command(line("make"), None, &[]);
    let read = Action::Files { kind: ToolKind::Read, paths: vec!["/etc/hosts".into()] };
    let now = Instant::now();
    let mut grants = Grants::default();
    let other = Session::new("agent", "s2", "/w/x");
    for action in [make, read] {
        grants.add(&Subject::new(session(), vec![action.clone()]), now);
        assert!(!grants.take(&other, &action, now));
        assert!(!grants.take(&session(), &action, now + HOLDS));
        assert!(grants.take(&session(), &action, now + HOLDS / 2));
        assert!(!grants.take(&session(), &action, now + HOLDS / 2));
        grants.add(&Subject::new(session(), vec![action.clone()]), now);
        grants.clear();
        assert!(!grants.take(&session(), &action, now));
    }
}

#[test]
fn a_yes_to_read_a_file_is_for_that_file_and_for_reading() {
    let files = |kind: ToolKind, path: &str| Action::Files { kind, paths: vec![path.into()] };
    let granted = files(ToolKind::Read, "/etc/hosts");
    assert!(is_covered(&granted, &granted));
    assert!(!is_covered(&granted, &files(ToolKind::Read, "/etc/passwd")));
    assert!(!is_covered(&granted, &files(ToolKind::Edit, "/etc/hosts")));
    assert!(!is_covered(&files(ToolKind::Edit, "/w/x/a"), &files(ToolKind::Edit, "/w/x/a")), "no content was shown");
}

fn change(path: &str, steps: &[(Option<&str>, &str)]) -> Subject {
    let mut subject = Subject::new(session(), Vec::new());
    subject.diffs = steps.iter().map(|(old, new)| Diff::text(path, old.map(str::to_owned), *new)).collect();
    subject
}

#[test]
fn only_the_content_that_was_shown_is_covered() {
    type Steps<'a> = &'a [(Option<&'a str>, &'a str)];
    let rows: &[(Steps<'_>, Option<&str>, &str, bool)] = &[
        // The whole file.
        (&[(None, "new")], None, "new", true),
        (&[(None, "new")], Some("old"), "new", true),
        (&[(None, "new")], None, "new\n", false),
        (&[(Some("old"), "new")], Some("old"), "new", true),
        (&[(Some(""), "new")], None, "new", true),
        // A part of it.
        (&[(Some("helo"), "hello")], Some("say helo\n"), "say hello\n", true),
        (&[(Some("helo"), "hello")], Some("say helo\n"), "rm -rf /\n", false),
        (&[(Some("helo"), "hello")], Some("say helo\n"), "say hello\nmore\n", false),
        (&[(Some("helo"), "hello")], Some("say nothing\n"), "say hello\n", false),
        (&[(Some("helo"), "hello")], Some("say hello\n"), "say hello\n", false),
        // The file was another when it was shown whole.
        (&[(Some("old"), "new")], Some("other"), "new", false),
        // The only place: which of several was not shown.
        (&[(Some("a"), "b")], Some("a a"), "b b", false),
        (&[(Some("a"), "b")], Some("a a"), "b a", false),
        (&[(Some("a"), "b")], Some("a a"), "a b", false),
        // Several steps.
        (&[(Some("a"), "b"), (Some("c"), "d")], Some("a c"), "b d", true),
        (&[(Some("a"), "b"), (Some("c"), "d")], Some("a c"), "b c", false),
        (&[(Some("a"), "b"), (Some("b"), "c")], Some("a"), "c", true),
        (&[(Some("a"), "b"), (None, "whole")], Some("a"), "whole", false),
        (&[(Some("a"), "")], Some("xay"), "xy", true),
    ];
    for (steps, before, after, expected) in rows {
        let mut grants = Grants::default();
        let now = Instant::now();
        grants.add(&change("/w/x/a", steps), now);
        let shown = grants.change_of(&session().id, "/w/x/a", now).unwrap();
        assert_eq!(shown.leads_to(*before, after), *expected, "{steps:?} {before:?} {after:?}");
    }
}

#[test]
fn a_change_is_granted_for_its_file_and_session_once_and_for_a_while() {
    let now = Instant::now();
    let id = session().id;
    let mut grants = Grants::default();
    grants.add(&change("/w/x/a", &[(None, "new")]), now);
    assert_eq!(grants.change_of(&id, "/w/x/b", now), None);
    assert_eq!(grants.change_of(&id, "/w/x/../x/a", now), None);
    assert_eq!(grants.change_of(&"s2".into(), "/w/x/a", now), None);
    assert_eq!(grants.change_of(&id, "/w/x/a", now + HOLDS), None);
    let shown = grants.change_of(&id, "/w/x/a", now).unwrap();
    assert!(!grants.take_change(&"s2".into(), &shown, now));
    assert!(!grants.take_change(&id, &shown, now + HOLDS));
    assert!(grants.take_change(&id, &shown, now));
    assert!(!grants.take_change(&id, &shown, now));
    assert_eq!(grants.change_of(&id, "/w/x/a", now), None);
}

#[test]
fn what_is_kept_is_bounded() {
    let now = Instant::now();
    let mut grants = Grants::default();
    for _ in 0..10 {
        grants.add(&change("/w/x/a", &[(None, &"x".repeat(MOST_BYTES / 2))]), now);
        grants.add(&change("/w/x/b", &[(None, &"x".repeat(MOST_BYTES + 1))]), now);
    }
    assert!(grants.bytes <= MOST_BYTES && grants.list.len() == 2);
    for _ in 0..10 * MOST {
        grants.add(&Subject::new(session(), vec![command(line("x"), None, &[])]), now);
    }
    assert_eq!(grants.list.len(), MOST);
    while let Some(grant) = grants.remove(&session().id, now, |_| true) {
        drop(grant);
    }
    assert_eq!(grants.bytes, 0);
}
