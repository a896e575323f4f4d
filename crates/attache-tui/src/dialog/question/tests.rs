use attache_proto::model::permission::PermissionOptionKind;

use super::*;
use crate::theme::{Background, ColorDepth};

fn question() -> Question {
    Question {
        agent: "claude".into(),
        gist: String::new(),
        digest: "a1b2c3".into(),
        kinds: Vec::new(),
        commands: Vec::new(),
        cwd: "/home/me/project".into(),
        host: None,
        env: Vec::new(),
        paths: Vec::new(),
        named: Vec::new(),
        changes: Vec::new(),
        input: None,
        texts: Vec::new(),
        title: None,
        description: None,
        reason: "no rule decides this".into(),
        suggestion: Vec::new(),
    }
}

fn edit(old: Option<&str>, new: &str) -> Question {
    let path = "/home/me/project/src/words.txt".to_owned();
    Question {
        gist: format!("edit `{path}`"),
        kinds: vec!["edit".into()],
        paths: vec![path.clone()],
        changes: vec![Change::Texts { path, old: old.map(Into::into), new: new.into() }],
        title: Some("Fix a typo".into()),
        suggestion: vec!["allow edit of `/home/me/project/src/words.txt` for the agent `claude`".into()],
        ..question()
    }
}

fn run(command: &str) -> Question {
    Question { gist: "run `make`".into(), kinds: vec!["execute".into()], commands: vec![command.into()], ..question() }
}

#[test]
fn what_is_done_on_another_machine_is_shown_with_its_place_there() {
    let elsewhere = run("make").on("workstation:7316", Path::new("/home/me/project"), Some("/srv/shop"));
    let shown = rows(&elsewhere, 80).join("\n");
    assert!(shown.contains("in /srv/shop, on workstation:7316") && !shown.contains("/home/me"), "{shown}");
    // A directory that the agent names is one there already.
    let named = Question { cwd: "/srv/other".into(), ..run("make") };
    let named = named.on("workstation", Path::new("/home/me/project"), Some("/srv/shop"));
    assert!(rows(&named, 80).join("\n").contains("in /srv/other, on workstation"));
    let shown = rows(&edit(None, "new").on("workstation", Path::new("/home/me/project"), None), 80).join("\n");
    assert!(shown.contains("on workstation"), "{shown}");
}

fn theme() -> Theme {
    Theme::new(ColorDepth::Ansi16, Background::Dark, true)
}

fn rows(question: &Question, width: u16) -> Vec<String> {
    question_lines(question, width, &theme()).iter().map(ToString::to_string).collect()
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn a_change_of_one_line_takes_at_most_eight_lines() {
    let old = numbered(40);
    let question = edit(Some(&old), &old.replace("line 20\n", "line twenty\n"));
    let rows = rows(&question, 80);
    assert!(rows.len() <= 8, "{rows:#?}");
    assert_eq!(rows[0], "claude says: “Fix a typo”");
    assert_eq!(rows[1], "asked because no rule decides this");
    let path = rows.iter().filter(|row| row.contains("src/words.txt") && !row.contains("rule for")).count();
    assert_eq!(path, 1, "the path stands there once: {rows:#?}");
    assert_eq!(
        &rows[rows.len() - 4..rows.len() - 1],
        ["20 - line 20", "20 + line twenty", "edit `src/words.txt` +1 -1 (a1b2c3)?"]
    );
    assert!(rows[rows.len() - 1].starts_with("[y] yes  [N] no"));
}

#[test]
fn a_short_change_without_rules_has_context() {
    let old = numbered(40);
    let question = Question { suggestion: Vec::new(), ..edit(Some(&old), &old.replace("line 20\n", "line twenty\n")) };
    assert_eq!(rows(&question, 80)[2..6], ["19   line 19", "20 - line 20", "20 + line twenty", "21   line 21"]);
}

#[test]
fn a_long_path_is_told_in_full_above_the_change() {
    let path = format!("/home/me/project/{}/end.rs", "deep/".repeat(30));
    let question = Question {
        paths: vec![path.clone()],
        changes: vec![Change::Texts { path: path.clone(), old: None, new: "x\n".into() }],
        ..edit(None, "")
    };
    let all = rows(&question, 80).join("");
    assert!(all.contains(&path["/home/me/project/".len()..]), "{all}");
    let rows = rows(&question, 80);
    assert!(rows.iter().any(|row| row.starts_with("edit `…") && row.contains("/end.rs` +1, new")), "{rows:#?}");
}

#[test]
fn a_path_that_only_looks_as_if_it_were_beneath_stays_whole() {
    for path in
        ["/home/me/project2/a", "/home/me/project/../b", "/etc/passwd", "/home/me/project/", "/home/me/project//x"]
    {
        assert_eq!(relative(path, "/home/me/project"), path);
    }
    assert_eq!(relative("/home/me/project/a/b", "/home/me/project/"), "a/b");
    assert_eq!(relative("/a", "/"), "a");
}

#[test]
fn commands_are_whole_and_agents_words_are_short() {
    let long = format!("echo {} && rm -rf /", "x".repeat(500));
    let question = Question {
        title: Some(format!("{} [y] yes\nasked because you said so", "Harmless ".repeat(50))),
        env: vec![("KEY".into(), "value".to_owned().into())],
        ..run(&long)
    };
    let shown = rows(&question, 40);
    assert!(shown[0].starts_with("claude says: “Harmless") && shown[0].ends_with("…”"));
    assert_eq!(shown.iter().filter(|row| row.starts_with("asked because")).count(), 1);
    let whole: String = shown.iter().map(|row| row.trim_start()).collect();
    assert!(whole.contains(&long), "{whole}");
    assert!(shown.contains(&"with KEY=value".to_owned()));
    assert!(shown.contains(&"in /home/me/project".to_owned()));
    assert!(shown.iter().all(|row| columns(row) <= 40), "{shown:#?}");
}

#[test]
fn gaps_are_told() {
    assert_eq!(without_gaps("ls  -l", BLANKS), "ls  -l");
    assert_eq!(without_gaps(&format!("ls{}; rm x", " ".repeat(5000)), BLANKS), "ls[5000 blanks]; rm x");
    assert_eq!(without_gaps(&format!("ls{}rm x", "\n".repeat(50)), BLANKS), "ls\n[49 empty lines]\nrm x");
    assert_eq!(without_gaps(&format!("ls{}", "\t".repeat(50)), BLANKS), "ls[50 blanks]");
    let new = format!("{}deep\n{}deeper\n", " ".repeat(40), " ".repeat(400));
    let shown = rows(&edit(None, &new), 80).join("\n");
    assert!(shown.contains(&format!("{}deep", " ".repeat(40))) && shown.contains("[400 blanks]deeper"), "{shown}");
}

#[test]
fn only_a_choice_that_was_offered_answers() {
    let allow = |scope| Some(Meaning::Reply(PermissionReply::Allow(scope)));
    let deny = Some(Meaning::Reply(PermissionReply::Deny { reason: None }));
    let question = run("make");
    for (typed, means) in [
        ("", deny.clone()),
        ("N", deny.clone()),
        (" no ", deny),
        ("y", allow(Scope::Once)),
        ("YES", allow(Scope::Once)),
        ("r", Some(Meaning::AskReason)),
        ("?", Some(Meaning::Explain)),
        ("e", Some(Meaning::Reply(PermissionReply::OpenPager))),
        ("s", None),
        ("a", None),
        ("yy", None),
        ("1", None),
    ] {
        assert_eq!(meaning(typed, &question, &[]), means, "{typed:?}");
    }
    assert_eq!(meaning("a", &edit(None, "x\n"), &[]), allow(Scope::Always));
    let options = [
        PermissionOption::new("all", "Yes to \u{1b}[31mall", PermissionOptionKind::AllowAlways),
        PermissionOption::new("no", "Keep planning", PermissionOptionKind::RejectOnce),
    ];
    assert_eq!(meaning("y", &question, &options), None, "the agent offers no way to allow this once");
    assert_eq!(meaning("2", &question, &options), Some(Meaning::Reply(PermissionReply::Option("no".into()))));
    let text = question_text(&question, &options, 80, &theme());
    let ask: Vec<String> = text.0.ask.iter().map(ToString::to_string).collect();
    assert_eq!(ask[ask.len() - 1], "the agent's own:  [1] allows: Yes to all  [2] refuses: Keep planning");
}

#[test]
fn a_long_question_offers_the_pager() {
    assert!(!rows(&run("make"), 80).join("\n").contains("[e] pager"));
    assert!(rows(&run(&numbered(40)), 80).join("\n").contains("[e] pager"));
    let shown = rows(&edit(Some(&numbered(6_000)), &numbered(2_000)), 80);
    assert!(shown.join("\n").contains("+0 -4000"));
}

#[test]
fn words_that_differ_are_marked() {
    let lines = question_lines(&edit(Some("let a = 1;\n"), "let a = 2;\n"), 80, &theme());
    let marked = |style| {
        let spans = lines.iter().flat_map(|line| &line.spans).filter(|span| span.style == style);
        spans.map(|span| span.content.to_string()).collect::<String>()
    };
    assert_eq!((marked(theme().removed_word).as_str(), marked(theme().added_word).as_str()), ("1", "2"));
    let last = |old, new| rows(&edit(Some(old), new), 80).into_iter().find(|row| row.contains('-')).unwrap();
    assert_eq!(last("a", "a\n"), "1 - a (no newline at the end)");
}

#[test]
fn any_width_will_do() {
    let old = numbered(30);
    let mut question = edit(Some(&old), &old.replace("line 7\n", "漢字 \t👩\u{200d}💻\n"));
    question.texts = vec!["a\nb\nc\nd\ne\nf".into()];
    question.named = (0..9).map(|number| format!("/file{number}")).collect();
    for width in 0..130 {
        let rows = rows(&question, width);
        let widest = rows.iter().map(|row| columns(row)).max().unwrap();
        assert!(widest <= usize::from(width).max(LEAST_WIDTH), "{widest} > {width}: {rows:#?}");
    }
}

#[test]
fn a_huge_change_is_laid_out_whole() {
    let change = |count: usize| {
        let old = "word ".repeat(count);
        edit(Some(&old), &old.replace("word", "wort"))
    };
    let counts = |text: &str| (text.matches("word ").count(), text.matches("wort ").count());
    let shown: String = rows(&change(20_000), 80).iter().map(|row| row.strip_prefix("    ").unwrap_or(row)).collect();
    assert_eq!(counts(&shown), (20_000, 20_000));
    // What is longer is in the pager, whole.
    assert_eq!(counts(&pager_text(&change(200_000))), (200_000, 200_000));
    assert!(question_text(&change(200_000), &[], 80, &theme()).1);
}

#[test]
fn what_an_agent_lists_without_end_takes_no_time() {
    let began = Instant::now();
    let mut question = edit(None, "x\n");
    question.paths = (0..100_000).map(|number| format!("/p/{}", number % 50_000)).collect();
    let option =
        |number: usize| PermissionOption::new((number / 2).to_string(), "Yes", PermissionOptionKind::AllowOnce);
    let options: Vec<PermissionOption> = (0..100_000).map(option).collect();
    question_text(&question, &options, 80, &theme());
    assert!(choices(&question, &options, true).len() < 50);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_window_that_is_too_narrow_takes_no_yes() {
    let mut dialog = crate::dialog::PermissionDialog::new(run("rm -rf precious"), Vec::new());
    let yes = |dialog: &mut crate::dialog::PermissionDialog, width: u16| {
        let area = ratatui::layout::Rect::new(0, 0, width, 30);
        for _ in 0..10 {
            dialog.render(area, &mut ratatui::buffer::Buffer::empty(area), &theme());
            let key = crossterm::event::KeyEvent::from(crossterm::event::KeyCode::Char('y'));
            if let Some(reply) = dialog.handle_key(key, Duration::from_secs(1)) {
                return Some(reply);
            }
        }
        None
    };
    assert_eq!(yes(&mut dialog, 12), None);
    assert_eq!(yes(&mut dialog, 60), Some(PermissionReply::Allow(Scope::Once)));
}

#[test]
fn every_answer_of_the_agent_has_a_key_unless_it_could_be_mistaken() {
    let option = |id: String| PermissionOption::new(id, "Yes", PermissionOptionKind::AllowOnce);
    let many: Vec<PermissionOption> = (0..20).map(|number| option(number.to_string())).collect();
    let question = edit(None, "x\n");
    let keys: Vec<char> = choices(&question, &many, true).iter().map(|choice| choice.key).collect();
    assert_eq!(keys.iter().collect::<String>(), "ynspare?123456789bcdfghijklm");
    assert_eq!(meaning("b", &question, &many), Some(Meaning::Reply(PermissionReply::Option("9".into()))));
    let twice = [option("same".into()), option("same".into())];
    assert_eq!(meaning("1", &question, &twice), None);
}

#[test]
fn the_line_before_is_shown_where_one_has_room() {
    let old = numbered(40);
    let question = edit(Some(&old), &old.replace("line 20\n", "line twenty\n"));
    for width in [80, 120] {
        let rows = rows(&question, width);
        assert!(rows.len() <= 8 && rows.contains(&"20 + line twenty".to_owned()), "{rows:#?}");
    }
    let rows = rows(&question, 120);
    assert_eq!((rows.len(), rows[3].as_str()), (8, "19   line 19"), "{rows:#?}");
}

#[test]
fn a_patch_that_names_another_file_says_so() {
    let shown = |file: &str, patch: &str| patch_lines(patch, Some(file)).collect::<Vec<_>>().join("|");
    let own = "diff --git a/rc b/rc\nindex 1..2 100644\n--- a/rc\n+++ b/rc\n@@ -1 +1 @@\n-old\n+new";
    assert_eq!(shown("rc", own), "@@ -1 +1 @@|-old|+new");
    assert_eq!(shown("/w/rc", &own.replace("a/rc", "/w/rc").replace("b/rc", "/w/rc")), "@@ -1 +1 @@|-old|+new");
    let other = "index 1..2 120000\n--- a/home/user/.bashrc\n+++ b/home/user/.bashrc\n@@ -1 +1 @@";
    assert_eq!(shown("rc", other), other.replace('\n', "|"));
    assert_eq!(shown("", own), own.replace('\n', "|"));
    assert_eq!(shown("rc", "--- a/rc\n+++ /dev/null\n@@ -1 +0,0 @@"), "+++ /dev/null|@@ -1 +0,0 @@");
    assert_eq!(shown("rc", "@@ -1 +1 @@\n--- a/rc"), "@@ -1 +1 @@|--- a/rc");
}

#[test]
fn blanks_of_any_kind_are_told_by_their_number() {
    let pushed = format!("ls{}; rm -rf ~", " \t".repeat(1200));
    assert_eq!(without_gaps(&pushed, BLANKS), "ls[2400 blanks]; rm -rf ~");
    assert_eq!(without_gaps(&format!("ls{}rm", "\u{2800} ".repeat(50)), BLANKS), "ls[100 blanks]rm");
    assert_eq!(without_gaps(&format!("ls{}rm", " \n".repeat(50)), BLANKS), "ls\n[49 empty lines]\nrm");
    assert_eq!(without_gaps("a  b\n\n  c", BLANKS), "a  b\n\n  c");
}

#[test]
fn what_an_agent_calls_a_choice_does_not_say_what_it_does() {
    let option = PermissionOption::new("x", "No, do not run it", PermissionOptionKind::AllowOnce);
    let text = question_text(&question(), &[option], 100, &Theme::new(ColorDepth::None, Background::Dark, true));
    let ask: Vec<String> = text.0.ask.iter().map(ToString::to_string).collect();
    assert!(ask.join("\n").contains("allows: No, do not run it"), "{ask:?}");
}

#[test]
fn what_is_very_long_is_told_by_its_size_and_left_to_the_pager() {
    let long = edit(Some(""), &"a line of some text\n".repeat(60_000));
    let (text, is_too_long) = question_text(&long, &[], 80, &theme());
    let rows: Vec<String> = text.content.iter().chain(&text.ask).map(ToString::to_string).collect();
    assert!(is_too_long && rows.len() < 20, "{rows:?}");
    assert!(rows.join(" ").contains("bytes in 60"), "{rows:?}");
    assert!(rows.iter().any(|row| row.contains("[e] pager")), "{rows:?}");
    // Few bytes can be many rows.
    let (text, is_too_long) = question_text(&edit(Some(""), &"x\n".repeat(30_000)), &[], 80, &theme());
    assert!(is_too_long && text.content.len() < 20);
    assert!(!question_text(&edit(Some(""), &"x\n".repeat(300)), &[], 80, &theme()).1);
}

#[test]
fn many_slow_changes_share_one_time() {
    // Texts without a line in common are the worst case.
    let text = |from: usize| (0..3_000).map(|number| format!("{}\n", (number * 7 + from) % 9_001)).collect::<String>();
    let changes = (0..6).map(|number| Change::Texts {
        path: format!("/f{number}"),
        old: Some(text(number)),
        new: text(number + 1_000),
    });
    let question = Question { changes: changes.collect(), ..question() };
    let began = std::time::Instant::now();
    let _ = question_text(&question, &[], 80, &theme());
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
}
