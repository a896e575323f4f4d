//! What the agent asks, put to the client; and the client's answers.

use super::recode::recode;
use super::{Asking, Bridge, Out, answers_at_the_end, raw};
use crate::Dialect;
use crate::json::Writer;
use crate::method::{AgentRequest, Method, decode_result};
use crate::model::{
    CreateElicitationRequest, ElicitationMode, ElicitationScope, ErrorObject, PermissionOutcome, PermissionResponse,
    RequestId, SessionId, SessionUpdate, StateUpdate,
};
use crate::rpc::{Call, Outcome};

impl Bridge {
    #[inline]
    pub(super) fn handle_agent_call(&mut self, call: Call, method: &str, params: Option<&str>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let decoded = match Method::parse(method) {
            None | Some(Method::McpMessage | Method::ProxySuccessor) => None,
            // It may refer to a request, and requests have other ids on the other side.
            Some(Method::CreateElicitation) => {
                AgentRequest::decode(Method::CreateElicitation, params, agent, &mut Vec::new())
            }
            Some(_) if client == agent => None,
            Some(known) => AgentRequest::decode(known, params, agent, &mut Vec::new()),
        };
        let mut request = match decoded {
            None => {
                let params = |writer: &mut Writer<'_>| raw(writer, params.unwrap_or("{}"));
                let key = self.client.request(method, params, Asking::Raw(call), out.client);
                self.agent_calls.insert(call, key);
                return;
            }
            Some(Ok(request)) => request,
            Some(Err(error)) => return self.agent.refuse(call, &ErrorObject::invalid_params(&error), out.agent),
        };
        let Some(name) = request.method().name(client) else {
            let error = ErrorObject::method_not_found(Some(request.method().any_name()));
            return self.agent.refuse(call, &error, out.agent);
        };
        if let AgentRequest::CreateElicitation(elicitation) = &mut request {
            self.rename_request(elicitation);
        }
        let waiter = match &request {
            AgentRequest::RequestPermission(permission) => {
                let id = permission.session_id.clone();
                self.question_asked(&id, out);
                Asking::Permission(call, id)
            }
            _ => Asking::Recode(call, request.method()),
        };
        let key = self.client.request(name, |writer| request.encode_params(writer), waiter, out.client);
        self.agent_calls.insert(call, key);
    }

    #[inline]
    pub(super) fn handle_client_answer(&mut self, asking: Asking, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let (call, method) = match &asking {
            Asking::Raw(call) => (*call, None),
            Asking::Recode(call, method) => (*call, Some(*method)),
            Asking::Permission(call, _) => (*call, Some(Method::RequestPermission)),
        };
        self.agent_calls.remove(&call);
        if let Asking::Permission(_, id) = &asking {
            self.question_answered(id, out);
        }
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.agent.refuse(call, &error, out.agent),
        };
        let Some(method) = method else {
            return self.agent.answer(call, |writer| raw(writer, result), out.agent);
        };
        if method == Method::RequestPermission {
            return self.answer_permission(call, result, out);
        }
        match recode(method, result, client, agent) {
            Ok((result, lost)) => {
                self.reports.extend(lost);
                self.agent.answer(call, |writer| writer.raw(&result), out.agent);
            }
            Err(_) => {
                self.report("a result of the client is wrong");
                let error = ErrorObject::internal("the client's answer was not understood");
                self.agent.refuse(call, &error, out.agent);
            }
        }
    }

    /// Only what the agent's dialect knows can be approval; everything else is none.
    #[inline]
    fn answer_permission(&mut self, call: Call, result: &str, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        let response = decode_result::<PermissionResponse>(result, client, &mut Vec::new());
        let is_closed = agent != Dialect::V2;
        let response = match response {
            Ok(response) if is_closed && matches!(response.outcome, PermissionOutcome::Other(_)) => {
                self.report("outcome");
                PermissionResponse { outcome: PermissionOutcome::cancelled(), ..response }
            }
            Ok(response) => response,
            Err(_) => {
                self.report("a result of the client is wrong");
                PermissionResponse::new(PermissionOutcome::cancelled())
            }
        };
        self.agent.answer(call, |writer| writer.value(&response), out.agent);
    }

    /// A v2 client is told that the session waits for the user.
    #[inline]
    fn question_asked(&mut self, id: &SessionId, out: &mut Out<'_>) {
        let (client, agent) = self.both();
        if answers_at_the_end(client) {
            return self.flush(id, out);
        }
        let session = self.session(id);
        if !answers_at_the_end(agent) || !session.is_busy {
            return;
        }
        session.questions += 1;
        if session.questions == 1 {
            self.say(id, &SessionUpdate::State(StateUpdate::requires_action()), None, out);
        }
    }

    #[inline]
    fn question_answered(&mut self, id: &SessionId, out: &mut Out<'_>) {
        let session = self.session(id);
        if session.questions == 0 {
            return;
        }
        session.questions -= 1;
        if session.questions == 0 && session.is_busy {
            self.say(id, &SessionUpdate::State(StateUpdate::running()), None, out);
        }
    }

    /// The request that a question belongs to, by the id that the client gave it.
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
}
