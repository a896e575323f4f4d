//! Starting an agent and greeting it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache::model::capability::Capability;
use attache::process::SpawnError;
use attache::trace::Tap;
use attache::{Client, Connection, Error, LaunchCause, Protocol};
use attache_host::files::{FileError, resolve_named};
use attache_host::sandbox::Sandbox;

use crate::agents::AgentSpec;
use crate::cli::Version;
use crate::exit::{Code, Failure};
use crate::signals::{Signal, Signals};
use crate::visible::one_line;
use crate::{paths, remote};

/// How long an agent may take to answer when it is started.
const PATIENCE: Duration = Duration::from_secs(60);

/// The same for an agent that is fetched from a package registry when it is first started.
const FETCH_PATIENCE: Duration = Duration::from_secs(300);

/// How long an agent may take to start before a person is told what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// How an agent is to be started.
pub(crate) struct Opening<'a> {
    pub(crate) spec: &'a AgentSpec,
    /// Where its process works.
    pub(crate) cwd: &'a Path,
    pub(crate) protocol: Version,
    /// Where every message is written down.
    pub(crate) trace: Option<Tap>,
    /// What confines it.
    pub(crate) sandbox: Option<Sandbox>,
    /// How long it may take to answer.
    pub(crate) patience: Duration,
}

impl<'a> Opening<'a> {
    /// An opening without a trace, with the usual patience.
    pub(crate) fn new(spec: &'a AgentSpec, cwd: &'a Path, protocol: Version) -> Self {
        let patience = if spec.is_fetched() { FETCH_PATIENCE } else { PATIENCE };
        Opening { spec, cwd, protocol, trace: None, sandbox: None, patience }
    }
}

/// A client that offers nothing yet, under our name.
pub(crate) fn client() -> Client {
    Client::new("attache", env!("CARGO_PKG_VERSION"))
}

/// Starts an agent and greets it. Dropping the future ends the agent.
pub(crate) async fn start(client: Client, opening: &Opening<'_>) -> Result<Connection, Failure> {
    let Opening { spec, cwd, protocol, trace, sandbox, patience } = opening;
    if spec.is_built_in {
        // What is wrong with our own settings is said as such, not as the last words of a process.
        crate::agent::settings(spec.env.get(crate::agent::MODEL))?;
    }
    let protocol = match protocol {
        Version::Auto => Protocol::Auto,
        Version::V1 => Protocol::V1,
        Version::V2 => Protocol::V2,
    };
    // Offered even where there is no terminal now: it is the offer that makes agents tell how to log in.
    let offer_login =
        |offered: &mut attache::model::capability::ClientCapabilities| offered.auth.terminal = Some(Capability::new());
    let mut client = client.protocol(protocol).capabilities(offer_login);
    if let Some(tap) = trace {
        client = client.trace(tap.clone());
    }
    let mut command = spec.command().cwd(*cwd);
    if let Some(sandbox) = sandbox {
        command = sandbox.confine(command);
    }
    client.launch_timeout(*patience).launch(command).await.map_err(|error| not_started(spec, error))
}

/// The same for a person who sees nothing else meanwhile: what is waited for, and how long at most, is said when it takes
/// its time.
pub(crate) async fn start_patiently(client: Client, opening: &Opening<'_>) -> Result<Connection, Failure> {
    let mut starting = std::pin::pin!(start(client, opening));
    tokio::select! {
        started = &mut starting => return started,
        () = tokio::time::sleep(TOLD_AFTER) => {}
    }
    let (command, minutes) = (one_line(&opening.spec.command().to_string()), opening.patience.as_secs() / 60);
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    eprintln!("waiting for `{command}` to start, {minutes} {unit} at most; Ctrl-C gives up");
    starting.await
}

fn not_started(spec: &AgentSpec, error: Error) -> Failure {
    if let (Some(url), Error::Launch(launch)) = (remote::url_of(&spec.words), &error)
        && matches!(launch.cause, LaunchCause::Exited(status) if status.code == Some(Code::Login as i32))
    {
        return remote::not_logged_in(url);
    }
    let hint = match &error {
        Error::Launch(failure) => match (&failure.cause, spec.install_hint, spec.login_hint) {
            (LaunchCause::NotStarted(SpawnError::NotFound { .. }), Some(install), _) => {
                Some(format!("\nhint: to install it: {install}"))
            }
            (LaunchCause::NotStarted(SpawnError::Io { source, .. }), ..)
                if cfg!(windows) && source.kind() == std::io::ErrorKind::InvalidInput =>
            {
                // What `cmd.exe` makes of some characters cannot be told beforehand, so they are not given to it.
                let what = "hint: its program is a batch file, which takes no line breaks and not every sign in its \
                            arguments; name the program that the batch file starts, such as `node` with a script";
                Some(format!("\n{what}"))
            }
            (LaunchCause::NotStarted(_), ..) => None,
            (LaunchCause::TimedOut(_), ..) => Some("\nhint: does it speak the Agent Client Protocol?".to_owned()),
            (_, _, Some(login)) if !spec.is_built_in => Some(format!("\nhint: if it wants a login: `{login}`")),
            _ => None,
        },
        _ => None,
    };
    // One that was started may have missed something.
    let is_started = matches!(&error, Error::Launch(failure) if !matches!(failure.cause, LaunchCause::NotStarted(_)));
    let withheld = if is_started { spec.withheld_hint() } else { None };
    let mut failure = Failure::from(error);
    failure.message.push_str(&hint.unwrap_or_default());
    failure.message.push_str(&withheld.unwrap_or_default());
    failure
}

/// Gives up when Ctrl-C is pressed or somebody ends us: the future is dropped, and agents that it started end. Afterwards these signals
/// do what they did before: what comes then may take its time, and listens to nobody.
pub(crate) async fn until_interrupted<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let _restored = crate::signals::Restored::note();
    let mut signals =
        Signals::new().map_err(|error| Failure::new(Code::Agent, format!("cannot wait for signals: {error}")))?;
    tokio::select! {
        done = work => done,
        signal = signals.next() => Err(match signal {
            Signal::Interrupt => Failure::new(Code::Interrupted, "interrupted"),
            Signal::Terminate => Failure::new(Code::Terminated, "terminated"),
        }),
    }
}

/// The directory to work in: this one, or the current one. Absolute, without links.
///
/// A link of a repository that leads out of it is refused: the agent would be let in where the person did not point.
pub(crate) fn directory(path: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = path.unwrap_or(Path::new("."));
    let unusable = |what: &str| Failure::usage(format!("`{}` {what}", path.display()));
    let found = paths::real(path).map_err(|error| unusable(&format!("cannot be used: {error}")))?;
    let here = here()?;
    if let Err(error @ FileError::LeadsOut { .. }) = resolve_named(&here.join(path), Some(&here)) {
        return Err(Failure::usage(error.to_string()));
    }
    if found.is_dir() { Ok(found) } else { Err(unusable("is not a directory")) }
}

/// What a person is told who works in another directory than the current one without having named it: the one of a session
/// that is taken up again.
pub(crate) fn moved_to(cwd: &Path, given: Option<&Path>) -> Option<String> {
    let is_moved = given.is_none() && here().is_ok_and(|here| here != cwd);
    is_moved.then(|| format!("working in `{}`, the directory of the session", one_line(&cwd.to_string_lossy())))
}

/// The current directory.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| Failure::usage(format!("the current directory cannot be used: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_that_says_nothing_is_not_waited_for_without_end() {
        let spec =
            crate::agents::resolve(None, &["sleep".into(), "60".into()], &crate::project::Project::none()).unwrap();
        let opening =
            Opening { patience: Duration::from_millis(50), ..Opening::new(&spec, Path::new("/"), Version::Auto) };
        let failure = start(client(), &opening).await.unwrap_err();
        assert_eq!(failure.code, Code::Timeout);
        assert!(
            failure.message.starts_with("agent `sleep 60` did not answer `initialize`: timed out after 50 ms"),
            "{failure}"
        );
    }
}
