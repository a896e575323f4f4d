//! What actions do, which keys are bound to.

use std::time::Instant;

use attache::model::config::{ConfigCategory, ConfigId, ConfigSetting};
use attache_tui::dialog::{ConfirmDialog, HelpDialog, OptionsDialog, OptionsReply, next_mode};
use attache_tui::keymap::Action;
use attache_tui::transcript::Scroll;

use super::{App, Confirmed, Deed, Outside, Overlay, TWICE};
use crate::chat::tab::Phase;
use crate::chat::worker::{Begin, Order, Plan};
use crate::event::Level;

impl App {
    pub(super) fn close_or_ask(&mut self, place: usize) {
        let Some(tab) = self.tabs.get(place) else { return };
        let id = tab.id;
        let has_written = !tab.composer.is_empty() || !tab.composer.queue.is_empty();
        let text = match (tab.is_working(), has_written) {
            (false, false) => return self.close(id),
            (true, _) => "The agent is still working. Its turn would be cancelled.",
            (false, true) => "What you wrote and did not send would be lost.",
        };
        let dialog = ConfirmDialog::new("Close the session?", text, "close it");
        self.overlay = Some(Overlay::Confirm(dialog, Confirmed::CloseTab(id), Instant::now()));
    }

    /// Restarts an agent. One that works, and was not told to stop, is asked about.
    fn restart_or_ask(&mut self, place: usize) {
        let Some(tab) = self.tabs.get(place) else { return };
        if !tab.is_working() || tab.phase == Phase::Cancelling {
            return self.restart(place);
        }
        let text = "The agent is still working. Its turn would be cancelled.";
        let dialog = ConfirmDialog::new("Restart the agent?", text, "restart it");
        self.overlay = Some(Overlay::Confirm(dialog, Confirmed::Restart(tab.id), Instant::now()));
    }

    pub(super) fn set(&mut self, reply: OptionsReply) {
        let Some(tab) = self.tabs.get(self.current) else { return };
        match reply {
            OptionsReply::Set { id, value } => tab.order(Order::SetOption(id, value)),
            // Modes of version 1 are options here, under the name that the library gives them.
            OptionsReply::SetMode(mode) => {
                tab.order(Order::SetOption(ConfigId::from("mode"), ConfigSetting::Id(mode.as_str().into())));
            }
            OptionsReply::Closed => {}
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Help => self.overlay = Some(Overlay::Help(HelpDialog::new(&self.keys))),
            Action::Redraw => self.deeds.push(Deed::Redraw),
            Action::ToggleMouse => self.deeds.push(Deed::ToggleMouse),
            Action::Suspend => self.suspend(),
            Action::Sessions => {
                if let Some(tab) = self.tab() {
                    tab.order(Order::ListSessions);
                }
                self.choose();
            }
            Action::NewSession => {
                let plan = self.tabs.get(self.current).map_or(&self.plan, |tab| &tab.plan);
                let plan = Plan { begin: Begin::New, ..plan.clone() };
                self.open(plan);
            }
            Action::NextTab => self.show((self.current + 1) % self.tabs.len().max(1)),
            Action::PreviousTab => self.show((self.current + self.tabs.len().max(1) - 1) % self.tabs.len().max(1)),
            Action::PasteImage => self.deeds.push(Deed::PasteImage),
            Action::FocusTranscript => {
                self.is_in_transcript = true;
                // Marks the entry that keys act on.
                if let Some(tab) = self.tab() {
                    tab.transcript.scroll(Scroll::NextEntry);
                }
            }
            Action::FocusComposer => self.is_in_transcript = false,
            Action::Quit => self.quit(),
            Action::RestartAgent => self.restart_or_ask(self.current),
            Action::ShowLog => self.show_last_words(),
            Action::TogglePlan => {
                self.is_plan_shown = !self.is_plan_shown;
                for tab in &mut self.tabs {
                    tab.transcript.set_plan_shown(self.is_plan_shown);
                }
            }
            action => self.act_on_tab(action),
        }
    }

    /// Goes back to the shell until `fg`.
    pub(in crate::chat) fn suspend(&mut self) {
        match cfg!(windows) {
            // No shell there would let us go on.
            true => self.toast(Level::Info, "programs cannot be suspended on Windows"),
            false => self.deeds.push(Deed::Outside(Outside::Suspend)),
        }
    }

    pub(super) fn quit(&mut self) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return self.deeds.push(Deed::Quit) };
        if !self.is_in_transcript && !tab.composer.is_empty() {
            tab.composer.discard();
            if tab.is_working() {
                return self.toast(Level::Info, "cleared; up brings it back");
            }
            self.quit_pressed = Some(Instant::now());
            return self.toast(Level::Info, "cleared, up brings it back; once more leaves");
        }
        if tab.is_working() && !matches!(tab.phase, Phase::Cancelling) {
            tab.cancel();
            self.quit_pressed = Some(Instant::now());
            return self.toast(Level::Info, "cancelling; once more leaves");
        }
        if self.quit_pressed.is_some_and(|pressed| pressed.elapsed() < TWICE) {
            return self.leave();
        }
        self.quit_pressed = Some(Instant::now());
        self.toast(Level::Info, "once more leaves");
    }

    /// Leaves. If an agent works that was not told to stop, it is asked about.
    fn leave(&mut self) {
        if !self.tabs.iter().any(|tab| tab.is_working() && tab.phase != Phase::Cancelling) {
            return self.deeds.push(Deed::Quit);
        }
        let text = "An agent is still working. Its turn would be cancelled.";
        let dialog = ConfirmDialog::new("Leave?", text, "leave");
        self.is_overlay_first = true;
        self.overlay = Some(Overlay::Confirm(dialog, Confirmed::Quit, Instant::now()));
    }

    pub(super) fn act_on_tab(&mut self, action: Action) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        match action {
            Action::Send | Action::Steer => {
                let text = tab.composer.text();
                if matches!(text.trim(), "/quit" | "/exit") && !tab.has_command(text.trim().trim_start_matches('/')) {
                    tab.composer.discard();
                    return self.leave();
                }
                let mistake = tab.send(action == Action::Steer);
                let is_queued = action == Action::Steer && tab.is_working() && !tab.can_steer;
                match mistake {
                    Some(mistake) => self.toast(Level::Error, mistake),
                    None if is_queued && !text.trim().is_empty() => {
                        self.toast(
                            Level::Info,
                            "this agent takes no message while it works; it waits for the end of the turn",
                        );
                    }
                    None => {}
                }
                if !text.trim().is_empty() {
                    let cwd = self.plan.cwd.clone();
                    self.history.add(&cwd, &text);
                    if let Some(tab) = self.tabs.get_mut(self.current) {
                        tab.composer.set_history(self.history.prompts.clone());
                    }
                }
            }
            Action::Newline => tab.composer.insert_newline(),
            Action::Cancel if tab.phase == Phase::Cancelling => {
                self.toast(Level::Warning, "the agent has not stopped yet; F5 restarts it and resumes the session");
            }
            Action::Cancel => tab.cancel(),
            Action::OpenEditor => {
                let text = tab.composer.text_to_edit();
                self.deeds.push(Deed::Outside(Outside::EditMessage(text)));
            }
            Action::HistorySearch => {
                self.is_in_transcript = false;
                tab.composer.start_history_search();
            }
            Action::AttachFile => {
                tab.composer.insert_text("@");
                self.offer();
            }
            Action::ExpandPaste => drop(tab.composer.expand_paste()),
            Action::EditQueue => tab.composer.queue.focus(),
            Action::ScrollUp => tab.transcript.scroll(Scroll::Lines(-1)),
            Action::ScrollDown => tab.transcript.scroll(Scroll::Lines(1)),
            Action::PageUp => tab.transcript.scroll(Scroll::Pages(-1)),
            Action::PageDown => tab.transcript.scroll(Scroll::Pages(1)),
            Action::ScrollTop => tab.transcript.scroll(Scroll::Top),
            Action::ScrollBottom => tab.transcript.scroll(Scroll::Bottom),
            Action::PreviousEntry => tab.transcript.scroll(Scroll::PreviousEntry),
            Action::NextEntry => tab.transcript.scroll(Scroll::NextEntry),
            Action::ToggleFold => tab.transcript.toggle_fold(),
            Action::UnfoldAll => tab.transcript.unfold_all(),
            Action::FoldAll => tab.transcript.fold_all(),
            Action::OpenLocation => {
                let place = tab.transcript.focused();
                let location = place.and_then(|place| tab.transcript.location_of(&tab.view, place));
                match location {
                    Some(location) => {
                        let path = tab.plan.cwd.join(&location.path);
                        self.deeds.push(Deed::Outside(Outside::EditFile(path, location.line)));
                    }
                    None => self.toast(Level::Info, "no file is named here"),
                }
            }
            Action::CopyEntry => {
                if let Some(place) = tab.transcript.focused() {
                    let text = tab.transcript.text_of(&tab.view, place);
                    self.copy(text);
                }
            }
            Action::KillTerminal => match (tab.transcript.running_terminal(&tab.view), tab.cancellable_tool()) {
                (Some(terminal), _) => tab.order(Order::Kill(terminal)),
                (None, Some(call)) => tab.order(Order::CancelTool(call)),
                (None, None) => self.toast(Level::Info, "nothing runs here that can be ended alone; esc ends the turn"),
            },
            Action::CycleMode => {
                let next = next_mode(&tab.view.options, &tab.view.modes, tab.view.current_mode.as_ref());
                match next {
                    Some((reply, words)) => {
                        self.set(reply);
                        self.toast(Level::Info, format!("mode: {words}"));
                    }
                    None => self.toast(Level::Info, "this agent has no modes"),
                }
            }
            Action::Options => {
                let dialog = OptionsDialog::new(&tab.view.options, &tab.view.modes, tab.view.current_mode.as_ref());
                self.overlay = Some(Overlay::Options(dialog.into()));
            }
            Action::Models => {
                let mode = tab.view.current_mode.as_ref();
                let dialog =
                    OptionsDialog::of_category(&ConfigCategory::Model, &tab.view.options, &tab.view.modes, mode);
                match dialog {
                    Some(dialog) => self.overlay = Some(Overlay::Options(dialog.into())),
                    None => self.toast(Level::Info, "this agent offers no choice of models"),
                }
            }
            Action::CloseTab => self.close_or_ask(self.current),
            Action::Fork => {
                let can_fork = tab.capabilities.as_ref().and_then(|offered| offered.session.as_ref());
                match (&tab.session, can_fork.is_some_and(|session| session.fork.is_some())) {
                    (Some(session), true) => {
                        let plan = Plan { begin: Begin::Fork(session.clone()), ..tab.plan.clone() };
                        let (view, title) = (tab.view.clone(), tab.title());
                        self.open(plan);
                        if let Some(tab) = self.tab() {
                            tab.show_copy(view, &title);
                        }
                    }
                    _ => self.toast(Level::Info, "this agent cannot fork sessions"),
                }
            }
            Action::Undo => match tab.has_command("undo") && tab.phase == Phase::Idle {
                true => drop(tab.send_command("/undo")),
                false => self.toast(Level::Info, "this agent has no command to undo a turn"),
            },
            _ => {}
        }
    }
}
