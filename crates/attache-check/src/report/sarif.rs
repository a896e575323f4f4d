//! The report in SARIF 2.1.0, which code hosts and editors show beside the code.

use serde_json::{Value, json};

use super::{Outcome, Report};
use crate::rule::Level;

impl Report {
    /// The report in SARIF 2.1.0. `artifact` is the file that was judged, if there is one.
    pub fn to_sarif(&self, artifact: Option<&str>) -> Value {
        let level = |level| if level == Level::Must { "error" } else { "warning" };
        let rules: Vec<Value> = self
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
        let mut results = Vec::new();
        for (index, report) in self.rules.iter().enumerate() {
            let result = |text: String, locations: Value| {
                let mut result = json!({
                    "ruleId": report.rule.id,
                    "ruleIndex": index,
                    "level": level(report.rule.level),
                    "message": { "text": text },
                    "locations": locations,
                });
                if let Outcome::Waived { reason } = &report.outcome {
                    result["suppressions"] = json!([{ "kind": "external", "justification": reason }]);
                }
                result
            };
            for shown in &report.findings {
                let mut location = json!({ "logicalLocations": [{ "name": shown.run, "kind": "module" }] });
                if let Some(artifact) = artifact {
                    location["physicalLocation"] = json!({ "artifactLocation": { "uri": artifact } });
                }
                let messages: String = shown.messages.iter().map(|message| format!("\n{message}")).collect();
                results
                    .push(result(format!("{} (protocol {}){messages}", shown.seen, shown.dialect), json!([location])));
            }
            if report.outcome == Outcome::NeedlesslyWaived {
                results.push(result("the rule is waived, and was kept".to_owned(), json!([])));
            }
        }
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": "attache check", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
                "results": results,
            }],
        })
    }
}
