//! `AGENTS.md`: the coding agents side by side, and the limits that ours has to keep.

use std::path::Path;
use std::{fs, io};

use super::{Context, Results, cell, figure, said_by};

/// Columns: metric, heading, how many of the unit in the results make one of the unit in the heading.
const COLUMNS: &[(&str, &str, f64)] = &[
    ("initialize_ms", "start to `initialize`, ms", 1.0),
    ("session_ms", "`session/new`, ms", 1.0),
    ("pss_kib", "idle memory (PSS), MiB", 1024.0),
    ("rss_kib", "idle memory (RSS), MiB", 1024.0),
    ("processes", "processes", 1.0),
    ("disk_bytes", "on disk, MB", 1e6),
];

/// What ours may take: metric, limit in the unit of the results, both in words.
const LIMITS: &[(&str, f64, &str, &str)] = &[
    ("initialize_ms", 20.0, "start to `initialize`", "20 ms"),
    ("session_ms", 5.0, "`session/new`", "5 ms"),
    ("rss_kib", 15.0 * 1024.0, "idle memory (RSS)", "15 MiB"),
    // 20 MB until the terminal client, with its highlighting, became part of it; 25 MB until the server and PostgreSQL did.
    ("disk_bytes", 26e6, "binary", "26 MB"),
];

/// Reads the results and returns the page.
pub fn page(results: &Path, context: &Context) -> io::Result<String> {
    Ok(markdown(&Results::parse(&fs::read_to_string(results)?)?, context))
}

pub(super) fn markdown(results: &Results, context: &Context) -> String {
    let mut page = format!(
        "# Coding agents, side by side\n\nMade by `{}` on {}. Do not edit: the next run writes it anew.\n\n| | |\n|---|---|\n",
        context.command, context.date
    );
    let place = [("machine", &context.machine), ("processor", &context.cpu), ("kernel", &context.kernel)];
    let versions = context.versions.iter().map(|(name, version)| (name.as_str(), version));
    for (name, value) in place.into_iter().chain(versions) {
        page += &format!("| {} | {} |\n", cell(name), cell(value));
    }
    page += &format!("| load at the end | {} |\n", cell(&said_by("cut", &["-d", " ", "-f", "1-3", "/proc/loadavg"])));
    page += "\n|  |";
    for (_, heading, _) in COLUMNS {
        page += &format!(" {heading} |");
    }
    page += &format!("\n|---|{}\n", "--:|".repeat(COLUMNS.len()));
    for id in crate::agents::ids() {
        page += &format!("| {id} |");
        for (metric, _, divisor) in COLUMNS {
            let figures = results.spread("agents", id, metric).map(|spread| match *metric {
                "processes" => format!("{:.0}", spread.median),
                _ => spread.figures(*divisor),
            });
            page += &format!(" {} |", figures.unwrap_or_else(|| "–".into()));
        }
        page += "\n";
    }
    page += &format!(
        "\nEvery figure is the median (minimum–maximum) of {} repetitions after one that is not counted. The agents take \
         turns within each repetition, and begin with another one in each.\n\n\
         - *Start to `initialize`* is from the start of the process to the answer of version 1, as seen by the client.\n\
         - *`session/new`* is the request alone, in an empty directory and without MCP servers. Gemini CLI is logged in \
         before it.\n\
         - *Idle memory* is looked at two seconds after that, of the agent and of all that it started: PSS counts what \
         processes share by parts, RSS counts it in each of them.\n\
         - *On disk* is the binary, without symbols as `cargo build --profile dist` makes it, or all packages that npm \
         installs for the agent. Node itself, which the others need besides, is not counted.\n\
         - The agents have no network but a scripted model on loopback; ours works with its built-in model.\n",
        results.repetitions()
    );
    page += "\n## Limits of ours\n\n| | at most | seen | |\n|---|---|---|---|\n";
    for (metric, limit, what, words) in LIMITS {
        let Some(spread) = results.spread("agents", "attache", metric) else {
            page += &format!("| {what} | {words} | – | not measured |\n");
            continue;
        };
        let divisor = COLUMNS.iter().find(|column| column.0 == *metric).map_or(1.0, |column| column.2);
        let unit = words.split_once(' ').map_or("", |(_, unit)| unit);
        let verdict = if spread.median <= *limit { "met" } else { "**not met**" };
        page += &format!("| {what} | {words} | {} {unit} | {verdict} |\n", figure(spread.median / divisor));
    }
    page
}
