//! The cookies of a server: as many as a load balancer needs to find the same server again, and no more.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use reqwest::cookie::{CookieStore, Jar};
use url::Url;

/// How many cookies are kept, and how long all of them together may be. The oldest go first.
const MOST: usize = 32;
const MOST_BYTES: usize = 8 << 10;

/// The cookies of one connection.
#[derive(Default)]
pub(super) struct Cookies(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// By name, those first that were set first.
    lines: VecDeque<(String, String)>,
    /// The same, as they are sent.
    jar: Jar,
}

impl Kept {
    fn set(&mut self, line: &str) -> bool {
        let name = line.split(['=', ';']).next().unwrap_or_default().trim().to_owned();
        self.lines.retain(|(known, _)| *known != name);
        if line.len() > MOST_BYTES {
            return false;
        }
        self.lines.push_back((name, line.to_owned()));
        let bytes = |lines: &VecDeque<(String, String)>| lines.iter().map(|(_, line)| line.len()).sum::<usize>();
        let before = self.lines.len();
        while self.lines.len() > MOST || bytes(&self.lines) > MOST_BYTES {
            self.lines.pop_front();
        }
        self.lines.len() < before
    }
}

impl CookieStore for Cookies {
    fn set_cookies(&self, headers: &mut dyn Iterator<Item = &HeaderValue>, url: &Url) {
        let kept = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in headers.filter_map(|header| header.to_str().ok()) {
            let has_left = kept.set(line);
            if has_left {
                kept.jar = Jar::default();
                kept.lines.iter().for_each(|(_, line)| kept.jar.add_cookie_str(line, url));
            } else if line.len() <= MOST_BYTES {
                kept.jar.add_cookie_str(line, url);
            }
        }
    }

    fn cookies(&self, url: &Url) -> Option<HeaderValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).jar.cookies(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_few_cookies_kept_and_no_more() {
        let url = Url::parse("http://localhost:1/acp").unwrap();
        let cookies = Cookies::default();
        let set =
            |line: String| cookies.set_cookies(&mut std::iter::once(&HeaderValue::from_str(&line).unwrap()), &url);
        let sent = || cookies.cookies(&url).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        // The same one again and again takes the place of itself.
        (0..100).for_each(|number| set(format!("server={number}; Path=/")));
        assert_eq!(sent(), "server=99");
        for number in 0..1000 {
            set(format!("k{number}={}; Path=/", "v".repeat(3800)));
            assert!(sent().len() <= MOST_BYTES, "{}", sent().len());
        }
        assert!(sent().contains("k999="));
        (0..1000).for_each(|number| set(format!("small{number}=v")));
        assert_eq!(sent().split(';').count(), MOST);
        set(format!("long={}", "v".repeat(MOST_BYTES)));
        assert!(!sent().contains("long="));
        set("small999=; Max-Age=0".into());
        assert!(!sent().contains("small999="));
    }
}
