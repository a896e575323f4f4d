//! HTML as plain text with a little Markdown: headings, lists, links, code.
//!
//! One pass over the text without a tree: pages are hostile, and a parser that builds what browsers build can be made to
//! build far more than it was given, or to nest it deeper than any stack. Here work and memory follow from the length.

use reqwest::Url;

use super::entities;
use super::markup::{Markup, Tag, markup, raw};

/// How long the text can get. Links are written out, so it can be longer than the page.
const LONGEST: usize = 4 << 20;
/// How long a link is at most; longer ones are for machines.
const LONGEST_LINK: usize = 500;
/// How deep lists are indented.
const DEEPEST: usize = 8;

/// Elements whose content is not shown.
const HIDDEN: [&str; 9] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "select", "canvas"];

/// The text of a page.
pub(super) fn to_text(html: &str, base: &Url) -> String {
    let mut writer = Writer::new(base);
    let mut rest = html;
    while !rest.is_empty() && writer.out.len() < LONGEST {
        let Some(start) = rest.find('<') else {
            writer.text(rest);
            break;
        };
        writer.text(&rest[..start]);
        rest = &rest[start..];
        rest = match markup(rest) {
            Markup::None => {
                writer.text("<");
                &rest[1..]
            }
            Markup::Skip(after) => after,
            Markup::End(name, after) => {
                writer.end(&name);
                after
            }
            Markup::Start(tag, after) if tag.name == "title" => {
                let (title, after) = raw(after, "title");
                writer.title(title);
                after
            }
            Markup::Start(tag, after) if HIDDEN.contains(&tag.name.as_str()) => raw(after, &tag.name).1,
            Markup::Start(tag, after) => {
                writer.start(&tag);
                after
            }
        };
    }
    writer.finish()
}

struct Writer<'a> {
    base: &'a Url,
    out: String,
    /// Line ends to write before the next text.
    breaks: usize,
    /// A blank to write before the next text, unless it begins a line.
    space: bool,
    /// How many `pre` are open.
    pre: usize,
    /// The lists that are open: the next number, if they have numbers.
    lists: Vec<Option<u64>>,
    /// Where the open link leads, and where its text begins once it has some.
    link: Option<(String, Option<usize>)>,
}

impl<'a> Writer<'a> {
    fn new(base: &'a Url) -> Self {
        Writer { base, out: String::new(), breaks: 0, space: false, pre: 0, lists: Vec::new(), link: None }
    }

    fn title(&mut self, title: &str) {
        self.block(2);
        self.text("Title: ");
        self.text(title);
        self.block(2);
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag.name.as_str() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.block(2);
                let level = usize::from(tag.name.as_bytes()[1] - b'0');
                self.mark(&"#".repeat(level));
                self.space = true;
            }
            "ul" | "ol" | "menu" => {
                self.block(if self.lists.is_empty() { 2 } else { 1 });
                // Counted no further than anybody can see, so that a page of lists is no list of its own.
                if self.lists.len() < DEEPEST {
                    self.lists.push((tag.name == "ol").then_some(1));
                }
            }
            "li" => {
                self.block(1);
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{indent}{}.", *number - 1)
                    }
                    _ => format!("{indent}-"),
                };
                self.mark(&bullet);
                self.space = true;
            }
            "pre" => {
                self.block(2);
                if self.pre == 0 {
                    self.mark("```\n");
                }
                self.pre += 1;
            }
            "code" if self.pre == 0 => self.mark("`"),
            "br" if self.pre > 0 => self.text("\n"),
            "br" => self.breaks = (self.breaks + 1).min(2),
            "hr" => {
                self.block(2);
                self.mark("---");
                self.block(2);
            }
            "td" | "th" if self.breaks == 0 && !self.out.is_empty() && !self.out.ends_with('\n') => {
                self.mark(" |");
                self.space = true;
            }
            "a" => {
                self.end_link();
                let target = tag.attribute("href").and_then(|href| self.target(&href));
                self.link = target.map(|target| (target, None));
            }
            "img" => {
                if let Some(alt) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text_decoded(&format!("[image: {}]", alt.trim()));
                }
            }
            name => self.boundary(name),
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "a" => self.end_link(),
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" if self.pre > 0 => {
                self.pre -= 1;
                if self.pre == 0 {
                    if !self.out.ends_with('\n') {
                        self.out.push('\n');
                    }
                    self.out.push_str("```");
                    self.block(2);
                }
            }
            // Where it was opened or not: one that is lost does no harm.
            "code" if self.pre == 0 => {
                self.space = false;
                self.mark("`");
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.block(2),
            name => self.boundary(name),
        }
    }

    /// Elements that stand on lines of their own.
    fn boundary(&mut self, name: &str) {
        match name {
            "p" | "blockquote" | "table" | "dl" | "figure" | "article" | "section" | "main" => self.block(2),
            "div" | "header" | "footer" | "nav" | "aside" | "form" | "fieldset" | "address" | "details" | "summary"
            | "tr" | "caption" | "dt" | "dd" | "li" | "body" | "option" | "figcaption" => self.block(1),
            _ => {}
        }
    }

    fn block(&mut self, breaks: usize) {
        if self.pre == 0 {
            self.breaks = self.breaks.max(breaks);
            self.space = false;
        }
    }

    fn text(&mut self, text: &str) {
        if text.contains('&') {
            self.text_decoded(&entities::decode(text));
        } else {
            self.text_decoded(text);
        }
    }

    fn text_decoded(&mut self, text: &str) {
        if self.pre > 0 {
            self.mark(text);
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.space = true;
        }
        let mut words = text.split_whitespace().peekable();
        while let Some(word) = words.next() {
            self.mark(word);
            self.space = words.peek().is_some() || text.ends_with(char::is_whitespace);
        }
    }

    /// Writes text as it is, after the breaks and blanks that are due.
    fn mark(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_line_start = self.out.is_empty() || self.out.ends_with('\n');
        if self.breaks > 0 && !self.out.is_empty() {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            let there = self.out.len() - self.out.trim_end_matches('\n').len();
            self.out.push_str(&"\n".repeat(self.breaks.saturating_sub(there)));
        } else if self.space && !is_line_start {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
        if let Some((_, start @ None)) = &mut self.link {
            *start = Some(self.out.len());
        }
        self.out.push_str(text);
    }

    fn end_link(&mut self) {
        if let Some((target, Some(start))) = self.link.take()
            && self.out.is_char_boundary(start)
        {
            self.out.insert(start, '[');
            self.out.push_str("](");
            self.out.push_str(&target);
            self.out.push(')');
        }
    }

    /// Where a link leads, if that is worth writing down.
    fn target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > LONGEST_LINK {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let is_worth = matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= LONGEST_LINK;
        is_worth.then(|| url.into())
    }

    fn finish(mut self) -> String {
        self.end_link();
        if self.pre > 0 {
            self.out.push_str("\n```");
        }
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::time::{Duration, Instant};

    use attache_testkit::Dice;

    use super::*;

    fn text(html: &str) -> String {
        to_text(html, &Url::parse("https://host.example/dir/page?x").unwrap())
    }

    #[test]
    fn a_page_becomes_text() {
        let rows = [
            ("plain", "plain"),
            ("<p>one\n  two</p><p>three", "one two\n\nthree"),
            ("a<br>b<br><br>c", "a\nb\n\nc"),
            ("<h1>Top</h1>text<h3> Sub </h3>", "# Top\n\ntext\n\n### Sub"),
            ("<ul><li>a<li>b<ol><li>c<li>d</ol></ul>x", "- a\n- b\n  1. c\n  2. d\n\nx"),
            ("see <a href=/x>this <b>link</b></a>.", "see [this link](https://host.example/x)."),
            ("<a href='#here'>here</a> <a href='javascript:x()'>js</a> <a>none</a>", "here js none"),
            ("<a href='?a=1&amp;b=2&copy=3'>q</a>", "[q](https://host.example/dir/page?a=1&b=2&copy=3)"),
            ("<pre>  a\n    b &lt;c&gt;</pre>end", "```\n  a\n    b <c>\n```\n\nend"),
            ("use <code>x = 1</code>, ok", "use `x = 1`, ok"),
            ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "A | B\n1 | 2"),
            ("<img src=x alt='A &amp; B'><img src=y>", "[image: A & B]"),
            ("<title>The\n Title</title><body>x", "Title: The Title\n\nx"),
            ("a<script>if (1 < 2) '</p>'</script>b<style>p{}</STYLE >c<!-- <p> -->d", "abcd"),
            ("a < b && c <3 <", "a < b && c <3 <"),
            ("<!DOCTYPE html><?xml?><html>x</html>", "x"),
            ("<p title='>' data-x=\">\">x</p>", "x"),
            ("never <a href=\"ended", "never"),
            ("<script>never ended", ""),
            ("</p></ul></pre></a></li>x", "x"),
        ];
        for (html, expected) in rows {
            assert_eq!(text(html), expected, "{html}");
        }
    }

    #[test]
    fn hostile_pages_take_no_longer_and_no_more_than_others() {
        let long = format!("<a href=/{}>", "y".repeat(400));
        let pieces = [
            "<div>",
            "<a href='x'>",
            "<b a=1>",
            "<p>",
            "<ul><li>",
            "<table><tr><td>",
            "<",
            "</",
            "<!--",
            "&",
            "&amp",
            "<a b='",
            "<a =",
            "<pre>\n",
            "</a>",
            "<svg>",
            "<br>",
            "<title>",
            long.as_str(),
            "<a href=x>y</a>",
        ];
        let started = Instant::now();
        for piece in pieces {
            let page = piece.repeat((512 << 10) / piece.len());
            let length = text(&page).len();
            assert!(length <= LONGEST + 1024, "{piece} {length}");
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        let nested = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        assert_eq!(text(&nested), "deep");
    }

    #[test]
    fn no_soup_of_tags_makes_it_fall() {
        let pieces = [
            "<",
            ">",
            "/",
            "a",
            "<a href=x>",
            "</a>",
            "<pre>",
            "</pre>",
            " ",
            "\n",
            "é",
            "<li>",
            "<ul>",
            "</ul>",
            "=",
            "'",
            "\"",
            "&",
            "&lt;",
            "<br>",
            "<td>",
            "<!--",
            "-->",
            "<title>",
            "</title",
            "<code>",
            "<h1>",
            "<img alt=é>",
        ];
        for seed in 0..3000 {
            let mut dice = Dice::new(seed);
            let html: String = (0..dice.below(40)).map(|_| (*dice.pick(&pieces)).to_owned()).collect();
            text(&html);
        }
    }
}
