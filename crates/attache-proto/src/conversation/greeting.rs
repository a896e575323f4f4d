//! The first exchange: which dialect a client and an agent have in common.

use crate::Dialect;
use crate::json::{DecodeError, RawJson, Reader, Reason};
use crate::model::capability::{Capability, ClientCapabilities, ClientConfigCapabilities};
use crate::model::error::ErrorObject;
use crate::model::initialize::{InitializeRequest, InitializeResponse};

/// Which version of the protocol a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// The newest that both speak.
    #[default]
    Auto,
    /// Version 1 only.
    V1,
    /// Version 2 as its draft of June 2026 had it.
    V2Draft,
    /// Version 2 only.
    V2,
}

/// The dialect that a client asks for, by the shape of its `initialize`: version 2 with `info` is the published one.
pub fn requested_dialect(params: Option<&str>) -> Result<Dialect, DecodeError> {
    let params = RawJson::new(params.unwrap_or("{}"))?;
    match version(&params)? {
        0 | 1 => Ok(Dialect::V1),
        _ if params.get("info").is_some() => Ok(Dialect::V2),
        _ => Ok(Dialect::V2Draft),
    }
}

/// Why the version that a client asks for cannot be served, if that is so: every one of ours is newer.
///
/// A version is an integer from 0 to 65535, and an agent answers with the newest of its own that is not newer than it. So 0
/// is the only one that cannot be served: a version that nobody knows yet is answered with our newest. What is no version
/// (a negative number, a fraction, a text, nothing at all) is a mistake in the params, and none of this.
pub fn unsupported_version(params: Option<&str>) -> Option<ErrorObject> {
    let params = RawJson::new(params?).ok()?;
    let requested = version(&params).ok()?;
    let oldest = SUPPORTED.first()?;
    (requested < *oldest).then(|| ErrorObject::unsupported_version(requested, SUPPORTED))
}

/// The versions that we speak, the oldest first.
const SUPPORTED: &[u16] = &[1, 2];

fn version(message: &RawJson) -> Result<u16, DecodeError> {
    let field = |error: DecodeError| error.in_field("protocolVersion");
    let version = message.get("protocolVersion").ok_or_else(|| field(DecodeError::new(Reason::Missing)))?;
    Reader::new(version.as_str(), Dialect::V1).decode().map_err(field)
}

/// A client's side of the first exchange. It says in which dialect to ask, takes the answers, and says what to do next.
#[derive(Debug)]
pub struct Greeting {
    /// The dialect that was asked for last.
    asked: Dialect,
    /// Whether no other dialect will do.
    is_fixed: bool,
    /// Whether the agent can be started anew, if it will not hear a second `initialize`.
    can_restart: bool,
    /// Whether version 2 has no words for what the client offers.
    needs_v1_words: bool,
    /// What an agent of version 1 answered when it was asked for version 2.
    first: Option<InitializeResponse>,
}

/// What follows from an agent's answer to `initialize`.
#[derive(Debug)]
pub enum Greeted {
    /// The two have agreed.
    Agreed(Dialect, Box<InitializeResponse>),
    /// Send `initialize` once more, in this dialect.
    Again(Dialect),
    /// The agent speaks version 1 and has to be started anew to be asked for it.
    Restart,
    /// There is no conversation.
    Failed(GreetingError),
}

/// Why there is no conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum GreetingError {
    /// The agent refused.
    Refused(ErrorObject),
    /// The agent's answer was not understood.
    BadAnswer(DecodeError),
    /// The agent wants a version that the client does not speak, or was told not to speak.
    Version(u16),
}

impl Greeting {
    /// A greeting that asks for a version of the protocol, by a client that offers this.
    pub fn new(protocol: Protocol, offered: &ClientCapabilities) -> Self {
        let (asked, is_fixed) = match protocol {
            Protocol::Auto => (Dialect::V2, false),
            Protocol::V1 => (Dialect::V1, true),
            Protocol::V2Draft => (Dialect::V2Draft, true),
            Protocol::V2 => (Dialect::V2, true),
        };
        Greeting { is_fixed, ..Greeting::in_dialect(asked) }.offering(offered)
    }

    /// A greeting in a dialect that takes whatever the agent answers.
    pub fn in_dialect(dialect: Dialect) -> Self {
        Greeting { asked: dialect, is_fixed: false, can_restart: false, needs_v1_words: false, first: None }
    }

    /// Says what the client offers: an agent of version 1 that got it only in the form of version 2 is greeted again.
    pub fn offering(mut self, offered: &ClientCapabilities) -> Self {
        self.needs_v1_words = *offered != ClientCapabilities::default();
        self
    }

    /// Says that the agent can be started anew if it does not accept a second `initialize`.
    pub fn can_restart(mut self) -> Self {
        self.can_restart = true;
        self
    }

    /// Whether an agent that ends at a second `initialize` is one that has to be started anew, like one that refuses it.
    pub fn is_second(&self) -> bool {
        self.can_restart && self.first.is_some()
    }

    /// The dialect to ask for now.
    pub fn dialect(&self) -> Dialect {
        self.asked
    }

    /// Takes in an answer to `initialize`.
    pub fn handle_answer(&mut self, answer: Result<&str, ErrorObject>) -> Greeted {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.handle_refusal(error),
        };
        let (dialect, is_disguised) = match self.answered_dialect(answer) {
            Ok(dialect) => dialect,
            Err(error) => return Greeted::Failed(error),
        };
        let mut response: InitializeResponse = match Reader::new(answer, dialect).decode() {
            Ok(response) => response,
            Err(error) => return Greeted::Failed(GreetingError::BadAnswer(error)),
        };
        understand_agent(&mut response, dialect);
        if dialect.version() == self.asked.version() {
            return Greeted::Agreed(dialect, Box::new(response));
        }
        if self.is_fixed {
            return Greeted::Failed(GreetingError::Version(dialect.version()));
        }
        // An agent of version 1 that has only heard version 2's words does not know what the client offers.
        if dialect == Dialect::V1 && (self.needs_v1_words || is_disguised) {
            self.first = Some(response);
            self.asked = Dialect::V1;
            return Greeted::Again(Dialect::V1);
        }
        Greeted::Agreed(dialect, Box::new(response))
    }

    fn handle_refusal(&mut self, error: ErrorObject) -> Greeted {
        if let Some(first) = self.first.take() {
            // It will not be asked twice. What it said the first time holds, without what version 2 could not offer it.
            return if self.can_restart { Greeted::Restart } else { Greeted::Agreed(Dialect::V1, Box::new(first)) };
        }
        if self.is_fixed || self.asked == Dialect::V1 {
            return Greeted::Failed(GreetingError::Refused(error));
        }
        // Some agents of version 1 refuse what they do not know instead of naming their own version.
        self.asked = Dialect::V1;
        Greeted::Again(Dialect::V1)
    }

    /// The dialect of an answer, and whether it is version 1 that calls itself 2: some agents repeat the number that they
    /// were asked for.
    fn answered_dialect(&self, answer: &str) -> Result<(Dialect, bool), GreetingError> {
        let answer = RawJson::new(answer).map_err(GreetingError::BadAnswer)?;
        let has = |name| answer.get(name).is_some();
        let capability = |name| {
            let session = answer.get("capabilities").and_then(|capabilities| capabilities.get("session"));
            session.is_some_and(|session| session.get(name).is_some())
        };
        match version(&answer).map_err(GreetingError::BadAnswer)? {
            1 => Ok((Dialect::V1, false)),
            2 if has("info") => Ok((Dialect::V2, false)),
            2 if has("agentCapabilities") => Ok((Dialect::V1, true)),
            2 if has("agentInfo") || self.asked == Dialect::V2Draft => Ok((Dialect::V2Draft, false)),
            2 if ["load", "list", "resume", "close"].into_iter().any(capability) => Ok((Dialect::V2Draft, false)),
            2 => Ok((Dialect::V2, false)),
            other => Err(GreetingError::Version(other)),
        }
    }
}

/// Adds what a client of this dialect understands without saying so, and takes away what it has no words for.
pub(crate) fn understand_client(request: &mut InitializeRequest, dialect: Dialect) {
    let offered = Capability::new;
    if dialect == Dialect::V1 {
        return;
    }
    let capabilities = &mut request.capabilities;
    capabilities.fs = Default::default();
    capabilities.terminal = false;
    let options = capabilities.session.config_options.get_or_insert_with(ClientConfigCapabilities::new);
    options.boolean.get_or_insert_with(offered);
    if dialect == Dialect::V2 {
        capabilities.session.notices.get_or_insert_with(offered);
        capabilities.session.compaction.get_or_insert_with(offered);
    }
}

/// Adds what an agent of this dialect offers without saying so.
fn understand_agent(response: &mut InitializeResponse, dialect: Dialect) {
    let offered = Capability::new;
    let Some(session) = &mut response.capabilities.session else { return };
    match dialect {
        // Every agent of version 1 starts MCP servers.
        Dialect::V1 => session.mcp.stdio = Some(offered()),
        Dialect::V2Draft => {}
        Dialect::V2 => {
            session.load.get_or_insert_with(offered);
            session.list.get_or_insert_with(offered);
            session.resume.get_or_insert_with(offered);
            session.close.get_or_insert_with(offered);
            if !response.auth_methods.is_empty() {
                response.capabilities.auth.logout.get_or_insert_with(offered);
            }
        }
    }
}
