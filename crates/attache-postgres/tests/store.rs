//! What holds for every store holds for PostgreSQL.

// On Unix, because the database that they start is a program of Unix.
#![cfg(unix)]

#[path = "../../attache-agent/tests/store_suite/mod.rs"]
mod store_suite;
mod support;

store_suite!(support::store);
