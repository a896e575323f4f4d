//! `attache login` and `attache logout`: one command for agents and for providers of models.

use attache_agent::model::catalog::PROVIDERS;

use crate::agents::config::Config;
use crate::agents::{self, is_known};
use crate::cli::{Login, NamedAgent};
use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::project::Project;

/// What is logged in to.
enum Target {
    Agent,
    /// The name of a provider.
    Provider(String),
}

pub(crate) async fn login(options: Login) -> Result<(), Failure> {
    match target(&options)? {
        Target::Provider(name) => until_interrupted(crate::agent::login(&name)).await,
        Target::Agent => until_interrupted(agents::login(&named(options))).await,
    }
}

pub(crate) async fn logout(options: Login) -> Result<(), Failure> {
    match target(&options)? {
        Target::Provider(name) => crate::agent::logout(&name),
        Target::Agent => until_interrupted(agents::logout(&named(options))).await,
    }
}

fn named(options: Login) -> NamedAgent {
    let Login { name, command, auth, env, protocol, .. } = options;
    NamedAgent { name, command, auth, env, protocol }
}

/// Finds out what is meant. The built-in agent has no login of its own: its providers have keys.
fn target(options: &Login) -> Result<Target, Failure> {
    let agent = |name: Option<&str>| {
        let spec = agents::resolve(name, &options.command, &Project::here()?)?;
        if !spec.is_built_in {
            return Ok(Target::Agent);
        }
        let (config, _) = crate::agent::settings(None)?;
        let chosen = config.model.as_deref().and_then(|model| model.split_once(':')).map(|(provider, _)| provider);
        match chosen.filter(|provider| *provider != "offline") {
            Some(provider) => Ok(Target::Provider(provider.into())),
            None => {
                let providers: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
                let hint = format!("hint: say which, as in `attache login {}`", providers.join("|"));
                Err(Failure::usage(format!("the built-in agent logs in to providers of models\n{hint}")))
            }
        }
    };
    let Some(name) = options.name.as_deref() else { return agent(None) };
    // Only an agent has these.
    let is_agent = options.agent || options.auth.is_some() || !options.env.is_empty();
    if options.provider {
        return Ok(Target::Provider(name.into()));
    }
    let is_provider = name == "offline" || crate::agent::is_provider(name)?;
    let has_agent = is_known(name) || Config::read()?.agents.contains_key(name);
    match (is_agent, has_agent, is_provider) {
        (true, ..) => agent(Some(name)),
        (false, true, true) => {
            let hint = format!("hint: `--agent {name}` or `--provider {name}`");
            Err(Failure::usage(format!("`{name}` is an agent and a provider of models\n{hint}")))
        }
        (false, false, true) => Ok(Target::Provider(name.into())),
        _ if name.contains("://") => Ok(Target::Agent),
        // One of a project that is trusted, perhaps; else what there is instead is named.
        (false, ..) => agent(Some(name)).map_err(|mut failure| {
            if failure.code == Code::NotFound {
                let names: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
                // A name that is nearly right is told by the hints about agents.
                let hints = failure.message.find('\n').map(|end| failure.message.split_off(end)).unwrap_or_default();
                let name = crate::visible::one_line(name);
                failure.message = format!(
                    "there is no agent and no provider of models `{name}`{hints}\nhint: the providers of models are {}",
                    names.join(", ")
                );
            }
            failure
        }),
    }
}
