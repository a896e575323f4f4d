//! What composer, dialogs, lists and status look like, cell by cell, and that no key breaks them. `BLESS=1` takes what
//! there is for right.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use attache_host::permission::{Change, Question};
use attache_proto::model::auth::{AgentAuthMethod, AuthMethod, TerminalAuthMethod};
use attache_proto::model::command::{AvailableCommand, Command, TextInput};
use attache_proto::model::config::{
    ConfigCategory, ConfigGroup, ConfigKind, ConfigOption, ConfigSelect, ConfigSwitch, ConfigValue, ConfigValues,
};
use attache_proto::model::form::{
    BooleanProperty, ElicitationProperty, ElicitationSchema, EnumOption, IntegerProperty, MultiSelectProperty,
    NumberProperty, StringFormat, StringItems, StringProperty,
};
use attache_proto::model::mcp::EnvVariable;
use attache_proto::model::permission::{PermissionOption, PermissionOptionKind};
use attache_proto::model::session::Mode;
use attache_testkit::Dice;
use attache_tui::composer::{Attachment, AttachmentSource, Completion, Composer};
use attache_tui::dialog::{
    ConfirmDialog, FormDialog, HelpDialog, LoginDialog, LoginReply, OptionsDialog, OptionsReply, PermissionDialog,
    PermissionReply, TextDialog, TextReply, UrlDialog, next_mode,
};
use attache_tui::keymap::{Context, KeyMap};
use attache_tui::picker::{Item, Picker};
use attache_tui::status::{Activity, Level, Status, Tab, TabState, Toasts, WorkPlace, render_tabs};
use attache_tui::theme::{Background, ColorDepth, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::{Buffer, CellWidth as _};
use ratatui::layout::Rect;

const LATE: Duration = Duration::from_secs(1);

fn theme() -> Theme {
    Theme::new(ColorDepth::None, Background::Dark, true)
}

fn ascii() -> Theme {
    Theme::new(ColorDepth::None, Background::Dark, false)
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn letter(letter: char) -> KeyEvent {
    key(KeyCode::Char(letter))
}

/// The cells as text, without blanks at the ends of rows.
fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.area.rows() {
        let mut line = String::new();
        let mut skip = 0;
        for at in row.positions() {
            let symbol = buffer[at].symbol();
            let is_harmful = |c: char| c.is_control() || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}');
            assert!(!symbol.contains(is_harmful), "{symbol:?} at {at:?}");
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = symbol.cell_width().saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Draws something at three widths and compares with what was blessed.
#[track_caller]
fn check(name: &str, height: u16, mut draw: impl FnMut(Rect, &mut Buffer)) {
    let mut seen = String::new();
    for width in [40, 80, 120] {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(area, &mut buffer);
        seen.push_str(&format!("--- {width} columns\n{}", text(&buffer)));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/widgets").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, seen).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(seen == kept, "{name} is not as it was; look at it, then BLESS=1\n--- was\n{kept}\n--- is\n{seen}");
}

fn question() -> Question {
    let path = "/home/me/project/src/greeting.rs".to_owned();
    let old = "fn main() {\n    let name = \"wrold\";\n    println!(\"hello {name}\");\n}\n".to_owned();
    Question {
        agent: "claude".into(),
        gist: format!("edit `{path}`"),
        digest: "a1b2c3".into(),
        kinds: vec!["edit".into()],
        commands: Vec::new(),
        cwd: "/home/me/project".into(),
        host: None,
        env: Vec::new(),
        paths: vec![path.clone()],
        named: Vec::new(),
        changes: vec![Change::Texts { path, new: old.replace("wrold", "world"), old: Some(old) }],
        input: None,
        texts: Vec::new(),
        title: Some(
            "Fix the greeting \u{1b}[2Jand everything else that I found on the way to it, which is a lot".into(),
        ),
        description: None,
        reason: "no rule decides this".into(),
        suggestion: vec!["allow edit of `/home/me/project/src/greeting.rs` for the agent `claude`".into()],
    }
}

fn command_question() -> Question {
    Question {
        gist: "run `cargo test --workspace`".into(),
        kinds: vec!["execute".into()],
        commands: vec!["cargo test --workspace".into()],
        env: vec![("RUST_LOG".into(), "debug".to_owned().into())],
        paths: Vec::new(),
        changes: Vec::new(),
        title: None,
        reason: "no rule decides this command, or not all of it".into(),
        suggestion: Vec::new(),
        ..question()
    }
}

fn long_question() -> Question {
    let new: String = (1..=60).map(|number| format!("line {number} 漢字\n")).collect();
    let path = "/home/me/project/docs/long.md".to_owned();
    Question {
        gist: format!("edit `{path}`"),
        paths: vec![path.clone()],
        changes: vec![Change::Texts { path, old: None, new }],
        title: Some("Write the manual".into()),
        ..question()
    }
}

fn options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce),
        PermissionOption::new("always", "Allow, and accept all edits", PermissionOptionKind::AllowAlways),
        PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
    ]
}

fn form() -> FormDialog {
    let mut schema = ElicitationSchema::new().title("Deployment".to_owned());
    schema.properties = vec![
        (
            "mail".into(),
            StringProperty::new()
                .title("Mail".to_owned())
                .description("Where the report goes. \u{202e}evil".to_owned())
                .format(StringFormat::Email)
                .into(),
        ),
        ("ratio".into(), NumberProperty::new().minimum(0.0).maximum(1.0).default(0.5).into()),
        ("count".into(), IntegerProperty::new().title("How many".to_owned()).minimum(1i64).into()),
        ("sure".into(), BooleanProperty::new().title("Are you sure?".to_owned()).into()),
        (
            "place".into(),
            StringProperty::new()
                .one_of(vec![
                    EnumOption::new("eu", "Europe"),
                    EnumOption::new("us", "America"),
                    EnumOption::new("as", "Asia"),
                ])
                .default("eu".to_owned())
                .into(),
        ),
        (
            "days".into(),
            MultiSelectProperty::new(StringItems::new(vec!["monday".to_owned(), "tuesday".to_owned()]))
                .min_items(1u64)
                .into(),
        ),
    ] as Vec<(String, ElicitationProperty)>;
    schema.required = Some(vec!["mail".into(), "sure".into()]);
    FormDialog::new("claude", "Where shall I deploy this?", &schema)
}

fn config() -> Vec<ConfigOption> {
    let value = |id: &str, name: &str| ConfigValue::new(id, name).description(format!("What {name} is good for."));
    let modes = ConfigSelect::new("ask", ConfigValues::Flat(vec![value("ask", "Ask"), value("code", "Code")]));
    let models = ConfigValues::Grouped(vec![
        ConfigGroup::new("fast", "Fast ones", vec![value("haiku", "Haiku")]),
        ConfigGroup::new("strong", "Strong ones", vec![value("opus", "Opus"), value("sonnet", "Sonnet")]),
    ]);
    vec![
        ConfigOption::new("mode", "Mode", ConfigKind::Select(modes)).category(ConfigCategory::Mode),
        ConfigOption::new("model", "Model", ConfigKind::Select(ConfigSelect::new("opus", models)))
            .category(ConfigCategory::Model),
        ConfigOption::new("web", "Web search", ConfigKind::Boolean(ConfigSwitch::new(true)))
            .description("Whether the agent may search the web.".to_owned()),
    ]
}

fn login() -> LoginDialog {
    let methods = vec![
        AuthMethod::Agent(AgentAuthMethod::new("oauth", "Log in with the browser")),
        AuthMethod::Terminal(
            TerminalAuthMethod::new("setup", "Set up in a terminal")
                .args(["setup", "--for", "a b"])
                .env([EnvVariable::new("SETUP_TOKEN", "very secret")]),
        ),
    ];
    let command = vec!["npx".into(), "@agent/cli".into()];
    LoginDialog::new("claude", command, methods, Some("please\nlog in first".into()))
}

fn picker() -> Picker<usize> {
    let items = vec![
        Item::new(0, "attache")
            .detail("built in")
            .preview("The built-in agent.\n\nIt would use the model sonnet.")
            .group("agents"),
        Item::new(1, "claude").detail("Claude Code").preview("Starts claude-agent-acp.").group("agents"),
        Item::new(2, "Fix the parser").detail("claude, 2 hours ago").group("sessions of this directory"),
        Item::new(3, "Write \u{9b}2J docs 漢字").detail("attache, yesterday").group("sessions of this directory"),
    ];
    Picker::new("start with", items).with_new("new session").with_hint("enter open  esc quit").with_delete()
}

fn commands() -> Vec<Completion> {
    Completion::commands(&[
        AvailableCommand::Command(Command::new("review", "Review the changes of this branch")),
        AvailableCommand::Command(Command::new("plan", "Make a plan").input(TextInput::new("what to plan"))),
        AvailableCommand::Command(Command::new("compact", "Compact the conversation")),
    ])
}

fn composer() -> Composer {
    let mut composer = Composer::new();
    composer.set_placeholder("Ask claude, @ for files, / for commands");
    composer.set_history((0..20).map(|number| format!("message {number} of the past")).collect());
    composer
}

fn busy_composer() -> Composer {
    let mut composer = composer();
    for text in ["Then run the tests.", "And commit it\nwith a good message."] {
        composer.insert_text(text);
        assert!(composer.enqueue());
    }
    composer.insert_text("Look at this: ");
    composer.handle_paste(&"a line\n".repeat(120));
    composer.insert_text(" and ");
    composer.attach(Attachment {
        name: "cat.png".into(),
        mime_type: "image/png".into(),
        source: AttachmentSource::File("/home/me/cat.png".into()),
    });
    composer.insert_text(" 漢字 👩\u{200d}💻");
    composer
}

fn status() -> Status {
    Status {
        agent: "claude".into(),
        model: Some("Opus 5".into()),
        mode: Some("Accept edits".into()),
        context: Some((150_000, 200_000)),
        tokens: Some(12_345),
        cost: Some((0.4213, "USD".into())),
        elapsed: Some(Duration::from_secs(83)),
        activity: Some((Activity::Running("cargo test --workspace --all-features".into()), Duration::from_secs(40))),
        location: Some(WorkPlace { path: "crates/attache-tui/src/status.rs".into(), line: Some(120) }),
        queued: 2,
        below: 0,
        hints: vec![
            ("esc".into(), "cancel".into()),
            ("f1".into(), "keys".into()),
            ("ctrl-t".into(), "sessions".into()),
        ],
    }
}

#[test]
fn questions() {
    for (name, question) in [("edit", question()), ("command", command_question()), ("long", long_question())] {
        let mut dialog = PermissionDialog::new(question, options());
        dialog.set_position(1, 3);
        check(&format!("permission-{name}"), 16, |area, buffer| dialog.render(area, buffer, &theme()));
    }
    let mut dialog = PermissionDialog::new(question(), Vec::new()).of_session("Fix the \u{1b}parser");
    check("permission-background-ascii", 12, |area, buffer| dialog.render(area, buffer, &ascii()));
    dialog.handle_key(letter('?'), LATE);
    assert_eq!(dialog.height(80, &theme()), 7 + 2 + 2, "there is room for the whole explanation");
    check("permission-explained", 16, |area, buffer| dialog.render(area, buffer, &theme()));
    dialog.handle_key(letter('x'), LATE);
    dialog.handle_key(letter('r'), LATE);
    dialog.handle_paste("use the\nother file");
    check("permission-reason", 12, |area, buffer| dialog.render(area, buffer, &theme()));
    let reply = dialog.handle_key(key(KeyCode::Enter), LATE);
    assert_eq!(reply, Some(PermissionReply::Deny { reason: Some("use the other file".into()) }));
}

#[test]
fn a_question_swallows_early_keys_and_enter_is_no() {
    let early = Duration::from_millis(499);
    for code in [KeyCode::Char('y'), KeyCode::Char('a'), KeyCode::Char('1'), KeyCode::Enter, KeyCode::Esc] {
        assert_eq!(PermissionDialog::new(question(), options()).handle_key(key(code), early), None, "{code}");
    }
    let reply = |key| {
        let mut dialog = PermissionDialog::new(question(), options());
        // What was never drawn is not allowed.
        let area = Rect::new(0, 0, 80, 24);
        dialog.render(area, &mut Buffer::empty(area), &theme());
        dialog.handle_key(key, LATE)
    };
    assert_eq!(PermissionDialog::new(question(), options()).handle_key(letter('y'), LATE), None);
    use attache_host::permission::Scope;
    for (pressed, expected) in [
        (key(KeyCode::Enter), Some(PermissionReply::Deny { reason: None })),
        (key(KeyCode::Esc), Some(PermissionReply::Deny { reason: None })),
        (letter('y'), Some(PermissionReply::Allow(Scope::Once))),
        (letter('s'), Some(PermissionReply::Allow(Scope::Session))),
        (letter('p'), Some(PermissionReply::Allow(Scope::Project))),
        (letter('a'), Some(PermissionReply::Allow(Scope::Always))),
        (letter('2'), Some(PermissionReply::Option("always".into()))),
        (letter('e'), Some(PermissionReply::OpenPager)),
        (letter('4'), None),
        (letter(' '), None),
        (KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL), None),
        (KeyEvent::new(KeyCode::Char('a'), KeyModifiers::ALT), None),
    ] {
        assert_eq!(reply(pressed), expected, "{pressed:?}");
    }
    let mut dialog = PermissionDialog::new(question(), options());
    dialog.handle_key(letter('r'), LATE);
    dialog.handle_key(letter('y'), LATE);
    dialog.handle_key(key(KeyCode::Esc), LATE);
    assert_eq!(dialog.handle_key(letter('n'), LATE), Some(PermissionReply::Deny { reason: None }));
}

#[test]
fn a_long_question_is_scrolled_above_its_choices() {
    let mut dialog = PermissionDialog::new(long_question(), options());
    let area = Rect::new(0, 0, 80, 14);
    let mut seen = String::new();
    for _ in 0..30 {
        let mut buffer = Buffer::empty(area);
        dialog.render(area, &mut buffer, &theme());
        let shown = text(&buffer);
        assert!(shown.contains("[y] yes") && shown.contains("[1] allows: Allow once"), "{shown}");
        seen.push_str(&shown);
        dialog.handle_key(key(KeyCode::PageDown), LATE);
    }
    for number in 1..=60 {
        assert!(seen.contains(&format!("{number} + line {number} 漢字")), "line {number} was never seen");
    }
}

#[test]
fn dialogs() {
    let mut form = form();
    form.handle_paste("nobody");
    form.handle_key(key(KeyCode::Enter));
    check("form", 22, |area, buffer| form.render(area, buffer, &theme()));
    check("form-small-ascii", 9, |area, buffer| form.render(area, buffer, &ascii()));
    let address = "https://b\u{fc}cher.example/consent?state=0123456789012345678901234567890123456789&next=%2F";
    let mut dialog = UrlDialog::new("claude", "Please sign in \u{1b}]0;x\u{7}", address).unwrap();
    check("url", 12, |area, buffer| dialog.render(area, buffer, &theme()));
    let mut dialog =
        ConfirmDialog::new("delete the session", "`Fix the parser` and all of its messages are deleted.", "delete it");
    check("confirm", 6, |area, buffer| dialog.render(area, buffer, &theme()));
    let mut dialog = HelpDialog::new(&KeyMap::new());
    check("help", 20, |area, buffer| dialog.render(area, buffer, &theme()));
    for typed in "scroll".chars() {
        assert!(!dialog.handle_key(letter(typed)));
    }
    check("help-search", 12, |area, buffer| dialog.render(area, buffer, &theme()));
    let stderr: String = (1..=40).map(|number| format!("\u{1b}[31mstep {number}\u{1b}[0m\tfailed\n")).collect();
    let mut dialog = TextDialog::of_dead_agent("claude ended with status 1", stderr);
    check("dead-agent", 10, |area, buffer| dialog.render(area, buffer, &theme()));
    assert_eq!(dialog.handle_key(letter('r')), Some(TextReply::Restart));
    assert_eq!(TextDialog::new("log", "").handle_key(letter('r')), None);
}

#[test]
fn a_login_in_a_terminal_is_shown_and_asked_about() {
    let mut dialog = login();
    check("login", 9, |area, buffer| dialog.render(area, buffer, &theme()));
    assert_eq!(dialog.handle_key(key(KeyCode::Down), LATE), None);
    assert_eq!(dialog.handle_key(key(KeyCode::Enter), LATE), None);
    check("login-terminal", 8, |area, buffer| dialog.render(area, buffer, &theme()));
    assert_eq!(dialog.handle_key(key(KeyCode::Enter), LATE), None, "Enter alone is no");
    dialog.handle_key(key(KeyCode::Enter), LATE);
    assert_eq!(dialog.handle_key(letter('y'), LATE), None, "nobody has seen it yet");
    check("login-terminal", 8, |area, buffer| dialog.render(area, buffer, &theme()));
    assert!(
        matches!(dialog.handle_key(letter('y'), LATE), Some(LoginReply::Terminal(method)) if method.args.len() == 3)
    );
    let reply = login().handle_key(key(KeyCode::Enter), LATE);
    assert_eq!(reply, Some(LoginReply::Authenticate("oauth".into())));
    assert_eq!(login().handle_key(key(KeyCode::Esc), LATE), Some(LoginReply::Closed));
}

#[test]
fn options_of_both_protocols_are_one_menu() {
    let mut dialog = OptionsDialog::new(&config(), &[], None);
    check("options", 8, |area, buffer| dialog.render(area, buffer, &theme()));
    dialog.handle_key(key(KeyCode::Down));
    assert_eq!(dialog.handle_key(key(KeyCode::Enter)), None);
    check("options-models", 9, |area, buffer| dialog.render(area, buffer, &theme()));
    dialog.handle_key(key(KeyCode::Down));
    let set = OptionsReply::Set { id: "model".into(), value: "sonnet".into() };
    assert_eq!(dialog.handle_key(key(KeyCode::Enter)), Some(set.clone()));
    dialog.handle_key(key(KeyCode::Down));
    let switch = OptionsReply::Set { id: "web".into(), value: false.into() };
    assert_eq!(dialog.handle_key(key(KeyCode::Enter)), Some(switch));
    assert_eq!(dialog.handle_key(key(KeyCode::Esc)), Some(OptionsReply::Closed));

    let mut models = OptionsDialog::of_category(&ConfigCategory::Model, &config(), &[], None).unwrap();
    models.handle_key(key(KeyCode::Down));
    assert_eq!(models.handle_key(key(KeyCode::Enter)), Some(set));
    assert!(OptionsDialog::of_category(&ConfigCategory::ThoughtLevel, &config(), &[], None).is_none());

    let modes = [Mode::new("ask", "Ask"), Mode::new("code", "Code")];
    let mut dialog = OptionsDialog::new(&[], &modes, Some(&"ask".into()));
    dialog.handle_key(key(KeyCode::Enter));
    dialog.handle_key(key(KeyCode::Down));
    assert_eq!(dialog.handle_key(key(KeyCode::Enter)), Some(OptionsReply::SetMode("code".into())));
    assert_eq!(
        next_mode(&[], &modes, Some(&"code".into())).map(|(reply, _)| reply),
        Some(OptionsReply::SetMode("ask".into()))
    );
    let code = OptionsReply::Set { id: "mode".into(), value: "code".into() };
    assert_eq!(next_mode(&config(), &modes, Some(&"ask".into())).map(|(reply, _)| reply), Some(code));
    assert_eq!(next_mode(&[], &modes[..1], Some(&"ask".into())), None);
    assert_eq!(next_mode(&[], &[], None), None);
}

#[test]
fn lists() {
    let mut list = picker();
    check("picker", 12, |area, buffer| list.render(area, buffer, &theme()));
    list.handle_paste("pars");
    check("picker-search", 8, |area, buffer| list.render(area, buffer, &ascii()));
    let mut list: Picker<u8> = Picker::new("models", Vec::new()).with_empty("asking the agent");
    check("picker-empty", 6, |area, buffer| list.render(area, buffer, &theme()));
}

#[test]
fn composers() {
    let draw = |composer: &mut Composer, area: Rect, buffer: &mut Buffer, theme: &Theme| {
        let height = composer.height(area.width, area.height);
        let [above, below] = [area.height - height, height];
        composer.render_popup(Rect { height: above, ..area }, buffer, theme);
        composer.render(Rect { y: above, height: below, ..area }, buffer, theme);
    };
    let mut empty = composer();
    check("composer-empty", 6, |area, buffer| draw(&mut empty, area, buffer, &theme()));
    let mut busy = busy_composer();
    check("composer-busy", 24, |area, buffer| draw(&mut busy, area, buffer, &theme()));
    busy.queue.focus();
    check("composer-queue-ascii", 24, |area, buffer| draw(&mut busy, area, buffer, &ascii()));
    let mut completing = composer();
    completing.insert_text("/");
    completing.offer(commands());
    check("composer-commands", 10, |area, buffer| draw(&mut completing, area, buffer, &theme()));
    completing.clear();
    completing.insert_text("see @mai");
    completing.offer(["src/main.rs", "docs/mail.md", "a\u{1b}b/main"].map(Completion::file).into());
    check("composer-files", 10, |area, buffer| draw(&mut completing, area, buffer, &theme()));
    completing.start_history_search();
    for typed in "past 1".chars() {
        completing.handle_key(letter(typed));
    }
    check("composer-search", 14, |area, buffer| draw(&mut completing, area, buffer, &theme()));
}

#[test]
fn states() {
    let tab = |title: &str, state| Tab { title: title.into(), state };
    let tabs = [
        tab("Fix the parser", TabState::Working),
        tab("A very long title of a session that nobody reads to its end", TabState::Idle),
        tab("docs 漢字", TabState::Asking),
        tab("release", TabState::Unread),
        tab("experiment", TabState::Dead),
    ];
    for (name, theme) in [("status", theme()), ("status-ascii", ascii())] {
        check(name, 10, |area, buffer| {
            render_tabs(&tabs, 1, Rect { height: 1, ..area }, buffer, 3, &theme);
            status().render(Rect { y: 8, height: 2, ..area }, buffer, 3, &theme);
            let mut toasts = Toasts::new();
            toasts.push(Level::Info, "copied", Duration::ZERO);
            toasts.push(Level::Warning, format!("the context is {}full", "nearly ".repeat(30)), Duration::ZERO);
            toasts.push(Level::Error, "cannot write the draft\u{1b}[2J", Duration::ZERO);
            toasts.render(Rect { y: 1, height: 7, ..area }, buffer, &theme);
        });
    }
    let activities = [
        Activity::Starting,
        Activity::OpeningSession,
        Activity::Thinking,
        Activity::Answering,
        Activity::Tool("Read \u{1b}files".into()),
        Activity::Asking,
        Activity::Compacting,
        Activity::Cancelling,
        Activity::Retrying(Duration::from_secs(4)),
        Activity::Dead,
        Activity::Other("downloading the agent".into()),
    ];
    check("activities", 11, |area, buffer| {
        for (activity, row) in activities.iter().zip(area.rows()) {
            let status = Status { activity: Some((activity.clone(), Duration::from_secs(12))), ..status() };
            status.render(row, buffer, 0, &theme());
        }
    });
}

/// What happens by chance, and is the same each time.
struct Chance(Dice);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    fn key(&mut self) -> KeyEvent {
        const LETTERS: &[char] = &[
            'a', 'e', 'n', 'y', 'r', '?', '/', '@', ' ', '1', '2', 'z', 'Z', '漢', '\u{301}', '👩', '\u{200d}',
            '\u{202e}', '\u{7}', 'ﾞ',
        ];
        const CODES: &[KeyCode] = &[
            KeyCode::Enter,
            KeyCode::Esc,
            KeyCode::Tab,
            KeyCode::BackTab,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::PageUp,
            KeyCode::PageDown,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::Insert,
            KeyCode::F(1),
            KeyCode::Null,
        ];
        let code = match self.below(3) {
            0 => CODES[self.below(CODES.len())],
            1 => KeyCode::Char(char::from(u8::try_from(97 + self.below(26)).unwrap())),
            _ => KeyCode::Char(LETTERS[self.below(LETTERS.len())]),
        };
        let modifiers = match self.below(6) {
            0 => KeyModifiers::CONTROL,
            1 => KeyModifiers::ALT,
            2 => KeyModifiers::SHIFT,
            _ => KeyModifiers::NONE,
        };
        KeyEvent::new(code, modifiers)
    }

    fn paste(&mut self) -> String {
        const TEXTS: &[&str] =
            &["one", "two\nlines", "\u{1b}[2J\u{202e}x", "漢字\t漢字", "/a.png", "[pasted 20 lines]", "\0\r\r\n", ""];
        match self.below(4) {
            0 => "row\n".repeat(1 + self.below(30)),
            _ => TEXTS[self.below(TEXTS.len())].repeat(1 + self.below(3)),
        }
    }

    fn area(&mut self) -> Rect {
        let (x, y) = (u16::try_from(self.below(3)).unwrap(), u16::try_from(self.below(3)).unwrap());
        let small = self.below(2) == 0;
        let side = |chance: &mut Chance, most| u16::try_from(1 + chance.below(if small { 6 } else { most })).unwrap();
        Rect::new(x, y, side(self, 130), side(self, 40))
    }
}

/// Presses keys and draws at any size; every cell has to be harmless.
fn play(seed: u64, rounds: usize, mut act: impl FnMut(&mut Chance, Rect, &mut Buffer, &Theme)) {
    let mut chance = Chance(Dice::new(seed));
    let themes = [theme(), ascii(), Theme::new(ColorDepth::True, Background::Light, true)];
    for _ in 0..rounds {
        let area = chance.area();
        // The screen may be smaller than what a widget was told: it was resized in between.
        let cut = u16::try_from(chance.below(3)).unwrap();
        let screen = Rect::new(0, 0, (area.right() - cut.min(area.right() - 1)).max(1), area.bottom());
        let mut buffer = Buffer::empty(screen);
        let theme = &themes[chance.below(themes.len())];
        act(&mut chance, area, &mut buffer, theme);
        text(&buffer);
    }
}

#[test]
fn no_key_and_no_size_breaks_a_composer() {
    for seed in 1..20 {
        let mut composer = busy_composer();
        play(seed, 60, |chance, area, buffer, theme| {
            let key = chance.key();
            match chance.below(12) {
                0 => drop(composer.handle_paste(&chance.paste())),
                1 => composer.offer(commands()),
                2 => composer.offer(["src/main.rs", "a b/c", "d/"].map(Completion::file).into()),
                3 => composer.start_history_search(),
                4 => drop(composer.expand_paste()),
                5 => drop(composer.enqueue()),
                6 => composer.queue.focus(),
                7 => drop(composer.recall()),
                8 => composer.insert_newline(),
                9 => {
                    let draft = composer.draft();
                    composer.set_draft(draft);
                }
                _ => {}
            }
            if composer.queue.is_focused() {
                composer.queue.handle_key(key);
            } else {
                composer.handle_key(key);
            }
            KeyMap::new().action(key, Context::Composer);
            composer.height(area.width, area.height);
            composer.render(area, buffer, theme);
            composer.render_popup(area, buffer, theme);
        });
    }
}

#[test]
fn no_key_and_no_size_breaks_a_dialog() {
    for seed in 1..6 {
        let mut permission = [question(), command_question(), long_question()]
            .map(|question| PermissionDialog::new(question, options()));
        let mut form = form();
        let mut url = UrlDialog::new("claude", "sign in", "http://xn--bcher-kva.example/a?b=c").unwrap();
        let mut confirm = ConfirmDialog::new("delete", "it all\nis gone", "delete");
        let mut help = HelpDialog::new(&KeyMap::new());
        let mut stderr = TextDialog::of_dead_agent("dead", "line\n".repeat(50));
        let mut login = login();
        let mut menu = OptionsDialog::new(&config(), &[], None);
        let mut list = picker();
        play(seed, 60, |chance, area, buffer, theme| {
            let key = chance.key();
            let pasted = if chance.below(8) == 0 { chance.paste() } else { String::new() };
            for dialog in &mut permission {
                dialog.handle_key(key, LATE);
                dialog.handle_paste(&pasted);
                dialog.height(area.width, theme);
                dialog.render(area, buffer, theme);
            }
            form.handle_key(key);
            form.handle_paste(&pasted);
            form.render(area, buffer, theme);
            url.handle_key(key, LATE);
            url.render(area, buffer, theme);
            confirm.handle_key(key, LATE);
            confirm.render(area, buffer, theme);
            help.handle_key(key);
            help.render(area, buffer, theme);
            stderr.handle_key(key);
            stderr.render(area, buffer, theme);
            login.handle_key(key, LATE);
            login.render(area, buffer, theme);
            menu.handle_key(key);
            menu.handle_paste(&pasted);
            menu.render(area, buffer, theme);
            list.handle_key(key);
            list.handle_paste(&pasted);
            list.render(area, buffer, theme);
            status().render(area, buffer, 1, theme);
            render_tabs(&[Tab::default()], chance.below(3), area, buffer, 1, theme);
            let mut toasts = Toasts::new();
            toasts.push(Level::Error, "cannot write the draft", Duration::ZERO);
            toasts.render(area, buffer, theme);
        });
    }
}
