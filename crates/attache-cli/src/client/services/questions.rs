//! What a person is asked on behalf of the agent, one question at a time, and what the answers do.

use std::sync::Arc;

use attache::client::Pending;
use attache::model::elicitation::{CreateElicitationRequest, CreateElicitationResponse};
use attache::model::permission::{PermissionOptionKind, PermissionOutcome};
use attache::process::Command;
use attache_host::permission::{Question, Rule, Scope};
use tokio::task::AbortHandle;

use super::{Asked, Finished, Services, Waiting, What, files, permission_event};
use crate::client::ask::{Asker, PermissionQuestion, Reply};
use crate::event::{self, Answer, Level};
use crate::tty::Tty;

impl Services {
    /// Whether a person is being asked.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// A question of the agent's own. Where nobody is there to answer it, it is cancelled.
    pub(super) fn elicit(&mut self, call: Pending<CreateElicitationRequest>) {
        if self.asker.is_some() {
            return self.waiting.push_back(Waiting::Elicitation(Box::new(call)));
        }
        self.tasks.spawn(async move {
            let _ = call.reply(Ok(CreateElicitationResponse::cancel())).await;
            Finished::Events(Vec::new())
        });
    }

    /// Whether there is a question to ask, and none is being asked.
    pub(crate) fn wants_to_ask(&self) -> bool {
        self.asking.is_none() && !self.waiting.is_empty()
    }

    /// How many questions wait behind the one that is being asked.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Asks the next question, one at a time. From now on until it is answered, nobody else writes to the terminal.
    pub(crate) fn ask_next(&mut self) {
        let Some(asker) = self.asker.clone().filter(|_| self.asking.is_none()) else { return };
        self.asking = match self.waiting.pop_front() {
            None => None,
            Some(Waiting::Decision(asked)) => Some(self.ask(asker, asked)),
            Some(Waiting::Elicitation(call)) => Some(self.tasks.spawn(async move {
                let withdrawn = call.cancel_token();
                let answer = tokio::select! {
                    answer = asker.elicitation(&call) => answer,
                    () = withdrawn.cancelled() => CreateElicitationResponse::cancel(),
                };
                let _ = call.reply(Ok(answer)).await;
                Finished::Closed
            })),
        };
    }

    pub(super) fn ask(&mut self, asker: Arc<dyn Asker>, mut asked: Box<Asked>) -> AbortHandle {
        let (files, is_built_in) = (self.files.clone(), self.is_built_in);
        let (elsewhere, cwd) = (self.elsewhere.clone(), self.session.cwd.clone());
        self.tasks.spawn(async move {
            if let What::Write(call, spot) = &asked.what {
                asked.subject.diffs = vec![files::before_and_after(spot.files(&files), spot, call).await];
            }
            let (options, withdrawn) = match &asked.what {
                // The choices of our own agent are those that we have anyway.
                What::Permission(ask) if is_built_in => (Vec::new(), ask.cancel_token()),
                What::Permission(ask) => (ask.options.clone(), ask.cancel_token()),
                What::Read(call, _) => (Vec::new(), call.cancel_token()),
                What::Write(call, _) => (Vec::new(), call.cancel_token()),
                What::Run(call, _) => (Vec::new(), call.cancel_token()),
            };
            let mut question = Question::new(&asked.subject, &asked.decision);
            // Files and commands of the client are here, wherever the agent is.
            if let (What::Permission(_), Some(place)) = (&asked.what, &elsewhere) {
                question = question.on(&place.host, &cwd, place.directory.as_deref());
            }
            let question = PermissionQuestion { question, options };
            tokio::select! {
                reply = asker.permission(&question) => Finished::Answered(asked, reply),
                // Dropped, a question is cancelled and a request refused.
                () = withdrawn.cancelled() => Finished::Closed,
            }
        })
    }

    /// What the person said when they refused, as far as the agent was not told with its answer: for the next prompt.
    pub(crate) fn take_untold_reasons(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }

    pub(super) fn replied(&mut self, mut asked: Asked, reply: Reply) -> Vec<event::Event> {
        match reply {
            Reply::Deny { reason } => {
                asked.decision.reason = match &reason {
                    Some(reason) => format!("the person said no: {reason}"),
                    None => "the person said no".into(),
                };
                self.refuse_because(asked, reason)
            }
            Reply::Option(option) => {
                let What::Permission(ask) = &asked.what else { return self.refuse(asked) };
                let is_allowing = ask.options.iter().any(|offered| {
                    let allows = [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways];
                    offered.option_id == option && allows.contains(&offered.kind)
                });
                asked.decision.reason =
                    if is_allowing { "the person said yes".into() } else { "the person said no".into() };
                let answer = if is_allowing { Answer::Allowed } else { Answer::Denied };
                let told = permission_event(&asked, answer);
                if is_allowing {
                    self.note_grant(&asked.subject);
                }
                if let What::Permission(ask) = asked.what {
                    self.answer(ask, PermissionOutcome::selected(option));
                }
                vec![told]
            }
            Reply::Allow(scope) => {
                let rules = std::mem::take(&mut asked.decision.suggestion);
                let mut events = Vec::new();
                let is_ours = !self.is_built_in || scope == Scope::Always;
                match is_ours.then(|| self.engine.remember(scope, &self.session, &rules)) {
                    Some(Err(error)) => {
                        let text = format!("this is allowed once only: {error}");
                        events.push(event::Event::notice(Level::Warning, text));
                    }
                    Some(Ok(())) | None => events.extend(self.saved(scope, &rules)),
                }
                asked.decision.reason = "the person said yes".into();
                events.extend(self.perform(asked, scope, true));
                events
            }
        }
    }

    /// Which rules an answer has left, and how to take them back.
    pub(super) fn saved(&mut self, scope: Scope, rules: &[Rule]) -> Option<event::Event> {
        let listed = rules.iter().map(|rule| format!("  {rule}")).collect::<Vec<_>>().join("\n");
        let text = match scope {
            Scope::Once => return None,
            Scope::Session => format!("for this session:\n{listed}"),
            Scope::Project | Scope::Always => {
                format!("saved:\n{listed}\nhint: to take it back, type {}", self.take_back(scope, rules))
            }
        };
        Some(event::Event::notice(Level::Info, text))
    }

    /// What to type to remove rules that are kept: by number where it is one, else after a look at the list.
    pub(super) fn take_back(&mut self, scope: Scope, rules: &[Rule]) -> String {
        self.engine.reload();
        let place = match std::env::current_dir().and_then(|here| crate::paths::real(&here)) {
            Ok(here) if here == self.session.cwd => String::new(),
            _ => format!(" -C {}", Command::new(self.session.cwd.display().to_string())),
        };
        let [rule] = rules else {
            return format!(
                "`attache permissions list{place}` for their numbers, then `attache permissions remove NUMBER{place}`"
            );
        };
        let user_file = format!("{}:", self.engine.places().user_file().display());
        let (user, project) = {
            let user = self.engine.rules().take_while(|rule| rule.origin.starts_with(&user_file));
            (user.collect::<Vec<_>>(), self.engine.project_rules())
        };
        let number = match scope {
            Scope::Always => user.iter().position(|other| other.says_the_same(rule)).unwrap_or(user.len()),
            // Our own agent may not have written it yet. What is new is the last one.
            _ => user.len() + project.iter().position(|other| other.says_the_same(rule)).unwrap_or(project.len()),
        };
        format!("`attache permissions remove {}{place}`", number + 1)
    }

    /// The turn is cancelled: nothing more is asked, and nothing that is asked for from now on is done.
    pub(crate) fn cancel(&mut self) {
        self.is_cancelled = true;
        // A yes was for the turn in which it was said.
        self.grants.clear();
        self.waiting.clear();
        // What the question belongs to is answered by its end.
        if let Some(asking) = self.asking.take() {
            asking.abort();
        }
    }

    /// What was refused in this turn only because nobody could be asked, and what to do about it.
    pub(crate) fn unasked(&self) -> Option<(String, String)> {
        let requests = match self.unasked {
            0 => return None,
            1 => "1 request was".to_owned(),
            count => format!("{count} requests were"),
        };
        let (why, how) = match Tty::open() {
            Ok(_) => ("stderr is not the terminal, where questions are seen", "leave stderr there, "),
            Err(_) => ("there is no terminal to ask on", ""),
        };
        let hint = format!("hint: {how}allow it with --permissions or --allow, or by rules in permissions.toml");
        Some((format!("{requests} refused, because {why}"), hint))
    }
}
