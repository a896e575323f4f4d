//! The names that tools of servers have for the model: `server__tool`, of letters that every provider takes.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

/// How long a name may be for the strictest of the providers.
const MAX_NAME: usize = 64;

/// How long the server's part may be, so that enough is left for the tool's.
const MAX_LABEL: usize = 32;

/// What each server is called in the names of its tools. No label has two underscores in a row or one at its end, so
/// the first `__` of a name is the seam, and tools of two servers cannot have the same name.
pub(super) fn labels(servers: &[&str]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut labels = Vec::with_capacity(servers.len());
    for server in servers {
        let mut label = String::new();
        for c in sanitized(server).chars() {
            if c != '_' || !label.ends_with('_') {
                label.push(c);
            }
        }
        let label = label.trim_end_matches('_');
        // Some providers want a letter first.
        let label = match label.chars().next() {
            None => "server".to_owned(),
            Some(first) if first.is_ascii_digit() || first == '-' => format!("s_{label}"),
            Some(_) => label.to_owned(),
        };
        let label = shortened(label, MAX_LABEL, server).trim_end_matches('_').replace("__", "_");
        let mut unique = label.clone();
        let mut number = 2;
        while !taken.insert(unique.clone()) {
            unique = format!("{label}_{number}");
            number += 1;
        }
        labels.push(unique);
    }
    labels
}

/// The names of the slash commands of a server's prompts, in their order: `server:prompt`.
pub(super) fn prompt_names(label: &str, prompts: &[&str]) -> Vec<Option<String>> {
    names(&format!("{label}:"), prompts)
}

/// The names of a server's tools, in their order. Each depends on nothing but the label and the tools, so that it is the
/// same the next time. `None` for a tool that is named twice.
pub(super) fn tool_names(label: &str, tools: &[&str]) -> Vec<Option<String>> {
    names(&format!("{label}__"), tools)
}

fn names(beginning: &str, tools: &[&str]) -> Vec<Option<String>> {
    let simple: Vec<String> =
        tools.iter().map(|tool| shortened(format!("{beginning}{}", sanitized(tool)), MAX_NAME, tool)).collect();
    let mut owners: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (name, tool) in simple.iter().zip(tools) {
        owners.entry(name).or_default().insert(tool);
    }
    let mut taken = HashSet::new();
    simple
        .iter()
        .zip(tools)
        .map(|(name, tool)| {
            // Of several that would have one name, the one that is spelled so keeps it.
            let is_shared = owners.get(name.as_str()).is_some_and(|owners| owners.len() > 1);
            let name = if is_shared && sanitized(tool) != **tool { marked(name, MAX_NAME, tool) } else { name.clone() };
            taken.insert(name.clone()).then_some(name)
        })
        .collect()
}

fn sanitized(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn shortened(name: String, max: usize, origin: &str) -> String {
    if name.len() <= max { name } else { marked(&name, max, origin) }
}

/// The name, cut where needed, with a mark of what it stands for. It is ASCII: any place to cut is fine.
fn marked(name: &str, max: usize, origin: &str) -> String {
    let digest = Sha256::digest(origin.as_bytes());
    let mark: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let kept = name.len().min(max - mark.len() - 1);
    format!("{}_{mark}", &name[..kept])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn servers_have_distinct_labels() {
        let check = |servers: &[&str], wanted: &[&str]| assert_eq!(labels(servers), wanted);
        check(&["files", "my server", "my.server"], &["files", "my_server", "my_server_2"]);
        check(&["a__b", "a_", "__", "", "1st", "ü-ber"], &["a_b", "a", "server", "server_2", "s_1st", "_-ber"]);
        check(&["a", "a", "a_2"], &["a", "a_2", "a_2_2"]);
    }

    #[test]
    fn tools_have_distinct_names_that_every_provider_takes() {
        let names = tool_names("s", &["x.y", "x_y", "x y", "plain", "plain"]);
        assert_eq!(names[1].as_deref(), Some("s__x_y"));
        assert_eq!(names[3].as_deref(), Some("s__plain"));
        assert_eq!(names[4], None);
        let (dot, space) = (names[0].clone().unwrap(), names[2].clone().unwrap());
        assert!(dot.starts_with("s__x_y_") && space.starts_with("s__x_y_") && dot != space);
        // The order does not count.
        assert_eq!(tool_names("s", &["x y", "x_y", "x.y"])[2].as_ref(), Some(&dot));
    }

    #[test]
    fn long_names_are_cut_and_stay_distinct() {
        let long = "t".repeat(300);
        let longer = "t".repeat(301);
        let label = &labels(&[&"ä".repeat(400)])[0];
        let names = tool_names(&labels(&[&long])[0], &[&long, &longer, "t"]);
        assert!(label.len() <= MAX_LABEL);
        for name in names.iter().flatten() {
            assert!(name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        }
        assert_ne!(names[0], names[1]);
    }
}
