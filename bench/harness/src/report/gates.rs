//! The speed that the library must reach.

use super::{CPU_A_MESSAGE, METRICS, Results, figure};
use Limit::{Above, AtMost, Times};

/// One thing that a peer may need only so much of.
pub(super) struct Gate {
    pub(super) id: &'static str,
    pub(super) workload: &'static str,
    pub(super) metric: &'static str,
    pub(super) peer: &'static str,
    pub(super) limit: Limit,
    /// The limit as a person reads it.
    pub(super) text: &'static str,
}

/// How much a median may be, in the unit of the results.
pub(super) enum Limit {
    /// So many times the same metric of a reference.
    Times(f64, &'static str),
    /// This much.
    AtMost(f64),
    /// This much more than another metric of the same peer.
    Above(f64, &'static str),
}

/// A gate and what came of it; the text has the figures.
pub(super) enum Seen {
    Met(String),
    NotMet(String),
    NotMeasured,
}

pub(super) const GATES: &[Gate] = &[
    gate("W1 CPU", "w1", "cpu_ms", "attache", Times(1.2, "ht-tokio"), "1.2 × ht-tokio"),
    gate("W1 RSS", "w1", "rss_kib", "attache", AtMost(3584.0), "3.5 MiB"),
    gate("W2 CPU", "w2", CPU_A_MESSAGE, "attache", Times(1.5, "ht-tokio"), "1.5 × ht-tokio"),
    gate("W3 burst CPU", "w3", CPU_A_MESSAGE, "attache", Times(2.0, "ht-tokio"), "2 × ht-tokio"),
    gate("W3 burst instructions", "w3", "instructions", "attache", AtMost(6_000.0), "6,000 a message"),
    gate("W3 paced CPU", "w3p", CPU_A_MESSAGE, "attache", Times(2.0, "ht"), "2 × ht with one write each"),
    gate("W3b CPU", "w3b", CPU_A_MESSAGE, "attache", Times(1.3, "ht-tokio"), "1.3 × ht-tokio"),
    gate("W4 CPU", "w4", CPU_A_MESSAGE, "attache", Times(2.0, "ht"), "2 × ht"),
    gate("W4 instructions", "w4", "instructions", "attache", AtMost(16_000.0), "16,000 a message"),
    gate("W4b CPU", "w4b", CPU_A_MESSAGE, "attache", Times(1.4, "ht"), "1.4 × ht"),
    gate("W5 CPU", "w5", "cpu_ms", "attache", Times(1.2, "ht-tokio"), "1.2 × ht-tokio"),
    gate("W5 peak growth", "w5", "growth_kib", "attache", AtMost(3.0 * 16_384.0), "3 × the message (48 MiB)"),
    // The memory is to be given back. Nothing is given back to the last page, so there is the slack that W7 has.
    gate("W5 kept", "w5", "kept_kib", "attache", AtMost(2048.0), "given back but for 2 MiB"),
    gate("W6a CPU", "w6a", CPU_A_MESSAGE, "attache", Times(1.5, "ht-tokio"), "1.5 × ht-tokio"),
    gate("W6b CPU", "w6b", CPU_A_MESSAGE, "attache", Times(2.0, "ht-tokio"), "2 × ht-tokio"),
    gate("W7 growth", "w7", "growth_kib", "attache", Above(2048.0, "bound_kib"), "the configured bound + 2 MiB"),
    gate("W7b growth", "w7b", "growth_kib", "attache", Above(2048.0, "bound_kib"), "the configured bound + 2 MiB"),
    gate("W8 build CPU", "w8", "cpu_ms", "attache", Times(1.5, "ht-tokio"), "1.5 × ht-tokio"),
    gate("W8 crates", "w8", "crates", "attache", AtMost(30.0), "30"),
    gate("W8 stripped size", "w8", "stripped_bytes", "attache", AtMost(1.3e6), "1.3 MB"),
    gate("W8 rebuild CPU", "w8", "rebuild_cpu_ms", "attache", AtMost(3_000.0), "3 s"),
    // The figure that the gate was set beside, 17 s of the official SDK, is that of a release build.
    gate("W8 release rebuild CPU", "w8", "rebuild_release_cpu_ms", "attache", AtMost(3_000.0), "3 s"),
];

const fn gate(
    id: &'static str,
    workload: &'static str,
    metric: &'static str,
    peer: &'static str,
    limit: Limit,
    text: &'static str,
) -> Gate {
    Gate { id, workload, metric, peer, limit, text }
}

impl Gate {
    pub(super) fn judge(&self, results: &Results) -> Seen {
        let median = |peer, metric| results.spread(self.workload, peer, metric).map(|spread| spread.median);
        let Some(own) = median(self.peer, self.metric) else { return Seen::NotMeasured };
        let (met, seen) = match self.limit {
            Times(factor, reference) => match median(reference, self.metric) {
                Some(theirs) if theirs > 0.0 => (own <= factor * theirs, format!("{} ×", figure(own / theirs))),
                _ => return Seen::NotMeasured,
            },
            AtMost(limit) => (own <= limit, self.amount(own)),
            Above(slack, metric) => match median(self.peer, metric) {
                Some(bound) => (own <= bound + slack, format!("{}, bound {}", self.amount(own), self.amount(bound))),
                None => return Seen::NotMeasured,
            },
        };
        if met { Seen::Met(seen) } else { Seen::NotMet(seen) }
    }

    /// A value of the gate's metric in the unit that its heading names.
    fn amount(&self, value: f64) -> String {
        let Some(metric) = METRICS.iter().find(|known| known.id == self.metric) else { return figure(value) };
        let unit = metric.heading.split_once(", ").map_or(String::new(), |(_, unit)| format!(" {unit}"));
        figure(value / metric.divisor) + &unit
    }
}
