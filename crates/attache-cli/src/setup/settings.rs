//! What becomes of `agent.toml`: the model and where its provider is, with all else kept as it is written.

use toml_edit::{DocumentMut, Value};

/// The text with this model in it. An error is a reason why that cannot be written.
pub(super) fn with_model(text: &str, model: &str, base_url: Option<&str>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|_| "it is not TOML")?;
    set(&mut document, "model", model);
    match base_url {
        Some(url) => set(&mut document, "base_url", url),
        // It belonged to another model.
        None => remove(&mut document, "base_url"),
    }
    Ok(document.to_string())
}

/// Sets a value; what is written around it stays.
fn set(document: &mut DocumentMut, name: &str, text: &str) {
    let mut value = Value::from(text);
    if let Some(before) = document.get(name).and_then(|item| item.as_value()) {
        if before.as_str() == Some(text) {
            return;
        }
        *value.decor_mut() = before.decor().clone();
    }
    match document.get_mut(name) {
        Some(item) => *item = value.into(),
        None => drop(document.insert(name, value.into())),
    }
}

/// Removes a value. Comments above it are about more than it, perhaps, and go to what comes next.
fn remove(document: &mut DocumentMut, name: &str) {
    let comments = document.key(name).and_then(|key| key.leaf_decor().prefix()?.as_str().map(str::to_owned));
    let next = {
        let names: Vec<String> = document.iter().map(|(name, _)| name.to_owned()).collect();
        let at = names.iter().position(|other| other == name);
        at.and_then(|at| names.get(at + 1).cloned())
            .filter(|next| document.get(next).is_some_and(|item| item.is_value()))
    };
    if document.remove(name).is_none() {
        return;
    }
    let Some(comments) = comments.filter(|text| text.contains('#')) else { return };
    let next = next.unwrap_or_else(|| "model".into());
    if let Some(mut key) = document.key_mut(&next) {
        let own = key.leaf_decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
        key.leaf_decor_mut().set_prefix(comments + &own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, model: &str, base_url: Option<&str>, after: &str) {
        let made = with_model(before, model, base_url).unwrap();
        assert_eq!(made, after);
        // A second time there is nothing to do.
        assert_eq!(with_model(&made, model, base_url).unwrap(), after);
    }

    #[test]
    fn a_model_is_written_and_nothing_else_changes() {
        check("", "openai:x", None, "model = \"openai:x\"\n");
        check("", "openai:x", Some("http://h/v1"), "model = \"openai:x\"\nbase_url = \"http://h/v1\"\n");
        check(
            "# mine\nmode = \"code\" # fast\n\n# hooks\n[[hooks]]\nevent = \"end_of_turn\"\n",
            "ollama:q",
            None,
            "# mine\nmode = \"code\" # fast\nmodel = \"ollama:q\"\n\n# hooks\n[[hooks]]\nevent = \"end_of_turn\"\n",
        );
        check("# a\nmodel = 'old' # why\nmode = 'ask'\n", "n:n", None, "# a\nmodel = \"n:n\" # why\nmode = 'ask'\n");
    }

    #[test]
    fn the_address_of_another_model_goes_and_its_comments_stay() {
        check("# all of it\nbase_url = 'u'\nmodel = 'm'\n", "n", None, "# all of it\nmodel = \"n\"\n");
        check("model = 'm'\n# where\nbase_url = 'u'\n[commands]\n", "n", None, "# where\nmodel = \"n\"\n[commands]\n");
        check("model = 'm'\nbase_url = 'u'\n", "n", None, "model = \"n\"\n");
    }

    #[test]
    fn what_is_no_toml_is_left_alone() {
        assert!(with_model("model = \n", "m", None).is_err());
    }
}
