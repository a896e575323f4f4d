//! Plans that are files or text, and plans that go.

use crate::codec::record;
use crate::model::plan::PlanId;

record! {
    /// A plan is gone (unstable).
    pub struct PlanRemoved {
        required {
            /// The plan.
            plan_id: PlanId = ["planId", "id", "planId"],
        }
    }

    /// A plan that is a file (unstable).
    pub struct PlanFile {
        required {
            /// Its id.
            plan_id: PlanId = ["planId", "id", "planId"],
            /// Where the file is.
            uri: String = "uri",
        }
    }

    /// A plan that is text (unstable).
    pub struct PlanMarkdown {
        required {
            /// Its id.
            plan_id: PlanId = ["planId", "id", "planId"],
            /// The text, as Markdown.
            content: String = "content",
        }
    }
}
