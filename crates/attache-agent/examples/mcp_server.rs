//! A tiny MCP server on stdio for tests: well behaved, and badly behaved when asked.
//!
//!     mcp_server [--silent | --die | --junk | --pages | --once FILE]

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "--die" {
        // With everything that it was told in confidence, as programs do when they end in trouble.
        eprintln!("no luck\u{1b}[31m with {}", std::env::var("TOKEN").unwrap_or_default());
        std::process::exit(2);
    }
    if mode == "--once" {
        // Starts once, and never again.
        let file = std::env::args().nth(2).unwrap_or_default();
        if std::fs::File::create_new(file).is_err() {
            std::process::exit(4);
        }
    }
    if mode == "--junk" {
        write("starting …\n\u{1b}[1mready\u{1b}[0m\n{\"jsonrpc\":\n{}\n[1]\n\n");
    }
    let mut server = Server { mode, ..Server::default() };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if server.mode != "--silent" {
            server.take(&serde_json::from_str(&line).unwrap_or_default());
        }
    }
}

#[derive(Default)]
struct Server {
    mode: String,
    has_changed: bool,
    parked: Vec<Value>,
    cancelled: usize,
    asks_roots: Option<Value>,
}

impl Server {
    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => result(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": { "tools": { "listChanged": true }, "prompts": {}, "resources": {} },
                    "serverInfo": { "name": "tiny", "version": "1" },
                }),
            ),
            Some("tools/list") => self.list(id, params),
            Some("tools/call") => self.call(id, params),
            Some("prompts/list") => self.list_prompts(id),
            Some("prompts/get") => prompt(id, params),
            Some("resources/list") => resources(id),
            Some("resources/read") => read(id, params["uri"].as_str().unwrap_or_default()),
            Some("notifications/cancelled") => {
                self.parked.retain(|parked| parked != &params["requestId"]);
                self.cancelled += 1;
            }
            Some("ping") => result(id, json!({})),
            None => {
                if let Some(call) = self.asks_roots.take() {
                    text(&call, &message["result"].to_string());
                }
            }
            _ => {}
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        if self.mode == "--pages" {
            let page: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let mut list = json!({ "tools": [tool(&format!("page {page}"))] });
            if page < 2 {
                list["nextCursor"] = (page + 1).to_string().into();
            }
            return result(id, list);
        }
        let names =
            "echo fail nothing big env cwd roots steps park release cancelled change junk endless flood die bye child";
        let mut tools: Vec<Value> = names.split(' ').map(tool).collect();
        if self.has_changed {
            tools.push(tool("brand.new"));
        }
        result(id, json!({ "tools": tools }));
    }

    fn list_prompts(&self, id: &Value) {
        let arguments = json!([{ "name": "who", "required": true }, { "name": "how" }]);
        let mut prompts = vec![
            json!({ "name": "greet", "description": "Greets\u{1b} somebody", "arguments": arguments }),
            json!({ "name": "odd name!" }),
            json!({ "name": "broken" }),
        ];
        if self.has_changed {
            prompts.push(json!({ "name": "new" }));
        }
        result(id, json!({ "prompts": prompts }));
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let argument = arguments["text"].as_str().unwrap_or_default();
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(id, argument),
            "fail" => result(id, json!({ "content": [{ "type": "text", "text": "no" }], "isError": true })),
            "big" => text(id, &"word\n".repeat(argument.parse().unwrap_or(0))),
            "nothing" => result(id, json!({ "content": [] })),
            "env" => text(id, &std::env::var(argument).unwrap_or_else(|_| "unset".into())),
            "cwd" => text(id, &std::env::current_dir().unwrap_or_default().to_string_lossy()),
            "roots" => {
                self.asks_roots = Some(id.clone());
                send(&json!({ "jsonrpc": "2.0", "id": "roots", "method": "roots/list" }));
            }
            "steps" => {
                for step in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    let step = json!({ "progressToken": token, "progress": step, "total": 3, "message": "going on" });
                    send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": step }));
                }
                self.parked.push(id.clone());
            }
            "park" => self.parked.push(id.clone()),
            "release" => {
                let parked = std::mem::take(&mut self.parked);
                text(id, &parked.len().to_string());
                parked.iter().for_each(|parked| text(parked, "released"));
            }
            "cancelled" => text(id, &self.cancelled.to_string()),
            "change" => {
                self.has_changed = true;
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                text(id, "changed");
            }
            "junk" => {
                write("\u{1b}[2Jnot json\n{\"half\":\n\n");
                text(id, "after junk");
            }
            "endless" => loop {
                write(&"x".repeat(1 << 16));
            },
            "flood" => {
                for id in 0.. {
                    send(&json!({ "jsonrpc": "2.0", "id": format!("f{id}"), "method": "ping" }));
                }
            }
            "die" => {
                eprintln!("I give up on {}", std::env::var("TOKEN").unwrap_or_default());
                std::process::exit(3);
            }
            "bye" => {
                text(id, "bye");
                std::process::exit(0);
            }
            "child" => match std::process::Command::new("sleep").arg("1000").spawn() {
                Ok(child) => text(id, &child.id().to_string()),
                Err(error) => text(id, &error.to_string()),
            },
            _ => error(id, -32602, "no such tool"),
        }
    }
}

fn prompt(id: &Value, params: &Value) {
    let message = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    match params["name"].as_str().unwrap_or_default() {
        "greet" => {
            let arguments = &params["arguments"];
            let words = format!("say hello {} {}", arguments["who"].as_str().unwrap_or_default(), arguments["how"]);
            result(id, json!({ "messages": [message("user", &words)] }));
        }
        "odd name!" => result(id, json!({ "messages": [message("user", "say odd"), message("assistant", "yes")] })),
        _ => error(id, -32000, "no\u{1b} such prompt"),
    }
}

fn resources(id: &Value) {
    let resources = json!([
        { "uri": "note:/one", "name": "The first note" },
        { "uri": "note:/long", "name": "A long note" },
        { "uri": "note:/bad one", "name": "Cannot be mentioned" },
    ]);
    result(id, json!({ "resources": resources }));
}

fn read(id: &Value, uri: &str) {
    let contents = match uri {
        "note:/one" => json!([{ "uri": uri, "text": "milk and honey" }]),
        "note:/long" => json!([{ "uri": uri, "text": "word\n".repeat(1 << 15) }]),
        _ => return error(id, -32002, "no such resource"),
    };
    result(id, json!({ "contents": contents }));
}

fn tool(name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    json!({ "name": name, "title": format!("The {name} tool"), "description": "For tests.", "inputSchema": schema })
}

fn text(id: &Value, text: &str) {
    result(id, json!({ "content": [{ "type": "text", "text": text }] }));
}

fn result(id: &Value, result: Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn error(id: &Value, code: i64, message: &str) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
}

fn send(message: &Value) {
    write(&format!("{message}\n"));
}

fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
