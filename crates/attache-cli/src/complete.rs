//! What the shell is offered to complete a word with. All of it is read from files: nothing is started, and nothing is
//! fetched.

use attache_agent::ModelList;
use attache_agent::model::catalog::PROVIDERS;
use clap::{CommandFactory, ValueEnum};
use clap_complete::env::Shells;
use clap_complete::{CompletionCandidate, Shell};

use crate::agents::catalog::ROWS;
use crate::agents::config::Config;
use crate::agents::{BUILT_IN, is_known};
use crate::cli::{AgentMode, Cli};
use crate::exit::{Code, Failure};
use crate::visible::one_line;
use crate::{agent, ids, journal};

/// The variable by which the script of a shell asks for words.
const VARIABLE: &str = "ATTACHE_COMPLETE";

/// How many runs and sessions are offered, the newest first. More is nobody's list to choose from.
const MOST_SESSIONS: usize = 50;

/// Answers the script of a shell, and ends the program then.
pub(crate) fn answer() {
    clap_complete::CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// The script of a shell.
pub(crate) fn script(shell: Shell) -> Result<Vec<u8>, Failure> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells.completer(&name).ok_or_else(|| Failure::usage(format!("no completions for `{name}`")))?;
    let written = completer.write_registration(VARIABLE, "attache", "attache", "attache", &mut script);
    written.map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    if shell == Shell::Bash {
        let text = String::from_utf8_lossy(&script).replace("-F _clap_complete_attache ", "-F _attache ");
        script = format!("{BASH}{text}").into_bytes();
    }
    Ok(script)
}

/// Bash breaks words at colons and equals signs, and models have a colon in their names. What belongs together is put
/// together before it is completed, and what stands there already is taken from the answers.
const BASH: &str = r#"
_attache() {
    local -a words=()
    local rest=$COMP_LINE last=-1 word glued head="" cword=0 index
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        glued=false
        if ((index > 0)) && [[ $rest != [[:space:]]* ]] && [[ $word == [:=]* || ${words[last]} == *[:=] ]]; then
            glued=true
        fi
        rest=${rest#*"$word"}
        if ((index == COMP_CWORD)); then
            [[ $glued == true ]] && head=${words[last]}
            [[ $glued == true && $word == [:=]* ]] && head+=$word
            word=$head$2
        elif [[ $glued == true ]]; then
            word=${words[last]}$word
        fi
        [[ $glued == true ]] || last=$((last + 1))
        words[last]=$word
    done
    local -a COMP_WORDS=("${words[@]}")
    local COMP_CWORD=$last
    _clap_complete_attache "$1" "${words[last]}" "$3"
    for index in "${!COMPREPLY[@]}"; do
        COMPREPLY[index]=${COMPREPLY[index]#"$head"}
    done
}
"#;

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    let help: String = one_line(help).chars().take(60).collect();
    CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
}

/// The agents that can be named.
pub(crate) fn agents() -> Vec<CompletionCandidate> {
    let config = Config::read().unwrap_or_default();
    let own = config.agents.iter();
    let own = own.filter(|(name, _)| !is_known(name)).map(|(name, entry)| {
        let command = entry.command.join(" ");
        candidate(name, entry.description.as_deref().unwrap_or(&command))
    });
    let known = ROWS.iter().map(|row| candidate(row.name, row.title));
    own.chain([candidate(BUILT_IN, "The coding agent of this program")]).chain(known).collect()
}

/// What can be logged in to: agents, and providers that take a key.
pub(crate) fn logins() -> Vec<CompletionCandidate> {
    let providers = PROVIDERS.iter().map(|provider| candidate(provider.name, "A provider of models"));
    let agents = agents().into_iter().filter(|agent| PROVIDERS.iter().all(|row| agent.get_value() != row.name));
    agents.chain(providers).collect()
}

/// The models that are known by name: those of agent.toml, those that providers listed, and the usual one of each.
pub(crate) fn models() -> Vec<CompletionCandidate> {
    let config = agent::settings(None).ok().map(|(config, _)| config);
    let listed = config.as_ref().map(ModelList::kept_names).unwrap_or_default();
    let own = config.into_iter().flat_map(|config| config.model.into_iter().chain(config.models.into_keys()));
    let mut names: Vec<String> = own.chain(listed).collect();
    names
        .extend(PROVIDERS.iter().map(|provider| format!("{}:{}", provider.name, provider.default_model.unwrap_or(""))));
    names.push("offline:rules".into());
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| candidate(name, "")).collect()
}

/// The modes of the built-in agent. Which others have is not known before they are started.
pub(crate) fn modes() -> Vec<CompletionCandidate> {
    let values = AgentMode::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let help = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string).unwrap_or_default();
    values.map(|value| candidate(value.get_name(), &help(&value))).collect()
}

/// The newest runs and sessions.
pub(crate) fn sessions() -> Vec<CompletionCandidate> {
    let runs = journal::runs().unwrap_or_default().into_iter().take(MOST_SESSIONS);
    let mut candidates = Vec::new();
    let mut seen = Vec::new();
    for run in runs {
        let prompt = journal::prompt(&run).unwrap_or_default();
        candidates.push(candidate(&run, &prompt));
        if let Some(session) = journal::session_of(&run).filter(|session| !seen.contains(session)) {
            candidates.push(candidate(&session, &prompt));
            seen.push(session);
        }
    }
    let kept = ids::kept_by_built_in().into_iter().filter(|id| !seen.contains(id)).take(MOST_SESSIONS);
    candidates.extend(kept.map(|id| candidate(&id, "A session of the built-in agent")));
    candidates
}
