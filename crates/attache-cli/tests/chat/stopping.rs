//! What is sent and what is not, and what stops when a person wants it to.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::driver::*;
use crate::support::{Home, scripted};

/// Whether a process is there, whose id a file has.
fn is_running(pid: &Path) -> bool {
    let id = fs::read_to_string(pid).ok().and_then(|text| text.trim().parse::<libc::pid_t>().ok());
    // SAFETY: signal 0 does nothing to anybody.
    id.is_some_and(|id| unsafe { libc::kill(id, 0) } == 0)
}

fn is_draft_kept(home: &Home, text: &str) -> bool {
    let files = fs::read_dir(home.path("state/attache/chat/drafts")).into_iter().flatten().flatten();
    let mut drafts = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "json"));
    drafts.any(|file| fs::read_to_string(file.path()).is_ok_and(|kept| kept.contains(text)))
}

#[test]
fn nothing_that_another_chat_left_is_sent_without_a_key() {
    let home = Arc::new(Home::new());
    let mut chat = Setup::scripted(&[], &[]).home(&home).start();
    chat.see_ready();
    chat.say("slow");
    chat.see("working");
    chat.say("say for the first agent");
    chat.see("1 waiting");
    eventually("it is kept", || is_draft_kept(&home, "for the first agent"));
    chat.signal(libc::SIGKILL);
    chat.end();
    // Another agent gets nothing of it.
    let mut chat = Setup::scripted(&[], &["--generous"]).home(&home).start();
    let screen = chat.see_ready();
    assert!(!screen.contains("waiting"), "{screen}");
    assert_eq!(chat.quit(), 0);
    // The same one, with something else to do first: that is all that it gets, also when its turn has ended.
    let mut chat = Setup::scripted(&["say something else"], &[]).home(&home).start();
    chat.until("it is answered", |screen| screen.matches("something else").count() > 1);
    chat.see_ready();
    chat.say("say one more");
    chat.until("it is answered", |screen| screen.matches("one more").count() > 1);
    chat.see_ready();
    let screen = chat.see("1 waiting: enter on an empty line sends them");
    assert!(!screen.contains("❯ say for the first agent"), "{screen}");
    chat.keys(ENTER);
    chat.see("❯ say for the first agent");
    chat.see_gone("1 waiting");
}

#[test]
fn a_second_chat_leaves_the_draft_of_the_first_alone() {
    let home = Arc::new(Home::new());
    let mut first = Setup::scripted(&[], &[]).home(&home).start();
    first.see_ready();
    first.keys("of the first");
    eventually("it is kept", || is_draft_kept(&home, "of the first"));
    let mut second = Setup::scripted(&[], &[]).home(&home).start();
    let screen = second.see_ready();
    assert!(!screen.contains("of the first"), "{screen}");
    second.keys("of the second");
    eventually("it is kept", || is_draft_kept(&home, "of the second"));
    assert!(is_draft_kept(&home, "of the first"));
    second.keys(CTRL_C);
    second.see_gone("of the second");
    assert_eq!(second.quit(), 0);
    assert!(is_draft_kept(&home, "of the first"));
}

#[test]
fn a_turn_that_fails_gives_its_message_back_and_holds_what_waits() {
    for version in ["1", "2"] {
        let mut chat = Setup::scripted(&["--protocol", version], &[]).start();
        chat.see_ready();
        // The next message is there before the turn fails.
        chat.say("slowly a b c d e f g h i j k l m n o p q r s t u v w x y z; error");
        chat.say("say the next");
        chat.see("it broke");
        chat.see("› slowly a b c");
        let screen = chat.see("1 waiting");
        assert!(!screen.contains("❯ say the next"), "{version}: {screen}");
        chat.keys(CTRL_C);
        chat.see_gone("› slowly a b c");
        chat.keys(ENTER);
        chat.see("❯ say the next");
    }
}

#[test]
fn a_yes_is_for_the_turn_that_it_was_said_in() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    // Within the turn it holds.
    chat.say("allow uname; term uname");
    chat.answer("[y] yes", "y");
    chat.see("exit Some(0)");
    chat.see_ready();
    chat.say("allow uname; slow");
    chat.answer("[y] yes", "y");
    chat.until("it is allowed", |screen| screen.matches("allowed for later").count() > 1);
    chat.keys(ESC);
    chat.see_ready();
    chat.say("term uname");
    chat.answer("[y] yes", "n");
    chat.see("not run");
}

#[test]
fn commands_end_when_the_turn_is_cancelled() {
    let mut chat = Setup::scripted(&["--protocol", "1"], &[]).start();
    chat.see_ready();
    let pid = chat.home.path("pid");
    // A semicolon would end the step.
    chat.say("term echo $$ > pid && exec sleep 60");
    chat.answer("[y] yes", "y");
    eventually("it runs", || is_running(&pid));
    chat.keys(ESC);
    chat.see("the command that ran for the agent is ended");
    eventually("it is ended", || !is_running(&pid));
}

#[test]
fn a_question_of_a_plain_chat_can_be_stopped() {
    let mut chat = Setup::scripted(&["--plain"], &[]).start();
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    chat.keys("ask touch x\r");
    chat.see(")?");
    chat.keys(CTRL_C);
    chat.see("Cancelling");
    chat.see("command denied");
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    // Where nothing is under way it takes two, so that one that comes late ends nothing else.
    let mut chat = Setup::scripted(&["--plain"], &[]).start();
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    chat.keys(CTRL_C);
    chat.see("Nothing is under way.");
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    chat.keys("say still here\r");
    chat.until("it answers", |screen| screen.matches("still here").count() > 1);
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    chat.keys(CTRL_C);
    chat.until("it is told", |screen| screen.matches("Nothing is under way.").count() > 1);
    chat.keys(CTRL_C);
    assert_eq!(chat.end(), 130);
    let mut chat = Setup::scripted(&["--plain", "ask touch x"], &[]).start();
    chat.see(")?");
    chat.signal(libc::SIGTERM);
    assert_eq!(chat.end(), 143);
}

#[test]
fn an_agent_that_does_not_answer_a_login_can_be_closed() {
    let home = Arc::new(Home::new());
    let pid = home.path("pid");
    let agent = ["--auth", "agent", "--mute", "--pid", pid.to_str().unwrap()];
    let mut chat = Setup::scripted(&[], &agent).home(&home).start();
    chat.answer("API key", ENTER);
    chat.see_gone("╭ ");
    assert!(is_running(&pid));
    chat.keys(&alt('w'));
    chat.see("Who do you want to talk to?");
    eventually("the agent is gone", || !is_running(&pid));
}

#[test]
fn an_agent_that_does_not_answer_to_a_setting_can_be_closed() {
    let home = Arc::new(Home::new());
    let pid = home.path("pid");
    let agent = ["--mute", "--pid", pid.to_str().unwrap()];
    let mut chat = Setup::scripted(&["--mode", "auto"], &agent).home(&home).start();
    eventually("it runs", || is_running(&pid));
    chat.see("opening");
    chat.keys(&alt('w'));
    chat.see("Who do you want to talk to?");
    eventually("the agent is gone", || !is_running(&pid));
}

#[test]
fn a_login_does_not_leave_the_sandbox() {
    let home = Arc::new(Home::new());
    let state = home.path("logged-in");
    let agent = ["--auth", "terminal", "--state", state.to_str().unwrap()];
    let mut chat = Setup::scripted(&["--sandbox"], &agent).home(&home).start();
    chat.answer("In a terminal", ENTER);
    chat.answer("--login", "y");
    chat.see("cannot be confined");
    assert!(!state.exists());
}

#[test]
fn a_pasted_text_attaches_no_files() {
    let setup = Setup::scripted(&[], &["--generous"]);
    fs::write(setup.home.path("mine.txt"), "mine").unwrap();
    fs::write(setup.home.path("theirs.txt"), "theirs").unwrap();
    let mut chat = setup.start();
    chat.see_ready();
    chat.keys("blocks ");
    chat.paste("of @theirs.txt");
    chat.see("› blocks of @theirs.txt");
    chat.keys(ENTER);
    chat.see("`@theirs.txt` was pasted and is left as text");
    let screen = chat.see_ready();
    assert!(!screen.contains("text resource"), "{screen}");
    // Blanks at the end close the list of files.
    chat.keys("blocks of @mine.txt too");
    chat.see("› blocks of @mine.txt too");
    chat.keys(ENTER);
    chat.see("text resource");
    // One that holds secrets is not attached, and that is said.
    chat.see_ready();
    fs::write(chat.home.path(".env"), "KEY=secret").unwrap();
    chat.keys("blocks of @.env too");
    chat.see("› blocks of @.env too");
    chat.keys(ENTER);
    chat.see("`@.env` is not attached");
}

#[test]
fn a_session_is_deleted_by_its_own_agent() {
    let home = Arc::new(Home::new());
    let mut config = String::new();
    for name in ["one", "two"] {
        let list = home.path(&format!("{name}.txt"));
        fs::write(&list, format!("of-{name}\nshared\n")).unwrap();
        let list = list.display();
        config.push_str(&format!("[agents.{name}]\ncommand = [{:?}, \"--sessions\", \"{list}\"]\n", scripted()));
    }
    home.write_config(&config);
    let mut chat = Setup::new(&["chat", "-a", "one"]).home(&home).start();
    chat.see_ready();
    chat.keys(CTRL_T);
    chat.see("about of-one");
    chat.keys("two");
    chat.see_gone("about of-one");
    chat.keys(ENTER);
    chat.see("[2 ");
    chat.see_ready();
    // The session on the screen is of two; what is deleted is of one.
    chat.keys(CTRL_T);
    chat.see("about of-two");
    chat.keys("of-one");
    chat.see_gone("about of-two");
    chat.keys(CTRL_D);
    chat.answer("one forgets it", "y");
    let list = |name: &str| fs::read_to_string(home.path(&format!("{name}.txt"))).unwrap();
    eventually("it is deleted", || list("one") == "shared\n");
    assert_eq!(list("two"), "of-two\nshared\n");
}

#[test]
fn what_is_not_set_holds_the_prompt_back() {
    for version in ["1", "2"] {
        let mut chat = Setup::scripted(&["--protocol", version, "--mode", "nope", "say first"], &[]).start();
        chat.see("invalid value `nope` for option `mode`");
        chat.see("› say first");
        let screen = chat.see_ready();
        assert!(!screen.contains("❯ say first"), "{screen}");
        chat.keys(ENTER);
        chat.see("❯ say first");
    }
    let mut chat = Setup::scripted(&["--plain", "--mode", "nope", "say first"], &[]).start();
    chat.see("this was not sent: say first");
    chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
    chat.keys(CTRL_D);
    assert_eq!(chat.end(), 0);
}

#[test]
fn messages_are_traced_and_the_record_has_an_end() {
    let home = Arc::new(Home::new());
    for options in [&["--trace", "trace.jsonl"][..], &["--plain", "--trace", "trace.jsonl"]] {
        let mut chat = Setup::scripted(&[options, &["say hello"]].concat(), &[]).home(&home).start();
        chat.see("hello");
        match options.contains(&"--plain") {
            true => {
                chat.until("it asks for a line", |screen| screen.trim_end().ends_with("\n>"));
                chat.keys(CTRL_D);
                assert_eq!(chat.end(), 0);
            }
            false => {
                chat.see_ready();
                assert_eq!(chat.quit(), 0);
            }
        }
        // How to come back.
        chat.until("it is said", |screen| screen.contains("to go on with it: attache chat --resume "));
        let trace = fs::read_to_string(home.path("trace.jsonl")).unwrap();
        assert!(trace.contains("session/prompt"), "{trace}");
        fs::remove_file(home.path("trace.jsonl")).unwrap();
    }
    let listed = home.run(&["sessions", "list", "--json"]);
    assert_eq!(listed.out.matches("\"status\":\"done\"").count(), 2, "{}", listed.out);
}

#[test]
fn sessions_of_a_command_are_opened_by_it_and_by_no_other() {
    // The record has the whole command, or not: values of options may be secrets.
    for (agent, is_whole) in [(&[][..], true), (&["--show", "HOME"], false)] {
        let home = Arc::new(Home::new());
        let mut chat = Setup::scripted(&["say of the command"], agent).home(&home).start();
        chat.until("it is answered", |screen| screen.matches("of the command").count() > 1);
        chat.see_ready();
        chat.say("say later");
        chat.see_ready();
        assert_eq!(chat.quit(), 0);
        // How to go on with it can be typed as it stands there.
        let said = chat.until("it is said", |screen| screen.contains("to go on with it: "));
        assert!(said.replace('\n', "").contains(&format!(" -- {}", crate::support::scripted())), "{said}");
        // It is listed by what was asked first.
        let open = |mut chat: Chat| {
            chat.see_ready();
            chat.keys(CTRL_T);
            chat.see("say of the command");
            chat.keys("of the command");
            chat.see_gone("built in");
            chat.keys(ENTER);
            chat
        };
        let mut chat = open(Setup::new(&["chat", "-a", "attache"]).home(&home).start());
        match is_whole {
            true => drop(chat.see("what was said long ago")),
            false => drop(chat.see("does not have the whole command of its agent")),
        }
        assert_eq!(chat.quit(), 0);
        open(Setup::scripted(&[], agent).home(&home).start()).see("what was said long ago");
        // The last session here is the command's, whoever else is the default.
        let mut chat = Setup::new(&["chat", "-c"]).home(&home).start();
        match is_whole {
            true => drop(chat.see("what was said long ago")),
            false => assert_eq!(chat.end(), 2),
        }
    }
}

#[test]
fn a_session_that_cannot_be_opened_is_no_dead_agent() {
    let mut chat = Setup::new(&["chat", "--resume", "nope", "-a", "attache"]).start();
    let screen = chat.answer("The session could not be opened", ESC);
    assert!(screen.contains("r begin a new session") && !screen.contains("Attaché has ended"), "{screen}");
    chat.see_gone("The session could not be opened");
    assert_eq!(chat.quit(), 8);
    let mut chat = Setup::new(&["chat", "--resume", "nope", "-a", "attache"]).start();
    chat.answer("The session could not be opened", "r");
    chat.see_ready();
    assert_eq!(chat.quit(), 0);
}

#[test]
fn ctrl_c_cancels_and_leaves() {
    let mut chat = Setup::scripted(&[], &[]).start();
    chat.see_ready();
    chat.say("slow");
    chat.see("working");
    chat.keys(CTRL_C);
    chat.see("cancelling; once more leaves");
    chat.see_ready();
    chat.keys("not sent");
    chat.see("› not sent");
    chat.keys(CTRL_C);
    chat.see("once more leaves");
    chat.keys(UP);
    chat.see("› not sent");
    // What is written and not sent is asked about.
    chat.keys(&alt('w'));
    chat.answer("What you wrote and did not send would be lost.", ESC);
    chat.see_gone("Close the session?");
    chat.keys(CTRL_C);
    chat.see_gone("› not sent");
    chat.say("/quit");
    assert_eq!(chat.end(), 0);
}
