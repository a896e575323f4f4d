//! What an agent asks of us: permission, answers, files, terminals.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::driver::{Driver, Flow};
use crate::probe::plain_file;

/// The longest file that an agent is given to read.
const LONGEST_FILE: usize = 1 << 20;

/// How requests for permission are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Allow,
    Reject,
    Cancel,
    /// With an option that was not offered.
    NotOffered,
    /// With an error.
    Fail,
    /// Not, until told.
    Hold,
}

/// How the agent's questions to the person are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elicitation {
    Accept,
    Decline,
    Cancel,
    /// As no client should, with an action that nobody knows.
    Unknown,
}

/// The error of an answer.
pub(super) fn error(code: i32, message: &str) -> Value {
    json!({ "code": code, "message": message })
}

fn not_found(what: &str) -> Value {
    error(-32002, what)
}

fn wrong(what: &str) -> Value {
    error(-32602, what)
}

impl Driver {
    /// Answers a request of the agent, or leaves it open.
    pub(super) async fn serve(&mut self, message: &Value) -> Flow {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let outcome = match method {
            "session/request_permission" => {
                if self.permission == Permission::Hold {
                    self.held.push(message.clone());
                    return Ok(());
                }
                return self.answer_permission(message, self.permission).await;
            }
            "fs/read_text_file" if self.offered["fs"]["readTextFile"] == true => self.read_file(params),
            "fs/write_text_file" if self.offered["fs"]["writeTextFile"] == true => self.write_file(params),
            "elicitation/create" if self.offered["elicitation"].is_object() => self.answer_question(params),
            "terminal/wait_for_exit" if self.offered["terminal"] == true => {
                if self.terminals.wait(terminal_id(params), message["id"].clone()) {
                    return Ok(());
                }
                Err(not_found("No such terminal"))
            }
            "terminal/release" if self.offered["terminal"] == true => match self.terminals.release(terminal_id(params))
            {
                Some(waiting) => {
                    for (id, exit) in waiting {
                        self.send(json!({ "id": id, "result": exit })).await?;
                    }
                    Ok(json!({}))
                }
                None => Err(not_found("No such terminal")),
            },
            _ if method.starts_with("terminal/") && self.offered["terminal"] == true => {
                self.use_terminal(method, params)
            }
            _ => Err(error(-32601, "Method not found")),
        };
        let answer = match outcome {
            Ok(result) => json!({ "id": message["id"], "result": result }),
            Err(error) => json!({ "id": message["id"], "error": error }),
        };
        self.send(answer).await
    }

    /// Answers all requests for permission that were left open.
    pub(super) async fn answer_held(&mut self, how: Permission) -> Flow {
        for ask in std::mem::take(&mut self.held) {
            self.answer_permission(&ask, how).await?;
        }
        Ok(())
    }

    /// Answers a request for permission.
    pub(super) async fn answer_permission(&mut self, ask: &Value, how: Permission) -> Flow {
        let option = |kinds: [&str; 2]| {
            let options = ask["params"]["options"].as_array()?;
            let of = |kind: &str| options.iter().find(|option| option["kind"] == kind);
            kinds.into_iter().find_map(of)?["optionId"].as_str()
        };
        let selected = match how {
            Permission::Allow => option(["allow_once", "allow_always"]),
            Permission::Reject => option(["reject_once", "reject_always"]),
            Permission::NotOffered => Some("no-such-option"),
            Permission::Cancel | Permission::Fail | Permission::Hold => None,
        };
        let outcome = match selected {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let answer = match how {
            Permission::Fail => json!({ "id": ask["id"], "error": error(-32603, "Internal error") }),
            _ => json!({ "id": ask["id"], "result": { "outcome": outcome } }),
        };
        self.send(answer).await
    }

    fn answer_question(&self, params: &Value) -> Result<Value, Value> {
        let mode = params["mode"].as_str().unwrap_or_default();
        if !self.offered["elicitation"][mode].is_object() {
            return Err(wrong("this mode is not offered"));
        }
        Ok(match self.elicitation {
            Elicitation::Accept if mode == "form" => {
                json!({ "action": "accept", "content": filled_form(&params["requestedSchema"]) })
            }
            Elicitation::Accept => json!({ "action": "accept" }),
            Elicitation::Decline => json!({ "action": "decline" }),
            Elicitation::Cancel => json!({ "action": "cancel" }),
            Elicitation::Unknown => json!({ "action": "_postpone" }),
        })
    }

    /// Where a path leads, if that is in the probe's directory.
    fn within(&self, params: &Value) -> Result<PathBuf, Value> {
        let path = Path::new(params["path"].as_str().ok_or_else(|| wrong("`path` is missing"))?);
        if !path.is_absolute() {
            return Err(wrong("`path` must be absolute"));
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(wrong("not a file")) };
        let parent = parent.canonicalize().map_err(|_| not_found("Resource not found"))?;
        let path = parent.join(name);
        let is_link = path.symlink_metadata().is_ok_and(|file| file.is_symlink());
        if is_link || !parent.starts_with(self.cwd()) {
            return Err(not_found("Resource not found"));
        }
        Ok(path)
    }

    fn read_file(&self, params: &Value) -> Result<Value, Value> {
        let text = plain_file::read(&self.within(params)?, LONGEST_FILE).map_err(|error| read_error(&error))?;
        let first = params["line"].as_u64().unwrap_or(1).max(1) - 1;
        let count = params["limit"].as_u64().unwrap_or(u64::MAX);
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let lines = text.split_inclusive('\n').skip(number(first)).take(number(count));
        Ok(json!({ "content": lines.collect::<String>() }))
    }

    fn write_file(&self, params: &Value) -> Result<Value, Value> {
        let content = params["content"].as_str().ok_or_else(|| wrong("`content` is missing"))?;
        plain_file::write(&self.within(params)?, content).map_err(|_| error(-32603, "Internal error"))?;
        Ok(json!({}))
    }

    fn use_terminal(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = terminal_id(params);
        let result = match method {
            "terminal/create" if !params["command"].is_string() => return Err(wrong("`command` is missing")),
            "terminal/create" => {
                return self.terminals.create(params).ok_or_else(|| error(-32603, "Too many terminals"));
            }
            "terminal/output" => self.terminals.output(id),
            "terminal/kill" => self.terminals.kill(id).then(|| json!({})),
            _ => return Err(error(-32601, "Method not found")),
        };
        result.ok_or_else(|| not_found("No such terminal"))
    }
}

fn terminal_id(params: &Value) -> &str {
    params["terminalId"].as_str().unwrap_or_default()
}

fn read_error(read: &io::Error) -> Value {
    match read.kind() {
        io::ErrorKind::NotFound => not_found("Resource not found"),
        io::ErrorKind::InvalidData => wrong("not a text file"),
        _ => error(-32603, "Internal error"),
    }
}

/// Something that fits for every field of a form.
fn filled_form(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let content: Map<String, Value> =
        fields.filter_map(|(name, field)| Some((name.clone(), filled_field(field)?))).collect();
    Value::Object(content)
}

fn filled_field(field: &Value) -> Option<Value> {
    if let Some(value) = field.get("default") {
        return Some(value.clone());
    }
    let first = |list: &Value| list.get(0).map(|choice| choice.get("const").unwrap_or(choice).clone());
    match field["type"].as_str()? {
        "string" => first(&field["enum"]).or_else(|| first(&field["oneOf"])).or_else(|| Some(filled_text(field))),
        "integer" => Some(json!(field["minimum"].as_i64().unwrap_or(1))),
        "number" => Some(json!(field["minimum"].as_f64().unwrap_or(1.0))),
        "boolean" => Some(json!(true)),
        "array" => {
            let choice = first(&field["items"]["enum"]).or_else(|| first(&field["items"]["anyOf"]));
            Some(Value::Array(choice.into_iter().collect()))
        }
        _ => None,
    }
}

fn filled_text(field: &Value) -> Value {
    let text = match field["format"].as_str() {
        Some("email") => "person@example.com",
        Some("uri") => "https://example.com/",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        _ => "blue",
    };
    let least = field["minLength"].as_u64().and_then(|least| usize::try_from(least).ok()).unwrap_or_default();
    Value::String(format!("{text:e<width$}", width = least.min(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_filled_with_what_fits() {
        let form = json!({ "properties": {
            "colour": { "type": "string", "oneOf": [{ "const": "red", "title": "Red" }] },
            "mail": { "type": "string", "format": "email" },
            "count": { "type": "integer", "minimum": 3 },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
            "other": { "type": "_other" },
        } });
        let filled = json!({ "colour": "red", "mail": "person@example.com", "count": 3, "tags": ["a"] });
        assert_eq!(filled_form(&form), filled);
    }
}
