//! What the client asks and tells, put to the agent; and the agent's answers.

use super::modes::Modes;
use super::recode::recode;
use super::{Asked, Bridge, Out, answers_at_the_end, raw};
use crate::Dialect;
use crate::json::Writer;
use crate::method::{ClientRequest, Method, decode_params, decode_result};
use crate::model::{
    CancelNotification, ConfigOptionsUpdate, ConfigSetting, ErrorObject, ModeId, PermissionOutcome, PermissionResponse,
    SessionId, SessionUpdate, SetConfigOptionRequest, SetConfigOptionResponse, SetModeRequest, SetModeResponse,
};
use crate::rpc::{Call, Outcome};

impl Bridge {
    #[inline]
    pub(super) fn handle_client_call(&mut self, call: Call, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let known = Method::parse(method).filter(|_| client != agent);
        match known {
            _ if method == "initialize" => self.initialize(call, params, out),
            // These carry messages of others, the same in all dialects.
            None | Some(Method::McpMessage | Method::ProxyInitialize | Method::ProxySuccessor) => {
                self.pass_client_call(call, method, params, out);
            }
            Some(known) => match ClientRequest::decode(known, params, client, &mut Vec::new()) {
                Some(Ok(request)) => self.translate_call(call, request, out),
                Some(Err(error)) => self.settle_error(call, &ErrorObject::invalid_params(&error), out),
                None => self.pass_client_call(call, method, params, out),
            },
        }
    }

    #[inline]
    fn translate_call(&mut self, call: Call, request: ClientRequest, out: &mut Out<'_>) {
        let (_, agent) = self.both();
        let session = self.agent_capabilities.session.as_ref();
        let lists = agent == Dialect::V2 || session.is_some_and(|session| session.list.is_some());
        match request {
            ClientRequest::Prompt(prompt) => self.prompt(call, prompt, out),
            ClientRequest::NewSession(_)
            | ClientRequest::LoadSession(_)
            | ClientRequest::ResumeSession(_)
            | ClientRequest::ForkSession(_) => self.open(call, request, out),
            ClientRequest::ListSessions(list) if !lists => self.list(call, &list, out),
            ClientRequest::CloseSession(close) => self.close(call, close, out),
            ClientRequest::SetMode(set) => self.set_mode(call, set, out),
            ClientRequest::SetConfigOption(set) => self.set_option(call, set, out),
            // Only what offers to be cancelled can be, so this is a wrong id rather than a wrong method.
            ClientRequest::CancelToolCall(_) | ClientRequest::CancelTerminal(_) if agent != Dialect::V2 => {
                let error = ErrorObject::new(ErrorObject::INVALID_PARAMS, "Invalid params: it cannot be cancelled");
                self.settle_error(call, &error, out);
            }
            request => {
                let method = request.method();
                self.forward(call, &request, Asked::Recode(call, method), out);
            }
        }
    }

    /// Asks the agent, if its dialect has the method.
    #[inline]
    pub(super) fn forward(&mut self, call: Call, request: &ClientRequest, asked: Asked, out: &mut Out<'_>) {
        let (_, agent) = self.both();
        let Some(name) = request.method().name(agent) else {
            let error = ErrorObject::method_not_found(Some(request.method().any_name()));
            return self.settle_error(call, &error, out);
        };
        let key = self.agent.request(name, |writer| request.encode_params(writer), asked, out.agent);
        self.client_calls.insert(call, key);
    }

    #[inline]
    fn set_mode(&mut self, call: Call, set: SetModeRequest, out: &mut Out<'_>) {
        let id = set.session_id.clone();
        let Modes::FromOption(option) = &self.session(&id).modes else {
            return self.forward(call, &set.into(), Asked::Recode(call, Method::SetMode), out);
        };
        let value = ConfigSetting::Id(set.mode_id.as_str().into());
        let request =
            SetConfigOptionRequest { meta: set.meta, ..SetConfigOptionRequest::new(id.clone(), option.clone(), value) };
        self.forward(call, &request.into(), Asked::SetModeOption(call, id), out);
    }

    #[inline]
    fn set_option(&mut self, call: Call, set: SetConfigOptionRequest, out: &mut Out<'_>) {
        let id = set.session_id.clone();
        let is_mode = matches!(&self.session(&id).modes, Modes::AsOption { id, .. } if *id == set.config_id);
        match &set.value {
            ConfigSetting::Id(value) if is_mode => {
                let mode = ModeId::from(value.as_str());
                let request = SetModeRequest { meta: set.meta, ..SetModeRequest::new(id.clone(), mode.clone()) };
                self.forward(call, &request.into(), Asked::SetMode(call, id, mode), out);
            }
            _ => self.forward(call, &set.into(), Asked::SetOption(call, id), out),
        }
    }

    #[inline]
    pub(super) fn handle_client_notification(&mut self, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        if client != agent && Method::parse(method) == Some(Method::Cancel) {
            match decode_params::<CancelNotification>(params, client, &mut Vec::new()) {
                Ok(cancel) => self.cancel_session(&cancel, out),
                Err(_) => self.report("params of `session/cancel` are wrong"),
            }
            return;
        }
        self.agent.notify(method, |writer: &mut Writer<'_>| raw(writer, params.unwrap_or("{}")), out.agent);
    }

    /// Stops what a session is doing, and what it has not begun.
    #[inline]
    pub(super) fn cancel_session(&mut self, cancel: &CancelNotification, out: &mut Out<'_>) {
        self.agent.notify("session/cancel", |writer| writer.value(cancel), out.agent);
        let queued: Vec<Call> = self.session(&cancel.session_id).queue.drain(..).map(|(call, _)| call).collect();
        for call in queued {
            self.settle_error(call, &ErrorObject::cancelled(), out);
        }
        let (client, agent) = self.both();
        if client == Dialect::V2 && answers_at_the_end(agent) {
            self.cancel_permissions(&cancel.session_id, out);
        }
    }

    /// An old agent waits for the client to answer its questions after a cancel; a v2 client waits to be told.
    #[inline]
    fn cancel_permissions(&mut self, session_id: &SessionId, out: &mut Out<'_>) {
        let of_session =
            |asking: &super::Asking| matches!(asking, super::Asking::Permission(_, id) if id == session_id);
        for asking in self.client.abandon_all(of_session, out.client) {
            let super::Asking::Permission(call, _) = asking else { continue };
            self.agent_calls.remove(&call);
            self.session(session_id).questions = 0;
            let cancelled = PermissionResponse::new(PermissionOutcome::cancelled());
            self.agent.answer(call, |writer| writer.value(&cancelled), out.agent);
        }
    }

    /// The client no longer wants the answer to a call.
    #[inline]
    pub(super) fn handle_client_cancel(&mut self, call: Call, out: &mut Out<'_>) {
        if let Some(request) = self.client_calls.get(&call) {
            return self.agent.cancel(*request, out.agent);
        }
        let queued = |session: &super::Session| session.queue.iter().any(|(queued, _)| *queued == call);
        let running = |session: &super::Session| session.turns.iter().any(|turn| turn.call == call);
        let Some((id, session)) = self.sessions.iter_mut().find(|(_, session)| queued(session) || running(session))
        else {
            return;
        };
        let id = id.clone();
        if queued(session) {
            session.queue.retain(|(queued, _)| *queued != call);
            self.settle_error(call, &ErrorObject::cancelled(), out);
        } else {
            // The agent has taken the prompt already, so what is left to cancel is the work.
            self.agent.notify("session/cancel", |writer| writer.value(&CancelNotification::new(id)), out.agent);
        }
    }

    #[inline]
    pub(super) fn handle_agent_answer(&mut self, asked: Asked, outcome: Outcome<'_>, out: &mut Out<'_>) {
        match asked {
            Asked::Initialize(call) => self.initialized(call, outcome, out),
            Asked::Raw(call) => self.settle_raw(call, outcome, out),
            Asked::Recode(call, method) => {
                if method == Method::Prompt {
                    let sessions: Vec<_> = self.sessions.keys().cloned().collect();
                    sessions.iter().for_each(|id| self.flush(id, out));
                }
                self.settle_recoded(call, method, outcome, out);
            }
            Asked::Open(opening) => self.opened(*opening, outcome, out),
            Asked::Close(call, id) => {
                if outcome.is_ok() {
                    self.closed(&id);
                }
                self.settle_recoded(call, Method::CloseSession, outcome, out);
            }
            Asked::Turn(id) => self.turn_ended(&id, outcome, out),
            Asked::Insert(call, id) => self.inserted(call, &id, outcome, out),
            Asked::SetMode(call, id, mode) => {
                if let Err(error) = outcome {
                    return self.settle_error(call, &error, out);
                }
                let modes = &mut self.session(&id).modes;
                modes.set_current(&mode);
                let response = SetConfigOptionResponse::new(modes.as_options().unwrap_or_default());
                self.settle(call, |writer| writer.value(&response), out);
            }
            Asked::SetModeOption(call, id) => {
                let response = match self.options_of(outcome) {
                    Ok(response) => response,
                    Err(error) => return self.settle_error(call, &error, out),
                };
                let update = ConfigOptionsUpdate::new(response.config_options);
                self.say(&id, &SessionUpdate::ConfigOptions(update), None, out);
                self.settle(call, |writer| writer.value(&SetModeResponse::new()), out);
            }
            Asked::SetOption(call, id) => {
                let mut response = match self.options_of(outcome) {
                    Ok(response) => response,
                    Err(error) => return self.settle_error(call, &error, out),
                };
                response.config_options = self.session(&id).modes.add_to(response.config_options);
                if self.both().0 == Dialect::V1 {
                    self.understood_options(&mut response.config_options);
                }
                self.settle(call, |writer| writer.value(&response), out);
            }
        }
    }

    #[inline]
    fn options_of(&self, outcome: Outcome<'_>) -> Result<SetConfigOptionResponse, ErrorObject> {
        decode_result(outcome?, self.both().1, &mut Vec::new()).map_err(|_| misunderstood())
    }

    #[inline]
    fn settle_recoded(&mut self, call: Call, method: Method, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        match outcome.map(|result| recode(method, result, agent, client)) {
            Ok(Ok((result, lost))) => {
                self.reports.extend(lost);
                self.settle(call, |writer| writer.raw(&result), out);
            }
            Ok(Err(_)) => self.settle_misunderstood(call, out),
            Err(error) => self.settle_error(call, &error, out),
        }
    }

    /// Answers a call of the client whose result makes no sense.
    #[inline]
    pub(super) fn settle_misunderstood(&mut self, call: Call, out: &mut Out<'_>) {
        self.report("a result of the agent is wrong");
        self.settle_error(call, &misunderstood(), out);
    }
}

#[inline]
fn misunderstood() -> ErrorObject {
    ErrorObject::internal("the agent's answer was not understood")
}
