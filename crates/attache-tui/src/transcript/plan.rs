//! What stands beside the conversation: above it what was forgotten, below it plans, agents and what is not known.

use attache_proto::model::plan::{PlanContent, PlanEntry, PlanPriority, PlanStatus};
use attache_proto::model::state::StateUpdate;
use attache_proto::view::{SessionView, Subagent};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::image::counted;
use crate::markdown;
use crate::theme::Theme;
use crate::wrap::{Break, Prefix, clean_line, cut, start_of, wrap};

/// How many steps of a plan are shown.
const MAX_STEPS: usize = 200;

/// How many agents are shown.
const MAX_SUBAGENTS: usize = 20;

/// How many bytes of a plan that is text are shown.
const MAX_TEXT: usize = 16 << 10;

/// The plans as checklists. Of one that is done nothing but its title is left when the turn is over.
pub fn plan_lines(view: &SessionView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for plan in &view.plans {
        match plan {
            PlanContent::Items(plan) => {
                let done = plan.entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
                let title = format!("Plan ({done}/{})", plan.entries.len());
                lines.push(Line::styled(cut(&title, width, theme.is_unicode), theme.accent));
                let is_over = |entry: &PlanEntry| matches!(entry.status, PlanStatus::Completed | PlanStatus::Cancelled);
                if !view.state.is_busy() && plan.entries.iter().all(is_over) {
                    continue;
                }
                for entry in plan.entries.iter().take(MAX_STEPS) {
                    let (sign, style) = match &entry.status {
                        PlanStatus::Pending => ("[ ]", theme.text),
                        PlanStatus::InProgress => ("[>]", theme.accent),
                        PlanStatus::Completed => ("[x]", theme.dim),
                        PlanStatus::Cancelled => ("[-]", theme.dim.add_modifier(Modifier::CROSSED_OUT)),
                        _ => ("[?]", theme.dim),
                    };
                    let priority = match &entry.priority {
                        PlanPriority::High => " (high)".to_owned(),
                        PlanPriority::Medium => String::new(),
                        PlanPriority::Low => " (low)".to_owned(),
                        other => format!(" ({})", clean_line(other.as_str())),
                    };
                    let mark_style = style.remove_modifier(Modifier::CROSSED_OUT);
                    let prefix = Prefix::hanging(vec![Span::styled(format!("{sign} "), mark_style)]);
                    let words = Span::styled(clean_line(&entry.content), style);
                    lines.extend(wrap(&[words, Span::styled(priority, theme.dim)], width, Break::Words, &prefix));
                }
                if plan.entries.len() > MAX_STEPS {
                    let more = counted(plan.entries.len() - MAX_STEPS, "more step");
                    lines.push(Line::styled(format!("{} {more}", theme.sign("…", "...")), theme.dim));
                }
            }
            PlanContent::Markdown(plan) => {
                lines.push(Line::styled(cut("Plan", width, theme.is_unicode), theme.accent));
                lines.extend(markdown::lines(start_of(&plan.content, MAX_TEXT), width, theme));
            }
            PlanContent::File(plan) => {
                let text = format!("Plan: {}", clean_line(&plan.uri));
                lines.push(Line::styled(cut(&text, width, theme.is_unicode), theme.accent));
            }
            _ => lines.push(Line::styled(cut("Plan of an unknown kind", width, theme.is_unicode), theme.dim)),
        }
    }
    lines
}

/// What stands above the first entry.
pub(super) fn top_lines(view: &SessionView, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    if view.omitted == 0 {
        return Vec::new();
    }
    let count = counted(usize::try_from(view.omitted).unwrap_or(usize::MAX), "earlier item");
    let text = format!("{} {count} not kept", theme.sign("…", "..."));
    vec![Line::styled(cut(&text, width, theme.is_unicode), theme.dim)]
}

/// What stands below the last entry.
pub(super) fn bottom_lines(view: &SessionView, width: usize, theme: &Theme, has_plan: bool) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if has_plan {
        lines.extend(plan_lines(view, width, theme));
    }
    lines.extend(view.subagents.values().take(MAX_SUBAGENTS).map(|subagent| subagent_line(subagent, width, theme)));
    if view.subagents.len() > MAX_SUBAGENTS {
        let more = counted(view.subagents.len() - MAX_SUBAGENTS, "more agent");
        lines.push(Line::styled(format!("{} {more}", theme.sign("…", "...")), theme.dim));
    }
    if view.unknown_count > 0 {
        let count = usize::try_from(view.unknown_count).unwrap_or(usize::MAX);
        let kinds = if count == 1 { "of an unknown kind" } else { "of unknown kinds" };
        let text = format!("{} {kinds}", counted(count, "update"));
        lines.push(Line::styled(cut(&text, width, theme.is_unicode), theme.dim));
    }
    if !lines.is_empty() && !view.timeline().is_empty() {
        lines.insert(0, Line::default());
    }
    lines
}

fn subagent_line(subagent: &Subagent, width: usize, theme: &Theme) -> Line<'static> {
    let title = subagent.title.as_deref().or(subagent.description.as_deref());
    let title = clean_line(title.unwrap_or(subagent.session_id.as_str()));
    let (sign, word, style) = match &subagent.state {
        Some(StateUpdate::Running(_)) => (theme.sign("●", "*"), "running", theme.accent),
        Some(StateUpdate::RequiresAction(_)) => ("?", "needs an answer", theme.warning),
        Some(StateUpdate::Idle(state)) if state.error.is_some() => (theme.sign("✗", "x"), "failed", theme.error),
        Some(StateUpdate::Idle(_)) => (theme.sign("✓", "+"), "done", theme.success),
        _ => (theme.sign("○", "o"), "agent", theme.dim),
    };
    let room = width.saturating_sub(word.len() + 5).max(1);
    let spans = [
        Span::styled(format!("{sign} "), style),
        Span::styled(cut(&title, room, theme.is_unicode), theme.text),
        Span::styled(format!(" {} {word}", theme.sign("·", "-")), style),
    ];
    Line::from(crate::wrap::cut_spans(&spans, width))
}
