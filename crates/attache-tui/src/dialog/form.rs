//! A form that the agent asks the person to fill in.

mod check;

use attache_proto::model::elicitation::ElicitationValue;
use attache_proto::model::form::{
    ElicitationProperty, ElicitationSchema, EnumOption, MultiSelectItems, MultiSelectProperty, StringProperty,
};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::scroll::Scroll;
use crate::input::LineInput;
use crate::text::{cut, cut_line, draw, flow, frame, shown, with_dots, wrap_words};
use crate::theme::Theme;

/// How many rows the agent's question has at most, and the words about a field.
const MESSAGE_ROWS: usize = 6;
const DESCRIPTION_ROWS: usize = 3;

/// A form with more than this is not shown: nobody fills it in, and laying it out takes the time of everything else.
const MOST_FIELDS: usize = 100;
const MOST_CHOICES: usize = 1_000;
const MOST_BYTES: usize = 256 << 10;

/// The longest message that is looked at: few rows of it are shown.
const MESSAGE_BYTES: usize = 16 << 10;

/// What the person did.
#[derive(Debug, Clone, PartialEq)]
pub enum FormReply {
    /// Filled it in. All values are as the form asks for.
    Accept(Vec<(String, ElicitationValue)>),
    /// Said no.
    Decline,
    /// Went away.
    Cancel,
}

/// One value to choose.
#[derive(Debug, Clone)]
struct Choice {
    value: String,
    title: String,
}

#[derive(Debug, Clone)]
enum Kind {
    Text(LineInput, Box<StringProperty>),
    Number {
        input: LineInput,
        minimum: Option<f64>,
        maximum: Option<f64>,
    },
    Integer {
        input: LineInput,
        minimum: Option<i64>,
        maximum: Option<i64>,
    },
    Boolean(Option<bool>),
    One {
        choices: Vec<Choice>,
        chosen: Option<usize>,
    },
    Many {
        choices: Vec<Choice>,
        chosen: Vec<bool>,
        cursor: usize,
        least: u64,
        most: Option<u64>,
    },
    /// A field of a kind that we do not know.
    Unknown,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    title: String,
    description: String,
    is_required: bool,
    kind: Kind,
    error: Option<String>,
}

/// A form to fill in. It is checked before it is sent.
#[derive(Debug, Clone)]
pub struct FormDialog {
    agent: String,
    message: String,
    title: Option<String>,
    fields: Vec<Field>,
    session: Option<String>,
    /// The field that has the keys; the two after the last are the buttons.
    focus: usize,
    scroll: Scroll,
    /// Whether all of it has been on the screen at once.
    is_read: bool,
}

impl FormDialog {
    /// A form of an agent, with what the agent says about it.
    pub fn new(agent: impl Into<String>, message: impl Into<String>, schema: &ElicitationSchema) -> Self {
        let required = schema.required.as_deref().unwrap_or_default();
        let fields = schema.properties.iter().map(|(name, property)| {
            let (title, description, kind) = read(property);
            Field {
                name: name.clone(),
                title: title.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| name.clone()),
                description: description.unwrap_or_default(),
                is_required: required.contains(name),
                kind,
                error: None,
            }
        });
        let about = schema.title.iter().chain(&schema.description).cloned().collect::<Vec<_>>().join(": ");
        FormDialog {
            agent: agent.into(),
            message: message.into().chars().take(MESSAGE_BYTES).collect(),
            title: (!about.is_empty()).then_some(about),
            fields: fields.collect(),
            session: None,
            // A form without fields only asks for a yes, and Enter alone is none.
            focus: usize::from(schema.properties.is_empty()),
            scroll: Scroll::default(),
            is_read: false,
        }
    }

    /// Whether a form is too long to be filled in by anybody.
    pub fn is_too_large(schema: &ElicitationSchema) -> bool {
        let about = schema.title.iter().chain(&schema.description).map(String::len).sum::<usize>();
        let (mut bytes, mut all_choices) = (about, 0);
        for (name, property) in schema.properties.iter().take(MOST_FIELDS) {
            let (title, description, kind) = read(property);
            let choices = match &kind {
                Kind::One { choices, .. } | Kind::Many { choices, .. } => choices.as_slice(),
                _ => &[],
            };
            bytes += name.len() + title.map_or(0, |title| title.len()) + description.map_or(0, |text| text.len());
            if let ElicitationProperty::String(text) = property {
                bytes += text.pattern.as_ref().map_or(0, String::len) + text.default.as_ref().map_or(0, String::len);
            }
            bytes += choices.iter().map(|choice| choice.value.len() + choice.title.len()).sum::<usize>();
            all_choices += choices.len();
        }
        schema.properties.len() > MOST_FIELDS || all_choices > MOST_CHOICES || bytes > MOST_BYTES
    }

    /// Names the session, or not if it is the one on the screen.
    pub fn set_session(&mut self, title: Option<String>) {
        self.session = title;
    }

    /// Takes a key in. Enter alone accepts nothing that was not looked at: it goes from field to field.
    pub fn handle_key(&mut self, key: KeyEvent) -> Option<FormReply> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let last = self.fields.len() + 1;
        let is_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Some(FormReply::Cancel),
            KeyCode::Char('c') if is_ctrl => return Some(FormReply::Cancel),
            KeyCode::Char('s') if is_ctrl && (self.is_read || self.focus + 1 >= last) => return self.accept(),
            // Nothing is sent that was not on the screen.
            KeyCode::Char('s') if is_ctrl => self.focus = (self.focus + 2).min(last - 1),
            KeyCode::Up | KeyCode::BackTab => self.focus = self.focus.checked_sub(1).unwrap_or(last),
            KeyCode::Down | KeyCode::Tab => self.focus = if self.focus == last { 0 } else { self.focus + 1 },
            KeyCode::PageUp => self.scroll.by(-5),
            KeyCode::PageDown => self.scroll.by(5),
            KeyCode::Enter if self.focus == last => return Some(FormReply::Decline),
            KeyCode::Enter if self.focus + 1 == last => return self.accept(),
            KeyCode::Enter => {
                if let Some(field) = self.fields.get_mut(self.focus) {
                    field.error = field.value().err();
                    self.focus += usize::from(field.error.is_none());
                }
            }
            KeyCode::Left | KeyCode::Right if self.focus + 1 >= last => {
                self.focus = if self.focus == last { last - 1 } else { last };
            }
            _ => {
                if let Some(field) = self.fields.get_mut(self.focus) {
                    field.handle_key(key);
                }
            }
        }
        None
    }

    /// Takes in text that was pasted.
    pub fn handle_paste(&mut self, text: &str) {
        if let Some(field) = self.fields.get_mut(self.focus) {
            match &mut field.kind {
                Kind::Text(input, _) | Kind::Number { input, .. } | Kind::Integer { input, .. } => {
                    input.handle_paste(text)
                }
                _ => {}
            }
        }
    }

    fn accept(&mut self) -> Option<FormReply> {
        let mut values = Vec::new();
        let mut first_wrong = None;
        for (index, field) in self.fields.iter_mut().enumerate() {
            match field.value() {
                Ok(value) => {
                    field.error = None;
                    values.extend(value.map(|value| (field.name.clone(), value)));
                }
                Err(error) => {
                    field.error = Some(error);
                    first_wrong = first_wrong.or(Some(index));
                }
            }
        }
        match first_wrong {
            Some(index) => {
                self.focus = index;
                None
            }
            None => Some(FormReply::Accept(values)),
        }
    }

    /// The rows, and which of them belong to the field that has the keys.
    fn lines(&self, width: u16, theme: &Theme) -> (Vec<Line<'static>>, (usize, usize), Option<usize>) {
        let room = usize::from(width).max(1);
        let limited = |text: &str, most: usize, room: usize| {
            let mut rows = wrap_words(&shown(text), room);
            if rows.len() > most {
                rows.truncate(most);
                if let Some(row) = rows.last_mut() {
                    *row = with_dots(row, room, theme);
                }
            }
            rows
        };
        // Marked as what it is: a form may say that it is ours, or another agent's.
        let (open, close) = (theme.sign("“", "\""), theme.sign("”", "\""));
        let said = |what: &str, words: &str| format!("{what} {open}{}{close}", shown(words));
        let message = said(&format!("{} says:", shown(&self.agent)), &self.message);
        let mut lines: Vec<Line<'static>> =
            limited(&message, MESSAGE_ROWS, room).into_iter().map(|row| Line::styled(row, theme.thought)).collect();
        if let Some(title) = &self.title {
            let title = said("about its form:", title);
            let rows = limited(&title, DESCRIPTION_ROWS, room);
            lines.extend(rows.into_iter().map(|row| Line::styled(row, theme.thought)));
        }
        let mut focused = (0, 0);
        let mut input_row = None;
        for (index, field) in self.fields.iter().enumerate() {
            let is_focused = index == self.focus;
            let start = lines.len();
            let mark = if is_focused { theme.sign("▸ ", "> ") } else { "  " };
            let star = if field.is_required { " *" } else { "" };
            let title = cut(&shown(&field.title), room.saturating_sub(4), theme);
            let style = if is_focused { theme.accent } else { theme.user };
            lines.push(cut_line(
                &Line::from(vec![Span::styled(mark, style), Span::styled(title + star, style)]),
                room,
                theme,
            ));
            if !field.description.is_empty() {
                let rows = limited(&field.description, DESCRIPTION_ROWS, room.saturating_sub(2));
                lines
                    .extend(rows.into_iter().map(|row| Line::styled(cut(&format!("  {row}"), room, theme), theme.dim)));
            }
            if is_focused {
                input_row = Some(lines.len());
            }
            lines.extend(field.value_lines(is_focused, room, theme));
            if let Some(error) = &field.error {
                let rows = wrap_words(&format!("{} {error}", theme.sign("✗", "!")), room.saturating_sub(2));
                lines.extend(
                    rows.into_iter().map(|row| Line::styled(cut(&format!("  {row}"), room, theme), theme.error)),
                );
            }
            if is_focused {
                focused = (start, lines.len().saturating_sub(1));
            }
        }
        (lines, focused, input_row)
    }

    /// How many rows it would like to have, its frame included.
    pub fn height(&self, width: u16, theme: &Theme) -> u16 {
        u16::try_from(self.lines(width.saturating_sub(4), theme).0.len() + 3).unwrap_or(u16::MAX)
    }

    /// Draws the form.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let mut title = format!("a form of the agent {}", shown(&self.agent));
        if let Some(session) = &self.session {
            title = format!("in the session `{}`, {title}", shown(session));
        }
        let hint = "tab next  space choose  ctrl-s send  esc cancel  * required";
        let inner = frame(&title, hint, area, buffer, theme);
        let count = self.fields.len();
        let button = |index: usize, label: &str| {
            let is_focused = self.focus == index;
            let style = if is_focused { theme.selected } else { theme.accent };
            vec![Span::styled(
                format!("{}{label}{}", if is_focused { ">" } else { "[" }, if is_focused { "<" } else { "]" }),
                style,
            )]
        };
        let buttons =
            flow(vec![button(count, "send"), button(count + 1, "decline")], 2, usize::from(inner.width), theme);
        let rows = u16::try_from(buttons.len()).unwrap_or(1).min(inner.height);
        let page = inner.height - rows;
        let (lines, focused, input_row) = self.lines(inner.width, theme);
        self.scroll.fit(lines.len(), page);
        self.is_read = lines.len() <= usize::from(page);
        if self.focus < count {
            self.scroll.show(focused.0, focused.1);
        }
        let top = self.scroll.top;
        draw(&lines, top, Rect { height: page, ..inner }, buffer);
        draw(&buttons, 0, Rect { y: inner.y + page, height: rows, ..inner }, buffer);
        // The line that is typed into has a cursor.
        let row = input_row.and_then(|row| u16::try_from(row.checked_sub(top)?).ok()).filter(|row| *row < page);
        if let (Some(row), Some(field)) = (row, self.fields.get_mut(self.focus)) {
            let used = 4.min(inner.width);
            let place = Rect { x: inner.x + used, y: inner.y + row, width: inner.width - used, height: 1 };
            match &mut field.kind {
                Kind::Text(input, _) | Kind::Number { input, .. } | Kind::Integer { input, .. } => {
                    input.render(place, buffer, theme);
                }
                _ => {}
            }
        }
    }
}

fn read(property: &ElicitationProperty) -> (Option<String>, Option<String>, Kind) {
    let number = |default: Option<String>| LineInput::new(&default.unwrap_or_default());
    match property {
        ElicitationProperty::String(property) => {
            let kind = match choices_of(property) {
                Some(choices) => {
                    let default = property.default.as_ref();
                    let chosen = choices.iter().position(|choice| Some(&choice.value) == default);
                    Kind::One { choices, chosen }
                }
                None => Kind::Text(LineInput::new(property.default.as_deref().unwrap_or_default()), property.clone()),
            };
            (property.title.clone(), property.description.clone(), kind)
        }
        ElicitationProperty::Number(property) => {
            let input = number(property.default.map(|default| default.to_string()));
            let kind = Kind::Number { input, minimum: property.minimum, maximum: property.maximum };
            (property.title.clone(), property.description.clone(), kind)
        }
        ElicitationProperty::Integer(property) => {
            let input = number(property.default.map(|default| default.to_string()));
            let kind = Kind::Integer { input, minimum: property.minimum, maximum: property.maximum };
            (property.title.clone(), property.description.clone(), kind)
        }
        ElicitationProperty::Boolean(property) => {
            (property.title.clone(), property.description.clone(), Kind::Boolean(property.default))
        }
        ElicitationProperty::Array(property) => (property.title.clone(), property.description.clone(), many(property)),
        _ => (None, Some("a field of an unknown kind, which cannot be filled in here".into()), Kind::Unknown),
    }
}

fn choices_of(property: &StringProperty) -> Option<Vec<Choice>> {
    match (&property.one_of, &property.enum_values) {
        (Some(options), _) => Some(options.iter().map(titled).collect()),
        (None, Some(values)) => Some(values.iter().map(|value| untitled(value)).collect()),
        (None, None) => None,
    }
}

fn titled(option: &EnumOption) -> Choice {
    Choice { value: option.value.clone(), title: option.title.clone() }
}

fn untitled(value: &str) -> Choice {
    Choice { value: value.to_owned(), title: value.to_owned() }
}

fn many(property: &MultiSelectProperty) -> Kind {
    let choices: Vec<Choice> = match &property.items {
        MultiSelectItems::Strings(items) => items.values.iter().map(|value| untitled(value)).collect(),
        MultiSelectItems::Titled(items) => items.options.iter().map(titled).collect(),
        _ => return Kind::Unknown,
    };
    let defaults = property.default.as_deref().unwrap_or_default();
    let chosen = choices.iter().map(|choice| defaults.contains(&choice.value)).collect();
    Kind::Many { choices, chosen, cursor: 0, least: property.min_items.unwrap_or(0), most: property.max_items }
}

impl Field {
    fn handle_key(&mut self, key: KeyEvent) {
        let step = |at: usize, count: usize| match key.code {
            _ if count == 0 => 0,
            KeyCode::Left => at.checked_sub(1).unwrap_or(count - 1),
            _ => (at + 1) % count,
        };
        let is_step = matches!(key.code, KeyCode::Left | KeyCode::Right);
        let is_space = key.code == KeyCode::Char(' ');
        let letter = super::letter(key);
        match &mut self.kind {
            Kind::Text(input, _) | Kind::Number { input, .. } | Kind::Integer { input, .. } => {
                input.handle_key(key);
            }
            Kind::Boolean(chosen) => match letter {
                Some('y') => *chosen = Some(true),
                Some('n') => *chosen = Some(false),
                _ if is_step || is_space => *chosen = Some(!chosen.unwrap_or(false)),
                _ if matches!(key.code, KeyCode::Backspace | KeyCode::Delete) => *chosen = None,
                _ => {}
            },
            Kind::One { choices, chosen } => {
                if (is_step || is_space) && !choices.is_empty() {
                    *chosen = Some(match *chosen {
                        Some(at) => step(at, choices.len()),
                        None if key.code == KeyCode::Left => choices.len() - 1,
                        None => 0,
                    });
                } else if matches!(key.code, KeyCode::Backspace | KeyCode::Delete) {
                    *chosen = None;
                } else if let Some(letter) = letter {
                    // The next value that begins with the letter.
                    let from = chosen.map_or(0, |at| at + 1);
                    let count = choices.len();
                    let begins = |at: &usize| {
                        choices[*at]
                            .title
                            .chars()
                            .next()
                            .is_some_and(|first| first.to_lowercase().eq(letter.to_lowercase()))
                    };
                    *chosen = (from..from + count).map(|at| at % count).find(begins).or(*chosen);
                }
            }
            Kind::Many { choices, chosen, cursor, .. } => {
                if is_step {
                    *cursor = step(*cursor, choices.len());
                } else if is_space && let Some(chosen) = chosen.get_mut(*cursor) {
                    *chosen = !*chosen;
                }
            }
            Kind::Unknown => {}
        }
        self.error = None;
    }

    /// The value, if there is one; or what is wrong with it.
    fn value(&self) -> Result<Option<ElicitationValue>, String> {
        let missing = || if self.is_required { Err("this has to be filled in".to_owned()) } else { Ok(None) };
        match &self.kind {
            Kind::Text(input, property) => {
                let text = input.text();
                if text.is_empty() && !self.is_required {
                    return Ok(None);
                }
                // An empty text may be what is asked for.
                if text.is_empty() && property.min_length.unwrap_or(1) > 0 {
                    return missing();
                }
                check::text(&text, property)?;
                Ok(Some(ElicitationValue::Text(text)))
            }
            Kind::Number { input, minimum, maximum } => match input.text().trim() {
                "" => missing(),
                text => check::number(text, *minimum, *maximum).map(|number| Some(ElicitationValue::Number(number))),
            },
            Kind::Integer { input, minimum, maximum } => match input.text().trim() {
                "" => missing(),
                text => check::integer(text, *minimum, *maximum).map(|number| Some(ElicitationValue::Integer(number))),
            },
            Kind::Boolean(None) => missing(),
            Kind::Boolean(Some(yes)) => Ok(Some(ElicitationValue::Boolean(*yes))),
            Kind::One { choices, chosen } => match chosen.and_then(|at| choices.get(at)) {
                Some(choice) => Ok(Some(ElicitationValue::Text(choice.value.clone()))),
                None => missing(),
            },
            Kind::Many { choices, chosen, least, most, .. } => {
                let values: Vec<String> = choices
                    .iter()
                    .zip(chosen)
                    .filter(|(_, is_chosen)| **is_chosen)
                    .map(|(choice, _)| choice.value.clone())
                    .collect();
                if values.is_empty() && !self.is_required {
                    return Ok(None);
                }
                let count = u64::try_from(values.len()).unwrap_or(u64::MAX);
                match most {
                    Some(most) if count > *most => Err(format!("choose at most {most}")),
                    _ if count < *least => Err(format!("choose at least {least}")),
                    _ => Ok(Some(ElicitationValue::Texts(values))),
                }
            }
            Kind::Unknown => missing(),
        }
    }

    fn value_lines(&self, is_focused: bool, room: usize, theme: &Theme) -> Vec<Line<'static>> {
        let indent = "    ";
        let inside = room.saturating_sub(indent.len()).max(1);
        let choice = |sign: &str, title: &str, is_here: bool| {
            let text = format!("{sign} {}", cut(&shown(title), inside.saturating_sub(4), theme));
            vec![Span::styled(text, if is_here { theme.selected } else { theme.text })]
        };
        let (on, off) = (theme.sign("◉", "(x)"), theme.sign("○", "( )"));
        let pieces = match &self.kind {
            Kind::Text(input, _) | Kind::Number { input, .. } | Kind::Integer { input, .. } => {
                let text = input.text();
                let text = if text.is_empty() { "_".repeat(inside.min(20)) } else { shown(&text) };
                vec![vec![Span::raw(cut(&text, inside, theme))]]
            }
            Kind::Boolean(chosen) => [(true, "yes"), (false, "no")]
                .into_iter()
                .map(|(value, title)| {
                    let is_chosen = *chosen == Some(value);
                    choice(if is_chosen { on } else { off }, title, is_focused && is_chosen)
                })
                .collect(),
            Kind::One { choices, chosen } => {
                let row = |(at, item): (usize, &Choice)| {
                    let is_chosen = *chosen == Some(at);
                    choice(if is_chosen { on } else { off }, &item.title, is_focused && is_chosen)
                };
                choices.iter().enumerate().map(row).collect()
            }
            Kind::Many { choices, chosen, cursor, .. } => {
                let row = |(at, item): (usize, &Choice)| {
                    let is_chosen = chosen.get(at).copied().unwrap_or(false);
                    let sign = if is_chosen { theme.sign("☑", "[x]") } else { theme.sign("☐", "[ ]") };
                    choice(sign, &item.title, is_focused && *cursor == at)
                };
                choices.iter().enumerate().map(row).collect()
            }
            Kind::Unknown => Vec::new(),
        };
        let indented = |line: Line<'static>| {
            let mut spans = vec![Span::raw(indent)];
            spans.extend(line.spans);
            cut_line(&Line::from(spans), room, theme)
        };
        flow(pieces, 2, inside, theme).into_iter().map(indented).collect()
    }
}

#[cfg(test)]
mod tests;
