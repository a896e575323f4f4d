//! VS Code with the extension "ACP Client" (`formulahendry.acp-client`): `acp.agents` in `settings.json`.

use std::path::PathBuf;

use super::{Editor, Places, Plan, Program, is_installed, json, json_file};

pub(super) const ROW: Editor = Editor {
    name: "vscode",
    title: "VS Code with the extension ACP Client",
    is_here: |places| directory(places).is_dir() || is_installed("code"),
    plan,
    begin: "in VS Code, `code --install-extension formulahendry.acp-client` if it is not there yet; then open ACP in the \
            activity bar, and choose Attaché",
};

fn directory(places: &Places) -> PathBuf {
    match cfg!(target_os = "macos") {
        true => places.home.join("Library/Application Support/Code/User"),
        false => places.config.join("Code/User"),
    }
}

/// The extension's own list of agents stays: VS Code merges what is set into it.
fn plan(places: &Places, program: &Program) -> Plan {
    let wanted = json::Wanted { table: "acp.agents", kind: None, command: &program.command };
    json_file(directory(places).join("settings.json"), &wanted)
}
