//! Questions of agents: which one is asked now, and what keys answer.

use std::time::{Duration, Instant};

use attache::model::elicitation::CreateElicitationResponse;
use attache_tui::dialog::{FormReply, GRACE, LoginReply, PermissionReply, UrlReply};
use attache_tui::keymap::{Action, Context};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, Deed, Outside, Surface, TIRED, TWICE};
use crate::chat::tab::{Phase, QuestionDialog, Tab};
use crate::chat::worker::Order;
use crate::client::ask::Reply;
use crate::client::browser::{self, WebAddress};
use crate::event::Level;

/// How long the keys rest before a question comes up by itself, and how long where a message is half written.
const REST: Duration = Duration::from_millis(500);
const REST_OF_MESSAGE: Duration = Duration::from_secs(1);

impl App {
    /// The place of the tab whose question is on the screen. One that was not drawn yet takes no keys.
    pub(super) fn asking(&self) -> Option<usize> {
        self.tabs.iter().position(|tab| tab.questions.front().is_some_and(|asked| asked.shown.is_some()))
    }

    /// Whether somebody is typing: nothing comes up by itself then, and no answer is made of what was meant otherwise.
    pub(super) fn is_typing(&self) -> bool {
        let has_message = self.tabs.get(self.current).is_some_and(|tab| !tab.composer.is_empty());
        let rest = if has_message { REST_OF_MESSAGE } else { REST };
        self.typed.is_some_and(|typed| typed.elapsed() < rest)
    }

    /// The place of the tab whose question is to be drawn.
    pub(super) fn question_to_draw(&self) -> Option<usize> {
        let place = self.waiting_question()?;
        let is_shown = self.tabs[place].questions.front().is_some_and(|asked| asked.shown.is_some());
        let is_covered = self.is_overlay_first && self.overlay.is_some();
        (!is_covered && (is_shown || !self.is_typing())).then_some(place)
    }

    /// The place of the tab whose question comes first: the current one, then any other.
    pub(super) fn waiting_question(&self) -> Option<usize> {
        let is_asking = |tab: &Tab| !tab.questions.is_empty();
        if self.tabs.get(self.current).is_some_and(is_asking) {
            return Some(self.current);
        }
        self.tabs.iter().position(is_asking)
    }

    /// Somebody types what was meant for something else: a question takes keys when they have rested.
    pub(super) fn swallow(&mut self, place: usize) {
        self.swallowed = Some(Instant::now());
        if let Some(asked) = self.tabs.get_mut(place).and_then(|tab| tab.questions.front_mut()) {
            asked.shown = asked.shown.map(|_| Instant::now());
        }
    }

    /// Never a yes: all that waits is answered with no, and the agent stops. Twice leaves, whatever is asked next.
    pub(super) fn refuse_and_stop(&mut self, place: usize) {
        if self.quit_pressed.is_some_and(|pressed| pressed.elapsed() < TWICE) {
            return self.deeds.push(Deed::Quit);
        }
        self.quit_pressed = Some(Instant::now());
        let tab = &mut self.tabs[place];
        tab.cancel();
        tab.questions.clear();
        self.toast(Level::Info, "refused, and the turn is cancelled; once more leaves");
    }

    pub(super) fn question_key(&mut self, place: usize, key: KeyEvent) {
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

    pub(super) fn answer(&mut self, place: usize, key: KeyEvent) {
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
                        let (text, digest) = (dialog.pager_text(), dialog.question().digest.clone());
                        self.deeds.push(Deed::Outside(Outside::Page { text, digest }));
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

    pub(super) fn login_key(&mut self, key: KeyEvent) {
        let Some(tab) = self.tabs.get_mut(self.current) else { return };
        let Some((dialog, _)) = &mut tab.login else { return };
        match dialog.handle_key(key, self.surface_since.elapsed()) {
            None => {}
            // The session is there, and can be used for what needs no login.
            Some(LoginReply::Closed) if tab.session.is_some() => {
                tab.login = None;
                tab.enter(Phase::Idle);
            }
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

    /// A question was read in the pager, all of it.
    pub(in crate::chat) fn paged(&mut self, digest: &str) {
        for asked in self.tabs.iter_mut().filter_map(|tab| tab.questions.front_mut()) {
            if let QuestionDialog::Permission(dialog, _) = &mut asked.dialog
                && dialog.question().digest == digest
            {
                dialog.set_read();
            }
        }
    }

    /// The screen was somebody else's for a while.
    pub(in crate::chat) fn hide_questions(&mut self) {
        self.tabs.iter_mut().flat_map(|tab| &mut tab.questions).for_each(|asked| asked.shown = None);
        self.surface = Surface::Conversation;
    }

    /// Whether a question waits because somebody is typing.
    pub(super) fn is_question_held(&self) -> bool {
        self.waiting_question().is_some() && self.question_to_draw().is_none() && self.overlay.is_none()
    }

    /// What was drawn is on the screen. Whether something came up by itself, so that keys typed before were not for it.
    pub(in crate::chat) fn drawn(&mut self) -> bool {
        let now = Instant::now();
        let mut is_new = false;
        if let Surface::Question(place) = self.next_surface
            && let Some(asked) = self.tabs.get_mut(place).and_then(|tab| tab.questions.front_mut())
        {
            is_new = asked.shown.is_none();
            asked.shown.get_or_insert(now);
        }
        if self.surface != self.next_surface {
            is_new |= matches!(self.next_surface, Surface::LastWords | Surface::Login(..));
            self.surface = self.next_surface;
            self.surface_since = now;
        }
        is_new
    }
}
