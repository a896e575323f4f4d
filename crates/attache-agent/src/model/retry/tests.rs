//! Which failures are tried again, after how long, and what is seen of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::model::{End, Failure};

/// A model that answers each request with the next script.
struct Scripted {
    info: ModelInfo,
    scripts: Mutex<VecDeque<Vec<Result<Piece, ModelError>>>>,
    /// How long it says nothing before it fails, after it has said these pieces.
    silence: Option<(Vec<Piece>, Duration)>,
}

impl Scripted {
    fn new(scripts: Vec<Vec<Result<Piece, ModelError>>>) -> Self {
        let info = ModelInfo {
            provider: "test".into(),
            name: "test".into(),
            context: 1,
            images: false,
            audio: false,
            thinks: false,
            is_small: false,
            price: None,
        };
        Scripted { info, scripts: Mutex::new(scripts.into()), silence: None }
    }

    fn silent(after: Vec<Piece>, silence: Duration) -> Self {
        Scripted { silence: Some((after, silence)), ..Scripted::new(Vec::new()) }
    }
}

impl Model for Scripted {
    fn info(&self) -> &ModelInfo {
        &self.info
    }
    fn ask(&self, _: Request) -> Reply {
        if let Some((after, silence)) = self.silence.clone() {
            let silent = async move {
                tokio::time::sleep(silence).await;
                Err(ModelError::new(Failure::Server, "it was silent"))
            };
            return stream::iter(after.into_iter().map(Ok)).chain(stream::once(silent)).boxed();
        }
        let script = self.scripts.lock().unwrap().pop_front().unwrap();
        stream::iter(script).boxed()
    }
}

/// What a model that answers with these scripts is seen to say, with the time that passed before each piece.
async fn seen(scripts: Vec<Vec<Result<Piece, ModelError>>>) -> Vec<(u64, String)> {
    seen_of(Scripted::new(scripts)).await
}

async fn seen_of(model: Scripted) -> Vec<(u64, String)> {
    let model = Retry::new(Arc::new(model), Patience::default());
    let start = tokio::time::Instant::now();
    let mut reply = model.ask(Request::default());
    let mut seen = Vec::new();
    while let Some(piece) = reply.next().await {
        let text = match piece {
            Ok(Piece::Text(text)) => text,
            Ok(Piece::Retrying { reason, attempt, of, .. }) => format!("retrying {attempt}/{of}: {reason}"),
            Ok(Piece::End(_)) => "end".to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("error: {error}"),
        };
        seen.push((start.elapsed().as_secs(), text));
    }
    seen
}

fn busy(retry_after: Option<u64>) -> Vec<Result<Piece, ModelError>> {
    let retry_after = retry_after.map(Duration::from_secs);
    vec![Err(ModelError { retry_after, ..ModelError::new(Failure::RateLimit, "it is busy\nhint: wait") })]
}

fn answer() -> Vec<Result<Piece, ModelError>> {
    vec![Ok(Piece::Text("hello".into())), Ok(Piece::End(End::default()))]
}

#[tokio::test(start_paused = true)]
async fn a_busy_model_is_asked_again_when_it_said() {
    let seen = seen(vec![busy(Some(7)), busy(Some(60)), answer()]).await;
    let expected = [(0, "retrying 2/5: it is busy"), (7, "retrying 3/5: it is busy"), (67, "hello"), (67, "end")];
    assert_eq!(seen, expected.map(|(at, text)| (at, text.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn waits_of_our_own_grow_and_end_after_five_attempts() {
    let seen = seen((0..5).map(|_| busy(None)).collect()).await;
    assert_eq!(seen.len(), 5);
    assert_eq!(seen[4].1, "error: it is busy (after 5 attempts)\nhint: wait");
    // Halves and wholes of 1, 2, 4 and 8 seconds.
    assert!((7..=15).contains(&seen[4].0), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_more_than_two_minutes_is_an_error_that_says_when() {
    let seen = seen(vec![busy(Some(3000))]).await;
    assert_eq!(seen, [(0, "error: it is busy\nhint: wait\nhint: it can be asked again in 50 minutes".to_owned())]);
}

/// Whoever shows the answer takes back what came before.
#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_begins_anew() {
    let cut = |details: Option<&str>| {
        let details = details.map(str::to_owned);
        let error = ModelError { details, ..ModelError::new(Failure::Server, "it was cut off") };
        vec![Ok(Piece::Text("hel".into())), Err(error)]
    };
    let seen = seen(vec![cut(Some("by peer")), answer()]).await;
    let words: Vec<&str> = seen.iter().map(|(_, word)| word.as_str()).collect();
    assert_eq!(words, ["hel", "retrying 2/5: it was cut off: by peer", "hello", "end"]);
    let seen = self::seen((0..5).map(|_| cut(None)).collect()).await;
    assert_eq!(seen.last().unwrap().1, "error: it was cut off (after 5 attempts)");
}

/// What is waited for an answer counts as well as what is waited between two requests.
#[tokio::test(start_paused = true)]
async fn no_more_is_waited_than_a_person_would() {
    let seen = seen((0..5).map(|_| busy(Some(100))).collect()).await;
    let words: Vec<(u64, &str)> = seen.iter().map(|(at, word)| (*at, word.as_str())).collect();
    let expected = [
        (0, "retrying 2/5: it is busy"),
        (100, "retrying 3/5: it is busy"),
        (200, "error: it is busy (after 3 attempts)\nhint: wait\nhint: it can be asked again in 100 seconds"),
    ];
    assert_eq!(words, expected);
    let usage = || Piece::Usage(crate::model::Usage { input: 9, ..Default::default() });
    for after in [vec![], vec![usage()], vec![Piece::Text("hel".into()), usage()], vec![Piece::Held]] {
        // Short silences count together.
        let seen = self::seen_of(Scripted::silent(after.clone(), Duration::from_secs(70))).await;
        let (at, last) = seen.last().unwrap();
        assert_eq!(
            last,
            "error: `test:test` did not answer in time (after 4 attempts)\nhint: ask again later, or choose another model"
        );
        assert_eq!(*at, 240, "{seen:?}");
        // However long a server may be silent, no more is waited than was told.
        let seen = self::seen_of(Scripted::silent(after, Duration::from_secs(150))).await;
        let (at, last) = seen.last().unwrap();
        assert!(last.contains("(after 2 attempts)"), "{seen:?}");
        assert_eq!(*at, 240, "{seen:?}");
    }
}

/// One that is slow and goes on is waited for, also when nothing of it can be shown yet.
#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_is_never_given_up() {
    struct Slow(Scripted, Piece);
    impl Model for Slow {
        fn info(&self) -> &ModelInfo {
            self.0.info()
        }
        fn ask(&self, request: Request) -> Reply {
            if self.0.scripts.lock().unwrap().len() > 1 {
                return self.0.ask(request);
            }
            let slowly = |piece: Piece| async move {
                tokio::time::sleep(Duration::from_secs(100)).await;
                Ok(piece)
            };
            let pieces = std::iter::repeat_n(self.1.clone(), 20).chain([Piece::End(End::default())]);
            stream::iter(pieces.collect::<Vec<_>>()).then(slowly).boxed()
        }
    }
    for piece in [Piece::Text("on ".into()), Piece::Held, Piece::Thought("hm".into())] {
        let slow = Slow(Scripted::new(vec![busy(Some(7)), vec![]]), piece);
        let model = Retry::new(Arc::new(slow), Patience::default());
        let pieces: Vec<_> = model.ask(Request::default()).collect().await;
        assert_eq!(pieces.len(), 22, "{pieces:?}");
        assert_eq!(pieces.last(), Some(&Ok(Piece::End(End::default()))));
    }
}

#[tokio::test(start_paused = true)]
async fn failures_that_do_not_pass_are_not_tried_again() {
    for kind in [Failure::Key, Failure::TooLong, Failure::Request] {
        let seen = seen(vec![vec![Err(ModelError::new(kind, "no"))]]).await;
        assert_eq!(seen, [(0, "error: no".to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_stops_is_a_failure() {
    let seen = seen(vec![vec![], answer()]).await;
    assert_eq!(seen[0].1, "retrying 2/5: the answer of the model was cut off");
    assert_eq!(seen.last().unwrap().1, "end");
}

#[test]
fn no_wait_is_longer_than_the_longest() {
    let patience = Patience::default();
    for attempt in [2, 3, 10, 33, 34, u32::MAX] {
        for dice in [0, 1, u64::MAX] {
            let pause = patience.pause(attempt, dice);
            assert!(pause <= patience.longest, "{attempt} {dice} {pause:?}");
            assert!(pause >= patience.first / 2, "{attempt} {dice} {pause:?}");
        }
    }
}

#[test]
fn times_are_said_in_words() {
    for (seconds, words) in [(1, "1 second"), (90, "90 seconds"), (121, "3 minutes"), (7200, "2 hours")] {
        assert_eq!(in_words(Duration::from_secs(seconds)), words);
    }
}
