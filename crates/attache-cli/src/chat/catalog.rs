//! What can be begun: agents, open sessions, and sessions of the past in this directory.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use attache::model::session::SessionInfo;

use super::worker::{Begin, Plan, WorkerId};
use crate::agents::AgentSpec;
use crate::agents::catalog::{Installed, ROWS};
use crate::exit::Failure;
use crate::journal;
use crate::project::Project;

/// How many runs of the past are looked through for sessions, and how many are shown.
const LOOKED_THROUGH: usize = 200;
const MOST_SESSIONS: usize = 30;

/// Something to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// A session that is open.
    Tab(WorkerId),
    /// A new session with this agent.
    Agent(String),
    /// A session of the past.
    Session {
        /// The name of its agent.
        agent: String,
        /// Who its agent is: several can have the same name.
        identity: String,
        id: String,
    },
}

/// A row of the list.
pub(super) struct Row {
    pub(super) choice: Choice,
    pub(super) label: String,
    pub(super) detail: String,
    pub(super) group: &'static str,
}

/// An open session, as far as the list tells of it.
pub(super) struct OpenTab {
    pub(super) id: WorkerId,
    pub(super) title: String,
    pub(super) agent: String,
    pub(super) identity: String,
    pub(super) session: Option<String>,
    /// What its agent lists.
    pub(super) sessions: Vec<SessionInfo>,
}

/// A session of the past, as our own record has it.
#[derive(Debug, Clone)]
pub(super) struct Past {
    id: String,
    agent: String,
    identity: String,
    /// What was asked first in it.
    prompt: Option<String>,
    /// When it was last gone on with, as RFC 3339 has it.
    time: String,
}

impl Past {
    pub(super) fn is(&self, id: &str, identity: &str) -> bool {
        self.id == id && self.identity == identity
    }
}

/// Looks for the sessions of a directory. Records can be long, and nobody waits for them.
pub(super) fn look_for_past(cwd: &Path) -> mpsc::Receiver<Vec<Past>> {
    let (sender, coming) = mpsc::channel();
    let here = cwd.display().to_string();
    // Nobody misses a thread that could not be started; the list is shorter then.
    let _ = thread::Builder::new().name("past sessions".into()).spawn(move || {
        let mut found: Vec<Past> = Vec::new();
        for run in journal::runs().unwrap_or_default().into_iter().take(LOOKED_THROUGH) {
            let Ok(Some(summary)) = journal::summary(&run) else { continue };
            let Some(id) = summary.session.filter(|_| summary.start.cwd == here) else { continue };
            let identity = identity_of(&summary.start);
            let prompt = journal::prompt(&run);
            match found.iter_mut().find(|past| past.is(&id, &identity)) {
                // The oldest run comes last, and has what was asked first.
                Some(past) => past.prompt = prompt.or_else(|| past.prompt.take()),
                None => {
                    let (agent, time) = (summary.start.agent, summary.start.time);
                    found.push(Past { id, agent, identity, prompt, time });
                }
            }
            if found.len() >= MOST_SESSIONS {
                break;
            }
        }
        let _ = sender.send(found);
    });
    coming
}

/// Who the agent of a record is. Records of the first version only have its name.
fn identity_of(start: &crate::event::Start) -> String {
    start.identity.clone().unwrap_or_else(|| start.agent.clone())
}

/// Everything that can be begun: open sessions, agents with the built-in one first, sessions of this directory.
pub(super) fn choices(open: &[OpenTab], past: &[Past]) -> Vec<Row> {
    let mut rows = Vec::new();
    for tab in open {
        let detail = tab.agent.clone();
        rows.push(Row { choice: Choice::Tab(tab.id), label: tab.title.clone(), detail, group: "open" });
    }
    rows.extend(agents());
    let now = SystemTime::now();
    let open_now = open.iter().filter_map(|tab| Some((tab.identity.clone(), tab.session.clone()?)));
    let mut known: Vec<(String, String)> = open_now.collect();
    let mut add = |agent: &str, identity: &str, id: &str, label: Option<String>, time: Option<&str>| {
        let key = (identity.to_owned(), id.to_owned());
        if known.contains(&key) {
            return;
        }
        known.push(key);
        let label = label.filter(|label| !label.trim().is_empty()).unwrap_or_else(|| id.to_owned());
        let detail = match time.and_then(|time| ago(time, now)) {
            Some(ago) => format!("{agent}, {ago}"),
            None => agent.to_owned(),
        };
        let choice = Choice::Session { agent: agent.to_owned(), identity: identity.to_owned(), id: id.to_owned() };
        rows.push(Row { choice, label, detail, group: "sessions here" });
    };
    for tab in open {
        for session in &tab.sessions {
            let id = session.session_id.to_string();
            let asked = || past.iter().find(|past| past.is(&id, &tab.identity)).and_then(|past| past.prompt.clone());
            let label = session.title.clone().or_else(asked);
            // Our own agent names what was said first: in this one nothing was.
            if label.is_none() && tab.identity == crate::agents::BUILT_IN {
                continue;
            }
            add(&tab.agent, &tab.identity, &id, label, session.updated_at.as_deref());
        }
    }
    for past in past {
        add(&past.agent, &past.identity, &past.id, past.prompt.clone(), Some(&past.time));
    }
    rows.extend(fetched_agents());
    rows
}

/// How long ago a time of RFC 3339 is, in the words of a person.
fn ago(time: &str, now: SystemTime) -> Option<String> {
    let then = seconds_of(time)?;
    let now = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    let minutes = now.saturating_sub(then) / 60;
    Some(match minutes {
        ..1 => "just now".into(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        1440..2880 => "yesterday".into(),
        2880..43_200 => format!("{} days ago", minutes / 1440),
        _ => time.get(..10)?.to_owned(),
    })
}

/// The seconds since 1970 of a time of RFC 3339.
fn seconds_of(time: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // What comes after the seconds: a fraction, and how far from UTC the clock is.
    let zone = time.get(19..)?.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let offset = match zone.chars().next() {
        Some('Z' | 'z') => 0,
        Some(sign @ ('+' | '-')) => {
            let hours = zone.get(1..3)?.parse::<i64>().ok()?;
            let minutes = zone.get(4..6)?.parse::<i64>().ok()?;
            (hours * 60 + minutes) * if sign == '+' { 60 } else { -60 }
        }
        _ => return None,
    };
    // Days since 1970 by the civil calendar, with years that begin in March.
    let years = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        365 * years + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400) + day_of_year - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// The agents: the built-in one, those of agents.toml, and those of the catalogue that are here.
fn agents() -> Vec<Row> {
    let row = |name: &str, detail: String| Row {
        choice: Choice::Agent(name.into()),
        label: name.into(),
        detail,
        group: "agents",
    };
    let model = match crate::agent::settings(None) {
        Ok((config, _)) if config.model.is_some() => {
            let model = config.model.unwrap_or_default();
            format!("built in, with {model}")
        }
        Ok(_) => "built in, and no model is chosen: `attache setup` does that".into(),
        Err(_) => "built in; its settings have a mistake: `attache doctor`".into(),
    };
    let mut rows = vec![row(crate::agents::BUILT_IN, model)];
    let config = crate::agents::config::Config::read().unwrap_or_default();
    for (name, entry) in &config.agents {
        rows.push(row(name, entry.description.clone().unwrap_or_else(|| entry.command.join(" "))));
    }
    for known in ROWS {
        if config.agents.contains_key(known.name) {
            continue;
        }
        // One that has to be downloaded stands in a list of its own.
        if let (_, Installed::Yes) = known.command() {
            rows.push(row(known.name, known.title.into()));
        }
    }
    rows
}

/// The agents of the catalogue that are not here, and are downloaded when they are begun.
fn fetched_agents() -> Vec<Row> {
    let config = crate::agents::config::Config::read().unwrap_or_default();
    let unnamed = ROWS.iter().filter(|known| !config.agents.contains_key(known.name));
    let fetched = unnamed.filter(|known| known.command().1 == Installed::OnDemand);
    let row = |known: &crate::agents::catalog::Row| Row {
        choice: Choice::Agent(known.name.into()),
        label: known.name.into(),
        detail: format!("{}; npx downloads {}", known.title, known.package.unwrap_or_default()),
        group: "agents that are downloaded first",
    };
    fetched.map(row).collect()
}

/// A plan for an agent by name, otherwise as the given one. With an identity it has to be that agent, because a session is
/// to be gone on with, and nobody else's sessions are its own.
pub(super) fn plan(like: &Plan, agent: &str, identity: Option<&str>, begin: Begin) -> Result<Plan, Failure> {
    let is_it = match identity {
        Some(identity) => like.spec.identity(&like.cwd) == identity,
        None => like.spec.name == agent,
    };
    if is_it {
        return Ok(Plan { begin, ..like.clone() });
    }
    let project = Project::find(&like.cwd)?;
    let mut spec = match identity {
        Some(identity) => spec_of(agent, identity, &like.cwd, &project)?,
        None => crate::agents::resolve(Some(agent), &[], &project)?,
    };
    super::tell_permissions(&mut spec, like.permissions);
    Ok(Plan { spec, begin, settings: Vec::new(), ..like.clone() })
}

/// The agent of a record: by its name, or by the command that is its identity, if that says all of it.
pub(super) fn spec_of(agent: &str, identity: &str, cwd: &Path, project: &Project) -> Result<AgentSpec, Failure> {
    let is_it = |spec: &AgentSpec| spec.identity(cwd) == identity;
    if let Some(spec) = crate::agents::resolve(Some(agent), &[], project).ok().filter(is_it) {
        return Ok(spec);
    }
    // Programs that run code of their directory have it in their identity.
    let command = identity.strip_suffix(&format!(" in {}", cwd.display())).unwrap_or(identity);
    let words: Vec<String> = command.split(' ').map(String::from).collect();
    crate::agents::resolve(None, &words, project).ok().filter(is_it).ok_or_else(|| {
        let what = format!("the record of this session does not have the whole command of its agent, `{agent}`");
        Failure::usage(format!("{what}\nhint: `attache chat --resume ID -- COMMAND`"))
    })
}

/// Deletes a session that the built-in agent keeps.
pub(super) fn delete_kept(id: &str) -> Result<(), Failure> {
    crate::agent::sessions::delete_all(&[id.to_owned()])?.1.map_or(Ok(()), Err)
}

/// Forgets our own record of a session of an agent.
pub(super) fn forget(id: &str, identity: &str) {
    for run in journal::runs().unwrap_or_default().into_iter().take(LOOKED_THROUGH) {
        let Some(summary) = journal::summary(&run).ok().flatten() else { continue };
        if summary.session.as_deref() == Some(id) && identity_of(&summary.start) == identity {
            // One that is being written is in use.
            let _ = journal::delete(&run);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_told_as_a_person_would() {
        let now = UNIX_EPOCH + Duration::from_secs(seconds_of("2026-03-01T12:00:00Z").unwrap() as u64);
        let rows = [
            ("2026-03-01T11:59:40.123Z", Some("just now")),
            ("2026-03-01T13:00:00+02:00", Some("1 h ago")),
            ("2026-03-01T11:13:00Z", Some("47 min ago")),
            ("2026-02-28T11:00:00Z", Some("yesterday")),
            ("2026-02-20T12:00:00-00:00", Some("9 days ago")),
            ("2024-02-29T12:00:00Z", Some("2024-02-29")),
            ("2027-01-01T00:00:00Z", Some("just now")),
            ("yesterday", None),
            ("2026-13-01T11:59:40Z", None),
            ("", None),
        ];
        for (time, told) in rows {
            assert_eq!(ago(time, now).as_deref(), told, "{time}");
        }
        assert_eq!(seconds_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds_of("2000-03-01T00:00:00Z"), Some(951_868_800));
    }
}
