//! The screen with everything on it: sessions side by side, what keys mean, and what is drawn where.

mod actions;
mod draw;
mod input;
mod questions;
mod sessions;

pub(super) use self::draw::render_first;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use attache::model::auth::TerminalAuthMethod;
use attache_tui::dialog::{ConfirmDialog, GRACE, HelpDialog, OptionsDialog, TextDialog};
use attache_tui::keymap::KeyMap;
use attache_tui::picker::Picker;
use attache_tui::theme::Theme;
use tokio::sync::mpsc;

use super::catalog::{self, Choice};
use super::keep::{Draft, History, KeptDraft};
use super::mentions::Files;
use super::tab::{Effect, Phase, Tab};
use super::worker::{News, Plan, WorkerId};
use crate::event::Level;

/// How long a notice in passing stays.
const TOAST: Duration = Duration::from_secs(5);

/// After so many refusals in a row, one key refuses whatever else the turn asks.
const TIRED: u32 = 5;

/// Within this time a second Ctrl-C leaves.
const TWICE: Duration = Duration::from_secs(2);

/// The longest text that is given to the terminal for its clipboard. Terminals drop longer ones.
const LONGEST_COPY: usize = 256 << 10;

/// What takes the terminal away from the screen for a while.
pub(super) enum Outside {
    /// The message, in the person's editor.
    EditMessage(String),
    /// A file at a line, in the person's editor.
    EditFile(PathBuf, Option<u32>),
    /// A question in the person's pager.
    Page { text: String, digest: String },
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
    /// The login of a tab, and whether it asks for a yes to a command.
    Login(WorkerId, bool),
}

/// What a yes does.
enum Confirmed {
    CloseTab(WorkerId),
    Restart(WorkerId),
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
    /// What earlier chats left for agents that are not open.
    left_drafts: Vec<KeptDraft>,
    files: Option<(Files, Instant)>,
    toast: Option<(Level, String, Instant)>,
    is_in_transcript: bool,
    is_plan_shown: bool,
    is_focused: bool,
    has_bell: bool,
    /// When the chat began.
    began: Instant,
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
            left_drafts: Vec::new(),
            plan,
            news,
            next_id: 0,
            files: None,
            toast: None,
            is_in_transcript: false,
            is_plan_shown: true,
            is_focused: true,
            has_bell: true,
            began: Instant::now(),
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
        let draft = |tab: &Tab| KeptDraft { agent: Some(tab.identity()), draft: tab.composer.draft() };
        let drafts = self.tabs.iter().map(draft).filter(|kept| kept.draft != Default::default());
        let drafts: Vec<KeptDraft> = drafts.chain(self.left_drafts.iter().cloned()).collect();
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
            (Phase::Dead, Some(words)) if tab.is_refused => {
                Overlay::LastWords(TextDialog::of_refused_session("The session could not be opened", words.clone()))
            }
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
        let words: String = text.split_whitespace().flat_map(|word| [word, " "]).collect();
        let begin: String = words.trim_end().chars().take(40).collect();
        let more = if begin.len() < words.trim_end().len() { "…" } else { "" };
        // Whether the terminal took it is not told.
        self.toast(Level::Info, format!("given to the terminal's clipboard: {begin}{more}"));
        self.deeds.push(Deed::Copy(text));
    }
}
