//! Labels in the text: for what was pasted, and for what goes with the message.

use attache_host::visible::harmless;

use super::message::mention_words;
use super::paste::{self, Pasted};
use super::{Attachment, Chip, ChipContent, Composer, TEXT_LIMIT};
use crate::text::shown;

impl Composer {
    /// Attaches something: a label for it is put at the cursor.
    pub fn attach(&mut self, attachment: Attachment) {
        let number = 1 + self.chips.iter().filter(|chip| matches!(chip.content, ChipContent::Attachment(_))).count();
        let name = shown(&attachment.name).replace(['[', ']'], "");
        let kind = if attachment.mime_type.starts_with("image/") { "image" } else { "file" };
        let label = self.free_label(&|again| match again {
            1 => format!("[{kind} {number}: {name}]"),
            again => format!("[{kind} {number}.{again}: {name}]"),
        });
        self.add_chip(label, ChipContent::Attachment(attachment));
    }

    fn add_chip(&mut self, label: String, content: ChipContent) {
        self.area.insert_str(&label);
        self.chips.push(Chip { label, content });
        self.refresh();
    }

    /// A label that stands nowhere yet.
    fn free_label(&self, label: &dyn Fn(usize) -> String) -> String {
        let text = self.text();
        let is_free = |label: &String| !text.contains(label) && !self.chips.iter().any(|chip| chip.label == *label);
        (1..).map(label).find(is_free).unwrap_or_default()
    }

    /// Takes in text that was pasted.
    pub fn handle_paste(&mut self, text: &str) -> Pasted {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        if self.popup.is_searching() {
            self.popup.query.handle_paste(&text);
            self.refresh();
            return Pasted::Inserted;
        }
        match paste::judge(&text) {
            Pasted::Inserted => {
                self.insert_text(&text);
                self.note_pasted(&text);
            }
            Pasted::Chip => {
                let what = paste::measure(&text);
                let label = self.free_label(&|again| match again {
                    1 => format!("[pasted {what}]"),
                    again => format!("[pasted {what}, {again}]"),
                });
                self.add_chip(label, ChipContent::Paste(text));
                return Pasted::Chip;
            }
            other => return other,
        }
        Pasted::Inserted
    }

    /// Shows the pasted text at the cursor in full, or the last that was pasted. Whether there was one, and room for it.
    pub fn expand_paste(&mut self) -> bool {
        let (row, column) = self.cursor();
        let at_cursor = self.labels_in(row).into_iter().find(|(start, end, _)| (*start..=*end).contains(&column));
        let is_paste = |chip: &Chip| matches!(chip.content, ChipContent::Paste(_));
        let found = at_cursor.map(|(start, end, chip)| (row, start, end, chip)).or_else(|| {
            let rows = (0..self.area.lines().len()).rev();
            rows.flat_map(|row| {
                self.labels_in(row).into_iter().rev().map(move |(start, end, chip)| (row, start, end, chip))
            })
            .find(|(_, _, _, chip)| is_paste(&self.chips[*chip]))
        });
        let Some((row, start, end, chip)) = found else { return false };
        let ChipContent::Paste(text) = &self.chips[chip].content else { return false };
        let text = harmless(text).into_owned();
        if text.len() + self.text().len() > TEXT_LIMIT || !self.replace(row, start, end, &text) {
            return false;
        }
        self.chips.remove(chip);
        self.note_pasted(&text);
        self.refresh();
        true
    }

    /// The text for an external editor: with all that was pasted, and a label for each attachment.
    pub fn text_to_edit(&mut self) -> String {
        let message = self.message();
        for chip in &message.chips {
            if let ChipContent::Paste(text) = &chip.content {
                self.note_pasted(text);
            }
        }
        message.submission().text
    }

    /// Remembers which files a pasted text would name, because it is not to name any.
    fn note_pasted(&mut self, text: &str) {
        self.pasted.extend(mention_words(text).map(String::from));
    }

    /// The labels in a line: where they begin and end, in characters, and their chip.
    fn labels_in(&self, row: usize) -> Vec<(usize, usize, usize)> {
        let Some(line) = self.area.lines().get(row) else { return Vec::new() };
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        for (index, chip) in self.chips.iter().enumerate() {
            if let Some(at) = line.find(&chip.label) {
                let start = line[..at].chars().count();
                found.push((start, start + chip.label.chars().count(), index));
            }
        }
        found.sort_unstable();
        found
    }

    /// Deletes the label next to the cursor as a whole.
    pub(super) fn delete_chip(&mut self, is_before: bool) -> bool {
        let (row, column) = self.cursor();
        let is_next = |label: &(usize, usize, usize)| column == if is_before { label.1 } else { label.0 };
        match self.labels_in(row).into_iter().find(is_next) {
            Some((start, end, _)) => self.replace(row, start, end, ""),
            None => false,
        }
    }

    /// A label is one thing: the cursor stands before or after it.
    pub(super) fn leave_chip(&mut self, before: (usize, usize)) {
        let (row, column) = self.cursor();
        let inside = self.labels_in(row).into_iter().find(|(start, end, _)| *start < column && column < *end);
        if let Some((start, end, _)) = inside {
            let is_forward = before.0 == row && before.1 <= start;
            self.jump(row, if is_forward { end } else { start });
        }
    }
}
