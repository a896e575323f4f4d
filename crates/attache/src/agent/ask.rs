//! Asking for permission.

use attache_proto::model::permission::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, PermissionOutcome, PermissionRequest, PermissionSubject,
};
use attache_proto::model::tool::ToolCallUpdate;
use attache_proto::model::{Meta, Patch};

use super::{SessionHandle, ToolCall};
use crate::Error;

/// A question for permission: what for, and which answers there are.
///
/// ```
/// use attache::agent::Ask;
///
/// let ask = Ask::new("Write to `config.json`?").allow_always("Always for this file");
/// # let _ = ask;
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until it is given to `Turn::ask`"]
pub struct Ask {
    title: String,
    description: Option<String>,
    subject: Option<PermissionSubject>,
    options: Vec<PermissionOption>,
    meta: Option<Meta>,
}

/// What came of a question for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Yes, by this choice.
    Allowed(PermissionOptionId),
    /// No, by this choice.
    Rejected(PermissionOptionId),
    /// No answer: the turn was cancelled, or the answer was none that was offered.
    Cancelled,
}

impl Decision {
    /// Whether it was a clear yes.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allowed(_))
    }
}

impl Ask {
    /// A question that can be allowed or rejected, once.
    pub fn new(title: impl Into<String>) -> Self {
        Ask {
            title: title.into(),
            description: None,
            subject: None,
            options: vec![
                PermissionOption::new("allow_once", "Allow once", PermissionOptionKind::AllowOnce),
                PermissionOption::new("reject_once", "Reject", PermissionOptionKind::RejectOnce),
            ],
            meta: None,
        }
    }

    /// Says more about what is asked.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Says which tool call it is about.
    ///
    /// A question has no title of its own in version 1: there the person sees the title of the tool call in place of the
    /// title that was given to [`new`](Self::new), and no [`description`](Self::description). So the title of the call should
    /// say what is to be done. Without a tool call, version 1 shows the title of the question.
    pub fn about(self, tool: &ToolCall) -> Self {
        self.tool_call(tool.described())
    }

    /// Says which tool call it is about, and what there is to know of it: its input, its diff.
    pub fn tool_call(mut self, update: ToolCallUpdate) -> Self {
        self.subject = Some(PermissionSubject::tool_call(update));
        self
    }

    /// Adds custom metadata (`_meta`) for the client.
    pub fn meta(mut self, meta: impl Into<Option<Meta>>) -> Self {
        self.meta = meta.into();
        self
    }

    /// Says what it is about in any other way.
    pub fn subject(mut self, subject: PermissionSubject) -> Self {
        self.subject = Some(subject);
        self
    }

    /// Adds a choice to allow this and what is like it.
    pub fn allow_always(self, name: impl Into<String>) -> Self {
        self.option(PermissionOption::new("allow_always", name, PermissionOptionKind::AllowAlways))
    }

    /// Adds a choice to reject this and what is like it.
    pub fn reject_always(self, name: impl Into<String>) -> Self {
        self.option(PermissionOption::new("reject_always", name, PermissionOptionKind::RejectAlways))
    }

    /// Adds any choice.
    pub fn option(mut self, option: PermissionOption) -> Self {
        self.options.push(option);
        self
    }

    /// Replaces the choices.
    pub fn options(mut self, options: Vec<PermissionOption>) -> Self {
        self.options = options;
        self
    }

    pub(super) async fn put(mut self, handle: &SessionHandle) -> Result<Decision, Error> {
        // Where a question has no title of its own, the tool call's is shown.
        if let Some(PermissionSubject::ToolCall(subject)) = &mut self.subject
            && subject.tool_call.title.is_keep()
        {
            subject.tool_call.title = Patch::Set(self.title.clone());
        }
        let offered = self.options.clone();
        let request = PermissionRequest::new(handle.id().clone(), self.options).title(self.title).with(|request| {
            request.description = self.description;
            request.subject = self.subject;
            request.meta = self.meta;
        });
        let response = handle.call(&request).await?;
        // Only a choice that was offered counts, and only one of the two kinds of yes allows.
        let PermissionOutcome::Selected(selected) = response.outcome else { return Ok(Decision::Cancelled) };
        let option = offered.into_iter().find(|option| option.option_id == selected.option_id);
        Ok(match option {
            Some(option) if option.kind.is_allow() => Decision::Allowed(option.option_id),
            Some(option) => Decision::Rejected(option.option_id),
            None => Decision::Cancelled,
        })
    }
}
