//! What a person asks for: the content of one prompt.

use attache_proto::model::ContentBlock;

/// The content of a prompt.
///
/// ```
/// use attache::Prompt;
///
/// let prompt = Prompt::from("fix the failing test");
/// assert_eq!(prompt.text(), "fix the failing test");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// The parts, in order.
    pub blocks: Vec<ContentBlock>,
}

impl Prompt {
    /// All text of the prompt, its parts joined by line ends. Other content is left out.
    pub fn text(&self) -> String {
        let parts: Vec<&str> = self.blocks.iter().filter_map(ContentBlock::as_text).collect();
        parts.join("\n")
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Prompt { blocks: vec![ContentBlock::text(text)] }
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Prompt { blocks: vec![ContentBlock::text(text)] }
    }
}

impl From<ContentBlock> for Prompt {
    fn from(block: ContentBlock) -> Self {
        Prompt { blocks: vec![block] }
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Prompt { blocks }
    }
}
