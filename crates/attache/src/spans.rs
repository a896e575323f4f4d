//! Spans of the crate `tracing` for connections, sessions, turns and requests, with the feature `tracing`; without it they
//! are nothing.
//!
//! A span names what is done (`session/prompt`) and where (a session's id). What was said is in no span.

#[cfg(feature = "tracing")]
mod traced {
    use tracing::Instrument;

    /// A span that work can be done in.
    #[derive(Debug, Clone)]
    pub(crate) struct Span(tracing::Span);

    impl Span {
        pub(crate) fn connection(side: &'static str) -> Self {
            Span(tracing::debug_span!(target: "attache", "connection", side))
        }

        pub(crate) fn session(id: &str) -> Self {
            Span(tracing::debug_span!(target: "attache", "session", id))
        }

        pub(crate) fn turn() -> Self {
            Span(tracing::debug_span!(target: "attache", "turn", stop = tracing::field::Empty))
        }

        pub(crate) fn request(method: &str) -> Self {
            Span(tracing::debug_span!(target: "attache", "request", method))
        }

        pub(crate) fn served(method: &str) -> Self {
            Span(tracing::debug_span!(target: "attache", "served", method))
        }

        /// Says how a turn ended.
        pub(crate) fn stopped(&self, stop: &str) {
            self.0.record("stop", stop);
        }

        pub(crate) async fn around<T>(&self, work: impl Future<Output = T>) -> T {
            work.instrument(self.0.clone()).await
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod traced {
    /// Nothing.
    #[derive(Debug, Clone)]
    pub(crate) struct Span;

    impl Span {
        pub(crate) fn connection(_: &'static str) -> Self {
            Span
        }

        pub(crate) fn session(_: &str) -> Self {
            Span
        }

        pub(crate) fn turn() -> Self {
            Span
        }

        pub(crate) fn request(_: &str) -> Self {
            Span
        }

        pub(crate) fn served(_: &str) -> Self {
            Span
        }

        pub(crate) fn stopped(&self, _: &str) {}

        pub(crate) fn around<F: Future>(&self, work: F) -> F {
            work
        }
    }
}

pub(crate) use traced::Span;
