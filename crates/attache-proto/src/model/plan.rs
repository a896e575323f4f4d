//! What the agent means to do.

use super::unstable::{PlanFile, PlanMarkdown};
use crate::codec::{ids, record, string_enum, union};

ids! {
    /// A plan, named by the agent.
    pub struct PlanId;
}

record! {
    /// The one plan of a v1 session.
    pub struct PlanEntries {
        required {
            /// All steps; they replace those before.
            entries: Vec<PlanEntry> = "entries" list,
        }
    }

    /// A plan as it is now.
    pub struct PlanUpdate {
        required {
            /// The plan; it replaces the one with the same id.
            plan: PlanContent = "plan",
        }
    }

    /// A plan that is a list of steps.
    pub struct PlanItems {
        required {
            /// Its id.
            plan_id: PlanId = ["planId", "id", "planId"],
            /// All steps; they replace those before.
            entries: Vec<PlanEntry> = "entries" list,
        }
    }

    /// A step of a plan.
    pub struct PlanEntry {
        required {
            /// What is to be done.
            content: String = "content",
            /// How much it matters.
            priority: PlanPriority = "priority",
            /// How far it is.
            status: PlanStatus = "status",
        }
    }
}

union! {
    /// The contents of a plan.
    pub enum PlanContent tag "type" {
        /// A list of steps.
        Items(PlanItems) = "items",
        /// A file (unstable).
        File(PlanFile) = "file",
        /// Text (unstable).
        Markdown(PlanMarkdown) = "markdown",
    }
}

impl PlanContent {
    /// The plan's id. Only a kind of plan that we do not know may lack one.
    pub fn plan_id(&self) -> Option<PlanId> {
        match self {
            PlanContent::Items(plan) => Some(plan.plan_id.clone()),
            PlanContent::File(plan) => Some(plan.plan_id.clone()),
            PlanContent::Markdown(plan) => Some(plan.plan_id.clone()),
            PlanContent::Other(plan) => plan.text("planId").or_else(|| plan.text("id")).map(PlanId::from),
        }
    }
}

string_enum! {
    /// How much a step matters.
    pub enum PlanPriority {
        /// Much.
        High = "high",
        /// Somewhat.
        Medium = "medium",
        /// Little.
        Low = "low",
    }

    /// How far a step is.
    pub enum PlanStatus {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
        /// Given up.
        Cancelled = "cancelled",
    }
}
