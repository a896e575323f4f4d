//! Tells the client of a session when there are other models to choose from.

use std::sync::Arc;
use std::time::Duration;

use attache::Error;
use attache::agent::SessionHandle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ModelList;
use crate::off_thread;
use crate::settings::Settings;

/// How long lists that come one after the other are waited for, to be told together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What has come since this was asked for.
pub(crate) struct ModelNews(watch::Receiver<()>);

/// A task that tells the client. It ends when it is dropped.
pub(crate) struct ModelTeller(JoinHandle<()>);

impl ModelList {
    /// What comes from now on.
    pub(crate) fn news(&self) -> ModelNews {
        ModelNews(self.shared.news.subscribe())
    }
}

impl ModelNews {
    /// Tells the client of what comes, until the session ends.
    pub(crate) fn tell(mut self, models: Arc<ModelList>, settings: Settings, handle: SessionHandle) -> ModelTeller {
        ModelTeller(tokio::spawn(async move {
            while self.0.changed().await.is_ok() {
                tokio::time::sleep(TOGETHER).await;
                self.0.mark_unchanged();
                if offer(&models, &settings, &handle).await.is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for ModelTeller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Offers the models that there are now. The client is told if these are others than before.
pub(crate) async fn offer(models: &Arc<ModelList>, settings: &Settings, handle: &SessionHandle) -> Result<(), Error> {
    let models = models.clone();
    if settings.set_models(off_thread(move || models.choices()).await) {
        handle.options(settings.options()).await?;
    }
    Ok(())
}
