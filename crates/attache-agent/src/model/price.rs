//! What models take for their work: one table for those whose provider does not tell, and sums that lose nothing.

use serde::{Deserialize, Serialize};

use super::Usage;

/// A sum of money: millionths of a millionth of a dollar, which is what a token's price is counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u64);

impl Cost {
    /// In US dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// So many US dollars. Nothing for what is no amount.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && (0.0..1e6).contains(&dollars)).then(|| Cost((dollars * 1e12).round() as u64))
    }

    /// The sum of two.
    pub fn plus(self, other: Cost) -> Self {
        Cost(self.0.saturating_add(other.0))
    }
}

/// What a model takes for a token, each as a [`Cost`] counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// For one that goes in.
    pub input: u64,
    /// For one that comes out.
    pub output: u64,
    /// For one that goes in from a cache.
    pub cached: u64,
    /// For one that goes in and is written to a cache.
    pub written: u64,
}

impl Price {
    /// A price in US dollars for a million tokens. What is read from or written to a cache costs as much as what is not,
    /// unless that is said. Nothing for what is no amount.
    pub fn per_million(input: f64, output: f64, cached: Option<f64>, written: Option<f64>) -> Option<Self> {
        let token = |dollars: f64| Cost::from_dollars(dollars).map(|cost| cost.0 / 1_000_000);
        let input = token(input)?;
        let or_input = |dollars: Option<f64>| dollars.map_or(Some(input), token);
        Some(Price { input, output: token(output)?, cached: or_input(cached)?, written: or_input(written)? })
    }

    /// What an answer took.
    ///
    /// ```
    /// use attache_agent::model::{Usage, price::Price};
    /// let price = Price::per_million(3.0, 15.0, Some(0.3), Some(3.75)).unwrap();
    /// let usage = Usage { input: 1_000_000, cached: 500_000, output: 100_000, ..Usage::default() };
    /// assert_eq!(price.cost(&usage).dollars(), 1.5 + 0.15 + 1.5);
    /// ```
    pub fn cost(&self, usage: &Usage) -> Cost {
        let cached = usage.cached.min(usage.input);
        let written = usage.written.min(usage.input - cached);
        let fresh = usage.input - cached - written;
        let parts = [(fresh, self.input), (cached, self.cached), (written, self.written), (usage.output, self.output)];
        Cost(parts.iter().fold(0, |sum: u64, (tokens, price)| sum.saturating_add(tokens.saturating_mul(*price))))
    }

    /// The price for people: `$3/$15 per million tokens`.
    pub fn words(&self) -> String {
        let dollars = |token: u64| {
            let text = format!("{:.3}", token as f64 / 1e6);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        format!("${}/${} per million tokens", dollars(self.input), dollars(self.output))
    }
}

/// A row: provider, name, dollars for a million tokens in, in from a cache, and out. It counts for the name alone, for
/// the name with a date, and for `-latest`: what a later version costs is not known.
type Row = (&'static str, &'static str, f64, f64, f64);

/// As two public tables of prices had them on 18 November 2026, litellm's and that of genai-prices. Where they differ, the
/// dearer one counts: a limit is better reached too early. Of several prices of one model it is the one for short prompts.
const PRICES: &[Row] = &[
    ("anthropic", "claude-fable-5-2", 8.0, 0.2, 40.0),
    ("anthropic", "claude-fable-5-1", 10.0, 0.25, 50.0),
    ("anthropic", "claude-fable-5", 10.0, 1.0, 50.0),
    ("anthropic", "claude-mythos-5-2", 8.0, 0.2, 40.0),
    ("anthropic", "claude-mythos-5-1", 10.0, 0.25, 50.0),
    ("anthropic", "claude-mythos-5", 10.0, 1.0, 50.0),
    ("anthropic", "claude-opus-5-5", 4.0, 0.2, 20.0),
    ("anthropic", "claude-opus-5", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-8", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-7", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-6", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-5", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-1", 15.0, 1.5, 75.0),
    ("anthropic", "claude-opus-4", 15.0, 1.5, 75.0),
    ("anthropic", "claude-sonnet-5-5", 2.0, 0.1, 10.0),
    ("anthropic", "claude-sonnet-5", 2.0, 0.2, 10.0),
    ("anthropic", "claude-sonnet-4-6", 3.0, 0.3, 15.0),
    ("anthropic", "claude-sonnet-4-5", 3.0, 0.3, 15.0),
    ("anthropic", "claude-sonnet-4", 3.0, 0.3, 15.0),
    ("anthropic", "claude-haiku-5-5", 0.1, 0.01, 0.5),
    ("anthropic", "claude-haiku-4-5", 1.0, 0.1, 5.0),
    ("anthropic", "claude-3-7-sonnet", 3.0, 0.3, 15.0),
    ("anthropic", "claude-3-5-haiku", 0.8, 0.08, 4.0),
    ("openai", "gpt-6.1-sol", 2.0, 0.1, 10.0),
    ("openai", "gpt-6.1-terra", 1.0, 0.05, 5.0),
    ("openai", "gpt-6-astra", 10.0, 1.0, 50.0),
    ("openai", "gpt-6-sol", 2.0, 0.2, 10.0),
    ("openai", "gpt-6-luna", 0.1, 0.01, 0.5),
    ("openai", "gpt-5.6", 4.0, 0.4, 20.0),
    ("openai", "gpt-5.6-sol", 4.0, 0.4, 20.0),
    ("openai", "gpt-5.6-terra", 2.0, 0.2, 12.0),
    ("openai", "gpt-5.6-luna", 0.2, 0.02, 1.2),
    ("openai", "gpt-5.5", 5.0, 0.5, 30.0),
    ("openai", "gpt-5.5-pro", 30.0, 30.0, 180.0),
    ("openai", "gpt-5.4", 2.5, 0.25, 15.0),
    ("openai", "gpt-5.4-pro", 30.0, 30.0, 180.0),
    ("openai", "gpt-5.4-mini", 0.75, 0.075, 4.5),
    ("openai", "gpt-5.4-nano", 0.2, 0.02, 1.25),
    ("openai", "gpt-5.3-codex", 1.75, 0.175, 14.0),
    ("openai", "gpt-5.2", 1.75, 0.175, 14.0),
    ("openai", "gpt-5.2-codex", 1.75, 0.175, 14.0),
    ("openai", "gpt-5.2-pro", 21.0, 21.0, 168.0),
    ("openai", "gpt-5.1", 1.25, 0.125, 10.0),
    ("openai", "gpt-5.1-codex", 1.25, 0.125, 10.0),
    ("openai", "gpt-5.1-codex-max", 1.25, 0.125, 10.0),
    ("openai", "gpt-5.1-codex-mini", 0.25, 0.025, 2.0),
    ("openai", "gpt-5", 1.25, 0.125, 10.0),
    ("openai", "gpt-5-codex", 1.25, 0.125, 10.0),
    ("openai", "gpt-5-mini", 0.25, 0.025, 2.0),
    ("openai", "gpt-5-nano", 0.05, 0.005, 0.4),
    ("openai", "gpt-5-pro", 15.0, 15.0, 120.0),
    ("openai", "gpt-4.1", 2.0, 0.5, 8.0),
    ("openai", "gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("openai", "gpt-4.1-nano", 0.1, 0.025, 0.4),
    ("openai", "gpt-4o", 2.5, 1.25, 10.0),
    ("openai", "gpt-4o-mini", 0.15, 0.075, 0.6),
    ("openai", "o3", 2.0, 0.5, 8.0),
    ("openai", "o3-pro", 20.0, 20.0, 80.0),
    ("openai", "o3-mini", 1.1, 0.55, 4.4),
    ("openai", "o4-mini", 1.1, 0.275, 4.4),
    ("gemini", "gemini-4-argon", 4.0, 0.2, 20.0),
    ("gemini", "gemini-3.8-flash", 1.5, 0.15, 7.5),
    ("gemini", "gemini-3.7-flash", 1.5, 0.15, 7.5),
    ("gemini", "gemini-3.6-flash", 1.5, 0.15, 7.5),
    ("gemini", "gemini-3.5-flash", 1.5, 0.15, 9.0),
    ("gemini", "gemini-3.5-flash-lite", 0.3, 0.03, 2.5),
    ("gemini", "gemini-3.1-pro-preview", 2.0, 0.2, 12.0),
    ("gemini", "gemini-3.1-flash-lite", 0.25, 0.025, 1.5),
    ("gemini", "gemini-3-pro-preview", 2.0, 0.2, 12.0),
    ("gemini", "gemini-3-flash-preview", 0.5, 0.05, 3.0),
    ("gemini", "gemini-2.5-pro", 1.25, 0.125, 10.0),
    ("gemini", "gemini-2.5-flash", 0.3, 0.03, 2.5),
    ("gemini", "gemini-2.5-flash-lite", 0.1, 0.01, 0.4),
    ("deepseek", "deepseek-flash", 0.3, 0.006, 1.2),
    ("deepseek", "deepseek-v4-flash", 0.3, 0.006, 1.2),
    ("deepseek", "deepseek-v4-pro", 1.32, 0.044, 3.96),
    ("deepseek", "deepseek-chat", 0.28, 0.028, 0.42),
    ("deepseek", "deepseek-reasoner", 0.28, 0.028, 0.42),
    ("groq", "openai/gpt-oss-120b", 0.15, 0.075, 0.6),
    ("groq", "openai/gpt-oss-20b", 0.075, 0.0375, 0.3),
    ("groq", "qwen/qwen3.8-27b", 0.8, 0.8, 4.0),
    ("mistral", "mistral-large-4", 1.36, 0.14, 4.18),
    ("mistral", "mistral-large", 0.5, 0.05, 1.5),
    ("mistral", "mistral-medium-3-5", 1.5, 0.15, 7.5),
    ("mistral", "mistral-medium", 1.5, 0.15, 7.5),
    ("mistral", "mistral-small", 0.15, 0.015, 0.6),
    ("mistral", "magistral-medium", 1.5, 0.15, 7.5),
    ("mistral", "devstral-medium", 0.4, 0.04, 2.0),
    ("mistral", "devstral", 0.4, 0.04, 2.0),
    ("mistral", "devstral-small", 0.1, 0.01, 0.3),
    ("mistral", "codestral", 0.3, 0.03, 0.9),
    ("xai", "grok-4.7", 2.0, 0.5, 6.0),
    ("xai", "grok-4.6", 2.0, 0.5, 6.0),
    ("xai", "grok-4.5", 2.0, 0.3, 6.0),
    ("xai", "grok-4.3", 1.25, 0.2, 2.5),
    ("xai", "grok-4.20", 1.25, 0.2, 2.5),
    ("xai", "grok-build-0.1", 1.0, 0.2, 2.0),
    ("xai", "grok-code-fast-1", 1.0, 0.2, 2.0),
    ("xai", "grok-4", 3.0, 0.75, 15.0),
    ("moonshot", "kimi-k3.1-pro", 2.0, 0.2, 10.0),
    ("moonshot", "kimi-k3", 3.0, 0.3, 15.0),
    ("moonshot", "kimi-k2.7-code", 0.95, 0.19, 4.0),
    ("moonshot", "kimi-k2.6", 0.95, 0.16, 4.0),
    ("moonshot", "kimi-k2.5", 0.6, 0.1, 3.0),
    ("qwen", "qwen3.8-max", 2.0, 0.25, 6.0),
    ("qwen", "qwen3.8-flash", 0.15, 0.016, 0.47),
    ("qwen", "qwen3.7-max", 2.5, 0.5, 7.5),
];

/// What a model takes, as far as the table knows.
pub fn known(provider: &str, name: &str) -> Option<Price> {
    let is_same = |row: &&Row| row.0 == provider && name.strip_prefix(row.1).is_some_and(is_edition);
    let (_, _, input, cached, output) = PRICES.iter().find(is_same)?;
    // Anthropic alone takes more for what it writes to its cache.
    let written = (provider == "anthropic").then_some(input * 1.25);
    Price::per_million(*input, *output, Some(*cached), written)
}

/// Whether the end of a name says no more than when the model was made.
fn is_edition(end: &str) -> bool {
    let is_date = |date: &str| date.len() >= 4 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    end.is_empty() || end == "-latest" || end.strip_prefix('-').is_some_and(is_date)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_price_is_known_for_the_model_it_is_of() {
        for (provider, name, expected) in [
            ("anthropic", "claude-sonnet-4-6", Some("$3/$15 per million tokens")),
            ("anthropic", "claude-sonnet-4-20250514", Some("$3/$15 per million tokens")),
            ("anthropic", "claude-opus-4-20250514", Some("$15/$75 per million tokens")),
            ("openai", "gpt-5.1-2025-11-13", Some("$1.25/$10 per million tokens")),
            ("openai", "gpt-5-nano", Some("$0.05/$0.4 per million tokens")),
            ("mistral", "devstral-medium-latest", Some("$0.4/$2 per million tokens")),
            ("openai", "gpt-6.1-sol", Some("$2/$10 per million tokens")),
            ("anthropic", "claude-opus-5-5", Some("$4/$20 per million tokens")),
            ("xai", "grok-4.20", Some("$1.25/$2.5 per million tokens")),
            ("openai", "gpt-5.9", None),
            ("openai", "gpt-5.1-pro", None),
            ("ollama", "gpt-5.1", None),
        ] {
            assert_eq!(known(provider, name).map(|price| price.words()).as_deref(), expected, "{name}");
        }
    }

    /// A row that stands there twice, or whose cache costs more than what it saves, is a slip.
    #[test]
    fn every_row_can_be_true() {
        for (at, (provider, name, input, cached, output)) in PRICES.iter().enumerate() {
            assert!(super::super::catalog::provider(provider).is_some(), "{provider}");
            assert!(*cached > 0.0 && cached <= input && input <= output, "{provider}:{name}");
            assert!(PRICES[..at].iter().all(|row| (row.0, row.1) != (*provider, *name)), "{provider}:{name}");
        }
    }

    #[test]
    fn caches_have_prices_of_their_own_and_nothing_overflows() {
        let price = known("anthropic", "claude-sonnet-4-6").unwrap();
        let usage = Usage { input: 1_000, cached: 600, written: 300, output: 10 };
        assert_eq!(price.cost(&usage).0, 100 * 3_000_000 + 600 * 300_000 + 300 * 3_750_000 + 10 * 15_000_000);
        let odd = Usage { input: 1, cached: 5, written: 7, output: 0 };
        assert_eq!(price.cost(&odd).0, 300_000);
        let huge = Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() };
        assert_eq!(price.cost(&huge), Cost(u64::MAX));
        assert_eq!(Price::per_million(f64::NAN, 1.0, None, None), None);
        assert_eq!(Price::per_million(-1.0, 1.0, None, None), None);
        assert_eq!(Price::per_million(1.0, 2.0, None, None).unwrap().cached, 1_000_000);
    }
}
