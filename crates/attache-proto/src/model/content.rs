//! Content: what prompts, messages and tool results are made of.

use crate::codec::{Blank, Decode, Encode, ids, model_type, record, string_enum, union};
use crate::json::{DecodeError, Reader, Reason, Writer};

ids! {
    /// A message, named by the agent.
    pub struct MessageId;
}

union! {
    /// One piece of content.
    pub enum ContentBlock tag "type" {
        /// Text, as Markdown.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) boxed = "image",
        /// A sound.
        Audio(AudioContent) boxed = "audio",
        /// A pointer to something that the agent can read.
        ResourceLink(ResourceLink) boxed = "resource_link",
        /// Something to read, with its contents.
        Resource(EmbeddedResource) boxed = "resource",
    }
}

impl ContentBlock {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextContent::new(text))
    }

    /// The text, when this is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            ContentBlock::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        ContentBlock::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        ContentBlock::text(text)
    }
}

record! {
    /// Text, as Markdown.
    pub struct TextContent {
        required {
            /// The text.
            text: String = "text",
        }
        optional {
            /// For whom it is, and how much it matters.
            annotations: Option<Box<Annotations>> = "annotations",
        }
    }

    /// A picture.
    pub struct ImageContent {
        required {
            /// The picture, in base64.
            data: String = "data",
            /// Its media type, such as `image/png`.
            mime_type: String = "mimeType",
        }
        optional {
            /// Where it comes from.
            uri: Option<String> = "uri",
            /// For whom it is, and how much it matters.
            annotations: Option<Box<Annotations>> = "annotations",
        }
    }

    /// A sound.
    pub struct AudioContent {
        required {
            /// The sound, in base64.
            data: String = "data",
            /// Its media type, such as `audio/wav`.
            mime_type: String = "mimeType",
        }
        optional {
            /// For whom it is, and how much it matters.
            annotations: Option<Box<Annotations>> = "annotations",
        }
    }

    /// A pointer to something that the agent can read.
    pub struct ResourceLink {
        required {
            /// The name to show.
            name: String = "name",
            /// Where it is.
            uri: String = "uri",
        }
        optional {
            /// A title to show.
            title: Option<String> = "title",
            /// What it is.
            description: Option<String> = "description",
            /// Pictures to show with it.
            icons: Option<Vec<Icon>> = ["", "", "icons"] list,
            /// Its media type.
            mime_type: Option<String> = "mimeType",
            /// Its size in bytes.
            size: Option<u64> = "size",
            /// For whom it is, and how much it matters.
            annotations: Option<Box<Annotations>> = "annotations",
        }
    }

    /// Something to read, with its contents.
    pub struct EmbeddedResource {
        required {
            /// The contents.
            resource: ResourceContents = "resource",
        }
        optional {
            /// For whom it is, and how much it matters.
            annotations: Option<Box<Annotations>> = "annotations",
        }
    }

    /// Contents that are text.
    pub struct TextResource {
        required {
            /// The text.
            text: String = "text",
            /// Where it comes from.
            uri: String = "uri",
        }
        optional {
            /// Its media type.
            mime_type: Option<String> = "mimeType",
        }
    }

    /// Contents that are bytes.
    pub struct BlobResource {
        required {
            /// The bytes, in base64.
            blob: String = "blob",
            /// Where they come from.
            uri: String = "uri",
        }
        optional {
            /// Their media type.
            mime_type: Option<String> = "mimeType",
        }
    }

    /// For whom content is, and how much it matters.
    pub struct Annotations {
        optional {
            /// For whom it is.
            audience: Option<Vec<Role>> = "audience" list,
            /// When it last changed, as an ISO 8601 time.
            last_modified: Option<String> = "lastModified",
            /// How much it matters, from 0 to 1.
            priority: Option<f64> = "priority",
        }
    }

    /// A picture to show with a resource.
    pub struct Icon {
        required {
            /// Where the picture is; `https:` or `data:`.
            src: String = "src",
        }
        optional {
            /// Its media type.
            mime_type: Option<String> = "mimeType",
            /// The sizes it is made for, such as `48x48`.
            sizes: Option<Vec<String>> = "sizes" list,
            /// The theme it is made for.
            theme: Option<IconTheme> = "theme",
        }
    }
}

string_enum! {
    /// Who speaks, or is spoken to.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The person.
        User = "user",
    }

    /// The theme that an icon is made for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

/// The contents of an embedded resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceContents {
    /// Text.
    Text(TextResource),
    /// Bytes.
    Blob(BlobResource),
}

impl ResourceContents {
    /// Where the contents come from.
    pub fn uri(&self) -> &str {
        match self {
            ResourceContents::Text(resource) => &resource.uri,
            ResourceContents::Blob(resource) => &resource.uri,
        }
    }
}

impl From<TextResource> for ResourceContents {
    fn from(resource: TextResource) -> Self {
        ResourceContents::Text(resource)
    }
}

impl From<BlobResource> for ResourceContents {
    fn from(resource: BlobResource) -> Self {
        ResourceContents::Blob(resource)
    }
}

impl Blank for ResourceContents {
    fn blank() -> Self {
        ResourceContents::Text(TextResource::blank())
    }
}

impl Decode for ResourceContents {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // There is no tag: the field that is there tells.
        if reader.has_key("text")? {
            TextResource::decode(reader).map(ResourceContents::Text)
        } else if reader.has_key("blob")? {
            BlobResource::decode(reader).map(ResourceContents::Blob)
        } else {
            Err(DecodeError::new(Reason::Missing).in_field("text"))
        }
    }
}

impl Encode for ResourceContents {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            ResourceContents::Text(resource) => resource.encode(writer),
            ResourceContents::Blob(resource) => resource.encode(writer),
        }
    }
}

model_type!(ResourceContents);
