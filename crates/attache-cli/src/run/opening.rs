//! How a run comes to a session: the agent is started and greeted, logged in to if it wants that, and asked for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use attache::client::Session;
use attache::model::auth::AuthMethod;
use attache::model::config::{ConfigCategory, ConfigKind};
use attache::model::error::ErrorObject;
use attache::model::mcp::McpServer;
use attache::proto::rpc::Violation;
use attache::trace::Tap;
use attache::{Client, Connection, Event, Report};

use crate::auth;
use crate::client::services::Services;
use crate::connect::{self, Opening};
use crate::event::{self};
use crate::exit::Failure;
use crate::output::Waiting;
use crate::project::load_mcp;

use super::{Conversation, Place, Trouble, last_session, prompt_capabilities, ready, settings};

impl Conversation<'_> {
    /// Starts the agent and opens the session.
    pub(super) async fn open(
        &mut self,
        place: &Place<'_>,
        lost: &Arc<AtomicU64>,
    ) -> Result<(Connection, Session), Trouble> {
        let (args, spec) = (self.args, self.spec);
        let mut servers = place.project.mcp_servers()?;
        for path in &args.mcp_config {
            let content =
                std::fs::read(path).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
            servers.extend(load_mcp(&content, path)?);
        }
        let client = self.client(lost, place.has_person)?;
        let mut opening = Opening::new(spec, place.cwd, args.start.protocol);
        opening.sandbox = place.sandbox.clone();
        let mut connection = self.wait(Waiting::Agent, connect::start(client.clone(), &opening)).await??;
        if let Some(id) = &args.start.auth {
            let method = auth::find(&connection, spec, id)?;
            connection = match self.authenticate(connection, &opening, &method).await? {
                Some(connection) => connection,
                None => self.wait(Waiting::Agent, connect::start(client.clone(), &opening)).await??,
            };
        }
        self.tell_agent(&connection).await?;
        let mut is_login_offered = false;
        loop {
            let opened = self.open_session(place, servers.clone(), &connection).await;
            let refusal = match opened {
                Ok(Ok(session)) => return Ok((connection, session)),
                Ok(Err(refusal)) if !is_login_offered && !spec.is_built_in && auth::is_somebody_there() => refusal,
                other => {
                    // It is let go politely, so that nothing of it is left when we have ended.
                    let failure = match other {
                        Ok(Err(refusal)) => auth::explain(refusal.into(), &connection, spec).into(),
                        Err(trouble) => trouble,
                        Ok(Ok(_)) => unreachable!("it was returned"),
                    };
                    if let Trouble::Failed(_) = failure {
                        tokio::select! {
                            _ = connection.shutdown() => {}
                            _ = self.signals.next() => {}
                        }
                    }
                    return Err(failure);
                }
            };
            // Once: what a login does not help with is told.
            is_login_offered = true;
            connection = match self.wait_for_person(auth::offer_login(connection, &opening, &refusal)).await?? {
                Some(connection) => connection,
                None => self.wait(Waiting::Agent, connect::start(client.clone(), &opening)).await??,
            };
        }
    }

    /// Logs in. In a terminal, a person does that.
    async fn authenticate(
        &mut self,
        connection: Connection,
        opening: &Opening<'_>,
        method: &AuthMethod,
    ) -> Result<Option<Connection>, Trouble> {
        let login = auth::authenticate(connection, opening, method);
        match method {
            AuthMethod::Terminal(_) => Ok(self.wait_for_person(login).await??),
            _ => Ok(self.wait(Waiting::Login, login).await??),
        }
    }

    /// The client, with everything that is written down of its messages.
    fn client(&mut self, lost: &Arc<AtomicU64>, has_person: bool) -> Result<Client, Failure> {
        let lost = lost.clone();
        let client = Services::offer(connect::client(), self.spec, has_person).on_report(move |report| {
            // What the agent tells and nobody understands is told to the person at the end.
            if let Report::Violation(Violation::InvalidParams { method: "session/update", .. }) = report {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut tap = None;
        if let Some(path) = &self.args.start.trace {
            let file = Tap::file(path).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
            tap = Some(file);
        }
        if let Some(messages) = self.record.messages.clone() {
            tap = Some(tap.map_or_else(|| Tap::messages(messages.clone()), |tap| tap.and_messages(messages.clone())));
        }
        Ok(match tap {
            Some(tap) => client.trace(tap),
            None => client,
        })
    }

    /// Tells who the agent is.
    async fn tell_agent(&mut self, connection: &Connection) -> Result<(), Trouble> {
        let info = connection.info();
        self.record.add(event::Event::Agent(event::Agent {
            agent: self.spec.name.clone(),
            name: info.map(|info| info.title.clone().unwrap_or_else(|| info.name.clone())),
            version: info.map(|info| info.version.clone()),
            protocol: Some(connection.dialect().to_string()),
        }));
        self.flush().await
    }

    /// Opens the session and sets what is to be set in it. A refusal is one for want of a login.
    async fn open_session(
        &mut self,
        place: &Place<'_>,
        servers: Vec<McpServer>,
        connection: &Connection,
    ) -> Result<Result<Session, ErrorObject>, Trouble> {
        let (args, spec) = (self.args, self.spec);
        // Before there is a session that nobody comes back to.
        place.question.check(&prompt_capabilities(connection))?;
        let mut builder = connection.session(place.cwd);
        for directory in place.directories {
            builder = builder.directory(directory);
        }
        for server in servers {
            builder = builder.mcp_server(server);
        }
        let known = match (&args.resume, args.continue_last) {
            (Some(id), _) => Some(id.clone()),
            (None, true) => Some(last_session(spec, place.cwd)?),
            (None, false) => None,
        };
        let resumed = known.clone();
        let opening = async {
            match known {
                None => builder.open().await,
                Some(id) => builder.resume(id).await,
            }
        };
        let session = match self.wait(Waiting::Session, opening).await? {
            Ok(session) => session,
            Err(attache::Error::Refused(refusal)) if refusal.code == ErrorObject::AUTH_REQUIRED => {
                return Ok(Err(refusal));
            }
            Err(error) => {
                return Err(match resumed {
                    Some(id) => Failure::of_session(error, &id).into(),
                    None => error.into(),
                });
            }
        };
        let resumed = resumed.is_some();
        self.record.add(event::Event::Session(event::Session { id: session.id().to_string(), resumed }));
        self.flush().await?;
        self.wait(Waiting::Session, settings::apply(args, &session)).await??;
        if let Some(model) = self.model(&session)? {
            self.record.add(event::Event::Model(model));
        }
        Ok(Ok(session))
    }

    /// Which model answers, and who chose it, as far as the agent tells.
    fn model(&self, session: &Session) -> Result<Option<event::Model>, Failure> {
        let is_model = |option: &&attache::model::config::ConfigOption| {
            option.category.as_ref() == Some(&ConfigCategory::Model) || option.id.as_str() == "model"
        };
        let options = session.options();
        let Some(ConfigKind::Select(select)) = options.iter().find(is_model).map(|option| &option.kind) else {
            return Ok(None);
        };
        let chosen_by = match (&self.args.model, self.spec.is_built_in) {
            (Some(_), _) => Some("--model".to_owned()),
            // A session that is taken up again goes on with its own.
            (None, true) => {
                let (config, chosen) = crate::agent::settings(None)?;
                let is_it = config.model.as_deref() == Some(select.current.as_str());
                chosen.filter(|_| is_it).map(|chosen| chosen.to_string())
            }
            (None, false) => None,
        };
        Ok(Some(event::Model { id: select.current.to_string(), chosen_by }))
    }

    /// Takes what the agent has told of the session before the prompt goes out.
    pub(super) async fn take_history(&mut self, session: &Session, services: &mut Services) -> Result<(), Trouble> {
        // What it has written by now is read first.
        for _ in 0..3 {
            tokio::task::yield_now().await;
            while let Some(event) = ready(session.next()).await {
                match event {
                    Ok(Event::Update(update)) => self.record.earlier_update(&update),
                    Ok(other) => services.serve(other).into_iter().for_each(|event| self.record.add(event)),
                    // The prompt will tell.
                    Err(_) => return Ok(()),
                }
                if self.record.is_pending() {
                    self.flush().await?;
                }
            }
        }
        Ok(())
    }
}
