//! The screen with everything on it: sessions side by side, what keys mean, and what is drawn where.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use attache::model::auth::TerminalAuthMethod;
use attache::model::command::AvailableCommand;
use attache::model::config::{ConfigCategory, ConfigId, ConfigSetting};
use attache::model::elicitation::CreateElicitationResponse;
use attache::model::session::SessionId;
use attache_tui::composer::{
    Attachment, AttachmentSource, Completion, CompletionKind, Composer, ComposerReply, Pasted, QueueReply,
};
use attache_tui::dialog::{
    ConfirmDialog, FormReply, GRACE, HelpDialog, LoginReply, OptionsDialog, OptionsReply, PermissionReply, TextDialog,
    TextReply, UrlReply, next_mode,
};
use attache_tui::keymap::{Action, Context, KeyMap};
use attache_tui::picker::{Item, Picker, PickerReply};
use attache_tui::status::{Activity, Status, Tab as TabTitle, render_tabs};
use attache_tui::theme::Theme;
use attache_tui::transcript::Scroll;
use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph, Widget};
use tokio::sync::mpsc;

use super::catalog::{self, Choice};
use super::keep::{Draft, History};
use super::mentions::Files;
use super::tab::{self, Effect, Phase, QuestionDialog, Tab};
use super::worker::{Begin, News, Order, Outlet, Plan, Worker, WorkerId};
use crate::client::ask::Reply;
use crate::client::browser::{self, WebAddress};
use crate::event::Level;

/// How long a notice in passing stays.
const TOAST: Duration = Duration::from_secs(5);

/// How long the keys rest before a question comes up by itself, and how long where a message is half written.
const REST: Duration = Duration::from_millis(500);
const REST_OF_MESSAGE: Duration = Duration::from_secs(1);

/// After so many refusals in a row, one key refuses whatever else the turn asks.
const TIRED: u32 = 5;

/// Within this time a second Ctrl-C leaves.
const TWICE: Duration = Duration::from_secs(2);

/// The longest text that is given to the terminal for its clipboard. Terminals drop longer ones.
const LONGEST_COPY: usize = 256 << 10;

/// A dialog of fewer rows has no frame, and a frame is how a person tells it from what an agent writes.
const FRAMED: u16 = 5;

/// What the state says while somebody types and a question waits.
const HELD: &str = "a question waits until you stop typing";

/// How long files that were offered for an `@` stay fresh.
const FILES_FRESH: Duration = Duration::from_secs(10);

/// What takes the terminal away from the screen for a while.
pub(super) enum Outside {
    /// The message, in the person's editor.
    EditMessage(String),
    /// A file at a line, in the person's editor.
    EditFile(PathBuf, Option<u32>),
    /// A text in the person's pager.
    Page(String),
    /// A login of the agent.
    Login(WorkerId, Box<Plan>, TerminalAuthMethod),
    /// The shell, until `fg`.
    Suspend,
}

/// What the screen is to do besides drawing.
pub(super) enum Deed {
    Quit,
    Redraw,
    ToggleMouse,
    Outside(Outside),
    /// Something for the clipboard.
    Copy(String),
    Bell,
    /// The image in the clipboard.
    PasteImage,
}

/// What a person has opened over the conversation.
enum Overlay {
    Help(HelpDialog),
    Options(Box<OptionsDialog>),
    Choices(Picker<Choice>),
    Text(TextDialog),
    /// The last words of an agent, which come up by themselves.
    LastWords(TextDialog),
    Confirm(ConfirmDialog, Confirmed, Instant),
}

/// What has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surface {
    Conversation,
    /// The first question of the tab at this place.
    Question(usize),
    /// Something that the person opened.
    Overlay,
    /// What an agent wrote before it ended.
    LastWords,
    Login(WorkerId),
}

/// What a yes does.
enum Confirmed {
    CloseTab(WorkerId),
    Delete(Choice),
    Quit,
}

/// The screen with everything on it.
pub(super) struct App {
    pub(super) tabs: Vec<Tab>,
    current: usize,
    overlay: Option<Overlay>,
    keys: KeyMap,
    pub(super) theme: Theme,
    /// What new sessions begin with.
    plan: Plan,
    news: mpsc::Sender<(WorkerId, News)>,
    next_id: WorkerId,
    history: History,
    draft: Draft,
    files: Option<(Files, Instant)>,
    toast: Option<(Level, String, Instant)>,
    is_in_transcript: bool,
    is_plan_shown: bool,
    is_focused: bool,
    has_bell: bool,
    quit_pressed: Option<Instant>,
    /// When something was last typed that is not an answer.
    typed: Option<Instant>,
    /// When a key was last swallowed, because it came too soon after a question.
    swallowed: Option<Instant>,
    /// What is on the screen and has the keys, since when, and what the picture has that is being drawn.
    surface: Surface,
    surface_since: Instant,
    next_surface: Surface,
    /// Whether what the person has opened stands over questions.
    is_overlay_first: bool,
    /// Whether the current agent has ended and its last words were not shown yet.
    has_last_words: bool,
    pub(super) tick: u64,
    deeds: Vec<Deed>,
    /// What to ask as soon as there is a session to ask it in.
    first_prompt: Option<String>,
    /// The sessions of the past that are known of, and those that are being looked for.
    past: Vec<catalog::Past>,
    past_coming: Option<std::sync::mpsc::Receiver<Vec<catalog::Past>>>,
}

impl App {
    pub(super) fn new(plan: Plan, keys: KeyMap, theme: Theme, news: mpsc::Sender<(WorkerId, News)>) -> Self {
        App {
            tabs: Vec::new(),
            current: 0,
            overlay: None,
            keys,
            theme,
            history: History::read(&plan.cwd),
            draft: Draft::none(),
            plan,
            news,
            next_id: 0,
            files: None,
            toast: None,
            is_in_transcript: false,
            is_plan_shown: true,
            is_focused: true,
            has_bell: true,
            quit_pressed: None,
            typed: None,
            swallowed: None,
            surface: Surface::Conversation,
            surface_since: Instant::now(),
            next_surface: Surface::Conversation,
            is_overlay_first: false,
            has_last_words: false,
            tick: 0,
            deeds: Vec::new(),
            first_prompt: None,
            past: Vec::new(),
            past_coming: None,
        }
    }

    pub(super) fn set_bell(&mut self, has_bell: bool) {
        self.has_bell = has_bell;
    }

    pub(super) fn set_first_prompt(&mut self, prompt: Option<String>) {
        self.first_prompt = prompt;
    }

    /// Opens a session with an agent.
    pub(super) fn open(&mut self, plan: Plan) {
        let (id, worker) = self.start(plan.clone());
        let mut tab = Tab::new(id, plan, worker);
        tab.composer.set_history(self.history.prompts.clone());
        tab.transcript.set_plan_shown(self.is_plan_shown);
        if self.tabs.is_empty() {
            let drafts = self.draft.take_over(&self.plan.cwd);
            if !drafts.is_empty() {
                tab.take_over(drafts);
                self.toast(Level::Info, "what an earlier chat did not send is here again, and waits for you");
            }
        }
        if let Some(prompt) = self.first_prompt.take() {
            tab.ask_first(prompt);
        }
        self.tabs.push(tab);
        self.current = self.tabs.len() - 1;
        self.is_in_transcript = false;
    }

    fn start(&mut self, plan: Plan) -> (WorkerId, Worker) {
        let id = self.next_id;
        self.next_id += 1;
        (id, Worker::start(plan, Outlet { id, news: self.news.clone() }))
    }

    /// Shows what can be begun: agents, and the sessions of this directory.
    pub(super) fn choose(&mut self) {
        let hint = "enter open  esc close  f1 keys";
        let picker = Picker::new("Who do you want to talk to?", items(self.choices())).with_hint(hint).with_delete();
        self.overlay = Some(Overlay::Choices(picker));
        self.past_coming = Some(catalog::look_for_past(&self.plan.cwd));
    }

    fn choices(&self) -> Vec<catalog::Row> {
        catalog::choices(&self.tabs.iter().map(describe).collect::<Vec<_>>(), &self.past)
    }

    /// Brings an open list up to date.
    fn list_choices(&mut self) {
        let choices = items(self.choices());
        if let Some(Overlay::Choices(picker)) = &mut self.overlay {
            picker.set_items(choices);
        }
    }

    fn tab(&mut self) -> Option<&mut Tab> {
        self.tabs.get_mut(self.current)
    }

    /// What is to be done outside of the picture, each once.
    pub(super) fn take_deeds(&mut self) -> Vec<Deed> {
        std::mem::take(&mut self.deeds)
    }

    /// Whether something moves on the screen without news.
    pub(super) fn is_animated(&self) -> bool {
        self.toast.is_some()
            || self.has_last_words
            || self.surface_since.elapsed() < 2 * GRACE
            || self.past_coming.is_some()
            || self.tabs.iter().any(|tab| {
                tab.is_working() || !tab.questions.is_empty() || !matches!(tab.phase, Phase::Idle | Phase::Dead)
            })
    }

    /// Time has passed.
    pub(super) fn beat(&mut self) {
        self.tick += 1;
        if self.toast.as_ref().is_some_and(|(_, _, since)| since.elapsed() > TOAST) {
            self.toast = None;
        }
        let mut is_overdue = false;
        for tab in &mut self.tabs {
            tab.withdraw();
            is_overdue |= tab.notice_overdue_cancel();
        }
        if is_overdue {
            self.toast(Level::Warning, "the agent has not stopped; F5 restarts it and resumes the session");
        }
        if let Some(past) = self.past_coming.as_ref().and_then(|coming| coming.try_recv().ok()) {
            self.past_coming = None;
            self.past = past;
            self.list_choices();
        }
    }

    /// Keeps what is being written.
    pub(super) fn save_draft(&mut self) {
        let drafts: Vec<_> = self.tabs.iter().map(|tab| tab.composer.draft()).collect();
        let drafts: Vec<_> = drafts.into_iter().filter(|draft| *draft != Default::default()).collect();
        self.draft.write((!drafts.is_empty()).then_some(&drafts));
    }

    /// Takes news of a session in.
    pub(super) fn take(&mut self, id: WorkerId, news: News) {
        let is_current = self.tabs.get(self.current).is_some_and(|tab| tab.id == id);
        let is_closed = matches!(news, News::Closed);
        let Some(tab) = self.tabs.iter_mut().find(|tab| tab.id == id) else { return };
        if is_closed {
            return;
        }
        let effect = tab.take(news);
        match effect {
            Effect::None => {}
            // What is told between turns is to be read too.
            Effect::Updated => tab.is_unread |= !is_current && tab.phase == Phase::Idle,
            Effect::TurnEnded => {
                tab.is_unread = !is_current;
                if !self.is_focused && self.has_bell {
                    self.deeds.push(Deed::Bell);
                }
            }
            Effect::Asked => {
                if !self.is_focused && self.has_bell {
                    self.deeds.push(Deed::Bell);
                }
            }
            Effect::Sessions => self.list_choices(),
            Effect::Died if is_current => self.has_last_words = true,
            Effect::Died => {
                let name = tab.agent_name().to_owned();
                self.toast(Level::Error, format!("{name} has ended, in another session"));
            }
            Effect::Toast(level, text) => self.toast(level, text),
        }
        if let Some(Overlay::Options(dialog)) = &mut self.overlay
            && let Some(tab) = self.tabs.get(self.current)
        {
            dialog.update(&tab.view.options, &tab.view.modes, tab.view.current_mode.as_ref());
        }
    }

    fn show_last_words(&mut self) {
        self.has_last_words = false;
        let Some(tab) = self.tabs.get(self.current) else { return };
        let name = tab.agent_name();
        self.overlay = Some(match (&tab.phase, &tab.last_words) {
            (Phase::Dead, words) => {
                let words = words.clone().unwrap_or_else(|| "It wrote nothing to stderr.".into());
                Overlay::LastWords(TextDialog::of_dead_agent(format!("{name} has ended"), words))
            }
            (_, Some(words)) => Overlay::Text(TextDialog::new(format!("what {name} wrote to stderr"), words.clone())),
            (_, None) => {
                let text = "The agent runs. What it writes to stderr is shown here when it has ended.";
                Overlay::Text(TextDialog::new(format!("what {name} wrote to stderr"), text))
            }
        });
    }

    pub(super) fn toast(&mut self, level: Level, text: impl Into<String>) {
        self.toast = Some((level, text.into(), Instant::now()));
    }

    fn copy(&mut self, text: String) {
        if text.len() > LONGEST_COPY {
            return self.toast(Level::Error, "that is too long for the clipboard of a terminal");
        }
        self.deeds.push(Deed::Copy(text));
        self.toast(Level::Info, "copied");
    }

    /// Takes a key, a paste, the mouse or another size in.
    pub(super) fn input(&mut self, input: Input) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
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

    /// The place of the tab whose question is on the screen. One that was not drawn yet takes no keys.
    fn asking(&self) -> Option<usize> {
        self.tabs.iter().position(|tab| tab.questions.front().is_some_and(|asked| asked.shown.is_some()))
    }

    /// Whether somebody is typing: nothing comes up by itself then, and no answer is made of what was meant otherwise.
    fn is_typing(&self) -> bool {
        let has_message = self.tabs.get(self.current).is_some_and(|tab| !tab.composer.is_empty());
        let rest = if has_message { REST_OF_MESSAGE } else { REST };
        self.typed.is_some_and(|typed| typed.elapsed() < rest)
    }

    /// The place of the tab whose question is to be drawn.
    fn question_to_draw(&self) -> Option<usize> {
        let place = self.waiting_question()?;
        let is_shown = self.tabs[place].questions.front().is_some_and(|asked| asked.shown.is_some());
        let is_covered = self.is_overlay_first && self.overlay.is_some();
        (!is_covered && (is_shown || !self.is_typing())).then_some(place)
    }

    /// The place of the tab whose question comes first: the current one, then any other.
    fn waiting_question(&self) -> Option<usize> {
        let is_asking = |tab: &Tab| !tab.questions.is_empty();
        if self.tabs.get(self.current).is_some_and(is_asking) {
            return Some(self.current);
        }
        self.tabs.iter().position(is_asking)
    }

    fn paste(&mut self, text: &str) {
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
    pub(super) fn pasted_image(&mut self, image: Result<(String, Vec<u8>), String>) {
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
    pub(super) fn edited(&mut self, text: &str) {
        if let Some(tab) = self.tab() {
            tab.composer.set_text(text);
        }
    }

    /// A login in the terminal has ended: the agent is started anew.
    pub(super) fn logged_in(&mut self, id: WorkerId, done: Result<(), String>) {
        match done {
            Ok(()) => {
                if let Some(place) = self.tabs.iter().position(|tab| tab.id == id) {
                    self.restart(place);
                }
            }
            Err(why) => self.toast(Level::Error, why),
        }
    }

    fn key(&mut self, key: KeyEvent) {
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
            let key = if wants_out { KeyEvent::from(KeyCode::Esc) } else { key };
            return self.overlay_key(key);
        }
        if let Surface::Login(id) = self.surface
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
    fn is_too_soon(&mut self, surface: Surface) -> bool {
        let is_too_soon = self.surface != surface || self.surface_since.elapsed() < GRACE;
        if is_too_soon {
            self.surface_since = Instant::now();
            self.swallowed = Some(Instant::now());
        }
        is_too_soon
    }

    /// Somebody types what was meant for something else: a question takes keys when they have rested.
    fn swallow(&mut self, place: usize) {
        self.swallowed = Some(Instant::now());
        if let Some(asked) = self.tabs.get_mut(place).and_then(|tab| tab.questions.front_mut()) {
            asked.shown = asked.shown.map(|_| Instant::now());
        }
    }

    /// Input that was typed before what has just been drawn could be seen. It is lost, except for the wish to leave.
    pub(super) fn discard(&mut self, input: Input) {
        match input {
            Input::Key(key) if self.keys.action(key, Context::Composer) == Some(Action::Quit) => self.key(key),
            Input::Key(_) | Input::Paste(_) => self.swallowed = Some(Instant::now()),
            input => self.input(input),
        }
    }

    /// Never a yes: all that waits is answered with no, and the agent stops. Twice leaves, whatever is asked next.
    fn refuse_and_stop(&mut self, place: usize) {
        if self.quit_pressed.is_some_and(|pressed| pressed.elapsed() < TWICE) {
            return self.deeds.push(Deed::Quit);
        }
        self.quit_pressed = Some(Instant::now());
        let tab = &mut self.tabs[place];
        tab.cancel();
        tab.questions.clear();
        self.toast(Level::Info, "refused, and the turn is cancelled; once more leaves");
    }

    fn question_key(&mut self, place: usize, key: KeyEvent) {
        // These get away from an agent that does not stop asking.
        match self.keys.action(key, Context::Dialog) {
            Some(Action::RestartAgent) => return self.restart(place),
            Some(Action::CloseTab) => {
                self.is_overlay_first = true;
                return self.close_or_ask(place);
            }
            Some(Action::Sessions) => {
                self.is_overlay_first = true;
                return self.act(Action::Sessions);
            }
            _ => {}
        }
        let tab = &mut self.tabs[place];
        let is_all = key.code == KeyCode::Char('n') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_all && tab.refusals >= TIRED {
            tab.refuse_all();
            return self.toast(Level::Info, "all else that this turn asks is refused");
        }
        self.answer(place, key);
    }

    fn close_or_ask(&mut self, place: usize) {
        let Some(tab) = self.tabs.get(place) else { return };
        let id = tab.id;
        if !tab.is_working() {
            return self.close(id);
        }
        let text = "The agent is still working. Its turn would be cancelled.";
        let dialog = ConfirmDialog::new("Close the session?", text, "close it");
        self.overlay = Some(Overlay::Confirm(dialog, Confirmed::CloseTab(id), Instant::now()));
    }

    fn conversation_key(&mut self, key: KeyEvent) {
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
    fn offer(&mut self) {
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
    pub(super) fn refresh_offer(&mut self) -> bool {
        let is_waiting = self.tabs.get(self.current).is_some_and(|tab| tab.composer.completions().is_some());
        if is_waiting {
            self.offer();
        }
        is_waiting
    }

    fn answer(&mut self, place: usize, key: KeyEvent) {
        let tab = &mut self.tabs[place];
        // Not drawn yet, nobody has seen what they would answer; just drawn, nobody has read it.
        let shown = tab.questions.front().and_then(|asked| asked.shown);
        let elapsed = shown.map_or(Duration::ZERO, |shown| shown.elapsed());
        if elapsed < GRACE {
            return self.swallow(place);
        }
        let Some(mut asked) = tab.questions.pop_front() else { return };
        match asked.dialog {
            QuestionDialog::Permission(mut dialog, reply) => {
                let answer = match dialog.handle_key(key, elapsed) {
                    Some(PermissionReply::Allow(scope)) => Some(Reply::Allow(scope)),
                    Some(PermissionReply::Option(option)) => Some(Reply::Option(option)),
                    Some(PermissionReply::Deny { reason }) => Some(Reply::Deny { reason }),
                    Some(PermissionReply::OpenPager) => {
                        let lines = dialog.pager_lines(100, &self.theme);
                        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
                        self.deeds.push(Deed::Outside(Outside::Page(text.join("\n"))));
                        None
                    }
                    None => None,
                };
                match answer {
                    Some(answer) => {
                        tab.count_answer(matches!(answer, Reply::Deny { .. }));
                        drop(reply.send(answer));
                    }
                    None => {
                        asked.dialog = QuestionDialog::Permission(dialog, reply);
                        tab.questions.push_front(asked);
                    }
                }
            }
            QuestionDialog::Form(mut dialog, reply) => match dialog.handle_key(key) {
                Some(FormReply::Accept(content)) => {
                    tab.count_answer(false);
                    drop(reply.send(CreateElicitationResponse::accept(content)));
                }
                Some(FormReply::Decline) => {
                    tab.count_answer(true);
                    drop(reply.send(CreateElicitationResponse::decline()));
                }
                Some(FormReply::Cancel) => {
                    tab.count_answer(true);
                    drop(reply.send(CreateElicitationResponse::cancel()));
                }
                None => {
                    asked.dialog = QuestionDialog::Form(dialog, reply);
                    tab.questions.push_front(asked);
                }
            },
            QuestionDialog::Url(mut dialog, reply) => match dialog.handle_key(key, elapsed) {
                Some(UrlReply::Open(address)) => {
                    let opened = match WebAddress::parse(&address) {
                        Ok(address) => browser::open(&address).map_err(|error| error.to_string()),
                        Err(_) => Err("it is no web address".into()),
                    };
                    match opened {
                        Ok(()) => drop(reply.send(CreateElicitationResponse::accept(Vec::new()))),
                        Err(error) => {
                            self.toast(Level::Error, format!("cannot open a browser: {error}; c copies the address"));
                            asked.dialog = QuestionDialog::Url(dialog, reply);
                            self.tabs[place].questions.push_front(asked);
                        }
                    }
                }
                // Whoever copies it may want to look at it first: that is no answer.
                Some(UrlReply::Copy(address)) => {
                    asked.dialog = QuestionDialog::Url(dialog, reply);
                    tab.questions.push_front(asked);
                    self.copy(address);
                }
                Some(UrlReply::Decline) => {
                    tab.count_answer(true);
                    drop(reply.send(CreateElicitationResponse::decline()));
                }
                Some(UrlReply::Cancel) => {
                    tab.count_answer(true);
                    drop(reply.send(CreateElicitationResponse::cancel()));
                }
                None => {
                    asked.dialog = QuestionDialog::Url(dialog, reply);
                    tab.questions.push_front(asked);
                }
            },
        }
    }

    fn login_key(&mut self, key: KeyEvent) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        let Some((dialog, _)) = &mut tab.login else { return };
        match dialog.handle_key(key, self.surface_since.elapsed()) {
            None => {}
            Some(LoginReply::Closed) => {
                tab.login = None;
                tab.order(Order::Close);
                tab.last_words = Some("It wants a login, and there was none.".into());
                tab.enter(Phase::Dead);
                self.toast(Level::Info, "not logged in; F5 starts the agent again");
            }
            Some(LoginReply::Authenticate(id)) => {
                tab.login = None;
                tab.enter(Phase::Opening);
                tab.order(Order::Login(attache::model::auth::AuthMethod::Agent(
                    attache::model::auth::AgentAuthMethod::new(id, ""),
                )));
            }
            Some(LoginReply::Terminal(method)) => {
                // The question stays, in case that it does not work.
                let login = Outside::Login(tab.id, Box::new(tab.plan.clone()), method);
                self.deeds.push(Deed::Outside(login));
            }
        }
    }

    fn overlay_key(&mut self, key: KeyEvent) {
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
                    let text = format!("Delete session {id}? {agent} forgets it, and so do we.");
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
                Some(false) => None,
                Some(true) => {
                    match what {
                        // It may open a list, which is to stay.
                        Confirmed::CloseTab(id) => return self.close(id),
                        Confirmed::Quit => self.deeds.push(Deed::Quit),
                        Confirmed::Delete(Choice::Session { id, agent, identity }) => {
                            self.delete(&id, &agent, &identity);
                        }
                        Confirmed::Delete(_) => {}
                    }
                    None
                }
            },
        };
    }

    /// How long something that the person opened has been seen: a question may have stood over it.
    fn seen_for(&self, since: Instant) -> Duration {
        match self.surface {
            Surface::Overlay => since.elapsed().min(self.surface_since.elapsed()),
            _ => Duration::ZERO,
        }
    }

    /// Deletes a session: where its own agent keeps it, and here.
    fn delete(&mut self, id: &str, agent: &str, identity: &str) {
        let owner = self.tabs.iter().find(|tab| tab.session.is_some() && tab.identity() == identity);
        let (level, words) = match owner {
            Some(tab) => {
                tab.order(Order::DeleteSession(SessionId::from(id)));
                (Level::Info, "deleted".to_owned())
            }
            None if identity == crate::agents::BUILT_IN => match catalog::delete_kept(id) {
                Ok(()) => (Level::Info, "deleted".to_owned()),
                Err(failure) => (Level::Error, failure.message),
            },
            None => {
                let words = format!("our record of it is gone; {agent} may keep it: no session with {agent} is open");
                (Level::Warning, words)
            }
        };
        catalog::forget(id, identity);
        self.past.retain(|past| !past.is(id, identity));
        self.toast(level, words);
    }

    fn begin(&mut self, choice: Choice) {
        match choice {
            Choice::Tab(id) => {
                if let Some(place) = self.tabs.iter().position(|tab| tab.id == id) {
                    self.show(place);
                }
            }
            Choice::Agent(name) => match catalog::plan(&self.plan, &name, None, Begin::New) {
                Ok(plan) => self.open(plan),
                Err(failure) => self.toast(Level::Error, failure.message),
            },
            Choice::Session { agent, identity, id } => {
                let begin = Begin::Load(SessionId::from(id.as_str()));
                // The agent of an open session can be one that no name leads to.
                let owner = self.tabs.iter().find(|tab| tab.identity() == identity);
                let like = owner.map_or(&self.plan, |tab| &tab.plan);
                match catalog::plan(like, &agent, Some(&identity), begin) {
                    Ok(plan) => self.open(plan),
                    Err(failure) => self.toast(Level::Error, failure.message),
                }
            }
        }
        if self.tabs.is_empty() {
            self.choose();
        }
    }

    fn show(&mut self, place: usize) {
        self.current = place.min(self.tabs.len().saturating_sub(1));
        self.is_in_transcript = false;
        if let Some(tab) = self.tab() {
            tab.is_unread = false;
        }
    }

    fn close(&mut self, id: WorkerId) {
        if let Some(tab) = self.tabs.iter().find(|tab| tab.id == id) {
            tab.order(Order::Close);
        }
        self.tabs.retain(|tab| tab.id != id);
        self.show(self.current);
        if self.tabs.is_empty() {
            self.choose();
        }
    }

    fn restart(&mut self, place: usize) {
        let Some(tab) = self.tabs.get(place) else { return };
        tab.order(Order::Close);
        let mut plan = tab.plan.clone();
        if let Some(session) = &tab.session {
            plan.begin = Begin::Again(session.clone());
        }
        let (id, worker) = self.start(plan.clone());
        let is_plan_shown = self.is_plan_shown;
        if let Some(tab) = self.tabs.get_mut(place) {
            tab.restart(id, plan, worker);
            tab.transcript.set_plan_shown(is_plan_shown);
        }
    }

    fn set(&mut self, reply: OptionsReply) {
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

    fn act(&mut self, action: Action) {
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
            Action::FocusTranscript => self.is_in_transcript = true,
            Action::FocusComposer => self.is_in_transcript = false,
            Action::Quit => self.quit(),
            Action::RestartAgent => self.restart(self.current),
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
    pub(super) fn suspend(&mut self) {
        self.deeds.push(Deed::Outside(Outside::Suspend));
    }

    fn quit(&mut self) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return self.deeds.push(Deed::Quit) };
        if !self.is_in_transcript && !tab.composer.is_empty() {
            tab.composer.clear();
            return;
        }
        let is_busy = self.tabs.iter().any(|tab| tab.is_working() && tab.phase != Phase::Cancelling);
        if self.quit_pressed.is_some_and(|pressed| pressed.elapsed() < TWICE) {
            if !is_busy {
                return self.deeds.push(Deed::Quit);
            }
            let text = "An agent is still working. Its turn would be cancelled.";
            let dialog = ConfirmDialog::new("Leave?", text, "leave");
            self.is_overlay_first = true;
            self.overlay = Some(Overlay::Confirm(dialog, Confirmed::Quit, Instant::now()));
            return;
        }
        self.quit_pressed = Some(Instant::now());
        self.toast(Level::Info, "once more leaves");
    }

    fn act_on_tab(&mut self, action: Action) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        match action {
            Action::Send | Action::Steer => {
                let text = tab.composer.text();
                if let Some(mistake) = tab.send(action == Action::Steer) {
                    self.toast(Level::Error, mistake);
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
                let text = tab.composer.text();
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
            Action::KillTerminal => {
                let place = tab.transcript.focused();
                let running = place.and_then(|place| tab.transcript.running_terminal_of(&tab.view, place));
                match (running, tab.cancellable_tool()) {
                    (Some(terminal), _) => tab.order(Order::Kill(terminal)),
                    (None, Some(call)) => tab.order(Order::CancelTool(call)),
                    (None, None) => {
                        self.toast(Level::Info, "nothing runs here that can be ended alone; esc ends the turn")
                    }
                }
            }
            Action::CycleMode => {
                let next = next_mode(&tab.view.options, &tab.view.modes, tab.view.current_mode.as_ref());
                match next {
                    Some(reply) => self.set(reply),
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
            Action::Undo => {
                let is_undo = |command: &AvailableCommand| matches!(command, AvailableCommand::Command(command) if command.name == "undo");
                match tab.view.commands.iter().any(is_undo) && tab.phase == Phase::Idle {
                    true => drop(tab.send_command("/undo")),
                    false => self.toast(Level::Info, "this agent has no command to undo a turn"),
                }
            }
            _ => {}
        }
    }

    /// Draws everything.
    pub(super) fn render(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let buffer = frame.buffer_mut();
        let current = self.current;
        let has_tabs = self.tabs.len() > 1;
        let titles: Vec<TabTitle> =
            self.tabs.iter().map(|tab| TabTitle { title: tab.title(), state: tab.state() }).collect();
        let (tick, theme) = (self.tick, self.theme.clone());
        let mut rest = area;
        if has_tabs && rest.height > 6 {
            let (line, below) = split_top(rest, 1);
            render_tabs(&titles, current, line, buffer, tick, &theme);
            rest = below;
        }
        let hints = self.hints();
        let is_question_held = self.is_question_held();
        if let Some(tab) = self.tabs.get_mut(current) {
            let (above, status_area) = split_bottom(rest, 2.min(rest.height / 3));
            let mut status = tab.status();
            status.hints = hints;
            if is_question_held {
                status.activity = Some((Activity::Other(HELD.into()), Duration::ZERO));
            }
            status.render(status_area, buffer, tick, &theme);
            let height = tab.composer.height(above.width, area.height).min(above.height);
            let (transcript_area, composer_area) = split_bottom(above, height);
            tab.transcript.render(&tab.view, transcript_area, buffer, &theme, tick);
            tab.composer.render(composer_area, buffer, &theme);
            tab.composer.render_popup(transcript_area, buffer, &theme);
            if let Some((level, text, _)) = &self.toast {
                draw_toast(
                    *level,
                    text,
                    if transcript_area.is_empty() { area } else { transcript_area },
                    buffer,
                    &theme,
                );
            }
        } else if let Some((level, text, _)) = &self.toast {
            draw_toast(*level, text, area, buffer, &theme);
        }
        self.render_dialog(area, frame);
    }

    /// Whether a question waits because somebody is typing.
    fn is_question_held(&self) -> bool {
        self.waiting_question().is_some() && self.question_to_draw().is_none() && self.overlay.is_none()
    }

    /// What was drawn is on the screen. Whether something came up by itself, so that keys typed before were not for it.
    pub(super) fn drawn(&mut self) -> bool {
        let now = Instant::now();
        let mut is_new = false;
        if let Surface::Question(place) = self.next_surface
            && let Some(asked) = self.tabs.get_mut(place).and_then(|tab| tab.questions.front_mut())
        {
            is_new = asked.shown.is_none();
            asked.shown.get_or_insert(now);
        }
        if self.surface != self.next_surface {
            is_new |= matches!(self.next_surface, Surface::LastWords | Surface::Login(_));
            self.surface = self.next_surface;
            self.surface_since = now;
        }
        is_new
    }

    /// Draws what stands over the conversation: a question first, because it waits for an answer.
    fn render_dialog(&mut self, area: Rect, frame: &mut Frame<'_>) {
        if self.has_last_words && !self.is_typing() {
            self.show_last_words();
        }
        self.is_overlay_first &= self.overlay.is_some();
        let place = self.question_to_draw();
        // Whatever is not seen now is to be read anew when it comes back.
        for (index, tab) in self.tabs.iter_mut().enumerate() {
            let is_drawn = |at: usize| place == Some(index) && at == 0;
            tab.questions
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| !is_drawn(*at))
                .for_each(|(_, asked)| asked.shown = None);
        }
        let tab = self.tabs.get(self.current);
        let login = tab.filter(|tab| tab.login.is_some()).map(|tab| Surface::Login(tab.id));
        let login = login.filter(|login| *login == self.surface || !self.is_typing());
        self.next_surface = match (place, &self.overlay, login) {
            (Some(place), ..) => Surface::Question(place),
            (None, Some(Overlay::LastWords(_)), _) => Surface::LastWords,
            (None, Some(_), _) => Surface::Overlay,
            (None, None, Some(login)) => login,
            (None, None, None) => Surface::Conversation,
        };
        let theme = self.theme.clone();
        let is_swallowed = self.swallowed.is_some_and(|swallowed| swallowed.elapsed() < GRACE);
        let buffer = frame.buffer_mut();
        if let Some(place) = place {
            let title = (place != self.current).then(|| self.tabs[place].title());
            let count: usize = self.tabs.iter().map(|tab| tab.questions.len() + tab.waiting_questions).sum();
            let is_tiring = self.tabs[place].refusals >= TIRED;
            let Some(asked) = self.tabs[place].questions.front_mut() else { return };
            match &mut asked.dialog {
                QuestionDialog::Permission(dialog, _) => {
                    dialog.set_session(title);
                    dialog.set_position(1, count);
                    let height = dialog.height(area.width, &theme);
                    let area = at_bottom(area, height);
                    Clear.render(area, buffer);
                    dialog.render(area, buffer, &theme);
                }
                QuestionDialog::Form(dialog, _) => {
                    dialog.set_session(title);
                    let height = dialog.height(area.width, &theme);
                    let area = at_bottom(area, height);
                    Clear.render(area, buffer);
                    dialog.render(area, buffer, &theme);
                }
                QuestionDialog::Url(dialog, _) => {
                    dialog.set_session(title);
                    let height = dialog.height(area.width, &theme);
                    let area = at_bottom(area, height);
                    Clear.render(area, buffer);
                    dialog.render(area, buffer, &theme);
                }
            }
            match (is_swallowed, is_tiring) {
                (true, _) => draw_note(" wait: what was typed before is no answer ", area, buffer, &theme),
                (false, true) => draw_note(" ctrl-n refuses all of this turn ", area, buffer, &theme),
                (false, false) => {}
            }
            return;
        }
        match &mut self.overlay {
            Some(Overlay::Help(dialog)) => {
                let area = centered(area, area.height);
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Options(dialog)) => {
                let area = centered(area, dialog.height());
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Choices(picker)) => {
                let area = centered(area, picker.height().max(area.height / 2));
                Clear.render(area, buffer);
                picker.render(area, buffer, &theme);
            }
            Some(Overlay::Text(dialog) | Overlay::LastWords(dialog)) => {
                let height = dialog.height(area.width, &theme);
                let area = centered(area, height);
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            Some(Overlay::Confirm(dialog, _, _)) => {
                let area = centered(area, dialog.height(area.width, &theme));
                Clear.render(area, buffer);
                dialog.render(area, buffer, &theme);
            }
            None => {
                if matches!(self.next_surface, Surface::Login(_))
                    && let Some((dialog, _)) = self.tabs.get_mut(self.current).and_then(|tab| tab.login.as_mut())
                {
                    let area = centered(area, dialog.height(area.width, &theme));
                    Clear.render(area, buffer);
                    dialog.render(area, buffer, &theme);
                }
            }
        }
    }

    /// Keys that are worth knowing now.
    fn hints(&self) -> Vec<(String, String)> {
        let Some(tab) = self.tabs.get(self.current) else { return Vec::new() };
        let actions: &[(Action, &str)] = match (tab.phase == Phase::Dead, tab.is_working()) {
            (false, true) if tab.phase == Phase::Cancelling => {
                &[(Action::RestartAgent, "restart"), (Action::Send, "queue"), (Action::Help, "keys")]
            }
            (false, false) if tab.session.is_none() => {
                &[(Action::Send, "queue"), (Action::Sessions, "sessions"), (Action::Help, "keys")]
            }
            (true, _) => &[(Action::RestartAgent, "restart"), (Action::ShowLog, "why"), (Action::Quit, "leave")],
            (false, true) => &[(Action::Cancel, "cancel"), (Action::Send, "queue"), (Action::Help, "keys")],
            (false, false) => &[
                (Action::Send, "send"),
                (Action::CycleMode, "mode"),
                (Action::Sessions, "sessions"),
                (Action::Help, "keys"),
            ],
        };
        let hint = |(action, word): &(Action, &str)| Some((self.keys.hint(*action)?, (*word).to_owned()));
        actions.iter().filter_map(hint).collect()
    }

    /// Lines for the terminal's own text: entries that are finished, each once.
    pub(super) fn finished_lines(&mut self, width: u16) -> Vec<Line<'static>> {
        let theme = self.theme.clone();
        let Some(tab) = self.tabs.get_mut(self.current) else { return Vec::new() };
        let root = tab.plan.cwd.display().to_string();
        let view = &tab.view;
        let mut place = tab.printed.max(view.first_place());
        let end = view.first_place() + view.timeline().len();
        let mut lines = Vec::new();
        while place < end {
            let is_last = place + 1 == end;
            let is_open = match view.entry(place) {
                Some(attache::proto::view::Entry::ToolCall(call)) => !call.status.is_final(),
                Some(attache::proto::view::Entry::Message(message)) => {
                    is_last && message.role != attache::proto::view::MessageRole::User
                }
                _ => false,
            };
            if is_open && tab.is_working() {
                break;
            }
            lines.extend(attache_tui::transcript::block_in(view, place, width.into(), &theme, &root));
            lines.push(Line::default());
            place += 1;
        }
        tab.printed = place;
        lines
    }

    /// Draws an inline screen: what is not finished, the composer and the state.
    pub(super) fn render_inline(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let (tick, theme) = (self.tick, self.theme.clone());
        let hints = self.hints();
        let buffer = frame.buffer_mut();
        if let Some(tab) = self.tabs.get_mut(self.current) {
            let (above, status_area) = split_bottom(area, 2.min(area.height / 3));
            let mut status = tab.status();
            status.hints = hints;
            status.below = 0;
            status.render(status_area, buffer, tick, &theme);
            let height = tab.composer.height(above.width, area.height.saturating_mul(2)).min(above.height);
            let (open_area, composer_area) = split_bottom(above, height);
            let root = tab.plan.cwd.display().to_string();
            let end = tab.view.first_place() + tab.view.timeline().len();
            let places = tab.printed.max(tab.view.first_place())..end;
            let mut lines = Vec::new();
            for place in places.rev().take(usize::from(open_area.height)) {
                let mut block =
                    attache_tui::transcript::block_in(&tab.view, place, open_area.width.into(), &theme, &root);
                block.extend(lines);
                lines = block;
            }
            let skipped = lines.len().saturating_sub(open_area.height.into());
            Paragraph::new(lines.split_off(skipped)).render(open_area, buffer);
            tab.composer.render(composer_area, buffer, &theme);
            tab.composer.render_popup(open_area, buffer, &theme);
            if let Some((level, text, _)) = &self.toast {
                draw_toast(*level, text, open_area, buffer, &theme);
            }
        }
        self.render_dialog(area, frame);
    }
}

/// Draws the screen of a program that has just been started, and knows nothing yet.
pub(super) fn render_first(frame: &mut Frame<'_>, theme: &Theme) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    let (above, status_area) = split_bottom(area, 2.min(area.height / 3));
    let mut composer = Composer::new();
    composer.set_placeholder(tab::PLACEHOLDER);
    let (_, composer_area) = split_bottom(above, composer.height(above.width, area.height).min(above.height));
    composer.render(composer_area, buffer, theme);
    let activity = Some((Activity::Starting, Duration::ZERO));
    Status { activity, ..Status::default() }.render(status_area, buffer, 0, theme);
}

fn describe(tab: &Tab) -> catalog::OpenTab {
    catalog::OpenTab {
        id: tab.id,
        title: tab.title(),
        agent: tab.plan.spec.name.clone(),
        identity: tab.identity(),
        session: tab.session.as_ref().map(ToString::to_string),
        sessions: tab.sessions.clone(),
    }
}

fn items(choices: Vec<catalog::Row>) -> Vec<Item<Choice>> {
    let item = |row: catalog::Row| Item::new(row.choice, row.label).detail(row.detail).group(row.group);
    choices.into_iter().map(item).collect()
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

fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let above = area.height - height;
    (Rect { height: above, ..area }, Rect { y: area.y + above, height, ..area })
}

fn at_bottom(area: Rect, height: u16) -> Rect {
    split_bottom(area, height.max(FRAMED).min(area.height)).1
}

fn centered(area: Rect, height: u16) -> Rect {
    let height = height.max(FRAMED).min(area.height);
    let margin = if area.width > 100 { (area.width - 100) / 2 } else { 0 };
    Rect { x: area.x + margin, y: area.y + (area.height - height) / 2, width: area.width - 2 * margin, height }
}

/// Draws a word at the end of the lower edge of a dialog.
fn draw_note(text: &str, area: Rect, buffer: &mut ratatui::buffer::Buffer, theme: &Theme) {
    let wide = u16::try_from(text.len()).unwrap_or(u16::MAX);
    if area.width > wide + 2 && area.height > 0 {
        buffer.set_string(area.right() - wide - 1, area.bottom() - 1, text, theme.warning);
    }
}

fn draw_toast(level: Level, text: &str, area: Rect, buffer: &mut ratatui::buffer::Buffer, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let (style, sign) = match level {
        Level::Info => (theme.accent, theme.sign("·", "-")),
        Level::Warning => (theme.warning, "!"),
        Level::Error => (theme.error, theme.sign("✗", "x")),
    };
    let text = crate::visible::one_line(&text.replace('\n', "; "));
    let area = at_bottom(area, 1);
    Clear.render(area, buffer);
    Paragraph::new(Line::styled(format!("{sign} {text}"), style)).render(area, buffer);
}
