//! The names of the methods.

use std::collections::BTreeSet;

use attache_proto::Dialect;
use attache_proto::method::Method;

use crate::theirs::definitions;

/// Methods that the official schema does not have any more.
const DROPPED: &[&str] = &["session/set_model"];

fn check(dialect: Dialect) {
    let definitions = definitions(dialect);
    let theirs: BTreeSet<&str> =
        definitions.values().filter_map(|definition| definition.get("x-method")?.as_str()).collect();
    let ours: BTreeSet<&str> = Method::ALL.iter().filter_map(|method| method.name(dialect)).collect();
    for name in &theirs {
        let method = Method::parse(name).unwrap_or_else(|| panic!("`{name}` is unknown"));
        assert_eq!(method.name(dialect), Some(*name));
    }
    let more: Vec<_> = ours.difference(&theirs).copied().filter(|name| !DROPPED.contains(name)).collect();
    assert!(more.is_empty(), "they do not have {more:?}");
}

#[test]
fn every_method_has_its_name() {
    check(Dialect::V1);
    check(Dialect::V2);
}
