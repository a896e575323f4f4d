//! For tests: an agent that means harm. It does the steps of a script, as they stand there, and notes what came of them.
//!
//! `hostile_agent SCRIPT LOG [2]`: the script is a JSON list of steps, the log gets a JSON line for each answer; `2` is the
//! version of the protocol, 1 otherwise. Every prompt does all steps. A step is an object with one of these keys:
//!
//! - `call` with `params`: a request, whose answer is waited for;
//! - `post` with `params`: the same, but nobody reads the answer unless a later step does;
//! - `notify` with `params`: a notification;
//! - `update`: the update of a `session/update`;
//! - `raw`: a text, sent as it is, with a line end;
//! - `run`: a line for `sh`, run by the agent itself, whose output is noted;
//! - `sleep`: milliseconds; `times` with `steps`: those steps so many times.
//!
//! `params` get the session's id. `$cwd` is the directory of the session, `$terminal` the last terminal that was made,
//! `$big` a mebibyte of text.
#![allow(clippy::unwrap_used, reason = "for tests: it fails by panicking")]

use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

struct Hostile {
    script: Value,
    log: File,
    is_v2: bool,
    cwd: String,
    terminal: String,
    sent: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let script = fs::read_to_string(&args[1]).unwrap();
    let mut agent = Hostile {
        script: serde_json::from_str(&script).unwrap(),
        log: File::options().create(true).append(true).open(&args[2]).unwrap(),
        is_v2: args.get(3).is_some_and(|version| version == "2"),
        cwd: String::new(),
        terminal: String::new(),
        sent: 0,
    };
    while let Some(message) = read() {
        agent.serve(&message);
    }
}

impl Hostile {
    fn serve(&mut self, message: &Value) {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        let answer = |result: Value| send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        match method {
            "initialize" if self.is_v2 => {
                answer(json!({"protocolVersion": 2, "info": {"name": "hostile", "version": "1"},
                "capabilities": {"session": {"prompt": {}}}}))
            }
            "initialize" => answer(json!({"protocolVersion": 1, "agentCapabilities": {}})),
            "session/new" => {
                self.cwd = message["params"]["cwd"].as_str().unwrap().into();
                answer(json!({"sessionId": "s1"}));
            }
            "session/prompt" => {
                if self.is_v2 {
                    answer(json!({"messageId": "m1"}));
                }
                let steps = self.script.clone();
                self.play(&steps);
                match self.is_v2 {
                    false => answer(json!({"stopReason": "end_turn"})),
                    true => self
                        .update(&json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"})),
                }
            }
            _ if !id.is_null() && !method.is_empty() => answer(json!({})),
            _ => {}
        }
    }

    fn play(&mut self, steps: &Value) {
        for step in steps.as_array().unwrap() {
            let params = || step.get("params").cloned().unwrap_or_else(|| json!({}));
            if let Some(method) = step["call"].as_str() {
                let id = self.request(method, params());
                let answer = self.wait(&id);
                if let Some(terminal) = answer["result"]["terminalId"].as_str() {
                    self.terminal = terminal.into();
                }
                self.note(&json!({"call": method, "result": answer["result"], "error": answer["error"]}));
            } else if let Some(method) = step["post"].as_str() {
                self.request(method, params());
            } else if let Some(method) = step["notify"].as_str() {
                let params = self.fill(params());
                send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            } else if let Some(update) = step.get("update") {
                self.update(update);
            } else if let Some(raw) = step["raw"].as_str() {
                println(&self.expand(raw));
            } else if let Some(line) = step["run"].as_str() {
                let line = self.expand(line);
                let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let code = output.status.code();
                self.note(
                    &json!({"run": line, "out": text(&output.stdout), "err": text(&output.stderr), "code": code}),
                );
            } else if let Some(time) = step["sleep"].as_u64() {
                std::thread::sleep(Duration::from_millis(time));
            } else if let Some(times) = step["times"].as_u64() {
                (0..times).for_each(|_| self.play(&step["steps"]));
            } else {
                panic!("there is no step {step}");
            }
        }
    }

    fn update(&mut self, update: &Value) {
        let params = self.fill(json!({"update": update}));
        send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let id = json!(format!("h{}", self.sent));
        let params = self.fill(params);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for an answer. What else comes meanwhile is ignored, but for a cancel, which ends it all.
    fn wait(&mut self, id: &Value) -> Value {
        loop {
            let Some(message) = read() else { std::process::exit(0) };
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
            if message["method"] == "session/cancel" {
                std::process::exit(0);
            }
        }
    }

    fn fill(&self, mut value: Value) -> Value {
        value["sessionId"] = json!("s1");
        self.expand_value(&mut value);
        value
    }

    fn expand_value(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains('$') => *text = self.expand(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.expand_value(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.expand_value(value)),
            _ => {}
        }
    }

    fn expand(&self, text: &str) -> String {
        let text = text.replace("$cwd", &self.cwd).replace("$terminal", &self.terminal);
        if text.contains("$big") { text.replace("$big", &"x".repeat(1 << 20)) } else { text }
    }

    fn note(&mut self, value: &Value) {
        writeln!(self.log, "{value}").unwrap();
    }
}

fn read() -> Option<Value> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Some(serde_json::from_str(&line).unwrap()),
        _ => None,
    }
}

fn send(message: &Value) {
    println(&message.to_string());
}

fn println(line: &str) {
    let mut out = io::stdout().lock();
    // Whoever is gone hears nothing.
    if out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
