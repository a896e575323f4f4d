//! Setting an option.

use std::collections::HashMap;

use attache_proto::Dialect;
use serde_json::Value;

use super::config::{OptionList, id_of, lists, values};
use crate::exchange::{Call, MessageIndex};
use crate::record::Side;
use crate::rule::{Trial, Verdict, shown};
use crate::rules::walk;

/// A request to set an option.
struct Setting<'a> {
    call: &'a Call,
    session: &'a str,
    id: &'a str,
    value: &'a Value,
}

/// The requests to set an option, in order, each with the lists of its session.
struct Settings<'a> {
    all: Vec<Setting<'a>>,
    lists: HashMap<&'a str, Vec<OptionList<'a>>>,
}

impl<'a> Settings<'a> {
    fn read(trial: &'a Trial<'_>) -> Self {
        let mut by_session: HashMap<&str, Vec<_>> = HashMap::new();
        for list in lists(trial) {
            by_session.entry(list.session).or_default().push(list);
        }
        let calls = trial.calls_to("session/set_config_option").filter(|call| call.from == Side::Client);
        let setting = |call: &'a Call| {
            let (session, id) = (call.session()?, call.params["configId"].as_str()?);
            Some(Setting { call, session, id, value: &call.params["value"] })
        };
        Settings { all: calls.filter_map(setting).collect(), lists: by_session }
    }

    /// The lists of a session that were sent before a message.
    fn before(&self, session: &str, message: MessageIndex) -> &[OptionList<'a>] {
        let lists = self.lists.get(session).map_or(&[][..], Vec::as_slice);
        &lists[..lists.partition_point(|list| list.at < message)]
    }

    /// The list that was in force when an option was set, and those that crossed with it.
    fn in_force(&self, setting: &Setting<'_>) -> &[OptionList<'a>] {
        let until = self.before(setting.session, setting.call.answered_at().unwrap_or(MessageIndex::MAX));
        let asked = self.before(setting.session, setting.call.at).len();
        &until[asked.saturating_sub(1)..]
    }
}

/// Whether a list has an option with this value.
fn has(list: &OptionList<'_>, id: &str, value: &Value) -> bool {
    walk::items(list.options).iter().filter(|option| id_of(option) == Some(id)).any(|option| {
        match option["type"].as_str() {
            Some("select") => value.as_str().is_some_and(|value| values(option).any(|listed| listed == value)),
            Some("boolean") => value.is_boolean(),
            // What a type that we do not know can be set to is not for us to say.
            _ => true,
        }
    })
}

pub(super) fn whole_list(trial: &Trial<'_>, verdict: &mut Verdict) {
    let settings = Settings::read(trial);
    for setting in &settings.all {
        let (Some(result), Some(at)) = (setting.call.result(), setting.call.answered_at()) else { continue };
        let Some(options) = result["configOptions"].as_array() else {
            verdict.broken(at, "`session/set_config_option` was answered without `configOptions`");
            continue;
        };
        let ids: Vec<_> = options.iter().filter_map(id_of).collect();
        let before = settings.before(setting.session, setting.call.at).last();
        let before = before.map_or(0, |list| walk::items(list.options).len());
        // Other options may come and go with one that is set, but hardly all of them.
        let seen = match (ids.contains(&setting.id), &ids[..]) {
            (true, [_]) if before > 1 => Some(format!("only the option that was set of {before}")),
            (false, _)
                if before > 0 && settings.in_force(setting).iter().any(|list| has(list, setting.id, setting.value)) =>
            {
                Some(format!("the option {} was set, and is not in the list", shown(setting.id)))
            }
            _ => None,
        };
        match seen {
            Some(seen) => verdict.broken_by(vec![setting.call.at, at], seen),
            None => verdict.kept(),
        }
    }
}

/// The settings of what no list in force has, if there was a list at all.
fn unknown<'s, 'a>(settings: &'s Settings<'a>) -> impl Iterator<Item = &'s Setting<'a>> {
    settings.all.iter().filter(|setting| {
        let was_listed = !settings.before(setting.session, setting.call.at).is_empty();
        was_listed && !settings.in_force(setting).iter().any(|list| has(list, setting.id, setting.value))
    })
}

pub(super) fn unknown_refused(trial: &Trial<'_>, verdict: &mut Verdict) {
    let settings = Settings::read(trial);
    for setting in unknown(&settings) {
        let Some(at) = setting.call.answered_at() else { continue };
        let seen = match setting.call.error() {
            None => "was accepted".to_owned(),
            Some(error) if trial.dialect == Dialect::V2 && error.code != -32602 => {
                format!("was answered {}", error.code)
            }
            Some(_) => {
                verdict.kept();
                continue;
            }
        };
        let value = setting.value.as_str().map_or_else(|| "a value".to_owned(), shown);
        verdict.broken_by(vec![setting.call.at, at], format!("{value} for the option {} {seen}", shown(setting.id)));
    }
}

pub(super) fn unknown_code(trial: &Trial<'_>, verdict: &mut Verdict) {
    let settings = Settings::read(trial);
    for setting in unknown(&settings) {
        let (Some(at), Some(error)) = (setting.call.answered_at(), setting.call.error()) else { continue };
        verdict.check(error.code == -32602, at, || format!("an unknown option or value was answered {}", error.code));
    }
}

pub(super) fn refused_unchanged(trial: &Trial<'_>, verdict: &mut Verdict) {
    let settings = Settings::read(trial);
    for setting in unknown(&settings) {
        let (Some(_), Some(answered)) = (setting.call.error(), setting.call.answered_at()) else { continue };
        let all = settings.lists.get(setting.session).map_or(&[][..], Vec::as_slice);
        let Some(next) = all.get(all.partition_point(|list| list.at < answered)) else { continue };
        let is_current = |option: &Value| id_of(option) == Some(setting.id) && option["currentValue"] == *setting.value;
        let changed = walk::items(next.options).iter().any(is_current);
        match changed {
            true => verdict.broken_by(
                vec![answered, next.at],
                format!("the option {} was refused a value, and then had it", shown(setting.id)),
            ),
            false => verdict.kept(),
        }
    }
}

/// How many lists of options may have crossed with a request that was made after an older one.
const CROSSING: usize = 4;

pub(super) fn sets_listed(trial: &Trial<'_>, verdict: &mut Verdict) {
    let settings = Settings::read(trial);
    for setting in settings.all.iter().filter(|setting| trial.sessions.contains_key(setting.session)) {
        let before = settings.before(setting.session, setting.call.at).iter().rev();
        let was_listed = before.take(CROSSING).any(|list| has(list, setting.id, setting.value));
        verdict.check(was_listed, setting.call.at, || {
            format!("the option {} does not have that value", shown(setting.id))
        });
    }
}
