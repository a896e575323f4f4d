use attache_proto::model::form::{
    BooleanProperty, IntegerProperty, NumberProperty, StringFormat, StringItems, TitledItems,
};

use super::*;

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn send(form: &mut FormDialog) -> Option<FormReply> {
    form.handle_key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL))
}

fn schema() -> ElicitationSchema {
    let fields: Vec<(String, ElicitationProperty)> = vec![
        ("mail".into(), StringProperty::new().title("Mail".to_owned()).format(StringFormat::Email).into()),
        ("ratio".into(), NumberProperty::new().minimum(0.0).maximum(1.0).default(0.5).into()),
        ("count".into(), IntegerProperty::new().minimum(1i64).into()),
        ("sure".into(), BooleanProperty::new().into()),
        ("size".into(), StringProperty::new().enum_values(vec!["small".to_owned(), "large".to_owned()]).into()),
        (
            "color".into(),
            StringProperty::new()
                .one_of(vec![EnumOption::new("#f00", "Red"), EnumOption::new("#00f", "Blue")])
                .default("#00f".to_owned())
                .into(),
        ),
        (
            "days".into(),
            MultiSelectProperty::new(StringItems::new(vec!["mon".to_owned(), "tue".to_owned()])).min_items(1u64).into(),
        ),
        (
            "tags".into(),
            MultiSelectProperty::new(TitledItems::new(vec![EnumOption::new("a", "A"), EnumOption::new("b", "B")]))
                .default(vec!["b".to_owned()])
                .max_items(1u64)
                .into(),
        ),
    ];
    let mut schema = ElicitationSchema::new();
    schema.properties = fields;
    schema.required = Some(vec!["mail".into(), "sure".into(), "days".into()]);
    schema
}

#[test]
fn a_form_is_filled_in_by_keys() {
    let mut form = FormDialog::new("claude", "Tell me more.", &schema());
    assert_eq!(send(&mut form), None, "nobody has seen all of it");
    assert_eq!(form.focus, 2);
    (form.is_read, form.focus) = (true, 0);
    assert_eq!(send(&mut form), None, "what is required is missing");
    assert_eq!(form.focus, 0);
    form.handle_paste("me@example.com\n");
    form.handle_key(key(KeyCode::Enter));
    for code in [KeyCode::Down, KeyCode::Char('4'), KeyCode::Char('2'), KeyCode::Tab, KeyCode::Char('y'), KeyCode::Tab]
    {
        assert_eq!(form.handle_key(key(code)), None);
    }
    form.handle_key(key(KeyCode::Char('l')));
    form.handle_key(key(KeyCode::Tab));
    form.handle_key(key(KeyCode::Left));
    form.handle_key(key(KeyCode::Tab));
    for code in [KeyCode::Right, KeyCode::Char(' '), KeyCode::Tab, KeyCode::Tab, KeyCode::Enter] {
        if let Some(reply) = form.handle_key(key(code)) {
            let text = |text: &str| ElicitationValue::Text(text.into());
            let expected = vec![
                ("mail".into(), text("me@example.com")),
                ("ratio".into(), ElicitationValue::Number(0.5)),
                ("count".into(), ElicitationValue::Integer(42)),
                ("sure".into(), ElicitationValue::Boolean(true)),
                ("size".into(), text("large")),
                ("color".into(), text("#f00")),
                ("days".into(), ElicitationValue::Texts(vec!["tue".into()])),
                ("tags".into(), ElicitationValue::Texts(vec!["b".into()])),
            ];
            assert_eq!(reply, FormReply::Accept(expected));
            return;
        }
    }
    panic!("it was not sent: {form:#?}");
}

#[test]
fn what_is_wrong_is_said_at_its_field() {
    let mut form = FormDialog::new("claude", "Tell me more.", &schema());
    form.is_read = true;
    form.handle_paste("nobody");
    form.handle_key(key(KeyCode::Enter));
    assert_eq!(form.focus, 0, "a field that is wrong is not left by Enter");
    let theme = Theme::new(crate::theme::ColorDepth::None, crate::theme::Background::Dark, true);
    let (lines, ..) = form.lines(60, &theme);
    let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
    assert!(shown.contains(&"  ✗ this has to be an address such as name@example.com".to_owned()), "{shown:#?}");
    for _ in 0..7 {
        form.handle_key(key(KeyCode::Tab));
    }
    form.handle_key(key(KeyCode::Char(' ')));
    send(&mut form);
    assert_eq!(form.fields[7].error.as_deref(), Some("choose at most 1"));
    assert_eq!(form.fields[6].error.as_deref(), Some("choose at least 1"));
}

#[test]
fn a_form_can_be_declined_or_left() {
    let mut form = FormDialog::new("claude", "Tell me more.", &schema());
    assert_eq!(form.handle_key(key(KeyCode::Esc)), Some(FormReply::Cancel));
    form.handle_key(key(KeyCode::Up));
    assert_eq!(form.handle_key(key(KeyCode::Enter)), Some(FormReply::Decline));
    let mut empty = FormDialog::new("claude", "Go on?", &ElicitationSchema::new());
    assert_eq!(empty.handle_key(key(KeyCode::Enter)), Some(FormReply::Decline));
    empty.handle_key(key(KeyCode::Left));
    assert_eq!(empty.handle_key(key(KeyCode::Enter)), Some(FormReply::Accept(Vec::new())));
}

#[test]
fn a_form_that_nobody_would_fill_in_is_too_large() {
    assert!(!FormDialog::is_too_large(&schema()));
    let with = |properties: Vec<(String, ElicitationProperty)>| {
        let mut schema = ElicitationSchema::new();
        schema.properties = properties;
        FormDialog::is_too_large(&schema)
    };
    let text = |title: &str| ElicitationProperty::from(StringProperty::new().title(title.to_owned()));
    assert!(with((0..101).map(|number| (number.to_string(), text("a"))).collect()));
    assert!(with(vec![("a".into(), text(&"a".repeat(1 << 20)))]));
    let many: Vec<String> = (0..1_001).map(|number| number.to_string()).collect();
    assert!(with(vec![("a".into(), StringProperty::new().enum_values(many).into())]));
}
