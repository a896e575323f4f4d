//! What a person asks for: the content of one prompt.

use attache_proto::model::Meta;
use attache_proto::model::content::ContentBlock;

/// The content of a prompt.
///
/// ```
/// use attache::Prompt;
///
/// let prompt = Prompt::from("fix the failing test");
/// assert_eq!(prompt.text(), "fix the failing test");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prompt {
    /// The parts, in order.
    pub blocks: Vec<ContentBlock>,
    /// Custom metadata (`_meta`), such as a W3C trace context (`traceparent`).
    pub meta: Option<Meta>,
}

impl Prompt {
    /// All text of the prompt, its parts joined by line ends. Other content is left out.
    pub fn text(&self) -> String {
        let parts: Vec<&str> = self.blocks.iter().filter_map(ContentBlock::as_text).collect();
        parts.join("\n")
    }

    /// Adds custom metadata (`_meta`).
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    pub(crate) fn with_optional_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt::from(ContentBlock::text(text))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt::from(ContentBlock::text(text))
    }
}

impl From<ContentBlock> for Prompt {
    fn from(block: ContentBlock) -> Self {
        Prompt::from(vec![block])
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Prompt { blocks, meta: None }
    }
}
