//! What the agent answers, asks and tells, put to the client; and what the client answers.

use super::recode::answer_recoded;
use super::{Asked, Asking, Bridge, OptionChange, Out, Then, raw};
use crate::conversation::{Question, is_memorable};
use crate::json::Writer;
use crate::method::{AgentNotification, AgentRequest, Method, decode_result};
use crate::model::Patch;
use crate::model::config::SetConfigOptionResponse;
use crate::model::elicitation::{CreateElicitationRequest, ElicitationMode, ElicitationScope};
use crate::model::error::ErrorObject;
use crate::model::permission::{PermissionOutcome, PermissionResponse};
use crate::model::prompt::StopReason;
use crate::model::request::RequestId;
use crate::model::session::SetModeResponse;
use crate::model::update::{ConfigOptionsUpdate, SessionInfoUpdate, SessionNotification, SessionUpdate};
use crate::rpc::{Call, Outcome, Violation};

impl Bridge {
    #[inline]
    pub(super) fn handle_agent_answer(&mut self, asked: Asked, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let Asked { call, then } = asked;
        self.client_calls.remove(&call);
        match then {
            Then::Greet(hello) => self.greeted(call, hello, outcome, out),
            Then::Pass => self.answer_raw(call, outcome, out),
            Then::Recode(method) => self.answer_translated(call, method, outcome, out),
            Then::Open(open) => self.opened(call, *open, outcome, out),
            Then::Free(method, id) => {
                if outcome.as_ref().err().is_none_or(|error| error.code == ErrorObject::NOT_FOUND) {
                    self.end_session(&id, &Ok(StopReason::Cancelled), out);
                }
                self.answer_translated(call, method, outcome, out);
            }
            Then::Prompt(id) => {
                let answer = outcome.and_then(|result| self.decode_agent(result));
                let Some(session) = self.sessions.get_mut(&id) else { return };
                let turn = session.prompts.iter().find(|(_, prompt)| *prompt == call).map(|(turn, _)| *turn);
                if let Some(end) = turn.and_then(|turn| session.as_client.prompt_answered(turn, answer)) {
                    self.end_turn(&id, end, out);
                }
            }
            Then::SetOption(change) => {
                if let Err(error) = self.option_was_set(call, &change, outcome, out) {
                    self.refuse(call, &error, out);
                }
            }
        }
    }

    /// Reads a result of the agent.
    #[inline]
    fn decode_agent<T: crate::Decode>(&mut self, result: &str) -> Result<T, ErrorObject> {
        decode_result(result, self.agent_dialect(), &mut Vec::new()).map_err(|_| {
            self.report("invalid result from the agent");
            ErrorObject::internal("invalid result from the agent")
        })
    }

    /// The agent has set an option. The client hears how it asked: of all options, or of its mode.
    #[inline]
    fn option_was_set(
        &mut self,
        call: Call,
        change: &OptionChange,
        outcome: Outcome<'_>,
        out: &mut Out<'_>,
    ) -> Result<(), ErrorObject> {
        let result = outcome?;
        let SetConfigOptionResponse { config_options, meta } = match &change.older {
            Some(_) => SetConfigOptionResponse::new([]),
            None => self.decode_agent(result)?,
        };
        let session = self.open_session(&change.session)?;
        let options = &mut session.as_client.options;
        match &change.older {
            Some((option, value)) => options.was_set(option, value),
            None => options.replace(config_options),
        }
        let options = options.all().to_vec();
        if change.asked == Method::SetConfigOption {
            let config_options = session.as_agent.set_options(options);
            let response = SetConfigOptionResponse { config_options, meta };
            self.client.answer(call, |writer| writer.value(&response), out.client);
        } else {
            let update = SessionUpdate::ConfigOptions(ConfigOptionsUpdate::new(options));
            self.tell(&change.session, None, None, out, |session, emit| session.say_owned(update, emit));
            self.client.answer(call, |writer| writer.value(&SetModeResponse::new()), out.client);
        }
        Ok(())
    }

    /// Answers a call of the client in its own dialect.
    #[inline]
    fn answer_translated(&mut self, call: Call, method: Method, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let agent = self.agent_dialect();
        match outcome.map(|result| answer_recoded(&mut self.client, call, method, result, agent, out.client)) {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.refuse_misunderstood(call, out),
            Err(error) => self.refuse(call, &error, out),
        }
    }

    #[inline]
    pub(super) fn handle_agent_call(&mut self, call: Call, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        // A question may name a request, and requests have other ids on the other side.
        let names_request = |params: &str| params.contains("\"requestId\"");
        let decoded = match (Method::parse(method), self.dialects()) {
            (Some(Method::McpMessage | Method::ProxySuccessor), _) => None,
            (Some(known), Some((client, agent)))
                if client != agent || (known == Method::CreateElicitation && params.is_some_and(names_request)) =>
            {
                Some((client, AgentRequest::decode(known, params, agent, &mut Vec::new())))
            }
            _ => None,
        };
        let (client, request) = match decoded {
            Some((client, Some(Ok(request)))) => (client, request),
            Some((_, Some(Err(error)))) => {
                return self.agent.refuse(call, &ErrorObject::invalid_params(&error), out.agent);
            }
            None | Some((_, None)) => {
                let params = |writer: &mut Writer<'_>| raw(writer, params.unwrap_or("{}"));
                let asking = Asking { call, method: None, session: None };
                let key = self.client.request(method, params, asking, out.client);
                self.agent_calls.insert(call, key);
                return;
            }
        };
        match request.method().name(client) {
            Some(name) => self.ask_client(call, name, request, out),
            None => {
                let error = ErrorObject::method_not_found(Some(request.method().any_name()));
                self.agent.refuse(call, &error, out.agent);
            }
        }
    }

    #[inline]
    fn ask_client(&mut self, call: Call, name: &str, mut request: AgentRequest, out: &mut Out<'_>) {
        let mut session = None;
        match &mut request {
            AgentRequest::RequestPermission(permission) => {
                let id = permission.session_id.clone();
                let asked = self.session_of_agent(&id);
                match asked.map(|session| session.as_client.handle_question(call, permission)) {
                    Some(Question::Ask) => session = Some(id),
                    Some(Question::Cancelled) => {
                        return self.answer_permission(call, PermissionOutcome::cancelled(), out);
                    }
                    None => {
                        self.report(Violation::UnknownSession.rule());
                        return self.agent.refuse(call, &ErrorObject::session_not_found(&id), out.agent);
                    }
                }
            }
            AgentRequest::CreateElicitation(elicitation) => {
                self.rename_request(elicitation);
                session = elicitation.session_id().cloned();
            }
            _ => {}
        }
        if let Some(id) = &session {
            self.tell(id, None, None, out, |session, emit| session.ask(emit));
        }
        let asking = Asking { call, method: Some(request.method()), session };
        let key = self.client.request(name, |writer| request.encode_params(writer), asking, out.client);
        self.agent_calls.insert(call, key);
    }

    #[inline]
    pub(super) fn handle_client_answer(&mut self, asking: Asking, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let Asking { call, method, session } = asking;
        self.agent_calls.remove(&call);
        let is_permission = method == Some(Method::RequestPermission);
        if let Some(id) = &session
            && let Some(session) = self.sessions.get_mut(id)
            && (!is_permission || session.as_client.question_answered(call))
        {
            self.tell(id, None, None, out, |session, emit| session.end_question(emit));
        }
        let client = self.client_dialect();
        match (outcome, method) {
            (Err(error), _) => self.agent.refuse(call, &error, out.agent),
            (Ok(result), None) => self.agent.answer(call, |writer| raw(writer, result), out.agent),
            (Ok(result), Some(Method::RequestPermission)) => {
                let outcome = decode_result::<PermissionResponse>(result, client, &mut Vec::new());
                match outcome {
                    // Only what all dialects know can be approval; everything else is none.
                    Ok(PermissionResponse { outcome: PermissionOutcome::Other(_), .. }) => {
                        self.report("outcome");
                        self.answer_permission(call, PermissionOutcome::cancelled(), out);
                    }
                    Ok(response) => self.agent.answer(call, |writer| writer.value(&response), out.agent),
                    Err(_) => {
                        self.report("invalid result from the client");
                        self.answer_permission(call, PermissionOutcome::cancelled(), out);
                    }
                }
            }
            (Ok(result), Some(method)) => {
                if answer_recoded(&mut self.agent, call, method, result, client, out.agent).is_err() {
                    self.report("invalid result from the client");
                    self.agent.refuse(call, &ErrorObject::internal("invalid result from the client"), out.agent);
                }
            }
        }
    }

    #[inline]
    fn answer_permission(&mut self, call: Call, outcome: PermissionOutcome, out: &mut Out<'_>) {
        self.agent.answer(call, |writer| writer.value(&PermissionResponse::new(outcome)), out.agent);
    }

    /// Names the request that a question belongs to by the id that the client gave it.
    #[inline]
    fn rename_request(&self, elicitation: &mut CreateElicitationRequest) {
        let scope = match &mut elicitation.mode {
            ElicitationMode::Form(form) => &mut form.scope,
            ElicitationMode::Url(url) => &mut url.scope,
            ElicitationMode::Other(_) => return,
        };
        if let ElicitationScope::Request(scope) = scope {
            scope.request_id = self.client_id(&scope.request_id).unwrap_or_else(|| scope.request_id.clone());
        }
    }

    #[inline]
    fn client_id(&self, id: &RequestId) -> Option<RequestId> {
        let (call, _) = self.client_calls.iter().find(|(_, request)| request.id() == *id)?;
        self.client.call_id(*call).cloned()
    }

    #[inline]
    pub(super) fn handle_agent_notification(&mut self, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let decoded = match (Method::parse(method), self.translated()) {
            (Some(Method::ProxySuccessor), _) => None,
            (Some(known), Some((client, agent))) => {
                AgentNotification::decode(known, params, agent, &mut Vec::new()).map(|decoded| (client, decoded))
            }
            _ => None,
        };
        match decoded {
            None => self.client.notify(method, |writer| raw(writer, params.unwrap_or("{}")), out.client),
            Some((_, Ok(AgentNotification::SessionUpdate(news)))) => self.handle_update(news, out),
            Some((client, Ok(other))) => match other.method().name(client) {
                Some(name) => self.client.notify(name, |writer| other.encode_params(writer), out.client),
                None => self.report(other.method().any_name()),
            },
            Some((_, Err(_))) => self.report("invalid params in a notification from the agent"),
        }
    }

    #[inline]
    fn handle_update(&mut self, news: SessionNotification, out: &mut Out<'_>) {
        let SessionNotification { session_id: id, mut update, meta } = news;
        let answers_at_end = self.client_dialect().answers_at_end();
        let Some(session) = self.session_of_agent(&id) else {
            // What an agent still says about a session that was closed is no fault of its.
            if !self.closed_sessions.contains(&id) {
                self.report(Violation::UnknownSession.rule());
            }
            return;
        };
        let ended = session.as_client.handle_update(&mut update);
        let is_told = match &update {
            // What the session is doing, we tell ourselves. A dialect without words for it says what it held back.
            SessionUpdate::State(_) => answers_at_end,
            // The client knows what it has said, and heard of it from us where its dialect has that.
            SessionUpdate::UserMessage(_) | SessionUpdate::UserMessageChunk(_) if !session.prompts.is_empty() => false,
            SessionUpdate::AvailableCommands(_)
            | SessionUpdate::ConfigOptions(_)
            | SessionUpdate::CurrentMode(_)
            | SessionUpdate::SessionInfo(_)
            | SessionUpdate::Usage(_) => true,
            // Everything else may be history that is told again.
            _ => session.muted_by.is_empty(),
        };
        match &update {
            SessionUpdate::SessionInfo(SessionInfoUpdate { title: Patch::Set(title), .. }) => {
                session.title = is_memorable(title).then(|| title.clone());
            }
            SessionUpdate::Subagent(subagent) => self.add_subagent(&id, &subagent.session_id),
            _ => {}
        }
        if is_told {
            self.tell(&id, None, meta, out, |session, emit| session.say_owned(update, emit));
        }
        for end in ended {
            self.end_turn(&id, end, out);
        }
    }
}
