//! Web pages that are opened for a person.

use std::fmt;
use std::io;
use std::path::Path;

use url::Url;

/// An address on the web, http or https, in ASCII: what is beyond it is encoded, so that no letter looks like another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WebAddress(Url);

/// It is no address on the web.
#[derive(Debug)]
pub(crate) struct NotWeb;

impl WebAddress {
    pub(crate) fn parse(text: &str) -> Result<Self, NotWeb> {
        let url = Url::parse(text).map_err(|_| NotWeb)?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.is_empty());
        // A name before the host is there to be taken for the host.
        let has_name = !url.username().is_empty() || url.password().is_some();
        if is_web && !has_name { Ok(WebAddress(url)) } else { Err(NotWeb) }
    }

    /// Whose page it is.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// Opens a page in the person's browser, which stays when we end: it is theirs.
pub(crate) fn open(address: &WebAddress) -> io::Result<()> {
    open_with_browser(address.to_string())
}

/// Opens a page that is a file of ours.
pub(crate) fn open_file(path: &Path) -> io::Result<()> {
    let address =
        Url::from_file_path(std::path::absolute(path)?).map_err(|()| io::Error::other("no path of a file"))?;
    open_with_browser(address.into())
}

#[cfg(unix)]
fn open_with_browser(address: String) -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not in our session: a Ctrl-C is not for it, and our terminal neither.
    // SAFETY: `setsid` may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        })
    };
    command.spawn().map(drop)
}

/// By the system, not by a shell: an address has signs in it that those read.
#[cfg(windows)]
fn open_with_browser(address: String) -> io::Result<()> {
    use windows_sys::Win32::UI::Shell::ShellExecuteW;
    use windows_sys::Win32::UI::WindowsAndMessaging::SW_SHOWNORMAL;
    /// What is greater is no error.
    const LAST_ERROR: usize = 32;
    let wide = |text: &str| text.encode_utf16().chain([0]).collect::<Vec<u16>>();
    let (verb, address) = (wide("open"), wide(&address));
    let none = std::ptr::null();
    // SAFETY: the texts end with a zero and live through the call.
    let done =
        unsafe { ShellExecuteW(std::ptr::null_mut(), verb.as_ptr(), address.as_ptr(), none, none, SW_SHOWNORMAL) };
    match done as usize > LAST_ERROR {
        true => Ok(()),
        false => Err(io::Error::other("no program is there for it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_web_and_shows_its_real_host() {
        let rows = [
            ("https://example.com/a?b=c", Some("https://example.com/a?b=c")),
            ("http://localhost:8080", Some("http://localhost:8080/")),
            ("https://ex\u{430}mple.com/", Some("https://xn--exmple-4nf.com/")),
            ("https://example.com/\u{202e}gnp", Some("https://example.com/%E2%80%AEgnp")),
            ("https://example.com@evil.test/", None),
            ("file:///etc/passwd", None),
            ("javascript:alert(1)", None),
            ("--help", None),
            ("https://", None),
        ];
        for (text, expected) in rows {
            let shown = WebAddress::parse(text).ok().map(|address| address.to_string());
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }
}
