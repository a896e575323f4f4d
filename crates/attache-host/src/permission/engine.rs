//! The decision: all rules that there are, and the mode for what no rule decides.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use attache::model::session::SessionId;
use sha2::{Digest, Sha256};

use super::file::{self, RulesError, parse_rules};
use super::judge::{Judge, Opinion};
use super::place::Ground;
use super::rules::{Rule, Verdict};
use super::subject::{Session, Subject};
use crate::trust::{FOLDER, Status, Trust};

/// What becomes of that which no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// It is asked about; except that the client serves files beneath the roots for reading, because to open a session
    /// there is to show them.
    #[default]
    Ask,
    /// Reading and searching beneath the roots is allowed, and thinking. The rest is asked about.
    Reads,
    /// So are changing and moving files beneath the roots. Deleting is asked about.
    Edits,
    /// So are commands, because whoever runs them confines them: none is run that is not. Where it cannot be told whether
    /// a rule denies one, or where it names a file that may hold secrets, it is asked about.
    Confined,
    /// Everything is allowed. Where it cannot be told whether a rule denies it, it is asked about.
    All,
    /// Everything is refused; what a rule would ask about, too.
    None,
}

impl Policy {
    /// The mode for what the client serves.
    fn for_served(self) -> Self {
        if self == Policy::Ask { Policy::Reads } else { self }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "ask" => Ok(Policy::Ask),
            "reads" => Ok(Policy::Reads),
            "edits" => Ok(Policy::Edits),
            "all" => Ok(Policy::All),
            "none" => Ok(Policy::None),
            _ => Err(UnknownPolicy),
        }
    }
}

/// There is no such mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such mode of permissions\nhint: `ask`, `reads`, `edits`, `all` or `none`")]
pub struct UnknownPolicy;

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For this request.
    Once,
    /// Until the session ends.
    Session,
    /// For every session in this project. Kept in the user's directories, never in the project itself.
    Project,
    /// For every session.
    Always,
}

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What is to become of it.
    pub verdict: Verdict,
    /// A sentence for people that names the rule, with its file and line, or what else decided.
    pub reason: String,
    /// The rules that would allow it from now on, to be shown before they are remembered. Empty if rules cannot.
    pub suggestion: Vec<Rule>,
}

impl Decision {
    /// A refusal that needs no rule.
    pub fn deny(reason: impl Into<String>) -> Self {
        Decision { verdict: Verdict::Deny, reason: reason.into(), suggestion: Vec::new() }
    }

    /// A question that needs no rule.
    pub fn ask(reason: impl Into<String>) -> Self {
        Decision { verdict: Verdict::Ask, reason: reason.into(), suggestion: Vec::new() }
    }
}

/// Where rules are kept.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's configuration; rules for always are in `permissions.toml` there.
    pub config_dir: PathBuf,
    /// What the user's programs remember; rules for a project are beneath it.
    pub state_dir: PathBuf,
    /// The directory of the project, if there is one.
    pub project: Option<PathBuf>,
}

impl Places {
    /// The file of the rules for always.
    pub fn user_file(&self) -> PathBuf {
        self.config_dir.join("permissions.toml")
    }

    /// The file of the rules for the project.
    pub fn project_file(&self) -> Option<PathBuf> {
        let project = self.real_project()?;
        let name: String =
            Sha256::digest(project.as_os_str().as_encoded_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        Some(self.state_dir.join("permissions").join(format!("{name}.toml")))
    }

    fn real_project(&self) -> Option<PathBuf> {
        let project = self.project.as_ref()?;
        Some(crate::paths::canonicalize(project).unwrap_or_else(|_| project.clone()))
    }
}

/// Decides what agents may do. One for all sessions of a front end.
///
/// A file of rules that is wrong or cannot be read takes effect in one way only: nothing is allowed any more without
/// asking, because a rule that denies may be in it. [`Engine::problems`] tells what is wrong.
///
/// ```
/// use attache_host::commands::{Command, Invocation};
/// use attache_host::permission::{Engine, Places, Policy, Session, Subject, Verdict};
///
/// let directory = tempfile::tempdir()?;
/// let places = Places { config_dir: directory.path().join("config"), state_dir: directory.path().join("state"), project: None };
/// let engine = Engine::open(places, Policy::Ask);
/// let session = Session::new("claude", "session-1", directory.path());
/// let invocation = Invocation::new(Command::Line("cargo test".into()), directory.path());
/// let subject = Subject::new(session, vec![invocation.action()]);
/// assert_eq!(engine.decide(&subject).verdict, Verdict::Ask);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    policy: Policy,
    places: Places,
    user: RulesFile,
    project: RulesFile,
    repository: RepositoryRules,
    sessions: HashMap<SessionId, Vec<Rule>>,
}

/// The rules of one file.
type Layer = Result<Vec<Rule>, RulesError>;

/// The rules of a file that may change, and what they were read from.
#[derive(Debug)]
struct RulesFile {
    rules: Layer,
    read_from: Option<(PathBuf, String)>,
}

impl RulesFile {
    /// Reads the file, and its rules if it says anything else than before. Only its bytes tell: a file can change and have
    /// the time and the length that it had.
    fn reload(&mut self, path: Option<PathBuf>) {
        let Some(path) = path else { return self.set(Vec::new()) };
        match file::read(&path) {
            Ok(text) => {
                let read_from = Some((path, text));
                if self.read_from != read_from {
                    self.read_from = read_from;
                    self.rules = self
                        .read_from
                        .as_ref()
                        .map_or(Ok(Vec::new()), |(path, text)| parse_rules(&path.to_string_lossy(), text));
                }
            }
            Err(error) => *self = RulesFile { rules: Err(error), read_from: None },
        }
    }

    /// What the file was just made to say.
    fn set(&mut self, rules: Vec<Rule>) {
        *self = RulesFile { rules: Ok(rules), read_from: None };
    }
}

impl Default for RulesFile {
    fn default() -> Self {
        RulesFile { rules: Ok(Vec::new()), read_from: None }
    }
}

/// The rules that a repository brings along, as far as its user trusts it.
#[derive(Debug)]
struct RepositoryRules {
    rules: Layer,
    /// What all of the rules were read from, while it is trusted.
    read_from: Option<Vec<u8>>,
    /// The list of what is trusted, and the project.
    place: Option<(Trust, PathBuf)>,
}

impl RepositoryRules {
    /// Compares what is there with what the user trusts, by its bytes, and reads rules that are others than before.
    fn reload(&mut self) {
        let Some((trust, project)) = &self.place else { return };
        let trusted = match trust.check_trusted(project) {
            Ok((Status::Trusted, contents)) => {
                contents.as_ref().and_then(|contents| contents.file("permissions.toml")).map(<[u8]>::to_vec)
            }
            // The user took the trust back.
            Ok((Status::Unknown, _)) => None,
            // It was changed, maybe by the agent that the rules are for. Until the user has looked at it, nothing of it
            // allows anything, and what it denied stays denied.
            Ok((Status::Changed | Status::Uncovered | Status::NothingToTrust, _)) | Err(_) => {
                self.read_from = None;
                if let Ok(rules) = &mut self.rules {
                    rules.retain(|rule| rule.verdict != Verdict::Allow);
                }
                return;
            }
        };
        if trusted.is_some() && trusted == self.read_from {
            return;
        }
        let name = project.join(FOLDER).join("permissions.toml").display().to_string();
        self.rules = match trusted.as_deref().map(std::str::from_utf8) {
            None => Ok(Vec::new()),
            Some(Ok(text)) => parse_rules(&name, text),
            Some(Err(_)) => Err(RulesError::Wrong { origin: name, problem: "it is not UTF-8".into() }),
        };
        self.read_from = trusted;
    }
}

impl Default for RepositoryRules {
    fn default() -> Self {
        RepositoryRules { rules: Ok(Vec::new()), read_from: None, place: None }
    }
}

impl Engine {
    /// Reads the user's rules. Never fails: see [`Engine::problems`].
    pub fn open(places: Places, policy: Policy) -> Self {
        let mut engine = Engine {
            policy,
            places,
            user: RulesFile::default(),
            project: RulesFile::default(),
            repository: RepositoryRules::default(),
            sessions: HashMap::new(),
        };
        engine.reload();
        engine
    }

    /// Where the rules are kept.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Looks at the files again. Rules are read only from what has changed, so this may precede every decision.
    pub fn reload(&mut self) {
        self.user.reload(Some(self.places.user_file()));
        self.project.reload(self.places.project_file());
        self.repository.reload();
    }

    /// Takes rules from the repository itself, from now on and as long as the user trusts it. What it denied stays denied
    /// when it is changed and not trusted any more; when the user takes the trust back, none of its rules is left.
    pub fn follow_repository(&mut self, trust: Trust, project: PathBuf) {
        self.repository.place = Some((trust, project));
        self.repository.reload();
    }

    /// Chooses what becomes of that which no rule decides, from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The rules of the user, of the project and of the repository, each with the place where it stands in
    /// [`Rule::origin`]. Those for a session are not among them.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.layers().flatten()
    }

    /// The rules that were remembered for the project: those that [`Engine::forget_rule`] can take back.
    pub fn project_rules(&self) -> &[Rule] {
        self.project.rules.as_deref().unwrap_or_default()
    }

    fn layers(&self) -> impl Iterator<Item = &Vec<Rule>> {
        [&self.user.rules, &self.project.rules, &self.repository.rules]
            .into_iter()
            .filter_map(|layer| layer.as_ref().ok())
    }

    /// Which files of rules were refused, and why.
    pub fn problems(&self) -> impl Iterator<Item = &RulesError> {
        [&self.user.rules, &self.project.rules, &self.repository.rules]
            .into_iter()
            .filter_map(|layer| layer.as_ref().err())
    }

    /// What is to become of a request.
    pub fn decide(&self, subject: &Subject) -> Decision {
        let named: usize = subject.actions.iter().map(|action| action.paths().len()).sum();
        if named > MOST_PATHS {
            return Decision::deny(format!("{named} files in one request are more than anybody can decide about"));
        }
        let mut decision = self.decide_with(subject, &[]);
        if !decision.suggestion.is_empty() {
            // Nothing is offered that would not do.
            let later = self.decide_with(subject, &decision.suggestion);
            if later.verdict != Verdict::Allow {
                decision.suggestion.clear();
            }
        }
        decision
    }

    fn decide_with(&self, subject: &Subject, more: &[Rule]) -> Decision {
        let session = &subject.session;
        let own_rules = self.sessions.get(&session.id);
        let rules = self.rules().chain(own_rules.into_iter().flatten()).chain(more);
        let rules: Vec<&Rule> = rules.filter(|rule| rule.is_for_agent(&session.agent)).collect();
        let own = [self.places.config_dir.clone(), self.places.state_dir.clone()];
        let ground = Ground::new(&session.roots, &own);
        let policy = if subject.is_served { self.policy.for_served() } else { self.policy };
        let judge = Judge { policy, session, rules, ground: &ground };

        let mut decided: Option<Opinion> = None;
        let mut suggestion = Vec::new();
        for action in &subject.actions {
            let mut opinion = judge.judge(action);
            for rule in std::mem::take(&mut opinion.suggestion) {
                if !suggestion.contains(&rule) {
                    suggestion.push(rule);
                }
            }
            if decided.as_ref().is_none_or(|decided| opinion.verdict > decided.verdict) {
                decided = Some(opinion);
            }
        }
        let mut decided = decided.unwrap_or_else(|| Opinion::ask("it does not say what it wants to do"));
        if let (Some(problem), Verdict::Allow) = (self.problems().next(), decided.verdict) {
            decided = Opinion::ask(format!("a file of rules was refused: {problem}"));
        }
        if self.policy == Policy::None && decided.verdict == Verdict::Ask {
            decided =
                Opinion { verdict: Verdict::Deny, reason: format!("nobody is asked: {}", decided.reason), ..decided };
        }
        if decided.verdict != Verdict::Ask {
            suggestion.clear();
        }
        Decision { verdict: decided.verdict, reason: decided.reason, suggestion }
    }

    /// Remembers rules that the user agreed to, such as those of [`Decision::suggestion`].
    ///
    /// What is saved is there for the next process when this returns. Another one that saves at the same time loses
    /// nothing, and what it saved applies here from then on too.
    pub fn remember(&mut self, scope: Scope, session: &Session, rules: &[Rule]) -> Result<(), RulesError> {
        match scope {
            Scope::Once => {}
            Scope::Session => {
                for rule in rules {
                    rule.check().map_err(|problem| RulesError::Wrong { origin: SESSION.into(), problem })?;
                }
                let kept = rules.iter().cloned().map(|mut rule| {
                    if rule.origin.is_empty() {
                        rule.origin = SESSION.into();
                    }
                    rule
                });
                self.sessions.entry(session.id.clone()).or_default().extend(kept);
            }
            Scope::Project => {
                let (Some(path), Some(project)) = (self.places.project_file(), self.places.real_project()) else {
                    let problem = "there is no project to save a rule for".into();
                    return Err(RulesError::Wrong { origin: "project".into(), problem });
                };
                self.project.set(file::append(&path, rules, &heading(&project))?);
            }
            Scope::Always => {
                self.user.set(file::append(&self.places.user_file(), rules, "# What agents may do.\n")?);
            }
        }
        Ok(())
    }

    /// Takes a rule back that was remembered for the project, wherever it stands in the file. The rest of the file, with
    /// its comments, stays as it is. Says whether the rule was there.
    pub fn forget_rule(&mut self, rule: &Rule) -> Result<bool, RulesError> {
        let Some(path) = self.places.project_file() else { return Ok(false) };
        let before = file::load(&path)?;
        if !before.iter().any(|other| other.says_the_same(rule)) {
            self.project.set(before);
            return Ok(false);
        }
        self.project.set(file::remove(&path, |_, other| other.says_the_same(rule))?);
        Ok(true)
    }

    /// Removes the one rule that has this number in [`Engine::rules`], from 0, from the user's file or that of the project.
    /// Says whether it did: a repository's own file is left alone, and so is one that has changed in the meantime.
    pub fn remove_rule(&mut self, number: usize) -> Result<bool, RulesError> {
        let Some(rule) = self.rules().nth(number).cloned() else { return Ok(false) };
        let user = self.user.rules.as_ref().map_or(0, Vec::len);
        let (path, at) = match number.checked_sub(user) {
            None => (self.places.user_file(), number),
            Some(at) if at < self.project_rules().len() => {
                let Some(path) = self.places.project_file() else { return Ok(false) };
                (path, at)
            }
            Some(_) => return Ok(false),
        };
        let before = file::load(&path)?.len();
        let left = file::remove(&path, |index, other| index == at && other.says_the_same(&rule))?;
        let is_removed = left.len() < before;
        match number < user {
            true => self.user.set(left),
            false => self.project.set(left),
        }
        Ok(is_removed)
    }

    /// Forgets what was remembered for a session.
    pub fn forget_session(&mut self, session: &SessionId) {
        self.sessions.remove(session);
    }
}

/// How many files one request can name. Each is judged by each rule, and a person reads all of them.
const MOST_PATHS: usize = 1000;

/// What the origin of a rule for a session is called, if it does not say.
const SESSION: &str = "this session";

fn heading(project: &Path) -> String {
    format!("# What agents may do in {}\n", super::visible(&project.to_string_lossy()))
}
