//! Results of one dialect in the words of another.

use crate::Dialect;
use crate::json::{DecodeError, RawJson, Writer};
use crate::method::{Method, Request, decode_result};
use crate::model::*;

macro_rules! results {
    ($( $method:ident($request:ty), )*) => {
        /// The result of a method in another dialect, and what was lost. A method without a row has the same result in
        /// all dialects, which is kept as it came.
        #[inline]
        pub(super) fn recode(
            method: Method,
            result: &str,
            from: Dialect,
            to: Dialect,
        ) -> Result<(String, Vec<&'static str>), DecodeError> {
            match method {
                $( Method::$method => {
                    let value: <$request as Request>::Response = decode_result(result, from, &mut Vec::new())?;
                    Ok(write(to, |writer| writer.value(&value)))
                } )*
                _ => Ok((RawJson::new(result)?.as_str().to_owned(), Vec::new())),
            }
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
    Prompt(PromptRequest),
    RequestPermission(PermissionRequest),
    CreateElicitation(CreateElicitationRequest),
}

/// What was written in a dialect, and what it had no words for.
#[inline]
pub(super) fn write(dialect: Dialect, write: impl FnOnce(&mut Writer<'_>)) -> (String, Vec<&'static str>) {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, dialect);
    write(&mut writer);
    let lost = writer.lost();
    (String::from_utf8(buffer).expect("the writer takes strings and adds ASCII"), lost)
}
