//! Asking the person something, where the client can.

use attache::Error;
use attache::agent::Turn;
use attache::model::elicitation::{
    CreateElicitationRequest, ElicitationAction, ElicitationForm, ElicitationMode, ElicitationValue, SessionScope,
};
use attache::model::form::{ElicitationProperty, ElicitationSchema, StringProperty};
use attache::model::tool::ToolCallId;

use super::Desk;
use crate::tools::Outcome;

/// Puts a question to the person.
pub(super) async fn ask(
    desk: &Desk,
    turn: &Turn,
    tool_id: &ToolCallId,
    question: String,
    choices: Vec<String>,
) -> Result<Outcome, Error> {
    let scope = SessionScope::new(turn.id().clone()).tool_call_id(tool_id.clone());
    let form = ElicitationForm::new(schema(&choices), scope);
    let request = CreateElicitationRequest::new(question, ElicitationMode::Form(form));
    let answer = match desk.log.handle().elicit(request).await {
        Ok(answer) => answer,
        Err(Error::NotOffered(_)) => {
            return Ok(Outcome::done(
                "the person cannot be asked in the middle of a turn here: put the question into your answer and end \
                 the turn",
            ));
        }
        Err(Error::Refused(_) | Error::BadAnswer { .. }) => {
            return Ok(Outcome::failed("the question could not be put to the person"));
        }
        Err(error) => return Err(error),
    };
    let ElicitationAction::Accept(accept) = answer.action else {
        return Ok(Outcome::done("the person did not want to answer"));
    };
    let value = accept.content.into_iter().flatten().find(|(name, _)| name == FIELD).map(|(_, value)| value);
    Ok(match value {
        Some(ElicitationValue::Text(text)) => Outcome::done(format!("the person answered: {text}")),
        _ => Outcome::done("the person gave no answer"),
    })
}

/// The one field of the form.
const FIELD: &str = "answer";

/// One field: free text, or one of the choices.
fn schema(choices: &[String]) -> ElicitationSchema {
    let enum_values = (!choices.is_empty()).then(|| choices.to_vec());
    let field = StringProperty::new().title("Answer").with(|property| property.enum_values = enum_values);
    ElicitationSchema::new().properties([(FIELD.into(), ElicitationProperty::from(field))]).required(vec![FIELD.into()])
}
