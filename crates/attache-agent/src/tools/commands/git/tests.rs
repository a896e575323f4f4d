#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command as Process;
use std::sync::Arc;

use super::*;
use crate::cut::Spill;

/// Longer than any machine takes.
const LONG: Duration = Duration::from_secs(60);

struct Repository {
    directory: tempfile::TempDir,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("project")).unwrap();
        let repository = Repository { directory };
        repository.git(&["init", "--quiet", "--initial-branch=topic"]);
        repository
    }

    fn top(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("project")
    }

    fn git(&self, words: &[&str]) {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
        let mut git = Process::new("git");
        git.args(settings).args(words).current_dir(self.top()).env_remove("GIT_DIR");
        assert!(git.status().unwrap().success(), "{words:?}");
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.top().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn commands(&self, cwd: &Path) -> Commands {
        let spill = Arc::new(Spill::new(self.directory.path().join("spill")));
        Commands::new(Setup::new(cwd, spill))
    }

    async fn told(&self, cwd: &Path) -> Option<String> {
        self.commands(cwd).git_state(LONG).await.map(|state| state.words())
    }
}

/// Whether git is here, and can be confined.
fn can_run() -> bool {
    let has_git = Process::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    let directory = tempfile::tempdir().unwrap();
    let setup = Setup::new(directory.path(), Arc::new(Spill::new(directory.path().join("spill"))));
    let can = has_git && sandbox(&setup).is_some();
    if !can {
        eprintln!("git is not here, or cannot be confined on this machine");
    }
    can
}

#[test]
fn a_status_is_read() {
    let told = |text: &str| GitState::parse(text, "src/").words();
    assert_eq!(told("# branch.oid 1\n# branch.head topic\n"), "clean");
    assert_eq!(
        told("# branch.ab +2 -1\n1 M. N... 1 1 1 a b src/a b.rs\n1 .M N... 1 1 1 a b c.rs\n? new/\n"),
        "1 staged, 1 changed, 1 untracked (a b.rs, c.rs, new/); 2 ahead of its upstream; 1 behind it"
    );
    assert_eq!(told("1 MM N... 1 1 1 a b d.rs\n"), "1 staged, 1 changed (d.rs)");
    assert_eq!(told("2 R. N... 1 1 1 a b R100 new.rs\told.rs\n"), "1 staged (new.rs)");
    assert_eq!(told("u UU N... 1 1 1 1 a b c both.rs\n"), "1 in conflict (both.rs)");
    // Secrets are nobody's business, and what is no status is none.
    assert_eq!(told("? .env\n? id_rsa\nfatal: no\n1\n1 M\n\n?\n"), "clean");
    assert_eq!(told("? a\u{1b}[31m\n"), format!("1 untracked ({})", visible("a\u{1b}[31m")));
    let many: String = (0..5000).map(|number| format!("? file-{number}\n")).collect();
    let told = told(&many);
    assert!(told.starts_with("5000 untracked (file-0, ") && told.ends_with("file-7, …)"), "{told}");
}

#[test]
fn filters_that_cannot_be_told_are_no_filters() {
    assert_eq!(filters("").unwrap(), [] as [&str; 0]);
    assert_eq!(
        filters("filter.a.b.clean\0filter.a.b.process\0filter.c=d.clean\0").unwrap(),
        ["filter.a.b", "filter.c=d"]
    );
    assert_eq!(filters("filter.\u{fffd}.clean\0"), None);
    let many: String = (0..100).map(|number| format!("filter.{number}.clean\0")).collect();
    assert_eq!(filters(&many), None);
}

#[tokio::test]
async fn what_has_changed_is_counted_and_named() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    assert_eq!(repository.told(&repository.top()).await.unwrap(), "clean");
    repository.put("src/a.rs", "1");
    repository.put("b.rs", "1");
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "--message", "first"]);
    repository.put("src/a.rs", "2");
    repository.put("c.rs", "1");
    repository.git(&["add", "c.rs"]);
    repository.put("src/new.rs", "1");
    repository.put(".env", "KEY=1");
    let told = repository.told(&repository.top()).await.unwrap();
    assert_eq!(told, "1 staged, 1 changed, 1 untracked (c.rs, src/a.rs, src/new.rs)");
    // What is beside the session's directory is not told.
    let told = repository.told(&repository.top().join("src")).await.unwrap();
    assert_eq!(told, "1 changed, 1 untracked (a.rs, new.rs)");
}

/// A repository that would have git run programs: when files are looked at, compared, and fetched.
#[tokio::test]
async fn nothing_runs_that_a_repository_names() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.put("a.txt", "1");
    repository.put("sub.evil", "1");
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "--message", "first"]);
    let outside = repository.directory.path().join("outside");
    let inside = repository.top().join("inside");
    let script = repository.top().join("evil.sh");
    // Nothing could be written anyway, so whatever runs also ends git, which is seen.
    let (out, within) = (outside.display(), inside.display());
    fs::write(&script, format!("#!/bin/sh\ntouch {out} {within} /tmp/attache-git-evil\nkill -9 $PPID\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let script = script.to_str().unwrap();
    repository.put(".git/info/attributes", "*.txt filter=evil\n*.evil filter=more\n");
    for key in ["core.fsmonitor", "filter.evil.clean", "filter.more.process", "core.sshCommand", "core.pager"] {
        repository.git(&["config", key, script]);
    }
    for (key, value) in [("filter.evil.required", "true"), ("core.hooksPath", "hooks"), ("diff.external", script)] {
        repository.git(&["config", key, value]);
    }
    repository.put("hooks/post-index-change", &fs::read_to_string(script).unwrap());
    repository.put(".gitignore", "hooks\nevil.sh\n");
    // Others of the same length, so that they have to be compared.
    repository.put("a.txt", "2");
    repository.put("sub.evil", "2");
    let told = repository.told(&repository.top()).await.unwrap();
    assert_eq!(told, "2 changed, 1 untracked (a.txt, sub.evil, .gitignore)");
    for left in [outside, inside, PathBuf::from("/tmp/attache-git-evil")] {
        assert!(!left.exists(), "{}", left.display());
    }
}

/// What cannot be switched off runs where it can do nothing.
#[tokio::test]
async fn nothing_can_be_changed_where_git_runs() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    let commands = repository.commands(&repository.top());
    let line = "touch inside .git/inside ../outside; echo > /dev/tcp/127.0.0.1/1; echo ran";
    let invocation = Invocation::new(Command::Line(line.into()), repository.top());
    let run = commands.starter().launch(&invocation, OUTPUT, sandbox(&commands.setup).as_ref()).unwrap();
    run.wait().await;
    assert!(run.output().text.ends_with("ran\n"), "{:?}", run.output());
    for left in ["inside", ".git/inside", "../outside"] {
        assert!(!repository.top().join(left).exists(), "{left}");
    }
}

/// What is no repository of the person's own tells nothing of what is elsewhere.
#[tokio::test]
async fn a_repository_that_leads_elsewhere_is_left_out() {
    if !can_run() {
        return;
    }
    let other = Repository::new();
    other.put("private.txt", "1");
    other.git(&["add", "."]);
    let repository = Repository::new();
    let git = repository.top().join(".git");
    repository.put(".git/commondir", other.top().join(".git").to_str().unwrap());
    assert_eq!(repository.told(&repository.top()).await, None);
    fs::remove_file(git.join("commondir")).unwrap();
    // Settings can lead elsewhere, too; there is one working directory, whatever they say.
    repository.git(&["config", "core.worktree", other.top().to_str().unwrap()]);
    assert_eq!(repository.told(&repository.top()).await.unwrap(), "clean");
    fs::rename(&git, repository.top().join("moved")).unwrap();
    std::os::unix::fs::symlink(other.top().join(".git"), &git).unwrap();
    assert_eq!(repository.told(&repository.top()).await, None);
    fs::remove_file(&git).unwrap();
    fs::write(&git, format!("gitdir: {}\n", other.top().join(".git").display())).unwrap();
    assert_eq!(repository.told(&repository.top()).await, None);
    fs::remove_file(&git).unwrap();
    fs::create_dir(&git).unwrap();
    assert_eq!(repository.told(&repository.top()).await, None, "it is empty");
}

#[tokio::test]
async fn a_worktree_is_told_if_both_sides_name_each_other() {
    if !can_run() {
        return;
    }
    let repository = Repository::new();
    repository.put("a.txt", "1");
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "--message", "first"]);
    repository.git(&["worktree", "add", "--quiet", "../second"]);
    let second = repository.top().with_file_name("second");
    fs::write(second.join("a.txt"), "22").unwrap();
    assert_eq!(repository.told(&second).await.unwrap(), "1 changed (a.txt)");
    assert_eq!(repository.told(&repository.top()).await.unwrap(), "clean");
    // Somebody else's directory that claims to be it.
    let forged = repository.top().with_file_name("forged");
    fs::create_dir(&forged).unwrap();
    fs::copy(second.join(".git"), forged.join(".git")).unwrap();
    assert_eq!(repository.told(&forged).await, None);
}

#[tokio::test]
async fn git_that_takes_too_long_is_left_out() {
    let repository = Repository::new();
    let commands = repository.commands(&repository.top());
    assert_eq!(commands.git_state(Duration::ZERO).await, None);
}
