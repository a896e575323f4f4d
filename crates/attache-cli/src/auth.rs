//! Logging in to agents and out of them.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::process::Stdio;

use attache::model::auth::{AuthMethod, TerminalAuthMethod};
use attache::model::error::ErrorObject;
use attache::{Client, Connection, Error};
use attache_host::environment;

use crate::agents::AgentSpec;
use crate::connect::{self, Opening};
use crate::exit::{Code, Failure};
use crate::tty::Tty;
use crate::visible::{one_line, visible};

/// Starts an agent, and authenticates by the method with this id if one is given.
pub(crate) async fn start(client: Client, opening: &Opening<'_>, id: Option<&str>) -> Result<Connection, Failure> {
    let connection = connect::start(client.clone(), opening).await?;
    let Some(id) = id else { return Ok(connection) };
    let method = find(&connection, opening.spec, id)?;
    match authenticate(connection, opening, &method).await? {
        Some(connection) => Ok(connection),
        None => connect::start(client, opening).await,
    }
}

/// Authenticates. Gives the connection back, or nothing if the agent has to be started anew.
pub(crate) async fn authenticate(
    connection: Connection,
    opening: &Opening<'_>,
    method: &AuthMethod,
) -> Result<Option<Connection>, Failure> {
    match method {
        AuthMethod::Agent(method) => match connection.authenticate(method.id.clone()).await {
            Ok(()) => Ok(Some(connection)),
            // To refuse it as `auth_required` says no more than that it did not work.
            Err(Error::Refused(refusal)) => {
                let what = format!("`{}` refused the login: {}", opening.spec.name, visible(&refusal.message));
                Err(Failure::new(Code::Login, what))
            }
            Err(error) => Err(error.into()),
        },
        // The program of the login would run outside, with arguments that the agent chose.
        AuthMethod::Terminal(_) if opening.sandbox.is_some() => Err(Failure::usage(
            "a login in the terminal cannot be confined\nhint: log in first, without --sandbox: `attache agents login`",
        )),
        AuthMethod::Terminal(method) => {
            connection.shutdown().await;
            in_terminal(opening, method).await?;
            Ok(None)
        }
        _ => Err(Failure::usage("this way to log in is not known here\nhint: choose another one")),
    }
}

/// Runs the agent's own program in the person's terminal, in the way that the method says.
async fn in_terminal(opening: &Opening<'_>, method: &TerminalAuthMethod) -> Result<(), Failure> {
    let spec = opening.spec;
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        let what = format!("to log in to `{}` takes a terminal", spec.name);
        let typed = spec.typed_login(method.id.as_str());
        return Err(Failure::new(Code::Login, format!("{what}\nhint: in a terminal, type `{typed}`")));
    };
    // Streams that lead elsewhere, because they carry a prompt or a result, are none of the login's business.
    let stream = |is_terminal: bool| match is_terminal {
        true => Ok(Stdio::inherit()),
        false => terminal.try_clone().map(Stdio::from),
    };
    let cannot = |error: io::Error| {
        Failure::new(Code::Died, format!("cannot start `{}` for the login: {error}", spec.command()))
    };
    let words = spec.command_words();
    let (program, args) = words.split_first().ok_or_else(|| Failure::usage("the command is empty"))?;
    let mut command = tokio::process::Command::new(program);
    command.env_clear().envs(environment::inherited(&[&spec.pass_env[..], &browser_env()].concat()));
    command.args(args).args(&method.args).envs(&spec.env).current_dir(opening.cwd).kill_on_drop(true);
    command.envs(method.env.iter().map(|variable| (&variable.name, variable.value.expose())));
    command.stdin(stream(io::stdin().is_terminal()).map_err(cannot)?);
    command.stdout(stream(io::stdout().is_terminal()).map_err(cannot)?);
    command.stderr(stream(io::stderr().is_terminal()).map_err(cannot)?);
    let status = command.status().await.map_err(cannot)?;
    if !status.success() {
        return Err(Failure::new(Code::Login, format!("the login to `{}` did not work: {status}", spec.name)));
    }
    Ok(())
}

/// What a login gets besides what its agent does, because it opens a browser. The person has started it.
fn browser_env() -> Vec<String> {
    let names = ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_*", "DBUS_SESSION_BUS_ADDRESS"];
    names.map(String::from).to_vec()
}

/// Chooses a method: the one with this id, else the only one, else whichever the person says.
pub(crate) async fn choose(connection: &Connection, spec: &AgentSpec, id: Option<&str>) -> Result<AuthMethod, Failure> {
    match (id, connection.auth_methods()) {
        (Some(id), _) => find(connection, spec, id),
        (None, []) => Err(Failure::usage(format!("`{}` offers no way to log in{}", spec.name, outside(spec)))),
        (None, [only]) => Ok(only.clone()),
        (None, several) => match ask(spec, several).await {
            Ok(method) => Ok(method.clone()),
            Err(_) => Err(Failure::usage(format!("which login?\n{}", offered(spec, several)))),
        },
    }
}

fn find(connection: &Connection, spec: &AgentSpec, id: &str) -> Result<AuthMethod, Failure> {
    let methods = connection.auth_methods();
    let found = methods.iter().find(|method| method.id().is_some_and(|own| own.as_str() == id));
    found.cloned().ok_or_else(|| {
        let what = format!("`{}` has no login `{}`", spec.name, visible(id));
        Failure::usage(format!("{what}\n{}", offered(spec, methods)))
    })
}

/// Has the person choose by number. An error is one that stands in the way of asking.
async fn ask<'m>(spec: &AgentSpec, methods: &'m [AuthMethod]) -> io::Result<&'m AuthMethod> {
    let terminal = Tty::open()?;
    let mut text = format!("How to log in to `{}`?\n", spec.name);
    for (number, method) in methods.iter().enumerate() {
        text.push_str(&format!("  {}  {}\n", number + 1, described(method)));
    }
    loop {
        text.push_str("Number: ");
        let line = terminal.ask(&text).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.parse::<usize>().ok().and_then(|number| methods.get(number.checked_sub(1)?)) {
            Some(method) => return Ok(method),
            None => text = format!("A number from 1 to {}, please.\n", methods.len()),
        }
    }
}

/// Logs out.
pub(crate) async fn logout(connection: &Connection, spec: &AgentSpec) -> Result<(), Failure> {
    connection.logout().await.map_err(|error| match error {
        Error::NotOffered(_) => Failure::new(Code::Agent, format!("`{}` offers no way to log out", spec.name)),
        error => explain(error, connection, spec),
    })
}

/// What to tell a person about an error of a call: where it is that a login is missing, how to log in.
pub(crate) fn explain(error: Error, connection: &Connection, spec: &AgentSpec) -> Failure {
    match error {
        // Our own words tell more than a list of methods.
        Error::Refused(refusal) if refusal.code == ErrorObject::AUTH_REQUIRED && spec.is_built_in => {
            Failure::new(Code::Login, refusal.message)
        }
        Error::Refused(refusal) if refusal.code == ErrorObject::AUTH_REQUIRED => {
            let methods = offered(spec, connection.auth_methods());
            let hint = spec.withheld_hint().unwrap_or_default();
            Failure::new(Code::Login, format!("`{}` wants a login first\n{methods}{hint}", spec.name))
        }
        error => error.into(),
    }
}

/// The methods, and what to type.
fn offered(spec: &AgentSpec, methods: &[AuthMethod]) -> String {
    if methods.is_empty() {
        return format!("it offers no way to log in{}", outside(spec));
    }
    let mut text: String = methods.iter().map(|method| format!("  {}\n", described(method))).collect();
    text.push_str(&format!("hint: type `{}`, or give `--auth ID` to `attache run`", spec.typed_login("ID")));
    text
}

fn outside(spec: &AgentSpec) -> String {
    spec.login_hint.map(|login| format!("\nhint: try `{login}`")).unwrap_or_default()
}

/// A method on one line: its id, its name, and what it is.
pub(crate) fn described(method: &AuthMethod) -> String {
    let id = method.id().map_or_else(|| "(no id)".into(), |id| one_line(id.as_str()));
    let name = method.name().map(|name| one_line(&name)).unwrap_or_default();
    let description = match method {
        AuthMethod::Agent(method) => method.description.as_deref(),
        AuthMethod::Terminal(method) => method.description.as_deref(),
        _ => Some("not known here"),
    };
    let description = description.map(one_line).filter(|text| !text.is_empty() && *text != name);
    let place = if matches!(method, AuthMethod::Terminal(_)) { " (in a terminal)" } else { "" };
    format!("{id}: {name}{place}{}", description.map(|text| format!(", {text}")).unwrap_or_default())
}
