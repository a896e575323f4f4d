use super::*;
use crate::theme::{Background, ColorDepth};

fn theme() -> Theme {
    Theme::new(ColorDepth::None, Background::Dark, true)
}

#[test]
fn numbers_are_as_people_read_them() {
    for (seconds, words) in [(0, "0 s"), (59, "59 s"), (125, "2 min 5 s"), (3_780, "1 h 3 min")] {
        assert_eq!(duration(Duration::from_secs(seconds)), words);
    }
    for (count, words) in
        [(950, "950"), (1_000, "1k"), (12_345, "12.3k"), (1_250_000, "1.2M"), (u64::MAX, "18446744073.7G")]
    {
        assert_eq!(thousands(count), words);
    }
    for (amount, currency, words) in
        [(1.5, "USD", "$1.50"), (0.0123, "EUR", "0.0123 EUR"), (3.0, "credits", "3.00 credits")]
    {
        assert_eq!(cost(amount, currency), words);
    }
}

#[test]
fn the_most_important_stays() {
    let status = Status {
        agent: "claude".into(),
        model: Some("sonnet".into()),
        mode: Some("plan".into()),
        context: Some((50, 100)),
        cost: Some((0.5, "USD".into())),
        tokens: Some(1_500),
        elapsed: Some(Duration::from_secs(70)),
        activity: Some((Activity::Running("cargo test --all".into()), Duration::from_secs(40))),
        hints: vec![("esc".into(), "cancel".into()), ("f1".into(), "help".into())],
        ..Status::default()
    };
    let line = |width| status.session_line(width, &theme()).to_string();
    assert_eq!(line(80), "claude · sonnet · plan · ████░░░░ 50% of 100 · $0.50 · 1.5k tokens · 1 min 10 s");
    assert_eq!(line(50), "claude · sonnet · plan · ████░░░░ 50% of 100");
    assert_eq!(line(24), "claude · sonnet · plan");
    assert_eq!(line(6), "plan");
    assert_eq!(line(3), "pl…");
    let line = |width| status.activity_line(width, 0, &theme()).to_string();
    assert_eq!(line(60), "⠋ running `cargo test --all` 40 s · esc cancel · f1 help");
    assert_eq!(line(45), "⠋ running `cargo test --all` 40 s · f1 help");
    assert_eq!(line(20), "⠋ running `car… 40 s", "the time is always told");
}

#[test]
fn a_session_tells_about_itself() {
    use attache_proto::model::config::{ConfigSelect, ConfigValue};
    use attache_proto::model::session::{Mode, ModeState};
    use attache_proto::model::update::{Cost, SessionUpdate, UsageUpdate};

    let mut view = SessionView::new();
    view.apply_modes(&ModeState::new("ask", vec![Mode::new("ask", "Ask first")]));
    let models = ConfigSelect::new("big", vec![ConfigValue::new("big", "Big one")]);
    let model = ConfigOption::new("model", "Model", ConfigKind::Select(models)).category(ConfigCategory::Model);
    view.apply_options(vec![model]);
    let usage = UsageUpdate::new(500u64, 1_000u64).cost(Cost::new(0.25, "USD"));
    view.apply(&SessionUpdate::Usage(usage));
    let line = Status::from_view("claude", &view).session_line(80, &theme()).to_string();
    assert_eq!(line, "claude · Big one · Ask first · ████░░░░ 50% of 1k · $0.25");
    assert_eq!(Status::from_view("claude", &SessionView::new()).session_line(80, &theme()).to_string(), "claude");
}

#[test]
fn every_state_of_a_tab_has_a_sign() {
    let states = [TabState::Idle, TabState::Working, TabState::Asking, TabState::Unread, TabState::Dead];
    let tabs: Vec<Tab> = states.iter().map(|state| Tab { title: "a\u{1b}[2J".into(), state: *state }).collect();
    let line = |width, current| tabs_line(&tabs, current, width, 0, &theme()).to_string();
    assert_eq!(line(120, 1), " 1 a\\x1b[2J [⠋ 2 a\\x1b[2J] ? 3 a\\x1b[2J  ● 4 a\\x1b[2J  ✗ 5 a\\x1b[2J ");
    assert_eq!(line(30, 0), "[1 a\\x1b[2J] ?4 ", "a question elsewhere is seen");
    assert_eq!(tabs_line(&[], 3, 10, 0, &theme()).to_string(), "");
}

#[test]
fn news_go_after_a_while() {
    let mut toasts = Toasts::new();
    for second in 0..5 {
        toasts.push(Level::Info, format!("news {second}"), Duration::from_secs(second));
    }
    assert!(!toasts.expire(Duration::from_secs(7)), "the three last ones are kept");
    assert!(toasts.expire(Duration::from_secs(9)));
    assert!(!toasts.is_empty());
    toasts.expire(Duration::from_secs(20));
    assert!(toasts.is_empty());
}
