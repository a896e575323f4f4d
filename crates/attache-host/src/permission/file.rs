//! Reading and writing `permissions.toml`.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use attache::model::ToolKind;
use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, Item, Table, Value, value};

use super::rules::{Rule, Verdict};
use crate::store;

/// Why a file of rules was refused. Nothing of it applies then.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// It cannot be read or written.
    #[error("cannot use `{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is something wrong in it.
    #[error("`{origin}`: {problem}\nhint: no rule of this file applies until it is right; everything is asked about")]
    Wrong {
        /// The file and the line.
        origin: String,
        /// What is wrong.
        problem: String,
    },
}

/// Where a text comes from, for messages.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn origin(&self, span: Option<Range<usize>>) -> String {
        let before = span.and_then(|span| self.text.get(..span.start));
        match before {
            Some(before) => format!("{}:{}", self.name, before.matches('\n').count() + 1),
            None => self.name.to_owned(),
        }
    }

    fn wrong(&self, span: Option<Range<usize>>, problem: impl Into<String>) -> RulesError {
        RulesError::Wrong { origin: self.origin(span), problem: problem.into() }
    }
}

/// Reads a file; one that is not there has no rules.
pub(super) fn load(path: &Path) -> Result<Vec<Rule>, RulesError> {
    match store::read(path) {
        Ok(text) => parse(&path.to_string_lossy(), &text.unwrap_or_default()),
        Err(error) => Err(RulesError::Io { path: path.to_path_buf(), error }),
    }
}

/// Reads rules, all of them or none. `name` is what messages call the text.
///
/// ```
/// use attache_host::permission::parse_rules;
///
/// let rules = parse_rules("permissions.toml", r#"
///     [[rule]]
///     verdict = "allow"
///     command = ["git", "status"]
///     match = ["git status --short"]
///     not_match = ["git status; rm x", "git status > file"]
/// "#)?;
/// assert_eq!(rules[0].origin, "permissions.toml:2");
/// # Ok::<(), attache_host::permission::RulesError>(())
/// ```
pub fn parse_rules(name: &str, text: &str) -> Result<Vec<Rule>, RulesError> {
    parse(name, text)
}

fn parse(name: &str, text: &str) -> Result<Vec<Rule>, RulesError> {
    let source = Source { name, text };
    let document = Document::parse(text).map_err(|error| source.wrong(error.span(), error.message().trim()))?;
    let mut rules = Vec::new();
    for (key, item) in document.iter() {
        let tables = match item {
            Item::ArrayOfTables(tables) if key == "rule" => tables,
            _ if key == "rule" => return Err(source.wrong(item.span(), "rules are written as `[[rule]]`")),
            _ => return Err(source.wrong(span_of(document.as_table(), key), format!("`{key}` is not known here"))),
        };
        for table in tables {
            rules.push(read_rule(&source, table)?);
        }
    }
    Ok(rules)
}

fn read_rule(source: &Source<'_>, table: &Table) -> Result<Rule, RulesError> {
    let mut verdict = None;
    let mut rule = Rule { origin: source.origin(table.span()), ..Rule::new(Verdict::Ask) };
    let (mut examples, mut others) = (Vec::new(), Vec::new());
    for (key, item) in table {
        let span = || span_of(table, key);
        let one = || item.as_str().map(str::to_owned).ok_or_else(|| source.wrong(span(), format!("`{key}` is a text")));
        let list = || strings(item).ok_or_else(|| source.wrong(span(), format!("`{key}` is a list of texts")));
        let some = || match item.as_str() {
            Some(text) => Ok(vec![text.to_owned()]),
            None => list(),
        };
        match key {
            "verdict" => {
                verdict = Some(match one()?.as_str() {
                    "allow" => Verdict::Allow,
                    "ask" => Verdict::Ask,
                    "deny" => Verdict::Deny,
                    _ => return Err(source.wrong(span(), "`verdict` is `allow`, `ask` or `deny`")),
                });
            }
            "agent" => rule.agent = Some(one()?),
            "kind" => {
                for name in some()? {
                    let kind = ToolKind::from(name.as_str());
                    if matches!(kind, ToolKind::Other(_)) {
                        return Err(source.wrong(span(), format!("`{name}` is not a kind of tool call")));
                    }
                    rule.kinds.push(kind);
                }
            }
            "path" => rule.paths = some()?,
            // A text would invite to write a line, which is not what is compared.
            "command" => rule.command = list()?,
            "not_args" => rule.not_args = list()?,
            "match" => examples = list()?,
            "not_match" => others = list()?,
            _ => return Err(source.wrong(span(), format!("`{key}` is not known in a rule"))),
        }
        // An empty list would make the rule be about everything.
        if item.as_array().is_some_and(Array::is_empty) {
            return Err(source.wrong(span(), format!("`{key}` is empty")));
        }
    }
    rule.verdict = verdict.ok_or_else(|| source.wrong(table.span(), "the rule has no `verdict`"))?;
    rule.check().map_err(|problem| source.wrong(table.span(), problem))?;
    if let Some(example) = examples.iter().find(|example| !rule.fits_example(example)) {
        return Err(source.wrong(table.span(), format!("the rule does not match its example `{example}`")));
    }
    if let Some(example) = others.iter().find(|example| rule.fits_example(example)) {
        return Err(source.wrong(table.span(), format!("the rule matches `{example}`, which it is not to")));
    }
    Ok(rule)
}

fn span_of(table: &Table, key: &str) -> Option<Range<usize>> {
    table.key(key).and_then(toml_edit::Key::span)
}

fn strings(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Adds rules to a file and leaves the rest of it as it is. `heading` begins a file that is new. Returns all its rules.
pub(super) fn append(path: &Path, rules: &[Rule], heading: &str) -> Result<Vec<Rule>, RulesError> {
    let name = path.to_string_lossy();
    let mut all = Vec::new();
    store::change(path, |text| {
        // A file that does not read well is not made longer.
        all = parse(&name, text).map_err(Failure::Rules)?;
        let text = if text.is_empty() { heading } else { text };
        let mut document: DocumentMut = text.parse().map_err(|_| Failure::Io(io::ErrorKind::InvalidData.into()))?;
        let item = document.entry("rule").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = item.as_array_of_tables_mut().ok_or(Failure::Io(io::ErrorKind::InvalidData.into()))?;
        for rule in rules {
            rule.check().map_err(|problem| Failure::Rules(RulesError::Wrong { origin: name.to_string(), problem }))?;
            let same = |other: &Rule| {
                Rule { origin: String::new(), ..other.clone() } == Rule { origin: String::new(), ..rule.clone() }
            };
            // Two who are asked the same at once save it once.
            if !all.iter().any(same) {
                tables.push(write_rule(rule));
                all.push(rule.clone());
            }
        }
        let text = document.to_string();
        all = parse(&name, &text).map_err(Failure::Rules)?;
        Ok(text)
    })
    .map_err(|failure| match failure {
        Failure::Rules(error) => error,
        Failure::Io(error) => RulesError::Io { path: path.to_path_buf(), error },
    })?;
    Ok(all)
}

enum Failure {
    Rules(RulesError),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

fn write_rule(rule: &Rule) -> Table {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    table.insert("verdict", value(rule.verdict.as_str()));
    if let Some(agent) = &rule.agent {
        table.insert("agent", value(agent));
    }
    let kinds: Vec<&str> = rule.kinds.iter().map(ToolKind::as_str).collect();
    let lists: [(&str, Vec<&str>); 4] = [
        ("kind", kinds),
        ("path", rule.paths.iter().map(String::as_str).collect()),
        ("command", rule.command.iter().map(String::as_str).collect()),
        ("not_args", rule.not_args.iter().map(String::as_str).collect()),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            table.insert(key, Item::Value(Value::Array(list.into_iter().collect())));
        }
    }
    table
}
