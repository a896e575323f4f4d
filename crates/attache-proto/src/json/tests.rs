use super::*;
use crate::Dialect;
use crate::model::Meta;
use crate::model::content::{ContentBlock, TextContent};

#[test]
fn smoke() {
    let text = r#"{"text":"a\u00e9\"b","type":"text","annotations":{"audience":["user","x",3]}}"#;
    let mut reader = Reader::new(text, Dialect::V1);
    let block: ContentBlock = reader.decode().unwrap();
    assert_eq!(reader.tolerated().len(), 1);
    let mut out = Vec::new();
    Writer::new(&mut out, Dialect::V2).value(&block);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"type":"text","text":"aé\"b","annotations":{"audience":["user","x"]}}"#
    );
    assert_eq!(block.as_text(), Some("aé\"b"));
    let _ = TextContent::new("x");
}

#[cfg(feature = "serde")]
#[test]
fn serde_sees_the_json_of_the_newest_dialect() {
    let block = ContentBlock::text("a");
    let value = serde_json::to_value(&block).unwrap();
    assert_eq!(value, serde_json::json!({"type": "text", "text": "a"}));
    assert_eq!(serde_json::from_value::<ContentBlock>(value).unwrap(), block);
}

#[test]
fn only_json_that_can_be_read_back_becomes_raw() {
    let nested = |depth: usize| (0..depth).fold(serde_json::json!({}), |value, _| serde_json::json!({ "a": value }));
    let depth = usize::from(MAX_DEPTH) - 1;
    for (value, is_fine) in [(nested(depth), true), (nested(depth + 1), false)] {
        assert_eq!(RawJson::from_value(&value).is_ok(), is_fine);
        assert_eq!(serde_json::from_value::<RawJson>(value).is_ok(), is_fine);
    }
    for text in ["", "{", "{}x", "[1,]", "\"\n\"", "nul"] {
        assert!(RawJson::new(text).is_err(), "{text}");
    }
    assert_eq!(RawJson::new(" {\r\n\"a\":1} ").unwrap().as_str(), "{  \"a\":1}");
}

#[test]
fn meta_that_is_nested_too_deeply_is_merged_without_a_panic() {
    struct Deep;
    impl crate::Encode for Deep {
        fn encode(&self, writer: &mut Writer<'_>) {
            writer.raw(&format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(200), "]".repeat(200)));
        }
    }
    let deep = Meta::from_raw(RawJson::from_model(&Deep)).unwrap();
    let merged = deep.merge(&Meta::new("{\"c\":1}").unwrap()).unwrap();
    assert_eq!(merged.as_raw().as_str(), "{\"a\":1,\"c\":1}");
}

#[test]
fn the_first_special_byte_is_found_wherever_it_is() {
    for length in [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 96, 127, 128, 129, 160, 200, 300] {
        let plain = vec![b'a'; length];
        assert_eq!(super::text::special_byte(&plain), length);
        for at in 0..length {
            for special in [b'"', b'\\', 0, 0x1f] {
                let mut bytes = plain.clone();
                bytes[at] = special;
                // What comes after the first does not matter, and neither do bytes that only look like it.
                if let Some(next) = bytes.get_mut(at + 3) {
                    *next = b'"';
                }
                if let Some(before) = at.checked_sub(1) {
                    bytes[before] = [0x20, 0x7f, 0x80, 0xff, b'!', b'#', b'[', b']'][at % 8];
                }
                assert_eq!(super::text::special_byte(&bytes), at, "{special} at {at} of {length}");
            }
        }
    }
}
