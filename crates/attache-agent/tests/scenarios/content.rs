//! What a prompt can hold, what the model is told of it, and what the agent says that it takes.

use attache::model::content::{
    AudioContent, BlobResource, ContentBlock, EmbeddedResource, ImageContent, ResourceContents, ResourceLink,
    TextResource,
};
use attache_agent::ModelFacts;
use attache_testkit::model_server::Answer;

use crate::support::{DIALECTS, Person, World, check};

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn facts(images: bool, audio: bool) -> ModelFacts {
    ModelFacts { images: Some(images), audio: Some(audio), ..ModelFacts::default() }
}

#[tokio::test]
async fn links_and_embedded_texts_reach_the_model() {
    for protocol in DIALECTS {
        let world = World::answering(vec![Answer::text("I see.")]).await;
        let mut chat = world.open(Person::at(protocol)).await;
        let uri = format!("file://{}/with%20space.txt", world.project().display());
        let blocks = vec![
            ContentBlock::text("Look at these:"),
            ResourceLink::new("with space.txt", uri).into(),
            ResourceLink::new("page", "https://example.com/a%20b").into(),
            EmbeddedResource::new(ResourceContents::Text(TextResource::new("line one\nline two", "file:///x/y.rs")))
                .into(),
            EmbeddedResource::new(ResourceContents::Blob(BlobResource::new("AAAA", "file:///x/y.bin"))).into(),
        ];
        check(&chat.turn(blocks).await, "text I see.\nusage\nstop end_turn");
        let request = &world.model().requests()[0];
        let text = request.body["messages"].to_string();
        let texts: Vec<String> = request.texts();
        check(
            &texts.join("\n").replace(world.root.to_str().unwrap(), "$WORLD"),
            r#"
            Look at these:

            <link>$WORLD/project/with space.txt</link> (the person points to it; read it if you need it)

            <link>https://example.com/a%20b</link> (the person points to it; read it if you need it)

            <resource uri="file:///x/y.rs">
            line one
            line two
            </resource>

            <resource uri="file:///x/y.bin"/> (data that you cannot read)
            "#,
        );
        assert!(!text.contains("AAAA"), "{text}");
    }
}

#[tokio::test]
async fn a_model_that_sees_is_shown_images() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        for protocol in DIALECTS {
            let mut world = World::of(model, vec![Answer::text("A pixel.")]).await;
            world.config.models.insert(model.into(), facts(true, false));
            let mut chat = world.open(Person::at(protocol)).await;
            let blocks = vec![ContentBlock::text("What is this?"), ImageContent::new(PNG, "image/png").into()];
            check(&chat.turn(blocks).await, "text A pixel.\nusage\nstop end_turn");
            let body = world.model().requests()[0].body.to_string();
            assert!(body.contains(PNG), "{model}: {body}");
        }
    }
}

#[tokio::test]
async fn a_model_that_hears_is_given_audio() {
    for model in ["openai:gpt-5.1", "gemini:gemini-2.5-flash"] {
        let mut world = World::of(model, vec![Answer::text("A beep.")]).await;
        world.config.models.insert(model.into(), facts(false, true));
        let mut chat = world.open(Person::new()).await;
        let blocks = vec![ContentBlock::text("What is this?"), AudioContent::new("UklGRg==", "audio/wav").into()];
        check(&chat.turn(blocks).await, "text A beep.\nusage\nstop end_turn");
        let body = world.model().requests()[0].body.to_string();
        assert!(body.contains("UklGRg=="), "{model}: {body}");
    }
}

#[tokio::test]
async fn what_is_offered_follows_from_the_model() {
    for (images, audio) in [(false, false), (true, false), (false, true), (true, true)] {
        for protocol in DIALECTS {
            let mut world = World::of("openai:any", vec![Answer::text("Yes.")]).await;
            world.config.models.insert("openai:any".into(), facts(images, audio));
            let mut chat = world.open(Person::at(protocol)).await;
            let session = chat.connection.capabilities().session.clone().unwrap();
            assert_eq!((session.prompt.image.is_some(), session.prompt.audio.is_some()), (images, audio));
            assert!(session.prompt.embedded_context.is_some());
            let sent = |seen: String| !seen.starts_with("not sent");
            assert_eq!(sent(chat.turn(ContentBlock::from(ImageContent::new(PNG, "image/png"))).await), images);
            assert_eq!(sent(chat.turn(ContentBlock::from(AudioContent::new("UklGRg==", "audio/wav"))).await), audio);
        }
    }
    let chat = World::offline().connect(Person::new()).await;
    let session = chat.connection.capabilities().session.clone().unwrap();
    assert!(session.prompt.image.is_none() && session.prompt.audio.is_none(), "rules see nothing");
}

/// A client that was told of a seeing model may send images after the person chose another.
#[tokio::test]
async fn a_model_that_does_not_see_is_told_that_there_was_an_image() {
    let mut world = World::of("openai:seeing", vec![Answer::text("Yes.")]).await;
    world.config.models.insert("openai:seeing".into(), facts(true, true));
    let mut chat = world.open(Person::new()).await;
    chat.set("model", "offline:rules").await;
    let blocks = vec![ContentBlock::text("help"), ImageContent::new(PNG, "image/png").into()];
    let seen = chat.turn(blocks).await;
    assert!(seen.ends_with("stop end_turn"), "{seen}");
    assert!(world.model().requests().is_empty());
    // The image was not kept as one, so the seeing model is told the same.
    chat.set("model", "openai:seeing").await;
    chat.turn("And now?").await;
    let body = world.model().requests()[0].body.to_string();
    assert!(body.contains("you cannot see it") && !body.contains(PNG), "{body}");
}

#[tokio::test]
async fn instructions_of_the_person_and_the_project_reach_the_model() {
    for model in ["openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "gemini:gemini-2.5-flash"] {
        let world = World::of(model, vec![Answer::text("Yes."), Answer::text("Yes.")]).await;
        world.put_at("config/AGENTS.md", "Answer in verse.\n");
        world.put_at("AGENTS.md", "Not a part of the repository.\n");
        world.put(".git/HEAD", "ref: refs/heads/main\n");
        world.put("AGENTS.md", "Use tabs.\n");
        world.put("inner/AGENTS.md", "Use spaces here.\n");
        let mut chat = world.connect(Person::new()).await;
        chat.open(&world.project().join("inner")).await;
        chat.turn("hi").await;
        let system = world.model().requests()[0].system();
        let places: Vec<Option<usize>> =
            ["Use tabs.", "Use spaces here.", "Answer in verse."].iter().map(|text| system.find(text)).collect();
        assert!(places[0].is_some() && places[0] < places[1] && places[1] < places[2], "{system}");
        assert!(!system.contains("Not a part"), "{system}");
        // Changed between turns, changed in the next request.
        world.put("inner/AGENTS.md", "Use both.\n");
        chat.turn("hi").await;
        assert!(world.model().requests()[1].system().contains("Use both."));
    }
}
