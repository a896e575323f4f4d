//! The report for continuous integration, in JUnit's XML.

use std::fmt::Write;

use super::{Outcome, Report, RuleReport, area};

impl Report {
    /// The report in JUnit's XML: a suite for each area, a case for each rule.
    pub fn to_junit(&self) -> String {
        let failures = self.count(|report| report.outcome.is_finding());
        let skipped = self.count(|report| matches!(report.outcome, Outcome::NotTested | Outcome::Waived { .. }));
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attache check\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">\n",
            self.rules.len()
        );
        for (name, [kept, broken, waived, not_tested]) in self.areas() {
            let _ = writeln!(
                out,
                "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{broken}\" skipped=\"{}\">",
                kept + broken + waived + not_tested,
                waived + not_tested
            );
            self.rules.iter().filter(|report| area(report.rule) == name).for_each(|report| case(&mut out, report));
            out.push_str("  </testsuite>\n");
        }
        out + "</testsuites>\n"
    }
}

fn case(out: &mut String, report: &RuleReport) {
    let rule = report.rule;
    let _ = write!(out, "    <testcase classname=\"{}\" name=\"{}\"", area(rule), rule.id);
    match &report.outcome {
        Outcome::Kept => out.push_str("/>\n"),
        Outcome::NotTested => out.push_str("><skipped message=\"not tested\"/></testcase>\n"),
        Outcome::Waived { reason } => {
            let _ = writeln!(out, "><skipped message=\"waived: {}\"/></testcase>", escape(reason));
        }
        Outcome::NeedlesslyWaived => {
            out.push_str("><failure message=\"the rule is waived, and was kept\" type=\"waiver\"/></testcase>\n");
        }
        Outcome::Broken => {
            let _ = write!(out, "><failure message=\"{}\" type=\"{}\">", escape(rule.statement), rule.level.as_str());
            for shown in &report.findings {
                let _ =
                    writeln!(out, "{}", escape(&format!("{} (protocol {}): {}", shown.run, shown.dialect, shown.seen)));
                shown.messages.iter().for_each(|message| {
                    let _ = writeln!(out, "{}", escape(message));
                });
            }
            let _ = writeln!(out, "instead: {}</failure></testcase>", escape(rule.instead));
        }
    }
}

/// Text in XML. Characters that XML does not have are gone already: what a peer wrote is shown without control characters.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
