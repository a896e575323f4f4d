//! A question of the agent's own on the person's terminal: a form as questions one after the other, or an address.

use std::fmt::Write as _;
use std::io;

use attache::model::elicitation::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationForm, ElicitationMode, ElicitationUrl,
    ElicitationValue,
};
use attache::model::form::{ElicitationProperty, MultiSelectItems, StringFormat, StringProperty};

use attache_tui::dialog::FormDialog;

use super::browser::{self, WebAddress};
use crate::tty::Tty;
use crate::visible::{one_line, visible_lines};

/// Asks it. The end of input is a cancel.
pub(super) async fn ask(tty: &Tty, request: &CreateElicitationRequest) -> io::Result<CreateElicitationResponse> {
    let says = visible_lines(&request.message).replace('\n', "\n  | ");
    match &request.mode {
        ElicitationMode::Form(form) => ask_form(tty, &says, form).await,
        ElicitationMode::Url(url) => ask_url(tty, &says, url).await,
        _ => Ok(CreateElicitationResponse::cancel()),
    }
}

async fn ask_url(tty: &Tty, says: &str, url: &ElicitationUrl) -> io::Result<CreateElicitationResponse> {
    let Ok(address) = WebAddress::parse(&url.url) else {
        tty.show(&format!(
            "\nThe agent asks you to visit an address that is no web address, so it is not shown.\n  it says: {says}\n"
        ))
        .await?;
        return Ok(CreateElicitationResponse::decline());
    };
    let text = format!(
        "\nThe agent asks you to visit a web page\n  it says: {says}\n  {address}\n  [y] open it  [N] no\nopen a page of `{}`? ",
        address.host()
    );
    let answer = tty.ask(&text).await?;
    if !answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
        return Ok(CreateElicitationResponse::decline());
    }
    if let Err(error) = browser::open(&address) {
        tty.show(&format!("  cannot open a browser: {error}\n  open it yourself, then go on here with Enter\n"))
            .await?;
        if tty.ask("").await?.is_none() {
            return Ok(CreateElicitationResponse::cancel());
        }
    }
    Ok(CreateElicitationResponse::accept(Vec::new()))
}

async fn ask_form(tty: &Tty, says: &str, form: &ElicitationForm) -> io::Result<CreateElicitationResponse> {
    let schema = &form.requested_schema;
    let heading = "Enter alone takes what is in [brackets] or leaves it out; `!` declines; Ctrl-D cancels";
    tty.show(&format!("\nThe agent asks you something\n  it says: {says}\n  {heading}\n")).await?;
    if FormDialog::is_too_large(schema) {
        tty.show("  it is too long to be filled in, and is declined\n").await?;
        return Ok(CreateElicitationResponse::decline());
    }
    let mut content = Vec::new();
    if schema.properties.is_empty() {
        // There is nothing to fill in, so a yes has to be said.
        let answer = tty.ask("accept? [y] yes   [N] no: ").await?;
        return Ok(match answer.as_deref() {
            Some("y" | "yes") => CreateElicitationResponse::accept(content),
            Some(_) => CreateElicitationResponse::decline(),
            None => CreateElicitationResponse::cancel(),
        });
    }
    for (name, property) in &schema.properties {
        let is_required = schema.required.as_ref().is_some_and(|required| required.contains(name));
        tty.show(&describe(name, property, is_required)).await?;
        loop {
            let Some(line) = tty.ask(&format!("{}? ", one_line(title(property).unwrap_or(name)))).await? else {
                return Ok(CreateElicitationResponse::cancel());
            };
            if line == "!" {
                return Ok(CreateElicitationResponse::decline());
            }
            match value_of(property, &line, is_required) {
                Ok(Some(value)) => content.push((name.clone(), value)),
                Ok(None) => {}
                Err(mistake) => {
                    tty.show(&format!("  {mistake}\n")).await?;
                    continue;
                }
            }
            break;
        }
    }
    Ok(CreateElicitationResponse::accept(content))
}

fn title(property: &ElicitationProperty) -> Option<&str> {
    match property {
        ElicitationProperty::String(field) => field.title.as_deref(),
        ElicitationProperty::Number(field) => field.title.as_deref(),
        ElicitationProperty::Integer(field) => field.title.as_deref(),
        ElicitationProperty::Boolean(field) => field.title.as_deref(),
        ElicitationProperty::Array(field) => field.title.as_deref(),
        _ => None,
    }
}

/// What a field is for, and what can be chosen.
fn describe(name: &str, property: &ElicitationProperty, is_required: bool) -> String {
    let (description, default, hint) = match property {
        ElicitationProperty::String(field) => (&field.description, field.default.clone(), format_hint(field)),
        ElicitationProperty::Number(field) => {
            (&field.description, field.default.map(|number| number.to_string()), range(field.minimum, field.maximum))
        }
        ElicitationProperty::Integer(field) => {
            (&field.description, field.default.map(|number| number.to_string()), range(field.minimum, field.maximum))
        }
        ElicitationProperty::Boolean(field) => {
            (&field.description, field.default.map(|yes| if yes { "y" } else { "n" }.into()), Some("y or n".into()))
        }
        ElicitationProperty::Array(field) => (
            &field.description,
            field.default.as_ref().map(|values| values.join(", ")),
            Some("numbers, with commas between them".into()),
        ),
        _ => (&None, None, Some("a kind of field that is not known here".into())),
    };
    let mut text = format!("\n  {}", one_line(title(property).unwrap_or(name)));
    if is_required {
        text.push_str(" (required)");
    }
    if let Some(default) = default {
        let _ = write!(text, " [{}]", one_line(&default));
    }
    if let Some(description) = description {
        let _ = write!(text, "\n  | {}", visible_lines(description).replace('\n', "\n  | "));
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n  {}", one_line(&hint));
    }
    for (index, (_, name)) in choices(property).iter().enumerate() {
        let _ = write!(text, "\n  {}. {}", index + 1, one_line(name));
    }
    text.push('\n');
    text
}

fn format_hint(field: &StringProperty) -> Option<String> {
    let format = field.format.as_ref().map(|format| match format {
        StringFormat::Email => "an address for mail".to_owned(),
        StringFormat::Uri => "a URI".into(),
        StringFormat::Date => "a date, YYYY-MM-DD".into(),
        StringFormat::DateTime => "a date and time, YYYY-MM-DDThh:mm:ssZ".into(),
        other => other.to_string(),
    });
    let has_choices = field.enum_values.is_some() || field.one_of.is_some();
    format.or_else(|| has_choices.then(|| "a number, or the value itself".into()))
}

fn range<T: std::fmt::Display>(minimum: Option<T>, maximum: Option<T>) -> Option<String> {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => Some(format!("from {minimum} to {maximum}")),
        (Some(minimum), None) => Some(format!("at least {minimum}")),
        (None, Some(maximum)) => Some(format!("at most {maximum}")),
        (None, None) => None,
    }
}

/// The values that can be chosen, each with its name.
fn choices(property: &ElicitationProperty) -> Vec<(&str, &str)> {
    match property {
        ElicitationProperty::String(field) => match (&field.one_of, &field.enum_values) {
            (Some(options), _) => options.iter().map(|option| (&*option.value, &*option.title)).collect(),
            (None, Some(values)) => values.iter().map(|value| (&**value, &**value)).collect(),
            (None, None) => Vec::new(),
        },
        ElicitationProperty::Array(field) => match &field.items {
            MultiSelectItems::Strings(items) => items.values.iter().map(|value| (&**value, &**value)).collect(),
            MultiSelectItems::Titled(items) => {
                items.options.iter().map(|option| (&*option.value, &*option.title)).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The value that a line means; none for a field that is left out; or what is wrong with it.
fn value_of(property: &ElicitationProperty, line: &str, is_required: bool) -> Result<Option<ElicitationValue>, String> {
    if line.is_empty() {
        let default = match property {
            ElicitationProperty::String(field) => field.default.clone().map(ElicitationValue::Text),
            ElicitationProperty::Number(field) => field.default.map(ElicitationValue::Number),
            ElicitationProperty::Integer(field) => field.default.map(ElicitationValue::Integer),
            ElicitationProperty::Boolean(field) => field.default.map(ElicitationValue::Boolean),
            ElicitationProperty::Array(field) => field.default.clone().map(ElicitationValue::Texts),
            _ => None,
        };
        return match (default, is_required) {
            (None, true) => Err("this one is required".into()),
            (default, _) => Ok(default),
        };
    }
    let value = match property {
        ElicitationProperty::String(field) => ElicitationValue::Text(text_of(field, property, line)?),
        ElicitationProperty::Number(field) => {
            let number = line.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or("expected a number")?;
            within(number, field.minimum, field.maximum)?;
            ElicitationValue::Number(number)
        }
        ElicitationProperty::Integer(field) => {
            let number = line.parse::<i64>().map_err(|_| "expected a whole number")?;
            within(number, field.minimum, field.maximum)?;
            ElicitationValue::Integer(number)
        }
        ElicitationProperty::Boolean(_) => match line.to_lowercase().as_str() {
            "y" | "yes" | "true" => ElicitationValue::Boolean(true),
            "n" | "no" | "false" => ElicitationValue::Boolean(false),
            _ => return Err("expected y or n".into()),
        },
        ElicitationProperty::Array(field) => {
            let chosen = line.split(',').map(|word| chosen(property, word.trim())).collect::<Result<Vec<_>, _>>()?;
            let count = chosen.len() as u64;
            within(count, field.min_items, field.max_items)
                .map_err(|mistake| format!("number of choices: {mistake}"))?;
            ElicitationValue::Texts(chosen)
        }
        _ => return Err("this field cannot be filled in here; `!` declines".into()),
    };
    Ok(Some(value))
}

fn text_of(field: &StringProperty, property: &ElicitationProperty, line: &str) -> Result<String, String> {
    if !choices(property).is_empty() {
        return chosen(property, line);
    }
    let length = line.chars().count() as u64;
    within(length, field.min_length.map(u64::from), field.max_length.map(u64::from))
        .map_err(|mistake| format!("number of characters: {mistake}"))?;
    let looks_right = match &field.format {
        Some(StringFormat::Email) => {
            line.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        }
        Some(StringFormat::Uri) => {
            line.split_once(':').is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
        }
        Some(StringFormat::Date) => is_date(line),
        Some(StringFormat::DateTime) => {
            line.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && !time.is_empty())
        }
        _ => true,
    };
    match format_hint(field) {
        Some(format) if !looks_right => Err(format!("expected {format}")),
        _ => Ok(line.to_owned()),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts[..], [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

fn chosen(property: &ElicitationProperty, word: &str) -> Result<String, String> {
    let choices = choices(property);
    let by_number = word.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    // A value that is itself a number means itself.
    let found = choices.iter().find(|(value, name)| *value == word || *name == word).or(by_number);
    found.map(|(value, _)| (*value).to_owned()).ok_or_else(|| format!("expected a number from 1 to {}", choices.len()))
}

fn within<T: PartialOrd + std::fmt::Display>(value: T, minimum: Option<T>, maximum: Option<T>) -> Result<(), String> {
    let is_too_small = minimum.as_ref().is_some_and(|minimum| value < *minimum);
    let is_too_large = maximum.as_ref().is_some_and(|maximum| value > *maximum);
    match range(minimum, maximum) {
        Some(range) if is_too_small || is_too_large => Err(format!("expected {range}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_the_value_of_its_field_or_a_mistake() {
        let rows = [
            (r#"{"type":"string","minLength":2}"#, "ab", Ok(Some(r#""ab""#))),
            (r#"{"type":"string","minLength":2}"#, "a", Err("number of characters: expected at least 2")),
            (r#"{"type":"string","default":"d"}"#, "", Ok(Some(r#""d""#))),
            (r#"{"type":"string"}"#, "", Ok(None)),
            (r#"{"type":"string","format":"email"}"#, "nobody", Err("expected an address for mail")),
            (r#"{"type":"string","format":"date"}"#, "2026-11-16", Ok(Some(r#""2026-11-16""#))),
            (r#"{"type":"string","enum":["red","2"]}"#, "1", Ok(Some(r#""red""#))),
            (r#"{"type":"string","enum":["red","2"]}"#, "2", Ok(Some(r#""2""#))),
            (r#"{"type":"string","enum":["red"]}"#, "9", Err("expected a number from 1 to 1")),
            (r#"{"type":"string","oneOf":[{"const":"r","title":"Red"}]}"#, "Red", Ok(Some(r#""r""#))),
            (r#"{"type":"integer","maximum":3}"#, "4", Err("expected at most 3")),
            (r#"{"type":"integer"}"#, "4.5", Err("expected a whole number")),
            (r#"{"type":"number"}"#, "NaN", Err("expected a number")),
            (r#"{"type":"number"}"#, "4.5", Ok(Some("4.5"))),
            (r#"{"type":"boolean"}"#, "yes", Ok(Some("true"))),
            (r#"{"type":"boolean"}"#, "perhaps", Err("expected y or n")),
            (r#"{"type":"array","items":{"type":"string","enum":["a","b"]}}"#, "2, a", Ok(Some(r#"["b","a"]"#))),
            (
                r#"{"type":"array","maxItems":1,"items":{"type":"string","enum":["a","b"]}}"#,
                "1,2",
                Err("number of choices: expected at most 1"),
            ),
            (r#"{"type":"matrix"}"#, "1", Err("this field cannot be filled in here; `!` declines")),
        ];
        for (property, line, expected) in rows {
            let parsed: ElicitationProperty = serde_json::from_str(property).unwrap();
            let value = value_of(&parsed, line, false);
            let value = value.map(|value| value.map(|value| serde_json::to_string(&value).unwrap()));
            assert_eq!(
                value,
                expected.map(|value| value.map(str::to_owned)).map_err(str::to_owned),
                "{property} {line}"
            );
        }
        let required: ElicitationProperty = serde_json::from_str(r#"{"type":"string"}"#).unwrap();
        assert!(value_of(&required, "", true).is_err());
    }
}
