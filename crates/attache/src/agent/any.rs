//! A session of any type, so that what runs sessions is compiled once and not for every agent.

use attache_proto::model::config::{ConfigId, ConfigOption, ConfigSetting};

use super::{HandlerError, Opened, Session, Turn};
use crate::link::BoxFuture;
use crate::{Prompt, Stop};

/// A session whose type is forgotten.
pub(super) struct AnySession(Box<dyn Erased>);

impl AnySession {
    pub(super) fn opened<S: Session>(opened: Opened<S>) -> Opened<Self> {
        let Opened { session, options, commands, meta } = opened;
        Opened { session: AnySession(Box::new(session)), options, commands, meta }
    }
}

/// What [`Session`] says, with futures of one size.
trait Erased: Send {
    fn prompt(&mut self, turn: Turn, prompt: Prompt) -> BoxFuture<'_, Result<Stop, HandlerError>>;
    fn set_option(
        &mut self,
        option: ConfigId,
        value: ConfigSetting,
    ) -> BoxFuture<'_, Result<Vec<ConfigOption>, HandlerError>>;
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

impl<S: Session> Erased for S {
    fn prompt(&mut self, turn: Turn, prompt: Prompt) -> BoxFuture<'_, Result<Stop, HandlerError>> {
        Box::pin(Session::prompt(self, turn, prompt))
    }

    fn set_option(
        &mut self,
        option: ConfigId,
        value: ConfigSetting,
    ) -> BoxFuture<'_, Result<Vec<ConfigOption>, HandlerError>> {
        Box::pin(Session::set_option(self, option, value))
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { Session::close(*self).await })
    }
}

impl Session for AnySession {
    fn prompt(&mut self, turn: Turn, prompt: Prompt) -> impl Future<Output = Result<Stop, HandlerError>> + Send {
        self.0.prompt(turn, prompt)
    }

    fn set_option(
        &mut self,
        option: ConfigId,
        value: ConfigSetting,
    ) -> impl Future<Output = Result<Vec<ConfigOption>, HandlerError>> + Send {
        self.0.set_option(option, value)
    }

    fn close(self) -> impl Future<Output = ()> + Send {
        self.0.close()
    }
}
