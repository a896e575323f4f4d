//! News of a session, from the agent to the client.

use super::{Bridge, Out, answers_at_the_end, raw};
use crate::Dialect;
use crate::dialect::Speaker;
use crate::json::Writer;
use crate::method::{AgentNotification, Method};
use crate::model::{
    ConfigOptionsUpdate, Meta, Patch, SessionId, SessionInfoUpdate, SessionNotification, SessionUpdate, StateUpdate,
};

impl Bridge {
    #[inline]
    pub(super) fn handle_agent_notification(&mut self, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let known = Method::parse(method).filter(|_| client != agent);
        let decoded = match known {
            None | Some(Method::ProxySuccessor) => None,
            Some(known) => AgentNotification::decode(known, params, agent, &mut Vec::new()),
        };
        match decoded {
            None => self.client.notify(method, |writer| raw(writer, params.unwrap_or("{}")), out.client),
            Some(Ok(AgentNotification::SessionUpdate(news))) => self.handle_update(news, out),
            Some(Ok(other)) => match other.method().name(client) {
                Some(name) => self.client.notify(name, |writer| other.encode_params(writer), out.client),
                None => self.report(other.method().any_name()),
            },
            Some(Err(_)) => self.report("params of a notification of the agent are wrong"),
        }
    }

    #[inline]
    fn handle_update(&mut self, news: SessionNotification, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let SessionNotification { session_id: id, update, meta } = news;
        let client_waits = answers_at_the_end(client) && !answers_at_the_end(agent);
        let session = self.session(&id);
        match update {
            _ if session.is_muted => {}
            SessionUpdate::State(state) if client_waits => {
                if !matches!(state, StateUpdate::Running(_)) {
                    self.flush(&id, out);
                }
                self.handle_state(&id, state, out);
            }
            // The client knows what it has said: only v2 has it repeated.
            SessionUpdate::UserMessage(_) | SessionUpdate::UserMessageChunk(_)
                if client_waits && !session.turns.is_empty() => {}
            SessionUpdate::CurrentMode(mode) if agent == Dialect::V1 && client != Dialect::V1 => {
                if !session.modes.set_current(&mode.current_mode_id) {
                    return self.report("current_mode_update");
                }
                let options = ConfigOptionsUpdate::new(session.modes.as_options().unwrap_or_default());
                self.say(&id, &SessionUpdate::ConfigOptions(options), meta, out);
            }
            SessionUpdate::ConfigOptions(mut options) => {
                options.config_options = session.modes.add_to(options.config_options);
                self.say(&id, &SessionUpdate::ConfigOptions(options), meta, out);
            }
            update => {
                if let SessionUpdate::SessionInfo(SessionInfoUpdate { title: Patch::Set(title), .. }) = &update {
                    session.title = Some(title.clone());
                }
                self.say(&id, &update, meta, out);
            }
        }
    }

    /// Tells the client news of a session, in its own words.
    #[inline]
    pub(super) fn say(&mut self, id: &SessionId, update: &SessionUpdate, meta: Option<Meta>, out: &mut Out<'_>) {
        self.say_with(id, meta, out, |speaker, emit| speaker.say(update, emit));
    }

    /// Tells the client what is held back of a session, before a turn of it ends or a question is asked.
    #[inline]
    pub(super) fn flush(&mut self, id: &SessionId, out: &mut Out<'_>) {
        self.say_with(id, None, out, Speaker::flush);
    }

    #[inline]
    fn say_with(
        &mut self,
        id: &SessionId,
        meta: Option<Meta>,
        out: &mut Out<'_>,
        say: impl FnOnce(&mut Speaker, &mut dyn FnMut(&SessionUpdate)) -> Vec<&'static str>,
    ) {
        // The session is there from now on, so that it can be borrowed beside the peer.
        self.session(id);
        let Some(session) = self.sessions.get_mut(id) else { return };
        let client = &mut self.client;
        let mut meta = meta;
        let lost = say(&mut session.speaker, &mut |said| {
            let meta = meta.take();
            let params = |writer: &mut Writer<'_>| {
                writer.begin_object();
                writer.key("sessionId");
                writer.value(id);
                writer.key("update");
                writer.value(said);
                if let Some(meta) = &meta {
                    writer.key("_meta");
                    writer.value(meta);
                }
                writer.end_object();
            };
            client.notify("session/update", params, out.client);
        });
        self.reports.extend(lost);
    }
}
