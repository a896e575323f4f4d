//! The first exchange, which shows who speaks which dialect.

use super::{Asked, Bridge, Out, raw};
use crate::Dialect;
use crate::json::{RawJson, Writer};
use crate::method::{decode_params, decode_result};
use crate::model::{
    AgentCapabilities, Capability, ClientCapabilities, ClientConfigCapabilities, ErrorObject, Implementation,
    InitializeRequest, InitializeResponse,
};
use crate::rpc::{Call, Outcome};

impl Bridge {
    #[inline]
    pub(super) fn initialize(&mut self, call: Call, params: Option<&str>, out: &mut Out<'_>) {
        let dialect = match client_dialect(params) {
            Ok(dialect) => dialect,
            Err(error) => return self.settle_error(call, &error, out),
        };
        let mut request: InitializeRequest = match decode_params(params, dialect, &mut Vec::new()) {
            Ok(request) => request,
            Err(error) => return self.settle_error(call, &ErrorObject::invalid_params(&error), out),
        };
        self.client_capabilities = request.capabilities.clone();
        self.agent.set_dialect(self.hint);
        if dialect == self.hint {
            let params = |writer: &mut Writer<'_>| raw(writer, params.unwrap_or("{}"));
            self.agent.request("initialize", params, Asked::Initialize(call), out.agent);
        } else {
            request.protocol_version = self.hint.version();
            if self.hint == Dialect::V2 {
                request.info.get_or_insert_with(|| Implementation::new("client", "0"));
            }
            if self.hint == Dialect::V1 {
                understand_v2(&mut request.capabilities, dialect);
            }
            self.agent.request("initialize", |writer| writer.value(&request), Asked::Initialize(call), out.agent);
        }
        // The client's dialect is settled when the agent has answered. Until then it waits.
        self.client_hint = dialect;
    }

    #[inline]
    pub(super) fn initialized(&mut self, call: Call, outcome: Outcome<'_>, out: &mut Out<'_>) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.settle_error(call, &error, out),
        };
        let Some(dialect) = agent_dialect(result, self.hint) else {
            return self.settle_error(call, &ErrorObject::internal("the agent speaks no version that we know"), out);
        };
        let mut response: InitializeResponse = match decode_result(result, dialect, &mut Vec::new()) {
            Ok(response) => response,
            Err(_) => return self.settle_misunderstood(call, out),
        };
        self.agent.set_dialect(dialect);
        self.client.set_dialect(self.client_hint);
        self.agent_capabilities = response.capabilities.clone();
        if self.client_hint == dialect {
            return self.settle(call, |writer| raw(writer, result), out);
        }
        response.protocol_version = self.client_hint.version();
        let can_log_in = !response.auth_methods.is_empty();
        translate_capabilities(&mut response.capabilities, dialect, self.client_hint, can_log_in);
        if self.client_hint == Dialect::V2 {
            response.info.get_or_insert_with(|| Implementation::new("agent", "0"));
        }
        self.settle(call, |writer| writer.value(&response), out);
    }
}

/// What a client that speaks v2 understands without saying so.
#[inline]
fn understand_v2(capabilities: &mut ClientCapabilities, dialect: Dialect) {
    let options = capabilities.session.config_options.get_or_insert_with(ClientConfigCapabilities::new);
    options.boolean.get_or_insert_with(Capability::new);
    if dialect == Dialect::V2 {
        capabilities.session.notices.get_or_insert_with(Capability::new);
        capabilities.session.compaction.get_or_insert_with(Capability::new);
    }
}

/// What goes without saying in one dialect and has to be said in the other.
#[inline]
fn translate_capabilities(capabilities: &mut AgentCapabilities, from: Dialect, to: Dialect, can_log_in: bool) {
    let offered = || Some(Capability::new());
    if from == Dialect::V2 {
        if let Some(session) = &mut capabilities.session {
            session.load = offered();
            session.list = offered();
            session.resume = offered();
            session.close = offered();
        }
        if can_log_in {
            capabilities.auth.logout = offered();
        }
    }
    // Every v1 agent starts MCP servers, and does not say so.
    if let Some(session) = &mut capabilities.session {
        match (from, to) {
            (Dialect::V1, _) => session.mcp.stdio = offered(),
            (_, Dialect::V1) => session.mcp.stdio = None,
            _ => {}
        }
    }
}

/// The dialect of a client, by the shape of its `initialize`.
#[inline]
fn client_dialect(params: Option<&str>) -> Result<Dialect, ErrorObject> {
    let invalid = || ErrorObject::new(ErrorObject::INVALID_PARAMS, "Invalid params: protocolVersion");
    let params = RawJson::new(params.unwrap_or("{}")).map_err(|_| invalid())?;
    let version = params.get("protocolVersion").ok_or_else(invalid)?;
    match version.as_str().parse::<u16>() {
        Ok(0 | 1) => Ok(Dialect::V1),
        Ok(_) if params.get("info").is_some() => Ok(Dialect::V2),
        Ok(_) => Ok(Dialect::V2Draft),
        Err(_) => Err(invalid()),
    }
}

/// The dialect of an agent, by the shape of its answer.
#[inline]
fn agent_dialect(result: &str, hint: Dialect) -> Option<Dialect> {
    let result = RawJson::new(result).ok()?;
    match result.get("protocolVersion")?.as_str().parse::<u16>() {
        Ok(1) => Some(Dialect::V1),
        Ok(2) if result.get("info").is_some() => Some(Dialect::V2),
        Ok(2) if result.get("agentInfo").is_some() => Some(Dialect::V2Draft),
        Ok(2) => {
            let session = result.get("capabilities").and_then(|capabilities| capabilities.get("session"));
            let has = |name| session.as_ref().is_some_and(|session| session.get(name).is_some());
            let is_draft = ["load", "list", "resume", "close"].into_iter().any(has);
            Some(if is_draft || hint == Dialect::V2Draft { Dialect::V2Draft } else { Dialect::V2 })
        }
        _ => None,
    }
}
