//! Sessions on disk: an append-only log each.
