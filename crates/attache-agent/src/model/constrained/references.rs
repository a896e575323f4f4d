//! A tool's schema as a part of a larger one: what it refers to stands where it is referred to. A reference leads from the
//! root of its document, and the root is another one there.

use serde_json::{Value, json};

/// How deep references may lead into each other. Schemas that people write have two or three levels.
const DEEPEST: usize = 16;

/// How many values a schema may grow to. Two references to two references to two … would be without end.
const MOST_VALUES: usize = 5_000;

/// How many bytes of names and texts are copied before references are not followed any more.
const MOST_BYTES: usize = 256 << 10;

/// What a schema can say of a type.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// A schema without references. Where one leads into itself, too deep or to too much, any value of its type will do.
pub(super) fn inlined(schema: &Value) -> Value {
    let mut body = schema.clone();
    if let Value::Object(body) = &mut body {
        body.retain(|key, _| !matches!(key.as_str(), "$defs" | "definitions"));
    }
    Inliner { root: schema, open: Vec::new(), values: 0, bytes: 0 }.copy(&body)
}

struct Inliner<'a> {
    root: &'a Value,
    /// The references that lead to where we are.
    open: Vec<String>,
    /// How many values were copied, and how many bytes of names and texts.
    values: usize,
    bytes: usize,
}

impl Inliner<'_> {
    fn copy(&mut self, value: &Value) -> Value {
        self.values += 1;
        self.bytes += match value {
            Value::String(text) => text.len(),
            Value::Object(object) => object.keys().map(String::len).sum(),
            _ => 0,
        };
        match value {
            Value::Object(object) => match object.get("$ref").and_then(Value::as_str) {
                Some(reference) => {
                    let mut target = self.follow(reference);
                    // What stands beside a reference adds to it.
                    let beside = object.iter().filter(|(key, _)| *key != "$ref");
                    if let Value::Object(target) = &mut target {
                        target.extend(beside.map(|(key, value)| (key.clone(), self.copy(value))));
                    }
                    target
                }
                None => object.iter().map(|(key, value)| (key.clone(), self.copy(value))).collect(),
            },
            Value::Array(values) => values.iter().map(|value| self.copy(value)).collect(),
            other => other.clone(),
        }
    }

    fn follow(&mut self, reference: &str) -> Value {
        let root = self.root;
        // What is elsewhere is not fetched: it may be anything.
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else {
            return json!({});
        };
        let is_open = reference == "#" || self.open.iter().any(|open| open == reference);
        if is_open || self.open.len() == DEEPEST || self.values > MOST_VALUES || self.bytes > MOST_BYTES {
            let kind = target.get("type").and_then(Value::as_str).filter(|kind| TYPES.contains(kind));
            return json!({ "type": kind.unwrap_or("object") });
        }
        self.open.push(reference.to_owned());
        let copy = self.copy(target);
        self.open.pop();
        copy
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn what_a_schema_refers_to_stands_where_it_is_referred_to() {
        let place = json!({"type": "object", "properties": {"line": {"$ref": "#/$defs/Line"}}});
        let schema = json!({
            "type": "object",
            "properties": {
                "from": {"$ref": "#/$defs/Place", "description": "Where."},
                "all": {"type": "array", "items": {"$ref": "#/definitions/Old"}},
                "same": {"$ref": "#/properties/all"},
                "elsewhere": {"$ref": "https://example.com/schema.json"},
                "nowhere": {"$ref": "#/$defs/Missing"},
                // A parameter of that name is no reference, and no definitions.
                "$ref": {"type": "string"},
                "definitions": {"type": "string"},
            },
            "$defs": {"Place": place, "Line": {"type": "integer"}},
            "definitions": {"Old": {"enum": ["a"]}},
        });
        let line = json!({"type": "integer"});
        let list = json!({"type": "array", "items": {"enum": ["a"]}});
        let expected = json!({
            "type": "object",
            "properties": {
                "from": {"type": "object", "properties": {"line": line}, "description": "Where."},
                "all": list,
                "same": list,
                "elsewhere": {},
                "nowhere": {},
                "$ref": {"type": "string"},
                "definitions": {"type": "string"},
            },
        });
        assert_eq!(inlined(&schema), expected);
        assert_eq!(inlined(&expected), expected);
    }

    #[test]
    fn a_schema_that_leads_into_itself_ends() {
        let node = json!({"type": "object", "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "top": {"$ref": "#"},
        }});
        let schema =
            json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}});
        let inner = json!({
            "children": {"type": "array", "items": {"type": "object"}},
            "top": {"type": "object"},
        });
        assert_eq!(inlined(&schema)["properties"]["root"]["properties"], inner);
        // One that is a reference to itself and nothing else.
        let schema = json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}});
        assert_eq!(inlined(&schema), json!({"type": "object"}));
    }

    #[test]
    fn a_schema_does_not_grow_without_end() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
            definitions.insert(format!("L{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
        }
        definitions.insert("L40".into(), json!({"type": "string"}));
        let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": definitions});
        let text = inlined(&schema).to_string();
        assert!(text.len() < 1 << 20 && !text.contains("$ref"), "{}", text.len());
        // Few values with long texts, wherever these stand.
        for long in [json!({"description": "x".repeat(1 << 20)}), json!({"type": ["x".repeat(1 << 20)]})] {
            let many: Map<String, Value> =
                (0..500).map(|number| (format!("p{number}"), json!({"$ref": "#/$defs/X"}))).collect();
            let schema = json!({"type": "object", "properties": many, "$defs": {"X": long}});
            let length = inlined(&schema).to_string().len();
            assert!(length < 2 << 20, "{length}");
        }
    }
}
