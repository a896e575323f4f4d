//! What goes wrong in the middle: nothing is half written.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{Home, KEY, setup, support, tree, with_key, write};

const OPTIONS: [&str; 8] = ["--model", "openai", "--key-from", "MY_KEY", "--editor", "zed", "--yes", "--no-test"];

/// A home with settings that are there, and what is in it.
fn home() -> Home {
    let home = Home::new();
    write(&home.path("config/attache/agent.toml"), "mode = 'code'\n");
    write(&home.path("config/zed/settings.json"), "{ \"theme\": \"One\" }\n");
    home
}

/// The same program, as a process that may not write files of more than so many blocks.
fn limited(home: &Home, blocks: u64) -> Command {
    let ours = setup(home, &OPTIONS);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]).arg(ours.get_program());
    command.args(ours.get_args()).env_clear().current_dir(home.0.path()).stdin(std::process::Stdio::null());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let home = home();
    let before = tree(&home.path("config"));
    let ran = support::run(limited(&home, 0));
    ran.check(2, &[], &["so nothing was changed"]);
    assert_eq!(tree(&home.path("config")), before);
    assert!(with_key(&home).is_empty());
}

#[test]
fn a_key_that_cannot_be_kept_takes_the_changes_back() {
    let home = home();
    // Where the key would be put together first.
    std::fs::create_dir(home.path("config/attache/keys.lock")).unwrap();
    let before = tree(&home.path("config"));
    let ran = support::run(setup(&home, &OPTIONS));
    ran.check(2, &[], &["nothing was changed", "keys.json"]);
    assert_eq!(tree(&home.path("config")), before);
    assert!(!ran.err.contains(KEY));
}

#[test]
fn a_file_where_a_directory_would_be_is_left_alone() {
    let home = home();
    write(&home.path(".jetbrains"), "not a directory\n");
    let ran = support::run(setup(&home, &[&OPTIONS[..], &["--editor", "jetbrains"]].concat()));
    ran.check(1, &[], &["is left alone", "Add this to `", "in Zed,"]);
    assert_eq!(super::read(&home.path(".jetbrains")), "not a directory\n");
    assert!(super::read(&home.path("config/zed/settings.json")).contains("Attaché"));
}

#[test]
fn a_dry_run_that_cannot_be_printed_says_so() {
    let home = home();
    let mut command = setup(&home, &["--model", "offline", "--editor", "none", "--dry-run"]);
    command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    // SAFETY: `setsid` may be called between fork and exec. It takes the terminal away that the test may have.
    unsafe { command.pre_exec(|| if libc::setsid() < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }) };
    let output = command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
}
