//! The report in SARIF 2.1.0, which code hosts and editors show beside the code.

use serde_json::{Value, json};

use super::{Outcome, Report};
use crate::rule::Level;

/// Reports as one log in SARIF 2.1.0, a run each. `artifact` is the file that was judged; without one, results are placed in files named
/// after the probes, because code hosts refuse results without a place.
pub fn sarif(reports: &[Report], artifact: Option<&str>) -> Value {
    let runs: Vec<Value> = reports.iter().map(|report| run(report, artifact)).collect();
    json!({ "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": runs })
}

fn run(report: &Report, artifact: Option<&str>) -> Value {
    let level = |level| if level == Level::Must { "error" } else { "warning" };
    let rules: Vec<Value> = report
        .rules
        .iter()
        .map(|report| {
            json!({
                "id": report.rule.id,
                "shortDescription": { "text": report.rule.statement },
                "help": { "text": format!("{} Source: {}", report.rule.instead, report.rule.source) },
                "defaultConfiguration": { "level": level(report.rule.level) },
            })
        })
        .collect();
    let place = |run: &str, line: usize| {
        json!({
            "logicalLocations": [{ "name": run, "kind": "module" }],
            "physicalLocation": {
                "artifactLocation": { "uri": uri(artifact.unwrap_or(run)) },
                "region": { "startLine": line },
            },
        })
    };
    let mut results = Vec::new();
    for (index, report) in report.rules.iter().enumerate() {
        let result = |text: String, location: Value| {
            let mut result = json!({
                "ruleId": report.rule.id,
                "ruleIndex": index,
                "level": level(report.rule.level),
                "message": { "text": text },
                "locations": [location],
            });
            if let Outcome::Waived { reason } = &report.outcome {
                result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
            }
            result
        };
        for (number, shown) in report.findings.iter().enumerate() {
            let mut text = format!("{} (protocol {})", shown.seen, shown.dialect);
            for line in shown.messages.iter().chain(&shown.ended) {
                text.push('\n');
                text.push_str(line);
            }
            let left_out = report.count - report.findings.len();
            if number + 1 == report.findings.len() && left_out > 0 {
                text.push_str(&format!("\nand {left_out} more"));
            }
            let line = shown.entries.first().map_or(1, |entry| entry + 1);
            results.push(result(text, place(&shown.run, line)));
        }
        if report.outcome == Outcome::NeedlesslyWaived {
            results.push(result("the rule is waived, and was kept".to_owned(), place("waivers", 1)));
        }
    }
    json!({
        "tool": { "driver": { "name": "attache check", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
        "automationDetails": { "id": format!("attache-check/{}/", report.side_name()) },
        "results": results,
    })
}

/// A path as a relative reference of a URI.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
