//! A command that runs at the client's.

use attache_proto::model::terminal::{
    CreateTerminalRequest, ExitStatus, KillTerminalRequest, ReleaseTerminalRequest, TerminalId, TerminalOutputRequest,
    TerminalOutputResponse, WaitForTerminalExitRequest,
};

use super::SessionHandle;
use crate::Error;

/// A command that the client runs for us. Dropped, it is released, which ends the command.
#[derive(Debug)]
pub struct Terminal {
    handle: SessionHandle,
    id: TerminalId,
    is_open: bool,
}

impl Terminal {
    pub(super) async fn create(handle: SessionHandle, request: CreateTerminalRequest) -> Result<Self, Error> {
        if !handle.client().capabilities.terminal {
            return Err(Error::NotOffered("terminals"));
        }
        let request = request.with(|request| request.session_id = handle.id().clone());
        let response = handle.call(&request).await?;
        Ok(Terminal { handle, id: response.terminal_id, is_open: true })
    }

    /// The client's name for it, to show it in a tool call.
    pub fn id(&self) -> &TerminalId {
        &self.id
    }

    /// What the command has printed so far, and how it ended if it has.
    pub async fn output(&self) -> Result<TerminalOutputResponse, Error> {
        self.handle.call(&TerminalOutputRequest::new(self.handle.id().clone(), self.id.clone())).await
    }

    /// Waits until the command has ended.
    pub async fn wait(&self) -> Result<ExitStatus, Error> {
        let request = WaitForTerminalExitRequest::new(self.handle.id().clone(), self.id.clone());
        self.handle.call(&request).await
    }

    /// Ends the command. Its output can still be read.
    pub async fn kill(&self) -> Result<(), Error> {
        let request = KillTerminalRequest::new(self.handle.id().clone(), self.id.clone());
        self.handle.call(&request).await.map(|_| ())
    }

    /// Ends the command, and the terminal with it.
    pub async fn release(mut self) -> Result<(), Error> {
        self.is_open = false;
        let request = ReleaseTerminalRequest::new(self.handle.id().clone(), self.id.clone());
        self.handle.call(&request).await.map(|_| ())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_open {
            let request = ReleaseTerminalRequest::new(self.handle.id().clone(), self.id.clone());
            self.handle.link().request_now("terminal/release", |writer| writer.value(&request));
        }
    }
}
