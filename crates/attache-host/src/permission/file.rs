//! Reading and writing `permissions.toml`.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use attache::model::tool::ToolKind;
use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, Item, Table, Value, value};

use super::rules::{Arguments, Rule, Verdict};
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
    parse(&path.to_string_lossy(), &read(path)?)
}

/// The text of a file; one that is not there is empty.
pub(super) fn read(path: &Path) -> Result<String, RulesError> {
    match store::read(path) {
        Ok(text) => Ok(text.unwrap_or_default()),
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
            "args" => {
                rule.args = match one()?.as_str() {
                    "none" => Arguments::None,
                    "known" => Arguments::Known,
                    "any" => Arguments::Any,
                    _ => return Err(source.wrong(span(), "`args` is `none`, `known` or `any`")),
                };
            }
            "tool" => rule.tools = some()?,
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
    if let Some(example) = examples.iter().find(|example| !rule.fits_match(example)) {
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
    let wrong = |problem| RulesError::Wrong { origin: path.to_string_lossy().into_owned(), problem };
    change(path, heading, |all, document| {
        let mut before = document.trailing().as_str().unwrap_or_default().to_owned();
        for rule in rules {
            rule.check().map_err(|problem| Failure::Rules(wrong(problem)))?;
            // Two who are asked the same at once save it once.
            if !all.iter().any(|other| other.says_the_same(rule)) {
                let mut table = write_rule(rule);
                // What stands at the end of the file, the heading of a new one for example, stays above what is added.
                table.decor_mut().set_prefix(std::mem::take(&mut before) + "\n");
                document.set_trailing("");
                tables_of(document)?.push(table);
                all.push(rule.clone());
            }
        }
        Ok(())
    })
}

/// Takes rules out of a file, each with the comment right above it: those of which their number in the file, from 0, and
/// their words say so. Returns the rules that are left.
pub(super) fn remove(path: &Path, is_meant: impl Fn(usize, &Rule) -> bool) -> Result<Vec<Rule>, RulesError> {
    change(path, "", |all, document| {
        let tables = tables_of(document)?;
        let mut orphaned = String::new();
        let mut index = 0;
        for (number, other) in all.iter().enumerate() {
            let Some(table) = tables.get_mut(index) else { break };
            let before = apart(&orphaned, prefix(table));
            if is_meant(number, other) {
                orphaned = comments_of_others(&before).to_owned();
                tables.remove(index);
            } else {
                table.decor_mut().set_prefix(before);
                orphaned.clear();
                index += 1;
            }
        }
        let rest = document.trailing().as_str().unwrap_or_default();
        let rest = if rest.is_empty() { orphaned } else { apart(&orphaned, rest) };
        document.set_trailing(rest);
        Ok(())
    })
}

/// The comments before a table, except for the lines right above it, which are about it.
fn comments_of_others(before: &str) -> &str {
    let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
    let is_blank = |line: &&str| line.trim().is_empty();
    lines.truncate(lines.iter().rposition(is_blank).unwrap_or_default());
    let last = lines.iter().rposition(|line| !is_blank(line)).map_or(0, |last| last + 1);
    &before[..lines[..last].iter().map(|line| line.len()).sum()]
}

/// Comments and what follows them, with a blank line between so that they do not seem to be about it.
fn apart(comments: &str, rest: &str) -> String {
    let between = if comments.is_empty() || rest.starts_with('\n') { "" } else { "\n" };
    format!("{comments}{between}{rest}")
}

fn prefix(table: &Table) -> &str {
    table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default()
}

fn tables_of(document: &mut DocumentMut) -> Result<&mut ArrayOfTables, Failure> {
    let item = document.entry("rule").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    item.as_array_of_tables_mut().ok_or(Failure::Io(io::ErrorKind::InvalidData.into()))
}

/// Changes a file of rules while nobody else does. Returns the rules that it has then.
fn change(
    path: &Path,
    heading: &str,
    change: impl FnOnce(&mut Vec<Rule>, &mut DocumentMut) -> Result<(), Failure>,
) -> Result<Vec<Rule>, RulesError> {
    let name = path.to_string_lossy();
    let mut all = Vec::new();
    store::change(path, |text| {
        // A file that does not read well is left alone.
        all = parse(&name, text).map_err(Failure::Rules)?;
        let text = if text.is_empty() { heading } else { text };
        let mut document: DocumentMut = text.parse().map_err(|_| Failure::Io(io::ErrorKind::InvalidData.into()))?;
        change(&mut all, &mut document)?;
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

/// Rules as the text of a file.
pub(super) fn write_rules(rules: &[Rule]) -> String {
    let mut document = DocumentMut::new();
    if !rules.is_empty() {
        document.insert("rule", Item::ArrayOfTables(rules.iter().map(write_rule).collect()));
    }
    document.to_string()
}

fn write_rule(rule: &Rule) -> Table {
    let mut table = Table::new();
    table.insert("verdict", value(rule.verdict.as_str()));
    if let Some(agent) = &rule.agent {
        table.insert("agent", value(agent));
    }
    let kinds: Vec<&str> = rule.kinds.iter().map(ToolKind::as_str).collect();
    let lists: [(&str, Vec<&str>); 5] = [
        ("kind", kinds),
        ("path", rule.paths.iter().map(String::as_str).collect()),
        ("command", rule.command.iter().map(String::as_str).collect()),
        ("tool", rule.tools.iter().map(String::as_str).collect()),
        ("not_args", rule.not_args.iter().map(String::as_str).collect()),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            table.insert(key, Item::Value(Value::Array(list.into_iter().collect())));
        }
    }
    if let (Verdict::Allow, Some(args)) = (rule.verdict, rule.args.as_str()) {
        table.insert("args", value(args));
    }
    table
}
