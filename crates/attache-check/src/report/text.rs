//! The report for people.

use std::fmt::Write;

use super::{Outcome, Report, RuleReport};
use crate::rule::Level;

impl Report {
    /// The report for people, in plain text. With `all`, rules that were kept and not tested are listed, too.
    pub fn to_text(&self, all: bool) -> String {
        let mut out = String::new();
        for report in self.rules.iter().filter(|report| report.count > 0 || report.outcome == Outcome::NeedlesslyWaived)
        {
            finding(&mut out, report);
        }
        if all {
            for report in
                self.rules.iter().filter(|report| matches!(report.outcome, Outcome::Kept | Outcome::NotTested))
            {
                let _ = writeln!(out, "{:<11} {}", report.outcome.as_str(), report.rule.id);
            }
            out.push('\n');
        }
        out.push_str(&self.table());
        let _ =
            writeln!(out, "\n{} {} (protocol {}): {}", self.side_name(), self.subject, self.spoken(), self.verdict());
        out
    }

    /// How many rules of each area were kept, broken, waived and not tested.
    fn table(&self) -> String {
        let areas = self.areas();
        let width = areas.iter().map(|(area, _)| area.len()).max().unwrap_or(0).max("area".len());
        let mut out = format!("{:<width$}  kept  broken  waived  not tested\n", "area");
        for (area, [kept, broken, waived, not_tested]) in areas {
            let _ = writeln!(out, "{area:<width$}  {kept:>4}  {broken:>6}  {waived:>6}  {not_tested:>10}");
        }
        out
    }
}

fn finding(out: &mut String, report: &RuleReport) {
    let rule = report.rule;
    let word = match (&report.outcome, rule.level) {
        (Outcome::Waived { .. }, _) => "waived",
        (_, Level::Must) => "must",
        (_, Level::Should) => "should",
    };
    let _ = writeln!(out, "{word}: {} [{}]", rule.statement, rule.id);
    match &report.outcome {
        Outcome::Waived { reason } => {
            let _ = writeln!(out, "  reason: {reason}");
        }
        Outcome::NeedlesslyWaived => {
            let _ = writeln!(out, "  the rule is waived, and was kept {} times: remove the waiver", report.tested);
        }
        _ => {}
    }
    for shown in &report.findings {
        let _ = writeln!(out, "  in {} (protocol {}): {}", shown.run, shown.dialect, shown.seen);
        for message in &shown.messages {
            let _ = writeln!(out, "    {message}");
        }
        if let Some(ended) = &shown.ended {
            let _ = writeln!(out, "    {ended}");
        }
    }
    if report.count > report.findings.len() {
        let _ = writeln!(out, "  and {} more", report.count - report.findings.len());
    }
    if report.count > 0 {
        let _ = writeln!(out, "  instead: {}", rule.instead);
        let _ = writeln!(out, "  source: {}", rule.source);
    }
    out.push('\n');
}
