//! What the options of `run` mean for the agent that was chosen, before it is started.

use attache_agent::Keys;
use attache_agent::model::catalog::{self, PROVIDERS};
use attache_host::environment;
use url::{Host, Url};

use crate::agent::{BASE_URL, MODEL, SYSTEM, check_base_url, settings, system_text};
use crate::agents::AgentSpec;
use crate::agents::catalog::row_of;
use crate::cli::{Run, SandboxKind};
use crate::exit::Failure;
use crate::{paths, rule_option};

/// Hands the agent what the options say, or says why it cannot be.
pub(super) fn apply(args: &mut Run, spec: &mut AgentSpec) -> Result<(), Failure> {
    // What is wrong in them is said before anything starts.
    rule_option::read(&args.allow, &args.deny)?;
    match spec.is_built_in {
        true => to_built_in(args, spec)?,
        false => refuse_for_others(args, spec)?,
    }
    check_sandbox(args.start.sandbox, spec)
}

/// Whether the agent can work in the sandbox that was asked for.
pub(crate) fn check_sandbox(kind: Option<SandboxKind>, spec: &mut AgentSpec) -> Result<(), Failure> {
    match kind {
        Some(SandboxKind::Offline) => check_offline(spec),
        _ => Ok(()),
    }
}

/// Whether the built-in agent has to be told that its commands are not confined.
pub(crate) fn is_turned_off(kind: Option<SandboxKind>, spec: &AgentSpec, set: &[(String, String)]) -> bool {
    spec.is_built_in && kind == Some(SandboxKind::Off) && !set.iter().any(|(key, _)| key == "sandbox")
}

fn to_built_in(args: &mut Run, spec: &mut AgentSpec) -> Result<(), Failure> {
    if let Some(url) = &args.base_url {
        check_base_url(spec.env.get(MODEL), url)?;
        spec.env.insert(BASE_URL.into(), url.clone());
    }
    if let Some(system) = &args.system {
        // Not as a word of its command, which others can list.
        spec.env.insert(SYSTEM.into(), system_text(system)?);
    }
    if let Some(number) = args.max_turns {
        spec.words.extend(["--max-turn-requests".into(), number.to_string()]);
    }
    // It knows what each request takes, so it stops before the next one.
    if let Some(amount) = args.max_cost {
        spec.words.extend(["--max-cost".into(), amount.to_string()]);
    }
    if let Some(number) = args.max_tokens {
        spec.words.extend(["--max-tokens".into(), number.to_string()]);
    }
    for (option, rules) in [("--allow", &args.allow), ("--deny", &args.deny)] {
        spec.words.extend(rules.iter().flat_map(|rule| [option.to_owned(), rule.clone()]));
    }
    if is_turned_off(args.start.sandbox, spec, &args.set) {
        args.set.push(("sandbox".into(), "off".into()));
    }
    Ok(())
}

/// Other agents have no such settings in the protocol. What was asked for is never left out in silence.
fn refuse_for_others(args: &Run, spec: &AgentSpec) -> Result<(), Failure> {
    let rows = [
        ("--base-url", args.base_url.is_some(), "`--env NAME` passes the variable on by which it is told"),
        ("--max-turns", args.max_turns.is_some(), "`--timeout`, `--max-tokens` and `--max-cost` limit any agent"),
        (
            "--system",
            args.system.is_some(),
            "say it in the prompt, or in a file that the agent reads, such as AGENTS.md",
        ),
    ];
    match rows.into_iter().find(|(_, is_given, _)| *is_given) {
        Some((option, _, hint)) => {
            let what = format!("`{option}` is for the built-in agent; `{}` cannot be told", spec.name);
            Err(Failure::usage(format!("{what}\nhint: {hint}")))
        }
        None => Ok(()),
    }
}

/// An agent without a network cannot reach its model. That is said before it starts, and not by its last words.
fn check_offline(spec: &mut AgentSpec) -> Result<(), Failure> {
    let needed = match spec.is_built_in {
        true => needed_by_built_in(spec)?,
        false => row_of(&spec.name, &spec.words).map(|row| (row.title.to_owned(), has_local_model(spec))),
    };
    let needed = match needed {
        None => return Ok(()),
        Some((model, true)) => {
            // Loopback is a network too. It is tried, because somebody set it up, who knows then why it fails.
            spec.notices
                .push(format!("`--sandbox=offline` takes the sockets of this machine too, also those to {model}"));
            return Ok(());
        }
        Some((model, false)) => model,
    };
    let hint = match spec.is_built_in {
        true => "`--set sandbox=offline` takes the network from its commands only; `--model offline` needs none",
        false => "`--sandbox` leaves it the network; `attache sandbox explain` tells what else it takes",
    };
    Err(Failure::usage(format!("`--sandbox=offline` would keep the agent from its model: {needed}\nhint: {hint}")))
}

/// The model that the built-in agent would have to reach, if it is one, and whether that is on this machine.
fn needed_by_built_in(spec: &AgentSpec) -> Result<Option<(String, bool)>, Failure> {
    let (config, _) = settings(spec.env.get(MODEL))?;
    let base_url = spec.env.get(BASE_URL).or(config.base_url.as_ref());
    let Some(model) = &config.model else {
        let keys = Keys::new(&paths::config()?);
        let with_key =
            PROVIDERS.iter().find(|provider| provider.needs_key && matches!(keys.find(provider), Ok(Some(_))));
        return Ok(with_key.map(|provider| (provider.name.to_owned(), false)));
    };
    let provider = model.split(':').next().unwrap_or_default();
    let known = catalog::provider(provider).map(|provider| provider.base_url);
    let own = config.providers.get(provider).map(|own| own.base_url.as_str());
    let address = own.or(base_url.map(String::as_str)).or(known);
    Ok(address.map(|address| (model.clone(), is_loopback(address))))
}

/// Whether a variable that the agent gets sends it to a model of this machine.
fn has_local_model(spec: &AgentSpec) -> bool {
    let is_address = |name: &str| ["_BASE_URL", "_HOST", "_ENDPOINT"].iter().any(|end| name.ends_with(end));
    let passed = std::env::vars().filter(|(name, _)| environment::is_passed(name, &spec.pass_env));
    let mut all = passed.chain(spec.env.clone());
    all.any(|(name, value)| is_address(&name) && is_loopback(&value))
}

fn is_loopback(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    match Url::parse(&format!("http://{rest}")).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_this_machine_is_recognised() {
        for (address, expected) in [
            ("http://127.0.0.1:11434/v1/", true),
            ("http://[::1]:80", true),
            ("localhost:11434", true),
            ("https://api.example.com/v1/", false),
            ("http://127.0.0.1.example.com", false),
            ("http://user@example.com/127.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_loopback(address), expected, "{address}");
        }
    }
}
