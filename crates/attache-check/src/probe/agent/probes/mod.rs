//! The probes, one module a group. What a probe needs and does not get ends it: `Over`.

use super::{Probe, Run};
use crate::rule::Dialects;

/// Makes a row.
macro_rules! probe {
    ($name:literal, $dialects:ident, $about:literal, $run:expr) => {
        $crate::probe::agent::probes::row($name, $crate::rule::Dialects::$dialects, $about, |driver| {
            Box::pin($run(driver))
        })
    };
}

mod batches;
mod cancel;
mod files;
mod handshake;
mod history;
mod ids;
mod malformed;
mod methods;
mod options;
mod people;
mod permission;
mod prompts;
mod sessions;
mod transport;

/// The probe that comes first.
pub(super) static GREETING: Probe = handshake::GREETING;

/// The tables of the groups.
pub(super) static TABLES: &[&[Probe]] = &[
    handshake::PROBES,
    malformed::PROBES,
    methods::PROBES,
    ids::PROBES,
    batches::PROBES,
    sessions::PROBES,
    prompts::PROBES,
    cancel::PROBES,
    permission::PROBES,
    files::PROBES,
    history::PROBES,
    options::PROBES,
    people::PROBES,
    transport::PROBES,
];

const fn row(name: &'static str, dialects: Dialects, about: &'static str, run: Run) -> Probe {
    Probe { name, dialects, about, run }
}
