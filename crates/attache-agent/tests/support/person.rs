//! The person at the client: what their editor offers, and what they say when they are asked.

use std::sync::Arc;

use attache::client::PermissionAsk;
use attache::model::permission::PermissionOptionKind;
use attache::{Client, Protocol};

/// A person and their client.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) protocol: Protocol,
    /// Whether files are read and written through the client.
    pub(crate) files: bool,
    /// Whether commands run in the client's terminals.
    pub(crate) terminals: bool,
    /// Whether questions can be put, and the answer to them; `None` in it declines.
    pub(crate) forms: Option<Option<&'static str>>,
    /// What is said to requests for permission.
    pub(crate) says: Says,
    /// Whether the client takes notices and compaction, which are unstable in version 1.
    pub(crate) news: bool,
    /// So many reads through the client are held until all are there, and then answered last first.
    pub(crate) held_reads: usize,
    /// What happens before a request for permission is answered.
    pub(crate) before_answer: Option<Hook>,
}

#[derive(Clone)]
pub(crate) struct Hook(Arc<dyn Fn() + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn() + Send + Sync + 'static) -> Self {
        Hook(Arc::new(hook))
    }

    pub(crate) fn run(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

/// What a person says to a request for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Cancelled,
    /// An option that was not offered.
    SomethingElse,
    /// The client answers with an error.
    Error,
    /// The client answers with nonsense.
    Nonsense,
    /// The request is dropped.
    Nothing,
}

impl Person {
    /// A person with a client that offers nothing, who allows everything once.
    pub(crate) fn at(protocol: Protocol) -> Self {
        Person {
            protocol,
            files: false,
            terminals: false,
            forms: None,
            says: Says::AllowOnce,
            news: false,
            held_reads: 0,
            before_answer: None,
        }
    }

    /// The same at a client of version 1.
    pub(crate) fn new() -> Self {
        Person::at(Protocol::V1)
    }

    /// The same, who says something else.
    pub(crate) fn saying(says: Says) -> Self {
        Person { says, ..Person::new() }
    }

    pub(crate) fn client(&self) -> Client {
        let mut client = Client::new("editor", "1").protocol(self.protocol);
        if self.files {
            client = client.read_files().write_files();
        }
        if self.terminals {
            client = client.terminals();
        }
        if self.forms.is_some() {
            client = client.forms();
        }
        if self.news {
            client = client.capabilities(|capabilities| {
                capabilities.session.notices = Some(attache::model::capability::Capability::new());
                capabilities.session.compaction = Some(attache::model::capability::Capability::new());
            });
        }
        client
    }
}

impl Says {
    /// What is to be said, as it stands in transcripts.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Says::AllowOnce => "allow_once",
            Says::AllowAlways => "allow_always",
            Says::RejectOnce => "reject_once",
            Says::RejectAlways => "reject_always",
            Says::Cancelled => "cancelled",
            Says::SomethingElse => "something else",
            Says::Error => "an error",
            Says::Nonsense => "nonsense",
            Says::Nothing => "nothing",
        }
    }

    pub(crate) async fn say(self, ask: PermissionAsk) {
        let kind = match self {
            Says::AllowAlways => PermissionOptionKind::AllowAlways,
            Says::RejectOnce => PermissionOptionKind::RejectOnce,
            Says::RejectAlways => PermissionOptionKind::RejectAlways,
            Says::Cancelled => return ask.cancel().await.unwrap(),
            Says::Nothing => return drop(ask),
            // The others are put in the place of a yes on the wire: a client of ours would not send them.
            Says::AllowOnce | Says::SomethingElse | Says::Error | Says::Nonsense => PermissionOptionKind::AllowOnce,
        };
        // Where there is no "always", it is said once.
        let fits = |wanted: &PermissionOptionKind| ask.options.iter().find(|option| option.kind == *wanted);
        let once = if kind.is_allow() { PermissionOptionKind::AllowOnce } else { PermissionOptionKind::RejectOnce };
        let option = fits(&kind).or_else(|| fits(&once)).unwrap().option_id.clone();
        ask.select(option).await.unwrap();
    }

    /// What an answer becomes on its way to the agent.
    pub(crate) fn spoil(self, line: String) -> String {
        const YES: &str = r#""result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}"#;
        let other = match self {
            Says::SomethingElse => YES.replace("allow_once", "sure"),
            Says::Error => r#""error":{"code":-32603,"message":"the dialog broke"}"#.into(),
            Says::Nonsense => r#""result":{"outcome":"allow_once"}"#.into(),
            _ => return line,
        };
        if !line.contains(r#""result":{"outcome""#) {
            return line;
        }
        assert!(line.contains(YES), "{line}");
        line.replace(YES, &other)
    }
}
