//! Every tool, in every dialect.

use serde_json::json;

use attache_testkit::model_server::Answer;

use crate::support::{DIALECTS, Person, World, check};

#[tokio::test]
async fn a_file_is_read() {
    for protocol in DIALECTS {
        let world = World::answering(vec![
            Answer::text("I look.").thought("Hm.").call("read_file", json!({"path": "a.txt"})),
            Answer::text("It says hello."),
        ])
        .await;
        world.put("a.txt", "hello\n");
        let seen = world.turn(Person::at(protocol), "what is in a.txt?").await;
        check(
            &seen,
            r#"
            thought Hm.
            text I look.
            tool read_file "Read `a.txt`" read: pending → in_progress → completed
              at ~/a.txt
            usage
            text It says hello.
            usage
            stop end_turn
            "#,
        );
    }
}
