//! On what terms a command runs: confined as the settings say, more strictly because nobody was asked, or with more than the
//! sandbox gives because somebody was.

use std::sync::atomic::Ordering::Relaxed;

use attache::model::tool::ToolCallContent;

use super::{CommandWork, Commands, SandboxMode, SandboxState, sandbox};
use crate::gate;
use crate::tools::{Refusal, on_one_line};

/// What a command needs that the sandbox withholds, with the reason that the model gives for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// The network.
    Network(String),
    /// To run outside of the sandbox.
    Unsandboxed(String),
}

/// On what terms a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it needs. It is run with that, so it has to be allowed with that.
    pub need: Option<Need>,
    /// Nobody was asked, and no rule allows it: it runs in the strictest sandbox or not at all.
    pub is_unasked: bool,
    /// It is a small model's, which is told of no `needs`.
    pub for_small: bool,
}

impl Terms {
    /// The title of a command, with what it needs.
    pub(super) fn title(&self, title: String) -> String {
        match &self.need {
            None => title,
            Some(Need::Network(_)) => format!("{title} (with the network)"),
            Some(Need::Unsandboxed(_)) => format!("{title} (outside of the sandbox)"),
        }
    }

    /// What a person is shown before they allow it. Some clients show nothing else.
    pub(super) fn content(&self) -> Option<ToolCallContent> {
        let (what, why) = match self.need.as_ref()? {
            Need::Network(why) => ("It wants the network", why),
            Need::Unsandboxed(why) => ("It wants to run outside of the sandbox, with all that you may do", why),
        };
        let why = on_one_line(why);
        Some(ToolCallContent::text(format!("{what}. The model says why: \"{why}\"")))
    }
}

impl CommandWork {
    fn terms(&self) -> Option<&Terms> {
        match self {
            CommandWork::Run { terms, .. } | CommandWork::Start { terms, .. } => Some(terms),
            CommandWork::Look { .. } | CommandWork::Stop { .. } => None,
        }
    }

    fn terms_mut(&mut self) -> Option<&mut Terms> {
        match self {
            CommandWork::Run { terms, .. } | CommandWork::Start { terms, .. } => Some(terms),
            CommandWork::Look { .. } | CommandWork::Stop { .. } => None,
        }
    }

    /// Has it run in the strictest sandbox, or not at all.
    pub fn confine(&mut self) {
        if let Some(terms) = self.terms_mut() {
            *terms = Terms { need: None, is_unasked: true, for_small: terms.for_small };
        }
    }

    /// Whether nobody was asked about it.
    pub(crate) fn is_unasked(&self) -> bool {
        self.terms().is_some_and(|terms| terms.is_unasked)
    }
}

impl Commands {
    /// What it needs, as things are: nothing withholds anything where there is no sandbox, and nothing gives a network
    /// where there is to be none.
    pub(super) fn settle(&self, mut work: CommandWork) -> Result<CommandWork, Refusal> {
        if let Some(terms) = work.terms_mut().filter(|terms| terms.need.is_some()) {
            match self.mode() {
                SandboxMode::Off => terms.need = None,
                SandboxMode::On => {}
                SandboxMode::Offline => {
                    return Err(Refusal(
                        "refused: the user has set the sandbox to `offline`, so no command gets the network or runs outside \
                         of the sandbox. Do without, or tell the user what they have to run themselves"
                            .into(),
                    ));
                }
            }
        }
        Ok(work)
    }

    /// Why commands cannot be confined as strictly as one has to be that runs unasked; `None` if they can.
    pub fn why_asked(&self) -> Option<String> {
        match self.mode() {
            SandboxMode::Off => Some("the sandbox is off".into()),
            SandboxMode::On | SandboxMode::Offline => sandbox::unasked(&self.setup, false).err(),
        }
    }

    /// The same without keeping the runtime waiting: a sandbox is made to see whether it can be.
    async fn why_asked_now(&self) -> Option<String> {
        if self.mode() == SandboxMode::Off {
            return self.why_asked();
        }
        let setup = self.setup.clone();
        let made = crate::spawn_blocking(move || sandbox::unasked(&setup, false).err()).await;
        made.unwrap_or_else(|_| Some("it could not be found out whether it can".into()))
    }

    /// On what terms the gate judges a call. `is_confining` says whether commands that are confined are not asked about.
    pub(crate) async fn terms(&self, work: &CommandWork, is_confining: bool) -> Judged {
        let terms = match work.terms() {
            None => gate::Terms::Usual,
            Some(Terms { need: Some(Need::Network(why)), .. }) => gate::Terms::Network(why.clone()),
            Some(Terms { need: Some(Need::Unsandboxed(why)), .. }) => gate::Terms::Unsandboxed(why.clone()),
            Some(_) if !is_confining => gate::Terms::Usual,
            Some(_) => match self.why_asked_now().await {
                None => gate::Terms::Confined,
                Some(why) => return Judged { terms: gate::Terms::Usual, notice: self.tell_why(&why) },
            },
        };
        Judged { terms, notice: None }
    }

    /// What the person should know before anything runs, if they do not know it yet.
    pub(crate) async fn take_warning(&self) -> Option<String> {
        self.warn_of(&self.sandbox_state_now().await)
    }

    fn warn_of(&self, state: &SandboxState) -> Option<String> {
        // It says why commands cannot be confined, which is why they are asked about.
        if matches!(state, SandboxState::Unavailable(_) | SandboxState::Refused(_)) {
            self.has_told_why.store(true, Relaxed);
        }
        let warning = state.warning();
        let mut warned = crate::lock(&self.warned);
        let is_new = *warned != warning;
        warned.clone_from(&warning);
        warning.filter(|_| is_new)
    }

    /// Why commands are asked about, once a session.
    fn tell_why(&self, why: &str) -> Option<String> {
        let is_first = !self.has_told_why.swap(true, Relaxed);
        is_first
            .then(|| format!("every command is asked about, also in mode `code`, because it cannot be confined: {why}"))
    }
}

/// How a call is to be judged.
pub(crate) struct Judged {
    pub(crate) terms: gate::Terms,
    /// What the person should know first.
    pub(crate) notice: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Setup;
    use super::*;
    use crate::cut::Spill;

    #[test]
    fn why_nothing_can_be_confined_is_told_once_wherever_it_is_told_first() {
        let commands = || Commands::new(Setup::new("/project", Arc::new(Spill::new("/spill"))));
        let none = || SandboxState::Unavailable("no Landlock".into());
        let told = commands();
        assert_eq!(told.warn_of(&none()).as_deref(), Some("commands cannot be confined: no Landlock"));
        assert_eq!((told.tell_why("no Landlock"), told.warn_of(&none())), (None, None));
        // What has changed is told anew.
        assert!(told.warn_of(&SandboxState::Refused("too many paths".into())).is_some());
        assert_eq!((told.warn_of(&SandboxState::Off), told.tell_why("the sandbox is off")), (None, None));

        // Where only the list is long, the reason comes with the first command.
        let told = commands();
        let state = SandboxState::On { offline: false, gaps: vec!["no namespaces".into()] };
        assert!(told.warn_of(&state).is_some_and(|warning| !warning.contains("no namespaces")));
        assert!(told.tell_why("no namespaces").is_some_and(|why| why.ends_with(": no namespaces")));
        assert_eq!((told.tell_why("no namespaces"), told.warn_of(&state)), (None, None));
    }
}
