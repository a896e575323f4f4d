//! Skills: told by their description, opened by name, and none from a project that is not trusted.

use std::os::unix::fs::symlink;

use crate::scripted;
use crate::support::{Person, World, check};

const RELEASE: &str = "---\nname: release\ndescription: How to make a release\n---\n1. Run the tests.\n";

async fn told(world: &World) -> (String, Vec<String>) {
    world.turn(Person::new(), "say hello").await;
    let request = world.model().requests().pop().unwrap();
    (request.system(), request.tool_names())
}

#[tokio::test]
async fn skills_of_the_persons_own_and_of_a_trusted_project_are_told_and_opened() {
    let world = scripted().await;
    world.put_at("config/skills/release/SKILL.md", RELEASE);
    world.put_at("config/skills/release/deep/list.md", "- one\n");
    world.put_at("config/secret", "precious");
    symlink("../../secret", world.root.join("config/skills/release/link")).unwrap();
    world.put(".attache/skills/style/SKILL.md", "---\ndescription: How to write\n---\nPlainly.\n");
    world.put(".attache/skills/style/words.txt", "use, not utilise\n");
    world.trust();
    let (system, tools) = told(&world).await;
    assert!(system.contains("- `release`: How to make a release\n- `style`: How to write\n"), "{system}");
    assert!(tools.contains(&"open_skill".to_owned()));
    let mut chat = world.open(Person::new()).await;
    let seen = chat
        .turn(
            "call open_skill {\"name\":\"release\"}\nand open_skill {\"name\":\"style\"}\n\
             call open_skill {\"name\":\"release\",\"file\":\"deep/list.md\"}\n\
             call open_skill {\"name\":\"style\",\"file\":\"words.txt\"}\n\
             call open_skill {\"name\":\"release\",\"file\":\"link\"}\n\
             call open_skill {\"name\":\"release\",\"file\":\"../../secret\"}\n\
             call open_skill {\"name\":\"none\"}",
        )
        .await;
    assert!(!seen.contains("permission"), "nobody is asked: {seen}");
    check(
        &world.results().join("\n"),
        r#"
        Skill `release`: How to make a release

        1. Run the tests.

        Files beside it, to open with `file`:
        - deep/list.md

        Skill `style`: How to write

        Plainly.

        Files beside it, to open with `file`:
        - words.txt

        - one

        use, not utilise

        error: the skill has no such file
        hint: open it without `file` to see which it has
        error: the skill has no such file
        hint: open it without `file` to see which it has
        error: there is no such skill
        hint: there are release, style
        "#,
    );
    assert!(chat.turn("/status").await.contains("- Skills: release, style"));
}

#[tokio::test]
async fn a_project_that_is_not_trusted_brings_no_skills() {
    let world = scripted().await;
    world.put(".attache/skills/release/SKILL.md", RELEASE);
    let (system, tools) = told(&world).await;
    assert!(!system.contains("How to make a release"), "{system}");
    assert!(!tools.contains(&"open_skill".to_owned()), "a tool for nothing is not offered");
    let seen = world.turn(Person::new(), "call open_skill {\"name\":\"release\"}").await;
    assert!(seen.contains("there is no tool of that name"), "{seen}");
}

#[tokio::test]
async fn a_skill_that_is_a_link_out_of_the_project_makes_it_untrustable() {
    let world = scripted().await;
    world.put_at("outside.md", RELEASE);
    world.put(".attache/skills/plain/SKILL.md", RELEASE);
    world.trust();
    world.put(".attache/skills/linked/other.md", "x");
    symlink("../../../../outside.md", world.project().join(".attache/skills/linked/SKILL.md")).unwrap();
    let seen = world.turn(Person::new(), "say hello").await;
    assert!(seen.contains("has no effect"), "{seen}");
    let request = world.model().requests().pop().unwrap();
    assert!(!request.system().contains("How to make a release"));
}

#[tokio::test]
async fn a_skill_with_a_mistake_is_named_and_the_others_are_there() {
    let world = scripted().await;
    world.put_at("config/skills/bad/SKILL.md", "no head");
    world.put_at("config/skills/release/SKILL.md", RELEASE);
    let mut chat = world.open(Person { news: true, ..Person::new() }).await;
    let seen = chat.turn("say hello").await;
    assert!(seen.contains("skill `bad` of your settings: `SKILL.md` does not begin with"), "{seen}");
    assert!(world.model().requests()[0].system().contains("`release`"));
}
