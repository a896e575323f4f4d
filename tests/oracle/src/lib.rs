//! Nothing here: the crate exists for its tests, which have the official types as their oracle.
