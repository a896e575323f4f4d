//! Logging in to agents and out of them.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::process::Stdio;

use attache::model::auth::{AuthMethod, AuthMethodId, AuthenticateRequest, TerminalAuthMethod};
use attache::model::error::ErrorObject;
use attache::process::Command;
use attache::proto::json::Reader;
use attache::{Client, Connection, Dialect, Error};
use attache_host::environment;
use attache_host::visible::visible as shown;

use crate::agents::AgentSpec;
use crate::client::foreground;
use crate::connect::{self, Opening};
use crate::exit::{Code, Failure};
use crate::tty::{Tty, open_ends};
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
        AuthMethod::Agent(method) => match by_agent(&connection, method.id.clone()).await {
            Ok(()) => Ok(Some(connection)),
            Err(error) => Err(refused_login(opening.spec, error)),
        },
        AuthMethod::Terminal(method) => {
            check_login_is_free(opening)?;
            connection.shutdown().await;
            in_terminal(opening, method, false).await?;
            Ok(None)
        }
        _ => Err(Failure::usage("this way to log in is not known here\nhint: choose another one")),
    }
}

/// Has the agent log in. Not by `Connection::authenticate`, which knows only what was offered in the greeting.
pub(crate) async fn by_agent(connection: &Connection, method: AuthMethodId) -> Result<(), Error> {
    connection.call(&AuthenticateRequest::new(method)).await.map(drop)
}

/// What to tell a person about a login that did not work.
fn refused_login(spec: &AgentSpec, error: Error) -> Failure {
    match error {
        // To refuse it as `auth_required` says no more than that it did not work.
        Error::Refused(refusal) => {
            let what = format!("`{}` refused the login{}", spec.name, own_words(&refusal));
            Failure::new(Code::Login, format!("{what}{}", outside(spec)))
        }
        error => error.into(),
    }
}

/// The program of a login runs outside of a sandbox, with arguments that the agent chose: one that is confined does not get
/// it.
fn check_login_is_free(opening: &Opening<'_>) -> Result<(), Failure> {
    match opening.sandbox {
        Some(_) => Err(login_in_sandbox()),
        None => Ok(()),
    }
}

pub(crate) fn login_in_sandbox() -> Failure {
    Failure::usage("a login in the terminal cannot be confined\nhint: log in first, without --sandbox: `attache login`")
}

/// Runs the agent's own program in the person's terminal, in the way that the method says. The person is asked first, unless
/// they have seen what is run and agreed.
pub(crate) async fn in_terminal(
    opening: &Opening<'_>,
    method: &TerminalAuthMethod,
    is_agreed: bool,
) -> Result<(), Failure> {
    check_login_is_free(opening)?;
    let spec = opening.spec;
    let Ok((input, output)) = open_ends() else {
        let what = format!("to log in to `{}` takes a terminal", spec.name);
        let typed = spec.typed_login(method.id.as_str());
        return Err(Failure::new(Code::Login, format!("{what}\nhint: in a terminal, type `{typed}`")));
    };
    // Streams that lead elsewhere, because they carry a prompt or a result, are none of the login's business.
    let stream = |is_terminal: bool, terminal: &File| match is_terminal {
        true => Ok(Stdio::inherit()),
        false => terminal.try_clone().map(Stdio::from),
    };
    let cannot = |error: io::Error| {
        Failure::new(Code::Died, format!("cannot start `{}` for the login: {error}", spec.command()))
    };
    let words = spec.command_words();
    let (program, args) = words.split_first().ok_or_else(|| Failure::usage("the command is empty"))?;
    // Our own login is no news to whoever started us.
    if !spec.is_built_in && !is_agreed {
        confirm_login(spec, method, &words).await?;
    }
    let mut command = std::process::Command::new(crate::agents::catalog::startable(program));
    command.env_clear().envs(environment::inherited(&[&spec.pass_env[..], &browser_env()].concat()));
    command.args(args).args(&method.args).envs(&spec.env).current_dir(opening.cwd);
    command.envs(method.env.iter().map(|variable| (&variable.name, variable.value.expose())));
    command.stdin(stream(io::stdin().is_terminal(), &input).map_err(cannot)?);
    command.stdout(stream(io::stdout().is_terminal(), &output).map_err(cannot)?);
    command.stderr(stream(io::stderr().is_terminal(), &output).map_err(cannot)?);
    let status = foreground::run(command, None).await.map_err(cannot)?;
    if !status.success() {
        return Err(Failure::new(Code::Login, format!("the login to `{}` did not work: {status}", spec.name)));
    }
    Ok(())
}

/// Shows what a login in the terminal would run, which the agent chose, and asks whether it may. What variables are set to
/// is often a secret, and not shown.
async fn confirm_login(spec: &AgentSpec, method: &TerminalAuthMethod, words: &[String]) -> Result<(), Failure> {
    let command = Command::from([words, &method.args].concat()).to_string();
    let names: Vec<&str> = method.env.iter().map(|variable| variable.name.as_str()).collect();
    let mut text = format!("To log in, `{}` wants this run in your terminal:\n  {}\n", spec.name, shown(&command));
    if !names.is_empty() {
        text.push_str(&format!("with these variables set: {}\n", shown(&names.join(", "))));
    }
    text.push_str("Run it? [y] yes   [N] no: ");
    let not_run = || Failure::new(Code::Login, format!("not logged in to `{}`: the login was not run", spec.name));
    let terminal = Tty::open().map_err(|_| not_run())?;
    match terminal.ask(&text).await {
        Ok(Some(answer)) if matches!(answer.to_lowercase().as_str(), "y" | "yes") => Ok(()),
        _ => Err(not_run()),
    }
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

/// The method with this id.
pub(crate) fn find(connection: &Connection, spec: &AgentSpec, id: &str) -> Result<AuthMethod, Failure> {
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

/// Whether there is somebody to ask, who sees the question.
pub(crate) fn is_somebody_there() -> bool {
    io::stderr().is_terminal() && Tty::open().is_ok()
}

/// Tells the person that a login is missing, and logs in as they say. Gives the connection back, or nothing if the agent
/// has to be started anew.
pub(crate) async fn offer_login(
    connection: Connection,
    opening: &Opening<'_>,
    refusal: &ErrorObject,
) -> Result<Option<Connection>, Failure> {
    let spec = opening.spec;
    let methods = methods(&connection, refusal);
    let Some(method) = choose_login(spec, refusal, &methods).await else {
        return Err(explain(refusal.clone().into(), &connection, spec));
    };
    authenticate(connection, opening, method).await
}

/// Tells the person that a login is missing in the middle of a session, and has the agent log in as they say.
pub(crate) async fn log_in_by_agent(
    connection: &Connection,
    spec: &AgentSpec,
    refusal: &ErrorObject,
    methods: &[AuthMethod],
) -> Result<(), Failure> {
    match choose_login(spec, refusal, methods).await {
        Some(AuthMethod::Agent(method)) => {
            by_agent(connection, method.id.clone()).await.map_err(|error| refused_login(spec, error))
        }
        _ => Err(explain(refusal.clone().into(), connection, spec)),
    }
}

/// Asks whether to log in, and how. Nothing if the person does not want to, or cannot be asked.
async fn choose_login<'m>(
    spec: &AgentSpec,
    refusal: &ErrorObject,
    methods: &'m [AuthMethod],
) -> Option<&'m AuthMethod> {
    let terminal = Tty::open().ok()?;
    let heading = format!("`{}` wants a login first{}\n", spec.name, own_words(refusal));
    match methods {
        [] => None,
        // It asks for itself.
        [only @ AuthMethod::Terminal(_)] => {
            let _ = terminal.show(&heading).await;
            Some(only)
        }
        [only] => {
            let question = format!("{heading}Log in by {}? [y] yes   [N] no: ", described(only));
            match terminal.ask(&question).await {
                Ok(Some(answer)) if matches!(answer.to_lowercase().as_str(), "y" | "yes") => Some(only),
                _ => None,
            }
        }
        several => {
            let _ = terminal.show(&heading).await;
            ask(spec, several).await.ok()
        }
    }
}

/// The ways to log in: those that the agent named when it was greeted, and those that it names now that it matters.
pub(crate) fn methods(connection: &Connection, refusal: &ErrorObject) -> Vec<AuthMethod> {
    let mut methods = connection.auth_methods().to_vec();
    let named = refusal.data.as_ref().and_then(|data| data.get("authMethods"));
    // Agents write them as the version does that they speak, or as version 1 did.
    let named = named.and_then(|named| {
        let read = |dialect| Reader::new(named.as_str(), dialect).decode::<Vec<AuthMethod>>().ok();
        read(connection.dialect()).or_else(|| read(Dialect::V1))
    });
    for method in named.into_iter().flatten().take(MOST_METHODS) {
        if !methods.iter().any(|known| known.id() == method.id()) {
            methods.push(method);
        }
    }
    methods
}

/// How many ways to log in are taken from an error.
const MOST_METHODS: usize = 20;

/// What the agent says about it, marked as its own words. Nothing if it says no more than everybody does.
fn own_words(refusal: &ErrorObject) -> String {
    let text = one_line(&refusal.message);
    match text.trim_end_matches('.').to_lowercase().as_str() {
        "" | "authentication required" | "auth required" => String::new(),
        _ => format!("\nit says: \"{text}\""),
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
            let details = crate::exit::details(&refusal).map(|details| format!(": {details}")).unwrap_or_default();
            let (what, hint) = refusal.message.split_at(refusal.message.find('\n').unwrap_or(refusal.message.len()));
            Failure::new(Code::Login, format!("{what}{details}{hint}"))
        }
        Error::Refused(refusal) if refusal.code == ErrorObject::AUTH_REQUIRED => {
            let methods = offered(spec, &methods(connection, &refusal));
            let hint = spec.withheld_hint().unwrap_or_default();
            let words = own_words(&refusal);
            Failure::new(Code::Login, format!("`{}` wants a login first{words}\n{methods}{hint}", spec.name))
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
    // Who has no choice need not look for it.
    let id = match methods {
        [only] => only.id().map(|id| id.to_string()),
        _ => None,
    };
    let id = id.as_deref().unwrap_or("ID");
    let option = Command::from(["--auth", id].map(String::from).to_vec());
    text.push_str(&one_line(&format!("hint: type `{}`, or give `{option}` to `attache run`", spec.typed_login(id))));
    text + &outside(spec)
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
