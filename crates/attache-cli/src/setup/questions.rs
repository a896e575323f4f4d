//! How a person is asked: rows with numbers, or a line to type.

use crate::exit::{Code, Failure};
use crate::tty::Tty;
use crate::visible::one_line;

/// The person at the terminal.
pub(super) struct Person(Tty);

/// A row to choose: a name to type, and a word about it.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) about: String,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Row { name: name.into(), about: about.into() }
    }
}

impl Person {
    /// The person, if there is one who sees what is asked.
    pub(super) fn find() -> Option<Self> {
        let sees = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Tty::open().ok().filter(|_| sees).map(Person)
    }

    /// Has one of the rows chosen, by its number or name. Enter alone takes the first.
    pub(super) async fn choose(&self, question: &str, rows: &[Row]) -> Result<usize, Failure> {
        self.show_rows(question, rows).await?;
        loop {
            let typed = self.line("Number [1]: ").await?;
            match row_of(&typed, rows) {
                Some(row) => return Ok(row),
                None => self.show(&format!("  Expected a number from 1 to {}, or a name.\n", rows.len())).await?,
            }
        }
    }

    /// The same for any number of rows, with spaces or commas between them.
    pub(super) async fn choose_some(&self, question: &str, rows: &[Row]) -> Result<Vec<usize>, Failure> {
        self.show_rows(question, rows).await?;
        loop {
            let typed = self.line("Number, or several [1]: ").await?;
            let words: Vec<&str> = typed.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let words = if words.is_empty() { vec![""] } else { words };
            let chosen: Option<Vec<usize>> = words.iter().map(|word| row_of(word, rows)).collect();
            match chosen {
                Some(chosen) => return Ok(chosen),
                None => self.show(&format!("  Expected numbers from 1 to {}.\n", rows.len())).await?,
            }
        }
    }

    async fn show_rows(&self, question: &str, rows: &[Row]) -> Result<(), Failure> {
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
        let row = |(number, row): (usize, &Row)| {
            let line = format!("{:>4}  {:<width$}  {}", number + 1, one_line(&row.name), one_line(&row.about));
            format!("{}\n", line.trim_end())
        };
        let rows: String = rows.iter().enumerate().map(row).collect();
        self.show(&format!("\n{question}\n{rows}")).await
    }

    /// Has a line typed.
    pub(super) async fn line(&self, question: &str) -> Result<String, Failure> {
        answered(self.0.ask(question).await)
    }

    /// Has a line typed that is not shown.
    pub(super) async fn hidden(&self, question: &str) -> Result<String, Failure> {
        answered(self.0.ask_hidden(question).await)
    }

    pub(super) async fn show(&self, text: &str) -> Result<(), Failure> {
        self.0.show(text).await.map_err(|error| Failure::usage(format!("cannot ask: {error}")))
    }

    /// Asks for a yes; anything else is no.
    pub(super) async fn agrees(&self, question: &str) -> Result<bool, Failure> {
        let answer = self.line(question).await?;
        Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
    }
}

/// The answer, if there is one. The end of input gives up.
fn answered(line: std::io::Result<Option<String>>) -> Result<String, Failure> {
    match line {
        Ok(Some(line)) => Ok(line),
        Ok(None) => Err(Failure::new(Code::Agent, "no answer, so nothing was changed")),
        Err(error) => Err(Failure::usage(format!("cannot ask: {error}"))),
    }
}

fn row_of(typed: &str, rows: &[Row]) -> Option<usize> {
    let typed = if typed.is_empty() { "1" } else { typed };
    let by_number =
        typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|row| *row < rows.len());
    by_number.or_else(|| rows.iter().position(|row| row.name == typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_named_by_its_number_or_name() {
        let rows = [Row::new("ollama", ""), Row::new("offline", "")];
        for (typed, expected) in
            [("", Some(0)), ("2", Some(1)), ("offline", Some(1)), ("0", None), ("3", None), ("off", None), ("-1", None)]
        {
            assert_eq!(row_of(typed, &rows), expected, "{typed}");
        }
    }
}
