//! Zed: `agent_servers` in `settings.json`.

use std::path::PathBuf;

use super::{Editor, Places, Plan, Program, is_installed, json, json_file};

pub(super) const ROW: Editor = Editor {
    name: "zed",
    title: "Zed",
    is_here: |places| directory(places).is_dir() || ["zed", "zeditor"].into_iter().any(is_installed),
    plan,
    begin: "in Zed, open the agent panel, press +, and choose Attaché",
};

fn directory(places: &Places) -> PathBuf {
    if cfg!(windows) { places.config.join("Zed") } else { places.dot_config("zed") }
}

fn plan(places: &Places, program: &Program) -> Plan {
    let wanted = json::Wanted { table: "agent_servers", kind: Some("custom"), command: &program.command };
    json_file(directory(places).join("settings.json"), &wanted)
}
