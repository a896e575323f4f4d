//! A command that runs at the client's.

use attache_proto::model::terminal::{
    CreateTerminalRequest, CreateTerminalResponse, ExitStatus, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
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
        let owner = handle.clone();
        // Whoever stops waiting for it still has the terminal that the client creates all the same released.
        let make = move |response: CreateTerminalResponse| Terminal {
            handle: owner.clone(),
            id: response.terminal_id,
            is_open: true,
        };
        handle.link().call_for(&request, make).await
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
        let request = ReleaseTerminalRequest::new(self.handle.id().clone(), self.id.clone());
        let released = self.handle.call(&request).await;
        // Not before: if this is given up, the request is not sent or is cancelled, and the drop releases the terminal.
        self.is_open = false;
        released.map(|_| ())
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
