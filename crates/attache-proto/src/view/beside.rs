//! What is shown beside the conversation.

use super::{PLAN_LIMIT, SessionView, Terminal, UNKNOWN_LIMIT, patch_meta};
use crate::codec::{record, string_enum};
use crate::model::Unknown;
use crate::model::plan::PlanContent;
use crate::model::session::SessionId;
use crate::model::state::StateUpdate;
use crate::model::terminal::TerminalId;
use crate::model::unstable::{SubagentCapabilities, SubagentUpdate};
use crate::model::update::{Cost, SessionInfoUpdate, UsageUpdate};

string_enum! {
    /// What a session is doing.
    pub enum SessionState {
        /// Waiting for the user's next message.
        Idle = "idle",
        /// Working.
        Running = "running",
        /// Waiting for the user to decide something.
        RequiresAction = "requires_action",
        /// The agent cannot tell (unstable).
        Unknown = "unknown",
    }
}

impl SessionState {
    /// Whether to show the session as busy: in every state but idle, those that we do not know included.
    #[inline]
    pub fn is_busy(&self) -> bool {
        *self != SessionState::Idle
    }
}

/// A new session is idle until told otherwise.
impl Default for SessionState {
    #[inline]
    fn default() -> Self {
        SessionState::Idle
    }
}

record! {
    /// How full the model's context is, and what the session has cost.
    pub struct ContextUsage {
        required {
            /// The tokens in the context.
            used: u64 = "used",
            /// The tokens that fit.
            size: u64 = "size",
        }
        optional {
            /// What the session has cost so far, if the agent reports it.
            cost: Option<Cost> = "cost",
        }
    }

    /// An agent that works for this one (unstable).
    pub struct Subagent {
        required {
            /// Its session.
            session_id: SessionId = "sessionId",
        }
        optional {
            /// What it does, in one line.
            title: Option<String> = "title",
            /// More about it.
            description: Option<String> = "description",
            /// What the user can do to it, such as cancel it.
            capabilities: Option<SubagentCapabilities> = "capabilities",
            /// What it is doing.
            state: Option<StateUpdate> = "state",
            /// The directory that it works in, absolute.
            cwd: Option<String> = "cwd",
            /// More directories that it works in, absolute.
            additional_directories: Option<Vec<String>> = "additionalDirectories",
        }
    }
}

impl SessionView {
    #[inline]
    pub(super) fn apply_plan(&mut self, plan: PlanContent) {
        let id = plan.plan_id();
        match self.plans.iter_mut().find(|stored| stored.plan_id() == id) {
            Some(stored) => *stored = plan,
            None => {
                if self.plans.len() == PLAN_LIMIT {
                    self.plans.remove(0);
                    self.omitted += 1;
                }
                self.plans.push(plan);
            }
        }
    }

    #[inline]
    pub(super) fn apply_info(&mut self, update: &SessionInfoUpdate) {
        update.title.clone().apply(&mut self.title);
        update.updated_at.clone().apply(&mut self.updated_at);
        patch_meta(&mut self.meta, &update.meta);
    }

    #[inline]
    pub(super) fn apply_usage(&mut self, update: &UsageUpdate) {
        let mut cost = self.usage.take().and_then(|usage| usage.cost);
        update.cost.clone().apply(&mut cost);
        self.usage =
            Some(ContextUsage { cost, meta: update.meta.clone(), ..ContextUsage::new(update.used, update.size) });
    }

    #[inline]
    pub(super) fn apply_state(&mut self, update: &StateUpdate) {
        let state = SessionState::from(update.tag());
        if state != self.state {
            // Chunks without an id that come from now on belong to another message.
            self.timeline.end_message();
            self.state = state;
        }
        self.background = match update {
            StateUpdate::Running(state) => state.background.clone(),
            StateUpdate::Idle(state) => state.background.clone(),
            StateUpdate::RequiresAction(state) => state.background.clone(),
            StateUpdate::Unknown(state) => state.background.clone(),
            StateUpdate::Other(state) => state.raw().get("background").and_then(|work| work.to_model().ok()),
        };
        if let StateUpdate::Idle(idle) = update {
            // A bare idle repeats the state and says nothing of how the work ended.
            if idle.stop_reason.is_some() || idle.error.is_some() {
                self.stop_reason.clone_from(&idle.stop_reason);
                self.error.clone_from(&idle.error);
            }
            if idle.usage.is_some() {
                self.turn_usage.clone_from(&idle.usage);
            }
        }
    }

    #[inline]
    pub(super) fn apply_subagent(&mut self, update: &SubagentUpdate) {
        let id = &update.session_id;
        let stored = self.subagents.entry(id.clone()).or_insert_with(|| Subagent::new(id.clone()));
        update.title.clone().apply(&mut stored.title);
        update.description.clone().apply(&mut stored.description);
        update.capabilities.clone().apply(&mut stored.capabilities);
        update.state.clone().apply(&mut stored.state);
        update.cwd.clone().apply(&mut stored.cwd);
        update.additional_directories.clone().apply(&mut stored.additional_directories);
        patch_meta(&mut stored.meta, &update.meta);
    }

    #[inline]
    pub(super) fn terminal_mut(&mut self, id: &TerminalId) -> &mut Terminal {
        self.terminals.entry(id.clone()).or_insert_with(|| Terminal::new(id.clone()))
    }

    #[inline]
    pub(super) fn keep_unknown(&mut self, unknown: &Unknown) {
        self.unknown_count += 1;
        if self.unknown.len() == UNKNOWN_LIMIT {
            self.unknown.pop_front();
        }
        self.unknown.push_back(unknown.clone());
    }
}
