//! A hand-tuned agent, blocking: one pass over each message, one write each or batches of 64 KiB.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

use hand::{Line, Lines};
use script::Script;

const BATCH: usize = 64 * 1024;

fn main() -> io::Result<()> {
    // SAFETY: descriptors 0 and 1 are open, nothing else here uses them, and they are never closed.
    let (input, output) = unsafe { (File::from_raw_fd(0), File::from_raw_fd(1)) };
    let (mut input, mut output) = (ManuallyDrop::new(input), ManuallyDrop::new(output));
    let mut out = Vec::with_capacity(2 * BATCH);
    let (mut lines, mut sessions) = (Lines::default(), 0);
    while lines.read(&mut *input)? {
        while let Some(line) = lines.next_line() {
            let Some(line) = Line::parse(line) else { continue };
            match line.method() {
                "initialize" => hand::say_hello(&mut out, line.id()),
                "session/new" => {
                    sessions += 1;
                    hand::say_session(&mut out, line.id(), &format!("s{sessions}"));
                }
                "session/set_mode" => hand::say_result(&mut out, line.id(), "{}"),
                "session/prompt" => {
                    let text = line.prompt().first().and_then(|block| block.text.as_ref());
                    match text.and_then(|text| Script::parse(&text.0)) {
                        Some(Script::Reads { outstanding, rounds }) => {
                            let (session, id) = (line.session().to_owned(), line.id().to_owned());
                            reads(&session, outstanding, rounds, &mut lines, &mut input, &mut output)?;
                            hand::say_end(&mut out, &id);
                        }
                        Some(script) => {
                            play(script, &line, &mut out, &mut output)?;
                            hand::say_end(&mut out, line.id());
                        }
                        None => hand::say_end(&mut out, line.id()),
                    }
                }
                "" => {}
                _ if line.id.is_some() => hand::say_unknown(&mut out, line.id()),
                _ => {}
            }
            if out.len() >= BATCH {
                output.write_all(&out)?;
                out.clear();
            }
        }
        output.write_all(&out)?;
        out.clear();
    }
    Ok(())
}

fn play(script: Script, line: &Line<'_>, out: &mut Vec<u8>, output: &mut File) -> io::Result<()> {
    let session = line.session();
    match script {
        Script::Chunks { count, size, is_flushed } => {
            let text = script::text(size);
            for _ in 0..count {
                hand::say_chunk(out, session, &text);
                if is_flushed || out.len() >= BATCH {
                    output.write_all(out)?;
                    out.clear();
                }
            }
        }
        Script::ToolUpdates { count, size } => {
            let text = script::text(size);
            hand::say_tool(out, session, "call_1", script::TOOL);
            for _ in 0..count {
                hand::say_tool_update(out, session, "call_1", &text);
                if out.len() >= BATCH {
                    output.write_all(out)?;
                    out.clear();
                }
            }
        }
        Script::Size => {
            let resource = line.prompt().iter().find_map(|block| block.resource.as_ref()?.text.as_ref());
            hand::say_chunk(out, session, &resource.map_or(0, |text| text.0.len()).to_string());
        }
        Script::Reads { .. } => {}
    }
    Ok(())
}

fn reads(
    session: &str,
    outstanding: usize,
    rounds: usize,
    lines: &mut Lines,
    input: &mut File,
    output: &mut File,
) -> io::Result<()> {
    let mut out = Vec::new();
    let mut id = 0;
    for _ in 0..rounds {
        for _ in 0..outstanding {
            hand::say_read(&mut out, id, session, script::PATH);
            id += 1;
        }
        output.write_all(&out)?;
        out.clear();
        let mut open = outstanding;
        while open > 0 {
            if !lines.read(input)? {
                return Ok(());
            }
            while let Some(line) = lines.next_line() {
                let answer = Line::parse(line).and_then(|line| line.result?.content);
                open -= usize::from(answer.is_some());
            }
        }
    }
    Ok(())
}
