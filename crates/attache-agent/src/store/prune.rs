//! Which sessions go when there are too many.

use std::time::SystemTime;

use super::Store;

/// How much is kept of sessions altogether. When there is more, those go to which nothing was added for the longest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// How many sessions.
    pub sessions: usize,
    /// How many bytes in their logs.
    pub bytes: u64,
}

impl Default for Kept {
    /// Years of work for most people, and no more than a few gigabytes for the others.
    fn default() -> Self {
        Kept { sessions: 2000, bytes: 4 << 30 }
    }
}

impl Store {
    /// The sessions that are too many, the oldest first. What cannot be looked at is not among them.
    pub fn excess(&self, kept: Kept) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let mut logs: Vec<(SystemTime, u64, String)> = entries
            .flatten()
            .filter_map(|entry| {
                let id = entry.file_name().to_str()?.strip_suffix(".log").filter(|id| super::is_id(id))?.to_owned();
                let file = entry.metadata().ok()?;
                Some((file.modified().ok()?, file.len(), id))
            })
            .collect();
        logs.sort_unstable();
        let (mut count, mut bytes) = (logs.len(), logs.iter().map(|(_, length, _)| length).sum::<u64>());
        let mut excess = Vec::new();
        for (_, length, id) in logs {
            // The newest stays, however large it is.
            if count <= 1 || (count <= kept.sessions && bytes <= kept.bytes) {
                break;
            }
            count -= 1;
            bytes -= length;
            excess.push(id);
        }
        excess
    }
}
