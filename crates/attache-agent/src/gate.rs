//! The gate before every side effect: rules first, then the mode, then the person. Anything but a clear yes is no.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::Error;
use attache::agent::{Ask, Decision, Turn};
use attache::model::permission::{PermissionOption, PermissionOptionKind};
use attache::model::tool::{ToolCallUpdate, ToolKind};
use attache_host::paths::canonicalize;
use attache_host::permission::carried;
use attache_host::permission::{
    self as judged, Action, Engine, Places, Policy, Rule, Scope, Session, Subject, Verdict,
};

use crate::project::Project;
use crate::settings::Mode;

/// What decides for one session.
pub(crate) struct Gate {
    /// Asked on a thread for work that blocks: it reads files of rules, and looks where paths lead.
    engine: Arc<Mutex<Engine>>,
    session: Session,
    /// What may be read beside the roots: the long outputs of this session's own tools.
    readable: PathBuf,
    /// What becomes of that which no rule decides, if it is not the mode that says so.
    policy: Option<Policy>,
    /// One question at a time.
    asking: tokio::sync::Mutex<()>,
    /// Nobody's answer leads out of the directories of the session, or out of the sandbox.
    stays_inside: bool,
}

/// How something would be run, which decides whether it is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Terms {
    /// As it always is: anything but a command, and a command that cannot be confined.
    Usual,
    /// It can be kept in the strictest sandbox, and asks for no more.
    Confined,
    /// It wants the network, for the reason that the model gives.
    Network(String),
    /// It wants to run outside of the sandbox, for the reason that the model gives.
    Unsandboxed(String),
}

/// The name that rules have for running outside of the sandbox. A rule that allows a command does not allow that; one that
/// names it, letter by letter, does.
const UNSANDBOXED: &str = "command:unsandboxed";

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It may be done.
    Yes,
    /// It may be done in the strictest sandbox and not otherwise: nobody was asked, and no rule allows it.
    Confined,
    /// A person said no, or nobody said yes; a sentence for the model.
    No(String),
    /// It may not, by a rule or by the mode, without a question; a sentence for the model.
    Refused(String),
}

/// What is decided before anybody is asked.
enum Judged {
    Passed(Pass),
    Asks(Box<judged::Decision>),
}

impl Gate {
    pub(crate) fn new(
        places: Places,
        session: Session,
        project: &Project,
        readable: PathBuf,
        policy: Option<Policy>,
        run_rules: &[Rule],
    ) -> Self {
        let mut engine = Engine::open(places, Mode::default().policy());
        // They were checked when they were read; one that is not taken would be one that denies nothing.
        let refused = engine.remember(Scope::Session, &session, run_rules).is_err();
        let policy = if refused { Some(Policy::None) } else { policy };
        engine.follow_repository(project.trust(), project.root.clone());
        let asking = tokio::sync::Mutex::default();
        Gate { engine: Arc::new(Mutex::new(engine)), session, readable, policy, asking, stays_inside: false }
    }

    /// Refuses what leads out of the directories of the session, or out of the sandbox, whatever anybody answers.
    pub(crate) fn stays_inside(mut self, stays_inside: bool) -> Self {
        self.stays_inside = stays_inside;
        self
    }

    /// What is wrong with the files of rules.
    pub(crate) async fn problems(&self) -> Vec<String> {
        self.ask_engine(|engine| {
            let mistakes = engine.rules().filter_map(|rule| Some(format!("{}: {}", rule.origin, rule.mistake()?)));
            engine.problems().map(ToString::to_string).chain(mistakes).collect()
        })
        .await
    }

    /// Every rule that is kept for the project or the user.
    pub(crate) async fn rules(&self) -> Vec<Rule> {
        self.ask_engine(|engine| {
            engine.reload();
            engine.rules().cloned().collect()
        })
        .await
    }

    /// Takes back the rule of this number, from 0, if it is kept for the project. What stands in the user's own file is
    /// theirs to change. Returns those that still decide the same.
    pub(crate) async fn forget(&self, number: usize) -> Result<Option<Vec<Rule>>, String> {
        self.ask_engine(move |engine| {
            let Some(rule) = engine.rules().nth(number).cloned() else { return Ok(None) };
            if !engine.project_rules().contains(&rule) {
                return Ok(None);
            }
            match engine.remove_rule(number).map_err(|error| error.to_string())? {
                true => Ok(Some(engine.rules().filter(|other| other.covers(&rule)).cloned().collect())),
                false => Ok(None),
            }
        })
        .await
    }

    /// Decides about actions. `call` is what the person is shown if they are asked.
    pub(crate) async fn pass(
        &self,
        turn: &Turn,
        mode: Mode,
        actions: &[Action],
        terms: &Terms,
        title: &str,
        call: ToolCallUpdate,
    ) -> Result<Pass, Error> {
        let _one = self.asking.lock().await;
        let decision = match self.judge(mode, actions, terms).await {
            Judged::Passed(pass) => return Ok(pass),
            Judged::Asks(decision) => *decision,
        };
        let pattern = pattern(&decision.suggestion);
        // A client of ours takes the decision as it is, and only asks.
        let ask = Ask::new(title).description(decision.reason.clone()).tool_call(call).options(options(&pattern));
        let ask = ask.meta(carried::to_meta(actions, &decision));
        match ask_person(turn, ask).await? {
            Decision::Allowed(option) => {
                match option.as_str() {
                    ALLOW_ALWAYS => self.remember(Scope::Project, decision.suggestion).await,
                    ALLOW_SESSION => self.remember(Scope::Session, decision.suggestion).await,
                    _ => {}
                }
                Ok(Pass::Yes)
            }
            Decision::Rejected(option) => {
                if option.as_str() == REJECT_ALWAYS && !decision.suggestion.is_empty() {
                    let rules: Vec<Rule> = decision
                        .suggestion
                        .iter()
                        .map(|rule| Rule { verdict: Verdict::Deny, not_args: Vec::new(), ..rule.clone() })
                        .collect();
                    self.remember(Scope::Project, rules).await;
                }
                Ok(Pass::No("the person refused this call".into()))
            }
            Decision::Cancelled => Ok(Pass::No("refused: nobody answered the question for permission".into())),
        }
    }

    /// Whether nobody would be asked about this, and it would be done.
    pub(crate) async fn is_unasked(&self, mode: Mode, actions: &[Action], terms: &Terms) -> bool {
        matches!(self.judge(mode, actions, terms).await, Judged::Passed(Pass::Yes | Pass::Confined))
    }

    /// What can be decided without a person.
    async fn judge(&self, mode: Mode, actions: &[Action], terms: &Terms) -> Judged {
        if mode == Mode::Architect && actions.iter().any(changes_something) {
            return Judged::Passed(Pass::Refused(
                "refused: the mode `architect` reads and plans, it changes nothing and runs nothing. Call switch_mode \
                 with your plan when it is ready to be carried out."
                    .into(),
            ));
        }
        if self.stays_inside && matches!(terms, Terms::Unsandboxed(_)) {
            return Judged::Passed(Pass::Refused("refused: here no command runs outside of the sandbox".into()));
        }
        let subject = Subject::new(self.session.clone(), actions.to_vec());
        let (stays_inside, roots) = (self.stays_inside, self.session.roots.clone());
        let policy = self.policy.unwrap_or(mode.policy());
        let may_confine = *terms == Terms::Confined && self.confines(mode);
        let readable = self.readable.clone();
        let decided = self
            .ask_engine(move |engine| {
                if subject.actions.iter().all(|action| is_inside(&readable, action)) {
                    return None;
                }
                if stays_inside && subject.actions.iter().any(|action| leads_out(&roots, action)) {
                    let reason = "here nothing outside of the directories of the session is used".to_owned();
                    return Some((judged::Decision { verdict: Verdict::Deny, ..judged::Decision::ask(reason) }, false));
                }
                engine.set_policy(policy);
                engine.reload();
                let decision = engine.decide(&subject);
                let is_confined = may_confine && decision.verdict == Verdict::Ask && {
                    engine.set_policy(Policy::Confined);
                    engine.decide(&subject).verdict == Verdict::Allow
                };
                Some((decision, is_confined))
            })
            .await;
        let Some((mut decision, is_confined)) = decided else { return Judged::Passed(Pass::Yes) };
        match terms {
            Terms::Confined if is_confined => return Judged::Passed(Pass::Confined),
            Terms::Usual | Terms::Confined => {}
            Terms::Network(why) => {
                let why = in_its_words(why);
                decision.reason = format!("the command wants the network, because {why}; {}", decision.reason);
            }
            Terms::Unsandboxed(why) => {
                decision = self.without_sandbox(decision, why).await;
            }
        }
        match decision.verdict {
            Verdict::Allow => Judged::Passed(Pass::Yes),
            Verdict::Deny => Judged::Passed(Pass::Refused(format!("refused: {}", decision.reason))),
            Verdict::Ask => Judged::Asks(Box::new(decision)),
        }
    }

    /// Asks a plain question about a tool call: yes or no, nothing to remember.
    pub(crate) async fn confirm(&self, turn: &Turn, title: &str, call: ToolCallUpdate) -> Result<bool, Error> {
        let _one = self.asking.lock().await;
        Ok(ask_person(turn, Ask::new(title).tool_call(call)).await?.is_allowed())
    }

    /// Whether commands of this mode run unasked where they are confined. Not if whoever started us has said what is
    /// allowed.
    pub(crate) fn confines(&self, mode: Mode) -> bool {
        mode == Mode::Code && self.policy.is_none()
    }

    /// What becomes of a command that wants to run outside of the sandbox, from what is decided about the command itself.
    /// It is always asked about, unless a rule names just that.
    async fn without_sandbox(&self, decided: judged::Decision, why: &str) -> judged::Decision {
        let name = Some(UNSANDBOXED.to_owned());
        let action = Action::Other { kind: ToolKind::Execute, name, paths: Vec::new() };
        let subject = Subject::new(self.session.clone(), vec![action]);
        let agent = self.session.agent.clone();
        let (itself, is_named) = self
            .ask_engine(move |engine| {
                let is_for_us = |rule: &Rule| rule.agent.as_ref().is_none_or(|named| *named == agent);
                let names_it = |rule: &Rule| {
                    rule.verdict == Verdict::Allow
                        && is_for_us(rule)
                        && rule.tools.iter().any(|tool| tool == UNSANDBOXED)
                };
                (engine.decide(&subject), engine.rules().any(names_it))
            })
            .await;
        let is_denied = |decision: &judged::Decision| decision.verdict == Verdict::Deny;
        if let Some(denied) = [&decided, &itself].into_iter().find(|decision| is_denied(decision)) {
            return denied.clone();
        }
        if decided.verdict == Verdict::Allow && itself.verdict == Verdict::Allow && is_named {
            return decided;
        }
        let why = in_its_words(why);
        judged::Decision::ask(format!(
            "the command wants to run outside of the sandbox, with all that you may do, because {why}"
        ))
    }

    /// An answer that cannot be remembered is still an answer for this once.
    async fn remember(&self, scope: Scope, rules: Vec<Rule>) {
        let session = self.session.clone();
        self.ask_engine(move |engine| {
            if engine.remember(scope, &session, &rules).is_err() {
                let _ = engine.remember(Scope::Session, &session, &rules);
            }
        })
        .await;
    }

    async fn ask_engine<T: Send + 'static>(&self, work: impl FnOnce(&mut Engine) -> T + Send + 'static) -> T {
        let engine = self.engine.clone();
        crate::off_thread(move || work(&mut crate::lock(&engine))).await
    }
}

/// Whether an action uses a path that is not beneath the roots, with links followed. What cannot be told leads out.
fn leads_out(roots: &[PathBuf], action: &Action) -> bool {
    let (paths, cwd): (&[String], _) = match action {
        Action::Files { paths, .. } | Action::Other { paths, .. } | Action::Unclear { paths, .. } => (paths, None),
        // What a command may reach is the sandbox's to say.
        Action::Execute { cwd, .. } => (&[], cwd.as_ref()),
    };
    let is_beneath = |path: &String| {
        let path = Path::new(path);
        // Of what is not there yet, the nearest directory that is.
        let real = path.ancestors().find_map(|known| {
            let rest = path.strip_prefix(known).ok()?;
            Some(canonicalize(known).ok()?.join(rest))
        });
        let is_plain = !path.components().any(|part| part == Component::ParentDir);
        path.is_absolute()
            && is_plain
            && real.is_some_and(|real| {
                roots.iter().filter_map(|root| canonicalize(root).ok()).any(|root| real.starts_with(root))
            })
    };
    !paths.iter().chain(cwd).all(is_beneath)
}

/// Asks the person. A client that answers with an error, or with something that cannot be understood, has not said yes.
async fn ask_person(turn: &Turn, ask: Ask) -> Result<Decision, Error> {
    let decision = match turn.ask(ask).await {
        Err(Error::Refused(_) | Error::BadAnswer { .. }) => Decision::Cancelled,
        decision => decision?,
    };
    // A client that cancels the turn may answer what is asked before it says so.
    let is_cancelled = async || tokio::time::timeout(MOMENT, turn.cancelled()).await.is_ok();
    match decision {
        Decision::Cancelled if is_cancelled().await => Err(Error::Cancelled),
        decision => Ok(decision),
    }
}

/// How long a cancel may come after the answer that goes with it.
const MOMENT: Duration = Duration::from_millis(100);

const ALLOW_ALWAYS: &str = "allow_always";
const ALLOW_SESSION: &str = "allow_session";
const REJECT_ALWAYS: &str = "reject_always";

/// What the model says, marked as its own words.
fn in_its_words(reason: &str) -> String {
    format!("(in the model's words) \"{}\"", crate::tools::on_one_line(reason))
}

/// What "always" stands for, in words; empty when there is no rule for it.
fn pattern(suggestion: &[Rule]) -> String {
    // Whose rules they are goes without saying.
    let own = |rule: &Rule| Rule { agent: None, ..rule.clone() };
    let words: Vec<String> = suggestion.iter().map(|rule| own(rule).to_string().replacen("allow ", "", 1)).collect();
    words.join(", ")
}

fn options(pattern: &str) -> Vec<PermissionOption> {
    let mut options = vec![PermissionOption::new("allow_once", "Allow once", PermissionOptionKind::AllowOnce)];
    if !pattern.is_empty() {
        let name = format!("Always allow {pattern} in this project");
        options.push(PermissionOption::new(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways));
        let name = format!("Always allow {pattern} in this session");
        options.push(PermissionOption::new(ALLOW_SESSION, name, PermissionOptionKind::AllowAlways));
    }
    options.push(PermissionOption::new("reject_once", "Reject", PermissionOptionKind::RejectOnce));
    if !pattern.is_empty() {
        let name = format!("Never allow {pattern} in this project");
        options.push(PermissionOption::new(REJECT_ALWAYS, name, PermissionOptionKind::RejectAlways));
    }
    options
}

/// Whether an action only looks at what is in a directory.
fn is_inside(directory: &Path, action: &Action) -> bool {
    let Action::Files { kind: ToolKind::Read | ToolKind::Search, paths } = action else { return false };
    let real = canonicalize(directory);
    paths.iter().map(Path::new).all(|path| {
        let is_inside = path.starts_with(directory) || real.as_ref().is_ok_and(|real| path.starts_with(real));
        is_inside && path.components().all(|part| part != Component::ParentDir)
    })
}

/// Whether an action is more than looking. Unknown kinds are.
fn changes_something(action: &Action) -> bool {
    match action {
        Action::Files { kind, .. } | Action::Unclear { kind, .. } => !matches!(kind, ToolKind::Read | ToolKind::Search),
        Action::Other { kind, .. } => !matches!(kind, ToolKind::Fetch | ToolKind::Think | ToolKind::Read),
        _ => true,
    }
}
