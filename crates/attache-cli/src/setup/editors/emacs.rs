//! Emacs with agent-shell. Its settings are a program, so a file of our own is put beside them; a person adds the line that
//! loads it.

use std::path::PathBuf;

use super::{AGENT, ByHand, Editor, MARK, Places, Plan, Program, is_installed, own_file, place_of, quoted};

pub(super) const ROW: Editor = Editor {
    name: "emacs",
    title: "Emacs with agent-shell",
    is_here: |places| is_installed("emacs") || directory(places).is_dir(),
    plan,
    begin: "in Emacs, M-x agent-shell, and choose Attaché",
};

/// Where Emacs keeps its things: `~/.emacs.d`, unless there is only the newer place.
fn directory(places: &Places) -> PathBuf {
    let old = if cfg!(windows) { places.config.join(".emacs.d") } else { places.home.join(".emacs.d") };
    let new = places.dot_config("emacs");
    if !old.is_dir() && !places.home.join(".emacs").exists() && new.is_dir() { new } else { old }
}

fn plan(places: &Places, program: &Program) -> Plan {
    let lisp = lisp(program);
    // The directory of Doom is a checkout of its own; its settings are elsewhere, and it loads nothing else from there.
    let doom = [places.home.join(".doom.d"), places.dot_config("doom")].map(|directory| directory.join("config.el"));
    if let Some(path) = doom.into_iter().find(|path| path.is_file()) {
        let by_hand = ByHand { place: place_of(&path), snippet: lisp, refused: None };
        return Plan { path, change: None, by_hand: Some(by_hand) };
    }
    let directory = directory(places);
    let init = match places.home.join(".emacs") {
        path if path.is_file() => path,
        _ => directory.join("init.el"),
    };
    let is_loaded = std::fs::read_to_string(&init).is_ok_and(|text| text.contains(LOAD));
    let by_hand = ByHand { place: place_of(&init), snippet: format!("{LOAD}\n"), refused: None };
    own_file(directory.join("attache.el"), lisp, (!is_loaded).then_some(by_hand))
}

/// The line that loads the file.
const LOAD: &str = "(load (locate-user-emacs-file \"attache.el\") t)";

fn lisp(program: &Program) -> String {
    format!(
        ";;; attache.el --- {MARK} -*- lexical-binding: t; -*-

(with-eval-after-load 'agent-shell
  (add-to-list
   'agent-shell-agent-configs
   (agent-shell-make-agent-config
    :identifier 'attache
    :mode-line-name {name}
    :buffer-name {name}
    :shell-prompt {prompt}
    :shell-prompt-regexp {prompt}
    :client-maker (lambda (buffer)
                    (acp-make-client :context-buffer buffer
                                     :command {command}
                                     :command-params '(\"agent\"))))))

;;; attache.el ends here
",
        name = quoted(AGENT),
        prompt = quoted(&format!("{AGENT}> ")),
        command = quoted(&program.command),
    )
}
