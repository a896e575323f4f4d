//! The first exchange: the client's `initialize` is put to the agent in its own words, twice if need be.

use super::{Bridge, Out, Then, gone, raw};
use crate::Dialect;
use crate::conversation::{Greeted, Greeting, GreetingError, Offer, requested_dialect, understand_client};
use crate::json::Writer;
use crate::method::decode_params;
use crate::model::error::ErrorObject;
use crate::model::initialize::{Implementation, InitializeRequest};
use crate::rpc::{Call, Outcome};

/// A client's `initialize` on its way.
#[derive(Debug)]
pub(super) struct Hello {
    dialect: Dialect,
    params: String,
    request: InitializeRequest,
    greeting: Greeting,
}

impl Bridge {
    #[inline]
    pub(super) fn initialize(&mut self, call: Call, params: Option<&str>, out: &mut Out<'_>) {
        if !self.sessions.is_empty() || self.opening > 0 {
            let error = ErrorObject::invalid_request("`initialize` came after a session was opened");
            return self.refuse(call, &error, out);
        }
        if self.agent.any_waiting(|asked| matches!(asked.then, Then::Greet(_))) {
            let error = ErrorObject::invalid_request("another `initialize` is not answered yet");
            return self.refuse(call, &error, out);
        }
        let request = requested_dialect(params)
            .and_then(|dialect| Ok((dialect, decode_params::<InitializeRequest>(params, dialect, &mut Vec::new())?)));
        let (dialect, mut request) = match request {
            Ok(request) => request,
            Err(error) => return self.refuse(call, &ErrorObject::invalid_params(&error), out),
        };
        understand_client(&mut request, dialect);
        // Version 2 requires a name.
        request.info.get_or_insert_with(|| Implementation::new("client", "0"));
        let greeting = Greeting::in_dialect(self.hint).offering(&request.capabilities);
        let params = params.unwrap_or("{}").to_owned();
        self.greet(call, Box::new(Hello { dialect, params, request, greeting }), out);
    }

    #[inline]
    fn greet(&mut self, call: Call, mut hello: Box<Hello>, out: &mut Out<'_>) {
        let asked = hello.greeting.dialect();
        self.agent.set_dialect(asked);
        hello.request.protocol_version = asked.version();
        let params = (hello.dialect == asked).then(|| hello.params.clone());
        let request = hello.request.clone();
        let params = |writer: &mut Writer<'_>| match params {
            Some(params) => raw(writer, &params),
            None => writer.value(&request),
        };
        self.ask_as(call, "initialize", params, Then::Greet(hello), out);
    }

    #[inline]
    pub(super) fn greeted(&mut self, call: Call, mut hello: Box<Hello>, outcome: Outcome<'_>, out: &mut Out<'_>) {
        if self.is_agent_gone {
            return self.refuse(call, &gone(), out);
        }
        let result = outcome.as_ref().ok().copied();
        let (dialect, mut response) = match hello.greeting.handle_answer(outcome) {
            Greeted::Agreed(dialect, response) => (dialect, *response),
            Greeted::Again(_) => return self.greet(call, hello, out),
            Greeted::Failed(GreetingError::Refused(error)) => return self.refuse(call, &error, out),
            Greeted::Failed(GreetingError::Version(version)) => {
                let what = format!("the agent speaks protocol version {version}, which is not supported");
                return self.refuse(call, &ErrorObject::internal(what), out);
            }
            Greeted::Failed(GreetingError::BadAnswer(_)) | Greeted::Restart => {
                return self.refuse_misunderstood(call, out);
            }
        };
        self.agent.set_dialect(dialect);
        self.client.set_dialect(hello.dialect);
        self.client_capabilities = hello.request.capabilities;
        self.offer = Some(Offer::from(&response));
        match result {
            Some(result) if hello.dialect == dialect => self.answer_raw(call, Ok(result), out),
            _ => {
                response.protocol_version = hello.dialect.version();
                response.info.get_or_insert_with(|| Implementation::new("agent", "0"));
                self.client.answer(call, |writer| writer.value(&response), out.client);
            }
        }
    }
}
