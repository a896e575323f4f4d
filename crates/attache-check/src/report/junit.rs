//! The report for continuous integration, in JUnit's XML.

use std::fmt::Write;

use super::{Outcome, Report, RuleReport, area};

/// Reports in JUnit's XML: a suite for each area of each report, a case for each rule.
pub fn junit(reports: &[Report]) -> String {
    let sum = |count: fn(&Report) -> usize| reports.iter().map(count).sum::<usize>();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attache check\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        sum(|report| report.rules.len()),
        sum(|report| report.count(|rule| rule.outcome.is_finding())),
        sum(|report| report.count(|rule| matches!(rule.outcome, Outcome::NotTested | Outcome::Waived { .. }))),
    );
    for report in reports {
        for (name, [kept, broken, waived, not_tested]) in report.areas() {
            let side = if reports.len() > 1 { format!("{}: ", report.side_name()) } else { String::new() };
            let _ = writeln!(
                out,
                "  <testsuite name=\"{side}{name}\" package=\"{}\" tests=\"{}\" failures=\"{broken}\" skipped=\"{}\">",
                escape(&report.subject),
                kept + broken + waived + not_tested,
                waived + not_tested
            );
            report.rules.iter().filter(|rule| area(rule.rule) == name).for_each(|rule| case(&mut out, rule));
            out.push_str("  </testsuite>\n");
        }
    }
    out + "</testsuites>\n"
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
                shown.messages.iter().chain(&shown.ended).for_each(|message| {
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
