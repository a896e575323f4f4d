//! What the client asks and tells, put to the agent.

use super::{Asked, Bridge, OptionChange, Out, Then, gone, raw};
use crate::conversation::{Opening, SetRequest};
use crate::json::Writer;
use crate::method::{ClientRequest, Method, decode_params};
use crate::model::Meta;
use crate::model::config::{ConfigCategory, ConfigValueId, SetConfigOptionRequest};
use crate::model::error::ErrorObject;
use crate::model::prompt::CancelNotification;
use crate::model::session::{SessionId, SetModeRequest, SetModelRequest};
use crate::rpc::Call;

impl Bridge {
    #[inline]
    pub(super) fn handle_client_call(&mut self, call: Call, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        if self.is_agent_gone {
            return self.refuse(call, &gone(), out);
        }
        if method == "initialize" {
            return self.initialize(call, params, out);
        }
        let decoded = match (Method::parse(method), self.translated()) {
            // These carry messages of others, the same in all dialects.
            (Some(Method::McpMessage | Method::ProxyInitialize | Method::ProxySuccessor), _) => None,
            (Some(method), Some((client, _))) => ClientRequest::decode(method, params, client, &mut Vec::new()),
            _ => None,
        };
        match decoded {
            Some(Ok(request)) => self.translate_call(call, request, params.map_or(0, str::len), out),
            Some(Err(error)) => self.refuse(call, &ErrorObject::invalid_params(&error), out),
            None => self.ask_as(call, method, |writer| raw(writer, params.unwrap_or("{}")), Then::Pass, out),
        }
    }

    #[inline]
    fn translate_call(&mut self, call: Call, request: ClientRequest, bytes: usize, out: &mut Out<'_>) {
        let Some(offer) = &self.offer else { return };
        if let Err(error) = offer.check(&request, self.client_dialect()) {
            return self.refuse(call, &error, out);
        }
        let lists = offer.capabilities.session.as_ref().is_some_and(|session| session.list.is_some());
        let method = request.method();
        match request {
            ClientRequest::Prompt(prompt) => self.prompt(call, prompt, bytes, out),
            ClientRequest::ListSessions(list) if !lists => self.list(call, &list, out),
            ClientRequest::CloseSession(close) => self.close(call, close, out),
            ClientRequest::DeleteSession(delete) => {
                let id = delete.session_id.clone();
                self.ask(call, &delete.into(), Then::Free(method, id), out);
            }
            ClientRequest::SetConfigOption(set) => self.set_option(call, set, method, out),
            ClientRequest::SetMode(SetModeRequest { session_id, mode_id, meta }) => {
                let value = mode_id.as_str().into();
                self.set_older(call, method, (session_id, &ConfigCategory::Mode, value, meta), out);
            }
            ClientRequest::SetModel(SetModelRequest { session_id, model_id, meta }) => {
                self.set_older(call, method, (session_id, &ConfigCategory::Model, model_id, meta), out);
            }
            request @ (ClientRequest::NewSession(_)
            | ClientRequest::LoadSession(_)
            | ClientRequest::ResumeSession(_)
            | ClientRequest::ForkSession(_)) => match Opening::from_request(request) {
                Some(Ok(opening)) => self.open(call, method, opening, out),
                Some(Err(error)) => self.refuse(call, &error, out),
                None => {}
            },
            request => self.ask(call, &request, Then::Recode(method), out),
        }
    }

    /// Sets the option that the client means by its mode or model.
    #[inline]
    fn set_older(
        &mut self,
        call: Call,
        asked: Method,
        (session_id, category, value, meta): (SessionId, &ConfigCategory, ConfigValueId, Option<Meta>),
        out: &mut Out<'_>,
    ) {
        let not_found = || ErrorObject::method_not_found(Some(asked.any_name()));
        let session = self.open_session(&session_id);
        match session.and_then(|session| session.as_agent.option_of(category).cloned().ok_or_else(not_found)) {
            Ok(option) => {
                let set = SetConfigOptionRequest::new(session_id, option, value);
                self.set_option(call, SetConfigOptionRequest { meta, ..set }, asked, out);
            }
            Err(error) => self.refuse(call, &error, out),
        }
    }

    #[inline]
    fn set_option(&mut self, call: Call, set: SetConfigOptionRequest, asked: Method, out: &mut Out<'_>) {
        let SetConfigOptionRequest { session_id, config_id, value, meta } = set;
        let session = match self.open_session(&session_id) {
            Ok(session) => session,
            Err(error) => return self.refuse(call, &error, out),
        };
        let (request, older) = match session.as_client.options.set_request(&session_id, config_id.clone(), value) {
            SetRequest::Option(set) => (SetConfigOptionRequest { meta, ..set }.into(), None),
            SetRequest::Mode(set) => {
                let mode = ConfigValueId::from(set.mode_id.as_str());
                (SetModeRequest { meta, ..set }.into(), Some((config_id, mode)))
            }
            SetRequest::Model(set) => {
                let model = set.model_id.clone();
                (SetModelRequest { meta, ..set }.into(), Some((config_id, model)))
            }
        };
        let change = OptionChange { session: session_id, asked, older };
        self.ask(call, &request, Then::SetOption(Box::new(change)), out);
    }

    /// Asks the agent, if its dialect has the method.
    #[inline]
    pub(super) fn ask(&mut self, call: Call, request: &ClientRequest, then: Then, out: &mut Out<'_>) {
        let method = request.method();
        match method.name(self.agent_dialect()) {
            Some(name) => self.ask_as(call, name, |writer| request.encode_params(writer), then, out),
            None => {
                // Only what offers to be cancelled can be, so this is a wrong id rather than a wrong method.
                let error = match method {
                    Method::CancelToolCall | Method::CancelTerminal => {
                        ErrorObject::wrong_params("this cannot be cancelled")
                    }
                    method => ErrorObject::method_not_found(Some(method.any_name())),
                };
                self.handle_agent_answer(Asked { call, then }, Err(error), out);
            }
        }
    }

    #[inline]
    pub(super) fn ask_as(
        &mut self,
        call: Call,
        method: &str,
        params: impl FnOnce(&mut Writer<'_>),
        then: Then,
        out: &mut Out<'_>,
    ) {
        let request = self.agent.request(method, params, Asked { call, then }, out.agent);
        self.client_calls.insert(call, request);
    }

    #[inline]
    pub(super) fn handle_client_notification(&mut self, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        match self.translated() {
            Some((client, _)) if Method::parse(method) == Some(Method::Cancel) => {
                match decode_params::<CancelNotification>(params, client, &mut Vec::new()) {
                    Ok(cancel) if self.open_session(&cancel.session_id).is_ok() => {
                        self.cancel_work(&cancel, out);
                        self.cancel_queued(&cancel.session_id, None, out);
                        self.cancel_questions(&cancel.session_id, None, out);
                    }
                    Ok(_) => {}
                    Err(_) => self.report("invalid params of `session/cancel`"),
                }
            }
            _ => self.agent.notify(method, |writer| raw(writer, params.unwrap_or("{}")), out.agent),
        }
    }

    /// The client no longer wants the answer to a call.
    #[inline]
    pub(super) fn handle_client_cancel(&mut self, call: Call, out: &mut Out<'_>) {
        let turn = self.sessions.iter().find_map(|(id, session)| {
            let (turn, _) = session.prompts.iter().find(|(_, prompt)| *prompt == call)?;
            Some((id.clone(), *turn))
        });
        if let Some((id, turn)) = &turn {
            self.cancel_questions(id, Some(*turn), out);
        }
        match (self.client_calls.get(&call), turn) {
            (Some(request), _) => self.agent.cancel(*request, out.agent),
            // The agent has taken the prompt in, so what is left to cancel is the work.
            (None, Some((id, _))) => self.cancel_work(&CancelNotification::new(id), out),
            // The prompt waits for its turn, if it is one.
            (None, None) => {
                let ids: Vec<SessionId> = self.sessions.keys().cloned().collect();
                ids.iter().for_each(|id| self.cancel_queued(id, Some(call), out));
            }
        }
    }
}
