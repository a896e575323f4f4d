//! The functions that every message passes through. `cargo bench -p micro`.

use attache_proto::Dialect;
use attache_proto::frame::{Frame, Framing, Splitter};
use attache_proto::json::{Reader, Writer};
use attache_proto::model::update::SessionUpdate;
use attache_proto::rpc;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// Words with now and then something to escape, as in source code.
fn code(size: usize) -> String {
    let line = "    let greeting = \"hello\"; // a line of a file\n";
    let mut text = line.repeat(size / line.len() + 1);
    text.truncate(size);
    text
}

fn words(size: usize) -> String {
    "xxxxxxxxx ".repeat(size / 10 + 1)[..size].to_owned()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn chunk() -> String {
    let content = format!(r#"{{"type":"text","text":{}}}"#, quoted(&words(80)));
    format!(r#"{{"sessionUpdate":"agent_message_chunk","messageId":"msg_1","content":{content}}}"#)
}

fn tool_call() -> String {
    let content = format!(r#"{{"type":"content","content":{{"type":"text","text":{}}}}}"#, quoted(&code(4096)));
    format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"call_1","content":[{content}]}}"#)
}

fn message(update: &str) -> String {
    let params = format!(r#"{{"sessionId":"sess_1","update":{update}}}"#);
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#)
}

/// The two messages that are measured everywhere.
const UPDATES: [&str; 2] = ["chunk of 80 bytes", "tool call update of 4 KiB"];

fn update(name: &str) -> String {
    if name == UPDATES[0] { chunk() } else { tool_call() }
}

#[divan::bench(args = UPDATES)]
fn decode(bencher: Bencher, name: &str) {
    let json = update(name);
    let decode = || Reader::new(black_box(&json), Dialect::V1).decode::<SessionUpdate>();
    bencher.counter(BytesCount::of_str(&json)).bench_local(decode);
}

#[divan::bench(args = UPDATES)]
fn encode(bencher: Bencher, name: &str) {
    let json = update(name);
    let update = Reader::new(&json, Dialect::V1).decode::<SessionUpdate>().expect("an update");
    let mut buffer = Vec::with_capacity(64 * 1024);
    bencher.counter(BytesCount::of_str(&json)).bench_local(|| {
        buffer.clear();
        Writer::new(&mut buffer, Dialect::V1).value(black_box(&update));
        black_box(buffer.len())
    });
}

#[divan::bench(args = UPDATES)]
fn envelope(bencher: Bencher, name: &str) {
    let json = message(&update(name));
    bencher.counter(BytesCount::of_str(&json)).bench_local(|| drop(black_box(rpc::parse(black_box(&json)))));
}

#[divan::bench(args = [80, 4096])]
fn escape_words(bencher: Bencher, size: usize) {
    escape(bencher, &words(size));
}

#[divan::bench(args = [80, 4096])]
fn escape_code(bencher: Bencher, size: usize) {
    escape(bencher, &code(size));
}

fn escape(bencher: Bencher, text: &str) {
    let mut buffer = Vec::with_capacity(64 * 1024);
    bencher.counter(BytesCount::of_str(text)).bench_local(|| {
        buffer.clear();
        Writer::new(&mut buffer, Dialect::V1).string(black_box(text));
        black_box(buffer.len())
    });
}

/// The same by serde_json, which the references use.
#[divan::bench(args = [80, 4096])]
fn escape_code_by_serde_json(bencher: Bencher, size: usize) {
    let text = code(size);
    let mut buffer = Vec::with_capacity(64 * 1024);
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        buffer.clear();
        serde_json::to_writer(&mut buffer, black_box(&text)).expect("memory can be written");
        black_box(buffer.len())
    });
}

/// A pipe's worth of lines.
#[divan::bench(args = UPDATES)]
fn split(bencher: Bencher, name: &str) {
    let line = message(&update(name)) + "\n";
    let lines = line.repeat(64 * 1024 / line.len());
    let mut splitter = Splitter::new(Some(Framing::Lines), 1 << 26);
    bencher.counter(BytesCount::of_str(&lines)).bench_local(|| {
        splitter.feed(black_box(lines.as_bytes()));
        let mut count = 0;
        while let Some(frame) = splitter.next_frame() {
            count += usize::from(matches!(frame, Frame::Message(_)));
        }
        count
    });
}
