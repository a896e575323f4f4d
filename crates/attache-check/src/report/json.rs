//! The report as JSON: one object, whose shape is a promise.

use serde_json::{Value, json};

use super::{Outcome, Report, area};

impl Report {
    /// The report as one JSON object. Members are only ever added to it; `version` changes if that is not so.
    pub fn to_json(&self) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|report| {
                let findings: Vec<Value> = report
                    .findings
                    .iter()
                    .map(|shown| {
                        json!({
                            "run": shown.run,
                            "dialect": shown.dialect.to_string(),
                            "seen": shown.seen,
                            "entries": shown.entries,
                            "messages": shown.messages,
                            "ended": shown.ended,
                        })
                    })
                    .collect();
                let mut rule = json!({
                    "id": report.rule.id,
                    "area": area(report.rule),
                    "level": report.rule.level.as_str(),
                    "statement": report.rule.statement,
                    "source": report.rule.source,
                    "outcome": report.outcome.as_str(),
                    "tested": report.tested,
                    "broken": report.count,
                    "findings": findings,
                });
                if report.count > 0 {
                    rule["instead"] = report.rule.instead.into();
                }
                if let Outcome::Waived { reason } = &report.outcome {
                    rule["reason"] = reason.as_str().into();
                }
                rule
            })
            .collect();
        let count = |name: &str| self.count(|report| report.outcome.as_str() == name);
        json!({
            "type": "attache-check",
            "version": 1,
            "subject": self.subject,
            "side": self.side_name(),
            "dialects": self.dialects.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "runs": self.runs,
            "conformant": self.broken(crate::rule::Level::Must) == 0,
            "verdict": self.verdict(),
            "summary": {
                "kept": count("kept"),
                "broken": count("broken"),
                "waived": count("waived"),
                "needlesslyWaived": count("needlessly-waived"),
                "notTested": count("not-tested"),
            },
            "rules": rules,
        })
    }
}
