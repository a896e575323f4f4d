use super::*;
use crate::Dialect;
use crate::model::{ContentBlock, TextContent};

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
    let value = serde_json::to_value(&block).unwrap();
    assert_eq!(serde_json::from_value::<ContentBlock>(value).unwrap(), block);
}
