//! The methods that both sides have in their public API.

/// The settings that agents and clients share. `$peer` is what the other end is called.
macro_rules! connection_settings {
    ($peer:literal) => {
        /// Sets other bounds.
        pub fn limits(mut self, limits: crate::Limits) -> Self {
            self.options.limits = limits;
            self
        }

        /// Frames messages in another way than by lines.
        pub fn framing(mut self, framing: attache_proto::frame::Framing) -> Self {
            self.options.framing = Some(framing);
            self
        }

        #[doc = concat!("Reports every deviation of the ", $peer, ", also those that are ignored without harm.")]
        pub fn strict(mut self) -> Self {
            self.options.strict = true;
            self
        }

        /// Refuses batches, as the newest implementations do.
        pub fn refuse_batches(mut self) -> Self {
            self.options.refuse_batches = true;
            self
        }

        #[doc = concat!("Is called with what the ", $peer, " did wrong, and with what the agreed version could not express.")]
        /// Must not block. What there is: [`Report`](crate::Report).
        pub fn on_report(mut self, report: impl Fn(crate::Report) + Send + Sync + 'static) -> Self {
            self.options.report = Some(std::sync::Arc::new(report));
            self
        }

        /// Writes down every message.
        pub fn trace(mut self, tap: crate::trace::Tap) -> Self {
            self.options.tap = Some(std::sync::Arc::new(tap));
            self
        }
    };
}

/// What can be sent to a peer of either side, for what has no method of its own.
macro_rules! untyped_methods {
    () => {
        /// Sends any request of the protocol, for what has no method of its own here.
        pub async fn call<Q: attache_proto::method::Request>(&self, request: &Q) -> Result<Q::Response, crate::Error> {
            self.0.link.call(request).await
        }

        /// Sends any notification of the protocol.
        pub async fn notify<N: attache_proto::method::Notification>(
            &self,
            notification: &N,
        ) -> Result<(), crate::Error> {
            self.0.link.notify(notification).await
        }

        /// Sends several messages as one. Only peers that speak the draft of version 2 take that.
        pub async fn send_batch(&self, batch: crate::draft::Batch) -> Result<(), crate::Error> {
            batch.send(&self.0.link).await
        }

        /// Calls an extension method, whose name begins with `_`. Needs the feature `serde`.
        #[cfg(feature = "serde")]
        pub async fn call_extension<T: serde::de::DeserializeOwned>(
            &self,
            method: &str,
            params: &(impl serde::Serialize + ?Sized),
        ) -> Result<T, crate::Error> {
            crate::extension::call(&self.0.link, method, params).await
        }

        /// Sends a notification of an extension method, whose name begins with `_`. Needs the feature `serde`.
        #[cfg(feature = "serde")]
        pub async fn notify_extension(
            &self,
            method: &str,
            params: &(impl serde::Serialize + ?Sized),
        ) -> Result<(), crate::Error> {
            crate::extension::notify(&self.0.link, method, params).await
        }
    };
}

pub(crate) use {connection_settings, untyped_methods};
