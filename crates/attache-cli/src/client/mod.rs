//! What a client does for any agent: the same for `run` and `chat`.

pub(crate) mod ask;
pub(crate) mod browser;
pub(crate) mod confine;
pub(crate) mod foreground;
mod form;
pub(crate) mod pager;
pub(crate) mod services;
