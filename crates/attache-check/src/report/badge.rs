//! The verdict as a badge.

use super::junit::escape;
use super::{Outcome, Report};
use crate::rule::Level;

/// About how wide a character is at 11 pixels, in tenths of a pixel.
const CHARACTER: usize = 66;

impl Report {
    /// The verdict as a badge, in SVG.
    pub fn to_badge(&self) -> String {
        let kept = self.count(|report| report.outcome == Outcome::Kept);
        let tested = self.count(|report| report.outcome != Outcome::NotTested);
        let (colour, word) = match (self.broken(Level::Must), self.broken(Level::Should)) {
            _ if tested == 0 => ("#9f9f9f", "not tested"),
            (0, 0) => ("#3c8c40", "conformant"),
            (0, _) => ("#7a8c2e", "conformant"),
            _ => ("#c0392b", "not conformant"),
        };
        let label = format!(
            "ACP {} {}",
            self.side_name(),
            self.dialects.iter().map(|dialect| format!("v{dialect}")).collect::<Vec<_>>().join(" ")
        );
        let value = format!("{word} {kept}/{tested}");
        let (left, right) = (width(&label), width(&value));
        let total = left + right;
        let text =
            |x: usize, text: &str| format!("<text x=\"{x}\" y=\"14\" text-anchor=\"middle\">{}</text>", escape(text));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"20\" role=\"img\" aria-label=\"{label}: {value}\">\
             <title>{label}: {value}</title>\
             <rect width=\"{left}\" height=\"20\" fill=\"#444\"/><rect x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"{colour}\"/>\
             <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">{}{}</g></svg>\n",
            text(left / 2, &label),
            text(left + right / 2, &value),
        )
    }
}

fn width(text: &str) -> usize {
    text.chars().count() * CHARACTER / 10 + 14
}
