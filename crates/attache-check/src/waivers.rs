//! Waivers: rules that somebody knows to be broken, each with a reason.
//!
//! A file of lines `RULE: REASON`; blank lines and what begins with `#` do not count.

use std::collections::BTreeMap;

use crate::rules;

/// The rules that are waived, with their reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waivers(BTreeMap<&'static str, String>);

/// How much of a reason is shown.
const LONGEST_REASON: usize = 500;

/// What is wrong with a file of waivers: the number of the line, from 1, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiverError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for WaiverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for WaiverError {}

impl Waivers {
    /// Reads a file.
    ///
    /// ```
    /// use attache_check::Waivers;
    ///
    /// let waivers = Waivers::parse("envelope/one-answer: our proxy repeats answers, see #12\n")?;
    /// assert_eq!(waivers.reason("envelope/one-answer"), Some("our proxy repeats answers, see #12"));
    /// assert!(Waivers::parse("envelope/one-answer:\n").is_err());
    /// # Ok::<(), attache_check::WaiverError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, WaiverError> {
        let mut waivers = BTreeMap::new();
        for (line, content) in (1..).zip(text.lines().map(str::trim)) {
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let wrong = |why: String| WaiverError { line, why };
            let (id, reason) = content.split_once(':').ok_or_else(|| wrong("expected `RULE: REASON`".to_owned()))?;
            let shown = crate::rule::shown(id.trim());
            let rule = rules::find(id.trim()).ok_or_else(|| wrong(format!("there is no rule {shown}")))?;
            if reason.trim().is_empty() {
                return Err(wrong(format!("the waiver of {shown} has no reason")));
            }
            if waivers.insert(rule.id, crate::rule::harmless(reason.trim(), LONGEST_REASON)).is_some() {
                return Err(wrong(format!("duplicate waiver of {shown}")));
            }
        }
        Ok(Waivers(waivers))
    }

    /// Why a rule is waived, if it is.
    pub fn reason(&self, rule: &str) -> Option<&str> {
        self.0.get(rule).map(String::as_str)
    }
}
