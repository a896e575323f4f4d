//! `/undo` and `/diff`: what the agent did is shown and taken back exactly, and what others did since is left alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::scripted;
use crate::support::{Chat, DIALECTS, Person, World, check};

/// Every file, link and directory of the project with what is in it and who may execute it.
pub(super) fn picture(world: &World) -> String {
    fn add(top: &Path, directory: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().display().to_string();
            let info = path.symlink_metadata().unwrap();
            if info.is_symlink() {
                lines.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else if info.is_dir() {
                lines.push(format!("{name}/"));
                add(top, &path, lines);
            } else {
                let mark = if info.permissions().mode() & 0o100 == 0 { "" } else { "*" };
                lines.push(format!("{name}{mark} {:?}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut lines = Vec::new();
    add(&world.project(), &world.project(), &mut lines);
    lines.sort();
    lines.join("\n")
}

fn project(world: &World) {
    world.put("a.txt", "one\ntwo\nthree\n");
    world.put("b.txt", "b\n");
    world.put("old/c.txt", "c\n");
    world.put("run.sh", "#!/bin/sh\n");
    fs::set_permissions(world.project().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", world.project().join("link")).unwrap();
}

/// Everything that the tools for files can do.
const TOOLS: &str = r#"
call read_file {"path":"a.txt"}
call edit_file {"path":"a.txt","old_text":"two","new_text":"zwei"}
call edit_file {"path":"a.txt","old_text":"three","new_text":"drei"}
call write_file {"path":"new/deep/d.txt","content":"d\n"}
call delete_file {"path":"run.sh"}
call delete_file {"path":"link"}
call move_file {"from":"b.txt","to":"moved/b.txt"}
call move_file {"from":"old","to":"newer/place"}
call read_file {"path":"newer/place/c.txt"}
call edit_file {"path":"newer/place/c.txt","old_text":"c","new_text":"C"}
"#;

/// As much by a command.
const COMMAND: &str = r#"call run_command {"command":"sed -i s/two/zwei/ a.txt; mkdir -p new/deep; echo d > new/deep/d.txt; rm run.sh; rm link; ln -s b.txt link; mv b.txt B.txt; rm -r old; chmod +x a.txt; mkdir empty"}"#;

#[tokio::test]
async fn what_the_tools_for_files_did_is_taken_back_exactly_in_every_dialect() {
    for protocol in DIALECTS {
        let world = scripted().await;
        project(&world);
        let before = picture(&world);
        let mut chat = world.open(Person::at(protocol)).await;
        let seen = chat.turn(TOOLS).await;
        assert!(seen.ends_with("stop end_turn") && !seen.contains("failed"), "{seen}");
        check(
            &picture(&world),
            r#"
            a.txt "one\nzwei\ndrei\n"
            moved/
            moved/b.txt "b\n"
            new/
            new/deep/
            new/deep/d.txt "d\n"
            newer/
            newer/place/
            newer/place/c.txt "C\n"
            "#,
        );
        check(
            &chat.turn("/undo").await,
            r#"
            text Took back what the agent changed in its last turn with changes:
              |
              | - `a.txt`: restored
              | - `b.txt`: restored
              | - `link`: restored
              | - `moved/b.txt`: removed
              | - `new/deep/d.txt`: removed
              | - `newer/place`: moved back
              | - `newer/place/c.txt`: restored
              | - `run.sh`: restored
            stop end_turn
            "#,
        );
        assert_eq!(picture(&world), before, "{protocol:?}");
        let seen = chat.turn("/undo").await;
        assert!(seen.contains("There is nothing to undo"), "{seen}");
        assert!(!world.project().join(".git").exists());
    }
}

#[tokio::test]
async fn what_a_command_did_is_taken_back_exactly_if_that_is_wanted() {
    let world = scripted().await;
    project(&world);
    world.put(".gitignore", "ignored\n");
    world.put("ignored", "x");
    let before = picture(&world);
    let mut chat = world.open(Person::new()).await;
    // The first command changes nothing, so there is nothing of it to take back.
    chat.turn("call run_command {\"command\":\"ls\"}").await;
    let seen = chat.turn(COMMAND).await;
    assert!(seen.contains("completed"), "{seen}");
    let after = picture(&world);
    assert_ne!(after, before);
    check(
        &chat.turn("/undo").await,
        r#"
        text Nothing was taken back.
          |
          | Changed while a command or another program ran, perhaps by you, and left as it is:
          |
          | - `B.txt`
          | - `a.txt`
          | - `b.txt`
          | - `empty`
          | - `link`
          | - `new/deep/d.txt`
          | - `old/c.txt`
          | - `run.sh`
          |
          | Type `/undo all` to take this back.
          |
          | Commands ran in that turn. Not covered: files that git ignores, git's own data, and everything outside of the project.
        stop end_turn
        "#,
    );
    assert_eq!(picture(&world), after);
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("nothing to undo but what was left before"), "{seen}");
    let seen = chat.turn("/undo all").await;
    assert_eq!(picture(&world), before, "{seen}");
    assert!(seen.contains("Not covered: files that git ignores"), "{seen}");
    assert!(chat.turn("/undo all").await.contains("nothing to undo: no turn"));
    assert!(chat.turn("/undo everything").await.contains("Say `/undo`"));
}

#[tokio::test]
async fn undo_goes_back_turn_by_turn_and_the_model_is_told() {
    let world = scripted().await;
    world.put("a.txt", "0");
    let mut chat = world.open(Person::new()).await;
    chat.turn("call read_file {\"path\":\"a.txt\"}\ncall write_file {\"path\":\"a.txt\",\"content\":\"1\"}").await;
    chat.turn("say hello").await;
    chat.turn(
        "call write_file {\"path\":\"a.txt\",\"content\":\"2\"}\ncall run_command {\"command\":\"echo 3 > a.txt\"}",
    )
    .await;
    for expected in ["1", "0"] {
        let seen = chat.turn("/undo all").await;
        assert!(seen.contains("`a.txt`: restored"), "{seen}");
        assert_eq!(fs::read_to_string(world.project().join("a.txt")).unwrap(), expected);
    }
    // The model has to read it again, and knows why.
    chat.turn("call write_file {\"path\":\"a.txt\",\"content\":\"4\"}").await;
    let texts = world.model().requests().last().unwrap().texts();
    let told = texts.iter().filter(|text| text.contains("has undone your changes of an earlier turn: `a.txt`")).count();
    assert_eq!(told, 1, "{texts:?}");
    assert!(world.results().last().unwrap().contains("read it"), "{:?}", world.results());
}

#[tokio::test]
async fn the_diff_of_a_session_and_of_its_last_turn_is_shown() {
    let world = scripted().await;
    project(&world);
    let mut chat = world.open(Person::new()).await;
    assert!(chat.turn("/diff").await.contains("has changed no files"));
    assert!(chat.turn("/diff all").await.contains("Say `/diff`"));
    chat.turn("call read_file {\"path\":\"a.txt\"}\ncall edit_file {\"path\":\"a.txt\",\"old_text\":\"two\",\"new_text\":\"2\"}")
        .await;
    chat.turn("call run_command {\"command\":\"sed -i 's/2/```/' a.txt; printf 'x\\\\000y' > bin; chmod -x run.sh\"}")
        .await;
    check(
        &chat.turn("/diff").await,
        r#"
        text Changed by the agent:
          |
          | ```diff
          | --- a/a.txt
          | +++ b/a.txt
          | @@ -1,3 +1,3 @@
          |  one
          | -two
          | +2
          |  three
          | ```
          |
          | Changed while a command or another program ran:
          |
          | ````diff
          | --- a/a.txt
          | +++ b/a.txt
          | @@ -1,3 +1,3 @@
          |  one
          | -2
          | +```
          |  three
          | --- /dev/null
          | +++ b/bin
          | (3 bytes that are no text)
          | run.sh: mode 755 → 644
          | ````
        stop end_turn
        "#,
    );
    let last = chat.turn("/diff last").await;
    assert!(last.contains("-2\n") && !last.contains("-two"), "{last}");
    chat.turn("/undo all").await;
    let seen = chat.turn("/diff").await;
    assert!(seen.contains("+2\n") && !seen.contains("bin"), "{seen}");
}

#[tokio::test]
async fn a_diff_is_bounded_and_what_others_did_in_between_is_not_in_it() {
    let world = scripted().await;
    world.put("a.txt", "one\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("call run_command {\"command\":\"echo two > a.txt\"}").await;
    world.put("a.txt", "mine\n");
    chat.turn("call run_command {\"command\":\"echo three > a.txt\"}").await;
    let seen = chat.turn("/diff").await;
    for part in ["-one\n", "+two\n", "-mine\n", "+three\n"] {
        assert!(seen.contains(part.trim()), "{part}: {seen}");
    }
    assert!(!seen.contains("+mine"), "{seen}");
    chat.turn("call run_command {\"command\":\"seq 100000 > long; for i in 1 2 3; do echo $i > more$i; done\"}").await;
    let seen = chat.turn("/diff last").await;
    assert!(seen.len() < 200_000 && seen.contains("the rest of this file's changes is left out"), "{}", seen.len());
    assert!(seen.contains("3 more files are left out"), "{}", &seen[seen.len() - 300..]);
}

/// One change by the agent, then one by somebody else, then `/undo`: what it says, and what the project is like then.
async fn after(change: &str, other: impl FnOnce(&World, &mut Chat)) -> (String, String) {
    let world = scripted().await;
    world.put("a.txt", "before\n");
    world.put("b.txt", "before\n");
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn(format!("call run_command {{\"command\":\"echo after > b.txt\"}}\n{change}").as_str()).await;
    assert!(!seen.contains("failed"), "{seen}");
    other(&world, &mut chat);
    let seen = chat.turn("/undo all").await;
    assert!(seen.contains("- `b.txt`: restored"), "what nobody else changed is taken back: {seen}");
    let line = seen.lines().find(|line| line.contains("`a.txt`")).unwrap_or_default();
    (line.trim_start_matches("  | ").to_owned(), picture(&world).replace("b.txt \"before\\n\"", "").trim().to_owned())
}

#[tokio::test]
async fn what_others_have_changed_since_is_left_alone_by_name() {
    const EDIT: &str = "call read_file {\"path\":\"a.txt\"}\ncall edit_file {\"path\":\"a.txt\",\"old_text\":\"before\",\"new_text\":\"after\"}";
    const RUN: &str = "call run_command {\"command\":\"echo after > a.txt\"}";
    for change in [EDIT, RUN] {
        let path = |world: &World| world.project().join("a.txt");
        let (said, left) = after(change, |world, _| world.put("a.txt", "mine\n")).await;
        assert_eq!((said.as_str(), left.as_str()), ("- `a.txt`: it has changed since", r#"a.txt "mine\n""#));
        let (said, left) = after(change, |world, _| fs::remove_file(path(world)).unwrap()).await;
        assert_eq!((said.as_str(), left.as_str()), ("- `a.txt`: it has been removed since", ""));
        let (said, left) = after(change, |world, _| {
            world.put_at("outside", "precious");
            fs::remove_file(path(world)).unwrap();
            symlink("../outside", path(world)).unwrap();
        })
        .await;
        assert_eq!((said.as_str(), left.as_str()), ("- `a.txt`: it is a link now", "a.txt -> ../outside"));
        let (said, left) = after(change, |world, _| {
            fs::remove_file(path(world)).unwrap();
            world.put("a.txt/inside", "x");
        })
        .await;
        assert_eq!((said.as_str(), left.as_str()), ("- `a.txt`: it is a directory now", "a.txt/\na.txt/inside \"x\""));
        let (said, _) = after(change, |world, _| {
            fs::set_permissions(path(world), fs::Permissions::from_mode(0o755)).unwrap();
        })
        .await;
        assert_eq!(said, "- `a.txt`: its permissions have changed since");
        // Back by hand to what it was: there is nothing left to do.
        let (said, left) = after(change, |world, _| world.put("a.txt", "before\n")).await;
        assert_eq!((said.as_str(), left.as_str()), ("", r#"a.txt "before\n""#));
    }
    // A file that the agent deleted and somebody made anew.
    let delete = "call delete_file {\"path\":\"a.txt\"}";
    let (said, left) = after(delete, |world, _| world.put("a.txt", "mine\n")).await;
    assert_eq!((said.as_str(), left.as_str()), ("- `a.txt`: it has been created since", r#"a.txt "mine\n""#));
}

#[tokio::test]
async fn what_was_refused_can_be_taken_back_later_and_is_still_shown() {
    let world = scripted().await;
    world.put("u.txt", "one\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("call read_file {\"path\":\"u.txt\"}\ncall write_file {\"path\":\"u.txt\",\"content\":\"two\\n\"}").await;
    world.put("u.txt", "two\nmine\n");
    assert!(chat.turn("/undo").await.contains("`u.txt`: it has changed since"));
    // The person takes their own change back.
    world.put("u.txt", "two\n");
    assert!(chat.turn("/diff").await.contains("+two"));
    assert!(chat.turn("/undo").await.contains("Type `/undo all`"));
    let seen = chat.turn("/undo all").await;
    assert_eq!(world.files(), "u.txt \"one\\n\"", "{seen}");
    assert!(chat.turn("/undo all").await.contains("nothing to undo: no turn"));
}

#[tokio::test]
async fn a_directory_that_became_a_link_leads_nobody_outside() {
    let world = scripted().await;
    world.put("dir/a.txt", "before\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("call run_command {\"command\":\"echo after > dir/a.txt; echo new > dir/b.txt\"}").await;
    world.put_at("outside/a.txt", "after\n");
    world.put_at("outside/b.txt", "new\n");
    fs::remove_dir_all(world.project().join("dir")).unwrap();
    symlink(world.root.join("outside"), world.project().join("dir")).unwrap();
    let seen = chat.turn("/undo all").await;
    assert!(seen.contains("Nothing was taken back") && seen.contains("`dir/a.txt`"), "{seen}");
    assert_eq!(fs::read_to_string(world.root.join("outside/a.txt")).unwrap(), "after\n");
    assert_eq!(fs::read_to_string(world.root.join("outside/b.txt")).unwrap(), "new\n");
}

#[tokio::test]
async fn two_sessions_in_one_project_take_back_their_own_changes_only() {
    let world = scripted().await;
    world.put("a.txt", "0\n");
    world.put("b.txt", "0\n");
    let mut one = world.open(Person::new()).await;
    let mut two = world.open(Person::new()).await;
    one.turn("call run_command {\"command\":\"echo one > a.txt; echo one > b.txt\"}").await;
    two.turn("call run_command {\"command\":\"echo two > b.txt\"}").await;
    let seen = one.turn("/undo all").await;
    assert!(seen.contains("`a.txt`: restored") && seen.contains("`b.txt`: it has changed since"), "{seen}");
    assert_eq!(world.files(), "a.txt \"0\\n\"\nb.txt \"two\\n\"");
    assert!(two.turn("/undo all").await.contains("`b.txt`: restored"));
    assert_eq!(world.files(), "a.txt \"0\\n\"\nb.txt \"one\\n\"");
}

#[tokio::test]
async fn what_cannot_be_kept_is_said_and_named() {
    let world = scripted().await;
    fs::write(world.project().join("large"), vec![b'x'; 9 << 20]).unwrap();
    world.put(".env", "KEY=1\n");
    let mut chat = world.open(Person::new()).await;
    let seen = chat.turn("call delete_file {\"path\":\"large\"}").await;
    assert!(seen.contains("`/undo` will not be able to restore") && seen.contains("more than 8 MiB"), "{seen}");
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("`large`: what it was before is not kept: it has more than 8 MiB"), "{seen}");
    chat.turn("call run_command {\"command\":\"echo KEY=2 > .env; echo x > y\"}").await;
    let seen = chat.turn("/undo all").await;
    assert!(seen.contains("`.env`: what it was before is not kept: it may hold secrets"), "{seen}");
    assert!(seen.contains("`y`: removed"), "{seen}");
    assert_eq!(world.files(), ".env \"KEY=2\\n\"");
}

#[tokio::test]
async fn an_editor_is_told_what_is_taken_back() {
    let world = scripted().await;
    world.put("a.txt", "one\n");
    let mut chat = world.open(Person { files: true, ..Person::new() }).await;
    chat.turn("call read_file {\"path\":\"a.txt\"}\ncall edit_file {\"path\":\"a.txt\",\"old_text\":\"one\",\"new_text\":\"two\"}")
        .await;
    chat.served.clear();
    let seen = chat.turn("/undo").await;
    assert!(seen.contains("`a.txt`: restored"), "{seen}");
    assert_eq!(world.files(), "a.txt \"one\\n\"");
    assert_eq!(chat.served.last().unwrap(), "write a.txt", "{:?}", chat.served);
}

#[tokio::test]
async fn what_is_kept_is_for_its_user_alone_and_goes_with_the_session() {
    let world = scripted().await;
    world.put("a.txt", "0\n");
    let mut chat = world.open(Person::new()).await;
    chat.turn("call run_command {\"command\":\"echo 1 > a.txt\"}").await;
    let id = chat.session().id().clone();
    let kept = world.config.state_dir.join("agent/checkpoints").join(id.as_str());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept), mode(&kept.join("journal")), mode(&kept.join("contents"))), (0o700, 0o600, 0o700));
    let contents: Vec<_> = fs::read_dir(kept.join("contents")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(contents.len() == 2 && contents.iter().all(|path| mode(path) == 0o600), "{contents:?}");
    chat.connection.delete_session(id).await.unwrap();
    assert!(!kept.exists());
}
