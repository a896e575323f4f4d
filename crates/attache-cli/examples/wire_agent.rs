//! For tests: an agent that says what a file tells it to say, byte for byte, right or wrong.
//!
//! The file is blocks. A block begins with `# METHOD` and is played when that is asked for, each once, in order; a method
//! that has no block left is not known. Its lines:
//!
//! - `= JSON` and `! JSON` answer the request with a result or an error,
//! - `~ JSON` sends an update of the session `s`,
//! - `> JSON` sends any message,
//! - `? WORD` reads until a message comes that has this in it,
//! - `err TEXT` writes to stderr, `exit CODE` ends.
//!
//! `$version` is the version of the protocol that was asked for last. Instead of a file, `--silent` reads nothing at all.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

fn main() {
    let script = std::env::args().nth(1).expect("a file");
    if script == "--silent" {
        loop {
            std::thread::park();
        }
    }
    let script = std::fs::read_to_string(script).expect("the file can be read");
    let mut blocks: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
    let mut method = "";
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(name) => {
                method = name;
                blocks.entry(name).or_default().push(Vec::new());
            }
            None => blocks.get_mut(method).and_then(|blocks| blocks.last_mut()).expect("a block").push(line),
        }
    }
    for list in blocks.values_mut() {
        list.reverse();
    }
    let mut version = Value::Null;
    let mut input = io::stdin().lock().lines();
    while let Some(Ok(line)) = input.next() {
        let message: Value = serde_json::from_str(&line).expect("a message");
        let (Some(method), id) = (message["method"].as_str(), message["id"].clone()) else { continue };
        if method == "initialize" {
            version = message["params"]["protocolVersion"].clone();
        }
        let Some(block) = blocks.get_mut(method).and_then(Vec::pop) else {
            if !id.is_null() {
                send(
                    &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } }),
                );
            }
            continue;
        };
        for line in block {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let value = || -> Value {
                serde_json::from_str(&rest.replace("$version", &version.to_string()))
                    .unwrap_or_else(|_| panic!("{rest}"))
            };
            match word {
                "=" => send(&json!({ "jsonrpc": "2.0", "id": id, "result": value() })),
                "!" => send(&json!({ "jsonrpc": "2.0", "id": id, "error": value() })),
                "~" => {
                    let params = json!({ "sessionId": "s", "update": value() });
                    send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
                }
                ">" => send(&value()),
                "?" => while input.next().is_some_and(|line| line.is_ok_and(|line| !line.contains(rest))) {},
                "err" => eprintln!("{rest}"),
                "exit" => std::process::exit(rest.parse().expect("a code")),
                other => panic!("there is no `{other}`"),
            }
        }
    }
}

fn send(message: &Value) {
    let mut out = io::stdout().lock();
    // Whoever has left is not told.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}
