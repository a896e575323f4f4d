//! The files of a project that a prompt may be about, by the words that both have.

use attache_host::files::Files;
use attache_host::permission::is_secret;

use super::window::{weigh, words};
use crate::workspace::{Stop, Text, Walk, Workspace, bounded};

/// How many files are looked into, and how long each may be.
const MOST_FILES: usize = 500;
const LONGEST: u64 = 64 << 10;

/// The files with the most to do with a task, the best first: at most so many, and so many bytes of them.
pub(super) async fn files(workspace: &Workspace, task: &str, most: usize, bytes: u64) -> Vec<String> {
    let (files, start) = (workspace.files_without_links(), workspace.cwd().to_owned());
    let (names, wanted) = (workspace.real_names(), words(task));
    let found = bounded(move |stop| {
        let ranked = ranked(&files, &start, &wanted, stop);
        let mut left = bytes;
        let fitting = ranked.into_iter().filter(|(_, size)| {
            let fits = *size <= left;
            left -= if fits { *size } else { 0 };
            fits
        });
        fitting.take(most).map(|(path, _)| names.of(&path)).collect()
    });
    found.await.unwrap_or_default()
}

fn ranked(files: &Files, start: &std::path::Path, wanted: &[String], stop: &Stop) -> Vec<(std::path::PathBuf, u64)> {
    let Ok(walk) = Walk::new(files, start, stop) else { return Vec::new() };
    let found = walk.filter(|found| found.info.size <= LONGEST && !is_secret(&found.relative)).take(MOST_FILES);
    let texts: Vec<(std::path::PathBuf, u64, String)> = found
        .filter_map(|found| {
            let bytes = files.read_unasked(&found.path, LONGEST as usize).ok()?;
            let text = Text::decode(bytes).ok()?.content;
            // What a file is called says what is in it.
            let name = found.relative.to_string_lossy().into_owned();
            Some((found.path, found.info.size, format!("{name}\n{text}")))
        })
        .collect();
    let weights = weigh(texts.iter().map(|(_, _, text)| text.as_str()), wanted);
    let mut ranked: Vec<(f64, usize)> =
        weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0).map(|(at, weight)| (weight, at)).collect();
    ranked.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
    ranked.into_iter().map(|(_, at)| (texts[at].0.clone(), texts[at].1)).collect()
}
