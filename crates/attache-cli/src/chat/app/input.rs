//! What keys, pastes and the mouse mean, wherever they go.

use std::time::{Duration, Instant};

use attache_tui::composer::{
    Attachment, AttachmentSource, Completion, CompletionKind, ComposerReply, Pasted, QueueReply,
};
use attache_tui::dialog::{ConfirmDialog, GRACE, OptionsReply, TextReply};
use attache_tui::keymap::{Action, Context};
use attache_tui::picker::PickerReply;
use attache_tui::transcript::Scroll;
use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};

use super::{App, Confirmed, Deed, Overlay, Surface};
use crate::chat::catalog::Choice;
use crate::chat::mentions::Files;
use crate::chat::tab::QuestionDialog;
use crate::chat::worker::WorkerId;
use crate::event::Level;

/// How long files that were offered for an `@` stay fresh.
const FILES_FRESH: Duration = Duration::from_secs(10);

/// How long after the start keys may come that were typed before it.
const EARLY: Duration = Duration::from_millis(300);

impl App {
    /// Takes a key, a paste, the mouse or another size in.
    pub(in crate::chat) fn input(&mut self, input: Input) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => {
                // What was typed before the screen was taken had its Enter turned into another key by the terminal.
                let is_early = self.began.elapsed() < EARLY;
                let is_line_feed = key.code == KeyCode::Char('j') && key.modifiers == KeyModifiers::CONTROL;
                self.key(if is_early && is_line_feed { KeyEvent::from(KeyCode::Enter) } else { key });
            }
            Input::Paste(text) => self.paste(&text),
            Input::FocusGained => {
                self.is_focused = true;
                if let Some(tab) = self.tab() {
                    tab.is_unread = false;
                }
            }
            Input::FocusLost => self.is_focused = false,
            Input::Mouse(mouse) => {
                let by = match mouse.kind {
                    MouseEventKind::ScrollUp => -3,
                    MouseEventKind::ScrollDown => 3,
                    _ => return,
                };
                if let Some(tab) = self.tab() {
                    tab.transcript.scroll(Scroll::Lines(by));
                }
            }
            _ => {}
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(place) = self.asking() {
            let asked = self.tabs[place].questions.front_mut();
            let Some(asked) = asked.filter(|asked| asked.shown.is_some_and(|shown| shown.elapsed() >= GRACE)) else {
                return self.swallow(place);
            };
            match &mut asked.dialog {
                QuestionDialog::Permission(dialog, _) => dialog.handle_paste(text),
                QuestionDialog::Form(dialog, _) => dialog.handle_paste(text),
                QuestionDialog::Url(..) => {}
            }
            return;
        }
        if !matches!(self.surface, Surface::Conversation | Surface::Overlay) {
            return;
        }
        self.typed = Some(Instant::now());
        match &mut self.overlay {
            Some(Overlay::Choices(picker)) => return picker.handle_paste(text),
            Some(Overlay::Options(dialog)) => return dialog.handle_paste(text),
            Some(_) => return,
            None => {}
        }
        self.is_in_transcript = false;
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        match tab.composer.handle_paste(text) {
            Pasted::MaybeImagePath(path) => {
                let full = tab.plan.cwd.join(&path);
                match image_type(&full).filter(|_| full.is_file()) {
                    Some(mime_type) => {
                        let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                        let source = AttachmentSource::File(full);
                        tab.composer.attach(Attachment { name, mime_type: mime_type.into(), source });
                    }
                    None => tab.composer.insert_text(&path),
                }
            }
            Pasted::TooLong => self.toast(Level::Error, "that is too long to be sent"),
            Pasted::Inserted | Pasted::Chip => {}
        }
        self.offer();
    }

    /// An image of the clipboard has come, or why not.
    pub(in crate::chat) fn pasted_image(&mut self, image: Result<(String, Vec<u8>), String>) {
        match image {
            Ok((mime_type, bytes)) => {
                let source = AttachmentSource::Base64(attache::proto::base64::encode(&bytes));
                if let Some(tab) = self.tab() {
                    tab.composer.attach(Attachment { name: "clipboard".into(), mime_type, source });
                }
            }
            Err(why) => self.toast(Level::Error, why),
        }
    }

    /// The editor is left.
    pub(in crate::chat) fn edited(&mut self, text: &str) {
        if let Some(tab) = self.tab() {
            tab.composer.set_text(text);
        }
    }

    /// A login in the terminal has ended: the agent is started anew.
    pub(in crate::chat) fn logged_in(&mut self, id: WorkerId, done: Result<(), String>) {
        match done {
            Ok(()) => {
                if let Some(place) = self.tabs.iter().position(|tab| tab.id == id) {
                    self.restart(place);
                }
            }
            Err(why) => self.toast(Level::Error, why),
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) {
        if let Some(action) = self.keys.action(key, Context::Dialog)
            && matches!(action, Action::Redraw | Action::Suspend | Action::ToggleMouse)
        {
            return self.act(action);
        }
        let wants_out = self.keys.action(key, Context::Composer) == Some(Action::Quit);
        if let Some(place) = self.asking() {
            return if wants_out { self.refuse_and_stop(place) } else { self.question_key(place, key) };
        }
        if matches!(self.surface, Surface::Question(_)) && !wants_out {
            // Meant for a question that is still on the screen, and taken back.
            return;
        }
        if self.overlay.is_some() {
            let is_typed = matches!(key.code, KeyCode::Char(_));
            self.typed = if is_typed && !wants_out { Some(Instant::now()) } else { None };
            let is_list = matches!(self.overlay, Some(Overlay::Choices(_)));
            if is_list && self.keys.action(key, Context::Composer) == Some(Action::Help) {
                return self.act(Action::Help);
            }
            if matches!(self.overlay, Some(Overlay::LastWords(_))) && !wants_out && self.is_too_soon(Surface::LastWords)
            {
                return;
            }
            if wants_out && matches!(self.overlay, Some(Overlay::LastWords(_))) {
                self.overlay = None;
                return self.act(Action::Quit);
            }
            let key = if wants_out { KeyEvent::from(KeyCode::Esc) } else { key };
            return self.overlay_key(key);
        }
        if let Surface::Login(id, _) = self.surface
            && self.tabs.get(self.current).is_some_and(|tab| tab.id == id && tab.login.is_some())
        {
            if !self.is_too_soon(self.surface) {
                self.login_key(key);
            }
            return;
        }
        self.conversation_key(key);
        // What was sent is typed no more.
        let is_writing = self.tabs.get(self.current).is_some_and(|tab| !tab.composer.is_empty());
        self.typed = (is_writing && !self.is_in_transcript).then(Instant::now);
    }

    /// Whether what came up by itself is too new for a key, which is swallowed then.
    pub(super) fn is_too_soon(&mut self, surface: Surface) -> bool {
        let is_too_soon = self.surface != surface || self.surface_since.elapsed() < GRACE;
        if is_too_soon {
            self.surface_since = Instant::now();
            self.swallowed = Some(Instant::now());
        }
        is_too_soon
    }

    /// Input that was typed before what has just been drawn could be seen. It is lost, except for the wish to leave.
    pub(in crate::chat) fn discard(&mut self, input: Input) {
        match input {
            Input::Key(key) if self.keys.action(key, Context::Composer) == Some(Action::Quit) => self.key(key),
            Input::Key(_) | Input::Paste(_) => self.swallowed = Some(Instant::now()),
            input => self.input(input),
        }
    }

    pub(super) fn conversation_key(&mut self, key: KeyEvent) {
        let Some(tab) = self.tabs.get_mut(self.current) else {
            if self.keys.action(key, Context::EmptyComposer) == Some(Action::Quit) {
                self.deeds.push(Deed::Quit);
            }
            return;
        };
        if !self.is_in_transcript {
            if tab.composer.queue.is_focused() {
                match tab.composer.queue.handle_key(key) {
                    QueueReply::Edit(message) => tab.composer.edit_queued(message),
                    QueueReply::Ignored => {}
                    QueueReply::Used | QueueReply::Closed => return,
                }
            }
            // A list that is open takes its keys first.
            if tab.composer.has_popup() && tab.composer.handle_key(key) != ComposerReply::Ignored {
                return self.offer();
            }
        }
        let context = match (self.is_in_transcript, tab.composer.is_empty()) {
            (true, _) => Context::Transcript,
            (false, true) => Context::EmptyComposer,
            (false, false) => Context::Composer,
        };
        if let Some(action) = self.keys.action(key, context) {
            return self.act(action);
        }
        if !self.is_in_transcript && tab.composer.handle_key(key) != ComposerReply::Ignored {
            self.offer();
        }
    }

    /// Offers what could be meant by an `@` or a `/`.
    pub(super) fn offer(&mut self) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        let Some(request) = tab.composer.completions() else { return };
        let items = match request.kind {
            CompletionKind::Command => Completion::commands(&tab.view.commands),
            CompletionKind::Mention => {
                if self
                    .files
                    .as_ref()
                    .is_none_or(|(_, since)| since.elapsed() > FILES_FRESH && request.query.is_empty())
                {
                    self.files = Some((Files::look(&tab.plan.cwd), Instant::now()));
                }
                let found = self.files.as_mut().map(|(files, _)| files.found()).unwrap_or_default();
                found.iter().map(Completion::file).collect()
            }
        };
        tab.composer.offer(items);
    }

    /// More files may have been found for an `@` that waits. Whether one does.
    pub(in crate::chat) fn refresh_offer(&mut self) -> bool {
        let is_waiting = self.tabs.get(self.current).is_some_and(|tab| tab.composer.completions().is_some());
        if is_waiting {
            self.offer();
        }
        is_waiting
    }

    pub(super) fn overlay_key(&mut self, key: KeyEvent) {
        let Some(overlay) = self.overlay.take() else { return };
        self.overlay = match overlay {
            Overlay::Help(mut dialog) => (!dialog.handle_key(key)).then_some(Overlay::Help(dialog)),
            Overlay::Options(mut dialog) => match dialog.handle_key(key) {
                None => Some(Overlay::Options(dialog)),
                Some(OptionsReply::Closed) => None,
                Some(reply) => {
                    self.set(reply);
                    None
                }
            },
            Overlay::Choices(mut picker) => match picker.handle_key(key) {
                None => Some(Overlay::Choices(picker)),
                Some(PickerReply::Closed) => {
                    if self.tabs.is_empty() {
                        self.deeds.push(Deed::Quit);
                    }
                    None
                }
                Some(PickerReply::New(_)) => None,
                Some(PickerReply::Chosen(choice)) => {
                    self.begin(choice);
                    return;
                }
                Some(PickerReply::Delete(choice @ Choice::Session { .. })) => {
                    let Choice::Session { id, agent, .. } = &choice else { return };
                    let label = self.choices().into_iter().find(|row| row.choice == choice).map(|row| row.label);
                    let title = label.filter(|label| label != id).map(|label| format!("\n{label}\n"));
                    let text =
                        format!("Delete session {id}? {agent} forgets it, and so do we.{}", title.unwrap_or_default());
                    let dialog = ConfirmDialog::new("Delete a session", text, "delete it");
                    Some(Overlay::Confirm(dialog, Confirmed::Delete(choice), Instant::now()))
                }
                Some(PickerReply::Delete(_)) => Some(Overlay::Choices(picker)),
            },
            Overlay::LastWords(mut dialog) => match dialog.handle_key(key) {
                None => Some(Overlay::LastWords(dialog)),
                Some(TextReply::Closed) => None,
                Some(TextReply::Copy) => {
                    self.copy(dialog.text().to_owned());
                    Some(Overlay::LastWords(dialog))
                }
                Some(TextReply::Restart) => {
                    self.restart(self.current);
                    None
                }
            },
            Overlay::Text(mut dialog) => match dialog.handle_key(key) {
                None => Some(Overlay::Text(dialog)),
                Some(TextReply::Closed) => None,
                Some(TextReply::Copy) => {
                    self.copy(dialog.text().to_owned());
                    Some(Overlay::Text(dialog))
                }
                Some(TextReply::Restart) => None,
            },
            Overlay::Confirm(mut dialog, what, since) => match dialog.handle_key(key, self.seen_for(since)) {
                None => Some(Overlay::Confirm(dialog, what, since)),
                // Whoever tidies up goes on in the list.
                Some(false) if matches!(what, Confirmed::Delete(_)) => return self.choose(),
                Some(false) => None,
                Some(true) => {
                    match what {
                        // It may open a list, which is to stay.
                        Confirmed::CloseTab(id) => return self.close(id),
                        Confirmed::Restart(id) => {
                            if let Some(place) = self.tabs.iter().position(|tab| tab.id == id) {
                                self.restart(place);
                            }
                        }
                        Confirmed::Quit => self.deeds.push(Deed::Quit),
                        Confirmed::Delete(Choice::Session { id, agent, identity }) => {
                            self.delete(&id, &agent, &identity);
                            return self.choose();
                        }
                        Confirmed::Delete(_) => {}
                    }
                    None
                }
            },
        };
        // Where there is no conversation, there is the list.
        let is_leaving = self.deeds.iter().any(|deed| matches!(deed, Deed::Quit));
        if self.overlay.is_none() && self.tabs.is_empty() && !is_leaving {
            self.choose();
        }
    }

    /// How long something that the person opened has been seen: a question may have stood over it.
    pub(super) fn seen_for(&self, since: Instant) -> Duration {
        match self.surface {
            Surface::Overlay => since.elapsed().min(self.surface_since.elapsed()),
            _ => Duration::ZERO,
        }
    }
}

fn image_type(path: &std::path::Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()?.to_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => return None,
    })
}
