//! Sessions side by side: opened, chosen, restarted, closed and deleted.

use attache::model::session::SessionId;
use attache_tui::picker::{Item, Picker};

use super::{App, Overlay};
use crate::chat::catalog::{self, Choice};
use crate::chat::keep::KeptDraft;
use crate::chat::tab::Tab;
use crate::chat::worker::{Begin, Order, Outlet, Plan, Worker, WorkerId};
use crate::event::Level;

impl App {
    /// Opens a session with an agent.
    pub(in crate::chat) fn open(&mut self, plan: Plan) {
        let (id, worker) = self.start(plan.clone());
        let mut tab = Tab::new(id, plan, worker);
        tab.composer.set_history(self.history.prompts.clone());
        tab.transcript.set_plan_shown(self.is_plan_shown);
        if !self.draft.has_place() {
            self.left_drafts = self.draft.take_over(&self.plan.cwd);
        }
        // What was written to one agent is not for another.
        let identity = tab.identity();
        let is_its = |kept: &KeptDraft| kept.agent.as_ref().is_none_or(|agent| *agent == identity);
        let (its, others) = std::mem::take(&mut self.left_drafts).into_iter().partition::<Vec<_>, _>(is_its);
        self.left_drafts = others;
        if !its.is_empty() {
            tab.take_over(its.into_iter().map(|kept| kept.draft).collect());
            self.toast(Level::Info, "what an earlier chat did not send is here again, and waits for you");
        }
        if let Some(prompt) = self.first_prompt.take() {
            tab.ask_first(prompt);
        }
        self.tabs.push(tab);
        self.current = self.tabs.len() - 1;
        self.is_in_transcript = false;
    }

    pub(super) fn start(&mut self, plan: Plan) -> (WorkerId, Worker) {
        let id = self.next_id;
        self.next_id += 1;
        (id, Worker::start(plan, Outlet { id, news: self.news.clone() }))
    }

    /// Shows what can be begun: agents, and the sessions of this directory.
    pub(in crate::chat) fn choose(&mut self) {
        let hint = "enter open  esc close  f1 keys";
        let picker = Picker::new("Who do you want to talk to?", items(self.choices())).with_hint(hint).with_delete();
        self.overlay = Some(Overlay::Choices(picker));
        self.past_coming = Some(catalog::look_for_past(&self.plan.cwd));
    }

    pub(super) fn choices(&self) -> Vec<catalog::Row> {
        catalog::choices(&self.tabs.iter().map(describe).collect::<Vec<_>>(), &self.past)
    }

    /// Brings an open list up to date.
    pub(super) fn list_choices(&mut self) {
        let choices = items(self.choices());
        if let Some(Overlay::Choices(picker)) = &mut self.overlay {
            picker.set_items(choices);
        }
    }

    /// Deletes a session: where its own agent keeps it, and here.
    pub(super) fn delete(&mut self, id: &str, agent: &str, identity: &str) {
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

    pub(super) fn begin(&mut self, choice: Choice) {
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

    pub(super) fn show(&mut self, place: usize) {
        self.current = place.min(self.tabs.len().saturating_sub(1));
        self.is_in_transcript = false;
        // What was said in passing was about where the person was.
        self.toast = None;
        if let Some(tab) = self.tab() {
            tab.is_unread = false;
        }
    }

    pub(super) fn close(&mut self, id: WorkerId) {
        if let Some(tab) = self.tabs.iter().find(|tab| tab.id == id) {
            tab.order(Order::Close);
        }
        self.tabs.retain(|tab| tab.id != id);
        self.show(self.current);
        if self.tabs.is_empty() {
            self.choose();
        }
    }

    pub(super) fn restart(&mut self, place: usize) {
        let Some(tab) = self.tabs.get(place) else { return };
        tab.order(Order::Close);
        let mut plan = tab.plan.clone();
        match &tab.session {
            Some(session) => plan.begin = Begin::Again(session.clone()),
            None if tab.is_refused => plan.begin = Begin::New,
            None => {}
        }
        let (id, worker) = self.start(plan.clone());
        let is_plan_shown = self.is_plan_shown;
        if let Some(tab) = self.tabs.get_mut(place) {
            tab.restart(id, plan, worker);
            tab.transcript.set_plan_shown(is_plan_shown);
        }
    }
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
