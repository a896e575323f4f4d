//! What a person sends: messages, those that wait, and a cancel.

use std::time::{Duration, Instant};

use attache::model::content::{ContentBlock, ImageContent};
use attache::model::notice::NoticeSeverity;
use attache::model::tool::ToolCallId;
use attache::proto::view::Entry;
use attache_tui::composer::{AttachmentSource, Draft, Message, Submission};

use super::{Phase, Tab, without_hint};
use crate::chat::worker::Order;
use crate::run::prompt::Question;

/// How long a cancelled turn may take to end before a person is told what else can be done.
const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

impl Tab {
    /// Takes what another chat has left. Nothing of it is sent without a key.
    pub(in crate::chat) fn take_over(&mut self, drafts: Vec<Draft>) {
        let mut drafts = drafts.into_iter();
        let Some(mut first) = drafts.next() else { return };
        // What was written in other sessions is not lost, but whose it was is.
        for other in drafts {
            first.queue.extend(Some(other.message).filter(|message| !message.text.is_empty()));
            first.queue.extend(other.queue);
        }
        self.is_paused = !first.queue.is_empty();
        self.composer.set_draft(first);
    }

    /// What to ask as soon as there is a session: before what was left, which waits for a key.
    pub(in crate::chat) fn ask_first(&mut self, prompt: String) {
        self.composer.queue.push_front(Message { text: prompt.clone(), ..Default::default() });
        self.first_prompt = Some(prompt);
    }

    pub(super) fn take_first_prompt(&mut self) -> Option<Submission> {
        let prompt = self.first_prompt.take()?;
        // The person may have changed what waits.
        let is_next = self.composer.queue.messages().next().is_some_and(|message| message.text == prompt);
        if is_next { self.composer.queue.pop_next() } else { None }
    }

    /// Sends what is in the composer: at once, or when the agent is ready for it.
    pub(in crate::chat) fn send(&mut self, at_once: bool) -> Option<String> {
        if self.composer.is_empty() && !self.is_working() && self.phase == Phase::Idle {
            // Enter on nothing sends what is in the queue.
            self.is_paused = false;
            return self.send_next();
        }
        let can_send_now = self.phase == Phase::Idle && !self.is_working();
        if can_send_now || (at_once && self.can_steer && self.session.is_some() && self.phase != Phase::Dead) {
            let submission = self.composer.take()?;
            return self.submit(submission);
        }
        self.composer.enqueue();
        None
    }

    /// Sends the next of what waits, if the agent is ready.
    pub(super) fn send_next(&mut self) -> Option<String> {
        if self.phase != Phase::Idle || self.is_working() {
            return None;
        }
        if let Some(reason) = self.reasons.pop_front() {
            return self.submit(reason.submission());
        }
        if self.is_paused {
            return None;
        }
        let submission = self.composer.queue.pop_next()?;
        self.submit(submission)
    }

    /// Holds what waits until a key sends it. What is said about it, if something waits.
    pub(super) fn pause(&mut self) -> Option<&'static str> {
        for reason in self.reasons.drain(..).rev() {
            self.composer.queue.push_front(reason);
        }
        self.is_paused = !self.composer.queue.is_empty();
        self.is_paused.then_some("enter on an empty line sends what waits")
    }

    /// Sends a message. What cannot be read goes back to the composer, and why is returned.
    pub(super) fn submit(&mut self, submission: Submission) -> Option<String> {
        match self.blocks(&submission) {
            Ok((blocks, left_out)) => {
                for text in left_out {
                    self.notice(NoticeSeverity::Warning, &text);
                }
                let place = self.view.user_prompt(&blocks);
                self.transcript.changed(place);
                self.transcript.scroll(attache_tui::transcript::Scroll::Bottom);
                self.view.begin_turn();
                self.order(Order::Prompt(blocks));
                self.sending.push_back(submission);
                self.turn_began.get_or_insert_with(Instant::now);
                self.enter(Phase::Working);
                None
            }
            Err(mistake) => {
                self.composer.restore(submission);
                Some(mistake)
            }
        }
    }

    /// What is sent, and what of it is left as text although it looks like a file.
    pub(super) fn blocks(&self, submission: &Submission) -> Result<(Vec<ContentBlock>, Vec<String>), String> {
        let offered = self.capabilities.as_ref().and_then(|offered| offered.session.clone()).unwrap_or_default().prompt;
        let (mut images, mut data) = (Vec::new(), Vec::new());
        for attachment in &submission.attachments {
            match &attachment.source {
                AttachmentSource::File(path) if attachment.mime_type.starts_with("image/") => images.push(path.clone()),
                AttachmentSource::File(_) => {}
                AttachmentSource::Base64(bytes) => {
                    data.push(ContentBlock::Image(
                        ImageContent::new(bytes.clone(), attachment.mime_type.clone()).into(),
                    ));
                }
            }
        }
        let files = submission.attachments.iter().filter_map(|attachment| match &attachment.source {
            AttachmentSource::File(path) if !attachment.mime_type.starts_with("image/") => Some(path.clone()),
            _ => None,
        });
        let files: Vec<_> = files.collect();
        let (text, plan) = (submission.text.clone(), &self.plan);
        // What was pasted is somebody else's word, and names no files.
        let question = Question::new(text, &submission.typed, &files, &images, &plan.directories, &plan.cwd);
        let mut question = question.map_err(|failure| failure.message)?;
        // Those that no word of the text can name.
        let is_odd = |name: &&String| name.contains(char::is_whitespace) || crate::visible::visible(name) != **name;
        let odd: Vec<&String> = submission.mentions.iter().filter(is_odd).collect();
        question.mention_chosen(&odd, &plan.directories, &plan.cwd);
        let mut blocks = question.blocks(&offered).map_err(|failure| failure.message)?;
        // A word that names no file is mostly a name or an address, and no news.
        let mut left_out: Vec<String> = question
            .unmatched
            .iter()
            .filter(|text| text.contains("is not attached"))
            .map(|text| without_hint(text))
            .collect();
        left_out.extend(submission.pasted_mentions.iter().filter(|word| plan.cwd.join(&word[1..]).is_file()).map(
            |word| {
                format!(
                    "`{word}` was pasted and is left as text: type it, or choose it from the list, to attach the file"
                )
            },
        ));
        if !data.is_empty() && offered.image.is_none() {
            return Err("the agent takes no images".into());
        }
        blocks.extend(data);
        Ok((blocks, left_out))
    }

    /// Cancels what the agent does.
    pub(in crate::chat) fn cancel(&mut self) {
        if self.is_working() {
            self.view.cancel_requested();
            self.transcript.all_changed();
            self.order(Order::Cancel);
            self.questions.clear();
            self.enter(Phase::Cancelling);
        }
    }

    /// Whether a cancelled turn should have ended by now; true once.
    pub(in crate::chat) fn notice_overdue_cancel(&mut self) -> bool {
        let is_overdue = self.phase == Phase::Cancelling && self.since.elapsed() > CANCEL_PATIENCE;
        let is_news = is_overdue && !self.is_cancel_overdue;
        self.is_cancel_overdue |= is_overdue;
        is_news
    }

    /// The focused tool call, if it runs and the agent offers to cancel it alone.
    pub(in crate::chat) fn cancellable_tool(&self) -> Option<ToolCallId> {
        let Entry::ToolCall(call) = self.view.entry(self.transcript.focused()?)? else { return None };
        let can_cancel = call.capabilities.as_ref().is_some_and(|offered| offered.cancel.is_some());
        (can_cancel && !call.status.is_final()).then(|| call.id.clone())
    }

    /// Sends a command of the agent, and leaves alone what is being written.
    pub(in crate::chat) fn send_command(&mut self, command: &str) -> Option<String> {
        let message = Message { text: command.to_owned(), ..Default::default() };
        self.submit(message.submission())
    }
}
