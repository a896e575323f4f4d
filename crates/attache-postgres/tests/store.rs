//! What holds for every store holds for PostgreSQL.

#[path = "../../attache-agent/tests/store_suite/mod.rs"]
mod store_suite;
mod support;

store_suite!(support::store);
