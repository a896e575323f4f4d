//! Text of others, made harmless for a terminal: see [`attache_host::visible`].

pub(crate) use attache_host::visible::{escaped_json as escaped, harmless as visible, json, one_line, visible_lines};
