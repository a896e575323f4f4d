//! The report in Markdown, for pages and comments.

use std::fmt::Write;

use super::{Outcome, Report};

impl Report {
    /// The report in Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!(
            "## {} {}\n\nProtocol {}. **{}**\n\n",
            self.side_name(),
            code(&self.subject),
            self.spoken(),
            self.verdict()
        );
        out.push_str("| area | kept | broken | waived | not tested |\n|---|---:|---:|---:|---:|\n");
        for (area, [kept, broken, waived, not_tested]) in self.areas() {
            let _ = writeln!(out, "| {area} | {kept} | {broken} | {waived} | {not_tested} |");
        }
        for report in self.rules.iter().filter(|report| report.count > 0 || report.outcome == Outcome::NeedlesslyWaived)
        {
            let rule = report.rule;
            let _ = write!(
                out,
                "\n### `{}` ({}, {})\n\n{}\n\n",
                rule.id,
                rule.level.as_str(),
                report.outcome.as_str(),
                rule.statement
            );
            if let Outcome::Waived { reason } = &report.outcome {
                let _ = writeln!(out, "Reason: {}\n", code(reason));
            }
            for shown in &report.findings {
                let _ = writeln!(out, "- in {}, protocol {}: {}", code(&shown.run), shown.dialect, text(&shown.seen));
                shown.messages.iter().for_each(|message| {
                    let _ = writeln!(out, "  - {}", code(message));
                });
                if let Some(ended) = &shown.ended {
                    let _ = writeln!(out, "  - {}", text(ended));
                }
            }
            if report.count > report.findings.len() {
                let _ = writeln!(out, "- and {} more", report.count - report.findings.len());
            }
            let _ = writeln!(out, "\nInstead: {} Source: {}", rule.instead, rule.source);
        }
        out
    }
}

/// Text of others as code, whatever is in it.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", text.replace(['\n', '\r'], " "))
}

/// A sentence of ours that may have words of others in backticks: nothing outside of them is markup.
fn text(sentence: &str) -> String {
    let mut out = String::with_capacity(sentence.len());
    let mut is_code = false;
    for c in sentence.chars() {
        match c {
            '`' => is_code = !is_code,
            '<' | '>' | '[' | ']' | '*' | '_' | '|' | '\\' | '!' if !is_code => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    if is_code {
        out.push('`');
    }
    out
}
