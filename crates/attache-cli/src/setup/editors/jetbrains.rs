//! JetBrains IDEs: `~/.jetbrains/acp.json`, which all of them read.

use super::{Editor, Places, Plan, Program, json, json_file};

pub(super) const ROW: Editor = Editor {
    name: "jetbrains",
    title: "JetBrains IDEs (AI Assistant)",
    is_here: |places| places.home.join(".jetbrains").is_dir() || places.config.join("JetBrains").is_dir(),
    plan,
    begin: "in the IDE, open AI Chat, and choose Attaché among the agents",
};

/// An IDE that is started from the desktop has another PATH than a shell, so it gets the whole path.
fn plan(places: &Places, program: &Program) -> Plan {
    let wanted = json::Wanted { table: "agent_servers", kind: None, command: &program.path };
    json_file(places.home.join(".jetbrains/acp.json"), &wanted)
}
