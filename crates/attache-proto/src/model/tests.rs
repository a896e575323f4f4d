use super::*;
use crate::codec::{Decode, Encode};
use crate::json::{Reader, Writer};
use crate::{Dialect, Dialect::*};

fn read<T: Decode>(dialect: Dialect, json: &str) -> T {
    let json = json.replace('\'', "\"");
    let mut reader = Reader::new(&json, dialect);
    let value = reader.decode().unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(reader.tolerated(), [], "{json}");
    value
}

fn write<T: Encode>(dialect: Dialect, value: &T) -> (String, Vec<&'static str>) {
    let mut buffer = Vec::new();
    let mut writer = Writer::new(&mut buffer, dialect);
    writer.value(value);
    let lost = writer.lost();
    (String::from_utf8(buffer).unwrap().replace('"', "'"), lost)
}

/// Reads in one dialect and writes in another.
#[track_caller]
fn check<T: Decode + Encode>(from: Dialect, json: &str, to: Dialect, expected: &str) {
    let (written, lost) = write(to, &read::<T>(from, json));
    assert_eq!(written, expected);
    assert!(lost.is_empty(), "lost {lost:?}");
}

#[test]
fn updates_stay_small() {
    assert!(size_of::<SessionUpdate>() <= 128, "{}", size_of::<SessionUpdate>());
    assert!(size_of::<ContentBlock>() <= 64, "{}", size_of::<ContentBlock>());
}

#[test]
fn capabilities_move_between_the_dialects() {
    let v1 = "{'loadSession':true,'promptCapabilities':{'image':true},'mcpCapabilities':{'http':true},\
        'sessionCapabilities':{'list':{},'delete':{}},'auth':{'logout':{}}}";
    let v2 = "{'session':{'prompt':{'image':{}},'mcp':{'http':{}},'delete':{}},'auth':{}}";
    let draft = "{'session':{'prompt':{'image':{}},'mcp':{'http':{}},'load':{},'list':{},'delete':{}},\
        'auth':{'logout':{}}}";
    check::<AgentCapabilities>(V1, v1, V1, v1);
    check::<AgentCapabilities>(V1, v1, V2Draft, draft);
    check::<AgentCapabilities>(V2Draft, draft, V1, v1);
    check::<AgentCapabilities>(V2Draft, draft, V2, v2);
    check::<AgentCapabilities>(V1, "{'loadSession':true}", V1, "{'loadSession':true}");
}
