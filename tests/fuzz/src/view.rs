//! Views of a session, fed with any updates.

use attache_proto::json::{RawJson, Reader};
use attache_proto::model::update::SessionUpdate;
use attache_proto::view::SessionView;

use crate::input::Input;
use crate::message;

/// A view stays within its limit, its snapshot is JSON, and the view that is read from the snapshot shows the same, also
/// after further updates that name what they change.
pub fn view(data: &[u8]) {
    let mut input = Input::new(data);
    let dialect = input.dialect();
    let limit = input.pick(&[usize::MAX, 20_000, 2_000]);
    let mut view = SessionView::with_limit(limit);
    let mut restored: Option<SessionView> = None;
    while !input.is_empty() {
        match input.below(16) {
            0 => _ = view.user_prompt(&["a".into(), "b".into()]),
            1 => view.begin_turn(),
            2 => view.end_turn(&"end_turn".into()),
            3 => view.cancel_requested(),
            4 => {
                restored = (limit == usize::MAX).then(|| restore(&view));
                continue;
            }
            _ => {
                let json = message::update(&mut input);
                let Ok(update) = Reader::new(&json, dialect).decode::<SessionUpdate>() else { continue };
                let place = view.apply(&update);
                if let Some(place) = place
                    && limit == usize::MAX
                {
                    assert!(view.entry(place).is_some());
                }
                if let Some(restored) = restored.as_mut().filter(|_| names_what_it_changes(&update)) {
                    restored.apply(&update);
                    assert_eq!(restored.snapshot().as_str(), view.snapshot().as_str(), "{json}");
                } else {
                    restored = None;
                }
                if limit < usize::MAX && input.one_in(8) {
                    // The last update comes on top, with its text escaped and defaults spelled out.
                    let length = view.snapshot().as_str().len();
                    assert!(length <= 6 * limit + 8 * json.len() + 1000, "{length} bytes");
                }
                continue;
            }
        }
        restored = None;
    }
    let restored = restore(&view);
    assert_eq!(restore(&restored), restored);
}

fn restore(view: &SessionView) -> SessionView {
    let snapshot = view.snapshot();
    let restored = SessionView::from_snapshot(&snapshot).unwrap();
    assert_eq!(restored.snapshot().as_str(), snapshot.as_str());
    assert_eq!(RawJson::new(snapshot.as_str()).unwrap(), snapshot);
    restored
}

/// Whether an update does not depend on what came just before it.
fn names_what_it_changes(update: &SessionUpdate) -> bool {
    !matches!(
        update,
        // A prompt that is not reported yet would be taken for this one.
        SessionUpdate::UserMessageChunk(_) | SessionUpdate::UserMessage(_)
    ) && !matches!(
        update,
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) if chunk.message_id.is_none()
    )
}
