//! A hand-tuned client, blocking: starts the agent that its arguments name, sends one prompt, counts what comes back.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hand::{Line, Lines};

fn main() -> io::Result<()> {
    let mut args = std::env::args().skip(1);
    let program = args.next().ok_or_else(|| io::Error::other("which agent?"))?;
    let mut agent = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let count = talk(&mut agent)?;
    println!("count {count}");
    drop(agent.stdin.take());
    agent.wait().map(|_| ())
}

fn talk(agent: &mut Child) -> io::Result<usize> {
    let (Some(input), Some(output)) = (&mut agent.stdin, &mut agent.stdout) else {
        return Err(io::Error::other("the agent has no pipes"));
    };
    let mut lines = Lines::default();
    let capabilities = r#"{"fs":{"readTextFile":true,"writeTextFile":false}}"#;
    ask(input, 0, "initialize", &format!(r#"{{"protocolVersion":1,"clientCapabilities":{capabilities}}}"#))?;
    answer(output, &mut lines)?;
    ask(input, 1, "session/new", r#"{"cwd":"/tmp","mcpServers":[]}"#)?;
    let session = answer(output, &mut lines)?;
    let prompt = std::env::var("BENCH_PROMPT").unwrap_or_default();
    let block = format!(r#"[{{"type":"text","text":"{prompt}"}}]"#);
    ask(input, 2, "session/prompt", &format!(r#"{{"sessionId":"{session}","prompt":{block}}}"#))?;
    if std::env::var_os("BENCH_STALL").is_some() {
        loop {
            std::thread::park();
        }
    }
    let (mut count, mut bytes, mut replies) = (0, 0, Vec::new());
    loop {
        while let Some(line) = lines.next_line() {
            let Some(line) = Line::parse(line) else { continue };
            match line.method() {
                "session/update" => {
                    let update = line.params.and_then(|params| params.update);
                    bytes += update.and_then(|update| update.content).map_or(0, |content| content.0.len());
                    count += 1;
                }
                "fs/read_text_file" => hand::say_result(&mut replies, line.id(), r#"{"content":"x"}"#),
                "" if line.id() == "2" => {
                    std::hint::black_box(bytes);
                    return Ok(count);
                }
                _ => {}
            }
        }
        input.write_all(&replies)?;
        replies.clear();
        if !lines.read(output)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn ask(input: &mut ChildStdin, id: u64, method: &str, params: &str) -> io::Result<()> {
    let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
    input.write_all(request.as_bytes())
}

/// The session in the next answer, where it has one. Notifications before it are passed over.
fn answer(output: &mut ChildStdout, lines: &mut Lines) -> io::Result<String> {
    loop {
        while let Some(line) = lines.next_line() {
            let Some(line) = Line::parse(line) else { continue };
            if let (None, Some(result)) = (line.method, line.result) {
                return Ok(result.session_id.map_or_else(String::new, |session| session.0.into_owned()));
            }
        }
        if !lines.read(output)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
