//! Reading a page from the web: `fetch_url`.
//!
//! Only what anybody on the internet could read: addresses of this machine and its networks are refused, wherever they
//! come from: the URL, the name server, a redirect. No cookies, no credentials, nothing sent but the URL.

mod address;
mod entities;
mod get;
mod guard;
mod html;
mod markup;
mod page;
mod proxy;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use attache::model::tool::{ToolCallContent, ToolKind};
use attache_host::permission::Action;
use reqwest::Url;
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{Live, Outcome, Prepared, Refusal, excerpt};
use crate::cut::{Limits, Spill, cut_off_thread};
use crate::model::ToolSpec;
use get::Getter;

/// The longest URL that is fetched: more than any server takes.
const LONGEST_URL: usize = 8 << 10;

/// How much of a URL stands in a title, in characters.
const TITLE: usize = 200;

/// Reads pages for one session. Holds no connection: what a fetch needs is made for it and gone afterwards.
#[derive(Debug)]
pub struct Fetch {
    getter: Getter,
    spill: Arc<Spill>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchWork {
    url: Url,
}

impl FetchWork {
    /// What a rule names it by: `fetch:` and the host.
    pub fn name(&self) -> String {
        format!("fetch:{}", self.url.host_str().unwrap_or_default())
    }
}

/// The tools that are here.
pub fn specs() -> Vec<ToolSpec> {
    let schema = json!({
        "type": "object",
        "properties": {"url": {"type": "string", "description": "An http or https address on the public internet."}},
        "required": ["url"],
    });
    let description =
        "Reads a page from the web by GET. HTML comes as text with its links; JSON and other text as it is.";
    vec![ToolSpec { name: "fetch_url".into(), description: description.into(), schema }]
}

impl Fetch {
    /// Reads pages; what is long goes into the given directory.
    pub fn new(spill: Arc<Spill>) -> Self {
        Fetch { getter: Getter::default(), spill }
    }

    /// The same with addresses of this machine allowed, for tests that have a server there. There is no other way to
    /// allow them.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.getter.allows_loopback = true;
        self
    }

    /// Looks at a call. `None` if it is for another tool.
    pub fn prepare(&self, name: &str, arguments: &Value) -> Option<Result<Prepared<FetchWork>, Refusal>> {
        (name == "fetch_url").then(|| {
            let work = FetchWork { url: self.read_url(arguments)? };
            let whole = work.url.as_str();
            let mut title: String = whole.chars().take(TITLE).collect();
            let mut content = Vec::new();
            if title.len() < whole.len() {
                title.push('…');
                // What is sent is all in the URL, so whoever allows it has to see all of it.
                content.push(ToolCallContent::text(format!("`{whole}`")));
            }
            Ok(Prepared {
                title: format!("Fetch {title}"),
                kind: ToolKind::Fetch,
                locations: Vec::new(),
                content,
                actions: vec![Action::Other { kind: ToolKind::Fetch, paths: Vec::new(), name: Some(work.name()) }],
                work,
            })
        })
    }

    /// Does it. Whoever drops the future drops the request.
    pub async fn perform(&self, work: FetchWork, _live: &Live) -> Outcome {
        match self.getter.get(work.url).await {
            Ok(page) => {
                let text = cut_off_thread(&page.text, Limits::default(), &self.spill).await;
                let told = format!("{}\n\n{text}", page.summary);
                let mut content = vec![ToolCallContent::text(page.summary)];
                if !page.text.trim().is_empty() {
                    content.push(excerpt("", &page.text, 0));
                }
                let (content, raw) = (Some(content), Some(page.facts));
                Outcome { is_error: !page.is_good, content, raw, ..Outcome::done(told) }
            }
            Err(Refusal(why)) => Outcome::failed(why),
        }
    }

    fn read_url(&self, arguments: &Value) -> Result<Url, Refusal> {
        let text = Arguments::new(arguments).text("url")?;
        let text = text.trim();
        if text.len() > LONGEST_URL {
            return Err(Refusal("`url` is too long".into()));
        }
        let mut url = Url::parse(text).map_err(|_| {
            Refusal("`url` is not an address\nhint: it begins with `https://`, then a host and a path follow".into())
        })?;
        url.set_fragment(None);
        self.getter.check(&url)?;
        Ok(url)
    }
}
