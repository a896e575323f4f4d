//! Neovim, with avante.nvim or CodeCompanion. Its settings are a program, so a file of our own is put where lazy.nvim finds
//! it; elsewhere a person has to add some lines.

use std::path::PathBuf;

use super::{ByHand, Editor, MARK, Places, Plan, Program, is_installed, own_file, quoted};

pub(super) const AVANTE: Editor = Editor {
    name: "neovim-avante",
    title: "Neovim with avante.nvim",
    is_here: |places| is_here(places, "avante.nvim"),
    plan: |places, program| plan(places, program, "avante", avante),
    begin: "in Neovim, `:AvanteSwitchProvider attache`, then `:AvanteAsk`",
};

pub(super) const CODE_COMPANION: Editor = Editor {
    name: "neovim-codecompanion",
    title: "Neovim with CodeCompanion",
    is_here: |places| is_here(places, "codecompanion.nvim"),
    plan: |places, program| plan(places, program, "codecompanion", code_companion),
    begin: "in Neovim, `:CodeCompanionChat adapter=attache`",
};

fn directory(places: &Places) -> PathBuf {
    match std::env::var_os("LOCALAPPDATA").filter(|_| cfg!(windows)) {
        Some(local) => PathBuf::from(local).join("nvim"),
        None => places.dot_config("nvim"),
    }
}

/// Whether Neovim has a plugin, as far as lazy.nvim wrote it down; without that file, whether there is Neovim at all.
fn is_here(places: &Places, plugin: &str) -> bool {
    let lock = std::fs::read_to_string(directory(places).join("lazy-lock.json"));
    match lock {
        Ok(lock) => lock.contains(&format!("\"{plugin}\"")),
        Err(_) => directory(places).is_dir() && is_installed("nvim"),
    }
}

fn plan(places: &Places, program: &Program, plugin: &str, lua: fn(&Program) -> [String; 2]) -> Plan {
    let directory = directory(places);
    let [repository, options] = lua(program);
    // lazy.nvim reads every file of this directory where its settings say so, which its own examples do.
    let plugins = directory.join("lua/plugins");
    if directory.join("lazy-lock.json").is_file() && plugins.is_dir() {
        // What is optional installs nothing: it adds to a plugin that is there.
        let text = format!(
            "-- {MARK}: adds Attaché to {plugin}.\nreturn {{\n  {},\n  optional = true,\n  opts = {options},\n}}\n",
            quoted(&repository)
        );
        return own_file(plugins.join(format!("attache-{plugin}.lua")), text, None);
    }
    let place =
        format!("what you give to `require({}).setup` in `{}`", quoted(plugin), directory.join("init.lua").display());
    let by_hand = ByHand { place, snippet: options.replace("\n  ", "\n") + "\n", refused: None };
    Plan { path: directory.join("init.lua"), change: None, by_hand: Some(by_hand) }
}

/// The repository of the plugin, and its options.
fn avante(program: &Program) -> [String; 2] {
    let options = format!(
        "{{\n    provider = \"attache\",\n    acp_providers = {{\n      attache = {{ command = {}, args = {{ \"agent\" }} }},\n    }},\n  }}",
        quoted(&program.command)
    );
    ["yetone/avante.nvim".into(), options]
}

/// It has no adapter that only takes a command; the one for OpenCode adds nothing of its own to the protocol.
fn code_companion(program: &Program) -> [String; 2] {
    let options = format!(
        "{{
    adapters = {{
      acp = {{
        attache = function()
          return require(\"codecompanion.adapters\").extend(\"opencode\", {{
            name = \"attache\",
            formatted_name = \"Attaché\",
            commands = {{ default = {{ {}, \"agent\" }} }},
          }})
        end,
      }},
    }},
  }}",
        quoted(&program.command)
    );
    ["olimorris/codecompanion.nvim".into(), options]
}
