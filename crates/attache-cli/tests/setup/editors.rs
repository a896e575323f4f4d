//! What is written for each editor, and what is left alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use super::{Home, editor, ran, read, support, tree, write};

const OURS: &str = env!("CARGO_BIN_EXE_attache");

/// An editor whose settings are JSON with comments.
struct Row {
    name: &'static str,
    /// Where its settings are, in a home of a test.
    file: &'static str,
    table: &'static str,
}

const JSON: [Row; 3] = [
    Row { name: "zed", file: "config/zed/settings.json", table: "agent_servers" },
    Row { name: "jetbrains", file: ".jetbrains/acp.json", table: "agent_servers" },
    Row { name: "vscode", file: "config/Code/User/settings.json", table: "acp.agents" },
];

/// Files that this program writes, and their editors.
const OWN: [(&str, &str); 3] = [
    ("neovim-avante", "config/nvim/lua/plugins/attache-avante.lua"),
    ("neovim-codecompanion", "config/nvim/lua/plugins/attache-codecompanion.lua"),
    ("emacs", ".emacs.d/attache.el"),
];

fn check_entry(file: &Path, table: &str) {
    let text: String = read(file).lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let settings: Value = serde_json::from_str(&text.replace(",}", "}")).unwrap();
    let entry = &settings[table]["Attaché"];
    assert_eq!((entry["command"].as_str(), entry["args"][0].as_str()), (Some(OURS), Some("agent")), "{text}");
}

#[test]
fn a_file_that_is_not_there_is_made() {
    for row in JSON {
        let home = Home::new();
        ran(&home, &editor(row.name)).check(0, &[], &["--- /dev/null", "wrote `"]);
        check_entry(&home.path(row.file), row.table);
        let before = tree(&home.path(""));
        ran(&home, &editor(row.name)).check(0, &[], &["nothing to change"]);
        assert_eq!(tree(&home.path("")), before);
    }
}

#[test]
fn comments_and_other_agents_stay() {
    for row in JSON {
        let home = Home::new();
        let file = home.path(row.file);
        let table = row.table;
        let before = format!(
            "// mine\n{{\n\t// others\n\t\"{table}\": {{\n\t\t\"X\": {{\"command\": \"x\"}}\n\t}},\n\t\"b\": [1,  2]\n}}\n"
        );
        write(&file, &before);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        ran(&home, &editor(row.name)).check(0, &[], &["as it was: `"]);
        let after = read(&file);
        for kept in ["// mine\n", "\n\t// others\n", "\n\t\t\"X\": {\"command\": \"x\"}", "\n\t\"b\": [1,  2]\n}\n"] {
            assert!(after.contains(kept), "{kept:?} in {after}");
        }
        check_entry(&file, table);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let backup = fs::read_dir(home.path("state/attache/backups")).unwrap().find_map(|entry| {
            let path = entry.unwrap().path();
            (read(&path) == before).then_some(path)
        });
        assert_eq!(fs::metadata(backup.unwrap()).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_cannot_be_changed_is_left_alone_and_shown() {
    type Spoil = fn(&Path);
    let spoil: [(&str, Spoil); 4] = [
        ("line 1 is not JSON with comments", |file| write(file, "{ not json")),
        ("it is not a JSON object", |file| write(file, "[]\n")),
        ("it is read-only", |file| {
            write(file, "{}\n");
            fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
        }),
        ("it is a link to a file that is not there", |file| {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            symlink("nowhere", file).unwrap();
        }),
    ];
    for row in JSON {
        for (why, spoil) in spoil {
            let home = Home::new();
            let file = home.path(row.file);
            spoil(&file);
            let before = tree(file.parent().unwrap());
            // All else is done, and the exit code says that something is left to do.
            let ran = ran(&home, &editor(row.name));
            ran.check(1, &[], &["is left alone", why, "Add this to `", &format!("\"command\": \"{OURS}\"")]);
            assert_eq!(tree(file.parent().unwrap()), before);
            assert_eq!(read(&home.path("config/attache/agent.toml")), "model = \"offline:rules\"\n");
        }
    }
}

#[test]
fn a_link_of_a_dotfiles_manager_stays_a_link() {
    for row in JSON {
        let home = Home::new();
        let (file, real) = (home.path(row.file), home.path("dotfiles/settings"));
        write(&real, "{\n  \"a\": 1\n}\n");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        symlink(&real, &file).unwrap();
        ran(&home, &editor(row.name)).check(0, &[], &[]);
        assert_eq!(fs::read_link(&file).unwrap(), real);
        check_entry(&real, row.table);
        assert!(read(&real).starts_with("{\n  \"a\": 1,\n"));
    }
}

#[test]
fn a_program_on_path_is_named_by_its_name_where_that_is_enough() {
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    symlink(OURS, home.path("bin/attache")).unwrap();
    for row in JSON {
        ran(&home, &editor(row.name)).check(0, &[], &[]);
        let command = match row.name {
            "jetbrains" => home.path("bin/attache").display().to_string(),
            _ => "attache".into(),
        };
        assert!(read(&home.path(row.file)).contains(&format!("\"command\": \"{command}\"")), "{}", row.name);
    }
    // Another program of that name is none of ours.
    fs::remove_file(home.path("bin/attache")).unwrap();
    home.install("attache");
    ran(&home, &editor("zed")).check(0, &[], &["+      \"command\": \""]);
    check_entry(&home.path("config/zed/settings.json"), "agent_servers");
}

#[test]
fn editors_whose_settings_are_a_program_get_a_file_of_their_own() {
    for (name, file) in OWN {
        let home = Home::new();
        // Neovim with lazy.nvim, and a directory of plugins.
        write(&home.path("config/nvim/lazy-lock.json"), "{}");
        write(&home.path("config/nvim/lua/plugins/mine.lua"), "return {}\n");
        let file = home.path(file);
        let lines = if name == "emacs" { &["Add this to `", "(load (locate-user-emacs-file"][..] } else { &[] };
        ran(&home, &editor(name)).check(0, &[], &[&["wrote `"], lines].concat());
        assert!(read(&file).contains(&format!("{OURS:?}")) && read(&file).contains("agent"), "{}", read(&file));
        // An older one of ours is written anew, and one of somebody else is not.
        let mark = read(&file).lines().next().unwrap().to_owned();
        write(&file, &format!("{mark}\nold\n"));
        ran(&home, &editor(name)).check(0, &[], &["-old"]);
        write(&file, "mine\n");
        ran(&home, &editor(name)).check(1, &[], &["somebody else wrote it", "agent"]);
        assert_eq!(read(&file), "mine\n");
    }
}

#[test]
fn where_no_file_would_be_read_the_lines_are_shown() {
    let home = Home::new();
    for (name, line) in [("neovim-avante", "acp_providers"), ("neovim-codecompanion", "formatted_name")] {
        ran(&home, &editor(name)).check(
            0,
            &[],
            &["Add this to what you give to `require(", "config/nvim/init.lua`", line],
        );
    }
    assert!(!home.path("config/nvim").exists());
    write(&home.path("config/doom/config.el"), ";;; mine\n");
    ran(&home, &editor("emacs")).check(0, &[], &["config/doom/config.el`", "agent-shell-make-agent-config"]);
    assert!(!home.path(".emacs.d").exists());
    // Emacs loads it already.
    let home = Home::new();
    write(&home.path(".emacs.d/init.el"), "(load (locate-user-emacs-file \"attache.el\") t)\n");
    let done = ran(&home, &editor("emacs"));
    assert!(done.code == 0 && !done.err.contains("Add this"), "{}", done.err);
    ran(&home, &editor("emacs")).check(0, &[], &["nothing to change"]);
}

#[test]
fn several_editors_are_set_up_at_once_and_none_is_none() {
    let home = Home::new();
    let options = ["--model", "offline", "--editor", "zed", "--editor", "vscode", "--yes", "--no-test"];
    ran(&home, &options).check(0, &[], &["in Zed,", "in VS Code,"]);
    assert!(home.path(JSON[0].file).exists() && home.path(JSON[2].file).exists());
    let home = Home::new();
    ran(&home, &editor("none")).check(0, &[], &[]);
    assert_eq!(tree(&home.path("config")).len(), 1);
    support::run(super::setup(&home, &editor("notepad"))).check(2, &[], &["invalid value 'notepad'", "jetbrains"]);
}
