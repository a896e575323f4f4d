//! What a value has to look like, as tables: fields, whether they are required, and what is in them.

use serde_json::Value;

/// What a value is.
pub(super) enum Shape {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// An array of such values.
    List(&'static Shape),
    /// An object with these fields, and others.
    Record(&'static [Field]),
    /// An object whose field of this name tells which fields it has. What the table does not list may hold anything.
    Tagged(&'static str, &'static [(&'static str, &'static [Field])]),
    /// One of these.
    Either(&'static [Shape]),
}

/// A field of an object.
pub(super) struct Field {
    name: &'static str,
    shape: Shape,
    is_required: bool,
}

/// A field that is always there.
pub(super) const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, is_required: true }
}

/// A field that may be absent or null.
pub(super) const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, is_required: false }
}

/// What is wrong with a value, if anything is: the first flaw, by the names of our tables.
pub(super) fn flaw(value: &Value, shape: &Shape) -> Option<String> {
    flaw_at(value, shape, "")
}

fn flaw_at(value: &Value, shape: &Shape, path: &str) -> Option<String> {
    let is = |is_right: bool, kind: &str| (!is_right).then(|| format!("{} is not {kind}", named(path)));
    match shape {
        Shape::Text => is(value.is_string(), "a string"),
        Shape::Flag => is(value.is_boolean(), "a boolean"),
        Shape::List(of) => match value.as_array() {
            None => is(false, "an array"),
            Some(items) => {
                items.iter().enumerate().find_map(|(index, item)| flaw_at(item, of, &format!("{path}[{index}]")))
            }
        },
        Shape::Record(fields) => is(value.is_object(), "an object").or_else(|| flaw_of_fields(value, fields, path)),
        Shape::Tagged(tag, variants) => is(value.is_object(), "an object").or_else(|| {
            let Some(name) = value[*tag].as_str() else {
                return Some(missing_or_wrong(&value[*tag], &join(path, tag)));
            };
            let fields = variants.iter().find(|(variant, _)| *variant == name)?.1;
            flaw_of_fields(value, fields, path)
        }),
        Shape::Either(shapes) => {
            let flaws: Option<Vec<String>> = shapes.iter().map(|shape| flaw_at(value, shape, path)).collect();
            flaws?.into_iter().next()
        }
    }
}

fn flaw_of_fields(value: &Value, fields: &[Field], path: &str) -> Option<String> {
    fields.iter().find_map(|field| {
        let path = join(path, field.name);
        match &value[field.name] {
            Value::Null if field.is_required => Some(format!("`{path}` is missing")),
            Value::Null => None,
            value => flaw_at(value, &field.shape, &path),
        }
    })
}

fn missing_or_wrong(value: &Value, path: &str) -> String {
    if value.is_null() { format!("`{path}` is missing") } else { format!("`{path}` is not a string") }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn named(path: &str) -> String {
    if path.is_empty() { "it".to_owned() } else { format!("`{path}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NAMED: Shape = Shape::Record(&[must("name", Shape::Text)]);
    const SHAPE: Shape = Shape::Tagged(
        "type",
        &[(
            "list",
            &[
                must("id", Shape::Text),
                may("is_on", Shape::Flag),
                may("items", Shape::Either(&[Shape::List(&NAMED), Shape::List(&Shape::Text)])),
            ],
        )],
    );

    #[track_caller]
    fn check(value: Value, expected: Option<&str>) {
        assert_eq!(flaw(&value, &SHAPE).as_deref(), expected);
    }

    #[test]
    fn flaws_are_named_by_their_place() {
        check(json!({"type": "list", "id": "a", "is_on": null, "other": 1}), None);
        check(json!({"type": "_other"}), None);
        check(json!([]), Some("it is not an object"));
        check(json!({"type": 1}), Some("`type` is not a string"));
        check(json!({"type": "list", "id": null}), Some("`id` is missing"));
        check(json!({"type": "list", "id": 1}), Some("`id` is not a string"));
        check(json!({"type": "list", "id": "a", "is_on": "yes"}), Some("`is_on` is not a boolean"));
        check(json!({"type": "list", "id": "a", "items": {}}), Some("`items` is not an array"));
    }

    #[test]
    fn one_of_several_shapes_is_enough() {
        let list = |items: Value| json!({"type": "list", "id": "a", "items": items});
        check(list(json!([{"name": "a"}])), None);
        check(list(json!(["a"])), None);
        check(list(json!([{"name": "a"}, "b"])), Some("`items[1]` is not an object"));
    }
}
