//! `attache check`: does an agent, a client, or what was recorded of them keep to the protocol?

mod agent;
mod client;
pub(crate) mod options;

use std::io::Read;
use std::path::Path;

use attache_check::record::Event;
use attache_check::{Record, Report, Run, Side, Waivers, probe, report};

use crate::exit::{Code, Failure};
use crate::paths;
use options::{Check, Judging, SideName, Transcript};

/// The longest file that is read: what a machine has the memory for several times over.
const LONGEST_FILE: u64 = 1 << 30;

/// The longest file of waivers that is read.
const LONGEST_WAIVERS: u64 = 1 << 20;

/// Does what the command line says.
pub(crate) async fn run(check: Check) -> Result<Code, Failure> {
    match check {
        Check::Agent(options) => agent::run(options).await,
        Check::Client(options) => client::run(options).await,
        Check::Transcript(options) => transcript(&options),
        Check::Rules(options) => rules(options.rule.as_deref()),
        Check::Probes => probes(),
    }
}

/// Lists rules.
fn rules(name: Option<&str>) -> Result<Code, Failure> {
    let is_meant = |rule: &&attache_check::Rule| {
        name.is_none_or(|name| rule.id == name || attache_check::report::area(rule) == name)
    };
    let meant: Vec<_> = attache_check::rules::all().filter(is_meant).collect();
    if let (Some(name), []) = (name, &meant[..]) {
        return Err(no_rule(name));
    }
    let line = |rule: &&attache_check::Rule| {
        let dialects: Vec<String> = rule.dialects.iter().map(|dialect| dialect.to_string()).collect();
        let about =
            format!("{} ({}, protocol {})\n  {}\n", rule.id, rule.level.as_str(), dialects.join(", "), rule.statement);
        if meant.len() == 1 {
            format!("{about}  instead: {}\n  source: {}\n", rule.instead, rule.source)
        } else {
            about
        }
    };
    crate::print(&meant.iter().map(line).collect::<String>())?;
    Ok(Code::Done)
}

/// Lists what agents and clients are made to do.
fn probes() -> Result<Code, Failure> {
    let of_agents = probe::agent::probes().map(|probe| (probe.name, probe.about));
    let of_clients = probe::client::scenarios().iter().map(|scenario| (scenario.name, scenario.what));
    let list = |rows: &mut dyn Iterator<Item = (&str, &str)>| {
        rows.map(|(name, about)| format!("  {name:<32} {about}\n")).collect::<String>()
    };
    crate::print(&format!(
        "What `attache check agent` does (--probe):\n{}\nWhat `attache check client` does (--scenario):\n{}",
        list(&mut { of_agents }),
        list(&mut { of_clients }),
    ))?;
    Ok(Code::Done)
}

fn no_rule(name: &str) -> Failure {
    let shown = crate::visible::one_line(name);
    Failure::usage(format!("there is no rule or area `{shown}`\nhint: `attache check rules` lists them"))
}

/// Keeps a record as a trace that only its owner can read.
fn keep(directory: &Path, name: &str, record: &Record) -> std::io::Result<()> {
    paths::write_private(&directory.join(format!("{name}.jsonl")), record.to_trace().as_bytes())
}

/// Judges what was recorded.
fn transcript(options: &Transcript) -> Result<Code, Failure> {
    let record = read(&options.file)?;
    let name = options.file.display().to_string();
    if record.entries.first().is_some_and(|entry| entry.event == Event::Continued) {
        return Err(Failure::usage(format!(
            "`{name}` begins in the middle of a conversation, because the trace was rotated: it cannot be judged\n\
             hint: judge it with the file before it: `cat {name}.1 {name} | attache check transcript -`"
        )));
    }
    let runs = [Run { name: name.clone(), record }];
    let sides: &[Side] = match options.side {
        SideName::Agent => &[Side::Agent],
        SideName::Client => &[Side::Client],
        SideName::Both => &[Side::Agent, Side::Client],
    };
    let waivers = waivers(&options.judging)?;
    let choice = options.judging.choice()?;
    let reports: Vec<Report> =
        sides.iter().map(|side| Report::new(name.as_str(), *side, &runs, &choice, &waivers)).collect();
    tell(&reports, &options.judging, Some(&name))
}

/// Prints reports in the form that is wanted. The exit code is 1 if there are findings; if nothing was tested, it could not be checked.
fn tell(reports: &[Report], judging: &Judging, artifact: Option<&str>) -> Result<Code, Failure> {
    let form = &judging.form;
    let each = |print: &dyn Fn(&Report) -> String| reports.iter().map(print).collect::<String>();
    let text = match () {
        () if form.json => each(&|report| format!("{}\n", report.to_json())),
        () if form.junit => report::junit(reports),
        () if form.markdown => each(&Report::to_markdown),
        () if form.sarif => format!("{}\n", report::sarif(reports, artifact)),
        () => each(&|report| report.to_text(judging.verbose)),
    };
    crate::print(&text)?;
    if let Some(path) = &judging.badge {
        // Of two sides, the one that is not conformant has the badge.
        let shown = reports.iter().find(|report| !report.is_conformant()).or(reports.first());
        let written = std::fs::write(path, shown.map(Report::to_badge).unwrap_or_default());
        written.map_err(|error| Failure::usage(format!("cannot write `{}`: {error}", path.display())))?;
    }
    if reports.iter().all(Report::is_empty) {
        return Err(Failure::usage(
            "nothing was tested: what was done has nothing to do with the rules that were chosen",
        ));
    }
    Ok(if reports.iter().all(Report::is_conformant) { Code::Done } else { Code::Agent })
}

fn waivers(judging: &Judging) -> Result<Waivers, Failure> {
    let Some(path) = &judging.waivers else { return Ok(Waivers::default()) };
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST_WAIVERS).read_to_string(&mut text));
    read.map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))?;
    Waivers::parse(&text).map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
}

/// Reads a trace or a transcript. What could not be read of a trace is told.
pub(crate) fn read(path: &Path) -> Result<Record, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("cannot read `{}`: {error}", path.display()));
    let mut bytes = Vec::new();
    let reader: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        // A device may go on for ever.
        let kind = std::fs::metadata(path).map_err(cannot)?.file_type();
        if kind.is_dir() || !(kind.is_file() || is_pipe(kind)) {
            return Err(Failure::usage(format!("`{}` is neither a regular file nor a pipe", path.display())));
        }
        Box::new(std::fs::File::open(path).map_err(cannot)?)
    };
    reader.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
    let wrong = |why: String| Failure::usage(format!("`{}`: {why}", path.display()));
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(wrong(format!("longer than {} MiB", LONGEST_FILE >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".to_owned()))?;
    if text.trim_start().starts_with('{') {
        let record = Record::from_trace(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(unreadable) = record.unreadable() {
            eprintln!("warning: `{}`: {}", path.display(), crate::visible::one_line(unreadable));
        }
        return Ok(record);
    }
    Record::from_transcript(&text).map_err(|error| wrong(error.to_string()))
}

#[cfg(unix)]
fn is_pipe(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: std::fs::FileType) -> bool {
    false
}
