//! A line as the smallest struct that holds what the benchmark needs, borrowed from the line.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// One message, whichever it is.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Text<'a>>,
    #[serde(borrow)]
    pub params: Option<Params<'a>>,
    #[serde(borrow)]
    pub result: Option<Answer<'a>>,
}

/// A string that is copied only if it has escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The params of all methods in one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    #[serde(borrow)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub mode_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub path: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub prompt: Vec<Block<'a>>,
    #[serde(borrow)]
    pub update: Option<Update<'a>>,
}

/// The results of all methods in one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<'a> {
    #[serde(borrow)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    pub content: Option<Text<'a>>,
}

/// A piece of a prompt.
#[derive(Debug, Deserialize)]
pub struct Block<'a> {
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
    #[serde(borrow)]
    pub resource: Option<Resource<'a>>,
}

/// An embedded resource.
#[derive(Debug, Deserialize)]
pub struct Resource<'a> {
    #[serde(borrow)]
    pub text: Option<Text<'a>>,
}

/// What an agent shows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update<'a> {
    #[serde(borrow)]
    pub session_update: Text<'a>,
    #[serde(borrow)]
    pub content: Option<Content<'a>>,
}

/// Content of any shape: a block, or a list of them inside a tool call. Only the last text is kept.
#[derive(Debug, Default)]
pub struct Content<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("content")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
                let mut content = Content::default();
                while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
                    match &*key {
                        "text" => content = Content(map.next_value::<Text<'de>>()?.0),
                        "content" => content = map.next_value()?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(content)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
                let mut content = Content::default();
                while let Some(next) = list.next_element()? {
                    content = next;
                }
                Ok(content)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

impl<'a> Line<'a> {
    /// Reads a line; `None` when it is no message.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The method, or nothing.
    pub fn method(&self) -> &str {
        self.method.as_ref().map_or("", |method| &method.0)
    }

    /// The session that it is about, or nothing.
    pub fn session(&self) -> &str {
        let session = self.params.as_ref().and_then(|params| params.session_id.as_ref());
        session.map_or("", |session| &session.0)
    }

    /// The id as it was written.
    pub fn id(&self) -> &str {
        self.id.map_or("null", RawValue::get)
    }

    /// The blocks of a prompt.
    pub fn prompt(&self) -> &[Block<'a>] {
        self.params.as_ref().map_or(&[], |params| &params.prompt)
    }
}
