//! Results of one dialect in the words of another.

use super::raw;
use crate::Dialect;
use crate::json::DecodeError;
use crate::method::{Method, Request, decode_result};
use crate::model::all::*;
use crate::rpc::{Call, Peer};

macro_rules! results {
    ($( $method:ident($request:ty), )*) => {
        /// Answers a call with the result of a method that came in another dialect. A method without a row has the same
        /// result in all dialects, which is kept as it came.
        #[inline]
        pub(super) fn answer_recoded<W>(
            peer: &mut Peer<W>,
            call: Call,
            method: Method,
            result: &str,
            from: Dialect,
            out: &mut Vec<u8>,
        ) -> Result<(), DecodeError> {
            match method {
                $( Method::$method => {
                    let value: <$request as Request>::Response = decode_result(result, from, &mut Vec::new())?;
                    peer.answer(call, |writer| writer.value(&value), out);
                } )*
                _ => peer.answer(call, |writer| raw(writer, result), out),
            }
            Ok(())
        }
    };
}

results! {
    Authenticate(AuthenticateRequest),
    Logout(LogoutRequest),
    ListSessions(ListSessionsRequest),
    CloseSession(CloseSessionRequest),
    DeleteSession(DeleteSessionRequest),
    SessionStatus(SessionStatusRequest),
    CreateElicitation(CreateElicitationRequest),
}
