//! What the transport and the stores are to reach.

use std::fmt::Write;

use super::{Results, figure};
use crate::Error;

enum Limit {
    /// So many times the same metric of a reference.
    Times(f64, &'static str),
    /// This much, in a unit.
    AtMost(f64, &'static str),
    /// So many times as much with 10,000 sessions as with 100. With 10 the first of everything counts.
    Flat(f64),
}

struct Goal {
    what: &'static str,
    workload: &'static str,
    peer: &'static str,
    metric: &'static str,
    limit: Limit,
    words: &'static str,
}

const fn goal(
    what: &'static str,
    workload: &'static str,
    peer: &'static str,
    metric: &'static str,
    limit: Limit,
    words: &'static str,
) -> Goal {
    Goal { what, workload, peer, metric, limit, words }
}

use Limit::{AtMost, Flat, Times};

const FIFTH: &str = "a fifth of the official crate";
const THREE: &str = "3 × stdio";
const TEN: &str = "10 × stdio";
const FLAT: &str = "1.5 × that of 100 sessions";

const GOALS: &[Goal] = &[
    goal("R1 CPU, WebSocket", "r1", "attache-ws", "cpu_us", Times(0.2, "official-ws"), FIFTH),
    goal("R1 CPU, HTTP/2", "r1", "attache-h2", "cpu_us", Times(0.2, "official-h1"), FIFTH),
    goal("R1 server CPU, WebSocket", "r1", "attache-ws", "server_cpu_us", Times(0.2, "official-ws"), FIFTH),
    goal("R1 server CPU, HTTP/2", "r1", "attache-h2", "server_cpu_us", Times(0.2, "official-h1"), FIFTH),
    goal("R2 CPU, WebSocket", "r2", "attache-ws", "cpu_us", Times(0.2, "official-ws"), FIFTH),
    goal("R2 CPU, HTTP/2", "r2", "attache-h2", "cpu_us", Times(0.2, "official-h1"), FIFTH),
    goal("R2 server CPU, WebSocket", "r2", "attache-ws", "server_cpu_us", Times(0.2, "official-ws"), FIFTH),
    goal("R2 server CPU, HTTP/2", "r2", "attache-h2", "server_cpu_us", Times(0.2, "official-h1"), FIFTH),
    goal("R1 CPU, WebSocket", "r1", "attache-ws", "cpu_us", Times(3.0, "attache-stdio"), THREE),
    goal("R1 CPU, HTTP/2", "r1", "attache-h2", "cpu_us", Times(3.0, "attache-stdio"), THREE),
    goal("R1 p50, WebSocket", "r1", "attache-ws", "p50_us", Times(3.0, "attache-stdio"), THREE),
    goal("R1 p50, HTTP/2", "r1", "attache-h2", "p50_us", Times(3.0, "attache-stdio"), THREE),
    goal("R2 CPU, WebSocket", "r2", "attache-ws", "cpu_us", Times(10.0, "attache-stdio"), TEN),
    goal("R2 CPU, HTTP/2", "r2", "attache-h2", "cpu_us", Times(10.0, "attache-stdio"), TEN),
    goal("R2 server CPU, WebSocket", "r2", "attache-ws", "server_cpu_us", Times(10.0, "attache-stdio"), TEN),
    goal("R2 server CPU, HTTP/2", "r2", "attache-h2", "server_cpu_us", Times(10.0, "attache-stdio"), TEN),
    goal("R3 idle connection, WebSocket", "r3", "attache-ws", "session_kib", AtMost(64.0, "KiB"), "64 KiB"),
    goal("R3 idle connection, HTTP/2", "r3", "attache-h2", "session_kib", AtMost(64.0, "KiB"), "64 KiB"),
    goal("R3 idle connection, HTTP/1.1", "r3", "attache-h1", "session_kib", AtMost(64.0, "KiB"), "64 KiB"),
    goal("R5 memory of a session, WebSocket", "r5", "attache-ws", "session_kib", Flat(1.5), FLAT),
    goal("R5 memory of a session, HTTP/2", "r5", "attache-h2", "session_kib", Flat(1.5), FLAT),
    goal("R5 CPU of a turn, WebSocket", "r5", "attache-ws", "turn_cpu_us", Flat(1.5), FLAT),
    goal("R5 CPU of a turn, HTTP/2", "r5", "attache-h2", "turn_cpu_us", Flat(1.5), FLAT),
    goal("R7 open and write a turn, files", "r7", "files", "turn_us", Flat(1.5), FLAT),
    goal("R7 open and write a turn, PostgreSQL", "r7", "postgres", "turn_us", Flat(1.5), FLAT),
    goal("R7 list, files", "r7", "files", "list_us", Flat(1.5), FLAT),
    goal("R7 list, PostgreSQL", "r7", "postgres", "list_us", Flat(1.5), FLAT),
];

impl Goal {
    /// Whether it is met, and what was seen.
    fn judge(&self, results: &Results) -> Option<(bool, String)> {
        let own = |metric: &str| results.median(self.workload, self.peer, metric);
        Some(match self.limit {
            Times(factor, reference) => {
                let ratio = own(self.metric)? / results.median(self.workload, reference, self.metric)?;
                (ratio <= factor, format!("{} ×", figure(ratio)))
            }
            AtMost(limit, unit) => {
                let own = own(self.metric)?;
                (own <= limit, format!("{} {unit}", figure(own)))
            }
            Flat(factor) => {
                let of = |sessions: &str| own(&format!("{}_{sessions}", self.metric));
                let ratio = of("10000")? / of("100")?;
                (ratio <= factor, format!("{} ×", figure(ratio)))
            }
        })
    }
}

/// All goals. What was not measured is left out.
pub fn table(results: &Results) -> Result<String, Error> {
    let mut table = String::from("| goal | at most | seen | |\n|---|---|---|---|\n");
    for goal in GOALS {
        let Some((is_met, seen)) = goal.judge(results) else { continue };
        let verdict = if is_met { "met" } else { "**not met**" };
        writeln!(table, "| {} | {} | {seen} | {verdict} |", goal.what, goal.words)?;
    }
    Ok(table)
}
