//! Which methods a side offers.

use attache_proto::Dialect;
use attache_proto::method::Method;

use crate::exchange::Exchange;
use crate::record::Side;

/// Whether a side offers a method; `None` if that is not for capabilities to say, or the method is unknown.
pub(in crate::rules) fn is_offered(exchange: &Exchange<'_>, side: Side, name: &str) -> Option<bool> {
    let method = Method::parse(name)?;
    match method.name(exchange.dialect) {
        None => return Some(false),
        // Whoever knows the name that another version has for it may serve it all the same.
        Some(own) if own != name => return None,
        Some(_) => {}
    }
    let path = match side {
        Side::Client => of_client(method)?,
        Side::Agent if matches!(method, Method::Authenticate | Method::Logout) && exchange.dialect == Dialect::V2 => {
            return Some(exchange.agent_hello()["authMethods"].as_array().is_some_and(|methods| !methods.is_empty()));
        }
        Side::Agent => of_agent(method, exchange.dialect)?,
    };
    Some(exchange.offers(side, path))
}

fn of_client(method: Method) -> Option<&'static str> {
    Some(match method {
        Method::ReadTextFile => "fs.readTextFile",
        Method::WriteTextFile => "fs.writeTextFile",
        Method::CreateTerminal
        | Method::TerminalOutput
        | Method::WaitForTerminalExit
        | Method::KillTerminal
        | Method::ReleaseTerminal => "terminal",
        Method::CreateElicitation => "elicitation",
        _ => return None,
    })
}

fn of_agent(method: Method, dialect: Dialect) -> Option<&'static str> {
    let [v1, draft, v2] = match method {
        Method::LoadSession => ["loadSession", "session.load", ""],
        Method::ListSessions => ["sessionCapabilities.list", "session.list", ""],
        Method::ResumeSession => ["sessionCapabilities.resume", "session.resume", ""],
        Method::CloseSession => ["sessionCapabilities.close", "session.close", ""],
        Method::DeleteSession => ["sessionCapabilities.delete", "session.delete", "session.delete"],
        Method::ForkSession => ["sessionCapabilities.fork", "", "session.fork"],
        Method::ArchiveSession | Method::UnarchiveSession => ["sessionCapabilities.archive", "", "session.archive"],
        Method::SessionStatus => ["sessionCapabilities.status", "", "session.status"],
        Method::SetTitle => ["sessionCapabilities.title", "", "session.title"],
        Method::Logout => ["auth.logout", "auth.logout", ""],
        Method::AuthStatus => ["auth.status", "", "auth.status"],
        Method::ListProviders | Method::SetProvider | Method::DisableProvider => ["providers", "", "providers"],
        _ => return None,
    };
    let path = match dialect {
        Dialect::V1 => v1,
        Dialect::V2Draft => draft,
        Dialect::V2 => v2,
    };
    (!path.is_empty()).then_some(path)
}
