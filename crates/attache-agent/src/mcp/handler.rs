//! What we answer servers, and what we hear from them between answers.

// MCP means to do away with roots one day. Servers of today ask for them.
#![expect(deprecated, reason = "servers of today ask for roots")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::{Mutex, Notify, watch};

use super::words::plain;

/// How far a call is, as its server says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    done: f64,
    pub(super) text: String,
}

/// Who waits to hear how far a call is. A call is begun with the lock held, so that no step can come before somebody
/// waits for it.
pub(super) type Progress = Arc<Mutex<HashMap<ProgressToken, watch::Sender<Option<Step>>>>>;

/// Our end of the connection to one server.
#[derive(Clone)]
pub(super) struct Handler {
    roots: Arc<[Root]>,
    pub(super) progress: Progress,
    /// Told when what the server offers has changed.
    pub(super) changed: Arc<Notify>,
}

impl Handler {
    pub(super) fn new(directories: &[PathBuf]) -> Self {
        let root = |directory: &PathBuf| {
            let root = Root::new(reqwest::Url::from_file_path(directory).ok()?);
            Some(match directory.file_name() {
                Some(name) => root.with_name(name.to_string_lossy()),
                None => root,
            })
        };
        Handler {
            roots: directories.iter().filter_map(root).collect(),
            progress: Progress::default(),
            changed: Arc::default(),
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, Implementation::new("attache", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.to_vec()))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let waiting = self.progress.lock().await;
        let Some(sender) = waiting.get(&params.progress_token) else { return };
        sender.send_if_modified(|last| {
            // Notifications may overtake each other on their way to here.
            let is_new = last.as_ref().is_none_or(|last| params.progress > last.done);
            if is_new {
                *last = Some(Step { done: params.progress, text: step_text(&params) });
            }
            is_new
        });
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

fn step_text(params: &ProgressNotificationParam) -> String {
    let figures = match params.total {
        Some(total) => format!("{} of {total}", params.progress),
        None => params.progress.to_string(),
    };
    match params.message.as_deref().map(plain).filter(|message| !message.is_empty()) {
        Some(message) => format!("{figures}: {message}"),
        None => figures,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    // On Unix, because of the paths in it.
    #[cfg(unix)]
    #[test]
    fn roots_are_the_directories_of_the_session_as_urls() {
        let handler = Handler::new(&["/a dir/ü".into(), "relative".into()]);
        assert_eq!(serde_json::to_string(&*handler.roots).unwrap(), r#"[{"uri":"file:///a%20dir/%C3%BC","name":"ü"}]"#);
    }

    #[test]
    fn nothing_is_offered_but_roots() {
        let info = serde_json::to_value(Handler::new(&[]).get_info()).unwrap();
        assert_eq!(info["capabilities"], serde_json::json!({ "roots": {} }));
        assert_eq!(info["clientInfo"]["name"], "attache");
        assert_eq!(info["protocolVersion"], "2025-11-25");
    }
}
