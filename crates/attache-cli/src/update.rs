//! `attache update --check`: whether there is a newer version. Nothing else in this program ever asks.

use clap::{Args, ValueHint};
use semver::Version;
use serde_json::{Value, json};

use crate::connect::until_interrupted;
use crate::exit::{Code, Failure};
use crate::fetch::{self, Answer};
use crate::visible::{self, one_line};

/// Where releases are: a server that points to the newest one.
const RELEASES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/releases/latest");

/// A description of a release has some kilobytes.
const MAX_SIZE: u64 = 1 << 20;

/// How often a server may point elsewhere: a repository may have moved.
const MOST_HOPS: usize = 5;

/// The options of `update`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Update {
    /// Ask the page of releases. The program does not replace itself: whatever installed it does that
    #[arg(long, required = true)]
    check: bool,
    /// Ask this address instead: it points to a release by a redirect to `…/v1.2.3`, or has JSON with `tag_name`
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    from: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Exit codes: 0 this is the newest version, 1 there is a newer one, 2 it could not be found out.

Examples:
  attache update --check
  attache update --check --from https://mirror.example/attache/latest.json";

/// A release, and where it is described.
struct Release {
    version: Version,
    page: String,
}

/// Asks, and tells.
pub(crate) async fn run(options: &Update) -> Result<Code, Failure> {
    let from = options.from.as_deref().unwrap_or(RELEASES);
    let cannot = |what: String| Failure::usage(format!("cannot ask `{}`: {}", one_line(from), one_line(&what)));
    let release = until_interrupted(async { newest(from).await.map_err(cannot) }).await?;
    let ours = Version::parse(env!("CARGO_PKG_VERSION")).map_err(|error| cannot(error.to_string()))?;
    let is_newer = release.version > ours;
    let page = one_line(&release.page);
    if options.json {
        let value = json!({ "current": ours.to_string(), "newest": release.version.to_string(), "newer": is_newer, "page": page });
        crate::print(&(visible::json(&value) + "\n"))?;
    } else if is_newer {
        crate::print(&format!("attache {} is out; this is {ours}\n{page}\n", release.version))?;
    } else {
        crate::print(&format!("attache {ours} is the newest version\n"))?;
    }
    Ok(if is_newer { Code::Agent } else { Code::Done })
}

async fn newest(from: &str) -> Result<Release, String> {
    let mut address = from.to_owned();
    for _ in 0..MOST_HOPS {
        match fetch::answer(&address, MAX_SIZE).await? {
            Answer::Elsewhere(page) => match version_at_end(&page) {
                Some(version) => return Ok(Release { version, page }),
                None => address = page,
            },
            Answer::Document(bytes) => return described(&bytes, &address),
        }
    }
    Err(format!("it points elsewhere more than {MOST_HOPS} times"))
}

/// The version that an address ends with: `…/releases/tag/v1.2.3`.
fn version_at_end(page: &str) -> Option<Version> {
    let path = page.split(['?', '#']).next().unwrap_or(page);
    version(path.trim_end_matches('/').rsplit('/').next()?)
}

fn version(tag: &str) -> Option<Version> {
    Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()
}

/// The release that a document describes, as GitHub does.
fn described(bytes: &[u8], address: &str) -> Result<Release, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| "there is no release there")?;
    let version = value["tag_name"].as_str().and_then(version).ok_or("there is no release there")?;
    let page = value["html_url"].as_str().filter(|page| page.starts_with("https://")).unwrap_or(address);
    Ok(Release { version, page: page.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_an_address_or_a_description() {
        let at = |page: &str| version_at_end(page).map(|version| version.to_string());
        assert_eq!(at("https://h/o/r/releases/tag/v1.2.3").as_deref(), Some("1.2.3"));
        assert_eq!(at("https://h/1.2.3-rc.1/?x#y").as_deref(), Some("1.2.3-rc.1"));
        assert_eq!(at("https://h/o/r/releases"), None);
        let release = described(br#"{"tag_name":"v2.0.0","html_url":"https://h/x"}"#, "https://h").unwrap();
        assert_eq!((release.version.to_string().as_str(), release.page.as_str()), ("2.0.0", "https://h/x"));
        for text in ["<html>", "{}", r#"{"tag_name":7}"#, r#"{"tag_name":"latest"}"#] {
            assert!(described(text.as_bytes(), "https://h").is_err(), "{text}");
        }
        assert!(RELEASES.starts_with("https://") && RELEASES.ends_with("/releases/latest"), "{RELEASES}");
    }
}
