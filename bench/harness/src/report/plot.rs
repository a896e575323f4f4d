//! The plot for a visitor: CPU time a message, one bar a peer.
//!
//! It brings its own background, so it can be read on any page, and every bar has its name and figure beside it, so it
//! can be read without colour.

use std::fmt::Write;

use super::{CPU_A_MESSAGE, Context, Results, figure};

/// Workloads with a group of bars.
const GROUPS: &[(&str, &str)] = &[
    ("w3", "Agent sends an update, many at once"),
    ("w3p", "Agent sends an update, each flushed"),
    ("w4", "Client receives an update"),
    ("w2", "Agent answers a small request"),
    ("w6b", "Agent reads a file through the client, 200 at a time"),
];

/// Peers with a bar: ids, the first that was measured counts, and the name beside the bar.
const BARS: &[(&[&str], &str)] = &[
    (&["attache"], "Attaché"),
    (&["ht-tokio", "ht"], "hand-tuned, no library"),
    (&["rust-sdk"], "official Rust SDK"),
    (&["ts-sdk"], "TypeScript SDK"),
    (&["py-sdk"], "Python SDK"),
];

const WIDTH: f64 = 820.0;
/// Where the bars begin: the names need the space to the left.
const LEFT: f64 = 190.0;
/// Where the longest bar may end: its figure needs the space to the right.
const RIGHT: f64 = 640.0;
const TOP: f64 = 84.0;
const BAR: f64 = 15.0;
const ROW: f64 = 21.0;
/// A group's title and the air above it.
const TITLE: f64 = 40.0;

const NOTE: &str = "Log scale: every line is ten times the one before. In brackets: how many times as much as Attaché.";

/// The text has an edge in the colour of the background, which keeps it apart from the lines.
const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328;stroke:#fff;stroke-width:4px;paint-order:stroke}\
.card{fill:#fff;stroke:#8b949e}.grid{stroke:#8b949e;stroke-opacity:.45}\
.head{font-size:18px;font-weight:700}.group,.own{font-weight:700}.small{font-size:12px}\
.bar{fill:#8b949e}.bar.own{fill:#0969da}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3;stroke:#0d1117}.card{fill:#0d1117}.bar.own{fill:#4493f8}}";

struct Group {
    title: &'static str,
    /// Name and µs a message.
    bars: Vec<(&'static str, f64)>,
}

pub(super) fn svg(results: &Results, context: &Context) -> String {
    let groups: Vec<Group> = GROUPS.iter().filter_map(|(workload, title)| group(results, workload, title)).collect();
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let bottom = TOP + groups.len() as f64 * TITLE + rows as f64 * ROW + 8.0;
    let height = bottom + 34.0;
    let (low, high) = decades(&groups);
    let x = |micros: f64| LEFT + (micros.log10() - f64::from(low)) / f64::from(high - low) * (RIGHT - LEFT);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\">\n<title>CPU time a message</title>\n<desc>{}</desc>\n\
         <style>{STYLE}</style>\n<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        escaped(&description(&groups)),
        WIDTH - 1.0,
        height - 1.0,
    );
    text(&mut svg, "head", 20.0, 32.0, "start", "CPU time a message: shorter is better");
    let origin = format!("Median of up to {} runs, {}, {}.", results.repetitions(), context.cpu, context.date);
    text(&mut svg, "small", 20.0, 53.0, "start", &origin);
    text(&mut svg, "small", 20.0, 71.0, "start", NOTE);
    for decade in low..=high {
        let micros = 10f64.powi(decade);
        let at = x(micros);
        _ = writeln!(svg, "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\"/>");
        text(&mut svg, "small", at, bottom + 18.0, "middle", &duration(micros));
    }
    let mut y = TOP;
    for group in &groups {
        y += TITLE;
        text(&mut svg, "group", 20.0, y - 12.0, "start", group.title);
        let own = group.bars.iter().find(|(name, _)| *name == BARS[0].1).map(|(_, micros)| *micros);
        for (name, micros) in &group.bars {
            let class = if *name == BARS[0].1 { "own" } else { "" };
            let end = x(*micros);
            let base = y + 12.0;
            text(&mut svg, class, LEFT - 8.0, base, "end", name);
            _ = writeln!(
                svg,
                "<rect class=\"bar {class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{BAR}\"/>",
                end - LEFT
            );
            let times = own.filter(|_| class.is_empty()).map(|own| format!(" ({} ×)", plain(micros / own)));
            text(&mut svg, class, end + 6.0, base, "start", &(duration(*micros) + &times.unwrap_or_default()));
            y += ROW;
        }
    }
    svg + "</svg>\n"
}

fn group(results: &Results, workload: &str, title: &'static str) -> Option<Group> {
    let median = |peer: &&str| results.spread(workload, peer, CPU_A_MESSAGE).map(|spread| spread.median);
    let bars = BARS.iter().filter_map(|(peers, name)| Some((*name, peers.iter().find_map(median)?)));
    // A logarithm needs something to measure.
    let bars: Vec<_> = bars.filter(|(_, micros)| *micros > 0.0).collect();
    if bars.is_empty() { None } else { Some(Group { title, bars }) }
}

/// The powers of ten around all bars. The first leaves a stump for the shortest bar.
fn decades(groups: &[Group]) -> (i32, i32) {
    let values = groups.iter().flat_map(|group| &group.bars).map(|(_, micros)| micros.log10());
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
    if low > high {
        return (0, 1);
    }
    let low = (low - 0.15).floor() as i32;
    (low, (high.ceil() as i32).max(low + 1))
}

fn duration(micros: f64) -> String {
    if micros >= 1000.0 { format!("{} ms", plain(micros / 1000.0)) } else { format!("{} µs", plain(micros)) }
}

/// A number with two digits that count, or all before the point: more cannot be seen at a glance.
fn plain(value: f64) -> String {
    if value >= 100.0 {
        return figure(value);
    }
    let decimals = (1.0 - value.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// The plot in words, for those who do not see it.
fn description(groups: &[Group]) -> String {
    let told = groups.iter().map(|group| {
        let bars: Vec<String> =
            group.bars.iter().map(|(name, micros)| format!("{name} {}", duration(*micros))).collect();
        format!("{}: {}.", group.title, bars.join(", "))
    });
    told.collect::<Vec<_>>().join(" ")
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escaped(words);
    _ = writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
